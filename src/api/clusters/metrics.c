/* Clusters by state and jobs by kind are counted in the store, which takes time when there are many: the main thread
 * does it, only when something was written, and rests fifty times as long as it took. The page shows the last counts,
 * so that who asks for it, without credentials, costs the store nothing. Nodes come from the engine's memory. No label
 * names a cluster or a project: the page stays small, and tells strangers nothing. */
#include "api/clusters/metrics.h"

#include "api/clusters/cluster.h"
#include "api/clusters/disk.h"
#include "api/clusters/orphans.h"
#include "api/clusters/store.h"
#include "base/clock.h"
#include "hosts/hosts.h"
#include "jobs/figures.h"
#include "trail/metrics.h"

#include <pthread.h>

#define REST 50

static const char *const states[] = {"IDLE", "CREATING", "UPDATING", "DELETING", "REPAIRING"};
#define STATES (sizeof states / sizeof *states)

struct figures {
	unsigned long long clusters[STATES];
};

static struct figures shown;
static pthread_mutex_t shown_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- counting */

static int cluster_count(struct tx *tx, void *ctx, const struct doc *cluster)
{
	static const char key[] = "\"stateName\":\"";
	struct figures *f = ctx;
	const char *at = memmem(cluster->body.p, cluster->body.n, key, strlen(key));
	size_t left = at ? cluster->body.n - (size_t)(at - cluster->body.p) - strlen(key) : 0;
	for (size_t i = 0; at && i < STATES; i++) {
		size_t n = strlen(states[i]);
		if (left > n && memcmp(at + strlen(key), states[i], n) == 0 && at[strlen(key) + n] == '"')
			f->clusters[i]++;
	}
	return 0;
}

void cluster_metrics_refresh(struct tx *reader)
{
	static uint64_t version;
	static int64_t next_us;
	static bool counted;
	int64_t began = clock_mono_us();
	uint64_t now = store_data_version(reader);
	if (began < next_us || (counted && now == version))
		return;
	struct figures f = {0};
	tx_begin_read(reader);
	int r = clusters_walk(reader, cluster_count, &f);
	if (r == 0)
		r = jobs_figures_count(reader);
	tx_end_read(reader);
	tx_rest(reader);
	if (r == 0) {
		pthread_mutex_lock(&shown_lock);
		shown = f;
		pthread_mutex_unlock(&shown_lock);
		version = now;
		counted = true;
	}
	int64_t ended = clock_mono_us();
	next_us = ended + (ended - began) * REST;
}

/* --- showing */

static void clusters_write(struct buf *b, const struct figures *f)
{
	metrics_head(b, "steward_clusters", "gauge", "Clusters in the store, flex ones included, by state.");
	for (size_t i = 0; i < STATES; i++)
		buf_printf(b, "steward_clusters{state=\"%s\"} %llu\n", states[i], f->clusters[i]);
}

static const char *role_of(size_t kind, size_t leads)
{
	return kind == NODE_ROUTER ? "router" : leads ? "primary" : kind == NODE_ELECTABLE ? "standby" : "reader";
}

/* All of them, also those that are 0: a series that comes and goes makes bad alerts. */
static void nodes_write(struct buf *b, const struct engine_stats *t)
{
	static const char *const names[NODE_STATES] = {"absent", "starting", "running", "stopped", "failed"};
	static const char *const roles[] = {"primary", "standby", "reader", "router"};
	metrics_head(b, "steward_nodes", "gauge", "Nodes on this host by role and state.");
	for (size_t r = 0; r < sizeof roles / sizeof *roles; r++)
		for (size_t s = NODE_STARTING; s < NODE_STATES; s++) {
			unsigned count = 0;
			for (size_t k = 0; k < NODE_KINDS; k++)
				for (size_t leads = 0; leads < 2; leads++)
					count += strcmp(role_of(k, leads), roles[r]) == 0 ? t->nodes[k][leads][s] : 0;
			buf_printf(b, "steward_nodes{role=\"%s\",state=\"%s\"} %u\n", roles[r], names[s], count);
		}
}

static void engine_write(struct buf *b, const struct engine_stats *t)
{
	nodes_write(b, t);
	metrics_number(b, "steward_standbys_running", "gauge", "Nodes on this host that run and follow a primary.",
	               t->standbys);
	metrics_number(b, "steward_standbys_streaming", "gauge",
	               "Of them, those that receive what their primary writes.", t->streaming);
	metrics_number(b, "steward_replication_lag_bytes", "gauge",
	               "What the standby that is furthest behind has not replayed, as measured last.", t->lag_bytes);
	metrics_head(b, "steward_replication_lag_seconds", "gauge",
	             "How long ago the primary was where the standby that is furthest behind is, as measured last.");
	buf_printf(b, "steward_replication_lag_seconds %.6f\n", t->lag_seconds);
	metrics_head(b, "steward_failovers_total", "counter",
	             "Changes of a primary, because the old one ended or as planned.");
	buf_printf(b,
	           "steward_failovers_total{kind=\"failover\"} %llu\nsteward_failovers_total{kind=\"planned\"} %llu\n",
	           (unsigned long long)t->failovers, (unsigned long long)t->switchovers);
	metrics_number(b, "steward_node_ends_total", "counter",
	               "Nodes that ended by themselves, or hung and were ended.", t->ends);
}

/* Where the store is not shared there is nothing to say. */
static void hosts_write(struct buf *b)
{
	struct hosts_stats t;
	if (!hosts_shared())
		return;
	hosts_stats(&t);
	metrics_head(b, "steward_hosts", "gauge", "Hosts that share the store, as this one sees them.");
	buf_printf(b, "steward_hosts{state=\"alive\"} %llu\nsteward_hosts{state=\"away\"} %llu\n",
	           (unsigned long long)t.alive, (unsigned long long)t.away);
	metrics_head(b, "steward_host_calls_total", "counter",
	             "Calls and questions that were passed on to other hosts.");
	buf_printf(b,
	           "steward_host_calls_total{result=\"answered\"} %llu\nsteward_host_calls_total{result=\"failed\"} "
	           "%llu\n",
	           (unsigned long long)t.answered, (unsigned long long)t.failed);
}

void cluster_metrics_write(struct buf *b, struct service *s)
{
	struct engine_stats *t = must_calloc(1, sizeof *t);
	pthread_mutex_lock(&shown_lock);
	struct figures f = shown;
	pthread_mutex_unlock(&shown_lock);
	clusters_write(b, &f);
	if (s->engine_state && s->engine_ops->statistics) {
		s->engine_ops->statistics->host(s->engine_state, t);
		engine_write(b, t);
	}
	jobs_figures_write(b, s->jobs);
	hosts_write(b);
	disk_metrics(b, s);
	if (s->engine_ops && s->engine_ops->core->on_host)
		orphans_metrics(b);
	free(t);
}
