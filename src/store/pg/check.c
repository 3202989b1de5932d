/* Verifies a store in PostgreSQL, in one snapshot, so that it may be in use. It only reads, one page at a time.
 * Checking the server's pages and indexes is left to PostgreSQL (checksums, amcheck). */
#include "store/check.h"
#include "store/pg/pg.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE 1000

/* A check, and the progress of its walk over the documents. */
struct walk {
	struct check check;
	struct tx *tx;
	char *kind, *id;
};

/* Calls row() for each row. Returns the number of rows, or negative. */
static int each_row(struct walk *w, const char *sql, const struct pg_args *args,
                    void (*row)(struct walk *w, const PGresult *r, int i))
{
	PGresult *result;
	int r = pg_once(w->tx, sql, args, &result);
	for (int i = 0; i < r; i++)
		row(w, result, i);
	if (r >= 0)
		PQclear(result);
	return r;
}

/* For messages: NULL becomes an empty text. */
static struct str cell(const PGresult *r, int row, int i)
{
	struct str value = pg_column(r, row, i);
	return value.p ? value : STR("");
}

static void row_list(struct walk *w, const PGresult *r, int i)
{
	int64_t n[6];
	for (int k = 0; k < 6; k++)
		n[k] = pg_number(r, i, 2 + k);
	check_list(&w->check, cell(r, i, 0), cell(r, i, 1), n, n + 3);
}

static void row_block(struct walk *w, const PGresult *r, int i)
{
	check_block(&w->check, cell(r, i, 0), cell(r, i, 1), pg_number(r, i, 2), pg_number(r, i, 3), pg_number(r, i, 4),
	            pg_number(r, i, 5));
}

static void row_ref(struct walk *w, const PGresult *r, int i)
{
	check_ref(&w->check, cell(r, i, 0), cell(r, i, 1), cell(r, i, 2));
}

static void row_positions(struct walk *w, const PGresult *r, int i)
{
	check_positions(&w->check, cell(r, i, 0), pg_number(r, i, 1), pg_number(r, i, 2), pg_number(r, i, 3));
}

static char *text_keep(char *old, struct str s)
{
	free(old);
	char *copy = must_malloc(s.n + 1);
	memcpy(copy, s.n ? s.p : "", s.n);
	copy[s.n] = '\0';
	return copy;
}

static void row_body(struct walk *w, const PGresult *r, int i)
{
	struct str kind = cell(r, i, 0), id = cell(r, i, 1);
	check_body(&w->check, kind, id, cell(r, i, 2));
	w->kind = text_keep(w->kind, kind);
	w->id = text_keep(w->id, id);
}

static void row_event(struct walk *w, const PGresult *r, int i)
{
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
	check_event(&w->check, &row, cell(r, i, 7), cell(r, i, 8));
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

static const char sql_events[] =
	"SELECT " CHECK_EVENT_COLUMNS " FROM event WHERE seq > $1 ORDER BY seq LIMIT 1000";
/* clang-format on */

static int check_bodies(struct walk *w)
{
	int r;
	w->kind = text_keep(NULL, STR_NONE);
	w->id = text_keep(NULL, STR_NONE);
	do {
		struct pg_args args = {0};
		pg_z(&args, w->kind);
		pg_z(&args, w->id);
		r = each_row(w, sql_bodies, &args, row_body);
	} while (r == PAGE);
	free(w->kind);
	free(w->id);
	return r;
}

/* Checks the events between the ends that meta has. */
static int check_events(struct walk *w)
{
	struct check *c = &w->check;
	int r = check_chain_begin(c, pg_chain_read(w->tx, &c->ends));
	if (r < 0)
		return r;
	do {
		struct pg_args args = {0};
		pg_int(&args, c->seq < c->ends.first ? INT64_MIN : c->seq);
		r = each_row(w, sql_events, &args, row_event);
	} while (r == PAGE);
	if (r >= 0)
		check_chain_end(c);
	if (r >= 0)
		r = each_row(w, CHECK_POSITIONS("org"), NULL, row_positions);
	return r < 0 ? r : each_row(w, CHECK_POSITIONS("group"), NULL, row_positions);
}

static int check_all(struct walk *w)
{
	int r = pg_once(w->tx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, NULL);
	if (r >= 0)
		r = each_row(w, sql_lists, NULL, row_list);
	if (r >= 0)
		r = each_row(w, sql_blocks, NULL, row_block);
	if (r >= 0)
		r = check_bodies(w);
	if (r >= 0)
		r = each_row(w, CHECK_REFS, NULL, row_ref);
	if (r >= 0)
		r = check_events(w);
	return r;
}

int pg_check(const char *url, FILE *out)
{
	struct pg_store shared = {0};
	struct store s = {.ops = &postgres_ops, .path = must_strdup(url), .pg = &shared};
	struct walk w = {.tx = pg_tx_new(&s, PG_TOOL), .check = {.out = out}};
	int r = pg_connect(w.tx, clock_mono_us() + 5000000);
	if (r == 0)
		r = pg_migrations_verify(w.tx, out);
	if (r == 0) {
		r = check_all(&w);
		r = r < 0 && w.check.faults == 0 ? r : w.check.faults;
	}
	if (r < 0)
		fprintf(out, "the store cannot be read\n");
	pg_tx_free(w.tx);
	free(s.path);
	return r;
}
