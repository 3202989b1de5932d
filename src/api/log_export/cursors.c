/* How far the log of a node was sent to a target. A cursor moves in two writes: the first says which range is sent, the
 * second that it has arrived. What a crash cuts short between them is sent again as the same range: objects get the
 * same name and content again, and services the same delivery.
 *
 *   {"cluster", "at": PLACE, "to"?: PLACE, "owner"?, "leaseMs"?, "sent": [server, audit], "stream"?,
 *    "fromEnd"?: true, "unfit"?}
 *   PLACE = {"file", "offset", "position", "rest"} */
#include "api/log_export/targets.h"

#include "base/clock.h"

#include <errno.h>

static json_t *place_json(const struct engine_log_place *p)
{
	return json_pack("{s:s, s:I, s:I, s:i}", "file", p->file, "offset", (json_int_t)p->offset, "position",
	                 (json_int_t)p->position, "rest", p->rest);
}

static struct engine_log_place cursor_read(const json_t *value)
{
	struct engine_log_place p = {.offset = json_number(value, "offset"),
	                             .position = json_number(value, "position"),
	                             .rest = (int)json_number(value, "rest")};
	str_copy(json_field(value, "file"), p.file, sizeof p.file);
	return p;
}

static bool places_equal(const struct engine_log_place *a, const struct engine_log_place *b)
{
	return strcmp(a->file, b->file) == 0 && a->offset == b->offset && a->position == b->position &&
	       a->rest == b->rest;
}

static struct cursor cursor_of(const json_t *body)
{
	const json_t *sent = json_object_get(body, "sent");
	struct cursor c = {.at = cursor_read(json_object_get(body, "at")),
	                   .to = cursor_read(json_object_get(body, "to")),
	                   .pending = json_object_get(body, "to") != NULL,
	                   .from_end = json_flag(body, "fromEnd"),
	                   .unfit = (int)json_number(body, "unfit"),
	                   .lease_ms = json_number(body, "leaseMs")};
	for (size_t i = 0; i < 2; i++)
		c.sent[i] = json_integer_value(json_array_get(sent, i));
	str_copy(json_field(body, "owner"), c.owner, sizeof c.owner);
	str_copy(json_field(body, "stream"), c.stream, sizeof c.stream);
	return c;
}

static struct str cursor_text(struct arena *a, const struct cursor *c, struct str cluster_id)
{
	json_t *body = json_new(a);
	json_put_str(body, "cluster", cluster_id);
	json_put(body, "at", place_json(&c->at));
	json_put(body, "sent", json_pack("[I, I]", (json_int_t)c->sent[0], (json_int_t)c->sent[1]));
	if (c->stream[0])
		json_put_z(body, "stream", c->stream);
	if (c->from_end)
		json_put(body, "fromEnd", json_true());
	if (c->unfit)
		json_put(body, "unfit", json_integer(c->unfit));
	if (c->pending) {
		json_put(body, "to", place_json(&c->to));
		json_put_z(body, "owner", c->owner);
		json_put(body, "leaseMs", json_integer(c->lease_ms));
	}
	return json_text(a, body);
}

int cursor_find(struct tx *tx, struct arena *a, struct str target_id, struct str node, struct cursor *ret_cursor)
{
	struct doc d;
	int r = tx_get_by_name(tx, a, CURSOR_KIND, target_id, node, &d);
	*ret_cursor = r == 0 ? cursor_of(doc_json(a, d.body)) : (struct cursor){.pending = false};
	return r == -ENOENT ? 0 : r;
}

static bool is_at(const struct cursor *now, const struct cursor *before)
{
	return places_equal(&now->at, &before->at) && now->pending == before->pending &&
	       (!now->pending || places_equal(&now->to, &before->to));
}

int cursor_step_run(struct tx *tx, void *step)
{
	const struct cursor_step *s = step;
	struct arena *a = arena_new();
	struct doc d, target;
	int r = tx_get(tx, a, s->kind, s->target_id, &target);
	if (r == 0)
		r = tx_get_by_name(tx, a, CURSOR_KIND, s->target_id, s->node, &d);
	else if (r == -ENOENT)
		r = -ESTALE;
	if (r == -ENOENT && is_at(&(struct cursor){.pending = false}, &s->before)) {
		d = doc_new(a, CURSOR_KIND, s->target_id, s->node, cursor_text(a, &s->after, s->cluster_id));
		r = tx_insert(tx, &d);
	} else if (r == 0) {
		struct cursor now = cursor_of(doc_json(a, d.body));
		d.body = cursor_text(a, &s->after, s->cluster_id);
		d.rev = 0;
		r = is_at(&now, &s->before) ? tx_update(tx, &d) : -ESTALE;
	} else if (r == -ENOENT) {
		r = -ESTALE;
	}
	arena_free(a);
	return r;
}

/* --- with targets and clusters */

struct beginning {
	struct arena *arena;
	struct str target_id;
};

static int cluster_begin(struct tx *tx, void *ctx, const struct doc *doc)
{
	const struct beginning *b = ctx;
	struct cluster cluster = cluster_of(b->arena, doc);
	const json_t *nodes = json_object_get(cluster.plan, "nodes");
	int r = 0;
	if (cluster_is(&cluster, "CREATING")) /* its logs are wanted from their first line on */
		return 0;
	for (size_t i = 0; r == 0 && i < json_array_size(nodes); i++) {
		struct str node = json_field(json_array_get(nodes, i), "name");
		struct cursor c = {.from_end = true};
		struct doc d = doc_new(b->arena, CURSOR_KIND, b->target_id, node, cursor_text(b->arena, &c, doc->id));
		r = tx_insert(tx, &d);
	}
	return r;
}

int cursors_begin(struct tx *tx, struct arena *a, struct str target_id, struct str group_id)
{
	struct beginning b = {a, target_id};
	return clusters_walk_group(tx, a, group_id, cluster_begin, &b);
}

static int cursors_drop(struct tx *tx, struct arena *a, struct str target_id, struct str cluster_id)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, CURSOR_KIND, target_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(json_field(doc_json(a, docs[i].body), "cluster"), cluster_id))
			r = tx_delete(tx, CURSOR_KIND, docs[i].id);
	return r;
}

/* Its logs go with it. */
static int cluster_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct doc *targets;
	size_t count = 0;
	int r = cursors_drop(tx, a, cluster->doc.parent, cluster->doc.id); /* of the push-based export */
	if (r == 0)
		r = tx_list_all(tx, a, INTEGRATION_KIND, cluster->doc.parent, &targets, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = cursors_drop(tx, a, targets[i].id, cluster->doc.id);
	return r;
}

const struct cluster_part log_export_part = {.removed = cluster_removed};
