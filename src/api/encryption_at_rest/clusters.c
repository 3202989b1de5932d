/* What encryption at rest has to do with clusters and with provider roles, and where data keys are got. */
#include "api/encryption_at_rest/settings.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- clusters */

static bool provider_of(const json_t *cluster, enum provider *ret_provider)
{
	return provider_of_name(json_field(cluster, "encryptionAtRestProvider"), ret_provider);
}

/* A provider that a cluster has not had before. */
static void provider_judge(struct call *c, const struct settings *settings, enum provider provider,
                           struct faults *faults)
{
	const struct service *s = c->service;
	const char *why = "the engine that runs the databases does not offer it";
	if (!section_is(settings->body, provider, "enabled"))
		faults_add(faults, c->arena, STR("encryptionAtRestProvider"),
		           "%s is not configured for the project's encryption at rest", provider_names[provider]);
	else if (!section_is(settings->body, provider, "valid"))
		faults_add(faults, c->arena, STR("encryptionAtRestProvider"),
		           "the project's key at %s is not valid: the key service refuses it",
		           provider_names[provider]);
	else if (!s->engine_ops->core->can_encrypt ||
	         s->engine_ops->core->can_encrypt(s->engine_state, c->arena, &why) < 0)
		faults_add(faults, c->arena, STR("encryptionAtRestProvider"), "files cannot be encrypted here: %s",
		           why);
}

/* A cluster that keeps its provider can be changed without the key, so that it can be deleted, too. But nobody decrypts
 * its files without the key. */
static int cluster_rules(struct call *c, const json_t *cluster, struct faults *faults)
{
	struct settings settings;
	struct doc old;
	enum provider had = PROVIDER_AWS, provider = PROVIDER_AWS;
	int r = tx_get_by_name(c->tx, c->arena, CLUSTER_KIND, c->group.id, json_field(cluster, "name"), &old);
	if (r < 0 && r != -ENOENT)
		return r;
	bool has = r == 0 && provider_of(doc_json(c->arena, old.body), &had), wants = provider_of(cluster, &provider);
	if (has == wants && had == provider)
		return 0;
	r = settings_load(c->tx, c->arena, c->group.id, &settings);
	if (r < 0)
		return r;
	if (wants)
		provider_judge(c, &settings, provider, faults);
	else if (!section_is(settings.body, had, "valid"))
		faults_add(faults, c->arena, STR("encryptionAtRestProvider"),
		           "the files of the cluster are encrypted, and the project's key at %s is not valid: give it "
		           "back first",
		           provider_names[had]);
	return 0;
}

static int cluster_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct settings settings;
	enum provider provider;
	if (!provider_of(cluster->body, &provider))
		return 0;
	int r = settings_load(tx, a, cluster->doc.parent, &settings);
	if (r < 0)
		return r;
	want->engine.encrypted = true;
	want->engine.locked = !section_is(settings.body, provider, "valid");
	return 0;
}

const struct cluster_part encryption_at_rest_part = {.wanted = cluster_wanted, .rules = cluster_rules};

/* --- roles */

static int roles_list(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses)
{
	struct settings settings;
	int r = settings_load(tx, a, group_id, &settings);
	for (unsigned i = 0; r == 0 && i < PROVIDERS; i++) {
		struct str role = json_field(json_object_get(settings.body, sections[i].name), "roleId");
		if (role.n && section_is(settings.body, (enum provider)i, "enabled"))
			role_use_add(uses, role, arena_printf(a, "encryption at rest (%s)", sections[i].name));
	}
	return r;
}

const struct role_user encryption_at_rest_role_user = {.feature = "ENCRYPTION_AT_REST", .list = roles_list};

int encryption_is_on(struct tx *tx, struct arena *a, struct str group_id, bool *ret_on, int64_t *ret_since_ms)
{
	struct settings settings;
	int r = settings_load(tx, a, group_id, &settings);
	if (r < 0)
		return r;
	*ret_on = settings_enabled(settings.body);
	if (!settings.key || !clock_parse(json_field(settings.key, "created"), ret_since_ms))
		*ret_since_ms = INT64_MAX;
	return 0;
}

/* --- data keys */

/* One key that is asked for. */
struct question {
	struct arena *arena;
	struct str group_id, id;
	struct settings settings;
	struct doc doc;
	json_t *key;
	struct wrap wraps[PROVIDERS];
	size_t wrap_count;
};

static int question_read(struct tx *tx, void *ctx)
{
	struct question *q = ctx;
	int r = settings_load(tx, q->arena, q->group_id, &q->settings);
	if (r < 0)
		return r;
	if (!q->id.n && !settings_enabled(q->settings.body))
		return -ENOENT;
	if (!q->id.n)
		q->id = q->settings.key_doc.id;
	r = q->id.n ? tx_get(tx, q->arena, DATA_KEY_KIND, q->id, &q->doc) : -ENOENT;
	if (r == 0 && !str_eq(q->doc.parent, q->group_id))
		r = -ENOENT;
	if (r < 0)
		return r;
	q->key = doc_json(q->arena, q->doc.body);
	return wraps_load(tx, q->arena, &q->doc, NULL, q->wraps, &q->wrap_count);
}

/* Whether the last check has found that none of the providers gives the current key. */
static bool is_known_lost(const struct question *q, char *why)
{
	bool lost = str_eq(q->id, q->settings.key_doc.id) && settings_enabled(q->settings.body);
	for (unsigned i = 0; i < PROVIDERS; i++)
		lost = lost && !section_is(q->settings.body, (enum provider)i, "valid");
	if (lost)
		snprintf(why, DATA_KEY_WHY, "the project's key is not valid: its key service refuses it");
	return lost;
}

/* An earlier key may have been wrapped by an account that is no more: then with what the current one is asked for. */
static int wrap_ask(struct keys *k, const struct question *q, const struct wrap *w, struct data_key *ret_key, char *why)
{
	int r = wrap_open(k, w, NULL, q->group_id, q->key, ret_key, why);
	bool earlier = !str_eq(q->id, q->settings.key_doc.id);
	for (size_t i = 0; earlier && is_refusal(r) && i < q->settings.wrap_count; i++) {
		struct key_place with = wrap_place(&q->settings.wraps[i], q->group_id);
		if (with.provider == w->provider)
			r = wrap_open(k, w, &with, q->group_id, q->key, ret_key, why);
	}
	return r;
}

static int question_ask(struct keys *k, const struct question *q, struct data_key *ret_key, char *why)
{
	int r = -ENOENT;
	bool away = false;
	/* What can be given by one provider is not asked of another that has lost it. */
	for (size_t i = 0; r < 0 && i < q->wrap_count; i++) {
		r = wrap_ask(k, q, &q->wraps[i], ret_key, why);
		away = away || (r < 0 && !is_refusal(r));
	}
	if (r == 0)
		keys_kept_put(k, q->group_id, ret_key);
	/* Lost is what all of them refuse. */
	return r == 0 || r == -ENOENT ? r : away ? -EAGAIN : -EKEYREVOKED;
}

/* From the store and the services. */
static int data_key_ask(struct service *s, struct question *q, struct data_key *ret_key, char *why)
{
	bool current = !q->id.n;
	int r = with_reader(s->store, question_read, q);
	if (r < 0 && r != -ENOENT) {
		snprintf(why, DATA_KEY_WHY, "the store cannot be read");
		return -EAGAIN;
	}
	if (r == 0 && is_known_lost(q, why))
		return -EKEYREVOKED;
	if (current)
		keys_known_put(s->keys, q->group_id, q->id);
	if (r == 0 && !keys_kept_get(s->keys, q->group_id, q->id, CHECK_MS * 1000, ret_key))
		r = question_ask(s->keys, q, ret_key, why);
	/* A service that gives no answer takes nothing back. */
	if (r == -EAGAIN && keys_kept_get(s->keys, q->group_id, q->id, CHECK_MS * CHECKS_MISSED * 1000, ret_key))
		r = 0;
	return r;
}

static int data_key_get(void *ctx, struct str group_id, struct str id, struct data_key *ret_key,
                        char ret_why[DATA_KEY_WHY])
{
	struct service *s = ctx;
	char known[DATA_KEY_ID + 1];
	snprintf(ret_why, DATA_KEY_WHY, "the project has no such data key");
	*ret_key = (struct data_key){.bytes = NULL};
	if (!id.n && keys_known_get(s->keys, group_id, known)) {
		if (!known[0])
			return -ENOENT;
		if (keys_kept_get(s->keys, group_id, str_of(known), CHECK_MS * 1000, ret_key))
			return 0;
	}
	if (id.n && keys_kept_get(s->keys, group_id, id, CHECK_MS * 1000, ret_key))
		return 0;
	struct question q = {.arena = arena_new(), .group_id = group_id, .id = id};
	int r = data_key_ask(s, &q, ret_key, ret_why);
	arena_free(q.arena);
	return r;
}

static int data_key_wrapped(void *ctx, struct str group_id, struct str id, char **ret_json)
{
	struct service *s = ctx;
	struct question q = {.arena = arena_new(), .group_id = group_id, .id = id};
	int r = with_reader(s->store, question_read, &q);
	json_t *list = json_array(), *all = json_object();
	for (size_t i = 0; r == 0 && i < q.wrap_count; i++) {
		json_t *one = json_object();
		json_put_z(one, "provider", provider_names[q.wraps[i].provider]);
		json_put_str(one, "key", json_field(q.wraps[i].section, sections[q.wraps[i].provider].key));
		if (q.wraps[i].provider == PROVIDER_AWS)
			json_put_str(one, "region", json_field(q.wraps[i].section, "region"));
		json_put_str(one, "wrapped", q.wraps[i].bytes);
		json_put(one, "section", json_deep_copy(q.wraps[i].section));
		json_put_str(one, "version", q.wraps[i].version);
		json_array_append_new(list, one);
	}
	if (r == 0) {
		json_put_str(all, "id", q.id);
		json_put_str(all, "proof", json_field(q.key, "proof"));
		json_put_str(all, "created", json_field(q.key, "created"));
	}
	json_put(all, "wraps", list);
	if (r == 0)
		*ret_json = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	arena_free(q.arena);
	return r;
}

int data_key_adopt(struct tx *tx, struct arena *a, struct str group_id, const json_t *kept)
{
	struct str id = json_field(kept, "id");
	const json_t *wraps = json_object_get(kept, "wraps");
	struct doc d;
	json_t *body = json_new(a), *list = json_array();
	json_put(body, "wraps", list);
	int r = tx_get(tx, a, DATA_KEY_KIND, id, &d);
	if (r != -ENOENT)
		return r == 0 ? -EEXIST : r;
	for (size_t i = 0; i < json_array_size(wraps); i++) {
		json_t *wrap = json_deep_copy(json_array_get(wraps, i));
		bool whole = json_is_object(json_object_get(wrap, "section"));
		json_object_del(wrap, "key");
		json_object_del(wrap, "region");
		json_array_append_new(list, wrap);
		if (!whole)
			return -ENODATA;
	}
	if (!json_field(kept, "proof").n || !json_array_size(list))
		return -ENODATA;
	json_put_str(body, "id", id);
	json_put_str(body, "proof", json_field(kept, "proof"));
	json_put_str(body, "created", json_field(kept, "created"));
	return doc_insert(tx, DATA_KEY_KIND, id, group_id, STR_NONE, json_text(a, body));
}

const struct data_keys *encryption_data_keys(struct service *s, struct arena *a)
{
	struct data_keys *keys = arena_new_of(a, struct data_keys);
	*keys = (struct data_keys){.ctx = s, .get = data_key_get, .wrapped = data_key_wrapped};
	return keys;
}
