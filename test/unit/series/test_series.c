/* Series: counters become rates, records become coarser ones, and whatever happens to the process, the file or the
 * clock, a value that is read is one that was written, at its time. */
#include "series/series.h"

#include "base/arena.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define T0 1700000000000LL /* a multiple of ten seconds */
#define SECOND 1000000LL

enum { GAUGE, COUNTER, WORK, INPUTS };
enum { C_GAUGE, C_RATE, C_MAX, C_RATIO, C_LASTING, C_RARE, COLUMNS };

static const struct series_column columns[COLUMNS] = {
        [C_GAUGE] = {SERIES_GAUGE, GAUGE, 0, 1, false, false},
        [C_RATE] = {SERIES_RATE, COUNTER, 0, 1, false, false},
        [C_MAX] = {SERIES_GAUGE, GAUGE, 0, 1, true, false},
        [C_RATIO] = {SERIES_RATIO, WORK, COUNTER, 1, false, false},
        [C_LASTING] = {SERIES_RATE, COUNTER, 0, 2, false, true},
        [C_RARE] = {SERIES_RATE, WORK, 0, 1, false, false},
};
static const struct series_layout layout = {
        .kind = 7, .room = 8, .first = SERIES_10S, .columns = columns, .count = COLUMNS, .inputs = INPUTS};
static const unsigned all[COLUMNS] = {C_GAUGE, C_RATE, C_MAX, C_RATIO, C_LASTING, C_RARE};

static char folder[] = "/tmp/series-XXXXXX", path[64];

static struct series *fresh(void)
{
	struct series *s = NULL;
	unlink(path);
	CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
	return s;
}

static int put(struct series *s, int64_t t, int64_t mono_s, uint64_t epoch, double gauge, double counter, double work)
{
	const double inputs[INPUTS] = {gauge, counter, work};
	return series_put(s, t, mono_s * SECOND, epoch, inputs);
}

static float one(enum series_level level, int64_t t, unsigned column)
{
	float v = -1;
	int64_t step = series_step_ms(level), begin = t - t % step;
	CHECK(series_read(path, &layout, level, begin, begin + step, &column, 1, &v) == 0);
	return v;
}

static bool near(float a, double b)
{
	return fabs((double)a - b) <= 1e-5 * fabs(b) + 1e-9;
}

static void test_sizes(void)
{
	struct series_sizes z;
	CHECK(series_sizes_parse(STR("2,14,62,732"), &z) && memcmp(&z, &series_sizes_standard, sizeof z) == 0);
	CHECK(!series_sizes_parse(STR("2,14,62"), &z) && !series_sizes_parse(STR("2,14,62,732,1"), &z));
	CHECK(!series_sizes_parse(STR("0,14,62,732"), &z) && !series_sizes_parse(STR("a"), &z) &&
	      !series_sizes_parse(STR(""), &z));
	CHECK(series_slots(SERIES_1M, T0, T0) == 0 && series_slots(SERIES_1H, 0, 3600000) == 1 &&
	      series_slots(SERIES_1H, 1, 3600001) == 1);
}

/* The longest rings that can be asked for: a file of them is read as what it is. */
static void test_longest(void)
{
	struct series_sizes z;
	struct series *s = NULL;
	unlink(path);
	CHECK(series_sizes_parse(STR("3660,3660,3660,3660"), &z) && series_open(path, &layout, &z, &s) == 0);
	CHECK(put(s, T0, 0, 1, 5, 0, 0) == 0 && near(one(SERIES_1M, T0, C_GAUGE), 5));
	series_close(s);
}

static void test_rates(void)
{
	struct series *s = fresh();
	CHECK(put(s, T0, 100, 1, 5, 1000, 10) == 0);
	CHECK(isnan(one(SERIES_10S, T0, C_RATE)) && near(one(SERIES_10S, T0, C_GAUGE), 5));
	/* What has grown stands at the interval in which it grew. */
	CHECK(put(s, T0 + 10000, 110, 1, 6, 1500, 35) == 0 && near(one(SERIES_10S, T0, C_GAUGE), 5));
	CHECK(near(one(SERIES_10S, T0, C_RATE), 50) && near(one(SERIES_10S, T0, C_RATIO), 0.05));
	CHECK(near(one(SERIES_10S, T0, C_LASTING), 100) && isnan(one(SERIES_10S, T0 + 10000, C_RATE)));
	/* Nothing was done: a rate of 0, and no ratio. */
	CHECK(put(s, T0 + 20000, 120, 1, 6, 1500, 35) == 0);
	CHECK(near(one(SERIES_10S, T0 + 10000, C_RATE), 0) && isnan(one(SERIES_10S, T0 + 10000, C_RATIO)));
	/* It began anew: never negative, and by its epoch alone too. */
	CHECK(put(s, T0 + 30000, 130, 1, 6, 10, 35) == 0);
	CHECK(isnan(one(SERIES_10S, T0 + 20000, C_RATE)) && isnan(one(SERIES_10S, T0 + 20000, C_LASTING)));
	CHECK(put(s, T0 + 40000, 140, 2, 6, 9010, 35) == 0);
	CHECK(isnan(one(SERIES_10S, T0 + 30000, C_RATE)) && near(one(SERIES_10S, T0 + 30000, C_LASTING), 1800));
	/* Not known once: over both intervals, where it was known last. Not known for long: a gap. */
	CHECK(put(s, T0 + 50000, 150, 2, 6, (double)NAN, 35) == 0);
	CHECK(isnan(one(SERIES_10S, T0 + 40000, C_RATE)) && near(one(SERIES_10S, T0 + 50000, C_GAUGE), 6));
	CHECK(put(s, T0 + 60000, 160, 2, 6, 9210, 35) == 0 && near(one(SERIES_10S, T0 + 40000, C_RATE), 10));
	CHECK(isnan(one(SERIES_10S, T0 + 50000, C_RATE)) && near(one(SERIES_10S, T0 + 40000, C_GAUGE), 6));
	CHECK(put(s, T0 + 400000, 500, 2, 6, 99210, 35) == 0 && isnan(one(SERIES_10S, T0 + 60000, C_RATE)));
	CHECK(isnan(one(SERIES_10S, T0 + 70000, C_GAUGE)) && isnan(one(SERIES_1M, T0 + 120000, C_GAUGE)));
	/* The clock jumps an hour while ten seconds pass. */
	CHECK(put(s, T0 + 4010000, 510, 2, 6, 99310, 35) == 0 && near(one(SERIES_10S, T0 + 400000, C_RATE), 10));
	CHECK(put(s, T0 + 420000, 520, 2, 6, 99410, 35) == 0 && near(one(SERIES_10S, T0 + 4010000, C_RATE), 10));
	CHECK(near(one(SERIES_10S, T0 + 4010000, C_GAUGE), 6) && near(one(SERIES_1H, T0 + 4010000, C_GAUGE), 6));
	/* Nothing known: nothing written. */
	CHECK(put(s, T0 + 430000, 530, 2, (double)NAN, (double)NAN, (double)NAN) == 0);
	CHECK(isnan(one(SERIES_10S, T0 + 430000, C_GAUGE)));
	series_close(s);
}

/* What was counted between 49:00 and 49:59 stands at 49:00, and nothing of it before or after, at each level. */
static void test_labels(void)
{
	struct series *s = fresh();
	int64_t begin = T0 - T0 % 3600000 + 49 * 60000, mono = 0;
	double counted = 0;
	for (int64_t t = begin - 9 * 60000; t <= begin + 11 * 60000; t += 10000, mono += 10) {
		/* 600 within the minute, in its first seconds and in its last ones. */
		counted += t == begin + 10000 || t == begin + 60000 ? 300 : 0;
		/* The second counter is told once a minute. */
		CHECK(put(s, t + 3, mono, 1, 1, counted, t % 60000 ? (double)NAN : counted) == 0);
	}
	for (int64_t t = begin - 5 * 60000; t < begin + 5 * 60000; t += 60000) {
		CHECK(near(one(SERIES_1M, t, C_RATE), t == begin ? 10 : 0));
		CHECK(near(one(SERIES_1M, t, C_RARE), t == begin ? 10 : 0));
	}
	CHECK(near(one(SERIES_5M, begin - begin % 300000, C_RATE), 2) &&
	      near(one(SERIES_5M, begin - begin % 300000, C_RARE), 2));
	CHECK(near(one(SERIES_5M, begin + 60000, C_RATE), 0) &&
	      near(one(SERIES_5M, begin - 300000 - begin % 300000, C_RATE), 0));
	series_close(s);
}

/* A sample of a minute that is missed: what is told a minute later is put where it was counted from, at each level. */
static void test_late(void)
{
	struct series *s = fresh();
	int64_t begin = T0 - T0 % 300000;
	for (int64_t t = begin, mono = 0; t <= begin + 360000; t += 10000, mono += 10) {
		bool told = t % 60000 == 0 && t != begin + 300000;
		CHECK(put(s, t, mono, 1, 1, 0, told ? (double)(t - begin) / 1000 : (double)NAN) == 0);
	}
	CHECK(near(one(SERIES_1M, begin + 240000, C_RARE), 1) && isnan(one(SERIES_1M, begin + 300000, C_RARE)));
	CHECK(near(one(SERIES_5M, begin, C_RARE), 1));
	series_close(s);
}

static void test_levels(void)
{
	struct series *s = fresh();
	int64_t day = T0 - T0 % 86400000, n = 0;
	double sum = 0;
	/* Half an hour of every ten seconds, then from another process. */
	for (int64_t t = day; t < day + 1800000; t += 10000, n++) {
		double v = (double)(t / 10000 % 7);
		CHECK(put(s, t, n * 10, 1, v, (double)n * 100, 0) == 0);
		sum += v;
		if (n == 90) {
			series_close(s);
			s = NULL;
			CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
		}
	}
	CHECK(near(one(SERIES_1H, day, C_GAUGE), sum / (double)n) &&
	      near(one(SERIES_1D, day, C_GAUGE), sum / (double)n));
	CHECK(near(one(SERIES_1D, day, C_MAX), 6) && near(one(SERIES_1M, day + 60000, C_RATE), 10));
	/* Hours later: what was under way has been written, and stays when the finer rings have turned. */
	for (int64_t t = day + 7200000; t < day + 3 * 86400000LL; t += 60000, n++)
		CHECK(put(s, t, n * 60, 1, 100, (double)n, 0) == 0);
	CHECK(near(one(SERIES_1H, day, C_GAUGE), sum / 180) && isnan(one(SERIES_1H, day + 3600000, C_GAUGE)));
	CHECK(isnan(one(SERIES_10S, day, C_GAUGE)) && isnan(one(SERIES_1M, day, C_GAUGE)));
	CHECK(near(one(SERIES_1D, day, C_GAUGE), (sum + 100.0 * 22 * 60) / (180 + 22 * 60)));
	CHECK(near(one(SERIES_1D, day, C_MAX), 100) && near(one(SERIES_1D, day + 86400000, C_GAUGE), 100));
	struct stat st;
	CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == series_file_bytes(&layout, &series_sizes_standard));
	CHECK((uint64_t)st.st_blocks * 512 <= series_file_bytes(&layout, &series_sizes_standard) + 8192);
	series_close(s);

	/* Rings of another length: what they have in common is there. */
	struct series_sizes longer;
	CHECK(series_sizes_parse(STR("4,28,124,1000"), &longer) && series_open(path, &layout, &longer, &s) == 0);
	CHECK(stat(path, &st) == 0 && (uint64_t)st.st_size == series_file_bytes(&layout, &longer));
	CHECK(near(one(SERIES_1H, day, C_GAUGE), sum / 180) && near(one(SERIES_1D, day + 86400000, C_GAUGE), 100));
	CHECK(near(one(SERIES_1M, day + 3 * 86400000LL - 60000, C_GAUGE), 100));
	series_close(s);
}

/* What a counter grows by while nobody is there to look is told by who comes next. */
static void test_goes_on(void)
{
	struct series *s = fresh();
	CHECK(put(s, T0, 0, 1, 5, 1000, 10) == 0 && put(s, T0 + 10000, 10, 1, 5, 1500, (double)NAN) == 0);
	series_close(s);
	CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
	CHECK(put(s, T0 + 40000, 40, 1, 5, 4500, 50) == 0);
	CHECK(near(one(SERIES_10S, T0 + 10000, C_RATE), 100) && near(one(SERIES_10S, T0, C_RARE), 1));
	CHECK(near(one(SERIES_10S, T0, C_RATE), 50) && near(one(SERIES_10S, T0 + 30000, C_RATE), 100));
	series_close(s);
	/* Another start of the server; and one that nobody has looked at for long. */
	CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
	CHECK(put(s, T0 + 60000, 60, 2, 5, 9500, 60) == 0 && isnan(one(SERIES_10S, T0 + 40000, C_RATE)));
	series_close(s);
	CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
	CHECK(put(s, T0 + 360000, 360, 2, 5, 99500, 90) == 0 && isnan(one(SERIES_10S, T0 + 60000, C_RATE)));
	series_close(s);
	/* A note that is not whole is none. */
	int fd = open(path, O_RDWR);
	CHECK(fd >= 0 && pwrite(fd, "x", 1, 4096 + 64 + 40) == 1 && close(fd) == 0);
	CHECK(series_open(path, &layout, &series_sizes_standard, &s) == 0);
	CHECK(put(s, T0 + 370000, 370, 2, 5, 99600, 90) == 0 && isnan(one(SERIES_10S, T0 + 360000, C_RATE)));
	CHECK(put(s, T0 + 380000, 380, 2, 5, 99700, 90) == 0 && near(one(SERIES_10S, T0 + 370000, C_RATE), 10));
	series_close(s);
}

/* --- a layout that has followed another */

static void wider(const float *old, float *ret_values)
{
	for (size_t i = 0; i < COLUMNS; i++)
		ret_values[i] = old[i] * 10;
}

/* What an older version has kept is read and written on, whoever comes first: a reader, or the next sample. */
static void test_older_layout(bool reads)
{
	const struct series_layout newer = {.kind = 8,
	                                    .room = 12,
	                                    .first = SERIES_10S,
	                                    .columns = columns,
	                                    .count = COLUMNS,
	                                    .inputs = INPUTS,
	                                    .older = &layout,
	                                    .convert = wider};
	const unsigned column = C_GAUGE;
	float values[3];
	struct series_sizes sizes;
	struct stat st;
	struct series *s = fresh();
	CHECK(series_sizes_parse(STR("4,28,124,1000"), &sizes));
	for (int i = 0; i < 13; i++)
		CHECK(put(s, T0 + i * 10000, i * 10, 1, 1 + i, i, 0) == 0);
	series_close(s);
	s = NULL;
	if (!reads)
		CHECK(series_open(path, &newer, &sizes, &s) == 0 && put(s, T0 + 130000, 130, 1, 7, 13, 0) == 0);
	CHECK(series_read(path, &newer, SERIES_10S, T0 + 110000, T0 + 140000, &column, 1, values) == 0);
	CHECK(near(values[0], 120) && near(values[1], 130) && (reads ? isnan(values[2]) : near(values[2], 7)));
	CHECK(stat(path, &st) == 0 &&
	      (uint64_t)st.st_size == series_file_bytes(&newer, reads ? &series_sizes_standard : &sizes));
	series_close(s);
	/* What is damaged stays as it is until it is written. */
	CHECK(truncate(path, 5000) == 0);
	CHECK(series_read(path, &newer, SERIES_10S, T0 + 110000, T0 + 140000, &column, 1, values) == 0);
	CHECK(isnan(values[0]) && stat(path, &st) == 0 && st.st_size == 5000);
}

/* --- a model: what was put, by slots of ten seconds */

#define SLOTS 4000
#define RING 360
static double model[SLOTS], fine[SLOTS]; /* all of it; what the finest ring still has */
static bool torn[SLOTS];                 /* in a minute that the clock came to again: what it had may be overwritten */

static unsigned random_below(unsigned n)
{
	static uint64_t state = 0x2545f4914f6cdd1du;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

/* Each coarser value is made of those that were put. */
static void coarser_check(enum series_level level, size_t last)
{
	int64_t step = series_step_ms(level), now = T0 + (int64_t)last * 10000;
	for (int64_t at = (now - 3000000) / step * step + step; at <= now; at += step) {
		double sum = 0, weight = 0, most = -1;
		bool skip = false;
		for (int64_t t = at; t < at + step; t += 10000) {
			size_t i = (size_t)((t - T0) / 10000);
			if (t < T0 || i >= SLOTS)
				continue;
			skip |= torn[i];
			if (isnan(model[i]))
				continue;
			sum += model[i];
			weight++;
			most = model[i] > most ? model[i] : most;
		}
		if (skip)
			continue;
		float mean = one(level, at, C_GAUGE), greatest = one(level, at, C_MAX);
		CHECK(weight > 0 ? near(mean, sum / weight) && near(greatest, most) : isnan(mean));
	}
}

static int64_t minute_of(size_t slot)
{
	return (T0 / 10000 + (int64_t)slot) / 6;
}

static void model_put(size_t before, size_t at)
{
	bool again = at < before;
	for (size_t i = at > 5 ? at - 5 : 0; minute_of(at) != minute_of(before) && i < at + 6 && i < SLOTS; i++)
		again |= minute_of(i) == minute_of(at) && !isnan(model[i]);
	for (size_t i = at % RING; i < SLOTS; i += RING)
		fine[i] = (double)NAN;
	model[at] = fine[at] = (double)(at % 97);
	for (size_t i = 0; again && i < SLOTS; i++)
		torn[i] |= minute_of(i) == minute_of(at);
}

static size_t model_step(struct series **s, size_t at)
{
	unsigned what = random_below(100);
	if (what == 0)
		return at + 360; /* an hour forward, and back */
	if (what == 1 && at > 800)
		return at - 360;
	if (what < 10)
		return at + random_below(20);
	if (what == 10) {
		series_close(*s);
		*s = NULL;
		CHECK(series_open(path, &layout, &series_sizes_standard, s) == 0);
	}
	return at + 1;
}

/* Samples at random, with gaps, jumps of the clock and new starts: the file has what the model has. */
static void test_model(void)
{
	struct series *s = fresh();
	size_t at = 400, before;
	for (size_t i = 0; i < SLOTS; i++)
		model[i] = fine[i] = (double)NAN;
	for (unsigned round = 0; round < 6000 && at < SLOTS - 400; round++) {
		before = at;
		at = model_step(&s, at);
		model_put(before, at);
		int64_t t = T0 + (int64_t)at * 10000;
		CHECK(put(s, t + (int64_t)random_below(9999), (int64_t)round * 10, 1, model[at], (double)NAN,
		          (double)NAN) == 0);
		if (random_below(120) > 0)
			continue;
		for (size_t i = at > 350 ? at - 350 : 0; i <= at; i++) {
			float v = one(SERIES_10S, T0 + (int64_t)i * 10000, C_GAUGE);
			CHECK(isnan(fine[i]) ? isnan(v) : near(v, fine[i]));
		}
		coarser_check(SERIES_1M, at);
		coarser_check(SERIES_5M, at);
	}
	series_close(s);
}

/* A clock that is wrong for ten minutes, by `by`: before it, and after it, everything is as it was. */
static void jump_check(int64_t by)
{
	struct series *s = fresh();
	int64_t begin = T0 - T0 % 86400000, wrong = begin + 6 * 3600000LL, end = wrong + 600000, mono = 0;
	for (int64_t t = begin; t < wrong; t += 10000, mono += 10)
		CHECK(put(s, t, mono, 1, 1, (double)mono, 0) == 0);
	for (int64_t t = wrong; t < end; t += 10000, mono += 10)
		CHECK(put(s, t + by, mono, 1, 5, (double)mono, 0) == 0);
	for (int64_t t = end; t < end + 2 * 3600000LL; t += 10000, mono += 10)
		CHECK(put(s, t, mono, 1, 9, (double)mono, 0) == 0);
	for (int64_t t = begin; t < end + 2 * 3600000LL; t += 60000) {
		bool there = t >= wrong + by && t < end + by, gap = t >= wrong && t < end;
		/* Where the time went twice, the later one counts. */
		double want = there && (by < 0 || t < end) ? 5 : t < wrong ? 1 : 9;
		float v = one(SERIES_1M, t, C_GAUGE), rate = one(SERIES_1M, t, C_RATE);
		CHECK(gap ? isnan(v) : near(v, want));
		CHECK(gap || t == begin || near(rate, 1));
	}
	CHECK(near(one(SERIES_1H, begin, C_GAUGE), 1) && near(one(SERIES_1H, wrong + 3600000, C_GAUGE), 9));
	CHECK(!isnan(one(SERIES_1D, begin, C_GAUGE)) && near(one(SERIES_1D, begin, C_MAX), 9));
	series_close(s);
}

static void test_clock(void)
{
	jump_check(3600000);
	jump_check(-3600000);
	jump_check(-5 * 3600000LL);
}

/* --- a process that is killed, a file that is damaged, a disk that is full */

static double value_of(int64_t t)
{
	return (double)(t / 10000 % 1009);
}

static void child_write(int64_t from, int out)
{
	struct series *s;
	if (series_open(path, &layout, &series_sizes_standard, &s) < 0)
		_exit(1);
	for (int64_t t = from;; t += 10000) {
		if (put(s, t, t / 1000, 1, value_of(t), 0, 0) < 0 || write(out, &t, sizeof t) != sizeof t)
			_exit(1);
	}
}

static int64_t values_check(int64_t from, int64_t to)
{
	size_t slots = series_slots(SERIES_10S, from, to);
	float *v = must_calloc(slots + 1, sizeof *v);
	int64_t found = 0;
	unsigned column = C_GAUGE, wrong = 0;
	CHECK(series_read(path, &layout, SERIES_10S, from, to, &column, 1, v) == 0);
	for (size_t i = 0; i < slots; i++) {
		double want = value_of(from + (int64_t)i * 10000);
		wrong += !isnan(v[i]) && !near(v[i], want);
		found += !isnan(v[i]);
	}
	CHECK(wrong == 0);
	free(v);
	return found;
}

static void test_killed(void)
{
	int64_t at = T0;
	unlink(path);
	for (unsigned round = 0; round < 40; round++) {
		int ends[2], status;
		int64_t told = at - 10000, t;
		CHECK(pipe(ends) == 0);
		pid_t child = fork();
		if (child == 0) {
			close(ends[0]);
			child_write(at, ends[1]);
		}
		close(ends[1]);
		/* At any moment of its work. */
		for (unsigned n = random_below(400) + 1; n > 0 && read(ends[0], &t, sizeof t) == sizeof t; n--)
			told = t;
		usleep(random_below(300));
		kill(child, SIGKILL);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
		while (read(ends[0], &t, sizeof t) == sizeof t)
			told = t;
		close(ends[0]);
		/* All that it has told of is there, but for what the ring had to let go, and nothing that is wrong. */
		int64_t from = told - 358 * 10000 > at ? told - 358 * 10000 : at;
		CHECK(values_check(from, told + 10000) == (told + 10000 - from) / 10000);
		values_check(told - 3600000, told + 600000);
		float minute = one(SERIES_1M, told - 120000, C_MAX);
		CHECK(told - 180000 < at || !isnan(minute));
		at = told + 20000;
	}
}

static void test_damaged(void)
{
	struct series *s = fresh();
	for (int64_t t = T0; t < T0 + 3600000; t += 10000)
		CHECK(put(s, t, t / 1000, 1, value_of(t), 0, 0) == 0);
	CHECK(values_check(T0, T0 + 3600000) == 360);
	int fd = open(path, O_RDWR);
	struct stat st;
	CHECK(fstat(fd, &st) == 0);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned char byte = (unsigned char)random_below(256);
		CHECK(pwrite(fd, &byte, 1, 8192 + (off_t)random_below((unsigned)st.st_size - 8192)) == 1);
	}
	CHECK(values_check(T0, T0 + 3600000) > 0);
	/* The mark's first copy, half written. */
	CHECK(pwrite(fd, "xxxx", 4, 4096) == 4);
	CHECK(put(s, T0 + 3600000, T0 / 1000 + 3600, 1, value_of(T0 + 3600000), 0, 0) == 0);
	CHECK(!isnan(one(SERIES_1H, T0, C_GAUGE)) || !isnan(one(SERIES_1M, T0 + 3540000, C_GAUGE)));
	/* Its head: it begins anew. */
	CHECK(pwrite(fd, "x", 1, 3) == 1);
	close(fd);
	CHECK(values_check(T0, T0 + 3600000) == 0);
	CHECK(put(s, T0 + 3610000, T0 / 1000 + 3610, 1, value_of(T0 + 3610000), 0, 0) == 0);
	CHECK(values_check(T0, T0 + 3620000) == 1);
	/* And one that somebody has cut off, or taken away. */
	CHECK(truncate(path, 10000) == 0 && values_check(T0, T0 + 3620000) == 0);
	CHECK(put(s, T0 + 3620000, T0 / 1000 + 3620, 1, value_of(T0 + 3620000), 0, 0) == 0);
	CHECK(values_check(T0, T0 + 3630000) == 1);
	CHECK(unlink(path) == 0);
	CHECK(put(s, T0 + 3630000, T0 / 1000 + 3630, 1, value_of(T0 + 3630000), 0, 0) == 0);
	CHECK(values_check(T0, T0 + 3640000) == 1);
	float v;
	unsigned column = C_GAUGE;
	CHECK(unlink(path) == 0);
	CHECK(series_read(path, &layout, SERIES_10S, T0, T0 + 10000, &column, 1, &v) == -ENOENT);
	series_close(s);
}

static void test_full(void)
{
	struct series *s = fresh();
	struct rlimit before, tight;
	CHECK(put(s, T0, 0, 1, value_of(T0), 0, 0) == 0);
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	tight = before;
	tight.rlim_cur = 8200; /* in the middle of the first record */
	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &tight) == 0);
	CHECK(put(s, T0 + 10000, 10, 1, value_of(T0 + 10000), 0, 0) < 0);
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(put(s, T0 + 20000, 20, 1, value_of(T0 + 20000), 0, 0) == 0);
	CHECK(values_check(T0, T0 + 30000) == 2);
	series_close(s);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof path, "%s/one", folder);
	test_sizes();
	test_longest();
	test_rates();
	test_labels();
	test_late();
	test_levels();
	test_model();
	test_clock();
	test_killed();
	test_damaged();
	test_full();
	test_goes_on();
	test_older_layout(true);
	test_older_layout(false);
	float v[COLUMNS];
	CHECK(series_read("/nonexistent/file", &layout, SERIES_1M, T0, T0 + 60000, all, COLUMNS, v) == -ENOENT);
	unlink(path);
	rmdir(folder);
	return CHECK_DONE();
}
