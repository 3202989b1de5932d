/* The job that makes a cluster what its document says. There is one kind for creation, change and deletion: it reads
 * the document when it starts, tells the engine what is wanted, and writes down what came of it if the document still
 * wants the same. It can therefore be repeated at any time, and after a restart it is how clusters are found again. */
#include "api/clusters/jobs.h"

#include "api/clusters/access.h"
#include "api/clusters/access_mark.h"
#include "api/clusters/actions.h"
#include "api/clusters/authority.h"
#include "api/clusters/cluster.h"
#include "api/clusters/connection_strings.h"
#include "api/clusters/lifetime.h"
#include "api/clusters/missing.h"
#include "api/clusters/nodes.h"
#include "api/clusters/orphans.h"
#include "api/clusters/outage.h"
#include "api/clusters/repair.h"
#include "api/clusters/samples.h"
#include "api/clusters/sightings.h"
#include "api/clusters/store.h"
#include "api/clusters/wanted.h"
#include "api/clusters/watch.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobs/waits.h"

#include <errno.h>

#define SHORT_MS 2000

/* One converge under way. */
struct work {
	struct cluster cluster;
	struct cluster_want wanted;
	struct engine_access access;
	uint64_t stamp; /* of the access */
	bool shut;      /* no node takes clients yet */
	bool partly;    /* not everybody has been given all */
	json_int_t generation;
	struct cluster_status status;
	int64_t reached_ms;
	json_t *strings;
};

static void progress_tell(void *ctx, unsigned percent, const char *what)
{
	job_progress(ctx, percent, what);
}

int cluster_of_job(struct job_run *r, struct cluster *ret_cluster)
{
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, r->job.subject, ret_cluster);
	job_read_end(r);
	if (result < 0)
		return result;
	return cluster_is(ret_cluster, "DELETING") || json_is_true(json_object_get(ret_cluster->body, "paused"));
}

struct engine_progress cluster_progress(struct job_run *r)
{
	return (struct engine_progress){.tell = progress_tell, .ctx = r, .stop = job_stop(r)};
}

static int cluster_event_write(struct tx *tx, struct arena *a, const char *type, const struct cluster *cluster)
{
	return cluster_event(tx, a, type, NULL, cluster, NULL, STR_NONE);
}

/* Reads what is wanted. In a read. */
static int want_load(struct job_run *r, struct work *w)
{
	int result = cluster_want_load(r->ctx, r->reader, r->arena, &w->cluster, &w->wanted, &w->access);
	if (result == 0)
		result = access_is_shut(r->reader, r->arena, w->cluster.doc.id, &w->shut);
	w->access.hold = w->shut;
	w->generation = json_number(w->cluster.plan, "generation");
	return result;
}

/* Clients connect to the routers of a sharded cluster, and to the nodes of any other: first those that can take
 * writes. */
static size_t ends_add(const struct cluster_status *status, enum node_kind kind, struct connection_node *nodes)
{
	size_t count = 0;
	for (size_t i = 0; i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		if (n->kind == kind)
			nodes[count++] = (struct connection_node){n->name, n->address, n->port};
	}
	return count;
}

static void strings_make(struct job_run *r, struct work *w)
{
	const struct service *s = r->ctx;
	struct connection_options o = {.scheme = s->db_scheme, .domain = s->db_domain};
	struct connection_node *nodes = arena_new_array(r->arena, struct connection_node, w->status.node_count + 1);
	struct connection_cluster c = {
	        .label = w->wanted.engine.label, .project_hash = w->wanted.engine.project_hash, .nodes = nodes};
	struct connection_network n = {.peered = w->wanted.peered,
	                               .sharded = cluster_is_sharded(w->cluster.body),
	                               .endpoints = w->wanted.endpoints,
	                               .endpoint_count = w->wanted.endpoint_count};
	enum node_kind first = n.sharded ? NODE_ROUTER : NODE_ELECTABLE,
	               last = n.sharded ? NODE_ROUTER : NODE_ANALYTICS;
	for (enum node_kind kind = first; kind <= last; kind++)
		c.node_count += ends_add(&w->status, kind, nodes + c.node_count);
	w->strings = connection_strings_json(r->arena, &o, &c, &n);
	json_keep(r->arena, w->strings);
}

static const char *event_of(const struct cluster *cluster)
{
	if (cluster_is(cluster, "CREATING"))
		return "CLUSTER_READY";
	/* Nothing of it was to be changed: it is UPDATING for another reason. */
	bool found =
	        json_object_get(cluster->plan, "indexing") && cluster_is(cluster, "UPDATING") &&
	        json_equal(json_object_get(cluster->plan, "generation"), json_object_get(cluster->plan, "applied"));
	return cluster_is(cluster, "IDLE") || found ? NULL : "CLUSTER_UPDATE_COMPLETED";
}

static int reached_observe(struct tx *tx, struct job_run *r, const struct work *w, const struct cluster *now)
{
	return cluster_observed(tx, r->arena, r->ctx, now,
	                        &(struct cluster_sighting){.nodes = w->wanted.engine.nodes,
	                                                   .node_count = w->wanted.engine.node_count,
	                                                   .status = &w->status,
	                                                   .at_ms = w->reached_ms});
}

/* Writes down what was reached, unless something else is wanted by now: then another job is on its way. */
static int ready_save(struct tx *tx, struct job_run *r)
{
	struct work *w = r->save_ctx;
	struct cluster now;
	int result = cluster_get(tx, r->arena, w->cluster.doc.id, &now);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = reached_observe(tx, r, w, &now);
	if (result < 0)
		return result;
	if (w->wanted.engine.paused || w->shut) /* of what the engine has now, whatever is wanted by now */
		result = access_shut_set(tx, now.doc.id, w->wanted.engine.paused);
	struct job again = {.kind = STR(ACCESS_JOB), .subject = now.doc.id, .due_ms = clock_now_ms()};
	if (result == 0 && w->partly)
		result = tx_job_ensure(tx, &again);
	if (result < 0)
		return result;
	if (json_integer_value(json_object_get(now.plan, "generation")) != w->generation ||
	    cluster_is(&now, "DELETING"))
		return 0;
	result = watch_ask(tx, r->arena, r->ctx, now.doc.id);
	if (result < 0)
		return result;
	const char *event = event_of(&now);
	struct str before = json_text(r->arena, now.body);
	json_put(now.plan, "applied", json_integer(w->generation));
	json_object_set(now.plan, "type", json_object_get(now.body, "clusterType"));
	/* A restore that waits behind this has yet to change it; an index is being built beside this. */
	json_put_z(now.body, "stateName",
	           cluster_is_worked_on(&now) ? "UPDATING"
	           : w->wanted.engine.locked  ? "REPAIRING" /* until its key is given back */
	                                      : "IDLE");
	json_object_set(now.body, "connectionStrings", w->strings);
	if (w->status.node_count)
		json_put_z(now.body, "dbVersion", w->status.nodes[0].version);
	if (!json_object_get(now.body, "featureCompatibilityVersionExpirationDate"))
		json_object_set(now.body, "featureCompatibilityVersion", json_object_get(now.body, "dbMajorVersion"));
	bool noted = made_note(&now, &w->status);
	if (str_eq(before, json_text(r->arena, now.body)) && w->wanted.engine.adopt && !noted)
		return 0; /* found again as it was */
	bool maintained = json_object_del(now.plan, "maintain") == 0;
	result = missing_end(tx, r->arena, &now);
	if (result == 0)
		result = repair_forget(tx, r->arena, &now);
	if (result == 0)
		result = cluster_save(tx, r->arena, &now);
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->converged)
			result = cluster_parts[i]->converged(tx, r->arena, &now, maintained);
	if (result == 0)
		result = outage_converged(tx, r->arena, &now);
	return result < 0 || !event ? result : cluster_event_write(tx, r->arena, event, &now);
}

static int gone_save(struct tx *tx, struct job_run *r)
{
	const int64_t *reached_ms = r->save_ctx;
	const struct cluster_status nothing = {.exists = false};
	struct cluster now;
	int result = cluster_get(tx, r->arena, r->job.subject, &now);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = cluster_observed(tx, r->arena, r->ctx, &now,
	                          &(struct cluster_sighting){.status = &nothing, .at_ms = *reached_ms});
	if (result == 0)
		result = outage_forget(tx, r->arena, now.doc.id);
	if (result == 0)
		result = repair_forget(tx, r->arena, &now);
	if (result == 0)
		result = cluster_remove(tx, r->arena, &now);
	return result < 0 ? result : cluster_event_write(tx, r->arena, "CLUSTER_DELETED", &now);
}

static int later(struct job_run *r, int result, const struct engine_progress *p)
{
	return result == -EAGAIN ? job_later(r, p->again_ms) : result;
}

static int64_t reached(const struct engine_progress *p)
{
	return p->reached_ms ? p->reached_ms : clock_now_ms();
}

static int destroy(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	int result = s->engine_ops->core->destroy(s->engine_state, arena_z(r->arena, r->job.subject), &p);
	if (result < 0)
		return later(r, result, &p);
	(void)cluster_applied(s, NULL, r->arena, r->job.subject);
	int64_t *at = arena_new_of(r->arena, int64_t);
	*at = reached(&p);
	r->save = gone_save;
	r->save_ctx = at;
	return JOB_DONE;
}

static void converge_saved(struct job_run *r)
{
	const struct work *w = r->save_ctx;
	wait_done(r->job.subject, w->stamp);
}

/* What is wanted by now. */
static int access_again(struct job_run *r, struct work *w, const char **ret_why)
{
	const struct service *s = r->ctx;
	struct engine_access access;
	uint64_t stamp = wait_stamp();
	*ret_why = "it cannot be read";
	tx_begin_read(r->reader);
	int result = cluster_access_load(r->reader, r->arena, w->cluster.doc.parent, w->cluster.doc.name, &access);
	job_read_end(r);
	if (result == 0)
		result = s->engine_ops->access->apply(s->engine_state, w->wanted.engine.id, &access, ret_why);
	if (result < 0)
		return result;
	w->partly = result == ENGINE_PARTLY;
	w->stamp = stamp;
	return 0;
}

/* Who was let in while the work was under way shall find it so when the cluster says that it is ready. Should it fail,
 * the access job that waits behind this one tries again. */
static void access_catch_up(struct job_run *r, struct work *w)
{
	struct job waiting;
	const char *why;
	tx_begin_read(r->reader);
	int result = tx_job_find(r->reader, r->arena, ACCESS_JOB, r->job.subject, &waiting);
	job_read_end(r);
	if (result == 0 && !waiting.failed && access_again(r, w, &why) < 0)
		log_debug("cluster %s: its access is left to the job that waits: %s", w->wanted.engine.id, why);
}

static int mark_away(struct tx *tx, void *ctx)
{
	return access_shut_set(tx, str_of(ctx), false);
}

/* Clients are let in. From the moment that the mark is gone, every change waits until it is in force here; all that
 * came before it is read after it. */
static int access_begin(struct job_run *r, struct work *w)
{
	int result = store_write_wait(r->store, mark_away, w->wanted.engine.id);
	return result < 0 ? result : access_again(r, w, &r->why);
}

/* Data that was made is not there. It is looked for again and again: told once, and saved when something is new, so
 * that whoever reads the cluster finds the same revision. */
static int missing_save(struct tx *tx, struct job_run *r)
{
	struct cluster now;
	int result = cluster_get(tx, r->arena, r->job.subject, &now);
	if (result < 0 || cluster_is(&now, "DELETING"))
		return result == -ENOENT ? 0 : result;
	struct str body = json_text(r->arena, now.body), plan = json_text(r->arena, now.plan);
	if (!str_is(json_field(now.plan, "why"), r->why))
		log_error("cluster %.*s of project %.*s: %s", STR_ARG(now.doc.name), STR_ARG(now.doc.parent), r->why);
	result = repair_later(tx, r->arena, &now, r->why, true);
	if (result == 0)
		result = missing_begin(tx, r->arena, &now, r->why);
	json_put_z(now.body, "stateName", "REPAIRING");
	if (result < 0 || (str_eq(body, json_text(r->arena, now.body)) && str_eq(plan, json_text(r->arena, now.plan))))
		return result;
	return cluster_save(tx, r->arena, &now);
}

/* The process, or the machine, has no more descriptors or memory at the moment. */
static bool is_short(int result)
{
	return result == -EMFILE || result == -ENFILE || result == -ENOMEM;
}

static int converge(struct job_run *r, struct work *w)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	int result =
	        s->engine_ops->core->converge(s->engine_state, &w->wanted.engine, &w->access, &p, r->arena, &r->why);
	if (result == -ENOMEDIUM) { /* which no further attempt brings back */
		r->save = missing_save;
		return JOB_DONE;
	}
	if (is_short(result)) { /* it says nothing about the cluster, whose state stays */
		log_warn("cluster %s: %s; it is tried again", w->wanted.engine.id, r->why ? r->why : strerror(-result));
		return job_later(r, SHORT_MS);
	}
	if (result < 0)
		return later(r, result, &p);
	w->partly = result == ENGINE_PARTLY;
	w->reached_ms = reached(&p);
	result = 0;
	if (!w->wanted.engine.paused && w->shut && s->engine_ops->access->holds)
		result = access_begin(r, w);
	else if (!w->wanted.engine.paused)
		access_catch_up(r, w);
	if (result < 0)
		return result == -EAGAIN ? -EBUSY : result;
	result = s->engine_ops->core->observe(s->engine_state, w->wanted.engine.id, r->arena, &w->status);
	if (result < 0)
		return result;
	result = cluster_applied(s, r->reader, r->arena, r->job.subject);
	if (result < 0)
		return result;
	strings_make(r, w);
	r->save = ready_save;
	r->save_ctx = w;
	r->saved = converge_saved;
	return JOB_DONE;
}

static int cluster_step(struct job_run *r)
{
	struct work *w = arena_new_of(r->arena, struct work);
	w->stamp = wait_stamp();
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, r->job.subject, &w->cluster);
	bool gone = result == -ENOENT, deleting = result == 0 && cluster_is(&w->cluster, "DELETING");
	if (result == 0 && !deleting)
		result = want_load(r, w);
	job_read_end(r);
	if (result < 0)
		return gone ? JOB_DONE : result;
	return deleting ? destroy(r) : converge(r, w);
}

/* The state says that it is not what it should be. It is tried again after a while, and with the next change. */
static int cluster_failed(struct tx *tx, struct job_run *r)
{
	struct cluster now;
	int result = cluster_get(tx, r->arena, r->job.subject, &now);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	log_error("cluster %.*s of project %.*s: %s", STR_ARG(now.doc.name), STR_ARG(now.doc.parent), r->why);
	result = repair_later(tx, r->arena, &now, r->why, false);
	if (!cluster_is(&now, "DELETING"))
		json_put_z(now.body, "stateName", "REPAIRING");
	/* A maintenance that failed is not over: what it should bring is still wanted when it is tried again. */
	return result < 0 ? result : cluster_save(tx, r->arena, &now);
}

/* Starting, and starting anew. */

static int adopt_run(struct tx *tx, void *ctx)
{
	return clusters_walk(tx, cluster_look_again, NULL);
}

int clusters_adopt(struct store *store)
{
	return store_write_wait(store, adopt_run, NULL);
}

static void tell_nobody(void *ctx, unsigned percent, const char *what)
{
}

void clusters_destroy(struct service *s, const struct str *ids, size_t count)
{
	struct engine_progress p = {.tell = tell_nobody};
	for (size_t i = 0; i < count; i++) {
		char id[25];
		str_copy(ids[i], id, sizeof id);
		int result = s->engine_ops->core->destroy(s->engine_state, id, &p);
		if (result < 0 && result != -EAGAIN)
			log_error("reset: the cluster %s could not be removed (error %d)", id, result);
		struct arena *a = arena_new();
		(void)cluster_applied(s, NULL, a, ids[i]);
		arena_free(a);
	}
}

static const struct job_kind kinds[] = {
        {.name = CLUSTER_JOB, .step = cluster_step, .failed = cluster_failed},
        {.name = RESTART_JOB, .step = restart_step, .failed = restart_failed, .attempts = 3},
        {.name = SAMPLE_JOB, .step = sample_step, .failed = sample_failed, .attempts = 3},
        {.name = REPAIR_JOB, .save = repair_save},
        {.name = AUTHORITY_SCAN_JOB, .step = authority_scan_step, .period_ms = AUTHORITY_SCAN_MS},
        {.name = ORPHANS_JOB, .step = orphans_step, .period_ms = ORPHANS_MS, .per_node = true},
        {.name = OUTAGE_END_JOB, .save = outage_end_save},
        {.name = LIFETIME_JOB, .save = lifetime_save},
        {.name = WATCH_JOB, .step = watch_step},
        {.name = ACCESS_JOB, .step = access_step, .attempts = ACCESS_ATTEMPTS},
};
const struct job_kinds cluster_jobs = JOB_KINDS(kinds);
