/* Lines in the forms that services take. Each record carries an id of its own, made of the stream and the place of its
 * first byte: what a receiver gets twice, because a crash hid its answer, it can tell by that. */
#include "api/log_export/targets.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define PACK_BYTES (64ul << 10)
#define SOURCE "postgresql"

void batch_free(struct batch *b)
{
	buf_free(&b->text[0]);
	buf_free(&b->text[1]);
	free(b->records);
	*b = (struct batch){.count = 0};
}

void batch_add(struct batch *b, const struct engine_log_line *line)
{
	struct buf *text = &b->text[line->kind == ENGINE_LOG_AUDIT];
	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : 64;
		b->records = must_realloc(b->records, b->room * sizeof *b->records);
	}
	b->records[b->count++] = (struct record){.kind = line->kind,
	                                         .from = text->n,
	                                         .n = line->text.n,
	                                         .position = line->position,
	                                         .at_ms = line->at_ms,
	                                         .ends = line->ends};
	buf_str(text, line->text);
}

void gzip_all(struct buf *ret_packed, struct str plain)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)plain.p, .avail_in = (uInt)plain.n};
	int r = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
	if (r != Z_OK)
		abort(); /* there is no memory left */
	do {
		buf_reserve(ret_packed, PACK_BYTES);
		z.next_out = (unsigned char *)ret_packed->p + ret_packed->n;
		z.avail_out = PACK_BYTES;
		r = deflate(&z, Z_FINISH);
		ret_packed->n += PACK_BYTES - z.avail_out;
	} while (r == Z_OK || r == Z_BUF_ERROR);
	deflateEnd(&z);
}

/* --- one record */

/* The bytes of a UTF-8 character at p; 0: it is none. */
static size_t character(const unsigned char *p, size_t n)
{
	size_t need = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : 4;
	if (p[0] >= 0xf5 || (p[0] >= 0x80 && p[0] < 0xc2) || need > n)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return need;
}

/* JSON has text only: what is none becomes the sign for that. */
static void text_write(struct buf *b, struct str text, struct buf *room)
{
	room->n = 0;
	for (size_t i = 0; i < text.n;) {
		size_t n = character((const unsigned char *)text.p + i, text.n - i);
		if (n)
			buf_add(room, text.p + i, n);
		else
			buf_z(room, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	json_str(b, buf_view(room));
}

static struct str record_text(const struct batch *b, const struct record *r)
{
	const struct buf *text = &b->text[r->kind == ENGINE_LOG_AUDIT];
	struct str line = {text->p + r->from, r->n};
	if (r->ends && line.n && line.p[line.n - 1] == '\n')
		line.n--;
	return line;
}

static void uid_write(struct buf *b, const struct origin *o, const struct record *r)
{
	char uid[96];
	snprintf(uid, sizeof uid, "%.*s:%s:%lld", STR_ARG(o->stream), log_type_name(o->is_router, r->kind),
	         (long long)r->position);
	json_z(b, uid);
}

static const struct {
	const char *name;
	int number; /* OpenTelemetry's */
} severities[] = {{"DEBUG", 5},    {"LOG", 9},    {"INFO", 9},   {"NOTICE", 10},
                  {"WARNING", 13}, {"ERROR", 17}, {"FATAL", 21}, {"PANIC", 24}};

static size_t severity_of(struct str line)
{
	static const char key[] = "\"error_severity\":\"";
	const char *at = line.n ? memmem(line.p, line.n < 4096 ? line.n : 4096, key, sizeof key - 1) : NULL;
	struct str rest =
	        at ? (struct str){at + sizeof key - 1, (size_t)(line.p + line.n - at) - (sizeof key - 1)} : STR_NONE;
	for (size_t i = 0; i < sizeof severities / sizeof *severities; i++)
		if (str_starts(rest, str_of(severities[i].name)))
			return i;
	return 1;
}

static void packed(struct buf *ret_body, struct buf *plain, struct buf *room)
{
	gzip_all(ret_body, buf_view(plain));
	buf_free(plain);
	buf_free(room);
}

/* --- Datadog: POST /api/v2/logs */

void form_datadog(struct buf *ret_body, const struct batch *b, const struct origin *o)
{
	struct buf out = {0}, room = {0};
	json_open(&out, '[');
	for (size_t i = 0; i < b->count; i++) {
		const struct record *r = &b->records[i];
		struct str line = record_text(b, r);
		char tags[256];
		snprintf(tags, sizeof tags, "project:%.*s,cluster:%.*s,log_type:%s", STR_ARG(o->group_id),
		         STR_ARG(o->cluster_name), log_type_name(o->is_router, r->kind));
		json_open(&out, '{');
		json_key(&out, "message");
		text_write(&out, line, &room);
		json_pair_z(&out, "ddsource", SOURCE);
		json_pair_z(&out, "ddtags", tags);
		json_pair_str(&out, "hostname", o->host);
		json_pair_str(&out, "service", o->cluster_name);
		json_pair_z(&out, "status", severities[severity_of(line)].name);
		if (r->at_ms)
			json_pair_int(&out, "timestamp", r->at_ms);
		json_key(&out, "uid");
		uid_write(&out, o, r);
		if (!r->ends)
			json_pair_bool(&out, "continues", true);
		json_close(&out, '}');
	}
	json_close(&out, ']');
	packed(ret_body, &out, &room);
}

/* --- Splunk: the HTTP event collector takes one JSON document after the other */

void form_splunk(struct buf *ret_body, const struct batch *b, const struct origin *o)
{
	struct buf out = {0}, room = {0}, one = {0};
	for (size_t i = 0; i < b->count; i++) {
		const struct record *r = &b->records[i];
		one.n = 0;
		json_open(&one, '{');
		if (r->at_ms) {
			char time[32];
			snprintf(time, sizeof time, "%lld.%03d", (long long)(r->at_ms / 1000), (int)(r->at_ms % 1000));
			json_key(&one, "time");
			json_raw(&one, str_of(time));
		}
		json_pair_str(&one, "host", o->host);
		json_pair_z(&one, "source", log_type_name(o->is_router, r->kind));
		json_pair_z(&one, "sourcetype", "_json");
		json_key(&one, "event");
		text_write(&one, record_text(b, r), &room);
		json_key(&one, "fields");
		json_open(&one, '{');
		json_pair_str(&one, "cluster", o->cluster_name);
		json_pair_str(&one, "project", o->group_id);
		json_key(&one, "uid");
		uid_write(&one, o, r);
		if (!r->ends)
			json_pair_z(&one, "continues", "true");
		json_close(&one, '}');
		json_close(&one, '}');
		buf_str(&out, buf_view(&one));
		buf_c(&out, '\n');
	}
	buf_free(&one);
	packed(ret_body, &out, &room);
}

/* --- OpenTelemetry: OTLP/HTTP, JSON */

static void attribute_begin(struct buf *b, const char *key)
{
	json_open(b, '{');
	json_pair_z(b, "key", key);
	json_key(b, "value");
	json_open(b, '{');
	json_key(b, "stringValue");
}

static void attribute_end(struct buf *b)
{
	json_close(b, '}');
	json_close(b, '}');
}

static void attribute(struct buf *b, const char *key, struct str value)
{
	attribute_begin(b, key);
	json_str(b, value);
	attribute_end(b);
}

static void nanoseconds(struct buf *b, const char *key, int64_t ms)
{
	char text[40];
	snprintf(text, sizeof text, "%lld000000", (long long)ms);
	json_pair_z(b, key, text);
}

static void otlp_record(struct buf *b, const struct batch *batch, const struct record *r, const struct origin *o,
                        struct buf *room)
{
	struct str line = record_text(batch, r);
	size_t severity = severity_of(line);
	json_open(b, '{');
	if (r->at_ms)
		nanoseconds(b, "timeUnixNano", r->at_ms);
	nanoseconds(b, "observedTimeUnixNano", clock_now_ms());
	json_pair_int(b, "severityNumber", severities[severity].number);
	json_pair_z(b, "severityText", severities[severity].name);
	json_key(b, "body");
	json_open(b, '{');
	json_key(b, "stringValue");
	text_write(b, line, room);
	json_close(b, '}');
	json_key(b, "attributes");
	json_open(b, '[');
	attribute_begin(b, "log.record.uid");
	uid_write(b, o, r);
	attribute_end(b);
	attribute(b, "log.type", str_of(log_type_name(o->is_router, r->kind)));
	if (!r->ends)
		attribute(b, "log.continues", STR("true"));
	json_close(b, ']');
	json_close(b, '}');
}

void form_otlp(struct buf *ret_body, const struct batch *b, const struct origin *o)
{
	struct buf out = {0}, room = {0};
	buf_z(&out, "{\"resourceLogs\":[{\"resource\":{\"attributes\":[");
	attribute(&out, "service.name", o->cluster_name);
	attribute(&out, "service.namespace", o->group_id);
	attribute(&out, "service.instance.id", o->node);
	attribute(&out, "host.name", o->host);
	attribute(&out, "db.system.name", STR(SOURCE));
	buf_z(&out, "]},\"scopeLogs\":[{\"scope\":{\"name\":\"steward\"},\"logRecords\":[");
	for (size_t i = 0; i < b->count; i++)
		otlp_record(&out, b, &b->records[i], o, &room);
	buf_z(&out, "]}]}]}");
	packed(ret_body, &out, &room);
}
