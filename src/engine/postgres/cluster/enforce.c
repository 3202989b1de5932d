/* Bringing access to running servers: the files that access.c has written are read again, who is out is put out, and a
 * standby that lags behind is shut.
 *
 * A standby whose processes were stopped, or whose disk stood still, kept every revocation of its cluster from being
 * confirmed: DELETE of a private endpoint was answered with 503 for as long as it hung. So all standbys are told at
 * once, and one that does not take it in time is ended, with its sessions. That is as good as telling it: the
 * supervision starts it again, servers start shut, and are opened when they have what is in force. A primary is not
 * ended here, because that would be a failover: the supervision decides whether it hangs. */
#include "engine/postgres/cluster/enforce.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/logins.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/grants_sql.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#define REPLAY_MS 2000  /* that standbys have to replay what their primary has */
#define STANDBY_MS 4000 /* that they have to take what it has taken, before they are ended */
#define REACH_MS 3000

/* The view reads the files as they lie there, before the server does: a fault keeps the old rules in force. */
static int files_verify(PGconn *conn, const char **ret_why)
{
	PGresult *rows;
	int r = pg_sql_rows(conn, 10000,
	                    "select line_number, error from pg_hba_file_rules where error is not null union all "
	                    "select line_number, error from pg_ident_file_mappings where error is not null limit 1",
	                    &rows);
	if (r < 0)
		return r;
	if (PQntuples(rows) > 0) {
		pg_why_set(ret_why, "access rules: line %s: %s", pg_value(rows, 0, 0), pg_value(rows, 0, 1));
		r = -EINVAL;
	}
	PQclear(rows);
	return r;
}

/* Sessions from addresses that are not listed any more, and of users that are gone, go on until told not to. And who
 * has become a group with SET ROLE stays it in that session, when it does not belong to the group any more. Sessions of
 * people by the socket (observe/ask.c) have no address to look at: they end. */
static int sessions_end(PGconn *conn, const struct engine_access *access)
{
	struct buf b = {0};
	buf_z(&b, "select count(pg_terminate_backend(pid)) from pg_stat_activity where " PG_SQL_OF_PEOPLE
	          " or client_addr is not null and (not "
	          "exists (select from pg_roles r where r.oid = usesysid and r.rolcanlogin) or not (client_addr <<= "
	          "any('{");
	for (size_t k = 0; k < access->network_count; k++) {
		if (k)
			buf_c(&b, ',');
		pg_access_network(&b, &access->networks[k]);
	}
	buf_z(&b, "}'::inet[])) or usename <> all(array[");
	for (size_t i = 0; i < access->user_count; i++) {
		char *name = PQescapeLiteral(conn, access->users[i].name, strlen(access->users[i].name));
		buf_printf(&b, "%s%s", i ? "," : "", name ? name : "''");
		PQfreemem(name);
	}
	buf_printf(&b, "]::name[]) or exists (select from (%s) l where pg_has_role(usesysid, l.oid, 'member')))",
	           pg_grants_sql_lost_roles);
	buf_c(&b, 0);
	int r = pg_sql_do(conn, 5000, b.p);
	buf_free(&b);
	return r;
}

/* What one node is told. */
struct enforcement {
	struct pg_cluster *c;
	struct pg_node *n;
	int64_t replayed; /* until when it may lag behind its primary */
	pthread_t thread;
	bool running;
	_Atomic bool done;
	bool silent; /* its server may not have taken it */
	int r;
	char why[600];
};

/* `old`: its HBA file as it was, for one that the server cannot read. */
static int server_apply(const struct enforcement *t, const char *old, const char **ret_why)
{
	struct pg_cluster *c = t->c;
	struct pg_node *n = t->n;
	PGconn *conn;
	char path[PG_PATH];
	int r = pg_node_reach(c, n, &conn);
	if (r < 0)
		return r;
	if (!n->admits)
		r = files_verify(conn, ret_why);
	pg_node_path(c, n, "conf/pg_hba.conf", path);
	if (r == -EINVAL && old)
		(void)!pg_file_write(c->user, path, old, strlen(old), true);
	if (r == 0 && !n->admits) {
		r = pg_node_reload(c, n);
		n->admits = r == 0;
	}
	/* A standby whose replay is held up, by a reader there for example, is no way in for who is out. */
	if (r == 0 && !n->shut && !pg_admit_has_caught_up(c, n, (int)(t->replayed - pg_mono_ms()))) {
		log_warn("engine: %s is behind; it takes no clients until it has caught up", n->want.name);
		r = pg_admit_shut(c, n);
	}
	if (r == 0) {
		pg_logins_sweep(n);
		r = sessions_end(conn, c->access);
	}
	PQfinish(conn);
	return r;
}

/* Whether a server that was started shut takes no connections at all: it will be told before it is opened. */
static bool is_starting(const struct pg_cluster *c, const struct pg_node *n)
{
	PGconn *conn;
	if (pg_sql_open_node(c, n, "postgres", 500, &conn) < 0)
		return true;
	PQfinish(conn);
	return false;
}

/* The files may be those of an attempt that was cut short: what counts is what the server has taken. */
static int node_apply(struct enforcement *t, const char **ret_why)
{
	struct pg_cluster *c = t->c;
	struct pg_node *n = t->n;
	char path[PG_PATH], *old = NULL;
	bool changed = false, nobody = n->shut && n->admits;
	pg_node_path(c, n, "conf/pg_hba.conf", path);
	if (pg_file_read(path, PG_HBA_MAX, &old) < 0)
		old = NULL;
	int r = pg_access_write(c, n, c->access, &changed);
	if (r == 0)
		r = pg_tls_ensure(c, n, &changed);
	bool runs = n->pid && !pg_process_ended(n->pidfd, 0);
	/* One that starts is shut until pg_admit_all(), which has it read all files again. */
	bool starts = runs && nobody && is_starting(c, n);
	n->admits = n->admits && (!changed || starts);
	if (r == 0 && runs && !starts) {
		r = server_apply(t, old, ret_why);
		t->silent = r < 0 && r != -EINVAL;
	}
	free(old);
	return r;
}

static void *enforcement_run(void *arg)
{
	struct enforcement *t = arg;
	const char *why = NULL;
	t->r = node_apply(t, &why);
	if (why)
		snprintf(t->why, sizeof t->why, "%s", why);
	t->done = true;
	return NULL;
}

/* Ends what the thread waits for; what is left is taken away when the thread has ended, which may still use it. */
static void enforcement_cut(const struct enforcement *t)
{
	char data[PG_PATH];
	pg_node_path(t->c, t->n, "data", data);
	pg_process_signal(t->n->pidfd, SIGKILL);
	if (pg_process_ended(t->n->pidfd, 1000))
		(void)!pg_process_sweep(t->c->engine, data);
}

static void enforcement_wait(struct enforcement *t, int64_t end)
{
	while (!t->done && pg_mono_ms() < end && !pg_node_hangs(t->c, t->n))
		pg_sleep_ms(2);
	if (!t->done && t->n->pid)
		enforcement_cut(t);
}

/* Proven to be dead it lets nobody in. */
static int silent_end(struct pg_cluster *c, struct pg_node *n)
{
	log_warn("engine: %s does not take what was taken away; it is ended", n->want.name);
	pg_node_ended(c, n);
	int r = pg_node_halt(c, n, PG_HALT_KILL);
	(void)!pg_state_save(c); /* the next one that finds it so counts it then */
	pg_cluster_changed(c);
	return r;
}

int pg_nodes_enforce(struct pg_cluster *c, bool leading, bool bounded, const char **ret_why)
{
	struct enforcement *all = must_calloc(c->node_count + 1, sizeof *all);
	int64_t now = pg_mono_ms();
	size_t count = 0;
	int fault = 0;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		const struct pg_set *s = pg_cluster_set(c, n->set);
		if (n->removing || !pg_node_is_made(c, n) || (s && pg_set_primary(c, s) == n) != leading)
			continue;
		struct enforcement *t = &all[count++];
		t->c = c;
		t->n = n;
		t->replayed = now + REPLAY_MS;
		t->running = pthread_create(&t->thread, NULL, enforcement_run, t) == 0;
		if (!t->running)
			enforcement_run(t);
	}
	for (size_t i = 0; i < count; i++) {
		struct enforcement *t = &all[i];
		if (bounded)
			enforcement_wait(t, now + STANDBY_MS);
		if (t->running)
			pthread_join(t->thread, NULL);
		if (bounded && t->silent)
			t->r = silent_end(c, t->n);
		if (t->r < 0 && *t->why)
			pg_why_set(ret_why, "%s", t->why);
		fault = t->r < 0 ? t->r : fault;
	}
	free(all);
	return fault;
}
