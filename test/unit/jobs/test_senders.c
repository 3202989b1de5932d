/* Senders: whose share of the places is how large, how many pieces leave in a row, and that the end waits for all. */
#include "check.h"

#include "base/clock.h"
#include "jobs/senders.h"

#include <stdatomic.h>
#include <time.h>

static struct senders *senders;
static atomic_uint begun, done, pieces, looks;
static atomic_bool looked, holds;

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static bool send_piece(void *ctx, void *item)
{
	atomic_fetch_add(&pieces, 1);
	while (atomic_load(&holds) && !senders_end(senders))
		nap();
	return !atomic_load(&holds);
}

static void item_done(void *ctx, void *item)
{
	CHECK(item == ctx);
	atomic_fetch_add(&done, 1);
}

static bool start(const char *receiver, const char *tenant, const char *via, bool failing)
{
	const struct sender_for whom = {str_of(receiver), str_of(tenant), str_of(via), failing};
	bool has = senders_have_place(senders, &whom), started = senders_start(senders, &whom, &begun);
	CHECK(has == started);
	atomic_fetch_add(&begun, started);
	return started;
}

/* Each receiver takes until the end: the places fill up. */
static void shares_look(void *ctx, bool news)
{
	static const char *const others[] = {"u0", "u1", "u2", "u3", "u4"};
	atomic_fetch_add(&looks, 1);
	if (atomic_load(&looked))
		return;
	CHECK(start("r1", "t1", "", false) && start("r2", "t1", "", false) && start("r3", "t1", "", false));
	CHECK(!start("r4", "t1", "", false)); /* the tenant's share */
	CHECK(!start("r1", "t2", "", false)); /* a receiver has one */
	CHECK(start("r5", "t2", "v", false) && start("r6", "t3", "v", false));
	CHECK(!start("r7", "t4", "v", false) && start("r7", "t4", "w", false));
	CHECK(start("r8", "t5", "", true) && start("r9", "t6", "", true));
	CHECK(!start("r10", "t7", "", true)); /* those that fail */
	for (size_t i = 0; i < 4; i++)
		CHECK(start(others[i], others[i], "", false));
	CHECK(!start("r11", "t2", "", false)); /* four are left, for tenants that have none */
	CHECK(start("r12", others[4], "", false));
	CHECK(start("", "x1", "", false) && start("", "x2", "", false) && start("", "x3", "", false));
	CHECK(!start("", "x4", "", false)); /* none is left */
	atomic_store(&looked, true);
}

/* One thread does not go on for ever. */
static void row_look(void *ctx, bool news)
{
	if (!atomic_load(&looked))
		CHECK(start("r", "t", "", false));
	atomic_store(&looked, true);
}

static void open_with(void (*due)(void *ctx, bool news))
{
	const struct senders_options o = {.name = "test",
	                                  .ctx = &begun,
	                                  .due = due,
	                                  .send = send_piece,
	                                  .done = item_done,
	                                  .look_us = 3600 * INT64_C(1000000),
	                                  .of_tenant = 3,
	                                  .of_via = 2,
	                                  .failing = 2,
	                                  .spare = 4};
	atomic_store(&looked, false);
	atomic_store(&begun, 0);
	atomic_store(&done, 0);
	atomic_store(&pieces, 0);
	CHECK(senders_open(&o, &senders) == 0);
	while (!atomic_load(&looked))
		nap();
}

static void shares(void)
{
	atomic_store(&holds, true);
	open_with(shares_look);
	unsigned before = atomic_load(&looks);
	senders_wake(senders);
	while (atomic_load(&looks) == before)
		nap();
	CHECK(atomic_load(&done) == 0);
	senders_close(senders);
	CHECK(atomic_load(&begun) == 16 && atomic_load(&done) == 16);
}

static void in_a_row(void)
{
	atomic_store(&holds, false);
	open_with(row_look);
	while (!atomic_load(&done))
		nap();
	CHECK(atomic_load(&pieces) == 64);
	senders_close(senders);
	CHECK(atomic_load(&begun) == 1 && atomic_load(&done) == 1);
	senders_close(NULL);
	senders_wake(NULL);
}

int main(void)
{
	int64_t now = clock_now_ms();
	CHECK(due_later(now + 60000) && !due_later(now - 1));
	CHECK(!due_later(now + 3 * 3600000)); /* of a clock that was wrong */
	shares();
	in_a_row();
	return CHECK_DONE();
}
