/* Which backups a store can know of: those that were made while a service ran on it. */
#include "api/snapshots/strangers.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct store *store;
static struct arena *a;
static int64_t started;

static int note_run(struct tx *tx, void *ctx)
{
	(void)ctx;
	return periods_note(tx, a, started);
}

static void note(void)
{
	CHECK(store_write_wait(store, note_run, NULL) == 0);
}

static bool is_stranger(int64_t ms, const char *known)
{
	struct tx *reader = store_reader(store);
	struct strangers *s = NULL;
	char id[32];
	snprintf(id, sizeof id, "%08llx0000000000000000", (long long)ms / 1000);
	tx_begin_read(reader);
	CHECK(strangers_new(reader, a, &s) == 0);
	if (known)
		strangers_know(s, str_of(known));
	strangers_know(s, STR("6740a1b2c3d4e5f601234567"));
	bool is = strangers_is(s, str_of(known ? known : id));
	tx_end_read(reader);
	store_reader_free(reader);
	return is;
}

int main(void)
{
	char dir[] = "/tmp/test_strangers_XXXXXX", command[64];
	struct str names;
	log_setup(LOG_ERROR, false);
	json_setup();
	clock_make_virtual();
	if (!mkdtemp(dir))
		return 1;
	struct store_options so = {.data_dir = dir, .node = "unit"};
	if (store_open(&so, &store) < 0)
		return 1;
	a = arena_new();
	int64_t begun = started = clock_now_ms();
	/* Without a word of any service: nothing can be known. */
	CHECK(is_stranger(begun, NULL));
	note();
	clock_advance_ms(600000);
	note();
	CHECK(!is_stranger(begun, NULL) && !is_stranger(begun + 300000, NULL) && is_stranger(begun - 5000, NULL));
	/* Another service ran on a newer store meanwhile; this one is started on the older copy. */
	clock_advance_ms(3600000);
	started = clock_now_ms();
	note();
	CHECK(is_stranger(begun + 1800000, NULL) && !is_stranger(begun + 300000, NULL));
	/* A second that is not over: more may be made in it, on the store that this one is a copy of. */
	CHECK(is_stranger(started, NULL) && is_stranger(begun + 600000, NULL) && !is_stranger(begun + 599000, NULL));
	CHECK(!is_stranger(0, "67000000c3d4e5f601234567") && is_stranger(started + 60000, NULL));
	/* One that shares the store was started before, and goes on with the last period. */
	int64_t last = started;
	started = begun;
	clock_advance_ms(60000);
	note();
	CHECK(!is_stranger(last, NULL) && !is_stranger(last + 59000, NULL));
	/* More restarts than are kept: bounded, the oldest still count, and what was a stranger before them still is one. */
	for (int i = 0; i < 200; i++) {
		clock_advance_ms(10000);
		started = clock_now_ms();
		note();
	}
	CHECK(!is_stranger(begun, NULL) && !is_stranger(last + 59000, NULL));
	CHECK(is_stranger(begun + 1800000, NULL) && is_stranger(begun - 5000, NULL));
	struct tx *reader = store_reader(store);
	struct strangers *s = NULL;
	struct str kept;
	tx_begin_read(reader);
	CHECK(tx_meta_get(reader, a, BACKUP_PERIODS, &kept) == 0 && kept.n < 8192);
	CHECK(strangers_new(reader, a, &s) == 0);
	tx_end_read(reader);
	store_reader_free(reader);
	for (int i = 0; i < 12; i++)
		strangers_tell(s, STR("c/s"));
	CHECK(strangers_told(s, &names) == 12 && strstr(arena_z(a, names), "c/s, c/s") &&
	      str_ends(names, STR("and 2 more")));
	arena_free(a);
	store_close(store);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command) != 0 || CHECK_DONE();
}
