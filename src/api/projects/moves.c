/* A project on its way to another organization, and the database versions that it can have.
 *
 * What moves is the project with all that is below it, which hangs on the project's id. Who had a role in it through
 * the old organization keeps it only as a member of the new one. */
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "engine/engine.h"
#include "gate/gate.h"
#include "identity/attempts.h"
#include "identity/gifts.h"
#include "identity/grants.h"
#include "identity/identity.h"
#include "trail/events.h"

#include <errno.h>
#include <pthread.h>

#define GRANTS_PAGE 200

static int fail_field(struct call *c, int status, const char *code, const char *field, const char *rule)
{
	call_fail(c, status, code, "%s: %s.", field, rule);
	return call_fail_param(c, str_of(field));
}

/* The pair proves an owner's key of the destination, used from an address that the key may be used from. */
static int key_check(struct call *c, struct str org_id, struct str public_key, struct str private_key)
{
	struct attempts *attempts = c->service->attempts;
	unsigned seconds;
	struct principal *key;
	if (!public_key.n)
		return fail_field(c, 400, "VALIDATION_ERROR", "destinationOrgPublicApiKey",
		                  "is missing: the two parts of a key go together");
	if (!private_key.n)
		return fail_field(c, 400, "VALIDATION_ERROR", "destinationOrgPrivateApiKey",
		                  "is missing: the two parts of a key go together");
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
	             : fail_field(c, 403, "INVALID_DESTINATION_API_KEY", "destinationOrgPublicApiKey",
	                          "the pair is not the key of an owner of the destination, allowed from this address");
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
		return fail_field(c, 400, "VALIDATION_ERROR", "destinationOrgId", "is required");
	int result = tx_get(c->tx, c->arena, "org", org_id, &org);
	if (result == -ENOENT) {
		call_fail(c, 404, "ORG_NOT_FOUND", "destinationOrgId: no organization has the id %.*s.",
		          STR_ARG(org_id));
		return call_fail_param(c, org_id);
	}
	if (result < 0)
		return result;
	if (public_key.n || private_key.n)
		return key_check(c, org_id, public_key, private_key);
	result = caller_owns(c, org_id, &owner);
	if (result < 0 || owner)
		return result;
	call_fail(c, 403, "INSUFFICIENT_ROLE",
	          "destinationOrgId: the caller does not own the destination. Give a key of one of its owners.");
	return call_fail_param(c, STR("ORG_OWNER"));
}

/* Roles in the project of those that are no members of the new organization. */
static int grants_drop(struct call *c, struct str project, struct str org_id)
{
	for (int who = 0; who < GRANTEE_COUNT; who++) {
		int64_t kept = 0;
		for (;;) {
			struct grant_row *rows;
			size_t count;
			int result = grants_in(c->tx, c->arena, (enum grantee)who, false, project, kept, GRANTS_PAGE,
			                       &rows, &count);
			for (size_t i = 0; result == 0 && i < count; i++) {
				role_mask there;
				result = grant_get(c->tx, c->arena, rows[i].id, org_id, &there);
				if (result == 0 && there)
					kept++;
				else if (result == 0)
					result = grant_set(c->tx, c->arena, (enum grantee)who, rows[i].id, false,
					                   project, 0);
			}
			if (result < 0)
				return result;
			if (count < GRANTS_PAGE)
				break;
		}
	}
	return 0;
}

static int move(struct call *c, struct doc *d, struct str org_id)
{
	json_t *body = doc_json(c->arena, d->body);
	json_put_str(body, "orgId", org_id);
	d->parent = org_id;
	d->body = json_text(c->arena, body);
	int result = tx_move(c->tx, d);
	d->rev++;
	if (result == -EEXIST) {
		call_fail(c, 409, "GROUP_ALREADY_EXISTS",
		          "The destination has a project \"%.*s\" already. Rename one of the two first.",
		          STR_ARG(d->name));
		return call_fail_param(c, d->name);
	}
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
		result = fail_field(c, 409, "GROUP_ALREADY_IN_ORG", "destinationOrgId",
		                    "the project is in this organization already");
	if (result == 0)
		result = move(c, &d, to);
	/* Whose roles end with the move is decided by the owners of both sides, who have agreed to it. */
	gift_scope(c->tx, d.id);
	if (result == 0)
		result = grants_drop(c, d.id, to);
	if (result == 0)
		result = federation_forget_project(c->tx, c->arena, from, d.id);
	if (result == 0)
		result = invitations_delete_group(c->tx, c->arena, d.id);
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

/* Providers in the order of the branches of the instance sizes' schema; the last shares machines and has no sizes. */
static const char *const providers[] = {"AWS", "AZURE", "GCP", "TENANT"};

struct versions_page {
	int64_t skip, room, total;
};

static void version_write(struct call *c, struct versions_page *p, const char *provider, struct str size,
                          size_t version)
{
	struct str status = call_query(c, "defaultStatus");
	bool standard = version == version_count - 1;
	if (status.n && str_is(status, "DEFAULT") != standard)
		return;
	p->total++;
	if (p->skip-- > 0 || p->room-- <= 0)
		return;
	struct buf b = {0};
	json_open(&b, '{');
	json_key(&b, "cloudProvider");
	json_z(&b, provider);
	json_key(&b, "defaultStatus");
	json_z(&b, standard ? "DEFAULT" : "NOT_DEFAULT");
	if (size.n) {
		json_key(&b, "instanceSize");
		json_str(&b, size);
	}
	json_key(&b, "version");
	json_str(&b, arena_printf(c->arena, "%u", versions[version]));
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), c->op, NULL, STR_NONE, true);
	buf_free(&b);
}

int projects_versions(struct call *c)
{
	const struct schema *sizes = schema_find(STR("BaseCloudProviderInstanceSize"));
	struct str provider = call_query(c, "cloudProvider"), wanted = call_query(c, "instanceSize");
	struct versions_page p = {.skip = list_offset(c), .room = c->page_size};
	pthread_once(&versions_once, versions_find);
	list_begin(c);
	for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
		const struct schema *of = i < sizes->branch_count ? sizes->branches[i].schema : NULL;
		if (provider.n && !str_is(provider, providers[i]))
			continue;
		for (size_t j = 0; j < (of ? of->enum_count : 1); j++) {
			/* Enum texts are JSON strings: the name stands between the quotes. */
			struct str size = of ? (struct str){of->enums[j] + 1, strlen(of->enums[j]) - 2} : STR_NONE;
			for (size_t v = 0; v < version_count; v++)
				if (!wanted.n || str_eq(wanted, size))
					version_write(c, &p, providers[i], size, v);
		}
	}
	list_end(c, p.total, list_offset(c) + c->page_size < p.total);
	return 0;
}
