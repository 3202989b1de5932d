/* What clients have sent, as pg_stat_statements counts it: the evidence that suggested indexes rest on. Its texts
 * have $1 in the place of values (constants.h), so that thousands of statements that differ in these alone are one,
 * and nobody's data leaves the server. (pg_qualstats, which was asked before, has a row for each combination of values
 * that are joined by AND, and forgot all others for them.) */
#include "engine/postgres/observe/advice_statements.h"

#include "engine/postgres/observe/advice.h"
#include "engine/postgres/observe/constants.h"
#include "engine/postgres/sql/sql.h"
#include "module/inner.h"

#include <errno.h>
#include <stdlib.h>

/* Statements of users that take half a millisecond or longer: less is not worth an index. The service's own sessions
 * are not counted at all, and superusers plan nothing here. */
#define STATEMENTS_ASK                                                                                                 \
	"select d.datname, r.rolname, s.queryid, s.query, s.calls, s.rows, s.total_exec_time from "                    \
	"steward.pg_stat_statements s join pg_database d on d.oid = s.dbid join pg_roles r on r.oid = s.userid where " \
	"s.toplevel and s.queryid is not null and s.calls > 0 and not d.datistemplate and not r.rolsuper and "         \
	"r.rolname not in ('" PG_SUPER "', '" PG_SHARD "') and s.total_exec_time >= s.calls * 0.5 and "                \
	"octet_length(s.query) <= %d and s.query ~* '\\m(select|update|delete|merge)\\M' order by "                    \
	"s.total_exec_time desc limit %d"

static void statement_take(struct engine_statements *s, size_t *room, struct arena *a, const char *node,
                           const PGresult *rows, int i)
{
	const char *text = steward_inner_statement(arena_z(a, str_of(pg_value(rows, i, 3))));
	ARENA_FIT(a, s->list, s->count, *room);
	s->list[s->count++] = (struct engine_statement){
	        .node = arena_z(a, str_of(node)),
	        .database = arena_z(a, str_of(pg_value(rows, i, 0))),
	        .user = arena_z(a, str_of(pg_value(rows, i, 1))),
	        .query = strtoll(pg_value(rows, i, 2), NULL, 10),
	        .text = engine_shown(a, pg_constants_hide(a, text)),
	        .calls = strtoll(pg_value(rows, i, 4), NULL, 10),
	        .rows = strtoll(pg_value(rows, i, 5), NULL, 10),
	        .ms = strtod(pg_value(rows, i, 6), NULL),
	};
}

/* A node that does not answer now keeps what it has counted for the next time. One that has texts of another encoding
 * gives none of its texts (-EPROTO). */
int pg_advice_statements(struct engine *e, const char *cluster_id, struct arena *a,
                         struct engine_statements *ret_statements)
{
	struct engine_statements s = {.count = 0};
	struct pg_inquiry q;
	char sql[sizeof STATEMENTS_ASK + 32];
	size_t room = 0, asked = 0;
	int r = pg_inquiry_begin(e, cluster_id, a, &q), last = 0;
	if (r < 0)
		return r;
	snprintf(sql, sizeof sql, STATEMENTS_ASK, ENGINE_STATEMENT_BYTES, ENGINE_STATEMENTS_MAX);
	for (size_t i = 0; i < q.place_count && !s.missing; i++) {
		PGresult *rows;
		if (!q.places[i].runs)
			continue;
		r = pg_inquiry_statements(&q, &q.places[i], sql, &rows, &s.missing);
		if (r == 0) {
			for (int k = 0; k < PQntuples(rows); k++)
				statement_take(&s, &room, a, q.places[i].node.want.name, rows, k);
			PQclear(rows);
		}
		asked += r == 0 || r == -EPROTO || r == -ENOENT;
		last = r;
	}
	if (!asked)
		return last < 0 ? last : -EAGAIN;
	*ret_statements = s;
	return 0;
}
