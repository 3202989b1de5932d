/* Whether the repository still has the log that was put there. Somebody may have taken a segment out of it, or it has
 * lost one: what was stored was known to be stored until the service was started again, and nobody noticed.
 *
 * With each sweep the names of each set's segments are listed, and nothing is read. What is not there any more is
 * looked for on all nodes with the next mark, and where none has it the window ends and begins anew with a snapshot:
 * that is pg_archive_mend(). */
#include "engine/postgres/archive/archive_prove.h"

#include "base/log.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_store.h"
#include "engine/postgres/model/clusters.h"

#include <errno.h>
#include <stdio.h>

struct found {
	struct pg_segments known;
	uint32_t histories;
};

static int listed(void *ctx, const char *name, uint64_t stored)
{
	struct found *f = ctx;
	uint32_t timeline;
	uint64_t number;
	(void)stored;
	enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
	if (kind == WAL_HISTORY)
		f->histories = timeline > f->histories ? timeline : f->histories;
	else if (kind != WAL_NONE)
		pg_segments_add(&f->known, timeline, number, kind == WAL_SEGMENT);
	return 0;
}

/* Whether the log that was found has no hole, and its end: the segment of the newest mark, and the timeline's history.
 */
static bool is_proven(const struct pg_archive_set *s, const struct found *found, uint64_t from,
                      struct pg_hole *ret_hole)
{
	const uint64_t current = (s->last.end - 1) / PG_SEGMENT;
	*ret_hole = (struct pg_hole){current, current + 1};
	return !pg_hole_find(&found->known, &s->chain, &s->index, from, current, ret_hole) &&
	       pg_segments_find(&found->known, s->last.timeline, current) &&
	       (s->timeline == 1 || found->histories >= s->timeline);
}

/* Before `from` nobody needs any. */
static int set_prove(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint64_t from)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	struct found found = {0};
	struct pg_hole hole;
	if (!s->last.end) /* nothing is said to be there yet */
		return 0;
	int r = repo_wal_list(a->repository, &line, listed, &found);
	/* What is there and was passed over while a sweep took others away is in the next list. */
	if (r == 0 && !is_proven(s, &found, from, &hole))
		r = repo_wal_list(a->repository, &line, listed, &found);
	if (r < 0) {
		free(found.known.list);
		return r;
	}
	bool proven = is_proven(s, &found, from, &hole);
	free(s->known.list);
	s->known = found.known;
	s->histories = found.histories;
	pg_index_holes_drop(&s->index, from);
	/* Should these be gone: the list of the hours, and of the sets. */
	s->index_due = true;
	a->common.set_count = a->common_loaded ? 0 : a->common.set_count;
	if (proven)
		return 0;
	char name[PG_WAL_NAME];
	pg_wal_name(s->last.timeline, hole.from, true, name);
	log_warn("engine: %s set %s: the repository has lost log that was stored (%s): it is looked for on the nodes",
	         c->id, s->name, name);
	s->next = hole.from < s->next ? hole.from : s->next;
	s->clean = s->stopped = false; /* also where the log stands still */
	return 0;
}

int pg_archive_prove(struct pg_cluster *c, struct pg_archive *a)
{
	int r = 0;
	for (size_t i = 0; i < a->set_count && r == 0; i++) {
		struct pg_archive_set *s = a->sets[i];
		pthread_mutex_lock(&a->lock);
		uint64_t from = s->prove;
		pthread_mutex_unlock(&a->lock);
		r = from ? set_prove(c, a, s, from) : 0;
		pthread_mutex_lock(&a->lock);
		s->prove = r == 0 && s->prove == from ? 0 : s->prove;
		pthread_mutex_unlock(&a->lock);
	}
	return r;
}

void pg_archive_proven(struct pg_cluster *c, struct pg_archive *a)
{
	bool pending = false;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->set_count; i++)
		pending |= a->sets[i]->prove != 0;
	bool proven = a->proving && !pending;
	a->proving = a->proving && pending;
	pthread_mutex_unlock(&a->lock);
	if (!proven)
		return;
	/* Windows that were told a moment ago may have had a hole that is mended. */
	pthread_mutex_lock(&c->engine->lock);
	for (size_t i = 0; i < PG_WINDOWS_KEPT; i++)
		if (strcmp(c->engine->windows[i].cluster, c->id) == 0)
			c->engine->windows[i].until_ms = 0;
	pthread_mutex_unlock(&c->engine->lock);
}

int pg_backup_prove_log(struct engine *e, const char *region, const struct repo_keep_wal *of)
{
	char name[PG_WAL_NAME];
	uint32_t timeline;
	uint64_t number;
	/* All that was ever stored begins with the first. */
	snprintf(name, sizeof name, "00000001%s", of->from ? of->from : "0000000000000001");
	bool asked = of->line.set && pg_wal_parse(name, &timeline, &number) == WAL_SEGMENT && number;
	struct pg_cluster *c = asked ? pg_cluster_find(e, of->line.cluster) : NULL;
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	struct pg_archive *a = c->archive;
	pthread_mutex_unlock(&c->lock);
	int r = -ENOENT;
	if (a) {
		pthread_mutex_lock(&a->lock);
		bool same = strcmp(a->incarnation, of->line.incarnation) == 0 && strcmp(a->region, region) == 0;
		for (size_t i = 0; i < a->set_count && same; i++)
			if (strcmp(a->sets[i]->name, of->line.set) == 0) {
				a->sets[i]->prove = number;
				a->urgent = a->proving = true;
				r = 0;
			}
		pthread_mutex_unlock(&a->lock);
	}
	pg_cluster_put(c);
	return r;
}
