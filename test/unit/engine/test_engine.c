/* What an engine promises by what it offers: every engine has core and access, an offered capability has all of its
 * functions, and the simulated one, driven through them alone, keeps the contract of the core. And what is the same for
 * all engines. */
#include "engine/engine.h"

#include "base/buf.h"
#include "base/clock.h"

#include "check.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#define ID "65f0000000000000000000a1"

static void test_offers(const struct engine_ops *o)
{
	const struct engine_core_ops *c = o->core;
	CHECK(c && c->can_run && c->start && c->stop && c->converge && c->destroy && c->observe && c->switchover &&
	      c->behind && c->versions);
	CHECK(o->access && o->access->apply);
	CHECK(!o->logs ||
	      (o->logs->open && o->logs->logins && o->logs->follow && o->logs->end && o->logs->audit_check));
	const struct engine_advice_ops *v = o->advice;
	CHECK(!v || (v->slow && v->indexes && v->drops && v->notes));
	CHECK(!o->statistics ||
	      (o->statistics->host && o->statistics->databases && o->statistics->partitions && o->statistics->tables));
	CHECK(!o->sampling || (o->sampling->sample && o->sampling->track));
	CHECK(!o->history || (o->history->at && o->history->tables));
	CHECK(!o->sampling != !o->history);
	CHECK(!o->disk || o->disk->usage);
	CHECK(!o->query || o->query->load_sample);
	CHECK(!o->index || (o->index->check && o->index->build && o->index->clean && o->index->drop && o->index->look));
	const struct engine_lake_ops *l = o->lake;
	CHECK(!l ||
	      (l->can && l->check && l->move && l->held && l->files && l->read && l->expire && l->sweep && l->erase));
	const struct engine_federation_ops *f = o->federation;
	CHECK(!f || (f->can && f->bind && f->apply && f->bound && f->pause && f->destroy && f->observe && f->used &&
	             f->queries && f->known));
	CHECK(!o->shapes || o->shapes->list);
	CHECK(!o->sql || o->sql->run);
	CHECK(!o->activity || (o->activity->past && o->activity->sessions && o->activity->end && o->activity->vacuum));
	const struct engine_backup_ops *b = o->backup;
	CHECK(!b || (b->snapshot && b->restore && b->restore_piece && b->window && b->checkpoints && b->position &&
	             b->stream && b->copy && b->export && b->prove && b->record && b->forget && b->sweep &&
	             b->archive && b->usage));
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

static void test_shapes(void)
{
	struct engine_shape a = {
	        .text = "", .application = "a", .calls = 4, .total_us = 10, .first_ms = 5, .last_ms = 7};
	struct engine_shape b = {.text = "select 1", .application = "b", .calls = 2, .total_us = 8, .first_ms = 3};
	CHECK(engine_shape_percentile(&(struct engine_shape){.calls = 0}, 0.5) == 0);
	a.buckets[latency_bucket(1000)] = 3;
	a.buckets[latency_bucket(70000)] = 1;
	b.buckets[latency_bucket(1000)] = 1;
	b.buckets[latency_bucket(70000)] = 1;
	a.ids[a.id_count++] = -1;
	b.ids[b.id_count++] = -1;
	b.ids[b.id_count++] = 2;
	b.last_ms = 9;
	b.last_us = 77;
	CHECK(fabs(engine_shape_percentile(&a, 0.75) - 1000) <= 100 &&
	      fabs(engine_shape_percentile(&a, 0.01) - 1000) <= 100);
	CHECK(fabs(engine_shape_percentile(&a, 1) - 70000) <= 7000);
	engine_shape_join(&a, &b);
	CHECK(a.calls == 6 && a.total_us == 18 && a.buckets[latency_bucket(1000)] == 4 && a.id_count == 2 &&
	      a.ids[1] == 2);
	CHECK(strcmp(a.text, "select 1") == 0 && strcmp(a.application, "b") == 0);
	CHECK(a.first_ms == 3 && a.last_ms == 9 && a.last_us == 77);
	for (int64_t id = 10; id < 100; id++) {
		b.ids[0] = id;
		engine_shape_join(&a, &b);
	}
	CHECK(a.id_count == ENGINE_SHAPE_IDS);
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
	struct engine_logins came = {.cluster_id = ID, .node = "a", .to_ms = INT64_MAX, .max = 10};
	struct engine_login *logins;
	size_t count;
	CHECK(o->logs->logins(e, &came, a, &logins, &count) == 0 && count <= 1);
	came.node = "c";
	CHECK(o->logs->logins(e, &came, a, &logins, &count) == -ENOENT);

	CHECK(o->query->load_sample(e, ID, &progress, a, &why) == 0);
	CHECK(o->core->destroy(e, ID, &progress) == 0 && o->core->destroy(e, ID, &progress) == 0);
	CHECK(o->core->observe(e, ID, a, &status) == 0 && !status.exists);
	o->core->stop(e);
}

/* What a backup is to the simulated engine: sizes that add up, a window without gaps, a tar. */
static int tar_count(void *ctx, const void *bytes, size_t n)
{
	*(size_t *)ctx += n;
	return 0;
}

static void tell_nobody(void *ctx, unsigned percent, const char *what)
{
}

static void test_backups(struct arena *a)
{
	const struct engine_ops *o = engine_find("simulated");
	const struct engine_backup_ops *b = o->backup;
	struct engine_options options = {.data_dir = "/nonexistent", .domain = "example.org", .simulated_seconds = 0};
	struct engine_node node = {.name = "a", .priority = 7};
	struct engine_cluster want = {
	        .id = ID, .project_hash = "x", .version = 15, .nodes = &node, .node_count = 1, .shards = 1};
	struct engine_access access = {.user_count = 0};
	struct engine_progress p = {.tell = tell_nobody};
	struct engine_source source = {
	        .group_id = "g", .cluster_id = ID, .incarnation = ID, .snapshot_id = "s1", .region = "R"};
	struct engine_snapshot first, second;
	struct engine_window *windows;
	struct engine_archive archive;
	struct repo_swept swept;
	struct engine *e;
	const char *why = NULL;
	size_t count, bytes = 0;
	uint64_t used, lsn;
	CHECK(o->core->start(&options, &e) == 0);
	CHECK(b->snapshot(e, &source, &p, a, &first, &why) == -ENOENT && why);
	want.backup.archive = true;
	snprintf(want.backup.incarnation, sizeof want.backup.incarnation, "%s", ID);
	snprintf(want.backup.region, sizeof want.backup.region, "R");
	CHECK(o->core->converge(e, &want, &access, &p, a, &why) == 0);
	CHECK(b->window(e, &source, a, &windows, &count) == 0 && count == 0);
	o->control->fail(e, "snapshot", 1);
	CHECK(b->snapshot(e, &source, &p, a, &first, &why) == -EIO);
	CHECK(b->snapshot(e, &source, &p, a, &first, &why) == 0 && first.bytes && first.stored < first.bytes);
	CHECK(first.set_count == 1 && strcmp(first.version, "15.5.0") == 0);
	snprintf(source.snapshot_id, sizeof source.snapshot_id, "s2");
	CHECK(b->snapshot(e, &source, &p, a, &second, &why) == 0 && second.stored < first.stored);
	CHECK(b->copy(e, &source, "Q", &p, &why) == 0 && b->usage(e, "Q", "g", &used) == 0 && used > 0);
	CHECK(b->usage(e, "R", "g", &used) == 0 && used == first.stored + second.stored);
	CHECK(b->window(e, &source, a, &windows, &count) == 0 && count == 1 && windows[0].from_ms == first.at_ms);
	struct engine_position at;
	CHECK(b->position(e, &source, first.at_ms, &at, &lsn) == 0 && lsn <= at.lsn);
	CHECK(b->position(e, &source, first.at_ms - 86400000, &at, &lsn) == -ENOENT);
	CHECK(b->archive(e, ID, a, &archive) == 0 && archive.on && !archive.broken);
	CHECK(b->stream(e, &source, "0", 0, tar_count, &bytes, &why) == 0 && bytes % 512 == 0 && bytes > 2048);

	_Atomic bool cancel = true;
	struct engine_point point = {.kind = POINT_TIME, .time_ms = first.at_ms};
	CHECK(b->restore(e, &source, &point, &want, &access, &cancel, &p, a, &why) == -ECANCELED);
	point.time_ms = first.at_ms - 1;
	CHECK(b->restore(e, &source, &point, &want, &access, NULL, &p, a, &why) == -ENOENT);
	point.time_ms = first.at_ms;
	CHECK(b->restore(e, &source, &point, &want, &access, NULL, &p, a, &why) == 0);
	struct engine_piece piece = {.id = "j", .database = "shop", .as = "shop_restored_1", .suffix = "_restored_1"};
	CHECK(b->restore_piece(e, &source, &point, &piece, &want, &access, &cancel, &p, a, &why) == -ECANCELED);
	CHECK(b->restore_piece(e, &source, &point, &piece, &want, &access, NULL, &p, a, &why) == 0);
	point.time_ms = first.at_ms - 1;
	CHECK(b->restore_piece(e, &source, &point, &piece, &want, &access, NULL, &p, a, &why) == -ENOENT);

	const char *kept = ID "/s2";
	struct repo_keep keep = {.snapshots = &kept, .snapshot_count = 1};
	CHECK(b->sweep(e, "R", "g", &keep, &swept) == 0 && swept.manifests == 1 && swept.bytes_freed == first.stored);
	CHECK(b->forget(e, &source) == 0 && b->usage(e, "R", "g", &used) == 0 && used == 0);
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

/* It follows the load in steps, within its bounds, and leaves small changes alone. */
static void test_slow(struct arena *a)
{
	CHECK(engine_slow_threshold(0.1, 200) == 133 && engine_slow_threshold(0.1, 100) == 100);
	CHECK(engine_slow_threshold(10, 200) == 200 && engine_slow_threshold(14, 200) == 200);
	CHECK(engine_slow_threshold(16, 200) == 300 && engine_slow_threshold(50, 200) == 675);
	CHECK(engine_slow_threshold(1e9, 200) <= 5000 && engine_slow_threshold(1e9, 200) > 3000);
	CHECK(strcmp(engine_namespace(a, "shop", "public", "orders"), "shop.orders") == 0);
	CHECK(strcmp(engine_namespace(a, "shop", "old", "orders"), "shop.old.orders") == 0);
	CHECK(strcmp(engine_namespace(a, "b\xc3\xa4r", "public", "orders"), "b\xc3\xa4r.orders") == 0);
	CHECK(strcmp(engine_namespace(a, "b\xe4r", "public", "orders"), "b?r.orders") == 0);
	struct str list[] = {STR("shop.orders"), STR("shop.old.orders")};
	const struct engine_namespaces all = {NULL, 0}, two = {list, 2};
	CHECK(engine_namespace_is_of(&all, "x.y") && engine_namespace_is_of(&two, "shop.old.orders"));
	CHECK(!engine_namespace_is_of(&two, "shop.order"));
}

int main(void)
{
	struct arena *a = arena_new();
	test_choice(a);
	test_shapes();
	test_simulated(a);
	test_backups(a);
	test_settings(a);
	test_names();
	test_connect();
	test_installed();
	test_slow(a);
	arena_free(a);
	return CHECK_DONE();
}
