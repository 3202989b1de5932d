/* Restore jobs of one database or one table: beyond the reference, whose body has no word for it. Two headers of the
 * request say which, and whether it takes the place of the one of now; two of the answer say what it is and where it
 * will be. */
#include "api/restores/piece.h"

#include "base/buf.h"
#include "base/clock.h"
#include "call/query.h"
#include "catalog/formats.h"
#include "catalog/schema.h"
#include "fetch/fetch.h"

#include <stdio.h>

#define ONLY "X-Steward-Restore-Only"
#define REPLACE "X-Steward-Restore-Replace"
#define DATABASE_MAX 52 /* as of all databases */
#define TABLE_MAX 63
#define SUFFIX "_restored_20261119031500"

static bool is_reserved(struct str name)
{
	return str_starts(name, STR("pg_")) || str_starts(name, STR("steward")) ||
	       str_eq(name, STR("information_schema"));
}

static bool name_fits(struct str name, size_t max)
{
	return name.n && name.n <= max && utf8_is_valid(name) && !memchr(name.p, 0, name.n);
}

/* "DATABASE" or "DATABASE/SCHEMA.TABLE", each percent-encoded; without a schema it is in public. */
static bool names_read(struct call *c, struct str text, struct str *database, struct str *schema, struct str *table)
{
	struct str first, rest, left, right;
	bool parts = str_cut(text, '/', &first, &rest);
	*schema = *table = STR_NONE;
	if (!query_decode(first, c->arena, database) || !name_fits(*database, DATABASE_MAX))
		return false;
	if (!parts)
		return true;
	*schema = STR("public");
	bool named = str_cut(rest, '.', &left, &right);
	if (named && !query_decode(left, c->arena, schema))
		return false;
	return query_decode(named ? right : left, c->arena, table) && name_fits(*schema, TABLE_MAX) &&
	       name_fits(*table, TABLE_MAX);
}

void piece_read(struct call *c, struct faults *faults, json_t **ret_only)
{
	struct str text = request_header(c->request, "x-steward-restore-only"),
	           replace = request_header(c->request, "x-steward-restore-replace"), database, schema, table;
	bool replaces = str_ieq(replace, STR("true"));
	*ret_only = NULL;
	if (replace.n && !replaces && !str_ieq(replace, STR("false")))
		faults_add(faults, c->arena, STR(REPLACE), "must be true or false");
	if (!text.n) {
		if (replaces)
			faults_add(faults, c->arena, STR(REPLACE), "goes with the header " ONLY);
		return;
	}
	if (!names_read(c, text, &database, &schema, &table)) {
		faults_add(faults, c->arena, STR(ONLY),
		           "must be DATABASE or DATABASE/SCHEMA.TABLE, with names of at most %d and %d bytes, "
		           "percent-encoded",
		           DATABASE_MAX, TABLE_MAX);
		return;
	}
	if (str_starts(database, STR("template")) || is_reserved(database) || is_reserved(schema))
		faults_add(faults, c->arena, STR(ONLY), "must not name what is the server's or the service's own");
	if (replaces && !table.n && str_is(database, "postgres"))
		faults_add(faults, c->arena, STR(REPLACE),
		           "does not go with the database postgres, only with its tables");
	json_t *only = json_new(c->arena);
	json_put_str(only, "database", database);
	if (table.n) {
		json_put_str(only, "schema", schema);
		json_put_str(only, "table", table);
	}
	json_put(only, "replace", json_boolean(replaces));
	*ret_only = only;
}

/* Names that are too long lose their end. */
void piece_name(struct call *c, json_t *only, int64_t at_ms)
{
	char text[CLOCK_TEXT], suffix[sizeof SUFFIX];
	bool table = json_object_get(only, "table") != NULL;
	struct str name = json_field(only, table ? "table" : "database");
	size_t most = (table ? TABLE_MAX : DATABASE_MAX) - (sizeof SUFFIX - 1);
	clock_format(at_ms, text);
	snprintf(suffix, sizeof suffix, "_restored_%.4s%.2s%.2s%.2s%.2s%.2s", text, text + 5, text + 8, text + 11,
	         text + 14, text + 17);
	json_put_z(only, "suffix", suffix);
	struct str kept = utf8_prefix(name, most);
	json_put_str(only, "as",
	             json_flag(only, "replace") ? name : arena_printf(c->arena, "%.*s%s", STR_ARG(kept), suffix));
}

/* A point in a name is none between two. */
static void name_add(struct buf *b, struct str name)
{
	for (struct str part; name.n;) {
		bool more = str_cut(name, '.', &part, &name);
		fetch_encode(b, part, "");
		if (more)
			buf_z(b, "%2E");
	}
}

static struct str header_of(struct call *c, const json_t *only, const char *last)
{
	struct buf b = {0};
	bool table = json_object_get(only, "table") != NULL;
	if (table) {
		name_add(&b, json_field(only, "database"));
		buf_c(&b, '/');
		name_add(&b, json_field(only, "schema"));
		buf_c(&b, '.');
	}
	name_add(&b, json_field(only, last ? last : table ? "table" : "database"));
	return buf_keep(&b, c->arena);
}

void piece_tell(struct call *c, const json_t *only)
{
	if (!only)
		return;
	call_header(c, STR("x-steward-restore-only"), header_of(c, only, NULL));
	call_header(c, STR("x-steward-restore-as"), header_of(c, only, "as"));
}

struct engine_piece piece_of(struct arena *a, const json_t *only, struct str job_id)
{
	struct engine_piece piece = {.database = arena_z(a, json_field(only, "database")),
	                             .as = arena_z(a, json_field(only, "as")),
	                             .suffix = arena_z(a, json_field(only, "suffix")),
	                             .replace = json_flag(only, "replace")};
	snprintf(piece.id, sizeof piece.id, "%.*s", STR_ARG(job_id));
	if (json_object_get(only, "table")) {
		piece.schema = arena_z(a, json_field(only, "schema"));
		piece.table = arena_z(a, json_field(only, "table"));
	}
	return piece;
}
