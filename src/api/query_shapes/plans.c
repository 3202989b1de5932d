/* Why a query became slow is often told by its plan alone: the same text, and an index that is not used any more. What
 * a plan was before is known to nobody afterwards. So the plans of slow executions, which servers write into their logs
 * (auto_explain), are noted by shape, each with when it was first and last used and how long it took.
 *
 *   "shape_plans"  id = the cluster's; secret {"seen": {NODE: time of the last entry}, "shapes": {FINGERPRINT:
 *                  [{"plan", "first", "last", "count", "ms": of all, "most": of the longest} ...]}}
 *
 * A plan is its outline: nodes with their tables and indexes, no conditions, so that no value of a client is in it and
 * two executions with other values have the same. Only what was slow is in the logs: a plan that was always fast is not
 * here. */
#include "api/query_shapes/plans.h"

#include "api/kit/verbs.h"
#include "api/query_shapes/query_shapes.h"
#include "base/clock.h"
#include "gate/dispatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define PLANS_KIND "shape_plans"
#define PATH_END ":plans"
#define PATH_WORDS "/queryShapeInsights/"
#define SLOW_MAX 200   /* at one look at a node: the newest */
#define PLANS_MAX 10   /* of a shape: those that were used last */
#define SHAPES_MAX 200 /* the same of a cluster */

/* --- what is kept */

static int load(struct tx *tx, struct arena *a, struct str cluster_id, struct doc *ret_doc, json_t **ret_kept)
{
	int r = tx_get(tx, a, PLANS_KIND, cluster_id, ret_doc);
	if (r == -ENOENT) {
		*ret_doc = (struct doc){
		        .kind = STR(PLANS_KIND), .id = cluster_id, .parent = cluster_id, .body = STR("{}")};
		r = 0;
	}
	if (r == 0)
		*ret_kept = ret_doc->secret.n ? doc_json(a, ret_doc->secret) : json_new(a);
	return r;
}

static size_t oldest_of(const json_t *plans)
{
	size_t oldest = 0;
	for (size_t i = 1; i < json_array_size(plans); i++)
		if (json_number(json_array_get(plans, i), "last") < json_number(json_array_get(plans, oldest), "last"))
			oldest = i;
	return oldest;
}

static int64_t shape_last(const json_t *plans)
{
	const json_t *plan;
	int64_t last = 0;
	size_t i;
	json_array_foreach(plans, i, plan)
	{
		last = json_number(plan, "last") > last ? json_number(plan, "last") : last;
	}
	return last;
}

/* One that was used longest ago makes room. */
static void shapes_cut(json_t *shapes)
{
	const char *name, *oldest;
	json_t *plans;
	while (json_object_size(shapes) > SHAPES_MAX) {
		int64_t least = INT64_MAX;
		oldest = NULL;
		json_object_foreach(shapes, name, plans)
		{
			if (shape_last(plans) < least) {
				least = shape_last(plans);
				oldest = name;
			}
		}
		if (!oldest)
			return;
		json_object_del(shapes, oldest);
	}
}

void plan_add(struct arena *a, json_t *kept, const char *fingerprint, const struct engine_slow *slow)
{
	json_t *shapes = json_default(kept, "shapes", json_object());
	json_t *plans = json_default(shapes, fingerprint, json_array());
	json_t *one = json_find(plans, "plan", str_of(slow->plan));
	json_int_t first = json_number(one, "first");
	if (!one) {
		one = json_object();
		json_put_z(one, "plan", slow->plan);
		(void)!json_array_append_new(plans, one);
	}
	double ms = json_number_value(json_object_get(one, "ms")),
	       most = json_number_value(json_object_get(one, "most"));
	json_put(one, "first", json_integer(first && first < slow->at_ms ? first : slow->at_ms));
	if (slow->at_ms > json_number(one, "last"))
		json_put(one, "last", json_integer(slow->at_ms));
	json_put(one, "count", json_integer(json_number(one, "count") + 1));
	json_put(one, "ms", json_real(ms + slow->ms));
	json_put(one, "most", json_real(slow->ms > most ? slow->ms : most));
	if (json_array_size(plans) > PLANS_MAX)
		json_array_remove(plans, oldest_of(plans));
	shapes_cut(shapes);
}

/* --- collecting */

static const char *fingerprint_of(const struct shapes_told *told, int64_t query)
{
	for (size_t i = 0; i < told->count; i++)
		for (size_t k = 0; k < told->list[i].id_count; k++)
			if (told->list[i].ids[k] == query)
				return told->list[i].fingerprint;
	return NULL;
}

struct noting {
	struct arena *arena;
	struct str cluster_id;
	struct noted {
		const struct shapes_told *told;
		struct engine_slow *list; /* newest first */
		size_t count;
	} * nodes;
	size_t count;
};

static void node_note(struct arena *a, json_t *kept, const struct noted *n)
{
	json_t *seen = json_default(kept, "seen", json_object());
	for (size_t i = n->count; i-- > 0;) {
		const struct engine_slow *slow = &n->list[i];
		const char *fingerprint = slow->query && slow->by_user ? fingerprint_of(n->told, slow->query) : NULL;
		if (fingerprint && slow->plan)
			plan_add(a, kept, fingerprint, slow);
		if (slow->at_ms > json_number(seen, n->told->node))
			json_put(seen, n->told->node, json_integer(slow->at_ms));
	}
}

/* A cluster that is gone meanwhile has taken its plans along. */
static int note_run(struct tx *tx, void *ctx)
{
	const struct noting *w = ctx;
	struct cluster cluster;
	struct doc d;
	json_t *kept = NULL;
	int r = cluster_get(tx, w->arena, w->cluster_id, &cluster);
	r = r < 0 ? r : load(tx, w->arena, w->cluster_id, &d, &kept);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < w->count; i++)
		node_note(w->arena, kept, &w->nodes[i]);
	d.secret = json_text(w->arena, kept);
	return doc_put(tx, &d);
}

int plans_collect(struct job_run *r, struct arena *a, struct str cluster_id, const struct shapes *live)
{
	const struct service *s = r->ctx;
	struct noting w = {.arena = a, .cluster_id = cluster_id};
	struct doc d;
	json_t *kept = NULL;
	if (!s->engine_ops->advice)
		return 0;
	tx_begin_read(r->reader);
	int result = load(r->reader, a, cluster_id, &d, &kept);
	job_read_end(r);
	if (result < 0)
		return result;
	const json_t *seen = json_object_get(kept, "seen");
	w.nodes = arena_new_array(a, struct noted, live->told_count + 1);
	for (size_t i = 0; i < live->told_count; i++) {
		const struct shapes_told *told = &live->told[i];
		const struct engine_slow_question q = {.cluster_id = arena_z(a, cluster_id),
		                                       .node = told->node,
		                                       .from_ms = json_number(seen, told->node) + 1,
		                                       .to_ms = INT64_MAX,
		                                       .most = SLOW_MAX};
		struct noted *n = &w.nodes[w.count];
		n->told = told;
		if (s->engine_ops->advice->slow(s->engine_state, &q, a, &n->list, &n->count) == 0 && n->count)
			w.count++;
	}
	return w.count ? store_write_wait(s->store, note_run, &w) : 0;
}

int plans_removed(struct tx *tx, const struct cluster *cluster)
{
	int r = tx_delete(tx, PLANS_KIND, cluster->doc.id);
	return r == -ENOENT ? 0 : r;
}

/* --- who asks */

static int by_last(const void *a, const void *b)
{
	int64_t x = json_number(*(json_t *const *)a, "last"), y = json_number(*(json_t *const *)b, "last");
	return x > y ? -1 : x < y;
}

static json_t *plan_shown(const json_t *plan)
{
	json_t *o = json_object();
	json_int_t count = json_number(plan, "count");
	double ms = json_number_value(json_object_get(plan, "ms"));
	json_put(o, "avgMillis", json_real(count ? ms / (double)count : 0));
	json_put(o, "count", json_integer(count));
	json_put(o, "firstUsed", json_time(json_number(plan, "first")));
	json_put(o, "lastUsed", json_time(json_number(plan, "last")));
	json_put(o, "maxMillis", json_deep_copy(json_object_get(plan, "most")));
	json_put_str(o, "plan", json_field(plan, "plan"));
	return o;
}

/* By the hash of its fingerprint. NULL: nothing is kept of it. */
static const json_t *plans_find(const json_t *kept, struct str hash)
{
	const char *fingerprint;
	json_t *plans, *shapes = json_object_get(kept, "shapes");
	json_object_foreach(shapes, fingerprint, plans)
	{
		char own[65];
		sha256_hex(str_of(fingerprint), own);
		if (str_is(hash, own))
			return plans;
	}
	return NULL;
}

static int plans_get(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	json_t *kept = NULL;
	int r = cluster_load(c, &cluster);
	r = r < 0 ? r : load(c->tx, c->arena, cluster.doc.id, &d, &kept);
	if (r < 0)
		return r;
	struct str hash = shape_path(c);
	const json_t *plans = plans_find(kept, hash);
	size_t count = json_array_size(plans);
	json_t **all = arena_new_array(c->arena, json_t *, count + 1), *answer = json_new(c->arena),
	       *list = json_default(answer, "plans", json_array());
	for (size_t i = 0; i < count; i++)
		all[i] = json_array_get(plans, i);
	if (count)
		qsort(all, count, sizeof *all, by_last);
	for (size_t i = 0; i < count; i++)
		(void)!json_array_append_new(list, plan_shown(all[i]));
	json_put_str(answer, "queryShapeHash", hash);
	json_raw(&c->out, json_text(c->arena, answer));
	c->content_type = "application/json";
	return 0;
}

static struct op row;
static pthread_once_t row_once = PTHREAD_ONCE_INIT;

static void row_make(void)
{
	row = *catalog_op("getQueryShapeDetails");
	row.id = "getQueryShapePlans";
	row.path = "/groups/{groupId}/clusters/{clusterName}" PATH_WORDS "{queryShapeHash}" PATH_END;
	row.handler = plans_get;
	row.query_param_count = 0;
}

bool shape_plans_is_path(struct str path)
{
	return str_starts(path, STR(API_BASE "/groups/")) && str_ends(path, STR(PATH_END)) &&
	       memmem(path.p, path.n, PATH_WORDS, strlen(PATH_WORDS));
}

void shape_plans_serve(struct service *s, struct request *r)
{
	pthread_once(&row_once, row_make);
	/* Its parameters are where those of the details are. */
	struct str like = arena_printf(r->arena, "%.*s/details", (int)(r->path.n - strlen(PATH_END)), r->path.p);
	dispatch_below(s, r, &row, like);
}
