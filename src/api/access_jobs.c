/* Jobs that bring users and networks to the clusters, and the calls that wait for them.
 *
 * A job reads everything when it starts, so one that waits serves all changes that come before it runs. A stamp tells
 * which: a call takes one when its write is on disk, a job when it is about to read; a job with the later stamp has seen
 * the change. Clusters that do not run yet, or no more, are not waited for: what makes them run applies access itself. */
#include "api/access_jobs.h"

#include "api/cluster_jobs.h"
#include "api/database_users.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "gate/service.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define WAIT_US 5000000
#define FAILED_AFTER 3 /* attempts */

struct waiter {
	struct waiter *next;
	struct call *call;
	struct str *clusters;
	size_t count;
	uint64_t stamp;
	int64_t until_us;
};

static _Atomic uint64_t stamps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *waiters;
static bool closed;

uint64_t access_stamp(void)
{
	return atomic_fetch_add(&stamps, 1) + 1;
}

/* Sends the answers of a list that is nobody else's any more. A waiter goes with its call. */
static void send_all(struct waiter *w)
{
	while (w) {
		struct waiter *next = w->next;
		call_send(w->call);
		w = next;
	}
}

static void cluster_drop(struct waiter *w, struct str cluster_id)
{
	for (size_t i = 0; i < w->count; i++)
		if (str_eq(w->clusters[i], cluster_id)) {
			w->clusters[i] = w->clusters[--w->count];
			return;
		}
}

/* Takes out those that wait for nothing any more, or have waited enough. */
static struct waiter *take_over(int64_t now_us)
{
	struct waiter *taken = NULL;
	for (struct waiter **at = &waiters; *at;) {
		struct waiter *w = *at;
		if (w->count && w->until_us > now_us) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = taken;
		taken = w;
	}
	return taken;
}

void access_applied(struct str cluster_id, uint64_t stamp)
{
	pthread_mutex_lock(&lock);
	for (struct waiter *w = waiters; w; w = w->next)
		if (w->stamp < stamp)
			cluster_drop(w, cluster_id);
	struct waiter *done = take_over(0);
	pthread_mutex_unlock(&lock);
	send_all(done);
}

/* Copies of the ids that are waited for, the same one perhaps more than once. */
static size_t waited_for(struct arena *a, struct str **ret_ids)
{
	size_t count = 0;
	for (const struct waiter *w = waiters; w; w = w->next)
		count += w->count;
	*ret_ids = arena_new_array(a, struct str, count + 1);
	count = 0;
	for (const struct waiter *w = waiters; w; w = w->next)
		for (size_t i = 0; i < w->count; i++)
			(*ret_ids)[count++] = arena_dup(a, w->clusters[i]);
	return count;
}

void access_wait_poll(struct tx *reader)
{
	pthread_mutex_lock(&lock);
	struct waiter *done = waiters ? take_over(clock_mono_us()) : NULL;
	struct arena *a = waiters ? arena_new() : NULL;
	struct str *ids;
	size_t count = a ? waited_for(a, &ids) : 0;
	pthread_mutex_unlock(&lock);
	send_all(done);
	if (!a)
		return;
	uint64_t stamp = access_stamp();
	for (size_t i = 0; i < count; i++) {
		struct job job;
		tx_begin_read(reader);
		int result = tx_job_of(reader, a, ids[i], &job);
		tx_end_read(reader);
		/* The job was there from the write on, or one that took its place: it is done, wherever it ran. */
		if (result == -ENOENT)
			access_applied(ids[i], stamp);
	}
	arena_free(a);
}

void access_wait_close(void)
{
	pthread_mutex_lock(&lock);
	closed = true;
	struct waiter *done = take_over(INT64_MAX);
	pthread_mutex_unlock(&lock);
	send_all(done);
}

/* On the store's thread, before any job can be claimed that the write asked for. */
static void hold(struct call *c, void *arg)
{
	struct waiter *w = arg;
	w->stamp = access_stamp();
	w->until_us = clock_mono_us() + WAIT_US;
	pthread_mutex_lock(&lock);
	bool now = closed;
	if (!now) {
		w->next = waiters;
		waiters = w;
	}
	pthread_mutex_unlock(&lock);
	if (now)
		call_send(c);
}

/* Asking. */

struct asking {
	struct arena *arena;
	const json_t *const *users;
	size_t user_count;
	struct str *waits; /* clusters to wait for */
	size_t wait_count, wait_cap;
};

static bool is_running(const struct cluster *cluster)
{
	return json_integer_value(json_object_get(cluster->plan, "applied")) > 0 &&
	       !json_is_true(json_object_get(cluster->body, "paused")) && !cluster_is(cluster, "DELETING");
}

static bool is_concerned(const struct asking *k, struct str cluster_name)
{
	for (size_t i = 0; i < k->user_count; i++)
		if (database_user_in_scope(k->users[i], cluster_name))
			return true;
	return k->user_count == 0;
}

static void wait_add(struct asking *k, struct str cluster_id)
{
	if (k->wait_count == k->wait_cap) {
		size_t cap = k->wait_cap ? 2 * k->wait_cap : 8;
		struct str *more = arena_new_array(k->arena, struct str, cap);
		if (k->wait_count)
			memcpy(more, k->waits, k->wait_count * sizeof *more);
		k->waits = more;
		k->wait_cap = cap;
	}
	k->waits[k->wait_count++] = cluster_id;
}

static int cluster_ask(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct asking *k = ctx;
	struct cluster cluster = {
	        .doc = *doc, .body = doc_json(k->arena, doc->body), .plan = doc_json(k->arena, doc->secret)};
	struct job job = {.kind = STR(ACCESS_JOB), .subject = doc->id, .due_ms = clock_now_ms()}, ahead;
	if (cluster_is(&cluster, "DELETING") || !is_concerned(k, doc->name))
		return 0;
	int result = tx_job_of(tx, k->arena, doc->id, &ahead);
	if (result < 0 && result != -ENOENT)
		return result;
	/* A virtual clock may stand still: what takes time on it is not waited for. */
	bool busy = result == 0 && !ahead.failed && !str_is(ahead.kind, ACCESS_JOB);
	if (is_running(&cluster) && !(busy && clock_is_virtual()))
		wait_add(k, doc->id);
	return tx_job_ensure(tx, &job);
}

int access_ask(struct tx *tx, struct arena *a, struct str group_id)
{
	struct asking k = {.arena = a};
	return clusters_walk_group(tx, a, group_id, cluster_ask, &k);
}

int access_changed(struct call *c, const json_t *const *users, size_t count)
{
	struct asking k = {.arena = c->arena, .users = users, .user_count = count};
	int result = clusters_walk_group(c->tx, c->arena, c->group.id, cluster_ask, &k);
	if (result < 0 || !k.wait_count)
		return result;
	struct waiter *w = arena_new_of(c->arena, struct waiter);
	*w = (struct waiter){.call = c, .clusters = k.waits, .count = k.wait_count};
	c->held = hold;
	c->held_arg = w;
	return 0;
}

int access_hurry(struct tx *tx, struct arena *a, struct str cluster_id)
{
	struct job job;
	int result = tx_job_find(tx, a, ACCESS_JOB, cluster_id, &job);
	if (result < 0 || job.failed || job.running)
		return result == -ENOENT ? 0 : result;
	job.due_ms = clock_now_ms();
	return tx_job_ensure(tx, &job);
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
	access_applied(r->job.subject, p->stamp);
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
	p->stamp = access_stamp();
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, r->job.subject, &p->cluster);
	/* What was never made gets its access when it is. */
	bool made = result == 0 && !cluster_is(&p->cluster, "DELETING") && json_object_get(p->cluster.plan, "applied");
	if (made)
		result = cluster_access_load(r->reader, r->arena, p->cluster.doc.parent, p->cluster.doc.name,
		                             &p->access);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result == 0 && made)
		result = s->engine_ops->apply_access(s->engine_state, arena_z(r->arena, r->job.subject), &p->access,
		                                     &r->why);
	else if (result == -ENOENT)
		result = 0;
	if (result < 0)
		return is_superseded(r) ? JOB_DONE : result;
	r->save_ctx = p;
	r->saved = applied;
	return JOB_DONE;
}
