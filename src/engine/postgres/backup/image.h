/* The newest snapshot as files beside the databases, where that costs nothing. A fault only means that there are
 * none. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_IMAGE_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_IMAGE_H

#include "engine/postgres/model/model.h"

struct shot;
struct shot_base;

/* The directory of a set's, or negative: there is none. */
int pg_image_open(const struct engine *e, const struct engine_source *of, const char *set);
void pg_image_forget(struct engine *e, const struct engine_source *of);
void pg_images_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep);
void pg_images_spare(struct engine *e); /* none is left, when little space is */
void pg_image_begin(struct shot *s);
int pg_image_set(struct shot *s, const struct shot_base *b); /* -1: there is none */
void pg_image_directory(struct shot *s, const struct shot_base *b, const char *path);
void pg_image_add(struct shot *s, const struct shot_base *b, const char *path, int fd);
void pg_image_end(struct shot *s, bool taken);

#endif
