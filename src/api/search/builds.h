/* Builds of search indexes. A search index is a document below its cluster:
 *
 *   {"indexID", "name", "database", "collectionName", "type", "latestDefinition", "latestDefinitionVersion",
 *    "main": {"id", "definition", "definitionVersion", "status", "message"}, "staged": {the same, "failedMs"},
 *    "deleting": true}
 *
 * Each build has an id. The main one answers queries; the staged one takes its place when it is built. Both are absent
 * until, or while, there is none. */
#ifndef STEWARD_API_SEARCH_BUILDS_H
#define STEWARD_API_SEARCH_BUILDS_H

#include "api/search/search.h"

#define SEARCH_INDEX_KIND "search_index"
#define SEARCH_INDEXES_MAX 100 /* of a cluster */

/* What the engine is asked for; all borrowed from the arena. */
struct search_want {
	struct engine_search search;
	struct engine_index index;
};
/* `about` has the names of the index; `build` the id and the definition. */
void search_want_make(struct arena *a, struct str cluster_id, const json_t *about, const json_t *build,
                      struct search_want *ret_want);

/* In a write: the latest definition of the document is to be built. Changes `body`, which the caller saves. */
must_check int search_build_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct str index_id,
                                json_t *body);
/* In a write: the document is marked, and goes when nothing of it is left in the database. */
must_check int search_delete_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct doc *d);
/* How far the staged build is: "40% building the index"; empty where it is not known. */
struct str search_progress(struct tx *tx, struct arena *a, struct str cluster_id, const json_t *staged);

#endif
