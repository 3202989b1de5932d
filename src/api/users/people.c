/* Users of organizations and projects as resources, and lists of people.
 *
 * In an organization are those with roles there, and those invited. In a project are those with roles of their own;
 * those whom a team or a role in the organization brings are listed where it is asked for, and can be read and given
 * roles like the others. Invited to it are those whose invitation to the organization names the project. */
#include "api/users/users.h"

#include "trail/events.h"

#include <errno.h>

/* What somebody has in the call's project, or without one in its organization. */

static role_mask own_roles(const struct call *c, const struct member *m)
{
	return in_project(c) ? member_at(m, c->group.id) : m->roles;
}

/* In the project: the member's own, and those from teams and from the organization where they count. */
static int roles_in_all(struct call *c, const struct member *m, bool teams, bool org, role_mask *ret_roles)
{
	role_mask roles = own_roles(c, m), one;
	for (size_t i = 0; m->active && teams && i < m->place_count; i++) {
		if (!m->places[i].is_team)
			continue;
		int result = grant_get(c->tx, c->arena, m->places[i].id, c->group.id, &one);
		if (result < 0)
			return result;
		roles |= one;
	}
	*ret_roles = roles | (m->active && org ? roles_least(roles_in_projects(m->roles)) : 0);
	return 0;
}

/* Lists. */

#define ACTIVE (1u << MEMBER_ACTIVE)
#define INVITED (1u << MEMBER_PENDING | 1u << MEMBER_EXPIRED | 1u << MEMBER_REJECTED)

struct people {
	unsigned statuses; /* a bit for each that is asked for */
	json_t *seen;      /* who has been listed, where somebody may be found in several ways; or NULL */
};

/* 0: there is none of that name. */
static unsigned status_bit(struct str name)
{
	for (unsigned i = 0; i < MEMBER_STATUSES; i++)
		if (str_is(name, member_statuses[i]))
			return 1u << i;
	return 0;
}

/* The answer's version lists accounts. */
static bool lists_accounts(const struct call *c)
{
	const char *name = c->version->response ? c->version->response->name : NULL;
	return name && str_is_one_of("PaginatedAppUserView|PaginatedApiAppUserView", str_of(name));
}

static int statuses_read(struct call *c, unsigned *ret_statuses)
{
	struct str one = call_query(c, "orgMembershipStatus"), list = call_query(c, "orgMembershipStatuses"), name;
	unsigned statuses = one.n || list.n ? status_bit(one) : ACTIVE | INVITED;
	if (one.n && !statuses)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "orgMembershipStatus",
		                       "must be one of ACTIVE, PENDING, INVITATION_EXPIRED, INVITATION_REJECTED.");
	while (list.n) {
		str_cut(list, ',', &name, &list);
		statuses |= status_bit(str_trim(name));
	}
	*ret_statuses = lists_accounts(c) ? statuses & ACTIVE : statuses;
	return 0;
}

static bool is_of_invited(struct str kind)
{
	return str_is_one_of("invitation|group_pending|team_pending", kind);
}

/* With a filter by the person only the first of the lists that has it. */
static int person_filter(struct call *c, struct segment *lists, size_t *count)
{
	struct str id = call_query(c, "userId"), username = call_query(c, "username"), named = id;
	const size_t all = *count;
	int result = username.n ? user_id_of(c->tx, c->arena, arena_lower(c->arena, username), &named) : 0;
	if (result < 0 || !named.n)
		return result;
	*count = 0;
	for (size_t i = 0; (!id.n || str_eq(id, named)) && *count == 0 && i < all; i++) {
		struct doc d;
		result = tx_get_by_name(c->tx, c->arena, lists[i].kind, lists[i].parent, named, &d);
		if (result < 0 && result != -ENOENT)
			return result;
		if (result == 0)
			lists[(*count)++] =
			        (struct segment){.kind = lists[i].kind, .id = d.id, .whole = lists[i].whole};
	}
	return 0;
}

int people_segments(struct call *c, struct segment *lists, size_t count, bool once, struct segment **ret_list,
                    size_t *ret_count)
{
	struct people *p = arena_new_of(c->arena, struct people);
	size_t kept = 0;
	int result = statuses_read(c, &p->statuses);
	p->seen = once ? json_new(c->arena) : NULL;
	c->noted = p;
	for (size_t i = 0; i < count; i++) {
		unsigned all = is_of_invited(str_of(lists[i].kind)) ? INVITED : ACTIVE;
		lists[i].whole = lists[i].whole && (p->statuses & all) == all;
		if (p->statuses & all)
			lists[kept++] = lists[i];
	}
	*ret_list = lists;
	*ret_count = kept;
	return result < 0 ? result : person_filter(c, lists, ret_count);
}

/* The member behind an entry of a list. */
static int member_of_doc(struct call *c, const struct doc *d, struct member *ret_member)
{
	return is_of_invited(d->kind) ? invitation_of_doc(c->tx, c->arena, d, ret_member)
	                              : member_load(c->tx, c->arena, c->org.id, d->name, ret_member);
}

/* What fails here fails again where it is written. */
bool people_takes(struct call *c, const struct doc *d)
{
	struct people *p = c->noted;
	struct member m;
	bool listed = false;
	const char *id = arena_z(c->arena, d->name);
	if (p->seen && !is_of_invited(d->kind)) {
		if (json_object_get(p->seen, id))
			return false;
		json_put(p->seen, id, json_true());
		/* Those whom the organization brings came first. */
		return !call_query_bool(c, "includeOrgUsers", false) ||
		       grant_is_project_user(c->tx, c->arena, c->org.id, d->name, &listed) < 0 || !listed;
	}
	int result = member_of_doc(c, d, &m);
	return result < 0 ? result != -ENOENT : p->statuses & 1u << member_status(&m);
}

/* By the user name, and by the first and last name. */
static struct str person_called(struct call *c, const struct doc *d)
{
	struct doc user;
	struct member m;
	if (is_of_invited(d->kind))
		return invitation_of_doc(c->tx, c->arena, d, &m) == 0 ? m.username : STR_NONE;
	if (tx_get(c->tx, c->arena, "user", d->name, &user) < 0)
		return STR_NONE;
	const json_t *body = doc_json(c->arena, user.body);
	struct str name = json_field(body, "username"), first = json_field(body, "firstName"),
	           last = json_field(body, "lastName");
	return arena_printf(c->arena, "%.*s %.*s %.*s", STR_ARG(name), STR_ARG(first), STR_ARG(last));
}

int people_stand_in(struct call *c, const struct resource **r, struct doc *d)
{
	if (!lists_accounts(c)) {
		*r = in_project(c) ? &resource_group_user : &resource_org_user;
		return 0;
	}
	*r = &resource_user;
	return tx_get(c->tx, c->arena, "user", d->name, d);
}

static int org_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *lists = arena_new_array(c->arena, struct segment, 2);
	lists[0] = (struct segment){.kind = "org_user", .parent = c->org.id, .whole = true};
	lists[1] = (struct segment){.kind = "invitation", .parent = c->org.id, .whole = true};
	return people_segments(c, lists, 2, false, ret_list, ret_count);
}

/* The organization's users whose roles there give them something here may be many, so they come first, a page by its
 * number, and only the project's own people are held against them. */
static int group_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	bool teams = call_query_bool(c, "flattenTeams", false), org = call_query_bool(c, "includeOrgUsers", false);
	struct doc *docs = NULL;
	size_t count = 0, used = 0;
	int result = teams ? tx_list_all(c->tx, c->arena, "group_team", c->group.id, &docs, &count) : 0;
	if (result < 0)
		return result;
	struct segment *lists = arena_new_array(c->arena, struct segment, count + 3);
	if (org)
		lists[used++] = (struct segment){.kind = "org_project_user", .parent = c->org.id, .whole = true};
	lists[used++] = (struct segment){.kind = "group_user", .parent = c->group.id, .whole = !teams && !org};
	for (size_t i = 0; i < count; i++)
		lists[used++] = (struct segment){.kind = "team_user", .parent = docs[i].name};
	lists[used++] = (struct segment){.kind = "group_pending", .parent = c->group.id, .whole = true};
	return people_segments(c, lists, used, teams || org, ret_list, ret_count);
}

/* One. */

static struct doc doc_of(const struct member *m)
{
	return (struct doc){.kind = STR("org_user"), .id = m->user_id, .name = m->user_id, .body = STR("{}")};
}

static int person_find(struct call *c, struct member *ret_member)
{
	role_mask all = 1;
	int result = member_load(c->tx, c->arena, c->org.id, call_path(c, "userId"), ret_member);
	if (result == 0 && in_project(c))
		result = roles_in_all(c, ret_member, true, true, &all);
	if (result < 0 || !all)
		return result < 0 ? result : -ENOENT;
	event_field(c, "targetUsername", ret_member->username);
	return 0;
}

static int person_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct member *m = arena_new_of(c->arena, struct member);
	unsigned statuses = 0;
	int result = statuses_read(c, &statuses);
	if (result == 0)
		result = person_find(c, m);
	if (result < 0)
		return result;
	c->noted = m;
	*ret_doc = doc_of(m);
	return statuses & 1u << member_status(m) ? 0 : -ENOENT;
}

/* Who it is, and either the account's fields or the invitation's. */
static void person_fields(struct arena *a, const struct member *m, json_t *json)
{
	static const char *const fields[] = {"country", "lastAuth", "mobileNumber", "firstName", "lastName"};
	json_object_clear(json);
	if (m->active) {
		const json_t *user = doc_json(a, m->user.body);
		json_put_z(json, "firstName", "");
		json_put_z(json, "lastName", "");
		json_copy_fields(json, user, fields, sizeof fields / sizeof *fields);
		json_put_time(json, "createdAt", m->user.created_ms);
	} else {
		json_put_time(json, "invitationCreatedAt", m->created_ms);
		json_put_time(json, "invitationExpiresAt", m->expires_ms);
		json_put_str(json, "inviterUsername", m->inviter);
	}
	json_put_str(json, "id", m->user_id);
	json_put_str(json, "username", m->username);
	json_put_z(json, "orgMembershipStatus", member_statuses[member_status(m)]);
}

/* In a project: the roles of their own, else those that bring them there; in a list those that were asked for. */
static int person_view(struct call *c, const struct doc *d, json_t *json)
{
	struct member *m = arena_new_of(c->arena, struct member);
	role_mask roles = 0;
	int result = member_of_doc(c, d, m);
	if (result < 0)
		return result;
	person_fields(c->arena, m, json);
	if (!in_project(c)) {
		json_put(json, "roles",
		         json_pack("{s:o, s:o}", "groupRoleAssignments", member_groups_json(m, "groupRoles"),
		                   "orgRoles", roles_json(m->roles)));
		json_put(json, "teamIds", member_teams_json(m));
	} else {
		bool all = !c->is_list && !own_roles(c, m);
		result = roles_in_all(c, m, all || call_query_bool(c, "flattenTeams", false),
		                      all || call_query_bool(c, "includeOrgUsers", false), &roles);
		json_put(json, "roles", roles_json(roles));
	}
	if (!c->is_list)
		c->noted = m;
	return result;
}

static void person_links(struct call *c, const struct doc *d)
{
	const struct member *m = c->noted;
	if (m->active)
		entity_link(c, &c->out, "user", link_href(c, resource_user.self, "userId", d->name));
}

int people_write(struct call *c, const struct member *m)
{
	struct doc d = doc_of(m);
	return resource_write(c, in_project(c) ? &resource_group_user : &resource_org_user, &d);
}

/* Changes. */

static int org_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	const struct member *before = old ? c->noted : NULL;
	struct member m;
	int result = member_save(c, true, before, &m);
	if (before && m.roles == before->roles) /* the row's event is about the organization's roles */
		event_set_type(c, NULL);
	*d = doc_of(&m);
	return result;
}

static int org_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	if (!before->active)
		event_set_type(c, "ORG_INVITATION_DELETED");
	return member_remove(c, before);
}

static int group_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct member m = {.active = false};
	int result = member_add_group(c, false, &m);
	if (m.active)
		event_set_type(c, "JOINED_GROUP");
	*d = doc_of(&m);
	return result;
}

static int group_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after;
	if (!own_roles(c, before))
		return call_fail_about(
		        c, 409, "USER_NOT_IN_GROUP_DIRECTLY", before->username,
		        "\"%.*s\" is in the project through a team or an organization role. Change that instead.",
		        STR_ARG(before->username));
	if (!before->active)
		event_set_type(c, "GROUP_INVITATION_DELETED");
	return member_set_roles(c, before, 0, &after);
}

const struct resource_hooks org_user_hooks = {.load = person_load,
                                              .save = org_save,
                                              .drop = org_drop,
                                              .view = person_view,
                                              .links = person_links,
                                              .segments = org_segments,
                                              .takes = people_takes,
                                              .called = person_called,
                                              .stand_in = people_stand_in};
const struct resource_hooks group_user_hooks = {.load = person_load,
                                                .save = group_save,
                                                .drop = group_drop,
                                                .view = person_view,
                                                .links = person_links,
                                                .segments = group_segments,
                                                .takes = people_takes,
                                                .called = person_called,
                                                .stand_in = people_stand_in};

/* Roles: one more, one less, or a new set of them. */

static int roles_set(struct call *c, const struct member *m, role_mask roles)
{
	struct member after;
	event_roles(c, roles);
	return member_set_roles(c, m, roles, &after);
}

static int role_check(struct call *c, const struct member *m, role_mask held, int role, bool adds)
{
	const char *name = role_names[role];
	bool has = held >> role & 1;
	if (adds && has)
		return call_fail_about(c, 409, "ROLE_ALREADY_HELD", str_of(name), "\"%.*s\" has %s already.",
		                       STR_ARG(m->username), name);
	if (!adds && !has)
		return call_fail_about(c, 409, "ROLE_NOT_HELD", str_of(name), "\"%.*s\" does not have %s.",
		                       STR_ARG(m->username), name);
	if (!adds && held == (role_mask)1 << role)
		return call_fail_about(c, 409, "LAST_ROLE", str_of(name),
		                       "%s is the only role that \"%.*s\" has here. Remove the user instead.", name,
		                       STR_ARG(m->username));
	return 0;
}

static int role_change(struct call *c, bool adds)
{
	const char *field = in_project(c) ? "groupRole" : "orgRole";
	int role = role_find(json_field(c->body, field));
	struct member m = {.active = false};
	if (role < 0 || (role_org_mask >> role & 1) == in_project(c))
		return call_fail_field(c, 400, "INVALID_ROLE", field, "must be %s.",
		                       in_project(c) ? "a project role, such as GROUP_READ_ONLY"
		                                     : "an organization role, such as ORG_MEMBER");
	int result = person_find(c, &m);
	role_mask held = own_roles(c, &m);
	if (result == 0)
		result = role_check(c, &m, held, role, adds);
	if (result == 0)
		result = roles_set(c, &m, held ^ (role_mask)1 << role);
	return result < 0 ? result : people_write(c, &m);
}

int users_add_role(struct call *c)
{
	return role_change(c, true);
}

int users_remove_role(struct call *c)
{
	return role_change(c, false);
}

int users_set_roles(struct call *c)
{
	const char *field = in_project(c) ? "groupRoles" : "orgRoles";
	struct member m = {.active = false};
	role_mask roles = 0;
	int result = role_field_read(c, field, &roles);
	if (result == 0)
		result = person_find(c, &m);
	if (result == 0)
		result = roles_set(c, &m, roles);
	if (result < 0)
		return result;
	json_t *json = json_new(c->arena);
	json_put(json, field, roles_json(roles));
	entity_write(c, &c->out, json_text(c->arena, json), c->op, NULL, STR_NONE, true);
	return 0;
}
