/* An index of vectors is a B-tree over the number of the cell that a row's vector lies in, and a copy of the vector in
 * few bytes: decisions/0044-vectors.md.
 * Before it is built, what the cells are is found from a sample of the table and written into steward_vectors.lists
 * under the build's id. That is done once for a build: when it is repeated, others may have computed cells already. */
#include "engine/postgres/sql/vector_plan.h"

#include "base/json.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/search/vectors.h"
#include "engine/postgres/sql/index_sql.h"
#include "engine/postgres/sql/sql.h"
#include "search/vector.h"

#include <errno.h>
#include <stdio.h>

#define ASK_MS 5000
#define MAKE_MS 30000
#define NAME_MAX_BYTES 63
#define SCALAR_MOST 2560 /* dimensions: VECTOR_SCALAR_MOST */
#define GROWN "8"
#define GROWN_LEAST "500" /* rows, which are searched quickly in one cell */

/* --- fields */

static char kind_of(const struct search_vector *v)
{
	return v->similarity[0];
}

/* As module/vector_code.h has them. */
static char coding_of(const struct search_vector *v)
{
	return v->binary || v->dimensions > SCALAR_MOST ? 'b' : 's';
}

static int column_find(struct pg_index_plan *p, const char *name, const char *place, struct pg_index_column *ret_column)
{
	int r = strlen(name) > NAME_MAX_BYTES ? -ENOENT : pg_index_column(p, name, ret_column);
	return r == -ENOENT ? pg_index_fault(p, place, "the table has no column \"%.80s\"", name) : r;
}

static int vector_plan(struct pg_index_plan *p, const struct search_vector *v, json_t *list)
{
	const char *place = arena_printf(p->arena, "%s.path", v->place).p;
	struct pg_index_column c;
	char kind[2] = {kind_of(v), 0}, coding[2] = {coding_of(v), 0};
	int r = column_find(p, v->path, place, &c);
	if (r < 0)
		return r;
	if (!c.ours || !c.direct || strcmp(c.name, "_float4") != 0)
		return pg_index_fault(p, place,
		                      "the column \"%.80s\" is of the type %.80s: vectors are of the type real[]",
		                      v->path, c.type);
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:[], s:s, s:i, s:s, s:s, s:s}", "path", v->path,
	                                      "column", v->path, "typname", c.name, "json", 0, "steps", "type",
	                                      "vector", "dimensions", (int)v->dimensions, "kind", kind, "coding",
	                                      coding, "version", p->want->id));
	return 0;
}

/* As what values of a column are compared; NULL: not at all. */
static const char *filter_type(const struct pg_index_column *c)
{
	static const char *const types[][2] = {{"int2|int4|int8|float4|float8|numeric", "number"},
	                                       {"date|timestamp|timestamptz", "date"},
	                                       {"bool", "boolean"},
	                                       {"uuid", "uuid"},
	                                       {"text|varchar|bpchar", "token"}};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (str_is_one_of(types[i][0], str_of(c->name)))
			return types[i][1];
	return NULL;
}

static void filter_add(const struct search_filter *f, const struct pg_index_column *c, const char *type, json_t *list)
{
	json_t *steps = json_array();
	for (size_t i = 1; i < f->depth; i++)
		json_array_append_new(steps, json_string(f->steps[i]));
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b, s:s, s:o, s:b}", "path", f->path, "column",
	                                      f->steps[0], "typname", c->name, "json", f->depth > 1, "type", type,
	                                      "steps", steps, "lower", strcmp(type, "uuid") == 0));
}

static int filter_plan(struct pg_index_plan *p, const struct search_filter *f, json_t *list)
{
	static const char *const in_documents[] = {"token", "number", "boolean"};
	const char *place = arena_printf(p->arena, "%s.path", f->place).p, *type;
	struct pg_index_column c;
	int r = column_find(p, f->steps[0], place, &c);
	if (r < 0)
		return r;
	if (f->depth > 1 && !(c.ours && c.direct && strcmp(c.name, "jsonb") == 0))
		return pg_index_fault(p, place, "the column \"%.80s\" holds no documents (jsonb)", f->steps[0]);
	if (f->depth > 1) {
		for (size_t i = 0; i < sizeof in_documents / sizeof *in_documents; i++)
			filter_add(f, &c, in_documents[i], list);
		return 0;
	}
	type = c.ours && c.direct ? filter_type(&c) : NULL;
	if (!type)
		return pg_index_fault(p, place, "the column \"%.80s\" is of the type %.80s, which is no filter",
		                      f->steps[0], c.type);
	filter_add(f, &c, type, list);
	return 0;
}

/* A server that was started without the library could load it, but the host has none for its version then. */
static int library_check(struct pg_index_plan *p, const char *place)
{
	int64_t there = 0;
	int r = pg_sql_int(p->conn, ASK_MS,
	                   "select (current_setting('shared_preload_libraries') like '%/steward.so%')::int", &there);
	if (r == 0 && !there)
		return pg_index_fault(p, place, "needs steward.so, which the cluster's servers were started without");
	return r;
}

int pg_vector_plan(struct pg_index_plan *p)
{
	const struct engine_search *s = p->want->search;
	struct faults faults = {.count = 0};
	struct search_vector v;
	json_t *list = json_keep(p->arena, json_array());
	search_vector_read(p->arena, doc_json(p->arena, str_of(s->definition)), s->place, &faults, &v);
	if (faults.count)
		return pg_index_fault(p, arena_z(p->arena, faults.list[0].path), "%.*s", STR_ARG(faults.list[0].text));
	int r = library_check(p, v.place);
	if (r == 0)
		r = vector_plan(p, &v, list);
	for (size_t i = 0; r == 0 && i < v.filter_count; i++)
		r = filter_plan(p, &v.filters[i], list);
	p->fields = arena_z(p->arena, json_text(p->arena, list));
	return r;
}

/* --- building */

static int schema_is_newest(struct pg_index_plan *p, int64_t *ret_done)
{
	struct str sql = arena_printf(p->arena,
	                              "select count(*) from pg_namespace where nspname = 'steward_vectors' and "
	                              "pg_get_userbyid(nspowner) = '" PG_SUPER "' and obj_description(oid, "
	                              "'pg_namespace') = '%s'",
	                              pg_vectors_version);
	return pg_sql_int(p->conn, ASK_MS, sql.p, ret_done);
}

int pg_vector_schema(struct pg_index_plan *p)
{
	int64_t done = 0;
	int r = schema_is_newest(p, &done);
	if (r < 0 || done)
		return r;
	/* Whoever writes reads what it changes, and waits behind it. */
	r = pg_sql_do(p->conn, MAKE_MS, "begin; set local lock_timeout = '3s'");
	for (size_t i = 0; r == 0 && pg_vectors_sql[i]; i++)
		r = pg_sql_do(p->conn, MAKE_MS, pg_vectors_sql[i]);
	struct str sql =
	        arena_printf(p->arena, "comment on schema steward_vectors is '%s'; commit", pg_vectors_version);
	if (r == 0)
		r = pg_sql_do(p->conn, MAKE_MS, sql.p);
	if (r < 0)
		(void)!pg_sql_do(p->conn, ASK_MS, "rollback");
	return r;
}

int pg_vector_prepare(struct pg_index_plan *p)
{
	const struct engine_search *s = p->want->search;
	struct faults faults = {.count = 0};
	struct search_vector v;
	int r = pg_vector_schema(p);
	if (r < 0)
		return r;
	search_vector_read(p->arena, doc_json(p->arena, str_of(s->definition)), s->place, &faults, &v);
	const char *id = pg_index_literal(p, p->want->id), *column = pg_index_quote(p, v.path);
	char kind = kind_of(&v), coding = coding_of(&v);
	p->train = arena_printf(p->arena, "select steward_vectors.make(%s, %s, %s, '%c', %u, '%c')", id, p->table.oid,
	                        pg_index_literal(p, v.path), kind, v.dimensions, coding)
	                   .p;
	p->body = arena_printf(p->arena, "using btree (steward_vectors.cell(%s, %s), steward_vectors.code(%s, %s))", id,
	                       column, id, column)
	                  .p;
	return 0;
}

/* By what the server itself last counted of the table; and an index that a service without codes has built. */
int pg_vector_outgrown(struct pg_index_plan *p, bool *ret_outgrown)
{
	int64_t count = 0, newest = 0;
	struct str sql = arena_printf(
	        p->arena,
	        "select count(*) from steward_vectors.lists l join pg_class c on c.oid = l.rel where "
	        "l.version = %s and (l.coding is null or c.reltuples > " GROWN " * greatest(l.rows, " GROWN_LEAST "))",
	        pg_index_literal(p, p->want->id));
	int r = schema_is_newest(p, &newest);
	/* It cannot be built anew before the servers have the newer library. */
	if (r == 0 && newest)
		r = pg_sql_int(p->conn, ASK_MS, sql.p, &count);
	*ret_outgrown = count > 0;
	return r;
}

int pg_vector_forget(struct pg_index_plan *p)
{
	int64_t there = 0;
	int r = pg_sql_int(p->conn, ASK_MS,
	                   "select count(*) from pg_class where oid = to_regclass('steward_vectors.lists') and "
	                   "pg_get_userbyid(relowner) = '" PG_SUPER "'",
	                   &there);
	if (r < 0 || !there)
		return r;
	struct str sql = arena_printf(p->arena, "delete from steward_vectors.lists where version = %s",
	                              pg_index_literal(p, p->want->id));
	return pg_sql_do(p->conn, ASK_MS, sql.p);
}
