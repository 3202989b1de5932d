/* The job of an export: each table of the snapshot into the bucket, then what tells about them. An object is there
 * whole or not at all, and .complete is the last: a prefix without it is no export. A job that is begun anew writes
 * the same names again. */
#include "api/exports/job.h"

#include "api/exports/buckets.h"
#include "api/exports/exports.h"
#include "api/exports/put.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/data_key.h"
#include "base/log.h"
#include "call/places.h"
#include "catalog/formats.h"
#include "store/seal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TELL_US 2000000 /* between two looks at how far it has come */
/* A bucket that is away is waited for: that is no failed attempt. */
#define AWAY_LOOK_MS (INT64_C(60) * 1000)
#define AWAY_MAX_MS (INT64_C(24) * 3600 * 1000)
/* Each has a server and a thread of the jobs for as long as it lasts: two for an organization, one for a project. */
#define EXPORTS_MAX 8
#define BUSY_MS 5000

static struct places exports = PLACES(EXPORTS_MAX);

struct exporting {
	struct job_run *run;
	struct export export;
	struct backup_line line;
	struct snapshot snapshot;
	uint64_t org, project; /* of its place */
	json_t *bucket;
	bool reached; /* the bucket, over a private network where it requires that */
	const struct provider_role *role;
	const char *no_role; /* why there is none */
	struct objects *objects;
	struct export_put *put; /* the table that is being written */
	struct data_key key;    /* of the project; without bytes: it has none */
	json_t *tables, *table;
	size_t total, done, skipped;
	int64_t told_us;
	bool away; /* the bucket was, when it failed */
	char why[400];
};

static int exporting_load(struct tx *tx, struct job_run *r, struct exporting *x)
{
	struct str id = json_field(doc_json(r->arena, r->job.args), "id");
	struct doc d, project;
	x->role = NULL;
	x->no_role = NULL;
	int result = export_get(tx, r->arena, id, &x->export);
	if (result == 0)
		result = backup_line_get(tx, r->arena, x->export.doc.parent, &x->line);
	if (result == 0)
		result = tx_get(tx, r->arena, "project", x->line.doc.parent, &project);
	if (result < 0)
		return result;
	x->org = fair_key(project.parent);
	x->project = fair_key(project.id);
	if (snapshot_get(tx, r->arena, json_field(x->export.body, "snapshotId"), &x->snapshot) < 0)
		x->snapshot.body = NULL;
	result = tx_get(tx, r->arena, BUCKET_KIND, json_field(x->export.body, "exportBucketId"), &d);
	x->bucket = result == 0 ? doc_json(r->arena, d.body) : NULL;
	if (result == 0)
		result = bucket_reached(tx, r->arena, &d, &x->reached);
	if (result == 0)
		result = bucket_role(r->ctx, tx, r->arena, d.parent, x->bucket, &x->role, &x->no_role);
	if (result == 0)
		x->no_role = NULL;
	else if (x->no_role && (result == -EACCES || result == -EINVAL || result == -ENOENT))
		result = 0;
	return result == -ENOENT ? 0 : result;
}

static void counts_put(json_t *body, size_t done, size_t total)
{
	json_put(body, "exportStatus",
	         json_pack("{s:I, s:I}", "exportedCollections", (json_int_t)done, "totalCollections",
	                   (json_int_t)total));
}

static int begin_save(struct tx *tx, struct job_run *r)
{
	struct exporting x;
	int result = exporting_load(tx, r, &x);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_put_z(x.export.body, "state", "InProgress");
	return export_save(tx, r->arena, &x.export);
}

static int counts_save(struct tx *tx, void *ctx)
{
	const struct exporting *x = ctx;
	struct arena *a = arena_new();
	struct export now;
	int r = export_get(tx, a, x->export.doc.id, &now);
	if (r == 0) {
		counts_put(now.body, x->done, x->total);
		r = export_save(tx, a, &now);
	}
	arena_free(a);
	return r;
}

/* --- what the engine calls */

static void on_count(void *ctx, size_t tables)
{
	struct exporting *x = ctx;
	x->total = tables;
}

static const char *object_name(struct exporting *x, const char *tail)
{
	struct str prefix = json_field(x->export.body, "prefix"); /* begins with a slash */
	return arena_printf(x->run->arena, "%.*s/%s", (int)prefix.n - 1, prefix.p + 1, tail).p;
}

static struct str part(struct exporting *x, const char *text)
{
	return export_part(x->run->arena, str_of(text));
}

/* Its line of the manifest, which is x->table from here on. */
static void table_note(struct exporting *x, const struct engine_table *table)
{
	x->table = json_object();
	json_put_str(x->table, "database", utf8_shown(x->run->arena, str_of(table->database)));
	json_put_str(x->table, "schema", utf8_shown(x->run->arena, str_of(table->schema)));
	json_put_str(x->table, "table", utf8_shown(x->run->arena, str_of(table->name)));
	json_put_str(x->table, "set", str_of(table->set ? table->set : ""));
	json_array_append_new(x->tables, x->table);
}

static int on_begin(void *ctx, const struct engine_table *table)
{
	struct exporting *x = ctx;
	struct str database = part(x, table->database), schema = part(x, table->schema), name = part(x, table->name),
	           set = part(x, table->set ? table->set : "");
	struct str tail = arena_printf(x->run->arena, "%.*s/%.*s.%.*s.%.*s.json.gz%s", STR_ARG(database),
	                               STR_ARG(schema), STR_ARG(name), STR_ARG(set), x->key.bytes ? ".sealed" : "");
	export_put_abort(x->put); /* of a table that is begun anew */
	x->put = NULL;
	if (!x->table)
		table_note(x, table);
	json_put_str(x->table, "object", tail);
	return export_put_begin(x->objects, object_name(x, tail.p), x->key.bytes ? &x->key : NULL,
	                        json_field(x->line.body, "groupId"), &x->put);
}

/* What became of the bucket. */
static int bucket_result(struct exporting *x, int r)
{
	x->away = r == -EHOSTUNREACH || r == -ETIMEDOUT;
	return r;
}

static int put_close(struct exporting *x, struct export_stored *ret_stored)
{
	int r = export_put_end(x->put, ret_stored, x->why, sizeof x->why);
	x->put = NULL;
	return bucket_result(x, r);
}

static int on_write(void *ctx, const void *bytes, size_t n)
{
	struct exporting *x = ctx;
	struct export_stored unused;
	int r = export_put_write(x->put, bytes, n), why;
	/* The bucket's own words tell more than that it takes no bytes. */
	return r < 0 && (why = put_close(x, &unused)) < 0 ? why : r;
}

static int on_end(void *ctx, uint64_t rows)
{
	struct exporting *x = ctx;
	struct export_stored stored;
	int r = put_close(x, &stored);
	if (r < 0)
		return r;
	json_put(x->table, "rows", json_integer((json_int_t)rows));
	json_put(x->table, "bytes", json_integer((json_int_t)stored.bytes));
	json_put(x->table, "storedBytes", json_integer((json_int_t)stored.stored));
	json_put_z(x->table, "sha256", stored.sha256);
	x->table = NULL;
	x->done++;
	int64_t now = clock_mono_us();
	if (now - x->told_us > TELL_US) {
		x->told_us = now;
		r = store_write_wait(x->run->store, counts_save, x);
		if (r == -ENOENT)
			snprintf(x->why, sizeof x->why, "%s", "the export is gone");
	}
	return r;
}

static int on_skip(void *ctx, const struct engine_table *table, const char *why)
{
	struct exporting *x = ctx;
	export_put_abort(x->put);
	x->put = NULL;
	if (!x->table)
		table_note(x, table);
	json_object_del(x->table, "object");
	json_put_z(x->table, "skipped", why);
	x->table = NULL;
	x->skipped++;
	return 0;
}

/* --- what tells about the tables */

static json_t *facts_make(const struct exporting *x)
{
	json_t *facts = json_object();
	json_put_str(facts, "exportId", x->export.doc.id);
	json_put_str(facts, "snapshotId", x->snapshot.doc.id);
	json_put_str(facts, "clusterName", json_field(x->export.plan, "clusterName"));
	json_put_time(facts, "snapshotAt", json_number(x->snapshot.plan, "at"));
	json_put_str(facts, "dbVersion", json_field(x->snapshot.body, "dbVersion"));
	return facts;
}

static int document_put(struct exporting *x, const char *name, const json_t *document, struct str *ret_text)
{
	struct str text = json_text(x->run->arena, document);
	if (ret_text)
		*ret_text = text;
	return objects_put_bytes(x->objects, object_name(x, name), text.p, text.n);
}

/* What the owner of the project's key at its key service needs to read the tables. */
static json_t *encryption_make(const struct exporting *x)
{
	const struct data_keys *keys = ((const struct service *)x->run->ctx)->data_keys;
	json_t *words = json_object(), *wrapped = NULL;
	char *text = NULL;
	json_put_z(words, "format", "SWX1");
	json_put_z(words, "keyId", x->key.id);
	json_put_str(words, "groupId", json_field(x->line.body, "groupId"));
	if (keys->wrapped &&
	    keys->wrapped(keys->ctx, json_field(x->line.body, "groupId"), str_of(x->key.id), &text) == 0)
		wrapped = json_loads(text, 0, NULL);
	if (wrapped)
		json_put(words, "key", wrapped);
	free(text);
	return words;
}

static int close_out(struct exporting *x)
{
	json_t *metadata = json_keep(x->run->arena, facts_make(x)), *manifest = json_keep(x->run->arena, facts_make(x));
	const json_t *custom = json_object_get(x->export.body, "customData");
	struct str text;
	char sha[65];
	json_put(metadata, "customData", custom ? json_deep_copy(custom) : json_array());
	json_put(manifest, "format", json_string("newline-separated JSON, gzip"));
	json_put(manifest, "tables", json_incref(x->tables));
	if (x->key.bytes)
		json_put(manifest, "encryption", encryption_make(x));
	int r = document_put(x, "metadata.json", metadata, NULL);
	if (r == 0)
		r = document_put(x, "manifest.json", manifest, &text);
	if (r == 0) {
		sha256_hex(text, sha);
		r = objects_put_bytes(x->objects, object_name(x, ".complete"), sha, 64);
	}
	if (r < 0)
		snprintf(x->why, sizeof x->why, "%s", objects_why());
	return bucket_result(x, r);
}

static int done_save(struct tx *tx, struct job_run *r)
{
	const struct exporting *done = r->save_ctx;
	struct exporting x;
	int result = exporting_load(tx, r, &x);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_put_z(x.export.body, "state", "Successful");
	json_put_time(x.export.body, "finishedAt", clock_now_ms());
	counts_put(x.export.body, done->done, done->done + done->skipped);
	if (done->skipped)
		json_put(x.export.body, "stateReason",
		         json_pack("{s:s, s:o}", "errorCode", "TABLES_SKIPPED", "message",
		                   json_sprintf("%zu could not be exported; manifest.json has them and the reasons.",
		                                done->skipped)));
	result = export_save(tx, r->arena, &x.export);
	if (result == 0)
		result = export_meter(tx, r->arena, &x.line, x.export.doc.id, done->tables);
	return result < 0 ? result
	                  : backup_event(tx, r->arena, "CPS_EXPORT_SUCCESSFUL", NULL, &x.line, "exportId",
	                                 x.export.doc.id);
}

int export_failed(struct tx *tx, struct job_run *r)
{
	struct exporting x;
	int result = exporting_load(tx, r, &x);
	if (result == 0)
		result = tx_jobs_forget(tx, r->job.subject, 0);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const char *why = r->why ? r->why : "the export could not be made";
	bool automatic = json_flag(x.export.plan, "automatic");
	log_error("export %.*s of cluster %.*s: %s", STR_ARG(x.export.doc.id), STR_ARG(x.export.doc.parent), why);
	json_put_z(x.export.body, "state", "Failed");
	json_put_time(x.export.body, "finishedAt", clock_now_ms());
	json_put(x.export.body, "stateReason", json_pack("{s:s, s:s}", "errorCode", "EXPORT_FAILED", "message", why));
	result = export_save(tx, r->arena, &x.export);
	return result < 0 ? result
	                  : backup_event(tx, r->arena, automatic ? "CPS_AUTO_EXPORT_FAILED" : "CPS_EXPORT_FAILED",
	                                 "WARNING", &x.line, "exportId", x.export.doc.id);
}

static int tables_export(struct exporting *x, struct engine_progress *p)
{
	const struct service *s = x->run->ctx;
	struct engine_source *of;
	size_t count = snapshot_sources(x->run->arena, &x->snapshot, &of);
	const struct engine_export to = {
	        .count = on_count, .begin = on_begin, .write = on_write, .end = on_end, .skip = on_skip, .ctx = x};
	const char *why = NULL;
	int r = bucket_open(s, x->run->arena, x->bucket, x->role, &x->objects, &why);
	if (r < 0) {
		x->run->why = why;
		return bucket_result(x, r);
	}
	x->told_us = clock_mono_us();
	for (size_t i = 0; i < count; i++) {
		r = s->engine_ops->backup->export(s->engine_state, &of[i], &to, p, x->run->arena, &why);
		export_put_abort(x->put);
		x->put = NULL;
		if (!source_is_bad(r) || json_array_size(x->tables)) /* which were brought back already */
			break;
	}
	if (r == 0)
		r = close_out(x);
	objects_close(x->objects);
	if (r == -EACCES && x->role) /* its keys may have been taken back before their time */
		provider_forget(s->providers, x->role->id);
	if (r < 0)
		x->run->why = x->why[0] ? arena_z(x->run->arena, str_of(x->why)) : why;
	return r;
}

/* Where the project has encryption at rest. */
static int key_get(struct exporting *x)
{
	const struct data_keys *keys = ((const struct service *)x->run->ctx)->data_keys;
	char why[DATA_KEY_WHY] = "";
	if (!keys)
		return 0;
	int r = keys->get(keys->ctx, json_field(x->line.body, "groupId"), (struct str){"", 0}, &x->key, why);
	if (r == 0 || r == -ENOENT)
		return 0;
	x->run->why = arena_printf(x->run->arena, "the project's key is out of reach: %s", why).p;
	return r == -EAGAIN ? -EBUSY : r;
}

int export_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct exporting *x = arena_calloc(r->arena, 1, sizeof *x);
	tx_begin_read(r->reader);
	int result = exporting_load(r->reader, r, x);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	r->why = !x->snapshot.body        ? "the snapshot is gone"
	         : !x->bucket             ? "the export bucket is gone"
	         : x->no_role             ? x->no_role
	         : !x->reached            ? "the bucket requires private networking, and no private endpoint is active"
	         : !s->engine_ops->backup ? "the engine in use exports nothing"
	                                  : NULL;
	if (r->why)
		return JOB_FAILED;
	if (export_is(&x->export, "Queued")) {
		r->save = begin_save;
		return JOB_STEP;
	}
	if (places_enter(&exports, x->org, x->project) < 0)
		return job_later(r, clock_now_ms() + BUSY_MS);
	x->run = r;
	x->tables = json_keep(r->arena, json_array());
	result = key_get(x);
	if (result == 0)
		result = tables_export(x, &p);
	data_key_free(&x->key);
	places_leave(&exports, x->org, x->project);
	if (result < 0 && x->away && clock_now_ms() - x->export.doc.created_ms < AWAY_MAX_MS) {
		log_warn("export %.*s waits for its bucket: %s", STR_ARG(x->export.doc.id),
		         r->why ? r->why : "it is away");
		return job_later(r, clock_now_ms() + AWAY_LOOK_MS);
	}
	if (result == -EAGAIN) {
		r->due_ms = p.again_ms;
		return JOB_LATER;
	}
	if (result < 0)
		return result;
	r->save = done_save;
	r->save_ctx = x;
	return JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = EXPORT_JOB,
         .step = export_step,
         .failed = export_failed,
         .attempts = 3,
         .lasts = JOB_IS_BACKGROUND,
         .moves = true},
};
const struct job_kinds exports_jobs = JOB_KINDS(kinds);
