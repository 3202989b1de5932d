/* Seeding for the test control: organizations with projects, people, teams and credentials, past the API. An
 * organization is one write; what comes in bulk (projects, then teams, then users) follows in writes of a bounded size,
 * so that other writes get between them.
 *
 * Bulk is even: users and teams are spread over the projects, and users over the teams, so that a project of a large
 * organization looks like one of a small organization of the same proportions. */
#include "api/credentials/credentials.h"
#include "api/edge/edge.h"
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "base/clock.h"
#include "base/id.h"
#include "identity/identity.h"
#include "trail/events.h"

#include <errno.h>

#define BULK_DOCUMENTS 5000 /* of one write, roughly */
#define TEAM_PROJECTS 2     /* projects that a team is in */

static void roles_check(struct arena *a, const json_t *roles, struct str path, bool in_org, struct faults *faults)
{
	for (size_t i = 0; i < json_array_size(roles); i++) {
		const json_t *name = json_array_get(roles, i);
		int role = role_find(json_str_of(name));
		bool of_org = role >= 0 && (role_org_mask >> role & 1);
		if (role < 0 || of_org != in_org)
			faults_add(faults, a, arena_printf(a, "%s[%zu]", path.p, i), "must be a role of %s, like %s",
			           in_org ? "an organization" : "a project", in_org ? "ORG_OWNER" : "GROUP_OWNER");
	}
}

static void grants_check(struct arena *a, const json_t *organization, const json_t *principal, struct str path,
                         struct faults *faults)
{
	const json_t *rows = json_object_get(principal, "projectRoles"),
	             *projects = json_object_get(organization, "projects");
	roles_check(a, json_object_get(principal, "roles"), arena_printf(a, "%s.roles", path.p), true, faults);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		struct str at = arena_printf(a, "%s.projectRoles[%zu]", path.p, i);
		if (!json_has(projects, json_field(row, "project")))
			faults_add(faults, a, arena_printf(a, "%s.project", at.p),
			           "must be one of the organization's projects");
		roles_check(a, json_object_get(row, "roles"), arena_printf(a, "%s.roles", at.p), false, faults);
	}
}

static void principal_check(struct arena *a, const json_t *principal, struct str path, struct faults *faults)
{
	static const char *const of_users[] = {"username", "firstName", "lastName", "country", "mobileNumber"};
	const json_t *access = json_object_get(principal, "accessList");
	bool user = strcmp(json_string_value(json_object_get(principal, "type")), "user") == 0;
	for (size_t i = 0; !user && i < sizeof of_users / sizeof *of_users; i++)
		if (json_object_get(principal, of_users[i]))
			faults_add(faults, a, arena_printf(a, "%s.%s", path.p, of_users[i]), "goes with the type user");
	if (user && !json_object_get(principal, "username"))
		faults_add(faults, a, arena_printf(a, "%s.username", path.p), "is required for the type user");
	if (user && access)
		faults_add(faults, a, arena_printf(a, "%s.accessList", path.p),
		           "goes with the types apiKey and serviceAccount");
	for (size_t i = 0; i < json_array_size(access); i++) {
		struct cidr network;
		if (!cidr_parse(str_of(json_string_value(json_array_get(access, i))), &network))
			faults_add(faults, a, arena_printf(a, "%s.accessList[%zu]", path.p, i),
			           "must be an address or a network, like 10.0.0.0/8");
	}
}

void seed_check(struct arena *a, const json_t *body, struct faults *faults)
{
	const json_t *organizations = json_object_get(body, "organizations");
	for (size_t i = 0; i < json_array_size(organizations); i++) {
		const json_t *one = json_array_get(organizations, i), *principals = json_object_get(one, "principals");
		for (size_t k = 0; k < json_array_size(principals); k++) {
			struct str path = arena_printf(a, "organizations[%zu].principals[%zu]", i, k);
			principal_check(a, json_array_get(principals, k), path, faults);
			grants_check(a, one, json_array_get(principals, k), path, faults);
		}
	}
}

struct seeding {
	struct arena *arena;
	const json_t *wanted;
	json_t *answer; /* of this organization */
	struct str org_id;
	/* Bulk. */
	int64_t project_count, team_count, user_count;
	struct id *projects, *teams; /* the ids of those that there are */
	struct str first_user;
	int64_t from, to; /* of this write */
	int (*make)(struct tx *tx, struct arena *a, struct seeding *s);
};

static int seed_projects(struct tx *tx, struct seeding *s)
{
	const json_t *names = json_object_get(s->wanted, "projects");
	json_t *list = json_array();
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(names); i++) {
		struct str id = id_make(s->arena), text = json_str_of(json_array_get(names, i));
		result = tenant_project(tx, s->arena, s->org_id, id, text);
		if (result == 0)
			result = event_service(tx, s->arena, "GROUP_CREATED", s->org_id, id, STR_NONE);
		json_array_append_new(list, json_pack("{s:s%, s:s%}", "id", id.p, id.n, "name", text.p, text.n));
	}
	json_put(s->answer, "projects", list);
	return result;
}

/* Roles of the organization, and of its projects by their names. */
static struct grant_row *grants_wanted(const struct seeding *s, const json_t *wanted, size_t *ret_count)
{
	const json_t *projects = json_object_get(wanted, "projectRoles"),
	             *made = json_object_get(s->answer, "projects");
	struct grant_row *rows = arena_new_array(s->arena, struct grant_row, json_array_size(projects) + 1);
	size_t count = 0;
	role_mask in_org = roles_from_json(json_object_get(wanted, "roles"), true);
	if (in_org)
		rows[count++] = (struct grant_row){s->org_id, true, in_org};
	for (size_t i = 0; i < json_array_size(projects); i++) {
		const json_t *entry = json_array_get(projects, i);
		struct str id = json_field(json_find(made, "name", json_field(entry, "project")), "id");
		if (id.n)
			rows[count++] = (struct grant_row){arena_dup(s->arena, id), false,
			                                   roles_from_json(json_object_get(entry, "roles"), false)};
	}
	*ret_count = count;
	return rows;
}

static int seed_key(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *answer, struct str *ret_id)
{
	struct new_key key = {.id = STR_NONE};
	size_t count;
	struct grant_row *grants = grants_wanted(s, wanted, &count);
	int result = credential_add_key(tx, s->arena, s->org_id, STR("seeded"), grants, count, &key);
	json_put_str(answer, "publicKey", key.public_key);
	json_put_str(answer, "privateKey", key.private_key);
	*ret_id = key.id;
	return result;
}

static int seed_account(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *answer, struct str *ret_id)
{
	struct new_account account = {.id = STR_NONE};
	size_t count;
	struct grant_row *grants = grants_wanted(s, wanted, &count);
	int result = credential_add_account(tx, s->arena, s->org_id, STR("seeded"), STR("seeded"), grants, count, 8760,
	                                    &account);
	struct str token =
	        token_issue(s->arena, account.id, account.secret_id, clock_now_ms() + TOKEN_SECONDS * 1000LL);
	json_put_str(answer, "clientId", account.client_id);
	json_put_str(answer, "clientSecret", account.secret);
	json_put_str(answer, "accessToken", token);
	*ret_id = account.id;
	return result;
}

/* Somebody who has signed in: the token is that of a session, as an account's is that of a secret. */
static int seed_user(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *answer, struct str *ret_id)
{
	struct str given = json_field(wanted, "username"), session = id_make(s->arena);
	struct doc user = {.rev = 0};
	size_t count;
	struct grant_row *grants = grants_wanted(s, wanted, &count);
	int result = user_add(tx, s->arena, arena_lower(s->arena, given), wanted, STR_NONE, &user);
	for (size_t i = 0; result == 0 && i < count; i++)
		result =
		        grant_set(tx, s->arena, GRANTEE_USER, user.id, grants[i].in_org, grants[i].id, grants[i].roles);
	if (result == 0)
		result = doc_insert(tx, "user_session", session, user.id, STR_NONE, STR("{}"));
	if (result < 0)
		return result;
	struct str token = token_issue(s->arena, user.id, session, clock_now_ms() + TOKEN_SECONDS * 1000LL);
	json_put_str(answer, "username", given);
	json_put_str(answer, "accessToken", token);
	*ret_id = user.id;
	return 0;
}

static int seed_principal(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *list)
{
	const char *type = json_string_value(json_object_get(wanted, "type"));
	const json_t *access = json_object_get(wanted, "accessList");
	bool key = type && strcmp(type, "apiKey") == 0, user = type && strcmp(type, "user") == 0;
	struct str id = STR_NONE;
	json_t *answer = json_pack("{s:s}", "type", key ? "apiKey" : user ? "user" : "serviceAccount");
	int result = key    ? seed_key(tx, s, wanted, answer, &id)
	             : user ? seed_user(tx, s, wanted, answer, &id)
	                    : seed_account(tx, s, wanted, answer, &id);
	json_put_str(answer, "id", id);
	json_array_append_new(list, answer);
	for (size_t i = 0; result == 0 && i < json_array_size(access); i++) {
		struct cidr network;
		if (!cidr_parse(json_str_of(json_array_get(access, i)), &network))
			return -EINVAL;
		result = credential_add_access(tx, s->arena, id, &network);
	}
	return result;
}

static int seed_org(struct tx *tx, void *ctx)
{
	struct seeding *s = ctx;
	const json_t *principals = json_object_get(s->wanted, "principals");
	struct str name = json_field(s->wanted, "name"), federation_id;
	json_t *list = json_array();
	name = name.n ? name : STR("Seeded");
	json_object_clear(s->answer);
	json_put_str(s->answer, "id", s->org_id);
	json_put_str(s->answer, "name", name);
	int result = tenant_org(tx, s->arena, s->org_id, name, &federation_id);
	if (result == 0)
		json_put_str(s->answer, "federationSettingsId", federation_id);
	if (result == 0)
		result = event_service(tx, s->arena, "ORG_CREATED", s->org_id, STR_NONE, STR_NONE);
	if (result == 0 && json_flag(s->wanted, "apiAccessListRequired"))
		result = doc_insert(tx, "org_settings", s->org_id, s->org_id, STR_NONE,
		                    STR("{\"apiAccessListRequired\":true}"));
	if (result == 0)
		result = seed_projects(tx, s);
	for (size_t i = 0; result == 0 && i < json_array_size(principals); i++)
		result = seed_principal(tx, s, json_array_get(principals, i), list);
	json_put(s->answer, "principals", list);
	return result;
}

/* Bulk. A write may be run again: what it leaves behind is what the last run made. */

static int bulk_projects(struct tx *tx, struct arena *a, struct seeding *s)
{
	int result = 0;
	for (int64_t i = s->from; result == 0 && i < s->to; i++) {
		s->projects[i] = id_new();
		result = tenant_project(tx, a, s->org_id, id_str(&s->projects[i]),
		                        arena_printf(a, "project-%06lld", (long long)i + 1));
	}
	return result;
}

static int bulk_teams(struct tx *tx, struct arena *a, struct seeding *s)
{
	role_mask roles = role_bit("GROUP_CLUSTER_MANAGER");
	int result = 0;
	for (int64_t i = s->from; result == 0 && i < s->to; i++) {
		struct str name = arena_printf(a, "team-%06lld", (long long)i + 1);
		s->teams[i] = id_new();
		struct str id = id_str(&s->teams[i]);
		result = doc_insert(tx, "team", id, s->org_id, name,
		                    arena_printf(a, "{\"id\":\"%s\",\"name\":\"%s\"}", s->teams[i].z, name.p));
		for (int64_t k = 0; result == 0 && k < TEAM_PROJECTS && k < s->project_count; k++)
			result = grant_set(tx, a, GRANTEE_TEAM, id, false,
			                   id_str(&s->projects[(TEAM_PROJECTS * i + k) % s->project_count]), roles);
	}
	return result;
}

/* Each has a role in the organization, in a project and in a team. */
static int bulk_user(struct tx *tx, struct arena *a, struct seeding *s, int64_t i)
{
	struct str name = arena_printf(a, "user-%06lld@%.*s.example", (long long)i + 1, STR_ARG(s->org_id));
	struct doc user = {.rev = 0};
	role_mask roles = role_bit(i % 10 == 0 ? "ORG_READ_ONLY" : "ORG_MEMBER");
	json_t *profile = doc_json(a, STR("{\"firstName\":\"Seeded\",\"lastName\":\"User\"}"));
	int result = user_add(tx, a, name, profile, STR_NONE, &user);
	if (result == 0)
		result = grant_set(tx, a, GRANTEE_USER, user.id, true, s->org_id, roles);
	if (result == 0 && s->project_count)
		result = grant_set(tx, a, GRANTEE_USER, user.id, false, id_str(&s->projects[i % s->project_count]),
		                   role_bit("GROUP_READ_ONLY"));
	if (result == 0 && s->team_count)
		result = team_set_user(tx, a, id_str(&s->teams[i % s->team_count]), user.id, true);
	if (result == 0 && i == 0)
		s->first_user = arena_dup(s->arena, user.id);
	return result;
}

static int bulk_users(struct tx *tx, struct arena *a, struct seeding *s)
{
	int result = 0;
	for (int64_t i = s->from; result == 0 && i < s->to; i++)
		result = bulk_user(tx, a, s, i);
	return result;
}

static int bulk_run(struct tx *tx, void *ctx)
{
	struct seeding *s = ctx;
	struct arena *a = arena_new();
	int result = s->make(tx, a, s);
	arena_free(a);
	return result;
}

/* `each`: documents that one of them takes. */
static int bulk(struct store *store, struct seeding *s, int64_t count, int64_t each,
                int (*make)(struct tx *tx, struct arena *a, struct seeding *s))
{
	int64_t step = BULK_DOCUMENTS / each;
	int result = 0;
	s->make = make;
	for (s->from = 0; result == 0 && s->from < count; s->from += step) {
		s->to = s->from + step < count ? s->from + step : count;
		result = store_write_wait(store, bulk_run, s);
	}
	return result;
}

static int bulk_all(struct store *store, struct seeding *s)
{
	s->project_count = json_number(s->wanted, "projectCount");
	s->team_count = json_number(s->wanted, "teamCount");
	s->user_count = json_number(s->wanted, "userCount");
	s->projects = arena_new_array(s->arena, struct id, (size_t)s->project_count + 1);
	s->teams = arena_new_array(s->arena, struct id, (size_t)s->team_count + 1);
	int result = bulk(store, s, s->project_count, 1, bulk_projects);
	if (result == 0)
		result = bulk(store, s, s->team_count, 5, bulk_teams);
	if (result == 0)
		result = bulk(store, s, s->user_count, 10, bulk_users);
	if (result < 0)
		return result;
	if (s->project_count)
		json_put_z(s->answer, "firstProjectId", s->projects[0].z);
	if (s->team_count)
		json_put_z(s->answer, "firstTeamId", s->teams[0].z);
	if (s->user_count)
		json_put_str(s->answer, "firstUserId", s->first_user);
	return 0;
}

int seed_organization(struct store *store, struct arena *a, const json_t *wanted, json_t *list)
{
	struct seeding s = {.arena = a, .wanted = wanted, .answer = json_object()};
	s.org_id = id_make(a);
	json_array_append_new(list, s.answer);
	int result = store_write_wait(store, seed_org, &s);
	return result < 0 ? result : bulk_all(store, &s);
}
