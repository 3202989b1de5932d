/* A project on its way to another organization, and the database versions that it can have.
 *
 * What moves is the project with all that is below it, which hangs on the project's id. Who had a role in it through
 * the old organization keeps it only as a member of the new one. */
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/users/users.h"
#include "base/clock.h"
#include "base/option.h"
#include "engine/engine.h"
#include "gate/gate.h"
#include "identity/attempts.h"
#include "identity/gifts.h"
#include "identity/grants.h"
#include "identity/identity.h"
#include "meter/meter.h"
#include "trail/events.h"

#include <errno.h>
#include <pthread.h>

#define GRANTS_PAGE 200

/* The pair proves an owner's key of the destination, used from an address that the key may be used from. */
static int key_check(struct call *c, struct str org_id, struct str public_key, struct str private_key)
{
	struct attempts *attempts = c->service->attempts;
	unsigned seconds;
	struct principal *key;
	if (!public_key.n || !private_key.n)
		return call_fail_field(c, 400, "VALIDATION_ERROR",
		                       public_key.n ? "destinationOrgPrivateApiKey" : "destinationOrgPublicApiKey",
		                       "is missing: the two parts of a key go together.");
	/* A sign-in like others: this is no way to guess faster. */
	bool looks = attempt_ask(attempts, public_key, &c->request->peer, &seconds) != ATTEMPT_REFUSED;
	int result = looks ? digest_prove(c->tx, c->arena, public_key, private_key, &key) : -EACCES;
	bool owner = false;
	if (looks && result == -EACCES)
		attempt_failed(attempts, public_key, &c->request->peer);
	if (result == 0) {
		owner = (principal_org_roles(key, org_id) & role_bit("ORG_OWNER")) &&
		        access_list_permits(key, &c->request->peer);
		principal_unref(key);
	}
	if (result < 0 && result != -EACCES)
		return result;
	return owner ? 0
	             : call_fail_field(
	                       c, 403, "INVALID_DESTINATION_API_KEY", "destinationOrgPublicApiKey",
	                       "the pair is not the key of an owner of the destination, allowed from this address.");
}

/* Roles are asked for again inside the write: the caller's snapshot is from before it. */
static int caller_owns(struct call *c, struct str org_id, bool *ret_owner)
{
	struct principal *p;
	int result = principal_load(c->tx, c->caller->kind, str_of(c->caller->id), &p);
	if (result < 0)
		return result;
	*ret_owner = principal_org_roles(p, org_id) & role_bit("ORG_OWNER");
	principal_unref(p);
	return 0;
}

static int destination_check(struct call *c, struct str org_id)
{
	struct str public_key = json_field(c->body, "destinationOrgPublicApiKey"),
	           private_key = json_field(c->body, "destinationOrgPrivateApiKey");
	struct doc org;
	bool owner;
	if (!org_id.n)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "destinationOrgId", "is required.");
	int result = tx_get(c->tx, c->arena, "org", org_id, &org);
	if (result == -ENOENT)
		return call_fail_about(c, 404, "ORG_NOT_FOUND", org_id,
		                       "destinationOrgId: no organization has the id %.*s.", STR_ARG(org_id));
	if (result < 0)
		return result;
	if (public_key.n || private_key.n)
		return key_check(c, org_id, public_key, private_key);
	result = caller_owns(c, org_id, &owner);
	if (result < 0 || owner)
		return result;
	return call_fail_about(
	        c, 403, "INSUFFICIENT_ROLE", STR("ORG_OWNER"),
	        "destinationOrgId: the caller does not own the destination. Give a key of one of its owners.");
}

/* Roles in the project of those that are no members of the new organization. */
static int grants_drop_of(struct call *c, enum grantee who, struct str project, struct str org_id)
{
	struct grant_row *rows;
	size_t count = GRANTS_PAGE;
	int64_t kept = 0;
	int result = 0;
	while (result == 0 && count == GRANTS_PAGE) {
		result = grants_in(c->tx, c->arena, who, false, project, kept, GRANTS_PAGE, &rows, &count);
		for (size_t i = 0; result == 0 && i < count; i++) {
			role_mask there = 0;
			result = grant_get(c->tx, c->arena, rows[i].id, org_id, &there);
			kept += there != 0;
			if (result == 0 && !there)
				result = grant_set(c->tx, c->arena, who, rows[i].id, false, project, 0);
		}
	}
	return result;
}

static int grants_drop(struct call *c, struct str project, struct str org_id)
{
	int result = 0;
	for (int who = 0; result == 0 && who < GRANTEE_COUNT; who++)
		result = grants_drop_of(c, (enum grantee)who, project, org_id);
	return result;
}

static int move(struct call *c, struct doc *d, struct str org_id)
{
	json_t *body = doc_json(c->arena, d->body);
	json_put_str(body, "orgId", org_id);
	d->parent = org_id;
	d->body = json_text(c->arena, body);
	int result = tx_move(c->tx, d);
	d->rev++;
	if (result == -EEXIST)
		return call_fail_about(c, 409, "GROUP_ALREADY_EXISTS", d->name,
		                       "The destination has a project \"%.*s\" already. Rename one of the two first.",
		                       STR_ARG(d->name));
	return result;
}

/* The old organization is told that it left; the new one, and the project, that it came. */
static int tell(struct call *c, struct str from, struct str to)
{
	event_set_type(c, "GROUP_MOVED_FROM_ORG");
	event_scope(c, from, STR_NONE);
	event_field(c, "groupId", c->group.id);
	event_field(c, "destinationOrgId", to);
	int result = event_next(c);
	event_scope(c, to, c->group.id);
	event_field(c, "sourceOrgId", from);
	return result;
}

int projects_migrate(struct call *c)
{
	struct str to = arena_dup(c->arena, json_field(c->body, "destinationOrgId"));
	bool owner;
	struct doc d;
	int result = tx_get(c->tx, c->arena, "project", c->group.id, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	struct str from = d.parent;
	result = caller_owns(c, from, &owner);
	if (result == 0 && !owner)
		result = call_fail(c, 403, "INSUFFICIENT_ROLE", "The caller does not own the project's organization.");
	if (result == 0)
		result = destination_check(c, to);
	if (result == 0 && str_eq(from, to))
		result = call_fail_field(c, 409, "GROUP_ALREADY_IN_ORG", "destinationOrgId",
		                         "the project is in this organization already.");
	if (result == 0)
		result = payment_check(c, to);
	if (result == 0)
		result = move(c, &d, to);
	/* Whose roles end with the move is decided by the owners of both sides, who have agreed to it. */
	gift_scope(c->tx, d.id);
	if (result == 0)
		result = grants_drop(c, d.id, to);
	if (result == 0)
		result = federation_forget_project(c->tx, c->arena, from, d.id);
	if (result == 0)
		result = invitations_let_go(c, d.id);
	if (result == 0)
		result = meter_move(c->tx, c->arena, d.id, from, to, clock_now_ms());
	if (result == 0)
		result = tell(c, from, to);
	if (result < 0)
		return result;
	tx_touch_identity(c->tx);
	c->etag = d.rev;
	entity_write(c, &c->out, d.body, resource_project.self, "groupId", d.id, true);
	return 0;
}

/* Versions: what the databases' programs on this machine offer. */

#define VERSIONS_MAX 32

static unsigned versions[VERSIONS_MAX];
static size_t version_count;
static pthread_once_t versions_once = PTHREAD_ONCE_INIT;

static void versions_find(void)
{
	version_count = engine_installed(versions, VERSIONS_MAX);
}

/* The installed ones by their numbers, then the operator's names of such. */
static struct str *version_names(struct call *c, size_t *ret_count)
{
	const struct option_texts *given = c->service->db_versions;
	size_t more = given ? given->n : 0;
	struct str *list = arena_new_array(c->arena, struct str, version_count + more + 1), major;
	for (size_t i = 0; i < version_count; i++)
		list[i] = arena_printf(c->arena, "%u", versions[i]);
	*ret_count = version_count;
	for (size_t i = 0; i < more; i++) {
		struct str name;
		str_cut(str_of(given->v[i]), '=', &name, &major);
		for (size_t k = 0; k < version_count; k++)
			if (str_eq(list[k], major))
				list[(*ret_count)++] = name;
	}
	return list;
}

static struct str version_text(struct arena *a, const char *provider, const char *size, struct str name, bool newest)
{
	/* An enumeration's value is JSON text. */
	struct str of_size = size ? arena_printf(a, "\"instanceSize\":%s,", size) : STR("");
	return arena_printf(a, "{\"cloudProvider\":\"%s\",\"defaultStatus\":\"%s\",%s\"version\":\"%.*s\"}", provider,
	                    newest ? "DEFAULT" : "NOT_DEFAULT", of_size.p, STR_ARG(name));
}

/* The page's filters look at all of them: they are made anew for each call. */
static int version_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	/* In the order of the branches of the instance sizes' schema; the last shares machines and has no sizes. */
	static const char *const providers[] = {"AWS", "AZURE", "GCP", "TENANT"};
	const struct schema *sizes = schema_find(STR("BaseCloudProviderInstanceSize"));
	size_t room = 1, count = 0;
	pthread_once(&versions_once, versions_find);
	for (size_t i = 0; i < sizes->branch_count; i++)
		room += sizes->branches[i].schema->enum_count;
	size_t name_count;
	const struct str *names = version_names(c, &name_count);
	struct doc *docs = arena_new_array(c->arena, struct doc, room * name_count + 1);
	for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
		const struct schema *of = i < sizes->branch_count ? sizes->branches[i].schema : NULL;
		for (size_t j = 0; j < (of ? of->enum_count : 1); j++)
			for (size_t n = 0; n < name_count; n++)
				docs[count++].body = version_text(c->arena, providers[i], of ? of->enums[j] : NULL,
				                                  names[n], n + 1 == version_count);
	}
	return segments_docs(c, docs, count, ret_list, ret_count);
}

const struct resource_hooks database_version_hooks = {.segments = version_segments};
