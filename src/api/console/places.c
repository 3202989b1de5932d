/* What the console needs to know of machines: what a size stands for here, and, for the operator, the hosts. Beside the
 * catalog; they pass the same gates. The operator is an owner of the first organization. */
#include "api/console/overview.h"

#include "api/clusters/clusters.h"
#include "base/clock.h"
#include "base/id.h"
#include "catalog/schema.h"
#include "engine/engine.h"
#include "gate/dispatch.h"
#include "hosts/hosts.h"

#include <pthread.h>

#define MB INT64_C(1048576)
#define SIZES_MAX 256

static int64_t left_of(int64_t bound, int64_t capacity, int64_t used)
{
	int64_t all = bound ? bound : capacity;
	return all > used ? all - used : 0;
}

/* Names in the order of their first provider's list. */
static size_t sizes_collect(struct str list[SIZES_MAX])
{
	static const char *const schemas[] = {"AWSHardwareSpec", "AzureHardwareSpec", "GCPHardwareSpec",
	                                      "TenantHardwareSpec"};
	size_t count = 0;
	for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
		const struct schema *s = schema_of_field(schemas[i], "instanceSize");
		for (unsigned k = 0; s && k < s->enum_count && count < SIZES_MAX; k++) {
			struct str name = schema_enum(s, k);
			bool known = false;
			for (size_t n = 0; n < count && !known; n++)
				known = str_eq(list[n], name);
			if (!known)
				list[count++] = name;
		}
	}
	return count;
}

/* The host with the most room, which a new cluster would go to. */
static const struct host *roomiest(const struct host *list, size_t count)
{
	const struct host *best = NULL;
	for (size_t i = 0; i < count; i++) {
		const struct host *h = &list[i];
		if (h->cordoned || (h->shared && !h->alive))
			continue;
		if (!best || left_of(h->bound.memory_mb, h->capacity.memory_mb, h->used.memory_mb) >
		                     left_of(best->bound.memory_mb, best->capacity.memory_mb, best->used.memory_mb))
			best = h;
	}
	return best;
}

/* Whether the caller could create or change a cluster somewhere: others have no use for what hosts are like. */
static bool makes_clusters(const struct principal *p)
{
	role_mask wanted = catalog_op("createCluster")->roles | catalog_op("updateCluster")->roles;
	for (size_t i = 0; i < p->grant_count; i++) {
		struct str scope = {p->grants[i].scope.z, ID_LEN};
		if (principal_group_roles(p, scope, scope) & wanted)
			return true;
	}
	return false;
}

static int sizes(struct call *c)
{
	struct host *hosts = NULL;
	struct str names[SIZES_MAX];
	size_t count = 0, named = sizes_collect(names);
	struct buf *b = &c->out;
	if (!makes_clusters(c->caller))
		return call_fail(c, 403, "INSUFFICIENT_ROLE",
		                 "Sizes are shown to those who may create or change a cluster in some project.");
	int r = hosts_read(c->tx, c->arena, &hosts, &count);
	if (r < 0)
		return r;
	json_open(b, '{');
	json_key(b, "results");
	json_open(b, '[');
	for (size_t i = 0; i < named; i++) {
		struct engine_size size = engine_size(arena_z(c->arena, names[i]));
		json_open(b, '{');
		json_pair_str(b, "name", names[i]);
		json_pair_int(b, "cores", size.processors);
		json_pair_int(b, "memoryBytes", size.memory_mb * MB);
		json_pair_int(b, "diskGB", (int64_t)cluster_disk_standard(names[i]));
		json_close(b, '}');
	}
	json_close(b, ']');
	const struct host *h = roomiest(hosts, count);
	if (h && c->service->engine_ops->core->on_host) {
		json_key(b, "host");
		json_open(b, '{');
		json_pair_int(b, "cores", h->capacity.cores);
		json_pair_int(b, "memoryBytes", h->capacity.memory_mb * MB);
		json_pair_int(b, "diskFreeBytes", left_of(h->bound.disk_mb, h->capacity.disk_mb, h->used.disk_mb) * MB);
		json_pair_bool(b, "bounded", h->bound.cores || h->bound.memory_mb || h->bound.disk_mb);
		json_close(b, '}');
	}
	json_close(b, '}');
	c->content_type = "application/json";
	return 0;
}

static void host_write(struct buf *b, struct arena *a, const struct host *h)
{
	json_open(b, '{');
	json_pair_str(b, "id", h->id);
	json_pair_str(b, "name", h->name);
	json_pair_bool(b, "alive", h->alive || !h->shared);
	json_pair_bool(b, "cordoned", h->cordoned);
	json_pair_int(b, "clusters", h->clusters);
	json_pair_int(b, "cores", h->capacity.cores);
	json_pair_int(b, "coresPromised", h->used.cores);
	json_pair_int(b, "memoryBytes", h->capacity.memory_mb * MB);
	json_pair_int(b, "memoryPromised", h->used.memory_mb * MB);
	json_pair_int(b, "diskBytes", (h->bound.disk_mb ? h->bound.disk_mb : h->capacity.disk_mb) * MB);
	json_pair_int(b, "diskFreeBytes", left_of(h->bound.disk_mb, h->capacity.disk_mb, h->used.disk_mb) * MB);
	if (h->shared && h->age_ms >= 0)
		json_pair_time(b, "seenAt", clock_machine_ms() - h->age_ms);
	json_key(b, "labels");
	json_raw(b, h->labels ? json_text(a, h->labels) : STR("{}"));
	json_close(b, '}');
}

static int hosts(struct call *c)
{
	struct host *list = NULL;
	size_t count = 0;
	struct str first;
	struct buf *b = &c->out;
	int r = tx_meta_get(c->tx, c->arena, "bootstrap", &first);
	const struct op *owner = catalog_op("deleteOrg");
	if (r == 0 && !(principal_org_roles(c->caller, first) & owner->roles))
		return call_fail(c, 403, "INSUFFICIENT_ROLE",
		                 "Hosts are shown to the operator: an owner of the service's first organization.");
	if (r == 0)
		r = hosts_read(c->tx, c->arena, &list, &count);
	if (r < 0)
		return r;
	json_open(b, '{');
	json_key(b, "results");
	json_open(b, '[');
	for (size_t i = 0; i < count; i++)
		host_write(b, c->arena, &list[i]);
	json_close(b, ']');
	json_pair_int(b, "totalCount", (int64_t)count);
	json_close(b, '}');
	c->content_type = "application/json";
	return 0;
}

/* --- their rows */

static const struct schema id_schema = {.type = TYPE_STRING, .pattern = -1};
static const struct param group_param[] = {
        {.name = "groupId", .description = "The project that a cluster is made in", .schema = &id_schema}};
static struct op rows[2];
static pthread_once_t rows_once = PTHREAD_ONCE_INIT;

static void rows_make(void)
{
	rows[0] = rows[1] = *catalog_op("listClusterDetails");
	rows[0].id = "listConsoleSizes";
	rows[0].path = SIZES_PATH;
	rows[0].handler = sizes;
	rows[0].query_params = group_param;
	rows[0].query_param_count = 1;
	rows[1].id = "listConsoleHosts";
	rows[1].path = HOSTS_LIST_PATH;
	rows[1].handler = hosts;
	rows[0].paginated = rows[1].paginated = false;
}

void sizes_serve(struct service *s, struct request *r)
{
	pthread_once(&rows_once, rows_make);
	dispatch_as(s, r, &rows[0]);
}

void hosts_serve(struct service *s, struct request *r)
{
	pthread_once(&rows_once, rows_make);
	dispatch_as(s, r, &rows[1]);
}
