/* Whom identity providers sign in, and what they get.
 *
 * An organization's owner may name any domain, so a provider counts only for those that its federation has proven
 * (domains.c). And it vouches for nobody but the people of the organizations that use it: somebody with roles elsewhere
 * too, or with an account of their own and no role in these organizations, has to sign in in another way; whoever
 * configures a provider gains nothing that they do not have. Sessions that providers begin cannot change how the
 * account is signed in to (api/sign_in/visit.h).
 *
 *   "mapped_grant"     parent = user, name = organization or project; body {"orgId","inOrg","roles"}: the roles that
 *                      the user has there only because of a role mapping. They go when the provider's groups say so;
 *                      roles that somebody has given by hand stay */
#include "api/federation/federation.h"

#include "api/federation/domains.h"
#include "api/federation/identity_providers.h"
#include "api/federation/membership.h"
#include "base/json.h"
#include "base/log.h"
#include "catalog/formats.h"
#include "catalog/schema.h"
#include "identity/accounts.h"
#include "identity/identity.h"
#include "identity/saml.h"
#include "identity/sessions.h"
#include "trail/events.h"

#include <errno.h>

#define SHOWN_MAX 20   /* providers of one domain, */
#define PROVERS_MAX 50 /* of so many federations, all of which have proven it */
#define GROUPS_MAX 1000
#define NAME_BYTES 200
#define USERNAME_MAX 254

/* For people, with all that a sign-in needs. */
static bool signs_in(const json_t *provider)
{
	if (provider_is_saml(provider))
		return str_is(json_field(provider, "status"), "ACTIVE") && saml_is_installed();
	return str_is(json_field(provider, "idpType"), "WORKFORCE") && json_field(provider, "clientId").n &&
	       json_field(provider, "issuerUri").n;
}

static enum federated_sign_in allowed = FEDERATED_ALL;

void federation_allow(enum federated_sign_in whose)
{
	allowed = whose;
}

/* Whether the operator lets providers of that federation sign people in. */
static int is_allowed(struct tx *tx, struct arena *a, struct str federation_id, bool *ret_is)
{
	struct str first;
	struct doc config;
	*ret_is = allowed == FEDERATED_ALL;
	if (allowed != FEDERATED_OPERATOR)
		return 0;
	int result = tx_meta_get(tx, a, "bootstrap", &first);
	if (result == 0)
		result = tx_get(tx, a, "connected_org", first, &config);
	*ret_is = result == 0 && str_eq(config.parent, federation_id);
	return result == -ENOENT ? 0 : result;
}

/* The organizations that use the provider. */
static int users_of(struct tx *tx, struct arena *a, const struct doc *provider, struct doc **ret_orgs,
                    size_t *ret_count)
{
	struct doc *orgs;
	size_t count = 0, kept = 0;
	struct str okta = json_field(doc_json(a, provider->body), "oktaIdpId");
	int result = connected_orgs(tx, a, provider->parent, &orgs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (connected_org_uses(doc_json(a, orgs[i].body), provider->id, okta))
			orgs[kept++] = orgs[i];
	*ret_orgs = orgs;
	*ret_count = kept;
	return result;
}

int federation_provider(struct tx *tx, struct arena *a, struct str id, struct doc *ret_provider)
{
	struct doc d, *orgs;
	size_t count = 0;
	bool is = false;
	int result = tx_get(tx, a, "identity_provider", id, &d);
	if (result == 0)
		result = is_allowed(tx, a, d.parent, &is);
	if (result == 0 && (!is || !signs_in(doc_json(a, d.body))))
		return -ENOENT;
	if (result == 0)
		result = users_of(tx, a, &d, &orgs, &count);
	if (result < 0 || count == 0)
		return result < 0 ? result : -ENOENT;
	*ret_provider = d;
	return 0;
}

static struct str domain_of(struct str address)
{
	const char *at = address.n ? memrchr(address.p, '@', address.n) : NULL;
	return at ? (struct str){at + 1, address.n - (size_t)(at + 1 - address.p)} : STR_NONE;
}

/* Those of one federation, which has proven the domain. */
static int providers_add(struct tx *tx, struct arena *a, struct str federation_id, struct str domain, json_t *list)
{
	struct doc *docs, provider;
	size_t count = 0;
	int result = tx_list_all(tx, a, "identity_provider", federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count && json_array_size(list) < SHOWN_MAX; i++) {
		const json_t *body = doc_json(a, docs[i].body);
		if (!json_has(json_object_get(body, "associatedDomains"), domain))
			continue;
		result = federation_provider(tx, a, docs[i].id, &provider);
		if (result == 0) {
			json_t *one = json_object();
			json_put_str(one, "id", provider.id);
			json_put_str(one, "displayName", json_field(body, "displayName"));
			json_put_str(one, "protocol", json_field(body, "protocol"));
			json_array_append_new(list, one);
		}
		result = result == -ENOENT ? 0 : result;
	}
	return result;
}

int federation_providers_of(struct tx *tx, struct arena *a, struct str username, json_t *list)
{
	struct str domain = domain_of(arena_lower(a, username));
	struct doc *provers;
	size_t count = 0;
	if (!domain.n || !domain_fits(domain))
		return 0;
	int result = domain_provers(tx, a, domain, PROVERS_MAX, &provers, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = providers_add(tx, a, provers[i].name, domain, list);
	return result;
}

/* Somebody for whom a provider vouches. */
struct vouched {
	struct call *call; /* in a write */
	const struct doc *provider;
	const json_t *settings, *claims; /* the provider's */
	struct str username, user_id;
	struct doc *orgs; /* that use the provider */
	size_t org_count;
};

static int vouched_refuse(struct vouched *v, const char *why)
{
	return call_fail(v->call, 403, "NOT_ALLOWED_BY_PROVIDER", "%s", why);
}

static bool is_address_of(struct str text, const json_t *domains)
{
	struct str domain = domain_of(text);
	return text.n <= USERNAME_MAX && domain.n && format_fits(FORMAT_EMAIL, text) && json_has(domains, domain);
}

/* By the claim that the settings name. An address that its provider has not verified is nobody's, and neither is one of
 * a domain that nobody has proven. */
static int username_read(struct vouched *v)
{
	bool proven = false;
	struct str claim = provider_is_saml(v->settings) ? STR("email") : json_field(v->settings, "userClaim");
	struct str text = claim.n ? json_field(v->claims, arena_z(v->call->arena, claim)) : STR_NONE;
	v->username = arena_lower(v->call->arena, text);
	if (!is_address_of(v->username, json_object_get(v->settings, "associatedDomains")))
		return vouched_refuse(v, "The claim that names the user is no address of the provider's domains.");
	const json_t *verified = json_object_get(v->claims, "email_verified");
	if (str_is(claim, "email") && verified && !json_is_true(verified) && !str_is(json_str_of(verified), "true"))
		return vouched_refuse(v, "The provider has not verified the address.");
	int result =
	        domain_is_proven(v->call->tx, v->call->arena, v->provider->parent, domain_of(v->username), &proven);
	if (result < 0 || !proven)
		return result < 0 ? result
		                  : vouched_refuse(v, "The provider's domain is not proven (docs/federation.md).");
	return user_id_of(v->call->tx, v->call->arena, v->username, &v->user_id);
}

static const struct doc *org_find(const struct vouched *v, struct str org_id)
{
	for (size_t i = 0; i < v->org_count; i++)
		if (str_eq(v->orgs[i].id, org_id))
			return &v->orgs[i];
	return NULL;
}

/* -ENOENT: the scope is gone. */
static int org_of(struct call *c, bool in_org, struct str scope, struct str *ret_org)
{
	struct doc project;
	int result = in_org ? 0 : tx_get(c->tx, c->arena, "project", scope, &project);
	if (result == 0)
		*ret_org = in_org ? scope : project.parent;
	return result;
}

/* Whether a provider of the organization's federation has the domain and no proof of it. Older versions believed such a
 * one: it may have put somebody into the organization who has never heard of it. */
static int only_claims(struct vouched *v, struct str org_id, bool *ret_claims)
{
	struct call *c = v->call;
	struct doc config, *docs;
	size_t count = 0;
	bool proven = true, claims = false;
	int result = tx_get(c->tx, c->arena, "connected_org", org_id, &config);
	*ret_claims = false;
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = domain_is_proven(c->tx, c->arena, config.parent, domain_of(v->username), &proven);
	if (result == 0 && !proven)
		result = tx_list_all(c->tx, c->arena, "identity_provider", config.parent, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		claims |= json_has(json_object_get(doc_json(c->arena, docs[i].body), "associatedDomains"),
		                   domain_of(v->username));
	*ret_claims = claims;
	return result;
}

/* Whether the user has a role where the provider counts; refused where it has one elsewhere. An account without means
 * of its own has accepted nothing: what an unproven provider has put it into counts for nothing. */
static int places_check(struct vouched *v, bool own_means, bool *ret_member)
{
	struct call *c = v->call;
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_of(c->tx, c->arena, v->user_id, &rows, &count);
	*ret_member = false;
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct str org;
		bool claims = false;
		result = org_of(c, rows[i].in_org, rows[i].id, &org);
		bool here = result == 0 && org_find(v, org);
		if (result == 0 && !here && !own_means)
			result = only_claims(v, org, &claims);
		if (result == 0 && !here && !claims)
			return vouched_refuse(v,
			                      "The account has roles in organizations that do not use this provider.");
		*ret_member |= here;
		result = result == -ENOENT ? 0 : result;
	}
	return result;
}

/* The account's own means of signing in. */
static int has_own_means(struct vouched *v, const struct doc *user, bool *ret_has)
{
	int64_t passkeys = 0;
	int result = tx_count(v->call->tx, "user_passkey", v->user_id, &passkeys);
	*ret_has = passkeys > 0 || (user->secret.n && user_is_proven(v->call->arena, user));
	return result;
}

/* A password that whoever made the account once chose must not become the user's by this sign-in. */
static int forget_unproved_password(struct vouched *v, struct doc *user)
{
	if (!user->secret.n || user_is_proven(v->call->arena, user))
		return 0;
	user->secret = STR_NONE;
	return tx_update(v->call->tx, user);
}

static struct str name_claim(const struct vouched *v, const char *claim)
{
	return utf8_prefix(json_field(v->claims, claim), NAME_BYTES);
}

static int account_add(struct vouched *v)
{
	struct doc user;
	json_t *profile = json_new(v->call->arena);
	struct str first = name_claim(v, "given_name"), local, domain;
	first = first.n ? first : name_claim(v, "name");
	str_cut(v->username, '@', &local, &domain);
	json_put_str(profile, "firstName", first.n ? first : local);
	json_put_str(profile, "lastName", name_claim(v, "family_name"));
	return user_add(v->call->tx, v->call->arena, v->username, profile, STR_NONE, &user);
}

static int account_ensure(struct vouched *v)
{
	struct call *c = v->call;
	struct doc user;
	bool member, own;
	int result = tx_get(c->tx, c->arena, "user", v->user_id, &user);
	if (result == -ENOENT)
		return account_add(v);
	if (result == 0)
		result = has_own_means(v, &user, &own);
	if (result == 0)
		result = places_check(v, own, &member);
	if (result == 0 && !member && own)
		return vouched_refuse(v, "The account is in none of the organizations that use this provider.");
	return result < 0 ? result : forget_unproved_password(v, &user);
}

/* Roles. */

static int grant_event(struct vouched *v, const char *type, struct str org_id, struct str group_id)
{
	event_set_type(v->call, type);
	event_scope(v->call, org_id, group_id);
	event_field(v->call, "targetUsername", v->username);
	return event_next(v->call);
}

/* An organization may take only some domains as members. */
static int is_admitted(struct vouched *v, struct str org_id, bool *ret_is)
{
	int result = federation_admit(v->call, org_id, v->username);
	*ret_is = result == 0;
	if (result < 0 && v->call->problem.status == 400) {
		v->call->problem = (struct problem){0};
		return 0;
	}
	return result;
}

/* Into an organization that takes everybody for whom its provider vouches. */
static int org_join(struct vouched *v, const struct doc *org)
{
	struct call *c = v->call;
	const json_t *config = doc_json(c->arena, org->body);
	role_mask held, roles = roles_from_json(json_object_get(config, "postAuthRoleGrants"), true);
	bool admitted = false;
	int result = grant_get(c->tx, c->arena, v->user_id, org->id, &held);
	if (result < 0 || held || json_flag(config, "instantUserProvisioningDisabled"))
		return result;
	result = is_admitted(v, org->id, &admitted);
	if (result < 0 || !admitted)
		return result;
	result = grant_set(c->tx, c->arena, GRANTEE_USER, v->user_id, true, org->id,
	                   roles ? roles : role_bit("ORG_MEMBER"));
	return result < 0 ? result : grant_event(v, "JOINED_ORG", org->id, STR_NONE);
}

/* What mappings give in a place: now, and as it was kept at the last sign-in. */
struct mapped {
	struct str scope;
	bool in_org;
	role_mask now, before;
};
struct mapped_list {
	struct mapped *items;
	size_t count, room;
};

static struct mapped *mapped_at(struct arena *a, struct mapped_list *l, struct str scope, bool in_org)
{
	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->items[i].scope, scope))
			return &l->items[i];
	ARENA_FIT(a, l->items, l->count, l->room);
	l->items[l->count] = (struct mapped){.scope = scope, .in_org = in_org};
	return &l->items[l->count++];
}

static bool in_group(const struct vouched *v, struct str name)
{
	bool saml = provider_is_saml(v->settings);
	struct str claim = saml ? STR("groups") : json_field(v->settings, "groupsClaim");
	const json_t *groups = claim.n ? json_object_get(v->claims, arena_z(v->call->arena, claim)) : NULL;
	if (!saml && !str_is(json_field(v->settings, "authorizationType"), "GROUP"))
		return false;
	if (json_is_string(groups))
		return str_eq(json_str_of(groups), name);
	return json_array_size(groups) <= GROUPS_MAX && json_has(groups, name);
}

static void mapping_take(struct vouched *v, const json_t *mapping, struct mapped_list *l)
{
	const json_t *list = json_object_get(mapping, "roleAssignments");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str org = json_field(one, "orgId"), group = json_field(one, "groupId");
		int bit = role_find(json_field(one, "role"));
		role_mask role = bit < 0 ? 0 : (role_mask)1 << bit;
		mapped_at(v->call->arena, l, org.n ? org : group, org.n > 0)->now |=
		        role & (org.n ? role_org_mask : ~role_org_mask);
	}
}

static int mappings_read(struct vouched *v, const struct doc *org, struct mapped_list *l)
{
	struct call *c = v->call;
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(c->tx, c->arena, "role_mapping", org->id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (in_group(v, docs[i].name))
			mapping_take(v, doc_json(c->arena, docs[i].body), l);
	if (result == 0)
		result = tx_list_all(c->tx, c->arena, "mapped_grant", v->user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *kept = doc_json(c->arena, docs[i].body);
		bool in_org = json_flag(kept, "inOrg");
		if (str_eq(json_field(kept, "orgId"), org->id))
			mapped_at(c->arena, l, docs[i].name, in_org)->before =
			        roles_from_json(json_object_get(kept, "roles"), in_org);
	}
	return result;
}

static int mapped_keep(struct vouched *v, const struct mapped *m, struct str org_id, role_mask roles)
{
	struct arena *a = v->call->arena;
	json_t *body = json_new(a);
	json_put_str(body, "orgId", org_id);
	json_put(body, "inOrg", json_boolean(m->in_org));
	json_put(body, "roles", roles_json(roles));
	return tx_set_by_name(v->call->tx, a, "mapped_grant", v->user_id, m->scope,
	                      roles ? json_text(a, body) : STR_NONE);
}

/* An organization keeps its last owner, and its members stay members. */
static int roles_left(struct vouched *v, const struct mapped *m, role_mask held, role_mask *roles)
{
	int64_t owners = 0;
	role_mask owner = role_bit("ORG_OWNER");
	if (!m->in_org)
		return 0;
	int result = held & owner && !(*roles & owner) ? grant_owner_count(v->call->tx, m->scope, &owners) : 0;
	if (owners == 1) {
		*roles |= owner;
		log_warn("federation: %.*s stays the last owner of %.*s, whatever its groups", STR_ARG(v->username),
		         STR_ARG(m->scope));
	}
	*roles = *roles ? *roles : role_bit("ORG_MEMBER");
	return result;
}

static int mapped_apply(struct vouched *v, const struct mapped *m, struct str org_id)
{
	struct call *c = v->call;
	role_mask held;
	struct str of;
	int result = org_of(c, m->in_org, m->scope, &of);
	if (result == -ENOENT || (result == 0 && !str_eq(of, org_id))) /* gone, or moved away */
		return mapped_keep(v, m, org_id, 0);
	if (result == 0)
		result = grant_get(c->tx, c->arena, v->user_id, m->scope, &held);
	if (result < 0)
		return result;
	role_mask roles = (held & ~(m->before & ~m->now)) | m->now, only_mapped = m->now & (m->before | ~held);
	result = roles_left(v, m, held, &roles);
	if (result == 0 && only_mapped != m->before)
		result = mapped_keep(v, m, org_id, only_mapped);
	if (result < 0 || roles == held)
		return result;
	result = grant_set(c->tx, c->arena, GRANTEE_USER, v->user_id, m->in_org, m->scope, roles);
	const char *type = m->in_org || (held && roles) ? "USER_ROLES_CHANGED_AUDIT"
	                   : roles                      ? "JOINED_GROUP"
	                                                : "REMOVED_FROM_GROUP";
	return result < 0 ? result : grant_event(v, type, org_id, m->in_org ? STR_NONE : m->scope);
}

static int mappings_apply(struct vouched *v, const struct doc *org, bool *ret_member)
{
	struct call *c = v->call;
	struct mapped_list list = {.count = 0};
	role_mask held;
	int result = grant_get(c->tx, c->arena, v->user_id, org->id, &held);
	if (result < 0 || !held)
		return result;
	*ret_member = true;
	result = mappings_read(v, org, &list);
	for (size_t i = 0; result == 0 && i < list.count; i++)
		result = mapped_apply(v, &list.items[i], org->id);
	return result;
}

static int places_settle(struct vouched *v)
{
	bool member = false;
	int result = 0;
	for (size_t i = 0; result == 0 && i < v->org_count; i++) {
		result = org_join(v, &v->orgs[i]);
		if (result == 0)
			result = mappings_apply(v, &v->orgs[i], &member);
	}
	if (result == 0 && !member)
		return vouched_refuse(
		        v, "No organization that uses this provider takes new members by it. Ask to be invited.");
	return result;
}

int federation_joined(struct tx *tx, struct arena *a, struct str user_id)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, "user_session", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (session_is_federated(a, &docs[i]))
			result = session_end(tx, a, user_id, docs[i].id);
	return result;
}

int federation_left(struct tx *tx, struct arena *a, struct str org_id)
{
	return sessions_end_federated(tx, a, org_id);
}

/* Of the people of each organization. */
static int sessions_end_in(struct tx *tx, struct arena *a, const struct doc *orgs, size_t count)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = sessions_end_federated(tx, a, orgs[i].id);
	return result;
}

int federation_distrust(struct tx *tx, struct arena *a, struct str federation_id, struct str domain)
{
	struct doc *docs, *orgs;
	size_t count = 0, org_count = 0;
	int result = tx_list_all(tx, a, "identity_provider", federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (!json_has(json_object_get(doc_json(a, docs[i].body), "associatedDomains"), domain))
			continue;
		result = users_of(tx, a, &docs[i], &orgs, &org_count);
		if (result == 0)
			result = sessions_end_in(tx, a, orgs, org_count);
	}
	return result;
}

/* What a certificate that is gone has signed does not count any more. */
static bool loses_certificate(const json_t *before, const json_t *provider)
{
	const json_t *had = json_object_get(json_object_get(before, "pemFileInfo"), "certificates"),
	             *has = json_object_get(json_object_get(provider, "pemFileInfo"), "certificates");
	for (size_t i = 0; i < json_array_size(had); i++)
		if (!json_find(has, "content", json_field(json_array_get(had, i), "content")))
			return true;
	return false;
}

/* Whom it has signed in so far it might not sign in now. */
static bool vouches_anew(const json_t *before, const json_t *provider)
{
	static const char *const fields[] = {"issuerUri", "clientId", "userClaim", "status"};
	const json_t *had = json_object_get(before, "associatedDomains"),
	             *has = json_object_get(provider, "associatedDomains");
	bool anew = loses_certificate(before, provider);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		anew |= !str_eq(json_field(before, fields[i]), json_field(provider, fields[i]));
	for (size_t i = 0; i < json_array_size(had); i++)
		anew |= !json_has(has, json_item(had, i));
	return anew;
}

int federation_changed(struct tx *tx, struct arena *a, const struct doc *provider, const json_t *before)
{
	struct doc *orgs;
	size_t count = 0;
	const json_t *settings = doc_json(a, provider->body);
	bool for_people = str_is(json_field(settings, "idpType"), "WORKFORCE");
	if (!for_people || !vouches_anew(before, settings))
		return 0;
	int result = users_of(tx, a, provider, &orgs, &count);
	if (result == 0)
		result = sessions_end_in(tx, a, orgs, count);
	return result;
}

int federation_vouched(struct call *c, const struct doc *provider, const json_t *claims, struct str *ret_user_id)
{
	struct vouched v = {
	        .call = c, .provider = provider, .settings = doc_json(c->arena, provider->body), .claims = claims};
	int result = users_of(c->tx, c->arena, provider, &v.orgs, &v.org_count);
	if (result == 0)
		result = username_read(&v);
	if (result == 0)
		result = account_ensure(&v);
	if (result == 0)
		result = principal_load(c->tx, PRINCIPAL_USER, v.user_id, &c->caller);
	if (result < 0)
		return result;
	result = places_settle(&v);
	principal_unref(c->caller);
	c->caller = NULL;
	if (result == 0)
		*ret_user_id = v.user_id;
	return result;
}
