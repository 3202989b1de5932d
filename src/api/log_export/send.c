/* Sends a range of a node's lines: as objects into a bucket, or as one request to a service. */
#include "api/log_export/targets.h"

#include "base/clock.h"
#include "outbox/outbox.h"
#include "outbox/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL_UNFIT 20                     /* lines in a row, from the first on: it is not they that are wrong */
#define SEND_US (120 * INT64_C(1000000)) /* shorter than a lease of the cursor */

/* --- buckets */

static enum outcome bucket_ready(struct shipment *s, const char **ret_why)
{
	enum outcome outcome = OUTCOME_SENT;
	if (s->no_role) {
		*ret_why = s->no_role;
		return OUTCOME_ROLE;
	}
	if (!s->bucket && log_bucket_open(s, &s->bucket, &outcome, ret_why) < 0)
		return outcome;
	return OUTCOME_SENT;
}

/* The byte range is part of the name: a try that is repeated writes the same object again, and where one is missing the
 * end of the one before is not the beginning of the next. The stream keeps others from the same names: another target
 * with this bucket and prefix, or one that was there before. */
static const char *object_name(const struct shipment *s, enum engine_log_kind kind, int64_t from, int64_t to)
{
	const struct origin *o = &s->origin;
	bool flat = !json_object_get(s->target.config, "type") || json_flag(s->target.config, "useLegacyPathStructure");
	struct str below =
	        flat ? STR_NONE : arena_printf(s->arena, "%.*s/%.*s/", STR_ARG(o->group_id), STR_ARG(o->cluster_name));
	return log_bucket_object(s->arena, &s->target,
	                         arena_printf(s->arena, "%.*s%.*s/%s/%.*s-%016lld-%016lld.json.gz", STR_ARG(below),
	                                      STR_ARG(o->node), log_type_name(o->is_router, kind), STR_ARG(o->stream),
	                                      (long long)from, (long long)to)
	                                 .p);
}

static enum outcome object_put(struct shipment *s, const struct batch *b, enum engine_log_kind kind, int64_t from,
                               int64_t to, const char **ret_why)
{
	struct buf packed = {0};
	const struct buf *text = &b->text[kind == ENGINE_LOG_AUDIT];
	if (!text->n)
		return OUTCOME_SENT;
	gzip_all(&packed, buf_view(text));
	int r = objects_put_bytes(s->bucket, object_name(s, kind, from, to), packed.p, packed.n);
	buf_free(&packed);
	if (r == 0)
		return OUTCOME_SENT;
	*ret_why = arena_z(s->arena, str_of(objects_why()));
	if (r == -EACCES && s->role) /* its keys may have been taken back before their time */
		provider_forget(s->service->providers, s->role->id);
	return r == -EACCES || r == -EINVAL || r == -ENOENT ? OUTCOME_REFUSED : OUTCOME_AWAY;
}

static enum outcome bucket_send(struct shipment *s, const struct batch *b, const int64_t sent[2], int64_t to,
                                const char **ret_why)
{
	enum outcome outcome = bucket_ready(s, ret_why);
	if (outcome == OUTCOME_SENT)
		outcome = object_put(s, b, ENGINE_LOG_SERVER, sent[0], to, ret_why);
	if (outcome == OUTCOME_SENT)
		outcome = object_put(s, b, ENGINE_LOG_AUDIT, sent[1], to, ret_why);
	return outcome;
}

/* --- services */

/* An address without a path gets the usual one. */
static struct str url_complete(struct arena *a, struct str url, const char *path)
{
	struct str origin = post_url_origin(url);
	bool bare = url.n - origin.n <= 1;
	return bare ? arena_printf(a, "%.*s%s", STR_ARG(origin), path) : url;
}

static void request_make(struct shipment *s, const struct batch *b, struct post *p, json_t *headers, struct buf *body)
{
	const json_t *config = s->target.config, *given = json_object_get(config, "otelSuppliedHeaders");
	struct arena *a = s->arena;
	struct str url;
	if (s->target.type == TARGET_DATADOG) {
		struct str region = arena_lower(a, json_field(config, "region"));
		struct str name = arena_printf(a, "datadog-logs-%.*s", STR_ARG(region));
		struct str endpoint = outbox_endpoint(s->service->outbox, name, &p->trusted);
		url = arena_printf(a, "%.*s/api/v2/logs", STR_ARG(endpoint));
		json_put_str(headers, "DD-API-KEY", json_field(config, "apiKey"));
		form_datadog(body, b, &s->origin);
	} else if (s->target.type == TARGET_SPLUNK) {
		url = url_complete(a, json_field(config, "hecUrl"), "/services/collector/event");
		json_put_str(headers, "Authorization",
		             arena_printf(a, "Splunk %.*s", STR_ARG(json_field(config, "hecToken"))));
		form_splunk(body, b, &s->origin);
	} else {
		url = url_complete(a, json_field(config, "otelEndpoint"), "/v1/logs");
		for (size_t i = 0; i < json_array_size(given); i++) {
			const json_t *one = json_array_get(given, i);
			json_put_str(headers, arena_z(a, json_field(one, "name")), json_field(one, "value"));
		}
		form_otlp(body, b, &s->origin);
	}
	p->url = arena_z(a, url);
}

/* Whether somebody must mend it: the answers to keys, rights, paths and forms, and other addresses. */
static bool is_refusal(struct str fault)
{
	static const char *const passing[] = {"answered 408", "answered 425", "answered 429"};
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		if (str_is(fault, passing[i]))
			return false;
	return str_starts(fault, STR("answered 3")) || str_starts(fault, STR("answered 4")) ||
	       str_starts(fault, STR("its address is private"));
}

static enum outcome request_send(struct shipment *s, const struct batch *b, int64_t from, int64_t to, int *ret_status,
                                 const char **ret_why)
{
	struct buf body = {0};
	char fault[CURL_ERROR_SIZE];
	json_t *headers = json_new(s->arena);
	bool gone = false;
	struct post p = {.headers = headers, .stops = s->stops, .ctx = s->stops_ctx, .ret_gone = &gone};
	request_make(s, b, &p, headers, &body);
	json_put_z(headers, "Content-Type", "application/json");
	json_put_z(headers, "Content-Encoding", "gzip");
	json_put_str(headers, "X-Steward-Delivery",
	             arena_printf(s->arena, "%.*s.%.*s.%lld-%lld", STR_ARG(s->target.id), STR_ARG(s->origin.stream),
	                          (long long)from, (long long)to));
	p.body = buf_view(&body);
	bool taken = post_deliver(outbox_post(s->service->outbox), &p, fault);
	buf_free(&body);
	if (taken)
		return OUTCOME_SENT;
	*ret_why = arena_z(s->arena, str_of(fault));
	*ret_status = strcmp(fault, "answered 413") == 0 ? 413 : strcmp(fault, "answered 400") == 0 ? 400 : 0;
	return is_refusal(str_of(fault)) ? OUTCOME_REFUSED : OUTCOME_AWAY;
}

/* How many of the records go into one request. All of a range, as it was read, do; there are more when other logs were
 * wanted by then. */
static size_t request_count(const struct batch *b, size_t most)
{
	size_t n = 0, bytes = 0;
	while (n < b->count && n < most && (!n || bytes + b->records[n].n <= REQUEST_BYTES))
		bytes += b->records[n++].n;
	return n;
}

/* What remains of a batch. */
struct remainder {
	struct batch left;
	size_t most, fits;      /* records of the next request, and of the largest one that is not too large */
	size_t taken, left_out; /* so far */
	size_t early;           /* of those left out: the first ones, before any was taken */
};

/* A receiver that takes less at once gets less. One that refuses what it gets, time and again, gets less too, until the
 * lines are found that it does not want. Returns false when there is nothing to do about it. */
static bool remainder_lessen(struct remainder *r, size_t count, int status, bool leaves_out)
{
	if (!status || (status == 400 && !leaves_out))
		return false;
	if (count > 1) {
		r->most = count / 2;
		r->fits = status == 413 ? r->most : r->fits;
		return true;
	}
	r->most = 1;
	r->left_out++;
	return leaves_out && (r->taken || r->left_out < ALL_UNFIT);
}

static void remainder_pass(struct remainder *r, size_t count)
{
	r->left.records += count;
	r->left.count -= count;
}

/* The service may have been mended meanwhile: what it refused before it took anything is tried once more. */
static enum outcome early_send(struct shipment *s, const struct batch *b, struct remainder *r, const char **ret_why)
{
	for (size_t i = 0; i < r->early; i++) {
		int status = 0;
		struct batch one = *b;
		one.records += i;
		one.count = 1;
		enum outcome outcome =
		        request_send(s, &one, one.records[0].position, one.records[1].position, &status, ret_why);
		if (outcome != OUTCOME_SENT && !status)
			return outcome;
		r->left_out -= outcome == OUTCOME_SENT;
	}
	return OUTCOME_SENT;
}

static enum outcome service_send(struct shipment *s, const struct batch *b, int64_t from, int64_t to,
                                 const char **ret_why)
{
	struct remainder r = {.left = *b, .most = REQUEST_RECORDS, .fits = REQUEST_RECORDS};
	int64_t end_us = clock_mono_us() + SEND_US;
	enum outcome outcome = OUTCOME_SENT;
	while (r.left.count) {
		int status = 0;
		struct batch part = r.left;
		part.count = request_count(&r.left, r.most);
		int64_t end = part.count == r.left.count ? to : r.left.records[part.count].position;
		outcome = request_send(s, &part, from, end, &status, ret_why);
		s->unfit = status != 0;
		if (outcome != OUTCOME_SENT && !remainder_lessen(&r, part.count, status, s->leaves_out))
			return outcome;
		if (outcome == OUTCOME_SENT) {
			r.early = r.taken ? r.early : r.left_out;
			r.taken += part.count;
			if (r.left_out && r.most < r.fits)
				r.most = 2 * r.most < r.fits ? 2 * r.most : r.fits;
		}
		if (outcome == OUTCOME_SENT || part.count == 1) {
			remainder_pass(&r, part.count);
			from = end;
		}
		if (r.left.count && clock_mono_us() > end_us) {
			*ret_why = "takes too long for what it gets";
			return OUTCOME_AWAY;
		}
	}
	if (!r.taken)
		return outcome;
	outcome = early_send(s, b, &r, ret_why);
	s->left_out = r.left_out;
	return outcome;
}

/* --- both */

enum outcome shipment_send(struct shipment *s, const struct batch *b, const int64_t sent[2], int64_t to,
                           const char **ret_why)
{
	s->unfit = false;
	s->left_out = 0;
	if (target_has_bucket(s->target.type))
		return bucket_send(s, b, sent, to, ret_why);
	return service_send(s, b, sent[0] < sent[1] ? sent[0] : sent[1], to, ret_why);
}

enum outcome shipment_prove(struct shipment *s, const char **ret_why)
{
	enum outcome outcome = bucket_ready(s, ret_why);
	if (outcome != OUTCOME_SENT)
		return outcome;
	return log_bucket_prove(s->arena, &s->target, s->bucket, &outcome, ret_why) < 0 ? outcome : OUTCOME_SENT;
}
