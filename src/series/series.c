/* From samples to records: counters become rates, records of a finer ring one of a coarser. A lock for each path (of a
 * small table) keeps readers from seeing a record that is half written. */
#include "series/series.h"

#include "base/arena.h"
#include "base/log.h"
#include "series/file.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define LOCKS 64
/* A counter that was not known for longer has no rate: what it has grown by belongs to the gap. */
#define KNOWN_US 150000000LL

const struct series_sizes series_sizes_standard = {{360, 2880, 4032, 1488, 732}};

struct known {
	double value;
	int64_t time_ms, mono_us;
	uint64_t epoch;
	bool is;
};

struct series {
	char *path;
	const struct series_layout *layout;
	struct series_sizes sizes;
	struct known *inputs;
	/* Of the sample under way: the gauges; what grew since the samples before, and when those were. */
	float *values, *grown;
	int64_t *since_ms, *spans; /* and how many intervals ago that was, by the monotonic clock */
	pthread_mutex_t *lock;
};

static pthread_mutex_t locks[LOCKS];

__attribute__((constructor)) static void locks_make(void)
{
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&locks[i], NULL);
}

static pthread_mutex_t *lock_of(const char *path)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (const char *p = path; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return &locks[h % LOCKS];
}

bool series_sizes_parse(struct str text, struct series_sizes *ret_sizes)
{
	struct series_sizes sizes = series_sizes_standard;
	struct str rest = text, one;
	for (int level = SERIES_1M; level < SERIES_LEVELS; level++) {
		uint64_t days;
		bool more = str_cut(rest, ',', &one, &rest);
		if (!str_to_u64(one, 3660, &days) || !days || more != (level < SERIES_1D))
			return false;
		sizes.count[level] = (uint32_t)((int64_t)days * 86400000 / series_step_ms((enum series_level)level));
	}
	*ret_sizes = sizes;
	return true;
}

static int64_t begin_of(enum series_level level, int64_t time_ms)
{
	return time_ms - time_ms % series_step_ms(level);
}

size_t series_slots(enum series_level level, int64_t from_ms, int64_t to_ms)
{
	int64_t step = series_step_ms(level), first = (from_ms + step - 1) / step, end = (to_ms + step - 1) / step;
	return end > first ? (size_t)(end - first) : 0;
}

/* --- from finer records to a coarser one */

struct fold {
	const struct series_layout *layout;
	double *sums, *weights;
	uint32_t samples;
	bool any;
};

static struct fold fold_new(const struct series_layout *layout)
{
	return (struct fold){.layout = layout,
	                     .sums = must_calloc(layout->room, sizeof(double)),
	                     .weights = must_calloc(layout->room, sizeof(double))};
}

/* A record without a sample has rates alone: what is known of it is as good as of others. */
static void fold_add(struct fold *f, const struct series_record *r)
{
	uint32_t weight = r->samples ? r->samples : 1;
	f->any = true;
	for (size_t i = 0; i < f->layout->count; i++) {
		double v = (double)r->values[i];
		if (isnan(v))
			continue;
		if (f->layout->columns[i].maximum)
			f->sums[i] = f->weights[i] > 0 && f->sums[i] > v ? f->sums[i] : v;
		else
			f->sums[i] += v * weight;
		f->weights[i] += weight;
	}
	f->samples += r->samples;
}

/* The record, and an end of the fold. */
static void fold_end(struct fold *f, int64_t begin_ms, struct series_record *ret)
{
	ret->time_ms = f->any ? begin_ms : -1;
	ret->samples = f->samples;
	for (size_t i = 0; i < f->layout->room; i++) {
		bool known = i < f->layout->count && f->weights[i] > 0;
		double v = !known                          ? (double)NAN
		           : f->layout->columns[i].maximum ? f->sums[i]
		                                           : f->sums[i] / f->weights[i];
		ret->values[i] = (float)v;
	}
	free(f->sums);
	free(f->weights);
}

/* The interval that has the last sample is under way: its record is not written yet, or not with all of it. */
static bool is_open(const struct series_file *f, enum series_level level, int64_t begin_ms)
{
	return level > f->layout->first && f->last_ms >= 0 && begin_of(level, f->last_ms) == begin_ms;
}

static int interval_read(const struct series_file *f, enum series_level level, int64_t begin_ms,
                         struct series_record *r);

static int interval_make(const struct series_file *f, enum series_level level, int64_t begin_ms,
                         struct series_record *ret)
{
	enum series_level finer = (enum series_level)(level - 1);
	int64_t step = series_step_ms(finer), end = begin_ms + series_step_ms(level);
	struct fold fold = fold_new(f->layout);
	int r = 0;
	for (int64_t at = begin_ms; r == 0 && at < end; at += step) {
		r = interval_read(f, finer, at, ret);
		if (r == 0 && ret->time_ms >= 0)
			fold_add(&fold, ret);
	}
	fold_end(&fold, begin_ms, ret);
	return r;
}

static int interval_read(const struct series_file *f, enum series_level level, int64_t begin_ms,
                         struct series_record *r)
{
	return is_open(f, level, begin_ms) ? interval_make(f, level, begin_ms, r)
	                                   : series_record_read(f, level, begin_ms, r);
}

/* The time goes on from `last_ms`, or back: intervals that were left are written, the finest first. One that the time
 * comes back to is under way again, and made anew of the finer records when it is left. */
static int intervals_end(const struct series_file *f, int64_t last_ms, int64_t time_ms, struct series_record *r)
{
	int result = 0;
	for (int i = (int)f->layout->first + 1; result == 0 && i < SERIES_LEVELS; i++) {
		enum series_level level = (enum series_level)i;
		int64_t begin = begin_of(level, last_ms);
		if (begin == begin_of(level, time_ms))
			break;
		result = interval_make(f, level, begin, r);
		if (result == 0 && r->time_ms >= 0)
			result = series_record_write(f, level, r);
	}
	return result;
}

/* --- copying into rings of another length */

struct copy {
	const struct series_file *to;
	enum series_level level;
	struct series_record converted;
};

static int record_copy(void *ctx, const struct series_record *r)
{
	struct copy *c = ctx;
	const struct series_layout *layout = c->to->layout;
	if (!c->converted.values)
		return series_record_write(c->to, c->level, r);
	for (size_t i = layout->count; i < layout->room; i++)
		c->converted.values[i] = NAN;
	layout->convert(r->values, c->converted.values);
	c->converted.time_ms = r->time_ms;
	c->converted.samples = r->samples;
	return series_record_write(c->to, c->level, &c->converted);
}

static int rings_copy(const struct series_file *from, struct series_file *to)
{
	int r = 0;
	struct copy c = {.to = to};
	if (from->layout != to->layout)
		c.converted.values = must_calloc(to->layout->room, sizeof(float));
	for (int i = (int)from->layout->first; r == 0 && from->last_ms >= 0 && i < SERIES_LEVELS; i++) {
		c.level = (enum series_level)i;
		int64_t keep = series_step_ms(c.level) * to->sizes.count[i];
		int64_t begin = from->last_ms > keep ? from->last_ms - keep + 1 : 0;
		r = series_records_walk(from, c.level, begin, from->last_ms + 1, record_copy, &c);
	}
	free(c.converted.values);
	return r < 0 || from->last_ms < 0 ? r : series_mark_write(to, from->last_ms);
}

static bool sizes_same(const struct series_layout *layout, const struct series_sizes *a, const struct series_sizes *b)
{
	for (int i = (int)layout->first; i < SERIES_LEVELS; i++)
		if (a->count[i] != b->count[i])
			return false;
	return true;
}

/* `old`: what is copied into it; NULL: nothing. */
static int file_write(const char *path, const struct series_layout *layout, const struct series_sizes *sizes,
                      const struct series_file *old)
{
	struct series_file f;
	int r = series_file_make(path, layout, sizes, &f);
	if (r < 0)
		return r;
	r = old ? rings_copy(old, &f) : 0;
	return series_file_publish(path, &f, r);
}

/* Of this layout or the older one. */
static int file_open_any(const char *path, const struct series_layout *layout, struct series_file *ret_file)
{
	int r = series_file_open(path, layout, false, ret_file);
	return r == -EBADMSG && layout->older ? series_file_open(path, layout->older, false, ret_file) : r;
}

static int file_ensure(const char *path, const struct series_layout *layout, const struct series_sizes *sizes)
{
	struct series_file old;
	int r = file_open_any(path, layout, &old);
	bool there = r == 0, good = there && old.layout == layout && sizes_same(layout, &old.sizes, sizes);
	if (r == -EBADMSG)
		log_warn("series: %s is damaged, or not of this version: it begins anew", path);
	if (r == 0 || r == -ENOENT || r == -EBADMSG)
		r = good ? 0 : file_write(path, layout, sizes, there ? &old : NULL);
	if (there)
		series_file_close(&old);
	return r;
}

/* To be read: one of the older layout is written anew first, with rings as long as it has them. */
static int file_open_read(const char *path, const struct series_layout *layout, struct series_file *ret_file)
{
	struct series_file old;
	int r = file_open_any(path, layout, &old);
	if (r < 0 || old.layout == layout) {
		if (r == 0)
			*ret_file = old;
		return r;
	}
	r = file_write(path, layout, &old.sizes, &old);
	series_file_close(&old);
	return r < 0 ? r : series_file_open(path, layout, false, ret_file);
}

/* --- the last counters, for who goes on after this process */

/* Inputs that were known together share a time. The note has how many inputs and times there are; the times; the value
 * of each input; and the place of its time, eight to a number. */
#define TIMES_MAX 8
#define NOTE_TIMES 2
#define NOTE_VALUES (NOTE_TIMES + 3 * TIMES_MAX)

static size_t note_length(size_t inputs)
{
	return NOTE_VALUES + inputs + (inputs + 7) / 8;
}

/* TIMES_MAX: the input is not known, or there are too many times. */
static size_t time_place(uint64_t *note, const struct known *k)
{
	const uint64_t wanted[3] = {(uint64_t)k->time_ms, (uint64_t)k->mono_us, k->epoch};
	size_t i = 0;
	while (i < note[1] && memcmp(&note[NOTE_TIMES + 3 * i], wanted, sizeof wanted) != 0)
		i++;
	if (!k->is || i == TIMES_MAX)
		return TIMES_MAX;
	if (i == note[1]) {
		memcpy(&note[NOTE_TIMES + 3 * i], wanted, sizeof wanted);
		note[1]++;
	}
	return i;
}

/* Without it, what a counter grows by while the service is started anew would be in no minute. */
static int counters_note(const struct series_file *f, const struct series *s)
{
	uint64_t note[SERIES_NOTE] = {s->layout->inputs};
	size_t count = s->layout->inputs;
	if (note_length(count) > SERIES_NOTE)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t place = time_place(note, &s->inputs[i]);
		memcpy(&note[NOTE_VALUES + i], &s->inputs[i].value, sizeof *note);
		note[NOTE_VALUES + count + i / 8] |= place << (i % 8 * 8);
	}
	return series_note_write(f, note, note_length(count));
}

static void counters_recall(struct series *s)
{
	uint64_t note[SERIES_NOTE];
	struct series_file f;
	size_t count = s->layout->inputs;
	if (series_file_open(s->path, s->layout, false, &f) < 0)
		return;
	size_t n = series_note_read(&f, note);
	series_file_close(&f);
	if (n != note_length(count) || note[0] != count || note[1] > TIMES_MAX)
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t place = note[NOTE_VALUES + count + i / 8] >> (i % 8 * 8) & 0xff;
		if (place >= note[1])
			continue;
		const uint64_t *t = &note[NOTE_TIMES + 3 * place];
		s->inputs[i] =
		        (struct known){.time_ms = (int64_t)t[0], .mono_us = (int64_t)t[1], .epoch = t[2], .is = true};
		memcpy(&s->inputs[i].value, &note[NOTE_VALUES + i], sizeof *note);
	}
}

/* --- the series */

int series_open(const char *path, const struct series_layout *layout, const struct series_sizes *sizes,
                struct series **ret_series)
{
	pthread_mutex_t *lock = lock_of(path);
	pthread_mutex_lock(lock);
	int r = file_ensure(path, layout, sizes);
	pthread_mutex_unlock(lock);
	if (r < 0)
		return r;
	struct series *s = must_calloc(1, sizeof *s);
	s->path = must_strdup(path);
	s->layout = layout;
	s->sizes = *sizes;
	s->inputs = must_calloc(layout->inputs, sizeof *s->inputs);
	s->values = must_calloc(layout->room, sizeof *s->values);
	s->grown = must_calloc(layout->room, sizeof *s->grown);
	s->since_ms = must_calloc(layout->room, sizeof *s->since_ms);
	s->spans = must_calloc(layout->room, sizeof *s->spans);
	s->lock = lock;
	pthread_mutex_lock(lock);
	counters_recall(s);
	pthread_mutex_unlock(lock);
	*ret_series = s;
	return 0;
}

void series_close(struct series *s)
{
	if (!s)
		return;
	free(s->path);
	free(s->inputs);
	free(s->values);
	free(s->grown);
	free(s->since_ms);
	free(s->spans);
	free(s);
}

struct growth {
	double by, seconds;
	bool is;
};

static struct growth growth_of(const struct known *before, double now, int64_t mono_us, uint64_t epoch, bool lasting)
{
	int64_t passed = mono_us - before->mono_us;
	bool is = before->is && !isnan(now) && passed > 0 && passed <= KNOWN_US && now >= before->value &&
	          (lasting || epoch == before->epoch);
	return (struct growth){is ? now - before->value : 0, (double)passed / 1e6, is};
}

static double column_growth(const struct series *s, const struct series_column *c, const double *inputs,
                            int64_t mono_us, uint64_t epoch)
{
	struct growth g = growth_of(&s->inputs[c->input], inputs[c->input], mono_us, epoch, c->lasting);
	if (!g.is)
		return (double)NAN;
	if (c->source == SERIES_RATE)
		return g.by / g.seconds * c->scale;
	struct growth d = growth_of(&s->inputs[c->divisor], inputs[c->divisor], mono_us, epoch, c->lasting);
	return d.is && d.by > 0 ? g.by / d.by * c->scale : (double)NAN;
}

static bool values_make(struct series *s, int64_t time_ms, int64_t mono_us, uint64_t epoch, const double *inputs)
{
	int64_t step_us = series_step_ms(s->layout->first) * 1000;
	bool any = false;
	for (size_t i = 0; i < s->layout->room; i++) {
		const struct series_column *c = i < s->layout->count ? &s->layout->columns[i] : NULL;
		bool gauge = c && c->source == SERIES_GAUGE;
		double value = gauge ? inputs[c->input] * c->scale : (double)NAN;
		double grown = c && !gauge ? column_growth(s, c, inputs, mono_us, epoch) : (double)NAN;
		s->values[i] = (float)value;
		s->grown[i] = (float)grown;
		s->since_ms[i] = !c || isnan(grown) ? -1 : begin_of(s->layout->first, s->inputs[c->input].time_ms);
		s->spans[i] = c ? (mono_us - s->inputs[c->input].mono_us + step_us / 2) / step_us : 0;
		any |= !isnan(value) || !isnan(grown);
	}
	for (size_t i = 0; i < s->layout->inputs; i++)
		if (!isnan(inputs[i]))
			s->inputs[i] = (struct known){inputs[i], time_ms, mono_us, epoch, true};
	return any;
}

/* Makes the coarser records anew that have the interval, and are not under way. */
static int intervals_mend(const struct series_file *f, int64_t begin_ms, struct series_record *r)
{
	int result = 0;
	for (int i = (int)f->layout->first + 1; result == 0 && i < SERIES_LEVELS; i++) {
		enum series_level level = (enum series_level)i;
		int64_t begin = begin_of(level, begin_ms);
		if (is_open(f, level, begin))
			break;
		result = interval_make(f, level, begin, r);
		if (result == 0 && r->time_ms >= 0)
			result = series_record_write(f, level, r);
	}
	return result;
}

/* The rates that begin there, into the record of that interval. */
static int growth_put(const struct series_file *f, const struct series *s, int64_t since_ms, int64_t begin_ms,
                      struct series_record *r)
{
	if (r->time_ms < 0)
		r->samples = begin_ms == since_ms;
	r->time_ms = begin_ms;
	for (size_t k = 0; k < s->layout->count; k++)
		if (s->since_ms[k] == since_ms)
			r->values[k] = s->grown[k];
	int result = series_record_write(f, s->layout->first, r);
	return result < 0 ? result : intervals_mend(f, begin_ms, r);
}

/* What has grown from one sample to the next belongs to the interval in which it grew: that of the first of the two.
 * Of what is not known with each sample, the first lies further back. Intervals between them in which there was no
 * sample at all have the same rate: it is the mean of that time. */
static int growth_write(const struct series_file *f, const struct series *s, int64_t now_ms, struct series_record *r)
{
	int64_t step = series_step_ms(s->layout->first), now = begin_of(s->layout->first, now_ms);
	int result = 0;
	for (size_t i = 0; result == 0 && i < s->layout->count; i++) {
		int64_t begin = s->since_ms[i], end = begin + step * s->spans[i];
		bool done = begin < 0;
		for (size_t k = 0; k < i && !done; k++)
			done = s->since_ms[k] == begin;
		for (int64_t at = begin; result == 0 && !done && (at == begin || (at < end && at < now)); at += step) {
			result = series_record_read(f, s->layout->first, at, r);
			if (result == 0 && (at == begin || r->time_ms < 0))
				result = growth_put(f, s, begin, at, r);
		}
	}
	return result;
}

/* What grows from this sample on comes with the next. In the interval of the sample before, what has grown stays. */
static int gauges_write(const struct series_file *f, const struct series *s, int64_t begin_ms, struct series_record *r)
{
	r->time_ms = begin_ms;
	r->samples = 1;
	for (size_t i = 0; i < s->layout->room; i++)
		r->values[i] = s->since_ms[i] == begin_ms ? s->grown[i] : s->values[i];
	return series_record_write(f, s->layout->first, r);
}

static int sample_write(struct series_file *f, const struct series *s, int64_t time_ms)
{
	struct series_record made = {.values = must_calloc(s->layout->room, sizeof(float))};
	int r = growth_write(f, s, time_ms, &made);
	if (r == 0 && f->last_ms >= 0)
		r = intervals_end(f, f->last_ms, time_ms, &made);
	/* The mark first: a sample that no mark tells of would be left out of the coarser rings. */
	if (r == 0)
		r = series_mark_write(f, time_ms);
	if (r == 0)
		r = gauges_write(f, s, begin_of(s->layout->first, time_ms), &made);
	if (r == 0)
		r = counters_note(f, s);
	free(made.values);
	return r;
}

int series_put(struct series *s, int64_t time_ms, int64_t mono_us, uint64_t epoch, const double *inputs)
{
	struct series_file f;
	if (!values_make(s, time_ms, mono_us, epoch, inputs) || time_ms <= 0)
		return 0;
	pthread_mutex_lock(s->lock);
	int r = series_file_open(s->path, s->layout, true, &f);
	if (r == -ENOENT || r == -EBADMSG) { /* somebody took it away */
		r = file_ensure(s->path, s->layout, &s->sizes);
		r = r < 0 ? r : series_file_open(s->path, s->layout, true, &f);
	}
	if (r == 0) {
		r = sample_write(&f, s, time_ms);
		series_file_close(&f);
	}
	pthread_mutex_unlock(s->lock);
	return r;
}

/* --- reading */

struct reading {
	const unsigned *columns;
	size_t count;
	int64_t first_ms, step_ms;
	float *values;
};

static int record_take(void *ctx, const struct series_record *r)
{
	const struct reading *to = ctx;
	float *row = to->values + (size_t)((r->time_ms - to->first_ms) / to->step_ms) * to->count;
	for (size_t i = 0; i < to->count; i++)
		row[i] = r->values[to->columns[i]];
	return 0;
}

static int open_read(const struct series_file *f, enum series_level level, struct reading *to)
{
	struct series_record r = {.values = must_calloc(f->layout->room, sizeof(float))};
	int result = interval_make(f, level, begin_of(level, f->last_ms), &r);
	if (result == 0 && r.time_ms >= 0)
		result = record_take(to, &r);
	free(r.values);
	return result;
}

int series_read(const char *path, const struct series_layout *layout, enum series_level level, int64_t from_ms,
                int64_t to_ms, const unsigned *columns, size_t count, float *ret_values)
{
	size_t slots = series_slots(level, from_ms, to_ms);
	int64_t step = series_step_ms(level);
	struct reading to = {columns, count, (from_ms + step - 1) / step * step, step, ret_values};
	struct series_file f;
	pthread_mutex_t *lock = lock_of(path);
	for (size_t i = 0; i < slots * count; i++)
		ret_values[i] = NAN;
	if (level < layout->first)
		return 0;
	pthread_mutex_lock(lock);
	int r = file_open_read(path, layout, &f);
	if (r == 0) {
		r = series_records_walk(&f, level, from_ms, to_ms, record_take, &to);
		int64_t begin = f.last_ms >= 0 ? begin_of(level, f.last_ms) : -1;
		if (r == 0 && level > layout->first && begin >= to.first_ms && begin < to_ms)
			r = open_read(&f, level, &to);
		series_file_close(&f);
	}
	pthread_mutex_unlock(lock);
	return r == -EBADMSG ? 0 : r;
}
