/* The servers of this host, and what is known of each between two samples: measure_servers.c. For the thread that takes
 * samples alone: what it needs of a cluster is copied below the cluster's lock. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_SERVERS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_MEASURE_SERVERS_H

#include "engine/postgres/model/paths.h"
#include "engine/postgres/observe/measure.h"
#include "engine/postgres/observe/measure_databases.h"
#include "engine/postgres/observe/measure_lag.h"
#include "engine/postgres/observe/measure_last.h"

#include <libpq-fe.h>

#define PG_RESTARTS_KEPT 64

/* What a server was asked and has not answered yet: measure_round.c. */
enum pg_round_step {
	STEP_IDLE,
	STEP_CONNECT,
	STEP_PREPARE,
	STEP_ASK,
	STEP_OPERATIONS,
	STEP_POSITION,
	STEP_LIST,
	STEP_TABLES,
	STEP_ENTER,
	STEP_INSIDE,
	STEP_NAMES
};

struct pg_measured {
	char cluster_id[25], node[64], run[PG_PATH], data[PG_PATH];
	unsigned port, set;
	pid_t pid, seen_pid;
	bool there; /* in this round */
	uint64_t disk_used, disk_limit;
	double allowance;     /* cores */
	bool followed;        /* it is the primary of a set that has standbys, as far as the engine knows */
	PGconn *conn, *other; /* kept; and to one of its databases */
	PGresult *rows;       /* of an answer that is not complete */
	size_t prepared;      /* of the kept connection's questions */
	enum pg_round_step step;
	short events;
	int64_t asked_us;
	uint64_t epoch;
	bool answered;
	double inputs[PROCESS_INPUTS];
	struct pg_floor floor;
	int64_t restarts[PG_RESTARTS_KEPT];
	size_t restart_count;
	struct pg_databases databases;
	struct pg_database *next;        /* that is being looked into */
	int64_t looks_end, list_from_us; /* no look begins after that; no list is asked for before that */
	int64_t list_us;                 /* when it was asked for */
	struct pg_tables *tables;
	bool leads;  /* it is no standby */
	bool counts; /* its module counts what clients do */
	struct pg_last last;
	int64_t tables_from_us; /* times of tables are not asked for before that */
};

struct pg_measures {
	struct pg_measured **list;
	size_t count, room;
	struct pg_sets sets;
	struct pg_activities *activities; /* the engine's */
};

void pg_measures_free(struct engine *e); /* with the connections that were kept */
/* Notes who runs; the others are not `there`. */
void pg_measured_find(struct engine *e, struct pg_measures *m);
/* What is known of a server that does not run stays, for the count of its starts, as long as there is such a node. */
void pg_measured_drop(struct engine *e, struct pg_measures *m);
/* A set stays as long as one of its nodes is known: it may be without a primary for a while. */
void pg_measured_sets_drop(struct pg_measures *m);
void pg_measured_disconnect(struct pg_measured *s);
double pg_measured_restarts(const struct pg_measured *s); /* of the last hour */

#endif
