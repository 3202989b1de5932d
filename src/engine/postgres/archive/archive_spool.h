/* Log that lies on this host. */
#ifndef STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_SPOOL_H
#define STEWARD_ENGINE_POSTGRES_ARCHIVE_ARCHIVE_SPOOL_H

#include "engine/postgres/model/model.h"

struct pg_archive;
struct pg_archive_set;

/* All log that lies on the disk of a node that does not run is in the repository, or put aside for it: before anything
 * rewinds the node or takes it away. Never waits for the repository. 0 too where nothing is archived. */
int pg_archive_drain(struct pg_cluster *c, struct pg_node *n);

struct pg_archive_node { /* what is needed of a node, copied: it may go away meanwhile */
	char name[64], run[PG_PATH];
	unsigned port;
	pid_t pid;
};
/* Whether a file has the bytes of that segment and database; and whether it has all of them. */
bool pg_wal_is(const char *directory, const char *name, uint64_t identity);
bool pg_wal_is_complete(const char *directory, const char *name, uint64_t identity);
int pg_wal_read(const char *directory, const char *name, char **ret_bytes, size_t *ret_n);
/* Names of a directory, sorted, on the heap; freed with pg_names_free(). None of one that is not there; negative: it
 * cannot be told for want of descriptors or memory, and there is nothing to free. */
must_check int pg_names_list(const char *directory, char ***ret_names, size_t *ret_count);
void pg_names_free(char **names, size_t count);
void pg_spool_dir(const struct pg_cluster *c, const struct pg_node *n, unsigned term, char ret_path[PG_PATH]);
/* Bytes in all spools of a cluster; `discard`: and away with them. */
uint64_t pg_spool_bytes(const struct pg_cluster *c, bool discard);
/* More waits for the repository than may: the window is given up rather than the databases' disk. Not before somebody
 * was told that it comes to that, unless it comes too fast. Asks no repository, and may be called beside the worker. */
void pg_spool_bound(struct pg_cluster *c, struct pg_archive *a);
/* Puts what lies in the spools into the repository, a bounded part at a time. *ret_more: there is more. */
int pg_spools_move(struct pg_cluster *c, struct pg_archive *a, bool *ret_more);
/* Completes the set's log from any node's directory, up to the segment before `current`. */
int pg_archive_mend(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint64_t current);

#endif
