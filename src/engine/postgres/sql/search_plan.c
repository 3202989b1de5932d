/* The statement that builds a search index: one GIN index with a column for each field. How a field becomes an
 * expression is known to one place alone, the function steward_search.expression() in the database (functions.c): the
 * index is made of what it says, and queries ask the same, so that they match the index.
 *
 * As of all indexes, nothing of the statement is text that a tenant has written: names are quoted, paths within
 * documents are constants, and columns are of types of PostgreSQL itself, no domains, so that no cast or operator of a
 * tenant's runs when a reader searches. Operator classes of the extensions pg_trgm and btree_gin are taken from where
 * these lie: a tenant may have them already. */
#include "engine/postgres/sql/search_plan.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/index_sql.h"
#include "engine/postgres/sql/search_schema.h"
#include "engine/postgres/sql/sql.h"
#include "engine/postgres/sql/vector_plan.h"
#include "search/definition.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#define ASK_MS 5000
#define NAME_MAX_BYTES 63

/* --- columns */

static bool is_document(const struct pg_index_column *c)
{
	return c->ours && c->direct && strcmp(c->name, "jsonb") == 0;
}

/* Whether values of the column's type can be searched as values of the field's. */
static bool fits(const struct pg_index_column *c, enum search_type type)
{
	struct str name = str_of(c->name);
	switch (type) {
	case SEARCH_NUMBER: return str_is_one_of("int2|int4|int8|float4|float8|numeric", name);
	case SEARCH_DATE: return str_is_one_of("date|timestamp|timestamptz", name);
	case SEARCH_BOOLEAN: return str_is_one_of("bool", name);
	case SEARCH_UUID: return str_is_one_of("uuid|text|varchar|bpchar", name);
	default: return str_is_one_of("text|varchar|bpchar", name);
	}
}

/* --- analyzers */

#define ANALYSIS_ID (1 + 2 * SHA256_DIGEST_LENGTH)

/* As a field has it. Steps are known by their checksum, and written before the index is built. */
static const char *analyzer_name(struct pg_index_plan *p, const char *analyzer, json_t *analyses)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	struct buf id = {0};
	if (!search_analyzer_is_steps(analyzer))
		return analyzer;
	SHA256((const unsigned char *)analyzer, strlen(analyzer), hash);
	buf_c(&id, '#');
	for (size_t i = 0; i < sizeof hash; i++)
		buf_printf(&id, "%02x", hash[i]);
	const char *name = buf_keep(&id, p->arena).p;
	json_put(analyses, name, json_loads(analyzer, 0, NULL));
	return name;
}

/* PostgreSQL compiles the regular expressions of analyzers: what it refuses now would fail each write later. */
static int patterns_check(struct pg_index_plan *p, const struct search_definition *d)
{
	PGresult *rows;
	for (size_t i = 0; i < d->pattern_count; i++) {
		struct str sql = arena_printf(p->arena, "select '' ~ %s", pg_index_literal(p, d->patterns[i].text));
		int r = pg_sql_rows(p->conn, ASK_MS, sql.p, &rows);
		if (r == -EPROTO || r == -ETIMEDOUT)
			return pg_index_fault(p, d->patterns[i].place, "is no regular expression: %.200s",
			                      pg_why_last());
		if (r < 0)
			return r;
		PQclear(rows);
	}
	return 0;
}

/* Unicode's forms are known to PostgreSQL in UTF-8 alone. */
static int encoding_check(struct pg_index_plan *p, const json_t *analyses)
{
	int64_t good = 1;
	int r = json_object_size(analyses)
	                ? pg_sql_int(p->conn, ASK_MS, "select (getdatabaseencoding() = 'UTF8')::int", &good)
	                : 0;
	if (r == 0 && !good)
		return pg_index_fault(p, "db", "is not in UTF-8, which the analyzers of the definition need");
	return r;
}

/* --- fields */

static json_t *steps_json(const struct search_field *f)
{
	json_t *steps = json_array();
	for (size_t i = 1; i < f->depth; i++)
		json_array_append_new(steps, json_string(f->steps[i]));
	return steps;
}

static json_t *field_json(struct pg_index_plan *p, const struct search_field *f, const struct pg_index_column *c,
                          json_t *analyses)
{
	bool is_read = f->type == SEARCH_STRING;
	json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:s, s:s, s:b}", "path", f->path, "column", f->steps[0],
	                      "typname", c->name, "json", is_document(c), "type", search_type_name(f->type), "steps",
	                      steps_json(f), "language", is_read ? analyzer_name(p, f->language, analyses) : "simple",
	                      "search", is_read ? analyzer_name(p, f->search_language, analyses) : "simple", "lower",
	                      f->lower || (f->type == SEARCH_UUID && !is_document(c)));
	json_put(o, "cut", json_true());
	json_put(o, "bounded", json_true());
	if (f->multi)
		json_put_z(o, "multi", f->multi);
	if (f->type == SEARCH_AUTOCOMPLETE) {
		json_put_z(o, "tokenization", f->tokenization);
		json_put(o, "min", json_integer(f->min_grams));
		json_put(o, "max", json_integer(f->max_grams));
	}
	return o;
}

static int field_plan(struct pg_index_plan *p, const struct search_field *f, json_t *analyses, json_t *list)
{
	struct pg_index_column c;
	int r = strlen(f->steps[0]) > NAME_MAX_BYTES ? -ENOENT : pg_index_column(p, f->steps[0], &c);
	if (r == -ENOENT)
		return pg_index_fault(p, f->place, "the table has no column \"%.80s\"", f->steps[0]);
	if (r < 0)
		return r;
	if (f->depth > 1 && !is_document(&c))
		return pg_index_fault(p, f->place, "the column \"%.80s\" holds no documents (jsonb)", f->steps[0]);
	if (is_document(&c) && f->depth == 1 && f->type != SEARCH_STRING)
		return pg_index_fault(p, f->place,
		                      "the column \"%.80s\" holds documents (jsonb): as a whole they are searched as "
		                      "string alone",
		                      f->steps[0]);
	if (!is_document(&c) && (!c.ours || !c.direct || !fits(&c, f->type)))
		return pg_index_fault(p, f->place,
		                      "the column \"%.80s\" is of the type %.80s, which is not searched as %s",
		                      f->steps[0], c.type, search_type_name(f->type));
	json_array_append_new(list, field_json(p, f, &c, analyses));
	return 0;
}

/* --- dynamic mappings */

static bool is_named(const struct search_definition *d, const char *column)
{
	for (size_t i = 0; i < d->field_count; i++)
		if (strcmp(d->fields[i].steps[0], column) == 0)
			return true;
	return false;
}

static int dynamic_type(const struct pg_index_column *c, unsigned types)
{
	static const enum search_type tried[] = {SEARCH_NUMBER, SEARCH_DATE, SEARCH_BOOLEAN, SEARCH_STRING};
	if (!c->ours || !c->direct)
		return -1;
	if (strcmp(c->name, "uuid") == 0)
		return types & 1u << SEARCH_UUID ? (int)SEARCH_UUID : -1;
	if (is_document(c))
		return types & 1u << SEARCH_STRING ? (int)SEARCH_STRING : -1;
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
		if (types & 1u << tried[i] && fits(c, tried[i]))
			return (int)tried[i];
	return -1;
}

static int column_add(struct pg_index_plan *p, const struct search_definition *d, const char *name, json_t *analyses,
                      json_t *list)
{
	struct pg_index_column c;
	int r = pg_index_column(p, name, &c);
	int type = r < 0 ? -1 : dynamic_type(&c, d->dynamic);
	if (r < 0 || type < 0)
		return r == -ENOENT ? 0 : r;
	struct search_field f = {.path = name,
	                         .steps = &name,
	                         .depth = 1,
	                         .type = (enum search_type)type,
	                         .language = d->language,
	                         .search_language = d->search_language};
	if (json_array_size(list) == SEARCH_FIELDS_MAX)
		return pg_index_fault(p, d->dynamic_place,
		                      "the table has more than %d columns that can be searched: name them in fields",
		                      SEARCH_FIELDS_MAX);
	json_array_append_new(list, field_json(p, &f, &c, analyses));
	return 0;
}

static int dynamic_plan(struct pg_index_plan *p, const struct search_definition *d, json_t *analyses, json_t *list)
{
	PGresult *rows;
	struct str sql = arena_printf(p->arena,
	                              "select attname from pg_attribute where attrelid = %s and attnum > 0 and not "
	                              "attisdropped order by attnum",
	                              p->table.oid);
	int r = pg_sql_rows(p->conn, ASK_MS, sql.p, &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		if (!is_named(d, pg_value(rows, i, 0)))
			r = column_add(p, d, arena_z(p->arena, str_of(pg_value(rows, i, 0))), analyses, list);
	PQclear(rows);
	return r;
}

/* --- synonyms */

/* Named as the table of an index is. Its rows are read with each query, by the columns' names. */
#define SYNONYM_TABLE                                                                                                \
	"select n.nspname, c.relname, c.relkind = 'r', (select count(*) from pg_attribute join pg_type y on y.oid "  \
	"= atttypid where attrelid = c.oid and not attisdropped and typnamespace = 'pg_catalog'::regnamespace and "  \
	"(attname = 'mapping_type' and typname in ('text', 'varchar') or attname = 'synonyms' and typname in "       \
	"('_text', '_varchar', 'jsonb'))) = 2 from pg_class c join pg_namespace n on n.oid = relnamespace, (select " \
	"%s::text as t) w where nspname !~ '^(pg_|steward|information_schema$|sharded$)' and ((nspname = 'public' "  \
	"and relname = t) or (position('.' in t) > 1 and nspname = split_part(t, '.', 1) and relname = substr(t, "   \
	"position('.' in t) + 1))) and relkind in ('r', 'p', 'm', 'v', 'f') order by nspname = 'public' and "        \
	"relname = t desc limit 1"

static int synonym_plan(struct pg_index_plan *p, const struct search_synonyms *s, json_t *analyses, json_t *list)
{
	PGresult *rows;
	struct str sql = arena_printf(p->arena, SYNONYM_TABLE, pg_index_literal(p, s->table));
	int r = pg_sql_rows(p->conn, ASK_MS, sql.p, &rows);
	if (r < 0)
		return r;
	bool there = PQntuples(rows) > 0, good = *pg_value(rows, 0, 2) == 't' && *pg_value(rows, 0, 3) == 't';
	if (good)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", s->name, "language",
		                                      analyzer_name(p, s->language, analyses), "schema",
		                                      pg_value(rows, 0, 0), "table", pg_value(rows, 0, 1)));
	PQclear(rows);
	if (good)
		return 0;
	return pg_index_fault(p, s->place, "%s",
	                      there ? "must be a table with the columns mapping_type (text) and synonyms (text[] or "
	                              "jsonb), and input, of the same type, for those that are explicit"
	                            : "the database has no such table");
}

static int synonyms_plan(struct pg_index_plan *p, const struct search_definition *d, json_t *analyses)
{
	json_t *list = json_keep(p->arena, json_array());
	int r = 0;
	for (size_t i = 0; r == 0 && i < d->synonym_count; i++)
		r = synonym_plan(p, &d->synonyms[i], analyses, list);
	p->synonyms = arena_z(p->arena, json_text(p->arena, list));
	return r;
}

/* --- what queries can be given of rows */

static int stored_plan(struct pg_index_plan *p, const struct search_stored *s)
{
	json_t *list = json_keep(p->arena, json_array());
	struct pg_index_column c;
	int r = 0;
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		r = strlen(s->columns[i]) > NAME_MAX_BYTES ? -ENOENT : pg_index_column(p, s->columns[i], &c);
		json_add_str(list, str_of(s->columns[i]));
		if (r == -ENOENT)
			r = pg_index_fault(
			        p,
			        arena_printf(p->arena, "%s.%s[%zu]", s->place, s->excluded ? "exclude" : "include", i)
			                .p,
			        "the table has no column \"%.80s\"", s->columns[i]);
	}
	if (s->there)
		p->stored = arena_printf(p->arena, "{\"%s\":%s}", s->excluded ? "exclude" : "include",
		                         arena_z(p->arena, json_text(p->arena, list)))
		                    .p;
	return r;
}

/* --- the whole */

static int fields_plan(struct pg_index_plan *p, const struct search_definition *d, json_t *analyses)
{
	json_t *list = json_keep(p->arena, json_array());
	int r = 0;
	for (size_t i = 0; r == 0 && i < d->field_count; i++)
		r = field_plan(p, &d->fields[i], analyses, list);
	if (r == 0 && d->dynamic)
		r = dynamic_plan(p, d, analyses, list);
	if (r == 0 && !json_array_size(list))
		return pg_index_fault(p, d->dynamic_place, "the table has no column that can be searched");
	p->fields = arena_z(p->arena, json_text(p->arena, list));
	return r;
}

int pg_search_plan(struct pg_index_plan *p)
{
	const struct engine_search *s = p->want->search;
	struct faults faults = {.count = 0};
	struct search_definition d;
	json_t *analyses = json_new(p->arena);
	if (p->table.spread)
		return pg_index_fault(p, "collection", "is spread over shards, which search indexes do not cover");
	p->synonyms = "[]";
	p->stored = "null";
	p->analyses = "{}";
	if (s->vectors)
		return pg_vector_plan(p);
	search_definition_read(p->arena, doc_json(p->arena, str_of(s->definition)), s->place, &faults, &d);
	if (faults.count)
		return pg_index_fault(p, arena_z(p->arena, faults.list[0].path), "%.*s", STR_ARG(faults.list[0].text));
	int r = patterns_check(p, &d);
	if (r == 0)
		r = fields_plan(p, &d, analyses);
	if (r == 0)
		r = synonyms_plan(p, &d, analyses);
	if (r == 0)
		r = stored_plan(p, &d.stored);
	if (r == 0)
		r = encoding_check(p, analyses);
	p->analyses = arena_z(p->arena, json_text(p->arena, analyses));
	return r;
}

/* --- building */

int pg_search_prepare(struct pg_index_plan *p)
{
	PGresult *rows;
	int r = pg_search_schema_make(p->arena, p->conn);
	if (r < 0)
		return r;
	if (p->want->search->vectors)
		return pg_vector_prepare(p);
	struct str sql = arena_printf(p->arena,
	                              "insert into steward_search.analyses(id, how) select key, value from "
	                              "jsonb_each(%s::jsonb) on conflict do nothing",
	                              pg_index_literal(p, p->analyses));
	if ((r = pg_sql_do(p->conn, ASK_MS, sql.p)) < 0)
		return r;
	sql = arena_printf(
	        p->arena,
	        "select string_agg(steward_search.index_key(f, w.nspname, t.nspname), ', ' order by n) from "
	        "jsonb_array_elements(%s::jsonb) with ordinality x(f, n), (select nspname from pg_extension join "
	        "pg_namespace "
	        "n on n.oid = extnamespace where extname = 'pg_trgm') w, (select nspname from pg_extension join "
	        "pg_namespace "
	        "n on n.oid = extnamespace where extname = 'btree_gin') t",
	        pg_index_literal(p, p->fields));
	r = pg_sql_rows(p->conn, ASK_MS, sql.p, &rows);
	if (r < 0)
		return r;
	p->body = arena_printf(p->arena, "using gin (%s)", pg_value(rows, 0, 0)).p;
	PQclear(rows);
	return 0;
}

/* A database that was restored has rows of indexes that another cluster had: of two with one name nobody could ask. */
const char *pg_search_put(struct pg_index_plan *p)
{
	const struct engine_search *s = p->want->search;
	return arena_printf(
	               p->arena,
	               "delete from steward_search.indexes where namespace = %s and name = %s and id <> %s; "
	               "insert into steward_search.indexes(id, build, name, namespace, rel, fields, synonyms, stored) "
	               "values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict (id) do update set build = "
	               "excluded.build, name = excluded.name, namespace = excluded.namespace, rel = "
	               "excluded.rel, fields = excluded.fields, synonyms = excluded.synonyms, stored = "
	               "excluded.stored; ",
	               pg_index_literal(p, p->want->table), pg_index_literal(p, s->name), pg_index_literal(p, s->id),
	               pg_index_literal(p, s->id), pg_index_literal(p, p->want->id), pg_index_literal(p, s->name),
	               pg_index_literal(p, p->want->table), p->table.oid, pg_index_literal(p, p->fields),
	               pg_index_literal(p, p->synonyms), pg_index_literal(p, p->stored))
	        .p;
}

/* --- afterwards */

static int schema_is_there(struct pg_index_plan *p, bool *ret_there)
{
	int64_t there = 0;
	int r = pg_sql_int(p->conn, ASK_MS,
	                   "select count(*) from pg_class where oid = to_regclass('steward_search.indexes') and "
	                   "pg_get_userbyid(relowner) = '" PG_SUPER "'",
	                   &there);
	*ret_there = there > 0;
	return r;
}

int pg_search_forget(struct pg_index_plan *p)
{
	bool there;
	int r = schema_is_there(p, &there);
	if (r == 0)
		r = pg_vector_forget(p);
	if (r < 0 || !there)
		return r;
	struct str sql = arena_printf(p->arena, "delete from steward_search.indexes where id = %s and build = %s",
	                              pg_index_literal(p, p->want->search->id), pg_index_literal(p, p->want->id));
	return pg_sql_do(p->conn, ASK_MS, sql.p);
}

int pg_search_look(struct pg_index_plan *p, bool *ret_there)
{
	int64_t count = 0;
	bool there;
	int r = schema_is_there(p, &there);
	if (r < 0 || !there)
		return r;
	/* A newer service brings newer functions. Those of an older one work until these can be made. */
	if (pg_search_schema_make(p->arena, p->conn) < 0)
		log_debug("engine: cluster %s: the search functions stay as they are: %s", p->want->cluster_id,
		          pg_why_last());
	if (p->want->search->vectors && pg_vector_schema(p) < 0)
		log_debug("engine: cluster %s: the functions of vectors stay as they are: %s", p->want->cluster_id,
		          pg_why_last());
	struct str sql = arena_printf(
	        p->arena,
	        "select count(*) from steward_search.indexes i join pg_index x on x.indrelid = i.rel and x.indisvalid "
	        "join "
	        "pg_class c on c.oid = x.indexrelid and c.relname = %s where i.id = %s and i.build = %s and "
	        "steward_search.changed_columns(i.rel, i.fields) is null",
	        pg_index_literal(p, p->want->name), pg_index_literal(p, p->want->search->id),
	        pg_index_literal(p, p->want->id));
	r = pg_sql_int(p->conn, ASK_MS, sql.p, &count);
	*ret_there = count > 0;
	return r;
}
