/* Invoices as CSV. Any bytes in the place of stored lines give rows that are whole. Lines as the service writes them are read
 * back by another reader: each cell has the field's text, and none begins as a formula does. */
#include "fuzz.h"

#include "api/billing/csv.h"
#include "base/json.h"

static const char *const fields[] = {"created",
                                     "startDate",
                                     "endDate",
                                     "groupId",
                                     "groupName",
                                     "clusterName",
                                     "sku",
                                     "cloudProvider",
                                     "note",
                                     "unit",
                                     "quantity",
                                     "unitPriceDollars",
                                     "tierLowerBound",
                                     "tierUpperBound",
                                     "percentDiscount",
                                     "discountCents",
                                     "totalPriceCents"};
#define FIELDS (sizeof fields / sizeof *fields)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct buf b = {0};
	size_t commas = 0;
	json_setup();
	lines_csv_header(&b);
	for (size_t i = 0; i < b.n; i++)
		commas += b.p[i] == ',';
	HOLDS(commas == FIELDS - 1);
	buf_free(&b);
	return 0;
}

/* One cell of RFC 4180; returns what ended it: ',', '\n', or 0 where there is none. */
static char cell_read(struct str *rest, struct buf *to)
{
	bool quoted = rest->n && *rest->p == '"';
	to->n = 0;
	for (size_t i = quoted; i < rest->n; i++) {
		char c = rest->p[i];
		bool doubled = quoted && c == '"' && i + 1 < rest->n && rest->p[i + 1] == '"';
		bool ends = quoted ? c == '"' && !doubled : c == ',' || c == '\r';
		if (!ends) {
			buf_c(to, c);
			i += doubled;
			continue;
		}
		i += quoted;
		HOLDS(i < rest->n &&
		      (rest->p[i] == ',' || (rest->p[i] == '\r' && i + 1 < rest->n && rest->p[i + 1] == '\n')));
		char end = rest->p[i] == ',' ? ',' : '\n';
		i += end == ',' ? 1 : 2;
		*rest = (struct str){rest->p + i, rest->n - i};
		return end;
	}
	return 0;
}

static bool is_line(const json_t *line)
{
	const char *key;
	const json_t *value;
	if (!json_is_object(line) || !json_object_size(line))
		return false;
	json_object_foreach((json_t *)(uintptr_t)line, key, value)
	{
		if (!json_is_string(value) && !json_is_integer(value))
			return false;
	}
	return true;
}

static void cell_holds(const json_t *value, struct str cell)
{
	struct str text = json_str_of(value);
	char number[32];
	if (json_is_integer(value)) {
		snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
		text = str_of(number);
	}
	bool formula = json_is_string(value) && text.n && memchr("=+-@\t\r", text.p[0], 6);
	HOLDS(!formula || (cell.n && cell.p[0] == '\''));
	HOLDS(cell.n == text.n + formula && (!text.n || memcmp(cell.p + formula, text.p, text.n) == 0));
}

static void lines_hold(const json_t *lines, struct arena *a)
{
	struct buf b = {0}, cell = {0};
	char *text = json_dumps(lines, JSON_COMPACT);
	lines_csv(&b, a, str_of(text));
	struct str rest = buf_view(&b);
	for (size_t i = 0; i < json_array_size(lines); i++)
		for (size_t k = 0; k < FIELDS; k++) {
			HOLDS(cell_read(&rest, &cell) == (k + 1 < FIELDS ? ',' : '\n'));
			cell_holds(json_object_get(json_array_get(lines, i), fields[k]), buf_view(&cell));
		}
	HOLDS(rest.n == 0);
	buf_free(&b);
	buf_free(&cell);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	char *exact = fuzz_copy(input);
	struct arena *a = arena_new();
	struct buf b = {0};
	lines_csv(&b, a, (struct str){exact, input.n});
	HOLDS(b.n == 0 || (b.n >= FIELDS + 1 && memcmp(b.p + b.n - 2, "\r\n", 2) == 0));
	b.n = 0;
	csv_cell(&b, (struct str){exact, input.n});
	HOLDS(b.n >= input.n && (!b.n || !memchr("=+-@\t\r", b.p[0], 6)));
	buf_free(&b);
	json_t *lines = json_loadb(exact, input.n, 0, NULL);
	bool good = json_is_array(lines);
	for (size_t i = 0; good && i < json_array_size(lines); i++)
		good = is_line(json_array_get(lines, i));
	if (good)
		lines_hold(lines, a);
	json_decref(lines);
	arena_free(a);
	free(exact);
	return 0;
}
