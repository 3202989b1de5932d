/* Lifecycles: calls, time, jobs and faults move documents as the table says and not otherwise; hooks and events come
 * with the move; a job that was overtaken does nothing; and one that an earlier version left is worked on. */
#include "check.h"

#include "api/kit/lifecycle.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ORG "5f0000000000000000000001"
#define GROUP "5f0000000000000000000002"
#define CLUSTER "5f0000000000000000000003"

static char dir[64];
static struct arena *a;
static struct store *store;
static struct jobs *jobs;

/* The table: a link that is accepted by the other side, or not. */

static atomic_int opened;
static const char *_Atomic fault; /* that the hook meets */

static int link_opened(struct tx *tx, struct arena *arena, struct lifecycle_step *step)
{
	opened++;
	step->fault = fault;
	json_put_z(step->body, "before", step->from ? step->from : "nothing");
	return 0;
}

static int never(struct tx *tx, struct arena *arena, struct lifecycle_step *step)
{
	return -EPERM;
}

enum { ASKED, WAITING, OPEN, REJECTED, CLOSING, SEALED };
static const struct lifecycle_state link_states[] = {
        {.name = "ASKED", .value = "asked", .dwell_ms = 1000},
        {.name = "WAITING", .value = "waiting", .dwell_ms = 60000},
        {.name = "OPEN", .value = "open", .reached = link_opened},
        {.name = "REJECTED", .value = "rejected"},
        {.name = "CLOSING", .value = "closing", .dwell_ms = 5000},
        {.name = "SEALED", .value = "sealed", .reached = never},
};
static const struct lifecycle_transition link_transitions[] = {
        {.from = LIFECYCLE_NONE, .to = ASKED, .by = BY_CALL, .word = "CREATE"},
        {.from = ASKED, .to = WAITING, .by = BY_TIME},
        {.from = WAITING, .to = OPEN, .by = BY_TIME, .event = "PEER_CREATED"},
        {.from = WAITING, .to = OPEN, .by = BY_CALL, .word = "ACCEPT", .event = "PEER_UPDATED"},
        {.from = WAITING, .to = REJECTED, .by = BY_FAULT, .word = "REJECT", .event = "PEER_DELETED"},
        {.from = OPEN, .to = ASKED, .by = BY_CALL, .word = "AGAIN"},
        {.from = ASKED, .to = ASKED, .by = BY_CALL, .word = "AGAIN"},
        {.from = OPEN, .to = SEALED, .by = BY_CALL, .word = "SEAL"},
        {.from = OPEN, .to = CLOSING, .by = BY_CALL, .word = "CLOSE"},
        {.from = REJECTED, .to = LIFECYCLE_NONE, .by = BY_CALL, .word = "CLOSE"},
        {.from = CLOSING, .to = LIFECYCLE_NONE, .by = BY_TIME},
};
static const struct lifecycle link_table = {.name = "link",
                                            .kind = "link",
                                            .when_field = "sort",
                                            .when_value = "plain",
                                            .field = "state",
                                            .event_field = "peerId",
                                            .states = link_states,
                                            .state_count = 6,
                                            .transitions = link_transitions,
                                            .transition_count = 11};

static const struct lifecycle_state box_states[] = {{.name = "EMPTY", .value = "false", .dwell_ms = 1000},
                                                    {.name = "FULL", .value = "true"}};
static const struct lifecycle_transition box_transitions[] = {
        {.from = LIFECYCLE_NONE, .to = 0, .by = BY_CALL, .word = "CREATE"},
        {.from = 0, .to = 1, .by = BY_JOB, .word = "FILL"},
};
static const struct lifecycle box_table = {.name = "box",
                                           .kind = "box",
                                           .field = "full",
                                           .boolean = true,
                                           .states = box_states,
                                           .state_count = 2,
                                           .transitions = box_transitions,
                                           .transition_count = 2};

static const struct lifecycle *const tables[] = {&box_table, &link_table};

/* One write. */

enum act { CREATE, MOVE, ASK, CHANGE, OLD_JOB };
struct ask {
	enum act act;
	const char *kind, *parent, *word;
	struct str id;
};

static int create(struct tx *tx, const struct ask *k)
{
	struct doc d = {.kind = str_of(k->kind), .id = k->id, .parent = str_of(k->parent), .rev = 1};
	json_t *body = doc_json(a, STR("{\"sort\":\"plain\",\"state\":\"open\"}"));
	int r = lifecycle_create(tx, a, &d, body);
	d.body = json_text(a, body);
	return r < 0 ? r : tx_insert(tx, &d);
}

/* As an update does that writes more than the state. */
static int change(struct tx *tx, struct doc *d, const char *word)
{
	json_t *body = doc_json(a, d->body);
	json_put_z(body, "note", "changed");
	int r = lifecycle_change(tx, a, d, body, word);
	d->body = json_text(a, body);
	return r < 0 ? r : tx_update(tx, d);
}

static int ask_run(struct tx *tx, void *ctx)
{
	const struct ask *k = ctx;
	struct doc d;
	if (k->act == CREATE)
		return create(tx, k);
	struct job old = {.kind = STR("network"), .subject = k->id, .due_ms = clock_now_ms() + 10};
	int r = k->act == OLD_JOB ? tx_jobs_cancel(tx, LIFECYCLE_JOB, k->id) : 0;
	if (k->act == OLD_JOB)
		return r < 0 ? r : tx_job_add(tx, &old);
	r = tx_get(tx, a, k->kind, k->id, &d);
	if (r < 0)
		return r;
	if (k->act == ASK)
		return lifecycle_ask(tx, a, &d);
	return k->act == MOVE ? lifecycle_move(tx, a, &d, k->word) : change(tx, &d, k->word);
}

static struct str make(const char *kind, const char *parent)
{
	struct id id = id_new();
	struct ask k = {.act = CREATE, .kind = kind, .parent = parent, .id = arena_dup(a, id_str(&id))};
	CHECK(store_write_wait(store, ask_run, &k) == 0);
	return k.id;
}

static int act(enum act what, const char *kind, struct str id, const char *word)
{
	struct ask k = {.act = what, .kind = kind, .id = id, .word = word};
	return store_write_wait(store, ask_run, &k);
}

/* What is there. */

/* The name of the state; "gone", or "none" where the table has none. */
static const char *state(const char *kind, struct str id)
{
	struct tx *tx = store_reader(store);
	struct doc d;
	int r = tx_get(tx, a, kind, id, &d);
	const char *name = r == 0 ? lifecycle_state(d.kind, doc_json(a, d.body)) : "gone";
	store_reader_free(tx);
	return name ? name : "none";
}

static bool has_text(const char *kind, struct str id, const char *text)
{
	struct tx *tx = store_reader(store);
	struct doc d;
	bool found = tx_get(tx, a, kind, id, &d) == 0 && memmem(d.body.p, d.body.n, text, strlen(text));
	store_reader_free(tx);
	return found;
}

static int64_t jobs_count(void)
{
	struct tx *tx = store_reader(store);
	int64_t n = -1;
	CHECK(tx_job_count(tx, &n) == 0);
	store_reader_free(tx);
	return n;
}

static bool has_id(struct str text, struct str id)
{
	return memmem(text.p, text.n, id.p, id.n);
}

/* The newest event of the project is of that type, about that id. */
static bool told(const char *type, struct str id)
{
	struct tx *tx = store_reader(store);
	struct event *events;
	size_t count = 0;
	struct event_filter filter = {.scope = STR(GROUP)};
	bool found = tx_event_list(tx, a, &filter, 0, 1, &events, &count) == 0 && count == 1 &&
	             str_is(events[0].type, type) && (has_id(events[0].body, id) || has_id(events[0].raw, id));
	store_reader_free(tx);
	return found;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Time passes; what is due is done. */
static void pass(int64_t ms)
{
	clock_advance_ms(ms);
	jobs_wake(jobs);
}

static bool comes(const char *kind, struct str id, const char *wanted)
{
	for (int i = 0; i < 5000 && strcmp(state(kind, id), wanted) != 0; i++)
		nap();
	return strcmp(state(kind, id), wanted) == 0;
}

/* Long enough for a job that should not run. */
static bool stays(const char *kind, struct str id, const char *wanted)
{
	for (int i = 0; i < 25; i++)
		nap();
	return strcmp(state(kind, id), wanted) == 0;
}

static void test_time(void)
{
	struct str id = make("link", GROUP);
	CHECK(strcmp(state("link", id), "ASKED") == 0); /* not what its body said */
	pass(999);
	CHECK(stays("link", id, "ASKED"));
	pass(1);
	CHECK(comes("link", id, "WAITING"));
	pass(59999);
	CHECK(stays("link", id, "WAITING") && opened == 0);
	pass(1);
	CHECK(comes("link", id, "OPEN") && opened == 1 && told("PEER_CREATED", id));
	CHECK(has_text("link", id, "\"before\":\"WAITING\"") && jobs_count() == 0);
	CHECK(act(MOVE, "link", id, "CLOSE") == 0);
	pass(5000);
	CHECK(comes("link", id, "gone") && jobs_count() == 0);
}

static void test_calls(void)
{
	struct str id = make("link", GROUP);
	CHECK(act(MOVE, "link", id, "ACCEPT") == -EINVAL && act(MOVE, "link", id, "CLOSE") == -EINVAL);
	CHECK(act(MOVE, "link", id, "DANCE") == -EINVAL && strcmp(state("link", id), "ASKED") == 0);
	pass(1000);
	CHECK(comes("link", id, "WAITING"));
	CHECK(act(MOVE, "link", id, "ACCEPT") == 0 && strcmp(state("link", id), "OPEN") == 0);
	CHECK(told("PEER_UPDATED", id) && jobs_count() == 0); /* nothing waits for the state that was left */
	CHECK(act(CHANGE, "link", id, "AGAIN") == 0 && has_text("link", id, "\"note\":\"changed\""));
	CHECK(strcmp(state("link", id), "ASKED") == 0 && jobs_count() == 1);
	/* A state that begins anew lasts its whole time. */
	pass(999);
	CHECK(act(CHANGE, "link", id, "AGAIN") == 0);
	pass(999);
	CHECK(stays("link", id, "ASKED") && jobs_count() == 1);
	pass(1);
	CHECK(comes("link", id, "WAITING"));
	/* A hook that fails undoes the move. */
	CHECK(act(MOVE, "link", id, "ACCEPT") == 0 && act(MOVE, "link", id, "SEAL") == -EPERM);
	CHECK(strcmp(state("link", id), "OPEN") == 0);
}

static void test_faults(void)
{
	struct str id = make("link", CLUSTER); /* below a cluster: its project has the event */
	pass(1000);
	CHECK(comes("link", id, "WAITING"));
	CHECK(act(MOVE, "link", id, "REJECT") == 0 && strcmp(state("link", id), "REJECTED") == 0);
	CHECK(told("PEER_DELETED", id) && jobs_count() == 0);
	CHECK(act(MOVE, "link", id, "CLOSE") == 0 && strcmp(state("link", id), "gone") == 0);
	/* One that the hook meets, on the job's way. */
	id = make("link", GROUP);
	pass(1000);
	CHECK(comes("link", id, "WAITING"));
	fault = "REJECT";
	pass(60000);
	CHECK(comes("link", id, "REJECTED") && told("PEER_DELETED", id));
	/* And one that the table does not have. */
	id = make("link", GROUP);
	pass(1000);
	CHECK(comes("link", id, "WAITING"));
	fault = "ACCEPT";
	CHECK(act(MOVE, "link", id, "ACCEPT") == -EIO && strcmp(state("link", id), "WAITING") == 0);
	fault = NULL;
	CHECK(act(MOVE, "link", id, "ACCEPT") == 0);
}

static void test_jobs(void)
{
	struct str id = make("box", GROUP);
	CHECK(strcmp(state("box", id), "EMPTY") == 0 && jobs_count() == 0);
	pass(5000);
	CHECK(stays("box", id, "EMPTY")); /* nobody has asked */
	CHECK(act(ASK, "box", id, NULL) == 0 && act(ASK, "box", id, NULL) == 0 && jobs_count() == 1);
	pass(1000);
	CHECK(comes("box", id, "FULL") && has_text("box", id, "\"full\":true"));
	CHECK(act(ASK, "box", id, NULL) == 0 && jobs_count() == 0); /* it is there */
	/* A job of the family does it by the word. */
	id = make("box", GROUP);
	CHECK(act(MOVE, "box", id, "FILL") == 0 && strcmp(state("box", id), "FULL") == 0);
}

static bool jobs_end(void)
{
	for (int i = 0; i < 5000 && jobs_count() > 0; i++)
		nap();
	return jobs_count() == 0;
}

static void test_old_jobs(void)
{
	struct str box = make("box", GROUP), link = make("link", GROUP), changed = make("link", GROUP);
	CHECK(act(OLD_JOB, NULL, box, NULL) == 0 && act(OLD_JOB, NULL, link, NULL) == 0);
	CHECK(act(OLD_JOB, NULL, changed, NULL) == 0 && act(OLD_JOB, NULL, STR(ORG), NULL) == 0 && jobs_count() == 4);
	/* From here on the state has a job of this version, whose time is not over when the old one's is. */
	CHECK(act(MOVE, "link", changed, "AGAIN") == 0 && jobs_count() == 5);
	pass(10);
	CHECK(comes("box", box, "FULL") && comes("link", link, "WAITING") && stays("link", changed, "ASKED"));
	pass(990);
	CHECK(comes("link", changed, "WAITING"));
	CHECK(act(MOVE, "link", link, "ACCEPT") == 0 && act(MOVE, "link", changed, "ACCEPT") == 0 && jobs_end());
}

static atomic_bool hold;
static atomic_int held;

static int step(struct job_run *r)
{
	held += hold;
	while (hold)
		nap();
	return JOB_DONE;
}

/* The state is left, and begun anew, while the job for it is at work. */
static void test_overtaken(void)
{
	struct str id = make("link", GROUP);
	hold = true;
	pass(1000);
	for (int i = 0; i < 5000 && !held; i++)
		nap();
	CHECK(held == 1 && act(MOVE, "link", id, "AGAIN") == 0 && jobs_count() == 2);
	hold = false;
	CHECK(stays("link", id, "ASKED") && jobs_count() == 1);
	pass(1000);
	CHECK(comes("link", id, "WAITING"));
}

static void test_tables(void)
{
	json_t *plain = doc_json(a, STR("{\"sort\":\"plain\",\"state\":\"waiting\"}")),
	       *other = doc_json(a, STR("{\"sort\":\"other\",\"state\":\"waiting\"}")),
	       *odd = doc_json(a, STR("{\"sort\":\"plain\",\"state\":\"lost\"}"));
	CHECK(lifecycle_of(STR("link"), plain) == &link_table && !lifecycle_of(STR("link"), other));
	CHECK(!lifecycle_of(STR("chain"), plain) && lifecycle_of(STR("box"), plain) == &box_table);
	CHECK(lifecycle_allows(STR("link"), plain, "ACCEPT") && !lifecycle_allows(STR("link"), plain, "CLOSE"));
	CHECK(!lifecycle_allows(STR("link"), other, "ACCEPT") && !lifecycle_allows(STR("link"), odd, "ACCEPT"));
	CHECK(!lifecycle_state(STR("link"), odd) && !lifecycle_allows(STR("link"), odd, "CREATE"));
}

static void dir_clear(void)
{
	const char *const names[] = {"steward.db", "steward.db-wal", "steward.db-shm"};
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

static int parents_run(struct tx *tx, void *ctx)
{
	struct doc project = {.kind = STR("project"), .id = STR(GROUP), .parent = STR(ORG), .body = STR("{}")},
	           cluster = {.kind = STR("cluster"),
	                      .id = STR(CLUSTER),
	                      .parent = STR(GROUP),
	                      .name = STR("c"),
	                      .body = STR("{}")};
	int r = tx_insert(tx, &project);
	return r < 0 ? r : tx_insert(tx, &cluster);
}

static const struct job_kind kinds[] = {{.name = LIFECYCLE_JOB, .step = step, .save = lifecycle_save},
                                        {.name = "network", .save = lifecycle_save}};

int main(void)
{
	struct jobs_options o = {.kinds = kinds, .kind_count = 2};
	log_setup(LOG_ERROR, false);
	json_setup();
	clock_make_virtual();
	snprintf(dir, sizeof dir, "/tmp/test_lifecycle_XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	struct store_options so = {.data_dir = dir, .node = "unit"};
	if (store_open(&so, &store) < 0 || store_write_wait(store, parents_run, NULL) < 0)
		return 1;
	a = arena_new();
	lifecycle_use(tables, 2);
	o.store = store;
	CHECK(jobs_start(&o, &jobs) == 0);
	test_tables();
	test_time();
	test_calls();
	test_faults();
	test_jobs();
	test_old_jobs();
	test_overtaken();
	jobs_stop(jobs);
	store_close(store);
	arena_free(a);
	dir_clear();
	return CHECK_DONE();
}
