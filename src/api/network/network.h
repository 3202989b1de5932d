/* Networks of a project: the containers that its clusters live in, the peering connections to networks of the customer,
 * and what they mean for the clusters. No cloud is behind them: they are state machines on the service's clock, and the
 * other side of a peering accepts by itself. */
#ifndef STEWARD_API_NETWORK_NETWORK_H
#define STEWARD_API_NETWORK_NETWORK_H

#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"
#include "base/ip.h"

#define CONTAINER_KIND "network_container"
#define PEER_KIND "network_peer"

struct network_provider {
	const char *name;
	const char *schema, *field;     /* of a container, and where it has its region */
	const char *account, *network;  /* fields of a peering connection: whose network, and which */
	unsigned least, most, standard; /* lengths of a container's prefix */
};
/* NULL: none of that name. */
const struct network_provider *network_provider_find(struct str name);

/* The regions of a dedicated cluster have containers, which get their networks. In a write. */
must_check int containers_provide(struct tx *tx, struct arena *a, struct str group_id, const json_t *cluster);
/* Whether the cluster has nodes at that provider; region empty: in any region. */
bool cluster_is_in(const json_t *cluster, struct str provider, struct str region);

/* Whether a container can be in that region of the provider. */
bool container_region_is_known(struct str provider, struct str region);
/* All of the project; there are few. */
must_check int peers_load(struct tx *tx, struct arena *a, struct str group_id, struct doc **ret_docs,
                          size_t *ret_count);
/* A peering connection as policies see it. */
struct policy_link;
must_check int policy_link_of_peer(struct tx *tx, struct arena *a, const json_t *peer, struct policy_link *ret_link);
/* The address block that a document says, of a container or a peering connection. False: it says none. */
bool network_block(const json_t *document, struct cidr *ret_block);
/* 409 when the block overlaps a container's or a peering connection's. `self`: the document that it is for. */
must_check int network_check_overlap(struct call *c, const char *field, const struct cidr *block, const json_t *self);

/* The connection strings of the project's clusters may have changed. In a write. */
must_check int network_changed(struct tx *tx, struct arena *a, struct str group_id);

extern const struct cluster_part network_part;
extern const struct job_kinds network_jobs;

#endif
