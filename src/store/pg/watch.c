/* PostgreSQL's part of the slow check: every table is read in runs of pages, every row completely, so that the server
 * verifies its checksums (if enabled) and finds what cannot be read at all. The errors XX001 and XX002 (damaged data or
 * indexes) count as damage wherever they occur. Checking indexes is left to amcheck. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

#define SLICE_PAGES 64
#define CONNECT_US 1000000

static const char *const tables[] = {"doc",   "list", "list_block", "ref",           "meta",
                                     "event", "job",  "answer",     "limit_override"};

static void checksums_tell(struct tx *tx)
{
	PGresult *result;
	if (pg_once(tx, "SELECT (current_setting('data_checksums') = 'on')::int::int8", NULL, &result) <= 0)
		return;
	if (!pg_number(result, 0, 0))
		log_warn("store: the PostgreSQL server keeps no data checksums: what its disk damages is found only "
		         "where a row "
		         "can no longer be read; see pg_checksums --enable");
	PQclear(result);
}

static int number_of(struct tx *tx, const char *sql, int64_t *ret_number)
{
	PGresult *result;
	int r = pg_once(tx, sql, NULL, &result);
	if (r < 0)
		return r;
	*ret_number = r > 0 ? pg_number(result, 0, 0) : 0;
	PQclear(result);
	return 0;
}

static int pages_of(struct tx *tx, const char *table, int64_t *ret_pages)
{
	char sql[256];
	snprintf(sql, sizeof sql,
	         "SELECT (pg_relation_size('" PG_SCHEMA ".%s') / current_setting('block_size')::int8)::int8", table);
	return number_of(tx, sql, ret_pages);
}

static int slice(struct tx *tx, const char *table, int64_t from)
{
	char sql[512];
	int64_t length;
	snprintf(sql, sizeof sql,
	         "SELECT coalesce(sum(length(t::text)), 0)::int8 FROM " PG_SCHEMA ".%s t"
	         " WHERE ctid >= '(%lld,0)'::tid AND ctid < '(%lld,0)'::tid",
	         table, (long long)from, (long long)from + SLICE_PAGES);
	return number_of(tx, sql, &length);
}

int pg_watch(struct tx *tx, struct watch *w)
{
	const char *table = tables[w->at];
	int64_t *from = &w->keys[0].number, *pages = &w->keys[1].number;
	int r = 0;
	if (pg_connect(tx, clock_mono_us() + CONNECT_US) < 0)
		return -ENOTCONN;
	if (!w->begun)
		checksums_tell(tx);
	w->begun = true;
	if (*from == 0)
		r = pages_of(tx, table, pages);
	/* A run that cannot be read was reported; the next may be good. */
	if (r == 0)
		r = slice(tx, table, *from);
	if (r == -ENOTCONN)
		return r;
	*from += SLICE_PAGES;
	if (*from >= *pages) {
		w->at++;
		*from = 0;
	}
	return w->at < sizeof tables / sizeof *tables;
}
