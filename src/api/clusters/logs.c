/* A node's log as gzip, made while it is sent. A thread of its own reads the lines from the engine and packs them into
 * a small ring that the loop empties: nothing is held but that ring, and a reader who is slow slows only its own
 * thread. */
#include "api/clusters/jobs.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/log.h"
#include "call/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define RING (64ul * 1024)
#define CHUNK (16ul * 1024)
#define DOWNLOADS_MAX 64
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define DAY_MS 86400000LL

static struct pool downloads = POOL(DOWNLOADS_MAX, 0); /* places only: each has a thread of its own */

struct download {
	struct request *request;
	uint64_t key; /* of its place */
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t room;
	char ring[RING];
	size_t from, count;
	bool ended, failed, closed; /* by the thread, by the thread, by the loop */
};

static void download_free(struct download *d)
{
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->room);
	pool_leave(&downloads, d->key);
	free(d);
}

static ssize_t stream_read(void *ctx, char *ret_bytes, size_t n)
{
	struct download *d = ctx;
	ssize_t done = 0;
	pthread_mutex_lock(&d->lock);
	while ((size_t)done < n && d->count) {
		size_t part = RING - d->from < d->count ? RING - d->from : d->count;
		part = part < n - (size_t)done ? part : n - (size_t)done;
		memcpy(ret_bytes + done, d->ring + d->from, part);
		d->from = (d->from + part) % RING;
		d->count -= part;
		done += (ssize_t)part;
	}
	if (!done)
		done = d->failed ? -EIO : d->ended ? 0 : -EAGAIN;
	pthread_cond_signal(&d->room);
	pthread_mutex_unlock(&d->lock);
	return done;
}

/* Whoever comes last frees. */
static void stream_close(void *ctx)
{
	struct download *d = ctx;
	pthread_mutex_lock(&d->lock);
	bool last = d->ended || d->failed;
	d->closed = true;
	if (!last)
		shutdown(d->fd, SHUT_RDWR);
	pthread_cond_signal(&d->room);
	pthread_mutex_unlock(&d->lock);
	if (last)
		download_free(d);
}

static bool ring_put(struct download *d, const unsigned char *bytes, size_t n)
{
	bool open = true;
	pthread_mutex_lock(&d->lock);
	while (n && open) {
		while (d->count == RING && !d->closed)
			pthread_cond_wait(&d->room, &d->lock);
		open = !d->closed;
		for (; open && n && d->count < RING; n--, d->count++)
			d->ring[(d->from + d->count) % RING] = (char)*bytes++;
		if (open)
			http_stream_ready(d->request);
	}
	pthread_mutex_unlock(&d->lock);
	return open;
}

static bool pack(struct download *d, z_stream *z, unsigned char *bytes, size_t n, int flush)
{
	unsigned char out[CHUNK];
	z->next_in = bytes;
	z->avail_in = (uInt)n;
	do {
		z->next_out = out;
		z->avail_out = sizeof out;
		if (deflate(z, flush) == Z_STREAM_ERROR)
			return false;
		if (!ring_put(d, out, sizeof out - z->avail_out))
			return false;
	} while (z->avail_out == 0);
	return true;
}

static bool copy_all(struct download *d, z_stream *z)
{
	unsigned char in[CHUNK];
	for (;;) {
		ssize_t n = read(d->fd, in, sizeof in);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 && pack(d, z, in, 0, Z_FINISH);
		if (!pack(d, z, in, (size_t)n, Z_NO_FLUSH))
			return false;
	}
}

static void *download_main(void *arg)
{
	struct download *d = arg;
	z_stream z = {.next_in = NULL};
	bool good = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	good = good && copy_all(d, &z);
	deflateEnd(&z);
	pthread_mutex_lock(&d->lock);
	bool last = d->closed;
	d->ended = good;
	d->failed = !good;
	close(d->fd);
	if (!last)
		http_stream_ready(d->request);
	pthread_mutex_unlock(&d->lock);
	if (last)
		download_free(d);
	return NULL;
}

static int download_start(struct call *c, int fd)
{
	struct download *d = must_calloc(1, sizeof *d);
	pthread_t thread;
	*d = (struct download){.request = c->request, .fd = fd, .key = call_key(c)};
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->room, NULL);
	c->request->response.stream = (struct body_stream){.read = stream_read, .close = stream_close, .ctx = d};
	if (pthread_create(&thread, NULL, download_main, d) == 0) {
		pthread_detach(thread);
		return 0;
	}
	c->request->response.stream = (struct body_stream){.read = NULL};
	close(fd);
	download_free(d);
	return call_fail(c, 503, "SERVICE_BUSY",
	                 "The service cannot start another download now. Try again in a second.");
}

/* The cluster and node that the host's first label names; only nodes of the path's project are found. */
static int node_find(struct call *c, struct cluster *ret_cluster, struct str *ret_node)
{
	struct str node, rest, label, tail, id;
	str_cut(call_path(c, "hostName"), '.', &node, &rest);
	str_cut(node, '-', &label, &tail);
	int result = tx_ref_get(c->tx, c->arena, CLUSTER_LABEL_REF, label, &id);
	if (result == 0)
		result = cluster_get(c->tx, c->arena, id, ret_cluster);
	if (result < 0)
		return result;
	const json_t *nodes = json_object_get(ret_cluster->plan, "nodes");
	for (size_t i = 0; i < json_array_size(nodes); i++)
		if (str_eq(json_field(json_array_get(nodes, i), "name"), node) &&
		    str_eq(ret_cluster->doc.parent, c->group.id)) {
			*ret_node = node;
			return 0;
		}
	return -ENOENT;
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
	if (from > to) {
		call_fail(c, 400, "VALIDATION_ERROR", "startDate: must not be after endDate.");
		return call_fail_param(c, STR("startDate"));
	}
	*ret_from_ms = from;
	*ret_to_ms = to;
	return 0;
}

/* HEAD has the headers of a download, whose length nobody knows, and none of it. */
static ssize_t nothing_read(void *ctx, char *to, size_t n)
{
	return 0;
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
	if (!pool_enter(&downloads, call_key(c)))
		return call_fail(c, 503, "SERVICE_BUSY", "Too many logs are being downloaded. Try again in a minute.");
	result = logs->open(s->engine_state, &log, &fd);
	if (result < 0) {
		pool_leave(&downloads, call_key(c));
		return result;
	}
	return download_start(c, fd);
}
