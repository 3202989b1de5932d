/* Moments at, just before and just after every boundary of a log: of segments and pages, of timelines, pauses, hours and
 * days, of stretches in which nothing was written, and of holes. The logs are made up and lie in a repository without a
 * server: what is offered can be restored, what can be restored is offered, and what it takes is there. */
#include "base/buf.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_read.h"
#include "harness.h"

#include <stdlib.h>

#define ROUNDS 12
#define MARKS_MAX 64
#define TIMELINES 4
#define NUMBERS 64
#define STEPS 16
#define DAY_MS 86400000LL
#define PAGE 8192
#define LONG_HEADER 40
#define HEADER 24

/* One log, as it was made. */
struct past {
	struct engine_source of;
	struct pg_mark marks[MARKS_MAX];
	size_t mark_count;
	uint64_t fork[TIMELINES + 1]; /* where the timeline was left; UINT64_MAX: the last */
	uint32_t timeline;
	uint64_t lsn;                       /* where the log stands */
	uint64_t first;                     /* number of the first segment */
	uint64_t end[TIMELINES + 1];        /* up to where log of the timeline was written */
	char there[TIMELINES + 1][NUMBERS]; /* 2: the segment is stored, 1: its beginning */
	int64_t ms;
	/* Where the clock was put back far, so that times before are later; and whether it was since the last mark. */
	uint64_t backs[STEPS];
	size_t back_count;
	bool back;
};

static unsigned dice(unsigned sides)
{
	return (unsigned)rand() % sides;
}

/* A record ends at most where a page does, and the next begins behind the header of the page. */
static uint64_t record_begin(uint64_t lsn)
{
	return lsn % PG_SEGMENT == 0 ? lsn + LONG_HEADER : lsn % PAGE == 0 ? lsn + HEADER : lsn;
}

static void log_write(struct past *p, uint64_t to)
{
	p->lsn = to;
	p->end[p->timeline] = to > p->end[p->timeline] ? to : p->end[p->timeline];
}

static void some_write(struct past *p)
{
	uint64_t segment = (p->lsn / PG_SEGMENT + 1) * PG_SEGMENT, page = (p->lsn / PAGE + 1) * PAGE;
	switch (dice(6)) {
	case 0: log_write(p, segment); break;                     /* to the very end of a segment */
	case 1: log_write(p, page); break;                        /* and of a page */
	case 2: log_write(p, segment + LONG_HEADER + 104); break; /* just over it */
	case 3: log_write(p, segment - 8); break;                 /* just not */
	case 4: log_write(p, segment + PG_SEGMENT + 5000); break; /* more than a segment */
	default: log_write(p, record_begin(p->lsn) + 200); break;
	}
}

static struct pg_mark *mark_add(struct past *p, char kind, uint64_t lsn, uint64_t end, unsigned took)
{
	struct pg_mark *m = &p->marks[p->mark_count++];
	if (p->back)
		p->backs[p->back_count++] = lsn;
	p->back = false;
	*m = (struct pg_mark){kind, p->ms, p->ms + took, 0, p->timeline, lsn, end};
	log_write(p, end);
	p->ms += took;
	return m;
}

static void step(struct past *p)
{
	unsigned pause = dice(4) ? 1 + dice(1500) : 1 + dice(2 * PG_HOUR_MS);
	struct pg_mark *last = p->mark_count ? &p->marks[p->mark_count - 1] : NULL;
	switch (dice(9)) {
	case 8: /* log of a clock that was ahead, whose marks were taken back */
		some_write(p);
		p->back = true;
		break;
	case 0: /* nothing is written for a while */
		if (last && last->timeline == p->timeline && last->end == p->lsn)
			last->still_ms = p->ms + pause - 1;
		break;
	case 1: { /* stopped: the checkpoint is the first record of a segment */
		uint64_t begin = record_begin((p->lsn + PG_SEGMENT - 1) / PG_SEGMENT * PG_SEGMENT);
		mark_add(p, 'S', begin, begin + 128, 0)->still_ms = p->ms + pause - 1;
		break;
	}
	case 2: { /* another primary, which may not have all that the former had */
		if (p->timeline == TIMELINES || !last || last->timeline != p->timeline)
			break;
		const uint64_t forks[] = {p->lsn, last->lsn, last->lsn / PG_SEGMENT * PG_SEGMENT,
		                          record_begin(last->lsn / PG_SEGMENT * PG_SEGMENT), last->lsn - 8};
		uint64_t fork = forks[dice(5)];
		if (p->timeline > 1 && fork < p->fork[p->timeline - 1])
			break;
		p->fork[p->timeline++] = fork;
		if (p->back_count && p->backs[p->back_count - 1] > fork) {
			while (p->back_count > 1 && p->backs[p->back_count - 2] > fork)
				p->back_count--;
			p->backs[p->back_count - 1] = fork;
		}
		log_write(p, fork);
		break;
	}
	default: {
		some_write(p);
		uint64_t end = record_begin(p->lsn) + 48;
		mark_add(p, 'H', p->lsn, dice(4) ? end : end + 300, 1 + dice(20));
		break;
	}
	}
	p->ms += pause;
}

/* What PostgreSQL would have to read for that segment. */
static uint32_t timeline_of(const struct past *p, uint64_t number)
{
	for (uint32_t t = p->timeline; t > 1; t--)
		if (p->fork[t - 1] / PG_SEGMENT <= number)
			return t;
	return 1;
}

/* Where a page begins and where its first record does is the same place: nothing lies between. */
static uint64_t place(uint64_t lsn)
{
	uint64_t page = lsn / PAGE * PAGE;
	return record_begin(page) == lsn ? page : lsn;
}

static bool is_way(const struct past *p, const struct pg_mark *m)
{
	return m->timeline == p->timeline || place(m->end) <= place(p->fork[m->timeline]);
}

static bool is_there(const struct past *p, uint64_t from, uint64_t end)
{
	uint64_t last = (end - 1) / PG_SEGMENT;
	for (uint64_t n = from / PG_SEGMENT; n < last; n++)
		if (p->there[timeline_of(p, n)][n] < 2)
			return false;
	return p->there[timeline_of(p, last)][last] > 0;
}

static bool is_crossed(const struct past *p, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < p->back_count; i++)
		if (p->backs[i] > from && p->backs[i] <= to)
			return true;
	return false;
}

/* --- into the repository */

static void segments_put(struct past *p, struct repository *r, const struct repo_line *line)
{
	char name[PG_WAL_NAME], history[200] = "";
	uint64_t hole = dice(2) ? p->first + 1 + dice(4) : 0;
	for (uint32_t t = 1; t <= p->timeline; t++) {
		uint64_t begin = t == 1 ? p->first : p->fork[t - 1] / PG_SEGMENT;
		for (uint64_t n = begin; n * PG_SEGMENT < p->end[t] && n < NUMBERS; n++) {
			bool whole = (n + 1) * PG_SEGMENT <= p->end[t];
			if (n == hole)
				continue;
			pg_wal_name(t, n, whole, name);
			CHECK(repo_wal_put(r, line, name, name, 24) == 0);
			p->there[t][n] = whole ? 2 : 1;
		}
		if (t == 1)
			continue;
		snprintf(history + strlen(history), sizeof history - strlen(history), "%u\t%X/%X\tx\n", t - 1,
		         (unsigned)(p->fork[t - 1] >> 32), (unsigned)p->fork[t - 1]);
		snprintf(name, sizeof name, "%08X.history", t);
		CHECK(repo_wal_put(r, line, name, history, strlen(history)) == 0);
	}
}

static void marks_put(const struct past *p, struct repository *r, const struct repo_line *line)
{
	struct buf index = {0}, b = {0};
	int64_t hour = -1;
	buf_printf(&index, "identity 7\nbroken 0\ngap %llu\n", (unsigned long long)p->first);
	for (size_t i = 0; i < p->back_count; i++)
		buf_printf(&index, "back %llx\n", (unsigned long long)p->backs[i]);
	for (size_t i = 0; i < p->mark_count; i++) {
		const struct pg_mark *m = &p->marks[i];
		if (m->to_ms / PG_HOUR_MS != hour) {
			if (b.n)
				CHECK(repo_seconds_put(r, line, hour, b.p, b.n) == 0);
			b.n = 0;
			hour = m->to_ms / PG_HOUR_MS;
			buf_printf(&index, "hour %lld %llx\n", (long long)hour, (unsigned long long)m->lsn);
		}
		pg_mark_write(&b, m);
	}
	if (b.n)
		CHECK(repo_seconds_put(r, line, hour, b.p, b.n) == 0);
	CHECK(repo_seconds_put(r, line, 0, index.p, index.n) == 0);
	buf_free(&index);
	buf_free(&b);
}

static void past_make(struct past *p, unsigned round)
{
	struct repository *r = NULL;
	*p = (struct past){.of = {.group_id = GROUP, .cluster_id = "65f0000000000000000000bb", .region = "X"},
	                   .timeline = 1,
	                   .first = 2 + dice(3),
	                   .ms = 20000 * DAY_MS - 4000};
	snprintf(p->of.incarnation, sizeof p->of.incarnation, "65f00000000000000001%04x", round);
	log_write(p, p->first * PG_SEGMENT + 1000);
	mark_add(p, 'H', p->lsn, p->lsn + 48, 5);
	p->ms += 500;
	while (p->mark_count < STEPS && p->lsn < (NUMBERS - 4) * PG_SEGMENT)
		step(p);
	p->fork[p->timeline] = UINT64_MAX;
	const struct repo_line line = {p->of.cluster_id, p->of.incarnation, "0"},
	                       common = {p->of.cluster_id, p->of.incarnation, PG_COMMON};
	CHECK(repository_get(engine->repositories, p->of.region, p->of.group_id, &r) == 0);
	segments_put(p, r, &line);
	marks_put(p, r, &line);
	CHECK(repo_seconds_put(r, &common, 0, "set 0\n", 6) == 0);
	repository_put(r);
}

/* --- one moment */

struct answer {
	struct engine_window *windows;
	size_t count;
};

static const struct pg_mark *mark_before(const struct past *p, int64_t ms)
{
	const struct pg_mark *found = NULL;
	for (size_t i = 0; i < p->mark_count; i++)
		if (is_way(p, &p->marks[i]) && p->marks[i].to_ms <= ms)
			found = &p->marks[i];
	return found;
}

static const struct pg_mark *mark_after(const struct past *p, int64_t ms)
{
	for (size_t i = 0; i < p->mark_count; i++)
		if (is_way(p, &p->marks[i]) && p->marks[i].from_ms > ms)
			return &p->marks[i];
	return NULL;
}

static const struct pg_mark *mark_during(const struct past *p, int64_t ms)
{
	for (size_t i = 0; i < p->mark_count; i++)
		if (is_way(p, &p->marks[i]) && p->marks[i].from_ms <= ms && ms < p->marks[i].to_ms)
			return &p->marks[i];
	return NULL;
}

/* What the target must be, by what the log is. */
static bool is_right(const struct past *p, int64_t ms, const struct pg_target *to)
{
	const struct pg_mark *before = mark_before(p, ms), *after = mark_after(p, ms), *during = mark_during(p, ms);
	uint64_t base = before ? before->lsn : 0;
	if (during && (!after || !is_there(p, base, after->end) || is_crossed(p, base, after->lsn)))
		after = during->still_ms >= ms ? during : NULL;
	if (!before || to->least != before->lsn)
		return false;
	if (to->lsn)
		return to->lsn == before->lsn && to->end == before->end && to->timeline == before->timeline &&
		       ms <= before->still_ms && is_there(p, before->lsn, before->end);
	return after && !is_crossed(p, base, after->lsn) && to->time_us == ms * 1000 && to->end == after->end &&
	       to->timeline == after->timeline && is_there(p, before->lsn, after->end);
}

/* A snapshot that was taken when the window began is played on to the moment. */
static bool is_reached(const struct past *p, const struct engine_window *w, const struct pg_target *to)
{
	for (size_t i = 0; i < p->mark_count; i++)
		if (is_way(p, &p->marks[i]) && p->marks[i].to_ms == w->from_ms)
			return is_there(p, p->marks[i].lsn, to->end) && !is_crossed(p, p->marks[i].lsn, to->least);
	return false;
}

static bool moment_check(const struct past *p, const struct answer *a, int64_t ms)
{
	struct engine_point point = {.kind = POINT_TIME, .time_ms = ms};
	struct pg_target to = {0};
	const char *why = NULL;
	const struct engine_window *offered = NULL;
	for (size_t i = 0; i < a->count; i++)
		if (a->windows[i].from_ms <= ms && ms <= a->windows[i].to_ms)
			offered = &a->windows[i];
	int r = pg_archive_resolve(engine, &p->of, &point, "0", &to, &why);
	bool good = offered ? r == 0 && is_right(p, ms, &to) && is_reached(p, offered, &to) : r == -ENOENT;
	/* As who asks for it does: with the position that the moment was found by. */
	uint64_t second;
	if (good && offered) {
		good = pg_backup_position(engine, &p->of, ms, &point.position, &second) == 0 &&
		       pg_archive_resolve(engine, &p->of, &point, "0", &to, &why) == 0 && is_right(p, ms, &to);
	}
	CHECK(good);
	if (!good)
		fprintf(stderr, "%s: moment %lld: %s, %d, timeline %u, lsn %llx, least %llx, end %llx\n",
		        p->of.incarnation, (long long)ms, offered ? "offered" : "not offered", r, to.timeline,
		        (unsigned long long)to.lsn, (unsigned long long)to.least, (unsigned long long)to.end);
	return good;
}

static void past_print(const struct past *p, const struct answer *a)
{
	for (size_t i = 0; i < p->mark_count; i++) {
		const struct pg_mark *m = &p->marks[i];
		fprintf(stderr, "  %c %lld to %lld still %lld: %u at %llx to %llx%s\n", m->kind, (long long)m->from_ms,
		        (long long)m->to_ms, (long long)m->still_ms, m->timeline, (unsigned long long)m->lsn,
		        (unsigned long long)m->end, is_way(p, m) ? "" : ", never was");
	}
	for (uint32_t t = 1; t <= p->timeline; t++) {
		fprintf(stderr, "  timeline %u, left at %llx: ", t, (unsigned long long)p->fork[t]);
		for (unsigned n = 0; n < NUMBERS; n++)
			if (p->there[t][n])
				fprintf(stderr, " %x%s", n, p->there[t][n] == 1 ? "*" : "");
		fputc('\n', stderr);
	}
	for (size_t i = 0; i < a->count; i++)
		fprintf(stderr, "  window %lld to %lld\n", (long long)a->windows[i].from_ms,
		        (long long)a->windows[i].to_ms);
}

static bool around_check(const struct past *p, const struct answer *a, int64_t ms)
{
	bool good = true;
	for (int64_t t = ms - 1; t <= ms + 1; t++)
		good &= moment_check(p, a, t);
	return good;
}

static void past_check(const struct past *p)
{
	struct answer a = {0};
	bool good = true;
	CHECK(pg_backup_window(engine, &p->of, arena, &a.windows, &a.count) == 0);
	for (size_t i = 0; i < a.count; i++) {
		CHECK(a.windows[i].from_ms <= a.windows[i].to_ms &&
		      (i == 0 || a.windows[i - 1].to_ms < a.windows[i].from_ms));
		good &= around_check(p, &a, a.windows[i].from_ms);
		good &= around_check(p, &a, a.windows[i].to_ms);
	}
	for (size_t i = 0; i < p->mark_count; i++) {
		const struct pg_mark *m = &p->marks[i];
		good &= around_check(p, &a, m->from_ms);
		good &= moment_check(p, &a, m->to_ms);
		if (m->still_ms)
			good &= around_check(p, &a, m->still_ms);
		int64_t hour = m->to_ms / PG_HOUR_MS * PG_HOUR_MS;
		if (i && hour > p->marks[i - 1].to_ms)
			good &= around_check(p, &a, hour);
	}
	if (!good)
		past_print(p, &a);
}

void archive_boundaries(void)
{
	const char *text = getenv("STEWARD_SEED");
	unsigned seed = text ? (unsigned)strtoul(text, NULL, 10) : 4; /* found a moment that was offered and failed */
	srand(seed);
	printf("boundaries: seed %u\n", seed);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct past p;
		past_make(&p, round);
		past_check(&p);
	}
}
