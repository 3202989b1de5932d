/* The questions of the gates, for what has no call any more. */
#include "gate/right.h"

#include "base/clock.h"
#include "base/json.h"
#include "gate/gate.h"
#include "identity/links.h"
#include "identity/sessions.h"

#include <errno.h>

#define ASK_US INT64_C(60000000) /* a session can end without a change of rights: by being idle */

/* What the caller has shown, and until when it is good. */
static void credential_read(struct call *c, struct right *right)
{
	struct str header = str_trim(request_header(c->request, "authorization"));
	struct token token;
	struct session session;
	if (header.n > 7 && token_parse(str_trim((struct str){header.p + 7, header.n - 7}), &token)) {
		right->secret = token.secret_id;
		right->token = token.unique;
		right->until_ms = token.expires_ms;
	} else if (!header.n && session_find(c->tx, c->arena, c->request, &session) == 0) {
		str_copy(session.id, right->session.z, sizeof right->session.z);
		right->until_ms = session.expires_ms;
	}
}

void right_of_call(struct call *c, struct right *ret_right)
{
	*ret_right = (struct right){.kind = c->caller->kind,
	                            .op = c->op,
	                            .peer = c->request->peer,
	                            .weak = c->weak,
	                            .until_ms = INT64_MAX,
	                            .generation = tx_identity_generation(c->tx),
	                            .asked_us = clock_mono_us()};
	str_copy(str_of(c->caller->id), ret_right->caller.z, sizeof ret_right->caller.z);
	struct str scope = c->op->tenant == TENANT_GROUP ? c->group.id
	                   : c->op->tenant == TENANT_ORG ? c->org.id
	                                                 : STR_NONE;
	str_copy(scope, ret_right->scope.z, sizeof ret_right->scope.z);
	credential_read(c, ret_right);
}

int right_link_put(struct call *c, json_t *link)
{
	struct right right = {.until_ms = INT64_MAX};
	struct doc session;
	struct str stamp = STR_NONE;
	bool person = c->caller->kind == PRINCIPAL_USER;
	credential_read(c, &right);
	json_put(link, "kind", json_integer(c->caller->kind));
	json_put_z(link, "caller", c->caller->id);
	json_put(link, "madeAt", json_integer(clock_now_ms()));
	if (c->weak)
		json_put(link, "weak", json_true());
	if (!person) {
		if (right.secret.z[0])
			json_put_z(link, "secret", right.secret.z);
		return 0;
	}
	int r = tx_get(c->tx, c->arena, "user_session", id_str(right.session.z[0] ? &right.session : &right.secret),
	               &session);
	if (r == 0 && session_is_federated(c->arena, &session))
		json_put(link, "federated", json_true());
	if (r == 0)
		r = links_stamp(c->tx, c->arena, str_of(c->caller->id), &stamp);
	if (r == 0 && stamp.n)
		json_put_str(link, "stamp", stamp);
	return r;
}

void right_of_link(const json_t *link, const struct op *op, struct str scope, const struct ip *peer,
                   struct right *ret_right)
{
	/* Downloads of an older release said "callerKind". */
	const char *kind = json_object_get(link, "kind") ? "kind" : "callerKind";
	*ret_right = (struct right){.kind = (enum principal_kind)json_number(link, kind),
	                            .op = op,
	                            .peer = *peer,
	                            .weak = json_flag(link, "weak"),
	                            .until_ms = INT64_MAX,
	                            .by_link = true,
	                            .federated = json_flag(link, "federated"),
	                            .made_ms = json_number(link, "madeAt")};
	str_copy(json_field(link, "caller"), ret_right->caller.z, sizeof ret_right->caller.z);
	str_copy(scope, ret_right->scope.z, sizeof ret_right->scope.z);
	str_copy(json_field(link, "secret"), ret_right->secret.z, sizeof ret_right->secret.z);
	str_copy(json_field(link, "stamp"), ret_right->stamp.z, sizeof ret_right->stamp.z);
}

/* A secret's time may be over: the link has its own. */
static int link_check(const struct right *right, struct tx *tx, struct arena *a)
{
	struct str stamp = STR_NONE;
	struct doc secret;
	int r = 0;
	if (right->kind != PRINCIPAL_USER) {
		r = right->secret.z[0] ? tx_get(tx, a, "sa_secret", id_str(&right->secret), &secret) : 0;
		return r == -ENOENT ? -EACCES : r;
	}
	r = links_stamp(tx, a, id_str(&right->caller), &stamp);
	if (r == 0 && !str_eq(stamp, str_of(right->stamp.z)))
		r = -EACCES;
	return r == 0 && right->federated ? session_stamps_check_since(tx, a, id_str(&right->caller), right->made_ms)
	                                  : r;
}

/* *weak: whether a session that the caller has shown is without a second factor now. */
static int credential_check(const struct right *right, struct tx *tx, struct arena *a, bool *weak)
{
	struct session session = {.strong = true};
	struct doc doc;
	int64_t until_ms;
	if (right->until_ms <= clock_now_ms())
		return -EACCES;
	if (right->by_link)
		return link_check(right, tx, a);
	int r = right->session.z[0] ? session_look(tx, a, id_str(&right->session), &session) : 0;
	if (right->session.z[0]) {
		*weak = !session.strong;
		return r;
	}
	if (!right->token.z[0])
		return 0;
	r = tx_get(tx, a, "token_revoked", id_str(&right->token), &doc);
	if (r != -ENOENT)
		return r < 0 ? r : -EACCES;
	r = tx_get(tx, a, right->kind == PRINCIPAL_USER ? "user_session" : "sa_secret", id_str(&right->secret), &doc);
	if (r == -ENOENT || (r == 0 && !secret_in_force(&doc, &until_ms)))
		return -EACCES;
	return r == 0 && right->kind == PRINCIPAL_USER ? session_stamps_check(tx, a, &doc) : r;
}

int right_caller(struct service *s, struct token_cache *known, struct tx *tx, struct arena *a,
                 const struct right *right, struct principal **ret_caller)
{
	struct principal *p = NULL;
	bool weak = right->weak;
	int r = credential_check(right, tx, a, &weak);
	if (r == 0)
		r = known ? known_caller(s, known, tx, right->kind, id_str(&right->caller), &p)
		          : principal_load(tx, right->kind, id_str(&right->caller), &p);
	if (r == 0 && weak)
		r = principal_weaken(tx, &p);
	if (r == 0 && !access_list_permits(p, &right->peer))
		r = -EADDRNOTAVAIL;
	if (r < 0)
		principal_unref(p);
	else
		*ret_caller = p;
	return r;
}

/* As gate_membership() has them. A project may have gone, or to another organization. */
static int roles_of(const struct principal *p, struct tx *tx, struct arena *a, const struct right *right,
                    role_mask *ret_roles)
{
	struct str scope = id_str(&right->scope);
	struct doc project;
	if (right->op->tenant == TENANT_ORG) {
		*ret_roles = principal_org_roles(p, scope);
		return 0;
	}
	int r = right->op->tenant == TENANT_GROUP ? tx_get(tx, a, "project", scope, &project) : -ENOENT;
	if (r == 0)
		*ret_roles = principal_org_roles(p, project.parent) | principal_group_roles(p, project.parent, scope);
	return r == -ENOENT ? -EPERM : r;
}

int right_check(struct service *s, struct token_cache *known, struct tx *tx, struct arena *a, const struct right *right)
{
	struct principal *p;
	role_mask roles = 0;
	int r = right_caller(s, known, tx, a, right, &p);
	if (r < 0)
		return r;
	r = roles_of(p, tx, a, right, &roles);
	principal_unref(p);
	return r < 0 ? r : right->op->open_to_all || roles & right->op->roles ? 0 : -EPERM;
}

int right_check_again(struct service *s, struct tx *tx, struct arena *a, struct right *right)
{
	uint64_t generation = store_identity_generation(s->store), shown = tx_identity_generation(tx);
	int64_t now = clock_mono_us();
	if (right->until_ms <= clock_now_ms())
		return -EPERM;
	if (right->generation == generation && now - right->asked_us < ASK_US)
		return 0;
	int r = right_check(s, NULL, tx, a, right);
	if (r == -EACCES || r == -ENOENT || r == -EADDRNOTAVAIL)
		r = -EPERM;
	if (r == 0) {
		right->generation = shown;
		right->asked_us = now;
	}
	return r;
}

int right_of_project(struct tx *tx, struct arena *a, struct str org_id, struct str group_id, const struct ip *peer)
{
	struct doc settings, *entries = NULL;
	struct cidr network;
	size_t count = 0;
	int r = tx_get(tx, a, "org_settings", org_id, &settings);
	if (r < 0 || !json_flag(doc_json(a, settings.body), "apiAccessListRequired"))
		return r == -ENOENT ? 0 : r;
	r = tx_list_all(tx, a, "access_entry", group_id, &entries, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (cidr_parse(entries[i].name, &network) && cidr_contains(&network, peer))
			return 0;
	return r < 0 ? r : -EADDRNOTAVAIL;
}
