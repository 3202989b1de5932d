/* Fetching of signing keys. One thread looks for what is due and starts a short-lived one for each fetch: a few at a
 * time, and one at a time for each federation, so that nobody's slow issuer holds up the others. Of an answer, only
 * public keys and the addresses for sign-in are kept. */
#include "identity/jwks.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FETCHES 4   /* at a time */
#define LOOK_AT 256 /* of what is waiting */
#define IDLE_SECONDS 1
#define ENDPOINT_MAX 2048
#define KEYS_MAX 100
#define RETRY STR("retry") /* parent of what is to be tried again */
#define DISCOVERY "/.well-known/openid-configuration"

/* Seconds, of the service's clock, before each further attempt; after the last the keys wait for the next renewal. */
static const unsigned waits[] = {10, 60, 600, 3600};
#define RETRIES (sizeof waits / sizeof *waits)

struct fetch {
	struct jwks *jwks;
	struct arena *arena; /* NULL: the slot is free */
	pthread_t thread;
	struct str provider_id, federation_id, issuer;
	struct str ask; /* tells this asking from a later one */
	int64_t failures;
	struct str found; /* body of "idp_jwks"; empty: failed */
	bool over;        /* to be joined; under the lock */
};

struct jwks {
	struct store *store;
	struct tx *reader; /* of the looking thread */
	const char *ca_file;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool news; /* look again at once */
	atomic_bool closing;
	struct fetch fetches[FETCHES];
};

/* In writes. */

static int drop(struct tx *tx, const char *kind, struct str id)
{
	int result = tx_delete(tx, kind, id);
	return result == -ENOENT ? 0 : result;
}

static struct str due_body(struct arena *a, struct str federation_id, struct str issuer, int64_t due_ms,
                           int64_t failures)
{
	json_t *body = doc_json(a, STR("{}"));
	struct id ask = id_new();
	json_put_str(body, "federationId", federation_id);
	json_put_str(body, "issuerUri", issuer);
	json_put_z(body, "ask", ask.z);
	json_put(body, "dueMs", json_integer(due_ms));
	json_put(body, "failures", json_integer(failures));
	return json_text(a, body);
}

/* What has failed waits in a list of its own, where it holds up nothing new. */
static int due_put(struct tx *tx, struct str provider_id, bool again, struct str body)
{
	struct doc due = {.kind = STR("jwks_due"),
	                  .id = provider_id,
	                  .parent = again ? RETRY : STR_NONE,
	                  .created_ms = clock_now_ms(),
	                  .body = body};
	int result = drop(tx, "jwks_due", provider_id);
	return result < 0 ? result : tx_insert(tx, &due);
}

int jwks_renew(struct tx *tx, struct arena *a, struct str provider_id, struct str federation_id, struct str issuer)
{
	int result = drop(tx, "idp_jwks", provider_id);
	if (result < 0)
		return result;
	return due_put(tx, provider_id, false, due_body(a, federation_id, issuer, clock_now_ms(), 0));
}

int jwks_forget(struct tx *tx, struct str provider_id)
{
	int result = drop(tx, "idp_jwks", provider_id);
	return result < 0 ? result : drop(tx, "jwks_due", provider_id);
}

/* Key sets. */

json_t *jwks_public(const json_t *set)
{
	/* By name, so that what a careless issuer publishes of a private key is left behind. */
	static const char *const fields[] = {"kty", "kid", "use", "alg", "n", "e", "crv", "x", "y"};
	const json_t *list = json_object_get(set, "keys");
	if (!json_is_array(list))
		return NULL;
	json_t *keys = json_array();
	for (size_t i = 0; i < json_array_size(list) && json_array_size(keys) < KEYS_MAX; i++) {
		const json_t *given = json_array_get(list, i);
		struct str type = json_field(given, "kty"), use = json_field(given, "use");
		bool rsa = str_is(type, "RSA") && json_field(given, "n").n && json_field(given, "e").n;
		bool curve = (str_is(type, "EC") || str_is(type, "OKP")) && json_field(given, "crv").n &&
		             json_field(given, "x").n;
		if ((!rsa && !curve) || (use.n && !str_is(use, "sig")))
			continue;
		json_t *key = json_object();
		for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
			if (json_field(given, fields[k]).p)
				json_object_set(key, fields[k], json_object_get(given, fields[k]));
		json_array_append_new(keys, key);
	}
	return keys;
}

/* Fetching. */

static bool is_closing(void *ctx)
{
	return atomic_load(&((struct jwks *)ctx)->closing);
}

static json_t *json_fetch(const struct issuer_request *how, const char *url, char fault[ISSUER_FAULT])
{
	struct issuer_request r = *how;
	r.url = url;
	return issuer_ask(&r, fault);
}

/* What the issuer says of itself; NULL when it does not say where its keys are. Freed with the arena. */
static json_t *discover(const struct issuer_request *how, struct arena *a, struct str issuer, char fault[ISSUER_FAULT])
{
	struct str base = issuer;
	while (base.n && base.p[base.n - 1] == '/')
		base.n--;
	json_t *found = json_fetch(how, arena_printf(a, "%.*s" DISCOVERY, STR_ARG(base)).p, fault);
	if (!found)
		return NULL;
	json_keep(a, found);
	if (!str_eq(json_field(found, "issuer"), issuer))
		snprintf(fault, ISSUER_FAULT, "its discovery document names another issuer");
	else if (!str_starts(json_field(found, "jwks_uri"), STR("https://")))
		snprintf(fault, ISSUER_FAULT, "its discovery document has no jwks_uri with https");
	else
		return found;
	return NULL;
}

/* Addresses for sign-in, where they are ones. */
static void endpoints_put(json_t *body, const json_t *found)
{
	static const char *const fields[][2] = {{"authorization_endpoint", "authorizationEndpoint"},
	                                        {"token_endpoint", "tokenEndpoint"}};
	for (size_t i = 0; i < 2; i++) {
		struct str url = json_field(found, fields[i][0]);
		bool fits = str_starts(url, STR("https://")) && url.n <= ENDPOINT_MAX;
		for (size_t k = 0; fits && k < url.n; k++)
			fits = url.p[k] > ' ' && url.p[k] < 0x7f && url.p[k] != '#';
		if (fits)
			json_put_str(body, fields[i][1], url);
	}
}

json_t *jwks_fetch(const struct issuer_request *how, struct arena *a, struct str issuer, char ret_fault[ISSUER_FAULT])
{
	char now[CLOCK_TEXT];
	const json_t *found = discover(how, a, issuer, ret_fault);
	json_t *set = found ? json_fetch(how, arena_z(a, json_field(found, "jwks_uri")), ret_fault) : NULL;
	json_t *keys = set ? jwks_public(set) : NULL, *body = NULL;
	if (set && !json_array_size(keys)) {
		snprintf(ret_fault, ISSUER_FAULT, "its key set has no key for signatures");
	} else if (set) {
		body = json_new(a);
		clock_format(clock_now_ms(), now);
		json_put_str(body, "issuerUri", issuer);
		json_put_z(body, "fetchedAt", now);
		json_object_set(body, "keys", keys);
		endpoints_put(body, found);
	}
	json_decref(keys);
	json_decref(set);
	return body;
}

int jwks_keep(struct tx *tx, struct arena *a, struct str provider_id, int64_t rev, const json_t *fetched)
{
	struct doc kept;
	int result = tx_get(tx, a, "idp_jwks", provider_id, &kept);
	if (result < 0 || kept.rev != rev)
		return result == -ENOENT ? 0 : result;
	kept.body = json_text(a, fetched);
	return tx_update(tx, &kept);
}

static void keys_fetch(struct fetch *f)
{
	char fault[ISSUER_FAULT];
	struct issuer_request how = {.ca_file = f->jwks->ca_file, .stops = is_closing, .ctx = f->jwks};
	const json_t *body = jwks_fetch(&how, f->arena, f->issuer, fault);
	if (body) {
		f->found = json_text(f->arena, body);
		log_info("signing keys of %.*s: %zu fetched", STR_ARG(f->issuer),
		         json_array_size(json_object_get(body, "keys")));
	} else if (!atomic_load(&f->jwks->closing)) {
		log_warn("signing keys of %.*s: cannot be fetched: %s", STR_ARG(f->issuer), fault);
	}
}

/* Only what is still asked for: the provider may be gone or revoked again by now. */
static int keys_write(struct tx *tx, void *ctx)
{
	struct fetch *f = ctx;
	struct doc due;
	int result = tx_get(tx, f->arena, "jwks_due", f->provider_id, &due);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (!str_eq(json_field(doc_json(f->arena, due.body), "ask"), f->ask))
		return 0;
	if (!f->found.n && f->failures < (int64_t)RETRIES) {
		int64_t at = clock_now_ms() + waits[f->failures] * INT64_C(1000);
		return due_put(tx, f->provider_id, true,
		               due_body(f->arena, f->federation_id, f->issuer, at, f->failures + 1));
	}
	struct doc keys = {.kind = STR("idp_jwks"),
	                   .id = f->provider_id,
	                   .parent = f->federation_id,
	                   .created_ms = clock_now_ms(),
	                   .body = f->found};
	result = drop(tx, "idp_jwks", f->provider_id);
	if (result == 0 && f->found.n)
		result = tx_insert(tx, &keys);
	return result < 0 ? result : tx_delete(tx, "jwks_due", f->provider_id);
}

static void *fetch_run(void *arg)
{
	struct fetch *f = arg;
	struct jwks *j = f->jwks;
	keys_fetch(f);
	/* At the end of the process nothing is said of the issuer: it stays due. */
	if (f->found.n || !atomic_load(&j->closing)) {
		int result = store_write_wait(j->store, keys_write, f);
		if (result < 0 && result != -ESHUTDOWN)
			log_error("signing keys of %.*s: cannot be kept (error %d)", STR_ARG(f->issuer), result);
	}
	pthread_mutex_lock(&j->lock);
	f->over = true;
	j->news = true;
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* The looking thread. */

static void fetches_join(struct jwks *j, bool all)
{
	for (size_t i = 0; i < FETCHES; i++) {
		struct fetch *f = &j->fetches[i];
		pthread_mutex_lock(&j->lock);
		bool over = f->arena && (all || f->over);
		pthread_mutex_unlock(&j->lock);
		if (!over)
			continue;
		pthread_join(f->thread, NULL);
		arena_free(f->arena);
		*f = (struct fetch){.arena = NULL};
	}
}

/* A free slot, unless the provider or its federation has one already. */
static struct fetch *slot_for(struct jwks *j, struct str federation_id)
{
	struct fetch *free_one = NULL;
	for (size_t i = 0; i < FETCHES; i++) {
		if (!j->fetches[i].arena)
			free_one = &j->fetches[i];
		else if (str_eq(j->fetches[i].federation_id, federation_id))
			return NULL;
	}
	return free_one;
}

static void fetch_start(struct jwks *j, const struct doc *due)
{
	struct arena *a = arena_new();
	const json_t *body = doc_json(a, due->body);
	struct fetch *f = slot_for(j, json_field(body, "federationId"));
	bool is_due = json_integer_value(json_object_get(body, "dueMs")) <= clock_now_ms();
	if (!f || !is_due) {
		arena_free(a);
		return;
	}
	*f = (struct fetch){.jwks = j,
	                    .arena = a,
	                    .provider_id = arena_dup(a, due->id),
	                    .federation_id = json_field(body, "federationId"),
	                    .issuer = json_field(body, "issuerUri"),
	                    .ask = json_field(body, "ask"),
	                    .failures = json_integer_value(json_object_get(body, "failures"))};
	if (pthread_create(&f->thread, NULL, fetch_run, f) == 0)
		return;
	log_error("signing keys: no thread to fetch them with");
	arena_free(a);
	*f = (struct fetch){.arena = NULL};
}

static void due_look(struct jwks *j, struct str list)
{
	struct arena *a = arena_new();
	struct doc *docs;
	size_t count = 0;
	tx_begin_read(j->reader);
	int result = tx_list(j->reader, a, "jwks_due", list, 0, LOOK_AT, &docs, &count);
	tx_end_read(j->reader);
	tx_rest(j->reader);
	for (size_t i = 0; result == 0 && i < count; i++)
		fetch_start(j, &docs[i]);
	arena_free(a);
}

static void *look_run(void *arg)
{
	struct jwks *j = arg;
	while (!atomic_load(&j->closing)) {
		struct timespec until;
		fetches_join(j, false);
		due_look(j, STR_NONE);
		due_look(j, RETRY);
		pthread_mutex_lock(&j->lock);
		int64_t due_us = clock_mono_us() + IDLE_SECONDS * INT64_C(1000000);
		until = (struct timespec){.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
		if (!j->news && !atomic_load(&j->closing))
			pthread_cond_timedwait(&j->changed, &j->lock, &until);
		j->news = false;
		pthread_mutex_unlock(&j->lock);
	}
	fetches_join(j, true);
	return NULL;
}

void jwks_wake(struct jwks *j)
{
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->news = true;
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
}

const char *jwks_ca_file(const struct jwks *j)
{
	return j->ca_file;
}

int jwks_open(struct store *store, const char *ca_file, struct jwks **ret_jwks)
{
	struct jwks *j = must_calloc(1, sizeof *j);
	pthread_condattr_t attributes;
	j->store = store;
	j->ca_file = ca_file;
	j->reader = store_reader(store);
	pthread_mutex_init(&j->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&j->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	int error = j->reader && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
	                    ? pthread_create(&j->thread, NULL, look_run, j)
	                    : EIO;
	if (error) {
		fprintf(stderr, "steward: cannot start the fetching of signing keys: %s\n", strerror(error));
		store_reader_free(j->reader);
		free(j);
		return -error;
	}
	*ret_jwks = j;
	return 0;
}

void jwks_close(struct jwks *j)
{
	if (!j)
		return;
	atomic_store(&j->closing, true);
	jwks_wake(j);
	pthread_join(j->thread, NULL);
	store_reader_free(j->reader);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j);
}
