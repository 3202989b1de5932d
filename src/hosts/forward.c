/* The way from a call to another host: one thread drives all of it with libcurl, over connections that are kept and
 * that both sides have shown a certificate on. The protocol is HTTP/1.1: a reader who is slow fills one small ring
 * here, and then the connection, and so slows the other host, and nobody else.
 *
 * A host is away when it cannot be connected to, or when it has said nothing for a second and then does not complete a
 * handshake either: an answer that takes its time is waited for as long as its host is there. */
#include "hosts/hosts.h"

#include "hosts/head.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/pool.h"
#include "call/workers.h"
#include "fetch/fetch.h"
#include "gate/dispatch.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define FORWARDS_MAX 256            /* under way at once; one organization gets three quarters */
#define ASKS_MAX 8                  /* questions that workers wait for at once */
#define RING (64ul * 1024)          /* of an answer that is passed on as it comes */
#define WHOLE_MAX (256ul * 1024)    /* answers up to this length are passed on in one piece */
#define ASK_MAX (8ul * 1024 * 1024) /* longest answer to a question */
#define CONNECT_MS 1500L
#define QUIET_US 1000000 /* then the host is asked whether it is there */
#define PING_MS 700L
#define FIRST_US 30000000 /* longest wait for the beginning of an answer */
#define STALL_SECONDS 30L /* an answer that stands still for so long is given up */
#define ASK_MS 1800L
#define AWAY_US 1000000 /* a host that did not answer is not asked again for so long */
#define AWAY_MAX 64
#define CONNECTIONS_KEPT 64L
#define POLL_MS 200
#define IDLE_MS 60000

/* Places only. A call takes one of its organization and one of its host: a host that hangs leaves some to others. */
static struct pool forwards = POOL(FORWARDS_MAX, 0), to_hosts = POOL(FORWARDS_MAX, 0), asks = POOL(ASKS_MAX, 0);

struct ask {
	struct buf body;
	int status; /* 0: no answer */
	bool done;
};

struct forward {
	struct forward *next;           /* in the mailbox */
	struct forward *before, *after; /* among those under way */
	struct call *call;              /* NULL for a question; not to be touched once its answer is sent */
	struct request *request;
	struct ask *ask; /* NULL for a call */
	uint64_t key, host_key;
	struct host_place place;
	CURL *easy, *ping;
	struct fetch fetch;
	struct curl_slist *headers, *connect_to;
	int64_t begun_us, quiet_us;
	bool slow;                 /* its host is there, but took too long for this */
	struct host_head head;     /* of the answer */
	bool headed, streams, off; /* its head is here; it is passed on as it comes; the host is done with it */
	char *ring;
	size_t from, count;
	bool paused, failed, closed, in_mail; /* under the lock */
};

static struct {
	pthread_t thread;
	CURLM *multi;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct forward *mail;
	bool stopping;
	struct forward *first; /* the thread's */
	_Atomic uint64_t good_count, bad_count;
	struct {
		char id[25];
		int64_t until_us;
	} away[AWAY_MAX];
} net = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};

/* --- hosts that did not answer */

static void away_set(const char *id, int64_t until_us)
{
	size_t at = 0;
	pthread_mutex_lock(&net.lock);
	for (size_t i = 0; i < AWAY_MAX; i++) {
		if (strcmp(net.away[i].id, id) == 0) {
			at = i;
			break;
		}
		if (net.away[i].until_us < net.away[at].until_us)
			at = i;
	}
	memcpy(net.away[at].id, id, sizeof net.away[at].id);
	net.away[at].until_us = until_us;
	pthread_mutex_unlock(&net.lock);
}

static bool is_away(const char *id)
{
	bool away = false;
	int64_t now = clock_mono_us();
	pthread_mutex_lock(&net.lock);
	for (size_t i = 0; i < AWAY_MAX; i++)
		away |= net.away[i].until_us > now && strcmp(net.away[i].id, id) == 0;
	pthread_mutex_unlock(&net.lock);
	return away;
}

static int host_refuse(struct call *c, const char *name)
{
	call_header(c, STR("retry-after"), STR("2"));
	call_fail(c, 503, "HOST_UNAVAILABLE",
	          "The host %s, which alone can tell this, does not answer. Try again in 2 seconds.", name);
	return call_fail_param(c, arena_dup(c->arena, str_of(name)));
}

static int refuse_busy(struct call *c)
{
	call_header(c, STR("retry-after"), STR("1"));
	return call_fail(c, 503, "SERVICE_BUSY", "Too many calls wait for other hosts. Try again in a second.");
}

/* Where the host is, unless it is known not to answer. */
static int place_find(struct call *c, struct str host, struct host_place *ret_place)
{
	int r = host_look_up(c->tx, host, ret_place);
	if (r == 0 && !is_away(ret_place->id))
		return 0;
	return host_refuse(c, r == -ENOENT ? arena_z(c->arena, host) : ret_place->name);
}

/* --- the mailbox */

static void post(struct forward *f)
{
	if (f->in_mail)
		return;
	f->in_mail = true;
	f->next = net.mail;
	net.mail = f;
}

static void post_now(struct forward *f)
{
	pthread_mutex_lock(&net.lock);
	post(f);
	pthread_mutex_unlock(&net.lock);
	curl_multi_wakeup(net.multi);
}

/* --- an answer that is passed on as it comes: on the request's loop */

static ssize_t stream_read(void *ctx, char *ret_bytes, size_t n)
{
	struct forward *f = ctx;
	ssize_t done = 0;
	bool wake = false;
	pthread_mutex_lock(&net.lock);
	while ((size_t)done < n && f->count) {
		size_t part = RING - f->from < f->count ? RING - f->from : f->count;
		part = part < n - (size_t)done ? part : n - (size_t)done;
		memcpy(ret_bytes + done, f->ring + f->from, part);
		f->from = (f->from + part) % RING;
		f->count -= part;
		done += (ssize_t)part;
	}
	if (!done)
		done = f->failed ? -EIO : f->off ? 0 : -EAGAIN;
	if (f->paused && f->count <= RING / 2 && !f->in_mail) {
		post(f);
		wake = true;
	}
	pthread_mutex_unlock(&net.lock);
	if (wake)
		curl_multi_wakeup(net.multi);
	return done;
}

static void stream_close(void *ctx)
{
	struct forward *f = ctx;
	pthread_mutex_lock(&net.lock);
	f->closed = true;
	post(f);
	pthread_mutex_unlock(&net.lock);
	curl_multi_wakeup(net.multi);
}

/* --- what the host says */

static bool call_has_header(const struct call *c, const char *name)
{
	for (size_t i = 0; i < c->extra_header_count; i++)
		if (str_ieq(c->extra_headers[i][0], str_of(name)))
			return true;
	return false;
}

/* What this host has not said itself; framing, dates and limits are its own. */
static void header_take(struct forward *f, struct str name, struct str value)
{
	struct call *c = f->call;
	const char *passed = host_head_passes(name, value);
	if (c && passed && !call_has_header(c, passed) && f->request->response.header_count < RESPONSE_HEADERS_MAX / 2)
		response_header(&f->request->response, passed, arena_dup(f->request->arena, value));
}

static void head_end(struct forward *f)
{
	struct call *c = f->call;
	f->headed = true;
	if (!c)
		return;
	c->status = f->head.status;
	c->relayed = true;
	if (f->head.length <= WHOLE_MAX || f->head.status == 204 || f->head.status == 304)
		return;
	f->streams = true;
	f->ring = must_malloc(RING);
	f->request->response.stream = (struct body_stream){.read = stream_read, .close = stream_close, .ctx = f};
	f->call = NULL;
	call_send(c);
}

static size_t on_header(char *bytes, size_t size, size_t n, void *ctx)
{
	struct forward *f = ctx;
	struct str name, value;
	switch (host_head_take(&f->head, (struct str){bytes, size * n}, &name, &value)) {
	case HOST_LINE_FIELD: header_take(f, name, value); break;
	case HOST_LINE_END: head_end(f); break;
	case HOST_LINE_NOTHING: break;
	}
	return size * n;
}

static size_t ring_put(struct forward *f, const char *bytes, size_t n)
{
	pthread_mutex_lock(&net.lock);
	f->paused = !f->closed && RING - f->count < n;
	bool taken = !f->closed && !f->paused;
	for (size_t left = n; taken && left;) {
		size_t at = (f->from + f->count) % RING, part = RING - at < left ? RING - at : left;
		memcpy(f->ring + at, bytes, part);
		bytes += part;
		left -= part;
		f->count += part;
	}
	if (taken)
		http_stream_ready(f->request);
	bool paused = f->paused;
	pthread_mutex_unlock(&net.lock);
	return taken ? n : paused ? CURL_WRITEFUNC_PAUSE : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct forward *f = ctx;
	size_t all = size * n;
	if (f->streams)
		return ring_put(f, bytes, all);
	f->quiet_us = clock_mono_us();
	struct buf *to = f->ask ? &f->ask->body : &f->call->out;
	if (to->n + all > (f->ask ? ASK_MAX : WHOLE_MAX))
		return 0;
	buf_add(to, bytes, all);
	return all;
}

/* --- the thread */

static void easy_end(CURL **easy)
{
	if (!*easy)
		return;
	curl_multi_remove_handle(net.multi, *easy);
	curl_easy_cleanup(*easy);
	*easy = NULL;
}

/* The host is done with it, one way or the other. */
static void transfer_end(struct forward *f)
{
	easy_end(&f->easy);
	easy_end(&f->ping);
	curl_slist_free_all(f->headers);
	curl_slist_free_all(f->connect_to);
	f->headers = f->connect_to = NULL;
	if (f->before)
		f->before->after = f->after;
	else if (net.first == f)
		net.first = f->after;
	if (f->after)
		f->after->before = f->before;
	f->before = f->after = NULL;
}

static bool places_enter(uint64_t key, uint64_t host_key)
{
	if (!pool_enter(&forwards, key))
		return false;
	if (pool_enter(&to_hosts, host_key))
		return true;
	pool_leave(&forwards, key);
	return false;
}

static void forward_free(struct forward *f)
{
	if (!f->ask) {
		pool_leave(&to_hosts, f->host_key);
		pool_leave(&forwards, f->key);
	}
	free(f->ring);
	free(f);
}

static void finish_ask(struct forward *f, bool good)
{
	struct ask *ask = f->ask;
	int status = good ? f->head.status : 0;
	forward_free(f);
	pthread_mutex_lock(&net.lock);
	ask->status = status;
	ask->done = true;
	pthread_cond_broadcast(&net.answered);
	pthread_mutex_unlock(&net.lock);
}

static void finish_call(struct forward *f, bool good)
{
	struct call *c = f->call;
	if (!good) {
		c->relayed = false;
		c->out.n = 0;
		f->request->response.header_count = 0;
		host_refuse(c, f->place.name);
	}
	forward_free(f);
	call_send(c);
}

/* An answer that breaks off is cut off for the caller too: it must not look complete. */
static void finish_stream(struct forward *f, bool good)
{
	pthread_mutex_lock(&net.lock);
	f->off = true;
	f->failed = !good;
	if (!f->closed)
		http_stream_ready(f->request);
	pthread_mutex_unlock(&net.lock);
}

static bool is_closed(struct forward *f)
{
	pthread_mutex_lock(&net.lock);
	bool closed = f->closed;
	pthread_mutex_unlock(&net.lock);
	return closed;
}

static void finish(struct forward *f, bool good, const char *why)
{
	if (good)
		net.good_count++;
	if (!good && !is_closed(f)) {
		net.bad_count++;
		/* Of many that wait for a host that is away, one line says so. */
		if (f->headed || f->slow || !is_away(f->place.id))
			log_warn("hosts: %s (%s) at %s: %s", f->place.name, f->place.id, f->place.address, why);
		if (!f->headed && !f->slow)
			away_set(f->place.id, clock_mono_us() + AWAY_US);
	}
	transfer_end(f);
	if (f->ask)
		finish_ask(f, good);
	else if (f->streams)
		finish_stream(f, good);
	else
		finish_call(f, good);
}

static struct curl_blob blob(struct str s)
{
	return (struct curl_blob){.data = (void *)(uintptr_t)s.p, .len = s.n, .flags = CURL_BLOB_NOCOPY};
}

static CURL *easy_new(struct forward *f, struct str target)
{
	const struct host_papers *p = host_papers();
	struct curl_blob certificate = blob(p->client_certificate), key = blob(p->client_key), ca = blob(p->authority);
	CURL *e = curl_easy_init();
	struct buf url = {0};
	if (!e)
		return NULL;
	buf_printf(&url, "https://%s" HOST_DOMAIN "%.*s", f->place.id, STR_ARG(target));
	buf_c(&url, '\0');
	curl_easy_setopt(e, CURLOPT_URL, url.p);
	buf_free(&url);
	curl_easy_setopt(e, CURLOPT_PRIVATE, f);
	curl_easy_setopt(e, CURLOPT_CONNECT_TO, f->connect_to);
	f->fetch.named = FETCH_BY_OPERATOR;
	fetch_setup(e, &f->fetch, "https", NULL);
	curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3);
	curl_easy_setopt(e, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(e, CURLOPT_CAINFO_BLOB, &ca);
	curl_easy_setopt(e, CURLOPT_SSLCERT_BLOB, &certificate);
	curl_easy_setopt(e, CURLOPT_SSLKEY_BLOB, &key);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, 60L);
	curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
	return e;
}

static void header_add(struct forward *f, const char *name, struct str value)
{
	struct buf b = {0};
	buf_printf(&b, "%s: %.*s", name, STR_ARG(value));
	buf_c(&b, '\0');
	f->headers = curl_slist_append(f->headers, b.p);
	buf_free(&b);
}

/* What the answer depends on, and who asks. */
static void headers_make(struct forward *f)
{
	static const char *const passed[] = {"accept",
	                                     "if-match",
	                                     "if-none-match",
	                                     "user-agent",
	                                     "use-effective-instance-fields",
	                                     "use-effective-fields-replication-specs"};
	const struct request *r = f->request;
	char peer[IP_TEXT];
	bool accepts = false;
	for (size_t i = 0; f->call && i < r->header_count; i++)
		for (size_t k = 0; k < sizeof passed / sizeof *passed; k++)
			if (str_is(r->headers[i].name, passed[k])) {
				header_add(f, passed[k], r->headers[i].value);
				accepts |= k == 0;
			}
	if (!accepts)
		header_add(f, "accept", STR("*/*"));
	header_add(f, "x-request-id", str_of(r->id));
	ip_format(&r->peer, peer);
	header_add(f, HEADER_PEER, str_of(peer));
	if (f->call && f->call->caller) {
		char caller[64];
		snprintf(caller, sizeof caller, "%d/%s", (int)f->call->caller->kind, f->call->caller->id);
		header_add(f, HEADER_CALLER, str_of(caller));
	}
}

static void begin(struct forward *f)
{
	f->after = net.first;
	if (f->after)
		f->after->before = f;
	net.first = f;
	if (curl_multi_add_handle(net.multi, f->easy) != CURLM_OK)
		finish(f, false, "no transfer can be begun");
}

static void ping_begin(struct forward *f)
{
	f->ping = easy_new(f, STR("/"));
	if (!f->ping)
		return;
	curl_easy_setopt(f->ping, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(f->ping, CURLOPT_FRESH_CONNECT, 1L);
	curl_easy_setopt(f->ping, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(f->ping, CURLOPT_TIMEOUT_MS, PING_MS);
	curl_multi_add_handle(net.multi, f->ping);
}

static struct forward *mail_take(bool *ret_closed, bool *ret_paused)
{
	pthread_mutex_lock(&net.lock);
	struct forward *f = net.mail;
	if (f) {
		net.mail = f->next;
		f->in_mail = false;
		*ret_closed = f->closed;
		*ret_paused = f->paused;
		f->paused = false;
	}
	pthread_mutex_unlock(&net.lock);
	return f;
}

static void mail_run(void)
{
	struct forward *f;
	bool closed, paused;
	while ((f = mail_take(&closed, &paused))) {
		if (!f->begun_us) {
			f->begun_us = f->quiet_us = clock_mono_us();
			begin(f);
		} else if (closed) {
			if (!f->off)
				transfer_end(f);
			forward_free(f);
		} else if (paused && f->easy) {
			curl_easy_pause(f->easy, CURLPAUSE_CONT);
		}
	}
}

static bool is_same_place(const struct host_place *a, const struct host_place *b)
{
	return strcmp(a->id, b->id) == 0 && strcmp(a->address, b->address) == 0;
}

/* One handshake is asked for on behalf of all that wait for the host. */
static bool is_pinged(const struct host_place *place)
{
	for (const struct forward *f = net.first; f; f = f->after)
		if (f->ping && is_same_place(&f->place, place))
			return true;
	return false;
}

static bool is_quiet(const struct forward *f, int64_t now)
{
	return !f->streams && !f->ask && now - f->quiet_us > QUIET_US;
}

static void pinged(struct host_place place, bool good)
{
	int64_t now = clock_mono_us();
	for (struct forward *f = net.first, *next; f; f = next) {
		next = f->after;
		if (!is_quiet(f, now) || !is_same_place(&f->place, &place))
			continue;
		if (good)
			f->quiet_us = now;
		else
			finish(f, false, "it is silent, and completes no handshake");
	}
}

static void messages_run(void)
{
	CURLMsg *m;
	int left;
	while ((m = curl_multi_info_read(net.multi, &left))) {
		struct forward *f;
		CURLcode result = m->data.result;
		if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f) != CURLE_OK)
			continue;
		if (m->easy_handle == f->ping) {
			easy_end(&f->ping);
			pinged(f->place, result == CURLE_OK);
		} else {
			finish(f, result == CURLE_OK && f->headed, curl_easy_strerror(result));
		}
	}
}

static void quiet_look(void)
{
	int64_t now = clock_mono_us();
	for (struct forward *f = net.first, *next; f; f = next) {
		next = f->after;
		if (f->streams || f->ask)
			continue;
		if (!f->headed && now - f->begun_us > FIRST_US) {
			f->slow = true;
			finish(f, false, "it did not begin to answer in time");
		} else if (is_quiet(f, now) && !is_pinged(&f->place)) {
			ping_begin(f);
		}
	}
}

static void *net_main(void *arg)
{
	int running;
	for (;;) {
		mail_run();
		curl_multi_perform(net.multi, &running);
		messages_run();
		quiet_look();
		pthread_mutex_lock(&net.lock);
		bool over = net.stopping && !net.mail && !net.first;
		pthread_mutex_unlock(&net.lock);
		if (over)
			return NULL;
		curl_multi_poll(net.multi, NULL, 0, net.first ? POLL_MS : IDLE_MS, NULL);
	}
}

void forward_stats(struct hosts_stats *stats)
{
	stats->answered = net.good_count;
	stats->failed = net.bad_count;
}

int forward_start(unsigned workers)
{
	/* A third of the workers stays for calls that ask no other host. */
	unsigned most = workers * 2 / 3;
	asks.running_max = most < 1 ? 1 : most < ASKS_MAX ? most : ASKS_MAX;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(net.multi = curl_multi_init()))
		return -ENOMEM;
	curl_multi_setopt(net.multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
	net.stopping = false;
	int r = -pthread_create(&net.thread, NULL, net_main, NULL);
	if (r < 0) {
		curl_multi_cleanup(net.multi);
		net.multi = NULL;
	}
	return r;
}

void forward_stop(void)
{
	if (!net.multi)
		return;
	pthread_mutex_lock(&net.lock);
	net.stopping = true;
	pthread_mutex_unlock(&net.lock);
	curl_multi_wakeup(net.multi);
	pthread_join(net.thread, NULL);
	curl_multi_cleanup(net.multi);
	net.multi = NULL;
}

/* --- for those who ask */

static struct forward *forward_new(struct request *r, const struct host_place *place, uint64_t key)
{
	struct forward *f = must_calloc(1, sizeof *f);
	struct buf to = {0};
	*f = (struct forward){.request = r, .place = *place, .key = key, .head = {.length = SIZE_MAX}};
	buf_printf(&to, "::%s", place->address);
	buf_c(&to, '\0');
	f->connect_to = curl_slist_append(NULL, to.p);
	buf_free(&to);
	return f;
}

static bool easy_set(struct forward *f, struct str target)
{
	headers_make(f);
	f->easy = easy_new(f, target);
	if (!f->easy)
		return false;
	curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->headers);
	curl_easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
	curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	if (f->ask) {
		curl_easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, ASK_MS);
	} else {
		curl_easy_setopt(f->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(f->easy, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
	}
	return true;
}

static void forward_drop(struct forward *f)
{
	curl_slist_free_all(f->headers);
	curl_slist_free_all(f->connect_to);
	forward_free(f);
}

/* The read has ended: its reader and its thread are free for others while the host works. */
static void go(struct call *c, void *arg)
{
	const struct host_place *place = arg;
	c->held = NULL;
	/* What the handler wrote before it knew. */
	c->out.n = 0;
	c->etag = 0;
	c->is_list = false;
	uint64_t host_key = fair_key(str_of(place->id));
	if (!places_enter(call_key(c), host_key)) {
		refuse_busy(c);
		call_send(c);
		return;
	}
	struct forward *f = forward_new(c->request, place, call_key(c));
	f->host_key = host_key;
	f->call = c;
	if (easy_set(f, c->request->target)) {
		post_now(f);
		return;
	}
	forward_drop(f);
	refuse_busy(c);
	call_send(c);
}

int hosts_forward(struct call *c, struct str host)
{
	struct host_place *place = arena_new_of(c->arena, struct host_place);
	assert(c->op->method == METHOD_GET);
	if (call_is_passed_on(c)) {
		call_header(c, STR("retry-after"), STR("2"));
		return call_fail(c, 503, "HOST_UNAVAILABLE", "The host %.*s was asked for what another has. Try again.",
		                 STR_ARG(hosts_self()));
	}
	int r = place_find(c, host, place);
	if (r < 0)
		return r;
	c->held = go;
	c->held_arg = place;
	return 0;
}

static int ask_begin(struct call *c, struct host_question *q, struct ask *ask)
{
	struct host_place place;
	int r = place_find(c, q->host, &place);
	if (r < 0)
		return r;
	struct forward *f = forward_new(c->request, &place, 0);
	f->ask = ask;
	if (!easy_set(f, q->path)) {
		forward_drop(f);
		return refuse_busy(c);
	}
	post_now(f);
	return 1;
}

static void question_unanswered(struct call *c, struct host_question *q)
{
	struct host_place place = {.name = "?"};
	int r = host_where(q->host, &place);
	q->away = arena_z(c->arena, r == -ENOENT ? q->host : str_of(place.name));
	if (!q->may_fail)
		host_refuse(c, q->away);
}

/* One that is known to be away is not asked, where that is no problem. */
static bool is_left_out(struct call *c, const struct host_question *q)
{
	struct host_place place;
	return q->may_fail && (host_look_up(c->tx, q->host, &place) < 0 || is_away(place.id));
}

int hosts_ask(struct call *c, struct host_question *list, size_t count)
{
	struct ask *all = arena_new_array(c->arena, struct ask, count + 1);
	int r = 0;
	size_t begun = 0;
	if (!pool_enter(&asks, call_key(c)))
		return refuse_busy(c);
	workers_share();
	for (; r >= 0 && begun < count; begun += r >= 0)
		r = (all[begun].done = is_left_out(c, &list[begun])) ? 0 : ask_begin(c, &list[begun], &all[begun]);
	pthread_mutex_lock(&net.lock);
	for (size_t i = 0; i < begun; i++)
		while (!all[i].done)
			pthread_cond_wait(&net.answered, &net.lock);
	pthread_mutex_unlock(&net.lock);
	pool_leave(&asks, call_key(c));
	for (size_t i = 0; i < begun; i++) {
		struct str text = buf_view(&all[i].body);
		if (r >= 0 && all[i].status == 200 &&
		    (list[i].answer = json_loadb(text.n ? text.p : "", text.n, 0, NULL)))
			json_keep(c->arena, list[i].answer);
		else if (!c->problem.status)
			question_unanswered(c, &list[i]);
		buf_free(&all[i].body);
	}
	return c->problem.status ? -c->problem.status : 0;
}
