/* Backups as they lie in an object store, one repository for each region. All names begin with "REGION/", so that
 * regions may share a store:
 *
 *   GROUP/key                                  a key of the project's, sealed by the service's
 *   GROUP/keys/ID                              its data key under encryption at rest, as its key service has wrapped it
 *   GROUP/packs/PACK                           chunks of files: compressed, encrypted, each once (chunk.c, pack.c)
 *   GROUP/index/PACK                           which chunks a pack has; also at the pack's end
 *   GROUP/parity/PARITY                        what makes any one of a few packs again (parity.c)
 *   GROUP/manifests/CLUSTER/SNAPSHOT/SET       one set's files, as lists of chunks: its put is the commit point
 *   GROUP/wal/CLUSTER/INCARNATION/SET/TIMELINE/SEGMENT   WAL: compressed, encrypted
 *   GROUP/wal/CLUSTER/INCARNATION/SET/TIMELINE.history
 *   GROUP/wal/CLUSTER/INCARNATION/SET/seconds/HOUR       which position was reached when
 *
 * Chunks are found by their content's HMAC under the project's key, so that what has not changed is stored once and
 * no snapshot depends on another; nothing is shared between projects. An incarnation begins with a cluster's creation
 * and with each restore into it, so that timelines never collide. docs/backup-format.md tells every byte.
 *
 * Thread safety: all functions may be called from several threads. Results: 0 or negative errno; -EBADMSG: stored
 * bytes are not what was written (damage, or a wrong key); repository_why() has words about the thread's last
 * failure. */
#ifndef STEWARD_REPOSITORY_REPOSITORY_H
#define STEWARD_REPOSITORY_REPOSITORY_H

#include "base/json.h"
#include "objects/objects.h"

struct repository;   /* one project in one region's object store */
struct repositories; /* all of a service */
struct data_keys;    /* base/data_key.h */
struct pace;         /* base/pace.h */

#define REPO_KEY_BYTES 32

/* --- places.c: from a region to its repository */
struct repositories_options {
	const char *fallback;       /* URL for regions without one of their own; never NULL */
	bool fallback_is_own;       /* a directory of the service's own, which it makes anew whatever was there */
	const char *const *regions; /* "US_EAST_1=URL" */
	size_t region_count;
	uint64_t quota; /* bytes that a project may take in a region; what comes then is refused: -EDQUOT. 0: none */
	/* So many packs share a second copy of what one of them has (parity.h); 0: there is none. */
	unsigned parity;
	struct pace *pace; /* of what is read for snapshots and written by restores (base/pace.h); NULL: no bound */
	struct objects_options s3;         /* endpoint, region, keys for all that are s3:// */
	struct objects_options azure;      /* endpoint, account, key for all that are azure:// */
	unsigned char key[REPO_KEY_BYTES]; /* the service's: seals the projects' keys */
	const struct data_keys *keys;      /* of projects with encryption at rest; NULL: none is at hand */
	int64_t keys_us; /* how long it holds what they told of a project's key; 0: ten seconds. Snapshots always ask */
};
must_check int repositories_open(const struct repositories_options *o, struct repositories **ret_all);
void repositories_close(struct repositories *all); /* accepts NULL */
/* The service's keys from now on: the first seals, all of them open. */
#define REPO_SERVICE_KEYS 4
struct repo_service_keys {
	size_t count;
	unsigned char keys[REPO_SERVICE_KEYS][REPO_KEY_BYTES];
};
/* Seals what the service's keys seal (the project's key, what its key service needs) with the first of them. The number
 * of objects that were put anew. */
must_check int repository_rewrap(struct repository *r, uint64_t *ret_count);
/* A hash of all places: of two processes the same when both keep their backups in the same ones. */
void repositories_places_hash(const struct repositories *all, unsigned char ret_hash[32]);
void repositories_keys_set(struct repositories *all, const struct repo_service_keys *keys);
/* The project's in a region; counted: put it back. Makes its key where there is none. Opened once, and kept open for
 * a while. What is written from then on is sealed with the project's data key, where it has one: -EKEYREVOKED, and
 * -EAGAIN where it was not open yet, when that is out of reach. */
must_check int repository_get(struct repositories *all, const char *region, const char *group_id,
                              struct repository **ret_repository);
void repository_put(struct repository *r); /* accepts NULL */
/* The project's key was taken back: of repositories that nobody uses just now, none is left in memory. */
void repositories_forget(struct repositories *all, const char *group_id);
/* Which object store the region's repositories lie in: the same for regions that share one. */
const void *repositories_store(const struct repositories *all, const char *region);
/* Each repository that there is, as the object stores list it; negative ends it with that. */
typedef int repositories_visit(void *ctx, const char *region, const char *group_id);
must_check int repositories_each(struct repositories *all, repositories_visit *visit, void *ctx);
/* Backups lie in the region's store: where nothing is found it is away, and no new one is made. Before it is used. */
void repositories_expect(struct repositories *all, const char *region);
const char *repository_why(void);

/* --- write.c: one set's files become a snapshot */
struct repo_writer;
struct repo_amount {
	uint64_t files, bytes; /* as they are on disk */
	uint64_t chunks, new_chunks;
	uint64_t stored; /* bytes that were added to the repository */
};
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

/* --- read.c */
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
typedef int repo_snapshot_visit(void *ctx, struct str cluster, struct str snapshot, int64_t modified_ms);
must_check int repo_snapshots(struct repository *r, repo_snapshot_visit *visit, void *ctx);
/* With its record. */
must_check int repo_manifest_delete(struct repository *r, const char *cluster, const char *snapshot);

/* --- record.c: what the catalogue says of a snapshot, beside it, for whoever has lost the catalogue. In place of
 * what was there. */
must_check int repo_record_put(struct repository *r, const char *cluster, const char *snapshot, const char *text);
/* On the heap. -ENOENT: an earlier version wrote none. */
must_check int repo_record_get(struct repository *r, const char *cluster, const char *snapshot, char **ret_text);
must_check int repo_records(struct repository *r, repo_snapshot_visit *visit, void *ctx);
/* places.c: each data key of the project, as its key services have wrapped it (data_keys.wrapped). */
typedef int repo_wrapped_visit(void *ctx, const char *text);
must_check int repo_wrapped_each(struct repository *r, repo_wrapped_visit *visit, void *ctx);

struct repo_progress {
	void (*tell)(void *ctx, uint64_t done, uint64_t of); /* bytes; from any thread; may be NULL */
	void *ctx;
	const volatile bool *cancel; /* may be NULL: true ends it with -ECANCELED */
};
/* All files below an empty directory, owned by (uid, gid); every chunk is authenticated and every file's checksum
 * compared before 0 is returned. Nothing is flushed: who keeps it does that. */
must_check int repo_restore(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid, unsigned threads,
                            const struct repo_progress *p);
/* The same; files that lie below `image` (a directory; negative: none) share their blocks with those where the file
 * system can do so, and are not read from the repository: what lies there is trusted, and is the snapshot's own. */
must_check int repo_restore_beside(struct repo_manifest *m, const char *directory, uid_t uid, gid_t gid,
                                   unsigned threads, const struct repo_progress *p, int image);
/* The same checks without writing anything. */
must_check int repo_verify(struct repo_manifest *m, unsigned threads, const struct repo_progress *p);
/* As a tar (ustar with pax headers where needed); `extra` files are put in front of its end. */
struct repo_extra {
	const char *path;
	unsigned mode;
	const void *bytes; /* or, where NULL, read from fd */
	size_t n;
	int fd;
};
must_check int repo_tar(struct repo_manifest *m, const struct repo_extra *extra, size_t extra_count,
                        objects_write *write, void *ctx);
/* The same without what lies before that byte, for a reader who has it: a manifest makes the same bytes each time. */
must_check int repo_tar_from(struct repo_manifest *m, uint64_t from, objects_write *write, void *ctx);
/* How long it is. Reads nothing but the manifest. */
must_check int repo_tar_size(struct repo_manifest *m, uint64_t *ret_bytes);
/* Copies a snapshot's missing chunks and manifests into another region's repository of the same project. */
must_check int repo_copy(struct repository *from, struct repository *to, const char *cluster, const char *snapshot,
                         const struct repo_progress *p, struct repo_amount *ret_amount);

/* --- wal.c */
struct repo_line { /* one set's WAL since its incarnation began */
	const char *cluster, *incarnation, *set;
};
/* `name` is a segment's (24 hex digits), one with ".partial" (the segment that is being written, up to where it is
 * flushed), or "00000002.history". A complete segment takes the place of its partial. -EEXIST: other bytes lie under
 * the name of a complete one; the same bytes again are no error. */
must_check int repo_wal_put(struct repository *r, const struct repo_line *line, const char *name, const void *bytes,
                            size_t n);
/* On the heap. -ENOENT. */
must_check int repo_wal_get(struct repository *r, const struct repo_line *line, const char *name, size_t max,
                            char **ret_bytes, size_t *ret_n);
typedef int repo_wal_visit(void *ctx, const char *name, uint64_t stored);
must_check int repo_wal_list(struct repository *r, const struct repo_line *line, repo_wal_visit *visit, void *ctx);
/* All lines, in the arena. */
must_check int repo_wal_lines(struct repository *r, struct arena *a, struct repo_line **ret_lines, size_t *ret_count);
/* One hour of the index from seconds to positions: sealed as it is given, in place of what was there. hour: seconds
 * since 1970 / 3600. */
must_check int repo_seconds_put(struct repository *r, const struct repo_line *line, int64_t hour, const void *bytes,
                                size_t n);
must_check int repo_seconds_get(struct repository *r, const struct repo_line *line, int64_t hour, char **ret_bytes,
                                size_t *ret_n);

/* --- sweep.c: what nobody keeps, goes */
struct repo_keep {
	const char *const *snapshots; /* "CLUSTER/SNAPSHOT" of all that are kept */
	size_t snapshot_count;
	const struct repo_keep_wal {
		struct repo_line line; /* set NULL: all sets */
		const char *
		        /* the first segment that is needed, without its timeline (16 hex digits); NULL: all of it */
		        from;
		int64_t from_ms; /* the first moment whose position is asked for; 0: all */
	} * wal;                 /* lines that are not listed go whole */
	size_t wal_count;
	/* Objects that are younger, by the object store's clock, are left alone: a snapshot may have been taken since
	 * the list of those that are kept was made. */
	int64_t young_ms;
	/* Whether what has that id (of a snapshot, of a log's incarnation) and is not listed was made behind the back
	 * of whoever made the list, and stays; snapshots of the kind are told of. NULL: nothing is. */
	bool (*stranger)(void *ctx, struct str id);
	void (*stranger_found)(void *ctx, struct str name); /* "CLUSTER/SNAPSHOT" */
	void *stranger_ctx;
	/* The record of a snapshot that lies here and has none: a text on the heap, or NULL. May be NULL. */
	char *(*record)(void *ctx, struct str cluster, struct str snapshot);
	void *record_ctx;
	/* clock_boot_us() before the list was made; 0: not known. -ESTALE: too long ago for young_ms. */
	int64_t read_us;
};
struct repo_swept {
	uint64_t manifests, packs, rewritten, segments;
	uint64_t bytes_freed, bytes_kept;
};
/* Mark and sweep: manifests, WAL and packs; packs less than half live are written anew without what is dead. Safe
 * beside writers and readers, and may be ended at any moment. While somebody writes, packs are left alone; a writer
 * that begins meanwhile waits until the pack at hand is done. -EBADMSG: a manifest does not open, so no pack went. */
must_check int repo_sweep(struct repository *r, const struct repo_keep *keep, struct repo_swept *ret_swept);

/* --- check.c: `steward repository check` and the sweep's figures */
struct repo_check {
	uint64_t snapshots, packs, chunks, segments, bytes; /* that were looked at */
	uint64_t locked; /* objects that were not, because the project's key is not at hand */
	uint64_t faults;
	uint64_t mended; /* of these: by repo_repair() */
};
/* `share`: 1 all of it, below 1 a sample. Each fault is told in words that name the object and what depends on it. */
must_check int repo_check(struct repository *r, double share, void (*fault)(void *ctx, const char *words), void *ctx,
                          struct repo_check *ret_check);
/* The same of all of it, and what has a second copy is made whole from that. */
must_check int repo_repair(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                           struct repo_check *ret_check);
/* Bytes that the project takes in the repository, from its list of objects. */
must_check int repo_usage(struct repository *r, uint64_t *ret_packs, uint64_t *ret_wal);

#endif
