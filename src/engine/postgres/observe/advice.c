/* Advice about a cluster: the questions that all kinds of it share, indexes that could go, and what stands out in
 * schemas. Everything is asked on connections of its own, one at a time, with bounds on statements and locks, and all
 * of it together ends after some seconds.
 *
 * The superuser reads nothing but catalogs here. To plan a statement on a user's table is to run that user's code, in
 * the predicate of an index for example: advice_index.c says how that is done. */
#include "engine/postgres/observe/advice.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/threshold.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/observe/advice_index.h"
#include "engine/postgres/observe/advice_slow.h"
#include "engine/postgres/observe/advice_statements.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_MS 3000
#define REPLAY_MS 2000
#define DATABASES_MAX 64
#define DROPS_MAX 2000
#define NOTES_MAX 500
#define MANY_TABLES 10000
/* Parts of a spread table have names on their shards that mean nothing to users. */
#define IS_USERS "n.nspname !~ '^(pg_|steward|information_schema$)' and pg_get_userbyid(n.nspowner) <> '" PG_SHARD "'"

/* --- a question */

int pg_inquiry_begin(struct engine *e, const char *cluster_id, struct arena *a, struct pg_inquiry *ret_inquiry)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c)
		return -ENOENT;
	struct pg_inquiry q = {.engine = e, .arena = a, .end_ms = pg_mono_ms() + PG_ADVICE_MS};
	q.places = arena_new_array(a, struct pg_place, PG_ADVICE_NODES);
	pthread_mutex_lock(&c->lock);
	q.version = c->version;
	for (size_t i = 0; i < c->node_count && q.place_count < PG_ADVICE_NODES; i++) {
		const struct pg_node *n = c->nodes[i];
		const struct pg_set *s = pg_cluster_set(c, n->set);
		if (n->removing)
			continue;
		struct pg_place *p = &q.places[q.place_count++];
		*p = (struct pg_place){.node = *n, .set = n->set, .runs = n->pid && !n->noted && !n->busy};
		p->leads = s && strcmp(s->primary, n->want.name) == 0;
		pg_node_run_dir(c, n, p->run);
		pg_node_path(c, n, "data", p->data);
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	*ret_inquiry = q;
	return 0;
}

int pg_inquiry_left(const struct pg_inquiry *q, int most_ms)
{
	int64_t left = q->end_ms - pg_mono_ms();
	return left <= 0 ? 0 : left < most_ms ? (int)left : most_ms;
}

int pg_inquiry_open(const struct pg_inquiry *q, const struct pg_place *p, const char *database, PGconn **ret_conn)
{
	int left = pg_inquiry_left(q, ASK_MS);
	if (!p || !p->runs || !left)
		return -EAGAIN;
	PGconn *conn;
	if (pg_sql_open(&p->node, p->run, database, left, &conn) < 0)
		return -EAGAIN;
	if (pg_sql_do(conn, left, "set statement_timeout = '3s'; set lock_timeout = '500ms'") < 0) {
		PQfinish(conn);
		return -EAGAIN;
	}
	*ret_conn = conn;
	return 0;
}

const struct pg_place *pg_inquiry_primary(const struct pg_inquiry *q, unsigned set)
{
	for (size_t i = 0; i < q->place_count; i++)
		if (q->places[i].set == set && q->places[i].leads && q->places[i].runs)
			return &q->places[i];
	return NULL;
}

int pg_inquiry_databases(const struct pg_inquiry *q, const struct pg_place *p, const char ***ret_names,
                         size_t *ret_count)
{
	PGconn *conn;
	PGresult *rows;
	int r = pg_inquiry_open(q, p, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, pg_inquiry_left(q, ASK_MS),
	                "select datname from pg_database where datallowconn and not datistemplate and datconnlimit <> "
	                "-2 order by oid limit 64",
	                &rows);
	if (r == 0) {
		size_t count = (size_t)PQntuples(rows);
		const char **names = arena_new_array(q->arena, const char *, count + 1);
		for (size_t i = 0; i < count; i++)
			names[i] = arena_z(q->arena, str_of(pg_value(rows, (int)i, 0)));
		PQclear(rows);
		*ret_names = names;
		*ret_count = count;
	}
	PQfinish(conn);
	return r < 0 ? -EAGAIN : 0;
}

const char *pg_inquiry_lacks(const struct pg_inquiry *q, const char *library, const char *package)
{
	char path[PG_PATH];
	const char *bin = pg_version_bin(q->engine, q->version);
	pg_path_set(path, "%s/../lib/%s.so", bin ? bin : "", library);
	if (bin && access(path, R_OK) == 0)
		return NULL;
	return arena_printf(q->arena, "%s is missing on the host: install the package postgresql-%u-%s", library,
	                    q->version, package)
	        .p;
}

/* --- what servers count */

/* An extension of the service's own, in its schema, and whether the server was started with its library. */
struct counting {
	const char *name, *package;
};

static bool is_there(const struct pg_inquiry *q, PGconn *conn, const struct counting *of)
{
	char sql[320];
	int64_t there = 0;
	snprintf(sql, sizeof sql,
	         "select count(*) from pg_proc p join pg_namespace n on n.oid = pronamespace where nspname = 'steward' "
	         "and proname = '%s' and pg_get_userbyid(nspowner) = '" PG_SUPER
	         "' and pg_get_userbyid(proowner) = '" PG_SUPER "'",
	         of->name);
	return pg_sql_int(conn, pg_inquiry_left(q, ASK_MS), sql, &there) == 0 && there;
}

static int is_loaded(const struct pg_inquiry *q, PGconn *conn, const struct counting *of, bool *ret_loaded)
{
	char sql[200];
	int64_t loaded = 0;
	snprintf(sql, sizeof sql,
	         "select count(*) from regexp_split_to_table(current_setting('shared_preload_libraries'), ' *, *') l "
	         "where l = '%s'",
	         of->name);
	int r = pg_sql_int(conn, pg_inquiry_left(q, ASK_MS), sql, &loaded);
	*ret_loaded = loaded;
	return r;
}

/* On the primary, from where standbys get it. */
static int counting_ensure(const struct pg_inquiry *q, const struct pg_place *p, PGconn *conn,
                           const struct counting *of, const char **ret_missing)
{
	PGconn *primary;
	if (is_there(q, conn, of))
		return 0;
	if (!pg_module_is_there(q->engine, q->version)) {
		*ret_missing =
		        arena_printf(q->arena, "steward.so for PostgreSQL %u is missing on the host", q->version).p;
		return -ENOENT;
	}
	int r = pg_inquiry_open(q, pg_inquiry_primary(q, p->set), "postgres", &primary);
	if (r < 0)
		return r;
	if (!is_there(q, primary, of))
		r = pg_module_apply(primary);
	PQfinish(primary);
	int64_t end = pg_mono_ms() + REPLAY_MS;
	while (r == 0 && !is_there(q, conn, of)) {
		if (pg_mono_ms() >= end)
			return -EAGAIN;
		pg_sleep_ms(20);
	}
	return r < 0 ? -EAGAIN : 0;
}

static int counting_ask(const struct pg_inquiry *q, const struct pg_place *p, const struct counting *of,
                        const char *sql, PGresult **ret_rows, const char **ret_missing)
{
	PGconn *conn;
	bool loaded = false;
	*ret_missing = pg_inquiry_lacks(q, of->name, of->package);
	if (*ret_missing)
		return -ENOENT;
	int r = pg_inquiry_open(q, p, "postgres", &conn);
	if (r < 0)
		return r;
	r = is_loaded(q, conn, of, &loaded);
	if (r == 0 && !loaded) {
		*ret_missing =
		        arena_printf(q->arena, "the servers were started without %s: restart the cluster's primaries",
		                     of->name)
		                .p;
		r = -ENOENT;
	}
	if (r == 0)
		r = counting_ensure(q, p, conn, of, ret_missing);
	if (r == 0)
		r = pg_sql_rows(conn, pg_inquiry_left(q, ASK_MS), sql, ret_rows);
	PQfinish(conn);
	return r < 0 && r != -ENOENT && r != -EPROTO ? -EAGAIN : r;
}

int pg_inquiry_quals(const struct pg_inquiry *q, const struct pg_place *p, const char *sql, PGresult **ret_rows,
                     const char **ret_missing)
{
	static const struct counting quals = {"pg_qualstats", "pg-qualstats"};
	int r = counting_ask(q, p, &quals, sql, ret_rows, ret_missing);
	return r == -EPROTO ? -EAGAIN : r;
}

int pg_inquiry_statements(const struct pg_inquiry *q, const struct pg_place *p, const char *sql, PGresult **ret_rows,
                          const char **ret_missing)
{
	static const struct counting statements = {"pg_stat_statements", "contrib"};
	return counting_ask(q, p, &statements, sql, ret_rows, ret_missing);
}

/* --- indexes that could go */

struct drop {
	struct engine_drop shown;
	unsigned long oid;
	bool plain; /* nothing but a way to find rows: no constraint, no identity of a replica */
};

struct drops {
	const struct pg_inquiry *q;
	const char *database;
	struct drop *list; /* of the database */
	size_t count, room;
	struct engine_drop *shown;
	size_t shown_count, shown_room;
};

/* One index repeats another when its columns, in their order and with their collation, class and direction, are the
 * first of the other's. Of two that are the same, the younger one. */
static const char drops_ask[] =
        "with x as (select i.*, c.relname as name, t.relname as tab, n.nspname, am.amname, "
        "(indkey::int2[])[0:indnkeyatts "
        "- 1] as k, (indclass::oid[])[0:indnkeyatts - 1] as o, (indcollation::oid[])[0:indnkeyatts - 1] as l, "
        "(indoption::int2[])[0:indnkeyatts - 1] as d, i.indisunique or i.indisprimary or i.indisexclusion or "
        "i.indisreplident or exists (select from pg_constraint where conindid = i.indexrelid) as held from pg_index i "
        "join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = "
        "t.relnamespace join pg_am am on am.oid = c.relam where " IS_USERS
        " and t.relkind in ('r', 'm') and t.relpersistence <> 't') "
        "select x.indexrelid, x.nspname, x.tab, x.name, pg_relation_size(x.indexrelid), "
        "coalesce(pg_stat_get_numscans(x.indexrelid), 0), not x.held, not x.indisvalid and not exists (select from "
        "pg_stat_progress_create_index p where p.index_relid = x.indexrelid or p.relid = x.indrelid), "
        "not x.held and x.indisvalid and x.indnatts = x.indnkeyatts and x.indexprs is null and exists (select from x y "
        "where y.indrelid = x.indrelid and y.indexrelid <> x.indexrelid and y.indisvalid and y.amname = 'btree' and "
        "x.amname = 'btree' and y.indexprs is null and y.indpred::text is not distinct from x.indpred::text and "
        "y.indnkeyatts >= x.indnkeyatts and y.k[1:x.indnkeyatts] = x.k and y.o[1:x.indnkeyatts] = x.o and "
        "y.l[1:x.indnkeyatts] = x.l and y.d[1:x.indnkeyatts] = x.d and (y.indnkeyatts > x.indnkeyatts or y.held or "
        "y.indexrelid < x.indexrelid)), "
        "(select json_agg(json_build_object(coalesce(a.attname, pg_get_indexdef(x.indexrelid, g, true)), case when "
        "x.d[g]::int & 1 = 1 then -1 else 1 end) order by g) from generate_series(1, x.indnkeyatts) g left join "
        "pg_attribute a on a.attrelid = x.indrelid and a.attnum = x.k[g] and a.attnum > 0), "
        "pg_relation_filepath(x.indexrelid), extract(epoch from greatest(pg_postmaster_start_time(), (select "
        "stats_reset from pg_stat_database where datname = current_database())))::float8 "
        "from x order by x.indexrelid limit 2000";

static const char uses_ask[] =
        "select indexrelid, coalesce(idx_scan, 0), extract(epoch from greatest(pg_postmaster_start_time(), (select "
        "stats_reset from pg_stat_database where datname = current_database())))::float8 from pg_stat_all_indexes";

/* When the index was made, or made anew; 0: the file system does not say. */
static int64_t made_ms(const struct pg_place *p, const char *file)
{
	char path[PG_PATH];
	struct statx st;
	pg_path_set(path, "%s/%s", p->data, file);
	if (!*file || statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) < 0 || !(st.stx_mask & STATX_BTIME))
		return 0;
	return (int64_t)st.stx_btime.tv_sec * 1000;
}

static bool is_true(const PGresult *rows, int row, int column)
{
	return *pg_value(rows, row, column) == 't';
}

static int64_t seconds_ms(const PGresult *rows, int row, int column)
{
	return (int64_t)(strtod(pg_value(rows, row, column), NULL) * 1000);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void drop_take(struct drops *d, const struct pg_place *p, const PGresult *rows, int i)
{
	struct arena *a = d->q->arena;
	ARENA_FIT(a, d->list, d->count, d->room);
	struct drop *one = &d->list[d->count++];
	*one = (struct drop){.oid = strtoul(pg_value(rows, i, 0), NULL, 10), .plain = is_true(rows, i, 6)};
	one->shown = (struct engine_drop){
	        .reason = is_true(rows, i, 7)   ? DROP_HIDDEN
	                  : is_true(rows, i, 8) ? DROP_REDUNDANT
	                                        : DROP_UNUSED,
	        .namespace = engine_namespace(a, d->database, pg_value(rows, i, 1), pg_value(rows, i, 2)),
	        .name = engine_shown(a, pg_value(rows, i, 3)),
	        .bytes = strtoll(pg_value(rows, i, 4), NULL, 10),
	        .uses = strtoll(pg_value(rows, i, 5), NULL, 10),
	        .columns = engine_shown(a, pg_value(rows, i, 9)),
	        .since_ms = later(seconds_ms(rows, i, 11), made_ms(p, pg_value(rows, i, 10))),
	        .shard = p->node.want.shard,
	};
}

static int drop_compare(const void *a, const void *b)
{
	unsigned long one = ((const struct drop *)a)->oid, other = ((const struct drop *)b)->oid;
	return one < other ? -1 : one > other;
}

/* A standby counts for itself. */
static void uses_add(struct drops *d, const PGresult *rows)
{
	for (int i = 0; i < PQntuples(rows) && d->count; i++) {
		struct drop key = {.oid = strtoul(pg_value(rows, i, 0), NULL, 10)};
		struct drop *one = bsearch(&key, d->list, d->count, sizeof *d->list, drop_compare);
		if (!one)
			continue;
		one->shown.uses += strtoll(pg_value(rows, i, 1), NULL, 10);
		one->shown.since_ms = later(one->shown.since_ms, seconds_ms(rows, i, 2));
	}
}

static int rows_ask(struct drops *d, const struct pg_place *p, const char *sql, PGresult **ret_rows)
{
	PGconn *conn;
	int r = pg_inquiry_open(d->q, p, d->database, &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, pg_inquiry_left(d->q, ASK_MS), sql, ret_rows);
	PQfinish(conn);
	return r < 0 ? -EAGAIN : 0;
}

/* What no node of the set was asked about is not known to be unused. */
static int database_drops(struct drops *d, const struct pg_place *primary)
{
	PGresult *rows;
	bool complete = true;
	d->count = 0;
	int r = rows_ask(d, primary, drops_ask, &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows); i++)
		drop_take(d, primary, rows, i);
	PQclear(rows);
	for (size_t i = 0; d->count && i < d->q->place_count; i++) {
		const struct pg_place *p = &d->q->places[i];
		if (p == primary || p->set != primary->set)
			continue;
		bool told = rows_ask(d, p, uses_ask, &rows) == 0;
		complete &= told;
		if (told) {
			uses_add(d, rows);
			PQclear(rows);
		}
	}
	for (size_t i = 0; i < d->count && d->shown_count < DROPS_MAX; i++) {
		const struct drop *one = &d->list[i];
		if (one->shown.reason == DROP_UNUSED && (!complete || !one->plain || one->shown.uses))
			continue;
		ARENA_FIT(d->q->arena, d->shown, d->shown_count, d->shown_room);
		d->shown[d->shown_count++] = one->shown;
	}
	return 0;
}

static int advice_drops(struct engine *e, const char *cluster_id, struct arena *a, struct engine_drop **ret_list,
                        size_t *ret_count)
{
	struct pg_inquiry q;
	int r = pg_inquiry_begin(e, cluster_id, a, &q);
	struct drops d = {.q = &q};
	for (size_t i = 0; r == 0 && i < q.place_count; i++) {
		const struct pg_place *p = &q.places[i];
		const char **names;
		size_t count = 0;
		if (!p->leads)
			continue;
		r = pg_inquiry_databases(&q, p, &names, &count);
		for (size_t k = 0; r == 0 && k < count; k++) {
			d.database = names[k];
			r = database_drops(&d, p);
		}
	}
	if (r < 0)
		return r;
	*ret_list = d.shown;
	*ret_count = d.shown_count;
	return 0;
}

/* --- what stands out in schemas */

struct notes {
	const struct pg_inquiry *q;
	struct engine_note *list;
	size_t count, room;
	int64_t tables;
};

/* The kind, schema, table, column and value. */
static const char notes_ask[] =
        "(select 0, n.nspname, c.relname, '', (pg_table_size(c.oid) / c.reltuples)::int8 from pg_class c join "
        "pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.reltuples >= 100 and " IS_USERS
        " and pg_table_size(c.oid) / c.reltuples > 32768 order by c.oid limit 100) union all "
        "(select 1, s.schemaname, s.tablename, s.attname, (s.elem_count_histogram)[array_upper(s.elem_count_histogram, "
        "1) - 1]::int8 from pg_stats s join pg_namespace n on n.nspname = s.schemaname where " IS_USERS
        " and (s.elem_count_histogram)[array_upper(s.elem_count_histogram, 1) - 1] >= 1000 limit 100) union all "
        "(select 2, n.nspname, c.relname, '', count(*) from pg_index i join pg_class c on c.oid = i.indrelid join "
        "pg_namespace n on n.oid = c.relnamespace where " IS_USERS
        " group by c.oid, 2, 3 having count(*) >= 12 order by c.oid limit 100) union all "
        "select 3, '', '', '', count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind "
        "in "
        "('r', 'p', 'm') and " IS_USERS;

static void note_add(struct notes *t, const char *database, enum engine_note_kind kind, const char *schema,
                     const char *table, const char *what, int64_t value)
{
	struct arena *a = t->q->arena;
	if (t->count == NOTES_MAX)
		return;
	ARENA_FIT(a, t->list, t->count, t->room);
	t->list[t->count++] =
	        (struct engine_note){.kind = kind,
	                             .namespace = database ? engine_namespace(a, database, schema, table) : NULL,
	                             .what = engine_shown(a, what),
	                             .value = value};
}

static int database_notes(struct notes *t, const struct pg_place *p, const char *database)
{
	PGconn *conn;
	PGresult *rows;
	int r = pg_inquiry_open(t->q, p, database, &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, pg_inquiry_left(t->q, ASK_MS), notes_ask, &rows);
	PQfinish(conn);
	if (r < 0)
		return -EAGAIN;
	for (int i = 0; i < PQntuples(rows); i++) {
		enum engine_note_kind kind = (enum engine_note_kind)strtol(pg_value(rows, i, 0), NULL, 10);
		int64_t value = strtoll(pg_value(rows, i, 4), NULL, 10);
		if (kind == NOTE_MANY_TABLES)
			t->tables += value;
		else
			note_add(t, database, kind, pg_value(rows, i, 1), pg_value(rows, i, 2), pg_value(rows, i, 3),
			         value);
	}
	PQclear(rows);
	return 0;
}

/* ILIKE and ~*, which no ordinary index serves. */
static const char caseless_ask[] =
        "select d.datname, q.lrelid, q.lattnum, (sum(q.occurences) / " PG_QUAL_SAMPLES
        ")::int8 from steward.pg_qualstats() "
        "q join pg_database d on d.oid = q.dbid join pg_operator o on o.oid = q.opno where o.oprname in ('~*', '~~*') "
        "and o.oid < 16384 and q.lrelid >= 16384 and q.lattnum > 0 group by 1, 2, 3 order by 4 desc limit 50";

static void caseless_name(struct notes *t, const struct pg_place *p, const PGresult *rows, int i)
{
	PGconn *conn;
	PGresult *names;
	char sql[480];
	if (pg_inquiry_open(t->q, p, pg_value(rows, i, 0), &conn) < 0)
		return;
	snprintf(sql, sizeof sql,
	         "select n.nspname, c.relname, a.attname from pg_class c join pg_namespace n on n.oid = c.relnamespace "
	         "join "
	         "pg_attribute a on a.attrelid = c.oid where c.oid = %lu and a.attnum = %ld and " IS_USERS,
	         strtoul(pg_value(rows, i, 1), NULL, 10), strtol(pg_value(rows, i, 2), NULL, 10));
	if (pg_sql_rows(conn, pg_inquiry_left(t->q, ASK_MS), sql, &names) == 0) {
		if (PQntuples(names) == 1)
			note_add(t, pg_value(rows, i, 0), NOTE_CASELESS_SEARCH, pg_value(names, 0, 0),
			         pg_value(names, 0, 1), pg_value(names, 0, 2), strtoll(pg_value(rows, i, 3), NULL, 10));
		PQclear(names);
	}
	PQfinish(conn);
}

static int advice_notes(struct engine *e, const char *cluster_id, struct arena *a, struct engine_notes *ret_notes)
{
	struct pg_inquiry q;
	const char *missing = NULL;
	int r = pg_inquiry_begin(e, cluster_id, a, &q);
	struct notes t = {.q = &q};
	for (size_t i = 0; r == 0 && i < q.place_count; i++) {
		const struct pg_place *p = &q.places[i];
		const char **names;
		PGresult *rows;
		size_t count = 0;
		if (!p->leads)
			continue;
		r = pg_inquiry_databases(&q, p, &names, &count);
		for (size_t k = 0; r == 0 && k < count; k++)
			r = database_notes(&t, p, names[k]);
		if (r == 0 && pg_inquiry_quals(&q, p, caseless_ask, &rows, &missing) == 0) {
			for (int k = 0; k < PQntuples(rows); k++)
				caseless_name(&t, p, rows, k);
			PQclear(rows);
		}
	}
	if (r < 0)
		return r;
	if (t.tables >= MANY_TABLES)
		note_add(&t, NULL, NOTE_MANY_TABLES, "", "", "", t.tables);
	*ret_notes = (struct engine_notes){t.list, t.count, missing};
	return 0;
}

const struct engine_advice_ops pg_advice = {.slow = pg_advice_slow,
                                            .statements = pg_advice_statements,
                                            .indexes = pg_advice_indexes,
                                            .drops = advice_drops,
                                            .notes = advice_notes};
