/* Uses of credentials: counted on loops, taken over by another thread, written once. */
#include "gate_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#define ENTRY "000000000000000000000081"
#define CALLS 20000

static _Atomic bool counting;
static struct ip peer;

static json_t *document(const char *kind, const char *id)
{
	struct doc d;
	CHECK(tx_get(fx.loop.reader, fx.arena, kind, str_of(id), &d) == 0);
	return json_loadb(d.body.p, d.body.n, 0, NULL);
}

static int nothing(struct tx *tx, void *ctx)
{
	return 0;
}

/* The store runs writes in order: after this call, everything handed over before is written. */
static void settle(void)
{
	CHECK(store_write_wait(fx.service.store, nothing, NULL) == 0);
}

static void *count(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		use_access(&fx.service, 0, arg, 0, &peer);
	atomic_store(&counting, false);
	return NULL;
}

static void test_no_use_is_lost(void)
{
	struct principal *p = NULL;
	pthread_t thread;
	CHECK(ip_parse(STR("10.1.2.3"), &peer));
	fixture_put("api_access", ENTRY, KEY, "10.0.0.0/8", "{\"cidrBlock\":\"10.0.0.0/8\",\"count\":0}");
	CHECK(principal_load(fx.loop.reader, PRINCIPAL_API_KEY, STR(KEY), &p) == 0 && p->access_count == 1);
	atomic_store(&counting, true);
	CHECK(pthread_create(&thread, NULL, count, p) == 0);
	while (atomic_load(&counting))
		uses_flush(&fx.service);
	pthread_join(thread, NULL);
	uses_flush(&fx.service);
	settle();
	json_t *body = document("api_access", ENTRY);
	CHECK(json_integer_value(json_object_get(body, "count")) == CALLS);
	CHECK(strcmp(json_string_value(json_object_get(body, "lastUsedAddress")), "10.1.2.3") == 0);
	CHECK(json_is_string(json_object_get(body, "lastUsed")));
	json_decref(body);
	principal_unref(p);
}

static void test_counting_is_no_change_of_identity(void)
{
	uint64_t before = store_identity_generation(fx.service.store);
	use_secret(&fx.service, 0, STR(SECRET));
	uses_flush(&fx.service);
	settle();
	json_t *body = document("sa_secret", SECRET);
	CHECK(json_is_string(json_object_get(body, "lastUsedAt")));
	json_decref(body);
	CHECK(store_identity_generation(fx.service.store) == before);
}

/* Credentials that are deleted before the write are skipped, and the rest is written. */
static void test_gone(void)
{
	fixture_delete("api_access", ENTRY);
	fixture_put("api_access", ENTRY, ACCOUNT, "192.0.2.0/24", "{\"count\":2147483646}");
	struct cidr networks[2];
	CHECK(cidr_parse(STR("10.0.0.0/8"), &networks[0]) && cidr_parse(STR("192.0.2.0/24"), &networks[1]));
	CHECK(ip_parse(STR("192.0.2.7"), &peer));
	struct principal p = {.id = ACCOUNT, .access_list = networks, .access_count = 2};
	for (int i = 0; i < 5; i++) {
		use_access(&fx.service, 0, &p, 0, &peer);
		use_access(&fx.service, 0, &p, 1, &peer);
	}
	use_secret(&fx.service, 0, STR("000000000000000000000099"));
	use_secret(&fx.service, 0, STR("no id"));
	uses_flush(&fx.service);
	settle();
	json_t *body = document("api_access", ENTRY);
	CHECK(json_integer_value(json_object_get(body, "count")) == INT32_MAX);
	json_decref(body);
}

/* More credentials than a table holds: the full table goes to the store by itself. */
static void test_many(void)
{
	struct cidr network;
	CHECK(cidr_parse(STR("192.0.2.0/24"), &network) && ip_parse(STR("192.0.2.7"), &peer));
	struct principal p = {.access_list = &network, .access_count = 1};
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(p.id, sizeof p.id, "%024x", i);
		use_access(&fx.service, 0, &p, 0, &peer);
	}
	uses_flush(&fx.service);
	settle();
	CHECK(fx.loop.uses == NULL);
}

int main(void)
{
	fixture_setup();
	test_no_use_is_lost();
	test_counting_is_no_change_of_identity();
	test_gone();
	test_many();
	/* A table that nobody took is freed with the loop. */
	use_secret(&fx.service, 0, STR(SECRET));
	fixture_teardown();
	return CHECK_DONE();
}
