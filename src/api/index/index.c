/* The call that asks for an index, and the job that builds it.
 *
 * Before its write the call asks the host that has the cluster whether the table and its columns are there, so that
 * what is wrong is told at once and by its field. The job is bound to that host; the builds of a cluster run one after
 * the other. While one is under way the cluster is UPDATING, and its plan lists it. When a build fails, which is an
 * event with the reason, another job takes away what it left, however long that has to wait. */
#include "api/index/index.h"

#include "api/index/wish.h"
#include "api/kit/verbs.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/workers.h"
#include "hosts/hosts.h"
#include "trail/events.h"

#include <errno.h>

#define BUILD_JOB "index_build"
#define CLEAN_JOB "index_clean"
#define BUILDS_MAX 20        /* of a cluster */
#define QUESTION_BYTES 4000u /* of a body that another host is asked about */
#define CLEAN_AGAIN_MS 5000
#define CLEAN_RARE_MS 300000
#define CLEAN_PAUSED_MS 60000
#define ATTEMPTS 10

static struct str subject_of(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "index/%.*s", STR_ARG(cluster_id));
}

/* Another one, because no build waits for what an earlier one has left. */
static struct str remains_of(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "index_remains/%.*s", STR_ARG(cluster_id));
}

/* --- the question whether it can be built */

struct verdict {
	int result; /* of check() */
	const char *field, *why;
};

static struct verdict check_here(const struct service *s, struct arena *a, struct str cluster_id, const json_t *body)
{
	struct faults faults = {.count = 0};
	struct engine_index want;
	struct verdict v = {.field = "", .why = ""};
	index_wish(a, body, &faults, &want);
	want.cluster_id = arena_z(a, cluster_id);
	want.id = "";
	v.result = s->engine_ops->index->check(s->engine_state, &want, a, &v.field, &v.why);
	return v;
}

/* "?cluster=ID&body=BASE64" */
void index_checked(struct service *s, struct request *r)
{
	struct str cluster, encoded, rest, name;
	struct verdict v = {.result = -EAGAIN, .field = "", .why = ""};
	char text[2 * QUESTION_BYTES];
	str_cut(r->query, '&', &cluster, &encoded);
	str_cut(cluster, '=', &name, &cluster);
	str_cut(encoded, '=', &name, &rest);
	ssize_t n = base64_decode(rest, text, sizeof text);
	json_t *body = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	if (body && id_is_valid(cluster) && s->engine_ops->index)
		v = check_here(s, r->arena, cluster, json_keep(r->arena, body));
	else
		json_decref(body);
	answer_value(r, 200,
	             json_pack("{s:i, s:s, s:s}", "result", v.result, "field", v.field ? v.field : "", "why",
	                       v.why ? v.why : ""));
	respond_here(r);
}

/* A body that is too long for a question is left to the job. */
static int check_there(struct call *c, const struct cluster *cluster, struct verdict *ret_verdict)
{
	struct str body = json_text(c->arena, c->body);
	*ret_verdict = (struct verdict){.result = 0};
	if (body.n > QUESTION_BYTES)
		return 0;
	char *encoded = arena_alloc(c->arena, BASE64_TEXT(body.n));
	base64url_encode(body.p, body.n, encoded);
	struct host_question q = {.host = cluster_host(cluster),
	                          .path = arena_printf(c->arena, INDEX_CHECKED "?cluster=%.*s&body=%s",
	                                               STR_ARG(cluster->doc.id), encoded)};
	tx_begin_read(c->tx);
	int r = hosts_ask(c, &q, 1);
	tx_end_read(c->tx);
	if (r < 0)
		return r;
	*ret_verdict = (struct verdict){.result = (int)json_number(q.answer, "result"),
	                                .field = arena_z(c->arena, json_field(q.answer, "field")),
	                                .why = arena_z(c->arena, json_field(q.answer, "why"))};
	return 0;
}

static int verdict_answer(struct call *c, const struct cluster *cluster, const struct verdict *v)
{
	if (v->result == -EEXIST)
		return call_fail_field(c, 409, "INDEX_ALREADY_EXISTS", v->field, "%s", v->why);
	if (v->result == -EINVAL)
		return call_fail_fault(c, str_of(v->field), "%s", v->why);
	if (v->result < 0)
		return call_fail_about(
		        c, 409, "CLUSTER_NOT_AVAILABLE", cluster->doc.name,
		        "The databases of the cluster \"%.*s\" do not answer now. Try again once it is IDLE.",
		        STR_ARG(cluster->doc.name));
	return 0;
}

static int refuse_state(struct call *c, const struct cluster *cluster)
{
	int r = cluster_refuse_deleting(c, cluster);
	if (r == 0)
		r = cluster_refuse_paused(c, cluster);
	if (r == 0 && json_object_get(cluster->plan, "restoring"))
		return call_fail_about(c, 409, "CLUSTER_RESTORE_IN_PROGRESS", cluster->doc.name,
		                       "The cluster \"%.*s\" is being restored.", STR_ARG(cluster->doc.name));
	if (r == 0 && json_array_size(json_object_get(cluster->plan, "indexing")) >= BUILDS_MAX)
		return call_fail_about(c, 409, "TOO_MANY_INDEX_BUILDS", cluster->doc.name,
		                       "The cluster \"%.*s\" has %d indexes that are still to be built. Wait for them.",
		                       STR_ARG(cluster->doc.name), BUILDS_MAX);
	return r;
}

static int index_check(struct call *c)
{
	struct cluster cluster;
	struct verdict v;
	tx_begin_read(c->tx);
	int r = cluster_load(c, &cluster);
	tx_end_read(c->tx);
	if (r == 0)
		r = refuse_state(c, &cluster);
	if (r < 0)
		return r;
	if (host_is_elsewhere(cluster_host(&cluster)))
		r = check_there(c, &cluster, &v);
	else
		v = check_here(c->service, c->arena, cluster.doc.id, c->body);
	return r < 0 ? r : verdict_answer(c, &cluster, &v);
}

int index_prepare(struct call *c)
{
	struct faults faults = {.count = 0};
	struct engine_index want;
	if (!c->service->engine_ops->index)
		return cluster_not_offered(c);
	index_wish(c->arena, c->body, &faults, &want);
	if (faults.count)
		return call_fail_faults(c, &faults);
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	int r = index_check(c);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* --- the call */

int index_create(struct call *c)
{
	struct str id = id_make(c->arena);
	struct cluster cluster;
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = refuse_state(c, &cluster);
	if (r < 0)
		return r;
	json_add_str(json_default(cluster.plan, "indexing", json_array()), id);
	if (cluster_is(&cluster, "IDLE"))
		json_put_z(cluster.body, "stateName", "UPDATING");
	json_t *args = json_new(c->arena);
	json_put_str(args, "id", id);
	json_put_z(args, "by", c->caller ? c->caller->name : "");
	json_put(args, "body", json_deep_copy(c->body));
	struct job job = {.kind = STR(BUILD_JOB),
	                  .subject = subject_of(c->arena, cluster.doc.id),
	                  .host = cluster_host(&cluster),
	                  .args = json_text(c->arena, args),
	                  .tenant = c->org.id,
	                  .due_ms = clock_now_ms()};
	r = cluster_save(c->tx, c->arena, &cluster);
	return r < 0 ? r : tx_job_add(c->tx, &job);
}

/* --- the jobs */

/* What a job is about. */
struct build {
	struct cluster cluster;
	struct engine_index want;
};

static struct str cluster_id_of(const struct job_run *r)
{
	struct str cluster, rest;
	str_cut(r->job.subject, '/', &rest, &cluster);
	return cluster;
}

/* 1: the cluster is paused. -ENOENT: it is gone, or going. */
static int build_load(struct job_run *r, struct build *b)
{
	const struct service *s = r->ctx;
	const json_t *args = doc_json(r->arena, r->job.args);
	struct faults faults = {.count = 0};
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, cluster_id_of(r), &b->cluster);
	job_read_end(r);
	if (result < 0)
		return result;
	index_wish(r->arena, json_object_get(args, "body"), &faults, &b->want);
	b->want.cluster_id = arena_z(r->arena, b->cluster.doc.id);
	b->want.id = arena_z(r->arena, json_field(args, "id"));
	b->want.wait_seconds = s->index_wait_seconds;
	if (cluster_is(&b->cluster, "DELETING"))
		return -ENOENT;
	return json_flag(b->cluster.body, "paused");
}

/* The cluster is IDLE again, unless there is more to do. */
static int indexing_end(struct tx *tx, struct arena *a, struct cluster *cluster, struct str id)
{
	json_t *list = json_object_get(cluster->plan, "indexing");
	for (size_t i = json_array_size(list); i-- > 0;)
		if (str_eq(json_item(list, i), id))
			json_array_remove(list, i);
	if (!json_array_size(list))
		json_object_del(cluster->plan, "indexing");
	if (cluster_is(cluster, "UPDATING") && !cluster_is_worked_on(cluster) &&
	    json_equal(json_object_get(cluster->plan, "generation"), json_object_get(cluster->plan, "applied")))
		json_put_z(cluster->body, "stateName", "IDLE");
	return cluster_save(tx, a, cluster);
}

/* 1: the cluster is gone, and nothing is to be told. */
static int end_save(struct tx *tx, struct job_run *r, const char *why)
{
	const json_t *args = doc_json(r->arena, r->job.args), *body = json_object_get(args, "body");
	struct faults faults = {.count = 0};
	struct engine_index want;
	struct cluster cluster;
	int result = cluster_get(tx, r->arena, cluster_id_of(r), &cluster);
	if (result < 0)
		return result == -ENOENT ? 1 : result;
	index_wish(r->arena, body, &faults, &want);
	struct event_detail details[] = {
	        {.name = "index", .text = str_of(want.name)},
	        {.name = "namespace", .text = arena_printf(r->arena, "%s.%s", want.database, want.table)},
	        {.name = "requestedBy", .text = json_field(args, "by")},
	        {.name = "reason", .text = str_of(why)}};
	result = indexing_end(tx, r->arena, &cluster, json_field(args, "id"));
	if (result < 0)
		return result;
	return event_service_about(tx, r->arena,
	                           why ? "ROLLING_INDEX_FAILED_INDEX_BUILD" : "ROLLING_INDEX_SUCCESS_INDEX_BUILD",
	                           &(struct event_about){.group_id = cluster.doc.parent,
	                                                 .cluster = cluster.doc.name,
	                                                 .severity = why ? "WARNING" : NULL,
	                                                 .details = details,
	                                                 .detail_count = why ? 4 : 3});
}

static int done_save(struct tx *tx, struct job_run *r)
{
	int result = end_save(tx, r, NULL);
	return result < 0 ? result : 0;
}

static int build_failed(struct tx *tx, struct job_run *r)
{
	struct job clean = {.kind = STR(CLEAN_JOB),
	                    .subject = remains_of(r->arena, cluster_id_of(r)),
	                    .host = r->job.host,
	                    .args = r->job.args,
	                    .tenant = r->job.tenant,
	                    .due_ms = clock_now_ms()};
	int result = tx_jobs_forget(tx, r->job.subject, 0);
	if (result == 0)
		result = end_save(tx, r, r->why ? r->why : "the index could not be built");
	if (result != 0)
		return result < 0 ? result : 0;
	return tx_job_add(tx, &clean);
}

static int build_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct build b;
	int result = build_load(r, &b);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	if (result > 0 || !s->engine_ops->index) {
		r->why = result > 0 ? "the cluster was paused" : "the engine in use builds no indexes";
		return JOB_FAILED;
	}
	b.want.most_seconds = s->index_limit_seconds;
	result = s->engine_ops->index->build(s->engine_state, &b.want, &p, r->arena, &r->why);
	if (result == -EAGAIN) {
		r->due_ms = p.again_ms;
		return JOB_LATER;
	}
	if (result == -EINVAL)
		return JOB_FAILED;
	if (result < 0)
		return result;
	r->save = done_save;
	return JOB_DONE;
}

/* Tried until it is done: somebody's transaction can keep it from that for as long as it lasts. Each try may wait for a
 * minute, so the longer it lasts the rarer they are: others need the worker. */
static int clean_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct build b;
	int result = build_load(r, &b);
	if (result == -ENOENT || !s->engine_ops->index)
		return JOB_DONE;
	if (result == 0)
		result = s->engine_ops->index->clean(s->engine_state, &b.want, r->arena, &r->why);
	if (result == 0)
		return JOB_DONE;
	log_debug("index %s of cluster %s: what is left of it waits: %s", b.want.id, b.want.cluster_id,
	          r->why ? r->why : "the cluster does not run");
	int64_t now = clock_now_ms(), pause = (now - r->job.created_ms) / 4;
	pause = pause < CLEAN_AGAIN_MS ? CLEAN_AGAIN_MS : pause > CLEAN_RARE_MS ? CLEAN_RARE_MS : pause;
	r->due_ms = now + (result > 0 ? CLEAN_PAUSED_MS : pause);
	return JOB_LATER;
}

static const struct job_kind kinds[] = {
        {.name = BUILD_JOB,
         .step = build_step,
         .failed = build_failed,
         .attempts = ATTEMPTS,
         .only_rises = true,
         .lasts = JOB_IS_BACKGROUND},
        {.name = CLEAN_JOB, .step = clean_step, .attempts = ATTEMPTS, .lasts = JOB_IS_BACKGROUND},
};
const struct job_kinds index_jobs = JOB_KINDS(kinds);

/* --- what it has to do with clusters */

static int removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct str subject = subject_of(a, cluster->doc.id);
	int r = tx_jobs_cancel(tx, BUILD_JOB, subject);
	return r < 0 ? r : tx_jobs_cancel(tx, CLEAN_JOB, remains_of(a, cluster->doc.id));
}

/* How far it is, while nothing else is done to the cluster. */
static void progress_add(struct call *c, const struct doc *d)
{
	struct job job;
	/* Most plans do not even contain the word. */
	if (c->op->writes || !memmem(d->secret.p, d->secret.n, "\"indexing\"", strlen("\"indexing\"")) ||
	    !json_object_get(doc_json(c->arena, d->secret), "indexing") ||
	    tx_job_of(c->tx, c->arena, d->id, &job) != -ENOENT)
		return;
	if (tx_job_find(c->tx, c->arena, BUILD_JOB, subject_of(c->arena, d->id), &job) == 0 && !job.failed)
		call_header(c, STR("x-steward-progress"), job.progress.n ? job.progress : STR("0% waiting"));
}

const struct cluster_part index_part = {.removed = removed, .links = progress_add};
