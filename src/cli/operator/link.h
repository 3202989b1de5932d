/* What the commands that print a link have in common: invitation-link, password-link. */
#ifndef STEWARD_CLI_OPERATOR_LINK_H
#define STEWARD_CLI_OPERATOR_LINK_H

#include "store/store.h"

struct link_order {
	const char *command; /* named in messages */
	const char *data, *store;
	struct str of; /* whom or what the link is for */
	/* In a write. -ENOENT: there is nothing of that name. */
	int (*make)(struct tx *tx, struct arena *a, const char *base_url, const struct link_order *order,
	            struct str *ret_link);
	const char *missing; /* what is said then, before the name */
	bool without_codes;  /* of password-link */
};

/* Prints it. Returns the exit code. */
int link_print(struct arena *a, const struct link_order *order);

#endif
