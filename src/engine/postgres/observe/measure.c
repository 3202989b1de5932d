/* Samples of all servers of this host. Each server has a connection that is kept for it; all are asked at once, and one
 * poll waits for their answers, so that a hung server delays nobody and is left out when the time is over.
 *
 * Once a minute the databases are looked into as well; measure_databases.c says which. Such a look has a connection of
 * its own, which ends with it: one that stayed would be in the way of DROP DATABASE. The kept connection, which is to
 * "postgres", looks into that one itself: a session that begins costs many times what it asks. But a session keeps what
 * it has learnt of each table, so that this is not for one with many. Those for which no time is left come next minute.
 * The times of tables come from the node module through the kept connection, their names with such a look:
 * collections.c. */
#include "engine/postgres/observe/measure.h"

#include "base/clock.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/collections.h"
#include "engine/postgres/observe/measure_databases.h"
#include "engine/postgres/observe/measure_host.h"
#include "engine/postgres/observe/measure_lag.h"
#include "engine/postgres/observe/measure_last.h"
#include "engine/postgres/observe/measure_round.h"

#include <math.h>

#define TICK_MS 4000
#define TRACK_MS 500 /* for the question of each second */

/* A primary is behind nobody. What is told here is what alerts go by, and what the service's own metrics tell. */
static void server_lag(struct engine *e, const struct pg_measures *m, struct pg_measured *s)
{
	const struct pg_positions *set = pg_sets_find(&m->sets, s->cluster_id, s->set);
	struct pg_lag lag = {s->leads ? 0 : (double)NAN, s->leads ? 0 : (double)NAN};
	if (!s->leads && set)
		lag = pg_positions_lag(set, s->inputs[PROCESS_POSITION], s->asked_us);
	s->inputs[PROCESS_LAG_MS] = lag.ms;
	struct pg_cluster *c = isnan(lag.ms) ? NULL : pg_cluster_find(e, s->cluster_id);
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	struct pg_node *n = pg_cluster_node(c, s->node);
	if (n) {
		n->lag_bytes = (uint64_t)lag.bytes;
		n->lag_seconds = lag.ms / 1000;
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
}

static void server_give(struct pg_measured *s, const double *host, struct pg_disk_seen *disk,
                        const struct engine_sampling *to)
{
	if (pg_measure_disk(s->data, disk) == 0) {
		struct engine_sample sample = {s->cluster_id, s->node, MEASURE_DISK, disk->name,
		                               disk->mono_us, 0,       disk->inputs};
		to->take(to->ctx, &sample);
	}
	if (s->step != STEP_IDLE)
		pg_round_late(s);
	double own[DISK_INPUTS];
	struct engine_sample of_node = {s->cluster_id, s->node, MEASURE_DISK, DISK_OF_NODE, s->asked_us, s->epoch, own};
	pg_measure_own_disk(disk, s->disk_used, s->disk_limit, s->answered ? s->inputs : NULL, own);
	of_node.mono_us = s->answered ? s->asked_us : clock_mono_us();
	to->take(to->ctx, &of_node);
	if (!s->answered)
		return;
	double reads = s->inputs[PROCESS_SCANS];
	if (s->databases.listed)
		pg_databases_add_up(&s->databases, s->inputs);
	if (s->counts)
		s->inputs[PROCESS_SCANS] = reads;
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		if (!isnan(host[i]))
			s->inputs[i] = host[i];
	/* Without a bound, those of the host. */
	s->inputs[PROCESS_ALLOWANCE] = isnan(s->allowance) ? s->inputs[PROCESS_CORES] : s->allowance;
	struct engine_sample sample = {s->cluster_id, s->node, MEASURE_PROCESS, "", s->asked_us, s->epoch, s->inputs};
	pg_last_give(&s->last, &sample, to);
	to->take(to->ctx, &sample);
	if (s->databases.listed)
		pg_databases_give(&s->databases, &sample, to);
	pg_tables_give(s->tables, &sample, s->leads, to);
	pg_tables_forget(s->tables);
}

static int pg_sample(struct engine *e, const struct engine_sampling *to)
{
	struct pg_measures *m = e->measures;
	struct pg_disk_seen disk = {.is = false};
	double host[PROCESS_INPUTS];
	if (!m)
		m = e->measures = must_calloc(1, sizeof *m);
	m->activities = e->activities;
	pg_measured_find(e, m);
	for (size_t i = 0; i < PROCESS_INPUTS; i++)
		host[i] = (double)NAN;
	pg_measure_host(host);
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there)
			pg_round_begin(m->list[i], to);
	pg_round_wait(m, to->whole, to->whole ? PG_ROUND_WHOLE_MS : TICK_MS);
	/* Standbys are compared with what the primary has told in the same round. */
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there && m->list[i]->answered)
			server_lag(e, m, m->list[i]);
	for (size_t i = 0; i < m->count; i++)
		if (m->list[i]->there)
			server_give(m->list[i], host, &disk, to);
	pg_measured_drop(e, m);
	pg_measured_sets_drop(m);
	pg_activities_drop(e->activities, clock_now_ms());
	return 0;
}

/* On kept connections alone: where there is none, the next sample begins one. Late answers are waited for again in the
 * next second; a sample begins another connection where one is still owed. */
static void pg_track(struct engine *e)
{
	struct pg_measures *m = e->measures;
	for (size_t i = 0; m && i < m->count; i++) {
		struct pg_measured *s = m->list[i];
		if (s->followed && s->step == STEP_IDLE && s->conn && PQstatus(s->conn) == CONNECTION_OK)
			pg_round_track(s);
	}
	if (m)
		pg_round_wait(m, false, TRACK_MS);
}

const struct engine_sampling_ops pg_sampling = {.sample = pg_sample, .track = pg_track};
