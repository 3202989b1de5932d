/* Downloads of snapshots: GET DOWNLOAD_PATH<job>.<set>.<signature>, a tar that is made while it is sent. The link is
 * all that a client needs, and holds for some hours. Nothing of it is stored: the signature is of the job's id, its
 * set and a nonce that stands in the job's document, by the service's key, so that who reads the store cannot make
 * one. Who has read the link must still be there, hold the role and be allowed from that address, when a download
 * begins and as long as it lasts.
 *
 * A download that broke off is gone on with by Range: a snapshot's tar has the same bytes each time, and from each of
 * its copies, which its entity tag says. Its length is asked for only then, because it lies in the repository. */
#include "api/restores/download.h"

#include "api/restores/restores.h"
#include "api/snapshots/snapshots.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/places.h"
#include "call/range.h"
#include "call/stream.h"
#include "call/workers.h"
#include "gate/right.h"
#include "identity/attempts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DOWNLOADS_MAX 64
#define DOWNLOAD_SECONDS (24 * 3600)
#define SIGNATURE_TEXT 65
#define TAR_FORM 1 /* part of the entity tag: to be raised when tars of the same snapshots become others */

static struct places downloads = PLACES(DOWNLOADS_MAX); /* each has a thread of its own */

/* `reader`: whose link it is, where that is not who asked for the job; empty: it is. */
static struct str signed_text(struct arena *a, const struct restore *job, size_t set, struct str reader)
{
	return arena_printf(a, "%.*s/%zu/%.*s%s%.*s", STR_ARG(job->doc.id), set,
	                    STR_ARG(json_field(job->plan, "nonce")), reader.n ? "/" : "", STR_ARG(reader));
}

/* Who reads a job that somebody else asked for gets a link of the own: with the other's, the reader could go on when
 * the own rights had ended. In base64url; *ret_text is empty where the job's own link is the reader's. */
static int reader_mark(struct call *c, const struct restore *job, struct str *ret_text)
{
	static const char *const same[] = {"kind", "caller", "secret", "stamp", "weak", "federated"};
	json_t *mark = json_new(c->arena);
	bool own = true;
	int r = right_link_put(c, mark);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		const json_t *now = json_object_get(mark, same[i]), *then = json_object_get(job->plan, same[i]);
		own &= now == then || json_equal(now, then);
	}
	if (!json_flag(mark, "federated"))
		json_object_del(mark, "madeAt");
	struct str plain = json_text(c->arena, mark);
	char *text = arena_alloc(c->arena, BASE64_TEXT(plain.n) + 1);
	base64url_encode(plain.p, plain.n, text);
	*ret_text = own ? STR("") : str_of(text);
	return 0;
}

int download_link(struct call *c, const struct restore *r, size_t set, struct str *ret_link)
{
	unsigned char mac[32];
	char signature[SIGNATURE_TEXT];
	struct str reader = STR("");
	int result = reader_mark(c, r, &reader);
	if (result < 0)
		return result;
	seal_mac("download", signed_text(c->arena, r, set, reader), mac);
	hex_encode(mac, sizeof mac, signature);
	*ret_link = arena_printf(c->arena, "%s" DOWNLOAD_PATH "%.*s.%zu.%.*s%s%s", c->service->base_url,
	                         STR_ARG(r->doc.id), set, STR_ARG(reader), reader.n ? "." : "", signature);
	return 0;
}

bool download_is_shown(const struct call *c, const struct restore *r)
{
	const struct op *op = catalog_op(arena_z(c->arena, json_field(r->plan, "operation")));
	return op && c->roles & op->roles;
}

/* --- the tar */

struct download {
	struct service *service;
	struct right right;
	struct engine_source of[ENGINE_COPIES_MAX + 1]; /* the best first */
	size_t of_count;
	struct stream *stream;
	bool sent;
	bool is_part;
	uint64_t from, left; /* of a part: its first byte, and how many of it are still to be sent */
	char set[64];
	uint64_t org, caller; /* of its place */
	char job[25];
	bool counted;
};

static int part_write(void *ctx, const void *bytes, size_t n)
{
	struct download *d = ctx;
	d->sent = true;
	if (!d->is_part)
		return stream_write(d->stream, bytes, n);
	size_t wanted = d->left < n ? (size_t)d->left : n;
	int r = stream_write(d->stream, bytes, wanted);
	d->left -= wanted;
	return r < 0 || d->left ? r : -ECANCELED; /* the rest need not be made */
}

static bool is_used_up(const struct restore *job)
{
	json_int_t most = json_number(job->plan, "downloads");
	return most && json_number(job->plan, "taken") >= most;
}

static int count_save(struct tx *tx, void *ctx)
{
	struct download *d = ctx;
	struct arena *a = arena_new();
	struct restore job;
	int r = restore_get(tx, a, str_of(d->job), &job);
	if (r == 0 && is_used_up(&job))
		r = -EDQUOT;
	if (r == 0) {
		json_put(job.plan, "taken", json_integer(json_number(job.plan, "taken") + 1));
		r = restore_save(tx, a, &job);
	}
	arena_free(a);
	return r;
}

static int tar_make(void *ctx, struct stream *s)
{
	struct download *d = ctx;
	const char *why = "";
	int r = d->counted ? store_write_wait(d->service->store, count_save, d) : 0;
	if (r < 0)
		return r;
	d->stream = s;
	for (size_t i = 0; i < d->of_count; i++) {
		r = d->service->engine_ops->backup->stream(d->service->engine_state, &d->of[i], d->set, d->from,
		                                           part_write, d, &why);
		if (d->is_part && r != -EPIPE && r <= 0 && !d->left)
			return 0;
		if (r < 0 && r != -EPIPE)
			log_error("download of snapshot %s from %s: %s (error %d)", d->of[i].snapshot_id,
			          d->of[i].region, why, r);
		if (!source_is_bad(r) || d->sent)
			break;
	}
	return r == 0 && d->is_part ? -EIO : r; /* it was shorter than its length said */
}

static void tar_end(void *ctx)
{
	struct download *d = ctx;
	places_leave(&downloads, d->org, d->caller);
	free(d);
}

/* A job that was cancelled takes its downloads along. The end of the link's time does not. */
static int tar_check(void *ctx, struct tx *tx, struct arena *a)
{
	struct download *d = ctx;
	struct restore job;
	int r = restore_get(tx, a, str_of(d->job), &job);
	if (r == -ENOENT || (r == 0 && json_flag(job.body, "cancelled")))
		return -EPERM;
	return r < 0 ? r : right_check_again(d->service, tx, a, &d->right);
}

static unsigned tar_least(void *ctx)
{
	return places_are_scarce(&downloads) ? STREAM_LEAST_SCARCE : STREAM_LEAST;
}

/* --- who asks */

static int refuse(struct request *r, int status, const char *code, const char *detail)
{
	struct problem p = {.status = status, .code = code, .detail = str_of(detail)};
	answer_problem(r, &p);
	return -status;
}

/* A link that this service did not make is a failed sign-in; a right one is never refused for those. */
static int unknown(struct service *s, struct request *r)
{
	unsigned seconds;
	enum attempt_state attempt = attempt_ask(s->attempts, STR_NONE, &r->peer, &seconds);
	attempt_failed(s->attempts, STR_NONE, &r->peer);
	if (attempt == ATTEMPT_OPEN)
		return refuse(r, 404, "RESOURCE_NOT_FOUND", "There is no such download.");
	response_header(&r->response, "retry-after", arena_printf(r->arena, "%u", seconds));
	return refuse(r, 429, "TOO_MANY_FAILED_ATTEMPTS", "Too many failed attempts from this address.");
}

/* What the link of another reader says of that one. */
static const json_t *reader_read(struct arena *a, struct str mark)
{
	char *plain = arena_alloc(a, mark.n + 1);
	ssize_t n = base64_decode(mark, plain, mark.n);
	return n < 0 ? NULL : doc_json(a, (struct str){plain, (size_t)n});
}

/* *ret_link: what it keeps of whose it is (gate/right.h). */
static int link_read(struct service *s, struct request *r, struct tx *tx, struct restore *job, size_t *ret_set,
                     const json_t **ret_link)
{
	struct str token = {r->path.p + strlen(DOWNLOAD_PATH), r->path.n - strlen(DOWNLOAD_PATH)}, id, rest, number,
	           given, reader = STR("");
	uint64_t set;
	str_cut(token, '.', &id, &rest);
	str_cut(rest, '.', &number, &given);
	if (given.n > SIGNATURE_TEXT && given.p[given.n - SIGNATURE_TEXT] == '.') {
		reader = (struct str){given.p, given.n - SIGNATURE_TEXT};
		given = (struct str){given.p + reader.n + 1, SIGNATURE_TEXT - 1};
	}
	if (!id_is_valid(id) || !str_to_u64(number, ENGINE_NODES_MAX, &set))
		return unknown(s, r);
	int result = restore_get(tx, r->arena, id, job);
	if (result < 0 && result != -ENOENT)
		return refuse(r, 503, "NOT_READY", "The store cannot be read.");
	if (result == -ENOENT || !json_field(job->plan, "nonce").n)
		return unknown(s, r);
	if (given.n != SIGNATURE_TEXT - 1 ||
	    !seal_mac_is_hex("download", signed_text(r->arena, job, set, reader), given) ||
	    set >= json_array_size(json_object_get(job->plan, "sets")))
		return unknown(s, r);
	*ret_set = set;
	*ret_link = reader.n ? reader_read(r->arena, reader) : job->plan;
	return 0;
}

/* Who asked for the link is asked the gates' questions again. Also tells whose place the download takes. */
static int caller_check(struct service *s, struct request *r, struct tx *tx, const struct restore *job,
                        const json_t *link, struct download *d)
{
	struct str group = json_field(job->plan, "groupId"), caller = json_field(link, "caller");
	struct doc project;
	right_of_link(link, catalog_op(arena_z(r->arena, json_field(job->plan, "operation"))), group, &r->peer,
	              &d->right);
	d->right.generation = tx_identity_generation(tx);
	d->right.asked_us = clock_mono_us();
	int result = d->right.op ? tx_get(tx, r->arena, "project", group, &project) : -EPERM;
	if (result == 0)
		result = right_check(s, NULL, tx, r->arena, &d->right);
	switch (result) {
	case 0: break;
	case -EADDRNOTAVAIL:
		return refuse(r, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
		              "This link may not be used from this address: it is not on the access list of the "
		              "credential that asked for it.");
	case -EACCES:
		return refuse(
		        r, 403, "DOWNLOAD_LINK_REVOKED",
		        "What asked for this link was taken back since: a session or a secret. Ask the API for a new "
		        "one.");
	case -ENOENT:
	case -EPERM:
		return refuse(r, 403, "DOWNLOAD_NOT_PERMITTED",
		              "Who asked for this link may not download backups of the project any more.");
	default: return refuse(r, 503, "NOT_READY", "The store cannot be read.");
	}
	d->org = fair_key(project.parent);
	d->caller = fair_key(caller);
	return 0;
}

/* HEAD has the headers of a download, whose length nobody knows, and none of it. */
static ssize_t nothing_read(void *ctx, char *to, size_t n)
{
	return 0;
}

static void too_many(struct request *r, int error)
{
	response_header(&r->response, "retry-after", STR("60"));
	if (error == -EDQUOT)
		refuse(r, 429, "TOO_MANY_DOWNLOADS",
		       "This caller or its organization has as many backups being downloaded as it may have at a time. "
		       "Try again when one is done.");
	else
		refuse(r, 503, "SERVICE_BUSY", "Too many backups are being downloaded. Try again in a minute.");
}

/* The thread of the download has its own copy of what is known of it. */
static int tar_start(struct request *r, const struct download *known)
{
	int result = places_enter(&downloads, known->org, known->caller);
	if (result < 0)
		return result;
	struct download *d = must_malloc(sizeof *d);
	*d = *known;
	struct stream_maker maker = {.make = tar_make,
	                             .end = tar_end,
	                             .check = tar_check,
	                             .least = tar_least,
	                             .ctx = d,
	                             .store = d->service->store,
	                             .seconds = DOWNLOAD_SECONDS};
	result = stream_start(r, &maker);
	if (result < 0)
		tar_end(d);
	return result;
}

/* From the first source that tells. */
static int size_find(struct request *r, const struct download *d, uint64_t *ret_bytes)
{
	const char *why = "";
	int result = -ENOENT;
	workers_share();
	for (size_t i = 0; i < d->of_count; i++) {
		result = d->service->engine_ops->backup->stream_size(d->service->engine_state, &d->of[i], d->set,
		                                                     ret_bytes, &why);
		if (!source_is_bad(result))
			break;
	}
	if (result >= 0)
		return 0;
	log_error("download of snapshot %s: %s (error %d)", d->of[0].snapshot_id, why, result);
	response_header(&r->response, "retry-after", STR("5"));
	return refuse(r, 503, "REPOSITORY_UNAVAILABLE",
	              "The repository of the cluster's backups cannot be read. Try again in 5 seconds.");
}

/* The part of the tar that is asked for; all of it without a Range that holds for this tar. */
static int part_find(struct request *r, struct str etag, struct download *d)
{
	struct str range = request_header(r, "range");
	uint64_t size = 0, first = 0, last = 0;
	if (!range.p || !str_is(r->method, "GET") || !range_is_of(request_header(r, "if-range"), etag))
		return 0;
	int result = size_find(r, d, &size);
	if (result < 0)
		return result;
	switch (range_parse(range, size, &first, &last)) {
	case RANGE_ALL: return 0;
	case RANGE_OUTSIDE:
		response_header(&r->response, "content-range",
		                arena_printf(r->arena, "bytes */%llu", (unsigned long long)size));
		return refuse(r, 416, "RANGE_NOT_SATISFIABLE", "Range: the download has no such bytes.");
	case RANGE_PART: break;
	}
	d->is_part = true;
	d->from = first;
	d->left = last - first + 1;
	response_header(&r->response, "content-range",
	                arena_printf(r->arena, "bytes %llu-%llu/%llu", (unsigned long long)first,
	                             (unsigned long long)last, (unsigned long long)size));
	return 0;
}

static void tar_send(struct request *r, const struct restore *job, size_t set, struct download *d,
                     const struct engine_source *sources, size_t source_count)
{
	const json_t *from = json_object_get(job->plan, "from");
	struct str cluster = json_field(job->plan, "clusterName"), snapshot = json_field(from, "snapshot");
	for (size_t i = 0; i < source_count && i < ENGINE_COPIES_MAX + 1; i++)
		d->of[d->of_count++] = sources[i];
	snprintf(d->set, sizeof d->set, "%.*s", STR_ARG(json_item(json_object_get(job->plan, "sets"), set)));
	snprintf(d->job, sizeof d->job, "%.*s", STR_ARG(job->doc.id));
	d->counted = json_number(job->plan, "downloads");
	struct str etag = arena_printf(r->arena, "\"%.*s-%zu-%d\"", STR_ARG(snapshot), set, TAR_FORM);
	if (part_find(r, etag, d) < 0)
		return;
	if (str_is(r->method, "HEAD")) {
		r->response.stream.read = nothing_read;
	} else {
		int result = tar_start(r, d);
		if (result < 0) {
			too_many(r, result);
			return;
		}
	}
	r->response.status = d->is_part ? 206 : 200;
	response_header(&r->response, "content-type", STR("application/x-tar"));
	response_header(&r->response, "accept-ranges", STR("bytes"));
	response_header(&r->response, "etag", etag);
	response_header(&r->response, "content-disposition",
	                arena_printf(r->arena, "attachment; filename=\"%.*s-%.*s-%zu.tar\"", STR_ARG(cluster),
	                             STR_ARG(snapshot), set));
}

static void serve(struct service *s, struct request *r)
{
	struct tx *tx = lane_here(s)->reader;
	struct restore job;
	struct download *d = arena_new_of(r->arena, struct download);
	struct engine_source *sources = NULL;
	const json_t *link = NULL;
	size_t set = 0, source_count = 0;
	d->service = s;
	tx_begin_read(tx);
	int result = link_read(s, r, tx, &job, &set, &link);
	if (result == 0 && (restore_is_over(&job) || json_number(job.plan, "until") <= clock_now_ms()))
		result =
		        refuse(r, 404, "DOWNLOAD_EXPIRED", "The time of this link is over. Ask the API for a new one.");
	if (result == 0 && is_used_up(&job))
		result = refuse(r, 404, "MAX_DOWNLOADS_EXCEEDED", "This link was used as often as it may be.");
	if (result == 0)
		result = caller_check(s, r, tx, &job, link, d);
	if (result == 0 && restore_sources(tx, r->arena, &job, &sources, &source_count) < 0)
		result = refuse(r, 503, "NOT_READY", "The store cannot be read.");
	tx_end_read(tx);
	tx_rest(tx);
	if (result == 0 && !s->engine_ops->backup)
		result = refuse(r, 501, "NOT_IMPLEMENTED", "The engine in use has no downloads.");
	if (result == 0)
		tar_send(r, &job, set, d, sources, source_count);
}

void download_serve(struct service *s, struct request *r)
{
	serve(s, r);
	respond_here(r);
}
