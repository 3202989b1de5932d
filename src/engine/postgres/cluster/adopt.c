/* What runs and lies here when the service starts is found again, from state.json and postmaster.pid. Nothing is
 * asked of the servers, so that sixty of them are adopted in moments. */
#include "engine/postgres/cluster/adopt.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/identity.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/quota.h"
#include "engine/postgres/cluster/restoring.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

/* What runs, found again. */
static void cluster_adopt(struct pg_cluster *c)
{
	unsigned running = 0;
	pg_identities_learn(c); /* of a version that did not note them */
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		char data[PG_PATH];
		pg_node_path(c, n, "data", data);
		if (pg_process_adopt(data, &n->pid, &n->pidfd, &n->started_ms) == 0)
			running++;
		/* For the job that was making it. One that was made before is no such: another may have to lead. */
		n->busy = !pg_node_is_made(c, n) && !pg_node_was_made(c, n);
		n->shut = pg_admit_is_shut(c, n);
		n->probe_us = clock_mono_us();
		if (!n->pid && pg_node_shall_run(c, n) && !n->removing)
			pg_node_ended(c, n); /* while nobody looked */
	}
	log_debug("engine: %s: %u of %zu nodes run", c->id, running, c->node_count);
}

int pg_cluster_recall(struct pg_cluster *c, const struct engine_access *access, const char **ret_why)
{
	if (c->node_count > 0)
		return 0;
	struct pg_cluster *found = pg_cluster_new(c->engine, c->id);
	int r = pg_state_load(found);
	/* One that is there and cannot be read is none that was lost: nothing is made anew beside it. */
	if (r < 0 && r != -EINVAL && !pg_is_absence(-r)) {
		pg_why_set(ret_why, "%s/%s/state.json cannot be read: %s", c->engine->dir, c->id, strerror(-r));
		pg_cluster_free(found);
		return r;
	}
	if (r == 0) {
		pg_crypt_recall(found);
		cluster_adopt(found);
		if (!pg_crypt_is_shut(found))
			pg_restore_recall(found);
		pthread_mutex_lock(&c->lock);
		pg_state_move(c, found);
		pthread_mutex_unlock(&c->lock);
		log_info("engine: %s is there again", c->id);
	}
	pg_cluster_free(found);
	/* Its files may name another place, and know users of another time. */
	for (size_t i = 0; i < c->node_count; i++)
		if (pg_node_prepare(c, c->nodes[i]) < 0 || pg_access_write(c, c->nodes[i], access, NULL) < 0)
			log_warn("engine: %s: its directory cannot be prepared", c->nodes[i]->want.name);
	return 0;
}

void pg_clusters_adopt(struct engine *e)
{
	DIR *d = opendir(e->dir);
	unsigned count = 0;
	int64_t began = clock_mono_us();
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!id_is_valid(str_of(entry->d_name)))
			continue;
		struct pg_cluster *c = pg_cluster_new(e, entry->d_name);
		int r = pg_state_load(c);
		if (r < 0) {
			if (r != -EINVAL && !pg_is_absence(-r)) /* the job that looks for it says so, too */
				log_error("engine: %s/%s/state.json cannot be read: %s", e->dir, c->id, strerror(-r));
			pg_cluster_free(c);
			continue;
		}
		pg_crypt_recall(c);
		cluster_adopt(c);
		if (!pg_crypt_is_shut(c))
			pg_restore_recall(c);
		pg_quota_recall(c);
		/* A promotion that was cut short is gone on with at once. */
		c->looked_us = c->streamed_us = clock_mono_us();
		for (size_t i = 0; i < c->set_count; i++) {
			struct pg_node *p = pg_set_primary(c, &c->sets[i]);
			if (p && p->pid && pg_node_is_standby(c, p))
				c->looked_us = 0;
		}
		c->next = e->clusters;
		e->clusters = c;
		count++;
	}
	if (d)
		closedir(d);
	if (count)
		log_info("engine: %u clusters adopted in %d us", count, (int)(clock_mono_us() - began));
}
