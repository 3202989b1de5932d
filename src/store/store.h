/* The store. It keeps documents by (kind, id), listed by (kind, parent) in the order of their creation, with an
 * optional name that is unique within the parent; references to look up an id by another unique value; counters;
 * events; jobs.
 *
 * Reads run in the calling thread, on its own reader. Writes are functions that the store runs in a transaction:
 * several share one flush, each is all or nothing, and done() is called only when it is on disk. */
#ifndef STEWARD_STORE_STORE_H
#define STEWARD_STORE_STORE_H

#include "base/arena.h"
#include "base/fair.h"
#include "base/str.h"

#include <jansson.h>
#include <stdio.h>

struct store;
struct tx; /* a reader's or a writer's view */

struct doc {
	struct str kind, id, parent, name; /* name empty: none */
	int64_t seq, rev, created_ms;
	struct str body;   /* JSON object, final form without links */
	struct str secret; /* never shown: hashes, encrypted values; empty: none */
};

/* One that is made now, with a new id. The id is the arena's, the rest borrowed. */
struct doc doc_new(struct arena *a, const char *kind, struct str parent, struct str name, struct str body);

struct store_options {
	const char *url; /* "sqlite:PATH", "postgresql://..."; NULL: the embedded store in data_dir */
	const char *data_dir;
	unsigned batch_max; /* writes that may share one flush; 0: default (256) */
	const char *node;   /* unique name of this process among those that share the store; NULL: made up */
	bool unfinished;    /* also opens a store into which a copy is not finished */
};

/* Opens, migrates, starts the writer. On failure: a message on stderr, negative. */
must_check int store_open(const struct store_options *o, struct store **ret_store);
/* Finishes queued writes. All readers must be freed before. Accepts NULL. */
void store_close(struct store *s);

/* Whether each read is a network round trip: then no loop may read. */
bool store_is_remote(const struct store *s);
bool store_url_is_remote(const char *url);

/* The name of this node among those that share the store; empty when only this process uses the store. */
const char *store_node(const struct store *s);

/* A reader for the calling thread only. NULL, after a message on stderr, when it cannot be opened. */
struct tx *store_reader(struct store *s);
void store_reader_free(struct tx *tx);
/* All reads between the two calls see one snapshot, which includes every write of this process that was done before. */
void tx_begin_read(struct tx *tx);
void tx_end_read(struct tx *tx);
/* Of a reader, between the two calls: a number that is the same only while all that is read stays the same, also in a
 * later snapshot. 0: not known, because nothing was read yet, or because the store cannot tell. Cheap. */
uint64_t tx_snapshot(const struct tx *tx);
/* The reader will not be used for a while: releases the snapshot that it may have kept for the next read. */
void tx_rest(struct tx *tx);

/* Reads return 0; -ENOENT; -EIO (logged); -ENOTCONN: the store cannot be reached, try again in a second; -ENOSPC: its
 * disk is full. Results are copied into the arena. */
must_check int tx_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc);
must_check int tx_get_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                              struct doc *ret_doc);
/* A document that one of several callers needs, or one of several that a write needs. */
struct doc_wanted {
	struct arena *arena; /* the caller's: the document is copied into it */
	const char *kind;
	struct str id;
	int result; /* as tx_get()'s */
	struct doc doc;
};
/* Reads them all in one round trip, or one for every few dozen, each as tx_get() would in a write, or outside of
 * tx_begin_read() and tx_end_read(). For a write whose reads grow with its request: on PostgreSQL each tx_get() would
 * be a round trip, for which the writes of all tenants wait. */
void tx_get_many(struct tx *tx, struct doc_wanted *const *list, size_t count);
/* A question that a write will ask soon: tx_get() by kind and id, tx_get_by_name() by kind, parent and name, or
 * tx_count() by kind and parent. */
struct doc_question {
	const char *kind;
	struct str id, parent, name;
	bool count;
};
/* In a write whose questions grow with its request: asks them in a few round trips where the store is remote, and the
 * write's own calls then find the answers; with a local store nothing happens. A fault shows with the question
 * itself. */
void tx_read_ahead(struct tx *tx, const struct doc_question *list, size_t count);
/* waits() is called whenever the reader is about to wait for a remote store. */
void tx_on_wait(struct tx *tx, void (*waits)(void *ctx), void *ctx);
/* Documents `offset` to `offset + limit` of the list, in order. Cheap at any depth. */
must_check int tx_list(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset,
                       int64_t limit, struct doc **ret_docs, size_t *ret_count);
/* The same for an answer that is made of their text: each is shown with its kind, id, parent and body, which hold until
 * `show` returns; it must not read from the store. A negative number from it ends the list and is returned. */
typedef int doc_show(void *ctx, const struct doc *d);
must_check int tx_list_each(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset,
                            int64_t limit, doc_show *show, void *ctx);
/* All documents of the list: for lists that are short by a rule. */
must_check int tx_list_all(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct doc **ret_docs,
                           size_t *ret_count);
/* Documents of a kind with any parent, ordered by parent and then by list position: at most `limit`, starting after
 * (parent, seq); ("", -1) is before all. For walks over all of them: the cost depends only on the documents of this
 * kind. */
must_check int tx_walk(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t seq, int64_t limit,
                       struct doc **ret_docs, size_t *ret_count);
/* All of them in that order, a page at a time: all at once may be more than there is room for. The document is the
 * visitor's for the call only; a negative number from it ends the walk and is returned. */
typedef int doc_visit(struct tx *tx, void *ctx, const struct doc *d);
must_check int tx_walk_all(struct tx *tx, const char *kind, doc_visit *visit, void *ctx);
/* All of a list in its order, or (parent NULL) of a kind in none, without their texts: which there are, what they are
 * called, which have changed. */
must_check int tx_heads(struct tx *tx, struct arena *a, const char *kind, const struct str *parent,
                        struct doc **ret_docs, size_t *ret_count);
must_check int tx_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count);
/* The id for a unique value ("api_key_public" / "abcdefgh"). */
must_check int tx_ref_get(struct tx *tx, struct arena *a, const char *kind, struct str value, struct str *ret_id);
/* Small settings of the service: the signing key's id, the bootstrap's ids. */
must_check int tx_meta_get(struct tx *tx, struct arena *a, const char *key, struct str *ret_value);

/* Writes, inside a write only. -EEXIST: the id, name or reference is taken. -ENOENT: there is none. -ESTALE: d->rev is
 * not 0 and not the stored revision. Insert sets rev 1 and seq; update increments rev and keeps seq, parent and
 * created_ms. */
must_check int tx_insert(struct tx *tx, const struct doc *d);
must_check int tx_update(struct tx *tx, const struct doc *d);
must_check int tx_delete(struct tx *tx, const char *kind, struct str id);
/* All documents of the list, at once. */
must_check int tx_delete_list(struct tx *tx, const char *kind, struct str parent);
/* The one document of the name below the parent has this body from now on, or (no body) is not there. */
must_check int tx_set_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                              struct str body);
/* Sets one field of a document's body, taking the value. */
must_check int tx_set_field(struct tx *tx, struct arena *a, const char *kind, struct str id, const char *field,
                            json_t *value);
/* Moves a document to the end of another parent's list, with the name and body of `d`; d->parent is the new parent.
 * -EEXIST: the name is taken there. */
must_check int tx_move(struct tx *tx, const struct doc *d);
must_check int tx_ref_put(struct tx *tx, const char *kind, struct str value, struct str id);
must_check int tx_ref_delete(struct tx *tx, const char *kind, struct str value);
must_check int tx_meta_put(struct tx *tx, const char *key, struct str value);

/* For the rotation of the service's key (rotation.h). The next documents of all kinds after (kind, id), which may be
 * empty: their kind, id and secret alone. */
must_check int tx_secrets(struct tx *tx, struct arena *a, struct str kind, struct str id, int64_t limit,
                          struct doc **ret_docs, size_t *ret_count);
/* The document has another secret, if it still has that of `d`, and nothing else about it changes: no revision, no
 * ETag. Where it has not, nothing happens. */
must_check int tx_secret_replace(struct tx *tx, const struct doc *d, struct str secret);
/* The ends of the log of events are signed anew. */
must_check int tx_events_sign(struct tx *tx);

struct event {
	struct str id, org_id, group_id, type, body;
	int64_t created_ms;
	struct str cluster, raw; /* name of the cluster that it is about; further fields, as a JSON object; or empty */
	bool for_org, for_group; /* shown in the list of the organization, of the project */
	int64_t seq;             /* of a stored event: its place among all, without gaps, in the order of commits */
};
must_check int tx_event_add(struct tx *tx, const struct event *e);

/* Selects events of an organization or project. */
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
/* Events of all organizations after that place, oldest first, at most `limit`. */
must_check int tx_event_since(struct tx *tx, struct arena *a, int64_t seq, int64_t limit, struct event **ret_events,
                              size_t *ret_count);
/* The place of the newest event; 0 when there is none. */
must_check int tx_event_newest(struct tx *tx, int64_t *ret_seq);
/* Called on the store's thread after each commit of this process that has added events. Must be quick. NULL: none, but
 * a call may still be running until the next write is done. */
void store_on_events(struct store *s, void (*wake)(void *ctx), void *ctx);
/* Deletes the oldest events, at most `limit`, that are older than that time. The chain of the rest stays valid. */
must_check int tx_events_prune(struct tx *tx, int64_t before_ms, int64_t limit, int64_t *ret_count);

/* Attaches a pointer to the transaction while a write runs, for functions that get only the transaction; NULL removes
 * it. The store does not use it. */
void tx_attach(struct tx *tx, void *what);
void *tx_attached(const struct tx *tx);

/* Call it when rights have changed: caches of principals are stale from the commit on. */
void tx_touch_identity(struct tx *tx);
/* Grows with each such commit, of this process or (within a second) of another. Cheap. */
uint64_t store_identity_generation(const struct store *s);
/* The generation that the reads of this tx are sure to include: the one at the start of its snapshot, or the current
 * one. Cache entries made from its reads must be stored under this generation. */
uint64_t tx_identity_generation(const struct tx *tx);

/* One write. run() may be called more than once (a retry starts from the beginning) and returns 0 to commit or negative
 * to undo. done() is called on the store's thread with that result; or with -EIO when the flush failed, -ENOTCONN when
 * the store could not be reached, -ENOSPC when its disk is full. */
struct write {
	int (*run)(struct tx *tx, void *ctx);
	void (*done)(void *ctx, int result);
	void *ctx;
	struct fair_item
	        item;       /* .key: whose place in the queue it takes; 0: the service's own. The rest is the store's */
	struct write *next; /* the store's own */
};
/* Queues a write. False when the queue, or that key's share of it, is full (the caller answers 503). */
must_check bool store_write(struct store *s, struct write *w);
/* The same, and waits for the result, and for room in the queue. Not on a loop, nor inside run() or done(). -ESHUTDOWN:
 * closing. */
must_check int store_write_wait(struct store *s, int (*run)(struct tx *, void *), void *ctx);

/* Jobs: work that outlives its request. One worker at a time claims a due job, and the jobs of a subject run one after
 * the other, in the order in which they were added. The fence grows with each claim: a worker that has lost its claim
 * can save nothing. A finished job is deleted; a failed one stays, with its error. */
/* A job of this kind does not wait for an earlier job of the subject that is waiting for its next attempt: taking
 * rights away must not be delayed by a change that fails. */
#define JOB_PASSES "access"
struct job {
	struct str id, kind, subject; /* subject empty: runs in parallel with any other */
	struct str args;              /* JSON object */
	struct str progress, error;   /* for people, or empty */
	struct str tenant; /* the organization that the work is for; empty: the subject's, or the service's own */
	struct str host;   /* the node that must run it, for work on one host; empty: any node */
	int64_t step, attempt, due_ms, fence, created_ms;
	bool running, failed;
};
/* Adds a job with a new id. Uses kind, subject, args, host and due_ms of `j`. The commit wakes the workers. */
must_check int tx_job_add(struct tx *tx, const struct job *j);
/* The same, unless a job of the kind is already waiting for the subject. That one becomes due at j->due_ms, if that is
 * sooner, and its progress is cleared, because it described what was wanted before. */
must_check int tx_job_ensure(struct tx *tx, const struct job *j);
/* Binds all jobs of the subject that are added from now on to the host of that node (empty: of this one): no other node
 * gets them. Does nothing unless store_binds_jobs() has said that work is tied to a host, and several processes share
 * the store. */
must_check int tx_jobs_bind(struct tx *tx, struct str subject, struct str node);
/* The node that they are bound to. -ENOENT: to none. */
must_check int tx_jobs_bound(struct tx *tx, struct arena *a, struct str subject, struct str *ret_node);
must_check int tx_jobs_unbind(struct tx *tx, struct str subject);
/* After a copy: makes the jobs such as this store would have added them. PostgreSQL: those of bound subjects, and all
 * on backups, that have no host get this one. SQLite: the schedules of single nodes go, because its one process has its
 * own. */
must_check int tx_jobs_settle(struct tx *tx, struct str host);
/* The same as tx_jobs_bind(), whoever calls and whatever was bound before. */
must_check int tx_jobs_rebind(struct tx *tx, struct str subject, struct str node);
void store_binds_jobs(struct store *s, bool binds);
/* Claims the next due job; -ENOENT when there is none. `skip` excludes tenants and kinds: ids and names with a comma
 * before, after and between them; or empty. */
must_check int tx_job_claim(struct tx *tx, struct arena *a, struct str owner, struct str skip, int64_t now_ms,
                            int64_t lease_ms, struct job *ret_job);
/* When the next job that could be claimed is due; -ENOENT when there is none. On a reader. */
must_check int tx_job_next(struct tx *tx, struct str skip, int64_t *ret_due_ms);
/* For the holder of the claim; -ESTALE when it has lost the claim. save keeps the claim; release queues the job again
 * for j->due_ms; finish deletes it; fail keeps it as failed. Step, attempt, args, progress and error are taken from
 * `j`. */
must_check int tx_job_save(struct tx *tx, const struct job *j);
must_check int tx_job_release(struct tx *tx, const struct job *j);
must_check int tx_job_finish(struct tx *tx, const struct job *j);
must_check int tx_job_fail(struct tx *tx, const struct job *j);
/* The subject's oldest job that is not finished, or else its last failed one. */
must_check int tx_job_of(struct tx *tx, struct arena *a, struct str subject, struct job *ret_job);
/* The same among the subject's jobs of one kind. */
must_check int tx_job_find(struct tx *tx, struct arena *a, const char *kind, struct str subject, struct job *ret_job);
/* Deletes the failed jobs of a subject, or (subject empty) all that failed before a time. */
must_check int tx_jobs_forget(struct tx *tx, struct str subject, int64_t before_ms);
/* Deletes the waiting jobs of one kind of a subject. */
must_check int tx_jobs_cancel(struct tx *tx, const char *kind, struct str subject);
/* The clock was put back by `by_ms` (0: that is not known) to `now_ms`: what was to be due before `until_ms`, and what
 * was added later than now, is due as much sooner, but not before now. Of jobs that other nodes must run nothing is
 * changed. */
must_check int tx_jobs_put_back(struct tx *tx, int64_t now_ms, int64_t until_ms, int64_t by_ms);
/* At the start of a process: frees the claims of processes that are gone. SQLite: all claims, because one process owns
 * the file. PostgreSQL: those of this node's earlier run and of dead nodes. */
must_check int tx_jobs_recover(struct tx *tx, int64_t *ret_count);
/* Jobs that are waiting or running. */
must_check int tx_job_count(struct tx *tx, int64_t *ret_count);
/* The number of jobs by kind and state ("queued", "running", "failed"). */
struct job_tally {
	struct str kind, state;
	int64_t count;
};
must_check int tx_job_tally(struct tx *tx, struct arena *a, struct job_tally **ret_list, size_t *ret_count);
/* Called on the store's thread after each commit that may have made a job claimable. Must be quick. NULL: none, but a
 * call may still be running until the next write is done. */
void store_on_jobs(struct store *s, void (*wake)(void *ctx), void *ctx);

/* First answers to POSTs with an Idempotency-Key, kept for a day. `fingerprint` is a hash of the request. Storing under
 * a key that already has an answer is -EEXIST. */
struct stored_answer {
	struct str fingerprint;
	struct str answer; /* opaque to the store: sealed by the caller */
};
must_check int tx_answer_get(struct tx *tx, struct arena *a, struct str caller, struct str key,
                             struct stored_answer *ret);
must_check int tx_answer_put(struct tx *tx, struct str caller, struct str key, const struct stored_answer *answer);

/* The processes that share the store, as they have told it last: none where only one can use it. */
struct store_node {
	struct str id, usage; /* usage: what store_node_usage() was told there */
	int64_t age_ms;       /* since it was last heard, by the store's clock */
};
#define NODE_DEAD_MS 5000 /* one that was not heard for so long has lost its jobs */
must_check int tx_nodes(struct tx *tx, struct arena *a, struct store_node **ret_list, size_t *ret_count);
/* What this node tells the others of itself, with its next sign of life: a short JSON object. Any thread. */
void store_node_usage(struct store *s, struct str usage);

/* The operator's limits. scope empty: every instance of the set. set "*": all sets. */
struct limit_override {
	struct str set, scope;
	unsigned capacity, refill;
};
must_check int tx_overrides(struct tx *tx, struct arena *a, struct limit_override **ret_list, size_t *ret_count);
must_check int tx_override_put(struct tx *tx, const struct limit_override *o);
must_check int tx_override_delete(struct tx *tx, struct str set, struct str scope);
/* Changes with each commit of any process; for polling. */
uint64_t store_data_version(struct tx *reader);

/* Deletes everything, as after the migrations (the test control's reset). */
must_check int tx_wipe(struct tx *tx);

/* A consistent copy of a store that may be in use, with progress(done, total) now and then. */
must_check int store_backup(const char *data_dir, const char *file, void (*progress)(int done, int total));
/* Copies a whole store (sqlite:PATH, a data directory, or a PostgreSQL URL) into an empty one, which is created if
 * possible, or continues an interrupted copy; then compares the two, row by row, and marks the source as moved, which
 * store_open() refuses from there on. A source that a service is using is refused. Faults are reported on stderr. */
struct store_copy_options {
	void (*progress)(void *ctx, const char *what, int64_t done, int64_t total);
	/* Or NULL. Once all is compared, and before anybody can use the target: makes it what a store of its kind needs
	 * to be. May be called again after an interruption. */
	int (*settle)(void *ctx, struct store *target);
	void *ctx;
};
must_check int store_copy(const char *from, const char *to, const struct store_copy_options *options,
                          int64_t *ret_rows);
/* The operator's word that a store that was moved is used again. Faults are reported on stderr. */
must_check int store_reopen(const char *place);
/* Verifies a store (by its path, directory or URL) or a copy: integrity, counters against documents, lists without
 * gaps, references that point to something. Writes each fault to `out`; returns the number of faults, or negative when
 * it cannot be read. */
must_check int store_check(const char *path, FILE *out);

/* Whether the last write failed because the disk is full. The store tries again each second, so this ends by itself. */
bool store_is_full(const struct store *s);

/* Starts the slow check of everything in the store, with a pause of so many seconds between two passes; 0: none. */
must_check int store_watch(struct store *s, unsigned seconds);
/* How often damage was met, and the first finding; 0 when there is none, or when a complete pass has found no more. */
uint64_t store_damage(const struct store *s, char *ret_what, size_t size);

/* How long batches took, from their first write to the end of their commit: up to so many milliseconds, and longer. */
#define STORE_BATCH_BOUNDS                         \
	{                                          \
		5, 10, 20, 50, 100, 200, 500, 1000 \
	}
#define STORE_BATCH_TIMES 9
struct store_stats {
	uint64_t writes, commits, failed, queue_depth, reads, passes; /* passes: of the slow check */
	uint64_t round_trips;                /* how often the writer waited for a remote store; 0 without one */
	int64_t commit_micros, batch_micros; /* sums */
	uint64_t batch_times[STORE_BATCH_TIMES];
};
void store_stats(const struct store *s, struct store_stats *ret_stats);

#endif
