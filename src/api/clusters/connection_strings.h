/* Connection strings of clusters: the kinds and host shapes of the specification. Schemes and domain are
 * configuration. */
#ifndef STEWARD_API_CLUSTERS_CONNECTION_STRINGS_H
#define STEWARD_API_CLUSTERS_CONNECTION_STRINGS_H

#include "base/arena.h"

#include <jansson.h>

struct connection_options {
	const char *scheme; /* "postgresql"; of SRV strings: with "+srv" */
	const char *domain;
};

/* A node that clients connect to. */
struct connection_node {
	const char *name;    /* first label: "ab12cd-shard-00-01" */
	const char *address; /* where it listens on this host; empty: only by name */
	unsigned port;
};

struct connection_cluster {
	const char *label, *project_hash; /* "ab12cd", "x1y2z3" */
	const struct connection_node *nodes;
	size_t node_count;
};

/* All nodes in one string that psql takes as it is: with the addresses of this host beside the names, and only a node
 * that takes writes is good enough. The suffix of the names: "", or that of peered networks. On this host both lead to
 * the same addresses, and the certificates stand for both. */
#define CONNECTION_PRIVATE "-pri"
struct str connection_hosts(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                            const char *suffix);
struct str connection_srv(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                          const char *suffix);

/* A private endpoint: the n-th of a place. `regional`: endpoints are by region, and the SRV host begins with the
 * cluster. */
struct connection_endpoint {
	unsigned number;
	const char *location;
	const char *cluster_name;
	bool regional, optimized; /* optimized: a sharded cluster's second SRV host, which bounds connections */
	const char *id, *provider, *region; /* as documents name the endpoint */
	unsigned port;                      /* 0: the first */
	const char *address;                /* of the relay; NULL: only by name */
};
struct str connection_endpoint(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                               const struct connection_endpoint *e);
struct str connection_endpoint_srv(struct arena *a, const struct connection_options *o,
                                   const struct connection_cluster *c, const struct connection_endpoint *e,
                                   bool optimized);

/* How the cluster can be reached beside the public network. */
struct connection_network {
	bool peered;  /* private strings are needed */
	bool sharded; /* endpoints lead to routers */
	const struct connection_endpoint *endpoints;
	size_t endpoint_count;
};
/* The document's connectionStrings. */
json_t *connection_strings_json(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                                const struct connection_network *n);

/* Six characters that stand for a project in host names: the same for the same id. */
#define PROJECT_HASH 7
void project_hash(struct str group_id, char ret_hash[PROJECT_HASH]);

#endif
