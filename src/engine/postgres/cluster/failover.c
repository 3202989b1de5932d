/* Who is primary: failover, switchover, and the way back of a former primary. Called by the jobs and by the
 * supervision.
 *
 * There is never a second writable primary, because the order is fixed: the old one is proven dead (its process and
 * all sessions), then the new term is durable, then the standby is promoted. A node that is not its term's primary
 * starts only with standby.signal, and a former primary gets that only after a rewind. Whoever continues after a crash
 * reads the term and goes on from there.
 *
 * With quorum a commit was flushed by one of the other electable nodes; all of them must have answered before the one
 * with the most log is promoted. When one is missing, the old primary is started again instead, which loses
 * nothing. */
#include "engine/postgres/cluster/failover.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define START_MS 30000
#define FAILURES_MAX 3  /* starts of a primary before another takes over in any case */
#define REPLICATION_S 5 /* between two looks at who streams */
#define STALE_S 15      /* without streaming, until a standby is made anew */
#define MISSING_S 1     /* until a node without data is looked at again */
#define SETTLED_S 10    /* of a term, until the primary may go back to the region where it belongs */
#define REFUSED_S 600   /* after a way back that failed: each try stops the writers for a moment */

/* --- promotion */

int pg_set_promote(struct pg_cluster *c, struct pg_set *s)
{
	struct pg_node *n = pg_set_primary(c, s);
	PGconn *conn;
	int r = n ? pg_sql_open_node(c, n, "postgres", 2000, &conn) : -ENOENT;
	if (r < 0)
		return r;
	int64_t waiting = 1, end = pg_mono_ms() + 20000;
	r = pg_sql_int(conn, 2000, "select pg_is_in_recovery()::int", &waiting);
	if (r == 0 && waiting)
		r = pg_sql_do(conn, 2000, "select pg_promote(false)");
	while (r == 0 && waiting && pg_mono_ms() < end) {
		pg_sleep_ms(3);
		r = pg_sql_int(conn, 2000, "select pg_is_in_recovery()::int", &waiting);
	}
	PQfinish(conn);
	return r < 0 ? r : waiting ? -ETIMEDOUT : 0;
}

/* The others follow whoever is primary now. An adopted node may not have reloaded the file. */
void pg_set_repoint(struct pg_cluster *c, struct pg_set *s)
{
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		bool changed = false;
		if (n->set != s->number || pg_config_write(c, n, &changed) < 0)
			continue;
		if ((changed || !n->primary_known) && n->pid)
			pg_process_signal(n->pidfd, SIGHUP);
		n->primary_known = true;
	}
}

static bool set_knows_primary(const struct pg_cluster *c, const struct pg_set *s)
{
	bool primary_known = true;
	if (c->node_count == 1) /* nobody to follow */
		return true;
	for (size_t i = 0; i < c->node_count; i++)
		primary_known &= c->nodes[i]->primary_known || c->nodes[i]->set != s->number || c->nodes[i]->busy;
	return primary_known;
}

/* How far a standby has come: all that reached it is flushed once its receiver is gone. */
static int standby_position(struct pg_cluster *c, struct pg_node *n, int64_t *ret_position)
{
	PGconn *conn;
	int r = pg_sql_open_node(c, n, "postgres", 1000, &conn);
	if (r < 0)
		return r;
	int64_t streaming = 1, end = pg_mono_ms() + 300;
	while (r == 0 && streaming && pg_mono_ms() < end) {
		r = pg_sql_int(conn, 1000, "select count(*) from pg_stat_wal_receiver where status = 'streaming'",
		               &streaming);
		if (r == 0 && streaming)
			pg_sleep_ms(5);
	}
	if (r == 0)
		r = pg_sql_int(conn, 1000,
		               "select (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0')::bigint",
		               ret_position);
	PQfinish(conn);
	return r;
}

/* Cut short in a rewind, or never flushed. */
static bool node_is_marked(struct pg_cluster *c, struct pg_node *n)
{
	char rebuild[PG_PATH], unflushed[PG_PATH];
	pg_node_path(c, n, "conf/rebuild", rebuild);
	pg_node_path(c, n, "conf/unflushed", unflushed);
	return pg_file_is(rebuild) || pg_file_is(unflushed);
}

/* The one to promote, and how far it has come; *ret_missing: how many that could lead did not answer. */
static struct pg_node *set_candidate(struct pg_cluster *c, struct pg_set *s, unsigned *ret_missing,
                                     int64_t *ret_position)
{
	struct pg_node *best = NULL, *old = pg_set_primary(c, s);
	int64_t best_position = -1;
	*ret_missing = 0;
	*ret_position = -1;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		int64_t position;
		if (n == old || n->set != s->number || !pg_node_can_lead(n) || n->want.outage || n->removing)
			continue;
		if (n->busy && !pg_node_is_made(c, n) && !node_is_marked(c, n))
			continue; /* never held anything */
		if (n->busy || !n->pid || pg_node_hangs(c, n) || !pg_node_is_standby(c, n) ||
		    standby_position(c, n, &position) < 0) {
			++*ret_missing;
			continue;
		}
		if (position > best_position ||
		    (best && position == best_position && n->want.priority > best->want.priority)) {
			best = n;
			best_position = *ret_position = position;
		}
	}
	return best;
}

static int term_begin(struct pg_cluster *c, struct pg_set *s, const struct pg_node *primary, bool failover)
{
	struct pg_set before = *s;
	pthread_mutex_lock(&c->lock);
	s->term++;
	s->failovers += failover;
	s->return_us = clock_mono_us() + SETTLED_S * 1000000ll;
	snprintf(s->primary, sizeof s->primary, "%s", primary->want.name);
	pthread_mutex_unlock(&c->lock);
	int r = pg_state_save(c);
	if (r < 0) {
		pthread_mutex_lock(&c->lock);
		*s = before;
		pthread_mutex_unlock(&c->lock);
		return r;
	}
	c->engine->failovers += failover;
	c->engine->switchovers += !failover;
	return 0;
}

/* The old primary is dead and buried. */
int pg_set_failover(struct pg_cluster *c, struct pg_set *s, bool whatever_answers)
{
	struct pg_node *old = pg_set_primary(c, s);
	unsigned missing;
	int64_t position;
	if (old && old->pid)
		return -EBUSY;
	int64_t began = pg_mono_ms();
	struct pg_node *next = set_candidate(c, s, &missing, &position);
	if (!next || (missing && c->quorum && !whatever_answers))
		return -EAGAIN;
	/* One that has not all of the access leads nobody before it has. */
	bool has_access = s->access_at && position >= s->access_at;
	int r = has_access ? 0 : pg_admit_promise(c, false);
	r = r < 0 || has_access ? r : pg_admit_shut(c, next);
	r = r < 0 ? r : term_begin(c, s, next, true);
	if (r < 0)
		return r;
	pg_access_unmark(c); /* a standby may not have had the last of it */
	r = pg_set_promote(c, s);
	log_info("engine: %s set %u term %u: %s is primary in place of %s after %d ms%s", c->id, s->number, s->term,
	         s->primary, old ? old->want.name : "none", (int)(pg_mono_ms() - began),
	         r < 0 ? ", not promoted yet" : "");
	pg_set_repoint(c, s);
	pg_cluster_changed(c);
	if (r == 0) {
		pg_admit_hurry(c);
		pg_admit_care(c);
	}
	return r;
}

/* --- planned */

/* Where a cleanly stopped server's log ends: its last record, the shutdown's checkpoint. */
static int shutdown_position(struct pg_cluster *c, struct pg_node *n, int64_t *ret_position)
{
	struct pg_control control;
	char data[PG_PATH];
	pg_node_path(c, n, "data", data);
	int r = pg_control_read(data, &control);
	if (r == 0 && control.state != PG_SHUT_DOWN)
		r = -ENODATA;
	if (r == 0)
		*ret_position = (int64_t)control.checkpoint;
	return r;
}

/* Whether a node of the set could take over as it runs now. */
static bool may_lead(const struct pg_set *s, const struct pg_node *n)
{
	return n->set == s->number && pg_node_can_lead(n) && !n->want.outage && !n->removing && !n->busy && n->pid;
}

/* The best standby that streams now, by priority of its region. */
static struct pg_node *switch_target(struct pg_cluster *c, struct pg_set *s)
{
	struct pg_node *best = NULL, *old = pg_set_primary(c, s);
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		int64_t position;
		if (n == old || !may_lead(s, n) || !pg_node_is_standby(c, n) ||
		    (best && n->want.priority <= best->want.priority))
			continue;
		PGconn *conn;
		if (pg_sql_open_node(c, n, "postgres", 1000, &conn) < 0)
			continue;
		if (pg_sql_int(conn, 1000, "select count(*) from pg_stat_wal_receiver where status = 'streaming'",
		               &position) == 0 &&
		    position == 1)
			best = n;
		PQfinish(conn);
	}
	return best;
}

/* The stopping primary sends its last record to all who stream, before it ends; the target must have it. */
static int hand_over(struct pg_cluster *c, struct pg_set *s, struct pg_node *old, struct pg_node *next,
                     const char **ret_why)
{
	int64_t end = 0, have = 0;
	PGconn *conn;
	/* Most of what the stop has to flush is flushed while writes still go on. */
	if (pg_sql_open_node(c, old, "postgres", 2000, &conn) == 0) {
		(void)!pg_sql_do(conn, 30000, "checkpoint");
		PQfinish(conn);
	}
	int r = pg_node_halt(c, old, PG_HALT_FAST);
	if (r == 0)
		r = shutdown_position(c, old, &end);
	if (r == 0)
		r = standby_position(c, next, &have);
	if (r == 0 && have <= end)
		r = -ENODATA;
	if (r == 0)
		r = term_begin(c, s, next, false);
	if (r < 0) {
		pg_why_set(ret_why, "%s did not get the last writes; %s stays primary", next->want.name,
		           old->want.name);
		(void)!pg_node_start(c, old);
		return r;
	}
	r = pg_set_promote(c, s);
	if (r < 0) {
		pg_why_set(ret_why, "%s is not promoted yet", next->want.name);
		return r; /* the care goes on from the term */
	}
	char data[PG_PATH];
	pg_node_path(c, old, "data", data);
	r = pg_node_mark_standby(c, old, data);
	pg_set_repoint(c, s);
	pg_cluster_changed(c);
	if (r == 0 && pg_node_shall_run(c, old))
		r = pg_node_start(c, old);
	return r;
}

int pg_set_switchover(struct pg_cluster *c, struct pg_set *s, const char **ret_why)
{
	struct pg_node *old = pg_set_primary(c, s), *next = switch_target(c, s);
	if (!old || !next) {
		pg_why_set(ret_why, "no other node of the shard can become primary now");
		return -EAGAIN;
	}
	return hand_over(c, s, old, next, ret_why);
}

/* A node of a higher priority than the primary's, whoever of them comes first. */
static struct pg_node *set_superior(const struct pg_cluster *c, const struct pg_set *s, const struct pg_node *p)
{
	struct pg_node *best = NULL;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		if (may_lead(s, n) && n->want.priority > (best ? best->want.priority : p->want.priority))
			best = n;
	}
	return best;
}

int pg_set_return(struct pg_cluster *c, struct pg_set *s)
{
	struct pg_node *p = pg_set_primary(c, s), *next = p ? set_superior(c, s, p) : NULL;
	const char *why = NULL;
	char sql[200];
	int64_t follows = 0;
	PGconn *conn;
	if (!next || !p->pid || p->busy || !pg_node_is_standby(c, next))
		return 0;
	/* One that streams has all but the last moment; one that catches up would keep the writers waiting. */
	snprintf(sql, sizeof sql,
	         "select count(*) from pg_stat_replication where state = 'streaming' and application_name = '%s'",
	         next->want.name);
	int r = pg_sql_open_node(c, p, "postgres", 1000, &conn);
	if (r < 0)
		return r;
	r = pg_sql_int(conn, 1000, sql, &follows);
	PQfinish(conn);
	if (r < 0 || !follows)
		return r;
	r = hand_over(c, s, p, next, &why);
	if (r == 0) {
		log_info("engine: %s set %u: back to %s, where the primary belongs", c->id, s->number, next->want.name);
		return 0;
	}
	s->return_us = clock_mono_us() + REFUSED_S * 1000000ll;
	log_warn("engine: %s set %u: %s does not take over from %s: %s", c->id, s->number, next->want.name,
	         p->want.name, why ? why : strerror(-r));
	return r;
}

/* --- coming back */

/* A whole copy, for a node that is new or cannot be rewound. Long: only the node's `busy` is held. */
int pg_node_copy_from(struct pg_cluster *c, struct pg_node *primary, struct pg_node *n)
{
	char program[PG_PATH], data[PG_PATH], fresh[PG_PATH], run[PG_PATH], port[16], hex[17];
	unsigned char bytes[8];
	random_bytes(bytes, sizeof bytes);
	hex_encode(bytes, sizeof bytes, hex);
	pg_path_set(program, "%s/pg_basebackup", pg_version_bin(c->engine, c->version));
	pg_node_path(c, n, "data", data);
	pg_path_set(fresh, "%s.%s", data, hex);
	pg_node_run_dir(c, primary, run);
	snprintf(port, sizeof port, "%u", primary->port);
	const char *argv[] = {program,     "-D",     fresh, "-h",     run,  "-p",   port,
	                      "-U",        PG_SUPER, "-X",  "stream", "-c", "fast", "--no-manifest",
	                      "--no-sync", "-w",     NULL};
	int r = pg_process_run(c->user, argv, 3600 * 1000);
	if (r == 0)
		r = pg_node_mark_standby(c, n, fresh);
	if (r == 0)
		r = pg_tree_remove(data);
	if (r == 0 && nolink_rename(fresh, data) < 0)
		r = -errno;
	char mark[PG_PATH];
	pg_node_path(c, n, "conf/unflushed", mark);
	if (r == 0)
		nolink_unlink(mark); /* a server that was not shut down cleanly flushes everything when it starts */
	else
		pg_tree_remove(fresh);
	return r;
}

static int rewind_run(struct pg_cluster *c, struct pg_node *primary, struct pg_node *n)
{
	char program[PG_PATH], data[PG_PATH], conf[PG_PATH], run[PG_PATH], source[PG_PATH + 128];
	pg_path_set(program, "%s/pg_rewind", pg_version_bin(c->engine, c->version));
	pg_node_path(c, n, "data", data);
	pg_node_path(c, n, "conf/postgresql.conf", conf);
	pg_node_run_dir(c, primary, run);
	snprintf(source, sizeof source, "host=%s port=%u user=%s dbname=postgres sslmode=disable passfile=/nonexistent",
	         run, primary->port, PG_SUPER);
	const char *argv[] = {program, "--target-pgdata", data, "--source-server", source, "--config-file",
	                      conf,    "--no-sync",       NULL};
	return pg_process_run(c->user, argv, 600 * 1000);
}

/* The part of a rejoin that may take an hour. Without the cluster's lock: nobody else's work on it, a change of its
 * access before all, waits for one node. */
static int rejoin_copy(struct pg_cluster *c, struct pg_set *s, struct pg_node *primary, struct pg_node *n)
{
	bool again = node_is_marked(c, n) || pg_node_is_standby(c, n);
	unsigned term = s->term;
	char mark[PG_PATH];
	PGconn *conn;
	pg_node_path(c, n, "conf/rebuild", mark);
	pg_node_busy(c, n, true);
	c->copying = true;
	pthread_mutex_unlock(&c->work);
	int r = pg_sql_open_node(c, primary, "postgres", 2000, &conn);
	/* Without it the new timeline is not in the primary's control file yet, and no rewind would seem needed. */
	if (r == 0) {
		r = pg_sql_do(conn, 60000, "checkpoint");
		PQfinish(conn);
	}
	if (r == 0)
		(void)!pg_archive_drain(c, n); /* a fault is in the log; the set needs its node */
	r = r < 0 ? r : pg_file_write(c->user, mark, "", 0, false);
	if (r == 0 && (again || rewind_run(c, primary, n) < 0))
		r = pg_node_copy_from(c, primary, n);
	pthread_mutex_lock(&c->work);
	c->copying = false;
	pthread_cond_broadcast(&c->copied);
	pg_node_busy(c, n, false);
	/* What it has may not be what the primary of a later term has. The mark stays, and it is made anew. */
	return r == 0 && s->term != term ? -EAGAIN : r;
}

/* A former primary follows the new one. A rewind that was cut short cannot be repeated: a mark says so, and the next
 * try copies everything. */
int pg_node_rejoin(struct pg_cluster *c, struct pg_set *s, struct pg_node *n)
{
	struct pg_node *primary = pg_set_primary(c, s);
	char mark[PG_PATH], data[PG_PATH];
	int64_t waiting = 0;
	if (!primary || !primary->pid || primary == n || c->copying)
		return -EAGAIN;
	/* A standby is copied whole: what it has in its memory is not wanted any more. */
	int r = pg_node_halt(c, n, pg_node_is_standby(c, n) ? PG_HALT_KILL : PG_HALT_FAST);
	r = r < 0 ? r : pg_sql_ask_node(c, primary, "select pg_is_in_recovery()::int", &waiting);
	r = r < 0 ? r : waiting ? -EAGAIN : rejoin_copy(c, s, primary, n);
	pg_node_path(c, n, "conf/rebuild", mark);
	pg_node_path(c, n, "data", data);
	if (r == 0)
		r = pg_node_mark_standby(c, n, data);
	if (r == 0 && nolink_unlink(mark) < 0)
		r = -errno;
	if (r == 0)
		r = pg_config_write(c, n, NULL);
	return r;
}

/* --- care */

static void retry_later(struct pg_cluster *c, struct pg_node *n)
{
	unsigned shift = n->failures < 8 ? n->failures : 8;
	pthread_mutex_lock(&c->lock);
	n->failures++;
	n->retry_us = clock_mono_us() + ((int64_t)100000 << shift);
	pthread_mutex_unlock(&c->lock);
}

/* There is nothing to start: it is a converge's to bring the data back. */
static void missing_wait(struct pg_cluster *c, struct pg_node *n)
{
	bool absent = !n->pid && !n->busy && !n->removing && !pg_node_is_made(c, n);
	pthread_mutex_lock(&c->lock);
	bool known = n->absent == absent;
	n->absent = absent;
	if (absent)
		n->retry_us = clock_mono_us() + MISSING_S * 1000000ll;
	pthread_mutex_unlock(&c->lock);
	if (!known && absent)
		pg_cluster_changed(c);
}

/* Whether any ended by itself. */
static bool note_deaths(struct pg_cluster *c)
{
	bool ended = false;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		if (n->busy || !n->pid)
			continue;
		if (pg_node_hangs(c, n)) {
			log_warn("engine: %s hangs; it is killed", n->want.name);
			pg_node_ended(c, n);
			ended = true;
			(void)!pg_node_halt(c, n, PG_HALT_KILL);
		} else if (pg_process_ended(n->pidfd, 0)) {
			log_warn("engine: %s has ended", n->want.name);
			pg_node_ended(c, n);
			ended = true;
			(void)!pg_node_bury(c, n);
		} else if (n->want.outage || c->paused) {
			(void)!pg_node_halt(c, n, PG_HALT_FAST);
		} else { /* noted for its predecessor, whose descriptor had the same number */
			pthread_mutex_lock(&c->lock);
			n->noted = false;
			pthread_mutex_unlock(&c->lock);
		}
	}
	return ended;
}

/* After primaries were cared for, which is what clients wait for. Should this service end before, the next one finds
 * who does not run, and counts it then. */
static void ends_save(struct pg_cluster *c, bool ended)
{
	if (!ended)
		return;
	(void)!pg_state_save(c);
	pg_cluster_changed(c);
}

static void primary_care(struct pg_cluster *c, struct pg_set *s)
{
	struct pg_node *p = pg_set_primary(c, s);
	if (!p || p->busy)
		return;
	if (!p->pid) {
		bool down = p->want.outage || p->failures >= FAILURES_MAX || !pg_node_is_made(c, p);
		if (pg_set_failover(c, s, down) == 0)
			return;
		p = pg_set_primary(c, s);
		missing_wait(c, p);
		if (!pg_node_shall_run(c, p) || !pg_node_is_made(c, p) || clock_mono_us() < p->retry_us)
			return;
		/* The directory may have been moved here from another place. */
		if (!p->pid && (pg_config_write(c, p, NULL) < 0 || pg_node_start(c, p) < 0 ||
		                pg_node_wait_ready(c, p, START_MS, NULL) < 0)) {
			retry_later(c, p);
			return;
		}
	}
	/* A term whose promotion was cut short. */
	if (pg_node_is_standby(c, p) && pg_set_promote(c, s) == 0) {
		pg_set_repoint(c, s);
		pg_admit_hurry(c);
	}
}

/* `wait`: until it takes connections. Otherwise each start counts as one that failed, until the next care finds that it
 * did not: a standby that hung while it started was waited for with the cluster's lock, and nobody's access to the
 * cluster could be changed. */
static int standby_start(struct pg_cluster *c, struct pg_node *n, bool wait)
{
	int r = pg_config_write(c, n, NULL);
	r = r < 0 ? r : pg_node_start(c, n);
	if (r < 0 || !wait)
		return r < 0 ? r : -EINPROGRESS;
	return pg_node_wait_ready(c, n, START_MS, NULL);
}

static void standby_care(struct pg_cluster *c, struct pg_set *s, struct pg_node *n, bool wait)
{
	if (n->pid && n->failures && !n->busy && pg_node_wait_ready(c, n, 0, NULL) == 0)
		pg_admit_hurry(c);
	/* Without streaming for long; or it does not start, and then each fourth try is with a new copy. */
	bool stale = (n->stale_us && clock_mono_us() - n->stale_us > STALE_S * 1000000ll) ||
	             (!n->pid && n->failures % (FAILURES_MAX + 1) == FAILURES_MAX);
	missing_wait(c, n);
	if (!pg_node_shall_run(c, n) || clock_mono_us() < n->retry_us || n->removing || !pg_node_is_made(c, n))
		return;
	if (n->pid && pg_node_is_standby(c, n) && !stale)
		return;
	int r = 0;
	if (!pg_node_is_standby(c, n) || node_is_marked(c, n) || stale) {
		/* Not a standby and running: an old primary, ended at once. */
		if (n->pid && !pg_node_is_standby(c, n))
			(void)!pg_node_halt(c, n, PG_HALT_NOW);
		r = pg_node_rejoin(c, s, n);
		if (!pg_node_shall_run(c, n)) /* any more */
			return;
	}
	r = r < 0 ? r : standby_start(c, n, wait);
	if (r == 0)
		pg_admit_hurry(c);
	if (r < 0)
		retry_later(c, n);
}

static bool is_starting(const struct pg_node *n)
{
	return n->failures && clock_now_ms() - n->started_ms < START_MS;
}

/* Who streams; a standby that has not for long is made anew. */
static void replication_look(struct pg_cluster *c, struct pg_set *s)
{
	struct pg_node *p = pg_set_primary(c, s);
	PGconn *conn;
	PGresult *rows;
	if (!p || !p->pid || p->busy || pg_sql_open_node(c, p, "postgres", 1000, &conn) < 0)
		return;
	if (pg_sql_rows(conn, 1000,
	                "select application_name from pg_stat_replication where state in ('streaming','catchup')",
	                &rows) == 0) {
		for (size_t i = 0; i < c->node_count; i++) {
			struct pg_node *n = c->nodes[i];
			bool streams = n == p || n->set != s->number || !n->pid || n->busy || is_starting(n);
			for (int row = 0; row < PQntuples(rows) && !streams; row++)
				streams = strcmp(pg_value(rows, row, 0), n->want.name) == 0;
			n->stale_us = streams ? 0 : n->stale_us ? n->stale_us : clock_mono_us();
		}
		PQclear(rows);
	}
	PQfinish(conn);
}

void pg_cluster_care(struct pg_cluster *c, bool wait)
{
	if (c->destroying)
		return;
	bool ended = note_deaths(c);
	if (pg_crypt_care(c) < 0 || c->paused || c->upgrading || c->restoring) {
		ends_save(c, ended);
		return;
	}
	for (size_t i = 0; i < c->set_count; i++) {
		primary_care(c, &c->sets[i]);
		if (!set_knows_primary(c, &c->sets[i])) /* a change of primaries was cut short, or may have been */
			pg_set_repoint(c, &c->sets[i]);
	}
	ends_save(c, ended);
	/* Before standbys are judged by it. */
	bool look = clock_mono_us() - c->streamed_us > REPLICATION_S * 1000000ll;
	if (look) {
		c->streamed_us = clock_mono_us();
		for (size_t i = 0; i < c->set_count; i++)
			if (c->node_count > 1)
				replication_look(c, &c->sets[i]);
	}
	for (size_t i = 0; i < c->set_count; i++)
		for (size_t k = 0; k < c->node_count; k++)
			if (c->nodes[k]->set == c->sets[i].number && c->nodes[k] != pg_set_primary(c, &c->sets[i]))
				standby_care(c, &c->sets[i], c->nodes[k], wait);
	pg_admit_care(c);
	for (size_t i = 0; i < c->set_count && look; i++)
		if (clock_mono_us() >= c->sets[i].return_us)
			(void)!pg_set_return(c, &c->sets[i]);
}

int pg_cluster_wait_streaming(struct pg_cluster *c, struct pg_set *s, int timeout_ms)
{
	struct pg_node *p = pg_set_primary(c, s);
	PGconn *conn;
	int64_t want = 0, have = -1, end = pg_mono_ms() + timeout_ms;
	for (size_t i = 0; i < c->node_count; i++)
		want += c->nodes[i] != p && c->nodes[i]->set == s->number && c->nodes[i]->pid != 0;
	if (want == 0)
		return 0;
	int r = p && p->pid ? pg_sql_open_node(c, p, "postgres", 2000, &conn) : -ESRCH;
	if (r < 0)
		return r;
	while (r == 0 && have < want && pg_mono_ms() < end) {
		r = pg_sql_int(conn, 2000,
		               "select count(*) from pg_stat_replication where state = 'streaming' and "
		               "application_name <> 'pg_basebackup'",
		               &have);
		if (r == 0 && have < want)
			pg_sleep_ms(10);
	}
	PQfinish(conn);
	return r < 0 ? r : have < want ? -ETIMEDOUT : 0;
}
