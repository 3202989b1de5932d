/* The log of a cluster in the repositories of other regions. It is copied from the repository of the first region, by
 * workers of their own: a region that is away, or slow, holds up neither the archive nor other regions, and is caught
 * up with when it comes back.
 *
 * In the copy as in the first a mark in the index means that the log up to there is stored. So of each line the list of
 * hours and the marks of the newest one are read first, then the log is copied, which has all that they speak of, and
 * then they are put. Marks of hours that are over change no more. Points of all sets are read before all of this, and
 * put after it. */
#include "engine/postgres/archive/archive_copy.h"

#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/model/wait.h"

#include <errno.h>
#include <stdio.h>

#define TICK_MS 5000
#define AWAY_MS 15000
#define LIST_MS 3600000 /* until both are compared again as a whole */
#define STILL_MS 60000  /* that the log stands still, until that is copied again */
#define LAST_MS 15000   /* for the end of an incarnation to come to the first */

/* What is known of the first, copied. */
struct first_set {
	char name[64];
	uint32_t timeline;
	uint64_t stored;
	struct pg_mark last;
};

struct pass {
	struct pg_cluster *c;
	struct pg_archive *a;
	struct pg_log_copy *k;
	char group[25], region[48], incarnation[25];
	struct first_set *sets;
	size_t set_count;
	struct repository *from, *to;
};

/* --- texts of the index */

struct texts {
	char *index, *marks;
	size_t index_n, marks_n;
	struct pg_index parsed;
	int64_t hour; /* the newest; 0: there is none */
};

static void texts_free(struct texts *t)
{
	free(t->index);
	free(t->marks);
	pg_index_free(&t->parsed);
}

/* -ENOENT: there are none. */
static int texts_read(struct pass *p, const struct repo_line *line, struct texts *t)
{
	*t = (struct texts){0};
	int r = repo_seconds_get(p->from, line, 0, &t->index, &t->index_n);
	if (r < 0)
		return r;
	pg_index_parse(&t->parsed, (struct str){t->index, t->index_n});
	if (t->parsed.hour_count == 0)
		return 0;
	t->hour = t->parsed.hours[t->parsed.hour_count - 1].hour;
	r = repo_seconds_get(p->from, line, t->hour, &t->marks, &t->marks_n);
	return r == -ENOENT ? 0 : r;
}

static bool has_hour(const struct pg_index *x, int64_t hour)
{
	for (size_t i = 0; i < x->hour_count; i++)
		if (x->hours[i].hour == hour)
			return true;
	return false;
}

/* All but the newest. Of those that the copy has, only its newest may lack something. */
static int hours_copy(struct pass *p, const struct repo_line *line, const struct texts *t, struct pg_copied *d)
{
	struct pg_index there = {0};
	char *text;
	size_t n;
	int r = d->hour ? 0 : repo_seconds_get(p->to, line, 0, &text, &n);
	if (r == 0 && !d->hour) {
		pg_index_parse(&there, (struct str){text, n});
		free(text);
		if (there.hour_count)
			d->hour = there.hours[there.hour_count - 1].hour;
	}
	bool known = d->hour && there.hour_count == 0;
	r = r == -ENOENT ? 0 : r;
	for (size_t i = 0; i + 1 < t->parsed.hour_count && r == 0; i++) {
		int64_t hour = t->parsed.hours[i].hour;
		if (hour < d->hour && (known || has_hour(&there, hour)))
			continue;
		r = repo_seconds_get(p->from, line, hour, &text, &n);
		if (r == 0) {
			r = repo_seconds_put(p->to, line, hour, text, n);
			free(text);
		}
		r = r == -ENOENT ? 0 : r; /* swept */
	}
	pg_index_free(&there);
	return r;
}

static int texts_put(struct pass *p, const struct repo_line *line, struct texts *t, struct pg_copied *d)
{
	int r = hours_copy(p, line, t, d);
	if (r == 0 && t->marks)
		r = repo_seconds_put(p->to, line, t->hour, t->marks, t->marks_n);
	if (r < 0)
		return r;
	d->hour = t->hour;
	if (d->index && strcmp(d->index, t->index) == 0)
		return 0;
	r = repo_seconds_put(p->to, line, 0, t->index, t->index_n);
	if (r == 0) {
		free(d->index);
		d->index = t->index;
		t->index = NULL;
	}
	return r;
}

/* --- segments */

static bool is_over(struct pass *p)
{
	pthread_mutex_lock(&p->c->engine->lock);
	bool over = p->c->engine->stopping;
	pthread_mutex_unlock(&p->c->engine->lock);
	pthread_mutex_lock(&p->a->lock);
	over |= !p->k->wanted;
	pthread_mutex_unlock(&p->a->lock);
	return over;
}

static int one_copy(struct pass *p, const struct repo_line *line, const char *name)
{
	char *bytes;
	size_t n;
	if (is_over(p))
		return -ECANCELED;
	int r = repo_wal_get(p->from, line, name, PG_SEGMENT, &bytes, &n);
	if (r < 0)
		return r;
	r = repo_wal_put(p->to, line, name, bytes, n);
	free(bytes);
	return r;
}

/* A segment that is there in part may be completed between two looks. */
static int part_copy(struct pass *p, const struct repo_line *line, uint32_t timeline, uint64_t number)
{
	char name[PG_WAL_NAME];
	pg_wal_name(timeline, number, false, name);
	int r = one_copy(p, line, name);
	if (r != -ENOENT)
		return r;
	pg_wal_name(timeline, number, true, name);
	return one_copy(p, line, name);
}

struct listing {
	struct pg_segments segments;
	uint32_t *histories;
	size_t count;
	uint32_t newest;
};

static int listed(void *ctx, const char *name, uint64_t stored)
{
	struct listing *l = ctx;
	uint32_t timeline;
	uint64_t number;
	(void)stored;
	enum pg_wal_kind kind = pg_wal_parse(name, &timeline, &number);
	if (kind == WAL_NONE)
		return 0;
	l->newest = timeline > l->newest ? timeline : l->newest;
	if (kind == WAL_HISTORY) {
		l->histories = must_realloc(l->histories, (l->count + 1) * sizeof *l->histories);
		l->histories[l->count++] = timeline;
	} else {
		pg_segments_add(&l->segments, timeline, number, kind == WAL_SEGMENT);
	}
	return 0;
}

static void listing_free(struct listing *l)
{
	free(l->segments.list);
	free(l->histories);
}

static int histories_copy(struct pass *p, const struct repo_line *line, const struct listing *from,
                          const struct listing *to)
{
	int r = 0;
	for (size_t i = 0; i < from->count && r == 0; i++) {
		char name[PG_WAL_NAME];
		bool there = false;
		for (size_t k = 0; k < to->count && !there; k++)
			there = to->histories[k] == from->histories[i];
		snprintf(name, sizeof name, "%08X.history", from->histories[i]);
		r = there ? 0 : one_copy(p, line, name);
	}
	return r;
}

/* Whatever the first has and the copy has not, but for what is older than all that the copy has: it was swept there. */
static int all_copy(struct pass *p, const struct repo_line *line, struct pg_copied *d)
{
	struct listing from = {0}, to = {0};
	int64_t now = pg_mono_ms();
	int r = repo_wal_list(p->from, line, listed, &from);
	r = r < 0 ? r : repo_wal_list(p->to, line, listed, &to);
	r = r < 0 ? r : histories_copy(p, line, &from, &to);
	d->next = 0;
	d->hour = 0;
	free(d->index);
	d->index = NULL;
	uint64_t oldest = to.segments.count ? to.segments.list[0].number : 0;
	for (size_t i = 0; i < from.segments.count && r == 0; i++) {
		const struct pg_segment *g = &from.segments.list[i];
		const struct pg_segment *there = pg_segments_find(&to.segments, g->timeline, g->number);
		char name[PG_WAL_NAME];
		pg_wal_name(g->timeline, g->number, true, name);
		if (g->number >= oldest && (!there || !there->complete))
			r = g->complete ? one_copy(p, line, name) : part_copy(p, line, g->timeline, g->number);
		r = r == -ENOENT ? 0 : r; /* swept meanwhile */
		if (g->timeline == from.newest)
			d->next = g->number + g->complete;
	}
	d->listed = r == 0;
	d->listed_ms = now;
	d->timeline = from.newest;
	listing_free(&from);
	listing_free(&to);
	return r;
}

/* What came since. */
static int new_copy(struct pass *p, const struct repo_line *line, struct pg_copied *d, const struct first_set *f)
{
	uint64_t current = (f->stored - 1) / PG_SEGMENT;
	int r = 0;
	for (; d->next < current && r == 0; d->next += r == 0) {
		char name[PG_WAL_NAME];
		pg_wal_name(f->timeline, d->next, true, name);
		r = one_copy(p, line, name);
	}
	if (r == 0 && f->stored != d->stored)
		r = part_copy(p, line, f->timeline, current);
	return r == -ENOENT ? all_copy(p, line, d) : r;
}

/* How far the first is now: asked after its texts were read, so that all that they speak of is copied. */
static int first_look(struct pass *p, struct first_set *f)
{
	bool found = false;
	pthread_mutex_lock(&p->a->lock);
	bool same = strcmp(p->a->incarnation, p->incarnation) == 0;
	for (size_t i = 0; i < p->a->set_count && same && !found; i++) {
		const struct pg_archive_set *s = p->a->sets[i];
		found = s->loaded && strcmp(s->name, f->name) == 0;
		if (found) {
			f->timeline = s->timeline;
			f->stored = s->stored;
		}
	}
	pthread_mutex_unlock(&p->a->lock);
	return found ? 0 : -EAGAIN;
}

/* `f` NULL: an incarnation that is over. */
static int set_copy(struct pass *p, const char *incarnation, struct pg_copied *d, struct first_set *f)
{
	const struct repo_line line = {p->c->id, incarnation, d->name};
	struct texts t;
	int r = texts_read(p, &line, &t);
	if (r == 0 && f)
		r = first_look(p, f);
	if (r == 0 && f && d->listed && d->timeline == f->timeline && d->next && f->stored &&
	    pg_mono_ms() - d->listed_ms < LIST_MS)
		r = new_copy(p, &line, d, f);
	else if (r == 0)
		r = all_copy(p, &line, d);
	r = r < 0 ? r : texts_put(p, &line, &t, d);
	if (r == 0 && f) {
		d->stored = f->stored;
		d->last = f->last;
		/* Behind that the first may still have gaps, which are mended later. */
		if (d->next > f->stored / PG_SEGMENT)
			d->next = f->stored / PG_SEGMENT;
	}
	texts_free(&t);
	return r == -ENOENT ? 0 : r;
}

/* --- one look */

static struct pg_copied *copied_of(struct pg_log_copy *k, const char *name)
{
	for (size_t i = 0; i < k->set_count; i++)
		if (strcmp(k->sets[i].name, name) == 0)
			return &k->sets[i];
	k->sets = must_realloc(k->sets, (k->set_count + 1) * sizeof *k->sets);
	struct pg_copied *d = &k->sets[k->set_count++];
	*d = (struct pg_copied){0};
	snprintf(d->name, sizeof d->name, "%s", name);
	return d;
}

static void copied_clear(struct pg_log_copy *k)
{
	for (size_t i = 0; i < k->set_count; i++)
		free(k->sets[i].index);
	free(k->sets);
	k->sets = NULL;
	k->set_count = 0;
}

void pg_copy_free(struct pg_log_copy *k)
{
	copied_clear(k);
	free(k);
}

/* false: the first has nothing to copy. */
static bool first_view(struct pass *p)
{
	struct pg_archive *a = p->a;
	pthread_mutex_lock(&a->lock);
	memcpy(p->group, a->group, sizeof p->group);
	memcpy(p->region, a->region, sizeof p->region);
	memcpy(p->incarnation, a->incarnation, sizeof p->incarnation);
	p->sets = must_calloc(a->set_count + 1, sizeof *p->sets);
	for (size_t i = 0; i < a->set_count; i++) {
		const struct pg_archive_set *s = a->sets[i];
		struct first_set *f = &p->sets[p->set_count];
		if (!s->loaded)
			continue;
		*f = (struct first_set){.timeline = s->timeline, .stored = s->stored, .last = s->last};
		snprintf(f->name, sizeof f->name, "%s", s->name);
		p->set_count++;
	}
	pthread_mutex_unlock(&a->lock);
	return p->set_count > 0;
}

static bool has_moved(struct pass *p)
{
	for (size_t i = 0; i < p->set_count; i++) {
		const struct first_set *f = &p->sets[i];
		const struct pg_copied *d = copied_of(p->k, f->name);
		if (!d->listed || d->stored != f->stored || d->timeline != f->timeline || d->last.lsn != f->last.lsn ||
		    f->last.still_ms - d->last.still_ms >= STILL_MS)
			return true;
	}
	return false;
}

static int sets_copy(struct pass *p)
{
	int r = 0;
	for (size_t i = 0; i < p->set_count && r == 0; i++)
		r = set_copy(p, p->incarnation, copied_of(p->k, p->sets[i].name), &p->sets[i]);
	return r;
}

static int former_sets_copy(struct pass *p)
{
	struct pg_log_copy *k = p->k;
	int r = 0;
	for (size_t i = 0; i < k->set_count && r == 0; i++)
		if (strcmp(k->sets[i].name, PG_COMMON) != 0)
			r = set_copy(p, k->incarnation, &k->sets[i], NULL);
	return r;
}

/* All sets, between the points that they share. */
static int lines_copy(struct pass *p, const char *incarnation, int (*copy)(struct pass *p))
{
	const struct repo_line line = {p->c->id, incarnation, PG_COMMON};
	struct texts t;
	int r = texts_read(p, &line, &t), none = r;
	if (r == 0 || r == -ENOENT)
		r = copy(p);
	if (r == 0 && none == 0)
		r = texts_put(p, &line, &t, copied_of(p->k, PG_COMMON));
	texts_free(&t);
	return r;
}

/* The end of what the cluster's data was before: it may still be on its way to the first. */
static int former_copy(struct pass *p)
{
	struct pg_log_copy *k = p->k;
	if (!k->left_ms)
		k->left_ms = pg_mono_ms();
	if (pg_mono_ms() - k->left_ms < LAST_MS)
		return -EAGAIN;
	return lines_copy(p, k->incarnation, former_sets_copy);
}

static int pass_run(struct pass *p)
{
	struct pg_log_copy *k = p->k;
	bool other = strcmp(k->incarnation, p->incarnation) != 0;
	if (!other && !has_moved(p))
		return 0;
	int r = repository_get(p->c->engine->repositories, p->region, p->group, &p->from);
	r = r < 0 ? r : repository_get(p->c->engine->repositories, k->region, p->group, &p->to);
	if (r == 0 && other && k->incarnation[0])
		r = former_copy(p);
	if (r == 0 && other) {
		copied_clear(k);
		memcpy(k->incarnation, p->incarnation, sizeof k->incarnation);
		k->left_ms = 0;
	}
	return r < 0 ? r : lines_copy(p, p->incarnation, sets_copy);
}

static void pass_note(struct pass *p, int r)
{
	struct pg_log_copy *k = p->k;
	const char *words = repository_why();
	bool away = r < 0 && r != -EAGAIN && r != -ECANCELED;
	pthread_mutex_lock(&p->a->lock);
	bool told = k->why[0];
	k->why[0] = 0;
	if (away)
		snprintf(k->why, sizeof k->why, "%s", words && *words ? words : strerror(-r));
	if (r == 0)
		k->last_ms = clock_now_ms();
	pthread_mutex_unlock(&p->a->lock);
	if (away && !told)
		log_warn("engine: %s: its log is not copied to %s: %s", p->c->id, k->region, k->why);
	else if (!away && told)
		log_info("engine: %s: its log is copied to %s again", p->c->id, k->region);
}

void pg_copy_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_log_copy *k)
{
	struct pass p = {.c = c, .a = a, .k = k};
	int r = first_view(&p) ? pass_run(&p) : -EAGAIN;
	pass_note(&p, r);
	repository_put(p.from);
	repository_put(p.to);
	free(p.sets);
	k->due_ms = pg_mono_ms() + (r < 0 && r != -EAGAIN ? AWAY_MS : TICK_MS);
}
