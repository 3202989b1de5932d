/* Loads snapshots of callers from the store. Everything that a gate asks about a caller is prepared here once: roles
 * are closed, scopes sorted, networks parsed. */
#include "base/id.h"
#include "base/log.h"
#include "identity/grants.h"
#include "identity/identity.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#define ACCESS_PAGE 200
#define ACCESS_MAX 5000
#define LIST_REQUIRED "apiAccessListRequired"
#define FACTOR_REQUIRED "multiFactorAuthRequired"
#define TEAMS_MAX 1000

static int grant_order(const void *a, const void *b)
{
	return memcmp(((const struct grant *)a)->scope.z, ((const struct grant *)b)->scope.z, ID_LEN);
}

/* In any order; grants_settle() sorts them. */
static int grants_load(struct tx *tx, struct arena *a, struct principal *p, struct str grantee)
{
	struct grant_row *rows;
	size_t count;
	int r = grants_of(tx, a, grantee, &rows, &count);
	if (r < 0 || count == 0)
		return r;
	p->grants = must_realloc(p->grants, (p->grant_count + count) * sizeof *p->grants);
	for (size_t i = 0; i < count; i++) {
		struct grant *g = &p->grants[p->grant_count];
		if (!id_is_valid(rows[i].id))
			continue;
		*g = (struct grant){.roles = 0};
		memcpy(g->scope.z, rows[i].id.p, ID_LEN);
		for (role_mask rest = rows[i].roles; rest; rest &= rest - 1)
			g->roles |= role_closure[__builtin_ctzll(rest)];
		p->grant_count++;
	}
	return 0;
}

/* Sorts by scope and merges the roles of one scope, including those from teams. */
static void grants_settle(struct principal *p)
{
	size_t kept = 0;
	if (p->grant_count)
		qsort(p->grants, p->grant_count, sizeof *p->grants, grant_order);
	for (size_t i = 0; i < p->grant_count; i++) {
		if (kept && grant_order(&p->grants[kept - 1], &p->grants[i]) == 0)
			p->grants[kept - 1].roles |= p->grants[i].roles;
		else
			p->grants[kept++] = p->grants[i];
	}
	p->grant_count = kept;
}

/* A user also has the roles of its teams. */
static int teams_load(struct tx *tx, struct arena *a, struct principal *p)
{
	struct doc *docs;
	size_t count;
	int r = tx_list(tx, a, "user_team", str_of(p->id), 0, TEAMS_MAX, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = grants_load(tx, a, p, docs[i].name);
	return r;
}

static struct str string_or_empty(const json_t *value)
{
	if (!json_is_string(value))
		return STR("");
	return (struct str){json_string_value(value), json_string_length(value)};
}

static int access_load(struct tx *tx, struct arena *a, struct principal *p)
{
	struct doc *docs;
	size_t count;
	for (int64_t offset = 0; offset < ACCESS_MAX; offset += ACCESS_PAGE) {
		int r = tx_list(tx, a, "api_access", str_of(p->id), offset, ACCESS_PAGE, &docs, &count);
		if (r < 0)
			return r;
		p->access_list = must_realloc(p->access_list, (p->access_count + count + 1) * sizeof *p->access_list);
		for (size_t i = 0; i < count; i++) {
			if (cidr_parse(docs[i].name, &p->access_list[p->access_count])) {
				p->access_count++;
				continue;
			}
			log_error("%s: an access list entry is no network and permits nobody", p->id);
			p->access_required = true;
		}
		if (count < ACCESS_PAGE)
			break;
	}
	return 0;
}

/* Whether an organization demands access lists, or a second factor. */
static int requirement_load(struct tx *tx, struct arena *a, struct str org_id, const char *which, bool *ret_required)
{
	struct doc settings;
	int r = tx_get(tx, a, "org_settings", org_id, &settings);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	json_t *body = json_loadb(settings.body.p, settings.body.n, 0, NULL);
	*ret_required |= json_is_true(json_object_get(body, which));
	json_decref(body);
	return 0;
}

static int projects_shut(struct tx *tx, struct arena *a, struct principal *p)
{
	for (size_t i = 0; i < p->grant_count; i++) {
		struct doc project;
		if (!(p->grants[i].roles & ~role_org_mask))
			continue;
		int r = tx_get(tx, a, "project", (struct str){p->grants[i].scope.z, ID_LEN}, &project);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && principal_is_shut_out(p, project.parent))
			p->grants[i].roles = 0;
	}
	return 0;
}

/* Marks the organizations that demand an access list, when the credential has none: it has no roles there. Its own
 * organization is handled by gate_access_list(). */
static int orgs_shut(struct tx *tx, struct arena *a, struct principal *p)
{
	bool any = false;
	for (size_t i = 0; i < p->grant_count; i++) {
		struct grant *g = &p->grants[i];
		struct str id = {g->scope.z, ID_LEN};
		if (!(g->roles & role_org_mask) || str_eq(id, str_of(p->org_id)))
			continue;
		int r = requirement_load(tx, a, id, LIST_REQUIRED, &g->shut);
		if (r < 0)
			return r;
		if (g->shut)
			g->roles = 0;
		any |= g->shut;
	}
	return any ? projects_shut(tx, a, p) : 0;
}

static int factors_load(struct tx *tx, struct arena *a, struct principal *p)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->grant_count; i++)
		if (p->grants[i].roles & role_org_mask)
			r = requirement_load(tx, a, (struct str){p->grants[i].scope.z, ID_LEN}, FACTOR_REQUIRED,
			                     &p->grants[i].factor);
	return r;
}

int principal_weaken(struct tx *tx, struct principal **p)
{
	bool any = false;
	for (size_t i = 0; i < (*p)->grant_count; i++)
		any |= (*p)->grants[i].factor;
	if (!any)
		return 0;
	struct principal *weak = must_calloc(1, sizeof *weak);
	weak->refs = 1;
	weak->kind = (*p)->kind;
	memcpy(weak->id, (*p)->id, sizeof weak->id);
	memcpy(weak->name, (*p)->name, sizeof weak->name);
	weak->grant_count = (*p)->grant_count;
	weak->grants = must_calloc(weak->grant_count, sizeof *weak->grants);
	memcpy(weak->grants, (*p)->grants, weak->grant_count * sizeof *weak->grants);
	for (size_t i = 0; i < weak->grant_count; i++)
		if (weak->grants[i].factor) {
			weak->grants[i].shut = true;
			weak->grants[i].roles = 0;
		}
	struct arena *a = arena_new();
	int r = projects_shut(tx, a, weak);
	arena_free(a);
	principal_unref(r < 0 ? weak : *p);
	*p = r < 0 ? *p : weak;
	return r;
}

static int principal_fill(struct tx *tx, struct arena *a, struct principal *p, struct str id)
{
	static const char *const kinds[] = {"api_key", "service_account", "user"};
	static const char *const names[] = {"publicKey", "clientId", "username"};
	struct doc doc;
	int r = tx_get(tx, a, kinds[p->kind], id, &doc);
	if (r < 0)
		return r;
	json_t *body = json_loadb(doc.body.p, doc.body.n, 0, NULL);
	if (!body) {
		log_error("%s %.*s: the stored document is no JSON", kinds[p->kind], STR_ARG(id));
		return -EIO;
	}
	snprintf(p->id, sizeof p->id, "%.*s", STR_ARG(doc.id));
	struct str name = string_or_empty(json_object_get(body, names[p->kind]));
	snprintf(p->name, sizeof p->name, "%.*s", STR_ARG(name));
	if (p->kind != PRINCIPAL_USER)
		snprintf(p->org_id, sizeof p->org_id, "%.*s", STR_ARG(doc.parent));
	json_decref(body);
	r = grants_load(tx, a, p, doc.id);
	if (r == 0 && p->kind == PRINCIPAL_USER)
		r = teams_load(tx, a, p);
	if (r < 0)
		return r;
	grants_settle(p);
	r = p->kind == PRINCIPAL_USER ? factors_load(tx, a, p) : 0;
	if (r == 0)
		r = access_load(tx, a, p);
	if (r == 0 && p->org_id[0])
		r = requirement_load(tx, a, str_of(p->org_id), LIST_REQUIRED, &p->access_required);
	if (r == 0 && p->org_id[0] && !p->access_count)
		r = orgs_shut(tx, a, p);
	return r;
}

int principal_load(struct tx *tx, enum principal_kind kind, struct str id, struct principal **ret_principal)
{
	if (!id_is_valid(id))
		return -ENOENT;
	struct arena *a = arena_new();
	struct principal *p = must_calloc(1, sizeof *p);
	p->refs = 1;
	p->kind = kind;
	int r = principal_fill(tx, a, p, id);
	arena_free(a);
	if (r < 0) {
		principal_unref(p);
		return r;
	}
	*ret_principal = p;
	return 0;
}
