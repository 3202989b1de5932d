/* Data that should be there and is not: nothing is made anew that was made before. What the service knows is given
 * along as its store would have it; without it, what the engine noted itself counts. */
#include "harness.h"

#include <signal.h>

#define ID6 "65f0000000000000000000a6"

/* In the cluster's directory, with the engine stopped and all servers killed. */
static void lose(const char *id, const char *commands)
{
	char command[600];
	ops->core->stop(engine);
	snprintf(command, sizeof command,
	         "cd %s/engine/%s && for f in */data/postmaster.pid; do [ ! -f $f ] || kill -9 $(head -1 $f); done; "
	         "sleep 0.1; %s",
	         dir, id, commands);
	CHECK(system(command) == 0);
	engine_begin();
}

static bool exists(const char *id)
{
	char path[160];
	snprintf(path, sizeof path, "%s/engine/%s", dir, id);
	return access(path, F_OK) == 0;
}

static struct engine_made mark_of(const char *set, const char *identity)
{
	struct engine_made m = {.set = ""};
	snprintf(m.set, sizeof m.set, "%s", set);
	snprintf(m.identity, sizeof m.identity, "%s", identity);
	return m;
}

static void whole_cluster(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID6);
	CHECK(strcmp(s.nodes[0].set, "0") == 0 && strlen(s.nodes[0].identity) > 10);
	struct engine_made mark = mark_of("0", s.nodes[0].identity), other = mark_of("0", "12345"),
	                   unknown = mark_of("0", "");
	w.c.made_count = 1;
	w.c.made = &other;
	CHECK(converge(&w, &access_writer) == -ENOMEDIUM && as(&s.nodes[0], "writer", "postgres", "select 1"));
	w.c.made = &mark;
	CHECK(converge(&w, &access_writer) == 0);
	lose(ID6, "cd .. && rm -rf " ID6);
	const struct engine_made *const marks[] = {&mark, &unknown};
	for (size_t i = 0; i < 2; i++) {
		w.c.made = marks[i];
		CHECK(converge(&w, &access_writer) == -ENOMEDIUM && !exists(ID6) && servers_running() == 0);
		w.c.paused = true;
		CHECK(converge(&w, &access_writer) == -ENOMEDIUM && !exists(ID6));
		w.c.paused = false;
	}
	w.c.give_up = true;
	CHECK(converge(&w, &access_writer) == 0);
	w.c.give_up = false;
	s = observe(ID6);
	CHECK(strcmp(s.nodes[0].identity, mark.identity) != 0 && as(&s.nodes[0], "writer", "postgres", "select 1"));
	w.c.made = &mark; /* an older store's */
	CHECK(converge(&w, &access_writer) == -ENOMEDIUM);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && servers_running() == 0 && !exists(ID6));
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0);
}

/* By the engine's own word: the service has noted nothing yet. */
static void parts(void)
{
	struct wish w = wish_make(ID6, 3, 0);
	char command[200];
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 3, 10000));
	struct cluster_status s = observe(ID6);
	const struct node_status *p = primary_of(&s);
	CHECK(p && as(p, "writer", "postgres", "create table t(a int); insert into t values (1)"));
	/* The primary's, in a cluster that is paused: it stays so, and a standby leads when it is resumed. */
	snprintf(command, sizeof command, "rm -rf %s/data", p ? p->name : "none");
	w.c.paused = true;
	CHECK(converge(&w, &access_all) == 0);
	lose(ID6, command);
	CHECK(converge(&w, &access_all) == 0 && servers_running() == 0);
	w.c.paused = false;
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID6, 3, 20000));
	s = observe(ID6);
	CHECK(primary_of(&s) && as(primary_of(&s), "writer", "postgres", "select 1/a from t"));
	/* All but the log and the configuration. */
	lose(ID6, "rm -rf */data && for d in */conf; do mkdir $d/../data; done");
	CHECK(converge(&w, &access_all) == -ENOMEDIUM && servers_running() == 0);
	w.c.version = 99;
	CHECK(converge(&w, &access_all) == -ENOENT); /* what is wrong with the wish comes first */
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && !exists(ID6));
}

/* A shard that was removed as wanted was not lost, though the service may not have come to note it. */
static void removed(void)
{
	struct wish one = wish_make(ID6, 2, 0), two = wish_make(ID6, 3, 0);
	struct wish *both[] = {&one, &two};
	for (size_t i = 0; i < 2; i++) {
		both[i]->c.quorum = false;
		both[i]->c.shards = (unsigned)i + 1;
		for (unsigned k = 0; k < i + 2; k++) {
			struct engine_node *n = &both[i]->nodes[k];
			n->kind = k ? NODE_ELECTABLE : NODE_ROUTER;
			n->shard = k ? k - 1 : 0;
			n->priority = k ? 7 : 0;
			snprintf(n->name, sizeof n->name, k ? "%s-shard-%02u-00" : "%s-router-%02u", both[i]->c.label,
			         k ? k - 1 : 0);
		}
	}
	CHECK(converge(&two, &access_writer) == 0);
	struct cluster_status s = observe(ID6);
	struct engine_made marks[3] = {{.set = ""}};
	for (size_t i = 0; i < s.node_count && i < 3; i++)
		marks[i] = mark_of(s.nodes[i].set, s.nodes[i].identity);
	CHECK(s.node_count == 3);
	one.c.made = two.c.made = marks;
	one.c.made_count = two.c.made_count = 3;
	CHECK(converge(&two, &access_writer) == 0 && converge(&one, &access_writer) == 0);
	engine_restart();
	CHECK(converge(&two, &access_writer) == 0);
	lose(ID6, "rm -rf *-shard-01-00/data");
	CHECK(converge(&two, &access_writer) == -ENOMEDIUM);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0 && servers_running() == 0);
}

/* To PostgreSQL an upgraded database is another one; the service hears of it only afterwards. */
static void upgraded(void)
{
	struct wish w = wish_make(ID6, 1, 0);
	CHECK(converge(&w, &access_writer) == 0);
	struct cluster_status s = observe(ID6);
	struct engine_made mark = mark_of("0", s.nodes[0].identity);
	programs_make("ln -s /usr/lib/postgresql/15 15 && ln -s /usr/lib/postgresql/15 16");
	w.c.made = &mark;
	w.c.made_count = 1;
	w.c.version = 16;
	CHECK(converge(&w, &access_writer) == 0);
	s = observe(ID6);
	CHECK(strcmp(s.nodes[0].identity, mark.identity) != 0);
	engine_restart();
	CHECK(converge(&w, &access_writer) == 0);
	CHECK(ops->core->destroy(engine, ID6, NULL) == 0);
	programs_make(NULL);
}

void part_missing(void)
{
	whole_cluster();
	parts();
	removed();
	upgraded();
}
