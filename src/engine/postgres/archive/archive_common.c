/* Points that all sets of a sharded cluster share. While the router's spread tables are locked against writers, no
 * transaction is between its commits on two shards; in that moment each set gets a record in its log. Writers wait a
 * few milliseconds; where one holds its locks for longer, the point is tried again later rather than that the others
 * wait behind it. Tables of the router that are not spread need no lock: their transactions lie in one log. */
#include "engine/postgres/archive/archive_common.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/archive/archive_store.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdio.h>

#define EVERY_MS 10000
#define AGAIN_MS 2000 /* after one that failed */
#define TRIES 8
#define SQL_MS 3000
#define PENDING_MAX 16

struct place { /* a primary, copied */
	char name[64], run[PG_PATH];
	unsigned port;
	bool router;
	PGconn *conn;
};

static const char lock_sql[] =
        "begin; set local synchronous_commit = off; set local log_min_messages = fatal; set local lock_timeout = "
        "'20ms';"
        "do $$ declare t regclass; begin "
        "if to_regclass('steward_parts.spread') is null then return; end if; "
        "lock table steward_parts.spread in share mode; "
        "for t in select c.oid from steward_parts.spread s join pg_class c on c.oid = s.parent order by 1 loop "
        "execute format('lock table only %s in share mode', t); end loop; end $$";
static const char begin_sql[] = "begin; set local synchronous_commit = off; set local log_min_messages = fatal";
static const char point_sql[] = "select pg_create_restore_point('steward') - '0/0', "
                                "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8), "
                                "pg_current_xact_id()";
static const char commit_sql[] = "commit; select (pg_current_wal_insert_lsn() - '0/0')::bigint";

static int places_open(struct place *places, size_t count)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		struct pg_node n = {.port = places[i].port};
		r = places[i].port ? pg_sql_open(&n, places[i].run, "postgres", 2000, &places[i].conn) : -ENOTCONN;
		if (r == 0 && !places[i].router)
			r = pg_sql_do(places[i].conn, SQL_MS, begin_sql);
	}
	return r;
}

static void places_close(struct place *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (places[i].conn)
			PQfinish(places[i].conn);
}

/* All routers' tables; writers are waited for only moments. Others wait from *ret_us on. */
static int routers_lock(struct place *places, size_t count, int64_t *ret_us)
{
	int r = -EAGAIN;
	for (int try = 0; try < TRIES && r < 0; try++) {
		r = 0;
		*ret_us = clock_mono_us();
		for (size_t i = 0; i < count && r == 0; i++)
			if (places[i].router)
				r = pg_sql_do(places[i].conn, SQL_MS, lock_sql);
		for (size_t i = 0; i < count && r < 0; i++)
			if (places[i].router)
				(void)!pg_sql_do(places[i].conn, SQL_MS, "rollback");
		if (r < 0)
			pg_sleep_ms(10 << (try < 5 ? try : 5));
	}
	return r;
}

static int points_make(struct place *places, size_t count, struct pg_common *m)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		struct pg_common_set *s = &m->sets[i];
		PGresult *rows;
		r = pg_sql_rows(places[i].conn, SQL_MS, point_sql, &rows);
		if (r < 0)
			break;
		snprintf(s->name, sizeof s->name, "%s", places[i].name);
		s->lsn = strtoull(pg_value(rows, 0, 0), NULL, 10);
		s->timeline = (uint32_t)strtoul(pg_value(rows, 0, 1), NULL, 16);
		PQclear(rows);
	}
	m->count = count;
	return r;
}

/* Routers first: their locks are what others wait for. */
static int points_commit(struct place *places, size_t count, struct pg_common *m, int64_t *held_us)
{
	int r = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < count && r == 0; i++) {
			int64_t end;
			if (places[i].router != (pass == 0))
				continue;
			r = pg_sql_int(places[i].conn, SQL_MS, commit_sql, &end);
			m->sets[i].end = r < 0 ? 0 : (uint64_t)end;
		}
		*held_us = pass ? *held_us : clock_mono_us() - *held_us;
	}
	return r;
}

static int common_make(struct place *places, size_t count, struct pg_common *ret_common)
{
	int64_t held = 0;
	int r = places_open(places, count);
	r = r < 0 ? r : routers_lock(places, count, &held);
	ret_common->from_ms = clock_now_ms();
	r = r < 0 ? r : points_make(places, count, ret_common);
	ret_common->to_ms = clock_now_ms() + 1;
	r = r < 0 ? r : points_commit(places, count, ret_common, &held);
	if (r == 0)
		log_debug("engine: a point of %zu sets: writers waited %d us", count, (int)held);
	places_close(places, count);
	return r;
}

/* The primaries of all sets; 0: one does not run. */
static size_t places_find(struct pg_cluster *c, struct place *places)
{
	size_t count = 0;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		bool runs = p && p->pid && !p->noted && !p->busy;
		if (!runs) {
			count = 0;
			break;
		}
		struct place *at = &places[count++];
		pg_set_name(&p->want, at->name);
		pg_node_run_dir(c, p, at->run);
		at->port = p->port;
		at->router = p->want.kind == NODE_ROUTER;
	}
	pthread_mutex_unlock(&c->lock);
	return count;
}

/* It counts once its log is stored. */
static void pending_add(struct pg_archive *a, const struct pg_common *m)
{
	pthread_mutex_lock(&a->lock);
	a->pending = must_realloc(a->pending, (a->pending_count + 1) * sizeof *a->pending);
	if (a->pending_count < PENDING_MAX)
		a->pending[a->pending_count++] = *m;
	pthread_mutex_unlock(&a->lock);
}

static int checkpoint_make(struct pg_cluster *c, struct pg_common *m)
{
	struct place *places = must_calloc(PG_SETS_MAX, sizeof *places);
	size_t count = places_find(c, places);
	int r = count ? common_make(places, count, m) : -ENOTCONN;
	free(places);
	pthread_mutex_lock(&c->lock);
	struct pg_archive *a = c->archive;
	pthread_mutex_unlock(&c->lock);
	if (r == 0 && a && count > 1)
		pending_add(a, m);
	return r;
}

int pg_checkpoint_make(struct pg_cluster *c, struct arena *a, struct engine_checkpoint *ret_checkpoint,
                       const char **ret_why)
{
	struct pg_common *m = must_calloc(1, sizeof *m);
	int r = checkpoint_make(c, m);
	if (r < 0)
		pg_why_set(ret_why, r == -ENOTCONN ? "a set has no running primary" : "no common point in time: %s",
		           pg_why_last());
	else
		pg_common_tell(m, a, ret_checkpoint);
	free(m);
	pg_archive_hurry(c);
	return r;
}

void pg_common_tell(const struct pg_common *m, struct arena *a, struct engine_checkpoint *ret_checkpoint)
{
	*ret_checkpoint = (struct engine_checkpoint){.at_ms = m->to_ms, .set_count = m->count};
	snprintf(ret_checkpoint->id, sizeof ret_checkpoint->id, "%08llx%04llx%012x",
	         (unsigned long long)(m->to_ms / 1000) & 0xffffffff, (unsigned long long)(m->to_ms % 1000), 0u);
	ret_checkpoint->sets = arena_new_array(a, struct engine_position, m->count);
	for (size_t i = 0; i < m->count; i++) {
		struct engine_position *p = &ret_checkpoint->sets[i];
		snprintf(p->set, sizeof p->set, "%s", m->sets[i].name);
		p->timeline = m->sets[i].timeline;
		p->lsn = m->sets[i].lsn;
	}
}

/* --- with the archive's looks */

void pg_common_tick(struct pg_cluster *c, struct pg_archive *a)
{
	if (a->set_count < 2 || pg_mono_ms() - a->common_ms < EVERY_MS)
		return;
	struct pg_common *m = must_calloc(1, sizeof *m);
	a->common_ms = pg_mono_ms();
	int r = checkpoint_make(c, m);
	if (r < 0) {
		log_debug("engine: %s: no common point: %s", c->id, strerror(-r));
		a->common_ms -= EVERY_MS - AGAIN_MS;
	}
	free(m);
}

static bool is_stored(const struct pg_archive *a, const struct pg_common *m)
{
	bool stored = true;
	for (size_t i = 0; i < m->count && stored; i++) {
		stored = false;
		for (size_t k = 0; k < a->set_count && !stored; k++)
			stored = strcmp(a->sets[k]->name, m->sets[i].name) == 0 &&
			         a->sets[k]->stored >= m->sets[i].end && a->sets[k]->timeline >= m->sets[i].timeline;
	}
	return stored;
}

static int common_load(struct pg_cluster *c, struct pg_archive *a)
{
	struct repo_line line = pg_archive_line(c, a, PG_COMMON);
	char *text;
	size_t n;
	int r = a->common_loaded ? 0 : repo_seconds_get(a->repository, &line, 0, &text, &n);
	if (a->common_loaded || r == -ENOENT) {
		a->common_loaded = true;
		return 0;
	}
	if (r < 0)
		return r;
	pg_index_free(&a->common);
	pg_index_parse(&a->common, (struct str){text, n});
	free(text);
	a->common_loaded = true;
	if (a->common.hour_count == 0)
		return 0;
	a->common_hour = a->common.hours[a->common.hour_count - 1].hour;
	r = repo_seconds_get(a->repository, &line, a->common_hour, &text, &n);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	a->commons.n = 0;
	buf_add(&a->commons, text, n);
	free(text);
	return 0;
}

static int index_put(struct pg_cluster *c, struct pg_archive *a)
{
	struct repo_line line = pg_archive_line(c, a, PG_COMMON);
	struct buf b = {0};
	pg_index_write(&b, &a->common);
	int r = repo_seconds_put(a->repository, &line, 0, b.p, b.n);
	buf_free(&b);
	return r;
}

static int common_add(struct pg_cluster *c, struct pg_archive *a, const struct pg_common *m)
{
	struct repo_line line = pg_archive_line(c, a, PG_COMMON);
	int64_t hour = m->to_ms / PG_HOUR_MS;
	bool fresh = hour != a->common_hour;
	/* The clock was put back: what lies there of that hour would be replaced. */
	if (fresh && hour < a->common_hour)
		return 0;
	if (fresh) {
		a->commons.n = 0;
		a->common_hour = hour;
		pg_index_hour(&a->common, hour, 0);
	}
	pg_common_write(&a->commons, m);
	int r = repo_seconds_put(a->repository, &line, hour, a->commons.p, a->commons.n);
	return r < 0 || !fresh ? r : index_put(c, a);
}

/* Whole lines of points that were over at that time, which stand in their order. */
static size_t lines_before(const struct buf *b, int64_t now_ms)
{
	struct pg_common *m = must_calloc(1, sizeof *m);
	struct str rest = {b->p, b->n}, line;
	size_t kept = 0;
	while (rest.n) {
		str_cut(rest, '\n', &line, &rest);
		if (!pg_common_parse(line, m) || m->to_ms > now_ms)
			break;
		kept = b->n - rest.n;
	}
	free(m);
	return kept;
}

int pg_common_take_back(struct pg_cluster *c, struct pg_archive *a, int64_t now_ms)
{
	struct repo_line line = pg_archive_line(c, a, PG_COMMON);
	int r = common_load(c, a);
	pthread_mutex_lock(&a->lock);
	a->pending_count = 0;
	pthread_mutex_unlock(&a->lock);
	if (r < 0 || !a->common.hour_count || (a->common_hour + 1) * PG_HOUR_MS <= now_ms)
		return r;
	while (a->common.hour_count && a->common.hours[a->common.hour_count - 1].hour > now_ms / PG_HOUR_MS)
		a->common.hour_count--;
	/* The next load reads the hour that is the newest again. */
	a->common_hour = 0;
	a->commons.n = 0;
	r = index_put(c, a);
	a->common_loaded = false;
	r = r < 0 ? r : common_load(c, a);
	if (r < 0 || a->common_hour != now_ms / PG_HOUR_MS)
		return r;
	size_t kept = lines_before(&a->commons, now_ms);
	bool fewer = kept < a->commons.n;
	a->commons.n = kept;
	return fewer ? repo_seconds_put(a->repository, &line, a->common_hour, a->commons.p, a->commons.n) : 0;
}

/* The names of the cluster's sets, for whoever reads the archive without the cluster. */
static bool sets_differ(struct pg_archive *a)
{
	bool differ = a->common.set_count != a->set_count;
	for (size_t i = 0; i < a->set_count && !differ; i++)
		differ = strcmp(a->common.sets[i], a->sets[i]->name) != 0;
	if (!differ)
		return false;
	a->common.sets = must_realloc(a->common.sets, (a->set_count + 1) * sizeof *a->common.sets);
	a->common.set_count = a->set_count;
	for (size_t i = 0; i < a->set_count; i++)
		snprintf(a->common.sets[i], sizeof a->common.sets[i], "%s", a->sets[i]->name);
	return true;
}

int pg_common_store(struct pg_cluster *c, struct pg_archive *a)
{
	int r = common_load(c, a);
	if (r == 0 && a->set_count && sets_differ(a)) {
		r = index_put(c, a);
		if (r < 0)
			a->common.set_count = 0; /* once more, then */
	}
	for (size_t i = 0; r == 0;) {
		struct pg_common *m = must_calloc(1, sizeof *m);
		pthread_mutex_lock(&a->lock);
		while (i < a->pending_count && !is_stored(a, &a->pending[i]))
			i++;
		bool found = i < a->pending_count;
		if (found) {
			*m = a->pending[i];
			memmove(&a->pending[i], &a->pending[i + 1], (--a->pending_count - i) * sizeof *a->pending);
		} else if (a->pending_count == PENDING_MAX) {
			a->pending_count = 0; /* their log does not come */
		}
		pthread_mutex_unlock(&a->lock);
		r = found ? common_add(c, a, m) : 0;
		free(m);
		if (!found)
			break;
	}
	return r;
}
