/* Loads of the sample data set: a document to look at, and a job that does it. */
#include "api/clusters/samples.h"

#include "api/clusters/cluster.h"
#include "api/clusters/jobs.h"
#include "api/clusters/refuse.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "trail/events.h"

#include <errno.h>

#define SAMPLE_KIND "sample_load"

void sample_link(struct call *c, const struct doc *cluster)
{
	struct doc d;
	if (doc_last(c->tx, c->arena, SAMPLE_KIND, cluster->id, &d) == 0)
		entity_link_op(c, "sampleDatasetLoad", catalog_op("getSampleDatasetLoad"), "sampleDatasetId", d.id);
}

/* Whether the last load of the cluster is under way. */
static int refuse_busy(struct call *c, const struct cluster *cluster)
{
	struct doc d;
	int result = doc_last(c->tx, c->arena, SAMPLE_KIND, cluster->doc.id, &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (!str_is(json_field(doc_json(c->arena, d.body), "state"), "WORKING"))
		return 0;
	return call_fail_about(c, 409, "SAMPLE_DATASET_LOAD_IN_PROGRESS", d.id,
	                       "The cluster \"%.*s\" is being loaded already.", STR_ARG(cluster->doc.name));
}

int clusters_load_sample(struct call *c)
{
	struct cluster cluster;
	int result = cluster_load_named(c, call_path(c, "name"), &cluster);
	if (result == 0)
		result = cluster_refuse_deleting(c, &cluster);
	if (result == 0)
		result = cluster_refuse_paused(c, &cluster);
	if (result == 0)
		result = refuse_busy(c, &cluster);
	if (result == 0 && !c->service->engine_ops->query)
		result = cluster_not_offered(c);
	if (result < 0)
		return result;
	struct str name = cluster.doc.name, id = id_make(c->arena);
	json_t *body = json_keep(c->arena, json_object());
	json_put_str(body, "_id", id);
	json_put_str(body, "clusterName", name);
	json_put_time(body, "createDate", clock_now_ms());
	json_put_z(body, "state", "WORKING");
	struct job job = {.kind = STR(SAMPLE_JOB),
	                  .subject = cluster.doc.id,
	                  .due_ms = clock_now_ms(),
	                  .args = arena_printf(c->arena, "{\"id\":\"%.*s\"}", STR_ARG(id))};
	result = doc_insert(c->tx, SAMPLE_KIND, id, cluster.doc.id, STR_NONE, json_text(c->arena, body));
	if (result == 0)
		result = tx_job_add(c->tx, &job);
	if (result < 0)
		return result;
	event_cluster(c, name);
	event_field(c, "clusterName", name);
	c->location = link_href(c, catalog_op("getSampleDatasetLoad"), "sampleDatasetId", id);
	buf_str(&c->out, json_text(c->arena, body));
	return 0;
}

/* The path does not name the cluster. */
static int sample_find(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct doc d;
	struct cluster cluster;
	int result = tx_get(c->tx, c->arena, SAMPLE_KIND, call_path(c, "sampleDatasetId"), &d);
	if (result == 0)
		result = cluster_get(c->tx, c->arena, d.parent, &cluster);
	/* One of another project is none. */
	if (result == 0 && !str_eq(cluster.doc.parent, c->group.id))
		result = -ENOENT;
	if (result < 0)
		return result;
	if (str_is(json_field(doc_json(c->arena, d.body), "state"), "WORKING")) {
		struct job job;
		if (tx_job_of(c->tx, c->arena, d.parent, &job) == 0 && str_is(job.kind, SAMPLE_JOB) && job.progress.n)
			call_header(c, STR("x-steward-progress"), job.progress);
	}
	*ret_doc = d;
	return 0;
}

const struct resource_hooks sample_hooks = {.load = sample_find};

static int state_save(struct tx *tx, struct job_run *r, const char *state, const char *why)
{
	struct doc d;
	int result = tx_get(tx, r->arena, SAMPLE_KIND, json_field(doc_json(r->arena, r->job.args), "id"), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_t *body = doc_json(r->arena, d.body);
	json_put_z(body, "state", state);
	json_put_time(body, "completeDate", clock_now_ms());
	if (why)
		json_put_z(body, "errorMessage", why);
	d.body = json_text(r->arena, body);
	return tx_update(tx, &d);
}

static int done_save(struct tx *tx, struct job_run *r)
{
	return state_save(tx, r, "COMPLETED", NULL);
}

int sample_failed(struct tx *tx, struct job_run *r)
{
	return state_save(tx, r, "FAILED", r->why);
}

int sample_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	struct engine_progress p = cluster_progress(r);
	struct cluster cluster;
	int result = cluster_of_job(r, &cluster);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	if (result > 0) {
		r->why = "the cluster was paused or deleted meanwhile";
		return JOB_FAILED;
	}
	if (!s->engine_ops->query) {
		r->why = "the engine in use cannot load data";
		return JOB_FAILED;
	}
	result = s->engine_ops->query->load_sample(s->engine_state, arena_z(r->arena, cluster.doc.id), &p, r->arena,
	                                           &r->why);
	if (result == -EAGAIN) {
		r->due_ms = p.again_ms;
		return JOB_LATER;
	}
	if (result < 0)
		return result;
	r->save = done_save;
	return JOB_DONE;
}
