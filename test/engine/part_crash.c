/* The service dies in the middle of a converge; the next one goes on. */
#include "harness.h"

#include <signal.h>

/* A server that was started has not said yet that it is there, and must not come up beside the next one's. */
static void crash_after_start(void)
{
	programs_make(
	        "mkdir -p 15/bin && ln -s /usr/lib/postgresql/15/lib 15 && ln -s /usr/lib/postgresql/15/bin/* 15/bin "
	        "&& rm 15/bin/postgres && printf '#!/bin/bash\n[ \"$1\" != -D ] || sleep 1\nexec -a \"$0\" "
	        "/usr/lib/postgresql/15/bin/postgres \"$@\"\n' >15/bin/postgres && chmod 755 15/bin/postgres");
	struct wish alone = wish_make(ID3, 1, 0), w = wish_make(ID3, 3, 0);
	alone.c.paused = true;
	CHECK(converge(&alone, &access_all) == 0);
	service_crash(&w, 600000);
	CHECK(converge(&w, &access_all) == 0);
	CHECK(wait_all_running(ID3, 3, 10000));
	CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	programs_make(NULL);
}

static bool streams(const struct node_status *from, long count)
{
	bool good = false;
	for (int i = 0; i < 150 && !good; i++) {
		PGconn *conn = client(from, "boss", PASSWORD, "postgres");
		good = number(conn, "select count(*) from pg_stat_replication where state = 'streaming'") == count;
		PQfinish(conn);
		usleep(100000);
	}
	return good;
}

/* The primary has changed, a standby's file says so, and the standby was not told to read it: it still follows the old
 * one, which follows the new one. The next service tells it, and need not make it anew. */
static void crash_before_reload(void)
{
	struct wish w = wish_make(ID3, 3, 0);
	CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 10000));
	struct cluster_status s = observe(ID3);
	const struct node_status *p = primary_of(&s), *standby[2] = {NULL, NULL};
	for (size_t i = 0, k = 0; i < s.node_count && k < 2; i++)
		if (!s.nodes[i].primary)
			standby[k++] = &s.nodes[i];
	ops->core->stop(engine);
	char command[600];
	pid_t pid = pid_of(ID3, standby[1]->name);
	snprintf(command, sizeof command,
	         "cd %s/engine/" ID3 " && place() { grep -o 'run/[0-9]*' $1/conf/postgresql.conf | head -1; } && "
	         "f=%s/conf/postgresql.conf && cp -p $f $f.new && "
	         "sed -i \"/^primary_conninfo/s#$(place %s)#$(place %s)#\" $f && ! cmp -s $f $f.new",
	         dir, standby[1]->name, p->name, standby[0]->name);
	CHECK(system(command) == 0);
	kill(pid, SIGHUP);
	CHECK(streams(standby[0], 1) && streams(p, 1));
	snprintf(command, sizeof command, "cd %s/engine/" ID3 "/%s/conf && mv postgresql.conf.new postgresql.conf", dir,
	         standby[1]->name);
	CHECK(system(command) == 0);
	engine_begin();
	CHECK(streams(p, 2) && pid_of(ID3, standby[1]->name) == pid);
	CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}

/* A node's removal was cut short: it is ended, or the node is made anew where it is wanted again. */
static void crash_in_removal(void)
{
	for (int again = 0; again < 2; again++) {
		struct wish w = wish_make(ID3, 3, 0), fewer = wish_make(ID3, 2, 0);
		CHECK(converge(&w, &access_all) == 0 && wait_all_running(ID3, 3, 10000));
		ops->core->stop(engine);
		kill(pid_of(ID3, w.nodes[2].name), SIGKILL);
		char command[400];
		snprintf(command, sizeof command,
		         "cd %s/engine/" ID3
		         "/%s && sed -i '/\"name\": \"%s\"/,/}/s/\"removing\": false/\"removing\": true/' "
		         "../state.json && grep -q '\"removing\": true' ../state.json && mv data data.removed && rm -r "
		         "conf",
		         dir, w.nodes[2].name, w.nodes[2].name);
		CHECK(system(command) == 0);
		engine_begin();
		CHECK(converge(again ? &w : &fewer, &access_all) == 0 && wait_all_running(ID3, again ? 3 : 2, 10000));
		CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
}

void part_crash(void)
{
	crash_in_removal();
	crash_after_start();
	crash_before_reload();
	for (unsigned i = 0; i < rounds() * 3; i++) {
		unsigned nodes = i % 2 ? 5 : 3;
		struct wish w = wish_make(ID3, nodes, 0);
		service_crash(&w, 50000 + 110000 * (i % 7));
		CHECK(converge(&w, &access_all) == 0);
		CHECK(wait_all_running(ID3, nodes, 10000));
		if (i % 2 == 1)
			CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
	CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}
