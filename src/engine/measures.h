/* What is measured of processes, databases, disks and tables, the same for all engines: the inputs of a sample, and the
 * columns that a series keeps of them. Columns are kept in files by their number: new ones come at the end, none goes.
 * What the API calls them is in api/metrics/. */
#ifndef STEWARD_ENGINE_MEASURES_H
#define STEWARD_ENGINE_MEASURES_H

#include "module/latency.h"
#include "series/series.h"

enum measure_subject { MEASURE_PROCESS, MEASURE_DATABASE, MEASURE_DISK, MEASURE_TABLE, MEASURE_SUBJECTS };

/* --- processes: bytes, milliseconds and seconds of a processor unless it is a number of something */

enum process_input {
	/* Gauges. */
	PROCESS_CONNECTIONS, /* of clients */
	PROCESS_FREE,        /* connections that clients can still have */
	PROCESS_WAIT_READ,   /* locks that are waited for, to read */
	PROCESS_WAIT_WRITE,  /* all others */
	PROCESS_LAG_MS,      /* since the primary was where a standby is; 0 of a primary */
	PROCESS_WINDOW_MS,   /* how far the log on its disk reaches back */
	PROCESS_STORAGE,     /* what its databases take of the disk */
	PROCESS_DATA,        /* of it, tables */
	PROCESS_RESIDENT,    /* memory of all its processes, shared memory once */
	PROCESS_VIRTUAL,     /* address space of the largest of them */
	PROCESS_MAPPED,      /* shared and mapped memory */
	PROCESS_RESTARTS,    /* in the last hour */
	PROCESS_CORES,       /* of the host, as all that follow */
	PROCESS_MEM_AVAILABLE,
	PROCESS_MEM_FREE,
	PROCESS_MEM_USED,
	PROCESS_SWAP_FREE,
	PROCESS_SWAP_USED,
	/* Counters of the server: they begin anew when it does. */
	PROCESS_XACTS,      /* transactions that ended */
	PROCESS_CACHE_IN,   /* bytes that were read into the cache */
	PROCESS_CACHE_HITS, /* blocks that were found there */
	PROCESS_ROWS_READ,  /* by scans: rows, and entries of indexes */
	PROCESS_ROWS_INDEX, /* rows that were found through indexes */
	PROCESS_ROWS_INSERTED,
	PROCESS_ROWS_UPDATED,
	PROCESS_ROWS_DELETED,
	PROCESS_SPILLS,     /* files that sorts and joins have made */
	PROCESS_KILLED,     /* sessions that were ended, queries that recovery has cancelled */
	PROCESS_CACHE_OUT,  /* bytes of the cache that were written to files */
	PROCESS_LOG_BYTES,  /* of the write-ahead log: made by a primary, received by a standby */
	PROCESS_SCANS,      /* of tables and indexes */
	PROCESS_INDEX_HITS, /* blocks of indexes */
	PROCESS_INDEX_MISSES,
	PROCESS_FAULTS,       /* page faults that needed the disk */
	PROCESS_CACHE_MISSES, /* blocks */
	/* Time of processors, likewise. */
	PROCESS_CPU_USER, /* of the server and its children */
	PROCESS_CPU_KERNEL,
	PROCESS_CHILD_USER, /* of its children */
	PROCESS_CHILD_KERNEL,
	/* Counters of the host. */
	PROCESS_SYS_USER,
	PROCESS_SYS_NICE,
	PROCESS_SYS_KERNEL,
	PROCESS_SYS_IOWAIT,
	PROCESS_SYS_IRQ,
	PROCESS_SYS_SOFTIRQ,
	PROCESS_SYS_STEAL,
	PROCESS_SYS_GUEST,
	PROCESS_NET_IN,
	PROCESS_NET_OUT,
	/* What is no column by itself. */
	PROCESS_SIMPLE,
	PROCESS_ACTIVE_MS = PROCESS_SIMPLE, /* that sessions have spent on statements */
	PROCESS_CHECKPOINTS,
	PROCESS_CHECKPOINT_MS, /* that they took */
	PROCESS_INDEX_BLOCKS,  /* hits and misses */
	PROCESS_POSITION,      /* in the log: written by a primary, replayed by a standby */
	PROCESS_LOG_WRITES,    /* of the log to its files */
	PROCESS_ALLOWANCE,     /* cores that the node may use: a column, beside those of the host */
	/* Sessions of clients, and what they do: gauges, whose columns follow each other from PROCESS_SESSIONS on. */
	PROCESS_ACTIVE, /* that run a statement; of them: */
	PROCESS_ON_CPU, /* that wait for nothing */
	PROCESS_WAIT_LOCK,
	PROCESS_WAIT_LWLOCK, /* for what is in memory */
	PROCESS_WAIT_IO,
	PROCESS_WAIT_OTHER,
	PROCESS_IDLE_TX,      /* within a transaction, without a statement */
	PROCESS_OLDEST_TX_MS, /* how long the oldest transaction lasts */
	PROCESS_XID_AGE,      /* transactions since the oldest row that is not frozen; at 2^31 the server stops */
	PROCESS_INPUTS
};

/* Up to PROCESS_SIMPLE a column has its input's number. */
enum process_column {
	PROCESS_MAX_CPU_USER = PROCESS_SIMPLE,
	PROCESS_MAX_CPU_KERNEL,
	PROCESS_MAX_CHILD_USER,
	PROCESS_MAX_CHILD_KERNEL,
	PROCESS_MAX_SWAP_FREE,
	PROCESS_MAX_SWAP_USED,
	PROCESS_MAX_SYS_USER,
	PROCESS_MAX_SYS_NICE,
	PROCESS_MAX_SYS_KERNEL,
	PROCESS_MAX_SYS_IOWAIT,
	PROCESS_MAX_SYS_IRQ,
	PROCESS_MAX_SYS_SOFTIRQ,
	PROCESS_MAX_SYS_STEAL,
	PROCESS_MAX_SYS_GUEST,
	PROCESS_MAX_MEM_AVAILABLE,
	PROCESS_MAX_MEM_FREE,
	PROCESS_MAX_MEM_USED,
	PROCESS_MAX_NET_IN,
	PROCESS_MAX_NET_OUT,
	PROCESS_STATEMENT_MS, /* of sessions' time for each transaction */
	PROCESS_FLUSH_MS,     /* for each checkpoint */
	PROCESS_INDEX_MISS,   /* misses for each block of an index */
	PROCESS_ALLOWED,      /* cores of the node's allowance */
	PROCESS_SESSIONS,
	PROCESS_COLUMNS = PROCESS_SESSIONS + (int)PROCESS_INPUTS - (int)PROCESS_ACTIVE
};

#define PROCESS_SESSIONS_OF(input) ((unsigned)PROCESS_SESSIONS + (unsigned)(input) - (unsigned)PROCESS_ACTIVE)

/* --- databases */

enum database_input {
	DATABASE_TABLES,
	DATABASE_INDEXES,
	DATABASE_VIEWS,
	DATABASE_ROWS,
	DATABASE_DATA,    /* bytes of tables */
	DATABASE_INDEX,   /* and of indexes */
	DATABASE_STORAGE, /* of all its files */
	DATABASE_ROW_BYTES,
	DATABASE_INPUTS,
	DATABASE_COLUMNS = DATABASE_INPUTS
};

/* --- disks: what a node takes and does itself, and the partition that its data lies on, which is the host's */

#define DISK_OF_NODE "node" /* the name of the first */

enum disk_input {
	DISK_SPACE_FREE,
	DISK_SPACE_USED,
	DISK_PERCENT_FREE,
	DISK_PERCENT_USED,
	DISK_READS, /* operations */
	DISK_WRITES,
	DISK_OPS,
	DISK_READ_BYTES,
	DISK_WRITE_BYTES,
	DISK_QUEUE_MS, /* time that operations have waited, all together */
	DISK_SIMPLE,
	DISK_READ_MS = DISK_SIMPLE,
	DISK_WRITE_MS,
	DISK_INPUTS
};
enum disk_column {
	DISK_READ_LATENCY = DISK_SIMPLE,
	DISK_WRITE_LATENCY,
	DISK_MAX_SPACE_FREE,
	DISK_MAX_SPACE_USED,
	DISK_MAX_PERCENT_FREE,
	DISK_MAX_PERCENT_USED,
	DISK_MAX_READS,
	DISK_MAX_WRITES,
	DISK_MAX_OPS,
	DISK_MAX_READ_LATENCY,
	DISK_MAX_WRITE_LATENCY,
	DISK_COLUMNS
};

/* What only a device can tell: of the partition, not of the node's own. */
bool disk_is_device(unsigned column);

/* --- tables: how long statements took, by kind, as histograms. Rates of buckets can be averaged over time and added
 * over nodes, and still give true percentiles; percentiles could not. */

enum table_kind { TABLE_READS, TABLE_WRITES, TABLE_COMMANDS, TABLE_KINDS };

enum table_input {
	TABLE_LEADS,                              /* 1 on a primary, 0 on a standby */
	TABLE_TIMES,                              /* milliseconds, a counter for each kind */
	TABLE_COUNTS = TABLE_TIMES + TABLE_KINDS, /* statements, a counter for each bucket of each kind */
	TABLE_INPUTS = TABLE_COUNTS + TABLE_KINDS * LATENCY_BUCKETS,
	TABLE_COLUMNS = TABLE_INPUTS
};
#define TABLE_TIME(kind) ((unsigned)TABLE_TIMES + (unsigned)(kind))
#define TABLE_COUNT(kind, bucket) ((unsigned)TABLE_COUNTS + (unsigned)(kind)*LATENCY_BUCKETS + (unsigned)(bucket))

/* How many tables of a node are kept by the time that they took, and how many a cluster's users can add by name. */
#define TABLES_TOP 20
#define TABLES_PINNED_MAX 20
/* "database.table", or "database.schema.table", with its end. */
#define TABLE_NAME 192

/* The time in milliseconds that this share of the statements did not exceed, as far as buckets tell (module/latency.h).
 * NAN where there are none. */
double table_percentile(const double counts[LATENCY_BUCKETS], double share);

#define MEASURE_INPUTS_MAX 260

extern const struct series_layout measure_layouts[MEASURE_SUBJECTS];

/* The column whose greatest value another one keeps; the column itself where it is no such. */
unsigned measure_base(enum measure_subject subject, unsigned column);

#endif
