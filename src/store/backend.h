/* What the back ends of the store share, and what each must provide: a table of functions, one for each function of
 * store.h. The list below is the only one: the table's type, the functions of store.h that call through it (store.c)
 * and the back ends' prototypes are made from it. Nothing outside src/store/ includes this. */
#ifndef STEWARD_STORE_BACKEND_H
#define STEWARD_STORE_BACKEND_H

#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

/* Answers to repeated POSTs are kept for a day. */
#define ANSWER_MS 86400000LL
/* Key in meta: grows with each change of identities by any process. tx_wipe() keeps it. */
#define META_IDENTITY "store.identity"
/* Key in meta: written to test whether the disk has room. */
#define META_ROOM "store.room"

/* The organization that a job belongs to. The job's subject ends with the id of a project, or of something in a
 * project; `id` is the SQL for those 24 characters. */
#define JOB_TENANT(id)                                                                                               \
	"(SELECT CASE d.kind WHEN 'project' THEN d.parent ELSE (SELECT p.parent FROM doc p WHERE p.kind = 'project'" \
	" AND p.id = d.parent) END FROM doc d WHERE d.kind IN ('project', 'cluster', 'flex_cluster',"                \
	" 'network_container', 'network_peer', 'database_user', 'provider_role') AND d.id = " id " LIMIT 1)"

/* Kind of the references from a subject to the node that must run its jobs. */
#define REF_HOST "job_host"

/* Lists are counted in blocks, so that a deep page is found without walking the documents before it: level 0 counts
 * runs of 512 positions, level 1 runs of 512 level-0 blocks. The count of the first block is list.head, so that a small
 * list (nearly all are small) costs one row. */
#define BLOCK_BITS 9
#define BLOCK_SIZE (1 << BLOCK_BITS)
#define BLOCK_LEVELS 2

/* X(name, parameters, arguments): int tx_name(). */
#define STORE_OPS(X)                                                                                                 \
	X(get, (struct tx * tx, struct arena * a, const char *kind, struct str id, struct doc *ret),                 \
	  (tx, a, kind, id, ret))                                                                                    \
	X(get_by_name,                                                                                               \
	  (struct tx * tx, struct arena * a, const char *kind, struct str parent, struct str name, struct doc *ret), \
	  (tx, a, kind, parent, name, ret))                                                                          \
	X(list,                                                                                                      \
	  (struct tx * tx, struct arena * a, const char *kind, struct str parent, int64_t offset, int64_t limit,     \
	   struct doc **ret, size_t *ret_n),                                                                         \
	  (tx, a, kind, parent, offset, limit, ret, ret_n))                                                          \
	X(walk,                                                                                                      \
	  (struct tx * tx, struct arena * a, const char *kind, struct str parent, int64_t seq, int64_t limit,        \
	   struct doc **ret, size_t *ret_n),                                                                         \
	  (tx, a, kind, parent, seq, limit, ret, ret_n))                                                             \
	X(heads,                                                                                                     \
	  (struct tx * tx, struct arena * a, const char *kind, const struct str *parent, struct doc **ret,           \
	   size_t *ret_n),                                                                                           \
	  (tx, a, kind, parent, ret, ret_n))                                                                         \
	X(count, (struct tx * tx, const char *kind, struct str parent, int64_t *ret), (tx, kind, parent, ret))       \
	X(ref_get, (struct tx * tx, struct arena * a, const char *kind, struct str value, struct str *ret),          \
	  (tx, a, kind, value, ret))                                                                                 \
	X(meta_get, (struct tx * tx, struct arena * a, const char *key, struct str *ret), (tx, a, key, ret))         \
	X(secrets,                                                                                                   \
	  (struct tx * tx, struct arena * a, struct str kind, struct str id, int64_t limit, struct doc * *ret,       \
	   size_t * ret_n),                                                                                          \
	  (tx, a, kind, id, limit, ret, ret_n))                                                                      \
	X(secret_replace, (struct tx * tx, const struct doc *d, struct str secret), (tx, d, secret))                 \
	X(events_sign, (struct tx * tx), (tx))                                                                       \
	X(insert, (struct tx * tx, const struct doc *d), (tx, d))                                                    \
	X(update, (struct tx * tx, const struct doc *d), (tx, d))                                                    \
	X(delete, (struct tx * tx, const char *kind, struct str id), (tx, kind, id))                                 \
	X(delete_list, (struct tx * tx, const char *kind, struct str parent), (tx, kind, parent))                    \
	X(move, (struct tx * tx, const struct doc *d), (tx, d))                                                      \
	X(ref_put, (struct tx * tx, const char *kind, struct str value, struct str id), (tx, kind, value, id))       \
	X(ref_delete, (struct tx * tx, const char *kind, struct str value), (tx, kind, value))                       \
	X(meta_put, (struct tx * tx, const char *key, struct str value), (tx, key, value))                           \
	X(event_add, (struct tx * tx, const struct event *e), (tx, e))                                               \
	X(event_list,                                                                                                \
	  (struct tx * tx, struct arena * a, const struct event_filter *f, int64_t offset, int64_t limit,            \
	   struct event **ret, size_t *ret_n),                                                                       \
	  (tx, a, f, offset, limit, ret, ret_n))                                                                     \
	X(event_count, (struct tx * tx, const struct event_filter *f, int64_t *ret), (tx, f, ret))                   \
	X(event_get, (struct tx * tx, struct arena * a, struct str id, struct event * ret), (tx, a, id, ret))        \
	X(event_since,                                                                                               \
	  (struct tx * tx, struct arena * a, int64_t seq, int64_t limit, struct event * *ret, size_t * ret_n),       \
	  (tx, a, seq, limit, ret, ret_n))                                                                           \
	X(event_newest, (struct tx * tx, int64_t * ret), (tx, ret))                                                  \
	X(events_prune, (struct tx * tx, int64_t before_ms, int64_t limit, int64_t * ret),                           \
	  (tx, before_ms, limit, ret))                                                                               \
	X(job_add, (struct tx * tx, const struct job *j), (tx, j))                                                   \
	X(job_ensure, (struct tx * tx, const struct job *j), (tx, j))                                                \
	X(job_claim,                                                                                                 \
	  (struct tx * tx, struct arena * a, struct str owner, struct str skip, int64_t now_ms, int64_t lease_ms,    \
	   struct job * ret),                                                                                        \
	  (tx, a, owner, skip, now_ms, lease_ms, ret))                                                               \
	X(job_next, (struct tx * tx, struct str skip, int64_t * ret), (tx, skip, ret))                               \
	X(job_save, (struct tx * tx, const struct job *j), (tx, j))                                                  \
	X(job_release, (struct tx * tx, const struct job *j), (tx, j))                                               \
	X(job_finish, (struct tx * tx, const struct job *j), (tx, j))                                                \
	X(job_fail, (struct tx * tx, const struct job *j), (tx, j))                                                  \
	X(job_of, (struct tx * tx, struct arena * a, struct str subject, struct job * ret), (tx, a, subject, ret))   \
	X(job_find, (struct tx * tx, struct arena * a, const char *kind, struct str subject, struct job *ret),       \
	  (tx, a, kind, subject, ret))                                                                               \
	X(jobs_forget, (struct tx * tx, struct str subject, int64_t before_ms), (tx, subject, before_ms))            \
	X(jobs_cancel, (struct tx * tx, const char *kind, struct str subject), (tx, kind, subject))                  \
	X(jobs_settle, (struct tx * tx, struct str host), (tx, host))                                                \
	X(jobs_put_back, (struct tx * tx, int64_t now_ms, int64_t until_ms, int64_t by_ms),                          \
	  (tx, now_ms, until_ms, by_ms))                                                                             \
	X(jobs_recover, (struct tx * tx, int64_t * ret), (tx, ret))                                                  \
	X(job_count, (struct tx * tx, int64_t * ret), (tx, ret))                                                     \
	X(job_tally, (struct tx * tx, struct arena * a, struct job_tally * *ret, size_t * n), (tx, a, ret, n))       \
	X(answer_get,                                                                                                \
	  (struct tx * tx, struct arena * a, struct str caller, struct str key, struct stored_answer * ret),         \
	  (tx, a, caller, key, ret))                                                                                 \
	X(answer_put, (struct tx * tx, struct str caller, struct str key, const struct stored_answer *answer),       \
	  (tx, caller, key, answer))                                                                                 \
	X(overrides, (struct tx * tx, struct arena * a, struct limit_override * *ret, size_t * ret_n),               \
	  (tx, a, ret, ret_n))                                                                                       \
	X(nodes, (struct tx * tx, struct arena * a, struct store_node * *ret, size_t * ret_n), (tx, a, ret, ret_n))  \
	X(override_put, (struct tx * tx, const struct limit_override *o), (tx, o))                                   \
	X(override_delete, (struct tx * tx, struct str set, struct str scope), (tx, set, scope))                     \
	X(wipe, (struct tx * tx), (tx))

/* The progress of the slow check: which walk, and after which row. */
#define WATCH_KEYS 4
struct watch_key {
	int64_t number;
	size_t n;
	char text[2048];
};
struct watch {
	unsigned at;
	bool begun;
	struct watch_key keys[WATCH_KEYS];
	/* The last event that was checked. */
	int64_t seq;
	unsigned char hash[32];
};

/* The damage that is known; watch.c. */
struct damage {
	pthread_mutex_t lock;
	uint64_t count, passes; /* passes: complete runs of the slow check */
	char what[256];         /* the first damage; empty: none */
};
void store_damaged(struct store *s, const char *format, ...) printf_like(2, 3);
struct watcher;
void watcher_stop(struct watcher *w); /* accepts NULL */

struct store_ops {
	bool remote; /* every statement is a network round trip */
	/* Opens and migrates the store at s->path; messages go to stderr. ret_conn is the writer's connection. */
	int (*open)(struct store *s, const struct store_options *o, struct tx **ret_conn);
	void (*close)(struct store *s); /* or NULL; after the writer has stopped */
	int (*reader)(struct store *s, struct tx **ret_tx);
	void (*conn_close)(struct tx *tx); /* accepts NULL */
	void (*begin_read)(struct tx *tx);
	void (*end_read)(struct tx *tx);
	void (*rest)(struct tx *tx);
	uint64_t (*data_version)(struct tx *reader);
	uint64_t (*snapshot)(const struct tx *tx); /* or NULL: it cannot tell */
	/* NULL: documents are read one after the other. */
	void (*get_many)(struct tx *tx, struct doc_wanted *const *list, size_t count);
	/* NULL: questions are no cheaper together. */
	void (*read_ahead)(struct tx *tx, const struct doc_question *list, size_t count);
	/* Or NULL: tx_list() will do. */
	int (*list_each)(struct tx *tx, const char *kind, struct str parent, int64_t offset, int64_t limit,
	                 doc_show *show, void *ctx);
	/* The writer's thread. A batch is one transaction, each write in it can be undone alone. Of any of them,
	 * -EAGAIN: nothing of the batch was kept or ever will be, and it may be run again from the start; -ERESTART:
	 * the same, and it must be, at once, which then does not say so again. write_end(), 1: the write could not be
	 * kept, and was undone. */
	int (*batch_begin)(struct tx *tx);
	int (*write_begin)(struct tx *tx);
	int (*write_end)(struct tx *tx, bool keep);
	int (*batch_commit)(struct tx *tx);
	void (*batch_abort)(struct tx *tx);
	/* Called between batches; busy: more writes are queued. */
	void (*idle)(struct tx *tx, bool busy);
	/* Checks the next slice of a pass over everything, on its own reader. 1: continue; 0: the pass is complete;
	 * -ENOTCONN: try later. */
	int (*watch)(struct tx *tx, struct watch *w);
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define STORE_OP(name, parameters, arguments) int(*name) parameters;
	STORE_OPS(STORE_OP)
#undef STORE_OP
};

/* A connection. Each reader has one; the writer's is used by its thread only. */
struct tx {
	const struct store_ops *ops;
	struct store *store;
	bool writes;         /* the writer's */
	bool reading;        /* between tx_begin_read() and tx_end_read() */
	bool lingers;        /* the transaction of a finished read is still open */
	uint64_t seen;       /* store->commits when that transaction was opened */
	uint64_t generation; /* the identity generation when it was opened */
	bool in_write;       /* inside a write's run() */
	bool broken;         /* a statement failed, not by the caller's fault: undo the write whatever run() returns */
	bool full;           /* a statement failed because the disk is full */
	bool touched;        /* tx_touch_identity() in this batch */
	bool doubtful;       /* the batch's writes are of callers whose writes were undone before */
	bool undone;         /* the back end has had to undo changes of the last write, at a cost to the whole batch */
	bool jobs;           /* a job became claimable in this batch */
	bool events;         /* events were added in this batch */
	_Atomic uint64_t reads;
	void (*waits)(void *ctx); /* or NULL; see tx_on_wait() */
	void *waits_ctx;
	void *attached;    /* see tx_attach() */
	struct tx *next;   /* in store->readers */
	struct memo *memo; /* NULL: none yet */
	/* SQLite's. */
	struct sqlite3 *db;
	struct sqlite3_stmt **statements; /* prepared on first use */
	struct sqlite_writer *writing;    /* only the writer's connection */
	struct page *page;                /* NULL: none yet */
	/* PostgreSQL's. */
	struct pg *pg;
};

/* Behind a pointer, because statistics are read through a const store. */
struct readers {
	pthread_mutex_t lock;
	struct tx *first;
	uint64_t reads_of_freed;
};

struct writer;
struct pg_store;

struct store {
	const struct store_ops *ops;
	char *path;      /* the file's path, or the URL */
	char node[64];   /* this process's name, when several share the store */
	char usage[256]; /* see store_node_usage(); under the lock of the readers */
	struct readers *readers;
	struct writer *writer;
	_Atomic uint64_t generation, writes, commits, failed, round_trips;
	_Atomic int64_t commit_micros, batch_micros;
	_Atomic uint64_t batch_times[STORE_BATCH_TIMES];
	/* Until then, changes by other processes have been seen. Afterwards no cache of identities may be used.
	 * INT64_MAX: no other process uses the store. */
	_Atomic int64_t trusted_until_us;
	_Atomic uint64_t distrust;
	void (*_Atomic jobs_wake)(void *ctx);
	void *_Atomic jobs_ctx;
	void (*_Atomic events_wake)(void *ctx);
	void *_Atomic events_ctx;
	_Atomic bool binds_jobs;
	_Atomic bool full; /* the last write failed because the disk is full */
	struct damage *damage;
	struct watcher *watcher;
	struct pg_store *pg;
};

/* store_check() and store_backup() of each. */
must_check int sqlite_check(const char *path, FILE *out);
must_check int pg_check(const char *url, FILE *out);

extern const struct store_ops sqlite_ops, postgres_ops;

static inline void tx_count_read(struct tx *tx)
{
	/* Only one thread writes the counter; others only read it. */
	atomic_store_explicit(&tx->reads, atomic_load_explicit(&tx->reads, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

/* chain.c: computes the hash that chains an event to the one before it. */
struct event_row {
	int64_t seq;
	struct event event;
};
void event_hash(const unsigned char prev[32], const struct event_row *row, unsigned char ret_hash[32]);

/* Both ends of the chain, as stored in meta. */
#define META_CHAIN "event.chain"
#define EVENT_CHAIN_TEXT 256
struct event_chain {
	int64_t first, last;      /* numbers of the first and last stored event; without events last is first - 1 */
	unsigned char before[32]; /* the hash before the first event */
	unsigned char head[32];   /* the hash of the last */
	bool forged;              /* the key is available, and the signature was not made with it */
};
must_check bool event_chain_parse(struct str text, struct event_chain *ret_chain);
/* Signs it when the key is available. */
struct str event_chain_format(const struct event_chain *chain, char ret_text[EVENT_CHAIN_TEXT]);

/* memo.c: documents that were read in the current batch, or in the snapshot that a reader keeps. */
bool memo_get(struct tx *tx, struct arena *a, struct str kind, struct str id, struct doc *ret_doc);
void memo_put(struct tx *tx, const struct doc *d);
bool memo_has(struct tx *tx, struct str kind, struct str id);
void memo_drop(struct tx *tx, struct str kind, struct str id);
void memo_drop_list(struct tx *tx, struct str kind, struct str parent);
void memo_clear(struct tx *tx);
void memo_free(struct tx *tx);
void doc_copy(struct arena *a, const struct doc *from, struct doc *ret_doc);

/* writer.c: raises the priority of the calling thread over others of the process, or lowers it when negative; does
 * nothing where the system forbids it. */
#define WRITER_PRECEDENCE 5
void thread_precede(int by);
must_check int writer_start(struct store *s, struct tx *conn, unsigned batch_max, struct writer **ret_writer);
/* Finishes queued writes, joins the thread, closes the connection. Accepts NULL. */
void writer_stop(struct writer *w);
uint64_t writer_depth(struct writer *w);

#endif
