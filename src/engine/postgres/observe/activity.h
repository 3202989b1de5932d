/* What the samples have seen of waits, and of sessions that wait for others; of engine/activity.h. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ACTIVITY_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ACTIVITY_H

#include "engine/postgres/model/model.h"

/* Two columns of the question of each sample. Waits: "TYPE:EVENT=SESSIONS,..."; blocks: "PID:BY:MS:USER:USER,...", the
 * users in hexadecimal digits, so that no name has a comma. Both are bounded. */
#define PG_ACTIVITY_WAITS                                                                                           \
	"(select coalesce(string_agg(w, ','), '') from (select wait_event_type || ':' || wait_event || '=' || "     \
	"count(*) as w "                                                                                            \
	"from pg_stat_activity where backend_type = 'client backend' and usename is distinct from '" PG_SUPER       \
	"' and state = 'active' and wait_event is not null group by wait_event_type, wait_event order by count(*) " \
	"desc, 1 "                                                                                                  \
	"limit 12) x)"
#define PG_ACTIVITY_BLOCKS                                                                                             \
	"(select coalesce(string_agg(concat_ws(':', w.pid, b.pid, w.ms, encode(convert_to(coalesce(x.usename::text, "  \
	"''), "                                                                                                        \
	"'UTF8'), 'hex'), encode(convert_to(coalesce(y.usename::text, ''), 'UTF8'), 'hex')), ','), '') from (select "  \
	"pid, "                                                                                                        \
	"coalesce(max(extract(epoch from clock_timestamp() - (to_jsonb(k)->>'waitstart')::timestamptz)) * 1000, "      \
	"0)::bigint "                                                                                                  \
	"as ms from pg_locks k where not granted group by pid order by 2 desc limit 16) w cross join lateral (select " \
	"distinct p as pid from unnest(pg_blocking_pids(w.pid)) p limit 8) b left join pg_stat_activity x on x.pid = " \
	"w.pid "                                                                                                       \
	"left join pg_stat_activity y on y.pid = b.pid)"

struct pg_activities *pg_activities_new(void);
void pg_activities_free(struct pg_activities *all); /* accepts NULL */
/* What a sample has seen of a node. From any thread. */
void pg_activities_note(struct pg_activities *all, const char *cluster_id, const char *node, int64_t now_ms,
                        const char *waits, const char *blocks);
/* Forgets nodes of which nothing was told for an hour. */
void pg_activities_drop(struct pg_activities *all, int64_t now_ms);
void pg_activities_past(struct pg_activities *all, const char *cluster_id, const char *node, int64_t now_ms,
                        struct arena *a, struct engine_activity *ret_activity);

extern const struct engine_activity_ops pg_activity;

#endif
