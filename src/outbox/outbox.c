/* The queue and its threads. One thread looks which receivers are due, and starts a short-lived one for each: a few at
 * a time, fewer for one tenant, so that nobody's slow receiver holds up the others. Such a thread claims the receiver,
 * sends its first message, writes down what came of it, and goes on until none is left or one has failed. Times are of
 * the service's clock. */
#include "outbox/outbox.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "outbox/post.h"
#include "outbox/queue.h"
#include "outbox/vendors.h"
#include "store/seal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SENDERS 16
#define SENDERS_OF_TENANT 3
#define SENDERS_SPARE 4   /* free places that a tenant's second and third sender leave to other tenants */
#define SENDERS_FAILING 8 /* for receivers that failed before */
#define SENDERS_VIA 8     /* through one mail server, vendor or host, which may be slow for all */
#define VIA_TEXT 64
#define LOOK_AT 256 /* receivers of each list at a time */
#define LOOK_MS 200 /* between two looks, where a look is cheap */
#define LOOK_REMOTE_MS 1000
#define COUNT_US INT64_C(1000000) /* between two counts, or so many times as long as one took */
#define COUNT_REST 50
#define LEASE_MS 90000  /* more than a send can take */
#define SKEW_MS 7200000 /* times further away were set by a clock that was wrong */
#define RECORD_TRIES 30 /* a second apart: what has left must be written down, or it leaves again */
#define CLOSE_US (5 * INT64_C(1000000))
#define STORE_REST_US INT64_C(1000000)
#define IN_A_ROW 64 /* messages that one thread sends to a receiver */

/* Seconds before each further attempt. */
static const unsigned waits[] = {5, 30, 120, 600, 3600, 3600, 3600};
#define RETRIES (sizeof waits / sizeof *waits)

struct sender {
	struct outbox *outbox;
	pthread_t thread;
	bool used, over; /* over: to be joined; under the lock */
	bool failing;    /* the receiver has failed before */
	char receiver[ID_LEN + 1], tenant[ID_LEN + 1], via[VIA_TEXT];
};

struct outbox {
	struct store *store;
	struct tx *reader; /* of the looking thread */
	struct mail *mail;
	struct post_options post;
	struct vendor_endpoint *endpoints; /* the operator's; ended by NULL */
	struct arena *arena;
	const char *node;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed, closes; /* on the monotonic clock */
	bool news;
	atomic_bool closing;
	_Atomic int64_t close_by_us;
	struct sender senders[SENDERS];
	atomic_uint_fast64_t delivered, put_off, failed;
	struct outbox_stats counted; /* of the store, under the lock */
};

/* --- one send */

struct sending {
	struct outbox *outbox;
	struct arena *arena;
	struct str receiver;
	/* Of the claim. */
	bool claimed;
	struct doc delivery;
	json_t *record, *content;
	/* Of the attempt. */
	bool taken, gone;
	char fault[CURL_ERROR_SIZE];
	bool more; /* another message may leave now */
};

/* The receiver's place in the lists: those that fail wait in one of their own, where they hold up nothing new. */
static int receiver_put(struct tx *tx, const struct doc *old, struct str body, bool failing)
{
	struct doc d = *old;
	d.body = body;
	d.rev = 0;
	if (str_eq(old->parent, failing ? LATER : STR_NONE))
		return tx_update(tx, &d);
	d.parent = failing ? LATER : STR_NONE;
	int r = tx_delete(tx, RECEIVER, d.id);
	return r < 0 ? r : tx_insert(tx, &d);
}

/* Whether a time is still to come. One that no clock of now can have set is not: clocks are put back, too. */
static bool is_ahead(int64_t ms)
{
	int64_t now = clock_now_ms();
	return ms > now && ms < now + SKEW_MS;
}

static bool held_by_other(const struct outbox *o, const json_t *body)
{
	return is_ahead(json_number(body, "leaseMs")) && !str_is(json_field(body, "owner"), o->node);
}

/* A delivery whose keeper is gone meanwhile has no message either, so the first message has one. */
static int first_message(struct tx *tx, struct sending *s)
{
	struct doc *first;
	size_t count = 0;
	struct str plain = STR_NONE;
	int r = tx_list(tx, s->arena, MESSAGE, s->receiver, 0, 1, &first, &count);
	if (r == 0 && !count)
		return -ENOENT;
	if (r == 0)
		r = tx_get(tx, s->arena, DELIVERY, first[0].id, &s->delivery);
	if (r < 0)
		return r;
	/* One that cannot be opened, as with another key, must not hold up those behind it. */
	if (doc_unseal(s->arena, &s->delivery, &plain) < 0)
		plain = STR_NONE;
	s->record = doc_json(s->arena, s->delivery.body);
	s->content = plain.n ? doc_json(s->arena, plain) : NULL;
	return 0;
}

static int claim_run(struct tx *tx, void *ctx)
{
	struct sending *s = ctx;
	struct doc d;
	s->claimed = false;
	int r = tx_get(tx, s->arena, RECEIVER, s->receiver, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(s->arena, d.body);
	if (held_by_other(s->outbox, body) || is_ahead(json_number(body, "dueMs")))
		return 0;
	r = first_message(tx, s);
	if (r == -ENOENT)
		return tx_delete(tx, RECEIVER, s->receiver);
	if (r < 0)
		return r;
	json_put_z(body, "owner", s->outbox->node);
	json_put(body, "leaseMs", json_integer(clock_now_ms() + LEASE_MS));
	s->claimed = true;
	d.body = json_text(s->arena, body);
	d.rev = 0;
	return tx_update(tx, &d);
}

/* The message is over: the record says how it ended, and no content stays. */
static int message_end(struct tx *tx, struct sending *s, const char *status)
{
	struct doc d = s->delivery;
	int r = queue_delete(tx, MESSAGE, d.id);
	if (r == 0)
		r = queue_delete(tx, WAITING, d.id);
	if (r < 0)
		return r;
	if (json_flag(s->record, "forget"))
		return queue_delete(tx, DELIVERY, d.id);
	json_put_z(s->record, "status", status);
	d.secret = STR_NONE;
	d.body = json_text(s->arena, s->record);
	d.rev = 0;
	r = tx_update(tx, &d);
	return r == -ENOENT ? 0 : r;
}

static int attempt_record(struct tx *tx, struct sending *s)
{
	struct doc d = s->delivery;
	d.body = json_text(s->arena, s->record);
	d.rev = 0;
	int r = tx_update(tx, &d);
	return r == -ENOENT ? 0 : r;
}

/* Where the receiver goes on from here. Nothing where another process holds it by now. */
static int receiver_next(struct tx *tx, struct sending *s, const struct doc *receiver, json_t *body, bool again)
{
	json_int_t attempts = json_number(body, "attempts");
	int64_t waiting = 0;
	int r = tx_count(tx, MESSAGE, s->receiver, &waiting);
	if (r < 0 || !str_is(json_field(body, "owner"), s->outbox->node))
		return r;
	s->more = !again && waiting;
	if (!waiting)
		return tx_delete(tx, RECEIVER, s->receiver);
	json_put(body, "attempts", json_integer(again ? attempts + 1 : 0));
	json_put(body, "dueMs", json_integer(clock_now_ms() + (again ? waits[attempts] * INT64_C(1000) : 0)));
	json_put(body, "leaseMs", json_integer(0));
	return receiver_put(tx, receiver, json_text(s->arena, body), again);
}

/* Also called when it cannot be known whether it was written before. */
static int outcome_run(struct tx *tx, void *ctx)
{
	struct sending *s = ctx;
	struct doc d, waiting, now;
	s->more = false;
	int r = tx_get(tx, s->arena, MESSAGE, s->delivery.id, &waiting);
	if (r == 0)
		r = tx_get(tx, s->arena, DELIVERY, s->delivery.id, &now);
	if (r == 0)
		r = tx_get(tx, s->arena, RECEIVER, s->receiver, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (json_flag(doc_json(s->arena, now.body), "forget")) /* said while it was under way */
		json_put(s->record, "forget", json_true());
	json_t *body = doc_json(s->arena, d.body);
	json_int_t attempts = json_number(body, "attempts");
	bool again = !s->taken && !s->gone && (size_t)attempts < RETRIES;
	json_put(s->record, "attempts", json_integer(attempts + 1));
	json_put_time(s->record, "updated", clock_now_ms());
	if (!s->taken)
		json_put_z(s->record, "lastError", s->fault);
	r = again ? attempt_record(tx, s) : message_end(tx, s, s->taken ? "DELIVERED" : "FAILED");
	return r < 0 ? r : receiver_next(tx, s, &d, body, again);
}

/* A transfer that is under way may end first, so that it need not be repeated. */
static bool closes(void *ctx)
{
	struct outbox *o = ctx;
	return atomic_load(&o->closing) && clock_mono_us() > atomic_load(&o->close_by_us);
}

struct str outbox_endpoint(const struct outbox *o, struct str name, bool *ret_trusted)
{
	const struct vendor_endpoint *lists[] = {o->endpoints, vendor_endpoints};
	for (size_t i = 0; i < 2; i++)
		for (const struct vendor_endpoint *e = lists[i]; e->name; e++)
			if (str_is(name, e->name) && e->url) {
				*ret_trusted = i == 0;
				return str_of(e->url);
			}
	return STR_NONE;
}

static bool request_send(struct sending *s)
{
	struct str url = json_field(s->content, "url");
	bool trusted = false;
	json_t *headers = json_object_get(s->content, "headers");
	if (!s->content) {
		snprintf(s->fault, sizeof s->fault, "its content cannot be read");
		s->gone = true;
		return false;
	}
	if (!url.n) {
		struct str endpoint = outbox_endpoint(s->outbox, json_field(s->content, "endpoint"), &trusted);
		url = arena_printf(s->arena, "%.*s%.*s", STR_ARG(endpoint), STR_ARG(json_field(s->content, "path")));
	}
	if (!url.n) {
		snprintf(s->fault, sizeof s->fault, "the operator has set no address for it: --outbox-endpoint");
		s->gone = true;
		return false;
	}
	json_put_str(headers, "X-Steward-Delivery", s->delivery.id);
	struct post p = {.url = arena_z(s->arena, url),
	                 .headers = headers,
	                 .body = json_field(s->content, "body"),
	                 .trusted = trusted,
	                 .says_ok = json_flag(s->content, "saysOk"),
	                 .ret_gone = &s->gone,
	                 .stops = closes,
	                 .ctx = s->outbox};
	return post_deliver(&s->outbox->post, &p, s->fault);
}

static bool letter_send(struct sending *s)
{
	struct mail_letter l = {.id = s->delivery.id,
	                        .to = json_field(s->content, "to"),
	                        .subject = json_field(s->content, "subject"),
	                        .text = json_field(s->content, "text"),
	                        .created_ms = s->delivery.created_ms};
	if (!s->outbox->mail) {
		snprintf(s->fault, sizeof s->fault, "there is no mail server: --smtp-url");
		s->gone = true;
		return false;
	}
	return mail_deliver(s->outbox->mail, &l, closes, s->outbox, &s->gone, s->fault);
}

static void attempt_count(struct sending *s)
{
	struct outbox *o = s->outbox;
	json_int_t attempts = json_number(s->record, "attempts");
	if (s->taken)
		atomic_fetch_add(&o->delivered, 1);
	else if (s->gone || (size_t)attempts > RETRIES)
		atomic_fetch_add(&o->failed, 1);
	else if (attempts)
		atomic_fetch_add(&o->put_off, 1);
}

static void attempt_log(const struct sending *s)
{
	struct str kind = json_field(s->record, "kind"), to = json_field(s->record, "receiver");
	const char *word = str_is(kind, "EMAIL") ? "mail" : "outbox";
	json_int_t attempts = json_number(s->record, "attempts");
	if (s->taken)
		log_info("%s: to %.*s: sent", word, STR_ARG(to));
	else if (!attempts)
		return; /* nothing was recorded */
	else if (!s->outbox->mail && json_field(s->content, "to").n)
		log_info("%s: to %.*s: %s", word, STR_ARG(to), s->fault);
	else if (s->gone || (size_t)attempts > RETRIES)
		log_error("%s: to %.*s: %s; given up", word, STR_ARG(to), s->fault);
	else
		log_warn("%s: to %.*s: %s; trying again in %u s", word, STR_ARG(to), s->fault, waits[attempts - 1]);
}

static void pause_run(struct outbox *o, int64_t us)
{
	int64_t due_us = clock_mono_us() + us;
	struct timespec until = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
	pthread_mutex_lock(&o->lock);
	while (!atomic_load(&o->closing) && clock_mono_us() < due_us)
		pthread_cond_timedwait(&o->closes, &o->lock, &until);
	pthread_mutex_unlock(&o->lock);
}

/* What came of it is written down while the claim lasts, also through a failover of the store. */
static int outcome_write(struct sending *s)
{
	int r = store_write_wait(s->outbox->store, outcome_run, s);
	for (unsigned i = 0; i < RECORD_TRIES && r < 0 && r != -ESHUTDOWN && !atomic_load(&s->outbox->closing); i++) {
		pause_run(s->outbox, 1000000);
		r = store_write_wait(s->outbox->store, outcome_run, s);
	}
	return r;
}

/* One message. Returns whether another may leave now. */
static bool send_one(struct outbox *o, struct str receiver)
{
	struct sending s = {.outbox = o, .arena = arena_new(), .receiver = receiver};
	int r = store_write_wait(o->store, claim_run, &s);
	if (r == 0 && s.claimed) {
		s.taken = json_field(s.content, "to").n ? letter_send(&s) : request_send(&s);
		/* A transfer that the end of the process has cut off says nothing of the receiver. */
		if (s.taken || !closes(o))
			r = outcome_write(&s);
		attempt_count(&s);
		attempt_log(&s);
	}
	if (r < 0 && r != -ESHUTDOWN) {
		log_error("outbox: a message cannot be taken or recorded (error %d)", r);
		pause_run(
		        o,
		        STORE_REST_US); /* the receiver is still due: a store that refuses must not be asked at once */
	}
	bool more = r == 0 && s.more;
	arena_free(s.arena);
	return more;
}

/* --- threads */

static void *sender_run(void *arg)
{
	struct sender *s = arg;
	struct outbox *o = s->outbox;
	for (unsigned i = 0; i < IN_A_ROW && !atomic_load(&o->closing); i++)
		if (!send_one(o, str_of(s->receiver)))
			break;
	pthread_mutex_lock(&o->lock);
	s->over = true;
	o->news = true;
	pthread_cond_signal(&o->changed);
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

static void senders_join(struct outbox *o, bool all)
{
	for (size_t i = 0; i < SENDERS; i++) {
		struct sender *s = &o->senders[i];
		pthread_mutex_lock(&o->lock);
		bool over = s->used && (all || s->over);
		pthread_mutex_unlock(&o->lock);
		if (!over)
			continue;
		pthread_join(s->thread, NULL);
		*s = (struct sender){.used = false};
	}
}

/* A free place, unless the receiver has one already or its tenant has its share. So that a few tenants with receivers
 * that never answer cannot take all places, the last ones are for tenants that have none yet, and not all are for
 * receivers that failed. */
static struct sender *place_for(struct outbox *o, struct str receiver, struct str tenant, const char *via, bool failing)
{
	struct sender *free_one = NULL;
	unsigned of_tenant = 0, of_failing = 0, of_via = 0, unused = 0;
	for (size_t i = 0; i < SENDERS; i++) {
		struct sender *s = &o->senders[i];
		if (!s->used) {
			free_one = s;
			unused++;
			continue;
		}
		if (str_is(receiver, s->receiver))
			return NULL;
		of_tenant += str_is(tenant, s->tenant);
		of_failing += s->failing;
		of_via += *via && strcmp(via, s->via) == 0;
	}
	if (of_tenant >= SENDERS_OF_TENANT || (of_tenant && unused <= SENDERS_SPARE) || of_via >= SENDERS_VIA ||
	    (failing && of_failing >= SENDERS_FAILING))
		return NULL;
	return free_one;
}

static void sender_start(struct outbox *o, struct arena *a, const struct doc *d)
{
	const json_t *body = doc_json(a, d->body);
	struct str tenant = json_field(body, "tenant");
	bool failing = d->parent.n > 0;
	char via[VIA_TEXT];
	struct sender *s;
	str_copy(json_field(body, "via"), via, sizeof via);
	if (is_ahead(json_number(body, "dueMs")) || held_by_other(o, body) ||
	    !(s = place_for(o, d->id, tenant, via, failing)))
		return;
	*s = (struct sender){.outbox = o, .used = true, .failing = failing};
	str_copy(d->id, s->receiver, sizeof s->receiver);
	str_copy(tenant, s->tenant, sizeof s->tenant);
	str_copy(str_of(via), s->via, sizeof s->via);
	if (pthread_create(&s->thread, NULL, sender_run, s) == 0)
		return;
	log_error("outbox: no thread to send with");
	*s = (struct sender){.used = false};
}

/* A page of a list of receivers. False when it was the last. */
static bool look_page(struct outbox *o, struct str list, int64_t at)
{
	struct arena *a = arena_new();
	struct doc *docs;
	size_t count = 0;
	tx_begin_read(o->reader);
	int r = tx_list(o->reader, a, RECEIVER, list, at, LOOK_AT, &docs, &count);
	tx_end_read(o->reader);
	tx_rest(o->reader);
	for (size_t i = 0; r == 0 && i < count; i++)
		sender_start(o, a, &docs[i]);
	arena_free(a);
	return r == 0 && count == LOOK_AT;
}

static void look(struct outbox *o, struct str list)
{
	for (int64_t at = 0; look_page(o, list, at) && !atomic_load(&o->closing);)
		at += LOOK_AT;
}

static int list_count(struct tx *tx, struct str list, struct outbox_stats *to)
{
	size_t count = LOOK_AT;
	int r = 0;
	for (int64_t at = 0; r == 0 && count == LOOK_AT; at += LOOK_AT) {
		struct arena *a = arena_new();
		struct doc *receivers, *first;
		r = tx_list(tx, a, RECEIVER, list, at, LOOK_AT, &receivers, &count);
		for (size_t i = 0; r == 0 && i < count; i++) {
			int64_t waiting = 0;
			size_t n = 0;
			r = tx_count(tx, MESSAGE, receivers[i].id, &waiting);
			if (r == 0)
				r = tx_list(tx, a, MESSAGE, receivers[i].id, 0, 1, &first, &n);
			to->messages += (uint64_t)waiting;
			if (n && (!to->oldest_ms || first[0].created_ms < to->oldest_ms))
				to->oldest_ms = first[0].created_ms;
		}
		arena_free(a);
	}
	return r;
}

/* What waits, in the store of all processes. Returns when to count again: where that takes long, later. */
static int64_t queue_count(struct outbox *o)
{
	struct outbox_stats t = {.delivered = 0};
	int64_t due = 0, failing = 0, began = clock_mono_us();
	tx_begin_read(o->reader);
	int r = tx_count(o->reader, RECEIVER, STR_NONE, &due);
	if (r == 0)
		r = tx_count(o->reader, RECEIVER, LATER, &failing);
	if (r == 0 && due)
		r = list_count(o->reader, STR_NONE, &t);
	if (r == 0 && failing)
		r = list_count(o->reader, LATER, &t);
	tx_end_read(o->reader);
	tx_rest(o->reader);
	t.receivers = (uint64_t)(due + failing);
	t.failing = (uint64_t)failing;
	pthread_mutex_lock(&o->lock);
	if (r == 0)
		o->counted = t;
	pthread_mutex_unlock(&o->lock);
	int64_t ended = clock_mono_us(), rest = (ended - began) * COUNT_REST;
	return ended + (rest > COUNT_US ? rest : COUNT_US);
}

void outbox_stats(struct outbox *o, struct outbox_stats *ret_stats)
{
	pthread_mutex_lock(&o->lock);
	*ret_stats = o->counted;
	pthread_mutex_unlock(&o->lock);
	ret_stats->delivered = atomic_load(&o->delivered);
	ret_stats->put_off = atomic_load(&o->put_off);
	ret_stats->failed = atomic_load(&o->failed);
	ret_stats->dropped = queue_dropped();
}

/* Waits for news, or for a while. Returns whether there were any. */
static bool look_wait(struct outbox *o, int64_t pause_us)
{
	pthread_mutex_lock(&o->lock);
	int64_t due_us = clock_mono_us() + pause_us;
	struct timespec until = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
	if (!o->news && !atomic_load(&o->closing))
		pthread_cond_timedwait(&o->changed, &o->lock, &until);
	bool news = o->news;
	o->news = false;
	pthread_mutex_unlock(&o->lock);
	return news;
}

static void *look_run(void *arg)
{
	struct outbox *o = arg;
	int64_t pause_us = (store_is_remote(o->store) ? LOOK_REMOTE_MS : LOOK_MS) * INT64_C(1000), later_us = 0;
	int64_t count_us = 0;
	bool news = true;
	while (!atomic_load(&o->closing)) {
		senders_join(o, false);
		look(o, STR_NONE);
		/* Of receivers that fail there may be thousands, and they wait for seconds at least. */
		if (news || clock_mono_us() - later_us >= LOOK_REMOTE_MS * INT64_C(1000)) {
			look(o, LATER);
			later_us = clock_mono_us();
		}
		if (clock_mono_us() >= count_us)
			count_us = queue_count(o);
		news = look_wait(o, pause_us);
	}
	senders_join(o, true);
	return NULL;
}

void outbox_wake(struct outbox *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->news = true;
	pthread_cond_signal(&o->changed);
	pthread_mutex_unlock(&o->lock);
}

const struct post_options *outbox_post(const struct outbox *o)
{
	return &o->post;
}

bool outbox_has_mail(const struct outbox *o)
{
	return o && o->mail;
}

const char *outbox_url_fault(const struct outbox *o, struct arena *a, struct str url)
{
	const char *fault = post_url_fault(a, url);
	if (!fault && !(o && o->post.private_networks) && !str_starts(arena_lower(a, url), STR("https://")))
		fault = "must begin with https://: the operator of this service allows nothing else (--outbox-private)";
	return fault;
}

bool outbox_has_endpoint(const struct outbox *o, const char *name)
{
	for (const struct vendor_endpoint *e = o ? o->endpoints : NULL; e && e->name; e++)
		if (strcmp(e->name, name) == 0)
			return true;
	return false;
}

/* --- start and end */

static bool endpoint_is_known(struct str name)
{
	for (const struct vendor_endpoint *e = vendor_endpoints; e->name; e++)
		if (str_is(name, e->name))
			return true;
	return false;
}

static int endpoints_read(struct outbox *o, const struct option_texts *given)
{
	size_t count = given ? given->n : 0;
	o->endpoints = arena_new_array(o->arena, struct vendor_endpoint, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct str name, url;
		if (!str_cut(str_of(given->v[i]), '=', &name, &url) || !endpoint_is_known(name))
			return option_refuse(
			        "--outbox-endpoint: \"%s\" is not NAME=URL with a name that docs/alerts.md has",
			        given->v[i]);
		const char *fault = post_url_fault(o->arena, url);
		if (fault)
			return option_refuse("--outbox-endpoint: %.*s: %s", STR_ARG(name), fault);
		while (url.n && url.p[url.n - 1] == '/')
			url.n--;
		o->endpoints[i] = (struct vendor_endpoint){arena_z(o->arena, name), arena_z(o->arena, url)};
	}
	return 0;
}

static void outbox_free(struct outbox *o)
{
	mail_close(o->mail);
	if (o->reader)
		store_reader_free(o->reader);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->changed);
	pthread_cond_destroy(&o->closes);
	arena_free(o->arena);
	free(o);
	curl_global_cleanup();
}

static void locks_make(struct outbox *o)
{
	pthread_condattr_t attributes;
	pthread_mutex_init(&o->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&o->changed, &attributes);
	pthread_cond_init(&o->closes, &attributes);
	pthread_condattr_destroy(&attributes);
}

int outbox_open(const struct outbox_options *options, struct outbox **ret_outbox)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return option_refuse("libcurl cannot be used");
	struct outbox *o = must_calloc(1, sizeof *o);
	o->store = options->store;
	o->arena = arena_new();
	o->node = store_node(options->store);
	o->post = (struct post_options){options->ca_file, options->private_networks};
	locks_make(o);
	int r = endpoints_read(o, options->endpoints);
	if (r == 0 && options->mail)
		r = mail_open(options->mail, &o->mail);
	if (r == 0 && !(o->reader = store_reader(options->store)))
		r = -EIO;
	if (r == 0 && pthread_create(&o->thread, NULL, look_run, o) != 0)
		r = option_refuse("the thread of the outbox cannot be started");
	if (r < 0) {
		outbox_free(o);
		return r;
	}
	*ret_outbox = o;
	return 0;
}

void outbox_close(struct outbox *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	atomic_store(&o->close_by_us, clock_mono_us() + CLOSE_US);
	atomic_store(&o->closing, true);
	pthread_cond_signal(&o->changed);
	pthread_cond_broadcast(&o->closes);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	outbox_free(o);
}
