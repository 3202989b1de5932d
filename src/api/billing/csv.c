/* The lines of an invoice as CSV (RFC 4180). */
#include "api/billing/csv.h"

#include "base/json.h"

void csv_cell(struct buf *b, struct str text)
{
	bool formula = text.n && memchr("=+-@\t\r", text.p[0], 6), quoted = formula;
	for (size_t i = 0; i < text.n && !quoted; i++)
		quoted = memchr(",\"\r\n;", text.p[i], 5);
	if (!quoted) {
		buf_str(b, text);
		return;
	}
	buf_z(b, formula ? "\"'" : "\"");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_c(b, '"');
		buf_c(b, text.p[i]);
	}
	buf_c(b, '"');
}

/* The columns: the title, and the field of a line. */
static const struct {
	const char *title, *field;
} columns[] = {
        {"Billed", "created"},
        {"Start", "startDate"},
        {"End", "endDate"},
        {"Project Id", "groupId"},
        {"Project", "groupName"},
        {"Cluster", "clusterName"},
        {"SKU", "sku"},
        {"Provider", "cloudProvider"},
        {"Note", "note"},
        {"Unit", "unit"},
        {"Quantity", "quantity"},
        {"Unit Price", "unitPriceDollars"},
        {"Tier From", "tierLowerBound"},
        {"Tier To", "tierUpperBound"},
        {"Discount Percent", "percentDiscount"},
        {"Discount Cents", "discountCents"},
        {"Total Cents", "totalPriceCents"},
};
#define COLUMNS (sizeof columns / sizeof *columns)

void lines_csv_header(struct buf *b)
{
	for (size_t i = 0; i < COLUMNS; i++)
		buf_printf(b, "%s%s", i ? "," : "", columns[i].title);
	buf_z(b, "\r\n");
}

/* A line as it is stored: an object of texts and numbers, whose text the service itself has written. It is taken apart
 * without a parser, which would take most of the time of an invoice with a million lines. */
struct cell {
	struct str text; /* between the quotes, or the number as it is written */
	bool escaped;
};

/* The end of a text, at its closing quote. */
static const char *text_end(const char *p, const char *end, bool *ret_escaped)
{
	*ret_escaped = false;
	while (p < end && *p != '"') {
		*ret_escaped |= *p == '\\';
		p += *p == '\\' && end - p > 1 ? 2 : 1;
	}
	return p;
}

static size_t column_find(struct str field)
{
	size_t i = 0;
	while (i < COLUMNS && !str_is(field, columns[i].field))
		i++;
	return i;
}

/* Takes one field, and returns what follows it; NULL where there is none. */
static const char *field_scan(const char *p, const char *end, struct cell cells[COLUMNS])
{
	struct cell c = {.escaped = false};
	bool escaped;
	const char *name = p + 1;
	if (p >= end || *p != '"')
		return NULL;
	p = text_end(name, end, &escaped);
	if (end - p < 2 || p[1] != ':')
		return NULL;
	size_t column = column_find((struct str){name, (size_t)(p - name)});
	p += 2; /* the quote and the colon */
	bool quoted = p < end && *p == '"';
	const char *begin = quoted ? ++p : p;
	if (quoted)
		p = text_end(p, end, &c.escaped);
	if (quoted && p == end)
		return NULL;
	if (!quoted)
		while (p < end && *p != ',' && *p != '}')
			p++;
	c.text = (struct str){begin, (size_t)(p - begin)};
	if (column < COLUMNS)
		cells[column] = c;
	return p + quoted;
}

static void cell_write(struct buf *b, struct arena *a, const struct cell *c)
{
	if (!c->escaped) {
		csv_cell(b, c->text);
		return;
	}
	json_t *text = json_loadb(c->text.p - 1, c->text.n + 2, JSON_DECODE_ANY, NULL);
	csv_cell(b, json_str_of(json_keep(a, text)));
}

/* Negative numbers are no formulas. */
static void row_write(struct buf *b, struct arena *a, const struct cell cells[COLUMNS])
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const struct cell *c = &cells[i];
		if (i)
			buf_c(b, ',');
		if (c->text.n && c->text.p[-1] == '"')
			cell_write(b, a, c);
		else
			buf_str(b, c->text);
	}
	buf_add(b, "\r\n", 2);
}

void lines_csv(struct buf *b, struct arena *a, struct str items)
{
	const char *p = items.p, *end = items.p + items.n;
	while (p && (p = memchr(p, '{', (size_t)(end - p)))) {
		struct cell cells[COLUMNS] = {{.escaped = false}};
		while (p && p < end && *p != '}')
			p = field_scan(p + 1, end, cells);
		if (p && p < end)
			row_write(b, a, cells);
	}
}
