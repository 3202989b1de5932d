/* Connection strings. Text only: which nodes there are, and where, is for the engine to say. */
#include "api/connection_strings.h"

#include "base/buf.h"

#define ENDPOINT_PORT 1024

static struct str finish(struct arena *a, struct buf *b)
{
	struct str s = arena_dup(a, buf_view(b));
	buf_free(b);
	return s;
}

/* libpq looks up no name that has an address beside it, and still sends and verifies the name. */
static void addresses_add(struct buf *b, const struct connection_cluster *c)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (!c->nodes[i].address[0])
			return;
	buf_z(b, "hostaddr=");
	for (size_t i = 0; i < c->node_count; i++)
		buf_printf(b, "%s%s", i ? "," : "", c->nodes[i].address);
	buf_c(b, '&');
}

static struct str hosts_string(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                               const char *suffix, bool addresses)
{
	struct buf b = {0};
	buf_printf(&b, "%s://", o->scheme);
	for (size_t i = 0; i < c->node_count; i++)
		buf_printf(&b, "%s%s%s.%s.%s:%u", i ? "," : "", c->nodes[i].name, suffix, c->project_hash, o->domain,
		           c->nodes[i].port);
	buf_z(&b, "/postgres?");
	if (addresses && c->node_count)
		addresses_add(&b, c);
	buf_z(&b, "sslmode=require&target_session_attrs=read-write");
	return finish(a, &b);
}

struct str connection_standard(struct arena *a, const struct connection_options *o, const struct connection_cluster *c)
{
	return hosts_string(a, o, c, "", true);
}

struct str connection_private(struct arena *a, const struct connection_options *o, const struct connection_cluster *c)
{
	return hosts_string(a, o, c, "-pri", false);
}

struct str connection_standard_srv(struct arena *a, const struct connection_options *o,
                                   const struct connection_cluster *c)
{
	return arena_printf(a, "%s+srv://%s.%s.%s", o->scheme, c->label, c->project_hash, o->domain);
}

struct str connection_private_srv(struct arena *a, const struct connection_options *o,
                                  const struct connection_cluster *c)
{
	return arena_printf(a, "%s+srv://%s-pri.%s.%s", o->scheme, c->label, c->project_hash, o->domain);
}

struct str connection_endpoint(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                               const struct connection_endpoint *e)
{
	return arena_printf(a, "%s://pl-%u-%s.%s.%s:%d/postgres?sslmode=require&target_session_attrs=read-write",
	                    o->scheme, e->number, e->location, c->project_hash, o->domain, ENDPOINT_PORT);
}

struct str connection_endpoint_srv(struct arena *a, const struct connection_options *o,
                                   const struct connection_cluster *c, const struct connection_endpoint *e)
{
	return arena_printf(a, "%s+srv://%s%spl-%u%s-%s.%s.%s", o->scheme, e->regional ? e->cluster_name : "",
	                    e->regional ? "-" : "", e->number, e->optimized ? "-lb" : "", e->location, c->project_hash,
	                    o->domain);
}

static void string_set(json_t *to, const char *name, struct str value)
{
	json_object_set_new(to, name, json_stringn(value.p, value.n));
}

json_t *connection_strings_json(struct arena *a, const struct connection_options *o, const struct connection_cluster *c,
                                bool peered)
{
	json_t *strings = json_object();
	if (peered) {
		string_set(strings, "private", connection_private(a, o, c));
		string_set(strings, "privateSrv", connection_private_srv(a, o, c));
	}
	string_set(strings, "standard", connection_standard(a, o, c));
	string_set(strings, "standardSrv", connection_standard_srv(a, o, c));
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
