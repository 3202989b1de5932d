/* Nodes and their disks, as engines have them, into the meter. A node that runs is metered by its kind and size, and
 * its disk by what it was given; one that does not run (paused, down) by its disk alone. The meter is told in the write
 * that notes what the engine has made, and whenever something befell a node. Beside that, a job looks once a minute
 * whether all is as noted, and sets the host's mark.
 *
 * Real nodes tell when they were started, so that what began or changed is metered from that second on, and what ran
 * while no process of ours did is metered all the same. */
#include "api/billing/billing.h"

#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define METER_JOB "meter"
#define METER_BEGAN "meter_began"
#define MARK_MS INT64_C(60000)
#define KB_OF_GB INT64_C(1000000)
#define PREFIXES "node/,disk/"

static _Atomic int64_t watched_ms; /* since when this process does */
static _Atomic int64_t began_ms;   /* since when anything is metered: nodes may have run for long before */

static int begin_run(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	struct str kept;
	int64_t now = clock_now_ms();
	int r = tx_meta_get(tx, a, METER_BEGAN, &kept);
	began_ms = r == 0 ? strtoll(arena_z(a, kept), NULL, 10) : now;
	if (r == -ENOENT)
		r = tx_meta_put(tx, METER_BEGAN, arena_printf(a, "%lld", (long long)now));
	arena_free(a);
	return r;
}

int metering_start(struct store *store)
{
	watched_ms = clock_now_ms();
	return store_write_wait(store, begin_run, NULL);
}

/* --- from nodes to things */

static const char *const kind_words[] = {[NODE_ELECTABLE] = "INSTANCE",
                                         [NODE_READ_ONLY] = "READ_ONLY",
                                         [NODE_ANALYTICS] = "ANALYTICS",
                                         [NODE_ROUTER] = "ROUTER"};

bool metering_is_shared(const struct engine_node *n)
{
	return str_is_one_of("M0|M2|M5|FLEX", str_of(n->instance_size));
}

/* Routers keep no data. */
static bool has_disk(const struct engine_node *n)
{
	return n->disk_gb && n->kind != NODE_ROUTER && !metering_is_shared(n);
}

static bool is_running(const struct node_status *n, bool on_host)
{
	bool up = n->state == NODE_RUNNING || n->state == NODE_STARTING;
	return up && (!on_host || n->started_ms);
}

/* When it was started, as far as that is metered; 0: nobody knows. */
static int64_t since(const struct node_status *n, bool on_host)
{
	int64_t ms = on_host ? n->started_ms : 0;
	return ms && ms < began_ms ? began_ms : ms;
}

static struct meter_thing node_thing(struct arena *a, const struct engine_node *n, const struct node_status *now,
                                     bool on_host)
{
	return (struct meter_thing){
	        .key = arena_printf(a, "node/%s", n->name),
	        .sku = arena_printf(a, "%s_%s_%s", n->provider, kind_words[n->kind], n->instance_size),
	        .provider = str_of(n->provider),
	        .region = str_of(n->region),
	        .amount = 1,
	        .since_ms = since(now, on_host),
	        .runs = on_host};
}

static struct meter_thing disk_thing(struct arena *a, const struct engine_node *n, const struct node_status *now,
                                     bool on_host)
{
	return (struct meter_thing){.key = arena_printf(a, "disk/%s", n->name),
	                            .sku = arena_printf(a, "%s_STORAGE", n->provider),
	                            .provider = str_of(n->provider),
	                            .region = str_of(n->region),
	                            .amount = n->disk_gb * KB_OF_GB,
	                            .since_ms = since(now, on_host)};
}

static const struct node_status *status_of(const struct cluster_status *status, const char *name)
{
	for (size_t i = 0; i < status->node_count; i++)
		if (strcmp(status->nodes[i].name, name) == 0)
			return &status->nodes[i];
	return NULL;
}

static size_t things_make(struct arena *a, const struct cluster_sighting *seen, bool on_host,
                          struct meter_thing **ret_things)
{
	struct meter_thing *things = arena_new_array(a, struct meter_thing, 2 * seen->node_count + 1);
	size_t count = 0;
	for (size_t i = 0; i < seen->node_count; i++) {
		const struct engine_node *n = &seen->nodes[i];
		const struct node_status *now = status_of(seen->status, n->name);
		if (!now || now->state == NODE_ABSENT)
			continue;
		if (has_disk(n))
			things[count++] = disk_thing(a, n, now, on_host);
		if (is_running(now, on_host))
			things[count++] = node_thing(a, n, now, on_host);
	}
	*ret_things = things;
	return count;
}

/* --- telling the meter */

int metering_subject(struct tx *tx, struct arena *a, const struct cluster *cluster, struct meter_subject *ret_subject)
{
	struct doc project;
	int r = tx_get(tx, a, "project", cluster->doc.parent, &project);
	if (r == 0)
		*ret_subject = (struct meter_subject){.org_id = project.parent,
		                                      .group_id = project.id,
		                                      .group_name = project.name,
		                                      .id = cluster->doc.id,
		                                      .name = cluster->doc.name,
		                                      .host = cluster_host(cluster)};
	return r;
}

/* What is being changed is told when it is done; meanwhile a node may end. */
static int ended_observe(struct tx *tx, struct arena *a, const struct cluster *cluster,
                         const struct cluster_sighting *seen)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < seen->status->node_count; i++) {
		const struct node_status *n = &seen->status->nodes[i];
		if (!is_running(n, true))
			r = meter_end(tx, a, cluster->doc.id, arena_printf(a, "node/%s", n->name), seen->at_ms,
			              watched_ms);
	}
	return r;
}

static int sighting_tell(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
                         const struct cluster_sighting *seen)
{
	struct meter_observation o = {.prefixes = PREFIXES, .at_ms = seen->at_ms, .watched_ms = watched_ms};
	struct meter_subject subject;
	struct meter_thing *things;
	if (seen->status->node_count && !seen->nodes)
		return ended_observe(tx, a, cluster, seen);
	int r = metering_subject(tx, a, cluster, &subject);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	o.count = things_make(a, seen, s->engine_ops->core->on_host, &things);
	o.things = things;
	return meter_observe(tx, a, &subject, &o);
}

/* Writes come one after the other, but what they tell was seen before: real nodes are looked at once more. */
static int part_observed(struct tx *tx, struct arena *a, const struct service *s, const struct cluster *cluster,
                         const struct cluster_sighting *seen)
{
	struct cluster_status status;
	struct cluster_sighting now = *seen;
	if (!s->engine_ops->core->on_host || !seen->status->node_count)
		return sighting_tell(tx, a, s, cluster, seen);
	int r = s->engine_ops->core->observe(s->engine_state, arena_z(a, cluster->doc.id), a, &status);
	now.status = &status;
	return r < 0 || !status.exists ? r : sighting_tell(tx, a, s, cluster, &now);
}

static int part_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	return meter_count_forget(tx, cluster->doc.id);
}

const struct cluster_part metering_part = {.observed = part_observed, .removed = part_removed};

/* --- once a minute */

/* A cluster that is not as noted. */
struct finding {
	struct str id;
	bool nodes, sent; /* its nodes; what they have sent */
};

struct look {
	struct service *service;
	struct arena *arena, *passing;
	int64_t at_ms;
	struct finding *list;
	size_t count, room;
};

/* Whether exactly the nodes that run are open, since when they run. */
static bool is_as_noted(const json_t *open, const struct cluster_status *status)
{
	const char *key;
	const json_t *entry;
	size_t running = 0, noted = 0;
	json_object_foreach((json_t *)(uintptr_t)open, key, entry)
	{
		noted += strncmp(key, "node/", 5) == 0;
	}
	for (size_t i = 0; i < status->node_count; i++) {
		char name[80];
		if (!is_running(&status->nodes[i], true))
			continue;
		running++;
		snprintf(name, sizeof name, "node/%s", status->nodes[i].name);
		entry = json_object_get(open, name);
		if (!entry || status->nodes[i].started_ms > json_number(entry, "since") + METER_SLACK_MS)
			return false;
	}
	return running == noted;
}

static int subject_look(struct tx *tx, void *ctx, const struct doc *d)
{
	struct look *l = ctx;
	const struct service *s = l->service;
	struct cluster_status status;
	const json_t *body = doc_json(l->passing, d->body);
	bool here = !host_is_elsewhere(json_field(body, "host"));
	struct finding f = {.nodes = false};
	int r = here ? s->engine_ops->core->observe(s->engine_state, arena_z(l->passing, d->id), l->passing, &status)
	             : 0;
	f.nodes = r == 0 && here && status.exists && !is_as_noted(json_object_get(body, "open"), &status);
	if (r == 0 && here && status.exists)
		r = data_out_look(s, tx, l->passing, d->id, l->at_ms, &f.sent);
	if (f.nodes || f.sent) {
		f.id = arena_dup(l->arena, d->id);
		ARENA_FIT(l->arena, l->list, l->count, l->room);
		l->list[l->count++] = f;
	}
	arena_reset(l->passing);
	return r;
}

struct correction {
	struct service *service;
	struct str id;
};

/* Looked at again in the write: something may have been noted since. */
static int correct_run(struct tx *tx, void *ctx)
{
	const struct correction *c = ctx;
	const struct service *s = c->service;
	struct arena *a = arena_new();
	struct cluster cluster;
	struct cluster_status status;
	struct cluster_sighting seen = {.status = &status, .at_ms = clock_now_ms()};
	int r = cluster_get(tx, a, c->id, &cluster);
	if (r == 0)
		r = s->engine_ops->core->observe(s->engine_state, arena_z(a, c->id), a, &status);
	if (r == 0 && status.exists) {
		seen.node_count = cluster_applied_nodes(a, &cluster, &seen.nodes);
		r = part_observed(tx, a, s, &cluster, &seen);
	}
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

static int nodes_look(struct service *s, struct tx *reader, struct arena *a, int64_t at_ms)
{
	struct look l = {.service = s, .arena = a, .passing = arena_new(), .at_ms = at_ms};
	tx_begin_read(reader);
	int r = tx_walk_all(reader, METER_OPEN_KIND, subject_look, &l);
	tx_end_read(reader);
	tx_rest(reader);
	arena_free(l.passing);
	for (size_t i = 0; r == 0 && i < l.count; i++) {
		struct correction c = {.service = s, .id = l.list[i].id};
		r = l.list[i].nodes ? store_write_wait(s->store, correct_run, &c) : 0;
		if (r == 0 && l.list[i].sent)
			r = data_out_note(s, c.id);
	}
	return r;
}

struct marking {
	struct arena *arena;
	bool on_host;
	int64_t at_ms;
};

/* A store that is not shared may have things of no host, of the time before hosts were noted. */
static int mark_run(struct tx *tx, void *ctx)
{
	const struct marking *m = ctx;
	int r = m->on_host ? meter_mark(tx, m->arena, hosts_self(), m->at_ms) : 0;
	return r < 0 || (m->on_host && hosts_shared()) ? r : meter_mark(tx, m->arena, STR_NONE, m->at_ms);
}

int metering_mark_now(struct service *s, struct tx *reader, struct arena *a)
{
	bool on_host = s->engine_ops->core->on_host;
	struct marking m = {.arena = a, .on_host = on_host, .at_ms = clock_now_ms()};
	int r = on_host ? nodes_look(s, reader, a, m.at_ms) : 0;
	return r < 0 ? r : store_write_wait(s->store, mark_run, &m);
}

static int mark_step(struct job_run *r)
{
	int result = metering_mark_now(r->ctx, r->reader, r->arena);
	return result < 0 ? result : JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = METER_JOB, .step = mark_step, .period_ms = MARK_MS, .per_node = true},
};
const struct job_kinds metering_jobs = JOB_KINDS(kinds);
