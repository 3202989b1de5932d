/* Counters of others, into measurements: one of each day and counter, which grows. */
#include "base/clock.h"
#include "base/json.h"
#include "meter/meter.h"

#include <errno.h>

#define KB INT64_C(1000)
#define WORTH (1000 * KB)
#define HOUR_SECONDS 3600

static int counts_load(struct tx *tx, struct arena *a, struct str subject_id, struct doc *ret_doc, json_t **ret_body)
{
	int r = tx_get(tx, a, METER_COUNT_KIND, subject_id, ret_doc);
	if (r == 0)
		*ret_body = doc_json(a, ret_doc->body);
	if (r != -ENOENT)
		return r;
	*ret_doc = (struct doc){.kind = STR(METER_COUNT_KIND),
	                        .id = subject_id,
	                        .parent = STR("service"),
	                        .created_ms = clock_now_ms()};
	*ret_body = json_new(a);
	return 0;
}

static const json_t *entry_of(const json_t *body, struct arena *a, const struct meter_counter *c)
{
	return json_object_get(body, arena_z(a, c->thing.key));
}

/* Up to where it was metered. */
static int64_t position(const json_t *entry, const struct meter_counter *c)
{
	return str_eq(json_field(entry, "counter"), c->counter) ? json_number(entry, "bytes") : 0;
}

int meter_count_is_due(struct tx *tx, struct arena *a, struct str subject_id, const struct meter_counter *list,
                       size_t count, int64_t at_ms, bool *ret_due)
{
	struct doc d;
	json_t *body = NULL;
	int r = counts_load(tx, a, subject_id, &d, &body);
	if (r < 0)
		return r;
	*ret_due = false;
	for (size_t i = 0; i < count && !*ret_due; i++) {
		const json_t *entry = entry_of(body, a, &list[i]);
		int64_t more = list[i].bytes - position(entry, &list[i]);
		bool earlier = json_number(entry, "at") / HOUR_SECONDS < at_ms / 1000 / HOUR_SECONDS;
		*ret_due = more >= WORTH || (more >= KB && earlier);
	}
	return 0;
}

static int counter_take(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_counter *c,
                        int64_t at_ms, json_t *body)
{
	const json_t *entry = entry_of(body, a, c);
	struct meter_thing t = c->thing;
	struct str row = json_field(entry, "measurement");
	int64_t from = position(entry, c);
	t.amount = (c->bytes - from) / KB;
	if (t.amount <= 0)
		return 0;
	row = arena_dup(a, row);
	int r = t.sku.n ? meter_add_to(tx, a, s, &t, at_ms, &row) : 0;
	if (r < 0)
		return r;
	json_t *now = json_object();
	json_put_str(now, "counter", c->counter);
	json_put(now, "bytes", json_integer(from + t.amount * KB));
	json_put(now, "at", json_integer(at_ms / 1000));
	json_put_str(now, "measurement", row);
	json_put(body, arena_z(a, t.key), now);
	return 1;
}

int meter_count(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_counter *list,
                size_t count, int64_t at_ms)
{
	struct doc d;
	json_t *body = NULL;
	int r = counts_load(tx, a, s->id, &d, &body);
	bool changed = false;
	for (size_t i = 0; r >= 0 && i < count; i++) {
		r = counter_take(tx, a, s, &list[i], at_ms, body);
		changed |= r > 0;
	}
	if (r < 0 || !changed)
		return r < 0 ? r : 0;
	d.body = json_text(a, body);
	return d.rev ? tx_update(tx, &d) : tx_insert(tx, &d);
}

int meter_count_forget(struct tx *tx, struct str subject_id)
{
	int r = tx_delete(tx, METER_COUNT_KIND, subject_id);
	return r == -ENOENT ? 0 : r;
}
