/* From a region to its object store, and from a project to its repository there. A project's data key is made from the
 * service's key and the project's id, the same in every region, so that two processes that are first at once make the
 * same; it is kept sealed, so that a new key of the service need only seal it anew. */
#include "repository/places.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "repository/common.h"
#include "repository/crypt.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/parity.h"
#include "repository/quota.h"
#include "repository/sealed.h"
#include "repository/why.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define OPTION_TEXTS 7
#define WRAPPED_MAX 65536
#define KEYS_US INT64_C(10000000)
#define KEEP_OPEN 32 /* repositories that nobody uses just now */

struct place {
	char *region; /* NULL: of all others */
	char *url;
	struct objects *objects; /* opened when it is first used */
	bool own, expected;
	struct place *next;
};

struct repositories {
	pthread_mutex_t lock;
	struct place *places;
	struct repository *open;
	struct quota *quotas; /* which outlive the repositories: counting takes a list of all */
	uint64_t quota;
	unsigned parity;
	struct pace *pace;
	struct objects_options s3, azure; /* whose texts are: */
	char *texts[2][OPTION_TEXTS];
	struct repo_service_keys service; /* under the lock */
	const struct data_keys *keys;
	int64_t keys_us;
	uint64_t uses;
};

static void place_add(struct repositories *all, struct str region, const char *url)
{
	struct place *p = must_calloc(1, sizeof(*p));
	p->region = region.n ? strndup(region.p, region.n) : NULL;
	p->url = must_strdup(url);
	p->next = all->places;
	all->places = p;
}

static struct objects_options options_keep(const struct objects_options *from, char *texts[OPTION_TEXTS])
{
	struct objects_options o = *from;
	const char **const kept[OPTION_TEXTS] = {&o.endpoint, &o.region, &o.account, &o.key_id,
	                                         &o.secret,   &o.token,  &o.ca_file};
	for (size_t i = 0; i < OPTION_TEXTS; i++)
		*kept[i] = texts[i] = *kept[i] ? must_strdup(*kept[i]) : NULL;
	return o;
}

/* Secrets are among them. */
static void texts_free(char *texts[OPTION_TEXTS])
{
	for (size_t i = 0; i < OPTION_TEXTS; i++) {
		if (texts[i])
			OPENSSL_cleanse(texts[i], strlen(texts[i]));
		free(texts[i]);
	}
}

int repositories_open(const struct repositories_options *o, struct repositories **ret_all)
{
	struct repositories *all = must_calloc(1, sizeof(*all));
	pthread_mutex_init(&all->lock, NULL);
	all->service.count = 1;
	memcpy(all->service.keys[0], o->key, REPO_KEY_BYTES);
	all->keys = o->keys;
	all->keys_us = o->keys_us ? o->keys_us : KEYS_US;
	all->quota = o->quota;
	all->parity = o->parity;
	all->pace = o->pace;
	all->s3 = options_keep(&o->s3, all->texts[0]);
	all->azure = options_keep(&o->azure, all->texts[1]);
	for (size_t i = 0; i < o->region_count; i++) {
		struct str region, url;
		char *name = NULL;
		bool ok = str_cut(str_of(o->regions[i]), '=', &region, &url) && region.n && url.n;
		name = ok ? strndup(region.p, region.n) : NULL;
		ok = ok && name_part_ok(name);
		free(name);
		if (!ok) {
			repositories_close(all);
			return repo_fail(-EINVAL, "\"%s\" is not REGION=URL", o->regions[i]);
		}
		place_add(all, region, url.p);
	}
	struct place **last = &all->places;
	while (*last)
		last = &(*last)->next;
	struct place *fallback = must_calloc(1, sizeof(*fallback));
	fallback->url = must_strdup(o->fallback);
	fallback->own = o->fallback_is_own;
	*last = fallback;
	*ret_all = all;
	return 0;
}

static void repository_free(struct repository *r)
{
	if (!r)
		return;
	index_free(&r->index);
	parities_free(&r->parities);
	free(r->place);
	free(r->group);
	repo_keys_free(r);
	free(r->wrapped);
	pthread_mutex_destroy(&r->key_lock);
	free(r);
}

void repositories_close(struct repositories *all)
{
	if (!all)
		return;
	while (all->open) {
		struct repository *r = all->open;
		all->open = r->next;
		repository_free(r);
	}
	while (all->quotas) {
		struct quota *q = all->quotas;
		all->quotas = q->next;
		pthread_mutex_destroy(&q->lock);
		free(q->place);
		free(q);
	}
	while (all->places) {
		struct place *p = all->places;
		all->places = p->next;
		objects_close(p->objects);
		free(p->region);
		free(p->url);
		free(p);
	}
	texts_free(all->texts[0]);
	texts_free(all->texts[1]);
	OPENSSL_cleanse(&all->service, sizeof all->service);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

/* Without the lock of all while it is asked: one store that is away must not hold up the others. */
static int place_objects(struct repositories *all, struct place *p, struct objects **ret_objects)
{
	struct objects_options o = str_starts(str_of(p->url), STR("azure://")) ? all->azure : all->s3;
	o.url = p->url;
	pthread_mutex_lock(&all->lock);
	o.expected = p->expected;
	struct objects *objects = p->objects, *extra = NULL;
	pthread_mutex_unlock(&all->lock);
	if (!objects) {
		int result = objects_open(&o, &objects);
		if (result < 0)
			return repo_fail_object(result, p->url);
		pthread_mutex_lock(&all->lock);
		if (p->objects)
			extra = objects;
		else
			p->objects = objects;
		objects = p->objects;
		pthread_mutex_unlock(&all->lock);
		objects_close(extra);
	}
	*ret_objects = objects;
	return 0;
}

static struct place *place_find(const struct repositories *all, const char *region)
{
	struct place *p = all->places;
	while (p->region && strcmp(p->region, region) != 0)
		p = p->next;
	return p;
}

const void *repositories_store(const struct repositories *all, const char *region)
{
	return place_find(all, region);
}

void repositories_expect(struct repositories *all, const char *region)
{
	struct place *p = place_find(all, region);
	pthread_mutex_lock(&all->lock);
	p->expected = !p->own;
	pthread_mutex_unlock(&all->lock);
}

static int place_open(struct repositories *all, const char *region, struct objects **ret_objects)
{
	return place_objects(all, place_find(all, region), ret_objects);
}

void repositories_keys_set(struct repositories *all, const struct repo_service_keys *keys)
{
	pthread_mutex_lock(&all->lock);
	all->service = *keys;
	pthread_mutex_unlock(&all->lock);
}

static struct repo_service_keys service_keys(struct repositories *all)
{
	pthread_mutex_lock(&all->lock);
	struct repo_service_keys keys = all->service;
	pthread_mutex_unlock(&all->lock);
	return keys;
}

/* With the one of the service's keys that opens it: during a rotation, what the new one has not sealed yet. */
static int service_open(const struct repo_service_keys *keys, const char *bound, const char *bytes, size_t n,
                        size_t most, size_t *ret_key, char **ret_plain, size_t *ret_n)
{
	int result = -EBADMSG;
	for (size_t i = 0; result < 0 && i < keys->count; i++) {
		*ret_key = i;
		result = sealed_open(&(struct repo_key){.data = keys->keys[i]}, SEALED_KEY, bound, bytes, n, most,
		                     ret_plain, ret_n);
	}
	return result;
}

static int key_read(struct repository *r, const struct repo_service_keys *keys, const char *place, const char *bound)
{
	char *bytes = NULL, *plain = NULL;
	size_t n = 0, plain_n = 0, which;
	int result = objects_get_bytes(r->objects, place, 4096, &bytes, &n);
	if (result < 0)
		return result == -EFBIG ? repo_fail(-EBADMSG, "%s: is damaged: it is too long", place)
		                        : repo_fail_object(result, place);
	result = service_open(keys, bound, bytes, n, REPO_KEY_BYTES, &which, &plain, &plain_n);
	if (result < 0 || plain_n != REPO_KEY_BYTES) {
		result = repo_fail(-EBADMSG,
		                   "%s: the project's key does not open: secret.key is not the one that these backups "
		                   "were made with, or the object is damaged. Bring back the right secret.key",
		                   place);
	} else {
		repo_keys_begin(r, (const unsigned char *)plain);
		OPENSSL_cleanse(plain, plain_n);
	}
	free(plain);
	free(bytes);
	return result;
}

struct first_object {
	char name[OBJECT_NAME];
};

static int first_found(void *ctx, const struct object_info *info)
{
	struct first_object *f = ctx;
	snprintf(f->name, sizeof f->name, "%s", info->name);
	return -EEXIST;
}

/* A key is made only where nothing lies yet: what is there would not open with a new one. */
static int key_make(struct repository *r, const struct repo_service_keys *keys, const char *place, const char *bound)
{
	const unsigned char *service_key = keys->keys[0];
	unsigned char key[REPO_KEY_BYTES];
	struct first_object first;
	struct buf out = {0};
	int result = object_list(r, "", first_found, &first);
	if (result == -EEXIST && strcmp(first.name, "key") != 0 && strcmp(first.name + strlen(r->place), "key") != 0)
		return repo_fail(-EBADMSG, "%s: is missing, and without it nothing of the project opens: there is %s",
		                 place, first.name);
	if (result < 0 && result != -EEXIST)
		return result;
	crypt_derive(service_key, r->group, strlen(r->group), "project", key);
	sealed_make(&(struct repo_key){.data = service_key}, SEALED_KEY, bound, key, sizeof key, &out);
	OPENSSL_cleanse(key, sizeof key);
	result = objects_put_bytes(r->objects, place, out.p, out.n);
	buf_free(&out);
	return result < 0 ? repo_fail_object(result, place) : key_read(r, keys, place, bound);
}

static struct quota *quota_of(struct repositories *all, const char *place)
{
	if (!all->quota)
		return NULL;
	pthread_mutex_lock(&all->lock);
	struct quota *q = all->quotas;
	while (q && strcmp(q->place, place) != 0)
		q = q->next;
	if (!q) {
		q = must_calloc(1, sizeof(*q));
		pthread_mutex_init(&q->lock, NULL);
		q->place = must_strdup(place);
		q->most = all->quota;
		q->next = all->quotas;
		all->quotas = q;
	}
	pthread_mutex_unlock(&all->lock);
	return q;
}

static int repository_open(struct repositories *all, struct objects *objects, const char *region, const char *group,
                           struct repository **ret_repository)
{
	char place[OBJECT_NAME], bound[OBJECT_NAME];
	struct repository *r = must_calloc(1, sizeof(*r));
	index_setup(&r->index);
	parities_setup(&r->parities);
	r->parity = all->parity;
	r->pace = all->pace;
	pthread_mutex_init(&r->key_lock, NULL);
	r->all = all;
	r->objects = objects;
	snprintf(place, sizeof place, "%s/%s/", region, group);
	r->place = must_strdup(place);
	r->quota = quota_of(all, place);
	r->group = must_strdup(group);
	snprintf(bound, sizeof bound, "%s/key", group);
	object_place(r, "key", place);
	struct repo_service_keys keys = service_keys(all);
	int result = key_read(r, &keys, place, bound);
	if (result == -ENOENT)
		result = key_make(r, &keys, place, bound);
	OPENSSL_cleanse(&keys, sizeof keys);
	if (result < 0) {
		repository_free(r);
		return result;
	}
	*ret_repository = r;
	return 0;
}

static struct repository *repository_find(struct repositories *all, const char *place)
{
	struct repository *r = all->open;
	while (r && strcmp(r->place, place) != 0)
		r = r->next;
	return r;
}

/* Those that nobody uses, the longest unused first, down to a bound. */
static void repositories_trim(struct repositories *all)
{
	for (;;) {
		size_t idle = 0;
		struct repository **oldest = NULL;
		for (struct repository **p = &all->open; *p; p = &(*p)->next) {
			if ((*p)->users)
				continue;
			idle++;
			if (!oldest || (*p)->last_use < (*oldest)->last_use)
				oldest = p;
		}
		if (idle <= KEEP_OPEN)
			return;
		struct repository *r = *oldest;
		*oldest = r->next;
		repository_free(r);
	}
}

/* Counts a use of the repository, which is `made` where there is none yet; false: there is none. */
static bool repository_use(struct repositories *all, const char *place, struct repository *made,
                           struct repository **ret_repository)
{
	pthread_mutex_lock(&all->lock);
	struct repository *r = repository_find(all, place);
	if (!r && made) {
		r = made;
		r->next = all->open;
		all->open = r;
	}
	if (r) {
		r->users++;
		r->last_use = ++all->uses;
		*ret_repository = r;
	}
	pthread_mutex_unlock(&all->lock);
	return r;
}

/* --- the projects' own keys */

int64_t place_keys_us(const struct repository *r)
{
	return r->all->keys_us;
}

int place_key_get(const struct repository *r, const char *id, struct data_key *ret_key)
{
	const struct data_keys *keys = r->all->keys;
	char why[DATA_KEY_WHY] = "";
	int result = keys ? keys->get(keys->ctx, str_of(r->group), str_of(id), ret_key, why) : -ENOKEY;
	if (result == -ENOKEY)
		return repo_fail(result, "it is sealed with the project's data key %s, which is not at hand", id);
	if (result == -ENOENT)
		return repo_fail(-EBADMSG,
		                 "it is damaged, or another's: it names a data key, %s, that the project never had",
		                 id);
	return result < 0 ? repo_fail(result, "the project's data key is out of reach: %s", why) : 0;
}

void repositories_forget(struct repositories *all, const char *group)
{
	pthread_mutex_lock(&all->lock);
	for (struct repository **p = &all->open; *p;) {
		struct repository *r = *p;
		if (r->users || strcmp(r->group, group) != 0) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		repository_free(r);
	}
	pthread_mutex_unlock(&all->lock);
}

/* The key for what is written now; without bytes: the project has none. */
static int current_get(struct repositories *all, const char *group, struct data_key *ret_key)
{
	char why[DATA_KEY_WHY] = "";
	*ret_key = (struct data_key){.bytes = NULL};
	if (!all->keys)
		return 0;
	int result = all->keys->get(all->keys->ctx, str_of(group), (struct str){"", 0}, ret_key, why);
	if (result == 0 || result == -ENOENT)
		return 0;
	return repo_fail(result, "the project's key is out of reach: %s", why);
}

/* Whether that text is known to lie there; if not, it is from now on. */
static bool wrapped_is(struct repository *r, const char *text)
{
	pthread_mutex_lock(&r->key_lock);
	bool same = r->wrapped && strcmp(r->wrapped, text) == 0;
	if (!same) {
		free(r->wrapped);
		r->wrapped = must_strdup(text);
	}
	pthread_mutex_unlock(&r->key_lock);
	return same;
}

static int wrapped_put(struct repository *r, const char *id, const char *text)
{
	struct repo_service_keys keys = service_keys(r->all);
	struct repo_key service = {.data = keys.keys[0]};
	char name[64], place[OBJECT_NAME], bound[OBJECT_NAME], *sealed = NULL, *there = NULL;
	size_t n = 0, there_n = 0;
	struct buf out = {0};
	snprintf(name, sizeof name, "keys/%s", id);
	snprintf(bound, sizeof bound, "%s/%s", r->group, name);
	object_place(r, name, place);
	bool same = objects_get_bytes(r->objects, place, WRAPPED_MAX, &sealed, &n) == 0 &&
	            sealed_open(&service, SEALED_KEY, bound, sealed, n, WRAPPED_MAX, &there, &there_n) == 0 &&
	            strcmp(there, text) == 0;
	int result = 0;
	if (!same) {
		sealed_make(&service, SEALED_KEY, bound, text, strlen(text), &out);
		result = objects_put_bytes(r->objects, place, out.p, out.n);
	}
	if (result < 0)
		log_warn("backups: %s cannot be put: %s", place, objects_why());
	OPENSSL_cleanse(&keys, sizeof keys);
	buf_free(&out);
	free(sealed);
	free(there);
	return result;
}

void repositories_places_hash(const struct repositories *all, unsigned char ret_hash[32])
{
	struct buf text = {0};
	for (const struct place *p = all->places; p; p = p->next) {
		buf_z(&text, p->region ? p->region : "");
		buf_z(&text, "=");
		buf_z(&text, p->url);
		buf_z(&text, "\n");
	}
	sha256(buf_view(&text), ret_hash);
	buf_free(&text);
}

struct rewrapping {
	struct repository *repository;
	struct repo_service_keys keys;
	uint64_t count;
};

static int object_rewrap(struct rewrapping *w, const char *name)
{
	char place[OBJECT_NAME], bound[OBJECT_NAME], *bytes = NULL, *plain = NULL;
	size_t n = 0, plain_n = 0, which = 0;
	struct buf out = {0};
	snprintf(bound, sizeof bound, "%s/%s", w->repository->group, name);
	object_place(w->repository, name, place);
	int result = objects_get_bytes(w->repository->objects, place, WRAPPED_MAX, &bytes, &n);
	if (result < 0)
		return repo_fail_object(result, place);
	result = service_open(&w->keys, bound, bytes, n, WRAPPED_MAX, &which, &plain, &plain_n);
	if (result < 0)
		result = repo_fail(-EBADMSG, "%s: opens with no key of secret.key, or is damaged", place);
	if (result == 0 && which != 0) {
		sealed_make(&(struct repo_key){.data = w->keys.keys[0]}, SEALED_KEY, bound, plain, plain_n, &out);
		result = objects_put_bytes(w->repository->objects, place, out.p, out.n);
		result = result < 0 ? repo_fail_object(result, place) : 0;
		w->count++;
	}
	if (plain)
		OPENSSL_cleanse(plain, plain_n);
	buf_free(&out);
	free(plain);
	free(bytes);
	return result;
}

static int wrapped_visit(void *ctx, const struct object_info *info)
{
	struct rewrapping *w = ctx;
	const char *name = info->name;
	size_t n = strlen(w->repository->place);
	return object_rewrap(w, strncmp(name, w->repository->place, n) == 0 ? name + n : name);
}

int repository_rewrap(struct repository *r, uint64_t *ret_count)
{
	struct rewrapping w = {.repository = r, .keys = service_keys(r->all)};
	int result = object_rewrap(&w, "key");
	if (result == 0)
		result = object_list(r, "keys/", wrapped_visit, &w);
	OPENSSL_cleanse(&w.keys, sizeof w.keys);
	*ret_count = w.count;
	return result == -ENOENT ? 0 : result;
}

struct wrapped_list {
	struct repository *repository;
	struct repo_service_keys keys;
	repo_wrapped_visit *visit;
	void *ctx;
};

static int wrapped_listed(void *ctx, const struct object_info *info)
{
	struct wrapped_list *l = ctx;
	char place[OBJECT_NAME], bound[OBJECT_NAME], *bytes = NULL, *plain = NULL;
	size_t n = 0, plain_n = 0, which = 0;
	snprintf(bound, sizeof bound, "%s/%s", l->repository->group, info->name);
	object_place(l->repository, info->name, place);
	int result = objects_get_bytes(l->repository->objects, place, WRAPPED_MAX, &bytes, &n);
	if (result < 0)
		return repo_fail_object(result, place);
	result = service_open(&l->keys, bound, bytes, n, WRAPPED_MAX, &which, &plain, &plain_n);
	if (result == 0)
		result = l->visit(l->ctx, plain);
	free(plain);
	free(bytes);
	return result;
}

int repo_wrapped_each(struct repository *r, repo_wrapped_visit *visit, void *ctx)
{
	struct wrapped_list l = {.repository = r, .keys = service_keys(r->all), .visit = visit, .ctx = ctx};
	int result = object_list(r, "keys/", wrapped_listed, &l);
	OPENSSL_cleanse(&l.keys, sizeof l.keys);
	return result == -ENOENT ? 0 : result;
}

/* Its key service's words for the key lie beside what it has sealed, so that the service's store may be lost. */
static void wrapped_keep(struct repository *r, const char *id)
{
	const struct data_keys *keys = r->all->keys;
	char *text = NULL;
	if (!keys->wrapped || keys->wrapped(keys->ctx, str_of(r->group), str_of(id), &text) < 0)
		return;
	if (!wrapped_is(r, text) && wrapped_put(r, id, text) < 0)
		(void)wrapped_is(r, ""); /* again the next time */
	free(text);
}

static int repository_find_or_open(struct repositories *all, const char *region, const char *group_id,
                                   struct repository **ret_repository)
{
	char place[OBJECT_NAME];
	struct objects *objects = NULL;
	struct repository *made = NULL;
	snprintf(place, sizeof place, "%s/%s/", region, group_id);
	if (repository_use(all, place, NULL, ret_repository))
		return 0;
	int result = place_open(all, region, &objects);
	if (result == 0)
		result = repository_open(all, objects, region, group_id, &made);
	if (result < 0)
		return result;
	if (!repository_use(all, place, made, ret_repository))
		return repo_fail(-EIO, "the repository could not be kept");
	if (*ret_repository != made) /* another thread was first */
		repository_free(made);
	return 0;
}

/* What is written from now on is sealed with the key that the project has now. */
static int keys_ask(struct repository *r)
{
	struct data_key key;
	int result = current_get(r->all, r->group, &key);
	/* Its key service does not answer: what has the key goes on. */
	if (result == -EAGAIN && repo_key_current(r)->id[0])
		return 0;
	if (result < 0)
		return result;
	repo_keys_choose(r, key.bytes ? &key : NULL);
	r->asked_us = clock_boot_us();
	if (key.bytes)
		wrapped_keep(r, key.id);
	data_key_free(&key);
	return 0;
}

int repository_key_refresh(struct repository *r)
{
	return r->all->keys ? keys_ask(r) : 0;
}

int repository_get(struct repositories *all, const char *region, const char *group_id,
                   struct repository **ret_repository)
{
	struct repository *r = NULL;
	if (!name_part_ok(region) || !name_part_ok(group_id) || strlen(group_id) > REPO_KEY_BYTES)
		return repo_fail(-EINVAL, "no such region or project");
	int result = repository_find_or_open(all, region, group_id, &r);
	if (result < 0 || !r)
		return result;
	if (!r->asked_us || clock_boot_us() - r->asked_us >= all->keys_us)
		result = repository_key_refresh(r);
	if (result < 0) {
		repository_put(r);
		if (result == -EKEYREVOKED)
			repositories_forget(all, group_id);
		return result;
	}
	*ret_repository = r;
	return 0;
}

struct each {
	repositories_visit *visit;
	void *ctx;
	const struct repositories *all;
	const struct place *place;
};

static bool place_has(const struct each *e, const char *region)
{
	return place_find(e->all, region) == e->place;
}

static int each_listed(void *ctx, const struct object_info *info)
{
	const struct each *e = ctx;
	struct str region, group, rest;
	char names[2][129];
	if (!str_cut(str_of(info->name), '/', &region, &rest) || !str_cut(rest, '/', &group, &rest) ||
	    !str_is(rest, "key") || region.n > 128 || group.n > 128)
		return 0;
	snprintf(names[0], sizeof names[0], "%.*s", STR_ARG(region));
	snprintf(names[1], sizeof names[1], "%.*s", STR_ARG(group));
	return place_has(e, names[0]) ? e->visit(e->ctx, names[0], names[1]) : 0;
}

int repositories_each(struct repositories *all, repositories_visit *visit, void *ctx)
{
	int result = 0;
	for (struct place *p = all->places; p && result == 0; p = p->next) {
		struct each e = {visit, ctx, all, p};
		struct objects *objects = NULL;
		result = place_objects(all, p, &objects);
		if (result == 0)
			result = objects_list(objects, "", each_listed, &e);
	}
	return result;
}

void repository_put(struct repository *r)
{
	if (!r)
		return;
	struct repositories *all = r->all;
	pthread_mutex_lock(&all->lock);
	r->users--;
	repositories_trim(all);
	pthread_mutex_unlock(&all->lock);
}
