/* The root, the rate limits and the control plane's addresses. */
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "call/service.h"
#include "identity/grants.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

/* The calling key, when a key calls: its own roles and access list. */
static int key_add(struct call *c, json_t *root)
{
	struct doc *entries;
	struct grant_row *grants;
	size_t count, grant_count;
	int result = grants_of(c->tx, c->arena, str_of(c->caller->id), &grants, &grant_count);
	if (result == 0)
		result = tx_list(c->tx, c->arena, "api_access", str_of(c->caller->id), 0, 500, &entries, &count);
	if (result < 0)
		return result;
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++) {
		struct str address, length;
		str_cut(entries[i].name, '/', &address, &length);
		json_array_append_new(list, json_pack("{s:s%, s:s%}", "cidrBlock", entries[i].name.p, entries[i].name.n,
		                                      "ipAddress", address.p, address.n));
	}
	json_put(root, "apiKey",
	         json_pack("{s:o, s:s, s:s, s:o}", "accessList", list, "id", c->caller->id, "publicKey",
	                   c->caller->name, "roles", assignments_json(grants, grant_count)));
	return 0;
}

int service_root(struct call *c)
{
	json_t *root = json_keep(c->arena, json_pack("{s:s, s:s, s:b}", "appName", "Service", "build", STEWARD_VERSION,
	                                             "throttling", 0));
	int result = c->caller->kind == PRINCIPAL_API_KEY ? key_add(c, root) : 0;
	if (result == 0)
		entity_write(c, &c->out, json_text(c->arena, root), c->op, NULL, STR_NONE, false);
	return result;
}

/* Which scope instance the filters ask about; a set of another scope is left out. */
struct limit_view {
	struct str scope;
	int kind; /* enum bucket_scope, or -1: all sets, without an instance */
};

static int view_project(struct call *c, struct str id)
{
	struct doc d;
	int result = tx_get(c->tx, c->arena, "project", id, &d);
	if (result < 0)
		return result;
	bool member = principal_group_roles(c->caller, d.parent, id) || principal_org_roles(c->caller, d.parent);
	return member ? 0 : -ENOENT;
}

/* A caller is a user, a key or an account. Limits that an operator has set for one are for those to know who share an
 * organization or a project with it; what a stranger names does not exist. */
static int view_caller(struct call *c, struct str id)
{
	static const char *const kinds[] = {"api_key", "service_account", "user"};
	bool visible = str_is(id, c->caller->id);
	int result = -ENOENT;
	struct doc d;
	for (size_t i = 0; !visible && result == -ENOENT && i < sizeof kinds / sizeof *kinds; i++)
		result = tx_get(c->tx, c->arena, kinds[i], id, &d);
	if (!visible && result == 0)
		result = user_is_visible(c, id, &visible);
	if (result < 0 && result != -ENOENT)
		return result;
	return visible ? 0 : -ENOENT;
}

static int limit_view(struct call *c, struct limit_view *ret_view)
{
	static const struct {
		const char *param;
		enum bucket_scope scope;
	} filters[] = {{"groupId", SCOPE_GROUP},
	               {"orgId", SCOPE_ORGANIZATION},
	               {"userId", SCOPE_USER},
	               {"ipAddress", SCOPE_IP}};
	struct limit_view view = {.kind = -1};
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
		struct str value = call_query(c, filters[i].param);
		if (!value.p)
			continue;
		if (view.kind >= 0)
			return call_fail_about(c, 400, "CONFLICTING_PARAMETERS", str_of(filters[i].param),
			                       "%s: give only one of groupId, orgId, userId and ipAddress.",
			                       filters[i].param);
		view = (struct limit_view){.scope = value, .kind = (int)filters[i].scope};
	}
	int result = 0;
	if (view.kind == SCOPE_GROUP)
		result = view_project(c, view.scope);
	else if (view.kind == SCOPE_USER)
		result = view_caller(c, view.scope);
	else if (view.kind == SCOPE_ORGANIZATION && !principal_org_roles(c->caller, view.scope))
		result = -ENOENT;
	if (result == -ENOENT)
		return call_missing(c,
		                    view.kind == SCOPE_GROUP  ? &resource_project
		                    : view.kind == SCOPE_USER ? &resource_user
		                                              : &resource_org,
		                    view.scope);
	if (result < 0)
		return result;
	*ret_view = view;
	return 0;
}

static const struct bucket_set *set_find(struct str id)
{
	for (unsigned i = 0; i < catalog_set_count; i++)
		if (str_is(id, catalog_sets[i].id))
			return &catalog_sets[i];
	return NULL;
}

/* As a document: the id as the name, below the scope instance that the limits are asked for. */
static struct doc set_doc(const struct bucket_set *set, const struct limit_view *view)
{
	return (struct doc){.name = str_of(set->id), .parent = view->scope};
}

/* A number; or, as some dialects have it, an object that also tells the usual one where an operator has set another. */
static json_t *limit_number(const struct call *c, unsigned value, unsigned usual)
{
	if (!c->dialect || !(c->dialect->lenient & LIMITS_ARE_OBJECTS))
		return json_integer((json_int_t)value);
	json_t *to = json_pack("{s:I}", "value", (json_int_t)value);
	if (value != usual)
		json_put(to, "defaultValue", json_integer((json_int_t)usual));
	return to;
}

static struct str limit_text(struct call *c, const struct doc *d)
{
	static const char *const scopes[] = {"GROUP", "ORGANIZATION", "USER", "IP"};
	const struct bucket_set *set = set_find(d->name);
	unsigned capacity, refill;
	json_t *endpoints = json_array();
	limiter_effective(c->service->limiter, set, d->parent, &capacity, &refill);
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (catalog_ops[i].set == set)
			json_array_append_new(endpoints,
			                      json_pack("{s:s, s:s+}", "method", method_name(catalog_ops[i].method),
			                                "path", dialect_base(c->dialect, false),
			                                dialect_path(c->dialect, &catalog_ops[i])));
	json_t *value =
	        json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:s}", "capacity", limit_number(c, capacity, set->capacity),
	                  "endpointSetId", set->id, "endpointSetName", set->name, "endpoints", endpoints,
	                  "refillDurationSeconds", limit_number(c, set->seconds, set->seconds), "refillRate",
	                  limit_number(c, refill, set->refill), "scope", scopes[set->scope]);
	return json_text(c->arena, json_keep(c->arena, value));
}

/* The path with or without its base. */
static bool has_endpoint(const struct call *c, const struct bucket_set *set, struct str path)
{
	struct str base = str_of(dialect_base(c->dialect, false));
	if (str_starts(path, base))
		path = (struct str){path.p + base.n, path.n - base.n};
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (catalog_ops[i].set == set && str_is(path, dialect_path(c->dialect, &catalog_ops[i])))
			return true;
	return false;
}

static bool set_wanted(struct call *c, const struct bucket_set *set, const struct limit_view *view)
{
	struct str name = call_query(c, "name"), path = call_query(c, "endpointPath");
	if (view->kind >= 0 && set->scope != (enum bucket_scope)view->kind)
		return false;
	return (!name.p || strcasestr(set->name, arena_z(c->arena, name))) && (!path.p || has_endpoint(c, set, path));
}

static int limit_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct doc *docs = arena_new_array(c->arena, struct doc, catalog_set_count);
	size_t count = 0;
	struct limit_view view;
	int result = limit_view(c, &view);
	for (unsigned i = 0; result == 0 && i < catalog_set_count; i++)
		if (set_wanted(c, &catalog_sets[i], &view))
			docs[count++] = set_doc(&catalog_sets[i], &view);
	return result < 0 ? result : segments_docs(c, docs, count, ret_list, ret_count);
}

static int limit_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	const struct bucket_set *set = set_find(call_path(c, "endpointSetId"));
	struct limit_view view;
	int result = limit_view(c, &view);
	if (result < 0)
		return result;
	if (!set || (view.kind >= 0 && set->scope != (enum bucket_scope)view.kind))
		return -ENOENT;
	*ret_doc = set_doc(set, &view);
	return 0;
}

const struct resource_hooks rate_limit_hooks = {.load = limit_load, .segments = limit_segments, .text = limit_text};

/* Where the service is reached: the address that it listens on, or all of this host's when it listens on all. */
static json_t *hosts_json(const char *listen_host)
{
	struct ip own;
	char text[IP_TEXT];
	struct ifaddrs *list = NULL;
	static const struct ip any_v6, any_v4 = {{[10] = 0xff, [11] = 0xff}};
	bool known = ip_parse(str_of(listen_host), &own);
	json_t *hosts = json_array();
	if (known && !ip_equal(&own, &any_v4) && !ip_equal(&own, &any_v6)) {
		ip_format(&own, text);
		json_add_str(hosts, str_of(text));
	} else if (getifaddrs(&list) != 0) {
		return hosts;
	}
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK) ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		own = ip_from_sockaddr(i->ifa_addr);
		ip_format(&own, text);
		json_add_str(hosts, str_of(text));
	}
	freeifaddrs(list);
	return hosts;
}

/* A cluster's provider and region are labels on this host, so for each provider the addresses are this host's, under
 * the one region "self-hosted". They are the same in both directions. */
int service_addresses(struct call *c)
{
	static const char *const providers[] = {"aws", "azure", "gcp"};
	json_t *hosts = json_keep(c->arena, hosts_json(c->service->listen_host)), *all = json_object();
	for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
		json_put(all, providers[i], json_pack("{s:O}", "self-hosted", hosts));
	json_t *answer =
	        json_keep(c->arena, json_pack("{s:[], s:O, s:o}", "gateways", "inbound", all, "outbound", all));
	entity_write(c, &c->out, json_text(c->arena, answer), c->op, NULL, STR_NONE, true);
	return 0;
}
