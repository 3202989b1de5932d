/* The newest snapshot's files beside the databases, as they lie there. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_IMAGES_H
#define STEWARD_ENGINE_POSTGRES_HOST_IMAGES_H

#include "engine/postgres/model/model.h"

bool pg_images_are_crowded(const struct engine *e); /* little space is left */
/* "" for the cluster or the region: the directory above. */
void pg_image_region(const struct engine *e, const char *cluster, const char *region, char ret_path[PG_PATH]);
void pg_image_discard(struct engine *e, const char *path);
/* All of a cluster but that one; NULL: all. */
void pg_images_others_drop(struct engine *e, const char *cluster, const struct engine_source *kept);
/* The directory of a set's, or negative: there is none. */
int pg_image_open(const struct engine *e, const struct engine_source *of, const char *set);
void pg_image_forget(struct engine *e, const struct engine_source *of);
void pg_images_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep);
void pg_images_spare(struct engine *e); /* none is left, when little space is */

#endif
