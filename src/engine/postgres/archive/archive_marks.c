/* The newest marks of a set, in memory and in the repository's index: one object for each hour, which is put again as
 * it grows, and one that lists the hours. archive.h says what stands in them.
 *
 * * A mark is added once all log up to it is stored. The object of its hour is put every MARKS_PUT_MS, so that the
 * repository may lack the newest marks of a service that has crashed, but never has one whose log is not there. What
 * others ask for (archive_run.c) is copied below archive.lock; all else is the worker's alone. */
#include "engine/postgres/archive/archive_marks.h"

#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_store.h"
#include "engine/postgres/model/wait.h"

#include <errno.h>
#include <stdlib.h>

#define MARKS_PUT_MS 2000  /* between two puts of the index's hour */
#define STILL_PUT_MS 60000 /* the same, where only the time has moved */

int pg_archive_index_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	struct buf b = {0};
	s->index.identity = s->identity;
	pg_index_write(&b, &s->index);
	int r = repo_seconds_put(a->repository, &line, 0, b.p, b.n);
	buf_free(&b);
	s->index_due = s->index_due && r < 0;
	return r;
}

int pg_archive_marks_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	struct buf b = {0};
	for (size_t i = 0; i < s->marks.count; i++)
		pg_mark_write(&b, &s->marks.list[i]);
	int r = b.n ? repo_seconds_put(a->repository, &line, s->hour, b.p, b.n) : 0;
	buf_free(&b);
	if (r == 0) {
		s->marks_due = false;
		s->marks_put_ms = s->still_put_ms = pg_mono_ms();
	}
	if (r == 0 && s->marks.count) {
		pthread_mutex_lock(&a->lock);
		s->last = s->marks.list[s->marks.count - 1];
		pthread_mutex_unlock(&a->lock);
	}
	return r;
}

/* How long the log has stood still behind the newest mark is put once a minute. */
static bool stood_still(const struct pg_archive_set *s)
{
	return s->marks.count && s->marks.list[s->marks.count - 1].still_ms;
}

int pg_archive_index(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, bool now)
{
	bool due =
	        now ? s->marks_due || stood_still(s) : s->marks_due && pg_mono_ms() - s->marks_put_ms >= MARKS_PUT_MS;
	int r = due ? pg_archive_marks_put(c, a, s) : 0;
	return r < 0 || !s->index_due ? r : pg_archive_index_put(c, a, s);
}

int pg_archive_mark_add(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const struct pg_mark *m)
{
	int64_t hour = m->to_ms / PG_HOUR_MS;
	int r = 0;
	if (hour != s->hour) {
		r = s->marks_due || stood_still(s) ? pg_archive_marks_put(c, a, s) : 0;
		if (r < 0)
			return r;
		s->marks.count = 0;
		s->hour = hour;
		pg_index_hour(&s->index, hour, m->lsn);
		s->index_due = true;
	}
	/* How long the log stood still is known here alone so far: with the new mark that is put at once. */
	if (stood_still(s))
		s->marks_put_ms = 0;
	pg_marks_add(&s->marks, m);
	s->marks_due = true;
	pthread_mutex_lock(&a->lock);
	s->marked = m->lsn;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

int pg_archive_hour_load(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, int64_t hour)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	char *text;
	size_t n;
	int r = repo_seconds_get(a->repository, &line, hour, &text, &n);
	if (r < 0 && r != -ENOENT)
		return r;
	s->marks.count = 0;
	s->hour = hour;
	if (r == 0) {
		pg_marks_parse(&s->marks, (struct str){text, n});
		free(text);
	}
	return 0;
}

void pg_archive_mark_extend(struct pg_archive *a, struct pg_archive_set *s, int64_t now)
{
	if (s->marks.count == 0)
		return;
	struct pg_mark *m = &s->marks.list[s->marks.count - 1];
	m->still_ms = now > m->still_ms ? now : m->still_ms;
	s->marks_due |= pg_mono_ms() - s->still_put_ms >= STILL_PUT_MS;
	pthread_mutex_lock(&a->lock);
	if (s->last.lsn == m->lsn)
		s->last = *m;
	s->moved_ms = 0;
	pthread_mutex_unlock(&a->lock);
}
