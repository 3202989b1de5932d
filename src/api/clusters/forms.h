/* A cluster in the forms of older versions: AdvancedClusterDescription (2023-02-01), where equal shards are one spec
 * with a number and the disk size is the cluster's, and LegacySvcCluster (2023-01-01), where one provider, one size and
 * a table of regions say it all. The current form is what is stored. */
#ifndef STEWARD_API_CLUSTERS_FORMS_H
#define STEWARD_API_CLUSTERS_FORMS_H

#include "call/call.h"

/* A field of a stored cluster that no form has. */
#define CLUSTER_BACKUPS_ASKED "backupsAsked"

enum cluster_form { FORM_CURRENT, FORM_ADVANCED, FORM_LEGACY };

/* By the name of the version's schema, of a request or an answer. */
enum cluster_form cluster_form(const struct schema *s);

/* New values. From the current form; what the older one cannot say is left out. */
json_t *cluster_to_advanced(const json_t *cluster);
json_t *cluster_to_legacy(struct arena *a, const json_t *cluster);
/* From a request body to the fields of the current form that it gives. `old`: the stored cluster that an update is
 * about, or NULL. */
json_t *cluster_from(struct arena *a, enum cluster_form form, const json_t *body, const json_t *old);

#endif
