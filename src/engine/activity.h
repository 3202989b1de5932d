/* What sessions do and what they wait for: now, and as the samples of the last hour have seen it. */
#ifndef STEWARD_ENGINE_ACTIVITY_H
#define STEWARD_ENGINE_ACTIVITY_H

#include "engine/core.h"

#define ACTIVITY_BLOCKERS 8

/* A session that runs a statement, is within a transaction, or keeps another one waiting. Texts are never NULL. */
struct engine_session {
	int64_t pid;
	const char *user, *database, *application, *address, *state, *statement;
	const char *wait_type, *wait;                     /* "": it waits for nothing */
	int64_t started_ms, transaction_ms, statement_ms; /* 0: there is none */
	int64_t blockers[ACTIVITY_BLOCKERS];              /* sessions that it waits for; 0: a prepared transaction */
	size_t blocker_count;
};

/* Which session, and which statement of it. Numbers of processes come again, so the beginnings tell, to the second. */
struct engine_session_id {
	int64_t pid, started_ms;
	int64_t statement_ms; /* 0: the session as a whole */
};

/* What sessions waited for: how many did, on average over the samples. */
struct engine_wait {
	char type[16], event[48];
	double sessions;
};

/* A session that waited for another one. */
struct engine_block {
	int64_t pid, by;
	char user[64], by_user[64];
	int64_t first_ms, last_ms, longest_ms; /* when it was seen; how long it has waited at most */
};

struct engine_activity {
	struct engine_wait *waits;   /* the most first */
	struct engine_block *blocks; /* the newest first */
	size_t wait_count, block_count;
	unsigned samples;
};

/* How vacuum keeps up. Texts are never NULL. */
struct engine_vacuum_database {
	const char *name;
	int64_t xid_age; /* transactions, or groups of row locks, since the oldest that is not frozen */
};
struct engine_vacuum_table {
	const char *database, *name; /* "orders", "sales.orders" */
	int64_t live, dead, bytes;   /* rows, by the server's statistics; of the table's files */
	int64_t wasted;              /* bytes that no row needs, as estimated; -1: it was never analyzed */
	int64_t xid_age, vacuumed_ms, analyzed_ms; /* 0: never */
};
struct engine_vacuum_run {
	const char *database, *name, *phase;
	int64_t pid, blocks, done; /* of the table's blocks, those that were looked at */
};
struct engine_vacuum {
	struct engine_vacuum_database *databases; /* the oldest first */
	struct engine_vacuum_table *tables;       /* those with most dead rows, of each database that was looked into */
	struct engine_vacuum_run *runs;
	size_t database_count, table_count, run_count;
	int64_t freeze_age; /* at which a vacuum is begun whatever else */
	bool whole;         /* all databases were looked into */
};

struct engine_activity_ops {
	/* As the samples of the last hour have seen it, since the service was started. Quick. */
	void (*past)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	             struct engine_activity *ret_activity);
	/* Asks the node: 200 at most. May wait a few seconds, so not for a loop. -ENOENT: no such node; -EAGAIN: it
	 * does not run, or does not answer. */
	int (*sessions)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	                struct engine_session **ret_list, size_t *ret_count);
	/* Ends a session of a client, or cancels the statement that it runs, and tells whose it is. -ESRCH: there is
	 * none, or it is the service's own. Otherwise as sessions(). */
	int (*end)(struct engine *e, const char *cluster_id, const char *node, const struct engine_session_id *which,
	           struct arena *a, struct engine_session *ret_ended);
	/* Asks the node, and its databases in turn for ten seconds at most. As sessions(). */
	int (*vacuum)(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
	              struct engine_vacuum *ret_vacuum);
};

#endif
