/* The stored settings, and the way from them to a key service. */
#include "api/encryption_at_rest/settings.h"

#include "api/kit/verbs.h"
#include "base/id.h"

#include <errno.h>
#include <stdio.h>

const struct section sections[PROVIDERS] = {{"awsKms", "customerMasterKeyID", "secretAccessKey"},
                                            {"azureKeyVault", "keyIdentifier", "secret"},
                                            {"googleCloudKms", "keyVersionResourceID", "serviceAccountKey"}};

bool section_is(const json_t *body, enum provider provider, const char *flag)
{
	return json_flag(json_object_get(body, sections[provider].name), flag);
}

bool settings_enabled(const json_t *body)
{
	bool enabled = false;
	for (unsigned i = 0; i < PROVIDERS; i++)
		enabled = enabled || section_is(body, (enum provider)i, "enabled");
	return enabled;
}

static int secrets_load(struct arena *a, const struct doc *d, json_t **ret_secrets)
{
	struct str plain;
	*ret_secrets = json_new(a);
	if (!d->rev || !d->secret.n)
		return 0;
	int r = doc_unseal(a, d, &plain);
	if (r == 0)
		*ret_secrets = doc_json(a, plain);
	return r;
}

static int wrap_load(struct tx *tx, struct arena *a, struct str group_id, const json_t *from, const json_t *secrets,
                     struct wrap *ret_wrap)
{
	struct str provider = json_field(from, "provider");
	*ret_wrap = (struct wrap){.section = json_object_get(from, "section"),
	                          .bytes = json_field(from, "wrapped"),
	                          .version = json_field(from, "version")};
	if (!provider_of_name(provider, &ret_wrap->provider))
		return -EIO;
	ret_wrap->secret = json_field(secrets, provider_names[ret_wrap->provider]);
	struct str role = json_field(ret_wrap->section, "roleId");
	if (!role.n)
		return 0;
	int r = provider_role_find(tx, a, group_id, role, &ret_wrap->role);
	ret_wrap->has_role = r == 0;
	ret_wrap->is_lost = r == -ENOENT || r == -EACCES;
	return ret_wrap->is_lost ? 0 : r;
}

int wraps_load(struct tx *tx, struct arena *a, const struct doc *key, json_t *ret_secrets,
               struct wrap ret_wraps[PROVIDERS], size_t *ret_count)
{
	const json_t *list = json_object_get(doc_json(a, key->body), "wraps");
	json_t *secrets;
	int r = secrets_load(a, key, &secrets);
	*ret_count = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(list) && i < PROVIDERS; i++)
		r = wrap_load(tx, a, key->parent, json_array_get(list, i), secrets, &ret_wraps[(*ret_count)++]);
	if (r == 0 && ret_secrets)
		json_object_update(ret_secrets, secrets);
	return r;
}

int settings_load(struct tx *tx, struct arena *a, struct str group_id, struct settings *ret_settings)
{
	struct settings *s = ret_settings;
	*s = (struct settings){.group_id = group_id};
	int r = resource_singleton(tx, a, &resource_encryption_at_rest, group_id, &s->doc);
	if (r < 0)
		return r;
	s->body = doc_json(a, s->doc.body);
	r = secrets_load(a, &s->doc, &s->secrets);
	struct str id = json_field(s->body, "dataKeyId");
	if (r < 0 || !id.n)
		return r;
	r = tx_get(tx, a, DATA_KEY_KIND, id, &s->key_doc);
	if (r < 0)
		return r == -ENOENT ? -EIO : r;
	s->key = doc_json(a, s->key_doc.body);
	return wraps_load(tx, a, &s->key_doc, NULL, s->wraps, &s->wrap_count);
}

int with_reader(struct store *store, int (*read)(struct tx *tx, void *ctx), void *ctx)
{
	struct tx *reader = store_reader(store);
	if (!reader)
		return -EIO;
	tx_begin_read(reader);
	int r = read(reader, ctx);
	tx_end_read(reader);
	store_reader_free(reader);
	return r;
}

/* Places. */

struct key_place place_of(enum provider provider, const json_t *section, struct str secret,
                          const struct provider_role *role, struct str group_id)
{
	return (struct key_place){.provider = provider,
	                          .group_id = group_id,
	                          .key = json_field(section, sections[provider].key),
	                          .region = json_field(section, "region"),
	                          .environment = json_field(section, "azureEnvironment"),
	                          .vault = json_field(section, "keyVaultName"),
	                          .tenant = json_field(section, "tenantID"),
	                          .client = json_field(section, "clientID"),
	                          .role = role,
	                          .key_id = json_field(section, "accessKeyID"),
	                          .secret = secret};
}

struct key_place wrap_place(const struct wrap *w, struct str group_id)
{
	return place_of(w->provider, w->section, w->secret, w->has_role ? &w->role : NULL, group_id);
}

bool is_refusal(int result)
{
	return result == -EACCES || result == -EBADMSG || result == -EPERM;
}

int wrap_open(struct keys *k, const struct wrap *w, const struct key_place *with, struct str group_id,
              const json_t *key, struct data_key *ret_key, char why[KEY_WHY])
{
	struct key_place p = wrap_place(w, group_id);
	char proof[65];
	if (with) {
		p.role = with->role;
		p.key_id = with->key_id;
		p.secret = with->secret;
		p.tenant = with->tenant;
		p.client = with->client;
	} else if (w->is_lost) {
		snprintf(why, KEY_WHY, "the cloud provider role that the key is reached by is gone");
		return -EACCES;
	}
	int r = key_unwrap(k, &p, w->bytes, ret_key, why);
	if (r < 0)
		return r;
	str_copy(json_field(key, "id"), ret_key->id, sizeof ret_key->id);
	data_key_proof(ret_key, proof);
	if (str_is(json_field(key, "proof"), proof))
		return 0;
	data_key_free(ret_key);
	snprintf(why, KEY_WHY, "the key service gave back another key than it was given");
	return -EBADMSG;
}

/* Clusters. */

struct use {
	struct arena *arena;
	unsigned provider;
	struct str name;
};

static bool is_under(const json_t *cluster, unsigned provider)
{
	struct str by = json_field(cluster, "encryptionAtRestProvider");
	return provider == PROVIDERS ? by.n && !str_is(by, "NONE") : str_is(by, provider_names[provider]);
}

static int use_look(struct tx *tx, void *ctx, const struct doc *d)
{
	struct use *u = ctx;
	if (!u->name.n && is_under(doc_json(u->arena, d->body), u->provider))
		u->name = arena_dup(u->arena, d->name);
	return 0;
}

int cluster_using(struct tx *tx, struct arena *a, struct str group_id, unsigned provider, struct str *ret_name)
{
	struct use u = {.arena = a, .provider = provider};
	int r = clusters_walk_group(tx, a, group_id, use_look, &u);
	*ret_name = u.name;
	return r;
}
