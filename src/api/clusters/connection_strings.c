/* Connection strings. Text only: which nodes there are, and where, is for the engine to say. */
#include "api/clusters/connection_strings.h"

#include "base/buf.h"
#include "base/json.h"
#include "engine/access.h"

#define ENDPOINT_PORT 1024u

/* With the nodes' addresses, if all have one. */
static void tail_add(struct buf *b, const struct connection_cluster *c)
{
	struct buf list = {0};
	bool addresses = true;
	for (size_t i = 0; i < c->node_count; i++) {
		addresses = addresses && c->nodes[i].address[0];
		buf_printf(&list, "%s%s", i ? "," : "", c->nodes[i].address);
	}
	engine_connect_tail(b, addresses ? buf_view(&list) : STR_NONE);
	buf_free(&list);
}

struct str connection_hosts(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                            const char *suffix)
{
	struct buf b = {0};
	buf_printf(&b, "%s://", o->scheme);
	for (size_t i = 0; i < c->node_count; i++)
		buf_printf(&b, "%s%s%s.%s.%s:%u", i ? "," : "", c->nodes[i].name, suffix, c->project_hash, o->domain,
		           c->nodes[i].port);
	tail_add(&b, c);
	return buf_keep(&b, a);
}

struct str connection_srv(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                          const char *suffix)
{
	return arena_printf(a, "%s+srv://%s%s.%s.%s", o->scheme, c->label, suffix, c->project_hash, o->domain);
}

/* A cloud's load balancer has its address in the customer's network: by name only. A relay's is known. */
struct str connection_endpoint(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                               const struct connection_endpoint *e)
{
	struct buf b = {0};
	buf_printf(&b, "%s://pl-%u-%s.%s.%s:%u", o->scheme, e->number, e->location, c->project_hash, o->domain,
	           e->port ? e->port : ENDPOINT_PORT);
	engine_connect_tail(&b, str_of(e->address));
	return buf_keep(&b, a);
}

struct str connection_endpoint_srv(struct arena *a, const struct connection_options *o,
                                   const struct connection_cluster *c, const struct connection_endpoint *e,
                                   bool optimized)
{
	return arena_printf(a, "%s+srv://%s%spl-%u%s-%s.%s.%s", o->scheme, e->regional ? e->cluster_name : "",
	                    e->regional ? "-" : "", e->number, optimized ? "-lb" : "", e->location, c->project_hash,
	                    o->domain);
}

static void endpoint_add(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                         const struct connection_endpoint *e, bool sharded, json_t *strings)
{
	struct str plain = connection_endpoint(a, o, c, e), srv = connection_endpoint_srv(a, o, c, e, false);
	json_t *one = json_pack("{s:[{s:s, s:s, s:s}], s:s}", "endpoints", "endpointId", e->id, "providerName",
	                        e->provider, "region", e->region, "type", sharded ? "ROUTER" : "DB");
	json_put_str(one, "connectionString", plain);
	json_put_str(one, "srvConnectionString", srv);
	if (e->optimized)
		json_put_str(one, "srvShardOptimizedConnectionString", connection_endpoint_srv(a, o, c, e, true));
	json_array_append_new(json_default(strings, "privateEndpoint", json_array()), one);
	if (strcmp(e->provider, "AWS") == 0) {
		json_put_str(json_default(strings, "awsPrivateLink", json_object()), e->id, plain);
		json_put_str(json_default(strings, "awsPrivateLinkSrv", json_object()), e->id, srv);
	}
}

json_t *connection_strings_json(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                                const struct connection_network *n)
{
	json_t *strings = json_object();
	if (n->peered) {
		json_put_str(strings, "private", connection_hosts(a, o, c, CONNECTION_PRIVATE));
		json_put_str(strings, "privateSrv", connection_srv(a, o, c, CONNECTION_PRIVATE));
	}
	for (size_t i = 0; i < n->endpoint_count; i++)
		endpoint_add(a, o, c, &n->endpoints[i], n->sharded, strings);
	json_put_str(strings, "standard", connection_hosts(a, o, c, ""));
	json_put_str(strings, "standardSrv", connection_srv(a, o, c, ""));
	return strings;
}

void project_hash(struct str group_id, char ret_hash[PROJECT_HASH])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < group_id.n; i++)
		h = (h ^ (unsigned char)group_id.p[i]) * 0x100000001b3u;
	h ^= h >> 32;
	for (size_t i = 0; i < PROJECT_HASH - 1; i++, h /= 36)
		ret_hash[i] = alphabet[i ? h % 36 : h % 26];
	ret_hash[PROJECT_HASH - 1] = '\0';
}
