/* Database processes of a project: the nodes of its clusters as the engine sees them now, their databases and disks.
 * Nothing of it is stored. A process is known by host:port; the first label of the host leads to its cluster. What only
 * the node itself can tell is asked off the loop. */
#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/service.h"

#include <ctype.h>
#include <errno.h>

static bool is_sharded(const struct cluster *cluster)
{
	struct str type = json_field(cluster->body, "clusterType");
	return type.n && !str_is(type, "REPLICASET");
}

static const char *type_of(const struct cluster *cluster, const struct node_status *n)
{
	if (n->state == NODE_STARTING)
		return "RECOVERING";
	if (n->state != NODE_RUNNING)
		return "NO_DATA";
	if (n->kind == NODE_ROUTER)
		return "SHARD_ROUTER";
	if (is_sharded(cluster))
		return n->primary ? "SHARD_PRIMARY" : "SHARD_SECONDARY";
	return n->primary ? "REPLICA_PRIMARY" : "REPLICA_SECONDARY";
}

/* When the node was asked for; of one from before that was noted, when the cluster was. */
static int64_t created_ms(const struct cluster *cluster, const struct node_status *n)
{
	const json_t *nodes = json_object_get(cluster->plan, "nodes");
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		if (str_is(json_field(node, "name"), n->name) && json_object_get(node, "created"))
			return json_integer_value(json_object_get(node, "created"));
	}
	return cluster->doc.created_ms;
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

/* "ab12cd-shard-00" of "ab12cd-shard-00-01". */
static struct str set_of(const struct node_status *n)
{
	const char *dash = strrchr(n->name, '-');
	return (struct str){n->name, dash ? (size_t)(dash - n->name) : strlen(n->name)};
}

static void time_add(struct buf *b, const char *field, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	json_key(b, field);
	json_z(b, text);
}

/* The node's logs, which lie below its host, not below the process. */
static void log_links(struct call *c, const struct node_status *n)
{
	static const char *const rels[] = {"logs/db", "logs/db-audit-log"};
	const struct op *op = catalog_op("downloadClusterLog");
	struct str host = arena_printf(c->arena, "{\"hostName\":\"%s\"}", n->host);
	for (size_t i = 0; (op->roles & c->roles) && i < sizeof rels / sizeof *rels; i++)
		entity_link(c, &c->out, rels[i],
		            entity_href(c, op, "logName", str_of(rels[i] + strlen("logs/")), host));
}

static void process_write(struct call *c, const struct op *self, const struct cluster *cluster,
                          const struct node_status *n, bool in_list)
{
	struct buf b = {0};
	struct str id = arena_printf(c->arena, "%s:%u", n->host, n->port);
	json_open(&b, '{');
	time_add(&b, "created", created_ms(cluster, n));
	json_key(&b, "groupId");
	json_str(&b, c->group.id);
	json_key(&b, "hostname");
	json_z(&b, n->host);
	json_key(&b, "id");
	json_str(&b, id);
	/* Its death would be known: a node that runs was just seen. */
	if (n->state == NODE_RUNNING)
		time_add(&b, "lastPing", clock_now_ms());
	json_key(&b, "port");
	json_int(&b, n->port);
	if (n->kind != NODE_ROUTER) {
		json_key(&b, "replicaSetName");
		json_str(&b, set_of(n));
		if (is_sharded(cluster)) {
			json_key(&b, "shardName");
			json_str(&b, set_of(n));
		}
	}
	json_key(&b, "typeName");
	json_z(&b, type_of(cluster, n));
	json_key(&b, "userAlias");
	json_str(&b, alias_of(c->arena, cluster, n));
	if (n->version[0]) {
		json_key(&b, "version");
		json_z(&b, n->version);
	}
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), self, "processId", id, in_list);
	buf_free(&b);
	if (!in_list)
		log_links(c, n);
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
	int result = clusters_observe(c, a, &list, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = cluster_list_nodes(c, self, &list[i], &total);
	arena_free(a);
	if (result < 0)
		return result;
	list_end(c, total, list_offset(c) + c->page_size < total);
	return 0;
}

/* The path's process, of a cluster of the path's project. 1: its host answers the call instead. */
static int process_find(struct call *c, struct cluster *ret_cluster, struct node_status *ret_node)
{
	bool forwarded = false;
	struct str id = call_path(c, "processId"), label, tail, cluster_id;
	struct cluster_status status;
	str_cut(id, '-', &label, &tail);
	int result = tx_ref_get(c->tx, c->arena, CLUSTER_LABEL_REF, label, &cluster_id);
	if (result == 0)
		result = cluster_get(c->tx, c->arena, cluster_id, ret_cluster);
	if (result == 0 && !str_eq(ret_cluster->doc.parent, c->group.id))
		result = -ENOENT;
	if (result == 0)
		result = cluster_forward(c, ret_cluster, &forwarded);
	if (result < 0 || forwarded)
		return result < 0 ? result : 1;
	result = cluster_observe(c, ret_cluster, &status);
	if (result < 0)
		return result;
	for (size_t i = 0; i < status.node_count; i++) {
		const struct node_status *n = &status.nodes[i];
		if (str_eq(id, arena_printf(c->arena, "%s:%u", n->host, n->port))) {
			*ret_node = *n;
			return 0;
		}
	}
	return -ENOENT;
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

static int names_ask(struct call *c, bool databases, struct doc **ret_docs, size_t *ret_count)
{
	const struct service *s = c->service;
	const struct engine_statistics_ops *ops = s->engine_ops->statistics;
	struct cluster cluster;
	struct node_status node;
	struct str *names;
	size_t count;
	if (!ops)
		return cluster_not_offered(c);
	int result = process_find(c, &cluster, &node);
	*ret_docs = NULL;
	*ret_count = 0;
	if (result != 0)
		return result;
	result = (databases ? ops->databases : ops->partitions)(s->engine_state, arena_z(c->arena, cluster.doc.id),
	                                                        node.name, c->arena, &names, &count);
	if (result == -EAGAIN) {
		call_fail(c, 409, "PROCESS_NOT_AVAILABLE",
		          "The process %s:%u does not answer now: it is stopped, or starting. Try again once it runs.",
		          node.host, node.port);
		return call_fail_param(c, call_path(c, "processId"));
	}
	if (result < 0)
		return result;
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
	struct segment *all = arena_new_of(c->arena, struct segment);
	*all = (struct segment){.kind = c->op->resource->kind};
	*ret_list = all;
	*ret_count = 1;
	int result = names_ask(c, c->op->resource == &resource_process_database, &all->docs, &all->count);
	return result < 0 ? result : 0;
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

const struct resource_hooks process_name_hooks = {.load = name_load, .segments = name_segments};
