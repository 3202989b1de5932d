/* The lines of an invoice as CSV. */
#ifndef STEWARD_API_BILLING_CSV_H
#define STEWARD_API_BILLING_CSV_H

#include "base/arena.h"
#include "base/buf.h"

/* A cell. What a spreadsheet would take for a formula becomes a text. */
void csv_cell(struct buf *b, struct str text);

/* The titles of the columns, and a row for each line of `items`: the text of a JSON array, as it is stored. What is not
 * whole there gives no row. */
void lines_csv_header(struct buf *b);
void lines_csv(struct buf *b, struct arena *a, struct str items);

#endif
