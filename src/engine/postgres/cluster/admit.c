/* Whether a node takes clients. A server that starts knows the users as they were when it last ran: one that was
 * stopped while a password was changed, or is a standby that has yet to replay that a user is gone, would let in who is
 * out. So servers start shut, with an HBA file that admits the service and the other nodes alone, and are opened when
 * they have what was last in force. A primary has it, unless its cluster was not open; a standby once it has replayed
 * what its primary has. */
#include "engine/postgres/cluster/admit.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/logins.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* --- catching up */

bool pg_admit_has_caught_up(struct pg_cluster *c, struct pg_node *n, int timeout_ms)
{
	struct pg_set *s = pg_cluster_set(c, n->set);
	struct pg_node *p = s ? pg_set_primary(c, s) : NULL;
	int64_t want, have = 0, end = pg_mono_ms() + timeout_ms;
	PGconn *conn;
	if (p == n)
		return true;
	if (!p || !p->pid || pg_node_reach(c, p, &conn) < 0)
		return false;
	int asked = pg_sql_int(conn, 2000, "select (pg_current_wal_flush_lsn() - '0/0')::bigint", &want);
	PQfinish(conn);
	if (asked < 0 || pg_sql_open_node(c, n, "postgres", 2000, &conn) < 0)
		return false;
	/* One that does not stream may have a log of its own, from before a failover. */
	for (int r = 0; r == 0; pg_sleep_ms(5)) {
		r = pg_sql_int(conn, 2000,
		               "select coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint * (select count(*) from "
		               "pg_stat_wal_receiver where status = 'streaming')",
		               &have);
		if (r < 0 || have >= want || pg_mono_ms() >= end)
			break;
	}
	PQfinish(conn);
	return have >= want;
}

/* --- shutting and opening */

static int clients_end(struct pg_cluster *c, struct pg_node *n)
{
	PGconn *conn;
	int r = pg_sql_open_node(c, n, "postgres", 3000, &conn);
	if (r < 0)
		return r;
	r = pg_sql_do(conn, 5000,
	              "select count(pg_terminate_backend(pid)) from pg_stat_activity where client_addr is not null "
	              "or " PG_SQL_OF_PEOPLE);
	PQfinish(conn);
	return r;
}

int pg_admit_shut(struct pg_cluster *c, struct pg_node *n)
{
	int r = pg_admit_set(c, n, true);
	if (r < 0 || !n->pid)
		return r;
	r = pg_node_reload(c, n);
	if (r == 0) {
		pg_logins_sweep(n);
		r = clients_end(c, n);
	}
	n->admits = r == 0; /* not while it may have clients: who asks next must not take it for empty */
	return r;
}

static int node_open(struct pg_cluster *c, struct pg_node *n)
{
	int r = pg_admit_set(c, n, false);
	r = r < 0 ? r : pg_node_reload(c, n);
	n->admits = r == 0;
	if (r < 0) { /* marked as shut again, so that the next care tries once more */
		log_warn("engine: %s is not open to clients yet: %s", n->want.name, strerror(-r));
		(void)!pg_admit_set(c, n, true);
	}
	return r;
}

/* Primaries first, because standbys are held against them; with a negative time primaries alone. */
void pg_admit_all(struct pg_cluster *c, int timeout_ms)
{
	int64_t end = pg_mono_ms() + timeout_ms;
	for (int pass = 0; pass < (timeout_ms < 0 ? 1 : 2) && c->open && !c->paused; pass++)
		for (size_t i = 0; i < c->node_count; i++) {
			struct pg_node *n = c->nodes[i];
			int64_t left = end - pg_mono_ms();
			if (!n->shut || !n->pid || n->busy || n->removing || pg_node_leads(c, n) != (pass == 0))
				continue;
			if (pg_node_is_standby(c, n) == (pass == 0))
				continue; /* on its way to become what it shall be */
			if (pass == 0 || pg_admit_has_caught_up(c, n, left > 0 ? (int)left : 0))
				(void)!node_open(c, n);
		}
}

int pg_admit_promise(struct pg_cluster *c, bool open)
{
	if (c->open == open)
		return 0;
	pthread_mutex_lock(&c->lock);
	c->open = open;
	pthread_mutex_unlock(&c->lock);
	int r = pg_state_save(c);
	if (r < 0 && open) {
		pthread_mutex_lock(&c->lock);
		c->open = false;
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}
