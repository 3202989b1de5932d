/* Lists in which something is looked for (?q=), or that are wanted in another order (?sort=): the rows that take these
 * parameters. All entries have to be looked at, but of most only their names: the documents of the page alone are
 * read. */
#include "api/kit/found.h"

#include "gate/dispatch.h"

#include <errno.h>
#include <stdlib.h>

struct entry {
	struct doc doc;
	struct str called;
	bool whole; /* the document's text is there */
	size_t place;
};

struct finding {
	struct call *call;
	const struct resource *resource;
	struct str query;
	struct entry *list;
	size_t count, room, seen;
};

bool list_is_searched(const struct call *c)
{
	return call_query(c, "q").n || call_query(c, "sort").n;
}

/* Letters of ASCII alike, the rest as it is. */
static bool contains(struct str text, struct str part)
{
	for (size_t i = 0; i + part.n <= text.n; i++)
		if (str_ieq((struct str){text.p + i, part.n}, part))
			return true;
	return false;
}

/* The name of a document stands beside its text; where the resource keeps none there, it is a field. */
static struct str called(const struct finding *f, const struct doc *d)
{
	const struct resource *r = f->resource;
	if (r->hooks && r->hooks->called)
		return r->hooks->called(f->call, d);
	return r->name_field ? d->name : json_field(doc_json(f->call->arena, d->body), "name");
}

static void entry_add(struct finding *f, const struct doc *d, bool whole)
{
	struct entry e = {.doc = *d, .called = called(f, d), .whole = whole, .place = f->seen++};
	if (f->query.n && !contains(e.called, f->query))
		return;
	ARENA_FIT(f->call->arena, f->list, f->count, f->room);
	f->list[f->count++] = e;
}

static int by_place(const struct entry *x, const struct entry *y)
{
	return x->place < y->place ? -1 : x->place > y->place;
}

static int by_name(const struct entry *x, const struct entry *y)
{
	size_t n = x->called.n < y->called.n ? x->called.n : y->called.n;
	int order = n ? strncasecmp(x->called.p, y->called.p, n) : 0;
	return order ? order : x->called.n < y->called.n ? -1 : x->called.n > y->called.n;
}

static int by_created(const struct entry *x, const struct entry *y)
{
	if (x->doc.created_ms == y->doc.created_ms)
		return by_place(x, y);
	return x->doc.created_ms < y->doc.created_ms ? -1 : 1;
}

struct chosen {
	int (*order)(const struct entry *x, const struct entry *y);
	bool backwards;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct chosen *chosen = ctx;
	int order = chosen->order(a, b);
	return order ? (chosen->backwards ? -order : order) : by_place(a, b);
}

static void sort(struct finding *f)
{
	struct str wanted = call_query(f->call, "sort");
	struct chosen chosen = {.backwards = str_starts(wanted, STR("-"))};
	if (chosen.backwards)
		wanted = (struct str){wanted.p + 1, wanted.n - 1};
	chosen.order = !wanted.n ? by_place : str_is(wanted, "created") ? by_created : by_name;
	if (f->count)
		qsort_r(f->list, f->count, sizeof *f->list, compare, &chosen);
}

static int segment_look(struct finding *f, const struct segment *s, segment_filter *takes, bool by_head)
{
	struct call *c = f->call;
	struct doc *docs = s->docs, one;
	size_t count = s->count;
	bool heads = by_head && !s->docs && !s->id.n, filtered = takes && !s->whole;
	int r = 0;
	if (heads && !filtered) {
		r = tx_heads(c->tx, c->arena, s->kind, &s->parent, &docs, &count);
	} else if (s->id.n) {
		r = tx_get(c->tx, c->arena, s->kind, s->id, &one);
		docs = &one;
		count = r == 0;
		r = r == -ENOENT ? 0 : r;
	} else if (!s->docs) {
		r = tx_list_all(c->tx, c->arena, s->kind, s->parent, &docs, &count);
	}
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!filtered || takes(c, f->resource, &docs[i]))
			entry_add(f, &docs[i], !heads || filtered);
	return r;
}

static int page_write(struct finding *f, segment_writer *write)
{
	struct call *c = f->call;
	size_t from = (size_t)list_offset(c), end = from + (size_t)c->page_size;
	int r = 0;
	list_begin(c);
	for (size_t i = from; r == 0 && i < f->count && i < end; i++) {
		struct doc *d = &f->list[i].doc;
		if (!f->list[i].whole)
			r = tx_get(c->tx, c->arena, arena_z(c->arena, d->kind), d->id, d);
		if (r == 0)
			r = write(c, f->resource, d);
		if (r == 0)
			r = call_grown(c);
	}
	if (r == 0)
		list_end(c, (int64_t)f->count, end < f->count);
	return r;
}

int list_found(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
               segment_filter *takes, const struct resource *r)
{
	struct finding f = {.call = c, .resource = r, .query = str_trim(call_query(c, "q"))};
	bool by_head = r->name_field && !(r->hooks && r->hooks->called);
	int64_t all = 0, one = 0;
	int result = 0;
	for (size_t i = 0; result == 0 && i < count; i++, all += one) {
		one = segments[i].docs ? (int64_t)segments[i].count : 1;
		if (!segments[i].docs && !segments[i].id.n)
			result = tx_count(c->tx, segments[i].kind, segments[i].parent, &one);
	}
	if (result == 0 && call_takes_long(c, all))
		return 0;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = segment_look(&f, &segments[i], takes, by_head);
	sort(&f);
	if (result == 0)
		result = page_write(&f, write);
	return result < 0 && !c->problem.status ? call_fail_store(c, result, c->op->id) : result;
}
