/* The queue and its senders (jobs/senders.h). A sender claims a receiver, sends its first message, writes down what
 * came of it, and goes on until none is left or one has failed. Times are of the service's clock. */
#include "outbox/outbox.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "jobs/senders.h"
#include "outbox/post.h"
#include "outbox/queue.h"
#include "outbox/vendors.h"
#include "store/seal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

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
#define LEASE_MS 90000 /* more than a send can take */
#define STORE_REST_US INT64_C(1000000)

/* Seconds before each further attempt. */
static const unsigned waits[] = {5, 30, 120, 600, 3600, 3600, 3600};
#define RETRIES (sizeof waits / sizeof *waits)

struct outbox {
	struct store *store;
	struct tx *reader; /* of the looking thread */
	struct mail *mail;
	struct post_options post;
	struct vendor_endpoint *endpoints; /* the operator's; ended by NULL */
	struct arena *arena;
	const char *node;
	struct senders *senders;
	int64_t later_us,
	        count_us; /* of the looking thread: when receivers that fail were looked at, and when to count */
	atomic_uint_fast64_t delivered, put_off, failed;
	pthread_mutex_t lock;        /* of what follows */
	struct outbox_stats counted; /* of the store */
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

static bool held_by_other(const struct outbox *o, const json_t *body)
{
	return due_later(json_number(body, "leaseMs")) && !str_is(json_field(body, "owner"), o->node);
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
	if (held_by_other(s->outbox, body) || due_later(json_number(body, "dueMs")))
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
	                 .stops = senders_cut_off,
	                 .ctx = s->outbox->senders};
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
	return mail_deliver(s->outbox->mail, &l, senders_cut_off, s->outbox->senders, &s->gone, s->fault);
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

/* One message of the receiver of that id. Returns whether another may leave now. */
static bool message_send(void *ctx, void *receiver)
{
	struct outbox *o = ctx;
	struct sending s = {.outbox = o, .arena = arena_new(), .receiver = str_of(receiver)};
	int r = store_write_wait(o->store, claim_run, &s);
	if (r == 0 && s.claimed) {
		s.taken = json_field(s.content, "to").n ? letter_send(&s) : request_send(&s);
		/* A transfer that the end of the process has cut off says nothing of the receiver. */
		if (s.taken || !senders_cut_off(o->senders))
			r = senders_record(o->senders, outcome_run, &s);
		attempt_count(&s);
		attempt_log(&s);
	}
	if (r < 0 && r != -ESHUTDOWN) {
		log_error("outbox: a message cannot be taken or recorded (error %d)", r);
		/* The receiver is still due: a store that refuses must not be asked at once. */
		senders_pause(o->senders, STORE_REST_US);
	}
	bool more = r == 0 && s.more;
	arena_free(s.arena);
	return more;
}

static void receiver_free(void *ctx, void *receiver)
{
	free(receiver);
}

/* --- what is due */

static void sender_start(struct outbox *o, struct arena *a, const struct doc *d)
{
	const json_t *body = doc_json(a, d->body);
	const struct sender_for whom = {.receiver = d->id,
	                                .tenant = json_field(body, "tenant"),
	                                .via = json_field(body, "via"),
	                                .failing = d->parent.n > 0};
	if (due_later(json_number(body, "dueMs")) || held_by_other(o, body) || !senders_have_place(o->senders, &whom))
		return;
	char *receiver = must_malloc(d->id.n + 1);
	str_copy(d->id, receiver, d->id.n + 1);
	if (!senders_start(o->senders, &whom, receiver))
		free(receiver);
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

static void deliveries_look(struct outbox *o, struct str list)
{
	for (int64_t at = 0; look_page(o, list, at) && !senders_end(o->senders);)
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

static void due_look(void *ctx, bool news)
{
	struct outbox *o = ctx;
	deliveries_look(o, STR_NONE);
	/* Of receivers that fail there may be thousands, and they wait for seconds at least. */
	if (news || clock_mono_us() - o->later_us >= LOOK_REMOTE_MS * INT64_C(1000)) {
		deliveries_look(o, LATER);
		o->later_us = clock_mono_us();
	}
	if (clock_mono_us() >= o->count_us)
		o->count_us = queue_count(o);
}

void outbox_wake(struct outbox *o)
{
	if (o)
		senders_wake(o->senders);
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
	arena_free(o->arena);
	free(o);
	curl_global_cleanup();
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
	pthread_mutex_init(&o->lock, NULL);
	int r = endpoints_read(o, options->endpoints);
	if (r == 0 && options->mail)
		r = mail_open(options->mail, &o->mail);
	if (r == 0 && !(o->reader = store_reader(options->store)))
		r = -EIO;
	const struct senders_options senders = {.name = "outbox",
	                                        .store = o->store,
	                                        .ctx = o,
	                                        .due = due_look,
	                                        .send = message_send,
	                                        .done = receiver_free,
	                                        .look_us = (store_is_remote(o->store) ? LOOK_REMOTE_MS : LOOK_MS) *
	                                                   INT64_C(1000),
	                                        .of_tenant = SENDERS_OF_TENANT,
	                                        .of_via = SENDERS_VIA,
	                                        .failing = SENDERS_FAILING,
	                                        .spare = SENDERS_SPARE};
	if (r == 0 && senders_open(&senders, &o->senders) < 0)
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
	senders_close(o->senders);
	outbox_free(o);
}
