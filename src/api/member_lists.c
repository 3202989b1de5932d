/* Lists of users, as far as organizations and projects do the same. */
#include "api/member_lists.h"

#include "api/verbs.h"

#include <errno.h>

#define BATCH 500
#define ALL_PENDING 0xeu

extern const struct resource resource_user;

static unsigned status_bit(struct str name)
{
	if (str_is(name, "ACTIVE"))
		return 1;
	for (unsigned s = INVITATION_PENDING; s <= INVITATION_REJECTED; s++)
		if (str_is(name, invitation_status_name((enum invitation_status)s)))
			return 2u << s;
	return 0;
}

bool filter_takes(const struct member_filter *f, const char *status)
{
	return f->statuses & status_bit(str_of(status));
}

bool list_is_old(const struct call *c)
{
	const char *name = c->version->response ? c->version->response->name : NULL;
	return name && strcmp(name, "PaginatedAppUserView") == 0;
}

int filter_read(struct call *c, struct member_filter *ret_filter)
{
	struct str one = call_query(c, "orgMembershipStatus"), list = call_query(c, "orgMembershipStatuses"), name;
	struct member_filter f = {.username = user_name_of(c->arena, call_query(c, "username")),
	                          .statuses = 1 | ALL_PENDING};
	if (one.n && !status_bit(one)) {
		call_fail(c, 400, "VALIDATION_ERROR",
		          "orgMembershipStatus: must be one of ACTIVE, PENDING, INVITATION_EXPIRED, "
		          "INVITATION_REJECTED.");
		return call_fail_param(c, STR("orgMembershipStatus"));
	}
	if (one.n || list.n)
		f.statuses = one.n ? status_bit(one) : 0;
	while (list.n) {
		str_cut(list, ',', &name, &list);
		f.statuses |= status_bit(str_trim(name));
	}
	if (list_is_old(c))
		f.statuses &= 1;
	f.pending = f.statuses & ALL_PENDING;
	f.every_pending = (f.statuses & ALL_PENDING) == ALL_PENDING;
	*ret_filter = f;
	return 0;
}

bool page_cut(struct member_page *p, int64_t count, int64_t *ret_offset, int64_t *ret_limit)
{
	int64_t skipped = p->skip < count ? p->skip : count, left = count - skipped;
	p->total += count;
	*ret_offset = skipped;
	*ret_limit = left < p->room ? left : p->room;
	p->skip -= skipped;
	p->room -= *ret_limit;
	return *ret_limit > 0;
}

bool page_takes(struct member_page *p)
{
	int64_t offset, limit;
	return page_cut(p, 1, &offset, &limit);
}

static int invitation_behind(struct call *c, const struct doc *d, struct invitation *ret_invitation)
{
	if (!str_is(d->kind, "group_pending"))
		return invitation_of_doc(c->tx, c->arena, d, ret_invitation);
	return invitation_get(c->tx, c->arena, true, json_field(doc_json(c->arena, d->body), "invitationId"),
	                      ret_invitation);
}

/* Without a filter the page is known; with one, every invitation has to be looked at. */
static int pending_page(struct call *c, const struct member_place *place, const struct member_filter *f,
                        struct member_page *p)
{
	const char *kind = place->in_org ? "invitation" : "group_pending";
	struct str parent = place->in_org ? c->org.id : c->group.id;
	struct doc *docs;
	struct invitation i;
	struct member m = {.active = false};
	int64_t count, from = 0, limit;
	size_t got = 0;
	int result = tx_count(c->tx, kind, parent, &count);
	if (result < 0)
		return result;
	if (!f->every_pending && call_takes_long(c, count))
		return 0;
	if (f->every_pending && !page_cut(p, count, &from, &limit))
		return 0;
	int64_t to = f->every_pending ? from + limit : count;
	for (; result == 0 && from < to; from += BATCH) {
		result = tx_list(c->tx, c->arena, kind, parent, from, to - from < BATCH ? to - from : BATCH, &docs,
		                 &got);
		for (size_t k = 0; result == 0 && k < got; k++) {
			result = invitation_behind(c, &docs[k], &i);
			if (result == 0 &&
			    (f->every_pending ||
			     (filter_takes(f, invitation_status_name(invitation_status(&i))) && page_takes(p)))) {
				member_of_invitation(&i, &m);
				result = place->write(c, &m);
			}
			if (result == -ENOENT)
				result = 0;
		}
	}
	return result;
}

int members_list(struct call *c, const struct member_place *place)
{
	struct member_filter f = {.statuses = 0};
	struct member_page p = {.skip = list_offset(c), .room = c->page_size};
	int result = filter_read(c, &f);
	if (result < 0)
		return result;
	list_begin(c);
	if (f.username.n) {
		result = place->one(c, &f, &p);
	} else {
		if (filter_takes(&f, "ACTIVE"))
			result = place->active(c, &p);
		if (result == 0 && f.pending && !c->elsewhere)
			result = pending_page(c, place, &f, &p);
	}
	if (result == 0)
		list_end(c, p.total, list_offset(c) + c->page_size < p.total);
	return result;
}

int list_write_account(struct call *c, const struct doc *user)
{
	json_t *json;
	int result = user_json(c, user, &json);
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, json), resource_user.self, "userId", user->id, true);
	return result;
}

int member_invite(struct call *c, struct invitation *i)
{
	struct member m;
	int result = user_id_of(c->tx, c->arena, i->username, &i->user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, i->org_id, i->user_id, &m);
	if (result == 0 && m.active && m.roles) {
		call_fail(c, 409, "USER_ALREADY_IN_ORG", "username: %.*s is a member of the organization already.",
		          STR_ARG(i->username));
		return call_fail_param(c, i->username);
	}
	if (result == 0 && !m.active && invitation_status(&m.invitation) == INVITATION_PENDING) {
		call_fail(c, 409, "USER_ALREADY_INVITED",
		          "username: %.*s is invited already. Update the invitation, or remove it first.",
		          STR_ARG(i->username));
		return call_fail_param(c, i->username);
	}
	return result == 0 || result == -ENOENT ? invitation_add(c, i) : result;
}

/* A member gets the roles at once; what waited for its answer is done with. */
static int add_now(struct call *c, struct member *m, role_mask roles)
{
	struct invitation waiting;
	if (member_group_roles(m, c->group.id)) {
		call_fail(c, 409, "USER_ALREADY_IN_GROUP",
		          "username: %.*s is in the project already, or invited to it.", STR_ARG(m->username));
		return call_fail_param(c, m->username);
	}
	int result = invitation_find(c->tx, c->arena, false, c->group.id, m->user_id, &waiting);
	if (result == 0)
		result = invitation_delete(c->tx, c->arena, &waiting);
	return result == 0 || result == -ENOENT ? member_set_group_roles(c, m, c->group.id, roles) : result;
}

int member_add_group(struct call *c, struct str username, role_mask roles, struct member *ret_member)
{
	struct invitation i = {
	        .org_id = c->org.id, .username = username, .roles = role_bit("ORG_MEMBER"), .via_project = true};
	int result = user_id_of(c->tx, c->arena, username, &i.user_id);
	if (result == 0)
		result = member_load(c->tx, c->arena, c->org.id, i.user_id, ret_member);
	bool over =
	        result == 0 && !ret_member->active && invitation_status(&ret_member->invitation) != INVITATION_PENDING;
	if (result == 0 && !over)
		return add_now(c, ret_member, roles);
	if (result < 0 && result != -ENOENT)
		return result;
	invitation_set_group(c->arena, &i, c->group.id, roles);
	result = invitation_add(c, &i);
	if (result == 0)
		member_of_invitation(&i, ret_member);
	return result;
}
