/* Clusters as their hosts see them. This host asks its engine; the nodes of a cluster that is elsewhere are asked from
 * its host, of all clusters of a project at once, so that a list takes one question to each host. */
#include "api/clusters/observe.h"

#include "api/clusters/cluster.h"
#include "api/clusters/place.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/workers.h"
#include "hosts/hosts.h"

#define IDS_MAX 300 /* in one question: its path stays below 8 KB */

static int observe_here(const struct service *s, struct arena *a, struct str id, struct cluster_status *ret_status)
{
	return s->engine_ops->core->observe(s->engine_state, arena_z(a, id), a, ret_status);
}

int cluster_forward(struct call *c, const struct cluster *cluster, bool *ret_forwarded)
{
	*ret_forwarded = host_is_elsewhere(cluster_host(cluster));
	return *ret_forwarded ? hosts_forward(c, cluster_host(cluster)) : 0;
}

/* --- the answer: {"clusters": {ID: {"full", "used", "limit", "nodes": [...]}}} */

static void node_write(struct buf *b, const struct node_status *n)
{
	json_open(b, '{');
	json_pair_z(b, "name", n->name);
	json_pair_z(b, "host", n->host);
	json_pair_z(b, "address", n->address);
	json_pair_z(b, "version", n->version);
	json_pair_int(b, "port", n->port);
	json_pair_int(b, "kind", n->kind);
	json_pair_int(b, "state", n->state);
	json_pair_int(b, "shard", n->shard);
	json_pair_bool(b, "primary", n->primary);
	json_close(b, '}');
}

static void status_write(struct buf *b, const struct cluster_status *status)
{
	json_open(b, '{');
	json_pair_int(b, "full", status->full);
	json_pair_int(b, "used", (int64_t)status->disk_used);
	json_pair_int(b, "limit", (int64_t)status->disk_limit);
	json_key(b, "nodes");
	json_open(b, '[');
	for (size_t i = 0; i < status->node_count; i++)
		node_write(b, &status->nodes[i]);
	json_close(b, ']');
	json_close(b, '}');
}

void clusters_observed(struct service *s, struct request *r)
{
	struct buf b = {0};
	struct str rest = r->query, id;
	json_open(&b, '{');
	json_key(&b, "clusters");
	json_open(&b, '{');
	for (bool more = rest.n > 0; more;) {
		struct cluster_status status;
		more = str_cut(rest, ',', &id, &rest);
		if (!id_is_valid(id) || observe_here(s, r->arena, id, &status) < 0)
			continue;
		json_key_str(&b, id);
		status_write(&b, &status);
	}
	json_close(&b, '}');
	json_close(&b, '}');
	answer_json(r, 200, &b);
	respond_here(r);
}

/* --- reading it */

static void node_read(const json_t *from, struct node_status *n)
{
	str_copy(json_field(from, "name"), n->name, sizeof n->name);
	str_copy(json_field(from, "host"), n->host, sizeof n->host);
	str_copy(json_field(from, "address"), n->address, sizeof n->address);
	str_copy(json_field(from, "version"), n->version, sizeof n->version);
	n->port = (unsigned)json_number(from, "port");
	n->kind = (enum node_kind)json_number(from, "kind");
	n->state = (enum node_state)json_number(from, "state");
	n->shard = (unsigned)json_number(from, "shard");
	n->primary = json_flag(from, "primary");
}

static void status_read(const json_t *from, struct arena *a, struct cluster_status *ret_status)
{
	const json_t *nodes = json_object_get(from, "nodes");
	size_t count = json_array_size(nodes);
	*ret_status = (struct cluster_status){.exists = count > 0,
	                                      .full = (enum engine_full)json_number(from, "full"),
	                                      .disk_used = (uint64_t)json_number(from, "used"),
	                                      .disk_limit = (uint64_t)json_number(from, "limit"),
	                                      .nodes = arena_new_array(a, struct node_status, count + 1),
	                                      .node_count = count};
	for (size_t i = 0; i < count; i++)
		node_read(json_array_get(nodes, i), &ret_status->nodes[i]);
}

/* --- asking */

/* The clusters of one host, in questions of bounded length. */
static size_t questions_add(struct arena *a, struct cluster_sight *list, size_t count, size_t from,
                            struct host_question *questions)
{
	size_t made = 0;
	struct buf b = {0};
	for (size_t i = from, n = 0; i < count; i++) {
		if (!str_eq(list[i].host, list[from].host))
			continue;
		buf_printf(&b, "%s%.*s", n ? "," : CLUSTERS_OBSERVED "?", STR_ARG(list[i].doc.id));
		if (++n == IDS_MAX) {
			questions[made++] =
			        (struct host_question){.host = list[from].host, .path = arena_dup(a, buf_view(&b))};
			b.n = n = 0;
		}
	}
	if (b.n)
		questions[made++] = (struct host_question){.host = list[from].host, .path = arena_dup(a, buf_view(&b))};
	buf_free(&b);
	return made;
}

static bool is_first_of_host(const struct cluster_sight *list, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (str_eq(list[i].host, list[at].host))
			return false;
	return list[at].host.n;
}

static void answers_take(struct arena *a, const struct host_question *questions, size_t count,
                         struct cluster_sight *one)
{
	char id[ID_LEN + 1];
	str_copy(one->doc.id, id, sizeof id);
	for (size_t i = 0; i < count; i++) {
		const json_t *status = json_object_get(json_object_get(questions[i].answer, "clusters"), id);
		if (status && str_eq(questions[i].host, one->host))
			status_read(status, a, &one->status);
	}
}

/* Names of hosts that did not answer, each once: "h2,h3". */
static struct str away_names(struct arena *a, const struct host_question *questions, size_t count)
{
	struct str names = STR_NONE;
	for (size_t i = 0; i < count; i++)
		if (questions[i].away && (i == 0 || !str_eq(questions[i].host, questions[i - 1].host)))
			names = arena_printf(a, "%.*s%s%s", STR_ARG(names), names.n ? "," : "", questions[i].away);
	return names;
}

/* ret_away: which hosts did not answer; NULL: all must. */
static int ask_elsewhere(struct call *c, struct arena *a, struct cluster_sight *list, size_t count,
                         struct str *ret_away)
{
	struct host_question *questions = arena_new_array(a, struct host_question, count + 1);
	size_t made = 0;
	for (size_t i = 0; i < count; i++)
		if (is_first_of_host(list, i))
			made += questions_add(a, list, count, i, questions + made);
	for (size_t i = 0; i < made; i++)
		questions[i].may_fail = ret_away != NULL;
	int r = made ? hosts_ask(c, questions, made) : 0;
	if (r == 0 && ret_away)
		*ret_away = away_names(c->arena, questions, made);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (list[i].host.n)
			answers_take(a, questions, made, &list[i]);
	return r;
}

int cluster_observe(struct call *c, const struct cluster *cluster, struct cluster_status *ret_status)
{
	struct cluster_sight one = {.doc = cluster->doc, .host = cluster_host(cluster)};
	if (!host_is_elsewhere(one.host))
		return observe_here(c->service, c->arena, cluster->doc.id, ret_status);
	int r = ask_elsewhere(c, c->arena, &one, 1, NULL);
	*ret_status = one.status;
	return r;
}

int clusters_look(struct call *c, struct arena *a, struct cluster_sight *list, size_t count)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!host_is_elsewhere(list[i].host))
			list[i].host = STR_NONE;
		if (!list[i].host.n)
			r = observe_here(c->service, a, list[i].doc.id, &list[i].status);
	}
	return r < 0 ? r : ask_elsewhere(c, a, list, count, NULL);
}

struct looking {
	struct call *call;
	struct arena *arena, *passing; /* passing: for one cluster */
	struct cluster_sight *list;
	size_t count, room;
};

static int look_one(struct tx *tx, void *ctx, const struct doc *d)
{
	struct looking *l = ctx;
	ARENA_FIT(l->arena, l->list, l->count, l->room);
	struct cluster_sight *to = &l->list[l->count++];
	to->doc = (struct doc){.id = arena_dup(l->arena, d->id), .name = arena_dup(l->arena, d->name)};
	if (hosts_shared()) {
		struct cluster plan = {.plan = doc_json(l->passing, d->secret)};
		if (host_is_elsewhere(cluster_host(&plan)))
			to->host = arena_dup(l->arena, cluster_host(&plan));
		arena_reset(l->passing);
	}
	return to->host.n ? 0 : observe_here(l->call->service, l->arena, to->doc.id, &to->status);
}

int clusters_observe(struct call *c, struct arena *a, struct cluster_sight **ret_list, size_t *ret_count,
                     struct str *ret_away)
{
	struct looking l = {.call = c, .arena = a, .passing = arena_new()};
	int r = clusters_walk_group(c->tx, a, c->group.id, look_one, &l);
	arena_free(l.passing);
	if (r == 0)
		r = ask_elsewhere(c, a, l.list, l.count, ret_away);
	*ret_list = l.list;
	*ret_count = l.count;
	return r;
}
