/* Which host a cluster is on, and what it stands for there: its nodes' memory, processors and disk, by their sizes. The
 * plan has both, so that what was taken is given back as it was:
 *
 *   "host": "6740a1b2c3d4e5f601234567", "room": {"cores": 6, "memoryMB": 6144, "diskMB": 30720} */
#include "api/clusters/place.h"

#include "api/clusters/cluster.h"
#include "api/clusters/nodes.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/id.h"
#include "hosts/hosts.h"
#include "jobs/jobs.h"

#include <errno.h>
#include <stdio.h>

#define MB_OF_GB 1024

static struct host_room room_of(const json_t *nodes)
{
	struct host_room room = {0};
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		const char *name = json_string_value(json_object_get(node, "size"));
		struct engine_size size = engine_size(name ? name : "");
		room.cores += size.processors;
		room.memory_mb += size.memory_mb;
		room.disk_mb += json_integer_value(json_object_get(node, "disk")) * MB_OF_GB;
	}
	return room;
}

static struct host_room room_noted(const json_t *plan)
{
	const json_t *room = json_object_get(plan, "room");
	return (struct host_room){.cores = json_integer_value(json_object_get(room, "cores")),
	                          .memory_mb = json_integer_value(json_object_get(room, "memoryMB")),
	                          .disk_mb = json_integer_value(json_object_get(room, "diskMB"))};
}

static void room_note(struct cluster *cluster, struct str host, const struct host_room *room)
{
	json_put_str(cluster->plan, "host", host);
	json_put(cluster->plan, "room",
	         json_pack("{s:I, s:I, s:I}", "cores", (json_int_t)room->cores, "memoryMB", (json_int_t)room->memory_mb,
	                   "diskMB", (json_int_t)room->disk_mb));
}

struct str cluster_host(const struct cluster *cluster)
{
	return json_field(cluster->plan, "host");
}

int cluster_place(struct tx *tx, struct arena *a, struct cluster *cluster, struct str *ret_why)
{
	const json_t *nodes = json_object_get(cluster->plan, "nodes"), *first = json_array_get(nodes, 0);
	struct host_room room = room_of(nodes);
	struct str host;
	int r = hosts_place(tx, a, json_field(first, "provider"), json_field(first, "region"), &room, &host, ret_why);
	if (r == 0 && host.n)
		room_note(cluster, host, &room);
	return r < 0 ? r : tx_jobs_bind(tx, cluster->doc.id, host);
}

int cluster_place_check(struct call *c, const struct cluster *cluster)
{
	const json_t *plan = cluster->plan;
	struct str why;
	if (!cluster_host(cluster).n)
		return 0;
	json_t *nodes = json_keep(c->arena, cluster_nodes(cluster->body, json_object_get(plan, "search"),
	                                                  json_object_get(plan, "nodes"),
	                                                  json_string_value(json_object_get(plan, "label"))));
	struct host_room before = room_noted(plan), after = room_of(nodes);
	int r = hosts_fit(c->tx, c->arena, cluster_host(cluster), &before, &after, &why);
	return r == -EDQUOT ? call_fail(c, 409, "NO_HOST_HAS_ROOM", "%.*s", STR_ARG(why)) : r;
}

int cluster_place_change(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	struct str host = cluster_host(cluster);
	struct host_room before = room_noted(cluster->plan), after = room_of(json_object_get(cluster->plan, "nodes"));
	if (!host.n ||
	    (before.cores == after.cores && before.memory_mb == after.memory_mb && before.disk_mb == after.disk_mb))
		return 0;
	int r = hosts_account(tx, a, host, &before, &after, 0);
	if (r == 0)
		room_note(cluster, arena_dup(a, host), &after);
	return r;
}

int cluster_place_end(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	struct host_room before = room_noted(cluster->plan), none = {0};
	return hosts_account(tx, a, cluster_host(cluster), &before, &none, -1);
}

/* --- at the start */

struct counting {
	struct arena *arena;
	struct host_room room;
	int64_t clusters;
};

/* A cluster from before hosts were known is where its jobs go. */
static int host_find_out(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	struct str host;
	int r = tx_jobs_bound(tx, a, cluster->doc.id, &host);
	if (r < 0 && r != -ENOENT)
		return r;
	struct host_room room = room_of(json_object_get(cluster->plan, "nodes"));
	room_note(cluster, r == 0 ? host : hosts_self(), &room);
	return cluster_save(tx, a, cluster);
}

/* The only process of a store is the host of all that is in it, whatever the name of the one before it was. In a shared
 * store the jobs go where the cluster is: a copy of the store that a former version made had it in the plan alone. */
static int host_hold(struct tx *tx, struct arena *a, struct cluster *cluster)
{
	struct str bound;
	if (!hosts_shared() && !str_eq(cluster_host(cluster), hosts_self())) {
		json_put_str(cluster->plan, "host", hosts_self());
		return cluster_save(tx, a, cluster);
	}
	if (!hosts_shared() || !str_eq(cluster_host(cluster), hosts_self()))
		return 0;
	int r = tx_jobs_bound(tx, a, cluster->doc.id, &bound);
	return r == -ENOENT ? tx_jobs_bind(tx, cluster->doc.id, hosts_self()) : r;
}

static int count_one(struct tx *tx, void *ctx, const struct doc *d)
{
	struct counting *c = ctx;
	struct cluster cluster = cluster_of(c->arena, d);
	int r = cluster_host(&cluster).n ? 0 : host_find_out(tx, c->arena, &cluster);
	if (r == 0)
		r = host_hold(tx, c->arena, &cluster);
	if (r == 0 && str_eq(cluster_host(&cluster), hosts_self())) {
		struct host_room room = room_noted(cluster.plan);
		c->room.cores += room.cores;
		c->room.memory_mb += room.memory_mb;
		c->room.disk_mb += room.disk_mb;
		c->clusters++;
	}
	arena_reset(c->arena);
	return r;
}

static int count_run(struct tx *tx, void *ctx)
{
	struct counting c = {.arena = arena_new()};
	int r = clusters_walk(tx, count_one, &c);
	if (r == 0)
		r = hosts_used(tx, c.arena, &c.room, c.clusters);
	arena_free(c.arena);
	return r;
}

int clusters_place_count(struct store *store)
{
	return store_write_wait(store, count_run, NULL);
}

/* --- in a job */

/* Subjects of jobs on clusters are their id, or begin or end with it: "ID", "ID/watch", "backup/ID". */
bool cluster_job_host(struct job_run *r, struct str *ret_host)
{
	struct str subject = r->job.subject;
	struct cluster cluster;
	if (!hosts_shared() || !hosts_binds() || subject.n < ID_LEN)
		return false;
	tx_begin_read(r->reader);
	int result = cluster_get(r->reader, r->arena, (struct str){subject.p, ID_LEN}, &cluster);
	if (result == -ENOENT && subject.n > ID_LEN)
		result = cluster_get(r->reader, r->arena, (struct str){subject.p + subject.n - ID_LEN, ID_LEN},
		                     &cluster);
	job_read_end(r);
	if (result < 0 || !host_is_elsewhere(cluster_host(&cluster)))
		return false;
	*ret_host = cluster_host(&cluster);
	return true;
}

/* --- a store that was copied */

struct settling {
	struct arena *arena;
	struct str host;
	bool shared;
	struct str first, first_name; /* the first cluster's host and name */
};

static int settle_one(struct tx *tx, void *ctx, const struct doc *d)
{
	struct settling *s = ctx;
	struct cluster cluster = cluster_of(s->arena, d);
	struct str host = s->host.n ? s->host : cluster_host(&cluster);
	if (!host.n) {
		fprintf(stderr,
		        "steward: it is not known on which host the cluster %.*s is: node.id is not beside the source. "
		        "Start and stop the service on the source once, empty the target, and copy again\n",
		        STR_ARG(d->name));
		return -ENODATA;
	}
	if (!s->first.n) {
		s->first = arena_dup(s->arena, host);
		s->first_name = arena_dup(s->arena, d->name);
	}
	if (!s->shared && !str_eq(host, s->first)) {
		fprintf(stderr,
		        "steward: clusters are on several hosts (%.*s on %.*s, %.*s on %.*s), and a store of one "
		        "process "
		        "reaches the databases of its own only. Delete those of all hosts but one, empty the target, "
		        "and "
		        "copy again\n",
		        STR_ARG(s->first_name), STR_ARG(s->first), STR_ARG(d->name), STR_ARG(host));
		return -EXDEV;
	}
	int r = s->shared ? tx_jobs_rebind(tx, d->id, host) : tx_jobs_unbind(tx, d->id);
	if (r < 0 || str_eq(host, cluster_host(&cluster)))
		return r;
	json_put_str(cluster.plan, "host", host);
	return cluster_save(tx, s->arena, &cluster);
}

static int settle_run(struct tx *tx, void *ctx)
{
	struct settling *s = ctx;
	struct str kept;
	int r = tx_meta_get(tx, s->arena, "engine", &kept);
	const struct engine_ops *engine = r == 0 ? engine_find(arena_z(s->arena, kept)) : NULL;
	if (r < 0 && r != -ENOENT)
		return r;
	bool binds = engine && engine->core->on_host;
	r = binds ? clusters_walk(tx, settle_one, s) : 0;
	return r < 0 ? r : tx_jobs_settle(tx, binds ? s->host : STR_NONE);
}

int clusters_settle(struct store *store, struct str host, bool shared)
{
	struct settling s = {.arena = arena_new(), .host = host, .shared = shared};
	int r = store_write_wait(store, settle_run, &s);
	arena_free(s.arena);
	return r;
}
