/* From when on a statement is slow, and is written into the log with its plan by auto_explain. Fixed, it is 100 ms.
 * Managed, it follows the load, so that what stands out is written down and not everything: twenty times what a
 * transaction takes on the average, looked at every five minutes, between 100 ms and 5 s. A change is a reload, and
 * small ones are left: a threshold that moves all the time tells nothing.
 *
 * Conditions are sampled by pg_qualstats without their constants: these are users' data, and a statement with another
 * constant each time would fill its table. */
#include "engine/postgres/cluster/threshold.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/work.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>

#define LOOK_MS 300000
#define ASK_MS 2000
#define XACTS_LEAST 50 /* fewer say nothing of the load */

void pg_threshold_configure(struct buf *b, const struct pg_cluster *c)
{
	unsigned managed = c->slow_ms ? c->slow_ms : ENGINE_SLOW_MANAGED_MS;
	buf_printf(b,
	           "auto_explain.log_min_duration = %ums\nauto_explain.log_analyze = on\n"
	           "auto_explain.log_timing = off\nauto_explain.log_verbose = on\nauto_explain.log_format = 'json'\n"
	           "auto_explain.log_nested_statements = off\nauto_explain.sample_rate = 1\n"
	           "pg_qualstats.enabled = on\npg_qualstats.sample_rate = %s\npg_qualstats.track_constants = off\n"
	           "pg_qualstats.track_pg_catalog = off\npg_qualstats.resolve_oids = off\n",
	           c->slow_fixed ? ENGINE_SLOW_FIXED_MS : managed, PG_QUAL_SAMPLES);
}

/* What its primaries have done in all. False: one does not answer. */
static bool load_ask(struct pg_cluster *c, double *ret_active, double *ret_xacts)
{
	static const char ask[] = "select sum(active_time)::float8, sum(xact_commit + xact_rollback)::float8 from "
	                          "pg_stat_database where datname is not null";
	*ret_active = *ret_xacts = 0;
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		PGconn *conn;
		PGresult *rows = NULL;
		if (!p || !p->pid || p->busy || pg_sql_open_node(c, p, "postgres", ASK_MS, &conn) < 0)
			return false;
		bool done = pg_sql_rows(conn, ASK_MS, ask, &rows) == 0;
		if (done) {
			*ret_active += strtod(pg_value(rows, 0, 0), NULL);
			*ret_xacts += strtod(pg_value(rows, 0, 1), NULL);
			PQclear(rows);
		}
		PQfinish(conn);
		if (!done)
			return false;
	}
	return c->set_count > 0;
}

static int nodes_tell(struct pg_cluster *c)
{
	int r = pg_state_save(c);
	for (size_t i = 0; i < c->node_count && r == 0; i++) {
		struct pg_node *n = c->nodes[i];
		if (n->removing || n->busy || !pg_node_is_made(c, n))
			continue;
		bool changed = false;
		r = pg_config_write(c, n, &changed);
		if (changed)
			n->loaded = false;
		if (r == 0 && n->pid && !n->loaded) {
			r = pg_node_reload(c, n);
			n->loaded = r == 0;
		}
	}
	return r;
}

/* With cluster.work held. */
static void cluster_manage(struct pg_cluster *c)
{
	double active, xacts;
	if (c->gone || c->destroying || c->paused || c->upgrading || c->restoring || c->slow_fixed ||
	    !load_ask(c, &active, &xacts))
		return;
	double more_active = active - c->slow_active, more_xacts = xacts - c->slow_xacts;
	bool known = c->slow_xacts > 0 && more_active >= 0 && more_xacts >= XACTS_LEAST;
	unsigned now = c->slow_ms ? c->slow_ms : ENGINE_SLOW_MANAGED_MS;
	unsigned wanted = known ? engine_slow_threshold(more_active / more_xacts, now) : now;
	c->slow_active = active;
	c->slow_xacts = xacts;
	if (wanted == now)
		return;
	pthread_mutex_lock(&c->lock);
	c->slow_ms = wanted;
	pthread_mutex_unlock(&c->lock);
	int r = nodes_tell(c);
	if (r < 0)
		log_warn("engine: %s: the threshold of slow statements cannot be brought to its servers now: %s", c->id,
		         strerror(-r));
}

static void *threshold_look(void *arg)
{
	struct engine *e = arg;
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	for (size_t i = 0; i < count; i++) {
		/* One that is being changed now is looked at next time. */
		if (pthread_mutex_trylock(&all[i]->work) == 0) {
			cluster_manage(all[i]);
			pthread_mutex_unlock(&all[i]->work);
		}
		pg_cluster_put(all[i]);
	}
	free(all);
	pthread_mutex_lock(&e->lock);
	e->threshold_due_ms = pg_mono_ms() + LOOK_MS;
	e->threshold_looks = false;
	pthread_mutex_unlock(&e->lock);
	pg_engine_work_done(e);
	return NULL;
}

void pg_threshold_tick(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	if (!e->threshold_due_ms)
		e->threshold_due_ms = pg_mono_ms() + LOOK_MS;
	bool due = !e->threshold_looks && pg_mono_ms() >= e->threshold_due_ms;
	e->threshold_looks = e->threshold_looks || due;
	pthread_mutex_unlock(&e->lock);
	if (due && pg_engine_work(e, threshold_look, e) < 0) {
		pthread_mutex_lock(&e->lock);
		e->threshold_looks = false;
		pthread_mutex_unlock(&e->lock);
	}
}
