/* What measure.c asks of servers. */
#include "engine/postgres/observe/measure_sql.h"

#include "engine/postgres/observe/activity.h"
#include "engine/postgres/observe/collections.h"

/* In the order of the query's columns. */
const enum process_input pg_asked[PG_ASKED] = {
        PROCESS_XACTS,         PROCESS_CACHE_IN,     PROCESS_CACHE_HITS,   PROCESS_ROWS_READ,     PROCESS_ROWS_INDEX,
        PROCESS_ROWS_INSERTED, PROCESS_ROWS_UPDATED, PROCESS_ROWS_DELETED, PROCESS_SPILLS,        PROCESS_KILLED,
        PROCESS_ACTIVE_MS,     PROCESS_CACHE_MISSES, PROCESS_CHECKPOINTS,  PROCESS_CHECKPOINT_MS, PROCESS_CACHE_OUT,
        PROCESS_LOG_BYTES,     PROCESS_CONNECTIONS,  PROCESS_FREE,         PROCESS_WAIT_READ,     PROCESS_WAIT_WRITE,
        PROCESS_POSITION,      PROCESS_LOG_WRITES,   PROCESS_ACTIVE,       PROCESS_ON_CPU,        PROCESS_WAIT_LOCK,
        PROCESS_WAIT_LWLOCK,   PROCESS_WAIT_IO,      PROCESS_WAIT_OTHER,   PROCESS_IDLE_TX,       PROCESS_OLDEST_TX_MS,
        PROCESS_XID_AGE,
};

#define BLOCK "current_setting('block_size')::float8"
/* After these, the epoch: whoever counts, since when; whether it leads; whether the module counts. */
#define ASK(CHECKPOINTS, OUT, FROM)                                                                                  \
	"select d.xacts, d.reads * " BLOCK ", d.hits, d.read, d.fetched, d.inserted, d.updated, d.deleted, d.temp, " \
	"d.killed, d.active, d.reads, " CHECKPOINTS ", (" OUT ") * " BLOCK ", "                                      \
	"case when pg_is_in_recovery() then pg_last_wal_receive_lsn() - '0/0'::pg_lsn else "                         \
	"w.wal_bytes end::float8, a.clients, greatest(current_setting('max_connections')::int - "                    \
	"current_setting('superuser_reserved_connections')::int - a.all, 0), l.readers, l.writers, "                 \
	"(case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - "              \
	"'0/0'::pg_lsn)::float8, coalesce((to_jsonb(w)->>'wal_write')::float8, 0), "                                 \
	"a.active, a.cpu, a.lock, a.lwlock, a.io, a.active - a.cpu - a.lock - a.lwlock - a.io, a.idle, a.oldest, "   \
	"(select max(greatest(age(datfrozenxid), mxid_age(datminmxid))) from pg_database)::float8, "                 \
	"concat_ws('/', pg_postmaster_start_time(), d.reset, b.stats_reset, w.stats_reset), "                        \
	"not pg_is_in_recovery(), coalesce(current_setting('steward.counts', true), '') = '1' and "                  \
	"to_regprocedure('steward.operations()') is not null, " PG_ACTIVITY_WAITS ", " PG_ACTIVITY_BLOCKS " "        \
	"from (select sum(xact_commit + xact_rollback)::float8 as xacts, sum(blks_read)::float8 as reads, "          \
	"sum(blks_hit)::float8 as hits, sum(tup_returned)::float8 as read, sum(tup_fetched)::float8 as fetched, "    \
	"sum(tup_inserted)::float8 as inserted, sum(tup_updated)::float8 as updated, sum(tup_deleted)::float8 as "   \
	"deleted, sum(temp_files)::float8 as temp, sum(sessions_killed + conflicts)::float8 as killed, "             \
	"sum(active_time)::float8 as active, max(stats_reset) as reset from pg_stat_database) d, " FROM              \
	", pg_stat_wal w, (select count(*) filter (where client) as clients, "                                       \
	"count(*) as all, count(waits) as active, count(*) filter (where waits = 'CPU') as cpu, count(*) filter "    \
	"(where waits = 'Lock') as lock, count(*) filter (where waits in ('LWLock', 'BufferPin')) as lwlock, "       \
	"count(*) filter (where waits = 'IO') as io, count(*) filter (where client and state like 'idle in %') as "  \
	"idle, coalesce(max(extract(epoch from clock_timestamp() - xact_start)) filter (where client) * 1000, "      \
	"0)::float8 as oldest from (select state, xact_start, usename is distinct from '" PG_SUPER "' as client, "   \
	"case when state = 'active' and usename is distinct from '" PG_SUPER "' then coalesce(wait_event_type, "     \
	"'CPU') end as waits from pg_stat_activity where backend_type = 'client backend') x) a, "                    \
	"(select count(*) filter (where mode in ('AccessShareLock', 'RowShareLock')) as readers, "                   \
	"count(*) filter (where mode not in ('AccessShareLock', 'RowShareLock')) as writers from pg_locks "          \
	"where not granted) l"

const char pg_ask[] = ASK("b.checkpoints_timed + b.checkpoints_req, b.checkpoint_write_time + b.checkpoint_sync_time",
                          "b.buffers_checkpoint + b.buffers_clean + b.buffers_backend", "pg_stat_bgwriter b");
/* From 17 on the checkpointer has a view of its own, and the sessions' writes are in pg_stat_io. */
const char pg_ask_17[] = ASK(
        "b.num_timed + b.num_requested, b.write_time + b.sync_time",
        "b.buffers_written + (select coalesce(sum(writes), 0) from pg_stat_io where object = 'relation' and context = "
        "'normal' and backend_type <> 'checkpointer')",
        "pg_stat_checkpointer b");

const enum process_input pg_operations[PG_OPERATIONS] = {PROCESS_XACTS,         PROCESS_SCANS,
                                                         PROCESS_ROWS_INSERTED, PROCESS_ROWS_UPDATED,
                                                         PROCESS_ROWS_DELETED,  PROCESS_ACTIVE_MS};
const char pg_ask_operations[] =
        "select transactions, reads, inserted, updated, deleted, busy_us::float8 / 1000 from steward.operations()";

const char pg_ask_position[] =
        "select case when not pg_is_in_recovery() then (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 end";

const char pg_ask_last[] = "select case when not pg_is_in_recovery() then (pg_current_wal_lsn() - "
                           "'0/0'::pg_lsn)::float8 end, transactions, "
                           "reads, inserted, updated, deleted, busy_us::float8 / 1000 from steward.operations()";

/* All that there are, those first that can be looked into: not templates, nor ones that take no connections, as one
 * whose removal was cut short. */
const char pg_ask_databases[] =
        "select d.datname, case when d.datistemplate then 0 else pg_database_size(d.oid) end::float8, (s.tup_inserted "
        "+ s.tup_updated + s.tup_deleted)::float8, s.active_time, case when pg_is_in_recovery() then "
        "(pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::float8 else 0 end, (d.datallowconn and not d.datistemplate and "
        "d.datconnlimit <> -2)::int, d.oid, " PG_TABLES_OFFERED
        " from pg_database d left join pg_stat_database s on s.datid = d.oid order by 6 desc, d.oid limit 5000";

/* Rows as the statistics have them; a standby has none, and the planner's estimate instead. Tables, indexes, views,
 * rows and sizes are users'; scans, hits and misses those of all. PostgreSQL's own views tell the same, and take more
 * than twice as long in a session that is new. */
const char pg_ask_inside[] =
        "select count(*) filter (where users and relkind in ('r', 'p', 'f')), count(*) filter (where users and relkind "
        "in ('i', 'I')), count(*) filter (where users and relkind in ('v', 'm')), coalesce(sum(case when users and "
        "relkind in ('r', 'm') then coalesce(nullif(pg_stat_get_live_tuples(oid), 0)::float8, greatest(reltuples, 0)) "
        "end), 0)::float8, coalesce(sum(case when users and relkind in ('r', 'm') then pg_table_size(oid) end), "
        "0)::float8, coalesce(sum(case when users and relkind = 'i' then pg_relation_size(oid) end), 0)::float8, "
        "coalesce(sum(case when relkind in ('r', 't', 'm', 'i') then pg_stat_get_numscans(oid) end), 0)::float8, "
        "coalesce(sum(case when relkind = 'i' then pg_stat_get_blocks_hit(oid) end), 0)::float8, "
        "coalesce(sum(case when relkind = 'i' then pg_stat_get_blocks_fetched(oid) - pg_stat_get_blocks_hit(oid) end), "
        "0)::float8 from (select c.oid, c.relkind, c.reltuples, n.nspname <> 'information_schema' and n.nspname !~ "
        "'^pg_' as users from pg_class c join pg_namespace n on n.oid = c.relnamespace offset 0) x";
