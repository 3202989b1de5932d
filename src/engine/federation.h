/* Federated database instances: an SQL endpoint of a project's own, that reads its clusters, its archives and files
 * in stores together, and changes none of them.
 *
 * What an instance shall be is given whole, each time: apply() brings it there from whatever is there, so all that
 * the service has to remember is what is wanted. The storage configuration is checked before it comes here: its
 * names are there, its paths and patterns can be read (engine/federation_path.h), its clusters and archives are the
 * project's own. What a store holds is not known before a query asks; a store that fails then fails that query,
 * with a sentence.
 *
 * An instance lives on one host. All functions block, on that host, and are called by job threads or workers, never
 * on a loop; those that say "quick" answer from memory. Each may be repeated after a crash. For one instance, one
 * of apply() and destroy() at a time. */
#ifndef STEWARD_ENGINE_FEDERATION_H
#define STEWARD_ENGINE_FEDERATION_H

#include "engine/access.h"
#include "engine/core.h"
#include "engine/lake.h"
#include "objects/objects.h"

enum federation_store { STORE_CLUSTER, STORE_S3, STORE_AZURE, STORE_GCS, STORE_HTTP, STORE_ARCHIVES };

/* A node of a cluster that another host has. */
struct engine_federation_node {
	const char *address;
	unsigned port;
};

/* Where data comes from. Pointers of all of these are borrowed for the call; NULL where nothing was said. */
struct engine_federation_store {
	const char *name; /* of the instance's stores */
	enum federation_store kind;
	const char *region;
	/* Clusters: one of this project. Its nodes are the engine's to find, where this host has it; else they are
	 * here. */
	const char *cluster_id, *cluster_name;
	const struct engine_federation_node *nodes;
	size_t node_count;
	bool secondary; /* a standby answers, if there is one */
	/* Objects. `endpoint`: of Azure, the service's address ("https://acct.blob.core.windows.net"). */
	const char *bucket, *prefix, *delimiter, *endpoint;
	bool is_public;      /* read without credentials */
	const char *role_id; /* else by those that engine_federation_outside.keys() gives for it */
	/* HTTP: where a source names none. */
	const char *const *urls;
	size_t url_count;
	const char *format; /* ".csv.gz" */
	bool insecure;      /* certificates of its servers are not verified */
};

/* One source of a table: what is read in a store. */
struct engine_federation_source {
	size_t store; /* its place in the instance's list */
	/* Clusters: a table, or all whose names fit. "sales.orders" is one of another schema than public. */
	const char *database, *table, *database_pattern, *table_pattern;
	/* Objects: which, below the store's prefix, and what their names say (federation_path_parse() reads it). */
	const char *path;
	const char *format;      /* ".parquet"; NULL: each object's name tells */
	const char *const *urls; /* HTTP */
	size_t url_count;
	const struct engine_lake *archive; /* archives: id, cluster_id, group_id, region, database, table */
	const char *provenance;            /* a column of this name tells where each row comes from */
	bool insecure;
};

struct engine_federation_table {
	const char *database, *name; /* "*": a table for each that the sources have, by their own names */
	const struct engine_federation_source *sources;
	size_t source_count;
	unsigned wildcard_max; /* so many of them at most */
};

/* A view: a pipeline of the JSON expression language over a table of the same database. */
struct engine_federation_view {
	const char *database, *name, *source;
	const char *pipeline; /* JSON: [{"$match": ...}, {"$project": ...}] */
};

/* Bytes that queries may read from stores. The periods are those of the calendar, in UTC: days from 0:00, weeks from
 * Monday, months from the first. */
enum federation_span { SPAN_QUERY, SPAN_DAY, SPAN_WEEK, SPAN_MONTH };
#define FEDERATION_SPANS 4

struct engine_federation_limit {
	enum federation_span span;
	uint64_t bytes;
	/* At the bound new queries are refused. kill: and those that run end. Of SPAN_QUERY: the query ends,
	 * always. */
	bool kill;
	bool project; /* of all instances of the project on this host together */
};

/* An instance as it shall be. */
struct engine_federation {
	const char *id; /* 24 hexadecimal digits, never used for another */
	const char *group_id, *name;
	const char *host_name;        /* that clients know it by; the certificate is for it */
	const char *ca_cert, *ca_key; /* the project's certificate authority, in PEM */
	const struct engine_federation_store *stores;
	size_t store_count;
	const struct engine_federation_table *tables;
	size_t table_count;
	const struct engine_federation_view *views;
	size_t view_count;
	/* Databases that are there though nothing is in them too. */
	const char *const *databases;
	size_t database_count;
	const struct engine_federation_limit *limits;
	size_t limit_count;
	int64_t generation; /* rises with each change; observe() tells which one is in force */
};

/* As it is. */
struct engine_federation_status {
	bool exists, running;
	char address[IP_TEXT]; /* where it listens on this host */
	unsigned port;
	int64_t generation; /* in force; 0: none yet */
	int64_t started_ms;
	unsigned ends; /* how often it has ended by itself */
};

/* Bytes that its queries have read from stores, in the periods that now is in; of SPAN_QUERY: the most that any query
 * of this month has read. Counted durably: neither an end of the endpoint nor one of the service loses any. */
struct engine_federation_used {
	uint64_t bytes[FEDERATION_SPANS], project[FEDERATION_SPANS];
	uint64_t queries, refused; /* of this month; refused: by a limit, before or while they ran */
};

/* A query that is over, for the log. */
struct engine_federation_query {
	int64_t at_ms, took_ms;
	const char *user, *client, *database, *statement; /* statement: cut at 8 KB, without its literals */
	const char *id;
	uint64_t bytes, rows, files; /* read from stores; returned; opened */
	const char *fault;           /* NULL: it succeeded */
	bool limited;                /* a limit refused or ended it */
};
/* Other than 0 ends the reading with that. */
typedef int engine_federation_visit(void *ctx, const struct engine_federation_query *q);

/* What the engine asks of the service while queries run; from any of its threads. */
struct engine_federation_outside {
	/* Credentials of a project's role, such as hold for some minutes more; the caller's then, on the heap. -EACCES
	 * and the like, as provider_credentials_get(): *ret_why lives until the thread's next call. */
	int (*keys)(void *ctx, const char *group_id, const char *role_id, struct objects_keys *ret_keys,
	            const char **ret_why);
	void *ctx;
};

/* Errors beside the usual: -EINVAL: it cannot be so, however often it is tried; -EAGAIN: not now. *ret_why: static
 * or in the arena. Times are the service's clock. */
struct engine_federation_ops {
	unsigned stores; /* bits (1u << STORE_...): kinds that it can read. The API refuses others */
	bool views;      /* likewise */
	/* Whether this service can have instances at all; *ret_why: what to do about it where not. Quick. */
	int (*can)(struct engine *e, struct arena *a, const char **ret_why);
	/* Once, after start() and before anything else here. It outlives the engine. */
	void (*bind)(struct engine *e, const struct engine_federation_outside *outside);
	/* Makes, starts and changes it, until what is wanted is in force: stores, tables, limits, and of `access` the
	 * users with their rights and passwords, client_cas, directory, networks and host_names, as for clusters. Who
	 * was taken out is cut off. What takes long goes on by itself: -EAGAIN says when to call again (see
	 * engine_progress). ENGINE_PARTLY: it is in force but for what *ret_why says. */
	int (*apply)(struct engine *e, const struct engine_federation *want, const struct engine_access *access,
	             struct engine_progress *progress, struct arena *a, const char **ret_why);
	/* Limits alone, at once, without a new start. -ENOENT: there is no such instance (yet). */
	int (*bound)(struct engine *e, const char *id, const struct engine_federation_limit *limits, size_t count);
	/* Stops the endpoint and keeps all that is known of it, until apply(). 0 too when it does not run. */
	int (*pause)(struct engine *e, const char *id);
	/* Leaves nothing behind, logs and counts included; *progress as of apply(). 0 too when there is nothing. */
	int (*destroy)(struct engine *e, const char *id, struct engine_progress *progress, struct arena *a,
	               const char **ret_why);
	/* Quick. Of one that is not there: exists is false. */
	int (*observe)(struct engine *e, const char *id, struct engine_federation_status *ret_status);
	/* Quick. -ENOENT: there is no such instance (yet). */
	int (*used)(struct engine *e, const char *id, struct engine_federation_used *ret_used);
	/* Queries that began from from_ms on and before to_ms, oldest first; those of the last 30 days are kept,
	 * and no more than 100,000. Bounded in memory. 0 too when there is no such instance. */
	int (*queries)(struct engine *e, const char *id, int64_t from_ms, int64_t to_ms, engine_federation_visit *visit,
	               void *ctx, struct arena *a);
	/* The instances that this host has, whoever asked for them: ids, in the arena. */
	int (*known)(struct engine *e, struct arena *a, const char *const **ret_ids, size_t *ret_count);
};

/* --- common.c */
/* When the period began that this moment is in, in UTC; of SPAN_QUERY: the month. */
int64_t federation_span_begin(enum federation_span span, int64_t ms);

#endif
