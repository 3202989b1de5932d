/* Pages of plain text as a PDF: A4, one fixed font that every reader has, so that columns stand below each other. */
#ifndef STEWARD_CLI_CLIENT_PDF_H
#define STEWARD_CLI_CLIENT_PDF_H

#include "base/buf.h"

#define PDF_COLUMNS 100 /* letters that fit on a line */
#define PDF_LINES 68

struct pdf {
	struct buf out, page, links; /* links: of the page */
	size_t *offsets;             /* of objects, by number */
	size_t objects, pages, lines;
};

void pdf_begin(struct pdf *p);
/* One line; what is longer is cut. Letters outside of Latin-1 become "?". A full page is ended, and another begun. */
void pdf_line(struct pdf *p, struct str text);
/* The line that was just written leads there. */
void pdf_link(struct pdf *p, struct str url);
/* The document, which is p->out until pdf_free(). */
void pdf_end(struct pdf *p);
void pdf_free(struct pdf *p);

#endif
