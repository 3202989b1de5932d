/* Access lists of API keys and service accounts: the addresses from which a credential may be used. And the reading of
 * networks from bodies and paths, which the project's access list shares. */
#ifndef STEWARD_API_ACCESS_ENTRIES_H
#define STEWARD_API_ACCESS_ENTRIES_H

#include "gate/call.h"
#include "gate/grants.h"

/* A network ("10.0.0.0/8") or an address, as the API takes them: "%2F" may stand for the slash. */
must_check bool network_parse(struct arena *a, struct str text, struct cidr *ret_network);
/* What stands for an entry in a path, from its name in the store: the address, or the network. */
struct str network_key(struct arena *a, struct str name);
/* The network that exactly one of cidrBlock and ipAddress of entry `index` of the body gives. Otherwise adds a fault
 * that names the path, and returns false. */
must_check bool network_read(struct call *c, const json_t *entry, size_t index, struct faults *faults,
                             struct cidr *ret_network);

/* What the operations do, for the list of `owner`: a key (GRANTEE_KEY) or an account (GRANTEE_ACCOUNT). `name` is the
 * public key for the events of a key. */
struct access_owner {
	enum grantee who;
	struct str id, name;
};
must_check int access_entries_list(struct call *c, const struct access_owner *owner);
/* Adds the body's entries; those that are there already stay as they are. Answers with the list. */
must_check int access_entries_add(struct call *c, const struct access_owner *owner);
/* The entry that the path's ipAddress names. */
must_check int access_entries_get(struct call *c, const struct access_owner *owner);
must_check int access_entries_remove(struct call *c, const struct access_owner *owner);

#endif
