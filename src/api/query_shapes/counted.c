/* Servers count from some start on, and begin anew with a crash, an upgrade or a failover. What is wanted is what was
 * counted between two looks: so the former figures are taken from the new ones, unless these began anew, which the time
 * at which a shape was first seen tells. Buckets of which nothing was counted, most of them, take no place in the
 * store. */
#include "api/query_shapes/counted.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define PLACES_LEAST 64

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

/* FNV-1a. */
static size_t hash_of(const char *node, const char *fingerprint)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	for (const char *part = node; part; part = part == node ? fingerprint : NULL)
		for (const char *p = part; *p; p++)
			hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
	return (size_t)(hash ^ hash >> 32);
}

/* Its place, or the free one where it would be. */
static uint32_t *place_of(const struct counted_list *list, const char *node, const char *fingerprint)
{
	size_t mask = list->place_count - 1;
	for (size_t i = hash_of(node, fingerprint) & mask;; i = (i + 1) & mask) {
		uint32_t *place = &list->places[i];
		const struct counted *one = *place ? &list->list[*place - 1] : NULL;
		if (!one || (strcmp(one->of.fingerprint, fingerprint) == 0 && strcmp(one->node, node) == 0))
			return place;
	}
}

/* At least half of the places are free. */
static void places_make(struct arena *a, struct counted_list *list)
{
	size_t count = PLACES_LEAST;
	while (count < 4 * list->count)
		count *= 2;
	list->place_count = count;
	list->places = arena_new_array(a, uint32_t, count);
	for (size_t i = 0; i < list->count; i++)
		*place_of(list, list->list[i].node, list->list[i].of.fingerprint) = (uint32_t)(i + 1);
}

void counted_add(struct arena *a, struct counted_list *list, const char *node, const struct engine_shape *s)
{
	if (2 * (list->count + 1) > list->place_count)
		places_make(a, list);
	uint32_t *place = place_of(list, node, s->fingerprint);
	if (*place) {
		engine_shape_join(&list->list[*place - 1].of, s);
		return;
	}
	ARENA_FIT(a, list->list, list->count, list->room);
	list->list[list->count++] = (struct counted){node, *s};
	*place = (uint32_t)list->count;
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
	list->place_count = 0; /* they are elsewhere now */
}
