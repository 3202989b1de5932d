/* What the lists of an organization's and a project's users share: filters, pages, invited people. */
#ifndef STEWARD_API_MEMBER_LISTS_H
#define STEWARD_API_MEMBER_LISTS_H

#include "api/members.h"

/* username, orgMembershipStatus, orgMembershipStatuses. In the older form, which knows accounts only: active users. */
struct member_filter {
	struct str username; /* lower case; empty: all */
	unsigned statuses;   /* bit 0: ACTIVE; bit 1 + s: enum invitation_status */
	bool pending;        /* some status of an invitation is wanted */
	bool every_pending;  /* all of them */
};
must_check int filter_read(struct call *c, struct member_filter *ret_filter);
bool filter_takes(const struct member_filter *f, const char *status);

struct member_page {
	int64_t skip, room, total;
};
/* `count` more items: which of them are on the page. False when none is. */
bool page_cut(struct member_page *p, int64_t count, int64_t *ret_offset, int64_t *ret_limit);
/* One more item: whether it is on the page. */
bool page_takes(struct member_page *p);

/* A list of active users, then of those invited. */
struct member_place {
	bool in_org;
	/* A page of the active ones; the one user of the filter's name, whatever their status; and one item. */
	int (*active)(struct call *c, struct member_page *p);
	int (*one)(struct call *c, const struct member_filter *f, struct member_page *p);
	int (*write)(struct call *c, const struct member *m);
};
must_check int members_list(struct call *c, const struct member_place *place);

/* The answer's version lists accounts (CloudAppUser). */
bool list_is_old(const struct call *c);
must_check int list_write_account(struct call *c, const struct doc *user);

/* An invitation to the organization, new or in the place of one that is over. 409 for members and for invited people. */
must_check int member_invite(struct call *c, struct invitation *i);
/* Into the call's project: a member gets the roles at once, others are invited to the organization, with the project. */
must_check int member_add_group(struct call *c, struct str username, role_mask roles, struct member *ret_member);

#endif
