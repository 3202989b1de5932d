/* The senders of logs (jobs/senders.h). Each second, and when the clock is moved, it is looked which nodes of this host
 * have a target that is due. A target that fails is tried again later and later, by one thread at a time, whichever
 * node's lines are next.
 *
 * The process on the host of a cluster reads its logs. Where clusters have no host (they are simulated), several
 * processes may know a node: whoever says first which range is sent has it for a while. */
#include "api/log_export/targets.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "hosts/hosts.h"
#include "jobs/senders.h"
#include "trail/metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKERS_OF_PROJECT 4
#define WORKERS_SPARE 4   /* free places that a project's further ones leave to others */
#define WORKERS_FAILING 6 /* for targets that failed before */
#define LOOK_US INT64_C(1000000)
#define BUCKETS 1024
#define SERVICE_SECONDS 10
#define OBJECT_BYTES (2ul << 20)
#define IDLE_BYTES (1 << 20) /* that nobody wants, before the cursor moves past them */
#define LEASE_MS 180000
#define SLOW_US (5 * INT64_C(1000000))
#define UNFIT_TRIES 2 /* of a whole range, before lines that a service refuses are left out */

/* Seconds before each further try. */
static const unsigned waits[] = {5, 15, 30, 60, 120, 300};
#define WAITS (sizeof waits / sizeof *waits)

/* What is known of a target (its id), or of a target's node (ID/NODE). */
struct line {
	struct line *next;
	char *key;
	int64_t due_ms;
	unsigned failures, busy; /* busy: threads that have it */
	bool slow;               /* the last try took long: it shares the places of those that fail */
	uint64_t round;          /* when it was last seen */
	int64_t rev;             /* of a target's document: one that was changed is tried at once */
	int64_t rest_ms;         /* until then none of a target's nodes is due */
};

struct worker {
	struct shipper *shipper;
	struct line *target, *stream; /* stream NULL: the target is being verified */
	int64_t rev;                  /* of the target's document that it was started with */
	/* What it works with; the texts are its arena's. */
	struct arena *arena;
	struct shipment shipment;
	struct engine_log log;
	struct cursor cursor;
	struct str cluster_id;
	bool noted; /* the target's status says that it works, and no more */
	struct batch batch;
	bool fixed, more, begun;
	int64_t took_us; /* by the receiver, the last time */
};

struct shipper {
	struct service *service;
	struct senders *senders;
	struct tx *reader; /* of the looking thread */
	int64_t bucket_ms, service_ms;
	pthread_mutex_t lock; /* of the lines */
	struct line *lines[BUCKETS];
	uint64_t round;
	atomic_uint_fast64_t bytes, batches, failed, lost, left_out;
};

/* --- lines */

static struct line *line_get(struct shipper *s, struct str key)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3u;
	struct line **at = &s->lines[h % BUCKETS];
	while (*at && !str_is(key, (*at)->key))
		at = &(*at)->next;
	if (!*at) {
		*at = must_calloc(1, sizeof **at);
		(*at)->key = must_malloc(key.n + 1);
		str_copy(key, (*at)->key, key.n + 1);
	}
	(*at)->round = s->round;
	return *at;
}

/* What is due later is kept, though a target that rests is not looked at. */
static bool line_is_kept(const struct shipper *s, const struct line *l)
{
	return l->busy || due_later(l->due_ms) || due_later(l->rest_ms) || l->round + 2 > s->round;
}

static void lines_sweep(struct shipper *s, bool all)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct line **at = &s->lines[i]; *at;) {
			struct line *l = *at;
			if (!all && line_is_kept(s, l)) {
				at = &l->next;
				continue;
			}
			*at = l->next;
			free(l->key);
			free(l);
		}
}

/* --- one worker's ranges */

static int take(void *ctx, const struct engine_log_line *line)
{
	struct worker *w = ctx;
	const struct shipment *s = &w->shipment;
	bool bucket = target_has_bucket(s->target.type);
	size_t bytes = w->batch.text[0].n + w->batch.text[1].n;
	if (!target_wants(&s->target, s->origin.is_router, line->kind))
		return 0;
	if (!w->fixed && w->batch.count &&
	    (bytes + line->text.n > (bucket ? OBJECT_BYTES : REQUEST_BYTES) ||
	     (!bucket && w->batch.count >= REQUEST_RECORDS)))
		return 1;
	batch_add(&w->batch, line);
	return 0;
}

/* What has left must be written down, also through a failover of the store. */
static int cursor_move(struct worker *w, const struct cursor *after, bool insists)
{
	struct shipper *s = w->shipper;
	struct cursor_step step = {.kind = w->shipment.target.kind,
	                           .target_id = w->shipment.target.id,
	                           .node = w->shipment.origin.node,
	                           .cluster_id = w->cluster_id,
	                           .before = w->cursor,
	                           .after = *after};
	int r = insists ? senders_record(s->senders, cursor_step_run, &step)
	                : store_write_wait(s->service->store, cursor_step_run, &step);
	if (r == 0)
		w->cursor = *after;
	return r;
}

struct noting {
	const struct target *target;
	enum outcome outcome;
	unsigned failures;
	const char *why;
};

static int note_run(struct tx *tx, void *ctx)
{
	const struct noting *n = ctx;
	struct arena *a = arena_new();
	int r = target_note(tx, a, n->target, n->outcome, n->failures, n->why);
	arena_free(a);
	return r;
}

/* Returns whether the target takes more now. */
static bool outcome_note(struct worker *w, enum outcome outcome, const char *why)
{
	struct shipper *s = w->shipper;
	struct noting n = {.target = &w->shipment.target, .outcome = outcome, .why = why};
	bool sent = outcome == OUTCOME_SENT;
	pthread_mutex_lock(&s->lock);
	if (w->rev != w->target->rev) { /* how it was before: nothing is known of what it is now */
		pthread_mutex_unlock(&s->lock);
		return false;
	}
	bool failed_before = w->target->failures > 0;
	w->target->failures = sent ? 0 : w->target->failures + 1;
	n.failures = w->target->failures;
	if (!sent)
		w->target->due_ms =
		        clock_now_ms() + waits[n.failures <= WAITS ? n.failures - 1 : WAITS - 1] * INT64_C(1000);
	pthread_mutex_unlock(&s->lock);
	if (!sent) {
		atomic_fetch_add(&s->failed, 1);
		log_warn("log export: %s %.*s: %s", target_words[n.target->type].type, STR_ARG(n.target->id),
		         why ? why : "it failed");
	}
	if ((!sent || failed_before || !w->noted) && store_write_wait(s->service->store, note_run, &n) < 0)
		return sent;
	w->noted |= sent;
	return sent;
}

/* Where its log begins for the target: at its end, as it is now. */
static int end_find(struct worker *w)
{
	const struct service *v = w->shipper->service;
	struct cursor after = w->cursor;
	after.from_end = false;
	int r = v->engine_ops->logs->end(v->engine_state, &w->log, &after.at);
	return r < 0 ? r : cursor_move(w, &after, false);
}

/* What is lost is a gap between the names of two objects. */
static void gap_leave(struct cursor *c, const struct engine_log_range *range)
{
	for (size_t i = 0; range->lost && i < 2; i++)
		c->sent[i] = c->at.position + 1;
}

/* Says which range is sent, so that it is the same one after a crash. */
static int range_claim(struct worker *w, const struct engine_log_range *range)
{
	const char *self = store_node(w->shipper->service->store);
	struct cursor after = w->cursor;
	if (after.pending && strcmp(after.owner, self) == 0)
		return 0;
	if (!after.pending)
		gap_leave(&after, range);
	if (!after.stream[0])
		snprintf(after.stream, sizeof after.stream, "%s", id_new().z);
	after.pending = true;
	after.to = range->to;
	after.lease_ms = clock_now_ms() + LEASE_MS;
	str_copy(str_of(self), after.owner, sizeof after.owner);
	return cursor_move(w, &after, false);
}

static int range_done(struct worker *w, const struct engine_log_range *range)
{
	struct cursor after = w->cursor;
	after.pending = false;
	after.unfit = 0;
	after.at = range->to;
	for (size_t i = 0; i < 2; i++)
		if (w->batch.text[i].n || (w->fixed && range->lost))
			after.sent[i] = range->to.position;
	atomic_fetch_add(&w->shipper->batches, 1);
	atomic_fetch_add(&w->shipper->bytes, w->batch.text[0].n + w->batch.text[1].n);
	return cursor_move(w, &after, true);
}

/* A service has refused what the range has. Where it wants none of it, the next try is with the lines that came since:
 * one that it takes tells that others are wrong, and not the service or how it is called. */
static void unfit_note(struct worker *w)
{
	struct cursor after = w->cursor;
	after.pending = !w->shipment.leaves_out;
	after.unfit += after.unfit < UNFIT_TRIES;
	if (cursor_move(w, &after, false) < 0)
		log_warn("log export: node %s: a refusal cannot be recorded", w->log.node);
}

static void left_out_note(struct worker *w, const struct engine_log_range *range)
{
	const struct shipment *s = &w->shipment;
	atomic_fetch_add(&w->shipper->left_out, s->left_out);
	log_warn("log export: %s %.*s: %zu of %zu lines of node %s, up to byte %lld, were refused again and again and "
	         "are left out",
	         target_words[s->target.type].type, STR_ARG(s->target.id), s->left_out, w->batch.count, w->log.node,
	         (long long)range->to.position);
}

static int range_send(struct worker *w, const struct engine_log_range *range)
{
	const int64_t begin[2] = {w->cursor.at.position, w->cursor.at.position};
	const char *why = NULL;
	int r = range_claim(w, range);
	if (r < 0)
		return r;
	if (!w->batch.count) /* that says nothing of the receiver */
		return range_done(w, range);
	bool bucket = target_has_bucket(w->shipment.target.type);
	w->shipment.origin.stream = str_of(w->cursor.stream);
	w->shipment.leaves_out = w->cursor.unfit >= UNFIT_TRIES;
	int64_t began_us = clock_mono_us();
	enum outcome outcome =
	        shipment_send(&w->shipment, &w->batch, bucket ? w->cursor.sent : begin, range->to.position, &why);
	w->took_us = clock_mono_us() - began_us;
	if (outcome != OUTCOME_SENT &&
	    senders_cut_off(w->shipper->senders)) /* the end of the process says nothing of the receiver */
		return -ECANCELED;
	r = outcome == OUTCOME_SENT ? range_done(w, range) : -EIO;
	if (r == 0 && w->shipment.left_out)
		left_out_note(w, range);
	if (outcome == OUTCOME_REFUSED && w->shipment.unfit)
		unfit_note(w);
	outcome_note(w, outcome, why);
	return r;
}

/* Of lines that nobody wants only the place is kept, and not each time. */
static int range_pass(struct worker *w, const struct engine_log_range *range)
{
	struct cursor after = w->cursor;
	bool far = strcmp(after.at.file, range->to.file) != 0 || range->to.position - after.at.position >= IDLE_BYTES;
	gap_leave(&after, range);
	after.at = range->to;
	return far || range->lost ? cursor_move(w, &after, false) : 0;
}

static int loss_run(struct tx *tx, void *ctx)
{
	const struct worker *w = ctx;
	struct arena *a = arena_new();
	int r = target_lost(tx, a, &w->shipment.target, w->shipment.origin.host);
	arena_free(a);
	return r;
}

static void loss_note(struct worker *w)
{
	atomic_fetch_add(&w->shipper->lost, 1);
	log_warn("log export: %s %.*s: lines of node %s were removed before they could be sent",
	         target_words[w->shipment.target.type].type, STR_ARG(w->shipment.target.id), w->log.node);
	if (store_write_wait(w->shipper->service->store, loss_run, w) < 0)
		log_warn("log export: the event of that cannot be written");
}

/* The next range. 1: there may be more. */
static int range_next(struct worker *w)
{
	const struct service *v = w->shipper->service;
	const struct cursor *c = &w->cursor;
	struct engine_log_range range = {.from = c->at, .to = c->to, .fixed = c->pending};
	if (c->pending && due_later(c->lease_ms) && strcmp(c->owner, store_node(v->store)) != 0)
		return 0;
	w->fixed = c->pending;
	int r = v->engine_ops->logs->follow(v->engine_state, &w->log, &range, take, w);
	if (r == 0)
		r = w->batch.count || c->pending ? range_send(w, &range) : range_pass(w, &range);
	if (r == 0 && range.lost) /* once: the cursor is behind it now */
		loss_note(w);
	batch_free(&w->batch);
	return r < 0 ? r : range.more || w->fixed;
}

static void target_prove(struct worker *w)
{
	const char *why = NULL;
	enum outcome outcome = shipment_prove(&w->shipment, &why);
	if (senders_cut_off(w->shipper->senders))
		return;
	/* BUCKET_VERIFIED, and then ACTIVE. */
	if (outcome_note(w, outcome, why)) {
		w->noted = false;
		outcome_note(w, outcome, NULL);
	}
}

/* One range. Returns whether there is more to send now. */
static bool stream_send(struct worker *w)
{
	int r = !w->begun && w->cursor.from_end ? end_find(w) : 0;
	w->begun = true;
	if (r == 0)
		r = range_next(w);
	w->more = r == 1;
	if (r < 0 && r != -ENOENT && r != -ESTALE && r != -EIO && r != -ECANCELED)
		log_warn("log export: node %s: the log cannot be read or recorded (error %d)", w->log.node, r);
	return w->more && w->took_us <= SLOW_US;
}

static bool worker_send(void *ctx, void *item)
{
	struct worker *w = item;
	if (w->stream)
		return stream_send(w);
	target_prove(w);
	return false;
}

static void worker_done(void *ctx, void *item)
{
	struct worker *w = item;
	struct shipper *s = ctx;
	int64_t pause = target_has_bucket(w->shipment.target.type) ? s->bucket_ms : s->service_ms;
	objects_close(w->shipment.bucket);
	pthread_mutex_lock(&s->lock);
	w->target->busy--;
	if (w->took_us)
		w->target->slow = w->took_us > SLOW_US;
	if (w->stream) {
		w->stream->busy--;
		if (w->more) /* what is slow rests as long as it took, so that others have its place */
			pause = w->target->slow ? w->took_us / 1000 : 0;
		w->stream->due_ms = w->target->failures ? 0 : clock_now_ms() + pause;
	}
	pthread_mutex_unlock(&s->lock);
	arena_free(w->arena);
	free(w);
}

/* --- looking */

/* One round's look at a target. */
struct looking {
	struct shipper *shipper;
	struct arena *arena;
	const struct doc *doc;
	struct line *target;
	bool noted, soon; /* soon: something is under way, or waits for a place */
	int64_t next_ms;  /* when a node is due */
};

static struct sender_for place_of_target(const struct looking *l)
{
	return (struct sender_for){.tenant = l->doc->parent, .failing = l->target->failures > 0 || l->target->slow};
}

/* With the lock: whether there is a place for what is due now. A target that fails is tried by one at a time. */
static bool has_place_now(struct looking *l, const struct line *stream, const struct sender_for *whom)
{
	if (stream && !stream->busy && due_later(stream->due_ms)) {
		if (stream->due_ms < l->next_ms)
			l->next_ms = stream->due_ms;
		return false;
	}
	l->soon = true;
	return !(stream && stream->busy) && !((whom->failing || !stream) && l->target->busy) &&
	       senders_have_place(l->shipper->senders, whom);
}

static void worker_free(struct worker *w)
{
	arena_free(w->arena);
	free(w);
}

/* What works for the target, if there is a place for it; NULL: not now. */
static struct worker *worker_get(struct looking *l, struct tx *tx, struct line *stream)
{
	struct shipper *s = l->shipper;
	pthread_mutex_lock(&s->lock);
	const struct sender_for whom = place_of_target(l);
	bool now = !due_later(l->target->due_ms) && has_place_now(l, stream, &whom);
	pthread_mutex_unlock(&s->lock);
	if (!now)
		return NULL;
	struct worker *w = must_calloc(1, sizeof *w);
	*w = (struct worker){.shipper = s,
	                     .target = l->target,
	                     .stream = stream,
	                     .rev = l->doc->rev,
	                     .noted = l->noted,
	                     .arena = arena_new()};
	struct shipment *to = &w->shipment;
	*to = (struct shipment){
	        .service = s->service, .arena = w->arena, .stops = senders_cut_off, .stops_ctx = s->senders};
	int r = target_load(w->arena, l->doc, &to->target);
	if (r == 0 && target_has_bucket(to->target.type)) {
		int found = log_bucket_role(s->service, tx, w->arena, &to->target, &to->role, &to->no_role);
		r = found == 0 || found == -ENOENT || found == -EACCES || found == -EINVAL ? 0 : found;
		if (found == 0)
			to->no_role = NULL;
	}
	if (r == 0)
		return w;
	worker_free(w);
	return NULL;
}

/* The lines are taken before the thread begins, which gives them back. */
static void worker_start(const struct looking *l, struct worker *w)
{
	struct shipper *s = w->shipper;
	pthread_mutex_lock(&s->lock);
	const struct sender_for whom = place_of_target(l);
	w->target->busy++;
	if (w->stream)
		w->stream->busy++;
	pthread_mutex_unlock(&s->lock);
	if (senders_start(s->senders, &whom, w))
		return;
	pthread_mutex_lock(&s->lock);
	w->target->busy--;
	if (w->stream)
		w->stream->busy--;
	pthread_mutex_unlock(&s->lock);
	worker_free(w);
}

/* What its log is, and how far it was sent. */
static int node_load(struct tx *tx, struct worker *w, const struct cluster *cluster, const json_t *node)
{
	struct arena *a = w->arena;
	struct origin *o = &w->shipment.origin;
	struct str hash = json_field(cluster->plan, "hash");
	*o = (struct origin){.group_id = w->shipment.target.group_id,
	                     .cluster_name = arena_dup(a, json_field(cluster->body, "name")),
	                     .node = arena_dup(a, json_field(node, "name")),
	                     .is_router = str_is(json_field(node, "kind"), "router")};
	o->host = arena_printf(a, "%.*s.%.*s.%s", STR_ARG(o->node), STR_ARG(hash), w->shipper->service->db_domain);
	w->cluster_id = arena_dup(a, cluster->doc.id);
	w->log = (struct engine_log){.cluster_id = arena_z(a, cluster->doc.id),
	                             .node = arena_z(a, o->node),
	                             .redact = json_flag(cluster->body, "redactClientLogData")};
	int r = cursor_find(tx, a, w->shipment.target.id, o->node, &w->cursor);
	for (size_t i = 0; r == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->log)
			r = cluster_parts[i]->log(tx, a, o->group_id, &w->log);
	return r;
}

static void node_look(struct tx *tx, struct looking *l, const struct cluster *cluster, const json_t *node)
{
	struct shipper *s = l->shipper;
	struct str key = arena_printf(l->arena, "%.*s/%.*s", STR_ARG(l->doc->id), STR_ARG(json_field(node, "name")));
	pthread_mutex_lock(&s->lock);
	struct line *stream = line_get(s, key);
	pthread_mutex_unlock(&s->lock);
	struct worker *w = worker_get(l, tx, stream);
	if (!w)
		return;
	if (node_load(tx, w, cluster, node) == 0)
		worker_start(l, w);
	else
		worker_free(w);
}

static int cluster_look(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct looking *l = ctx;
	struct cluster cluster = cluster_of(l->arena, doc);
	const json_t *nodes = json_object_get(cluster.plan, "nodes");
	struct str host = cluster_host(&cluster);
	if (host.n && host_is_elsewhere(host))
		return 0;
	for (size_t i = 0; i < json_array_size(nodes) && !senders_end(l->shipper->senders); i++)
		node_look(tx, l, &cluster, json_array_get(nodes, i));
	return 0;
}

static int target_look(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct shipper *s = ctx;
	struct looking l = {.shipper = s, .arena = arena_new(), .doc = doc, .next_ms = clock_now_ms() + s->service_ms};
	struct str state, why;
	pthread_mutex_lock(&s->lock);
	l.target = line_get(s, doc->id);
	if (l.target->rev != doc->rev) {
		l.target->due_ms = 0;
		l.target->rest_ms = 0;
		l.target->failures = 0;
	}
	l.target->rev = doc->rev;
	bool rests = due_later(l.target->due_ms) || due_later(l.target->rest_ms);
	pthread_mutex_unlock(&s->lock);
	int r = rests ? -EAGAIN : target_state(tx, l.arena, doc->id, &state, &why);
	bool bucket = r == 0 && target_has_bucket(target_type_of(doc_json(l.arena, doc->body)));
	if (r == 0) {
		bool active = str_is(state, "ACTIVE");
		l.noted = active && !why.n;
		if (bucket && !active) {
			struct worker *w = worker_get(&l, tx, NULL);
			if (w)
				worker_start(&l, w);
		} else {
			r = clusters_walk_group(tx, l.arena, doc->parent, cluster_look, &l);
			pthread_mutex_lock(&s->lock);
			l.target->rest_ms = l.soon ? 0 : l.next_ms;
			pthread_mutex_unlock(&s->lock);
		}
	}
	arena_free(l.arena);
	return r == -EAGAIN ? 0 : r;
}

static void shipper_look(void *ctx, bool news)
{
	struct shipper *s = ctx;
	static const char *const kinds[] = {EXPORT_KIND, INTEGRATION_KIND};
	pthread_mutex_lock(&s->lock);
	s->round++;
	pthread_mutex_unlock(&s->lock);
	int r = 0;
	tx_begin_read(s->reader);
	for (size_t i = 0; r == 0 && i < sizeof kinds / sizeof *kinds; i++)
		r = tx_walk_all(s->reader, kinds[i], target_look, s);
	tx_end_read(s->reader);
	tx_rest(s->reader);
	pthread_mutex_lock(&s->lock);
	if (r == 0)
		lines_sweep(s, false);
	pthread_mutex_unlock(&s->lock);
}

/* --- start and end */

void shipper_wake(struct shipper *s)
{
	if (s)
		senders_wake(s->senders);
}

static void shipper_free(struct shipper *s)
{
	lines_sweep(s, true);
	if (s->reader)
		store_reader_free(s->reader);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int shipper_start(struct service *v, unsigned seconds, struct shipper **ret_shipper)
{
	if (!v->engine_ops->logs)
		return 0;
	struct shipper *s = must_calloc(1, sizeof *s);
	s->service = v;
	s->bucket_ms = seconds * INT64_C(1000);
	s->service_ms = (seconds < SERVICE_SECONDS ? seconds : SERVICE_SECONDS) * INT64_C(1000);
	pthread_mutex_init(&s->lock, NULL);
	int r = (s->reader = store_reader(v->store)) ? 0 : -EIO;
	const struct senders_options senders = {.name = "log export",
	                                        .store = v->store,
	                                        .ctx = s,
	                                        .due = shipper_look,
	                                        .send = worker_send,
	                                        .done = worker_done,
	                                        .look_us = LOOK_US,
	                                        .of_tenant = WORKERS_OF_PROJECT,
	                                        .failing = WORKERS_FAILING,
	                                        .spare = WORKERS_SPARE};
	if (r == 0 && senders_open(&senders, &s->senders) < 0)
		r = option_refuse("the thread of the log export cannot be started");
	if (r < 0) {
		shipper_free(s);
		return r;
	}
	*ret_shipper = s;
	return 0;
}

void shipper_stop(struct shipper *s)
{
	if (!s)
		return;
	senders_close(s->senders);
	shipper_free(s);
}

void shipper_metrics_write(struct buf *b, struct shipper *s)
{
	if (!s)
		return;
	metrics_number(b, "steward_log_export_bytes_total", "counter",
	               "Bytes of logs that this process has sent, before they were compressed.",
	               atomic_load(&s->bytes));
	metrics_number(b, "steward_log_export_batches_total", "counter", "Ranges of logs that this process has sent.",
	               atomic_load(&s->batches));
	metrics_number(b, "steward_log_export_failures_total", "counter", "Tries that a receiver of logs did not take.",
	               atomic_load(&s->failed));
	metrics_number(b, "steward_log_export_gaps_total", "counter",
	               "How often lines were removed before they could be sent.", atomic_load(&s->lost));
	metrics_number(b, "steward_log_export_left_out_total", "counter",
	               "Lines that a receiver of logs has refused again and again, while it took others.",
	               atomic_load(&s->left_out));
}
