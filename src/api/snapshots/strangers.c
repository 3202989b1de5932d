/* Which backups the store can know of. */
#include "api/snapshots/strangers.h"

#include "api/snapshots/snapshot.h"
#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <stdlib.h>

#define PERIODS_MAX 128 /* more become one, where the least time lies between them */
#define NAMED_MAX 10

struct strangers {
	struct arena *arena;
	const json_t *periods;
	struct str *known;
	size_t count, room;
	bool sorted;
	struct buf names;
	size_t told;
};

/* --- periods */

static int newest_look(struct tx *tx, void *ctx, const struct doc *d)
{
	int64_t *newest = ctx;
	*newest = d->created_ms > *newest ? d->created_ms : *newest;
	return 0;
}

/* A store of a version that did not write them down: it knew of all up to its newest snapshot. */
static int periods_load(struct tx *tx, struct arena *a, json_t **ret_periods)
{
	struct str kept;
	int64_t newest = 0;
	int r = tx_meta_get(tx, a, BACKUP_PERIODS, &kept);
	if (r == 0)
		*ret_periods = doc_json(a, kept);
	if (r != -ENOENT)
		return r;
	r = tx_walk_all(tx, SNAPSHOT_KIND, newest_look, &newest);
	*ret_periods = json_keep(a, json_array());
	json_array_append_new(*ret_periods, json_pack("[I, I]", (json_int_t)0, (json_int_t)newest));
	return r;
}

static json_int_t edge(const json_t *period, size_t at)
{
	return json_integer_value(json_array_get(period, at));
}

/* Each start begins a period, and they are bounded: two become one where the least time lies between them, which is a
 * restart's. When the oldest were joined, a hundred restarts closed the gap in which an older store's strangers lay,
 * and the next sweep deleted them. */
static void periods_join(json_t *periods)
{
	size_t least = 1;
	for (size_t i = 2; i < json_array_size(periods); i++)
		if (edge(json_array_get(periods, i), 0) - edge(json_array_get(periods, i - 1), 1) <
		    edge(json_array_get(periods, least), 0) - edge(json_array_get(periods, least - 1), 1))
			least = i;
	json_t *before = json_array_get(periods, least - 1);
	json_int_t end = edge(json_array_get(periods, least), 1);
	if (end > edge(before, 1))
		json_array_set_new(before, 1, json_integer(end));
	json_array_remove(periods, least);
}

/* Another process that shares the store may have begun one since: then all of them go on with that. */
int periods_note(struct tx *tx, struct arena *a, int64_t started_ms)
{
	json_t *periods = NULL, *last;
	int64_t now = clock_now_ms();
	int r = periods_load(tx, a, &periods);
	if (r < 0)
		return r;
	last = json_array_get(periods, json_array_size(periods) - 1);
	if (!last || edge(last, 0) < started_ms)
		json_array_append_new(periods, json_pack("[I, I]", (json_int_t)started_ms, (json_int_t)now));
	else if (edge(last, 1) < now)
		json_array_set_new(last, 1, json_integer(now));
	while (json_array_size(periods) > PERIODS_MAX)
		periods_join(periods);
	return tx_meta_put(tx, BACKUP_PERIODS, json_text(a, periods));
}

/* --- strangers */

int strangers_new(struct tx *tx, struct arena *a, struct strangers **ret_strangers)
{
	json_t *periods = NULL;
	int r = periods_load(tx, a, &periods);
	if (r < 0)
		return r;
	struct strangers *s = arena_new_of(a, struct strangers);
	*s = (struct strangers){.arena = a, .periods = periods};
	*ret_strangers = s;
	return 0;
}

void strangers_know(struct strangers *s, struct str id)
{
	ARENA_FIT(s->arena, s->known, s->count, s->room);
	s->known[s->count++] = id;
	s->sorted = false;
}

static int id_compare(const void *a, const void *b)
{
	const struct str *x = a, *y = b;
	int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int64_t id_ms(struct str id)
{
	char seconds[9] = "";
	memcpy(seconds, id.p, 8);
	return (int64_t)strtoul(seconds, NULL, 16) * 1000;
}

bool strangers_is(void *ctx, struct str id)
{
	struct strangers *s = ctx;
	if (!s->sorted && s->count)
		qsort(s->known, s->count, sizeof *s->known, id_compare);
	s->sorted = true;
	if (s->count && bsearch(&id, s->known, s->count, sizeof *s->known, id_compare))
		return false;
	if (!id_is_valid(id)) /* nothing that this service names so */
		return true;
	/* An id tells the second. What was made later in a period's last one, after the copy that this store is, must
	 * not be taken for something that it has dropped: the sweep would delete it. */
	int64_t made = id_ms(id);
	for (size_t i = 0; i < json_array_size(s->periods); i++) {
		const json_t *period = json_array_get(s->periods, i);
		if (made + 999 >= edge(period, 0) && made + 999 <= edge(period, 1))
			return false;
	}
	return true;
}

void strangers_tell(void *ctx, struct str name)
{
	struct strangers *s = ctx;
	if (s->told++ < NAMED_MAX)
		buf_printf(&s->names, "%s%.*s", s->told > 1 ? ", " : "", STR_ARG(name));
}

size_t strangers_told(struct strangers *s, struct str *ret_names)
{
	if (s->told > NAMED_MAX)
		buf_printf(&s->names, " and %zu more", s->told - NAMED_MAX);
	*ret_names = buf_keep(&s->names, s->arena);
	return s->told;
}
