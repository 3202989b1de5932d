/* What lies outside the catalog: health, metrics, the OpenAPI document, the projects' authorities, tokens, the test
 * control; and what is done for every request: the body's bound, the log line, the metrics, the recording. */
#include "api/edge/router.h"

#include "api/archives/archives.h"
#include "api/clusters/clusters.h"
#include "api/console/console.h"
#include "api/edge/edge.h"
#include "api/events/events.h"
#include "api/index/index.h"
#include "api/integrations/integrations.h"
#include "api/metrics/metrics.h"
#include "api/query_shapes/query_shapes.h"
#include "api/restores/restores.h"
#include "api/search/search.h"
#include "api/sign_in/sign_in.h"
#include "api/sql/sql.h"
#include "api/users/users.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/compress.h"
#include "call/pool.h"
#include "call/query.h"
#include "call/workers.h"
#include "catalog/dialect.h"
#include "catalog/openapi.h"
#include "engine/engine.h"
#include "gate/dispatch.h"
#include "hosts/hosts.h"
#include "identity/identity.h"
#include "trail/metrics.h"
#include "trail/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BODY_MAX (1u << 20)
/* Of what asks for no credentials before it reads its body. */
#define BODY_PUBLIC (64u << 10)
#define BODY_SMALL (16u << 10)
#define BODY_TOLD (256u << 10) /* of reports that are dropped */
#define CA_PATH "/ca/"         /* and a project's id */
#define CA_MAX (64u << 10)

static void not_found(struct service *s, struct request *r)
{
	struct buf parameters = {0};
	json_open(&parameters, '[');
	json_str(&parameters, r->path);
	json_close(&parameters, ']');
	struct problem p = {.status = 404,
	                    .code = "RESOURCE_NOT_FOUND",
	                    .detail = arena_printf(r->arena, "Cannot find resource %.*s.", STR_ARG(r->path)),
	                    .parameters = buf_view(&parameters)};
	answer_problem(r, &p);
	buf_free(&parameters);
	respond_here(r);
}

static void answer_busy(struct request *r, void (*refuse)(struct request *r, const struct problem *p))
{
	struct problem p = {.status = 503,
	                    .code = "SERVICE_BUSY",
	                    .detail = STR("The service has too many calls waiting. Try again in a second.")};
	response_header(&r->response, "retry-after", STR("1"));
	refuse(r, &p);
}

static void health(struct service *s, struct request *r)
{
	answer_value(r, 200, json_pack("{s:s}", "status", "ok"));
	respond_here(r);
}

/* Ready: the store can be read, is whole and has room, and no drain has begun. */
static void readiness(struct service *s, struct request *r)
{
	struct str value;
	bool store = tx_meta_get(lane_here(s)->reader, r->arena, "bootstrap", &value) == 0;
	bool draining = atomic_load(&s->draining), full = store_is_full(s->store);
	/* Nodes that share a store are all full: a balancer that left them all out would stop the reads too. */
	bool damaged = store_damage(s->store, NULL, 0) > 0, out = (full || damaged) && !store_is_remote(s->store);
	struct problem p = {.status = 503,
	                    .code = draining || (!store && !damaged) ? "NOT_READY"
	                            : damaged                        ? "STORE_DAMAGED"
	                                                             : "STORE_FULL",
	                    .detail = draining  ? STR("The service is stopping.")
	                              : damaged ? STR(STORE_DAMAGED_DETAIL)
	                              : !store  ? STR("The store cannot be read.")
	                                        : STR(STORE_FULL_DETAIL)};
	if (!store || draining || out) {
		response_header(&r->response, "retry-after", STR("1"));
		answer_problem(r, &p);
	} else {
		struct limiter_stats limits;
		limiter_stats(s->limiter, &limits);
		answer_value(r, 200,
		             json_pack("{s:s, s:s, s:s, s:s}", "status", "ready", "engine", s->engine, "store",
		                       damaged ? "damaged: " STORE_DAMAGED_DETAIL
		                       : full  ? "full: " STORE_FULL_DETAIL
		                               : "ok",
		                       "limits",
		                       !limits.shared     ? "memory"
		                       : limits.shared_up ? "redis"
		                                          : "redis is away: by this node alone"));
	}
	respond_here(r);
}

/* Certificates are public: who connects to a database is shown the issuer, and who shall verify it may have no
 * credentials here. The project's id cannot be guessed. */
static void authority(struct service *s, struct request *r)
{
	struct str group_id = {r->path.p + strlen(CA_PATH), r->path.n - strlen(CA_PATH)}, pem;
	struct tx *tx = lane_here(s)->reader;
	int result = -ENOENT;
	if (id_is_valid(group_id)) {
		tx_begin_read(tx);
		result = authority_certificates(tx, r->arena, group_id, &pem);
		tx_end_read(tx);
	}
	if (result == -ENOENT) {
		not_found(s, r);
		return;
	}
	if (result < 0) {
		struct problem p = {.status = 503, .code = "NOT_READY", .detail = STR("The store cannot be read.")};
		response_header(&r->response, "retry-after", STR("1"));
		answer_problem(r, &p);
	} else {
		r->response.status = 200;
		r->response.body = pem;
		response_header(&r->response, "content-type", STR("application/x-pem-file"));
	}
	respond_here(r);
}

/* The authority of this service's own certificate, for clients that do not know it yet: they compare its fingerprint. A
 * certificate that the operator gave has an authority that we do not know. */
static void service_authority(struct service *s, struct request *r)
{
	FILE *f = s->ca_file ? fopen(s->ca_file, "re") : NULL;
	char *text = f ? arena_alloc(r->arena, CA_MAX) : NULL;
	size_t n = f ? fread(text, 1, CA_MAX, f) : 0;
	if (f)
		fclose(f);
	if (!n) {
		not_found(s, r);
		return;
	}
	r->response.status = 200;
	r->response.body = (struct str){text, n};
	response_header(&r->response, "content-type", STR("application/x-pem-file"));
	respond_here(r);
}

/* One document per date, made when first asked for, and kept. Whoever asks meanwhile waits, on a worker. */
static struct buf *documents; /* by catalog_dates */
static pthread_mutex_t documents_lock = PTHREAD_MUTEX_INITIALIZER;

void router_teardown(void)
{
	for (unsigned i = 0; documents && i < catalog_date_count; i++)
		buf_free(&documents[i]);
	free(documents);
	documents = NULL;
	metrics_teardown();
	roster_teardown();
}

static struct str document_of(const struct service *s, unsigned date)
{
	pthread_mutex_lock(&documents_lock);
	if (!documents)
		documents = must_calloc(catalog_date_count, sizeof *documents);
	if (!documents[date].n)
		openapi_write(&documents[date], str_of(catalog_dates[date]), s->base_url);
	struct str text = buf_view(&documents[date]);
	pthread_mutex_unlock(&documents_lock);
	return text;
}

/* ?version=DATE selects the newest not after it; without it, the current one. */
static bool export_date(struct request *r, unsigned *ret_date)
{
	struct str rest = r->query, name, value, version = str_of(catalog_current);
	while (query_next(&rest, &name, &value))
		if (str_is(name, "version"))
			version = value;
	int64_t day;
	if (version.n != strlen(catalog_current) || version.p[4] != '-' || version.p[7] != '-' ||
	    !clock_parse(version, &day))
		return false;
	for (unsigned i = catalog_date_count; i-- > 0;)
		if (memcmp(catalog_dates[i], version.p, version.n) <= 0) {
			*ret_date = i;
			return true;
		}
	return false;
}

static void openapi(struct service *s, struct request *r)
{
	unsigned date;
	if (export_date(r, &date)) {
		r->response.status = 200;
		r->response.body = document_of(s, date);
		r->response.body_shared = true;
		response_header(&r->response, "content-type", STR("application/json"));
	} else {
		struct problem p = {.status = 400,
		                    .code = "INVALID_VERSION",
		                    .parameters = STR("[\"version\"]"),
		                    .detail = arena_printf(r->arena, "version: must be a date from %s on, such as %s.",
		                                           catalog_dates[0], catalog_current)};
		answer_problem(r, &p);
	}
	response_compress(r);
	respond_here(r);
}

/* With what its words stand for. */
static struct str endpoint_body(const struct service *s, const struct request *r, const char *text)
{
	unsigned majors[16] = {0}; /* newest first */
	char peer[IP_TEXT];
	ip_format(&r->peer, peer);
	(void)s->engine_ops->core->versions(s->engine_state, majors, sizeof majors / sizeof *majors);
	const struct {
		const char *word;
		struct str value;
	} filled[] = {{"@address", str_of(peer)},
	              {"@version", STR(STEWARD_VERSION)},
	              {"@majorVersion", arena_printf(r->arena, "%u.0", majors[0])}};
	struct buf b = {0};
	while (*text) {
		size_t i = 0, n = strcspn(text, "@");
		buf_add(&b, text, n);
		text += n;
		while (i < sizeof filled / sizeof *filled && strncmp(text, filled[i].word, strlen(filled[i].word)) != 0)
			i++;
		if (i < sizeof filled / sizeof *filled) {
			buf_str(&b, filled[i].value);
			text += strlen(filled[i].word);
		} else if (*text) {
			buf_c(&b, *text++);
		}
	}
	return buf_keep(&b, r->arena);
}

/* What clients of a dialect ask for beside the API: where they call from, which version this is; or what they have to
 * tell, which is dropped. */
static void endpoint_serve(struct service *s, struct request *r)
{
	const struct dialect_endpoint *e = dialect_endpoint(r->path);
	enum method method;
	bool known = method_parse(r->method, &method);
	if (!known || (method == METHOD_HEAD ? METHOD_GET : method) != e->method) {
		struct problem p = {.status = 405,
		                    .code = "METHOD_NOT_ALLOWED",
		                    .detail = arena_printf(r->arena, "Use %s.", method_name(e->method))};
		response_header(&r->response, "allow", str_of(method_name(e->method)));
		answer_problem(r, &p);
	} else {
		r->response.status = e->status;
		r->response.body = e->body ? endpoint_body(s, r, e->body) : STR_NONE;
		if (e->body)
			response_header(&r->response, "content-type",
			                e->is_json ? STR("application/json") : STR("text/plain; charset=utf-8"));
	}
	respond_here(r);
}

enum {
	ROUTE_CALL = 1,      /* of the catalog: the gates ask who calls, and the row says how large a body may be */
	ROUTE_PAGE = 2,      /* GET and HEAD alone; other functions see every method */
	ROUTE_SECRET = 4,    /* what follows the path is a token: logs and recordings do without */
	ROUTE_TEST = 8,      /* there only with the test control */
	ROUTE_LOOP = 16,     /* touches no store: answered on the loop even when the store is remote */
	ROUTE_INNER = 32,    /* for other hosts of the service alone */
	ROUTE_SLOW = 64,     /* may take long: never on a loop */
	ROUTE_PRIVATE = 128, /* bodies are passwords, codes and tickets: recordings do without */
};

static const struct route {
	const char *path; /* and, where it ends with a slash, what lies below it */
	void (*serve)(struct service *s, struct request *r);
	unsigned flags;
	size_t body_max;
	void (*refuse)(struct request *r, const struct problem *p); /* NULL: as everywhere */
} routes[] = {
        {"/api/svc/", dispatch, ROUTE_CALL, BODY_MAX},
        {"/api/oauth/token", oauth_token, 0, BODY_SMALL, oauth_problem},
        {"/api/oauth/revoke", oauth_revoke, 0, BODY_SMALL, oauth_problem},
        {"/api/oauth/device", oauth_device, ROUTE_PRIVATE, BODY_SMALL, oauth_problem},
        {SESSION_PATH "/first/", session_serve, ROUTE_SECRET | ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/passkey", passkeys_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/passkey/", passkeys_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/passkeys", passkeys_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/passkeys/", passkeys_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/providers", oidc_serve, 0, BODY_SMALL},
        {SESSION_PATH "/oidc/callback/", oidc_serve, ROUTE_SECRET | ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/oidc/", oidc_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/saml/done/", saml_serve, ROUTE_SECRET | ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH "/saml/", saml_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SAML_PATH, saml_serve, ROUTE_PRIVATE, BODY_TOLD},
        {SQL_PATH, sql_serve, ROUTE_PRIVATE, BODY_TOLD},
        {SESSION_PATH "/", session_serve, ROUTE_PRIVATE, BODY_SMALL},
        {SESSION_PATH, session_serve, ROUTE_PRIVATE, BODY_SMALL},
        {INVITATIONS_PATH, invitations_serve, ROUTE_SECRET, BODY_SMALL},
        {INVITATIONS_LINK, invitations_serve, ROUTE_SECRET, BODY_SMALL},
        {FEED_PATH, feed_serve, ROUTE_PAGE | ROUTE_SECRET | ROUTE_SLOW, BODY_SMALL},
        {DOWNLOAD_PATH, download_serve, ROUTE_PAGE | ROUTE_SECRET | ROUTE_SLOW, BODY_SMALL},
        {"/healthz", health, ROUTE_PAGE | ROUTE_LOOP, BODY_SMALL},
        {"/readyz", readiness, ROUTE_PAGE, BODY_SMALL},
        {"/metrics", scrape_serve, ROUTE_PAGE, BODY_SMALL},
        {"/openapi.json", openapi, ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {CA_PATH, authority, ROUTE_PAGE, BODY_SMALL},
        {"/ca", service_authority, ROUTE_PAGE | ROUTE_LOOP, BODY_SMALL},
        {OVERVIEW_PATH, overview_serve, ROUTE_PAGE, BODY_SMALL},
        {SIZES_PATH, sizes_serve, ROUTE_PAGE, BODY_SMALL},
        {HOSTS_LIST_PATH, hosts_serve, ROUTE_PAGE, BODY_SMALL},
        {CONSOLE_PATH "first/", console_serve, ROUTE_PAGE | ROUTE_SECRET | ROUTE_LOOP, BODY_SMALL},
        {CONSOLE_PATH "reset/", console_serve, ROUTE_PAGE | ROUTE_SECRET | ROUTE_LOOP, BODY_SMALL},
        {CONSOLE_PATH "invitations/", console_serve, ROUTE_PAGE | ROUTE_SECRET | ROUTE_LOOP, BODY_SMALL},
        {CONSOLE_PATH, console_serve, ROUTE_PAGE | ROUTE_LOOP, BODY_SMALL},
        {LIVE_CONSOLE_PATH, live_serve, ROUTE_PAGE, BODY_SMALL},
        {"/api/test/", test_control, ROUTE_TEST, BODY_MAX},
        {PROMETHEUS_PATH, prometheus_serve, ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {METRICS_EXPOSED, metrics_exposed, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {INDEX_CHECKED, index_checked, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {SEARCH_CHECKED, search_checked, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {ARCHIVES_CHECKED, archives_checked, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {CLUSTERS_OBSERVED, clusters_observed, ROUTE_INNER | ROUTE_PAGE | ROUTE_LOOP, BODY_SMALL},
        {SHAPE_ASKED, shape_asked, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
        {SESSION_ENDED, process_session_ended, ROUTE_INNER | ROUTE_PAGE | ROUTE_SLOW, BODY_SMALL},
};
static const struct route leading = {"", console_lead, ROUTE_PAGE | ROUTE_LOOP, BODY_SMALL};
static const struct route nowhere = {"", not_found, 0, BODY_SMALL};
static const struct route streamed = {"", live_serve, ROUTE_PAGE, BODY_SMALL};
static const struct route observed = {"", activity_serve, ROUTE_CALL | ROUTE_PAGE, BODY_SMALL};
static const struct route changed = {"", activity_serve, 0, BODY_SMALL};
static const struct route previewed = {"", archives_beside, ROUTE_CALL | ROUTE_PAGE, BODY_SMALL};
static const struct route brought = {"", archives_beside, 0, BODY_SMALL};
static const struct route planned = {"", shape_plans_serve, ROUTE_CALL | ROUTE_PAGE, BODY_SMALL};
static const struct route translated = {"", dispatch, ROUTE_CALL, BODY_MAX};
static const struct route beside = {"", endpoint_serve, ROUTE_LOOP, BODY_TOLD};

/* By the inner port come reads of the catalog, which another host passes on, and its own questions; nothing else. */
static bool is_open(const struct service *s, const struct request *r, unsigned flags)
{
	if (r->from_host[0])
		return flags & (ROUTE_CALL | ROUTE_INNER) && str_is(r->method, "GET");
	return !(flags & ROUTE_INNER) && (!(flags & ROUTE_TEST) || s->test_control);
}

static bool leads_to(const struct service *s, const struct request *r, const struct route *route)
{
	struct str path = str_of(route->path);
	return (str_ends(path, STR("/")) ? str_starts(r->path, path) : str_eq(r->path, path)) &&
	       is_open(s, r, route->flags);
}

static const struct route *route_of(const struct service *s, const struct request *r)
{
	if (live_is_path(r->path) && is_open(s, r, streamed.flags))
		return &streamed;
	if (activity_is_change(r) && is_open(s, r, changed.flags))
		return &changed;
	if (activity_is_path(r->path) && is_open(s, r, observed.flags))
		return &observed;
	if (archives_are_brought(r) && is_open(s, r, brought.flags))
		return &brought;
	if (archives_are_previewed(r->path) && is_open(s, r, previewed.flags))
		return &previewed;
	if (shape_plans_is_path(r->path) && is_open(s, r, planned.flags))
		return &planned;
	if (leads_to(s, r, &routes[0]))
		return &routes[0];
	const struct dialect *d = dialect_of_path(r->path);
	/* What another host passes on, that one serves. */
	if (d && (dialect_is_served(d) || r->from_host[0]) && is_open(s, r, translated.flags))
		return &translated;
	for (size_t i = 1; i < sizeof routes / sizeof *routes; i++)
		if (leads_to(s, r, &routes[i]))
			return &routes[i];
	if ((str_is(r->path, "/") || str_is(r->path, "/console")) && is_open(s, r, leading.flags))
		return &leading;
	return dialect_endpoint(r->path) && is_open(s, r, beside.flags) ? &beside : &nowhere;
}

size_t router_body_limit(void *ctx, const struct request *r)
{
	enum method method;
	struct match m;
	const struct route *route = route_of(((const struct router *)ctx)->service, r);
	if (!(route->flags & ROUTE_CALL) || !method_parse(r->method, &method))
		return route->body_max;
	catalog_match(method, r->path, r->arena, &m);
	if (m.op && m.op->body_max)
		return m.op->body_max;
	return m.op && m.op->tenant == TENANT_PUBLIC ? BODY_PUBLIC : route->body_max;
}

static void route_on_worker(struct request *r);

/* With what the worker needs in r->app. False: too many wait, and the refusal is written. */
static bool hand_over(const struct route *route, struct service *s, struct request *r, void *app,
                      void (*fn)(struct request *r))
{
	void *before = r->app;
	r->app = app;
	if ((route->flags & ROUTE_SLOW ? workers_run_slow : workers_run)(s->workers, r, address_key(r), fn))
		return true;
	r->app = before;
	answer_busy(r, route->refuse ? route->refuse : answer_problem);
	return false;
}

static void route_run(const struct route *route, struct service *s, struct request *r)
{
	if (route->flags & ROUTE_PAGE && !str_is(r->method, "GET") && !str_is(r->method, "HEAD")) {
		struct problem p = {.status = 405, .code = "METHOD_NOT_ALLOWED", .detail = STR("Use GET or HEAD.")};
		response_header(&r->response, "allow", STR("GET, HEAD"));
		answer_problem(r, &p);
		respond_here(r);
	} else if (!(route->flags & ROUTE_SLOW) || !s->workers || on_worker()) {
		route->serve(s, r);
	} else if (!hand_over(route, s, r, s, route_on_worker)) {
		respond_here(r);
	}
}

static void route_on_worker(struct request *r)
{
	struct service *s = r->app;
	const struct route *route = route_of(s, r);
	r->app = NULL;
	/* Calls of the catalog say themselves when they wait. */
	if (!(route->flags & ROUTE_CALL))
		workers_share();
	route_run(route, s, r);
}

static void begin_on_worker(struct request *r)
{
	struct service *s = r->app;
	r->app = NULL;
	dispatch_begin(s, r);
}

/* Nothing below touches a store on the loop unless it is in this machine. */
void router_begin(void *ctx, struct request *r)
{
	struct service *s = ((struct router *)ctx)->service;
	const struct route *route = route_of(s, r);
	if (!(route->flags & ROUTE_CALL)) {
		http_body_take(r);
	} else if (!s->remote) {
		dispatch_begin(s, r);
	} else if (!hand_over(route, s, r, s, begin_on_worker)) {
		http_respond(r);
	}
}

void router_handle(void *ctx, struct request *r)
{
	struct service *s = ((struct router *)ctx)->service;
	const struct route *route = route_of(s, r);
	struct call *begun = r->app;
	hosts_adopt(r);
	if (!s->remote && begun) {
		dispatch_resume(r);
	} else if (!s->remote || route->flags & ROUTE_LOOP) {
		route_run(route, s, r);
	} else if (!hand_over(route, s, r, begun ? (void *)begun : s, begun ? dispatch_resume : route_on_worker)) {
		http_respond(r);
	}
}

void router_loop_start(void *ctx, unsigned loop)
{
	lane_take(loop);
}

/* The token in the path of an invitation or a feed is a secret. */
static void token_hide(const struct service *s, struct request *r)
{
	const struct route *route = route_of(s, r);
	if (route->flags & ROUTE_SECRET)
		r->path = r->target = arena_printf(r->arena, "%s" RECORD_REDACTED, route->path);
	if (route->flags & ROUTE_PRIVATE)
		r->body = r->response.body = STR_NONE;
}

void router_done(void *ctx, struct request *r, size_t bytes_sent)
{
	struct router *router = ctx;
	struct service *s = router->service;
	token_hide(s, r);
	/* Only dispatch() sets app: other paths have no call. */
	const struct call *c = r->app;
	const struct op *op = c ? c->op : NULL;
	/* A row beside the catalog has no place in its tables. */
	int row = op >= catalog_ops && op < catalog_ops + catalog_op_count ? (int)(op - catalog_ops) : -1;
	int64_t micros = clock_mono_us() - r->started_us;
	/* A call that another host passed on is counted there. */
	if (!r->from_host[0])
		metrics_observe(s->loop[r->loop].metrics, row, r->response.status,
		                r->response.stream.endless ? 0 : micros);
	if (log_enabled(LOG_INFO)) {
		char peer[IP_TEXT];
		ip_format(&r->peer, peer);
		struct log_request line = {.id = str_of(r->id),
		                           .method = r->method,
		                           .path = r->path,
		                           .operation = str_of(op ? op->id : NULL),
		                           .peer = str_of(peer),
		                           .caller = str_of(c && c->caller ? c->caller->name : NULL),
		                           .status = r->response.status,
		                           .micros = micros,
		                           .bytes = bytes_sent};
		log_access(&line);
	}
	record_exchange(router->recorder, r);
}

void router_turn_end(void *ctx, unsigned loop)
{
	const struct service *s = ((struct router *)ctx)->service;
	if (!s->remote)
		tx_rest(s->loop[loop].reader);
}
