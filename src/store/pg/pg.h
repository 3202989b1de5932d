/* What the files of the PostgreSQL back end share: a connection in pipeline mode, and every statement that the service
 * runs, in one table. Nothing outside src/store/ includes this.
 *
 * Results are in binary form: every number in the schema is a BIGINT, so that there is one way to read it. Texts are
 * compared byte by byte (COLLATE "C"), as in SQLite. No statement of a write may fail because of what its caller asked
 * for, because PostgreSQL would then abort the whole transaction. So statements that may meet an existing row handle
 * that themselves. */
#ifndef STEWARD_STORE_PG_PG_H
#define STEWARD_STORE_PG_PG_H

#include "base/buf.h"
#include "store/backend.h"

#include <endian.h>
#include <libpq-fe.h>

/* The tables live in a schema of this name. */
#define PG_SCHEMA "steward"
#define PG_CHANNEL "steward"
/* A node that has not renewed its row for this long has lost its jobs. The database's clock decides. */
#define PG_ALIVE "alive > clock_timestamp() - interval '5 seconds'"
/* The advisory lock of the one batch that may run in all processes: "STWD". */
#define PG_LOCK "1398036292"

#define PG_DOC "kind, id, parent, name, seq, rev, created_ms, body, secret"
#define PG_EVENT "id, org_id, group_id, type, created_ms, body, cluster, raw, org_pos, group_pos, seq"
#define PG_EVENT_FILTER                                                                     \
	" AND created_ms BETWEEN $2 AND $3 AND ($4::text = '[]' OR NOT type = ANY (SELECT " \
	"json_array_elements_text($4::text::json)))"                                        \
	" AND ($5::text = '[]' OR cluster = ANY (SELECT json_array_elements_text($5::text::json)))"
#define PG_EVENT_TYPES " AND type = ANY (SELECT json_array_elements_text($6::text::json))"
#define PG_EVENT_LISTS(X, NAME, scope, pos)                                                                            \
	X(EVENT_POSITIONS_##NAME, "SELECT min(" pos "), max(" pos ") FROM event WHERE " scope " = $1 AND " pos " > 0") \
	X(EVENT_TIMES_##NAME,                                                                                          \
	  "SELECT min(created_ms), max(created_ms) FROM event WHERE " scope " = $1 AND " pos " > 0")                   \
	X(EVENT_PAGE_##NAME, "SELECT " PG_EVENT " FROM event WHERE " scope " = $1 AND " pos " > 0 AND " pos " <= $2"   \
	                     " ORDER BY " pos " DESC LIMIT $3")                                                        \
	X(EVENT_LIST_##NAME, "SELECT " PG_EVENT " FROM event WHERE " scope " = $1 AND " pos " > 0" PG_EVENT_FILTER     \
	                     " ORDER BY created_ms DESC, " pos " DESC LIMIT $6 OFFSET $7")                             \
	X(EVENT_COUNT_##NAME, "SELECT count(*) FROM event WHERE " scope " = $1 AND " pos " > 0" PG_EVENT_FILTER)       \
	X(EVENT_TYPES_LIST_##NAME, "SELECT " PG_EVENT " FROM event WHERE " scope " = $1 AND " pos                      \
	                           " > 0" PG_EVENT_FILTER PG_EVENT_TYPES " ORDER BY " pos " DESC LIMIT $7 OFFSET $8")  \
	X(EVENT_TYPES_COUNT_##NAME,                                                                                    \
	  "SELECT count(*) FROM event WHERE " scope " = $1 AND " pos " > 0" PG_EVENT_FILTER PG_EVENT_TYPES)

#define PG_JOB "id, kind, subject, args, state, step, attempt, progress, due_ms, fence, created_ms, error, host, tenant"
/* Jobs that this node ($1) could claim: queued ones that are the first of their subject, and those of dead nodes. */
#define PG_JOB_FREE                                                                                              \
	"(j.host = '' OR j.host = $1) AND (j.state = 'running' AND NOT EXISTS (SELECT 1 FROM node WHERE id = "   \
	"j.lease_owner"                                                                                          \
	" AND " PG_ALIVE ") OR j.state = 'queued' AND (j.subject = '' OR NOT EXISTS (SELECT 1 FROM job b"        \
	" WHERE b.subject = j.subject AND b.subject <> '' AND b.n <> j.n AND (b.state = 'running' OR b.state = " \
	"'queued' AND"                                                                                           \
	" b.n < j.n AND NOT (j.kind = '" JOB_PASSES "' AND b.attempt > 0 AND b.due_ms > j.due_ms)))))"
#define PG_JOB_DUE "CASE j.state WHEN 'running' THEN 0 ELSE j.due_ms END"
#define PG_JOB_FIRST " ORDER BY (state = 'failed'), CASE state WHEN 'failed' THEN -n ELSE n END LIMIT 1"

#define PG_STATEMENTS(X)                                                                                               \
	X(BEGIN, "BEGIN")                                                                                              \
	X(COMMIT, "COMMIT")                                                                                            \
	X(ROLLBACK, "ROLLBACK")                                                                                        \
	X(SAVEPOINT, "SAVEPOINT w")                                                                                    \
	X(UNDO, "ROLLBACK TO w")                                                                                       \
	X(RELEASE, "RELEASE w")                                                                                        \
	X(LOCK, "SELECT pg_advisory_xact_lock(" PG_LOCK ")")                                                           \
	X(LISTEN, "LISTEN " PG_CHANNEL)                                                                                \
	X(NOTIFY, "SELECT pg_notify('" PG_CHANNEL "', $1)")                                                            \
	X(MARK_PUT,                                                                                                    \
	  "INSERT INTO mark (node, batch, commits, at) VALUES ($1, $2, 1, clock_timestamp()) ON CONFLICT (node)"       \
	  " DO UPDATE SET batch = $2, commits = mark.commits + 1, at = clock_timestamp()")                             \
	X(MARK_GET, "SELECT batch FROM mark WHERE node = $1")                                                          \
	X(MARK_TOUCH, "UPDATE mark SET at = clock_timestamp() WHERE node = $1")                                        \
	X(NODE_LOCK, "SELECT 1 WHERE pg_try_advisory_lock(" PG_LOCK ", hashtext($1))")                                 \
	X(MARKS_FORGET, "DELETE FROM mark WHERE at < clock_timestamp() - interval '1 day'")                            \
	X(BEAT, "INSERT INTO node (id, alive, usage) VALUES ($1, clock_timestamp(), $2)"                               \
	        " ON CONFLICT (id) DO UPDATE SET alive = clock_timestamp(), usage = $2")                               \
	X(NODES, "SELECT id, usage, (extract(epoch FROM clock_timestamp() - alive) * 1000)::int8 FROM node"            \
	         " ORDER BY id")                                                                                       \
	X(BEAT_END, "DELETE FROM node WHERE id = $1")                                                                  \
	X(LOOK,                                                                                                        \
	  "SELECT coalesce((SELECT value FROM meta WHERE key = '" META_IDENTITY "'), '0'),"                            \
	  " (SELECT coalesce(sum(commits), 0)::int8 FROM mark), EXISTS (SELECT 1 FROM job j WHERE j.state = 'running'" \
	  " AND NOT EXISTS (SELECT 1 FROM node WHERE id = j.lease_owner AND " PG_ALIVE "))::int::int8")                \
	X(DOC_GET, "SELECT " PG_DOC " FROM doc WHERE kind = $1 AND id = $2")                                           \
	X(DOC_BY_NAME, "SELECT " PG_DOC " FROM doc WHERE kind = $1 AND parent = $2 AND name = $3")                     \
	/* Many questions at once; each is looked up by itself, whatever the planner thinks of their number. */        \
	X(DOCS_GET, "SELECT d.* FROM unnest($1::text[], $2::text[]) q (kind, id) CROSS JOIN LATERAL (SELECT " PG_DOC   \
	            " FROM doc WHERE doc.kind = q.kind COLLATE \"C\" AND doc.id = q.id COLLATE \"C\" LIMIT 1) d")      \
	X(DOCS_BY_NAME,                                                                                                \
	  "SELECT d.* FROM unnest($1::text[], $2::text[], $3::text[]) q (kind, parent, name) CROSS JOIN LATERAL"       \
	  " (SELECT " PG_DOC " FROM doc WHERE doc.kind = q.kind COLLATE \"C\" AND doc.parent = q.parent COLLATE \"C\"" \
	  " AND doc.name = q.name COLLATE \"C\" LIMIT 1) d")                                                           \
	X(LISTS_GET,                                                                                                   \
	  "SELECT l.* FROM unnest($1::text[], $2::text[]) q (kind, parent) CROSS JOIN LATERAL (SELECT kind,"           \
	  " parent, count FROM list WHERE list.kind = q.kind COLLATE \"C\""                                            \
	  " AND list.parent = q.parent COLLATE \"C\" LIMIT 1) l")                                                      \
	X(DOC_LIST, "SELECT " PG_DOC " FROM doc WHERE kind = $1 AND parent = $2 AND seq >= $3 ORDER BY seq"            \
	            " LIMIT $4 OFFSET $5")                                                                             \
	X(DOC_WALK, "SELECT " PG_DOC " FROM doc WHERE kind = $1 AND (parent, seq) > ($2, $3)"                          \
	            " ORDER BY parent, seq LIMIT $4")                                                                  \
	X(DOC_HEADS, "SELECT kind, id, parent, name, seq, rev, created_ms, '', '' FROM doc WHERE kind = $1")           \
	X(DOC_HEADS_OF, "SELECT kind, id, parent, name, seq, rev, created_ms, '', '' FROM doc WHERE kind = $1"         \
	                " AND parent = $2 ORDER BY seq")                                                               \
	X(DOC_WHERE, "SELECT rev FROM doc WHERE kind = $1 AND id = $2")                                                \
	X(DOC_INSERT,                                                                                                  \
	  "WITH d AS (INSERT INTO doc (" PG_DOC ") SELECT $1, $2, $3, $4,"                                             \
	  "  coalesce((SELECT next_seq FROM list WHERE kind = $1 AND parent = $3), 0), 1, $5::int8, $6, $7"            \
	  "  ON CONFLICT DO NOTHING RETURNING seq),"                                                                   \
	  " l AS (INSERT INTO list (kind, parent, next_seq, count, head) SELECT $1, $3, seq + 1, 1, (seq < 512)::int " \
	  "FROM d"                                                                                                     \
	  "  ON CONFLICT (kind, parent) DO UPDATE SET next_seq = excluded.next_seq, count = list.count + 1,"           \
	  "  head = list.head + excluded.head),"                                                                       \
	  " b AS (INSERT INTO list_block (kind, parent, level, block, count)"                                          \
	  "  SELECT $1, $3, level, seq >> (9 * (level + 1)), 1 FROM d, (VALUES (0), (1)) v (level) WHERE seq >= 512"   \
	  "  ON CONFLICT (kind, parent, level, block) DO UPDATE SET count = list_block.count + 1)"                     \
	  " SELECT seq FROM d")                                                                                        \
	/* The same for many, each of another list; a row if all are new. */                                           \
	X(DOCS_INSERT,                                                                                                 \
	  "WITH n AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::text[],"    \
	  "  $7::text[]) q (kind, id, parent, name, created_ms, body, secret)),"                                       \
	  " d AS (INSERT INTO doc (" PG_DOC ") SELECT kind, id, parent, name, coalesce((SELECT next_seq FROM list l"   \
	  "  WHERE l.kind = n.kind COLLATE \"C\" AND l.parent = n.parent COLLATE \"C\"), 0), 1, created_ms, body,"     \
	  "  secret FROM n ON CONFLICT DO NOTHING RETURNING kind, parent, seq),"                                       \
	  " l AS (INSERT INTO list (kind, parent, next_seq, count, head) SELECT kind, parent, seq + 1, 1,"             \
	  "  (seq < 512)::int FROM d ON CONFLICT (kind, parent) DO UPDATE SET next_seq = excluded.next_seq,"           \
	  "  count = list.count + 1, head = list.head + excluded.head),"                                               \
	  " b AS (INSERT INTO list_block (kind, parent, level, block, count)"                                          \
	  "  SELECT kind, parent, level, seq >> (9 * (level + 1)), 1 FROM d, (VALUES (0), (1)) v (level)"              \
	  "  WHERE seq >= 512 ON CONFLICT (kind, parent, level, block) DO UPDATE SET count = list_block.count + 1)"    \
	  " SELECT 1 FROM d HAVING count(*) = $8::int8")                                                               \
	/* The same for a list whose counts the batch keeps, and what brings those up to date. */                      \
	X(DOC_ADD, "INSERT INTO doc (" PG_DOC ") VALUES ($1, $2, $3, $4, $8, 1, $5, $6, $7) ON CONFLICT DO NOTHING")   \
	X(COUNTS_ADD,                                                                                                  \
	  "WITH l AS (INSERT INTO list (kind, parent, next_seq, count, head)"                                          \
	  "  VALUES ($1, $2, $4::int8, $4 - $3::int8, greatest(least($4, 512) - $3, 0))"                               \
	  "  ON CONFLICT (kind, parent) DO UPDATE SET next_seq = excluded.next_seq, count = list.count + "             \
	  "excluded.count, head = list.head + excluded.head)"                                                          \
	  " INSERT INTO list_block (kind, parent, level, block, count) SELECT $1, $2, level, block,"                   \
	  "  least($4, (block + 1) << bits) - greatest($3, 512, block << bits) FROM (VALUES (0, 9), (1, 18)) v "       \
	  "(level, bits), generate_series(greatest($3, 512) >> bits, ($4 - 1) >> bits) block WHERE $4 > 512"           \
	  "  ON CONFLICT (kind, parent, level, block) DO UPDATE SET count = list_block.count + excluded.count")        \
	X(DOC_UPDATE,                                                                                                  \
	  "UPDATE doc d SET name = $3, body = $4, secret = $5, rev = rev + 1 WHERE kind = $1 AND id = $2"              \
	  " AND ($6::int8 = 0 OR rev = $6) AND ($3::text IS NULL OR NOT EXISTS (SELECT 1 FROM doc o WHERE o.kind = $1" \
	  " AND o.parent = d.parent AND o.name = $3 AND o.id <> $2))")                                                 \
	X(DOC_SECRETS, "SELECT kind, id, secret FROM doc WHERE (kind, id) > ($1, $2) ORDER BY kind, id LIMIT $3")      \
	X(DOC_SECRET_REPLACE, "UPDATE doc SET secret = $4 WHERE kind = $1 AND id = $2 AND secret = $3")                \
	X(DOC_MOVE,                                                                                                    \
	  "WITH old AS (SELECT parent, seq FROM doc WHERE kind = $1 AND id = $2),"                                     \
	  " d AS (UPDATE doc SET parent = $3, name = $4, body = $5, rev = rev + 1,"                                    \
	  "  seq = coalesce((SELECT next_seq FROM list WHERE kind = $1 AND parent = $3), 0)"                           \
	  "  WHERE kind = $1 AND id = $2 AND ($6::int8 = 0 OR rev = $6) AND ($4::text IS NULL OR NOT EXISTS"           \
	  "  (SELECT 1 FROM doc o WHERE o.kind = $1 AND o.parent = $3 AND o.name = $4 AND o.id <> $2)) RETURNING "     \
	  "seq),"                                                                                                      \
	  " l AS (INSERT INTO list (kind, parent, next_seq, count, head) SELECT $1, $3, seq + 1, 1, (seq < 512)::int " \
	  "FROM d"                                                                                                     \
	  "  ON CONFLICT (kind, parent) DO UPDATE SET next_seq = excluded.next_seq, count = list.count + 1,"           \
	  "  head = list.head + excluded.head),"                                                                       \
	  " b AS (INSERT INTO list_block (kind, parent, level, block, count)"                                          \
	  "  SELECT $1, $3, level, seq >> (9 * (level + 1)), 1 FROM d, (VALUES (0), (1)) v (level) WHERE seq >= 512"   \
	  "  ON CONFLICT (kind, parent, level, block) DO UPDATE SET count = list_block.count + 1)"                     \
	  " SELECT old.parent, old.seq FROM d, old")                                                                   \
	X(DOC_DELETE, "DELETE FROM doc WHERE kind = $1 AND id = $2 RETURNING parent, seq")                             \
	X(DOCS_DELETE, "WITH d AS (DELETE FROM doc WHERE kind = $1 AND parent = $2),"                                  \
	               " l AS (DELETE FROM list WHERE kind = $1 AND parent = $2)"                                      \
	               " DELETE FROM list_block WHERE kind = $1 AND parent = $2")                                      \
	X(COUNTS_SUBTRACT,                                                                                             \
	  "WITH l AS (UPDATE list SET count = count - 1, head = head - ($3::int8 < 512)::int"                          \
	  "  WHERE kind = $1 AND parent = $2 AND count > 1),"                                                          \
	  " lc AS (DELETE FROM list WHERE kind = $1 AND parent = $2 AND count <= 1),"                                  \
	  " b AS (UPDATE list_block SET count = count - 1 WHERE kind = $1 AND parent = $2 AND count > 1"               \
	  "  AND $3 >= 512 AND (level = 0 AND block = $3 >> 9 OR level = 1 AND block = $3 >> 18)),"                    \
	  " bc AS (DELETE FROM list_block WHERE kind = $1 AND parent = $2 AND count <= 1"                              \
	  "  AND $3 >= 512 AND (level = 0 AND block = $3 >> 9 OR level = 1 AND block = $3 >> 18))"                     \
	  " SELECT 1")                                                                                                 \
	X(LIST_GET, "SELECT next_seq, count, head FROM list WHERE kind = $1 AND parent = $2")                          \
	X(BLOCK_FIND,                                                                                                  \
	  "SELECT block, before FROM (SELECT block, count, (sum(count) OVER (ORDER BY block))::int8 - count"           \
	  " AS before FROM list_block WHERE kind = $1 AND parent = $2 AND level = $3 AND block >= $4) s"               \
	  " WHERE $5 < before + count ORDER BY block LIMIT 1")                                                         \
	X(REF_GET, "SELECT id FROM ref WHERE kind = $1 AND value = $2")                                                \
	X(REF_PUT, "INSERT INTO ref (kind, value, id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")                     \
	X(REF_DELETE, "DELETE FROM ref WHERE kind = $1 AND value = $2")                                                \
	X(META_GET, "SELECT value FROM meta WHERE key = $1")                                                           \
	X(META_PUT, "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2")        \
	X(META_INCREMENT, "INSERT INTO meta (key, value) VALUES ($1, '1')"                                             \
	                  " ON CONFLICT (key) DO UPDATE SET value = (meta.value::int8 + 1)::text")                     \
	X(EVENT_ADD,                                                                                                   \
	  "INSERT INTO event (seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, raw, "      \
	  "org_pos,"                                                                                                   \
	  " group_pos) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,"                                          \
	  " CASE WHEN $12::int8 > 0 THEN"                                                                              \
	  " 1 + coalesce((SELECT max(org_pos) FROM event WHERE org_id = $3 AND org_pos > 0), 0) END,"                  \
	  " CASE WHEN $13::int8 > 0 THEN"                                                                              \
	  " 1 + coalesce((SELECT max(group_pos) FROM event WHERE group_id = $4 AND group_pos > 0), 0) END)")           \
	X(EVENTS_ADD,                                                                                                  \
	  "INSERT INTO event (seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, raw, "      \
	  "org_pos, group_pos) SELECT seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, "   \
	  "raw, CASE WHEN for_org > 0 THEN row_number() OVER (PARTITION BY org_id, for_org ORDER BY seq) + coalesce("  \
	  "(SELECT max(o.org_pos) FROM event o WHERE o.org_id = n.org_id COLLATE \"C\" AND o.org_pos > 0), 0) END,"    \
	  " CASE WHEN for_group > 0 THEN row_number() OVER (PARTITION BY group_id, for_group ORDER BY seq) + coalesce" \
	  "((SELECT max(o.group_pos) FROM event o WHERE o.group_id = n.group_id COLLATE \"C\" AND o.group_pos > 0), "  \
	  "0) END FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int8[], $7::text[],"     \
	  " $8::bytea[], $9::bytea[], $10::text[], $11::text[], $12::int8[], $13::int8[]) n (seq, id, org_id, "        \
	  "group_id, type, created_ms, body, prev_hash, hash, cluster, raw, for_org, for_group)")                      \
	X(EVENT_GET, "SELECT " PG_EVENT " FROM event WHERE id = $1")                                                   \
	X(EVENT_SINCE, "SELECT " PG_EVENT " FROM event WHERE seq > $1 ORDER BY seq LIMIT $2")                          \
	X(EVENT_NEWEST, "SELECT coalesce(max(seq), 0) FROM event")                                                     \
	PG_EVENT_LISTS(X, ORG, "org_id", "org_pos")                                                                    \
	PG_EVENT_LISTS(X, GROUP, "group_id", "group_pos")                                                              \
	X(EVENT_OLDEST, "SELECT seq, created_ms, hash FROM event ORDER BY seq LIMIT $1")                               \
	X(EVENT_PRUNE, "DELETE FROM event WHERE seq <= $1")                                                            \
	X(ANSWER_GET, "SELECT fingerprint, answer FROM answer WHERE caller = $1 AND key = $2 AND created_ms > $3")     \
	X(ANSWER_PUT, "INSERT INTO answer (caller, key, created_ms, fingerprint, answer) VALUES ($1, $2, $4, $5, $6)"  \
	              " ON CONFLICT (caller, key) DO UPDATE SET created_ms = $4, fingerprint = $5, answer = $6"        \
	              " WHERE answer.created_ms <= $3")                                                                \
	X(ANSWER_PRUNE, "DELETE FROM answer WHERE (caller, key) IN (SELECT caller, key FROM answer"                    \
	                " WHERE created_ms <= $1 ORDER BY created_ms LIMIT 2)")                                        \
	X(JOB_ADD, "INSERT INTO job (id, kind, subject, args, state, due_ms, created_ms, updated_ms, host, tenant)"    \
	           " VALUES ($1, $2, $3, $4, 'queued', $5, $6, $6, coalesce(nullif($7, ''),"                           \
	           " (SELECT id FROM ref WHERE kind = '" REF_HOST "' AND value = $3), ''),"                            \
	           " coalesce(nullif($8, ''), " JOB_TENANT("right($3, 24)") ", ''))")                                  \
	X(JOB_HURRY, "UPDATE job SET due_ms = least(due_ms, $3), progress = NULL WHERE n = (SELECT n FROM job"         \
	             " WHERE subject = $2 AND subject <> '' AND kind = $1 AND state = 'queued' ORDER BY n LIMIT 1)")   \
	X(JOB_NEXT,                                                                                                    \
	  "SELECT " PG_JOB_DUE ", n FROM job j WHERE j.state IN ('queued', 'running')"                                 \
	  " AND strpos($2, ',' || j.tenant || ',') = 0 AND strpos($2, ',' || j.kind || ',') = 0 AND " PG_JOB_FREE      \
	  " ORDER BY 1, n LIMIT 1")                                                                                    \
	X(JOB_CLAIM, "UPDATE job SET state = 'running', lease_owner = $2, lease_until_ms = $3, fence = fence + 1,"     \
	             " updated_ms = $4 WHERE n = $1 RETURNING " PG_JOB)                                                \
	X(JOB_SAVE, "UPDATE job SET state = $3, step = $4, attempt = $5, progress = $6, due_ms = $7, error = $8,"      \
	            " args = $9, updated_ms = $10, lease_until_ms = $11, host = $12"                                   \
	            " WHERE id = $1 AND fence = $2 AND state = 'running'")                                             \
	X(JOB_FINISH, "DELETE FROM job WHERE id = $1 AND fence = $2 AND state = 'running'")                            \
	X(JOB_OF, "SELECT " PG_JOB " FROM job WHERE subject = $1 AND subject <> ''" PG_JOB_FIRST)                      \
	X(JOB_FIND, "SELECT " PG_JOB " FROM job WHERE subject = $1 AND subject <> '' AND kind = $2" PG_JOB_FIRST)      \
	X(JOBS_FORGET_OF, "DELETE FROM job WHERE subject = $1 AND subject <> '' AND state = 'failed'")                 \
	X(JOBS_CANCEL, "DELETE FROM job WHERE kind = $1 AND subject = $2 AND subject <> '' AND state = 'queued'")      \
	X(JOBS_SETTLE, "UPDATE job SET host = $1 WHERE host = '' AND subject <> kind AND (kind LIKE 'backup\\_%'"      \
	               " OR right(subject, 24) IN (SELECT value FROM ref WHERE kind = '" REF_HOST "')"                 \
	               " OR left(subject, 24) IN (SELECT value FROM ref WHERE kind = '" REF_HOST "'))")                \
	X(JOBS_PUT_BACK,                                                                                               \
	  "UPDATE job SET created_ms = least(created_ms, $1),"                                                         \
	  " due_ms = greatest($1, due_ms - CASE WHEN $3::bigint > 0 THEN $3::bigint ELSE created_ms - $1 END)"         \
	  " WHERE state = 'queued' AND due_ms > $1 AND (due_ms < $2 OR created_ms > $1)"                               \
	  " AND host IN ('', $4)")                                                                                     \
	X(JOBS_FORGET, "DELETE FROM job WHERE state = 'failed' AND updated_ms < $1")                                   \
	X(JOBS_RECOVER, "UPDATE job SET state = 'queued', lease_owner = NULL, lease_until_ms = 0, fence = fence + 1"   \
	                " WHERE state = 'running' AND (lease_owner = $1 OR NOT EXISTS"                                 \
	                " (SELECT 1 FROM node WHERE id = lease_owner AND " PG_ALIVE "))")                              \
	X(JOB_COUNT, "SELECT count(*) FROM job WHERE state IN ('queued', 'running')")                                  \
	X(JOB_TALLY, "SELECT kind, state, count(*) FROM job GROUP BY kind, state ORDER BY kind, state")                \
	X(OVERRIDES, "SELECT set_id, scope, capacity, refill FROM limit_override ORDER BY set_id, scope")              \
	X(OVERRIDE_PUT, "INSERT INTO limit_override (set_id, scope, capacity, refill) VALUES ($1, $2, $3, $4)"         \
	                " ON CONFLICT (set_id, scope) DO UPDATE SET capacity = $3, refill = $4")                       \
	X(OVERRIDE_DELETE, "DELETE FROM limit_override WHERE set_id = $1 AND scope = $2")                              \
	X(WIPE, "WITH a AS (DELETE FROM doc), b AS (DELETE FROM list), c AS (DELETE FROM list_block), d AS (DELETE "   \
	        "FROM ref),"                                                                                           \
	        " e AS (DELETE FROM meta WHERE key <> '" META_IDENTITY "'), f AS (DELETE FROM event),"                 \
	        " g AS (DELETE FROM job), h AS (DELETE FROM answer), i AS (DELETE FROM limit_override) SELECT 1")

#define PG_STATEMENT_NAME(name, sql) PG_##name##_ST,
enum pg_statement { PG_STATEMENTS(PG_STATEMENT_NAME) PG_STATEMENT_COUNT };
#undef PG_STATEMENT_NAME

#define PG_ARGS_MAX 20
struct pg_args {
	int count;
	bool impossible; /* a text that no row can contain: not UTF-8, or with a NUL */
	const char *values[PG_ARGS_MAX];
	int lengths[PG_ARGS_MAX], formats[PG_ARGS_MAX];
	char numbers[PG_ARGS_MAX][24];
};

/* args.c */
void pg_str(struct pg_args *a, struct str s);
void pg_str_or_null(struct pg_args *a, struct str s);
void pg_z(struct pg_args *a, const char *z);
void pg_int(struct pg_args *a, int64_t v);
void pg_bytes(struct pg_args *a, const void *p, size_t n);
bool pg_utf8(struct str s);

/* What was sent on a connection, beside statements that are being prepared; SENT_KEPT: its result is needed. */
enum pg_sent { SENT_CHAIN = -5, SENT_GUESS = -4, SENT_KEPT = -3, SENT_SYNC = -2, SENT_COMMAND = -1 };

enum pg_role { PG_READER, PG_WRITER, PG_LISTENER, PG_TOOL };

#define PG_SENT_MAX 1024
#define PG_MANY_MAX 64
#define PG_KNOWN_MAX 16
#define PG_EVENT_COLUMNS 13
#define PG_FRESH_MAX 64
#define PG_FRESH_COLUMNS 7

/* A list that a batch adds to. Its counts do not include the positions from `first` up to `next` yet. */
struct pg_list {
	struct str kind, parent;
	int64_t first, next; /* next < 0: the list was not read, and its counts are complete */
};

/* Documents that are inserted together, before the next statement of another kind: see fresh.c. */
struct pg_fresh {
	struct buf columns[PG_FRESH_COLUMNS];
	uint32_t count;
	uint64_t lists[PG_FRESH_MAX]; /* hashes of their lists */
	uint64_t kind;                /* the hash of what the last statement has inserted; 0: it was another one */
};

/* What a guessing batch knows about the store; see writer.c. */
struct pg_known {
	struct arena *arena;
	size_t bytes; /* used in the arena */
	struct pg_list lists[PG_KNOWN_MAX];
	unsigned list_count;
	/* Events to be written together: one array per column. */
	struct buf events[PG_EVENT_COLUMNS];
	uint32_t event_count;
	struct pg_fresh fresh;
};

/* One connection. */
struct pg {
	PGconn *conn; /* NULL: none */
	enum pg_role role;
	/* What was sent and not answered yet, in order: enum pg_sent, or the statement that is being prepared. */
	short sent[PG_SENT_MAX];
	unsigned sent_count, flushed;      /* flushed: how many of them a batch has flushed to the server */
	char prepared[PG_STATEMENT_COUNT]; /* 0: no; 1: sent; 2: yes */
	/* Of a reader: */
	bool begun;  /* this read has started a transaction */
	bool ending; /* the transaction is over, but the server does not know yet */
	bool looked; /* something was read in it: another connection would have another snapshot */
	bool gone;   /* the connection broke after that */
	/* Of the writer: */
	bool lost, spoiled; /* the batch cannot continue: its connection broke (run it again), or it failed */
	bool undoable;      /* a failure belongs to the current write, which has a savepoint */
	bool chain_known, chain_changed;
	struct event_chain chain, chain_before;
	bool known_before, changed_before; /* the values at the start of the write */
	bool guessing, guess_failed;       /* the batch guesses; and a guess was wrong: run it again without guessing */
	bool changed;                      /* the current write has sent a change */
	unsigned careful;                  /* how many of the next batches must not guess */
	struct pg_known known;
	struct pg_ahead *ahead; /* NULL: none yet */
	char batch[25];
};

struct pg_store {
	_Atomic int64_t down_until_us;  /* the last attempt to connect failed: readers do not try before this time */
	_Atomic int64_t down_logged_us; /* when that was last logged */
	_Atomic unsigned host;          /* the current host of the URL: grows with each failure */
	_Atomic uint64_t data_version;
	_Atomic int64_t touches; /* changes of identities by this process */
	_Atomic int writer_pid;  /* of the session that announces them */
	struct pg_listener *listener;
};

/* tx.c. A connection is made on first use, with bounded waits. */
struct tx *pg_tx_new(struct store *s, enum pg_role role);
void pg_tx_free(struct tx *tx); /* accepts NULL */

/* connect.c. pg_connect(): -ENOTCONN, logged once in a while; -EINVAL: not a URL (logged without quoting it). */
#define PG_CONNECT_US 2000000
must_check int pg_connect(struct tx *tx, int64_t until_us);
void pg_disconnect(struct pg *p);
bool pg_socket_wait(PGconn *conn, short events, int64_t until_us); /* false at the deadline */
void pg_sent_add(struct pg *p, short what);

/* pg.c. Runs a statement. Returns the number of rows, or of changed rows; -ENOTCONN; -EIO (logged). When ret_result is
 * given, the caller must PQclear() it. */
must_check int pg_exec(struct tx *tx, enum pg_statement st, const struct pg_args *args, PGresult **ret_result);
/* The same once for each of at most PG_MANY_MAX arguments: in one round trip and, for a reader, from one snapshot. 0,
 * and a result for each. */
must_check int pg_exec_many(struct tx *tx, enum pg_statement st, const struct pg_args *const *args, unsigned count,
                            PGresult **ret_results);
/* The same in a write, with a statement for each of the arguments. */
must_check int pg_write_many(struct tx *tx, const enum pg_statement *st, const struct pg_args *const *args,
                             unsigned count, PGresult **ret_results);
/* In a write: the same as pg_exec(), without waiting for the result. A failure shows with the next statement that
 * waits, and undoes the whole batch. */
must_check int pg_defer(struct tx *tx, enum pg_statement st, const struct pg_args *args);
/* The same for a statement that is expected to return or change a row. If it does not, the batch is run again. Only in
 * a batch that guesses. */
must_check int pg_guess(struct tx *tx, enum pg_statement st, const struct pg_args *args);
/* Asks for the ends of the chain before the first event: they arrive with the next result. */
must_check int pg_chain_ask(struct tx *tx);
/* Reads all outstanding results. */
must_check int pg_settle(struct tx *tx);
/* SQL that is run once: migrations, checks, copies. */
must_check int pg_once(struct tx *tx, const char *sql, const struct pg_args *args, PGresult **ret_result);
/* The same, without waiting: pg_settle() reports failures. */
must_check int pg_queue(struct tx *tx, const char *sql, const struct pg_args *args);
/* What is sent before and what is sent after are two transactions. */
bool pg_sync_send(struct pg *p);

/* array.c: arguments that are arrays, in PostgreSQL's binary form. The array is the buffer's, and must outlive the
 * arguments. */
enum { PG_OID_BYTEA = 17, PG_OID_INT8 = 20, PG_OID_TEXT = 25 };
void pg_elements_add(struct buf *array, const void *p, size_t n);
void pg_elements_add_str(struct buf *array, struct str s);
void pg_elements_add_int(struct buf *array, int64_t v);
void pg_elements_add_null(struct buf *array);
void pg_elements_arg(struct pg_args *args, struct buf *array, uint32_t oid, uint32_t count);

/* fresh.c: inserts a document of a list that the batch does not know, on the guess that it is new. */
must_check int pg_fresh_add(struct tx *tx, const struct doc *d, const struct pg_args *args);
/* Sends those that are kept. Called before every other statement. */
must_check int pg_fresh_flush(struct tx *tx);
void pg_fresh_free(struct pg_fresh *f);

static inline struct str pg_column(const PGresult *r, int row, int i)
{
	if (PQgetisnull(r, row, i))
		return STR_NONE;
	return (struct str){PQgetvalue(r, row, i), (size_t)PQgetlength(r, row, i)};
}

static inline int64_t pg_number(const PGresult *r, int row, int i)
{
	uint64_t v = 0;
	if (!PQgetisnull(r, row, i) && PQgetlength(r, row, i) == 8)
		memcpy(&v, PQgetvalue(r, row, i), 8);
	return (int64_t)be64toh(v);
}

/* migrations.c */
must_check int pg_migrations_run(struct tx *tx);
must_check int pg_migrations_verify(struct tx *tx, FILE *out);

/* writer.c */
int pg_batch_begin(struct tx *tx);
int pg_write_begin(struct tx *tx);
int pg_write_end(struct tx *tx, bool keep);
int pg_batch_commit(struct tx *tx);
void pg_batch_abort(struct tx *tx);
void pg_idle(struct tx *tx, bool busy);

/* docs.c */
void pg_get_many(struct tx *tx, struct doc_wanted *const *list, size_t count);
void pg_doc_read(struct arena *a, const PGresult *r, int row, struct doc *ret_doc);

/* ahead.c: answers that a write has read ahead. */
void pg_read_ahead(struct tx *tx, const struct doc_question *list, size_t count);
void pg_ahead_clear(struct pg *p);
void pg_ahead_free(struct pg *p);
/* True when the answer is known. */
bool pg_ahead_get(struct tx *tx, struct arena *a, const char *kind, struct str id, struct doc *ret_doc,
                  int *ret_result);
bool pg_ahead_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                      struct doc *ret_doc, int *ret_result);
bool pg_ahead_count(struct tx *tx, const char *kind, struct str parent, int64_t *ret_count);
/* What the write has read: a document, that there is none of that name, how many a list has. */
void pg_ahead_doc(struct tx *tx, const struct doc *d);
void pg_ahead_no_name(struct tx *tx, const char *kind, struct str parent, struct str name);
void pg_ahead_counted(struct tx *tx, const char *kind, struct str parent, int64_t count);
/* What the write does. Updated: true when the document is known to be there, with that revision and name. Deleted: true
 * when the document was known, and which it was: borrowed until the write ends. */
void pg_ahead_inserted(struct tx *tx, const struct doc *d);
bool pg_ahead_updated(struct tx *tx, const struct doc *d);
void pg_ahead_changed(struct tx *tx, struct str kind, struct str id);
bool pg_ahead_deleted(struct tx *tx, const char *kind, struct str id, struct doc *ret_doc);
void pg_ahead_deleted_list(struct tx *tx, struct str kind, struct str parent);
/* Forgets what a guessing batch knows. */
void pg_known_reset(struct pg *p);
/* Writes the counts that are still missing, and forgets the lists. */
must_check int pg_known_lists(struct tx *tx);

/* events.c: writes the events that are kept back. */
must_check int pg_known_events(struct tx *tx);
/* Reads the ends of the chain from meta. */
must_check int pg_chain_read(struct tx *tx, struct event_chain *ret_chain);

/* watch.c */
int pg_watch(struct tx *tx, struct watch *w);

/* listen.c: learns what other processes have changed. */
must_check int pg_listener_start(struct store *s);
void pg_listener_stop(struct store *s);

#define STORE_PROTOTYPE(name, parameters, arguments) int pg_##name parameters;
STORE_OPS(STORE_PROTOTYPE)
#undef STORE_PROTOTYPE

#endif
