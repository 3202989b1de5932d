/* Listeners of live events: whose share of them each takes. What they are shown is tested with the real server
 * (test/api/test_live_events.py). */
#include "gate_fixture.h"

#include "trail/live.h"

#include <errno.h>

static bool sees(void *ctx, const struct live_event *e)
{
	return true;
}

static const char *check(void *ctx, struct tx *tx, struct arena *a)
{
	return NULL;
}

static void done(void *ctx)
{
}

static int listen_as(struct live *l, struct request *r, unsigned caller, const char *org)
{
	static const struct live_ear ear = {.sees = sees, .check = check, .free = done};
	char id[ID_LEN + 1];
	snprintf(id, sizeof id, "%024u", caller);
	struct tx *tx = fx.loop.reader;
	const struct live_join join = {.tx = tx,
	                               .generation = tx_identity_generation(tx),
	                               .caller = str_of(id),
	                               .org = str_of(org),
	                               .until_ms = INT64_MAX};
	return live_listen(l, r, &join, &ear);
}

static void leave(struct request *r)
{
	r->response.stream.close(r->response.stream.ctx);
}

/* However many callers an organization has, others still get in. */
static void test_share_of_an_organization(struct live *l)
{
	struct request *all = must_calloc(LIVE_ORG_MAX + 2, sizeof *all), *more = &all[LIVE_ORG_MAX];
	struct live_stats stats;
	unsigned bad = 0;
	for (unsigned i = 0; i < LIVE_ORG_MAX; i++)
		bad += listen_as(l, &all[i], i / (LIVE_CALLER_MAX / 2), ORG) != 0;
	CHECK(bad == 0);
	CHECK(listen_as(l, more, 1000, ORG) == -EDQUOT);
	CHECK(listen_as(l, more, 1000, "") == 0);
	CHECK(listen_as(l, more + 1, 1000, OTHER_ORG) == 0);
	leave(more);
	leave(more + 1);
	leave(&all[0]);
	CHECK(listen_as(l, &all[0], 1000, ORG) == 0);
	live_stats(l, &stats);
	CHECK(stats.listeners == LIVE_ORG_MAX && stats.refused == 1);
	for (unsigned i = 0; i < LIVE_ORG_MAX; i++)
		leave(&all[i]);
	free(all);
}

static void test_share_of_a_caller(struct live *l)
{
	struct request *all = must_calloc(LIVE_CALLER_MAX + 1, sizeof *all);
	unsigned bad = 0;
	for (unsigned i = 0; i < LIVE_CALLER_MAX; i++)
		bad += listen_as(l, &all[i], 7, ORG) != 0;
	CHECK(bad == 0 && listen_as(l, &all[LIVE_CALLER_MAX], 7, ORG) == -EMFILE);
	for (unsigned i = 0; i < LIVE_CALLER_MAX; i++)
		leave(&all[i]);
	free(all);
}

/* Five organizations took all places. */
static void test_shares(void)
{
	CHECK(live_admits(0, 0, 0) == 0);
	CHECK(live_admits(600, LIVE_CALLER_MAX, 600) == -EMFILE && live_admits(2000, 0, LIVE_ORG_MAX) == -EDQUOT);
	CHECK(live_admits(LIVE_MAX - LIVE_RESERVE - 1, LIVE_FEW, 500) == 0);
	CHECK(live_admits(LIVE_MAX - LIVE_RESERVE, LIVE_FEW, LIVE_FEW) == -EBUSY);
	CHECK(live_admits(LIVE_MAX - LIVE_RESERVE, 0, LIVE_FEW) == -EBUSY);
	CHECK(live_admits(LIVE_MAX - LIVE_RESERVE, LIVE_FEW - 1, LIVE_FEW - 1) == 0);
	CHECK(live_admits(LIVE_MAX, 0, 0) == -EBUSY);
}

int main(void)
{
	test_shares();
	struct live *l;
	fixture_setup();
	CHECK(live_open(fx.service.store, &l) == 0);
	live_stop(l); /* its thread would want to send: these requests are nobody's */
	test_share_of_an_organization(l);
	test_share_of_a_caller(l);
	live_free(l);
	fixture_teardown();
	return CHECK_DONE();
}
