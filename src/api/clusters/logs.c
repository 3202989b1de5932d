/* A node's log as gzip, made while it is sent: a thread of its own reads the lines from the engine and packs them
 * (call/stream.h). */
#include "api/clusters/cluster.h"
#include "api/clusters/observe.h"
#include "api/clusters/refuse.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/places.h"
#include "call/stream.h"
#include "gate/right.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK (16ul * 1024)
#define DOWNLOADS_MAX 64
#define DOWNLOAD_SECONDS 3600
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define DAY_MS 86400000LL

static struct places downloads = PLACES(DOWNLOADS_MAX); /* each has a thread of its own */

struct download {
	struct service *service;
	struct right right;
	uint64_t org, caller; /* of its place */
	int fd;
};

static void download_end(void *ctx)
{
	struct download *d = ctx;
	close(d->fd);
	places_leave(&downloads, d->org, d->caller);
	free(d);
}

static int download_check(void *ctx, struct tx *tx, struct arena *a)
{
	struct download *d = ctx;
	return right_check_again(d->service, tx, a, &d->right);
}

static unsigned download_least(void *ctx)
{
	return places_are_scarce(&downloads) ? STREAM_LEAST_SCARCE : STREAM_LEAST;
}

/* Ends what the engine still writes. */
static void download_cut(void *ctx)
{
	shutdown(((struct download *)ctx)->fd, SHUT_RDWR);
}

static bool pack(struct stream *s, z_stream *z, unsigned char *bytes, size_t n, int flush)
{
	unsigned char out[CHUNK];
	z->next_in = bytes;
	z->avail_in = (uInt)n;
	do {
		z->next_out = out;
		z->avail_out = sizeof out;
		if (deflate(z, flush) == Z_STREAM_ERROR)
			return false;
		if (stream_write(s, out, sizeof out - z->avail_out) < 0)
			return false;
	} while (z->avail_out == 0);
	return true;
}

static bool copy_all(const struct download *d, struct stream *s, z_stream *z)
{
	unsigned char in[CHUNK];
	for (;;) {
		ssize_t n = read(d->fd, in, sizeof in);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 && pack(s, z, in, 0, Z_FINISH);
		if (!pack(s, z, in, (size_t)n, Z_NO_FLUSH))
			return false;
	}
}

static int download_make(void *ctx, struct stream *s)
{
	z_stream z = {.next_in = NULL};
	bool good = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	good = good && copy_all(ctx, s, &z);
	deflateEnd(&z);
	return good ? 0 : -EIO;
}

static int download_start(struct call *c, int fd)
{
	struct download *d = must_calloc(1, sizeof *d);
	*d = (struct download){
	        .service = c->service, .fd = fd, .org = call_key(c), .caller = fair_key(str_of(c->caller->id))};
	right_of_call(c, &d->right);
	const struct stream_maker maker = {.make = download_make,
	                                   .cut = download_cut,
	                                   .end = download_end,
	                                   .check = download_check,
	                                   .least = download_least,
	                                   .ctx = d,
	                                   .store = c->service->store,
	                                   .seconds = DOWNLOAD_SECONDS};
	if (stream_start(c->request, &maker) == 0)
		return 0;
	download_end(d);
	return call_fail(c, 503, "SERVICE_BUSY",
	                 "The service cannot start another download now. Try again in a second.");
}

/* The cluster and node that the host's first label names; only nodes of the path's project are found. */
static int node_find(struct call *c, struct cluster *ret_cluster, struct str *ret_node)
{
	struct str rest;
	str_cut(call_path(c, "hostName"), '.', ret_node, &rest);
	int result = cluster_of_host(c, *ret_node, ret_cluster);
	if (result == 0 && !json_find(json_object_get(ret_cluster->plan, "nodes"), "name", *ret_node))
		result = -ENOENT;
	return result == -ENOENT ? call_missing_param(c, "hostName") : result;
}

/* The last day, unless the query says otherwise. */
static int period_read(struct call *c, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	uint64_t seconds;
	int64_t to = clock_now_ms() + 1000, from;
	if (str_to_u64(call_query(c, "endDate"), 1u << 31, &seconds))
		to = (int64_t)seconds * 1000;
	from = to - DAY_MS;
	if (str_to_u64(call_query(c, "startDate"), 1u << 31, &seconds))
		from = (int64_t)seconds * 1000;
	if (from > to)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "startDate", "must not be after endDate.");
	*ret_from_ms = from;
	*ret_to_ms = to;
	return 0;
}

/* HEAD has the headers of a download, whose length nobody knows, and none of it. */
static ssize_t nothing_read(void *ctx, char *to, size_t n)
{
	return 0;
}

static int place_take(struct call *c)
{
	int r = places_enter(&downloads, call_key(c), fair_key(str_of(c->caller->id)));
	if (r < 0)
		call_header(c, STR("retry-after"), STR("60"));
	if (r == -EDQUOT)
		return call_fail(c, 429, "TOO_MANY_DOWNLOADS",
		                 "This caller or its organization has as many logs being downloaded as it may have at "
		                 "a time. Try again when one is done.");
	return r == 0 ? 0
	              : call_fail(c, 503, "SERVICE_BUSY", "Too many logs are being downloaded. Try again in a minute.");
}

int clusters_download_log(struct call *c)
{
	const struct service *s = c->service;
	const struct engine_log_ops *logs = s->engine_ops->logs;
	struct cluster cluster;
	struct str node;
	struct engine_log log = {.kind = strstr(arena_z(c->arena, call_path(c, "logName")), "audit")
	                                         ? ENGINE_LOG_AUDIT
	                                         : ENGINE_LOG_SERVER};
	int fd, result = node_find(c, &cluster, &node);
	if (result < 0)
		return result;
	if (!logs)
		return cluster_not_offered(c);
	for (size_t i = 0; result == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->log)
			result = cluster_parts[i]->log(c->tx, c->arena, c->group.id, &log);
	if (result == 0)
		result = period_read(c, &log.from_ms, &log.to_ms);
	if (result < 0)
		return result;
	if (c->method == METHOD_HEAD) {
		c->request->response.stream.read = nothing_read;
		return 0;
	}
	bool forwarded;
	result = cluster_forward(c, &cluster, &forwarded);
	if (result < 0 || forwarded)
		return result;
	log.redact = json_is_true(json_object_get(cluster.body, "redactClientLogData"));
	log.cluster_id = arena_z(c->arena, cluster.doc.id);
	log.node = arena_z(c->arena, node);
	result = place_take(c);
	if (result < 0)
		return result;
	result = logs->open(s->engine_state, &log, &fd);
	if (result < 0) {
		places_leave(&downloads, call_key(c), fair_key(str_of(c->caller->id)));
		return result;
	}
	return download_start(c, fd);
}
