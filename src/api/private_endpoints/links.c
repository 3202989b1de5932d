/* Links between clusters and endpoint services, and what they mean for clusters: names in certificates, who may
 * connect, connection strings. */
#include "api/private_endpoints/endpoints.h"

#include "api/network/network.h"
#include "base/buf.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>

/* A letter for each port of all links, from the first on: x is taken. */
#define PORTS_META "private_link_ports"
#define PORTS_MAX 64512
/* An organization's share, so that one tenant cannot take them all; the last ones are for those that have few. */
#define ORG_PORTS_MAX 4096
#define ORG_PORTS_FEW 64
#define PORTS_RESERVE 8192
#define SHARE_KIND "private_link_share" /* parent = organization, name = SHARE_NAME; {"ports"} */
#define SHARE_NAME "ports"

const char *link_location(struct arena *a, struct str region)
{
	char *z = arena_z(a, region);
	for (char *p = z; *p; p++)
		*p = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
	return z;
}

int links_load(struct tx *tx, struct arena *a, struct str group_id, struct link **ret_list, size_t *ret_count)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, LINK_KIND, group_id, &docs, &count);
	if (r < 0)
		return r;
	*ret_list = arena_new_array(a, struct link, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *body = doc_json(a, docs[i].body);
		(*ret_list)[i] = (struct link){.doc = docs[i],
		                               .cluster = json_field(body, "cluster"),
		                               .service = json_field(body, "service"),
		                               .fault = json_field(body, "fault"),
		                               .org = json_field(body, "org"),
		                               .number = (unsigned)json_number(body, "number"),
		                               .port = (unsigned)json_number(body, "port")};
	}
	*ret_count = count;
	return 0;
}

/* --- ports */

static int ports_load(struct tx *tx, struct arena *a, struct buf *ret_ports)
{
	struct str kept = STR_NONE;
	int r = tx_meta_get(tx, a, PORTS_META, &kept);
	if (r == 0)
		buf_str(ret_ports, kept);
	return r == -ENOENT ? 0 : r;
}

static int share_load(struct tx *tx, struct arena *a, struct str org_id, int64_t *ret_ports)
{
	struct doc d;
	int r = tx_get_by_name(tx, a, SHARE_KIND, org_id, STR(SHARE_NAME), &d);
	*ret_ports = r == 0 ? (int64_t)json_number(doc_json(a, d.body), "ports") : 0;
	return r == -ENOENT ? 0 : r;
}

static int share_save(struct tx *tx, struct arena *a, struct str org_id, int64_t ports)
{
	return tx_set_by_name(tx, a, SHARE_KIND, org_id, STR(SHARE_NAME),
	                      ports > 0 ? arena_printf(a, "{\"ports\":%lld}", (long long)ports) : STR_NONE);
}

static int share_take(struct tx *tx, struct arena *a, struct str org_id, size_t free_ports)
{
	int64_t ports = 0;
	int r = share_load(tx, a, org_id, &ports);
	if (r == 0 &&
	    (ports >= ORG_PORTS_MAX || !free_ports || (free_ports <= PORTS_RESERVE && ports >= ORG_PORTS_FEW)))
		r = -EDQUOT;
	return r < 0 ? r : share_save(tx, a, org_id, ports + 1);
}

/* A link of before there were shares counts for nobody. */
static int share_give(struct tx *tx, struct arena *a, struct str org_id)
{
	int64_t ports = 0;
	int r = org_id.n ? share_load(tx, a, org_id, &ports) : 0;
	return r < 0 || !ports ? r : share_save(tx, a, org_id, ports - 1);
}

static int port_take(struct tx *tx, struct arena *a, struct str org_id, unsigned *ret_port)
{
	struct buf ports = {0};
	int r = ports_load(tx, a, &ports);
	size_t at = 0, taken = 0;
	while (at < ports.n && ports.p[at] == 'x')
		at++;
	for (size_t i = 0; i < ports.n; i++)
		taken += ports.p[i] == 'x';
	if (r == 0)
		r = share_take(tx, a, org_id, taken < PORTS_MAX ? PORTS_MAX - taken : 0);
	if (r == 0 && at == ports.n)
		buf_c(&ports, 'x');
	else if (r == 0)
		ports.p[at] = 'x';
	if (r == 0)
		r = tx_meta_put(tx, PORTS_META, buf_view(&ports));
	*ret_port = (unsigned)at;
	buf_free(&ports);
	return r;
}

static int port_give(struct tx *tx, struct arena *a, unsigned port)
{
	struct buf ports = {0};
	int r = ports_load(tx, a, &ports);
	if (r == 0 && port < ports.n) {
		ports.p[port] = '-';
		r = tx_meta_put(tx, PORTS_META, buf_view(&ports));
	}
	buf_free(&ports);
	return r;
}

/* --- making and forgetting */

static int link_drop(struct tx *tx, struct arena *a, const struct link *l)
{
	int r = port_give(tx, a, l->port);
	if (r == 0)
		r = share_give(tx, a, l->org);
	return r < 0 ? r : tx_delete(tx, LINK_KIND, l->doc.id);
}

struct settling {
	struct arena *arena;
	struct str group_id, except; /* a cluster that is going */
	struct str org_id;
	bool lenient; /* a cluster beyond the organization's share does without a link */
	struct doc *services;
	size_t service_count;
	struct link *links;
	size_t link_count;
	bool *wanted; /* by link */
};

/* The first number that no link of the project has: names of the same place differ by it. */
static unsigned number_free(const struct settling *s)
{
	for (unsigned number = 0;; number++) {
		bool taken = false;
		for (size_t i = 0; i < s->link_count && !taken; i++)
			taken = s->links[i].number == number;
		if (!taken)
			return number;
	}
}

static int link_make(struct tx *tx, struct settling *s, struct str cluster, struct str service)
{
	unsigned port, number = number_free(s);
	int r = port_take(tx, s->arena, s->org_id, &port);
	if (r < 0)
		return r;
	json_t *body = json_new(s->arena);
	json_put_str(body, "cluster", cluster);
	json_put_str(body, "service", service);
	json_put(body, "number", json_integer(number));
	json_put(body, "port", json_integer(port));
	json_put_str(body, "org", s->org_id);
	struct str name = arena_printf(s->arena, "%.*s/%.*s", STR_ARG(cluster), STR_ARG(service));
	struct doc d = doc_new(s->arena, LINK_KIND, s->group_id, name, json_text(s->arena, body));
	s->links = arena_grow(s->arena, s->links, s->link_count, s->link_count + 1, sizeof *s->links);
	s->wanted = arena_grow(s->arena, s->wanted, s->link_count, s->link_count + 1, sizeof *s->wanted);
	s->wanted[s->link_count] = true;
	s->links[s->link_count++] = (struct link){.doc = d,
	                                          .cluster = arena_dup(s->arena, cluster),
	                                          .service = service,
	                                          .org = s->org_id,
	                                          .number = number,
	                                          .port = port};
	return tx_insert(tx, &d);
}

static int cluster_settle(struct tx *tx, void *ctx, const struct doc *doc)
{
	struct settling *s = ctx;
	const json_t *body = doc_json(s->arena, doc->body);
	int r = 0;
	if (str_eq(doc->id, s->except))
		return 0;
	for (size_t i = 0; r == 0 && i < s->service_count; i++) {
		const json_t *service = doc_json(s->arena, s->services[i].body);
		bool found = false;
		if (lifecycle_is_leaving(s->arena, &s->services[i]) ||
		    !cluster_is_in(body, json_field(service, "cloudProvider"), json_field(service, "regionName")))
			continue;
		for (size_t k = 0; k < s->link_count && !found; k++) {
			found = str_eq(s->links[k].cluster, doc->id) && str_eq(s->links[k].service, s->services[i].id);
			s->wanted[k] |= found;
		}
		if (!found)
			r = link_make(tx, s, doc->id, s->services[i].id);
		if (r == -EDQUOT && s->lenient) {
			log_warn("cluster %.*s has no private link: its organization has no port left",
			         STR_ARG(doc->id));
			r = 0;
		}
	}
	return r;
}

static int settle(struct tx *tx, struct arena *a, struct str group_id, struct str except, bool lenient)
{
	struct settling s = {.arena = a, .group_id = group_id, .except = except, .lenient = lenient};
	struct doc project;
	int r = tx_list_all(tx, a, SERVICE_KIND, group_id, &s.services, &s.service_count);
	if (r == 0)
		r = links_load(tx, a, group_id, &s.links, &s.link_count);
	if (r < 0 || (!s.service_count && !s.link_count))
		return r;
	r = tx_get(tx, a, "project", group_id, &project);
	if (r < 0 && r != -ENOENT) /* one that is going makes no links */
		return r;
	s.org_id = r == 0 ? project.parent : STR_NONE;
	s.wanted = arena_new_array(a, bool, s.link_count + 1);
	r = clusters_walk_group(tx, a, group_id, cluster_settle, &s);
	bool mended = false;
	for (size_t i = 0; r == 0 && i < s.link_count; i++)
		if (!s.wanted[i]) {
			r = link_drop(tx, a, &s.links[i]);
			mended |= s.links[i].fault.n > 0;
		}
	/* What kept a service from working may have gone with it. */
	return r == 0 && mended ? access_ask(tx, a, group_id) : r;
}

int links_settle(struct tx *tx, struct arena *a, struct str group_id)
{
	return settle(tx, a, group_id, STR_NONE, false);
}

int link_fault(struct tx *tx, struct arena *a, struct str link_id, struct str why)
{
	struct doc d;
	int r = tx_get(tx, a, LINK_KIND, link_id, &d);
	if (r < 0)
		return r;
	json_t *body = doc_json(a, d.body);
	if (str_eq(json_field(body, "fault"), why))
		return 0;
	if (why.n)
		json_put_str(body, "fault", why);
	else
		json_object_del(body, "fault");
	d.body = json_text(a, body);
	return tx_update(tx, &d);
}

int links_forget(struct tx *tx, struct arena *a, struct str group_id, struct str service_id)
{
	struct link *links;
	size_t count = 0;
	int r = links_load(tx, a, group_id, &links, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(links[i].service, service_id))
			r = link_drop(tx, a, &links[i]);
	return r;
}

/* --- clusters */

static int part_settle(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	return settle(tx, a, cluster->doc.parent, STR_NONE, true);
}

static int part_removed(struct tx *tx, struct arena *a, const struct cluster *cluster)
{
	return settle(tx, a, cluster->doc.parent, cluster->doc.id, true);
}

int consumers_load(struct tx *tx, struct arena *a, struct str service_id, struct cidr **ret_list, size_t *ret_count)
{
	struct doc *docs;
	size_t count = 0, found = 0, room = 0;
	struct cidr *list = NULL, one;
	int r = tx_list_all(tx, a, ENDPOINT_KIND, service_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *body = doc_json(a, docs[i].body), *consumers = json_object_get(body, "consumers");
		for (size_t k = 0; endpoint_is_open(body) && k < json_array_size(consumers); k++)
			if (cidr_parse(json_item(consumers, k), &one)) {
				ARENA_FIT(a, list, found, room);
				list[found++] = one;
			}
	}
	*ret_list = list;
	*ret_count = found;
	return r;
}

/* One way to a cluster: an open endpoint of a service that works. */
struct way {
	const struct link *link;
	const json_t *service;
	struct doc endpoint;
};

static int ways_load(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_id, struct way **ret_ways,
                     size_t *ret_count)
{
	struct link *links;
	struct way *ways = NULL;
	size_t link_count = 0, count = 0, room = 0;
	int r = links_load(tx, a, group_id, &links, &link_count);
	for (size_t i = 0; r == 0 && i < link_count; i++) {
		struct doc service, *docs;
		size_t docs_count = 0;
		if (!str_eq(links[i].cluster, cluster_id))
			continue;
		r = tx_get(tx, a, SERVICE_KIND, links[i].service, &service);
		if (r == 0)
			r = tx_list_all(tx, a, ENDPOINT_KIND, service.id, &docs, &docs_count);
		if (r == -ENOENT)
			r = 0;
		const json_t *body = docs_count ? doc_json(a, service.body) : NULL;
		const char *state = body ? lifecycle_state(service.kind, body) : NULL;
		for (size_t k = 0; r == 0 && k < docs_count && state && strcmp(state, "AVAILABLE") == 0; k++)
			if (endpoint_is_open(doc_json(a, docs[k].body))) {
				ARENA_FIT(a, ways, count, room);
				ways[count++] = (struct way){&links[i], body, docs[k]};
			}
	}
	*ret_ways = ways;
	*ret_count = count;
	return r;
}

static int part_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct way *ways;
	size_t count = 0;
	bool regional = false, sharded = cluster_is_sharded(cluster->body);
	int r = ways_load(tx, a, cluster->doc.parent, cluster->doc.id, &ways, &count);
	if (r == 0 && count)
		r = regional_mode(tx, a, cluster->doc.parent, &regional);
	if (r < 0 || !count)
		return r;
	struct connection_endpoint *list = arena_new_array(a, struct connection_endpoint, count);
	for (size_t i = 0; i < count; i++) {
		struct str region = json_field(ways[i].service, "regionName");
		list[i] = (struct connection_endpoint){
		        .number = ways[i].link->number,
		        .location = link_location(a, region),
		        .cluster_name = arena_z(a, cluster->doc.name),
		        .regional = regional,
		        .optimized = sharded,
		        .id = arena_z(a, ways[i].endpoint.name),
		        .provider = arena_z(a, json_field(ways[i].service, "cloudProvider")),
		        .region = arena_z(a, region),
		        .port = relays_port(ways[i].link->port),
		        .address = relays_service()->engine_ops->core->on_host ? relays_address() : NULL};
	}
	want->endpoints = list;
	want->endpoint_count = count;
	return 0;
}

/* The relay's own address is let in, and the certificates stand for the names. */
static int part_access(struct tx *tx, struct arena *a, struct str group_id, struct str cluster_name,
                       struct engine_access *access)
{
	struct doc cluster;
	struct way *ways;
	size_t count = 0;
	char hash[PROJECT_HASH];
	int r = tx_get_by_name(tx, a, CLUSTER_KIND, group_id, cluster_name, &cluster);
	if (r == 0)
		r = ways_load(tx, a, group_id, cluster.id, &ways, &count);
	if (r < 0 || !count || !relays_are_here())
		return r == -ENOENT ? 0 : r;
	struct cidr *networks =
	        arena_grow(a, access->networks, access->network_count, access->network_count + 1, sizeof *networks);
	networks[access->network_count++] = (struct cidr){.net = relays_source(), .bits = 128, .v4 = true};
	access->networks = networks;
	const char **names = arena_new_array(a, const char *, count);
	project_hash(group_id, hash);
	for (size_t i = 0; i < count; i++)
		names[i] = arena_printf(a, "pl-%u-%s.%s.%s", ways[i].link->number,
		                        link_location(a, json_field(ways[i].service, "regionName")), hash,
		                        relays_service()->db_domain)
		                   .p;
	access->host_names = names;
	access->host_name_count = count;
	return 0;
}

static bool has_string(const json_t *cluster, const json_t *service, struct str endpoint_name)
{
	const json_t *strings = json_object_get(cluster, "connectionStrings");
	const json_t *list = json_object_get(strings, "privateEndpoint");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *ends = json_object_get(json_array_get(list, i), "endpoints");
		for (size_t k = 0; k < json_array_size(ends); k++) {
			const json_t *end = json_array_get(ends, k);
			if (str_eq(json_field(end, "endpointId"), endpoint_name) &&
			    str_eq(json_field(end, "region"), json_field(service, "regionName")) &&
			    str_eq(json_field(end, "providerName"), json_field(service, "cloudProvider")))
				return true;
		}
	}
	return false;
}

int strings_are_there(struct tx *tx, struct arena *a, const struct doc *service, struct str endpoint_name,
                      bool *ret_there)
{
	struct link *links;
	size_t count = 0;
	bool there = true;
	const json_t *body = doc_json(a, service->body);
	int r = links_load(tx, a, service->parent, &links, &count);
	for (size_t i = 0; r == 0 && i < count && there; i++) {
		struct cluster cluster;
		if (!str_eq(links[i].service, service->id))
			continue;
		r = cluster_get(tx, a, links[i].cluster, &cluster);
		bool waits = r == 0 && json_object_get(cluster.plan, "applied") && !cluster_is(&cluster, "DELETING") &&
		             !cluster_is(&cluster, "REPAIRING");
		there = !waits || has_string(cluster.body, body, endpoint_name);
		r = r == -ENOENT ? 0 : r;
	}
	*ret_there = there;
	return r;
}

/* It has strings for all that is open: what waited for these is available. */
static int part_converged(struct tx *tx, struct arena *a, const struct cluster *cluster, bool maintained)
{
	struct way *ways;
	size_t count = 0;
	int r = ways_load(tx, a, cluster->doc.parent, cluster->doc.id, &ways, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (json_flag(doc_json(a, ways[i].endpoint.body), "opening"))
			r = lifecycle_advance(tx, a, &ways[i].endpoint);
	return r;
}

const struct cluster_part private_endpoints_part = {.created = part_settle,
                                                    .changed = part_settle,
                                                    .removed = part_removed,
                                                    .wanted = part_wanted,
                                                    .access = part_access,
                                                    .rules = cluster_nodes_check,
                                                    .converged = part_converged,
                                                    .applied = relays_apply};
