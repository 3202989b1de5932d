/* What is put into the repository of a set's log, by whoever has read it: where it goes, and whether it may. */
#include "engine/postgres/archive/archive_store.h"

#include "base/clock.h"
#include "engine/postgres/archive/archive.h"

struct repo_line pg_archive_line(const struct pg_cluster *c, const struct pg_archive *a, const char *set)
{
	return (struct repo_line){c->id, a->incarnation, set};
}

static void stored_note(struct pg_archive *a)
{
	pthread_mutex_lock(&a->lock);
	a->last_ms = clock_now_ms();
	pthread_mutex_unlock(&a->lock);
}

int pg_archive_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const char *name,
                   const void *bytes, size_t n)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	uint32_t timeline;
	uint64_t number;
	int r = repo_wal_put(a->repository, &line, name, bytes, n);
	if (r < 0)
		return r;
	enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
	if (kind == WAL_HISTORY)
		s->histories = timeline > s->histories ? timeline : s->histories;
	else
		pg_segments_add(&s->known, timeline, number, kind == WAL_SEGMENT);
	stored_note(a);
	return 0;
}

bool pg_archive_is_same(struct pg_cluster *c, const struct pg_archive *a)
{
	pthread_mutex_lock(&c->lock);
	bool same = strcmp(c->backup.incarnation, a->incarnation) == 0;
	pthread_mutex_unlock(&c->lock);
	return same;
}
