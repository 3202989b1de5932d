/* Keeping clusters. */
#include "api/clusters/store.h"

#include "api/clusters/access_mark.h"
#include "api/clusters/authority.h"
#include "api/clusters/cluster.h"
#include "api/clusters/connection_strings.h"
#include "api/clusters/nodes.h"
#include "api/clusters/place.h"
#include "api/clusters/watch.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"

#include <errno.h>

#define LABEL_LENGTH 6

static const char *const kinds[] = {CLUSTER_KIND, FLEX_KIND};
#define KINDS (sizeof kinds / sizeof *kinds)

struct cluster cluster_of(struct arena *a, const struct doc *d)
{
	return (struct cluster){.doc = *d, .body = doc_json(a, d->body), .plan = doc_json(a, d->secret)};
}

int cluster_load_named(struct call *c, struct str name, struct cluster *ret_cluster)
{
	struct doc d;
	int r = tx_get_by_name(c->tx, c->arena, CLUSTER_KIND, c->group.id, name, &d);
	if (r == 0)
		*ret_cluster = cluster_of(c->arena, &d);
	return r == -ENOENT ? call_missing(c, &resource_cluster, name) : r;
}

int cluster_load(struct call *c, struct cluster *ret_cluster)
{
	return cluster_load_named(c, call_path(c, "clusterName"), ret_cluster);
}

int cluster_of_host(struct call *c, struct str host, struct cluster *ret_cluster)
{
	struct str label, tail, id;
	str_cut(host, '-', &label, &tail);
	int r = tx_ref_get(c->tx, c->arena, CLUSTER_LABEL_REF, label, &id);
	if (r == 0)
		r = cluster_get(c->tx, c->arena, id, ret_cluster);
	return r == 0 && !str_eq(ret_cluster->doc.parent, c->group.id) ? -ENOENT : r;
}

int cluster_get(struct tx *tx, struct arena *a, struct str id, struct cluster *ret_cluster)
{
	struct doc d;
	int r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < KINDS; i++)
		r = tx_get(tx, a, kinds[i], id, &d);
	if (r == 0)
		*ret_cluster = cluster_of(a, &d);
	return r;
}

bool cluster_is(const struct cluster *cluster, const char *state)
{
	return str_is(json_field(cluster->body, "stateName"), state);
}

static void plan_renew(struct cluster *cluster)
{
	json_t *plan = cluster->plan;
	json_put(plan, "nodes",
	         cluster_nodes(cluster->body, json_object_get(plan, "search"), json_object_get(plan, "nodes"),
	                       json_string_value(json_object_get(plan, "label"))));
	json_put(plan, "generation", json_integer(json_number(plan, "generation") + 1));
}

int cluster_reconcile(struct tx *tx, struct str cluster_id)
{
	struct job job = {.kind = STR(CLUSTER_JOB), .subject = cluster_id, .due_ms = clock_now_ms()};
	return tx_job_ensure(tx, &job);
}

int cluster_look_again(struct tx *tx, void *ctx, const struct doc *cluster)
{
	return cluster_reconcile(tx, cluster->id);
}

static int job_ask(struct tx *tx, struct str cluster_id)
{
	int r = tx_jobs_forget(tx, cluster_id, 0);
	return r < 0 ? r : cluster_reconcile(tx, cluster_id);
}

/* The store keeps names apart within a kind; here over all of them. */
int cluster_name_check(struct tx *tx, struct arena *a, struct str group_id, struct str name)
{
	struct doc d;
	int r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < KINDS; i++)
		r = tx_get_by_name(tx, a, kinds[i], group_id, name, &d);
	return r == 0 ? -EEXIST : r == -ENOENT ? 0 : r;
}

/* No two clusters share a label, whatever project they are in. */
static int label_take(struct tx *tx, struct str id, char ret_label[LABEL_LENGTH + 1])
{
	int r = -EEXIST;
	for (int i = 0; r == -EEXIST && i < 20; i++) {
		random_text(ret_label, 1, "abcdefghijklmnopqrstuvwxyz");
		random_text(ret_label + 1, LABEL_LENGTH - 1, "abcdefghijklmnopqrstuvwxyz0123456789");
		r = tx_ref_put(tx, CLUSTER_LABEL_REF, (struct str){ret_label, LABEL_LENGTH}, id);
	}
	return r;
}

/* The project's clusterCount, from what is there. */
static int count_update(struct tx *tx, struct arena *a, struct str group_id)
{
	struct doc project;
	int64_t count, total = 0;
	int r = tx_get(tx, a, "project", group_id, &project);
	for (size_t i = 0; r == 0 && i < KINDS; i++) {
		r = tx_count(tx, kinds[i], group_id, &count);
		total += r == 0 ? count : 0;
	}
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(a, project.body);
	json_put(body, "clusterCount", json_integer(total));
	project.body = json_text(a, body);
	return tx_update(tx, &project);
}

int cluster_insert(struct tx *tx, struct arena *a, const char *kind, struct str group_id, json_t *body,
                   bool independent, struct cluster *ret_cluster, struct str *ret_why)
{
	struct str key = id_make(a);
	char label[LABEL_LENGTH + 1], hash[PROJECT_HASH];
	struct cluster cluster = {.body = body, .plan = doc_json(a, STR("{}"))};
	int r = cluster_name_check(tx, a, group_id, json_field(body, "name"));
	if (r < 0)
		return r;
	r = label_take(tx, key, label);
	if (r < 0)
		return r == -EEXIST ? -EIO : r;
	project_hash(group_id, hash);
	json_put_z(cluster.plan, "label", label);
	json_put_z(cluster.plan, "hash", hash);
	json_put(cluster.plan, "independent", json_boolean(independent));
	json_put_str(body, "id", key);
	json_put_str(body, "groupId", group_id);
	json_put_time(body, "createDate", clock_now_ms());
	json_put_z(body, "stateName", "CREATING");
	plan_renew(&cluster);
	cluster.doc.id = key;
	r = cluster_place(tx, a, &cluster, ret_why);
	if (r < 0)
		return r;
	cluster.doc = (struct doc){.kind = str_of(kind),
	                           .id = key,
	                           .parent = group_id,
	                           .name = json_field(body, "name"),
	                           .created_ms = clock_now_ms(),
	                           .rev = 1,
	                           .body = json_text(a, body),
	                           .secret = json_text(a, cluster.plan)};
	struct authority ca;
	r = authority_ensure(tx, a, group_id, &ca);
	if (r == 0)
		r = tx_insert(tx, &cluster.doc);
	if (r == 0)
		r = access_shut_set(tx, key, true);
	for (size_t i = 0; r == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->created)
			r = cluster_parts[i]->created(tx, a, &cluster);
	if (r == 0)
		r = job_ask(tx, key);
	if (r == 0)
		r = count_update(tx, a, group_id);
	if (r == 0)
		*ret_cluster = cluster;
	return r;
}

int cluster_save(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	cluster->doc.body = json_text(a, cluster->body);
	cluster->doc.secret = json_text(a, cluster->plan);
	int r = tx_update(tx, &cluster->doc);
	cluster->doc.rev += r == 0;
	return r;
}

int cluster_change(struct tx *tx, struct arena *a, struct cluster *cluster, const char *state)
{
	const char *otherwise = cluster_is(cluster, "CREATING") ? "CREATING" : "UPDATING";
	json_put_z(cluster->body, "stateName", state ? state : otherwise);
	plan_renew(cluster);
	int r = cluster_place_change(tx, a, cluster);
	if (r == 0)
		r = cluster_save(tx, a, cluster);
	if (r == 0)
		r = access_retry_now(tx, a, cluster->doc.id);
	for (size_t i = 0; r == 0 && i < cluster_part_count && !cluster_is(cluster, "DELETING"); i++)
		if (cluster_parts[i]->changed)
			r = cluster_parts[i]->changed(tx, a, cluster);
	return r < 0 ? r : job_ask(tx, cluster->doc.id);
}

int cluster_move(struct tx *tx, struct arena *a, struct cluster *cluster, const char *kind)
{
	int r = tx_delete(tx, arena_z(a, cluster->doc.kind), cluster->doc.id);
	if (r < 0)
		return r;
	cluster->doc.kind = str_of(kind);
	cluster->doc.rev = 1;
	return tx_insert(tx, &cluster->doc);
}

int cluster_remove(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	int r = tx_ref_delete(tx, CLUSTER_LABEL_REF, json_field(cluster->plan, "label"));
	if (r == 0 || r == -ENOENT)
		r = tx_delete(tx, WATCH_KIND, cluster->doc.id);
	if (r == -ENOENT)
		r = 0;
	for (size_t i = 0; r == 0 && i < cluster_part_count; i++)
		if (cluster_parts[i]->removed)
			r = cluster_parts[i]->removed(tx, a, cluster);
	if (r == 0)
		r = resource_delete_below(tx, a, &resource_cluster, cluster->doc.id);
	if (r == 0) /* it may have been one when they were made */
		r = resource_delete_below(tx, a, &resource_flex_cluster, cluster->doc.id);
	if (r == 0)
		r = tx_jobs_forget(tx, cluster->doc.id, 0);
	if (r == 0)
		r = access_shut_set(tx, cluster->doc.id, false);
	if (r == 0)
		r = tx_jobs_unbind(tx, cluster->doc.id);
	if (r == 0)
		r = cluster_place_end(tx, a, cluster);
	if (r == 0)
		r = tx_delete(tx, arena_z(a, cluster->doc.kind), cluster->doc.id);
	return r < 0 ? r : count_update(tx, a, cluster->doc.parent);
}

int clusters_walk_group(struct tx *tx, struct arena *a, struct str group_id, doc_visit *visit, void *ctx)
{
	int r = 0;
	for (size_t k = 0; r == 0 && k < KINDS; k++) {
		struct doc *docs;
		size_t count = 0;
		r = tx_list_all(tx, a, kinds[k], group_id, &docs, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			r = visit(tx, ctx, &docs[i]);
	}
	return r;
}

int clusters_walk(struct tx *tx, doc_visit *visit, void *ctx)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < KINDS; i++)
		r = tx_walk_all(tx, kinds[i], visit, ctx);
	return r;
}

bool cluster_is_worked_on(const struct cluster *cluster)
{
	return json_object_get(cluster->plan, "restoring") || json_object_get(cluster->plan, "indexing");
}
