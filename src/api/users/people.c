/* Users of organizations and projects as resources, and lists of people.
 *
 * In an organization are those with roles there, and those invited. In a project are those with roles of their own;
 * those whom a team or a role in the organization brings are listed where it is asked for, and can be read and given
 * roles like the others. Invited to it are those whose invitation to the organization names the project. */
#include "api/users/users.h"

#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

static bool in_project(const struct call *c)
{
	return c->group.id.n;
}

/* What somebody has in the call's project, or without one in its organization. */

/* The project roles that the organization's roles give, without what follows from others of them. */
static role_mask given_by_org(const struct member *m)
{
	role_mask closed = 0, least = 0;
	for (role_mask rest = m->roles; rest; rest &= rest - 1)
		closed |= role_in_project[__builtin_ctzll(rest)];
	for (role_mask rest = closed; rest; rest &= rest - 1) {
		role_mask others = closed & ~(rest & -rest), covered = 0;
		for (; others; others &= others - 1)
			covered |= role_closure[__builtin_ctzll(others)];
		least |= rest & -rest & ~covered;
	}
	return least;
}

static role_mask own_roles(const struct call *c, const struct member *m)
{
	return in_project(c) ? member_group_roles(m, c->group.id) : m->roles;
}

/* In the project: the member's own, and those from teams and from the organization where they count. */
static int roles_in_all(struct call *c, const struct member *m, bool teams, bool org, role_mask *ret_roles)
{
	role_mask roles = own_roles(c, m), one;
	for (size_t i = 0; m->active && teams && i < m->team_count; i++) {
		int result = grant_get(c->tx, c->arena, m->teams[i], c->group.id, &one);
		if (result < 0)
			return result;
		roles |= one;
	}
	*ret_roles = roles | (m->active && org ? given_by_org(m) : 0);
	return 0;
}

/* Lists. */

/* The bit of a status in a set of them; 0: there is none of that name. */
static unsigned status_bit(struct str name)
{
	static const char *const names[] = {"ACTIVE", "PENDING", "INVITATION_EXPIRED", "INVITATION_REJECTED"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (str_is(name, names[i]))
			return 1u << i;
	return 0;
}

#define ACTIVE 1u
#define ALL_INVITED 0xeu

/* The answer's version lists accounts. */
static bool lists_accounts(const struct call *c)
{
	const char *name = c->version->response ? c->version->response->name : NULL;
	return name && (strcmp(name, "PaginatedAppUserView") == 0 || strcmp(name, "PaginatedApiAppUserView") == 0);
}

static int statuses_read(struct call *c, unsigned *ret_statuses)
{
	struct str one = call_query(c, "orgMembershipStatus"), list = call_query(c, "orgMembershipStatuses"), name;
	unsigned statuses = one.n ? status_bit(one) : 0;
	if (one.n && !statuses)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "orgMembershipStatus",
		                       "must be one of ACTIVE, PENDING, INVITATION_EXPIRED, INVITATION_REJECTED.");
	if (!one.n && !list.n)
		statuses = ACTIVE | ALL_INVITED;
	while (list.n) {
		str_cut(list, ',', &name, &list);
		statuses |= status_bit(str_trim(name));
	}
	*ret_statuses = lists_accounts(c) ? statuses & ACTIVE : statuses;
	return 0;
}

int people_begin(struct call *c, size_t room, struct people **ret_people)
{
	struct people *p = arena_new_of(c->arena, struct people);
	p->list = arena_new_array(c->arena, struct segment, room);
	c->noted = *ret_people = p;
	return statuses_read(c, &p->statuses);
}

static bool is_of_invited(struct str kind)
{
	return str_is_one_of("invitation|group_pending|team_pending", kind);
}

void people_add(struct people *p, const char *kind, struct str parent, bool whole)
{
	unsigned wanted = p->statuses & (is_of_invited(str_of(kind)) ? ALL_INVITED : ACTIVE);
	if (wanted)
		p->list[p->count++] = (struct segment){
		        .kind = kind, .parent = parent, .whole = whole && (wanted == ACTIVE || wanted == ALL_INVITED)};
}

/* With a filter by the person only the first of the lists that has it. */
int people_end(struct call *c, struct people *p, struct segment **ret_list, size_t *ret_count)
{
	struct str id = call_query(c, "userId"), username = call_query(c, "username"), named = id;
	struct doc d;
	int result = 0;
	*ret_list = p->list;
	*ret_count = p->count;
	if (username.n)
		result = user_id_of(c->tx, c->arena, user_name_of(c->arena, username), &named);
	if (result < 0 || !named.n)
		return result;
	*ret_count = 0;
	result = id.n && !str_eq(id, named) ? 0 : -ENOENT;
	for (size_t i = 0; result == -ENOENT && i < p->count; i++) {
		result = tx_get_by_name(c->tx, c->arena, p->list[i].kind, p->list[i].parent, named, &d);
		if (result == 0) {
			p->list[0] = (struct segment){.kind = p->list[i].kind, .id = d.id, .whole = p->list[i].whole};
			*ret_count = 1;
		}
	}
	return result == -ENOENT ? 0 : result;
}

/* The member behind an entry of a list. */
static int member_of_doc(struct call *c, const struct doc *d, struct member *ret_member)
{
	struct doc of = *d;
	int result = str_is(d->kind, "group_pending") ? invitation_behind(c->tx, c->arena, d, &of) : 0;
	if (result < 0)
		return result;
	return str_is(of.kind, "invitation") ? invitation_of_doc(c->tx, c->arena, &of, ret_member)
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
	return result < 0 ? result != -ENOENT : p->statuses & status_bit(str_of(member_status(&m)));
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
	struct people *p;
	int result = people_begin(c, 2, &p);
	people_add(p, "org_user", c->org.id, true);
	people_add(p, "invitation", c->org.id, true);
	return result < 0 ? result : people_end(c, p, ret_list, ret_count);
}

/* The organization's users whose roles there give them something here may be many, so they come first, a page by its
 * number, and only the project's own people are held against them. */
static int group_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	bool teams = call_query_bool(c, "flattenTeams", false), org = call_query_bool(c, "includeOrgUsers", false);
	struct doc *docs = NULL;
	struct people *p;
	size_t count = 0;
	int result = teams ? tx_list_all(c->tx, c->arena, "group_team", c->group.id, &docs, &count) : 0;
	if (result < 0)
		return result;
	result = people_begin(c, count + 3, &p);
	if (result < 0)
		return result;
	p->seen = teams || org ? doc_json(c->arena, STR("{}")) : NULL;
	if (org)
		people_add(p, "org_project_user", c->org.id, true);
	people_add(p, "group_user", c->group.id, !p->seen);
	for (size_t i = 0; i < count; i++)
		people_add(p, "team_user", docs[i].name, false);
	people_add(p, "group_pending", c->group.id, true);
	return people_end(c, p, ret_list, ret_count);
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
	return statuses & status_bit(str_of(member_status(m))) ? 0 : -ENOENT;
}

static void time_put(json_t *json, const char *field, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	json_put_z(json, field, text);
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
		for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
			if (json_object_get(user, fields[i]))
				json_object_set(json, fields[i], json_object_get(user, fields[i]));
		time_put(json, "createdAt", m->user.created_ms);
	} else {
		time_put(json, "invitationCreatedAt", m->created_ms);
		time_put(json, "invitationExpiresAt", m->expires_ms);
		json_put_str(json, "inviterUsername", m->inviter);
	}
	json_put_str(json, "id", m->user_id);
	json_put_str(json, "username", m->username);
	json_put_z(json, "orgMembershipStatus", member_status(m));
}

static void org_fields(const struct member *m, json_t *json)
{
	json_t *groups = json_array(), *teams = json_array();
	for (size_t i = 0; i < m->group_count; i++)
		json_array_append_new(groups, json_pack("{s:s%, s:o}", "groupId", m->groups[i].id.p, m->groups[i].id.n,
		                                        "groupRoles", roles_json(m->groups[i].roles)));
	for (size_t i = 0; i < m->team_count; i++)
		json_add_str(teams, m->teams[i]);
	json_put(json, "roles",
	         json_pack("{s:o, s:o}", "groupRoleAssignments", groups, "orgRoles", roles_json(m->roles)));
	json_put(json, "teamIds", teams);
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
		org_fields(m, json);
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
	struct member m = {.active = false};
	if (before)
		m = *before;
	else
		m.username = user_name_of(c->arena, json_field(c->body, "username"));
	int result = member_save(c, true, before, &m);
	if (!before)
		event_field(c, "targetUsername", m.username);
	else if (m.roles == before->roles) /* the row's event is about the organization's roles */
		event_set_type(c, NULL);
	*d = doc_of(&m);
	return result;
}

static int org_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after = *before;
	after.roles = 0;
	after.group_count = after.team_count = 0;
	if (!before->active)
		event_set_type(c, "ORG_INVITATION_DELETED");
	int result = before->active ? member_apply(c, before, &after) : invitation_delete(c->tx, c->arena, before);
	return result < 0 ? result : member_tell(c, before, &after);
}

static int group_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct str username = user_name_of(c->arena, json_field(c->body, "username"));
	struct member m = {.active = false};
	role_mask roles = 0;
	int result = role_list_read(c, json_object_get(c->body, "roles"), "roles", false, &roles);
	if (result == 0)
		result = member_add_group(c, username, roles, &m);
	if (result == 0 && m.active)
		event_set_type(c, "JOINED_GROUP");
	event_field(c, "targetUsername", username);
	*d = doc_of(&m);
	return result;
}

static int roles_apply(struct call *c, const struct member *before, role_mask roles)
{
	struct member after = *before;
	if (in_project(c)) {
		member_put_group(c->arena, &after, c->group.id, roles);
	} else {
		after.roles = roles;
		after.via_project = false;
	}
	event_roles(c, roles);
	return member_apply(c, before, &after);
}

static int group_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after = *before;
	if (!own_roles(c, before)) {
		call_fail(c, 409, "USER_NOT_IN_GROUP_DIRECTLY",
		          "%.*s is in the project through a team or an organization role. Change that instead.",
		          STR_ARG(before->username));
		return call_fail_param(c, before->username);
	}
	if (!before->active)
		event_set_type(c, "GROUP_INVITATION_DELETED");
	member_put_group(c->arena, &after, c->group.id, 0);
	return member_apply(c, before, &after);
}

const struct resource_hooks org_user_hooks = {.load = person_load,
                                              .save = org_save,
                                              .drop = org_drop,
                                              .view = person_view,
                                              .links = person_links,
                                              .segments = org_segments,
                                              .takes = people_takes,
                                              .stand_in = people_stand_in};
const struct resource_hooks group_user_hooks = {.load = person_load,
                                                .save = group_save,
                                                .drop = group_drop,
                                                .view = person_view,
                                                .links = person_links,
                                                .segments = group_segments,
                                                .takes = people_takes,
                                                .stand_in = people_stand_in};

/* Roles: one more, one less, or a new set of them. */

static int role_refuse(struct call *c, const struct member *m, role_mask held, role_mask role, bool adds)
{
	const char *name = role_names[__builtin_ctzll(role)];
	if (adds && held & role)
		call_fail(c, 409, "ROLE_ALREADY_HELD", "%.*s has %s already.", STR_ARG(m->username), name);
	else if (!adds && !(held & role))
		call_fail(c, 409, "ROLE_NOT_HELD", "%.*s does not have %s.", STR_ARG(m->username), name);
	else if (!adds && held == role)
		call_fail(c, 409, "LAST_ROLE", "%s is the only role that %.*s has here. Remove the user instead.", name,
		          STR_ARG(m->username));
	else
		return 0;
	return call_fail_param(c, str_of(name));
}

static int role_change(struct call *c, bool adds)
{
	const char *field = in_project(c) ? "groupRole" : "orgRole";
	int found = role_find(json_field(c->body, field));
	struct member m = {.active = false};
	if (found < 0 || (role_org_mask >> found & 1) == in_project(c))
		return call_fail_field(c, 400, "INVALID_ROLE", field, "must be %s.",
		                       in_project(c) ? "a project role, such as GROUP_READ_ONLY"
		                                     : "an organization role, such as ORG_MEMBER");
	role_mask role = (role_mask)1 << found;
	int result = person_find(c, &m);
	role_mask held = own_roles(c, &m);
	if (result == 0)
		result = role_refuse(c, &m, held, role, adds);
	if (result == 0)
		result = roles_apply(c, &m, adds ? held | role : held & ~role);
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
	int result = role_list_read(c, json_object_get(c->body, field), field, !in_project(c), &roles);
	if (result == 0)
		result = person_find(c, &m);
	if (result == 0)
		result = roles_apply(c, &m, roles);
	if (result < 0)
		return result;
	json_t *json = doc_json(c->arena, STR("{}"));
	json_put(json, field, roles_json(roles));
	entity_write(c, &c->out, json_text(c->arena, json), c->op, NULL, STR_NONE, true);
	return 0;
}
