/* The invitations of organizations and projects as resources. What they show and change are the pending memberships
 * that the users' operations show too; a project shows its part of an organization's invitation under the same id, and
 * has invitations of its own only for people who are members of the organization already. */
#include "api/users/users.h"

#include "trail/events.h"

#include <errno.h>

/* By its id, or where the path has none by the person. */
static int find_in(struct call *c, const char *kind, struct str scope, struct str id, struct str user_id,
                   struct doc *ret_doc)
{
	int result = id.p ? tx_get(c->tx, c->arena, kind, id, ret_doc)
	                  : tx_get_by_name(c->tx, c->arena, kind, scope, user_id, ret_doc);
	return result == 0 && !str_eq(ret_doc->parent, scope) ? -ENOENT : result;
}

static int invite_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str id = call_path(c, r->key_param), username = STR_NONE, user_id = STR_NONE;
	struct member *m = arena_new_of(c->arena, struct member);
	int result = id.p ? 0 : username_read(c, &username);
	if (result == 0 && !id.p)
		result = user_id_of(c->tx, c->arena, username, &user_id);
	if (result < 0)
		return result;
	result = in_project(c) ? find_in(c, "group_invitation", c->group.id, id, user_id, ret_doc) : -ENOENT;
	if (result == -ENOENT)
		result = find_in(c, "invitation", c->org.id, id, user_id, ret_doc);
	if (result == 0)
		result = invitation_of_doc(c->tx, c->arena, ret_doc, m);
	if (result == 0 && in_project(c) && m->org_id.n && !member_at(m, c->group.id))
		result = -ENOENT;
	if (result == 0 && c->op->method != METHOD_DELETE)
		result = invitation_in_force(c->tx, c->arena, m);
	if (id.p)
		event_field(c, "targetUsername", m->username);
	c->noted = m;
	return result;
}

static int invite_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *list = arena_new_array(c->arena, struct segment, 2);
	list[0] = (struct segment){.kind = "group_pending", .parent = c->group.id};
	list[1] = (struct segment){.kind = "group_invitation", .parent = c->group.id};
	if (!in_project(c))
		list[0] = (struct segment){.kind = "invitation", .parent = c->org.id};
	*ret_list = list;
	*ret_count = in_project(c) ? 2 : 1;
	return 0;
}

/* A project's part of an organization's invitation is that invitation. */
static struct str invite_key(struct call *c, const struct doc *d)
{
	return str_is(d->kind, "group_pending") ? json_field(doc_json(c->arena, d->body), "invitationId") : d->id;
}

/* Of a list, each in an arena of its own: five hundred with hundreds of places each would be 70 MB together. */
static int invite_read(struct call *c, struct arena *a, const struct doc *d, struct member *ret_invitation)
{
	struct known_places *known = c->is_list ? c->noted : NULL;
	int result = c->is_list && !known ? known_places_read(c->tx, c->arena, c->org.id, &known) : 0;
	if (c->is_list && result == 0)
		c->noted = known;
	return result < 0 ? result : invitation_of_doc_among(c->tx, a, d, known, ret_invitation);
}

/* What fails here fails again where it is written. */
static bool invite_takes(struct call *c, const struct doc *d)
{
	struct arena *a = arena_new();
	struct str username = arena_lower(a, call_query(c, "username"));
	struct member m = {.active = false};
	int result = invite_read(c, a, d, &m);
	if (result == 0)
		result = invitation_in_force(c->tx, a, &m);
	bool takes = result != -ENOENT && (!username.n || str_eq(username, m.username));
	arena_free(a);
	return takes;
}

static int invite_view(struct call *c, const struct doc *d, json_t *json)
{
	struct arena *a = arena_new();
	struct member m;
	int result = invite_read(c, a, d, &m);
	json_object_clear(json);
	if (result == 0)
		result = invitation_view(c->tx, a, &m, c->group.id, json);
	arena_free(a);
	return result;
}

static int roles_save(struct call *c, const struct member *before, struct member *m)
{
	role_mask roles = 0;
	int result = role_field_read(c, "roles", &roles);
	return result < 0 ? result : member_set_roles(c, before, roles, m);
}

static int invite_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	const struct member *before = old ? c->noted : NULL;
	struct member m = {.active = false};
	int result = !in_project(c) ? member_save(c, false, before, &m)
	             : before       ? roles_save(c, before, &m)
	                            : member_add_group(c, true, &m);
	*d = invitation_doc(c->arena, &m);
	d->rev = m.rev;
	return result;
}

static int invite_drop(struct call *c, const struct doc *d)
{
	const struct member *before = c->noted;
	struct member after;
	if (in_project(c) && before->org_id.n)
		return member_set_roles(c, before, 0, &after);
	if (!in_project(c))
		event_roles(c, before->roles);
	return member_remove(c, before);
}

const struct resource_hooks invitation_hooks = {.load = invite_load,
                                                .save = invite_save,
                                                .drop = invite_drop,
                                                .view = invite_view,
                                                .key = invite_key,
                                                .segments = invite_segments,
                                                .takes = invite_takes};

/* POST /groups/{groupId}/access: a member is in at once, which has no body; others are invited. */
int invites_add_user(struct call *c)
{
	struct member m = {.active = false};
	int result = member_add_group(c, false, &m);
	if (result < 0)
		return result;
	if (m.active) {
		event_set_type(c, "JOINED_GROUP");
		c->status = c->op->other_success;
		return 0;
	}
	/* Of the invitation to the organization, only what concerns the project is its owners' to know. */
	json_t *json = json_new(c->arena);
	role_mask roles = member_at(&m, c->group.id);
	m.place_count = 0;
	member_put(c->arena, &m, (struct place){c->group.id, false, roles});
	result = invitation_view(c->tx, c->arena, &m, STR_NONE, json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_group_invitation.self, "invitationId",
		             m.id, true);
	return result;
}
