/* Servers count from some start on, and begin anew with a crash, an upgrade or a failover. What is wanted is what was
 * counted between two looks: so the former figures are taken from the new ones, unless these began anew, which the time
 * at which a shape was first seen tells. Buckets of which nothing was counted, most of them, take no place in the
 * store. */
#include "api/query_shapes/counted.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

enum field { NODE, SHAPE, CALLS, US, ROWS, BYTES, FIRST, LAST, LAST_US, BUCKETS, FIELDS };

static void number_add(json_t *entry, json_int_t value)
{
	(void)!json_array_append_new(entry, json_integer(value));
}

json_t *counted_write(const char *node, const struct engine_shape *s)
{
	json_t *entry = json_array(), *buckets = json_array();
	json_add_str(entry, str_of(node));
	json_add_str(entry, str_of(s->fingerprint));
	number_add(entry, (json_int_t)s->calls);
	number_add(entry, (json_int_t)s->total_us);
	number_add(entry, (json_int_t)s->rows);
	number_add(entry, (json_int_t)s->bytes_read);
	number_add(entry, s->first_ms);
	number_add(entry, s->last_ms);
	number_add(entry, s->last_us);
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		if (s->buckets[i]) {
			number_add(buckets, (json_int_t)i);
			number_add(buckets, (json_int_t)s->buckets[i]);
		}
	(void)!json_array_append_new(entry, buckets);
	return entry;
}

static json_int_t number_at(const json_t *list, size_t i)
{
	return json_integer_value(json_array_get(list, i));
}

bool counted_read(struct arena *a, const json_t *entry, struct counted *ret_counted)
{
	const json_t *buckets = json_array_get(entry, BUCKETS);
	struct counted one = {.node = arena_z(a, json_item(entry, NODE)),
	                      .of = {.text = "",
	                             .database = "",
	                             .table = "",
	                             .command = "",
	                             .application = "",
	                             .total_us = (double)number_at(entry, US),
	                             .calls = (uint64_t)number_at(entry, CALLS),
	                             .rows = (uint64_t)number_at(entry, ROWS),
	                             .bytes_read = (uint64_t)number_at(entry, BYTES),
	                             .first_ms = number_at(entry, FIRST),
	                             .last_ms = number_at(entry, LAST),
	                             .last_us = number_at(entry, LAST_US)}};
	if (json_array_size(entry) != FIELDS)
		return false;
	str_copy(json_item(entry, SHAPE), one.of.fingerprint, sizeof one.of.fingerprint);
	for (size_t i = 0; i + 1 < json_array_size(buckets); i += 2) {
		json_int_t bucket = number_at(buckets, i);
		if (bucket >= 0 && bucket < LATENCY_BUCKETS)
			one.of.buckets[bucket] = (uint64_t)number_at(buckets, i + 1);
	}
	*ret_counted = one;
	return true;
}

void counted_add(struct arena *a, struct counted_list *list, const char *node, const struct engine_shape *s)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->list[i].of.fingerprint, s->fingerprint) == 0 &&
		    strcmp(list->list[i].node, node) == 0) {
			engine_shape_join(&list->list[i].of, s);
			return;
		}
	ARENA_FIT(a, list->list, list->count, list->room);
	list->list[list->count++] = (struct counted){node, *s};
}

static uint64_t less(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

struct engine_shape counted_since(const struct engine_shape *now, const struct engine_shape *before, int64_t seen_ms)
{
	struct engine_shape more = *now;
	more.text = more.database = more.table = more.command = more.application = "";
	more.refused = 0;
	more.id_count = 0;
	if (now->first_ms > seen_ms || (before && now->calls < before->calls))
		return more;
	more.calls = before ? now->calls - before->calls : 0;
	if (!before)
		return more;
	more.total_us = now->total_us > before->total_us ? now->total_us - before->total_us : 0;
	more.rows = less(now->rows, before->rows);
	more.bytes_read = less(now->bytes_read, before->bytes_read);
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		more.buckets[i] = less(now->buckets[i], before->buckets[i]);
	return more;
}

static int by_time(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;
	return x->of.total_us > y->of.total_us ? -1 : x->of.total_us < y->of.total_us;
}

void counted_cut(struct counted_list *list, size_t most)
{
	if (list->count <= most)
		return;
	qsort(list->list, list->count, sizeof *list->list, by_time);
	list->count = most;
}
