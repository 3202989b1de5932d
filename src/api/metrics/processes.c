/* Database processes of a project: the nodes of its clusters as the engine sees them now, their databases and disks.
 * Nothing of it is stored. A process is known by host:port; the first label of the host leads to its cluster. What only
 * the node itself can tell is asked off the loop. */
#include "api/metrics/processes.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/service.h"

#include <ctype.h>
#include <errno.h>

static const char *type_of(const struct cluster *cluster, const struct node_status *n)
{
	if (n->state == NODE_STARTING)
		return "RECOVERING";
	if (n->state != NODE_RUNNING)
		return "NO_DATA";
	if (n->kind == NODE_ROUTER)
		return "SHARD_ROUTER";
	if (cluster_is_sharded(cluster->body))
		return n->primary ? "SHARD_PRIMARY" : "SHARD_SECONDARY";
	return n->primary ? "REPLICA_PRIMARY" : "REPLICA_SECONDARY";
}

int64_t process_created_ms(const struct cluster *cluster, const struct node_status *n)
{
	const json_t *node = json_find(json_object_get(cluster->plan, "nodes"), "name", str_of(n->name));
	return json_object_get(node, "created") ? json_number(node, "created") : cluster->doc.created_ms;
}

/* The host with the cluster's name, as far as a host can have it, in the place of the label. */
static struct str alias_of(struct arena *a, const struct cluster *cluster, const struct node_status *n)
{
	const char *dash = strchr(n->host, '-');
	char *name = arena_z(a, cluster->doc.name);
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return arena_printf(a, "%s%s", name, dash ? dash : "");
}

/* The node's logs, and who came to it by them, which lie below its host, not below the process. */
static void log_links(struct call *c, const struct node_status *n)
{
	static const char *const rels[] = {"logs/db", "logs/db-audit-log"};
	const struct op *op = catalog_op("downloadClusterLog");
	struct str host = arena_printf(c->arena, "{\"hostName\":\"%s\"}", n->host);
	for (size_t i = 0; (op->roles & c->roles) && i < sizeof rels / sizeof *rels; i++)
		entity_link(c, &c->out, rels[i],
		            entity_href(c, op, "logName", str_of(rels[i] + strlen("logs/")), host));
	entity_link_op(c, "dbAccessHistory", catalog_op("getAccessHistoryProcess"), "hostname", str_of(n->host));
}

/* Measurements want to be told which: a link says so. */
#define LINK_WINDOW "?granularity=PT5M&period=PT6H"

static void measurement_link(struct call *c, const char *rel, const char *operation, const char *key_param,
                             struct str key, const char *query)
{
	const struct op *op = catalog_op(operation);
	struct str href = link_href(c, op, key_param, key);
	if (op->roles & c->roles)
		entity_link(c, &c->out, rel, arena_printf(c->arena, "%.*s%s", STR_ARG(href), query));
}

static void measurement_links(struct call *c, struct str id)
{
	measurement_link(c, "measurements", "getProcessMeasurements", "processId", id, LINK_WINDOW "&m=CONNECTIONS");
	measurement_link(c, "fts/metrics", "listHostFtsMetrics", "processId", id, "");
	measurement_link(c, "fts/metrics/measurements", "listMeasurements", "processId", id,
	                 LINK_WINDOW "&metrics=FTS_DISK_USAGE");
}

static void process_write(struct call *c, const struct op *self, const struct cluster *cluster,
                          const struct node_status *n, bool in_list)
{
	struct buf b = {0};
	struct str id = arena_printf(c->arena, "%s:%u", n->host, n->port);
	json_open(&b, '{');
	json_pair_time(&b, "created", process_created_ms(cluster, n));
	json_pair_str(&b, "groupId", c->group.id);
	json_pair_z(&b, "hostname", n->host);
	json_pair_str(&b, "id", id);
	/* Its death would be known: a node that runs was just seen. */
	if (n->state == NODE_RUNNING)
		json_pair_time(&b, "lastPing", clock_now_ms());
	json_pair_int(&b, "port", n->port);
	if (n->kind != NODE_ROUTER) {
		json_pair_str(&b, "replicaSetName", node_set(n));
		if (cluster_is_sharded(cluster->body))
			json_pair_str(&b, "shardName", node_set(n));
	}
	json_pair_z(&b, "typeName", type_of(cluster, n));
	json_pair_str(&b, "userAlias", alias_of(c->arena, cluster, n));
	if (n->version[0])
		json_pair_z(&b, "version", n->version);
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), self, "processId", id, in_list);
	buf_free(&b);
	if (!in_list) {
		log_links(c, n);
		measurement_links(c, id);
	}
}

/* All clusters are looked at, for the count; only what the page shows is read and kept. */
static int cluster_list_nodes(struct call *c, const struct op *self, const struct cluster_sight *sight, int64_t *total)
{
	struct cluster cluster = {.body = NULL};
	int64_t from = list_offset(c), to = from + c->page_size;
	int result = 0;
	for (size_t i = 0; result == 0 && i < sight->status.node_count; i++, (*total)++) {
		if (*total < from || *total >= to)
			continue;
		if (!cluster.body)
			result = cluster_get(c->tx, c->arena, sight->doc.id, &cluster);
		if (result == 0)
			process_write(c, self, &cluster, &sight->status.nodes[i], true);
	}
	return result;
}

int processes_list(struct call *c)
{
	struct arena *a = arena_new(); /* for what is only looked at */
	const struct op *self = catalog_op("getGroupProcess");
	struct cluster_sight *list;
	size_t count;
	int64_t total = 0;
	list_begin(c);
	struct str away = STR_NONE;
	int result = clusters_observe(c, a, &list, &count, &away);
	if (result == 0 && away.n)
		call_header(c, STR("x-steward-hosts-away"), away);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = cluster_list_nodes(c, self, &list[i], &total);
	arena_free(a);
	if (result < 0)
		return result;
	list_end(c, total, list_offset(c) + c->page_size < total);
	return 0;
}

static int node_find(struct call *c, const struct cluster *cluster, struct node_status *ret_node)
{
	struct str id = call_path(c, "processId");
	struct cluster_status status;
	int result = cluster_observe(c, cluster, &status);
	if (result < 0)
		return result;
	for (size_t i = 0; i < status.node_count; i++) {
		const struct node_status *n = &status.nodes[i];
		if (str_eq(id, arena_printf(c->arena, "%s:%u", n->host, n->port))) {
			*ret_node = *n;
			return 0;
		}
	}
	return call_missing_param(c, "processId");
}

int process_find(struct call *c, struct cluster *ret_cluster, struct node_status *ret_node)
{
	bool forwarded = false;
	int result = cluster_of_host(c, call_path(c, "processId"), ret_cluster);
	if (result == -ENOENT)
		return call_missing_param(c, "processId");
	if (result == 0)
		result = cluster_forward(c, ret_cluster, &forwarded);
	if (result < 0 || forwarded)
		return result < 0 ? result : 1;
	return node_find(c, ret_cluster, ret_node);
}

int process_find_anywhere(struct call *c, struct cluster *ret_cluster, struct node_status *ret_node)
{
	int result = cluster_of_host(c, call_path(c, "processId"), ret_cluster);
	if (result == -ENOENT)
		return call_missing_param(c, "processId");
	return result < 0 ? result : node_find(c, ret_cluster, ret_node);
}

int processes_get(struct call *c)
{
	struct cluster cluster;
	struct node_status node;
	int result = process_find(c, &cluster, &node);
	if (result == 0)
		process_write(c, c->op, &cluster, &node, false);
	return result < 0 ? result : 0;
}

/* What a node holds: databases, or disk partitions. They are documents with a name alone. */

static int names_get(struct call *c, const struct cluster *cluster, const struct node_status *node, bool databases,
                     struct str **ret_names, size_t *ret_count)
{
	const struct service *s = c->service;
	const struct engine_statistics_ops *ops = s->engine_ops->statistics;
	if (!ops)
		return cluster_not_offered(c);
	return (databases ? ops->databases : ops->partitions)(s->engine_state, arena_z(c->arena, cluster->doc.id),
	                                                      node->name, c->arena, ret_names, ret_count);
}

int process_silent(struct call *c, const struct node_status *node)
{
	return call_fail_about(
	        c, 409, "PROCESS_NOT_AVAILABLE", call_path(c, "processId"),
	        "The process %s:%u does not answer now: it is stopped, or starting. Try again once it runs.",
	        node->host, node->port);
}

int process_name_check(struct call *c, const struct cluster *cluster, const struct node_status *node, bool databases,
                       struct str name)
{
	struct str *names;
	size_t count;
	int result = names_get(c, cluster, node, databases, &names, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (str_eq(names[i], name))
			return 0;
	return -ENOENT;
}

static int names_ask(struct call *c, bool databases, struct doc **ret_docs, size_t *ret_count)
{
	struct cluster cluster;
	struct node_status node;
	struct str *names;
	size_t count;
	int result = process_find(c, &cluster, &node);
	*ret_docs = NULL;
	*ret_count = 0;
	if (result == 0)
		result = names_get(c, &cluster, &node, databases, &names, &count);
	if (result != 0)
		return result == -EAGAIN ? process_silent(c, &node) : result;
	struct doc *docs = arena_new_array(c->arena, struct doc, count + 1);
	for (size_t i = 0; i < count; i++) {
		json_t *body = doc_json(c->arena, STR("{}"));
		json_put_str(body, c->op->resource->key_param, names[i]);
		docs[i] = (struct doc){.name = names[i], .body = json_text(c->arena, body)};
	}
	*ret_docs = docs;
	*ret_count = count;
	return 0;
}

static int name_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct doc *docs;
	size_t count;
	int result = names_ask(c, c->op->resource == &resource_process_database, &docs, &count);
	return result < 0 ? result : segments_docs(c, docs, count, ret_list, ret_count);
}

static int name_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str wanted = call_path(c, r->key_param);
	struct doc *docs;
	size_t count;
	int result = names_ask(c, r == &resource_process_database, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (str_eq(docs[i].name, wanted)) {
			*ret_doc = docs[i];
			return 0;
		}
	/* The host that has it finds it, or not. */
	if (result == 1)
		*ret_doc = (struct doc){.id = wanted, .name = wanted, .body = STR("{}")};
	return result < 0 ? result : result == 1 ? 0 : -ENOENT;
}

static void name_links(struct call *c, const struct doc *d)
{
	if (c->op->resource == &resource_process_database)
		measurement_link(c, "measurements", "getDatabaseMeasurements", "databaseName", d->name,
		                 LINK_WINDOW "&m=DATABASE_DATA_SIZE");
	else
		measurement_link(c, "measurements", "getProcessDiskMeasurements", "partitionName", d->name,
		                 LINK_WINDOW "&m=DISK_PARTITION_SPACE_FREE");
}

const struct resource_hooks process_name_hooks = {.load = name_load, .segments = name_segments, .links = name_links};
