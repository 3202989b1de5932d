/* What an engine promises by what it offers: every engine has core and access, an offered capability has all of its
 * functions, and the simulated one, driven through them alone, keeps the contract of the core. And what is the same for
 * all engines. */
#include "engine/engine.h"

#include "base/buf.h"
#include "base/clock.h"

#include "check.h"

#include <errno.h>
#include <unistd.h>

#define ID "65f0000000000000000000a1"

static void test_offers(const struct engine_ops *o)
{
	const struct engine_core_ops *c = o->core;
	CHECK(c && c->can_run && c->start && c->stop && c->converge && c->destroy && c->observe && c->switchover &&
	      c->behind && c->versions);
	CHECK(o->access && o->access->apply);
	CHECK(!o->logs || (o->logs->open && o->logs->audit_check));
	CHECK(!o->statistics || (o->statistics->host && o->statistics->databases && o->statistics->partitions));
	CHECK(!o->disk || o->disk->usage);
	CHECK(!o->query || o->query->load_sample);
	CHECK(!o->control || (o->control->seconds && o->control->fail && o->control->patch && o->control->standard));
}

static void test_choice(struct arena *a)
{
	const char *why = NULL;
	const struct engine_ops *simulated = engine_find("simulated"), *postgres = engine_find("postgres");
	CHECK(simulated && !engine_find("none"));
	CHECK(engine_default(false, a, &why) == simulated && why);
	CHECK(engine_default(true, a, &why) && why);
	CHECK(simulated && simulated->core->can_run(true, a, &why) == 0 &&
	      simulated->core->can_run(false, a, &why) == 0);
	CHECK(strcmp(engine_of_data("/nonexistent", a), "simulated") == 0);
	test_offers(simulated);
	/* What the service asks of an engine, and only a real one says. */
	CHECK(!simulated->core->on_host && !simulated->core->reports_changes && !simulated->access->holds);
	CHECK(!simulated->disk && simulated->control);
	if (!postgres)
		return;
	test_offers(postgres);
	CHECK(postgres->core->on_host && postgres->core->reports_changes && postgres->access->holds);
	CHECK(postgres->disk && !postgres->control);
}

static const struct node_status *primary_of(const struct cluster_status *s)
{
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].primary)
			return &s->nodes[i];
	return NULL;
}

static void test_simulated(struct arena *a)
{
	const struct engine_ops *o = engine_find("simulated");
	struct engine_options options = {.data_dir = "/nonexistent", .domain = "example.org", .simulated_seconds = 600};
	struct engine_node nodes[] = {{.name = "a", .priority = 7}, {.name = "b", .priority = 7}};
	struct engine_cluster want = {
	        .id = ID, .project_hash = "x1y2z3", .version = 15, .nodes = nodes, .node_count = 2, .shards = 1};
	struct engine_access access = {.user_count = 0};
	struct cluster_status status;
	struct engine *e;
	const char *why = NULL;
	CHECK(o->core->start(&options, &e) == 0);
	CHECK(o->access->apply(e, ID, &access, &why) == -ENOENT && why);

	o->control->seconds(e, 0);
	struct engine_progress progress = {.tell = NULL};
	o->control->fail(e, "create", 1);
	CHECK(o->core->converge(e, &want, &access, &progress, a, &why) == -EIO);
	CHECK(o->core->observe(e, ID, a, &status) == 0 && !status.exists);
	CHECK(o->core->converge(e, &want, &access, &progress, a, &why) == 0);
	CHECK(o->core->observe(e, ID, a, &status) == 0 && status.exists && status.node_count == 2);
	const struct node_status *first = primary_of(&status);
	CHECK(first && o->core->switchover(e, ID, 0, first->name, &why) == 0);
	CHECK(o->core->observe(e, ID, a, &status) == 0);
	CHECK(first && primary_of(&status) && strcmp(primary_of(&status)->name, first->name) != 0);
	CHECK(o->access->apply(e, ID, &access, &why) == 0);

	o->control->patch(e, 1);
	CHECK(o->core->behind(e, ID));
	want.renew = true;
	CHECK(o->core->converge(e, &want, &access, &progress, a, &why) == 0 && !o->core->behind(e, ID));

	char line[256] = "";
	int fd;
	struct engine_log log = {.cluster_id = ID, .node = "a", .to_ms = INT64_MAX};
	CHECK(o->logs->open(e, &log, &fd) == 0 && read(fd, line, sizeof line - 1) > 0 && strstr(line, "ready"));
	close(fd);
	log.kind = ENGINE_LOG_AUDIT;
	CHECK(o->logs->open(e, &log, &fd) == 0 && read(fd, line, 1) == 0);
	close(fd);
	log.node = "c";
	CHECK(o->logs->open(e, &log, &fd) == -ENOENT);

	CHECK(o->query->load_sample(e, ID, &progress, a, &why) == 0);
	CHECK(o->core->destroy(e, ID, &progress) == 0 && o->core->destroy(e, ID, &progress) == 0);
	CHECK(o->core->observe(e, ID, a, &status) == 0 && !status.exists);
	o->core->stop(e);
}

static bool has(const struct engine_param *params, size_t count, const char *name, const char *value)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(params[i].name, name) == 0)
			return value && strcmp(params[i].value, value) == 0;
	return !value;
}

static void test_settings(struct arena *a)
{
	struct engine_param *params;
	size_t n = engine_params(&(struct engine_settings){.statement_ms = 0}, a, &params);
	CHECK(n == 1 && has(params, n, "ssl_min_protocol_version", "TLSv1.2"));
	struct engine_settings all = {.statement_ms = 5000,
	                              .idle_transaction_s = 60,
	                              .log_keep_mb = 990,
	                              .no_table_scan = true,
	                              .tls13 = true,
	                              .ciphers = "A:B"};
	n = engine_params(&all, a, &params);
	CHECK(n == 6 && has(params, n, "statement_timeout", "5000ms"));
	CHECK(has(params, n, "idle_in_transaction_session_timeout", "60s") && has(params, n, "wal_keep_size", "990MB"));
	CHECK(has(params, n, "enable_seqscan", "off") && has(params, n, "ssl_min_protocol_version", "TLSv1.3"));
	CHECK(has(params, n, "ssl_ciphers", "A:B") && has(params, n, "work_mem", NULL));
}

static void test_names(void)
{
	static const char *const reserved[] = {"pg_read", "steward", "steward:x", "/ann", "public", "none", "postgres"};
	static const char *const free_names[] = {"ann", "pg", "Public", "postgres2", "a/b", ""};
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		CHECK(engine_name_is_reserved(str_of(reserved[i])));
	for (size_t i = 0; i < sizeof free_names / sizeof *free_names; i++)
		CHECK(!engine_name_is_reserved(str_of(free_names[i])));
}

static void test_connect(void)
{
	struct buf b = {0};
	engine_connect_tail(&b, STR("127.0.0.2,127.0.0.3"));
	CHECK(str_is(buf_view(&b), "/postgres?hostaddr=127.0.0.2,127.0.0.3&sslmode=require&"
	                           "target_session_attrs=read-write"));
	buf_free(&b);
	b = (struct buf){0};
	engine_connect_tail(&b, STR_NONE);
	CHECK(str_is(buf_view(&b), "/postgres?sslmode=require&target_session_attrs=read-write"));
	buf_free(&b);
}

static void test_installed(void)
{
	unsigned versions[32];
	size_t n = engine_installed(versions, 32);
	CHECK(n > 0 && engine_installed(versions, 1) == 1);
	for (size_t i = 1; i < engine_installed(versions, 32); i++)
		CHECK(versions[i - 1] < versions[i]);
}

int main(void)
{
	struct arena *a = arena_new();
	test_choice(a);
	test_simulated(a);
	test_settings(a);
	test_names();
	test_connect();
	test_installed();
	arena_free(a);
	return CHECK_DONE();
}
