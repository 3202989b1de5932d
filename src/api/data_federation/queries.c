/* The log of an instance's queries: a line of JSON each, packed. The engine on the instance's host keeps it; only the
 * packed text is in memory as a whole. */
#include "api/data_federation/instance.h"
#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define DAY_MS INT64_C(86400000)
#define SECONDS_MIN INT64_C(1199145600) /* 2008: the reference has none before */
#define SECONDS_MAX (UINT64_C(1) << 33)
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define PACK_BYTES (64ul << 10)

struct packing {
	struct call *call;
	z_stream z;
	struct buf *out;
};

static void pack(struct packing *p, struct str text, int flush)
{
	int r;
	p->z.next_in = (unsigned char *)(uintptr_t)text.p;
	p->z.avail_in = (uInt)text.n;
	do {
		buf_reserve(p->out, PACK_BYTES);
		p->z.next_out = (unsigned char *)p->out->p + p->out->n;
		p->z.avail_out = PACK_BYTES;
		r = deflate(&p->z, flush);
		p->out->n += PACK_BYTES - p->z.avail_out;
	} while (p->z.avail_out == 0 || (flush == Z_FINISH && r == Z_OK));
}

static void text_put(json_t *o, const char *name, const char *text)
{
	if (text)
		json_put_z(o, name, text);
}

static int line_pack(void *ctx, const struct engine_federation_query *q)
{
	struct packing *p = ctx;
	struct arena *a = arena_new();
	json_t *o = json_new(a);
	json_put_time(o, "date", q->at_ms);
	text_put(o, "queryId", q->id);
	text_put(o, "username", q->user);
	text_put(o, "client", q->client);
	text_put(o, "database", q->database);
	text_put(o, "statement", q->statement);
	json_put(o, "bytesProcessed", json_integer((json_int_t)q->bytes));
	json_put(o, "rows", json_integer((json_int_t)q->rows));
	json_put(o, "files", json_integer((json_int_t)q->files));
	json_put(o, "durationMillis", json_integer(q->took_ms));
	json_put(o, "limited", json_boolean(q->limited));
	text_put(o, "error", q->fault);
	pack(p, json_text(a, o), Z_NO_FLUSH);
	pack(p, STR("\n"), Z_NO_FLUSH);
	arena_free(a);
	return call_grown(p->call);
}

/* A moment in seconds, where the query names one. */
static int moment_read(struct call *c, const char *name, int64_t *ret_ms)
{
	struct str given = call_query(c, name);
	uint64_t seconds;
	if (!given.n)
		return 0;
	if (!str_to_u64(given, SECONDS_MAX, &seconds) || (int64_t)seconds < SECONDS_MIN)
		return call_fail_field(c, 400, "VALIDATION_ERROR", name, "must be seconds since 1970, from %lld on.",
		                       (long long)SECONDS_MIN);
	*ret_ms = (int64_t)seconds * 1000;
	return 0;
}

/* The last day, unless the query says otherwise. */
static int period_read(struct call *c, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	int64_t from, to = clock_now_ms() + 1000;
	int r = moment_read(c, "endDate", &to);
	from = to - DAY_MS;
	if (r == 0)
		r = moment_read(c, "startDate", &from);
	if (r == 0 && from > to)
		r = call_fail_field(c, 400, "VALIDATION_ERROR", "startDate", "must not be after endDate.");
	*ret_from_ms = from;
	*ret_to_ms = to;
	return r;
}

static int log_pack(struct call *c, const struct instance *x, int64_t from_ms, int64_t to_ms)
{
	const struct engine_federation_ops *f = c->service->engine_ops->federation;
	struct packing p = {.call = c, .out = &c->out};
	if (deflateInit2(&p.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort(); /* there is no memory left */
	int r = f->queries(c->service->engine_state, arena_z(c->arena, x->doc.id), from_ms, to_ms, line_pack, &p,
	                   c->arena);
	pack(&p, STR(""), Z_FINISH);
	deflateEnd(&p.z);
	return r;
}

int data_federation_queries(struct call *c)
{
	struct instance x;
	struct doc d;
	int64_t from_ms, to_ms;
	int r = resource_load(c, &resource_federated_database, &d);
	if (r == 0)
		r = instance_get(c->tx, c->arena, d.id, &x);
	if (r < 0)
		return r;
	r = period_read(c, &from_ms, &to_ms);
	if (r < 0)
		return r;
	struct str host = json_field(x.run, "host");
	if (host_is_elsewhere(host))
		return hosts_forward(c, host);
	c->momentary = true; /* the period ends now */
	return log_pack(c, &x, from_ms, to_ms);
}
