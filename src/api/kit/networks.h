/* Networks in bodies and paths, as access lists of credentials and of projects take them. */
#ifndef STEWARD_API_KIT_NETWORKS_H
#define STEWARD_API_KIT_NETWORKS_H

#include "call/call.h"

/* A network ("10.0.0.0/8") or an address, as the API takes them: "%2F" may stand for the slash. */
must_check bool network_parse(struct arena *a, struct str text, struct cidr *ret_network);
/* Written out in full, because that is the only form of IPv6 that the patterns of the API take: the network, or of an
 * address that alone. */
struct str network_text(struct arena *a, const struct cidr *network, bool as_address);
/* In its one form, which is the name of an entry in the store. */
struct str network_name(struct arena *a, const struct cidr *network);
/* Into the fields of an entry: cidrBlock, and ipAddress where it is an address. */
void network_put(struct arena *a, const struct cidr *network, json_t *entry);
/* Hook: what stands for an entry in a path: the address, or the network. */
struct str network_doc_key(struct call *c, const struct doc *d);
/* The network that exactly one of cidrBlock and ipAddress of entry `index` of the body gives. Otherwise adds a fault
 * that names the path, and returns false. */
must_check bool network_read(struct call *c, const json_t *entry, size_t index, struct faults *faults,
                             struct cidr *ret_network);

#endif
