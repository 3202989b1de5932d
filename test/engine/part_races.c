/* A cluster is removed while it is made, by two at once, and grows while its primary dies. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>

static void *converge_thread(void *arg)
{
	(void)!converge(arg, &access_writer);
	return NULL;
}

static void *destroy_thread(void *arg)
{
	*(int *)arg = ops->core->destroy(engine, ID3, NULL);
	return NULL;
}

void part_races(void)
{
	pthread_t threads[3];
	for (unsigned i = 0; i < rounds() * 2; i++) {
		struct wish w = wish_make(ID3, 5, 0);
		pthread_create(&threads[0], NULL, converge_thread, &w);
		usleep(20000 + 120000 * (i % 4));
		int results[2] = {-1, -1};
		pthread_create(&threads[1], NULL, destroy_thread, &results[0]);
		pthread_create(&threads[2], NULL, destroy_thread, &results[1]);
		for (int k = 0; k < 3; k++)
			pthread_join(threads[k], NULL);
		CHECK(results[0] == 0 && results[1] == 0);
		CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && !observe(ID3).exists && servers_running() == 0);
	}
	for (unsigned i = 0; i < rounds(); i++) {
		struct wish w = wish_make(ID3, 1, 0), more = wish_make(ID3, 3, 0);
		CHECK(converge(&w, &access_all) == 0);
		struct cluster_status s = observe(ID3);
		CHECK(as(primary_of(&s), "writer", "postgres",
		         "create table t as select generate_series(1, 300000) a"));
		pid_t pid = pid_of(ID3, w.nodes[0].name);
		pthread_create(&threads[0], NULL, converge_thread, &more);
		usleep(100000 + 60000 * (i % 5));
		kill(pid, SIGKILL);
		pthread_join(threads[0], NULL);
		int r = -1;
		for (int k = 0; k < 5 && r < 0; k++) /* as the job would */
			r = converge(&more, &access_all);
		CHECK(r == 0 && wait_all_running(ID3, 3, 20000));
		s = observe(ID3);
		for (size_t k = 0; k < s.node_count; k++) {
			PGconn *conn = client(&s.nodes[k], "boss", PASSWORD, "postgres");
			CHECK(number(conn, "select count(*) from t") == 300000);
			PQfinish(conn);
		}
		CHECK(ops->core->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
}
