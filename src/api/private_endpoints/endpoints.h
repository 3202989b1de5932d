/* For the family's own files. Documents have, beside what the API shows:
 *
 *   endpoint   "consumers": ["10.1.2.3", ...]   who may pass once it is open
 *              "opening": true                  it passes already, and is available when its clusters say how
 *   link       {"cluster", "service", "number", "port", "fault"}, of the kind LINK_KIND, below the project and named
 *              CLUSTER/SERVICE. The port counts from the first of the host's, and is no other link's in this store.
 *              The fault is why its relay could not be opened, where it could not */
#ifndef STEWARD_API_PRIVATE_ENDPOINTS_ENDPOINTS_H
#define STEWARD_API_PRIVATE_ENDPOINTS_ENDPOINTS_H

#include "api/clusters/clusters.h"
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"
#include "api/private_endpoints/private_endpoints.h"
#include "base/ip.h"

#define SERVICE_KIND "endpoint_service"
#define ENDPOINT_KIND "private_endpoint"
#define LINK_KIND "private_link"

/* services.c */
/* "us-east-1" or "US_EAST_1": the latter. */
struct str region_word(struct arena *a, struct str region);
/* The name of an endpoint, in the field where its provider's form has it. */
struct str endpoint_name(const json_t *endpoint);
/* In a write: after an endpoint has come or gone, whether there is one. `except`: the id of one that counts no more. */
must_check int service_connect(struct tx *tx, struct arena *a, struct str service_id, bool is_available,
                               struct str except);
/* In a write: what its links say of their relays (link_fault()) has changed, or was not seen yet. */
must_check int service_review(struct tx *tx, struct arena *a, struct str service_id);
must_check int regional_mode(struct tx *tx, struct arena *a, struct str group_id, bool *ret_on);

/* nodes.c: 400 where a region would have more nodes than the project's limit says, as a service in it, or what a
 * cluster shall be, would make it. */
must_check int service_nodes_check(struct call *c, const json_t *service);
int cluster_nodes_check(struct call *c, const json_t *cluster, struct faults *faults);

/* endpoints.c */
/* Whether its consumers pass, and clusters have strings for it: it is available, or will be when all of them have. */
bool endpoint_is_open(const json_t *endpoint);
/* In a write: who may pass, and by which strings, may have changed in the project. */
must_check int endpoints_changed(struct tx *tx, struct arena *a, struct str group_id);

/* links.c */
struct link {
	struct doc doc;
	struct str cluster, service, fault, org; /* org: whose share of the ports it takes */
	unsigned number, port;
};
/* All of the project. */
must_check int links_load(struct tx *tx, struct arena *a, struct str group_id, struct link **ret_list,
                          size_t *ret_count);
/* In a write: the project's clusters have links to the services in their regions, and no others. -EDQUOT: the
 * organization has its share of the ports, or there are none left. */
must_check int links_settle(struct tx *tx, struct arena *a, struct str group_id);
/* In a write: its relay cannot be opened, or can (`why` empty). -ENOENT: it is gone. */
must_check int link_fault(struct tx *tx, struct arena *a, struct str link_id, struct str why);
/* In a write: those to a service that is gone. */
must_check int links_forget(struct tx *tx, struct arena *a, struct str group_id, struct str service_id);
/* Addresses of the accepted consumers of a service, in the arena. */
must_check int consumers_load(struct tx *tx, struct arena *a, struct str service_id, struct cidr **ret_list,
                              size_t *ret_count);
/* Whether all clusters of the service have connection strings for the endpoint, but those that have none at all yet,
 * are going, or could not be brought to what is wanted. */
must_check int strings_are_there(struct tx *tx, struct arena *a, const struct doc *service, struct str endpoint_name,
                                 bool *ret_there);
/* us-east-1 of US_EAST_1. */
const char *link_location(struct arena *a, struct str region);

/* relays.c: this host's. */
bool relays_are_here(void);
const struct service *relays_service(void);
const char *relays_address(void); /* or NULL */
struct ip relays_source(void);
unsigned relays_port(unsigned port); /* of a link */
/* Whether the address is one of this machine. */
bool relays_can_listen(void);
/* In a write: who may pass some relay has changed; each host looks within the second (private_endpoints_review()). */
must_check int relays_changed(struct tx *tx, struct arena *a);
int relays_apply(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id);

#endif
