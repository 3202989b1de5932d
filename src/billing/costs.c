/* An invoice's lines as sums. Those of a closed month are kept, because cost queries go over years; without them, as
 * right after a crash, the lines are added up. */
#include "billing/billing.h"

#include "base/clock.h"

#include <errno.h>

#define DOCS_AT_ONCE 16

struct adding {
	int64_t from_ms, to_ms;
	cost_visit *visit;
	void *ctx;
	json_t *names;
};

static void names_add(const struct adding *s, const json_t *from)
{
	json_t *names = json_object_get(from, "names");
	if (names)
		json_object_update(s->names, names);
}

static void doc_add(const struct adding *s, const json_t *doc)
{
	const json_t *keys = json_object_get(doc, "keys"), *key;
	size_t i;
	names_add(s, doc);
	json_array_foreach(keys, i, key)
	{
		int64_t at = json_integer_value(json_array_get(key, 7));
		if (at < s->from_ms || at >= s->to_ms)
			continue;
		s->visit(s->ctx, &(struct cost){json_item(key, 0), json_item(key, 1), json_item(key, 2),
		                                json_integer_value(json_array_get(key, 3))});
	}
}

static int lines_add(struct tx *tx, const char *kind, struct str invoice_id, const struct adding *s)
{
	struct arena *a = arena_new();
	struct doc *docs;
	size_t count = 1;
	int r = 0;
	for (int64_t at = 0; r == 0 && count; at += (int64_t)count) {
		count = 0;
		r = tx_list(tx, a, kind, invoice_id, at, DOCS_AT_ONCE, &docs, &count);
		for (size_t k = 0; r == 0 && k < count; k++)
			doc_add(s, doc_json(a, docs[k].secret));
		arena_reset(a);
	}
	arena_free(a);
	return r;
}

static void kept_add(const struct adding *s, const json_t *doc)
{
	const json_t *costs = json_object_get(doc, "costs"), *key;
	size_t i;
	names_add(s, doc);
	json_array_foreach(costs, i, key)
	{
		s->visit(s->ctx, &(struct cost){json_item(key, 0), json_item(key, 1), json_item(key, 2),
		                                json_integer_value(json_array_get(key, 3))});
	}
}

int costs_each(struct tx *tx, const struct invoice *i, int64_t from_ms, int64_t to_ms, cost_visit *visit, void *ctx,
               json_t *names)
{
	/* Corrections, and what was told late, may be dated before the month that they are billed in. */
	struct adding s = {from_ms <= i->from_ms ? INT64_MIN : from_ms, to_ms >= i->to_ms ? INT64_MAX : to_ms, visit,
	                   ctx, names};
	struct arena *a = arena_new();
	struct doc kept;
	bool whole = from_ms <= i->from_ms && to_ms >= i->to_ms;
	int r = whole ? tx_get(tx, a, COSTS_KIND, i->doc.id, &kept) : -ENOENT;
	if (r == 0)
		kept_add(&s, doc_json(a, kept.body));
	arena_free(a);
	if (r != -ENOENT)
		return r;
	r = lines_add(tx, LINES_KIND, i->doc.id, &s);
	return r < 0 ? r : lines_add(tx, OPEN_KIND, i->doc.id, &s);
}

/* --- keeping them */

struct keeping {
	struct arena *arena;
	struct str invoice_id;
	json_t *sums; /* {"PROJECT/CLUSTER/SERVICE": cents} */
	json_t *names;
	struct str body;
};

static void sum_add(void *ctx, const struct cost *c)
{
	struct keeping *k = ctx;
	char name[160];
	snprintf(name, sizeof name, "%.*s/%.*s/%.*s", STR_ARG(c->group_id), STR_ARG(c->cluster_id),
	         STR_ARG(c->service));
	json_put(k->sums, name, json_integer(json_number(k->sums, name) + c->cents));
}

static struct str sums_text(struct arena *a, json_t *sums, json_t *names)
{
	json_t *cents, *body = json_new(a), *list = json_array();
	const char *name;
	json_object_foreach(sums, name, cents)
	{
		struct str group, cluster, service, rest;
		str_cut(str_of(name), '/', &group, &rest);
		str_cut(rest, '/', &cluster, &service);
		json_t *one = json_array();
		json_add_str(one, group);
		json_add_str(one, cluster);
		json_add_str(one, service);
		json_array_append(one, cents);
		json_array_append_new(list, one);
	}
	json_put(body, "costs", list);
	json_put(body, "names", json_incref(names));
	return json_text(a, body);
}

static int keep_run(struct tx *tx, void *ctx)
{
	const struct keeping *k = ctx;
	struct doc d = {.kind = STR(COSTS_KIND), .id = k->invoice_id, .created_ms = clock_now_ms(), .body = k->body};
	int r = tx_insert(tx, &d);
	return r == -EEXIST ? 0 : r;
}

int costs_keep(const struct billing_run *run, struct str invoice_id)
{
	struct arena *a = arena_new();
	struct keeping k = {.arena = a, .invoice_id = invoice_id, .sums = json_new(a), .names = json_new(a)};
	struct adding s = {INT64_MIN, INT64_MAX, sum_add, &k, k.names};
	tx_begin_read(run->reader);
	int r = lines_add(run->reader, LINES_KIND, invoice_id, &s);
	tx_end_read(run->reader);
	tx_rest(run->reader);
	k.body = sums_text(a, k.sums, k.names);
	if (r == 0)
		r = store_write_wait(run->store, keep_run, &k);
	arena_free(a);
	return r;
}
