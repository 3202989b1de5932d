/* What is the same whichever engine runs the databases: one that only simulates accepts, refuses and shows what the
 * real one would. */
#include "engine/engine.h"

#include "base/buf.h"
#include "base/clock.h"
#include "catalog/formats.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROGRAMS "/usr/lib/postgresql"
#define VERSION_OTHERWISE 15

size_t engine_installed(unsigned *ret_versions, size_t max)
{
	DIR *dir = opendir(PROGRAMS);
	size_t count = 0;
	for (struct dirent *entry; dir && count < max && (entry = readdir(dir));) {
		uint64_t major;
		char path[sizeof PROGRAMS + 64];
		int n = snprintf(path, sizeof path, PROGRAMS "/%.32s/bin/postgres", entry->d_name);
		if (!str_to_u64(str_of(entry->d_name), 999, &major) || n <= 0 || access(path, X_OK) != 0)
			continue;
		size_t at = count++;
		for (; at > 0 && ret_versions[at - 1] > major; at--)
			ret_versions[at] = ret_versions[at - 1];
		ret_versions[at] = (unsigned)major;
	}
	if (dir)
		closedir(dir);
	if (!count && max)
		ret_versions[count++] = VERSION_OTHERWISE;
	return count;
}

struct engine_size engine_size(const char *instance_size)
{
	/* By the size's number: M10 has 10. */
	static const struct {
		unsigned number;
		struct engine_size size;
	} sizes[] = {{5, {1024, 1}},   {10, {2048, 2}},   {20, {4096, 2}},    {30, {8192, 2}},    {40, {16384, 4}},
	             {50, {32768, 8}}, {60, {65536, 16}}, {80, {131072, 32}}, {200, {262144, 64}}};
	const char *digits = instance_size + strcspn(instance_size, "0123456789");
	unsigned long number = *digits ? strtoul(digits, NULL, 10) : 10;
	size_t i = 0;
	while (i + 1 < sizeof sizes / sizeof *sizes && sizes[i].number < number)
		i++;
	return sizes[i].size;
}

struct params {
	struct arena *arena;
	struct engine_param list[8];
	size_t count;
};

static void param_add(struct params *p, const char *name, const char *value)
{
	p->list[p->count++] = (struct engine_param){name, value};
}

static void number_add(struct params *p, const char *name, double value, const char *unit)
{
	if (value > 0)
		param_add(p, name, arena_printf(p->arena, "%.0f%s", value, unit).p);
}

size_t engine_params(const struct engine_settings *s, struct arena *a, struct engine_param **ret_params)
{
	struct params *p = arena_new_of(a, struct params);
	p->arena = a;
	number_add(p, "statement_timeout", s->statement_ms, "ms");
	number_add(p, "idle_in_transaction_session_timeout", s->idle_transaction_s, "s");
	number_add(p, "wal_keep_size", s->log_keep_mb, "MB");
	if (s->no_table_scan)
		param_add(p, "enable_seqscan", "off");
	/* Nothing older than TLS 1.2 is spoken. */
	param_add(p, "ssl_min_protocol_version", s->tls13 ? "TLSv1.3" : "TLSv1.2");
	if (s->ciphers)
		param_add(p, "ssl_ciphers", s->ciphers);
	*ret_params = p->list;
	return p->count;
}

bool engine_name_is_reserved(struct str name)
{
	return str_starts(name, STR("pg_")) || str_starts(name, STR("steward")) || str_starts(name, STR("/")) ||
	       str_is(name, "public") || str_is(name, "none") || str_is(name, "postgres");
}

void engine_connect_tail(struct buf *b, struct str addresses)
{
	buf_z(b, "/postgres?");
	/* libpq looks up no name that has an address beside it, and still sends and verifies the name. */
	if (addresses.n)
		buf_printf(b, "hostaddr=%.*s&", STR_ARG(addresses));
	buf_z(b, "sslmode=require&target_session_attrs=read-write");
}

const char *engine_shown(struct arena *a, const char *text)
{
	char *copy = arena_z(a, str_of(text));
	if (!utf8_is_valid(str_of(copy)))
		for (char *p = copy; *p; p++)
			*p = (char)((unsigned char)*p < 128 ? *p : '?');
	return copy;
}

const char *engine_namespace(struct arena *a, const char *database, const char *schema, const char *table)
{
	/* Two or three parts are never those of another table. */
	if (strcmp(schema, "public") == 0 && !strchr(database, '.') && !strchr(table, '.'))
		return engine_shown(a, arena_printf(a, "%s.%s", database, table).p);
	return engine_shown(a, arena_printf(a, "%s.%s.%s", database, schema, table).p);
}

bool engine_namespace_is_of(const struct engine_namespaces *of, const char *namespace)
{
	bool found = of->count == 0;
	for (size_t i = 0; i < of->count && !found; i++)
		found = str_is(of->list[i], namespace);
	return found;
}

#define SLOW_TIMES_MEAN 20
#define SLOW_MOST_MS 5000
unsigned engine_slow_threshold(double mean_ms, unsigned now_ms)
{
	double wanted = mean_ms * SLOW_TIMES_MEAN, at = now_ms;
	while (wanted > at * 1.5 && at * 1.5 <= SLOW_MOST_MS)
		at *= 1.5;
	while (wanted < at / 1.5 && at / 1.5 >= ENGINE_SLOW_FIXED_MS)
		at /= 1.5;
	return (unsigned)at;
}

void engine_shape_join(struct engine_shape *into, const struct engine_shape *from)
{
	if (!*into->text)
		into->text = from->text;
	if (from->last_ms > into->last_ms) {
		into->last_ms = from->last_ms;
		into->last_us = from->last_us;
	}
	if (from->first_ms < into->first_ms) {
		into->first_ms = from->first_ms;
		into->application = from->application;
	}
	into->total_us += from->total_us;
	into->calls += from->calls;
	into->rows += from->rows;
	into->bytes_read += from->bytes_read;
	into->refused += from->refused;
	for (size_t i = 0; i < LATENCY_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
	for (size_t i = 0; i < from->id_count; i++) {
		bool known = false;
		for (size_t k = 0; k < into->id_count && !known; k++)
			known = into->ids[k] == from->ids[i];
		if (!known && into->id_count < ENGINE_SHAPE_IDS)
			into->ids[into->id_count++] = from->ids[i];
	}
}

double engine_shape_percentile(const struct engine_shape *s, double share)
{
	double wanted = share * (double)s->calls, seen = 0;
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		seen += (double)s->buckets[i];
		if (s->buckets[i] > 0 && seen >= wanted)
			return latency_middle_us(i);
	}
	return 0;
}

#define DAY_MS INT64_C(86400000)

/* Day 0 was a Thursday. */
static int64_t week_begin(int64_t day)
{
	return day - (day + 3) % 7;
}

int64_t federation_span_begin(enum federation_span span, int64_t ms)
{
	char text[CLOCK_TEXT];
	int64_t begin = 0, day = ms / DAY_MS;
	if (span == SPAN_DAY || span == SPAN_WEEK)
		return (span == SPAN_DAY ? day : week_begin(day)) * DAY_MS;
	clock_format(ms, text);
	memcpy(text + 8, "01T00:00:00Z", sizeof "01T00:00:00Z");
	return clock_parse(str_of(text), &begin) ? begin : ms;
}
