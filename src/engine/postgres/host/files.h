/* Files and directories below DIR/engine, and whose they are. */
#ifndef STEWARD_ENGINE_POSTGRES_HOST_FILES_H
#define STEWARD_ENGINE_POSTGRES_HOST_FILES_H

#include "engine/postgres/model/model.h"

/* The whole file or the old one, also after a power cut. mode 0640 and the nodes' group when they must read it. */
int pg_file_write(const struct pg_user *u, const char *path, const void *bytes, size_t n, bool for_nodes);
/* A private key, which PostgreSQL takes only from root or from its own user. */
int pg_key_write(const struct pg_user *u, const char *path, const void *bytes, size_t n);
int pg_file_give(const struct pg_user *u, const char *path); /* an empty one, the nodes' own */
/* NUL-terminated, heap; -EFBIG over the bound. */
int pg_file_read(const char *path, size_t max, char **ret_text);
int pg_file_take(int fd, size_t max, char **ret_text); /* the same of an open one, which is closed */
bool pg_file_is(const char *path);
int pg_dir_make(const struct pg_user *u, const char *path, bool owned_by_nodes);
/* 1: it is there; 0: it is not, which is proven; negative: that cannot be known (too many open files, no permission, a
 * disk that does not answer), and nobody may take it for gone. */
int pg_file_look(const char *path);
/* Whether the error proves that a file is not there. A link in its place is none of ours. */
bool pg_is_absence(int error);
int pg_dir_sync(const char *path);
int pg_filesystem_sync(const char *path); /* everything on the file system of a directory */
int pg_tree_remove(const char *path);

#endif
