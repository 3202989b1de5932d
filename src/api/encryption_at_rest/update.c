/* The settings, by the API. A PATCH asks the key services before anything is stored: each enabled key has to wrap the
 * project's data key, and to give it back. What they say is kept only when the settings are still those that were asked
 * about. */
#include "api/encryption_at_rest/settings.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

/* One PATCH, from its preparation to its write. */
struct plan {
	struct settings was;
	json_t *body, *secrets; /* of the settings, as they will be */
	json_t *key, *key_secrets;
	struct str key_id;
	struct provider_role roles[PROVIDERS];
	bool has_role[PROVIDERS], rotated[PROVIDERS], given[PROVIDERS], proven[PROVIDERS];
	bool key_is_new;
	/* The first enabled provider that was asked and did not give the key: its result and words. */
	unsigned failed;
	int failure;
	char failure_why[KEY_WHY];
	struct str used_by; /* a cluster whose data is under the data key; empty: none */
};

/* --- what is wanted */

static const struct provider_role *role_of(const struct plan *p, unsigned i)
{
	return p->has_role[i] ? &p->roles[i] : NULL;
}

static struct key_place place_wanted(const struct plan *p, unsigned i)
{
	return place_of((enum provider)i, json_object_get(p->body, sections[i].name),
	                json_field(p->secrets, sections[i].name), role_of(p, i), p->was.group_id);
}

/* Whoever names a role has no credentials of their own, and the other way round. */
static void credentials_choose(unsigned i, json_t *section, json_t *secrets, const json_t *given)
{
	static const char *const own[PROVIDERS][3] = {{"accessKeyID"}, {"tenantID", "clientID"}, {NULL}};
	if (json_field(given, "roleId").n) {
		for (size_t k = 0; own[i][k]; k++)
			json_object_del(section, own[i][k]);
		json_object_del(secrets, sections[i].name);
	} else if (json_field(given, sections[i].secret).n)
		json_object_del(section, "roleId");
}

static void section_merge(struct plan *p, unsigned i, const json_t *given)
{
	json_t *section = json_default(p->body, sections[i].name, json_object());
	struct str secret = json_field(given, sections[i].secret);
	json_merge(section, given);
	json_object_del(section, sections[i].secret);
	json_object_del(section, "valid");
	credentials_choose(i, section, p->secrets, given);
	if (secret.n && !json_field(given, "roleId").n)
		json_put_str(p->secrets, sections[i].name, secret);
	if (!json_is_boolean(json_object_get(section, "enabled")))
		json_put(section, "enabled", json_false());
	json_put(section, "valid", json_boolean(section_is(p->was.body, (enum provider)i, "valid")));
}

static void wanted_merge(struct call *c, struct plan *p)
{
	p->body = json_clone(c->arena, p->was.body);
	p->secrets = json_clone(c->arena, p->was.secrets);
	for (unsigned i = 0; i < PROVIDERS; i++) {
		const json_t *given = json_object_get(c->body, sections[i].name);
		p->given[i] = json_is_object(given);
		if (p->given[i])
			section_merge(p, i, given);
	}
	const json_t *search = json_object_get(c->body, "enabledForSearchNodes");
	if (search)
		json_put(p->body, "enabledForSearchNodes", json_boolean(json_is_true(search)));
}

/* The roles that are named, and whether all is there that a service has to be asked with. */
static int wanted_check(struct call *c, struct tx *tx, struct plan *p)
{
	struct faults faults = {.count = 0};
	for (unsigned i = 0; i < PROVIDERS; i++) {
		const json_t *section = json_object_get(p->body, sections[i].name);
		struct str role = json_field(section, "roleId");
		const char *field = NULL, *fault = NULL;
		if (!json_flag(section, "enabled"))
			continue;
		int r = role.n ? provider_role_find(tx, c->arena, c->group.id, role, &p->roles[i]) : 0;
		p->has_role[i] = role.n && r == 0;
		if (r < 0 && r != -ENOENT && r != -EACCES)
			return r;
		if (r < 0 || (p->has_role[i] && p->roles[i].provider != (enum provider)i)) {
			field = "roleId";
			fault = r == -ENOENT   ? "the project has no cloud provider role of this id"
			        : r == -EACCES ? "the cloud provider role is not authorized yet"
			                       : "the cloud provider role is of another provider";
		} else {
			struct key_place place = place_wanted(p, i);
			fault = key_place_fault(c->service->keys, &place, &field);
		}
		if (fault)
			faults_add(&faults, c->arena, arena_printf(c->arena, "%s.%s", sections[i].name, field), "%s",
			           fault);
	}
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

/* A key that clusters' data is under cannot be let go of. */
static int use_check(struct call *c, struct tx *tx, const json_t *body)
{
	for (unsigned i = 0; i < PROVIDERS; i++) {
		struct str name;
		if (section_is(body, (enum provider)i, "enabled"))
			continue;
		int r = cluster_using(tx, c->arena, c->group.id, i, &name);
		if (r < 0)
			return r;
		if (name.n)
			return call_fail_about(
			        c, 409, "ENCRYPTION_AT_REST_IN_USE", name,
			        "%s.enabled: the cluster \"%.*s\" is encrypted with the project's key at %s. "
			        "Set its encryptionAtRestProvider to NONE first.",
			        sections[i].name, STR_ARG(name), provider_names[i]);
	}
	return 0;
}

static int wanted_read(struct tx *tx, void *ctx)
{
	struct call *c = ctx;
	struct plan *p = c->prepared;
	int r = settings_load(tx, c->arena, c->group.id, &p->was);
	if (r < 0)
		return r;
	wanted_merge(c, p);
	r = wanted_check(c, tx, p);
	if (r == 0)
		r = use_check(c, tx, p->body);
	return r < 0 ? r : cluster_using(tx, c->arena, c->group.id, PROVIDERS, &p->used_by);
}

/* --- asking */

static int key_refuse(struct call *c, const struct plan *p, unsigned i, int result, const char *why)
{
	struct key_place place = place_wanted(p, i);
	struct str remedy = key_remedy(c->arena, &place);
	switch (result) {
	case -EACCES:
	case -EPERM:
	case -EBADMSG:
		return call_fail_field(c, 400, "ENCRYPTION_AT_REST_KEY_REFUSED", sections[i].name, "%s. %.*s", why,
		                       STR_ARG(remedy));
	case -ENOTSUP: return call_fail_field(c, 400, "CLOUD_PROVIDER_NOT_CONFIGURED", sections[i].name, "%s.", why);
	case -EKEYREJECTED:
		log_error("encryption at rest of project %.*s: %s refuses this service itself: %s",
		          STR_ARG(c->group.id), provider_names[i], why);
		return call_fail_field(c, 409, "CLOUD_PROVIDER_REFUSES_SERVICE", sections[i].name,
		                       "%s. The provider refuses this service, not the key: its operator must mend "
		                       "the service's own credentials or rights.",
		                       why);
	default:
		log_warn("encryption at rest of project %.*s: %s", STR_ARG(c->group.id), why);
		return call_fail_field(c, 409, "KEY_SERVICE_UNAVAILABLE", sections[i].name,
		                       "%s. Nothing was changed; try again later.", why);
	}
}

static int engine_check(struct call *c, const struct plan *p)
{
	const struct service *s = c->service;
	const char *why = "the engine that runs the databases does not offer it";
	unsigned first = PROVIDERS;
	for (unsigned i = PROVIDERS; i-- > 0;)
		if (section_is(p->body, (enum provider)i, "enabled") &&
		    !section_is(p->was.body, (enum provider)i, "enabled"))
			first = i;
	if (first == PROVIDERS || (s->engine_ops->core->can_encrypt &&
	                           s->engine_ops->core->can_encrypt(s->engine_state, c->arena, &why) == 0))
		return 0;
	return call_fail_field(c, 400, "ENCRYPTION_AT_REST_NOT_SUPPORTED", sections[first].name,
	                       "files cannot be encrypted here: %s.", why);
}

/* The data key that the project has, from a service that unwraps what is stored, asked with what the settings will be
 * or with what they are. Never from memory: an attack that came within the quarter of an hour for which keys are kept
 * there had a key that was taken back replaced by another one, and all that was sealed stayed open. */
static int key_recover(struct call *c, const struct plan *p, struct data_key *ret_key, char *why)
{
	struct keys *k = c->service->keys;
	int worst = -EACCES;
	for (size_t i = 0; i < p->was.wrap_count; i++) {
		const struct wrap *w = &p->was.wraps[i];
		struct key_place with = place_wanted(p, w->provider);
		int r = -EACCES;
		if (section_is(p->body, w->provider, "enabled"))
			r = wrap_open(k, w, &with, c->group.id, p->was.key, ret_key, why);
		if (is_refusal(r))
			r = wrap_open(k, w, NULL, c->group.id, p->was.key, ret_key, why);
		if (r == 0)
			return 0;
		if (!is_refusal(r)) /* it may be had later */
			worst = r;
	}
	return worst;
}

static void key_make(struct call *c, struct plan *p, struct data_key *ret_key)
{
	char proof[65];
	data_key_new(ret_key);
	data_key_proof(ret_key, proof);
	p->key_is_new = true;
	p->key = json_new(c->arena);
	json_put_z(p->key, "id", ret_key->id);
	json_put_z(p->key, "proof", proof);
	json_put_time(p->key, "created", clock_now_ms());
}

static int key_obtain(struct call *c, struct plan *p, unsigned first, struct data_key *ret_key)
{
	char why[KEY_WHY] = "";
	*ret_key = (struct data_key){.bytes = NULL};
	if (!p->was.key) {
		key_make(c, p, ret_key);
		return 0;
	}
	int r = key_recover(c, p, ret_key, why);
	if (r == 0) {
		p->key = json_clone(c->arena, p->was.key);
		return 0;
	}
	if (!is_refusal(r))
		return key_refuse(c, p, first, r, why);
	/* It was taken back: nothing of it is used out of memory any more. */
	keys_kept_drop(c->service->keys, c->group.id);
	if (p->used_by.n)
		return call_fail_field(
		        c, 400, "ENCRYPTION_AT_REST_KEY_REFUSED", sections[first].name,
		        "the data of the cluster \"%.*s\" is under the key that the project had, and that "
		        "one is refused: %s. Give it back first; then it can be changed.",
		        STR_ARG(p->used_by), why);
	key_make(c, p, ret_key);
	return 0;
}

static const struct wrap *wrap_of(const struct plan *p, unsigned i)
{
	for (size_t k = 0; !p->key_is_new && k < p->was.wrap_count; k++)
		if (p->was.wraps[k].provider == (enum provider)i)
			return &p->was.wraps[k];
	return NULL;
}

/* What a service is asked with: the settings without what they say about themselves. */
static json_t *section_asked(struct call *c, const struct plan *p, unsigned i)
{
	json_t *section = json_clone(c->arena, json_object_get(p->body, sections[i].name));
	json_object_del(section, "valid");
	json_object_del(section, "enabled");
	json_object_del(section, "requirePrivateNetworking");
	return section;
}

static void wrap_keep(struct plan *p, unsigned i, json_t *wraps, json_t *section, const struct key_wrap *made)
{
	json_t *one = json_object();
	json_put_z(one, "provider", provider_names[i]);
	json_put(one, "section", json_deep_copy(section));
	json_put_str(one, "wrapped", made->bytes);
	json_put_str(one, "version", made->version);
	json_array_append_new(wraps, one);
	struct str secret = json_field(p->secrets, sections[i].name);
	if (secret.n)
		json_put_str(p->key_secrets, provider_names[i], secret);
}

/* One provider's key has to wrap the data key and to give it back. A provider that the call does not name keeps its
 * wrap when it gives no answer now. */
static int provider_ask(struct call *c, struct plan *p, unsigned i, const struct data_key *key, json_t *wraps)
{
	struct key_place place = place_wanted(p, i);
	const struct wrap *before = wrap_of(p, i);
	struct key_wrap made;
	char why[KEY_WHY];
	json_t *section = section_asked(c, p, i), *of_settings = json_object_get(p->body, sections[i].name);
	int r = key_prove(c->service->keys, c->arena, &place, key, &made, why);
	if (r < 0 && (p->given[i] || !before))
		return key_refuse(c, p, i, r, why);
	if (r < 0)
		made = (struct key_wrap){.bytes = before->bytes, .version = before->version};
	if (r < 0 && !p->failure) {
		p->failed = i;
		p->failure = r;
		memcpy(p->failure_why, why, sizeof why);
	}
	p->proven[i] = r == 0;
	if (r == 0)
		json_put(of_settings, "valid", json_true());
	p->rotated[i] = before && (!str_eq(before->version, made.version) ||
	                           !str_eq(json_field(before->section, sections[i].key), place.key));
	wrap_keep(p, i, wraps, section, &made);
	return 0;
}

static bool is_proven(const struct plan *p)
{
	bool proven = false;
	for (unsigned i = 0; i < PROVIDERS; i++)
		proven = proven || p->proven[i];
	return proven;
}

/* A wrap is let go of only when another one is known to be good: it may be the last that gives the data key. */
static int wraps_check(struct call *c, const struct plan *p)
{
	bool less = false;
	for (size_t i = 0; i < p->was.wrap_count; i++)
		less = less || !section_is(p->body, p->was.wraps[i].provider, "enabled");
	return less && p->failure && !is_proven(p) ? key_refuse(c, p, p->failed, p->failure, p->failure_why) : 0;
}

static int services_ask(struct call *c, struct plan *p, unsigned first)
{
	struct data_key key;
	json_t *wraps = json_keep(c->arena, json_array());
	int r = key_obtain(c, p, first, &key);
	p->key_secrets = json_new(c->arena);
	for (unsigned i = 0; r == 0 && i < PROVIDERS; i++)
		if (section_is(p->body, (enum provider)i, "enabled"))
			r = provider_ask(c, p, i, &key, wraps);
	if (r == 0)
		r = wraps_check(c, p);
	if (r == 0) {
		p->key_id = arena_dup(c->arena, str_of(key.id));
		json_object_set(p->key, "wraps", wraps);
		json_put_str(p->body, "dataKeyId", p->key_id);
		if (is_proven(p))
			keys_kept_put(c->service->keys, c->group.id, &key);
	}
	data_key_free(&key);
	return r;
}

static int check_now(struct tx *tx, void *ctx)
{
	const struct call *c = ctx;
	return check_ask(tx, c->group.id, 0);
}

/* What was refused may be the key that is in force: that is looked at at once. */
static void check_begin(struct call *c, const struct plan *p)
{
	if (!settings_enabled(p->was.body) || c->problem.status != 400)
		return;
	int r = store_write_wait(c->service->store, check_now, c);
	if (r < 0)
		log_warn("encryption at rest of project %.*s: its check waits for its time (%d)", STR_ARG(c->group.id),
		         r);
}

/* Before the write, because it waits for the key services. */
int encryption_prepare(struct call *c)
{
	struct plan *p = arena_new_of(c->arena, struct plan);
	unsigned first = PROVIDERS;
	*p = (struct plan){.key = NULL};
	c->prepared = p;
	int r = with_reader(c->service->store, wanted_read, c);
	if (r < 0)
		return c->problem.status ? r : call_fail_store(c, r, c->op->id);
	for (unsigned i = PROVIDERS; i-- > 0;) {
		bool enabled = section_is(p->body, (enum provider)i, "enabled");
		if (enabled && (first == PROVIDERS || p->given[i] || !p->given[first]))
			first = i;
		if (!enabled && json_object_get(p->body, sections[i].name))
			json_put(json_object_get(p->body, sections[i].name), "valid", json_false());
	}
	if (first == PROVIDERS)
		return 0;
	r = engine_check(c, p);
	if (r == 0 && (r = services_ask(c, p, first)) < 0)
		check_begin(c, p);
	return r;
}

/* --- the write */

static int key_save(struct call *c, const struct plan *p)
{
	struct doc d = p->was.key_doc;
	if (!p->key)
		return 0;
	if (p->key_is_new) {
		d = doc_new(c->arena, DATA_KEY_KIND, c->group.id, STR_NONE, STR_NONE);
		d.id = p->key_id;
	}
	d.body = json_text(c->arena, p->key);
	d.secret = json_object_size(p->key_secrets) ? doc_seal(c->arena, &d, json_text(c->arena, p->key_secrets))
	                                            : STR_NONE;
	return p->key_is_new ? tx_insert(c->tx, &d) : tx_update(c->tx, &d);
}

/* The settings without what checks note in them. */
static json_t *settings_bare(struct arena *a, const json_t *body)
{
	json_t *bare = json_clone(a, body);
	json_object_del(bare, "checks");
	for (unsigned i = 0; i < PROVIDERS; i++)
		json_object_del(json_object_get(bare, sections[i].name), "valid");
	return bare;
}

/* What checks have noted since, of what was not proven now. */
static void checks_keep(const struct plan *p, const json_t *now, json_t *document)
{
	json_t *checks = json_deep_copy(json_object_get(now, "checks"));
	for (unsigned i = 0; i < PROVIDERS; i++) {
		const char *name = sections[i].name;
		bool enabled = section_is(p->body, (enum provider)i, "enabled");
		if (p->proven[i] || !enabled)
			json_object_del(checks, name);
		else
			json_put(json_object_get(document, name), "valid",
			         json_boolean(section_is(now, (enum provider)i, "valid")));
	}
	json_put(document, "checks", checks);
}

/* Whether something has changed since the services were asked: 1, 0, or negative. Another data key comes only where no
 * cluster has come under the one before meanwhile. */
static int change_look(struct call *c, const struct plan *p, const struct doc *old, const json_t *now)
{
	struct str used_by = STR_NONE;
	struct doc key;
	if (!str_eq(old->secret, p->was.doc.secret) ||
	    !json_equal(settings_bare(c->arena, now), settings_bare(c->arena, p->was.body)))
		return 1;
	int r = p->was.key ? tx_get(c->tx, c->arena, DATA_KEY_KIND, p->was.key_doc.id, &key) : 0;
	if (r < 0 || !p->was.key)
		return r;
	if (p->key_is_new)
		r = cluster_using(c->tx, c->arena, c->group.id, PROVIDERS, &used_by);
	return r < 0 ? r : used_by.n || key.rev != p->was.key_doc.rev;
}

static int settings_update(struct call *c, const struct doc *old, json_t *document)
{
	const struct plan *p = c->prepared;
	json_t *now = doc_json(c->arena, old->body);
	c->noted = now;
	int r = change_look(c, p, old, now);
	if (r < 0)
		return r;
	if (r)
		return call_fail_about(c, 409, "ENCRYPTION_AT_REST_CHANGED", c->group.id,
		                       "Encryption at rest was changed at the same time. Try again.");
	json_object_clear(document);
	json_object_update_new(document, json_deep_copy(p->body));
	checks_keep(p, now, document);
	return use_check(c, c->tx, p->body);
}

static bool was_away(const json_t *before, unsigned i)
{
	return json_flag(json_object_get(json_object_get(before, "checks"), sections[i].name), "away");
}

static int effects(struct call *c, const struct plan *p)
{
	const json_t *before = c->noted;
	int r = 0;
	for (unsigned i = 0; r == 0 && i < PROVIDERS; i++) {
		bool was = section_is(before, (enum provider)i, "valid"),
		     enabled = section_is(before, (enum provider)i, "enabled");
		if (p->proven[i] && was_away(before, i))
			r = event_service(c->tx, c->arena, "ENCRYPTION_AT_REST_KMS_NETWORK_ACCESS_RESTORED", c->org.id,
			                  c->group.id, STR_NONE);
		if (r == 0 && p->proven[i] && !was && enabled)
			r = validity_changed(c->tx, c->arena, c->group.id, (enum provider)i, true, NULL);
		if (r == 0 && p->rotated[i])
			r = event_service(c->tx, c->arena,
			                  arena_printf(c->arena, "%s_ENCRYPTION_KEY_ROTATED", provider_names[i]).p,
			                  c->org.id, c->group.id, STR_NONE);
	}
	return r;
}

static void settings_committed(struct call *c, void *arg)
{
	keys_known_drop(c->service->keys, c->group.id);
}

static int settings_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	const struct plan *p = c->prepared;
	d->secret = json_object_size(p->secrets) ? doc_seal(c->arena, d, json_text(c->arena, p->secrets)) : STR_NONE;
	c->committed = settings_committed;
	int r = resource_put(c->tx, d, old);
	if (r == 0)
		r = key_save(c, p);
	if (r == 0 && settings_enabled(p->body))
		r = check_ask(c->tx, c->group.id, CHECK_MS);
	return r < 0 ? r : effects(c, p);
}

static int settings_view(struct call *c, const struct doc *d, json_t *entity)
{
	json_object_del(entity, "dataKeyId");
	json_object_del(entity, "checks");
	json_object_del(json_object_get(entity, "awsKms"), "roleId"); /* which is written only */
	return 0;
}

const struct resource_hooks encryption_at_rest_hooks = {
        .update = settings_update, .save = settings_save, .view = settings_view};
