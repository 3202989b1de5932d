/* Who is calling: a user, an API key or a service account, with its roles, as one immutable snapshot.
 *
 * Snapshots are made from the store when first needed and kept per loop, without locks, until the store's identity
 * generation moves: a change of any credential, role or access list shows on the very next request. */
#ifndef STEWARD_GATE_PRINCIPAL_H
#define STEWARD_GATE_PRINCIPAL_H

#include "base/ip.h"
#include "catalog/catalog.h"
#include "store/store.h"

enum principal_kind { PRINCIPAL_API_KEY, PRINCIPAL_SERVICE_ACCOUNT, PRINCIPAL_USER };

struct grant {
	struct id_text {
		char z[25];
	} scope;         /* organization or project id */
	role_mask roles; /* closed */
	bool shut;       /* an organization that demands an access list, where the credential has none: no roles */
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

/* Builds the snapshot of a credential's document from the store. -ENOENT when it is gone. */
must_check int principal_load(struct tx *tx, enum principal_kind kind, struct str id, struct principal **ret_principal);

/* Closed roles in an organization, and in a project of that organization (what the organization roles give included). */
role_mask principal_org_roles(const struct principal *p, struct str org_id);
role_mask principal_group_roles(const struct principal *p, struct str org_id, struct str group_id);
/* Whether the caller would have roles there, had it an access list. */
bool principal_is_shut_out(const struct principal *p, struct str org_id);

#endif
