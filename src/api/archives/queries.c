/* The log has a document for each thing that was done with an archive, below its cluster, and no more than LINES_MAX of
 * them: the oldest go first. It is sent packed, a line of JSON each; only the packed text is in memory as a whole. */
#include "api/archives/queries.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define QUERY_KIND "online_archive_query"
#define LINES_MAX 10000
#define BATCH 500
#define DAY_MS INT64_C(86400000)
#define GZIP_WINDOW (15 + 16) /* zlib's way to ask for gzip */
#define PACK_BYTES (64ul << 10)

static json_t *line_make(const struct archive *x, const struct archive_query *q, struct arena *a)
{
	int64_t now = clock_now_ms();
	json_t *o = json_new(a);
	json_put_time(o, "date", now);
	json_put_str(o, "archiveId", x->doc.id);
	json_put_str(o, "namespace",
	             arena_printf(a, "%.*s.%.*s", STR_ARG(json_field(x->body, "dbName")),
	                          STR_ARG(json_field(x->body, "collName"))));
	json_put_z(o, "operation", q->kind);
	json_put(o, "archivedOnly", json_boolean(q->archived_only));
	json_put(o, "files", json_integer((json_int_t)q->files));
	json_put(o, "rows", json_integer((json_int_t)q->rows));
	json_put(o, "bytes", json_integer((json_int_t)q->bytes));
	json_put(o, "durationMillis", json_integer(now - q->from_ms));
	return o;
}

int archive_query_note(struct tx *tx, struct arena *a, const struct archive *x, const struct archive_query *q)
{
	struct str cluster = x->doc.parent;
	struct doc *oldest;
	size_t found = 0;
	int64_t count = 0;
	int r = tx_count(tx, QUERY_KIND, cluster, &count);
	if (r == 0 && count >= LINES_MAX)
		r = tx_list(tx, a, QUERY_KIND, cluster, 0, 2, &oldest, &found);
	for (size_t i = 0; r == 0 && i < found; i++)
		r = tx_delete(tx, QUERY_KIND, oldest[i].id);
	return r < 0 ? r : doc_insert(tx, QUERY_KIND, id_make(a), cluster, STR_NONE, json_text(a, line_make(x, q, a)));
}

int archive_queries_drop(struct tx *tx, struct str cluster_id)
{
	return tx_delete_list(tx, QUERY_KIND, cluster_id);
}

/* --- the download */

struct packing {
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

struct period {
	int64_t from_ms, to_ms;
	bool archived_only;
};

/* The last day, unless the query says otherwise. */
static int period_read(struct call *c, struct period *ret_period)
{
	uint64_t seconds;
	struct period p = {.to_ms = clock_now_ms() + 1000, .archived_only = call_query_bool(c, "archiveOnly", false)};
	if (str_to_u64(call_query(c, "endDate"), 1u << 31, &seconds))
		p.to_ms = (int64_t)seconds * 1000;
	p.from_ms = p.to_ms - DAY_MS;
	if (str_to_u64(call_query(c, "startDate"), 1u << 31, &seconds))
		p.from_ms = (int64_t)seconds * 1000;
	if (p.from_ms > p.to_ms)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "startDate", "must not be after endDate.");
	*ret_period = p;
	return 0;
}

static bool is_wanted(struct arena *a, const struct doc *d, const struct period *p)
{
	return d->created_ms >= p->from_ms && d->created_ms < p->to_ms &&
	       (!p->archived_only || json_flag(doc_json(a, d->body), "archivedOnly"));
}

static int lines_pack(struct call *c, struct str cluster_id, const struct period *p, struct packing *packing)
{
	int result = 0;
	size_t count = BATCH;
	for (int64_t offset = 0; result == 0 && count == BATCH; offset += BATCH) {
		struct arena *a = arena_new();
		struct doc *docs;
		result = tx_list(c->tx, a, QUERY_KIND, cluster_id, offset, BATCH, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++)
			if (is_wanted(a, &docs[i], p)) {
				pack(packing, docs[i].body, Z_NO_FLUSH);
				pack(packing, STR("\n"), Z_NO_FLUSH);
			}
		arena_free(a);
	}
	pack(packing, STR(""), Z_FINISH);
	return result;
}

int archives_download_queries(struct call *c)
{
	struct cluster cluster;
	struct period period = {0};
	struct packing packing = {.out = &c->out};
	int result = cluster_load(c, &cluster);
	if (result == 0)
		result = period_read(c, &period);
	if (result < 0)
		return result;
	c->momentary = true; /* the period ends now */
	if (deflateInit2(&packing.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort(); /* there is no memory left */
	result = lines_pack(c, cluster.doc.id, &period, &packing);
	deflateEnd(&packing.z);
	return result;
}
