/* Whether a repository has all log that its indexes speak of, for `steward repository check`. Somebody may be writing
 * meanwhile: what a list does not show is looked for in another one before it is told. */
#include "engine/postgres/archive/archive_check.h"

#include "base/arena.h"
#include "engine/postgres/archive/archive_view.h"

#include <errno.h>
#include <stdio.h>

static void hole_tell(const struct pg_view *v, const struct pg_hole *hole, void (*fault)(void *ctx, const char *words),
                      void *ctx)
{
	const struct pg_chain_part *part = pg_chain_part(&v->chain, hole->from);
	char name[PG_WAL_NAME], last[PG_WAL_NAME], words[400];
	pg_wal_name(part ? part->timeline : v->newest, hole->from, true, name);
	part = pg_chain_part(&v->chain, hole->to - 1);
	pg_wal_name(part ? part->timeline : v->newest, hole->to - 1, true, last);
	bool one = hole->to - hole->from == 1;
	snprintf(words, sizeof words,
	         "wal/%s/%s/%s/%.8s/%s: is missing%s%s; points in time of the cluster %s that need it cannot be "
	         "restored",
	         v->line.cluster, v->line.incarnation, v->line.set, name, name, one ? "" : ", and what follows up to ",
	         one ? "" : last, v->line.cluster);
	fault(ctx, words);
}

/* What the newest mark speaks of is there, in whatever form and on whatever timeline: a list may be made between the
 * history of a new timeline and its first segment. */
static bool has_tail(struct pg_view *v, struct pg_hole *ret_hole)
{
	struct pg_mark last;
	if (pg_view_seek(v, v->index.hour_count - 1, true, pg_mark_ends_by, UINT64_MAX, &last) < 0)
		return true;
	uint64_t number = (last.end - 1) / PG_SEGMENT, there = v->known.list[v->known.count - 1].number;
	*ret_hole = (struct pg_hole){there + 1, number + 1};
	return number <= there;
}

static int line_check(struct pg_view *v, void (*fault)(void *ctx, const char *words), void *ctx,
                      struct repo_check *seen)
{
	struct pg_hole hole;
	int r = pg_view_index_load(v);
	r = r < 0 && r != -ENOENT ? r : pg_view_segments_load(v);
	if (r < 0 || !v->known.count)
		return r;
	/* Somebody may be writing: what is in neither of two lists is missing. */
	if (pg_hole_find(&v->known, &v->chain, &v->index, pg_view_first(v), pg_view_last(v), &hole) ||
	    !has_tail(v, &hole))
		r = pg_view_segments_load(v);
	uint64_t from = pg_view_first(v), last = pg_view_last(v);
	for (; r == 0 && pg_hole_find(&v->known, &v->chain, &v->index, from, last, &hole); from = hole.to) {
		hole_tell(v, &hole, fault, ctx);
		seen->faults++;
	}
	if (r == 0 && !has_tail(v, &hole)) {
		hole_tell(v, &hole, fault, ctx);
		seen->faults++;
	}
	return r;
}

int pg_backup_check_log(struct repository *repository, void (*fault)(void *ctx, const char *words), void *ctx,
                        struct repo_check *seen)
{
	struct arena *a = arena_new();
	struct repo_line *lines;
	size_t count = 0;
	int r = repo_wal_lines(repository, a, &lines, &count);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct pg_view v = {.repository = repository, .line = lines[i], .hour = -1, .newest = 1};
		r = line_check(&v, fault, ctx, seen);
		if (r == -ENOKEY || r == -EKEYREVOKED) {
			seen->locked++;
			r = 0;
		} else if (r == -EBADMSG) {
			r = 0; /* an object that was read, and told, for itself */
		}
		v.repository = NULL;
		pg_view_close(&v);
	}
	arena_free(a);
	return r;
}
