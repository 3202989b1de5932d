/* Which tables of a server are measured. The node module counts by the numbers of databases and tables; a sample goes
 * by names, which only a connection to the database itself can tell. So the tables are ranked by number, the first of
 * them are asked for their names when measure.c is in their database, or once when a new one comes up, and those are
 * given away: the TABLES_TOP that took most time lately, and the pinned ones.
 *
 * "Lately": what a table took counts half after a day. A table stays where it is in the order when its server, and the
 * counters with it, begin anew. After a start of the service, when only the sums since the server's start are known,
 * tables of which something is kept come first: they are found by name. */
#include "engine/postgres/observe/collections.h"

#include "base/arena.h"
#include "base/buf.h"
#include "catalog/formats.h"
#include "engine/postgres/sql/sql.h"

#include <math.h>
#include <stdlib.h>

#define CANDIDATES 64
#define DECAY 0.99952 /* each minute */
#define KEPT_US 3.6e9 /* what a kept table is taken to have used before the service's start */

const char pg_tables_ask[] = "select dbid, relid, kind, total_us, buckets from steward.table_latency() "
                             "order by dbid, relid limit 30000";

/* As users name it: without the schema where that is public. */
#define NAME                                                                                        \
	"(case when n.nspname = 'public' and strpos(c.relname, '.') = 0 then c.relname::text else " \
	"n.nspname || '.' || c.relname end)"
/* Not the service's own. */
#define SEEN                                                                                                         \
	"c.relkind in ('r', 'p', 'm', 'f') and n.nspname !~ '^(pg_|steward)' and n.nspname <> 'information_schema' " \
	"and pg_get_userbyid(n.nspowner) <> '" PG_SHARD "'"

struct table {
	unsigned dbid, relid;
	int row, rows; /* of the answer; rows 0: it was not used */
	double total_us, score;
	bool fresh;            /* new since the reading before */
	bool candidate;        /* one of the first */
	bool hidden;           /* was asked for, and is no table that users see: dropped, or not there yet */
	char name[TABLE_NAME]; /* "": not known */
};

/* A table that is wanted by name. */
struct wanted {
	char name[TABLE_NAME];
	bool tried;
};
#define KEPT_MAX (TABLES_TOP + TABLES_PINNED_MAX)

struct pg_tables {
	struct table *list; /* by dbid and relid */
	size_t count;
	struct wanted pins[TABLES_PINNED_MAX], kept[KEPT_MAX]; /* kept: that were not looked for yet */
	size_t pin_count, kept_count;
	bool told_kept;
	PGresult *rows;
	unsigned readings;
	int64_t mono_us, before_us; /* of the reading and the one before */
	uint64_t epoch;             /* of that one */
};

struct pg_tables *pg_tables_new(void)
{
	return must_calloc(1, sizeof(struct pg_tables));
}

void pg_tables_forget(struct pg_tables *t)
{
	PQclear(t->rows);
	t->rows = NULL;
}

void pg_tables_free(struct pg_tables *t)
{
	if (!t)
		return;
	pg_tables_forget(t);
	free(t->list);
	free(t);
}

/* --- pins */

void pg_tables_pin(struct pg_tables *t, const char *const *names, size_t count)
{
	struct wanted old[TABLES_PINNED_MAX];
	size_t old_count = t->pin_count;
	memcpy(old, t->pins, sizeof old);
	t->pin_count = 0;
	for (size_t i = 0; i < count && t->pin_count < TABLES_PINNED_MAX; i++) {
		struct wanted *p = &t->pins[t->pin_count++];
		*p = (struct wanted){.tried = false};
		str_copy(str_of(names[i]), p->name, sizeof p->name);
		for (size_t k = 0; k < old_count; k++)
			if (strcmp(old[k].name, p->name) == 0)
				p->tried = old[k].tried;
	}
}

static bool is_pinned(const struct pg_tables *t, const char *name)
{
	for (size_t i = 0; i < t->pin_count; i++)
		if (strcmp(t->pins[i].name, name) == 0)
			return true;
	return false;
}

bool pg_tables_is_new(const struct pg_tables *t)
{
	return !t->told_kept;
}

void pg_tables_keep(struct pg_tables *t, const char *const *names, size_t count)
{
	t->told_kept = true;
	for (size_t i = 0; i < count && t->kept_count < KEPT_MAX; i++)
		str_copy(str_of(names[i]), t->kept[t->kept_count++].name, TABLE_NAME);
}

/* --- the numbers */

static int order_of(const struct table *a, unsigned dbid, unsigned relid)
{
	if (a->dbid != dbid)
		return a->dbid < dbid ? -1 : 1;
	return a->relid == relid ? 0 : a->relid < relid ? -1 : 1;
}

static unsigned number_at(const PGresult *rows, int row, int column)
{
	return (unsigned)strtoul(pg_value(rows, row, column), NULL, 10);
}

static void score_add(struct table *to, const struct table *old, double total_us, bool first)
{
	double grown = old && total_us >= old->total_us ? total_us - old->total_us : total_us;
	to->score = (first || !old ? 0 : old->score * DECAY) + grown;
	to->total_us = total_us;
}

static int by_score(const void *a, const void *b)
{
	const struct table *x = *(const struct table *const *)a, *y = *(const struct table *const *)b;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return order_of(x, y->dbid, y->relid);
}

/* All of them, the first in time first. Free it. */
static struct table **ranked(struct pg_tables *t)
{
	struct table **all = must_calloc(t->count + 1, sizeof(struct table *));
	for (size_t i = 0; i < t->count; i++)
		all[i] = &t->list[i];
	qsort(all, t->count, sizeof(struct table *), by_score);
	return all;
}

static void candidates_choose(struct pg_tables *t)
{
	struct table **all = ranked(t);
	for (size_t i = 0; i < t->count; i++)
		all[i]->candidate = i < CANDIDATES;
	free(all);
}

/* What the server does not count now, since its start or any more, stays where it is in the order. False: it goes. */
static bool uncounted_take(const struct pg_tables *t, const struct table *had, struct table *to)
{
	if (!had->name[0] || (!had->candidate && !is_pinned(t, had->name)))
		return false;
	*to = *had;
	to->rows = 0;
	to->fresh = false;
	score_add(to, had, 0, false);
	return true;
}

/* The rows of one table, from this one on. */
static void counted_take(const PGresult *rows, int row, const struct table *had, bool first, struct table *to)
{
	unsigned dbid = number_at(rows, row, 0), relid = number_at(rows, row, 1);
	double total_us = 0;
	*to = had ? *had : (struct table){.dbid = dbid, .relid = relid};
	to->row = row;
	for (; row < PQntuples(rows) && order_of(to, number_at(rows, row, 0), number_at(rows, row, 1)) == 0; row++)
		total_us += strtod(pg_value(rows, row, 3), NULL);
	to->rows = row - to->row;
	to->fresh = !had && !first;
	score_add(to, had, total_us, first);
}

void pg_tables_take(struct pg_tables *t, PGresult *rows, int64_t mono_us)
{
	int row = 0, all = PQnfields(rows) == 5 ? PQntuples(rows) : 0;
	struct table *made = must_calloc(t->count + (size_t)all + 1, sizeof *made);
	size_t count = 0, old = 0;
	bool first = !t->readings++;
	while (row < all || old < t->count) {
		const struct table *had = old < t->count ? &t->list[old] : NULL;
		int order = !had         ? 1
		            : row == all ? -1
		                         : order_of(had, number_at(rows, row, 0), number_at(rows, row, 1));
		old += order <= 0;
		if (had && order < 0) {
			count += uncounted_take(t, had, &made[count]);
			continue;
		}
		counted_take(rows, row, order == 0 ? had : NULL, first, &made[count]);
		row += made[count++].rows;
	}
	free(t->list);
	t->list = made;
	t->count = count;
	pg_tables_forget(t);
	t->rows = rows;
	t->before_us = first ? 0 : t->mono_us;
	t->mono_us = mono_us;
	candidates_choose(t);
}

/* --- the names */

const char *pg_table_in(const char *name, const char *database)
{
	size_t n = strlen(database);
	return strncmp(name, database, n) == 0 && name[n] == '.' && name[n + 1] ? name + n + 1 : NULL;
}

static bool any_wanted(const struct wanted *list, size_t count, const char *database)
{
	for (size_t i = 0; i < count; i++)
		if (!list[i].tried && pg_table_in(list[i].name, database))
			return true;
	return false;
}

static void wanted_add(struct buf *b, struct wanted *list, size_t count, const char *database)
{
	for (size_t i = 0; i < count; i++) {
		const char *name = pg_table_in(list[i].name, database);
		if (name)
			pg_array_add(b, str_of(name));
		list[i].tried |= name != NULL;
	}
}

bool pg_tables_want(const struct pg_tables *t, unsigned database_oid, const char *database)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->list[i].dbid == database_oid && t->list[i].candidate && !t->list[i].name[0] &&
		    !t->list[i].hidden)
			return true;
	return any_wanted(t->pins, t->pin_count, database) || any_wanted(t->kept, t->kept_count, database);
}

void pg_array_add(struct buf *b, struct str text)
{
	buf_z(b, b->n > 1 ? ",\"" : "\"");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			buf_c(b, '\\');
		buf_c(b, text.p[i]);
	}
	buf_c(b, '"');
}

char *pg_tables_sql(PGconn *conn, const char *oids, const char *names)
{
	char *numbers = PQescapeLiteral(conn, oids, strlen(oids)), *texts = PQescapeLiteral(conn, names, strlen(names));
	struct buf b = {0};
	if (numbers && texts)
		buf_printf(&b,
		           "select c.oid, " NAME
		           " from pg_class c join pg_namespace n on n.oid = c.relnamespace where " SEEN
		           " and (c.oid = any (%s::oid[]) or " NAME " = any (%s::text[]))",
		           numbers, texts);
	if (numbers && texts)
		buf_c(&b, '\0');
	PQfreemem(numbers);
	PQfreemem(texts);
	return b.p;
}

static bool is_asked(const struct table *x, unsigned database_oid)
{
	return x->dbid == database_oid && (x->candidate || x->name[0]);
}

bool pg_tables_send(struct pg_tables *t, unsigned database_oid, const char *database, PGconn *conn)
{
	struct buf oids = {0}, names = {0};
	buf_c(&oids, '{');
	buf_c(&names, '{');
	for (size_t i = 0; i < t->count; i++)
		if (is_asked(&t->list[i], database_oid))
			buf_printf(&oids, "%s%u", oids.n > 1 ? "," : "", t->list[i].relid);
	wanted_add(&names, t->pins, t->pin_count, database);
	wanted_add(&names, t->kept, t->kept_count, database);
	bool any = oids.n > 1 || names.n > 1;
	buf_add(&oids, "}", 2);
	buf_add(&names, "}", 2);
	char *sql = any ? pg_tables_sql(conn, oids.p, names.p) : NULL;
	bool sent = sql && PQsendQuery(conn, sql);
	free(sql);
	buf_free(&oids);
	buf_free(&names);
	return sent;
}

static struct table *table_ensure(struct pg_tables *t, unsigned dbid, unsigned relid)
{
	size_t at = 0;
	while (at < t->count && order_of(&t->list[at], dbid, relid) < 0)
		at++;
	if (at < t->count && order_of(&t->list[at], dbid, relid) == 0)
		return &t->list[at];
	t->list = must_realloc(t->list, (t->count + 1) * sizeof *t->list);
	memmove(&t->list[at + 1], &t->list[at], (t->count - at) * sizeof *t->list);
	t->count++;
	t->list[at] = (struct table){.dbid = dbid, .relid = relid};
	return &t->list[at];
}

/* They are found by now, or gone. */
static void kept_forget(struct pg_tables *t, const char *database)
{
	size_t left = 0;
	for (size_t i = 0; i < t->kept_count; i++)
		if (!pg_table_in(t->kept[i].name, database))
			t->kept[left++] = t->kept[i];
	t->kept_count = left;
}

void pg_tables_names(struct pg_tables *t, unsigned database_oid, const char *database, const PGresult *rows)
{
	for (size_t i = 0; i < t->count; i++)
		if (is_asked(&t->list[i], database_oid)) {
			t->list[i].hidden = true;
			t->list[i].name[0] = '\0';
		}
	for (int i = 0; PQnfields(rows) == 2 && i < PQntuples(rows); i++) {
		/* What no API can name is no table that users see: names of a database need not be UTF-8. */
		if (!utf8_is_valid(str_of(pg_value(rows, i, 1))) || !utf8_is_valid(str_of(database)))
			continue;
		struct table *x = table_ensure(t, database_oid, number_at(rows, i, 0));
		snprintf(x->name, sizeof x->name, "%s.%s", database, pg_value(rows, i, 1));
		x->hidden = false;
		for (size_t k = 0; k < t->kept_count; k++)
			x->score += strcmp(t->kept[k].name, x->name) == 0 ? KEPT_US : 0;
	}
	kept_forget(t, database);
	/* Those that are gone make place for others. */
	for (size_t i = 0; i < t->count; i++)
		if (t->list[i].dbid == database_oid && t->list[i].hidden)
			t->list[i].score /= 2;
	candidates_choose(t);
}

/* --- samples */

static void row_read(const PGresult *rows, int row, double *in)
{
	const char *kinds = "rwc", *kind = strchr(kinds, *pg_value(rows, row, 2));
	const char *p = pg_value(rows, row, 4);
	if (!kind || !*kind)
		return;
	in[TABLE_TIME(kind - kinds)] = strtod(pg_value(rows, row, 3), NULL) / 1000;
	for (unsigned i = 0; i < LATENCY_BUCKETS && *p && *p != '}'; i++) {
		char *end;
		double count = strtod(p + 1, &end); /* after "{" or "," */
		if (end == p + 1)
			break;
		in[TABLE_COUNT(kind - kinds, i)] += count;
		p = end;
	}
}

static void table_give(const struct pg_tables *t, const struct table *x, struct engine_sample s, bool leads,
                       const struct engine_sampling *to)
{
	double in[TABLE_INPUTS] = {0};
	s.subject = MEASURE_TABLE;
	s.name = x->name;
	s.inputs = in;
	in[TABLE_LEADS] = leads;
	/* A table that was not counted before counts from nothing. */
	if (x->fresh && t->before_us && t->epoch == s.epoch) {
		struct engine_sample before = s;
		before.mono_us = t->before_us;
		before.before = true;
		to->take(to->ctx, &before);
	}
	for (int i = 0; i < x->rows; i++)
		row_read(t->rows, x->row + i, in);
	s.mono_us = t->mono_us;
	to->take(to->ctx, &s);
}

void pg_tables_give(struct pg_tables *t, const struct engine_sample *s, bool leads, const struct engine_sampling *to)
{
	const char *names[TABLES_TOP + TABLES_PINNED_MAX + KEPT_MAX];
	size_t count = 0, top = 0;
	if (!t->rows)
		return;
	struct table **all = ranked(t);
	for (size_t i = 0; i < t->count; i++) {
		struct table *x = all[i];
		bool pinned = x->name[0] && is_pinned(t, x->name),
		     first = x->candidate && x->name[0] && top < TABLES_TOP;
		top += first;
		if ((!first && !pinned) || count == TABLES_TOP + TABLES_PINNED_MAX)
			continue;
		table_give(t, x, *s, leads, to);
		names[count++] = x->name;
	}
	for (size_t i = 0; i < t->kept_count; i++)
		names[count++] = t->kept[i].name;
	to->tables(to->ctx, s->cluster_id, s->node, names, count);
	t->epoch = s->epoch;
	free(all);
}
