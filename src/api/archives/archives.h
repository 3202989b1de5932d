/* Online archives of clusters: the calls, and the jobs that move rows, end files and take away what is left. */
#ifndef STEWARD_API_ARCHIVES_ARCHIVES_H
#define STEWARD_API_ARCHIVES_ARCHIVES_H

#include "api/clusters/clusters.h"

extern const struct job_kinds archives_jobs;
extern const struct cluster_part archives_part;

/* Another host's question, whether rows can be archived so: the path, and who answers it. */
#define ARCHIVES_CHECKED "/hosts/archives"
void archives_checked(struct service *s, struct request *r);

/* datasets.c: what the engine calls the archive whose data set has that name (dataSetName), for who reads its files.
 * -ENOENT: the project has none. */
must_check int archive_dataset_find(struct tx *tx, struct arena *a, struct str group_id, struct str name,
                                    struct engine_lake *ret_lake);
/* All whose data sets' names begin so. */
must_check int archive_datasets_list(struct tx *tx, struct arena *a, struct str group_id, struct str prefix,
                                     struct engine_lake **ret_list, size_t *ret_count);

/* beside.c: what lies beside the catalog: paths that are read, requests that change something, and who answers both. */
bool archives_are_previewed(struct str path);
bool archives_are_brought(const struct request *r);
void archives_beside(struct service *s, struct request *r);

#endif
