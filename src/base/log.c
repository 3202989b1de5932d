/* Log lines. Each is built in a buffer and written with one write(2), so lines of several threads never mix. */
#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static enum log_level threshold = LOG_INFO;
static bool as_json;
static const char *const names[] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level level, bool json)
{
	threshold = level;
	as_json = json;
}

bool log_level_parse(struct str text, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (str_is(text, names[i])) {
			*ret_level = (enum log_level)i;
			return true;
		}
	return false;
}

bool log_enabled(enum log_level level)
{
	return level <= threshold;
}

static void emit(struct buf *b)
{
	buf_c(b, '\n');
	size_t done = 0;
	while (done < b->n) {
		ssize_t n = write(STDERR_FILENO, b->p + done, b->n - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	buf_free(b);
}

static void stamp(struct buf *b, enum log_level level)
{
	char time[CLOCK_TEXT];
	clock_format(clock_now_ms(), time);
	if (as_json) {
		json_open(b, '{');
		json_key(b, "time");
		json_z(b, time);
		json_key(b, "level");
		json_z(b, names[level]);
	} else {
		buf_printf(b, "%s %-5s ", time, names[level]);
	}
}

void log_write(enum log_level level, const char *format, ...)
{
	char text[2048];
	struct buf b = {0};
	va_list args;
	if (!log_enabled(level))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	stamp(&b, level);
	if (as_json) {
		json_key(&b, "message");
		json_z(&b, text);
		json_close(&b, '}');
	} else {
		buf_z(&b, text);
	}
	emit(&b);
}

void log_access(const struct log_request *r)
{
	struct buf b = {0};
	if (!log_enabled(LOG_INFO))
		return;
	stamp(&b, LOG_INFO);
	if (as_json) {
		const struct {
			const char *key;
			struct str value;
		} fields[] = {{"requestId", r->id},        {"method", r->method}, {"path", r->path},
		              {"operation", r->operation}, {"caller", r->caller}, {"peer", r->peer}};
		json_key(&b, "message");
		json_z(&b, "request");
		for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
			if (fields[i].value.n) {
				json_key(&b, fields[i].key);
				json_str(&b, fields[i].value);
			}
		json_key(&b, "status");
		json_int(&b, r->status);
		json_key(&b, "micros");
		json_int(&b, r->micros);
		json_key(&b, "bytes");
		json_int(&b, (int64_t)r->bytes);
		json_close(&b, '}');
	} else {
		/* Quoted as JSON so that a hostile path cannot forge a line. */
		buf_printf(&b, "%d %.*s", r->status, STR_ARG(r->method));
		buf_c(&b, ' ');
		struct buf path = {0};
		json_str(&path, r->path);
		buf_add(&b, path.p + 1, path.n - 2);
		buf_free(&path);
		buf_printf(&b, " %lldus %zuB id=%.*s peer=%.*s", (long long)r->micros, r->bytes, STR_ARG(r->id),
		           STR_ARG(r->peer));
		if (r->operation.n)
			buf_printf(&b, " op=%.*s", STR_ARG(r->operation));
		if (r->caller.n)
			buf_printf(&b, " caller=%.*s", STR_ARG(r->caller));
	}
	emit(&b);
}
