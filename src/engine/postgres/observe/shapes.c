/* Query shapes of a node: the module tells which query ids have which fingerprint and how long they took, and
 * pg_stat_statements the texts, rows and blocks. Both count since the server started. */
#include "engine/postgres/observe/shapes.h"

#include "base/buf.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/observe/constants.h"
#include "engine/postgres/observe/inspect.h"
#include "engine/postgres/sql/sql.h"
#include "module/inner.h"

#include <errno.h>
#include <stdlib.h>

#define ASK_MS 5000
#define BLOCK 8192
#define TEXT_OF(number) #number
#define TEXT_OF_VALUE(number) TEXT_OF(number)
#define BUCKET_COUNT TEXT_OF_VALUE(LATENCY_BUCKETS)

/* Whether the node's server has loaded what is asked below, and its functions are there. */
static const char ready[] = "select ((current_setting('shared_preload_libraries') ~ 'pg_stat_statements' and "
                            "to_regclass('steward.pg_stat_statements') is not null)::int + 2 * "
                            "(current_setting('steward.buckets', true) is not distinct from '" BUCKET_COUNT "' and "
                            "to_regprocedure('steward.statements()') is not null)::int)::bigint";

/* A text that is none in this database's encoding, which a user's database can have, makes the view fail as a whole:
 * without texts it tells the rest. */
#define QUERY(statements)                                                                                           \
	"select s.queryid, s.shape, s.command, s.name, d.datname, s.application, "                                  \
	"(extract(epoch from s.first_seen) * 1000)::bigint, (extract(epoch from s.last_seen) * 1000)::bigint, "     \
	"s.last_us, "                                                                                               \
	"s.total_us, s.refused, array_to_string(s.buckets, ','), coalesce(p.rows, 0), coalesce(p.blocks, 0), "      \
	"coalesce(p.text, '') from steward.statements() s join pg_database d on d.oid = s.dbid left join (select "  \
	"queryid, "                                                                                                 \
	"sum(rows)::bigint as rows, sum(shared_blks_read + local_blks_read)::bigint as blocks, left(min(query), "   \
	"8192) as "                                                                                                 \
	"text from " statements " group by queryid) p on p.queryid = s.queryid where s.shape is not null order by " \
	"s.shape, s.total_us desc"
static const char query[] = QUERY("steward.pg_stat_statements");
static const char query_textless[] = QUERY("steward.pg_stat_statements(false)");

enum column {
	ID,
	SHAPE,
	COMMAND,
	NAME,
	DATABASE,
	APPLICATION,
	FIRST,
	LAST,
	LAST_US,
	TOTAL,
	REFUSED,
	BUCKETS,
	ROWS,
	BLOCKS,
	TEXT
};

static int64_t number_at(const PGresult *rows, int row, enum column column)
{
	return strtoll(pg_value(rows, row, (int)column), NULL, 10);
}

static const char *text_at(struct arena *a, const PGresult *rows, int row, enum column column)
{
	return engine_shown(a, pg_value(rows, row, (int)column));
}

/* pg_stat_statements keeps the text of whoever came first: "prepare q as select ..." as well, which is not the
 * query. */
static const char *query_text(struct arena *a, const PGresult *rows, int row)
{
	const char *inner = steward_inner_statement(arena_z(a, str_of(pg_value(rows, row, TEXT))));
	return engine_shown(a, pg_constants_hide(a, inner));
}

static void shape_read(struct arena *a, const PGresult *rows, int row, struct engine_shape *s)
{
	*s = (struct engine_shape){
	        .text = query_text(a, rows, row),
	        .database = text_at(a, rows, row, DATABASE),
	        .table = text_at(a, rows, row, NAME),
	        .command = text_at(a, rows, row, COMMAND),
	        .application = text_at(a, rows, row, APPLICATION),
	        .total_us = (double)number_at(rows, row, TOTAL),
	        .rows = (uint64_t)number_at(rows, row, ROWS),
	        .bytes_read = (uint64_t)number_at(rows, row, BLOCKS) * BLOCK,
	        .refused = (uint64_t)number_at(rows, row, REFUSED),
	        .first_ms = number_at(rows, row, FIRST),
	        .last_ms = number_at(rows, row, LAST),
	        .last_us = number_at(rows, row, LAST_US),
	        .ids = {number_at(rows, row, ID)},
	        .id_count = 1,
	};
	str_copy(str_of(pg_value(rows, row, SHAPE)), s->fingerprint, sizeof s->fingerprint);
	char *at = pg_value(rows, row, BUCKETS);
	for (size_t i = 0; i < LATENCY_BUCKETS && *at; i++) {
		s->buckets[i] = strtoull(at, &at, 10);
		s->calls += s->buckets[i];
		at += *at == ',';
	}
}

/* Rows of one shape follow each other. */
static void shapes_read(struct arena *a, const PGresult *rows, struct engine_shape **ret_list, size_t *ret_count)
{
	int row_count = PQntuples(rows);
	struct engine_shape *list = arena_new_array(a, struct engine_shape, (size_t)row_count + 1);
	size_t count = 0;
	for (int i = 0; i < row_count; i++) {
		struct engine_shape next;
		shape_read(a, rows, i, &next);
		if (count > 0 && strcmp(list[count - 1].fingerprint, next.fingerprint) == 0)
			engine_shape_join(&list[count - 1], &next);
		else
			list[count++] = next;
	}
	*ret_list = list;
	*ret_count = count;
}

static void why_not_ready(const struct pg_cluster *c, struct arena *a, const char **ret_why)
{
	struct buf missing = {0};
	pg_module_missing(c->engine, c->version, &missing);
	*ret_why = missing.n ? arena_printf(a, "its host lacks %.*s", (int)missing.n, missing.p).p
	                     : "it was started before its host had what this needs, and gets it at its next restart";
	buf_free(&missing);
}

static int node_ask(const struct pg_cluster *c, const struct pg_node *n, struct arena *a,
                    struct engine_shape **ret_list, size_t *ret_count, const char **ret_why)
{
	PGconn *conn;
	PGresult *rows;
	int64_t has = 0;
	if (!n->pid || n->noted || pg_sql_open_node(c, n, "postgres", ASK_MS, &conn) < 0)
		return -EAGAIN;
	int r = pg_sql_int(conn, ASK_MS, ready, &has);
	if (r == 0 && has != 3) {
		why_not_ready(c, a, ret_why);
		r = -ENOTSUP;
	}
	r = r < 0 ? r : pg_sql_rows(conn, ASK_MS, query, &rows);
	if (r == -EPROTO)
		r = pg_sql_rows(conn, ASK_MS, query_textless, &rows);
	if (r == 0) {
		shapes_read(a, rows, ret_list, ret_count);
		PQclear(rows);
	}
	PQfinish(conn);
	return r == 0 || r == -ENOTSUP ? r : -EAGAIN;
}

static int shapes_list(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                       struct engine_shape **ret_list, size_t *ret_count, const char **ret_why)
{
	struct pg_cluster *c;
	struct pg_node n;
	int r = pg_node_get(e, cluster_id, node, &c, &n);
	if (r < 0)
		return r;
	*ret_list = NULL;
	*ret_count = 0;
	pthread_mutex_lock(&c->lock);
	bool asked = !pg_node_is_shard(c, &n); /* to shards only routers send queries */
	pthread_mutex_unlock(&c->lock);
	if (asked)
		r = node_ask(c, &n, a, ret_list, ret_count, ret_why);
	pg_cluster_put(c);
	return r;
}

const struct engine_shapes_ops pg_shapes = {.list = shapes_list};
