/* Directories that the kernel encrypts. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_FSCRYPT_H
#define STEWARD_ENGINE_POSTGRES_HOST_FSCRYPT_H

#include "engine/postgres/model/model.h"

void pg_crypt_probe(struct engine *e); /* once, at the start */
/* Of engine_core_ops. */
int pg_can_encrypt(struct engine *e, struct arena *a, const char **ret_why);
/* The name of the key that a directory is encrypted with. -ENODATA: it is not; -EEXIST: it is somebody else's. */
int pg_policy_get(const char *path, unsigned char ret_key[PG_FILES_KEY]);
int pg_policy_set(const char *path, const unsigned char key[PG_FILES_KEY]); /* of an empty directory */
bool pg_key_is_given(const struct engine *e, const unsigned char key[PG_FILES_KEY]);
/* The key of a cluster's files, which comes from its project's: its name is made from it. */
int pg_key_give(const struct engine *e, const struct data_key *key, const char *cluster,
                unsigned char ret_key[PG_FILES_KEY]);
/* It is wiped at once. -EBUSY: files are still open, or in the kernel's memory. */
int pg_key_take(const struct engine *e, const unsigned char key[PG_FILES_KEY]);
/* What is made in this empty directory is encrypted as the cluster's files are. */
int pg_crypt_dir(const struct pg_cluster *c, const char *path);
int pg_crypt_dir_of(struct engine *e, const char *cluster_id, const char *path); /* NULL or another host's: it is not */

#endif
