/* Who is calling: a user, an API key or a service account, with its roles, as one immutable snapshot.
 *
 * Snapshots are loaded from the store when first needed and cached per loop, without locks, until the store's identity
 * generation changes: a change of any credential, role or access list takes effect with the next request. */
#ifndef STEWARD_CALL_PRINCIPAL_H
#define STEWARD_CALL_PRINCIPAL_H

#include "base/ip.h"
#include "catalog/catalog.h"
#include "store/store.h"

enum principal_kind { PRINCIPAL_API_KEY, PRINCIPAL_SERVICE_ACCOUNT, PRINCIPAL_USER };

struct grant {
	struct id_text {
		char z[25];
	} scope;         /* organization or project id */
	role_mask roles; /* closed */
	bool shut;       /* the organization demands an access list, or of a user a second factor, and the credential
	                    has none: no roles here */
	bool factor;     /* of a user: the organization demands a second factor */
};

struct principal {
	_Atomic unsigned refs;
	enum principal_kind kind;
	char id[25];          /* of the document */
	char name[256];       /* public key, client id or user name: for logs and events */
	char org_id[25];      /* the organization it belongs to; "" for a user */
	struct grant *grants; /* sorted by scope */
	size_t grant_count;
	struct cidr *access_list;
	size_t access_count;
	bool access_required; /* its organization demands an access list */
};

struct principal *principal_ref(struct principal *p);
void principal_unref(struct principal *p); /* accepts NULL */

/* Closed roles in an organization, and in a project of that organization (including those that organization roles
 * give). */
role_mask principal_org_roles(const struct principal *p, struct str org_id);
role_mask principal_group_roles(const struct principal *p, struct str org_id, struct str group_id);
/* Whether the caller would have roles there if it had an access list. */
bool principal_is_shut_out(const struct principal *p, struct str org_id);

#endif
