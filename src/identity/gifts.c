/* Gifts of roles: collected while a handler runs, and decided before its write is committed. */
#include "identity/gifts.h"

#include "base/log.h"
#include "identity/grants.h"
#include "identity/identity.h"

#include <errno.h>

#define HOLDERS "credential_holder"
/* How many people who know the secret of one credential are followed. With more, not all of them are known, so
 * everybody counts as the giver, and such a credential can give only what it holds. */
#define HOLDERS_MAX 64

struct gift {
	struct str to; /* user, key, account or team; empty: anybody */
	struct str scope;
	bool in_org;
	role_mask before, after;
	bool org_known;
	struct str org; /* of a project's gift, when known; empty: there is no such project */
};

/* Who may be behind the giver and behind a receiver at the same time. */
struct shared_holder {
	enum principal_kind kind;
	struct str id;
	bool first, owner;
	bool loaded;
	struct principal *principal; /* when loaded; NULL: it is gone */
};

struct tie {
	struct str to;
	bool unknown; /* there are too many to follow */
	struct shared_holder *list;
	size_t count;
	struct tie *next;
};

role_mask gift_refused(role_mask held, role_mask before, role_mask after, bool to_self)
{
	role_mask more = after & ~before, changed = before ^ after, missing = more & ~held;
	if (held & role_owner_mask)
		return 0;
	if (changed & role_owner_mask)
		return changed & role_owner_mask;
	return held & role_manager_mask && !to_self ? 0 : missing;
}

/* Gathering. */

static int giver_load(struct gifts *g, struct tx *tx)
{
	const struct principal *caller = g->call->caller;
	if (g->giver || !caller)
		return 0;
	/* The caller's snapshot is older than the transaction: roles that were revoked since must not give anything. */
	int result = principal_load(tx, caller->kind, str_of(caller->id), &g->giver);
	return result == -ENOENT ? call_fail(g->call, 401, "USER_UNAUTHORIZED", "The credential is gone.") : result;
}

static int gift_add(struct gifts *g, struct tx *tx, struct gift gift)
{
	struct arena *a = g->call->arena;
	int result = giver_load(g, tx);
	if (result < 0)
		return result;
	if (g->count == g->room) {
		size_t room = g->room ? g->room * 2 : 8;
		struct gift *list = arena_new_array(a, struct gift, room);
		if (g->count)
			memcpy(list, g->list, g->count * sizeof *list);
		g->list = list;
		g->room = room;
	}
	gift.to = arena_dup(a, gift.to);
	gift.scope = arena_dup(a, gift.scope);
	g->list[g->count++] = gift;
	return 0;
}

int gift_roles(struct tx *tx, struct str to, bool in_org, struct str scope, role_mask before, role_mask after)
{
	struct gifts *g = tx_attached(tx);
	if (!g || before == after)
		return 0;
	return gift_add(g, tx, (struct gift){to, scope, in_org, before, after});
}

int gift_mapped(struct tx *tx, bool in_org, struct str scope, role_mask roles)
{
	return gift_roles(tx, STR_NONE, in_org, scope, 0, roles);
}

/* All roles of `of`, everywhere, as gifts to `to`. */
static int gift_all(struct gifts *g, struct tx *tx, struct str of, struct str to)
{
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_of(tx, g->call->arena, of, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = gift_roles(tx, to, rows[i].in_org, rows[i].id, 0, rows[i].roles);
	return result;
}

int gift_team(struct tx *tx, struct str team_id, struct str user_id)
{
	struct gifts *g = tx_attached(tx);
	return g ? gift_all(g, tx, team_id, user_id) : 0;
}

static void str_add(struct arena *a, struct str **list, size_t *count, struct str one)
{
	struct str *more = arena_new_array(a, struct str, *count + 1);
	if (*count)
		memcpy(more, *list, *count * sizeof *more);
	more[*count] = arena_dup(a, one);
	*list = more;
	++*count;
}

int gift_secret(struct tx *tx, struct str id)
{
	struct gifts *g = tx_attached(tx);
	if (!g)
		return 0;
	int result = giver_load(g, tx);
	if (result < 0)
		return result;
	str_add(g->call->arena, &g->shown, &g->shown_count, id);
	/* A credential belongs to its organization, even when it has roles elsewhere. */
	bool home = g->giver && principal_org_roles(g->giver, g->call->org.id) & role_owner_mask;
	return home ? 0 : gift_all(g, tx, id, id);
}

void gift_scope(struct tx *tx, struct str id)
{
	struct gifts *g = tx_attached(tx);
	if (g)
		str_add(g->call->arena, &g->made, &g->made_count, id);
}

static bool listed(const struct str *list, size_t count, struct str id)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(list[i], id))
			return true;
	return false;
}

/* Which people may be behind a credential. */

struct holder {
	struct str id;
	enum principal_kind kind;
	bool owner; /* whether it owned every scope of the credential when it saw the secret */
};

struct holders {
	struct holder list[HOLDERS_MAX];
	size_t count;
	bool cut; /* there are more */
};

static void holder_add(struct holders *h, struct holder one)
{
	for (size_t i = 0; i < h->count; i++)
		if (str_eq(h->list[i].id, one.id))
			return;
	h->cut |= h->count == HOLDERS_MAX;
	if (!h->cut)
		h->list[h->count++] = one;
}

/* A principal and everybody who knows its secret, directly or through another credential. */
static int holders_of(struct tx *tx, struct arena *a, struct holder first, struct holders *h)
{
	struct doc *docs;
	size_t count;
	int result = 0;
	h->count = 0;
	h->cut = false;
	holder_add(h, first);
	for (size_t at = 0; result == 0 && at < h->count; at++) {
		result = tx_list(tx, a, HOLDERS, h->list[at].id, 0, HOLDERS_MAX, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++) {
			json_t *body = json_loadb(docs[i].body.p, docs[i].body.n, 0, NULL);
			json_int_t kind = json_integer_value(json_object_get(body, "kind"));
			holder_add(h, (struct holder){docs[i].name, (enum principal_kind)kind,
			                              json_is_true(json_object_get(body, "owner"))});
			json_decref(body);
		}
	}
	return result;
}

static bool is_holder(const struct holders *h, struct str id)
{
	for (size_t i = 0; i < h->count; i++)
		if (str_eq(h->list[i].id, id))
			return true;
	return false;
}

static role_mask roles_in(const struct principal *p, const struct gift *gift, struct str org_id)
{
	return gift->in_org ? principal_org_roles(p, gift->scope) : principal_group_roles(p, org_id, gift->scope);
}

static int holder_owns(struct tx *tx, struct shared_holder *h, const struct gift *gift, struct str org_id,
                       bool *ret_owns)
{
	int result = h->loaded ? 0 : principal_load(tx, h->kind, h->id, &h->principal);
	if (result < 0 && result != -ENOENT)
		return result;
	h->loaded = true;
	*ret_owns = h->principal ? (roles_in(h->principal, gift, org_id) & role_owner_mask) != 0 : h->owner;
	return 0;
}

static int tie_read(struct gifts *g, struct tx *tx, struct str to, struct tie *ret_tie)
{
	struct arena *a = g->call->arena;
	struct holders *givers = arena_new_of(a, struct holders), *takers = arena_new_of(a, struct holders);
	struct doc member;
	int result = holders_of(tx, a, (struct holder){str_of(g->giver->id), g->giver->kind, false}, givers);
	if (result == 0)
		result = holders_of(tx, a, (struct holder){to, PRINCIPAL_USER, false}, takers);
	if (result < 0)
		return result;
	*ret_tie = (struct tie){.to = to, .unknown = givers->cut || takers->cut};
	ret_tie->list = arena_new_array(a, struct shared_holder, givers->count);
	for (size_t i = 0; !ret_tie->unknown && i < givers->count; i++) {
		const struct holder *one = &givers->list[i];
		result = is_holder(takers, one->id) ? 0 : tx_get_by_name(tx, a, "team_user", to, one->id, &member);
		if (result == 0)
			ret_tie->list[ret_tie->count++] = (struct shared_holder){
			        .kind = one->kind, .id = one->id, .first = i == 0, .owner = one->owner};
		else if (result != -ENOENT)
			return result;
	}
	return 0;
}

/* A call that gives roles in hundreds of projects gives them to one: who is behind both is read once, not once for each
 * project. */
static int tie_find(struct gifts *g, struct tx *tx, struct str to, struct tie **ret_tie)
{
	for (struct tie *t = g->ties; t; t = t->next)
		if (str_eq(t->to, to)) {
			*ret_tie = t;
			return 0;
		}
	struct tie *t = arena_new_of(g->call->arena, struct tie);
	int result = tie_read(g, tx, to, t);
	if (result < 0)
		return result;
	t->next = g->ties;
	g->ties = *ret_tie = t;
	return 0;
}

static void ties_free(struct gifts *g)
{
	for (struct tie *t = g->ties; t; t = t->next)
		for (size_t i = 0; i < t->count; i++)
			principal_unref(t->list[i].principal);
	g->ties = NULL;
}

/* Whether one person who does not own the scope may be behind both the giver and the receiver. */
static int is_self(struct gifts *g, struct tx *tx, const struct gift *gift, struct str org_id, bool *ret_self)
{
	struct tie *t;
	*ret_self = true;
	if (!gift->to.n || listed(g->shown, g->shown_count, gift->to))
		return 0;
	int result = tie_find(g, tx, gift->to, &t);
	if (result < 0 || t->unknown)
		return result;
	for (size_t i = 0; i < t->count; i++) {
		bool owns = false;
		result = t->list[i].first ? 0 : holder_owns(tx, &t->list[i], gift, org_id, &owns);
		if (result < 0 || !owns)
			return result;
	}
	*ret_self = false;
	return 0;
}

/* Deciding. */

static int roles_refuse(struct call *c, role_mask roles, bool manages)
{
	const char *name = role_names[__builtin_ctzll(roles)];
	if (roles & role_owner_mask)
		call_fail(c, 403, "CANNOT_GRANT_ROLE", "Only who holds %s can give it or take it away.", name);
	else if (manages)
		call_fail(
		        c, 403, "CANNOT_GRANT_ROLE",
		        "Who manages access gives roles to others. To itself, its teams, the credentials that it made "
		        "and a credential whose secret it is shown it gives only what it holds, and it does not hold "
		        "%s. Ask an owner.",
		        name);
	else
		call_fail(c, 403, "CANNOT_GRANT_ROLE",
		          "The caller can give only roles that it holds, and it does not hold %s. Ask an owner.", name);
	return call_fail_param(c, str_of(name));
}

/* In the project of the call: its document may be deleted by now. */
static bool gift_is_here(const struct gifts *g, const struct gift *gift)
{
	return str_eq(gift->scope, g->call->group.id);
}

/* The organizations of all projects at once: an invitation to 230 of them was 230 round trips on PostgreSQL. */
static int orgs_read(struct gifts *g, struct tx *tx)
{
	struct arena *a = g->call->arena;
	struct doc_wanted **list = arena_new_array(a, struct doc_wanted *, g->count);
	struct gift **of = arena_new_array(a, struct gift *, g->count);
	size_t n = 0;
	for (size_t i = 0; i < g->count; i++) {
		struct gift *one = &g->list[i];
		if (one->in_org || gift_is_here(g, one) || listed(g->made, g->made_count, one->scope))
			continue;
		of[n] = one;
		list[n] = arena_new_of(a, struct doc_wanted);
		*list[n++] = (struct doc_wanted){.arena = a, .kind = "project", .id = one->scope};
	}
	if (n < 2)
		return 0;
	tx_get_many(tx, list, n);
	for (size_t i = 0; i < n; i++) {
		if (list[i]->result < 0 && list[i]->result != -ENOENT)
			return list[i]->result;
		of[i]->org_known = true;
		of[i]->org = list[i]->result == 0 ? list[i]->doc.parent : STR_NONE;
	}
	return 0;
}

static int org_of(struct gifts *g, struct tx *tx, const struct gift *gift, struct str *ret_org)
{
	struct doc project;
	*ret_org = gift_is_here(g, gift) ? g->call->org.id : gift->org_known ? gift->org : gift->scope;
	if (gift->in_org || gift->org_known || gift_is_here(g, gift))
		return 0;
	int result = tx_get(tx, g->call->arena, "project", gift->scope, &project);
	*ret_org = result == 0 ? project.parent : STR_NONE;
	return result == -ENOENT ? 0 : result;
}

/* Whether the call also gives a role in a project of the organization. */
static int brings_project(struct gifts *g, struct tx *tx, struct str org_id, bool *ret_brings)
{
	int result = 0;
	*ret_brings = false;
	for (size_t i = 0; result == 0 && !*ret_brings && i < g->count; i++) {
		struct str org = STR_NONE;
		if (g->list[i].in_org)
			continue;
		result = org_of(g, tx, &g->list[i], &org);
		*ret_brings = str_eq(org, org_id);
	}
	return result;
}

static int gift_check(struct gifts *g, struct tx *tx, const struct gift *gift)
{
	struct str org_id = STR_NONE;
	bool self = false, brings = false;
	role_mask after = gift->after;
	if (listed(g->made, g->made_count, gift->scope))
		return 0;
	int result = org_of(g, tx, gift, &org_id);
	if (result < 0)
		return result;
	role_mask held = g->giver ? roles_in(g->giver, gift, org_id) : 0;
	/* A role in a project makes its receiver a member of the organization too: whoever may give the first may give
	 * the second. */
	if (gift->in_org && after & ~held & role_base_mask) {
		result = brings_project(g, tx, org_id, &brings);
		after = brings ? after & ~(role_base_mask & ~gift->before) : after;
	}
	if (result == 0 && g->giver && gift_refused(held, gift->before, after, true))
		result = is_self(g, tx, gift, org_id, &self);
	if (result < 0)
		return result;
	role_mask refused = gift_refused(held, gift->before, after, self);
	return refused ? roles_refuse(g->call, refused, held & role_manager_mask) : 0;
}

static int holder_insert(struct gifts *g, struct tx *tx, struct str credential, const struct holder *h)
{
	struct arena *a = g->call->arena;
	struct doc d;
	int result = tx_get_by_name(tx, a, HOLDERS, credential, h->id, &d);
	if (result != -ENOENT)
		return result;
	d = doc_new(a, HOLDERS, credential, h->id,
	            arena_printf(a, "{\"kind\":%d,\"owner\":%s}", (int)h->kind, h->owner ? "true" : "false"));
	return tx_insert(tx, &d);
}

/* Whoever has seen a secret can act as the credential for as long as it lives, so this is stored, together with whether
 * the caller owned every scope in which the credential has roles: that must be known even after the caller is deleted.
 * Everybody who knows the caller's secret gets a row too, because a chain through the caller would break when the
 * caller is deleted. */
static int holder_remember(struct gifts *g, struct tx *tx, struct str credential)
{
	const struct principal *p = g->call->caller;
	struct holders *h = arena_new_of(g->call->arena, struct holders);
	bool owner = g->giver != NULL;
	int result = 0;
	for (size_t i = 0; owner && i < g->count; i++) {
		struct str org_id = STR_NONE;
		if (!str_eq(g->list[i].to, credential) || listed(g->made, g->made_count, g->list[i].scope))
			continue;
		result = org_of(g, tx, &g->list[i], &org_id);
		if (result < 0 && result != -ENOENT)
			return result;
		bool base = g->list[i].in_org && !(g->list[i].after & ~role_base_mask);
		owner = base || roles_in(g->giver, &g->list[i], org_id) & role_owner_mask;
	}
	result = holders_of(tx, g->call->arena, (struct holder){str_of(p->id), p->kind, true}, h);
	for (size_t i = 0; result == 0 && i < h->count; i++) {
		h->list[i].owner &= owner;
		result = holder_insert(g, tx, credential, &h->list[i]);
	}
	return result;
}

void gifts_begin(struct gifts *g, struct call *c)
{
	*g = (struct gifts){.call = c};
	tx_attach(c->tx, g);
}

int gifts_end(struct gifts *g, int result)
{
	struct call *c = g->call;
	tx_attach(c->tx, NULL);
	if (result >= 0 && g->count > 1) {
		int r = orgs_read(g, c->tx);
		result = r < 0 ? r : result;
	}
	for (size_t i = 0; result >= 0 && i < g->count; i++) {
		int r = gift_check(g, c->tx, &g->list[i]);
		if (r == 0 && !c->op->gives && g->list[i].after & ~g->list[i].before) {
			log_error("%s gives roles, and its row does not say so", c->op->id);
			r = -EACCES;
		}
		result = r < 0 ? r : result;
	}
	for (size_t i = 0; result >= 0 && c->caller && i < g->shown_count; i++) {
		int r = holder_remember(g, c->tx, g->shown[i]);
		result = r < 0 ? r : result;
	}
	ties_free(g);
	principal_unref(g->giver);
	g->giver = NULL;
	return result;
}
