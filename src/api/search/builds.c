/* The jobs of search indexes, on the host that has the cluster.
 *
 * A build is done by the builder of all indexes (engine/index.h), under its id, beside the index that answers queries.
 * In the database both change places in one step; then the document says so, and another job drops the old one. The
 * builds of a cluster, of whatever index, run one after the other; the deletion of an index waits for its own. However
 * often an index is changed, it has one build under way and one that waits, which takes the newest definition.
 *
 * While a cluster has search indexes, each is looked at every few seconds: an index whose table or column was dropped
 * answers no more queries, and is built anew when it can be; so is one that its table has outgrown, beside itself. */
#include "api/search/builds.h"

#include "api/search/nodes.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>

#define BUILD_JOB "search_build"
#define DROP_JOB "search_drop"
#define LOOK_JOB "search_look"
#define WATCH_MS 10000
#define DROP_AGAIN_MS 5000
#define PAUSED_MS 60000
#define REBUILD_MS 600000
#define STRAYS_MS 60000
#define COUNT_US 20000000 /* of one look: others wait for its worker */
#define ATTEMPTS 10

/* The same as of other indexes: one after the other. */
static struct str work_of(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "index/%.*s", STR_ARG(cluster_id));
}

/* Another one, because no build waits for what an earlier one has left. */
static struct str remains_of(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "search_remains/%.*s", STR_ARG(cluster_id));
}

static struct str watch_of(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "search/%.*s", STR_ARG(cluster_id));
}

static struct str cluster_id_of(const struct job_run *r)
{
	struct str cluster, rest;
	str_cut(r->job.subject, '/', &rest, &cluster);
	return cluster;
}

void search_want_make(struct arena *a, struct str cluster_id, const json_t *about, const json_t *build,
                      struct search_want *ret_want)
{
	struct search_want *w = ret_want;
	const char *id = arena_z(a, json_field(build, "id"));
	struct str definition = json_text(a, json_object_get(build, "definition"));
	*w = (struct search_want){.search = {.id = arena_z(a, json_field(about, "indexID")),
	                                     .name = arena_z(a, json_field(about, "name")),
	                                     .definition = arena_z(a, definition),
	                                     .place = "definition.",
	                                     .vectors = str_is(json_field(about, "type"), "vectorSearch")},
	                          .index = {.cluster_id = arena_z(a, cluster_id),
	                                    .id = id,
	                                    .database = arena_z(a, json_field(about, "database")),
	                                    .table = arena_z(a, json_field(about, "collectionName")),
	                                    .name = arena_printf(a, "steward_search_%s", id).p}};
	w->index.search = &w->search;
}

static json_t *args_make(struct arena *a, struct str index_id, struct str build_id)
{
	json_t *args = json_new(a);
	json_put_str(args, "index", index_id);
	json_put_str(args, "build", build_id);
	return args;
}

static int job_ask(struct tx *tx, struct arena *a, const char *kind, const struct cluster *cluster, const json_t *args)
{
	struct job job = {.kind = str_of(kind),
	                  .subject = strcmp(kind, BUILD_JOB) == 0 ? work_of(a, cluster->doc.id)
	                                                          : remains_of(a, cluster->doc.id),
	                  .host = cluster_host(cluster),
	                  .args = json_text(a, args),
	                  .tenant = cluster->doc.parent,
	                  .due_ms = clock_now_ms()};
	return tx_job_add(tx, &job);
}

static int watch_ensure(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct job watch = {.kind = STR(LOOK_JOB),
	                    .subject = watch_of(a, cluster->doc.id),
	                    .host = cluster_host(cluster),
	                    .tenant = cluster->doc.parent,
	                    .due_ms = clock_now_ms() + WATCH_MS};
	return tx_job_ensure(tx, &watch);
}

static bool is_waiting(const json_t *staged)
{
	return str_is(json_field(staged, "status"), "PENDING");
}

static void latest_take(json_t *staged, const json_t *body)
{
	json_put(staged, "definition", json_deep_copy(json_object_get(body, "latestDefinition")));
	json_put(staged, "definitionVersion", json_deep_copy(json_object_get(body, "latestDefinitionVersion")));
}

int search_build_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct str index_id, json_t *body)
{
	json_t *staged = json_object_get(body, "staged");
	if (staged && is_waiting(staged)) {
		latest_take(staged, body);
		return 0;
	}
	staged = json_object();
	struct str id = id_make(a);
	json_put_str(staged, "id", id);
	latest_take(staged, body);
	json_put_z(staged, "status", "PENDING");
	json_put(body, "staged", staged);
	int r = watch_ensure(tx, a, cluster);
	return r < 0 ? r : job_ask(tx, a, BUILD_JOB, cluster, args_make(a, index_id, id));
}

int search_delete_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct doc *d)
{
	json_t *body = doc_json(a, d->body);
	if (json_flag(body, "deleting"))
		return 0;
	json_put(body, "deleting", json_true());
	d->body = json_text(a, body);
	int r = tx_update(tx, d);
	return r < 0 ? r : job_ask(tx, a, DROP_JOB, cluster, args_make(a, d->id, STR_NONE));
}

struct str search_progress(struct tx *tx, struct arena *a, struct str cluster_id, const json_t *staged)
{
	struct job job;
	if (tx_job_find(tx, a, BUILD_JOB, work_of(a, cluster_id), &job) < 0 || job.failed ||
	    !str_eq(json_field(doc_json(a, job.args), "build"), json_field(staged, "id")))
		return STR_NONE;
	return job.progress;
}

/* --- what a job is about */

struct work {
	struct cluster cluster;
	struct doc doc;
	json_t *body;
	struct str index_id, build_id;
};

/* 1: the cluster is paused. -ENOENT: the cluster or the index is gone, or the cluster is going. What a job has to know
 * of its index when that is gone is in its arguments ("about"). */
static int work_load(struct job_run *r, struct work *w)
{
	const json_t *args = doc_json(r->arena, r->job.args);
	w->index_id = json_field(args, "index");
	w->build_id = json_field(args, "build");
	const json_t *about = json_object_get(args, "about");
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, cluster_id_of(r), &w->cluster), there = result;
	if (result == 0)
		there = tx_get(r->reader, r->arena, SEARCH_INDEX_KIND, w->index_id, &w->doc);
	job_read_end(r);
	if (there < 0 && (there != -ENOENT || result < 0 || !about))
		return there;
	w->body = there == 0 ? doc_json(r->arena, w->doc.body) : json_clone(r->arena, about);
	if (cluster_is(&w->cluster, "DELETING"))
		return -ENOENT;
	return json_flag(w->cluster.body, "paused");
}

/* The same in a write. */
static int work_again(struct tx *tx, struct job_run *r, struct work *w)
{
	const json_t *args = doc_json(r->arena, r->job.args);
	w->index_id = json_field(args, "index");
	w->build_id = json_field(args, "build");
	int result = cluster_get(tx, r->arena, cluster_id_of(r), &w->cluster);
	if (result == 0)
		result = tx_get(tx, r->arena, SEARCH_INDEX_KIND, w->index_id, &w->doc);
	if (result == 0)
		w->body = doc_json(r->arena, w->doc.body);
	return result;
}

static int work_save(struct tx *tx, struct job_run *r, struct work *w)
{
	w->doc.body = json_text(r->arena, w->body);
	return tx_update(tx, &w->doc);
}

/* Of a document as it is now: the staged build, where it is the job's. */
static json_t *staged_of(const struct work *w)
{
	json_t *staged = json_object_get(w->body, "staged");
	return staged && str_eq(json_field(staged, "id"), w->build_id) ? staged : NULL;
}

/* What a build made or left is dropped also when its index is deleted before: then the document is gone. */
static int drop_ask(struct tx *tx, struct job_run *r, const struct work *w, struct str build_id)
{
	static const char *const names[] = {"indexID", "name", "database", "collectionName", "type"};
	json_t *args = args_make(r->arena, w->index_id, build_id), *about = json_object();
	json_copy_fields(about, w->body, names, sizeof names / sizeof *names);
	json_put(args, "about", about);
	return job_ask(tx, r->arena, DROP_JOB, &w->cluster, args);
}

static int event_tell(struct tx *tx, struct job_run *r, const struct work *w, const char *type, const char *why)
{
	struct event_detail details[] = {
	        {.name = "index", .text = json_field(w->body, "name")},
	        {.name = "namespace",
	         .text = arena_printf(r->arena, "%.*s.%.*s", STR_ARG(json_field(w->body, "database")),
	                              STR_ARG(json_field(w->body, "collectionName")))},
	        {.name = "reason", .text = str_of(why)}};
	return event_service_about(tx, r->arena, type,
	                           &(struct event_about){.group_id = w->cluster.doc.parent,
	                                                 .cluster = w->cluster.doc.name,
	                                                 .severity = why ? "WARNING" : NULL,
	                                                 .details = details,
	                                                 .detail_count = why ? 3 : 2});
}

/* --- building */

/* What the job has taken is what it builds, unless a newer definition came between: then it takes that. */
static int begun_save(struct tx *tx, struct job_run *r)
{
	struct work w;
	int result = work_again(tx, r, &w);
	json_t *staged = result == 0 ? staged_of(&w) : NULL;
	if (!staged || !json_equal(staged, json_object_get(doc_json(r->arena, r->job.args), "made")))
		return result == -ENOENT ? 0 : result;
	json_put_z(staged, "status", "BUILDING");
	return work_save(tx, r, &w);
}

/* A build that waits has the newest definition in its document. From its first step on the job has its own copy, which
 * it goes on with to the end, whatever becomes of the document. */
static int build_begin(struct job_run *r, const json_t *staged)
{
	json_t *args = json_clone(r->arena, doc_json(r->arena, r->job.args));
	json_put(args, "made", json_deep_copy(staged));
	r->job.args = json_text(r->arena, args);
	r->save = begun_save;
	return JOB_STEP;
}

/* The build takes the place of the one before, which is dropped then; also when another definition waits by now. */
static int built_save(struct tx *tx, struct job_run *r)
{
	struct work w;
	int result = work_again(tx, r, &w);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	struct str before = json_field(json_object_get(w.body, "main"), "id");
	if (before.n)
		result = drop_ask(tx, r, &w, before);
	json_t *built = json_clone(r->arena, json_object_get(doc_json(r->arena, r->job.args), "made"));
	json_put_z(built, "status", "READY");
	json_object_set(w.body, "main", built);
	if (staged_of(&w))
		json_object_del(w.body, "staged");
	if (result == 0)
		result = work_save(tx, r, &w);
	return result < 0 ? result : event_tell(tx, r, &w, "FTS_INDEX_BUILD_COMPLETE", NULL);
}

static int build_failed(struct tx *tx, struct job_run *r)
{
	struct work w;
	int result = tx_jobs_forget(tx, r->job.subject, 0);
	if (result == 0)
		result = work_again(tx, r, &w);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const char *why = r->why ? r->why : "the index could not be built";
	json_t *staged = staged_of(&w);
	result = drop_ask(tx, r, &w, w.build_id);
	if (result < 0 || !staged)
		return result;
	json_put_z(staged, "status", "FAILED");
	json_put_z(staged, "message", why);
	json_put(staged, "failedMs", json_integer(clock_now_ms()));
	result = work_save(tx, r, &w);
	return result < 0 ? result : event_tell(tx, r, &w, "FTS_INDEX_BUILD_FAILED", why);
}

static int build_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct search_want want;
	struct work w;
	int result = work_load(r, &w);
	if (result == -ENOENT || (result >= 0 && !s->engine_ops->index))
		return JOB_DONE;
	if (result < 0)
		return result;
	if (result > 0)
		return job_later(r, clock_now_ms() + PAUSED_MS);
	const json_t *staged = staged_of(&w);
	const json_t *made = json_object_get(doc_json(r->arena, r->job.args), "made");
	/* One that nobody wants any more is not begun; one that was begun goes on to its end. */
	if ((!staged || json_flag(w.body, "deleting")) && !made)
		return JOB_DONE;
	if (staged && is_waiting(staged))
		return build_begin(r, staged);
	search_want_make(r->arena, w.cluster.doc.id, w.body, made, &want);
	want.index.wait_seconds = s->index_wait_seconds;
	want.index.most_seconds = s->index_limit_seconds;
	result = s->engine_ops->index->build(s->engine_state, &want.index, &p, r->arena, &r->why);
	if (result == -EAGAIN)
		return job_later(r, p.again_ms);
	if (result < 0)
		return result == -EINVAL ? JOB_FAILED : result;
	r->save = built_save;
	return JOB_DONE;
}

/* --- dropping */

/* A deleted index is gone; its name is free. */
static int dropped_save(struct tx *tx, struct job_run *r)
{
	struct work w;
	int result = work_again(tx, r, &w);
	if (result == 0 && !w.build_id.n && json_flag(w.body, "deleting"))
		return tx_delete(tx, SEARCH_INDEX_KIND, w.index_id);
	return result == -ENOENT ? 0 : result;
}

static int build_drop(struct job_run *r, const struct work *w, struct str id)
{
	const struct service *s = r->ctx;
	struct search_want want;
	json_t *build = json_new(r->arena);
	if (!id.n)
		return 0;
	json_put_str(build, "id", id);
	json_put(build, "definition", json_object());
	search_want_make(r->arena, w->cluster.doc.id, w->body, build, &want);
	want.index.wait_seconds = s->index_wait_seconds;
	return s->engine_ops->index->drop(s->engine_state, &want.index, r->arena, &r->why);
}

/* Whether a build of the index is under way: what it makes could not be found yet. */
static bool is_building(struct job_run *r, const struct work *w)
{
	struct job job;
	tx_begin_read(r->reader);
	int result = tx_job_find(r->reader, r->arena, BUILD_JOB, work_of(r->arena, w->cluster.doc.id), &job);
	job_read_end(r);
	return result == 0 && !job.failed && str_eq(json_field(doc_json(r->arena, job.args), "index"), w->index_id);
}

/* Tried until it is done, as is what builds leave (api/index). */
static int drop_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct work w;
	int result = work_load(r, &w);
	if (result == -ENOENT || (result >= 0 && !s->engine_ops->index))
		return JOB_DONE;
	if (result < 0)
		return result;
	if (result > 0)
		return job_later(r, clock_now_ms() + PAUSED_MS);
	if (!w.build_id.n && is_building(r, &w))
		return job_later(r, clock_now_ms() + DROP_AGAIN_MS);
	if (w.build_id.n)
		result = build_drop(r, &w, w.build_id);
	else
		result = build_drop(r, &w, json_field(json_object_get(w.body, "staged"), "id"));
	if (result == 0 && !w.build_id.n)
		result = build_drop(r, &w, json_field(json_object_get(w.body, "main"), "id"));
	if (result < 0) {
		log_debug("search index %.*s: what is left of it waits: %s", STR_ARG(w.index_id),
		          r->why ? r->why : "the cluster does not run");
		return job_later(r, clock_now_ms() + DROP_AGAIN_MS);
	}
	r->save = dropped_save;
	return JOB_DONE;
}

/* --- watching */

/* What was seen of one index: its main build answers queries, or why it does not. */
struct sight {
	struct str index_id, build_id;
	const char *status, *why;
	bool outgrown;
};
struct sights {
	struct sight list[SEARCH_INDEXES_MAX];
	size_t count;
	int64_t count_until_us; /* the machine's clock: after that no index's words are counted any more */
};

/* NULL: the database does not answer now. */
static const char *status_of(const struct service *s, struct arena *a, const struct search_want *want,
                             bool *ret_outgrown, const char **ret_why)
{
	const struct engine_index_ops *ops = s->engine_ops->index;
	const char *field = "";
	int there = ops->look(s->engine_state, &want->index, a);
	*ret_outgrown = there == INDEX_OUTGROWN;
	if (there != 0)
		return there > 0 ? "READY" : NULL;
	int r = ops->check(s->engine_state, &want->index, a, &field, ret_why);
	if (r == 0)
		*ret_why = "the index is gone, and is built again";
	if (r < 0 && r != -EINVAL)
		return NULL;
	bool table = strcmp(field, "collection") == 0 || strcmp(field, "db") == 0;
	return r < 0 && table ? "DOES_NOT_EXIST" : "STALE";
}

static void index_look(struct job_run *r, struct str cluster_id, const struct doc *d, struct sights *sights)
{
	const json_t *body = doc_json(r->arena, d->body), *main_build = json_object_get(body, "main");
	struct sight *sight = &sights->list[sights->count];
	struct search_want want;
	if (!main_build || json_flag(body, "deleting") || sights->count == SEARCH_INDEXES_MAX)
		return;
	search_want_make(r->arena, cluster_id, body, main_build, &want);
	*sight = (struct sight){.index_id = d->id, .build_id = json_field(main_build, "id"), .why = NULL};
	sight->status = status_of(r->ctx, r->arena, &want, &sight->outgrown, &sight->why);
	const struct service *s = r->ctx;
	if (sight->status && strcmp(sight->status, "READY") == 0 && s->engine_ops->index->count &&
	    clock_mono_us() < sights->count_until_us &&
	    s->engine_ops->index->count(s->engine_state, &want.index, job_stop(r), r->arena) == -EAGAIN)
		log_debug("search index %.*s: its words are counted later", STR_ARG(d->id));
	bool gone = sight->status && strcmp(sight->status, "READY") != 0;
	if (sight->status && (gone || sight->outgrown || !str_is(json_field(main_build, "status"), sight->status)))
		sights->count++;
}

/* Nothing is built or waits for it. A build that failed was not the last: what it failed for may pass. */
static bool is_free(const json_t *body)
{
	const json_t *staged = json_object_get(body, "staged");
	return !staged || (str_is(json_field(staged, "status"), "FAILED") &&
	                   clock_now_ms() - json_number(staged, "failedMs") >= REBUILD_MS);
}

/* In the write: the document says what was seen, and what can be built again is. */
static int sight_save(struct tx *tx, struct job_run *r, const struct cluster *cluster, const struct sight *sight)
{
	struct work w = {.cluster = *cluster, .index_id = sight->index_id};
	int result = tx_get(tx, r->arena, SEARCH_INDEX_KIND, sight->index_id, &w.doc);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	w.body = doc_json(r->arena, w.doc.body);
	json_t *main_build = json_object_get(w.body, "main");
	if (!main_build || !str_eq(json_field(main_build, "id"), sight->build_id) || json_flag(w.body, "deleting"))
		return 0;
	bool known = str_is(json_field(main_build, "status"), sight->status);
	bool lost = strcmp(sight->status, "STALE") == 0 && sight->why &&
	            strcmp(sight->why, "the index is gone, and is built again") == 0;
	bool again = (lost || sight->outgrown) && is_free(w.body);
	if (known && !again && str_is(json_field(main_build, "message"), sight->why ? sight->why : ""))
		return 0;
	json_put_z(main_build, "status", sight->status);
	json_object_del(main_build, "message");
	if (sight->why)
		json_put_z(main_build, "message", sight->why);
	if (again)
		result = search_build_ask(tx, r->arena, cluster, sight->index_id, w.body);
	if (result == 0)
		result = work_save(tx, r, &w);
	bool stale = !known && strcmp(sight->status, "READY") != 0;
	return result < 0 || !stale ? result : event_tell(tx, r, &w, "FTS_INDEX_STALE", sight->why);
}

static int sights_save(struct tx *tx, struct job_run *r)
{
	const struct sights *sights = r->save_ctx;
	struct cluster cluster;
	int result = cluster_get(tx, r->arena, cluster_id_of(r), &cluster);
	for (size_t i = 0; result == 0 && i < sights->count; i++)
		result = sight_save(tx, r, &cluster, &sights->list[i]);
	return result == -ENOENT ? 0 : result;
}

/* --- what a restore brings back */

/* Of any index, whoever asked for it: what was found before may be what it is at. */
static bool is_worked_on(struct job_run *r, struct str cluster_id)
{
	struct job job;
	tx_begin_read(r->reader);
	int result = tx_job_of(r->reader, r->arena, work_of(r->arena, cluster_id), &job);
	job_read_end(r);
	return result != -ENOENT && (result < 0 || !job.failed);
}

static int stray_drop(struct job_run *r, struct str cluster_id, const struct engine_index_stray *stray)
{
	const struct service *s = r->ctx;
	const struct engine_index_ops *ops = s->engine_ops->index;
	struct engine_search search = {.id = "", .name = "", .definition = "{}", .place = ""};
	struct engine_index want = {.cluster_id = arena_z(r->arena, cluster_id),
	                            .id = stray->id,
	                            .database = stray->database,
	                            .table = "",
	                            .name = arena_printf(r->arena, "steward_search_%s", stray->id).p,
	                            .search = &search,
	                            .wait_seconds = s->index_wait_seconds};
	const char *why = NULL;
	int result = (stray->built ? ops->drop : ops->clean)(s->engine_state, &want, r->arena, &why);
	if (result < 0)
		log_debug("cluster %s: an index that is nobody's stays for now: %s", want.cluster_id, why ? why : "");
	return result;
}

/* A snapshot that was taken in the middle of a build has its index, and one that is older has those that were replaced
 * since. What cannot be dropped now is tried again with the next look. */
static int strays_drop(struct job_run *r, struct str cluster_id)
{
	const struct service *s = r->ctx;
	struct engine_index_strays *found = arena_new_array(r->arena, struct engine_index_strays, 1);
	if (!s->engine_ops->index->strays)
		return 0;
	int result = s->engine_ops->index->strays(s->engine_state, arena_z(r->arena, cluster_id), r->arena, found);
	if (result < 0 || !found->count || is_worked_on(r, cluster_id))
		return result;
	for (size_t i = 0; result == 0 && i < found->count; i++)
		result = stray_drop(r, cluster_id, &found->list[i]);
	return result;
}

/* All databases are looked through at times, and when something has happened to an index. */
static void strays_look(struct job_run *r, struct str cluster_id, bool at_once)
{
	json_t *args = json_clone(r->arena, doc_json(r->arena, r->job.args));
	if (!at_once && clock_now_ms() - json_number(args, "strays") < STRAYS_MS)
		return;
	if (strays_drop(r, cluster_id) < 0)
		return;
	json_put(args, "strays", json_integer(clock_now_ms()));
	r->job.args = json_text(r->arena, args);
}

/* Of a cluster without indexes: what is left of those that it had. */
static int last_look(struct job_run *r, const struct cluster *cluster)
{
	if (json_flag(cluster->body, "paused") || strays_drop(r, cluster->doc.id) == 0)
		return JOB_DONE;
	return job_later(r, clock_now_ms() + WATCH_MS);
}

static int look_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct sights *sights = arena_new_array(r->arena, struct sights, 1);
	struct cluster cluster;
	struct doc *docs;
	size_t count = 0;
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, cluster_id_of(r), &cluster);
	if (result == 0)
		result = tx_list_all(r->reader, r->arena, SEARCH_INDEX_KIND, cluster.doc.id, &docs, &count);
	job_read_end(r);
	if (result == -ENOENT || (result == 0 && (cluster_is(&cluster, "DELETING") || !s->engine_ops->index)))
		return JOB_DONE;
	if (result < 0)
		return result;
	if (!count)
		return last_look(r, &cluster);
	*sights = (struct sights){.count_until_us = clock_mono_us() + COUNT_US};
	/* Each time from another one on, so that in the end all are counted. */
	size_t from = (size_t)(clock_now_ms() / WATCH_MS) % count;
	for (size_t i = 0; i < count && !json_flag(cluster.body, "paused"); i++)
		index_look(r, cluster.doc.id, &docs[(from + i) % count], sights);
	if (!json_flag(cluster.body, "paused"))
		strays_look(r, cluster.doc.id, sights->count > 0);
	r->save = sights->count ? sights_save : NULL;
	r->save_ctx = sights;
	return job_later(r, clock_now_ms() + WATCH_MS);
}

static const struct job_kind kinds[] = {
        {.name = BUILD_JOB,
         .step = build_step,
         .failed = build_failed,
         .attempts = ATTEMPTS,
         .only_rises = true,
         .lasts = JOB_IS_BACKGROUND},
        {.name = DROP_JOB, .step = drop_step, .attempts = ATTEMPTS, .lasts = JOB_IS_BACKGROUND},
        {.name = LOOK_JOB, .step = look_step, .attempts = UINT32_MAX, .lasts = JOB_IS_BACKGROUND},
};
const struct job_kinds search_jobs = JOB_KINDS(kinds);

static int removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct str subject = work_of(a, cluster->doc.id);
	int r = tx_jobs_cancel(tx, BUILD_JOB, subject);
	if (r == 0)
		r = tx_jobs_cancel(tx, DROP_JOB, remains_of(a, cluster->doc.id));
	return r < 0 ? r : tx_jobs_cancel(tx, LOOK_JOB, watch_of(a, cluster->doc.id));
}

/* A cluster that was restored is looked through, also when it has no index: its data is another's (api/restores). */
static int changed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	bool restored = json_object_get(cluster->plan, "incarnation") && !json_object_get(cluster->plan, "made");
	return restored && !cluster_is(cluster, "DELETING") ? watch_ensure(tx, a, cluster) : 0;
}

const struct cluster_part search_part = {.changed = changed, .removed = removed, .links = search_nodes_link};
