/* Letters to an address in an hour: of a sender, of all, by subject; and that those beyond are not queued. */
#include "outbox/hourly.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "check.h"
#include "outbox/outbox.h"
#include "outbox/queue.h"
#include "store/seal.h"

#include <unistd.h>

#define HOUR_MS INT64_C(3600000)

static struct arena *a;

static unsigned taken(const char *sender, const char *to, const char *subject, unsigned tries)
{
	unsigned count = 0;
	while (tries--)
		count += hourly_take(a, str_of(sender), str_of(to), str_of(subject));
	return count;
}

static void test_bounds(void)
{
	CHECK(taken("one", "ada@example.org", "invited", 100) == HOURLY_OF_SENDER);
	CHECK(taken("one", "ada@example.org", "password", 1) == 1 &&
	      taken("one", "bob@example.org", "invited", 1) == 1);
	CHECK(taken("two", "ada@example.org", "invited", 100) == HOURLY_OF_SENDER);
	for (char sender[] = "a"; *sender <= 'z'; ++*sender)
		taken(sender, "ada@example.org", "invited", 100);
	CHECK(taken("new", "ada@example.org", "invited", 1) == 0 &&
	      taken("new", "ada@example.org", "password", 1) == 1);
	CHECK(taken("one", "ada@example.org", "", 1000) == HOURLY_OF_ALERTS &&
	      taken("two", "ada@example.org", "", 1) == 1);
	clock_advance_ms(HOUR_MS);
	CHECK(taken("new", "ada@example.org", "invited", 1) == 1);
	CHECK(taken("one", "ada@example.org", "invited", 100) == HOURLY_OF_SENDER);
	for (int round = 0; round < 2; round++) {
		unsigned all = 0;
		for (char sender[] = "a"; *sender <= 'z'; ++*sender)
			all += taken(sender, "eve@example.org", "invited", 100);
		CHECK(all == HOURLY_OF_ALL);
		clock_advance_ms(HOUR_MS);
	}
}

static int letters_run(struct tx *tx, void *ctx)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < HOURLY_OF_SENDER + 5; i++)
		r = outbox_mail(tx, a, STR("000000000000000000000001"),
		                i % 2 ? STR("Dan@example.org") : STR("dan@example.org"), STR("invited"), STR("text"));
	return r;
}

static void test_queue(void)
{
	char dir[] = "/tmp/hourly-XXXXXX", path[64];
	struct store *store;
	int64_t waiting = 0;
	uint64_t before = queue_dropped();
	if (!mkdtemp(dir) || seal_setup(dir) < 0 || store_open(&(struct store_options){.data_dir = dir}, &store) < 0)
		exit(1);
	CHECK(store_write_wait(store, letters_run, NULL) == 0);
	struct tx *reader = store_reader(store);
	tx_begin_read(reader);
	CHECK(tx_count(reader, WAITING, STR("000000000000000000000001"), &waiting) == 0);
	tx_end_read(reader);
	CHECK(waiting == HOURLY_OF_SENDER && queue_dropped() == before + 5);
	store_reader_free(reader);
	store_close(store);
	const char *const files[] = {"steward.db", "steward.db-wal", "steward.db-shm", "secret.key"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	CHECK(rmdir(dir) == 0);
}

int main(void)
{
	json_setup();
	clock_make_virtual();
	a = arena_new();
	test_bounds();
	test_queue();
	arena_free(a);
	return CHECK_DONE();
}
