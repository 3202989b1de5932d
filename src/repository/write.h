/* One set's files become a snapshot. */
#ifndef STEWARD_REPOSITORY_WRITE_H
#define STEWARD_REPOSITORY_WRITE_H

#include "base/json.h"
#include "repository/common.h"

struct manifest_file; /* manifest.h */
struct repo_manifest;
struct chunk_reader; /* read.h */

struct repo_writer;
/* Chunks that a writer has put or found are not swept until it ends, even by another process: it leaves a lease
 * (GROUP/leases/ID), renewed while it lives. */
must_check int repo_write_begin(struct repository *r, struct repo_writer **ret_writer);
/* One file, read from `fd` up to its end but not beyond `size_max`; from several threads at once. A sparse or zero
 * run costs nothing. `page_check` (may be NULL) sees each whole block of 8192 bytes, with its number; negative ends
 * it. */
struct repo_file {
	const char *path; /* below the data directory */
	unsigned mode;
	int64_t modified_s;
	int (*page_check)(void *ctx, uint64_t block, const void *bytes);
	void *ctx;
};
must_check int repo_write_file(struct repo_writer *w, const struct repo_file *f, int fd, uint64_t size_max);
must_check int repo_write_bytes(struct repo_writer *w, const struct repo_file *f, const void *bytes, size_t n);
must_check int repo_write_directory(struct repo_writer *w, const char *path, unsigned mode);
/* Files' lengths, times and CRC-32C in the form of PostgreSQL's backup_manifest, so that pg_verifybackup can check
 * what is restored; `wal` is its WAL-Ranges array. Written into the snapshot under that name. */
must_check int repo_write_backup_manifest(struct repo_writer *w, const json_t *wal_ranges);
/* All is flushed, then the manifest is put; -EEXIST: there is one of that name. Frees the writer, also when it fails.
 * `facts` are the engine's (positions, version, label ...). */
must_check int repo_write_commit(struct repo_writer *w, const char *cluster, const char *snapshot, const char *set,
                                 const json_t *facts, struct repo_amount *ret_amount);
void repo_write_abort(struct repo_writer *w);                                  /* accepts NULL */
void repo_write_amount(struct repo_writer *w, struct repo_amount *ret_amount); /* so far; for progress */

/* A file whose chunks come from another repository. */
must_check int writer_copy_file(struct repo_writer *w, const struct repo_manifest *m, const struct manifest_file *f,
                                struct chunk_reader *from);

#endif
