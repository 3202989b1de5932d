/* Verifies a store in PostgreSQL, in one snapshot, so that it may be in use meanwhile. It only reads, a page at a time. That
 * pages and indexes are whole is PostgreSQL's own business (checksums, amcheck). */
#include "store/pg.h"

#include "base/clock.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

/* More would say nothing new. */
#define FAULTS_SHOWN 100
#define PAGE 1000

struct check {
	struct tx *tx;
	FILE *out;
	int faults;
	/* Where the walk over documents has come to. */
	char *kind, *id;
	/* The chain of events. */
	struct event_chain ends;
	int64_t seq;
	unsigned char hash[32];
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

/* Calls row() for each row. The number of rows, or negative. */
static int each_row(struct check *c, const char *sql, const struct pg_args *args,
                    void (*row)(struct check *c, const PGresult *r, int i))
{
	PGresult *result;
	int r = pg_once(c->tx, sql, args, &result);
	for (int i = 0; i < r; i++)
		row(c, result, i);
	if (r >= 0)
		PQclear(result);
	return r;
}

/* For messages: nothing is an empty text. */
static struct str cell(const PGresult *r, int row, int i)
{
	struct str value = pg_column(r, row, i);
	return value.p ? value : STR("");
}

static void row_list(struct check *c, const PGresult *r, int i)
{
	struct str kind = cell(r, i, 0), parent = cell(r, i, 1);
	fault(c,
	      "list %.*s of \"%.*s\": counts %lld documents (%lld at its head, next position %lld), has %lld (%lld, "
	      "%lld)",
	      STR_ARG(kind), STR_ARG(parent), (long long)pg_number(r, i, 2), (long long)pg_number(r, i, 3),
	      (long long)pg_number(r, i, 4), (long long)pg_number(r, i, 5), (long long)pg_number(r, i, 6),
	      (long long)pg_number(r, i, 7));
}

static void row_block(struct check *c, const PGresult *r, int i)
{
	struct str kind = cell(r, i, 0), parent = cell(r, i, 1);
	fault(c, "list %.*s of \"%.*s\": block %lld of level %lld counts %lld documents, has %lld", STR_ARG(kind),
	      STR_ARG(parent), (long long)pg_number(r, i, 3), (long long)pg_number(r, i, 2),
	      (long long)pg_number(r, i, 4), (long long)pg_number(r, i, 5));
}

static void row_ref(struct check *c, const PGresult *r, int i)
{
	struct str kind = cell(r, i, 0), value = cell(r, i, 1), id = cell(r, i, 2);
	fault(c, "reference %.*s \"%.*s\": points to %.*s, which is not there", STR_ARG(kind), STR_ARG(value),
	      STR_ARG(id));
}

static void row_positions(struct check *c, const PGresult *r, int i)
{
	struct str scope = cell(r, i, 0);
	fault(c, "events of %.*s: %lld are listed at positions %lld to %lld, or not in their order", STR_ARG(scope),
	      (long long)pg_number(r, i, 1), (long long)pg_number(r, i, 2), (long long)pg_number(r, i, 3));
}

static char *text_keep(char *old, struct str s)
{
	free(old);
	char *copy = must_malloc(s.n + 1);
	memcpy(copy, s.n ? s.p : "", s.n);
	copy[s.n] = '\0';
	return copy;
}

static void row_body(struct check *c, const PGresult *r, int i)
{
	struct str kind = cell(r, i, 0), id = cell(r, i, 1), body = cell(r, i, 2);
	json_error_t error;
	json_t *json = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, &error);
	if (!json)
		fault(c, "document %.*s %.*s: the body is not JSON: %s", STR_ARG(kind), STR_ARG(id), error.text);
	else if (!json_is_object(json))
		fault(c, "document %.*s %.*s: the body is not an object", STR_ARG(kind), STR_ARG(id));
	json_decref(json);
	c->kind = text_keep(c->kind, kind);
	c->id = text_keep(c->id, id);
}

static void row_event(struct check *c, const PGresult *r, int i)
{
	unsigned char hash[32];
	struct event_row row = {
	        .seq = pg_number(r, i, 0),
	        .event = {.id = cell(r, i, 1),
	                  .org_id = cell(r, i, 2),
	                  .group_id = cell(r, i, 3),
	                  .type = cell(r, i, 4),
	                  .created_ms = pg_number(r, i, 5),
	                  .body = cell(r, i, 6),
	                  .cluster = cell(r, i, 9),
	                  .raw = cell(r, i, 10),
	                  .for_org = !PQgetisnull(r, i, 11),
	                  .for_group = !PQgetisnull(r, i, 12)},
	};
	struct str prev = cell(r, i, 7), stored = cell(r, i, 8);
	if (prev.n != sizeof hash || stored.n != sizeof hash) {
		fault(c, "event %lld: has no hash", (long long)row.seq);
		c->seq = row.seq;
		return;
	}
	if (row.seq != c->seq + 1 || memcmp(prev.p, c->hash, sizeof hash) != 0)
		fault(c, "event %lld: does not follow event %lld", (long long)row.seq, (long long)c->seq);
	memcpy(hash, prev.p, sizeof hash);
	event_hash(hash, &row, hash);
	if (memcmp(hash, stored.p, sizeof hash) != 0)
		fault(c, "event %lld: was changed after it was written", (long long)row.seq);
	memcpy(c->hash, stored.p, sizeof hash);
	c->seq = row.seq;
}

/* clang-format off */
static const char sql_lists[] =
	"SELECT coalesce(l.kind, d.kind), coalesce(l.parent, d.parent), coalesce(l.count, 0), coalesce(l.head, 0),"
	" coalesce(l.next_seq, 0), coalesce(d.count, 0), coalesce(d.head, 0), coalesce(d.next_seq, 0)"
	" FROM list l FULL JOIN (SELECT kind, parent, count(*) AS count, count(*) FILTER (WHERE seq < 512) AS head,"
	"  max(seq) + 1 AS next_seq FROM doc GROUP BY kind, parent) d ON l.kind = d.kind AND l.parent = d.parent"
	" WHERE l.count IS DISTINCT FROM d.count OR l.head IS DISTINCT FROM d.head OR l.next_seq < d.next_seq";

static const char sql_blocks[] =
	"SELECT coalesce(b.kind, d.kind), coalesce(b.parent, d.parent), coalesce(b.level, d.level),"
	" coalesce(b.block, d.block), coalesce(b.count, 0), coalesce(d.count, 0)"
	" FROM list_block b FULL JOIN"
	" (SELECT kind, parent, v.level, seq >> (9 * (v.level + 1)) AS block, count(*) AS count"
	"  FROM doc, (VALUES (0), (1)) v (level) WHERE seq >= 512 GROUP BY 1, 2, 3, 4) d"
	" ON b.kind = d.kind AND b.parent = d.parent AND b.level = d.level AND b.block = d.block"
	" WHERE b.count IS DISTINCT FROM d.count";

static const char sql_bodies[] =
	"SELECT kind, id, body FROM doc WHERE (kind, id) > ($1, $2) ORDER BY kind, id LIMIT 1000";

/* Kinds of reference whose target's kind is known. */
static const char sql_refs[] =
	"WITH target (ref, kind) AS (VALUES ('api_key_public', 'api_key'),"
	"  ('service_account_client', 'service_account'), ('user_name', 'user'),"
	"  ('identity_provider_okta', 'identity_provider'), ('identity_provider_slug', 'identity_provider'))"
	" SELECT r.kind, r.value, r.id FROM ref r JOIN target t ON t.ref = r.kind"
	" WHERE NOT EXISTS (SELECT 1 FROM doc d WHERE d.kind = t.kind AND d.id = r.id)";

static const char sql_events[] =
	"SELECT seq, id, org_id, group_id, type, created_ms, body, prev_hash, hash, cluster, raw, org_pos, group_pos"
	" FROM event WHERE seq > $1 ORDER BY seq LIMIT 1000";

/* Positions must be dense and in the order of the chain: less the running number, all of a scope are the same. */
static const char sql_org_positions[] =
	"SELECT org_id, count(*), min(org_pos), max(org_pos) FROM (SELECT org_id, org_pos,"
	" org_pos - row_number() OVER (PARTITION BY org_id ORDER BY seq) AS base FROM event WHERE org_pos > 0) s"
	" GROUP BY org_id HAVING min(base) <> max(base)";
static const char sql_group_positions[] =
	"SELECT group_id, count(*), min(group_pos), max(group_pos) FROM (SELECT group_id, group_pos,"
	" group_pos - row_number() OVER (PARTITION BY group_id ORDER BY seq) AS base FROM event WHERE group_pos > 0) s"
	" GROUP BY group_id HAVING min(base) <> max(base)";
/* clang-format on */

static int check_bodies(struct check *c)
{
	int r;
	c->kind = text_keep(NULL, STR_NONE);
	c->id = text_keep(NULL, STR_NONE);
	do {
		struct pg_args args = {0};
		pg_z(&args, c->kind);
		pg_z(&args, c->id);
		r = each_row(c, sql_bodies, &args, row_body);
	} while (r == PAGE);
	free(c->kind);
	free(c->id);
	return r;
}

/* The events between the ends that meta tells. */
static int check_events(struct check *c)
{
	c->ends = (struct event_chain){.first = 1};
	int r = pg_chain_read(c->tx, &c->ends);
	if (r < 0 && r != -ENOENT && r != -EBADMSG)
		return r;
	if (r == -EBADMSG || c->ends.forged)
		fault(c, "events: the ends of the log are not signed by this service");
	c->seq = c->ends.first - 1;
	memcpy(c->hash, c->ends.before, sizeof c->hash);
	do {
		struct pg_args args = {0};
		pg_int(&args, c->seq < c->ends.first ? INT64_MIN : c->seq);
		r = each_row(c, sql_events, &args, row_event);
	} while (r == PAGE);
	if (r >= 0 && (c->seq != c->ends.last || memcmp(c->hash, c->ends.head, sizeof c->hash) != 0))
		fault(c, "events: the log ends with event %lld, %lld was the last that was written", (long long)c->seq,
		      (long long)c->ends.last);
	if (r >= 0)
		r = each_row(c, sql_org_positions, NULL, row_positions);
	return r < 0 ? r : each_row(c, sql_group_positions, NULL, row_positions);
}

static int check_all(struct check *c)
{
	int r = pg_once(c->tx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, NULL);
	if (r >= 0)
		r = each_row(c, sql_lists, NULL, row_list);
	if (r >= 0)
		r = each_row(c, sql_blocks, NULL, row_block);
	if (r >= 0)
		r = check_bodies(c);
	if (r >= 0)
		r = each_row(c, sql_refs, NULL, row_ref);
	if (r >= 0)
		r = check_events(c);
	return r;
}

int pg_check(const char *url, FILE *out)
{
	struct pg_store shared = {0};
	struct store s = {.ops = &postgres_ops, .path = must_strdup(url), .pg = &shared};
	struct check c = {.tx = pg_tx_new(&s, PG_TOOL), .out = out};
	int r = pg_connect(c.tx, clock_mono_us() + 5000000);
	if (r == 0)
		r = pg_migrations_verify(c.tx, out);
	if (r == 0) {
		r = check_all(&c);
		r = r < 0 && c.faults == 0 ? r : c.faults;
	}
	if (r < 0)
		fprintf(out, "the store cannot be read\n");
	pg_tx_free(c.tx);
	free(s.path);
	return r;
}
