/* Queries that choose the rows of an archive. Any bytes are read as one; what is a query is a condition of SQL, or has a
 * fault. A condition runs as the service's own role, so whatever stands in it outside of quotes is ours: every quote is
 * closed, every bracket too, none before it was opened, and no letter, sign or comment is there that the compiler does
 * not write. Texts that are quoted come from the query, with their quotes doubled. */
#include "fuzz.h"

#include "engine/postgres/lake/query.h"
#include "filter/filter.h"

#include <ctype.h>

static const struct pg_lake_column columns[] = {
        {"n", "\"n\"", "int4", true, -1},          {"f", "\"f\"", "float8", true, -1},
        {"w", "\"w\"", "text", true, -1},          {"b", "\"b\"", "bool", true, -1},
        {"u", "\"u\"", "uuid", true, -1},          {"d", "\"d\"", "date", true, -1},
        {"at", "\"at\"", "timestamptz", true, -1}, {"j", "\"j\"", "json", true, -1},
        {"jb", "\"jb\"", "jsonb", true, -1},       {"ts", "\"ts\"", "timestamp", true, -1},
        {"a", "\"a\"", "_int4", true, -1},         {"m", "\"m\"", "int4", false, -1}};
#define COUNT (sizeof columns / sizeof *columns)

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

/* Behind a quote: where the text ends. */
static size_t text_end(struct str sql, size_t i)
{
	while (i < sql.n && (sql.p[i] != '\'' || (i + 1 < sql.n && sql.p[i + 1] == '\'')))
		i += sql.p[i] == '\'' ? 2 : 1;
	HOLDS(i < sql.n);
	return i + 1;
}

static void condition_holds(struct str sql)
{
	size_t depth = 0, lists = 0;
	for (size_t i = 0; i < sql.n;) {
		char c = sql.p[i++];
		if (c == '\'') {
			i = text_end(sql, i);
			continue;
		}
		HOLDS(isalnum((unsigned char)c) || strchr(" \"#>()[]:._,=<~-+/", c));
		HOLDS(c != '-' || i == sql.n || sql.p[i] != '-');
		HOLDS((c != ')' || depth) && (c != ']' || lists));
		depth += (size_t)(c == '(') - (size_t)(c == ')');
		lists += (size_t)(c == '[') - (size_t)(c == ']');
	}
	HOLDS(sql.n && depth == 0 && lists == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct buf sql = {0}, why = {0};
	const char *fault = NULL;
	const json_t *query = filter_parse_ordered((struct str){(const char *)data, size}, a, &fault);
	HOLDS((query != NULL) == (fault == NULL));
	if (query && pg_lake_query_sql(columns, COUNT, query, &sql, &why))
		condition_holds(buf_view(&sql));
	else
		HOLDS(fault || why.n);
	buf_free(&sql);
	buf_free(&why);
	arena_free(a);
	return 0;
}
