/* What a sweep leaves. */
#include "api/snapshots/keep.h"

#include <stdio.h>

#define SEGMENT_BYTES (4ull << 20)
#define YOUNG_MS 3600000LL /* what a writer elsewhere may be about to name */

/* The name of the segment that has the position, without its timeline. */
static const char *segment_of(struct arena *a, uint64_t lsn)
{
	uint64_t number = lsn / SEGMENT_BYTES, per_log = (1ull << 32) / SEGMENT_BYTES;
	return arena_printf(a, "%08llX%08llX", (unsigned long long)(number / per_log),
	                    (unsigned long long)(number % per_log))
	        .p;
}

static bool is_of(const struct kept_snapshot *s, const struct kept_line *l)
{
	return s->completed && str_eq(s->cluster, l->cluster) && str_eq(s->incarnation, l->incarnation);
}

/* The newest that is not younger than the window's start; where all are younger, the oldest. */
static const struct kept_snapshot *base_among(const struct kept_line *l, const struct kept_snapshot *list, size_t count,
                                              int64_t start_ms, bool coming)
{
	const struct kept_snapshot *best = NULL, *oldest = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct kept_snapshot *s = &list[i];
		if (!is_of(s, l) || s->coming != coming)
			continue;
		if (s->at_ms <= start_ms && (!best || s->at_ms > best->at_ms))
			best = s;
		if (!oldest || s->at_ms < oldest->at_ms)
			oldest = s;
	}
	return best ? best : oldest;
}

static const struct kept_snapshot *base_of(const struct kept_line *l, const struct kept_snapshot *list, size_t count,
                                           int64_t start_ms)
{
	const struct kept_snapshot *here = base_among(l, list, count, start_ms, false);
	return here ? here : base_among(l, list, count, start_ms, true);
}

static bool has_set(const struct repo_keep_wal *wal, size_t count, const char *set)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(wal[i].line.set, set) == 0)
			return true;
	return false;
}

static size_t line_keep(struct arena *a, const struct kept_line *l, const struct kept_snapshot *base,
                        const struct kept_snapshot *list, size_t count, struct repo_keep_wal *to)
{
	const char *cluster = arena_z(a, l->cluster), *incarnation = arena_z(a, l->incarnation);
	size_t made = 0;
	if (!base || !base->set_count) {
		*to = (struct repo_keep_wal){.line = {cluster, incarnation, NULL}};
		return 1;
	}
	for (; made < base->set_count; made++)
		to[made] = (struct repo_keep_wal){.line = {cluster, incarnation, base->sets[made].set},
		                                  .from = segment_of(a, base->sets[made].lsn),
		                                  .from_ms = base->at_ms};
	/* Sets that came later: shards and routers that were added since. */
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; is_of(&list[i], l) && k < list[i].set_count; k++)
			if (!has_set(to, made, list[i].sets[k].set))
				to[made++] =
				        (struct repo_keep_wal){.line = {cluster, incarnation, list[i].sets[k].set}};
	return made;
}

void keep_make(struct arena *a, const struct kept_snapshot *snapshots, size_t snapshot_count,
               const struct kept_line *lines, size_t line_count, int64_t now_ms, struct repo_keep *ret_keep)
{
	const char **names = arena_new_array(a, const char *, snapshot_count + 1);
	size_t count = 0, wal_count = 0, room = line_count + 1;
	for (size_t i = 0; i < snapshot_count; i++)
		if (snapshots[i].here)
			names[count++] =
			        arena_printf(a, "%.*s/%.*s", STR_ARG(snapshots[i].cluster), STR_ARG(snapshots[i].id)).p;
	const struct kept_snapshot **bases = arena_new_array(a, const struct kept_snapshot *, line_count + 1);
	for (size_t i = 0; i < line_count; i++) {
		bases[i] = base_of(&lines[i], snapshots, snapshot_count, now_ms - lines[i].window_ms);
		for (size_t k = 0; k < snapshot_count; k++)
			room += is_of(&snapshots[k], &lines[i]) ? snapshots[k].set_count : 0;
	}
	struct repo_keep_wal *wal = arena_new_array(a, struct repo_keep_wal, room);
	for (size_t i = 0; i < line_count; i++) {
		const struct kept_line *l = &lines[i];
		/* Of data that ended nothing more comes that its log could go on from. */
		bool over = l->ended_ms && (l->ended_ms < now_ms - l->window_ms || !bases[i]);
		if (l->window_ms && !over)
			wal_count += line_keep(a, l, bases[i], snapshots, snapshot_count, wal + wal_count);
	}
	*ret_keep = (struct repo_keep){
	        .snapshots = names, .snapshot_count = count, .wal = wal, .wal_count = wal_count, .young_ms = YOUNG_MS};
}
