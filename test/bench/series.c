/* What a series costs: bench_series DIR
 *
 * Fills the file of a process with two months of hours, then tells the bytes of the file, the time of a put with all
 * that it writes, and of reading a month of one metric by the hour and two days of it by the minute. */
#include "base/clock.h"
#include "engine/measures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HOUR 3600000LL
#define BEGIN (1700000000000LL / HOUR * HOUR)
#define HOURS 1488
#define PUTS 20000
#define READS 200

static void inputs_fill(double *in, int64_t t)
{
	for (size_t i = 0; i < MEASURE_INPUTS_MAX; i++)
		in[i] = (double)(t / 1000) + (double)i;
}

static double read_ms(const char *path, enum series_level level, int64_t from, int64_t to, size_t *ret_known)
{
	static float values[4096];
	const unsigned column = PROCESS_CONNECTIONS;
	int64_t began = clock_mono_us();
	for (int i = 0; i < READS; i++)
		if (series_read(path, &measure_layouts[MEASURE_PROCESS], level, from, to, &column, 1, values) < 0)
			exit(1);
	*ret_known = 0;
	for (size_t i = 0; i < series_slots(level, from, to); i++)
		*ret_known += !isnan(values[i]);
	return (double)(clock_mono_us() - began) / 1000 / READS;
}

int main(int argc, char **argv)
{
	const struct series_layout *layout = &measure_layouts[MEASURE_PROCESS];
	char path[4096];
	double in[MEASURE_INPUTS_MAX];
	struct series *s;
	size_t known;
	snprintf(path, sizeof path, "%s/bench.process", argc > 1 ? argv[1] : ".");
	if (series_open(path, layout, &series_sizes_standard, &s) < 0)
		return 1;
	for (int64_t i = 0; i < HOURS; i++) {
		inputs_fill(in, BEGIN + i * HOUR);
		if (series_put(s, BEGIN + i * HOUR, i * 1000000, 1, in) < 0)
			return 1;
	}
	int64_t end = BEGIN + HOURS * HOUR, began = clock_mono_us();
	for (int64_t i = 0; i < PUTS; i++) {
		inputs_fill(in, end + i * 10000);
		if (series_put(s, end + i * 10000, (HOURS + i) * 10000000, 1, in) < 0)
			return 1;
	}
	double put_us = (double)(clock_mono_us() - began) / PUTS;
	end += PUTS * 10000LL;
	printf("{\"bytes\": %llu, \"put_us\": %.1f",
	       (unsigned long long)series_file_bytes(layout, &series_sizes_standard), put_us);
	printf(", \"month_ms\": %.3f", read_ms(path, SERIES_1H, end - 30 * 24 * HOUR, end, &known));
	printf(", \"month_points\": %zu", known);
	printf(", \"two_days_ms\": %.3f", read_ms(path, SERIES_1M, end - 48 * HOUR, end, &known));
	printf(", \"two_days_points\": %zu}\n", known);
	series_close(s);
	remove(path);
	return 0;
}
