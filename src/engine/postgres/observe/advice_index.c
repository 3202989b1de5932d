/* Indexes that would help. They rest on the statements that took longest (advice_statements.c, and what was kept of
 * them over days): each is planned, and its plan tells which columns are compared, joined by or sorted by. These make
 * candidates, each of which is made as a hypothetical index (hypopg) in the database that it is for, on the primary,
 * and the planner is asked what the statement costs with it and without, on the generic plan: no values are kept, and
 * the answer shall be good for all of them. Only what becomes clearly cheaper is suggested. Where a narrow index does
 * nearly as well as a wide one it is the narrow one.
 *
 * To plan a statement is to run code: PostgreSQL evaluates what is said to be immutable, predicates of indexes and
 * checks. So that is done by a function that belongs to the user who sent the statement, with that role's rights,
 * which has run all of this before, and no way back to the superuser's: in a SECURITY DEFINER function nobody changes
 * the role. The session is that role's by then too, because functions of the service ask for the session's user
 * (spread_sql.c). What such code does to the session's settings stays, so it is the last that the session does.
 * Everything happens in a transaction that is never committed: the functions are temporary ones, and the database is
 * as it was. */
#include "engine/postgres/observe/advice_index.h"

#include "base/buf.h"
#include "base/json.h"
#include "engine/postgres/observe/advice.h"
#include "engine/postgres/observe/advice_functions.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 3000
#define JUDGE_MS 3500 /* little more than its statement may take: another user's statements are next */
#define END_MS 2000
#define BATCH_MAX 40 /* statements of one user in one database */
#define RELATIONS_MAX 200

struct work {
	struct pg_inquiry q;
	const struct engine_namespaces *of;
	const struct engine_statement **statements; /* those that are looked at, the longest first */
	unsigned *sets;                             /* of their nodes */
	size_t statement_count;
	struct engine_suggestion *list;
	size_t count, room;
	const char *missing;
};

/* The statements of one user in one database. */
struct batch {
	unsigned set;
	const char *database, *user;
};

static bool is_of(const struct work *w, size_t i, const struct batch *b)
{
	return w->sets[i] == b->set && strcmp(w->statements[i]->database, b->database) == 0 &&
	       strcmp(w->statements[i]->user, b->user) == 0;
}

/* --- statements */

static bool is_wanted(const struct engine_statement *s, const struct str *nodes, size_t count)
{
	bool wanted = count == 0;
	for (size_t i = 0; i < count && !wanted; i++)
		wanted = str_is(nodes[i], s->node);
	return wanted;
}

static int by_time(const void *a, const void *b)
{
	const struct engine_statement *one = *(const struct engine_statement *const *)a,
	                              *other = *(const struct engine_statement *const *)b;
	return one->ms > other->ms ? -1 : one->ms < other->ms;
}

/* Of a node that is gone: the first set, which is the only one where there are no shards. */
static unsigned set_of(const struct work *w, const char *node)
{
	for (size_t i = 0; i < w->q.place_count; i++)
		if (strcmp(w->q.places[i].node.want.name, node) == 0)
			return w->q.places[i].set;
	return w->q.place_count ? w->q.places[0].set : 0;
}

static void statements_choose(struct work *w, const struct engine_statements *from, const struct str *nodes,
                              size_t node_count)
{
	w->statements = arena_new_array(w->q.arena, const struct engine_statement *, from->count + 1);
	w->sets = arena_new_array(w->q.arena, unsigned, from->count + 1);
	for (size_t i = 0; i < from->count; i++)
		if (is_wanted(&from->list[i], nodes, node_count))
			w->statements[w->statement_count++] = &from->list[i];
	if (w->statement_count)
		qsort(w->statements, w->statement_count, sizeof(const struct engine_statement *), by_time);
	for (size_t i = 0; i < w->statement_count; i++)
		w->sets[i] = set_of(w, w->statements[i]->node);
}

/* --- what came of trying */

static const char *const *texts_of(struct arena *a, const json_t *list, size_t *ret_count)
{
	size_t count = json_array_size(list);
	const char **texts = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		texts[i] = arena_z(a, json_item(list, i));
	*ret_count = count;
	return texts;
}

static void shape_add(struct engine_suggestion *s, struct arena *a, const struct engine_condition *shape)
{
	for (size_t i = 0; i < s->shape_count; i++)
		if (s->shapes[i].query == shape->query) { /* on another node, or by another user */
			s->shapes[i].count += shape->count;
			return;
		}
	s->shapes = arena_grow(a, s->shapes, s->shape_count, s->shape_count + 1, sizeof *s->shapes);
	s->shapes[s->shape_count++] = *shape;
}

static void shape_take(struct work *w, const struct batch *b, struct engine_suggestion *s, const json_t *o)
{
	struct arena *a = w->q.arena;
	json_int_t n = json_number(o, "n");
	if (n < 0 || (size_t)n >= w->statement_count || !is_of(w, (size_t)n, b))
		return;
	const struct engine_statement *of = w->statements[n];
	double wanted = of->calls > 0 ? (double)of->rows / (double)of->calls : 0;
	struct engine_condition shape = {.query = of->query,
	                                 .count = of->calls,
	                                 .examined = json_number_value(json_object_get(o, "scanned")) /
	                                             (wanted >= 1 ? wanted : 1),
	                                 .before = json_number_value(json_object_get(o, "before")),
	                                 .after = json_number_value(json_object_get(o, "after"))};
	size_t operators;
	shape.columns = texts_of(a, json_object_get(o, "columns"), &shape.column_count);
	shape.operators = texts_of(a, json_object_get(o, "operators"), &operators);
	if (operators < shape.column_count)
		shape.column_count = operators;
	shape_add(s, a, &shape);
}

/* The columns of one are the first of the other's, or the same. */
static bool is_begin_of(const struct engine_suggestion *one, const struct engine_suggestion *of)
{
	bool same = strcmp(one->namespace, of->namespace) == 0 && one->column_count <= of->column_count;
	for (size_t i = 0; same && i < one->column_count; i++)
		same = strcmp(one->columns[i], of->columns[i]) == 0;
	return same;
}

/* Several users may want the same index: one that is the beginning of another is a part of that. */
static void suggestion_add(struct work *w, const struct engine_suggestion *s)
{
	struct arena *a = w->q.arena;
	for (size_t i = 0; i < w->count; i++) {
		struct engine_suggestion *other = &w->list[i], wide = *s;
		if (!is_begin_of(s, other) && !is_begin_of(other, s))
			continue;
		if (s->column_count <= other->column_count)
			wide = *other;
		const struct engine_suggestion *narrow = s->column_count <= other->column_count ? s : other;
		for (size_t k = 0; k < narrow->shape_count; k++)
			shape_add(&wide, a, &narrow->shapes[k]);
		*other = wide;
		return;
	}
	ARENA_FIT(a, w->list, w->count, w->room);
	w->list[w->count++] = *s;
}

/* The answer is made with a user's rights, so nothing in it is believed but numbers and names. */
static void suggestion_take(struct work *w, const struct batch *b, const json_t *o, const PGresult *tables)
{
	struct arena *a = w->q.arena;
	const json_t *columns = json_object_get(o, "columns"), *groups = json_object_get(o, "statements");
	int at = 0;
	unsigned long rel = (unsigned long)json_number(o, "rel");
	if (json_is_string(json_object_get(o, "rel")))
		rel = strtoul(json_string_value(json_object_get(o, "rel")), NULL, 10);
	while (at < PQntuples(tables) && strtoul(pg_value(tables, at, 0), NULL, 10) != rel)
		at++;
	if (at == PQntuples(tables) || !json_array_size(columns) || json_array_size(columns) > ENGINE_INDEX_COLUMNS_MAX)
		return;
	struct engine_suggestion s = {.database = b->database,
	                              .schema = arena_z(a, str_of(pg_value(tables, at, 1))),
	                              .table = arena_z(a, str_of(pg_value(tables, at, 2))),
	                              .row_bytes = strtod(pg_value(tables, at, 3), NULL),
	                              .index_bytes = json_number_value(json_object_get(o, "bytes"))};
	s.namespace = engine_namespace(a, s.database, s.schema, s.table);
	for (size_t i = 0; i < json_array_size(columns); i++)
		s.columns[s.column_count++] = arena_z(a, json_item(columns, i));
	for (size_t i = 0; i < json_array_size(groups) && i < w->statement_count; i++)
		shape_take(w, b, &s, json_array_get(groups, i));
	if (s.shape_count && engine_namespace_is_of(w->of, s.namespace))
		suggestion_add(w, &s);
}

/* Names of the tables, by the superuser: the service's own are nobody's concern. */
static int tables_ask(struct work *w, const struct batch *b, const json_t *answer, PGresult **ret_tables)
{
	struct buf sql = {0};
	PGconn *conn;
	int r = pg_inquiry_open(&w->q, pg_inquiry_primary(&w->q, b->set), b->database, &conn);
	if (r < 0)
		return r;
	buf_z(&sql,
	      "select c.oid, n.nspname, c.relname, case when c.reltuples > 0 then pg_table_size(c.oid) / c.reltuples "
	      "else 0 end from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', "
	      "'m') and c.relpersistence <> 't' and n.nspname !~ '^(pg_|steward|information_schema$)' and "
	      "pg_get_userbyid(c.relowner) not in ('" PG_SUPER "', '" PG_SHARD "') and c.oid in (0");
	for (size_t i = 0; i < json_array_size(answer) && i < RELATIONS_MAX; i++) {
		const json_t *rel = json_object_get(json_array_get(answer, i), "rel");
		buf_printf(&sql, ",%lu",
		           json_is_string(rel) ? strtoul(json_string_value(rel), NULL, 10)
		                               : (unsigned long)(uint32_t)json_integer_value(rel));
	}
	buf_z(&sql, ")");
	buf_c(&sql, 0);
	r = pg_sql_rows(conn, pg_inquiry_left(&w->q, ASK_MS), sql.p, ret_tables);
	buf_free(&sql);
	PQfinish(conn);
	return r < 0 ? -EAGAIN : 0;
}

/* --- trying */

/* The argument of the judge. */
static struct str batch_json(struct work *w, const struct batch *b)
{
	struct buf text = {0};
	size_t count = 0;
	json_open(&text, '[');
	for (size_t i = 0; i < w->statement_count && count < BATCH_MAX; i++) {
		if (!is_of(w, i, b))
			continue;
		count++;
		json_open(&text, '{');
		json_key(&text, "n");
		json_int(&text, (int64_t)i);
		json_key(&text, "text");
		json_z(&text, w->statements[i]->text);
		json_close(&text, '}');
	}
	json_close(&text, ']');
	return buf_keep(&text, w->q.arena);
}

/* Code that catches the timeout of its statement and sets all others to nothing would run on, past every change of
 * users' rights, and take one of the connections that are kept for the service. This it cannot catch. */
static void session_end(const struct pg_place *p, int pid)
{
	PGconn *conn;
	char sql[160];
	if (pg_sql_open(&p->node, p->run, "postgres", END_MS, &conn) < 0)
		return;
	snprintf(sql, sizeof sql,
	         "select pg_terminate_backend(pid) from pg_stat_activity where pid = %d and usename = '" PG_SUPER "'",
	         pid);
	(void)!pg_sql_do(conn, END_MS, sql);
	PQfinish(conn);
}

/* The session becomes the user's for good. -ENOENT: there is no such user any more. */
static int session_give(struct work *w, PGconn *conn, const char *user)
{
	int r = 0;
	for (size_t i = 0; r == 0 && pg_advice_functions[i]; i++)
		r = pg_sql_do(conn, pg_inquiry_left(&w->q, ASK_MS), pg_advice_functions[i]);
	char *name = PQescapeIdentifier(conn, user, strlen(user)), *literal = PQescapeLiteral(conn, user, strlen(user));
	int64_t there = 0;
	if (r == 0)
		r = name && literal
		            ? pg_sql_int(conn, pg_inquiry_left(&w->q, ASK_MS),
		                         arena_printf(w->q.arena,
		                                      "select count(*) from pg_roles where rolname = %s and not "
		                                      "rolsuper",
		                                      literal)
		                                 .p,
		                         &there)
		            : -ENOMEM;
	if (r == 0 && !there)
		r = -ENOENT;
	if (r == 0)
		r = pg_sql_do(conn, pg_inquiry_left(&w->q, ASK_MS),
		              arena_printf(w->q.arena,
		                           "alter function pg_temp.steward_judge(jsonb) owner to %s; set session "
		                           "authorization %s",
		                           name, name)
		                      .p);
	PQfreemem(name);
	PQfreemem(literal);
	return r;
}

static int judge_ask(struct work *w, const struct batch *b, PGconn *conn, PGresult **ret_rows)
{
	struct str statements = batch_json(w, b);
	char *literal = PQescapeLiteral(conn, statements.p, statements.n);
	if (!literal)
		return -ENOMEM;
	struct str sql = arena_printf(w->q.arena, "select pg_temp.steward_judge(%s)", literal);
	PQfreemem(literal);
	return pg_sql_rows(conn, pg_inquiry_left(&w->q, JUDGE_MS), sql.p, ret_rows);
}

static int batch_judge(struct work *w, const struct batch *b)
{
	struct arena *a = w->q.arena;
	PGconn *conn;
	PGresult *rows, *tables;
	const struct pg_place *primary = pg_inquiry_primary(&w->q, b->set);
	int r = pg_inquiry_open(&w->q, primary, b->database, &conn);
	if (r < 0)
		return r;
	r = session_give(w, conn, b->user);
	if (r == -ENOENT) {
		PQfinish(conn);
		return 0;
	}
	if (r == 0)
		r = judge_ask(w, b, conn, &rows);
	/* Nothing more is asked of this session: its settings may be a user's by now. */
	int pid = PQbackendPID(conn);
	PQfinish(conn);
	if (r < 0) {
		session_end(primary, pid);
		return -EAGAIN;
	}
	json_t *answer = PQntuples(rows) ? json_loads(pg_value(rows, 0, 0), 0, NULL) : NULL;
	answer = answer ? json_keep(a, answer) : NULL;
	PQclear(rows);
	if (!json_array_size(answer))
		return 0;
	r = tables_ask(w, b, answer, &tables);
	if (r < 0)
		return r;
	for (size_t i = 0; i < json_array_size(answer) && i < RELATIONS_MAX; i++)
		suggestion_take(w, b, json_array_get(answer, i), tables);
	PQclear(tables);
	return 0;
}

/* A database that is gone keeps nobody from advice about others. */
static bool batch_is_there(struct work *w, const struct batch *b)
{
	const char **names = NULL;
	size_t count = 0;
	const struct pg_place *primary = pg_inquiry_primary(&w->q, b->set);
	if (!primary || pg_inquiry_databases(&w->q, primary, &names, &count) < 0)
		return true; /* whoever asks it finds out */
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], b->database) == 0)
			return true;
	return false;
}

static double saved_of(const struct engine_suggestion *s)
{
	double sum = 0;
	for (size_t i = 0; i < s->shape_count; i++)
		sum += (s->shapes[i].before - s->shapes[i].after) * (double)s->shapes[i].count;
	return sum;
}

static int by_use(const void *a, const void *b)
{
	double one = saved_of(a), other = saved_of(b);
	return one > other ? -1 : one < other;
}

/* Whoever's code fails, or does not end, gets no advice; others do. */
static int batches_judge(struct work *w)
{
	unsigned failed = 0, judged = 0;
	int r = 0;
	for (size_t i = 0; i < w->statement_count; i++) {
		struct batch b = {w->sets[i], w->statements[i]->database, w->statements[i]->user};
		bool first = true;
		for (size_t k = 0; k < i && first; k++)
			first = !is_of(w, k, &b);
		if (!first || !batch_is_there(w, &b))
			continue;
		int one = batch_judge(w, &b);
		r = one < 0 ? one : r;
		failed += one < 0;
		judged += one == 0;
	}
	if (failed && judged)
		w->missing = arena_printf(w->q.arena,
		                          "the statements of %u users are left out: they cannot be planned, or not in "
		                          "time",
		                          failed)
		                     .p;
	return judged ? 0 : r;
}

int pg_advice_indexes(struct engine *e, const char *cluster_id, const struct str *nodes, size_t node_count,
                      const struct engine_statements *statements, const struct engine_namespaces *of, struct arena *a,
                      struct engine_suggestions *ret_suggestions)
{
	struct work w = {.of = of};
	int r = pg_inquiry_begin(e, cluster_id, a, &w.q);
	if (r < 0)
		return r;
	w.missing = pg_inquiry_lacks(&w.q, "hypopg", "hypopg");
	if (w.missing || statements->missing) {
		*ret_suggestions = (struct engine_suggestions){.missing = w.missing ? w.missing : statements->missing};
		return 0;
	}
	statements_choose(&w, statements, nodes, node_count);
	r = batches_judge(&w);
	if (r < 0)
		return r;
	if (w.count)
		qsort(w.list, w.count, sizeof *w.list, by_use);
	*ret_suggestions = (struct engine_suggestions){.list = w.list, .count = w.count, .missing = w.missing};
	return 0;
}
