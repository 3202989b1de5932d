/* The objects of a document: 1 the catalog, 2 the list of pages, 3 the font; then a page and its text by turns. */
#include "cli/client/pdf.h"

#include "base/arena.h"

#include <stdlib.h>

enum { CATALOG = 1, PAGES, FONT, FIRST_PAGE };
enum { LEFT = 48, TOP = 794, LEADING = 11, WIDTH = 480 }; /* in points */

static void object_begin(struct pdf *p, size_t number)
{
	if (number >= p->objects) {
		p->offsets = must_realloc(p->offsets, (number + 1) * sizeof *p->offsets);
		p->objects = number + 1;
	}
	p->offsets[number] = p->out.n;
	buf_printf(&p->out, "%zu 0 obj\n", number);
}

static void object_end(struct pdf *p)
{
	buf_z(&p->out, "\nendobj\n");
}

void pdf_begin(struct pdf *p)
{
	*p = (struct pdf){.lines = 0};
	buf_z(&p->out, "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n");
}

static void page_begin(struct pdf *p)
{
	p->page.n = p->links.n = 0;
	buf_printf(&p->page, "BT /F 8 Tf %d TL %d %d Td\n", LEADING, LEFT, TOP);
}

static void page_end(struct pdf *p)
{
	size_t number = FIRST_PAGE + 2 * p->pages++;
	buf_z(&p->page, "ET");
	object_begin(p, number);
	buf_printf(&p->out,
	           "<< /Type /Page /Parent %d 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F %d 0 R >> >> "
	           "/Contents %zu 0 R /Annots [%.*s] >>",
	           PAGES, FONT, number + 1, (int)p->links.n, p->links.n ? p->links.p : "");
	object_end(p);
	object_begin(p, number + 1);
	buf_printf(&p->out, "<< /Length %zu >>\nstream\n", p->page.n);
	buf_str(&p->out, buf_view(&p->page));
	buf_z(&p->out, "\nendstream");
	object_end(p);
	p->lines = 0;
}

/* The next letter of UTF-8 in Latin-1; '?' for what that does not have. */
static unsigned char letter_next(struct str text, size_t *at)
{
	unsigned char c = (unsigned char)text.p[(*at)++];
	if (c < 0x80)
		return c < 0x20 || c == 0x7f ? ' ' : c;
	bool latin = (c == 0xc2 || c == 0xc3) && *at < text.n;
	unsigned char next = latin ? (unsigned char)text.p[*at] : 0;
	while (*at < text.n && ((unsigned char)text.p[*at] & 0xc0) == 0x80)
		++*at;
	return latin && (c == 0xc3 || next >= 0xa0) ? (unsigned char)((c & 3) << 6 | (next & 0x3f)) : '?';
}

static void text_add(struct buf *to, struct str text, size_t max)
{
	buf_c(to, '(');
	for (size_t at = 0, letters = 0; at < text.n && letters < max; letters++) {
		unsigned char c = letter_next(text, &at);
		if (c == '(' || c == ')' || c == '\\')
			buf_c(to, '\\');
		buf_c(to, (char)c);
	}
	buf_c(to, ')');
}

void pdf_line(struct pdf *p, struct str text)
{
	if (p->lines == PDF_LINES)
		page_end(p);
	if (p->lines++ == 0)
		page_begin(p);
	text_add(&p->page, text, PDF_COLUMNS);
	buf_z(&p->page, " Tj T*\n");
}

void pdf_link(struct pdf *p, struct str url)
{
	int base = TOP - LEADING * (int)(p->lines - 1);
	buf_printf(&p->links, "<< /Type /Annot /Subtype /Link /Rect [%d %d %d %d] /Border [0 0 0] /A << /S /URI /URI ",
	           LEFT, base - 3, LEFT + WIDTH, base + LEADING - 3);
	text_add(&p->links, url, url.n);
	buf_z(&p->links, " >> >>");
}

static void table_write(struct pdf *p)
{
	size_t start = p->out.n;
	buf_printf(&p->out, "xref\n0 %zu\n0000000000 65535 f \n", p->objects);
	for (size_t i = CATALOG; i < p->objects; i++)
		buf_printf(&p->out, "%010zu 00000 n \n", p->offsets[i]);
	buf_printf(&p->out, "trailer\n<< /Size %zu /Root %d 0 R >>\nstartxref\n%zu\n%%%%EOF\n", p->objects, CATALOG,
	           start);
}

void pdf_end(struct pdf *p)
{
	if (p->lines || !p->pages) {
		if (!p->lines)
			page_begin(p);
		page_end(p);
	}
	object_begin(p, CATALOG);
	buf_printf(&p->out, "<< /Type /Catalog /Pages %d 0 R >>", PAGES);
	object_end(p);
	object_begin(p, PAGES);
	buf_printf(&p->out, "<< /Type /Pages /Count %zu /Kids [", p->pages);
	for (size_t i = 0; i < p->pages; i++)
		buf_printf(&p->out, "%zu 0 R ", FIRST_PAGE + 2 * i);
	buf_z(&p->out, "] >>");
	object_end(p);
	object_begin(p, FONT);
	buf_z(&p->out, "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>");
	object_end(p);
	table_write(p);
}

void pdf_free(struct pdf *p)
{
	buf_free(&p->out);
	buf_free(&p->page);
	buf_free(&p->links);
	free(p->offsets);
}
