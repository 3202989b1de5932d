/* The newest snapshot as files beside the databases, where that costs nothing. A fault only means that there are
 * none. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_IMAGE_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_IMAGE_H

#include "base/str.h"

struct shot;
struct shot_base;

void pg_image_begin(struct shot *s);
int pg_image_set(struct shot *s, const struct shot_base *b); /* -1: there is none */
void pg_image_directory(struct shot *s, const struct shot_base *b, const char *path);
void pg_image_add(struct shot *s, const struct shot_base *b, const char *path, int fd);
void pg_image_end(struct shot *s, bool taken);

#endif
