/* Where nodes listen: the last free port of a range is found, however seldom a draw would meet it. */
#include "check.h"
#include "engine/postgres/cluster/node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ports that stand in a document only; the free one is bound for a moment. They lie below those that the system gives to
 * connections. */
#define FIRST 28000u
#define COUNT 4000u

#define EACH 10u /* nodes of a cluster */

static int place_with_free(unsigned free_port, unsigned *ret_port)
{
	struct engine e = {.port_first = FIRST, .port_last = FIRST + COUNT - 1};
	struct pg_cluster *clusters = calloc(COUNT / EACH, sizeof *clusters);
	struct pg_node *nodes = calloc(COUNT, sizeof *nodes), n = {.port = 0};
	snprintf(e.address, sizeof e.address, "127.0.0.1");
	pthread_mutex_init(&e.lock, NULL);
	for (unsigned i = 0; i < COUNT; i++) {
		struct pg_cluster *c = &clusters[i / EACH];
		nodes[i].slot = i;
		nodes[i].port = FIRST + i;
		if (i % EACH == 0) {
			pthread_mutex_init(&c->lock, NULL);
			c->engine = &e;
			c->next = e.clusters;
			e.clusters = c;
		}
		if (FIRST + i != free_port)
			c->nodes[c->node_count++] = &nodes[i];
	}
	int r = pg_node_place(clusters, &n);
	*ret_port = n.port;
	for (unsigned i = 0; i < COUNT / EACH; i++)
		pthread_mutex_destroy(&clusters[i].lock);
	pthread_mutex_destroy(&e.lock);
	free(clusters);
	free(nodes);
	return r;
}

static bool is_bindable(unsigned port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
	                               .sin_port = htons((uint16_t)port),
	                               .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool free_now = fd >= 0 && bind(fd, (const struct sockaddr *)&to, sizeof to) == 0;
	if (fd >= 0)
		close(fd);
	return free_now;
}

int main(void)
{
	unsigned port = 0;
	for (unsigned i = 0; i < 4; i++) { /* a thousand draws would have found all of them once in four hundred runs */
		unsigned left = FIRST + i * 999;
		while (!is_bindable(left) && left < FIRST + COUNT - 1) /* another program's, as of other tests */
			left++;
		CHECK(place_with_free(left, &port) == 0);
		CHECK(port == left);
	}
	CHECK(place_with_free(0, &port) == -EADDRINUSE);
	return CHECK_DONE();
}
