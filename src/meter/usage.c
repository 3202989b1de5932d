/* Reading measurements: one after the other, or added up by day. Days are cut while reading, so nothing need be written
 * for what just goes on. Rows are found by a hash of what they stand for; texts that occur in many are kept once. */
#include "base/clock.h"
#include "base/json.h"
#include "meter/interval.h"
#include "meter/meter.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE 500

/* --- one after the other */

struct host_mark {
	struct str host;
	int64_t seen_ms;
};

struct reading {
	struct tx *tx;
	struct arena *arena, *page; /* page: for a page of documents */
	struct str org_id;
	int64_t from_ms, to_ms;
	meter_visit *visit;
	void *ctx;
	struct host_mark *marks;
	size_t mark_count, mark_room;
};

static int mark_of(struct reading *r, struct str host, int64_t *ret_ms)
{
	for (size_t i = 0; i < r->mark_count; i++)
		if (str_eq(r->marks[i].host, host)) {
			*ret_ms = r->marks[i].seen_ms;
			return 0;
		}
	int result = meter_marked(r->tx, r->page, host, ret_ms);
	ARENA_FIT(r->arena, r->marks, r->mark_count, r->mark_room);
	r->marks[r->mark_count++] = (struct host_mark){arena_dup(r->arena, host), *ret_ms};
	return result;
}

static void thing_read(const json_t *from, struct measurement *m)
{
	m->id = json_field(from, "id");
	m->sku = json_field(from, "sku");
	m->provider = json_field(from, "provider");
	m->region = json_field(from, "region");
	m->amount = json_number(from, "amount");
	m->from_ms = json_number(from, "from") * 1000;
}

static int measurement_visit(struct reading *r, const struct measurement *m)
{
	bool point = m->to_ms == m->from_ms && !m->open;
	bool touches = m->from_ms < r->to_ms && (m->to_ms > r->from_ms || (point && m->from_ms >= r->from_ms));
	return touches ? r->visit(r->ctx, m) : 0;
}

static int ended_read(struct reading *r, const struct doc *d)
{
	const json_t *body = doc_json(r->page, d->body);
	struct measurement m = {.group_id = json_field(body, "group"),
	                        .group_name = json_field(body, "groupName"),
	                        .cluster_id = json_field(body, "cluster"),
	                        .cluster_name = json_field(body, "name"),
	                        .key = json_field(body, "key"),
	                        .to_ms = json_number(body, "to") * 1000};
	thing_read(body, &m);
	return measurement_visit(r, &m);
}

static int open_read(struct reading *r, const struct doc *d)
{
	const json_t *body = doc_json(r->page, d->body);
	const char *key;
	json_t *entry;
	int64_t seen;
	int result = mark_of(r, json_field(body, "host"), &seen);
	json_object_foreach(json_object_get(body, "open"), key, entry)
	{
		struct measurement m = {.group_id = json_field(body, "group"),
		                        .group_name = json_field(body, "groupName"),
		                        .cluster_id = d->id,
		                        .cluster_name = json_field(body, "name"),
		                        .key = str_of(key),
		                        .open = true};
		thing_read(entry, &m);
		m.to_ms = seen > m.from_ms ? seen : m.from_ms;
		if (result == 0)
			result = measurement_visit(r, &m);
	}
	return result;
}

static int list_read(struct reading *r, const char *kind, struct str parent,
                     int (*read)(struct reading *, const struct doc *))
{
	size_t got = PAGE;
	int result = 0;
	for (int64_t offset = 0; result == 0 && got == PAGE; offset += PAGE) {
		struct doc *docs;
		got = 0;
		result = tx_list(r->tx, r->page, kind, parent, offset, PAGE, &docs, &got);
		for (size_t i = 0; result == 0 && i < got; i++)
			result = read(r, &docs[i]);
		arena_reset(r->page);
	}
	return result;
}

int meter_each(struct tx *tx, struct arena *a, struct str org_id, int64_t from_ms, int64_t to_ms, meter_visit *visit,
               void *ctx)
{
	struct reading r = {.tx = tx,
	                    .arena = a,
	                    .page = arena_new(),
	                    .org_id = org_id,
	                    .from_ms = from_ms,
	                    .to_ms = to_ms,
	                    .visit = visit,
	                    .ctx = ctx};
	int result = 0;
	for (int64_t at = from_ms, next; result == 0 && at < to_ms; at = next) {
		char month[METER_MONTH];
		meter_month(at, month, NULL, &next);
		result = list_read(&r, METER_KIND, arena_printf(a, "%.*s/%s", STR_ARG(org_id), month), ended_read);
	}
	if (result == 0)
		result = list_read(&r, METER_OPEN_KIND, org_id, open_read);
	arena_free(r.page);
	return result;
}

/* --- texts that occur often, once each */

struct texts {
	struct arena *arena;
	struct str *slots;
	size_t count, room; /* room: a power of two */
};

static uint64_t hash_text(uint64_t h, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
	return h;
}

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static struct str *text_slot(struct str *slots, size_t room, struct str s)
{
	uint64_t h = hash_text(HASH_BEGIN, s);
	size_t i = (size_t)(h ^ h >> 32) & (room - 1);
	while (slots[i].p && !str_eq(slots[i], s))
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static void texts_grow(struct texts *t)
{
	size_t room = t->room ? 2 * t->room : 256;
	struct str *slots = arena_new_array(t->arena, struct str, room);
	for (size_t i = 0; i < t->room; i++)
		if (t->slots[i].p)
			*text_slot(slots, room, t->slots[i]) = t->slots[i];
	t->slots = slots;
	t->room = room;
}

static struct str text_once(struct texts *t, struct str s)
{
	if (!s.n)
		return STR("");
	if (2 * t->count >= t->room)
		texts_grow(t);
	struct str *slot = text_slot(t->slots, t->room, s);
	if (!slot->p) {
		*slot = arena_dup(t->arena, s);
		t->count++;
	}
	return *slot;
}

/* --- by day */

struct adding {
	struct texts texts;
	struct usage *rows;
	size_t count, room;
	size_t *slots; /* number of a row, plus 1 */
	size_t slot_room;
	struct interval within;
};

static uint64_t hash_number(uint64_t h, uint64_t n)
{
	return (h ^ n ^ n >> 29) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Texts are the same when their addresses are: text_once(). */
static uint64_t usage_hash(const struct usage *u)
{
	uint64_t h = hash_number(HASH_BEGIN, (uint64_t)u->day_ms);
	h = hash_number(h, (uintptr_t)u->cluster_id.p);
	h = hash_number(h, (uintptr_t)u->sku.p);
	h = hash_number(h, (uintptr_t)u->region.p);
	return hash_number(h, (uintptr_t)u->group_id.p);
}

static bool usage_same(const struct usage *a, const struct usage *b)
{
	return a->day_ms == b->day_ms && a->cluster_id.p == b->cluster_id.p && a->sku.p == b->sku.p &&
	       a->region.p == b->region.p && a->group_id.p == b->group_id.p && a->provider.p == b->provider.p;
}

static size_t *usage_slot(const struct adding *add, const struct usage *u)
{
	uint64_t h = usage_hash(u);
	size_t i = (size_t)(h ^ h >> 32) & (add->slot_room - 1);
	while (add->slots[i] && !usage_same(&add->rows[add->slots[i] - 1], u))
		i = (i + 1) & (add->slot_room - 1);
	return &add->slots[i];
}

static void slots_grow(struct adding *add)
{
	free(add->slots);
	add->slot_room = add->slot_room ? 2 * add->slot_room : 1024;
	add->slots = must_calloc(add->slot_room, sizeof *add->slots);
	for (size_t i = 0; i < add->count; i++)
		*usage_slot(add, &add->rows[i]) = i + 1;
}

static void usage_add(struct adding *add, const struct usage *u)
{
	if (2 * add->count >= add->slot_room)
		slots_grow(add);
	size_t *slot = usage_slot(add, u);
	if (*slot) {
		struct usage *row = &add->rows[*slot - 1];
		row->quantity += u->quantity;
		row->cluster_name = u->cluster_name; /* the last one that it had */
		row->group_name = u->group_name;
		return;
	}
	ARENA_FIT(add->texts.arena, add->rows, add->count, add->room);
	add->rows[add->count++] = *u;
	*slot = add->count;
}

static int measurement_add(void *ctx, const struct measurement *m)
{
	struct adding *add = ctx;
	struct texts *t = &add->texts;
	struct usage u = {.group_id = text_once(t, m->group_id),
	                  .group_name = text_once(t, m->group_name),
	                  .cluster_id = text_once(t, m->cluster_id),
	                  .cluster_name = text_once(t, m->cluster_name),
	                  .sku = text_once(t, m->sku),
	                  .provider = text_once(t, m->provider),
	                  .region = text_once(t, m->region)};
	struct interval i = {m->from_ms / 1000, m->to_ms / 1000};
	if (m->from_ms == m->to_ms && !m->open) {
		u.day_ms = meter_day(m->from_ms);
		u.quantity = m->amount;
		usage_add(add, &u);
		return 0;
	}
	i = interval_common(i, add->within);
	while (interval_seconds(i)) {
		struct interval day = interval_day(i, &i);
		u.day_ms = meter_day(day.from * 1000);
		u.quantity = interval_seconds(day) * m->amount;
		usage_add(add, &u);
	}
	return 0;
}

static int text_compare(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;
	return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

static int usage_compare(const void *a, const void *b)
{
	const struct usage *x = a, *y = b;
	if (x->day_ms != y->day_ms)
		return x->day_ms < y->day_ms ? -1 : 1;
	int c = text_compare(x->group_id, y->group_id);
	if (!c)
		c = text_compare(x->cluster_id, y->cluster_id);
	if (!c)
		c = text_compare(x->sku, y->sku);
	if (!c)
		c = text_compare(x->region, y->region);
	return c ? c : text_compare(x->provider, y->provider);
}

int meter_usage(struct tx *tx, struct arena *a, struct str org_id, int64_t from_ms, int64_t to_ms,
                struct usage **ret_list, size_t *ret_count)
{
	struct adding add = {.texts = {.arena = a}, .within = {from_ms / 1000, to_ms / 1000}};
	int r = meter_each(tx, a, org_id, from_ms, to_ms, measurement_add, &add);
	free(add.slots);
	if (r == 0 && add.count)
		qsort(add.rows, add.count, sizeof *add.rows, usage_compare);
	*ret_list = add.rows;
	*ret_count = add.count;
	return r;
}

/* --- how far, and whom */

struct settling {
	struct reading reading;
	int64_t settled_ms;
};

static int settled_read(struct reading *r, const struct doc *d)
{
	struct settling *s = (struct settling *)(void *)r;
	int64_t seen;
	int result = mark_of(r, json_field(doc_json(r->page, d->body), "host"), &seen);
	if (result == 0 && seen < s->settled_ms)
		s->settled_ms = seen;
	return result;
}

int meter_settled(struct tx *tx, struct arena *a, struct str org_id, int64_t *ret_ms)
{
	struct settling s = {.reading = {.tx = tx, .arena = a, .page = arena_new()}, .settled_ms = clock_now_ms()};
	int r = list_read(&s.reading, METER_OPEN_KIND, org_id, settled_read);
	arena_free(s.reading.page);
	*ret_ms = s.settled_ms;
	return r;
}

int meter_orgs(struct tx *tx, struct arena *a, int64_t month_ms, struct str **ret_ids, size_t *ret_count)
{
	struct texts ids = {.arena = a};
	struct str parent = STR("");
	char month[METER_MONTH];
	struct doc *docs;
	size_t got = 0;
	meter_month(month_ms, month, NULL, NULL);
	int r = tx_list_all(tx, a, METER_ORG_KIND, str_of(month), &docs, &got);
	for (size_t i = 0; r == 0 && i < got; i++)
		text_once(&ids, json_field(doc_json(a, docs[i].body), "org"));
	/* From one organization to the next, past all that it has. */
	for (got = 1; r == 0 && got;) {
		r = tx_walk(tx, a, METER_OPEN_KIND, parent, INT64_MAX, 1, &docs, &got);
		if (r == 0 && got)
			parent = text_once(&ids, docs[0].parent);
	}
	struct str *list = arena_new_array(a, struct str, ids.count + 1);
	size_t count = 0;
	for (size_t i = 0; i < ids.room; i++)
		if (ids.slots[i].p)
			list[count++] = ids.slots[i];
	*ret_ids = list;
	*ret_count = count;
	return r;
}
