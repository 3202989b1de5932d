/* Clusters as they are kept: the document, in the current form (ClusterDescription20240805) without links, and beside
 * it, where documents have what never leaves, the plan:
 *
 *   {"label": "ab12cd", "hash": "x1y2z3", "generation": 3, "applied": 2, "type": "SHARDED",
 *    "independent": true, "nodes": [...], "host": "6740...", "room": {...}}
 *
 * "search", of nodes for searching: {"id", "specs": [{"cloudProvider", "regionName", "instanceSize", "nodeCount"}]}.
 *
 * Each change that the engine must make counts the generation up and asks for a job; the job notes the generation that
 * it has applied, and as which type of cluster. Independent: its shards scale on their own. */
#ifndef STEWARD_API_CLUSTERS_CLUSTERS_H
#define STEWARD_API_CLUSTERS_CLUSTERS_H

#include "api/clusters/access.h"
#include "api/clusters/access_mark.h"
#include "api/clusters/authority.h"
#include "api/clusters/cluster.h"
#include "api/clusters/collect.h"
#include "api/clusters/disk.h"
#include "api/clusters/jobs.h"
#include "api/clusters/metrics.h"
#include "api/clusters/missing.h"
#include "api/clusters/nodes.h"
#include "api/clusters/observe.h"
#include "api/clusters/orphans.h"
#include "api/clusters/place.h"
#include "api/clusters/refuse.h"
#include "api/clusters/sightings.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/wanted.h"
#include "api/clusters/watch.h"

#endif
