/* Data that should be there and is not. The store notes what each part of a cluster was made with, when it was first
 * reached; the engine holds what it finds against that, and makes nothing anew that was made before. */
#include "api/clusters/missing.h"

#include "api/clusters/cluster.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

static void made_put(struct engine_made *to, const char *set, const char *identity)
{
	snprintf(to->set, sizeof to->set, "%s", set);
	snprintf(to->identity, sizeof to->identity, "%s", identity);
}

/* A plan of a version that noted nothing: what was applied was made. */
static void made_assume(struct engine_made *made, struct engine_cluster *want)
{
	for (size_t i = 0; i < want->node_count; i++) {
		char shard[16];
		snprintf(shard, sizeof shard, "%u", want->nodes[i].shard);
		made_put(&made[want->made_count++], want->nodes[i].kind == NODE_ROUTER ? want->nodes[i].name : shard,
		         "");
	}
}

void made_load(struct arena *a, const struct cluster *cluster, bool applied, struct engine_cluster *want)
{
	json_t *noted = json_object_get(cluster->plan, "made"), *identity;
	size_t room = json_object_size(noted) + want->node_count;
	struct engine_made *made = arena_new_array(a, struct engine_made, room + 1);
	const char *set;
	json_object_foreach(noted, set, identity)
	{
		made_put(&made[want->made_count++], set, json_string_value(identity));
	}
	if (!noted && applied)
		made_assume(made, want);
	want->made = made;
	want->give_up = json_flag(cluster->plan, "giveUp");
}

bool made_note(struct cluster *cluster, const struct cluster_status *status)
{
	json_t *made = json_object();
	for (size_t i = 0; i < status->node_count; i++)
		if (status->nodes[i].identity[0])
			json_put_z(made, status->nodes[i].set, status->nodes[i].identity);
	bool changed = !json_equal(json_object_get(cluster->plan, "made"), made);
	json_put(cluster->plan, "made", made);
	return changed;
}

int cluster_event(struct tx *tx, struct arena *a, const char *type, const char *severity, const struct cluster *cluster,
                  const char *name, struct str text)
{
	const struct event_detail detail = {.name = name, .text = text};
	return event_service_about(tx, a, type,
	                           &(struct event_about){.group_id = cluster->doc.parent,
	                                                 .cluster = cluster->doc.name,
	                                                 .severity = severity,
	                                                 .details = &detail,
	                                                 .detail_count = text.n > 0});
}

int missing_begin(struct tx *tx, struct arena *a, struct cluster *cluster, const char *why)
{
	if (json_flag(cluster->plan, "missing"))
		return 0;
	json_put(cluster->plan, "missing", json_true());
	return cluster_event(tx, a, "VOLUME_IMPAIRED", "CRITICAL", cluster, "reason", str_of(why));
}

int missing_end(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	bool missing = json_object_del(cluster->plan, "missing") == 0;
	bool given_up = json_object_del(cluster->plan, "giveUp") == 0;
	int r = 0;
	if (missing)
		r = cluster_event(tx, a, "VOLUME_IMPAIRED_RESOLVED", NULL, cluster, "by",
		                  given_up ? STR("giving the data up") : STR("the data, which is there again"));
	if (r == 0 && given_up)
		r = cluster_event(tx, a, "QUEUED_ADMIN_ACTION_COMPLETED", NULL, cluster, "action",
		                  STR("data given up"));
	return r;
}

/* --- giving up */

struct search {
	struct arena *arena;
	struct str name, id;
	unsigned count;
};

static int search_one(struct tx *tx, void *ctx, const struct doc *cluster)
{
	struct search *s = ctx;
	if (str_eq(cluster->name, s->name)) {
		s->id = arena_dup(s->arena, cluster->id);
		s->count++;
	}
	return 0;
}

static int cluster_search(struct tx *tx, struct arena *a, struct str cluster, struct cluster *ret_cluster)
{
	struct search s = {.arena = a, .name = cluster};
	int r = cluster_get(tx, a, cluster, ret_cluster);
	if (r != -ENOENT)
		return r;
	r = clusters_walk(tx, search_one, &s);
	if (r == 0 && s.count != 1)
		r = s.count ? -EEXIST : -ENOENT;
	return r < 0 ? r : cluster_get(tx, a, s.id, ret_cluster);
}

int cluster_give_up(struct tx *tx, struct arena *a, struct str cluster, bool really, struct given_up *ret_given)
{
	struct cluster found;
	int r = cluster_search(tx, a, cluster, &found);
	if (r < 0)
		return r;
	*ret_given = (struct given_up){found.doc.id, found.doc.name, found.doc.parent, json_field(found.plan, "why")};
	if (!json_flag(found.plan, "missing"))
		return -EINVAL;
	if (!really || json_flag(found.plan, "giveUp"))
		return 0;
	/* No event: those are the service's to sign. It writes one when it has done it. */
	json_put(found.plan, "giveUp", json_true());
	return cluster_save(tx, a, &found);
}
