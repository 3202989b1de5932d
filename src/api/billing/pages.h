/* What the operations on invoices share. */
#ifndef STEWARD_API_BILLING_PAGES_H
#define STEWARD_API_BILLING_PAGES_H

#include "billing/billing.h"
#include "call/call.h"

/* The path's {invoiceId}, of the path's organization. -ENOENT, which becomes a 404. */
must_check int invoice_of_path(struct call *c, struct invoice *ret_invoice);

/* search.c: what a filter lists, to be asked of each of a million lines; NULL: everything. */
json_t *filter_of(struct arena *a, const json_t *list);
bool filter_has(const json_t *filter, struct str value);

/* stream.c: all lines of an invoice, as CSV, or as the "lineItems" of the JSON text `entity`, which has an empty list
 * there. Made while it is sent, so that it needs no more memory for a million of them. */
must_check int lines_send(struct call *c, const struct invoice *i, struct str entity);

#endif
