/* Prometheus: where the project's database processes are to be scraped (service discovery by HTTP), and what was last
 * measured of each, in its text format. Outside the catalog, because Prometheus signs in by a name and a password:
 *
 *   GET PROMETHEUS_PATH<project>/discovery
 *   GET PROMETHEUS_PATH<project>/processes/<host:port>/metrics
 *
 * Answers come from samples that were taken anyhow: whoever asks often costs little, and reaches no database. */
#include "api/integrations/integrations.h"

#include "api/clusters/clusters.h"
#include "api/metrics/metrics.h"
#include "base/base64.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/workers.h"
#include "gate/right.h"
#include "hosts/hosts.h"
#include "identity/attempts.h"

#include <ctype.h>
#include <errno.h>

#define TARGETS_MAX 5000
#define CREDENTIALS_BYTES 2048
#define PROCESS_BYTES 255

/* One request. The call carries what functions for calls need; it has no caller and no row. */
struct scrape {
	struct call *call;
	struct request *request;
	struct arena *arena;
	struct tx *tx;
	struct str group_id, what, process;
	json_t *integration;
};

static int scrape_refuse(struct scrape *s, int status, const char *code, const char *detail)
{
	struct problem p = {.status = status, .code = code, .detail = str_of(detail)};
	answer_problem(s->request, &p);
	return -status;
}

static int unauthorized(struct scrape *s)
{
	response_header(&s->request->response, "www-authenticate", STR("Basic realm=\"steward\", charset=\"UTF-8\""));
	return scrape_refuse(s, 401, "UNAUTHORIZED",
	                     "Sign in by the user name and password of the project's integration PROMETHEUS.");
}

/* Of a store, or of another host, whose words the call has. */
static int failed(struct scrape *s, int r)
{
	if (s->call->problem.status) {
		answer_problem(s->request, &s->call->problem);
		return r;
	}
	if (r == -ENOENT)
		return scrape_refuse(s, 404, "RESOURCE_NOT_FOUND", "There is no such process in the project.");
	response_header(&s->request->response, "retry-after", STR("1"));
	return scrape_refuse(s, 503, "NOT_READY", "The store cannot be read.");
}

/* --- who asks */

static bool credentials_match(const json_t *integration, struct str given)
{
	struct str name, password;
	/* Both are compared, so that neither tells by the time it takes. */
	str_cut(given, ':', &name, &password);
	bool same_name = str_eq_secret(name, json_field(integration, "username")),
	     same_password = str_eq_secret(password, json_field(integration, "password"));
	return same_name && same_password && password.n;
}

static int caller_check(struct scrape *s)
{
	struct service *v = s->call->service;
	struct str header = request_header(s->request, "authorization"), scheme, encoded;
	char plain[CREDENTIALS_BYTES];
	unsigned seconds;
	str_cut(header, ' ', &scheme, &encoded);
	if (!str_ieq(scheme, STR("basic")))
		return unauthorized(s);
	ssize_t n = base64_decode(str_trim(encoded), plain, sizeof plain);
	struct str name = arena_printf(s->arena, "prometheus/%.*s", STR_ARG(s->group_id));
	enum attempt_state attempt = attempt_ask(v->attempts, name, &s->request->peer, &seconds);
	bool good = attempt != ATTEMPT_REFUSED && n > 0 && s->integration &&
	            credentials_match(s->integration, (struct str){plain, (size_t)n});
	if (good) {
		attempt_succeeded(v->attempts, name, &s->request->peer);
		return 0;
	}
	attempt_failed(v->attempts, name, &s->request->peer);
	if (attempt == ATTEMPT_OPEN)
		return unauthorized(s);
	response_header(&s->request->response, "retry-after", arena_printf(s->arena, "%u", seconds));
	return scrape_refuse(s, 429, "TOO_MANY_FAILED_ATTEMPTS", "Too many failed attempts from this address.");
}

/* --- discovery */

/* Names of tags become names of labels, which have letters, digits and underscores. */
static void tags_put(struct scrape *s, struct buf *b, const json_t *tags)
{
	for (size_t i = 0; i < json_array_size(tags); i++) {
		const json_t *tag = json_array_get(tags, i);
		char *name = arena_z(s->arena, arena_printf(s->arena, "tag_%.*s", STR_ARG(json_field(tag, "key"))));
		for (char *p = name; *p; p++)
			if (!isalnum((unsigned char)*p))
				*p = '_';
		json_pair_str(b, name, json_field(tag, "value"));
	}
}

/* "localhost:8443" of "https://localhost:8443/base" */
static struct str address_of(const char *base_url)
{
	const char *begin = strstr(base_url, "://");
	struct str rest = str_of(begin ? begin + 3 : base_url), host, path;
	str_cut(rest, '/', &host, &path);
	return host;
}

static void target_write(struct scrape *s, struct buf *b, const struct cluster *cluster, const struct node_status *n)
{
	const char *base = s->call->service->base_url;
	struct str id = arena_printf(s->arena, "%s:%u", n->host, n->port), address = address_of(base);
	json_sep(b);
	json_open(b, '{');
	json_key(b, "targets");
	json_open(b, '[');
	json_str(b, address);
	json_close(b, ']');
	json_key(b, "labels");
	json_open(b, '{');
	json_pair_str(b, "__scheme__", str_starts(str_of(base), STR("http:")) ? STR("http") : STR("https"));
	json_pair_str(b, "__metrics_path__",
	              arena_printf(s->arena, PROMETHEUS_PATH "%.*s/processes/%.*s/metrics", STR_ARG(s->group_id),
	                           STR_ARG(id)));
	json_pair_str(b, "instance", id);
	json_pair_str(b, "group_id", s->group_id);
	json_pair_str(b, "cluster_name", cluster->doc.name);
	if (n->kind != NODE_ROUTER)
		json_pair_str(b, "replica_set", node_set(n));
	if (json_flag(s->integration, "sendUserProvidedResourceTagsEnabled"))
		tags_put(s, b, json_object_get(cluster->body, "tags"));
	json_close(b, '}');
	json_close(b, '}');
}

static int discovery_write(struct scrape *s)
{
	struct cluster_sight *list;
	struct buf b = {0};
	size_t count = 0, targets = 0;
	int r = clusters_observe(s->call, s->arena, &list, &count, NULL);
	json_open(&b, '[');
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct cluster cluster;
		r = cluster_get(s->tx, s->arena, list[i].doc.id, &cluster);
		for (size_t k = 0; r == 0 && k < list[i].status.node_count && targets < TARGETS_MAX; k++, targets++)
			target_write(s, &b, &cluster, &list[i].status.nodes[k]);
		if (r == -ENOENT) /* it went meanwhile */
			r = 0;
	}
	json_close(&b, ']');
	if (r == 0)
		answer_json(s->request, 200, &b);
	else
		buf_free(&b);
	return r;
}

/* --- metrics */

static int text_ask(struct scrape *s, const struct cluster *cluster, struct str *ret_text)
{
	if (!host_is_elsewhere(cluster_host(cluster)))
		return process_expose(s->call->service, s->tx, s->arena, cluster->doc.id, s->process, ret_text);
	struct host_question q = {.host = cluster_host(cluster),
	                          .path = arena_printf(s->arena, METRICS_EXPOSED "?%.*s/%.*s", STR_ARG(cluster->doc.id),
	                                               STR_ARG(s->process))};
	int r = hosts_ask(s->call, &q, 1);
	if (r < 0)
		return r;
	*ret_text = json_field(q.answer, "text");
	return ret_text->n ? 0 : -ENOENT;
}

static int metrics_write(struct scrape *s)
{
	struct cluster cluster;
	struct str text;
	int r = cluster_of_host(s->call, s->process, &cluster);
	if (r == 0)
		r = text_ask(s, &cluster, &text);
	if (r < 0)
		return r;
	s->request->response.status = 200;
	s->request->response.body = text;
	response_header(&s->request->response, "content-type", STR("text/plain; version=0.0.4; charset=utf-8"));
	return 0;
}

/* --- the path */

static bool process_is_name(struct str process)
{
	for (size_t i = 0; i < process.n; i++)
		if (!isalnum((unsigned char)process.p[i]) && !memchr(".:-", process.p[i], 3))
			return false;
	return process.n && process.n <= PROCESS_BYTES;
}

static bool path_read(struct scrape *s)
{
	struct str rest = s->request->path, end;
	rest.p += strlen(PROMETHEUS_PATH);
	rest.n -= strlen(PROMETHEUS_PATH);
	str_cut(rest, '/', &s->group_id, &rest);
	str_cut(rest, '/', &s->what, &rest);
	str_cut(rest, '/', &s->process, &end);
	if (!id_is_valid(s->group_id))
		return false;
	if (str_is(s->what, "discovery"))
		return !s->process.n && !end.n;
	return str_is(s->what, "processes") && process_is_name(s->process) && str_is(end, "metrics");
}

static int serve(struct scrape *s)
{
	if (!path_read(s))
		return scrape_refuse(s, 404, "RESOURCE_NOT_FOUND", "There is no such path. See docs/integrations.md.");
	int r = integration_find(s->tx, s->arena, s->group_id, STR("PROMETHEUS"), &s->integration);
	if (r == 0)
		r = tx_get(s->tx, s->arena, "project", s->group_id, &s->call->group);
	if (r < 0 && r != -ENOENT)
		return failed(s, r);
	if (r == -ENOENT)
		s->integration = NULL;
	r = caller_check(s);
	if (r < 0)
		return r;
	if (!json_flag(s->integration, "enabled"))
		return scrape_refuse(s, 403, "INTEGRATION_DISABLED",
		                     "The project's integration PROMETHEUS is not enabled.");
	s->call->org.id = s->call->group.parent;
	r = right_of_project(s->tx, s->arena, s->call->org.id, s->group_id, &s->request->peer);
	if (r == -EADDRNOTAVAIL)
		return scrape_refuse(
		        s, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
		        "The organization demands access lists, and this address is not on the project's.");
	if (r < 0)
		return failed(s, r);
	r = str_is(s->what, "discovery") ? discovery_write(s) : metrics_write(s);
	return r < 0 ? failed(s, r) : 0;
}

void prometheus_serve(struct service *v, struct request *r)
{
	struct call *c = arena_calloc(r->arena, 1, sizeof *c);
	struct scrape s = {.call = c, .request = r, .arena = r->arena, .tx = lane_here(v)->reader};
	c->service = v;
	c->request = r;
	c->arena = r->arena;
	c->tx = s.tx;
	tx_begin_read(s.tx);
	serve(&s);
	tx_end_read(s.tx);
	respond_here(r);
}
