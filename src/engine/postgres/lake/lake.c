/* Online archives by a cluster's id: the database that clients come to, and the archive's place in the repository of
 * its region.
 *
 * A sharded cluster's tables lie on its router, where archives take them from; those that are spread over shards are
 * partitioned tables there, and are refused as such.
 *
 * Each call has a connection of its own, as the service's role, and holds no lock of the cluster's: a failover, a stop
 * or the end of the service breaks the connection, and with it the transaction. */
#include "engine/postgres/lake/lake.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "catalog/formats.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/lake/bring.h"
#include "engine/postgres/lake/manifest.h"
#include "engine/postgres/lake/move.h"
#include "engine/postgres/lake/table.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/observe/advice.h"
#include "engine/postgres/sql/sql.h"
#include "repository/repository.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <unistd.h>

#define HELPER "steward-lake"
#define OPEN_MS 5000
#define SHORT_MS 20000
/* Of one transaction: half a second of the server's work, and few enough bytes for the helper's memory. */
#define ROWS_MAX 50000
#define BYTES_MAX (UINT64_C(64) << 20)
#define REST_BYTES_MAX (UINT64_C(256) << 20) /* of rows that stay in an archive: what a file had is written again */
#define FEWER 4                              /* times fewer rows are tried, where those were too large */

struct work {
	struct engine *engine;
	const struct engine_lake *want;
	struct arena *arena;
	PGconn *conn;
	struct repository *repository;
	const char **ret_why;
};

static void work_end(struct work *w)
{
	PQfinish(w->conn);
	w->conn = NULL;
	repository_put(w->repository);
	w->repository = NULL;
}

/* What a server or an object store said, as text that can be kept. */
static int fault_tell(struct work *w, int result, const char *words)
{
	struct str line = {words, strcspn(words, "\n")};
	if (w->ret_why)
		*w->ret_why = arena_z(w->arena, utf8_shown(w->arena, line));
	return result;
}

static int fault_last(struct work *w, int result)
{
	return result < 0 ? fault_tell(w, result, pg_why_last()) : result;
}

/* --- the database */

/* Where clients come to. A router that is down is waited for: what a shard has is not what clients see. */
static const struct pg_place *place_find(const struct pg_inquiry *q)
{
	bool routed = false;
	for (size_t i = 0; i < q->place_count; i++) {
		if (q->places[i].node.want.kind != NODE_ROUTER)
			continue;
		routed = true;
		if (q->places[i].runs)
			return &q->places[i];
	}
	return routed ? NULL : pg_inquiry_primary(q, 0);
}

static int database_check(struct work *w, const struct pg_place *p)
{
	int64_t there = 0;
	PGconn *conn;
	int r = pg_sql_open(&p->node, p->run, "postgres", OPEN_MS, &conn);
	if (r < 0)
		return fault_tell(w, -EAGAIN, pg_why_last());
	struct str sql = arena_printf(
	        w->arena, "select count(*) from pg_database where datname = %s and datallowconn and not datistemplate",
	        pg_lake_literal(conn, w->arena, w->want->database));
	r = pg_sql_int(conn, SHORT_MS, sql.p, &there);
	PQfinish(conn);
	if (r < 0)
		return fault_tell(w, -EAGAIN, pg_why_last());
	return there ? 0 : fault_tell(w, -ENOENT, "the cluster has no such database");
}

static int database_open(struct work *w)
{
	struct pg_inquiry q;
	int r = pg_inquiry_begin(w->engine, w->want->cluster_id, w->arena, &q);
	const struct pg_place *p = r == 0 ? place_find(&q) : NULL;
	if (!p)
		return fault_tell(w, -EAGAIN, "the cluster has no running primary");
	r = database_check(w, p);
	if (r < 0)
		return r;
	r = pg_sql_open(&p->node, p->run, w->want->database, OPEN_MS, &w->conn);
	return r < 0 ? fault_tell(w, -EAGAIN, pg_why_last()) : 0;
}

/* --- the files */

static int place_open(struct work *w)
{
	if (!w->engine->repositories)
		return fault_tell(w, -ENOTSUP, "this service keeps no backups: it has no repository");
	int r = repository_get(w->engine->repositories, w->want->region, w->want->group_id, &w->repository);
	if (r < 0) {
		w->repository = NULL;
		return fault_tell(w, r, repository_why());
	}
	return 0;
}

/* What is read may fail, and has said why; else the store has. */
struct source {
	objects_read *read;
	void *ctx;
	bool failed;
};

static ssize_t source_read(void *ctx, void *buf, size_t n)
{
	struct source *s = ctx;
	ssize_t got = s->read(s->ctx, buf, n);
	s->failed = got < 0;
	return got;
}

static int file_put(void *ctx, const char *file, ssize_t (*read)(void *read_ctx, void *buf, size_t n), void *read_ctx)
{
	struct work *w = ctx;
	struct source s = {.read = read, .ctx = read_ctx};
	int r = repo_rows_put(w->repository, w->want->id, file, source_read, &s);
	if (r < 0 && !s.failed)
		pg_why_set(NULL, "%s", repository_why());
	return r;
}

static int files_list(void *ctx, int (*visit)(void *visit_ctx, const char *file), void *visit_ctx)
{
	struct work *w = ctx;
	int r = repo_rows_list(w->repository, w->want->id, visit, visit_ctx);
	if (r < 0)
		pg_why_set(NULL, "%s", repository_why());
	return r;
}

static int file_drop(void *ctx, const char *file)
{
	struct work *w = ctx;
	int r = repo_rows_delete(w->repository, w->want->id, file);
	if (r < 0)
		pg_why_set(NULL, "%s", repository_why());
	return r;
}

/* --- rows that move */

static int lake_can(struct engine *e, struct arena *a, const char **ret_why)
{
	char path[4200];
	if (!e->repositories)
		*ret_why = "this service keeps no backups, and so no archives: it has no repository";
	else if (!file_beside_program(HELPER, path, sizeof path))
		*ret_why = HELPER " is not installed";
	else
		return 0;
	return -ENOTSUP;
}

static struct pg_lake_move wish_make(const struct engine_lake *want)
{
	return (struct pg_lake_move){.archive = want->id,
	                             .table = want->table,
	                             .query = want->query,
	                             .field = want->field,
	                             .format = want->format,
	                             .before_ms = want->before_ms,
	                             .order = want->order,
	                             .order_count = want->order_count,
	                             .rows_max = ROWS_MAX,
	                             .bytes_max = BYTES_MAX,
	                             .now_ms = clock_now_ms()};
}

static int lake_check(struct engine *e, const struct engine_lake *want, struct arena *a,
                      struct engine_lake_preview *ret_preview, const char **ret_field, const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	const struct pg_lake_move wish = wish_make(want);
	*ret_field = "dbName";
	int r = database_open(&w);
	if (r == 0) {
		r = fault_last(&w, pg_lake_check(w.conn, &wish, a, ret_preview, ret_field));
		r = r == 0 || r == -ENOENT || r == -EINVAL ? r : -EAGAIN;
	}
	work_end(&w);
	return r;
}

static bool is_stopped(void *ctx)
{
	const _Atomic bool *stop = *(const _Atomic bool *const *)ctx;
	return stop && atomic_load(stop);
}

static int batch_move(struct work *w, const struct pg_lake_move *wish, const struct pg_stop *stop, uint32_t *page,
                      struct pg_lake_moved *moved)
{
	const struct pg_lake_put store = {.put = file_put, .ctx = w};
	int r = database_open(w);
	if (r < 0)
		return r;
	r = pg_lake_manifest_make(w->conn);
	r = r < 0 ? r : pg_lake_move(w->conn, wish, &store, stop, w->arena, page, moved);
	PQfinish(w->conn);
	w->conn = NULL;
	return fault_last(w, r);
}

/* A place is a page of the table, and how many of its rows fit into a file, where that are fewer than usual: what was
 * found out once need not be tried again for each file. On other pages more are tried again. */
static uint64_t place_make(const struct pg_lake_move *wish, uint64_t before, uint32_t page, unsigned most)
{
	uint64_t rows = wish->rows_max;
	if (page != (uint32_t)before)
		rows *= FEWER;
	return page | (rows < most ? rows << 32 : 0);
}

/* Rows that are too large for a file together go in several. */
static int lake_move(struct engine *e, const struct engine_lake *want, const struct engine_lake_bounds *bounds,
                     const _Atomic bool *stop, struct arena *a, uint64_t *place, struct engine_lake_moved *ret_moved,
                     const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	const struct pg_stop asked = {.asked = is_stopped, .ctx = &stop};
	struct pg_lake_move wish = wish_make(want);
	struct pg_lake_moved moved;
	uint32_t page = (uint32_t)*place;
	if (bounds && bounds->rows && bounds->rows < ROWS_MAX)
		wish.rows_max = bounds->rows;
	if (bounds && bounds->bytes && bounds->bytes < BYTES_MAX)
		wish.bytes_max = bounds->bytes;
	unsigned most = wish.rows_max, fit = (unsigned)(*place >> 32);
	if (fit && fit < most)
		wish.rows_max = fit;
	int r = place_open(&w);
	if (r == 0)
		r = batch_move(&w, &wish, &asked, &page, &moved);
	while (r == -EFBIG) {
		wish.rows_max = wish.rows_max > FEWER ? wish.rows_max / FEWER : 1;
		r = batch_move(&w, &wish, &asked, &page, &moved);
	}
	work_end(&w);
	if (r < 0)
		return r;
	*place = place_make(&wish, *place, page, most);
	*ret_moved = (struct engine_lake_moved){.rows = moved.rows, .bytes = moved.bytes, .over = moved.over};
	return 0;
}

/* --- what the archive has */

/* 1: the manifest is there. 0: the archive has nothing. */
static int manifest_open(struct work *w)
{
	int r = database_open(w);
	return r < 0 ? r : fault_last(w, pg_lake_manifest_is_there(w->conn));
}

static int lake_held(struct engine *e, const struct engine_lake *want, struct arena *a,
                     struct engine_lake_held *ret_held)
{
	struct work w = {.engine = e, .want = want, .arena = a};
	struct engine_lake_held held = {0};
	int r = manifest_open(&w);
	if (r > 0)
		r = pg_lake_manifest_sums(w.conn, a, want->id, &held);
	work_end(&w);
	if (r == 0)
		*ret_held = held;
	return r;
}

static int lake_files(struct engine *e, const struct engine_lake *want, size_t skip, size_t most, struct arena *a,
                      struct engine_lake_file **ret_list, size_t *ret_count)
{
	struct work w = {.engine = e, .want = want, .arena = a};
	struct engine_lake_file *list = NULL;
	size_t count = 0;
	int r = manifest_open(&w);
	if (r > 0)
		r = pg_lake_manifest_list(w.conn, a, want->id, skip, most, &list, &count);
	work_end(&w);
	if (r == 0) {
		*ret_list = list;
		*ret_count = count;
	}
	return r;
}

struct proof {
	objects_write *write;
	void *ctx;
	EVP_MD_CTX *digest;
};

static int proof_write(void *ctx, const void *bytes, size_t n)
{
	struct proof *p = ctx;
	if (EVP_DigestUpdate(p->digest, bytes, n) != 1)
		return -ENOMEM;
	return p->write(p->ctx, bytes, n);
}

static bool proof_is(const struct proof *p, const char *sha256)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	char text[2 * EVP_MAX_MD_SIZE + 1];
	unsigned n = 0;
	if (EVP_DigestFinal_ex(p->digest, sum, &n) != 1)
		return false;
	hex_encode(sum, n, text);
	return strcmp(text, sha256) == 0;
}

static int file_read(struct work *w, const struct engine_lake_file *f, objects_write *write, void *ctx)
{
	struct proof p = {.write = write, .ctx = ctx, .digest = EVP_MD_CTX_new()};
	int r = p.digest && EVP_DigestInit_ex(p.digest, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
	r = r < 0 ? r : repo_rows_get(w->repository, w->want->id, f->id, proof_write, &p);
	if (r < 0)
		fault_tell(w, r, repository_why());
	else if (!proof_is(&p, f->sha256))
		r = fault_tell(w, -EBADMSG, "the file is not what was written");
	EVP_MD_CTX_free(p.digest);
	return r;
}

static int lake_read(struct engine *e, const struct engine_lake *want, const char *file, objects_write *write,
                     void *ctx, struct arena *a, const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	struct engine_lake_file f = {0};
	int r = manifest_open(&w);
	if (r >= 0)
		r = r == 0 ? -ENOENT : pg_lake_manifest_find(w.conn, a, want->id, file, &f);
	if (r < 0 && w.conn)
		fault_tell(&w, r, r == -ENOENT ? "the archive has no such file" : pg_why_last());
	r = r < 0 ? r : place_open(&w);
	r = r < 0 ? r : file_read(&w, &f, write, ctx);
	work_end(&w);
	return r;
}

/* --- files that go */

static int lake_expire(struct engine *e, const struct engine_lake *want, int64_t before_ms, struct arena *a,
                       struct engine_lake_held *ret_gone, const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	struct engine_lake_held gone = {0};
	int r = manifest_open(&w);
	if (r > 0)
		r = fault_last(&w, pg_lake_manifest_expire(w.conn, a, want->id, before_ms, &gone));
	work_end(&w);
	if (r == 0)
		*ret_gone = gone;
	return r;
}

static int lake_sweep(struct engine *e, const struct engine_lake *want, int64_t oldest_ms, struct arena *a,
                      struct engine_lake_swept *ret_swept, const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	const struct pg_lake_store store = {.list = files_list, .drop = file_drop, .ctx = &w};
	int r = place_open(&w);
	r = r < 0 ? r : database_open(&w);
	if (r == 0) {
		r = pg_lake_manifest_make(w.conn);
		r = r < 0 ? r
		          : pg_lake_manifest_sweep(w.conn, a, want->id, &store, clock_now_ms(), oldest_ms, ret_swept);
		r = fault_last(&w, r);
	}
	work_end(&w);
	return r;
}

static int lake_erase(struct engine *e, const struct engine_lake *want, struct arena *a, const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	int r = place_open(&w);
	if (r == 0)
		r = fault_last(&w, files_list(&w, file_drop, &w));
	work_end(&w);
	return r;
}

/* --- rows that come back */

static int descriptor_write(void *ctx, const void *bytes, size_t n)
{
	const char *p = bytes;
	while (n > 0) {
		ssize_t done = write(*(const int *)ctx, p, n);
		if (done < 0 && errno != EINTR)
			return -errno;
		p += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static int file_get(void *ctx, const struct engine_lake_file *f, int descriptor)
{
	struct work *w = ctx;
	int r = file_read(w, f, descriptor_write, &descriptor);
	if (r < 0)
		pg_why_set(NULL, "%s", w->ret_why && *w->ret_why ? *w->ret_why : "the file cannot be read");
	return r;
}

static int lake_bring(struct engine *e, const struct engine_lake *want, const char *query, const char *file,
                      const _Atomic bool *stop, struct arena *a, struct engine_lake_moved *ret_moved,
                      const char **ret_why)
{
	struct work w = {.engine = e, .want = want, .arena = a, .ret_why = ret_why};
	const struct pg_stop asked = {.asked = is_stopped, .ctx = &stop};
	const struct pg_lake_bring wish = {.archive = want->id,
	                                   .table = want->table,
	                                   .query = query,
	                                   .file = file,
	                                   .order = want->order,
	                                   .order_count = want->order_count,
	                                   .bytes_max = REST_BYTES_MAX,
	                                   .get = file_get,
	                                   .ctx = &w,
	                                   .put = {.put = file_put, .ctx = &w}};
	int r = place_open(&w);
	if (r == 0)
		r = manifest_open(&w);
	if (r == 0)
		r = fault_tell(&w, -ENOENT, "the archive has no such file");
	else if (r > 0)
		r = fault_last(&w, pg_lake_bring(w.conn, &wish, &asked, a, ret_moved));
	work_end(&w);
	return r;
}

const struct engine_lake_ops pg_lake = {.can = lake_can,
                                        .check = lake_check,
                                        .move = lake_move,
                                        .held = lake_held,
                                        .files = lake_files,
                                        .read = lake_read,
                                        .expire = lake_expire,
                                        .sweep = lake_sweep,
                                        .erase = lake_erase,
                                        .bring = lake_bring};
