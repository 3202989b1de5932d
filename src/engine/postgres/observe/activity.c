/* Waits and blocked sessions of the last hour, in memory: for each node a ring with a place for each sample, which has
 * what the sample saw, as text, where it saw anything. What is asked about the hour is counted when it is asked. */
#include "engine/postgres/observe/activity.h"

#include "base/arena.h"
#include "base/clock.h"
#include "catalog/formats.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/observe/vacuum.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)
#define PLACES 360    /* an hour of ten seconds */
#define TEXT_MAX 4096 /* of what a sample saw: a server that says more is not the one that was asked */
#define KINDS_MAX 64  /* of waits in an hour */
#define BLOCKS_MAX 256
#define SESSIONS_MAX 200
#define ASK_MS 3000

struct seen {
	int64_t at_ms;
	char *waits, *blocks; /* NULL: none */
};

struct watched {
	char cluster_id[25], node[64];
	struct seen ring[PLACES];
	size_t next;
	int64_t last_ms;
};

struct pg_activities {
	pthread_mutex_t lock;
	struct watched **list;
	size_t count, room;
};

struct pg_activities *pg_activities_new(void)
{
	struct pg_activities *all = must_calloc(1, sizeof *all);
	pthread_mutex_init(&all->lock, NULL);
	return all;
}

static void watched_free(struct watched *w)
{
	for (size_t i = 0; i < PLACES; i++) {
		free(w->ring[i].waits);
		free(w->ring[i].blocks);
	}
	free(w);
}

void pg_activities_free(struct pg_activities *all)
{
	if (!all)
		return;
	for (size_t i = 0; i < all->count; i++)
		watched_free(all->list[i]);
	free(all->list);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

/* With the lock. */
static struct watched *watched_find(const struct pg_activities *all, const char *cluster_id, const char *node)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->list[i]->node, node) == 0 && strcmp(all->list[i]->cluster_id, cluster_id) == 0)
			return all->list[i];
	return NULL;
}

static struct watched *watched_add(struct pg_activities *all, const char *cluster_id, const char *node)
{
	struct watched *w = must_calloc(1, sizeof *w);
	str_copy(str_of(cluster_id), w->cluster_id, sizeof w->cluster_id);
	str_copy(str_of(node), w->node, sizeof w->node);
	if (all->count == all->room) {
		all->room = all->room ? 2 * all->room : 16;
		all->list = must_realloc(all->list, all->room * sizeof(struct watched *));
	}
	all->list[all->count++] = w;
	return w;
}

static char *text_keep(const char *text)
{
	return *text && strlen(text) <= TEXT_MAX ? must_strdup(text) : NULL;
}

void pg_activities_note(struct pg_activities *all, const char *cluster_id, const char *node, int64_t now_ms,
                        const char *waits, const char *blocks)
{
	pthread_mutex_lock(&all->lock);
	struct watched *w = watched_find(all, cluster_id, node);
	w = w ? w : watched_add(all, cluster_id, node);
	struct seen *at = &w->ring[w->next++ % PLACES];
	free(at->waits);
	free(at->blocks);
	*at = (struct seen){now_ms, text_keep(waits), text_keep(blocks)};
	w->last_ms = now_ms;
	pthread_mutex_unlock(&all->lock);
}

void pg_activities_drop(struct pg_activities *all, int64_t now_ms)
{
	size_t kept = 0;
	pthread_mutex_lock(&all->lock);
	for (size_t i = 0; i < all->count; i++)
		if (now_ms - all->list[i]->last_ms > HOUR_MS)
			watched_free(all->list[i]);
		else
			all->list[kept++] = all->list[i];
	all->count = kept;
	pthread_mutex_unlock(&all->lock);
}

/* --- what the hour comes to */

static int64_t number_of(struct str text)
{
	uint64_t v = 0;
	return str_to_u64(text, INT32_MAX, &v) ? (int64_t)v : -1;
}

/* "TYPE:EVENT=SESSIONS" */
static void wait_count(struct engine_activity *to, struct str one)
{
	struct str name, number, type, event;
	str_cut(one, '=', &name, &number);
	str_cut(name, ':', &type, &event);
	int64_t sessions = number_of(number);
	if (sessions <= 0 || !type.n || !event.n || type.n >= sizeof to->waits->type ||
	    event.n >= sizeof to->waits->event || !utf8_is_valid(name))
		return;
	size_t i = 0;
	while (i < to->wait_count && !(str_is(type, to->waits[i].type) && str_is(event, to->waits[i].event)))
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == to->wait_count) {
		to->waits[to->wait_count++] = (struct engine_wait){.sessions = 0};
		str_copy(type, to->waits[i].type, sizeof to->waits[i].type);
		str_copy(event, to->waits[i].event, sizeof to->waits[i].event);
	}
	to->waits[i].sessions += (double)sessions;
}

/* A name in hexadecimal digits; empty where it is none. */
static void name_read(struct str hex, char *ret_name, size_t size)
{
	size_t n = hex.n / 2;
	ret_name[0] = '\0';
	if (n >= size || hex.n % 2)
		return;
	for (size_t i = 0; i < n; i++) {
		char pair[3] = {hex.p[2 * i], hex.p[2 * i + 1], '\0'};
		ret_name[i] = (char)strtoul(pair, NULL, 16);
	}
	ret_name[n] = '\0';
	if (!utf8_is_valid(str_of(ret_name)))
		ret_name[0] = '\0';
}

/* "PID:BY:MS:USER:USER" */
static void block_count(struct engine_activity *to, struct str one, int64_t at_ms)
{
	struct str part[5], rest = one;
	for (size_t i = 0; i < 5; i++)
		if (!str_cut(rest, ':', &part[i], &rest) && i < 4)
			return;
	struct engine_block b = {.pid = number_of(part[0]), .by = number_of(part[1]), .longest_ms = number_of(part[2])};
	if (b.pid < 0 || b.by < 0 || b.longest_ms < 0)
		return;
	b.first_ms = at_ms - b.longest_ms;
	b.last_ms = at_ms;
	name_read(part[3], b.user, sizeof b.user);
	name_read(part[4], b.by_user, sizeof b.by_user);
	/* One wait is seen by many samples; the next one of the same two begins later than this was last seen. */
	for (size_t i = to->block_count; i-- > 0;) {
		struct engine_block *had = &to->blocks[i];
		if (had->pid != b.pid || had->by != b.by || b.first_ms > had->last_ms)
			continue;
		had->last_ms = at_ms;
		had->longest_ms = b.longest_ms > had->longest_ms ? b.longest_ms : had->longest_ms;
		return;
	}
	if (to->block_count < BLOCKS_MAX)
		to->blocks[to->block_count++] = b;
}

static int by_sessions(const void *a, const void *b)
{
	const struct engine_wait *x = a, *y = b;
	if (x->sessions != y->sessions)
		return x->sessions > y->sessions ? -1 : 1;
	return strcmp(x->event, y->event);
}

static int by_last(const void *a, const void *b)
{
	const struct engine_block *x = a, *y = b;
	if (x->last_ms != y->last_ms)
		return x->last_ms > y->last_ms ? -1 : 1;
	return x->pid == y->pid ? 0 : x->pid < y->pid ? -1 : 1;
}

static void seen_count(struct engine_activity *to, const struct seen *s)
{
	struct str rest = str_of(s->waits ? s->waits : ""), one;
	to->samples++;
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &one, &rest);
		wait_count(to, one);
	}
	rest = str_of(s->blocks ? s->blocks : "");
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, ',', &one, &rest);
		block_count(to, one, s->at_ms);
	}
}

void pg_activities_past(struct pg_activities *all, const char *cluster_id, const char *node, int64_t now_ms,
                        struct arena *a, struct engine_activity *ret_activity)
{
	struct engine_activity to = {.waits = arena_new_array(a, struct engine_wait, KINDS_MAX),
	                             .blocks = arena_new_array(a, struct engine_block, BLOCKS_MAX)};
	pthread_mutex_lock(&all->lock);
	const struct watched *w = watched_find(all, cluster_id, node);
	for (size_t i = 0; w && i < PLACES; i++) {
		const struct seen *s = &w->ring[(w->next + i) % PLACES];
		if (s->at_ms && now_ms - s->at_ms < HOUR_MS)
			seen_count(&to, s);
	}
	pthread_mutex_unlock(&all->lock);
	for (size_t i = 0; i < to.wait_count; i++)
		to.waits[i].sessions /= to.samples;
	qsort(to.waits, to.wait_count, sizeof *to.waits, by_sessions);
	qsort(to.blocks, to.block_count, sizeof *to.blocks, by_last);
	*ret_activity = to;
}

static void activity_past(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                          struct engine_activity *ret_activity)
{
	pg_activities_past(e->activities, cluster_id, node, clock_now_ms(), a, ret_activity);
}

/* --- now */

/* A text that is none in this database's encoding, which a statement in another database can be, makes the question
 * fail as a whole: without statements it tells the rest. */
#define SESSIONS(STATEMENT)                                                                                           \
	"with s as materialized (select *, case when wait_event_type = 'Lock' then pg_blocking_pids(pid) else '{}' "  \
	"end as by "                                                                                                  \
	"from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()) select pid, "       \
	"usename, "                                                                                                   \
	"datname, application_name, host(client_addr), state, wait_event_type, wait_event, (extract(epoch from "      \
	"backend_start) * 1000)::bigint, (extract(epoch from xact_start) * 1000)::bigint, (extract(epoch from "       \
	"query_start) * 1000)::bigint, array_to_string(by, ','), " STATEMENT                                          \
	" from s where (usename is distinct from '" PG_SUPER                                                          \
	"' and state <> 'idle') or cardinality(by) > 0 or exists (select from s o where s.pid = any(o.by)) order by " \
	"xact_start nulls last, pid limit 200"

/* What the service asks is not the tenant's to read: it names other tables and roles than theirs. */
static const char ask[] =
        SESSIONS("case when usename in ('" PG_SUPER "', '" PG_SHARD "') then '' else left(query, 1000) end");
static const char ask_textless[] = SESSIONS("''");

enum column {
	PID,
	USER,
	DATABASE,
	APPLICATION,
	ADDRESS,
	STATE,
	WAIT_TYPE,
	WAIT,
	STARTED,
	TRANSACTION,
	STATEMENT,
	BY,
	TEXT
};

static const char *text_at(struct arena *a, const PGresult *rows, int row, enum column column)
{
	return engine_shown(a, pg_value(rows, row, (int)column));
}

static int64_t number_at(const PGresult *rows, int row, enum column column)
{
	return strtoll(pg_value(rows, row, (int)column), NULL, 10);
}

static void session_read(struct arena *a, const PGresult *rows, int row, struct engine_session *s)
{
	*s = (struct engine_session){
	        .pid = number_at(rows, row, PID),
	        .user = text_at(a, rows, row, USER),
	        .database = text_at(a, rows, row, DATABASE),
	        .application = text_at(a, rows, row, APPLICATION),
	        .address = text_at(a, rows, row, ADDRESS),
	        .state = text_at(a, rows, row, STATE),
	        .statement = text_at(a, rows, row, TEXT),
	        .wait_type = text_at(a, rows, row, WAIT_TYPE),
	        .wait = text_at(a, rows, row, WAIT),
	        .started_ms = number_at(rows, row, STARTED),
	        .transaction_ms = number_at(rows, row, TRANSACTION),
	        .statement_ms = number_at(rows, row, STATEMENT),
	};
	struct str rest = str_of(pg_value(rows, row, BY)), one;
	for (bool more = rest.n > 0; more && s->blocker_count < ACTIVITY_BLOCKERS;) {
		more = str_cut(rest, ',', &one, &rest);
		int64_t by = number_of(one);
		bool known = by < 0;
		for (size_t i = 0; i < s->blocker_count && !known; i++)
			known = s->blockers[i] == by;
		if (!known)
			s->blockers[s->blocker_count++] = by;
	}
}

/* A connection of its own to a node that runs. */
static int node_open(struct engine *e, const char *cluster_id, const char *node, PGconn **ret_conn)
{
	struct pg_cluster *c;
	struct pg_node n;
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	if (!n.pid || n.noted || pg_sql_open_node(c, &n, "postgres", ASK_MS, ret_conn) < 0)
		r = -EAGAIN;
	pg_cluster_put(c);
	return r;
}

static int activity_sessions(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                             struct engine_session **ret_list, size_t *ret_count)
{
	PGconn *conn;
	PGresult *rows = NULL;
	int r = node_open(e, cluster_id, node, &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, ASK_MS, ask, &rows);
	if (r == -EPROTO)
		r = pg_sql_rows(conn, ASK_MS, ask_textless, &rows);
	PQfinish(conn);
	if (r < 0)
		return -EAGAIN;
	size_t count = PQntuples(rows) > SESSIONS_MAX ? SESSIONS_MAX : (size_t)PQntuples(rows);
	struct engine_session *list = arena_new_array(a, struct engine_session, count + 1);
	for (size_t i = 0; i < count; i++)
		session_read(a, rows, (int)i, &list[i]);
	PQclear(rows);
	*ret_list = list;
	*ret_count = count;
	return 0;
}

/* --- ending one */

/* The condition under which a column has a moment that callers know to the second. */
static struct str second_sql(struct arena *a, const char *column, int64_t ms)
{
	return arena_printf(a, "(extract(epoch from %s) * 1000)::bigint / 1000 = %lld", column, (long long)ms / 1000);
}

/* Sessions of the service are nobody's to end: they hold up failover, backups and the shards' writes. */
static int activity_end(struct engine *e, const char *cluster_id, const char *node,
                        const struct engine_session_id *which, struct arena *a, struct engine_session *ret_ended)
{
	PGconn *conn;
	PGresult *rows = NULL;
	int r = node_open(e, cluster_id, node, &conn);
	if (r < 0)
		return r;
	struct str session = second_sql(a, "backend_start", which->started_ms);
	struct str statement = second_sql(a, "query_start", which->statement_ms);
	if (which->statement_ms)
		session = arena_printf(a, "%.*s and state = 'active' and %.*s", STR_ARG(session), STR_ARG(statement));
	/* Materialized, so that nothing is ended before all of the question was looked at. */
	struct str sql = arena_printf(
	        a,
	        "with s as materialized (select pid, usename, datname, application_name, client_addr from "
	        "pg_stat_activity where pid = %lld and backend_type = 'client backend' and usename not in ('" PG_SUPER
	        "', '" PG_SHARD "', '" PG_RESTORE "') and %.*s) select usename, datname, application_name, "
	        "host(client_addr), %s(pid) from s",
	        (long long)which->pid, STR_ARG(session),
	        which->statement_ms ? "pg_cancel_backend" : "pg_terminate_backend");
	r = pg_sql_rows(conn, ASK_MS, sql.p, &rows);
	PQfinish(conn);
	if (r < 0)
		return -EAGAIN;
	if (PQntuples(rows) == 0 || strcmp(pg_value(rows, 0, 4), "t") != 0) {
		r = -ESRCH;
	} else {
		*ret_ended = (struct engine_session){.pid = which->pid,
		                                     .user = engine_shown(a, pg_value(rows, 0, 0)),
		                                     .database = engine_shown(a, pg_value(rows, 0, 1)),
		                                     .application = engine_shown(a, pg_value(rows, 0, 2)),
		                                     .address = engine_shown(a, pg_value(rows, 0, 3)),
		                                     .state = "",
		                                     .statement = "",
		                                     .wait_type = "",
		                                     .wait = "",
		                                     .started_ms = which->started_ms};
	}
	PQclear(rows);
	return r;
}

const struct engine_activity_ops pg_activity = {
        .past = activity_past, .sessions = activity_sessions, .end = activity_end, .vacuum = pg_vacuum_look};
