/* The running service: what is set up at the start, in which order, and torn down at the end. In between the main
 * thread waits for signals and does periodic work: it applies what an operator has changed in the store (limits, words
 * on private endpoints), hands the counts of credentials' uses to the store, and looks after certificates, keys and
 * memory. */
#include "serve/serve.h"

#include "api/billing/billing.h"
#include "api/clusters/clusters.h"
#include "api/console/console.h"
#include "api/data_federation/data_federation.h"
#include "api/edge/edge.h"
#include "api/edge/router.h"
#include "api/federation/federation.h"
#include "api/kit/verbs.h"
#include "api/log_export/log_export.h"
#include "api/metrics/metrics.h"
#include "api/private_endpoints/private_endpoints.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/kept.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/pace.h"
#include "call/kept_answer.h"
#include "call/stream.h"
#include "call/workers.h"
#include "cli/cli.h"
#include "fetch/fetch.h"
#include "gate/rules.h"
#include "hosts/hosts.h"
#include "http/certificate.h"
#include "identity/attempts.h"
#include "identity/identity.h"
#include "identity/jwks.h"
#include "identity/password.h"
#include "identity/uses.h"
#include "jobs/waits.h"
#include "keys/keys.h"
#include "limit/redis.h"
#include "outbox/outbox.h"
#include "prices/prices.h"
#include "providers/providers.h"
#include "repository/setup.h"
#include "serve/backups.h"
#include "serve/hosts.h"
#include "serve/keys.h"
#include "serve/providers.h"
#include "serve/rotation.h"
#include "serve/store.h"
#include "trail/events.h"
#include "trail/live.h"
#include "trail/metrics.h"
#include "trail/record.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DRAIN_SECONDS 25
#define POLL_MS 250
#define GIVE_BACK ((size_t)8 << 20)
/* Free in the heap since the last time: more than a busy service needs to and fro. */
#define HEAP_FREE_MAX ((size_t)32 << 20)
/* Larger blocks get their own mapping, which the kernel takes back when they are freed. Without a fixed number glibc
 * raises this threshold up to 32 MB. */
#define MAP_FROM (256 << 10)

struct server {
	struct config config;
	struct arena *arena; /* lives as long as the process serves */
	struct service service;
	struct router router;
	struct tx *reader; /* of the main thread */
	int lock;
	const char *cert_file, *key_file, *ca_file;
	const char *node;            /* this host's id */
	struct config_limit *limits; /* of the file, as last read */
	size_t limit_count;
	struct arena *limits_arena;
	struct redis_limits *shared_limits;
	uint64_t data_version;
	struct key_watch keys;
	unsigned polls;
	size_t buffered;  /* the highest value since memory was last given back */
	size_t heap_free; /* the lowest since then */
	bool first_start, damage_reported;
	const char *engine_why;
};

/* Paths that are printed or stored must work from every directory. */
static const char *path_whole(struct arena *a, const char *path)
{
	char *real = realpath(path, NULL);
	const char *whole = arena_z(a, str_of(real ? real : path));
	free(real);
	return whole;
}

static int certificates(struct server *s)
{
	struct config *c = &s->config;
	if (c->tls_cert || c->tls_key) {
		if (!c->tls_cert || !c->tls_key) {
			fprintf(stderr, "steward: --tls-cert and --tls-key go together: give both or none\n");
			return -EINVAL;
		}
		s->cert_file = c->tls_cert;
		s->key_file = c->tls_key;
		s->ca_file = path_whole(s->arena, c->tls_cert);
		return 0;
	}
	bool made = access(arena_printf(s->arena, "%s/" CERTIFICATE_CA, c->data).p, F_OK) < 0;
	int result = certificate_ensure(c->data, c->listen_host, c->base_url);
	if (result < 0)
		return result;
	struct str kept;
	if (made && tx_meta_get(s->reader, s->arena, "bootstrap", &kept) == 0)
		log_warn("tls: %s/" CERTIFICATE_DIR " was missing and was made anew: callers must be told to trust "
		         "%s/" CERTIFICATE_CA,
		         c->data, c->data);
	const char *dir = path_whole(s->arena, c->data);
	s->cert_file = arena_printf(s->arena, "%s/" CERTIFICATE_SERVER, dir).p;
	s->key_file = arena_printf(s->arena, "%s/" CERTIFICATE_SERVER_KEY, dir).p;
	s->ca_file = arena_printf(s->arena, "%s/" CERTIFICATE_CA, dir).p;
	s->service.ca_file = s->ca_file;
	return 0;
}

static void limits_apply(struct server *s)
{
	struct arena *a = arena_new();
	struct limit_rule *rules;
	size_t count;
	if (rules_make(a, s->limits, s->limit_count, s->reader, &rules, &count) == 0)
		limiter_set_rules(s->service.limiter, rules, count);
	arena_free(a);
}

static void limits_reload(struct server *s)
{
	struct arena *a = arena_new();
	struct config_limit *limits = NULL;
	size_t count = 0;
	if (s->config.file && (config_limits(&s->config, a, &limits, &count) < 0 || !rules_check(limits, count))) {
		log_error("limits: the old ones stay in force");
		arena_free(a);
		return;
	}
	arena_free(s->limits_arena);
	s->limits_arena = a;
	s->limits = limits;
	s->limit_count = count;
	limits_apply(s);
}

static int loops_make(struct server *s)
{
	struct service *v = &s->service;
	v->loops = s->config.threads;
	v->remote |= store_is_remote(v->store);
	v->lanes = v->loops + (v->remote ? s->config.store_connections : WORKERS_LOCAL);
	v->loop = arena_new_array(s->arena, struct loop_state, v->lanes);
	for (unsigned i = 0; i < v->lanes; i++) {
		v->loop[i].reader = store_reader(v->store);
		v->loop[i].tokens = token_cache_new();
		v->loop[i].kept = kept_new(KEPT_LANE_BYTES);
		v->loop[i].metrics = i < v->loops ? metrics_new(catalog_op_count) : NULL;
		if (!v->loop[i].reader)
			return -EIO;
	}
	return 0;
}

static void loops_free(struct server *s)
{
	struct service *v = &s->service;
	for (unsigned i = 0; i < v->lanes; i++) {
		store_reader_free(v->loop[i].reader);
		token_cache_free(v->loop[i].tokens);
		kept_free(v->loop[i].kept);
		metrics_free(v->loop[i].metrics);
		uses_free(v->loop[i].uses);
	}
}

/* Nodes with the same key have the same store: they share buckets with each other, and with no other installation. */
static int limits_share(struct server *s)
{
	unsigned char mac[32];
	char hex[65], prefix[32];
	if (!s->config.limits_url)
		return 0;
	seal_mac_lasting("limits", STR("prefix"), mac);
	hex_encode(mac, sizeof mac, hex);
	snprintf(prefix, sizeof prefix, "steward:%.16s:", hex);
	const struct config *c = &s->config;
	int result = redis_limits_open(&(struct redis_options){.url = c->limits_url,
	                                                       .password_file = c->limits_password_file,
	                                                       .ca_file = c->limits_ca,
	                                                       .cert_file = c->limits_cert,
	                                                       .key_file = c->limits_key},
	                               prefix, &s->shared_limits);
	if (result < 0)
		return result;
	limiter_share(s->service.limiter, s->shared_limits);
	s->service.remote = true;
	return 0;
}

static int outbox_start(struct server *s)
{
	const struct config *c = &s->config;
	const struct mail_options mail = {c->smtp_url, c->smtp_from, c->smtp_user, c->smtp_password_file};
	return outbox_open(&(struct outbox_options){.store = s->service.store,
	                                            .mail = c->smtp_url ? &mail : NULL,
	                                            .ca_file = c->outbox_ca,
	                                            .private_networks = c->outbox_private,
	                                            .endpoints = &c->outbox_endpoints},
	                   &s->service.outbox);
}

/* What the process needs before it opens a port. */
static int prepare(struct server *s)
{
	struct config *c = &s->config;
	struct service *v = &s->service;
	struct store_options store = {.url = c->store, .data_dir = c->data, .batch_max = c->store_batch};
	struct opening opening = {.data_dir = c->data, .url = c->store, .arena = s->arena};
	int result = opening_take(&opening, &s->lock);
	if (result == 0)
		result = opening_node(&opening, &s->node);
	store.node = s->node;
	if (result == 0)
		result = seal_read(c->data);
	if (result == 0 || result == -ENOENT)
		result = store_open(&store, &v->store);
	if (result == 0 && !(s->reader = store_reader(v->store)))
		result = -EIO;
	opening.store = v->store;
	opening.reader = s->reader;
	if (result == 0)
		result = opening_belongs(&opening);
	if (result == 0)
		result = opening_key_ensure(&opening);
	if (result == 0)
		result = opening_key_check(&opening);
	if (result == 0)
		result = certificates(s);
	if (result == 0)
		result = schema_setup();
	if (result == 0 && c->dialects && dialects_choose(str_of(c->dialects)) < 0)
		result = option_refuse("--dialects: \"%s\" is no list of dialects, nor none", c->dialects);
	if (result == 0)
		result = catalog_setup();
	if (result == 0 && !rules_check(c->limits, c->limit_count))
		result = -EINVAL;
	if (result == 0 && c->record)
		result = record_open(c->record, &s->router.recorder);
	fetch_allow(c->outbox_private, c->inner_list, c->inner_count);
	if (result == 0)
		result = outbox_start(s);
	if (result == 0)
		result = jwks_open(v->store, c->identity_ca, &v->jwks);
	if (result < 0)
		return result;
	links_setup();
	families_setup();
	v->limiter = limiter_new(0);
	result = limits_share(s);
	if (result < 0)
		return result;
	v->nonces = nonce_window_new();
	v->attempts = attempts_new();
	v->data_dir = c->data;
	result = scrape_token_ensure(s->arena, c->data, c->metrics_token_file, &v->metrics_token);
	if (result < 0)
		return result;
	v->listen_host = c->listen_host;
	v->test_control = c->test_control;
	password_cheap(c->test_control);
	v->started_us = clock_mono_us();
	v->started_ms = clock_now_ms();
	v->org_creation = str_is(str_of(c->org_creation), "any")    ? ORG_CREATION_ANY
	                  : str_is(str_of(c->org_creation), "none") ? ORG_CREATION_NONE
	                                                            : ORG_CREATION_OWNERS;
	v->orgs_per_caller = c->orgs_per_caller;
	v->event_retention_days = c->event_retention_days;
	federation_allow(str_is(str_of(c->federated_sign_in), "none")       ? FEDERATED_NONE
	                 : str_is(str_of(c->federated_sign_in), "operator") ? FEDERATED_OPERATOR
	                                                                    : FEDERATED_ALL);
	domains_setup(c->name_server, c->identity_ca);
	v->session_hours = c->session_hours;
	v->session_idle_minutes = c->session_idle_minutes;
	v->drill_days = c->backup_drills;
	v->billing_lock_days = c->billing_lock_days;
	v->billing_grace_days = c->billing_grace_days;
	v->index_wait_seconds = c->index_wait;
	v->index_limit_seconds = c->index_limit;
	v->orgs_max = c->orgs_max;
	v->db_scheme = c->db_scheme;
	v->db_domain = c->db_domain;
	v->db_versions = &c->db_versions;
	s->router.service = v;
	s->limits = c->limits;
	s->limit_count = c->limit_count;
	result = loops_make(s);
	if (result < 0)
		return result;
	limits_apply(s);
	return workers_start(v, v->lanes - v->loops, &v->workers);
}

static int engine_remember(struct tx *tx, void *ctx)
{
	return tx_meta_put(tx, "engine", str_of(ctx));
}

/* The engine that is configured; else the one that made the existing clusters, because another would make them all
 * again; else the best one that this machine can run. */
static int engine_choose(struct server *s)
{
	const struct config *c = &s->config;
	struct service *v = &s->service;
	struct arena *a = s->arena;
	struct str kept = STR_NONE, *ids;
	size_t count = 0;
	int result = tx_meta_get(s->reader, a, "engine", &kept);
	if (result == -ENOENT)
		result = clusters_collect(v->store, a, &ids, &count);
	if (result < 0)
		return result;
	const char *made = kept.n ? arena_z(a, kept) : engine_of_data(c->data, a);
	const char *name = c->engine ? c->engine : kept.n || count ? made : NULL;
	s->engine_why = c->engine ? "as asked for" : "as before on this data directory";
	v->engine_ops = name ? engine_find(name) : engine_default(!c->clock_virtual, a, &s->engine_why);
	if (!v->engine_ops) {
		fprintf(stderr, "steward: --engine %s: this program was built without it. Use --engine simulated.\n",
		        name);
		return -ENOTSUP;
	}
	if (kept.n && !str_is(kept, v->engine_ops->name))
		log_warn("engine: the clusters were made by the engine %.*s; %s makes them anew", STR_ARG(kept),
		         v->engine_ops->name);
	v->engine = v->engine_ops->name;
	store_binds_jobs(v->store, v->engine_ops->core->on_host);
	if (str_is(kept, v->engine_ops->name))
		return 0;
	return store_write_wait(v->store, engine_remember, (void *)(uintptr_t)v->engine);
}

static void metrics_more(struct buf *b, struct service *s)
{
	cluster_metrics_write(b, s);
	backup_figures_write(b, s);
	outbox_metrics_write(b, s->outbox);
	private_endpoints_metrics(b);
	shipper_metrics_write(b, s->shipper);
}

/* The engine first, then the jobs that use it. */
static int databases_start(struct server *s)
{
	const struct config *c = &s->config;
	struct service *v = &s->service;
	struct engine_options options = {.data_dir = c->data,
	                                 .domain = c->db_domain,
	                                 .address = c->db_address,
	                                 .port_first = c->db_port_first,
	                                 .port_last = c->db_port_last,
	                                 .real_clock = !c->clock_virtual,
	                                 .simulated_seconds = c->simulated_seconds,
	                                 .changed = watch_changed,
	                                 .changed_ctx = v,
	                                 .disk_mb = c->db_disk_mb,
	                                 .cgroup = c->db_cgroup,
	                                 .full_changed = disk_changed,
	                                 .full_ctx = v,
	                                 .repositories = v->repositories,
	                                 .keys = v->data_keys,
	                                 .spool_bytes = (uint64_t)c->backup_spool_mb << 20};
	struct jobs_options jobs = {.store = v->store,
	                            .threads = c->job_threads,
	                            .moves = c->backup_jobs,
	                            .ctx = v,
	                            .host_of = cluster_job_host};
	jobs.kinds = families_jobs(s->arena, &jobs.kind_count);
	int result = engine_choose(s);
	if (result == 0)
		result = host_start(c, v, s->node);
	v->metrics_more = metrics_more;
	if (result == 0)
		result = v->engine_ops->core->start(&options, &v->engine_state);
	if (result == 0)
		result = private_endpoints_start(v, c->relay_address, c->relay_port_first, c->relay_port_last);
	if (result == 0)
		result = metering_mark_now(v, s->reader, s->arena);
	if (result == 0)
		result = clusters_adopt(v->store);
	if (result == 0)
		result = data_federation_start(v);
	if (result == 0)
		result = orphans_look(v);
	if (result == 0)
		result = sampler_start(v, c->series_days, &v->sampler);
	if (result == 0)
		result = shipper_start(v, c->log_export_seconds, &v->shipper);
	return result < 0 ? result : jobs_start(&jobs, &v->jobs);
}

/* The port is known, and so the base URL, which links in answers need. */
static void bound(void *ctx, int port)
{
	struct server *s = ctx;
	const char *host = s->config.listen_host;
	bool wild = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
	if (s->config.base_url)
		s->service.base_url = s->config.base_url;
	else if (strchr(host, ':') && !wild)
		s->service.base_url = arena_printf(s->arena, "https://[%s]:%d", host, port).p;
	else
		s->service.base_url = arena_printf(s->arena, "https://%s:%d", wild ? "localhost" : host, port).p;
	links_base(s->service.base_url);
}

static int serve(struct server *s)
{
	const struct config *c = &s->config;
	bool shared = store_is_remote(s->service.store);
	struct http_inner inner;
	host_inner(c, s->arena, &inner);
	struct http_app app = {.ctx = &s->router,
	                       .body_limit = router_body_limit,
	                       .begin = router_begin,
	                       .handle = router_handle,
	                       .done = router_done,
	                       .loop_start = router_loop_start,
	                       .turn_end = router_turn_end};
	struct http_options options = {.listen = c->listen,
	                               .cert_file = s->cert_file,
	                               .key_file = s->key_file,
	                               .threads = c->threads,
	                               .bound = bound,
	                               .bound_ctx = s,
	                               .header_seconds = c->header_seconds,
	                               .body_seconds = c->body_seconds,
	                               .idle_seconds = c->idle_seconds,
	                               .send_seconds = c->send_seconds,
	                               .connections_max = c->connections_max,
	                               .connections_per_address = c->connections_per_address,
	                               .buffer_max = (size_t)c->buffer_memory << 20,
	                               .proxies = c->proxy_list,
	                               .proxy_count = c->proxy_count,
	                               .inner = shared ? &inner : NULL};
	struct http_server *http;
	int result = http_start(&options, &app, &http);
	if (result < 0)
		return result;
	s->service.http = http;
	result = shared ? host_tell(c, s->arena, http) : 0;
	if (result < 0)
		return result;
	result = bootstrap_ensure(s->service.store, c->data, s->service.base_url, s->ca_file, &s->first_start);
	if (result == 0 && !s->first_start)
		result = bootstrap_refresh(c->data, s->service.base_url, s->ca_file);
	if (result == 0)
		result = domains_open(s->service.store);
	return result;
}

/* Whoever reaches the test control can read and change everything. */
static void test_control_warn(const struct config *c)
{
	struct str host = str_of(c->listen_host);
	bool loopback = str_starts(host, STR("127.")) || str_is(host, "::1") || str_is(host, "localhost");
	if (c->test_control && !loopback)
		log_warn("test control: /api/test/ asks for no credentials and is open to everyone who reaches %s",
		         c->listen);
}

/* Prints the commands that lead from the first start to SQL: this program, with the data directory unless clients find
 * it by themselves. */
static void greet_next(const struct server *s)
{
	bool usual = strcmp(s->config.data, "./data") == 0;
	const char *program = program_invocation_name, *option = usual ? "" : " --data ",
	           *dir = usual ? "" : s->config.data;
	bool databases = s->service.engine_ops->core->on_host;
	printf("%s:\n\n  %s clusters create first --wait%s%s\n",
	       databases ? "A first database, and SQL on it" : "A first cluster, simulated", program, option, dir);
	if (databases)
		printf("  %s connect first%s%s\n", program, option, dir);
	putchar('\n');
}

/* The first start's greeting: everything that a first successful call needs. On a terminal alone: a file, a pipe or the
 * journal of a service manager keeps what it was given, and has more readers than the keys should have. */
static void greet(struct server *s)
{
	const char *file = arena_printf(s->arena, "%s/bootstrap.json", s->config.data).p;
	json_t *first =
	        s->first_start && !notify_is_wanted() && isatty(STDOUT_FILENO) ? json_load_file(file, 0, NULL) : NULL;
	if (s->first_start && !first)
		printf("steward: this is the first start: the credentials and the link to the console are in %s\n",
		       file);
	if (first) {
		const json_t *key = json_object_get(first, "apiKey");
		printf("\nThis is the first start. The credentials are in %s; the first organization's owner key is\n\n"
		       "  public key   %s\n  private key  %s\n\n"
		       "Open the console; whoever does so first sets the owner's password:\n\n  %s\n\nOr try it:\n\n"
		       "  curl --cacert '%s' --digest --user '%s:%s' '%s" API_BASE "/groups?pretty=true'\n\n",
		       file, json_string_value(json_object_get(key, "publicKey")),
		       json_string_value(json_object_get(key, "privateKey")),
		       json_string_value(json_object_get(first, "consoleLink")), s->ca_file,
		       json_string_value(json_object_get(key, "publicKey")),
		       json_string_value(json_object_get(key, "privateKey")), s->service.base_url);
		if (!clock_is_virtual()) /* a virtual clock moves only by the test control */
			greet_next(s);
		json_decref(first);
	}
	printf("steward: engine %s: %s\nsteward: ready %s\n", s->service.engine, s->engine_why, s->service.base_url);
	fflush(stdout);
}

static void certificate_reload(struct server *s)
{
	bool own = !s->config.tls_cert;
	if ((own && certificate_ensure(s->config.data, s->config.listen_host, s->config.base_url) < 0) ||
	    http_reload_certificate(s->service.http) < 0)
		log_error("certificate: the old one stays in force");
}

static void reload(struct server *s)
{
	log_info("reload: certificate, limits and price book");
	notify_send("RELOADING=1");
	certificate_reload(s);
	limits_reload(s);
	if (prices_reload(s->service.prices) < 0)
		log_error("price book: the old one stays in force");
	notify_send("READY=1");
}

/* A service that runs for a year must renew its own certificate before it ends. */
static void certificate_renew(struct server *s)
{
	if (!s->config.tls_cert && s->polls % (24 * 3600 * (1000 / POLL_MS)) == 0)
		certificate_reload(s);
}

/* After a flood the heap is large and mostly empty: give it back to the kernel. What clients have made it hold is one
 * sign; the other is asked of the allocator, because writes and jobs hold memory too: 7 GB stayed after a hundred
 * deletions. The allocator counts as free what it has given back, so only what has become free since is a reason. */
static void memory_give_back(struct server *s)
{
	size_t used, max;
	http_buffered(s->service.http, &used, &max);
	if (used > s->buffered)
		s->buffered = used;
	bool flooded = s->buffered - used >= GIVE_BACK;
	size_t heap_free = mallinfo2().fordblks;
	if (heap_free < s->heap_free)
		s->heap_free = heap_free;
	if (!flooded && heap_free - s->heap_free < HEAP_FREE_MAX)
		return;
	s->buffered = used;
	malloc_trim(GIVE_BACK);
	s->heap_free = mallinfo2().fordblks;
}

static int damage_event(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	struct str org_id;
	int result = tx_meta_get(tx, a, "bootstrap", &org_id);
	if (result == 0)
		result = event_service(tx, a, "STORE_DAMAGED", org_id, STR_NONE, STR_NONE);
	arena_free(a);
	return result;
}

/* The first organization belongs to the operator, so its events report when the store was found damaged. */
static void damage_report(struct server *s)
{
	bool damaged = store_damage(s->service.store, NULL, 0) > 0;
	if (damaged && !s->damage_reported && store_write_wait(s->service.store, damage_event, NULL) < 0)
		log_error("store: damaged: the event of that could not be written");
	s->damage_reported = damaged;
}

/* Until SIGTERM or SIGINT. */
static void wait_for_signals(struct server *s, const sigset_t *signals)
{
	const struct timespec nap = {.tv_nsec = POLL_MS * 1000000L};
	struct service *v = &s->service;
	s->keys = (struct key_watch){.data_dir = s->config.data, .store = v->store, .reader = s->reader};
	unsigned char places[32];
	repositories_places_hash(v->repositories, places);
	hex_encode(places, sizeof places, s->keys.places);
	for (;;) {
		int signal = sigtimedwait(signals, NULL, &nap);
		if (signal == SIGTERM || signal == SIGINT)
			return;
		if (signal == SIGHUP)
			reload(s);
		uint64_t version = store_data_version(s->reader);
		if (version != s->data_version) {
			s->data_version = version;
			limits_apply(s);
			endpoint_verdicts_apply(&s->service, s->reader);
			if (!private_endpoints_review(s->reader))
				s->data_version--; /* once more at the next look */
		}
		waits_poll(s->reader);
		if (++s->polls % (1000 / POLL_MS) == 0) {
			uses_flush(&s->service);
			cluster_metrics_refresh(s->reader);
			damage_report(s);
			http_rotate_keys(s->service.http);
			memory_give_back(s);
			certificate_renew(s);
			if (key_watch_look(&s->keys) > 0)
				repositories_keys_renew(v->repositories);
		}
		key_watch_walk(&s->keys);
	}
}

static void take_down(struct server *s)
{
	struct service *v = &s->service;
	waits_close();
	hosts_unwatch();
	live_end_all(v->live);
	if (v->http)
		http_drain_and_stop(v->http, DRAIN_SECONDS);
	workers_stop(v->workers);
	live_teardown(v);
	roster_stop();
	streams_wait();
	hosts_close();
	jobs_stop(v->jobs);
	shipper_stop(v->shipper);
	sampler_stop(v->sampler);
	private_endpoints_stop();
	if (v->engine_state)
		v->engine_ops->core->stop(v->engine_state);
	repositories_close(v->repositories);
	pace_free(v->backup_pace);
	keys_close(v->keys);
	providers_close(v->providers);
	prices_close(v->prices);
	jwks_close(v->jwks);
	outbox_close(v->outbox);
	if (v->store)
		uses_flush(v);
	loops_free(s);
	store_reader_free(s->reader);
	store_close(v->store);
	live_free(v->live);
	limiter_free(v->limiter);
	redis_limits_close(s->shared_limits);
	nonce_window_free(v->nonces);
	attempts_free(v->attempts);
	record_close(s->router.recorder);
	router_teardown();
	links_teardown();
	catalog_teardown();
	schema_teardown();
	arena_free(s->limits_arena);
	if (s->lock >= 0)
		close(s->lock);
}

/* Memory holds keys, secrets and data of tenants: a dump gets registers and no memory, of this process and of the
 * databases that it starts. */
static void memory_keep_out_of_dumps(void)
{
	FILE *f = fopen("/proc/self/coredump_filter", "we");
	bool set = f && fputs("0x10", f) >= 0;
	if ((f && fclose(f) != 0) || !set)
		log_warn("core dumps would hold memory: /proc/self/coredump_filter cannot be set");
}

static int run(struct server *s)
{
	if (!s->config.core_dumps)
		memory_keep_out_of_dumps();
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	/* Blocked before any thread starts, so that all threads inherit it and only the main thread receives
	 * signals. */
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	mallopt(M_MMAP_THRESHOLD, MAP_FROM);
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is handled as a full disk; the process continues */
	int result = fetch_memory_setup();
	if (result == 0)
		result = prepare(s);
	if (result == 0)
		result = providers_start(&s->config, &s->service);
	if (result == 0)
		result = keys_start(&s->config, &s->service, s->arena);
	if (result == 0)
		result = backups_open(&s->config, &s->service, s->reader, s->arena);
	if (result == 0)
		result = prices_open(s->service.store, s->config.price_book, &s->service.prices);
	if (result == 0)
		result = metering_start(s->service.store);
	if (result == 0)
		result = databases_start(s);
	if (result == 0)
		result = live_start(&s->service);
	if (result == 0) {
		roster_start(&s->service);
		result = serve(s);
	}
	if (result == 0)
		result = store_watch(s->service.store, s->config.store_check_seconds);
	if (result == 0) {
		test_control_warn(&s->config);
		greet(s);
		notify_send("READY=1");
		wait_for_signals(s, &signals);
		notify_send("STOPPING=1");
		log_info("stopping: finishing what is under way");
		atomic_store(&s->service.draining, true);
	}
	take_down(s);
	return result < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

int serve_command(int argc, char **argv)
{
	struct server *s = must_calloc(1, sizeof *s);
	enum log_level level;
	int result = config_parse(argc, argv, &s->config);
	if (result != 0) {
		if (result == OPTIONS_HELP)
			help_command(stdout, "serve");
		free(s);
		return result == OPTIONS_HELP ? EXIT_DONE : EXIT_USAGE;
	}
	s->arena = arena_new();
	s->lock = -1;
	if (!log_level_parse(str_of(s->config.log_level), &level))
		level = LOG_INFO;
	log_setup(level, s->config.log_json);
	if (s->config.clock_virtual)
		clock_make_virtual();
	result = run(s);
	arena_free(s->arena);
	config_free(&s->config);
	free(s);
	return result;
}
