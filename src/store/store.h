/* What is kept. Documents by (kind, id), listed by (kind, parent) in the order of their creation, with a unique name
 * within the parent where they have one; references for look-ups by another unique value; counters; events; jobs.
 *
 * Reads run where they are called, on a reader of the calling thread. Writes are functions that the store runs in a
 * transaction: several share one flush, each is all or nothing, and done() is called only once it is on disk. */
#ifndef STEWARD_STORE_STORE_H
#define STEWARD_STORE_STORE_H

#include "base/arena.h"
#include "base/fair.h"
#include "base/str.h"

#include <stdio.h>

struct store;
struct tx; /* a reader's or a writer's view */

struct doc {
	struct str kind, id, parent, name; /* name empty: none */
	int64_t seq, rev, created_ms;
	struct str body;   /* JSON object, final form without links */
	struct str secret; /* what never leaves: hashes, encrypted values; empty: none */
};

struct store_options {
	const char *url; /* "sqlite:PATH", "postgresql://..."; NULL: the embedded store in data_dir */
	const char *data_dir;
	unsigned batch_max; /* writes that may share one flush; 0: default (256) */
	const char *node;   /* of a store that several processes share: this one's name, no other's; NULL: made up */
	bool unfinished;    /* also one that a copy was begun into and not finished */
};

/* Opens, migrates, starts the writer. Failure: a sentence to stderr, negative. */
must_check int store_open(const struct store_options *o, struct store **ret_store);
/* Finishes queued writes. All readers must be freed before. Accepts NULL. */
void store_close(struct store *s);

/* Whether each read is a round trip over a network: then no loop may make one. */
bool store_is_remote(const struct store *s);
bool store_url_is_remote(const char *url);

/* The name of this node among those that share the store; empty where the store is one process's own. */
const char *store_node(const struct store *s);

/* A reader for the calling thread's use only. NULL, after a sentence to stderr, when it cannot be opened. */
struct tx *store_reader(struct store *s);
void store_reader_free(struct tx *tx);
/* All reads between the two see one state, no older than the last write of this process that was done when it began. */
void tx_begin_read(struct tx *tx);
void tx_end_read(struct tx *tx);
/* The reader will not be used for a while: lets go of the state that it may have kept for the next read. */
void tx_rest(struct tx *tx);

/* Reads: 0, or -ENOENT, or -EIO (logged), or -ENOTCONN: the store is out of reach, try again in a second, or
 * -ENOSPC: its disk is full. Results are copied into the arena. */
must_check int tx_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc);
must_check int tx_get_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                              struct doc *ret_doc);
/* A document that one of several callers wants. */
struct doc_wanted {
	struct arena *arena; /* the caller's: the document is copied into it */
	const char *kind;
	struct str id;
	int result; /* as tx_get()'s */
	struct doc doc;
};
/* Reads them all, each as tx_get() would outside of tx_begin_read() and tx_end_read(), in one round trip. */
void tx_get_many(struct tx *tx, struct doc_wanted *const *list, size_t count);
/* waits() is called whenever the reader is about to wait for a store that is reached over a network. */
void tx_on_wait(struct tx *tx, void (*waits)(void *ctx), void *ctx);
/* Documents `offset` to `offset + limit` of the list, in order. Cheap at any depth. */
must_check int tx_list(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset,
                       int64_t limit, struct doc **ret_docs, size_t *ret_count);
/* Documents of a kind whoever their parent is, by parent and then in the order of its list, at most `limit`, from the place
 * after (parent, seq) on; ("", -1) is before all. For walks over all of them: costs what they are, not what else there is. */
must_check int tx_walk(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t seq, int64_t limit,
                       struct doc **ret_docs, size_t *ret_count);
must_check int tx_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count);
/* The id behind a unique value ("api_key_public" / "abcdefgh"). */
must_check int tx_ref_get(struct tx *tx, struct arena *a, const char *kind, struct str value, struct str *ret_id);
/* Small settings of the service: the signing key's id, the bootstrap's ids. */
must_check int tx_meta_get(struct tx *tx, struct arena *a, const char *key, struct str *ret_value);

/* Writes, inside a write only. -EEXIST: the id, name or reference is taken. -ENOENT: nothing there. -ESTALE: d->rev is
 * not 0 and not the stored revision. Insert sets rev 1 and seq; update bumps rev and keeps seq, parent and created_ms. */
must_check int tx_insert(struct tx *tx, const struct doc *d);
must_check int tx_update(struct tx *tx, const struct doc *d);
must_check int tx_delete(struct tx *tx, const char *kind, struct str id);
/* To the end of another parent's list, with the name and body of `d`; d->parent is the new one. -EEXIST: a document there
 * has the name. */
must_check int tx_move(struct tx *tx, const struct doc *d);
must_check int tx_ref_put(struct tx *tx, const char *kind, struct str value, struct str id);
must_check int tx_ref_delete(struct tx *tx, const char *kind, struct str value);
must_check int tx_meta_put(struct tx *tx, const char *key, struct str value);

struct event {
	struct str id, org_id, group_id, type, body;
	int64_t created_ms;
	struct str cluster, raw; /* name of the cluster that it is about; further fields, as a JSON object; or empty */
	bool for_org, for_group; /* stands in the list of the organization, of the project */
};
must_check int tx_event_add(struct tx *tx, const struct event *e);

/* Which events of an organization or project. */
struct event_filter {
	struct str scope;
	bool in_org;
	struct str types, excluded, clusters; /* JSON arrays of strings; empty: any type, none, any cluster */
	bool has_min, has_max;
	int64_t min_ms, max_ms; /* both included */
};
/* Newest first. Without a filter, cheap at any depth; with one, a walk over an index of the scope's events. */
must_check int tx_event_list(struct tx *tx, struct arena *a, const struct event_filter *f, int64_t offset,
                             int64_t limit, struct event **ret_events, size_t *ret_count);
must_check int tx_event_count(struct tx *tx, const struct event_filter *f, int64_t *ret_count);
must_check int tx_event_get(struct tx *tx, struct arena *a, struct str id, struct event *ret_event);
/* Lets go of the oldest events, at most `limit`, that are from before that time. The chain of the rest stays whole. */
must_check int tx_events_prune(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_count);

/* Hangs something on the transaction for those who are called with nothing else, while a write runs; NULL takes it off again.
 * The store does not look at it. */
void tx_attach(struct tx *tx, void *what);
void *tx_attached(const struct tx *tx);

/* Who may do what has changed: caches of principals are stale from the commit on. */
void tx_touch_identity(struct tx *tx);
/* Grows with each such commit, here or (within a second) in another process. Cheap. */
uint64_t store_identity_generation(const struct store *s);
/* The generation that what the tx reads now is sure to show: the one at the start of the state that it keeps, or the
 * current one. What is remembered from its reads is remembered under this. */
uint64_t tx_identity_generation(const struct tx *tx);

/* One write. run() may be called more than once (a retry starts from the beginning) and returns 0 to commit or negative
 * to undo; done() gets that result, or -EIO when the flush failed, or -ENOTCONN when the store stayed out of reach, or -ENOSPC
 * when there was no room for it, on the store's thread. */
struct write {
	int (*run)(struct tx *tx, void *ctx);
	void (*done)(void *ctx, int result);
	void *ctx;
	struct fair_item
	        item;       /* .key: whose place in the queue it takes; 0: the service's own. The rest is the store's */
	struct write *next; /* the store's own */
};
/* Queues; false when the queue is full, or that key's share of it (the caller answers 503). */
must_check bool store_write(struct store *s, struct write *w);
/* The same, and waits, also for room in the queue. Not on a loop, nor inside run() or done(). -ESHUTDOWN: closing. */
must_check int store_write_wait(struct store *s, int (*run)(struct tx *, void *), void *ctx);

/* Jobs: work that outlives its request. One that is due is claimed by one worker at a time, and the jobs of a subject run
 * one after the other, in the order in which they were added. The fence grows with each claim: what a worker that has lost
 * its claim would save is refused. A job that is done is gone; one that failed stays, with its error. */
/* No two jobs of a subject run at once, and they run in the order of their coming; but one that waits for another attempt
 * does not hold up those of this kind: what takes rights away is not to wait for a change that fails. */
#define JOB_PASSES "access"
struct job {
	struct str id, kind, subject; /* subject empty: runs beside any other */
	struct str args;              /* JSON object */
	struct str progress, error;   /* for people, or empty */
	struct str tenant; /* the organization whose work it is; empty: by the subject, or the service's own */
	struct str host;   /* the node that must run it, where it is work on that host; empty: any */
	int64_t step, attempt, due_ms, fence, created_ms;
	bool running, failed;
};
/* With a new id; sets kind, subject, args, host and due_ms. The workers are woken by the commit. */
must_check int tx_job_add(struct tx *tx, const struct job *j);
/* The same, unless one of the kind waits for the subject already: that one is made due at j->due_ms, if that is sooner,
 * and what it told of its progress, which was of what was wanted before, is forgotten. */
must_check int tx_job_ensure(struct tx *tx, const struct job *j);
/* The subject's jobs, of whatever kind, are work on this node's host: no other node gets those that are added from now on.
 * Nothing unless store_binds_jobs() has said that work is tied to a host, and several processes share the store. */
must_check int tx_jobs_bind(struct tx *tx, struct str subject);
must_check int tx_jobs_unbind(struct tx *tx, struct str subject);
void store_binds_jobs(struct store *s, bool binds);
/* The next job that is due; -ENOENT when there is none. None of the tenants in `skip`: ids with a comma before, after and
 * between them; or empty. */
must_check int tx_job_claim(struct tx *tx, struct arena *a, struct str owner, struct str skip, int64_t now_ms,
                            int64_t lease_ms, struct job *ret_job);
/* When the next job that could be claimed is due; -ENOENT when there is none. On a reader. */
must_check int tx_job_next(struct tx *tx, struct str skip, int64_t *ret_due_ms);
/* By the holder of the claim; -ESTALE when it has lost it. save keeps the claim; release puts the job back in line for
 * j->due_ms; finish takes it away; fail keeps it as failed. Step, attempt, args, progress and error are those of `j`. */
must_check int tx_job_save(struct tx *tx, const struct job *j);
must_check int tx_job_release(struct tx *tx, const struct job *j);
must_check int tx_job_finish(struct tx *tx, const struct job *j);
must_check int tx_job_fail(struct tx *tx, const struct job *j);
/* The subject's oldest job that is not finished, or else its last failed one. */
must_check int tx_job_of(struct tx *tx, struct arena *a, struct str subject, struct job *ret_job);
/* The same among the subject's jobs of one kind. */
must_check int tx_job_find(struct tx *tx, struct arena *a, const char *kind, struct str subject, struct job *ret_job);
/* Failed jobs of a subject, or (subject empty) those from before a time, are forgotten. */
must_check int tx_jobs_forget(struct tx *tx, struct str subject, int64_t before_ms);
/* Jobs of a subject that wait, of one kind, are taken back. */
must_check int tx_jobs_cancel(struct tx *tx, const char *kind, struct str subject);
/* At the start, by the process that owns the store: claims of processes that are gone are given back. */
must_check int tx_jobs_recover(struct tx *tx, int64_t *ret_count);
/* Jobs that wait or run. */
must_check int tx_job_count(struct tx *tx, int64_t *ret_count);
/* All jobs, by kind and state ("queued", "running", "failed"). */
struct job_tally {
	struct str kind, state;
	int64_t count;
};
must_check int tx_job_tally(struct tx *tx, struct arena *a, struct job_tally **ret_list, size_t *ret_count);
/* Called on the store's thread after each commit that may have made a job claimable. Must be quick. NULL: none any more,
 * but a call may be under way until the next write is done. */
void store_on_jobs(struct store *s, void (*wake)(void *ctx), void *ctx);

/* First answers to POSTs with an Idempotency-Key, kept for a day. `fingerprint` is a hash of what was asked. A put
 * under a key that has an answer is -EEXIST. */
struct stored_answer {
	struct str fingerprint;
	struct str answer; /* opaque to the store: sealed by the caller */
};
must_check int tx_answer_get(struct tx *tx, struct arena *a, struct str caller, struct str key,
                             struct stored_answer *ret);
must_check int tx_answer_put(struct tx *tx, struct str caller, struct str key, const struct stored_answer *answer);

/* Operator's limits. scope empty: every instance of the set. set "*": all sets. */
struct limit_override {
	struct str set, scope;
	unsigned capacity, refill;
};
must_check int tx_overrides(struct tx *tx, struct arena *a, struct limit_override **ret_list, size_t *ret_count);
must_check int tx_override_put(struct tx *tx, const struct limit_override *o);
must_check int tx_override_delete(struct tx *tx, struct str set, struct str scope);
/* Changes with each commit of any process; for polling. */
uint64_t store_data_version(struct tx *reader);

/* Everything gone, as after the migrations (the test control's reset). */
must_check int tx_wipe(struct tx *tx);

/* A consistent copy of a store that may be in use, with progress(done, total) now and then. */
must_check int store_backup(const char *data_dir, const char *file, void (*progress)(int done, int total));
/* Copies all of a store (sqlite:PATH, a data directory, or a PostgreSQL URL) into an empty one, which is made where it can be,
 * or goes on with such a copy that was broken off; then compares the two, row by row. The source must not be in use: one that
 * a service runs on is refused. Faults are told on stderr. */
typedef void store_copy_progress(void *ctx, const char *what, int64_t done, int64_t total);
must_check int store_copy(const char *from, const char *to, store_copy_progress *progress, void *ctx,
                          int64_t *ret_rows);
/* Verifies a store (by its path, directory or URL) or a copy: integrity, counters against documents, lists dense, references point to something. Writes
 * each fault to `out`; returns the number of faults, or negative when it cannot be read. */
must_check int store_check(const char *path, FILE *out);

/* Whether the last write found no room. It is tried again each second, so that this ends by itself when there is. */
bool store_is_full(const struct store *s);

/* Begins the slow check of everything that is kept, with a pause of so many seconds between two passes; 0: none. */
must_check int store_watch(struct store *s, unsigned seconds);
/* How often something damaged was met, and what was first; 0 when nothing is, or when a pass over everything has found no
 * more. */
uint64_t store_damage(const struct store *s, char *ret_what, size_t size);

struct store_stats {
	uint64_t writes, commits, failed, queue_depth, reads, passes; /* passes: of the slow check */
	int64_t commit_micros;                                        /* sum */
};
void store_stats(const struct store *s, struct store_stats *ret_stats);

#endif
