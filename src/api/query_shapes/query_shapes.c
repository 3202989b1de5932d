/* Rejected query shapes: a document for each below its cluster, and beside it, where documents have what never leaves,
 * what the databases know the shape by: {"fingerprint", "ids"}. A shape that is not rejected is no document: it is what
 * the databases tell. A rejection is part of the cluster's access, and the answer waits until it is in force.
 *
 * A hash says nothing of the shape. So before a write a shape that is no document yet is looked for in the databases,
 * which another host may have. */
#include "api/query_shapes/query_shapes.h"

#include "api/kit/verbs.h"
#include "api/query_shapes/history.h"
#include "api/query_shapes/shapes.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/service.h"
#include "call/workers.h"
#include "hosts/hosts.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

#define SHAPE_KIND "query_shape"

/* --- a shape as others are told of it: {"fingerprint", "ids", "text", "namespace", "command"} */

static json_t *known_make(struct arena *a, const struct engine_shape *s)
{
	json_t *known = json_new(a), *ids = json_array();
	for (size_t i = 0; i < s->id_count; i++)
		json_add_str(ids, arena_printf(a, "%lld", (long long)s->ids[i]));
	char *command = arena_z(a, str_of(s->command));
	for (char *p = command; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	json_put_z(known, "fingerprint", s->fingerprint);
	json_put(known, "ids", ids);
	json_put_z(known, "text", s->text);
	json_put_str(known, "namespace", shape_namespace(a, s));
	json_put_z(known, "command", command);
	return known;
}

void shape_asked(struct service *s, struct request *r)
{
	struct str id, hash;
	struct shapes shapes = {.list = NULL};
	struct buf b = {0};
	json_t *answer = json_new(r->arena);
	str_cut(r->query, ',', &id, &hash);
	if (id_is_valid(id) && shapes_gather(s, r->arena, id, STR_NONE, &shapes) == 0) {
		const struct shape *found = shapes_find(&shapes, hash);
		if (found)
			json_object_update(answer, known_make(r->arena, &found->of));
		json_put(answer, "answered", json_integer((json_int_t)shapes.answered));
		if (shapes.lacks)
			json_put_z(answer, "lacks", shapes.lacks);
	}
	json_raw(&b, json_text(r->arena, answer));
	answer_json(r, 200, &b);
	respond_here(r);
}

/* Not rejected, and so not in the store. */
static struct doc known_doc(struct call *c, const struct cluster *cluster, struct str hash, const json_t *known)
{
	json_t *body = json_new(c->arena), *secret = json_new(c->arena);
	json_put_str(body, "queryShapeHash", hash);
	json_put_z(body, "status", "UNREJECTED");
	json_put_str(body, "command", json_field(known, "command"));
	json_put_str(body, "namespace", json_field(known, "namespace"));
	json_put_str(body, "queryShape", json_field(known, "text"));
	json_put_str(secret, "fingerprint", json_field(known, "fingerprint"));
	json_put(secret, "ids", json_deep_copy(json_object_get(known, "ids")));
	return (struct doc){.kind = STR(SHAPE_KIND),
	                    .id = id_make(c->arena),
	                    .parent = cluster->doc.id,
	                    .name = hash,
	                    .body = json_text(c->arena, body),
	                    .secret = json_text(c->arena, secret)};
}

/* --- before a write */

static int look_elsewhere(struct call *c, const struct cluster *cluster, struct str hash, const json_t **ret_known)
{
	struct host_question q = {
	        .host = cluster_host(cluster),
	        .path = arena_printf(c->arena, SHAPE_ASKED "?%.*s,%.*s", STR_ARG(cluster->doc.id), STR_ARG(hash))};
	int r = hosts_ask(c, &q, 1);
	if (r < 0)
		return r;
	*ret_known = q.answer;
	struct str lacks = json_field(q.answer, "lacks");
	const struct shapes shapes = {.answered = (size_t)json_number(q.answer, "answered"),
	                              .lacks = lacks.n ? arena_z(c->arena, lacks) : NULL};
	return json_field(q.answer, "fingerprint").n ? 0 : shapes_check(c, &shapes);
}

static int look_here(struct call *c, const struct cluster *cluster, struct str hash, const json_t **ret_known)
{
	struct shapes shapes = {.list = NULL};
	int r = shapes_gather(c->service, c->arena, cluster->doc.id, STR_NONE, &shapes);
	if (r < 0)
		return r == -ENOENT ? cluster_not_offered(c) : r;
	const struct shape *found = shapes_find(&shapes, hash);
	*ret_known = found ? known_make(c->arena, &found->of) : NULL;
	return found ? 0 : shapes_check(c, &shapes);
}

static int shape_look(struct call *c, const struct cluster *cluster, struct str hash, const json_t **ret_known)
{
	int r = host_is_elsewhere(cluster_host(cluster)) ? look_elsewhere(c, cluster, hash, ret_known)
	                                                 : look_here(c, cluster, hash, ret_known);
	return r < 0 || json_field(*ret_known, "fingerprint").n ? r : -ENOENT;
}

static int prepare_with(struct call *c)
{
	struct cluster cluster;
	struct doc d;
	const json_t *known = NULL;
	struct str hash = shape_path(c);
	int r = cluster_load(c, &cluster);
	if (r < 0)
		return r;
	r = tx_get_by_name(c->tx, c->arena, SHAPE_KIND, cluster.doc.id, hash, &d);
	if (r != -ENOENT)
		return r;
	r = shape_look(c, &cluster, hash, &known);
	c->prepared = r == 0 ? json_clone(c->arena, known) : NULL;
	return r;
}

int query_shapes_prepare(struct call *c)
{
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	int r = prepare_with(c);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* --- one */

/* How often the databases have refused it, where they can tell. */
static void refusals_tell(struct call *c, const struct engine_shape *s)
{
	call_header(c, STR("x-steward-refusals"), arena_printf(c->arena, "%llu", (unsigned long long)s->refused));
}

/* For a read: the document, or what the databases tell. */
static int shape_read(struct call *c, const struct cluster *cluster, struct doc *ret_doc)
{
	struct str hash = shape_path(c);
	struct shapes shapes = {.list = NULL};
	bool forwarded = false;
	int kept = tx_get_by_name(c->tx, c->arena, SHAPE_KIND, cluster->doc.id, hash, ret_doc);
	int r = kept < 0 && kept != -ENOENT ? kept : cluster_forward(c, cluster, &forwarded);
	if (r < 0)
		return r;
	if (forwarded) { /* whatever this is: the other host's answer takes its place */
		*ret_doc = known_doc(c, cluster, hash, json_new(c->arena));
		return 0;
	}
	r = shapes_gather(c->service, c->arena, cluster->doc.id, STR_NONE, &shapes);
	const struct shape *found = r == 0 ? shapes_find(&shapes, hash) : NULL;
	if (found)
		refusals_tell(c, &found->of);
	if (kept == 0)
		return 0;
	if (r == -ENOENT)
		return cluster_not_offered(c);
	r = r < 0 || found ? r : shapes_check(c, &shapes);
	if (r == 0 && found)
		*ret_doc = known_doc(c, cluster, hash, known_make(c->arena, &found->of));
	return r < 0 || found ? r : -ENOENT;
}

static int shape_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct cluster cluster;
	struct str hash = shape_path(c);
	int result = cluster_load(c, &cluster);
	if (result < 0 || !c->op->writes)
		return result < 0 ? result : shape_read(c, &cluster, ret_doc);
	result = tx_get_by_name(c->tx, c->arena, SHAPE_KIND, cluster.doc.id, hash, ret_doc);
	if (result != -ENOENT || !c->prepared)
		return result;
	*ret_doc = known_doc(c, &cluster, hash, c->prepared);
	return 0;
}

/* --- the change */

static int shape_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	bool reject = str_is(json_field(document, "status"), "REJECTED");
	struct cluster cluster;
	event_set_type(c, NULL);
	if (reject == (old->rev > 0))
		return 1; /* as it was */
	int r = cluster_get(c->tx, c->arena, d->parent, &cluster);
	if (r == 0 && reject)
		r = resource_limit(c, c->op->resource, d->parent, 1);
	if (r == 0)
		r = reject ? resource_put(c->tx, d, old) : tx_delete(c->tx, SHAPE_KIND, d->id);
	if (r < 0)
		return r;
	event_set_type(c, reject ? "QUERY_SHAPE_BLOCKED" : "QUERY_SHAPE_UNBLOCKED");
	r = access_changed_cluster(c, &cluster);
	return r < 0 ? r : 1;
}

const struct resource_hooks query_shape_hooks = {.load = shape_load, .save = shape_save};

/* --- to the engines */

static void words_add(struct arena *a, const struct doc *d, const char **words, size_t *count)
{
	const json_t *secret = doc_json(a, d->secret), *ids = json_object_get(secret, "ids");
	struct str fingerprint = json_field(secret, "fingerprint");
	words[(*count)++] = arena_z(a, fingerprint);
	for (size_t i = 0; i < json_array_size(ids) && i < ENGINE_SHAPE_IDS; i++)
		words[(*count)++] = arena_printf(a, "%.*s=%.*s", STR_ARG(fingerprint), STR_ARG(json_item(ids, i))).p;
}

static int refused_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                        struct engine_access *access)
{
	struct doc cluster, *docs;
	size_t count;
	int r = tx_get_by_name(tx, a, CLUSTER_KIND, group_id, cluster_name, &cluster);
	if (r == 0)
		r = tx_list_all(tx, a, SHAPE_KIND, cluster.id, &docs, &count);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const char **words = arena_new_array(a, const char *, count *(ENGINE_SHAPE_IDS + 1) + 1);
	for (size_t i = 0; i < count; i++)
		words_add(a, &docs[i], words, &access->refused_count);
	access->refused = words;
	return 0;
}

const struct cluster_part query_shapes_part = {.access = refused_load, .removed = history_removed};
