/* One set of a snapshot: which files it has, and of which chunks they are. */
#ifndef STEWARD_REPOSITORY_MANIFEST_H
#define STEWARD_REPOSITORY_MANIFEST_H

#include "base/buf.h"
#include "base/json.h"
#include "repository/common.h"

struct repo_key; /* keys.h */

struct repo_manifest;
must_check int repo_manifest_open(struct repository *r, const char *cluster, const char *snapshot, const char *set,
                                  struct repo_manifest **ret_manifest);
void repo_manifest_close(struct repo_manifest *m); /* accepts NULL */
const json_t *repo_manifest_facts(const struct repo_manifest *m);
const struct repo_amount *repo_manifest_amount(const struct repo_manifest *m);
/* The id of the project's data key that it is sealed with; "": with the service's key alone. */
const char *repo_manifest_key(const struct repo_manifest *m);
/* The names of the sets of a snapshot; -ENOENT: there is none. */
must_check int repo_sets(struct repository *r, struct arena *a, const char *cluster, const char *snapshot,
                         struct str **ret_sets, size_t *ret_count);
/* All snapshots, each once. */
must_check int repo_snapshots(struct repository *r, repo_snapshot_visit *visit, void *ctx);
/* With its record. */
must_check int repo_manifest_delete(struct repository *r, const char *cluster, const char *snapshot);

/* For the repository's own files: what a manifest has. */

#define MANIFEST_CHECKSUM "CRC32C"
enum manifest_kind { MANIFEST_FILE = 'F', MANIFEST_DIRECTORY = 'D' };
struct manifest_file {
	const char *path;
	char kind;
	unsigned mode;
	int64_t modified_s;
	uint64_t size;
	uint32_t sum;             /* CRC-32C */
	bool summed;              /* one of an earlier version is not */
	const unsigned char *ids; /* one after the other */
	size_t id_count;
};
struct repo_manifest {
	struct repository *r;
	const struct repo_key *key; /* of its chunks' ids */
	char *plain;
	json_t *head;
	struct manifest_file *files;
	size_t count;
	struct repo_amount amount;
};
bool manifest_path_ok(struct str path);
void manifest_write(struct buf *out, const json_t *head, const struct manifest_file *files, size_t count);
/* The files' lengths, times and checksums as PostgreSQL's backup_manifest; and the newest time. */
void manifest_for_postgres(struct buf *out, const struct manifest_file *files, size_t count, const json_t *wal_ranges,
                           int64_t *ret_newest_s);
/* Takes `plain`. */
must_check int manifest_read(struct repository *r, char *plain, size_t n, struct repo_manifest **ret_manifest);
/* ret_name: OBJECT_NAME bytes. */
void manifest_name(char *ret_name, const char *cluster, const char *snapshot, const char *set);
/* By its name below the project. */
must_check int manifest_get(struct repository *r, const char *name, struct repo_manifest **ret_manifest);

#endif
