/* The service dies in the middle of a converge; the next one goes on. */
#include "harness.h"

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
	CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	programs_make(NULL);
}

void part_crash(void)
{
	crash_after_start();
	for (unsigned i = 0; i < rounds() * 3; i++) {
		unsigned nodes = i % 2 ? 5 : 3;
		struct wish w = wish_make(ID3, nodes, 0);
		service_crash(&w, 50000 + 110000 * (i % 7));
		CHECK(converge(&w, &access_all) == 0);
		CHECK(wait_all_running(ID3, nodes, 10000));
		if (i % 2 == 1)
			CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
	}
	CHECK(ops->destroy(engine, ID3, NULL) == 0 && servers_running() == 0);
}
