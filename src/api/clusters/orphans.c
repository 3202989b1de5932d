/* Clusters whose databases are on this host and that the store does not know: after an older copy of the store was put
 * in place, those that were made since. Their servers run on and let their users in, but no call shows them. Each look
 * notes them in the store, in the log and as a metric. Nothing is done with them before the operator says so (`steward
 * orphans end`): they may be all that is left of somebody's data.
 *
 * One that was found is a document (kind "orphan", id = the cluster's, parent = the host's):
 *
 *   {"name", "groupId", "nodes": 3, "running": 3, "end": true}     "end": the operator's word */
#include "api/clusters/orphans.h"

#include "api/clusters/cluster.h"
#include "api/clusters/jobs.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/log.h"
#include "hosts/hosts.h"
#include "trail/metrics.h"

#include <errno.h>
#include <stdatomic.h>

static atomic_size_t found_here;

void orphans_metrics(struct buf *b)
{
	metrics_head(b, "steward_clusters_orphaned", "gauge",
	             "Clusters whose databases are on this host and that the store does not know.");
	buf_printf(b, "steward_clusters_orphaned %zu\n", atomic_load(&found_here));
}

/* --- looking */

struct look {
	struct arena *arena;
	struct engine_known *known; /* of them, those that the store does not know */
	size_t count;
	struct str *gone; /* documents of what is not there any more */
	size_t gone_count, gone_cap;
};

static const struct engine_known *known_find(const struct look *l, struct str id)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_is(id, l->known[i].id))
			return &l->known[i];
	return NULL;
}

/* In the write, where no cluster can come or go meanwhile. */
static int unknown_keep(struct tx *tx, struct look *l)
{
	size_t kept = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < l->count; i++) {
		struct cluster cluster;
		r = cluster_get(tx, l->arena, str_of(l->known[i].id), &cluster);
		if (r == -ENOENT)
			l->known[kept++] = l->known[i];
		r = r == -ENOENT ? 0 : r;
	}
	l->count = kept;
	return r;
}

static int gone_collect(struct tx *tx, void *ctx, const struct doc *d)
{
	struct look *l = ctx;
	if (!str_eq(d->parent, hosts_self()) || known_find(l, d->id))
		return 0;
	ARENA_FIT(l->arena, l->gone, l->gone_count, l->gone_cap);
	l->gone[l->gone_count++] = arena_dup(l->arena, d->id);
	return 0;
}

static int orphan_note(struct tx *tx, struct arena *a, const struct engine_known *k)
{
	struct doc d;
	int r = tx_get(tx, a, ORPHAN_KIND, str_of(k->id), &d);
	if (r != -ENOENT)
		return r;
	log_warn("cluster %s (%s of project %s): its databases are here, %u of %u nodes run, and the store does not "
	         "know "
	         "it: steward orphans --help",
	         k->id, k->name, k->group_id, k->running, k->nodes);
	json_t *body = json_keep(a, json_pack("{s:s, s:s, s:i, s:i}", "name", k->name, "groupId", k->group_id, "nodes",
	                                      (int)k->nodes, "running", (int)k->running));
	return doc_insert(tx, ORPHAN_KIND, str_of(k->id), hosts_self(), STR_NONE, json_text(a, body));
}

static int look_save(struct tx *tx, void *ctx)
{
	struct look *l = ctx;
	l->gone_count = 0;
	int r = unknown_keep(tx, l);
	if (r == 0)
		r = tx_walk_all(tx, ORPHAN_KIND, gone_collect, l);
	for (size_t i = 0; r == 0 && i < l->gone_count; i++)
		r = tx_delete(tx, ORPHAN_KIND, l->gone[i]);
	for (size_t i = 0; r == 0 && i < l->count; i++)
		r = orphan_note(tx, l->arena, &l->known[i]);
	atomic_store(&found_here, l->count);
	return r;
}

int orphans_look(struct service *s)
{
	struct look l = {.arena = arena_new()};
	int r = s->engine_ops->core->on_host ? s->engine_ops->core->known(s->engine_state, l.arena, &l.known, &l.count)
	                                     : 0;
	if (r == 0 && s->engine_ops->core->on_host)
		r = store_write_wait(s->store, look_save, &l);
	arena_free(l.arena);
	return r;
}

/* --- the job */

struct ending {
	struct arena *arena;
	struct str *ids;
	size_t count, cap;
};

static int ending_collect(struct tx *tx, void *ctx, const struct doc *d)
{
	struct ending *e = ctx;
	if (!str_eq(d->parent, hosts_self()) || !json_flag(doc_json(e->arena, d->body), "end"))
		return 0;
	ARENA_FIT(e->arena, e->ids, e->count, e->cap);
	e->ids[e->count++] = arena_dup(e->arena, d->id);
	return 0;
}

int orphans_step(struct job_run *r)
{
	struct service *s = r->ctx;
	struct ending e = {.arena = r->arena};
	struct cluster cluster;
	if (!s->engine_ops->core->on_host)
		return JOB_DONE;
	tx_begin_read(r->reader);
	int result = tx_walk_all(r->reader, ORPHAN_KIND, ending_collect, &e);
	/* One that the store knows again, by whatever way, is nobody's to end. */
	for (size_t i = 0; result == 0 && i < e.count; i++) {
		result = cluster_get(r->reader, r->arena, e.ids[i], &cluster);
		if (result == 0)
			e.ids[i] = STR_NONE;
		result = result == -ENOENT ? 0 : result;
	}
	job_read_end(r);
	for (size_t i = 0; result == 0 && i < e.count; i++) {
		struct engine_progress p = cluster_progress(r);
		if (!e.ids[i].n)
			continue;
		result = s->engine_ops->core->destroy(s->engine_state, arena_z(r->arena, e.ids[i]), &p);
		if (result == 0)
			log_warn("cluster %.*s: ended, as the operator said; the store did not know it",
			         STR_ARG(e.ids[i]));
	}
	if (result == 0)
		result = orphans_look(s);
	return result < 0 ? result : JOB_DONE;
}

/* --- the operator's word */

int orphan_end(struct tx *tx, struct arena *a, struct str id)
{
	struct cluster cluster;
	struct doc d;
	int r = tx_get(tx, a, ORPHAN_KIND, id, &d);
	if (r < 0)
		return r;
	r = cluster_get(tx, a, id, &cluster);
	if (r != -ENOENT)
		return r < 0 ? r : -EEXIST;
	json_t *body = doc_json(a, d.body);
	json_put(body, "end", json_true());
	d.body = json_text(a, body);
	return tx_update(tx, &d);
}
