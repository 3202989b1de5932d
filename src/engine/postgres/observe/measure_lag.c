/* Replication lag by one clock. A standby is behind by the time since its primary was at the place in the log that the
 * standby has replayed. PostgreSQL does not tell that: the age of the last transaction that was replayed is as long as
 * the primary was idle before (94 s were shown for a standby that stood for 8 s), and pg_stat_replication.replay_lag
 * stands still while replay does. So the primary is asked each second how far its log is, and the times are kept here.
 *
 * Between two places the primary is taken to have written evenly. A place at which it stayed is known with the time
 * when it was last there, because what comes after it was written after that. When all room is taken, the place goes
 * whose loss matters least beside its age: a day of lag is told to some minutes, a second of it to a second. */
#include "engine/postgres/observe/measure_lag.h"

#include "base/arena.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 8192
#define PAGE_HEADER 40
#define LATELY_US 15000000LL

/* The header of a page is no record: the end of a page and the beginning of what is in the next are one place. */
static double record_begin(double at)
{
	double into = fmod(at, PAGE);
	return into <= PAGE_HEADER ? at - into : at;
}

/* Takes one place away: of all but the first and the last the one that is closest to its neighbours for its age. */
static void position_drop(struct pg_positions *p, int64_t mono_us)
{
	size_t least = 1;
	double least_share = INFINITY;
	for (size_t i = 1; i + 1 < p->count; i++) {
		double gap = (double)(p->list[i + 1].first_us - p->list[i - 1].last_us);
		double share = gap / (double)(mono_us - p->list[i].first_us + 1);
		if (share < least_share) {
			least = i;
			least_share = share;
		}
	}
	p->count--;
	memmove(&p->list[least], &p->list[least + 1], (p->count - least) * sizeof *p->list);
}

/* What lies after the place was written by a primary that was given up, or before a restore: it is not this log. */
void pg_positions_note(struct pg_positions *p, double at, int64_t mono_us)
{
	at = record_begin(at);
	p->asked_us = mono_us;
	while (p->count && p->list[p->count - 1].at > at)
		p->count--;
	if (p->count && p->list[p->count - 1].at >= at) {
		p->list[p->count - 1].last_us = mono_us;
		return;
	}
	if (p->count == PG_POSITIONS)
		position_drop(p, mono_us);
	p->list[p->count++] = (struct pg_position){at, mono_us, mono_us};
}

/* When the primary left the place. Of one that it was at before anything is known: at the first that is known, so that
 * the lag is at least what is told. */
static double time_of(const struct pg_positions *p, double at)
{
	size_t i = p->count - 1;
	while (i > 0 && p->list[i - 1].at > at)
		i--;
	const struct pg_position *after = &p->list[i];
	if (i == 0)
		return (double)after->first_us;
	const struct pg_position *before = after - 1;
	double share = (at - before->at) / (after->at - before->at);
	return (double)before->last_us + share * (double)(after->first_us - before->last_us);
}

struct pg_lag pg_positions_lag(const struct pg_positions *p, double at, int64_t mono_us)
{
	at = record_begin(at);
	if (!p->count || isnan(at) || mono_us - p->asked_us > LATELY_US)
		return (struct pg_lag){(double)NAN, (double)NAN};
	double bytes = p->list[p->count - 1].at - at;
	if (bytes <= 0)
		return (struct pg_lag){0, 0};
	double ms = ((double)mono_us - time_of(p, at)) / 1000;
	return (struct pg_lag){ms > 0 ? ms : 0, bytes};
}

/* --- sets */

struct pg_followed {
	char cluster_id[25];
	unsigned number;
	bool kept;
	struct pg_positions positions;
};

static struct pg_followed *set_find(const struct pg_sets *sets, const char *cluster_id, unsigned number)
{
	for (size_t i = 0; i < sets->count; i++)
		if (sets->list[i]->number == number && strcmp(sets->list[i]->cluster_id, cluster_id) == 0)
			return sets->list[i];
	return NULL;
}

struct pg_positions *pg_sets_find(const struct pg_sets *sets, const char *cluster_id, unsigned number)
{
	struct pg_followed *found = set_find(sets, cluster_id, number);
	return found ? &found->positions : NULL;
}

void pg_sets_add(struct pg_sets *sets, const char *cluster_id, unsigned number)
{
	if (set_find(sets, cluster_id, number))
		return;
	struct pg_followed *made = must_calloc(1, sizeof *made);
	snprintf(made->cluster_id, sizeof made->cluster_id, "%s", cluster_id);
	made->number = number;
	sets->list = must_realloc(sets->list, (sets->count + 1) * sizeof(struct pg_followed *));
	sets->list[sets->count++] = made;
}

void pg_sets_keep(struct pg_sets *sets, const char *cluster_id, unsigned number)
{
	struct pg_followed *found = set_find(sets, cluster_id, number);
	if (found)
		found->kept = true;
}

void pg_sets_drop(struct pg_sets *sets)
{
	size_t kept = 0;
	for (size_t i = 0; i < sets->count; i++) {
		struct pg_followed *set = sets->list[i];
		if (!set->kept) {
			free(set);
			continue;
		}
		set->kept = false;
		sets->list[kept++] = set;
	}
	sets->count = kept;
}

void pg_sets_free(struct pg_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++)
		free(sets->list[i]);
	free(sets->list);
	*sets = (struct pg_sets){.list = NULL};
}
