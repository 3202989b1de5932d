/* The root, the rate limits and the control plane's addresses. */
#include "api/kit/verbs.h"
#include "api/users/users.h"

#include "call/service.h"
#include "identity/grants.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <strings.h>
#include <sys/socket.h>

/* The calling key, when a key calls: its own roles and access list. */
static int write_key(struct call *c, struct buf *b)
{
	struct doc *entries;
	struct grant_row *grants;
	size_t count, grant_count;
	int result = grants_of(c->tx, c->arena, str_of(c->caller->id), &grants, &grant_count);
	if (result == 0)
		result = tx_list(c->tx, c->arena, "api_access", str_of(c->caller->id), 0, 500, &entries, &count);
	if (result < 0)
		return result;
	json_t *roles = assignments_json(grants, grant_count);
	json_key(b, "apiKey");
	json_open(b, '{');
	json_key(b, "accessList");
	json_open(b, '[');
	for (size_t i = 0; i < count; i++) {
		struct str address, length;
		str_cut(entries[i].name, '/', &address, &length);
		json_open(b, '{');
		json_key(b, "cidrBlock");
		json_str(b, entries[i].name);
		json_key(b, "ipAddress");
		json_str(b, address);
		json_close(b, '}');
	}
	json_close(b, ']');
	json_key(b, "id");
	json_z(b, c->caller->id);
	json_key(b, "publicKey");
	json_z(b, c->caller->name);
	json_key(b, "roles");
	json_raw(b, json_text(c->arena, roles));
	json_decref(roles);
	json_close(b, '}');
	return 0;
}

int service_root(struct call *c)
{
	struct buf b = {0};
	int result = 0;
	json_open(&b, '{');
	json_key(&b, "appName");
	json_z(&b, "Service");
	json_key(&b, "build");
	json_z(&b, STEWARD_VERSION);
	json_key(&b, "throttling");
	json_bool(&b, false);
	if (c->caller->kind == PRINCIPAL_API_KEY)
		result = write_key(c, &b);
	json_close(&b, '}');
	if (result == 0)
		entity_write(c, &c->out, buf_view(&b), c->op, NULL, STR_NONE, false);
	buf_free(&b);
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
		if (view.kind >= 0) {
			call_fail(c, 400, "CONFLICTING_PARAMETERS",
			          "%s: give only one of groupId, orgId, userId and ipAddress.", filters[i].param);
			return call_fail_param(c, str_of(filters[i].param));
		}
		view = (struct limit_view){.scope = value, .kind = (int)filters[i].scope};
	}
	int result = 0;
	if (view.kind == SCOPE_GROUP)
		result = view_project(c, view.scope);
	else if (view.kind == SCOPE_USER)
		result = view_caller(c, view.scope);
	else if (view.kind == SCOPE_ORGANIZATION && !principal_org_roles(c->caller, view.scope))
		result = -ENOENT;
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

static struct str limit_text(struct call *c, const struct doc *d)
{
	const struct bucket_set *set = set_find(d->name);
	unsigned capacity, refill;
	struct buf b = {0};
	limiter_effective(c->service->limiter, set, d->parent, &capacity, &refill);
	json_open(&b, '{');
	json_key(&b, "capacity");
	json_int(&b, capacity);
	json_key(&b, "endpointSetId");
	json_z(&b, set->id);
	json_key(&b, "endpointSetName");
	json_z(&b, set->name);
	json_key(&b, "endpoints");
	json_open(&b, '[');
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (catalog_ops[i].set == set) {
			json_open(&b, '{');
			json_key(&b, "method");
			json_z(&b, method_name(catalog_ops[i].method));
			json_key(&b, "path");
			json_str(&b, arena_printf(c->arena, "%s%s", API_BASE, catalog_ops[i].path));
			json_close(&b, '}');
		}
	json_close(&b, ']');
	json_key(&b, "refillDurationSeconds");
	json_int(&b, set->seconds);
	json_key(&b, "refillRate");
	json_int(&b, refill);
	json_key(&b, "scope");
	static const char *const scopes[] = {"GROUP", "ORGANIZATION", "USER", "IP"};
	json_z(&b, scopes[set->scope]);
	json_close(&b, '}');
	struct str text = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return text;
}

static bool contains_fold(const char *text, struct str part)
{
	for (; *text; text++)
		if (strncasecmp(text, part.p, part.n) == 0)
			return true;
	return part.n == 0;
}

static bool has_endpoint(const struct bucket_set *set, struct str path)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (catalog_ops[i].set == set) {
			struct str below = str_of(catalog_ops[i].path), full = path;
			if (str_starts(full, STR(API_BASE))) {
				full.p += strlen(API_BASE);
				full.n -= strlen(API_BASE);
			}
			if (str_eq(below, full))
				return true;
		}
	return false;
}

static bool set_wanted(struct call *c, const struct bucket_set *set, const struct limit_view *view)
{
	struct str name = call_query(c, "name"), path = call_query(c, "endpointPath");
	if (view->kind >= 0 && set->scope != (enum bucket_scope)view->kind)
		return false;
	return (!name.p || contains_fold(set->name, name)) && (!path.p || has_endpoint(set, path));
}

static int limit_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *all = arena_new_of(c->arena, struct segment);
	struct limit_view view;
	int result = limit_view(c, &view);
	if (result < 0)
		return result;
	*all = (struct segment){.docs = arena_new_array(c->arena, struct doc, catalog_set_count)};
	for (unsigned i = 0; i < catalog_set_count; i++)
		if (set_wanted(c, &catalog_sets[i], &view))
			all->docs[all->count++] = set_doc(&catalog_sets[i], &view);
	*ret_list = all;
	*ret_count = 1;
	return 0;
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
static void hosts_write(struct buf *b, const char *listen_host)
{
	struct ip own;
	char text[IP_TEXT];
	struct ifaddrs *list = NULL;
	static const struct ip any_v6, any_v4 = {{[10] = 0xff, [11] = 0xff}};
	bool known = ip_parse(str_of(listen_host), &own);
	if (known && !ip_equal(&own, &any_v4) && !ip_equal(&own, &any_v6)) {
		ip_format(&own, text);
		json_z(b, text);
		return;
	}
	if (getifaddrs(&list) != 0)
		return;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK) ||
		    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		own = ip_from_sockaddr(i->ifa_addr);
		ip_format(&own, text);
		json_z(b, text);
	}
	freeifaddrs(list);
}

/* A cluster's provider and region are labels on this host, so for each provider the addresses are this host's, under
 * the one region "self-hosted". */
static void addresses_write(struct call *c, struct buf *b, const char *direction)
{
	static const char *const providers[] = {"aws", "azure", "gcp"};
	json_key(b, direction);
	json_open(b, '{');
	for (size_t i = 0; i < sizeof providers / sizeof *providers; i++) {
		json_key(b, providers[i]);
		json_open(b, '{');
		json_key(b, "self-hosted");
		json_open(b, '[');
		hosts_write(b, c->service->listen_host);
		json_close(b, ']');
		json_close(b, '}');
	}
	json_close(b, '}');
}

int service_addresses(struct call *c)
{
	struct buf b = {0};
	json_open(&b, '{');
	json_key(&b, "gateways");
	json_open(&b, '[');
	json_close(&b, ']');
	addresses_write(c, &b, "inbound");
	addresses_write(c, &b, "outbound");
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), c->op, NULL, STR_NONE, true);
	buf_free(&b);
	return 0;
}
