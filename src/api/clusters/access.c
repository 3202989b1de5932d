/* Jobs that bring users and networks to the clusters, and the answers that wait for them: jobs/waits.h.
 *
 * Clusters that are shut are not waited for: no node of theirs takes clients. A mark in the store says so from their
 * creation, or the end of a pause, until the job that lets clients in is about to read what it will apply. So every
 * change is either seen by that job, or finds the mark gone and waits. */
#include "api/clusters/access.h"

#include "api/clusters/access_mark.h"
#include "api/clusters/cluster.h"
#include "api/clusters/missing.h"
#include "api/clusters/store.h"
#include "api/clusters/view.h"
#include "api/clusters/wanted.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/service.h"
#include "gate/dispatch.h"
#include "jobs/waits.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define FAILED_AFTER 3 /* attempts */

/* A change that takes rights away has succeeded when nobody has them any more, and not before. */
static void answer_send(const struct wait *w)
{
	struct call *c = w->call;
	if (w->count && c->op->method != METHOD_POST) {
		atomic_fetch_add(&c->service->access_unconfirmed, 1);
		call_header(c, STR("retry-after"), STR("5"));
		struct str detail = arena_printf(c->arena,
		                                 "The change is saved, but not yet in force on %zu of the project's "
		                                 "clusters (%.*s%s): who had the rights "
		                                 "may have them there until it is. It goes on being brought there%s%s.",
		                                 w->count, STR_ARG(w->subjects[0].name), w->count > 1 ? ", ..." : "",
		                                 *w->behind ? "; the last attempt said: " : "", w->behind);
		call_send_failed(c, 503, "ACCESS_NOT_IN_FORCE", detail);
		return;
	}
	if (*w->behind || w->count)
		cluster_progress_say(c, "access", str_of(*w->behind ? w->behind : "not yet in force everywhere"));
	call_send(c);
}

/* Clusters whose last attempt failed, for the metrics of this process. */
static struct behind {
	struct behind *next;
	char id[25];
} * all_behind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void behind_set(struct service *s, struct str cluster_id, bool is)
{
	pthread_mutex_lock(&lock);
	struct behind **at = &all_behind;
	while (*at && !str_is(cluster_id, (*at)->id))
		at = &(*at)->next;
	struct behind *found = *at;
	if (found && !is) {
		*at = found->next;
		free(found);
	} else if (!found && is) {
		found = must_calloc(1, sizeof *found);
		str_copy(cluster_id, found->id, sizeof found->id);
		*at = found;
	}
	uint64_t count = 0;
	for (const struct behind *b = all_behind; b; b = b->next)
		count++;
	s->access_behind = count;
	pthread_mutex_unlock(&lock);
}

/* Asking. */

struct asking {
	struct arena *arena;
	const json_t *const *users;
	size_t user_count;
	struct waited *waits; /* clusters to wait for */
	size_t wait_count, wait_cap;
};

/* Whether nodes of it may take clients. One that was paused before there was a mark has none. */
static int may_run(struct tx *tx, struct arena *a, const struct cluster *cluster, bool *ret_may)
{
	bool shut;
	int result = access_is_shut(tx, a, cluster->doc.id, &shut);
	*ret_may = !shut &&
	           !(json_flag(cluster->body, "paused") && json_equal(json_object_get(cluster->plan, "applied"),
	                                                              json_object_get(cluster->plan, "generation")));
	return result;
}

bool database_user_in_scope(const json_t *user, struct str cluster_name)
{
	const json_t *scopes = json_object_get(user, "scopes");
	struct str type = STR("CLUSTER"), name = cluster_name, mark = STR(SCOPE_FEDERATION);
	if (str_starts(cluster_name, mark)) {
		type = (struct str){mark.p, mark.n - 1};
		name = (struct str){cluster_name.p + mark.n, cluster_name.n - mark.n};
	}
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		const json_t *scope = json_array_get(scopes, i);
		if (str_eq(json_field(scope, "type"), type) && str_eq(json_field(scope, "name"), name))
			return true;
	}
	return json_array_size(scopes) == 0;
}

static bool is_concerned(const struct asking *k, struct str cluster_name)
{
	for (size_t i = 0; i < k->user_count; i++)
		if (database_user_in_scope(k->users[i], cluster_name))
			return true;
	return k->user_count == 0;
}

static int cluster_ask(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct asking *k = ctx;
	struct cluster cluster = cluster_of(k->arena, doc);
	struct job job = {.kind = STR(ACCESS_JOB), .subject = doc->id, .due_ms = clock_now_ms()}, ahead;
	bool deleting = cluster_is(&cluster, "DELETING"), runs = true;
	if (!is_concerned(k, doc->name))
		return 0;
	int result = tx_job_of(tx, k->arena, doc->id, &ahead);
	bool busy = result == 0 && !ahead.failed && !str_is(ahead.kind, ACCESS_JOB);
	if (result == 0 || result == -ENOENT)
		result = may_run(tx, k->arena, &cluster, &runs);
	if (result < 0)
		return result;
	/* A virtual clock may stand still: what takes time on it is not waited for. One that goes is waited for until
	 * it is gone, unless that has failed. */
	if (runs && !(busy && clock_is_virtual()) && (busy || !deleting)) {
		ARENA_FIT(k->arena, k->waits, k->wait_count, k->wait_cap);
		k->waits[k->wait_count++] = (struct waited){doc->id, doc->name};
	}
	return deleting ? 0 : tx_job_ensure(tx, &job);
}

static int parts_ask(struct tx *tx, struct arena *a, struct str group_id)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->access_asked)
			result = cluster_parts[i]->access_asked(tx, a, group_id);
	return result;
}

int access_ask(struct tx *tx, struct arena *a, struct str group_id)
{
	struct asking k = {.arena = a};
	int result = clusters_walk_group(tx, a, group_id, cluster_ask, &k);
	return result < 0 ? result : parts_ask(tx, a, group_id);
}

static void answer_hold(struct call *c, const struct asking *k)
{
	if (k->wait_count)
		wait_hold(&(struct wait){.call = c,
		                         .kind = ACCESS_JOB,
		                         .subjects = k->waits,
		                         .count = k->wait_count,
		                         .send = answer_send});
}

int access_changed(struct call *c, const json_t *const *users, size_t count)
{
	struct asking k = {.arena = c->arena, .users = users, .user_count = count};
	int result = clusters_walk_group(c->tx, c->arena, c->group.id, cluster_ask, &k);
	if (result == 0)
		result = parts_ask(c->tx, c->arena, c->group.id);
	if (result == 0)
		answer_hold(c, &k);
	return result;
}

int access_changed_cluster(struct call *c, const struct cluster *cluster)
{
	struct asking k = {.arena = c->arena};
	int result = cluster_ask(c->tx, &k, &cluster->doc);
	if (result == 0)
		answer_hold(c, &k);
	return result;
}

struct looking {
	struct arena *arena;
	enum access_state state;
};

static int cluster_look(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct looking *l = ctx;
	struct job job;
	int result = tx_job_find(tx, l->arena, ACCESS_JOB, doc->id, &job);
	if (result == 0 && (job.failed || job.attempt >= FAILED_AFTER))
		l->state = ACCESS_FAILED;
	else if (result == 0 && l->state == ACCESS_ACTIVE)
		l->state = ACCESS_PENDING;
	return result == -ENOENT ? 0 : result;
}

int access_state(struct tx *tx, struct arena *a, struct str group_id, enum access_state *ret_state)
{
	struct looking l = {.arena = a, .state = ACCESS_ACTIVE};
	int result = clusters_walk_group(tx, a, group_id, cluster_look, &l);
	if (result == 0)
		*ret_state = l.state;
	return result;
}

/* The job. */

struct applying {
	struct cluster cluster;
	struct engine_access access;
	uint64_t stamp;
};

static void applied(struct job_run *r)
{
	const struct applying *p = r->save_ctx;
	behind_set(r->ctx, r->job.subject, false);
	wait_done(r->job.subject, p->stamp);
}

struct telling {
	struct arena *arena;
	const struct cluster *cluster;
};

static int failure_event(struct tx *tx, void *ctx)
{
	const struct telling *t = ctx;
	return cluster_event(tx, t->arena, "HOST_SECURITY_CHECKUP_NOT_MET", NULL, t->cluster, NULL, STR_NONE);
}

/* Tells everybody: the answers that wait, the log, the metrics, and, when it is not of the moment, the project's
 * events. */
static void failure_tell(struct job_run *r, const struct applying *p)
{
	struct service *s = r->ctx;
	struct telling t = {r->arena, &p->cluster};
	atomic_fetch_add(&s->access_failures, 1);
	behind_set(s, r->job.subject, true);
	wait_behind(r->job.subject, p->stamp, r->why);
	if (r->job.attempt + 1 == FAILED_AFTER && p->cluster.doc.id.n &&
	    store_write_wait(r->store, failure_event, &t) < 0)
		log_warn("cluster %.*s: the event that its access could not be changed was not written",
		         STR_ARG(r->job.subject));
}

/* The cluster's own job waits behind this one, and applies access too. */
static bool is_superseded(struct job_run *r)
{
	struct job job;
	tx_begin_read(r->reader);
	int result = tx_job_find(r->reader, r->arena, CLUSTER_JOB, r->job.subject, &job);
	tx_end_read(r->reader);
	return result == 0 && !job.failed;
}

int access_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct applying *p = arena_new_of(r->arena, struct applying);
	p->stamp = wait_stamp();
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, r->job.subject, &p->cluster);
	bool shut = false, made = result == 0 && !cluster_is(&p->cluster, "DELETING");
	if (made)
		result = access_is_shut(r->reader, r->arena, r->job.subject, &shut);
	/* What was never made gets its access when it is. */
	made = made && (json_object_get(p->cluster.plan, "applied") || !shut);
	if (result == 0 && made)
		result = cluster_access_load(r->reader, r->arena, p->cluster.doc.parent, p->cluster.doc.name,
		                             &p->access);
	job_read_end(r);
	p->access.hold = shut;
	if (result == 0 && made)
		result = s->engine_ops->access->apply(s->engine_state, arena_z(r->arena, r->job.subject), &p->access,
		                                      &r->why);
	else if (result == -ENOENT)
		result = 0;
	/* Also when the databases could not be told: who is out shall not get that far. */
	int led = cluster_applied(s, r->reader, r->arena, r->job.subject);
	result = led < 0 && result >= 0 ? led : result;
	if (result != 0)
		failure_tell(r, p);
	/* Nobody has what was taken away; what could not be given is tried again. */
	if (result == ENGINE_PARTLY) {
		wait_done(r->job.subject, p->stamp);
		result = -EBUSY;
	}
	if (result < 0)
		return is_superseded(r) ? JOB_DONE : result;
	r->save_ctx = p;
	r->saved = applied;
	return JOB_DONE;
}
