/* The lines of an invoice, sent while they are read from the store: a few documents at a time, each with some hundred
 * lines. Those of days that are over never change; those of the open day are read at once. */
#include "api/billing/csv.h"
#include "api/billing/pages.h"

#include "base/log.h"
#include "call/places.h"
#include "call/service.h"
#include "call/stream.h"
#include "gate/right.h"

#include <errno.h>
#include <stdlib.h>

#define STREAMS_MAX 24
#define STREAM_SECONDS 3600
#define DOCS_AT_ONCE 4
#define HOLE "\"lineItems\":[]"
#define HOLE_BEGINS (sizeof HOLE - 2) /* up to the bracket that ends the list */

static struct places streams = PLACES(STREAMS_MAX); /* each has a thread of its own */

struct lines_stream {
	struct arena *arena; /* what lives as long as the stream */
	struct service *service;
	struct right right;
	struct str invoice_id, before, after; /* of JSON: what comes around the lines */
	bool is_csv, first;
	uint64_t org, caller; /* of its place */
};

static void doc_write(struct lines_stream *s, struct arena *a, struct buf *b, const struct doc *d)
{
	struct str items = lines_items(d);
	if (s->is_csv) {
		lines_csv(b, a, items);
	} else if (items.n > 2) {
		if (!s->first)
			buf_c(b, ',');
		buf_add(b, items.p + 1, items.n - 2);
		s->first = false;
	}
}

static int docs_send(struct lines_stream *s, struct arena *a, const struct doc *docs, size_t count, struct stream *to)
{
	struct buf b = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		b.n = 0;
		doc_write(s, a, &b, &docs[i]);
		r = b.n ? stream_write(to, b.p, b.n) : 0;
	}
	buf_free(&b);
	return r;
}

static int kind_send(struct lines_stream *s, struct tx *reader, const char *kind, int64_t at_once, struct stream *to)
{
	struct arena *a = arena_new();
	struct doc *docs;
	size_t count = 1;
	int r = 0;
	for (int64_t at = 0; r == 0 && count; at += (int64_t)count) {
		count = 0;
		tx_begin_read(reader);
		r = tx_list(reader, a, kind, s->invoice_id, at, at_once, &docs, &count);
		tx_end_read(reader);
		tx_rest(reader);
		if (r == 0)
			r = docs_send(s, a, docs, count, to);
		arena_reset(a);
	}
	arena_free(a);
	return r;
}

static int lines_make_body(void *ctx, struct stream *to)
{
	struct lines_stream *s = ctx;
	struct buf header = {0};
	struct tx *reader = store_reader(s->service->store);
	if (s->is_csv)
		lines_csv_header(&header);
	else
		buf_str(&header, s->before);
	int r = reader ? stream_write(to, header.p, header.n) : -EIO;
	buf_free(&header);
	if (r == 0)
		r = kind_send(s, reader, LINES_KIND, DOCS_AT_ONCE, to);
	if (r == 0)
		r = kind_send(s, reader, OPEN_KIND, INT32_MAX, to);
	if (r == 0 && s->after.n)
		r = stream_write(to, s->after.p, s->after.n);
	store_reader_free(reader);
	if (r < 0 && r != -EPIPE)
		log_error("invoice %.*s: its lines could not be sent (error %d)", STR_ARG(s->invoice_id), r);
	return r;
}

static void lines_end(void *ctx)
{
	struct lines_stream *s = ctx;
	places_leave(&streams, s->org, s->caller);
	arena_free(s->arena);
}

static int lines_check(void *ctx, struct tx *tx, struct arena *a)
{
	struct lines_stream *s = ctx;
	return right_check_again(s->service, tx, a, &s->right);
}

static unsigned lines_least(void *ctx)
{
	return places_are_scarce(&streams) ? STREAM_LEAST_SCARCE : STREAM_LEAST;
}

static ssize_t nothing_read(void *ctx, char *to, size_t n)
{
	return 0;
}

static bool entity_cut(struct lines_stream *s, struct str entity)
{
	const char *hole = memmem(entity.p, entity.n, HOLE, sizeof HOLE - 1);
	if (!hole)
		return false;
	size_t before = (size_t)(hole - entity.p) + HOLE_BEGINS;
	s->before = arena_dup(s->arena, (struct str){entity.p, before});
	s->after = arena_dup(s->arena, (struct str){entity.p + before, entity.n - before});
	return true;
}

static int too_many(struct call *c, int error)
{
	call_header(c, STR("retry-after"), STR("60"));
	if (error == -EDQUOT)
		return call_fail(c, 429, "TOO_MANY_DOWNLOADS",
		                 "This caller or its organization has as many invoices being sent as it may have at a "
		                 "time. Try again when one is done.");
	return call_fail(c, 503, "SERVICE_BUSY", "Too many invoices are being sent. Try again in a minute.");
}

int lines_send(struct call *c, const struct invoice *i, struct str entity)
{
	if (c->method == METHOD_HEAD) {
		c->request->response.stream.read = nothing_read;
		return 0;
	}
	uint64_t caller = fair_key(str_of(c->caller->id));
	int r = places_enter(&streams, call_key(c), caller);
	if (r < 0)
		return too_many(c, r);
	struct arena *a = arena_new();
	struct lines_stream *s = arena_new_of(a, struct lines_stream);
	*s = (struct lines_stream){.arena = a,
	                           .service = c->service,
	                           .invoice_id = arena_dup(a, i->doc.id),
	                           .is_csv = !entity.n,
	                           .first = true,
	                           .org = call_key(c),
	                           .caller = caller};
	right_of_call(c, &s->right);
	const struct stream_maker maker = {.make = lines_make_body,
	                                   .end = lines_end,
	                                   .check = lines_check,
	                                   .least = lines_least,
	                                   .ctx = s,
	                                   .store = c->service->store,
	                                   .seconds = STREAM_SECONDS};
	if ((s->is_csv || entity_cut(s, entity)) && stream_start(c->request, &maker) == 0)
		return 0;
	lines_end(s);
	return call_fail(c, 503, "SERVICE_BUSY", "The service cannot send another invoice now. Try again in a second.");
}
