/* Verifies a store or a copy of one, in one snapshot, so that it may be in use meanwhile. It only reads. */
#include "store/sqlite.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

/* More would say nothing new. */
#define FAULTS_SHOWN 100

struct check {
	struct tx *conn;
	FILE *out;
	int faults;
};

static void fault(struct check *c, const char *format, ...) printf_like(2, 3);

static void fault(struct check *c, const char *format, ...)
{
	va_list args;
	if (++c->faults > FAULTS_SHOWN) {
		if (c->faults == FAULTS_SHOWN + 1)
			fprintf(c->out, "and more\n");
		return;
	}
	va_start(args, format);
	vfprintf(c->out, format, args);
	va_end(args);
	fputc('\n', c->out);
}

/* Calls row() for each row. Negative when the query cannot be run to its end. */
static int each_row(struct check *c, const char *sql, void (*row)(struct check *c, sqlite3_stmt *st, void *ctx),
                    void *ctx)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(c->conn->db, sql, -1, &st, NULL);
	while (r == SQLITE_OK || r == SQLITE_ROW) {
		r = sqlite3_step(st);
		if (r == SQLITE_ROW)
			row(c, st, ctx);
	}
	sqlite3_finalize(st);
	if (r == SQLITE_DONE)
		return 0;
	fault(c, "cannot be read: %s", sqlite3_errmsg(c->conn->db));
	return -EIO;
}

static void row_integrity(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str line = column_str(st, 0);
	if (!str_is(line, "ok"))
		fault(c, "file: %.*s", STR_ARG(line));
}

static void row_list(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str kind = column_str(st, 0), parent = column_str(st, 1);
	fault(c,
	      "list %.*s of \"%.*s\": counts %lld documents (%lld at its head, next position %lld), has %lld (%lld, "
	      "%lld)",
	      STR_ARG(kind), STR_ARG(parent), (long long)sqlite3_column_int64(st, 2),
	      (long long)sqlite3_column_int64(st, 3), (long long)sqlite3_column_int64(st, 4),
	      (long long)sqlite3_column_int64(st, 5), (long long)sqlite3_column_int64(st, 6),
	      (long long)sqlite3_column_int64(st, 7));
}

static void row_block(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str kind = column_str(st, 0), parent = column_str(st, 1);
	fault(c, "list %.*s of \"%.*s\": block %lld of level %lld counts %lld documents, has %lld", STR_ARG(kind),
	      STR_ARG(parent), (long long)sqlite3_column_int64(st, 3), (long long)sqlite3_column_int64(st, 2),
	      (long long)sqlite3_column_int64(st, 4), (long long)sqlite3_column_int64(st, 5));
}

static void row_body(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str kind = column_str(st, 0), id = column_str(st, 1), body = column_str(st, 2);
	json_error_t error;
	json_t *json = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fault(c, "document %.*s %.*s: the body is not JSON: %s", STR_ARG(kind), STR_ARG(id), error.text);
	else if (!json_is_object(json))
		fault(c, "document %.*s %.*s: the body is not an object", STR_ARG(kind), STR_ARG(id));
	json_decref(json);
}

static void row_ref(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str kind = column_str(st, 0), value = column_str(st, 1), id = column_str(st, 2);
	fault(c, "reference %.*s \"%.*s\": points to %.*s, which is not there", STR_ARG(kind), STR_ARG(value),
	      STR_ARG(id));
}

struct chain {
	struct event_chain ends; /* as meta has them */
	int64_t seq;
	unsigned char hash[32];
};

static void row_event(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct chain *chain = ctx;
	unsigned char hash[32];
	struct event_row row = {
	        .seq = sqlite3_column_int64(st, 0),
	        .event = {.id = column_str(st, 1),
	                  .org_id = column_str(st, 2),
	                  .group_id = column_str(st, 3),
	                  .type = column_str(st, 4),
	                  .created_ms = sqlite3_column_int64(st, 5),
	                  .body = column_str(st, 6),
	                  .cluster = column_str(st, 9),
	                  .raw = column_str(st, 10),
	                  .for_org = sqlite3_column_type(st, 11) != SQLITE_NULL,
	                  .for_group = sqlite3_column_type(st, 12) != SQLITE_NULL},
	};
	struct str prev = column_str(st, 7), stored = column_str(st, 8);
	if (prev.n != sizeof hash || stored.n != sizeof hash) {
		fault(c, "event %lld: has no hash", (long long)row.seq);
		return;
	}
	if (row.seq != chain->seq + 1 || memcmp(prev.p, chain->hash, sizeof hash) != 0)
		fault(c, "event %lld: does not follow event %lld", (long long)row.seq, (long long)chain->seq);
	memcpy(hash, prev.p, sizeof hash);
	event_hash(hash, &row, hash);
	if (memcmp(hash, stored.p, sizeof hash) != 0)
		fault(c, "event %lld: was changed after it was written", (long long)row.seq);
	memcpy(chain->hash, stored.p, sizeof hash);
	chain->seq = row.seq;
}

static void row_positions(struct check *c, sqlite3_stmt *st, void *ctx)
{
	struct str scope = column_str(st, 0);
	fault(c, "events of %.*s: %lld are listed at positions %lld to %lld, or not in their order", STR_ARG(scope),
	      (long long)sqlite3_column_int64(st, 1), (long long)sqlite3_column_int64(st, 2),
	      (long long)sqlite3_column_int64(st, 3));
}

/* clang-format off */
/* %d: the bits of a block. */
static const char sql_lists[] =
	"SELECT kind, parent, coalesce(max(count), 0), coalesce(max(head), 0), coalesce(max(next_seq), 0),"
	" coalesce(max(docs), 0), coalesce(max(docs_head), 0), coalesce(max(docs_next), 0) FROM"
	" (SELECT kind, parent, count, head, next_seq, NULL AS docs, NULL AS docs_head, NULL AS docs_next FROM list"
	"  UNION ALL SELECT kind, parent, NULL, NULL, NULL, count(*), sum(seq >> %d = 0), max(seq) + 1 FROM doc"
	"  GROUP BY kind, parent) GROUP BY kind, parent"
	" HAVING max(count) IS NOT max(docs) OR max(head) IS NOT max(docs_head) OR max(next_seq) < max(docs_next)";

/* %d: the level, the level, the bits of a block of that level, the bits of a block, those of the level again. */
static const char sql_blocks[] =
	"SELECT kind, parent, %d, block, coalesce(max(count), 0), coalesce(max(docs), 0) FROM"
	" (SELECT kind, parent, block, count, NULL AS docs FROM list_block WHERE level = %d"
	"  UNION ALL SELECT kind, parent, seq >> %d AS block, NULL, count(*) FROM doc WHERE seq >> %d > 0"
	"  GROUP BY kind, parent, seq >> %d) GROUP BY kind, parent, block HAVING max(count) IS NOT max(docs)";

/* Kinds of reference whose target's kind is known. */
static const char sql_refs[] =
	"WITH target (ref, kind) AS (VALUES ('api_key_public', 'api_key'),"
	"  ('service_account_client', 'service_account'), ('user_name', 'user'),"
	"  ('identity_provider_okta', 'identity_provider'), ('identity_provider_slug', 'identity_provider'))"
	" SELECT r.kind, r.value, r.id FROM ref r JOIN target t ON t.ref = r.kind"
	" WHERE NOT EXISTS (SELECT 1 FROM doc d WHERE d.kind = t.kind AND d.id = r.id)";

static const char sql_events[] =
	"SELECT seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, raw, org_pos, group_pos"
	" FROM event ORDER BY seq";

/* Positions must be dense and in the order of the chain: less the running number, all of a scope are the same. */
static const char sql_org_positions[] =
	"SELECT org_id, count(*), min(org_pos), max(org_pos) FROM (SELECT org_id, org_pos,"
	" org_pos - row_number() OVER (PARTITION BY org_id ORDER BY seq) AS base FROM event WHERE org_pos > 0)"
	" GROUP BY org_id HAVING min(base) <> max(base)";
static const char sql_group_positions[] =
	"SELECT group_id, count(*), min(group_pos), max(group_pos) FROM (SELECT group_id, group_pos,"
	" group_pos - row_number() OVER (PARTITION BY group_id ORDER BY seq) AS base FROM event WHERE group_pos > 0)"
	" GROUP BY group_id HAVING min(base) <> max(base)";
/* clang-format on */

/* The events between the ends that meta tells. */
static int check_events(struct check *c)
{
	struct chain chain = {.ends = {.first = 1}};
	int r = event_chain_read(c->conn, &chain.ends);
	if (r == -EIO)
		return r;
	if (r == -EBADMSG || chain.ends.forged)
		fault(c, "events: the ends of the log are not signed by this service");
	chain.seq = chain.ends.first - 1;
	memcpy(chain.hash, chain.ends.before, sizeof chain.hash);
	r = each_row(c, sql_events, row_event, &chain);
	if (r == 0 && (chain.seq != chain.ends.last || memcmp(chain.hash, chain.ends.head, sizeof chain.hash) != 0))
		fault(c, "events: the log ends with event %lld, %lld was the last that was written",
		      (long long)chain.seq, (long long)chain.ends.last);
	if (r == 0)
		r = each_row(c, sql_org_positions, row_positions, NULL);
	return r < 0 ? r : each_row(c, sql_group_positions, row_positions, NULL);
}

static int check_all(struct check *c)
{
	char sql[1024];
	int r = each_row(c, "PRAGMA integrity_check", row_integrity, NULL);
	snprintf(sql, sizeof sql, sql_lists, BLOCK_BITS);
	if (r == 0)
		r = each_row(c, sql, row_list, NULL);
	for (int level = 0; r == 0 && level < BLOCK_LEVELS; level++) {
		int bits = BLOCK_BITS * (level + 1);
		snprintf(sql, sizeof sql, sql_blocks, level, level, bits, BLOCK_BITS, bits);
		r = each_row(c, sql, row_block, NULL);
	}
	if (r == 0)
		r = each_row(c, "SELECT kind, id, body FROM doc", row_body, NULL);
	if (r == 0)
		r = each_row(c, sql_refs, row_ref, NULL);
	if (r == 0)
		r = check_events(c);
	return r;
}

int sqlite_check(const char *path, FILE *out)
{
	char *file = store_path(path);
	struct check c = {.out = out};
	int r = access(file, R_OK) < 0 ? -errno : 0;
	if (r < 0)
		fprintf(out, "%s: %s\n", file, strerror(-r));
	if (r == 0)
		r = conn_open(file, SQLITE_OPEN_READONLY, &c.conn);
	if (r == 0)
		r = migrations_verify(c.conn, file, out);
	if (r == 0)
		r = conn_exec(c.conn, "BEGIN");
	if (r == 0) {
		/* A file that is damaged so that it cannot be read to its end has faults, not no answer. */
		r = check_all(&c);
		r = r < 0 && c.faults == 0 ? r : c.faults;
	}
	conn_close(c.conn);
	free(file);
	return r;
}
