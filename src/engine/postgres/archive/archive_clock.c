/* A host's clock that was put back, or runs ahead, under an archive that finds moments by their times.
 *
 * * PostgreSQL stops at the first commit that is later than the moment it is asked for. Once the clock was put back,
 * what is committed has times that were there before, so that a mark of such a time would lead behind that commit:
 * until the clock is where it was, log is stored and no mark is made. That keeps the marks in the order of their times,
 * too.
 *
 * * One that was ahead by a year would so end all moments for a year. Therefore, where it was put back far, they begin
 * anew: marks of times that are still to come are taken back, and the window ends as at a gap. The snapshot that begins
 * the next lies behind those commits, so that none of them is met on the way from there. */
#include "engine/postgres/archive/archive_clock.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_common.h"
#include "engine/postgres/archive/archive_marks.h"

#define PUT_BACK_MS 200 /* a clock that is only made slower differs by less between two looks */
#define FAR_MS 600000   /* for longer nobody waits until the clock is where it was */

void pg_archive_clock_look(struct pg_archive_set *s)
{
	bool first = s->clock.ms == 0;
	int64_t back = clock_put_back(&s->clock), now = s->clock.ms, was = now + back;
	if (first && s->last.to_ms > now) /* while no service ran */
		was = s->last.to_ms + PG_ARCHIVE_TICK_MS;
	else if (first || clock_is_virtual() || back <= PUT_BACK_MS)
		return;
	if (was - now > FAR_MS) {
		s->anew = true;
		s->clean = s->stopped = false; /* also where the log stands still */
	}
	if (s->anew || s->twice_ms >= was)
		return;
	s->twice_ms = was;
	log_warn("engine: set %s: the clock was put back by %lld ms: moments until it is where it was are those before",
	         s->name, (long long)(was - now));
}

bool pg_archive_clock_repeats(const struct pg_archive_set *s, const struct pg_mark *m)
{
	const struct pg_mark *last = s->marks.count ? &s->marks.list[s->marks.count - 1] : &s->last;
	return m->from_ms < s->twice_ms || m->to_ms < last->to_ms;
}

/* Marks of times that are still to come, which the clock will show again. */
static int marks_cut(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, int64_t now)
{
	struct pg_index *x = &s->index;
	int r = 0;
	while (x->hour_count && r == 0) {
		int64_t hour = x->hours[x->hour_count - 1].hour;
		if (hour != s->hour)
			r = pg_archive_hour_load(c, a, s, hour);
		while (r == 0 && s->marks.count && s->marks.list[s->marks.count - 1].to_ms > now)
			s->marks.count--;
		if (r == 0 && s->marks.count)
			break;
		x->hour_count -= r == 0;
		s->hour = 0;
	}
	if (r == 0 && s->marks.count) {
		struct pg_mark *last = &s->marks.list[s->marks.count - 1];
		last->still_ms = last->still_ms < now ? last->still_ms : now;
	}
	return r;
}

int pg_archive_moments_begin(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s,
                             const struct pg_mark *m)
{
	int r = marks_cut(c, a, s, m->from_ms);
	if (r < 0)
		return r;
	pg_index_back(&s->index, m->lsn);
	s->index.broken = true;
	r = pg_archive_index_put(c, a, s);
	r = r < 0 ? r : pg_archive_marks_put(c, a, s);
	r = r < 0 ? r : pg_common_take_back(c, a, m->from_ms);
	if (r < 0)
		return r;
	log_error("engine: %s set %s: the clock was put back far: what can be restored begins anew with the next "
	          "snapshot",
	          c->id, s->name);
	s->anew = false;
	s->twice_ms = 0;
	pthread_mutex_lock(&a->lock);
	a->broken = true;
	s->last = s->marks.count ? s->marks.list[s->marks.count - 1] : (struct pg_mark){0};
	pthread_mutex_unlock(&a->lock);
	return 0;
}
