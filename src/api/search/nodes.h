/* Search nodes of clusters. */
#ifndef STEWARD_API_SEARCH_NODES_H
#define STEWARD_API_SEARCH_NODES_H

#include "api/clusters/clusters.h"

/* The link from a cluster that has search nodes to them. */
void search_nodes_link(struct call *c, const struct doc *d);

#endif
