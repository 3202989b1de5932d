/* Buckets in Redis. The script counts as limit.c does, on Redis's own clock, so that the clocks of the nodes do not
 * matter; with a virtual clock the service's time is sent instead. A bucket expires when it would be full, because a
 * full bucket is the same as none.
 *
 * Idle connections are kept in a stack; a thread that finds none opens one. After the first failure nobody asks Redis
 * until the keeper, a thread, has reached it again. The keeper also probes a Redis that nobody uses, so that what the
 * node reports about it is true. */
#include "limit/redis.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/option.h"
#include "limit/redis_link.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define IDLE_MAX 64
#define PORT_DEFAULT 6379
#define KEEPER_MS 250
#define LOOK_TURNS 4 /* turns of the keeper between two probes of a Redis that works */
#define PASSWORD_MAX 1024

/* KEYS: the bucket. ARGV: capacity, refill, period in ms, whether to take, time in ms or 0 for Redis's own. */
static const char script[] =
        "local cap, refill, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
        "local now = tonumber(ARGV[5])\n"
        "local given = now > 0\n"
        "if not given then local t = redis.call('TIME'); now = t[1] * 1000 + math.floor(t[2] / 1000) end\n"
        "local b = redis.call('HMGET', KEYS[1], 'first', 'steps', 'tokens', 'cap')\n"
        "local first, steps, tokens, was = now, 0, cap, cap\n"
        "if b[1] then first, steps, tokens, was = tonumber(b[1]), tonumber(b[2]), tonumber(b[3]), tonumber(b[4]) end\n"
        "if cap > was then tokens = tokens + cap - was elseif tokens > cap then tokens = cap end\n"
        "if now < first + steps * period then first, steps = now, 0 end\n"
        "local due = math.floor((now - first) / period)\n"
        "if due > steps then tokens = math.min(cap, tokens + (due - steps) * refill); steps = due end\n"
        "local granted = 0\n"
        "if tokens > 0 then granted = 1 end\n"
        "if ARGV[4] == '1' then\n"
        "  tokens = tokens - granted\n"
        "  redis.call('HSET', KEYS[1], 'first', first, 'steps', steps, 'tokens', tokens, 'cap', cap)\n"
        "  local life = 86400000\n"
        "  if not given then life = (math.ceil((cap - tokens) / math.max(refill, 1)) + 1) * period end\n"
        "  redis.call('PEXPIRE', KEYS[1], math.min(life, 31536000000))\n"
        "end\n"
        "return {granted, tokens, first + (steps + 1) * period - now}\n";

struct redis_limits {
	struct redis_target target;
	char *user, *password, *prefix;
	int database;
	char sha[41];               /* of the script; set once, by the keeper */
	char logged_why[REDIS_WHY]; /* the keeper's: the last reason that was logged */
	_Atomic bool up;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct redis_link *idle[IDLE_MAX];
	unsigned idle_count;
	bool closing;
	pthread_t keeper;
};

/* Why it failed: what Redis answered, or the error of the connection. */
static void why_not(const struct redis_link *l, const redisReply *reply, char ret_why[REDIS_WHY])
{
	const char *text = !reply                             ? redis_link_why(l)
	                   : reply->type == REDIS_REPLY_ERROR ? reply->str
	                                                      : "it answered something else";
	snprintf(ret_why, REDIS_WHY, "%s", text);
}

static bool say(struct redis_link *l, int argc, const char **argv, char ret_why[REDIS_WHY])
{
	redisReply *reply = redis_link_ask(l, argc, argv, NULL);
	bool ok = reply && reply->type != REDIS_REPLY_ERROR;
	if (!ok)
		why_not(l, reply, ret_why);
	freeReplyObject(reply);
	return ok;
}

/* A refusal is told in words of ours: Redis quotes the arguments of a command that it does not know, and where AUTH was
 * renamed that is the password, which would be in the log. */
static bool authenticate(const struct redis_limits *r, struct redis_link *l, char ret_why[REDIS_WHY])
{
	const char *auth[] = {"AUTH", r->user ? r->user : r->password, r->password};
	redisReply *reply = redis_link_ask(l, r->user ? 3 : 2, auth, NULL);
	bool ok = reply && reply->type != REDIS_REPLY_ERROR;
	if (!reply)
		why_not(l, NULL, ret_why);
	else if (!ok)
		snprintf(ret_why, REDIS_WHY, "it refuses the %s: %s", r->user ? "user or the password" : "password",
		         str_starts(str_of(reply->str), STR("WRONGPASS")) ? "WRONGPASS" : "is one set there?");
	freeReplyObject(reply);
	return ok;
}

static struct redis_link *connection_open(const struct redis_limits *r, char ret_why[REDIS_WHY])
{
	char database[12];
	struct redis_link *l = redis_link_open(&r->target, ret_why);
	if (!l)
		return NULL;
	snprintf(database, sizeof database, "%d", r->database);
	const char *select[] = {"SELECT", database};
	bool ok = !r->password || authenticate(r, l, ret_why);
	if (ok && r->database)
		ok = say(l, 2, select, ret_why);
	if (!ok) {
		redis_link_free(l);
		return NULL;
	}
	return l;
}

/* An idle connection, or NULL. */
static struct redis_link *connection_take(struct redis_limits *r)
{
	struct redis_link *l = NULL;
	pthread_mutex_lock(&r->lock);
	if (r->idle_count)
		l = r->idle[--r->idle_count];
	pthread_mutex_unlock(&r->lock);
	return l;
}

static void connection_put(struct redis_limits *r, struct redis_link *l)
{
	pthread_mutex_lock(&r->lock);
	if (r->idle_count < IDLE_MAX) {
		r->idle[r->idle_count++] = l;
		l = NULL;
	}
	pthread_mutex_unlock(&r->lock);
	redis_link_free(l);
}

static void connections_drop(struct redis_limits *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->idle_count)
		redis_link_free(r->idle[--r->idle_count]);
	pthread_mutex_unlock(&r->lock);
}

/* From now on nobody asks Redis until the keeper has reached it, at its next turn. */
static void mark_down(struct redis_limits *r, const char *why)
{
	if (atomic_exchange(&r->up, false))
		log_warn("limits: redis is away (%s): this node limits by itself until it is back", why);
	connections_drop(r);
}

#define TAKE_ARGS 9

/* Fills argv[4..8]; texts live in `text`. */
static void take_numbers(const struct redis_take *t, char text[4][24], const char **argv)
{
	snprintf(text[0], sizeof text[0], "%u", t->capacity);
	snprintf(text[1], sizeof text[1], "%u", t->refill);
	snprintf(text[2], sizeof text[2], "%u", t->seconds * 1000);
	snprintf(text[3], sizeof text[3], "%lld", clock_is_virtual() ? (long long)clock_now_ms() : 0LL);
	argv[4] = text[0];
	argv[5] = text[1];
	argv[6] = text[2];
	argv[7] = t->only_look ? "0" : "1";
	argv[8] = text[3];
}

static redisReply *take_ask(const struct redis_limits *r, struct redis_link *l, const struct redis_take *t)
{
	char key[256], text[4][24];
	const char *argv[TAKE_ARGS] = {"EVALSHA", r->sha, "1", key};
	size_t lengths[TAKE_ARGS];
	take_numbers(t, text, argv);
	int n = snprintf(key, sizeof key, "%s%s:%.*s", r->prefix, t->set, STR_ARG(t->scope));
	for (int i = 0; i < TAKE_ARGS; i++)
		lengths[i] = strlen(argv[i]);
	lengths[3] = n < (int)sizeof key ? (size_t)n : sizeof key - 1;
	redisReply *reply = redis_link_ask(l, TAKE_ARGS, argv, lengths);
	/* After a restart Redis does not know the script, so it is sent once. */
	if (reply && reply->type == REDIS_REPLY_ERROR && str_starts(str_of(reply->str), STR("NOSCRIPT"))) {
		freeReplyObject(reply);
		argv[0] = "EVAL";
		argv[1] = script;
		lengths[0] = 4;
		lengths[1] = sizeof script - 1;
		reply = redis_link_ask(l, TAKE_ARGS, argv, lengths);
	}
	return reply;
}

static bool numbers(const redisReply *reply)
{
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
		return false;
	for (size_t i = 0; i < 3; i++)
		if (reply->element[i]->type != REDIS_REPLY_INTEGER)
			return false;
	return true;
}

/* Takes a token, on an idle connection or a new one. False: Redis cannot be used. */
static bool take_from(struct redis_limits *r, const struct redis_take *t, long long ret_numbers[3],
                      char ret_why[REDIS_WHY])
{
	struct redis_link *l = connection_take(r);
	bool kept = l;
	for (;;) {
		if (!l && !(l = connection_open(r, ret_why)))
			return false;
		redisReply *reply = take_ask(r, l, t);
		/* The server closed it while it was idle: that says nothing about Redis, and the other idle connections
		 * are no better. If a token was taken anyway, it is lost, never given twice. */
		bool closed = !reply && redis_link_closed(l);
		if (numbers(reply)) {
			for (int i = 0; i < 3; i++)
				ret_numbers[i] = reply->element[i]->integer;
			freeReplyObject(reply);
			connection_put(r, l);
			return true;
		}
		why_not(l, reply, ret_why);
		freeReplyObject(reply);
		redis_link_free(l);
		if (!kept || !closed)
			return false;
		connections_drop(r);
		l = NULL;
		kept = false;
	}
}

/* An answer is not enough: a Redis that is full, or a replica, accepts no writes. */
static bool accepts_writes(struct redis_limits *r, char ret_why[REDIS_WHY])
{
	const struct redis_take own = {.set = "keeper", .scope = STR(""), .capacity = 1, .refill = 1, .seconds = 1};
	long long numbers[3];
	return take_from(r, &own, numbers, ret_why);
}

static bool reach(struct redis_limits *r, char ret_why[REDIS_WHY])
{
	const char *load[] = {"SCRIPT", "LOAD", script};
	struct redis_link *l = connection_open(r, ret_why);
	if (!l)
		return false;
	redisReply *reply = redis_link_ask(l, 3, load, NULL);
	bool ok = reply && reply->type == REDIS_REPLY_STRING && reply->len == 40;
	if (ok && !r->sha[0])
		memcpy(r->sha, reply->str, 41);
	if (!ok)
		why_not(l, reply, ret_why);
	freeReplyObject(reply);
	if (!ok) {
		redis_link_free(l);
		return false;
	}
	connection_put(r, l);
	return accepts_writes(r, ret_why);
}

/* Checks whether Redis is still, or again, in the state that the node reports. Each reason is logged once. */
static void probe(struct redis_limits *r)
{
	char why[REDIS_WHY] = "";
	bool was = r->up;
	if (was ? accepts_writes(r, why) : reach(r, why)) {
		if (!was)
			log_info("limits: redis at %s:%d keeps the buckets%s", r->target.host, r->target.port,
			         r->target.tls ? ", over TLS" : "");
		r->logged_why[0] = '\0';
		atomic_store(&r->up, true);
		return;
	}
	if (!was && strcmp(why, r->logged_why) != 0)
		log_warn("limits: redis at %s:%d: %s", r->target.host, r->target.port, why);
	memcpy(r->logged_why, why, sizeof why);
	mark_down(r, why);
}

static void *keeper_main(void *arg)
{
	struct redis_limits *r = arg;
	unsigned turns = 0;
	pthread_mutex_lock(&r->lock);
	while (!r->closing) {
		if (!r->up || ++turns % LOOK_TURNS == 0) {
			pthread_mutex_unlock(&r->lock);
			probe(r);
			pthread_mutex_lock(&r->lock);
		}
		int64_t until = clock_mono_us() + (int64_t)KEEPER_MS * 1000;
		struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
		if (!r->closing)
			pthread_cond_timedwait(&r->wake, &r->lock, &t);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static char *part(CURLU *u, CURLUPart which, unsigned flags)
{
	char *text = NULL, *copy = NULL;
	if (curl_url_get(u, which, &text, flags) == CURLUE_OK && text && *text)
		copy = must_strdup(text);
	curl_free(text);
	return copy;
}

/* An IPv6 address comes without its brackets. */
static char *host_part(CURLU *u)
{
	char *host = part(u, CURLUPART_HOST, 0);
	size_t n = host ? strlen(host) : 0;
	if (n > 2 && host[0] == '[') {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	return host;
}

static bool url_parse(const char *url, struct redis_limits *r, bool *ret_tls)
{
	uint64_t number;
	CURLU *u = curl_url();
	bool tls = str_starts(str_of(url), STR("rediss://"));
	bool ok = u && (tls || str_starts(str_of(url), STR("redis://"))) &&
	          curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
	char *port = ok ? part(u, CURLUPART_PORT, 0) : NULL, *path = ok ? part(u, CURLUPART_PATH, 0) : NULL;
	char *query = ok ? part(u, CURLUPART_QUERY, 0) : NULL;
	if (ok) {
		r->target.host = host_part(u);
		r->user = part(u, CURLUPART_USER, CURLU_URLDECODE);
		r->password = part(u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	}
	r->target.port = PORT_DEFAULT;
	if (port && str_to_u64(str_of(port), 65535, &number))
		r->target.port = (int)number;
	if (path && path[0] == '/' && path[1]) {
		ok = ok && str_to_u64(str_of(path + 1), 1000000, &number);
		r->database = ok ? (int)number : 0;
	}
	ok = ok && r->target.host && !query;
	free(port);
	free(path);
	free(query);
	curl_url_cleanup(u);
	*ret_tls = tls;
	return ok;
}

static void limits_free(struct redis_limits *r)
{
	while (r->idle_count)
		redis_link_free(r->idle[--r->idle_count]);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->wake);
	SSL_CTX_free(r->target.tls);
	free(r->target.host);
	free(r->user);
	if (r->password)
		OPENSSL_cleanse(r->password, strlen(r->password));
	free(r->password);
	free(r->prefix);
	free(r);
}

static int password_read(struct redis_limits *r, const char *file)
{
	char text[PASSWORD_MAX];
	if (r->password)
		return option_refuse("--limits-password-file: --limits has a password too; keep one of the two");
	int result = option_secret_read("--limits-password-file", file, text, sizeof text);
	if (result == 0)
		r->password = must_strdup(text);
	OPENSSL_cleanse(text, sizeof text);
	return result;
}

/* Messages never show the URL: it may hold a password. */
static int options_read(struct redis_limits *r, const struct redis_options *o)
{
	bool tls;
	if (!url_parse(o->url, r, &tls))
		return option_refuse("--limits is not redis[s]://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]");
	int result = o->password_file ? password_read(r, o->password_file) : 0;
	if (result == 0 && r->user && !r->password)
		return option_refuse("--limits names a user without a password: give it there or by "
		                     "--limits-password-file");
	if (result < 0 || !tls)
		return result;
	r->target.tls = redis_tls_new(o->ca_file, o->cert_file, o->key_file);
	return r->target.tls ? 0 : -EINVAL;
}

int redis_limits_open(const struct redis_options *o, const char *prefix, struct redis_limits **ret_limits)
{
	struct redis_limits *r = must_calloc(1, sizeof *r);
	pthread_condattr_t monotonic;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r->prefix = must_strdup(prefix);
	int result = options_read(r, o);
	if (result < 0) {
		limits_free(r);
		return result;
	}
	probe(r);
	if (!r->up)
		log_warn("limits: redis at %s:%d is away: this node limits by itself until it is there", r->target.host,
		         r->target.port);
	result = -pthread_create(&r->keeper, NULL, keeper_main, r);
	if (result < 0) {
		fprintf(stderr, "steward: the keeper of the limits cannot start: %s\n", strerror(-result));
		limits_free(r);
		return result;
	}
	*ret_limits = r;
	return 0;
}

void redis_limits_close(struct redis_limits *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->closing = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->keeper, NULL);
	limits_free(r);
}

bool redis_limits_up(struct redis_limits *r)
{
	return r->up;
}

bool redis_limits_take(struct redis_limits *r, const struct redis_take *t, struct limit_answer *ret_answer)
{
	char why[REDIS_WHY];
	long long taken[3]; /* granted, tokens left, ms to the next refill */
	if (!r->up)
		return false;
	if (!take_from(r, t, taken, why)) {
		mark_down(r, why);
		return false;
	}
	long long wait = (taken[2] + 999) / 1000;
	*ret_answer = (struct limit_answer){
	        .granted = taken[0] == 1,
	        .capacity = t->capacity,
	        .refill = t->refill,
	        .seconds = t->seconds,
	        .remaining = (unsigned)taken[1],
	        .retry_after = taken[0] == 1 ? 0 : (unsigned)(wait < 1 ? 1 : wait),
	};
	return true;
}

void redis_limits_reset(struct redis_limits *r)
{
	static const char sweep[] = "local c = '0'\n"
	                            "repeat\n"
	                            "  local found = redis.call('SCAN', c, 'MATCH', ARGV[1], 'COUNT', 1000)\n"
	                            "  c = found[1]\n"
	                            "  if #found[2] > 0 then redis.call('DEL', unpack(found[2])) end\n"
	                            "until c == '0'\n";
	char pattern[256];
	const char *argv[] = {"EVAL", sweep, "0", pattern};
	snprintf(pattern, sizeof pattern, "%s*", r->prefix);
	char why[REDIS_WHY];
	struct redis_link *l = r->up ? connection_open(r, why) : NULL;
	if (!l)
		return;
	if (say(l, 4, argv, why)) {
		connection_put(r, l);
	} else {
		redis_link_free(l);
		mark_down(r, why);
	}
}
