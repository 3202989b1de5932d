/* The registry's documents and the placement, on a store of their own; and what is accepted as a label. */
#include "check.h"

#include "base/clock.h"
#include "base/log.h"
#include "hosts/hosts.h"
#include "store/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ME "000000000000000000000001"
#define OTHER "000000000000000000000002"
#define NAMESAKE "00000000000000000000000a"
#define NUMBERED "00000000000000000000000b"

static struct arena *a;
static struct store *store;
static const struct host_room small = {.cores = 2, .memory_mb = 2048, .disk_mb = 10240};

static int write_now(int (*run)(struct tx *, void *), void *ctx)
{
	return store_write_wait(store, run, ctx);
}

static struct host me(void)
{
	struct host h = {.age_ms = 0};
	struct tx *reader = store_reader(store);
	CHECK(host_find(reader, a, STR(ME), &h) == 0);
	store_reader_free(reader);
	return h;
}

struct placing {
	const char *provider, *region;
	struct host_room need;
	struct str host, why;
};

static int place_run(struct tx *tx, void *ctx)
{
	struct placing *p = ctx;
	return hosts_place(tx, a, str_of(p->provider), str_of(p->region), &p->need, &p->host, &p->why);
}

static int place(const char *region, struct placing *ret_placing)
{
	*ret_placing = (struct placing){.provider = "AWS", .region = region, .need = small};
	return write_now(place_run, ret_placing);
}

static int leave_run(struct tx *tx, void *ctx)
{
	const struct host_room none = {0};
	return hosts_account(tx, a, STR(ME), &small, &none, -1);
}

static int grow_run(struct tx *tx, void *ctx)
{
	const struct host_room large = {.cores = 3, .memory_mb = 4096, .disk_mb = 10240};
	return hosts_account(tx, a, STR(ME), &small, &large, 0);
}

static int fit_run(struct tx *tx, void *ctx)
{
	struct str why = STR_NONE;
	int r = hosts_fit(tx, a, STR(ME), &small, ctx, &why);
	return r == -EDQUOT && !strstr(arena_z(a, why), "one, where the cluster is, lacks memory") ? -EIO : r;
}

static int count_run(struct tx *tx, void *ctx)
{
	return hosts_used(tx, a, &small, 1);
}

static int bootstrap_run(struct tx *tx, void *ctx)
{
	return tx_meta_put(tx, "bootstrap", STR("000000000000000000000009"));
}

/* One that is in the store and is not heard. */
static int other_run(struct tx *tx, void *ctx)
{
	struct doc d = {.kind = STR(HOST_KIND),
	                .id = STR(OTHER),
	                .parent = STR(""),
	                .name = STR("other"),
	                .created_ms = 1,
	                .body = STR("{\"address\":\"127.0.0.1:1\",\"labels\":{}}")};
	return tx_insert(tx, &d);
}

/* One that calls itself as the one after it is numbered. */
static int namesake_run(struct tx *tx, void *ctx)
{
	static const char *const rows[][2] = {{NAMESAKE, NUMBERED}, {NUMBERED, "numbered"}};
	int r = 0;
	for (int i = 0; r == 0 && i < 2; i++) {
		struct doc d = {.kind = STR(HOST_KIND),
		                .id = str_of(rows[i][0]),
		                .parent = STR(""),
		                .name = str_of(rows[i][1]),
		                .created_ms = 10 + i,
		                .body = STR("{\"address\":\"127.0.0.1:2\",\"labels\":{}}")};
		r = tx_insert(tx, &d);
	}
	return r;
}

static int numbered_run(struct tx *tx, void *ctx)
{
	struct host h;
	int r = host_find(tx, a, STR(NUMBERED), &h);
	return r < 0 ? r : str_is(h.name, "numbered") ? 0 : -EEXIST;
}

static int cordon_run(struct tx *tx, void *ctx)
{
	struct host h;
	int r = host_find(tx, a, STR("one"), &h);
	return r < 0 ? r : host_cordon(tx, a, &h, *(bool *)ctx) == 1 ? -EALREADY : 0;
}

static int remove_run(struct tx *tx, void *ctx)
{
	struct host h;
	int r = host_find(tx, a, str_of(ctx), &h);
	return r < 0 ? r : host_remove(tx, a, &h);
}

static int take_out(const char *name)
{
	return write_now(remove_run, (void *)(uintptr_t)name);
}

static int label_run(struct tx *tx, void *ctx)
{
	struct host h;
	struct str name, value;
	str_cut(str_of(ctx), '=', &name, &value);
	int r = host_find(tx, a, STR(ME), &h);
	if (r == 0)
		r = host_label(tx, a, &h, name, value);
	return r == 1 ? -EALREADY : r;
}

static int label(const char *text)
{
	return write_now(label_run, (void *)(uintptr_t)text);
}

static void test_announce(void)
{
	struct host h = me();
	CHECK(str_is(h.name, "one") && h.alive && !h.cordoned && h.clusters == 0 && h.capacity.cores > 0);
	CHECK(h.bound.memory_mb == 4096 && str_is(json_field(h.labels, "region"), "US_EAST_1"));
	int64_t rev = h.doc.rev;
	CHECK(hosts_announce("") == 0);
	CHECK(me().doc.rev == rev);            /* as before: nothing is written */
	CHECK(!host_is_elsewhere(STR(OTHER))); /* nobody else can be in this store */
}

static void test_place(void)
{
	struct placing p;
	CHECK(place("US_EAST_1", &p) == 0 && str_is(p.host, ME));
	CHECK(place("US_EAST_1", &p) == 0 && me().used.memory_mb == 4096 && me().clusters == 2);
	CHECK(place("US_EAST_1", &p) == -EDQUOT && strstr(arena_z(a, p.why), "one lacks memory"));
	CHECK(me().used.memory_mb == 4096 && me().clusters == 2);
	struct host_room more = {.cores = 64, .memory_mb = 2049}, less = {.cores = 1, .memory_mb = 1024};
	CHECK(write_now(fit_run, &more) == -EDQUOT && write_now(fit_run, &less) == 0);
	CHECK(write_now(leave_run, NULL) == 0 && me().used.memory_mb == 2048 && me().clusters == 1);
	CHECK(write_now(grow_run, NULL) == 0 && me().used.memory_mb == 4096 && me().used.cores == 3);
	CHECK(write_now(count_run, NULL) == 0 && me().used.memory_mb == 2048 && me().used.cores == 2);
	CHECK(place("EU_WEST_1", &p) == -EDQUOT && strstr(arena_z(a, p.why), "one is for US_EAST_1"));
	/* A host that is not heard gets nothing, whatever its labels. */
	CHECK(write_now(other_run, NULL) == 0);
	CHECK(place("EU_WEST_1", &p) == -EDQUOT && strstr(arena_z(a, p.why), "other is away"));
	hosts_bind(false);
	CHECK(place("EU_WEST_1", &p) == 0 && !p.host.n);
	hosts_bind(true);
}

static void test_word(void)
{
	struct placing p;
	bool yes = true, no = false;
	CHECK(write_now(cordon_run, &yes) == 0 && me().cordoned);
	CHECK(write_now(cordon_run, &yes) == -EALREADY);
	CHECK(place("US_EAST_1", &p) == -EDQUOT && strstr(arena_z(a, p.why), "one is cordoned"));
	CHECK(hosts_announce("") == 0 && me().cordoned); /* a restart does not forget it */
	CHECK(write_now(cordon_run, &no) == 0 && !me().cordoned);
	CHECK(label("region=") == 0 && !json_field(me().labels, "region").n);
	CHECK(place("EU_WEST_1", &p) == 0 && write_now(leave_run, NULL) == 0);
	CHECK(hosts_announce("") == 0 && !json_field(me().labels, "region").n); /* nor this */
	CHECK(label("region=EU_WEST_1") == 0 && label("region=EU_WEST_1") == -EALREADY);
	CHECK(place("US_EAST_1", &p) == -EDQUOT);
	CHECK(label("a b=c") == -EINVAL && label("=c") == -EINVAL && label("x=a b") == -EINVAL);
	CHECK(write_now(namesake_run, NULL) == 0 && write_now(numbered_run, NULL) == 0);
	CHECK(take_out("numbered") == 0 && take_out("numbered") == -ENOENT);
	CHECK(take_out("one") == -EBUSY && me().alive);
	CHECK(host_label_is_valid(STR("topology.example.com/rack"), STR("r1")) &&
	      host_label_is_valid(STR("x"), STR("")));
}

int main(void)
{
	static const char *const labels[] = {"provider=AWS", "region=US_EAST_1"};
	char dir[] = "/tmp/steward-hosts-XXXXXX";
	json_setup();
	log_setup(LOG_ERROR, false);
	if (!mkdtemp(dir) || seal_setup(dir) < 0)
		return 1;
	a = arena_new();
	struct store_options options = {.data_dir = dir};
	if (store_open(&options, &store) < 0)
		return 1;
	struct hosts_options hosts = {.store = store,
	                              .id = ME,
	                              .name = "one",
	                              .data_dir = dir,
	                              .labels = labels,
	                              .label_count = 2,
	                              .bound = {.memory_mb = 4096}};
	CHECK(hosts_open(&hosts) == 0);
	hosts_bind(true);
	CHECK(write_now(bootstrap_run, NULL) == 0 && hosts_announce("") == 0);
	test_announce();
	test_place();
	test_word();
	hosts_close();
	store_close(store);
	arena_free(a);
	const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm", "secret.key"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[96];
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
	return CHECK_DONE();
}
