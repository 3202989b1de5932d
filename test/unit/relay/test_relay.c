/* Relays between sockets of this process: half closes, many at once, slow peers, strangers, headers that lie, and cuts. */
#include "relay/relay.h"

#include "base/arena.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 20000
#define MANY 300

static struct ip at(const char *text)
{
	struct ip ip = {{0}};
	CHECK(ip_parse(str_of(text), &ip));
	return ip;
}

static struct sockaddr_in address(const char *text, unsigned port)
{
	struct ip ip = at(text);
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	memcpy(&in.sin_addr, ip.b + 12, 4);
	return in;
}

static void patient(int fd)
{
	struct timeval wait = {.tv_sec = PATIENCE_MS / 1000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

/* What the relays lead to. */
struct target {
	int fd;
	unsigned port;
};

static struct target target_open(void)
{
	struct sockaddr_in in = address("127.0.0.1", 0);
	socklen_t size = sizeof in;
	struct target t = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	CHECK(bind(t.fd, (struct sockaddr *)&in, size) == 0 && listen(t.fd, 512) == 0);
	getsockname(t.fd, (struct sockaddr *)&in, &size);
	t.port = ntohs(in.sin_port);
	return t;
}

static bool target_find(void *ctx, const char *name, struct ip *ret_ip, unsigned *ret_port)
{
	const struct target *t = ctx;
	*ret_port = t->port;
	return ip_parse(STR("127.0.0.1"), ret_ip) && strncmp(name, "nowhere", 7) != 0;
}

static bool is_waiting(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms) == 1;
}

static int target_accept(const struct target *t, char ret_from[IP_TEXT])
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	int fd = is_waiting(t->fd, PATIENCE_MS) ? accept(t->fd, (struct sockaddr *)&from, &size) : -1;
	CHECK(fd >= 0);
	struct ip ip = ip_from_sockaddr((struct sockaddr *)&from);
	if (ret_from)
		ip_format(&ip, ret_from);
	patient(fd);
	return fd;
}

static int connect_from(const char *from, unsigned port)
{
	struct sockaddr_in mine = address(from, 0), to = address("127.60.0.1", port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(fd, (struct sockaddr *)&mine, sizeof mine) == 0);
	patient(fd);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

static bool hears(int fd, const char *text)
{
	char got[200] = {0};
	size_t n = strlen(text), have = 0;
	while (have < n) {
		ssize_t r = recv(fd, got + have, n - have, 0);
		if (r <= 0)
			return false;
		have += (size_t)r;
	}
	return memcmp(got, text, n) == 0;
}

static bool says(int fd, const char *text)
{
	return send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text);
}

/* Nothing came, and it is over: closed, or cut off. */
static bool is_over(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

static struct relays *start(struct target *t, const struct relays_options *more)
{
	struct relays_options o = *more;
	struct relays *relays = NULL;
	o.target = target_find;
	o.ctx = t;
	o.threads = 2;
	CHECK(relays_start(&o, &relays) == 0);
	return relays;
}

static unsigned open_for(struct relays *relays, const char *name, const char *allowed)
{
	struct cidr network;
	unsigned port = 0;
	CHECK(cidr_parse(str_of(allowed), &network));
	struct relay_wish wish = {.name = name,
	                          .address = at("127.60.0.1"),
	                          .source = at("127.60.0.1"),
	                          .allowed = &network,
	                          .allowed_count = 1};
	CHECK(relay_open(relays, &wish, &port) == 0 && port);
	return port;
}

static void settle(struct relays *relays, uint64_t connections)
{
	for (int i = 0; i < PATIENCE_MS / 10 && relays_figures(relays).connections != connections; i++)
		usleep(10000);
	CHECK(relays_figures(relays).connections == connections);
}

static void test_both_ways(struct relays *relays, const struct target *t, unsigned port)
{
	char from[IP_TEXT];
	int client = connect_from("127.61.0.1", port), server = target_accept(t, from);
	CHECK(strcmp(from, "127.60.0.1") == 0); /* the target sees the relay's own address */
	CHECK(says(client, "hello") && hears(server, "hello") && says(server, "good day") && hears(client, "good day"));
	/* The client has said all; the answer still comes. */
	CHECK(says(client, "last words") && shutdown(client, SHUT_WR) == 0);
	CHECK(hears(server, "last words") && is_over(server));
	CHECK(says(server, "the answer to that") && hears(client, "the answer to that"));
	close(server);
	CHECK(is_over(client));
	close(client);
	/* And the other way round. */
	client = connect_from("127.61.0.1", port);
	server = target_accept(t, NULL);
	CHECK(shutdown(server, SHUT_WR) == 0 && is_over(client));
	CHECK(says(client, "still here") && hears(server, "still here"));
	close(client);
	CHECK(is_over(server));
	close(server);
	settle(relays, 0);
}

static void test_strangers(struct relays *relays, const struct target *t, unsigned port)
{
	static const char lie[] = "PROXY TCP4 127.61.0.1 127.60.0.1 5000 1024\r\n";
	uint64_t refused = relays_figures(relays).refused;
	int client = connect_from("127.62.0.1", port);
	if (client >= 0) {
		(void)!says(client, lie);
		CHECK(is_over(client));
		close(client);
	}
	CHECK(!is_waiting(t->fd, 50));
	CHECK(relays_figures(relays).refused == refused + 1);
	/* Of who may pass, it is bytes as any others. */
	client = connect_from("127.61.0.1", port);
	int server = target_accept(t, NULL);
	CHECK(says(client, lie) && hears(server, lie));
	close(client);
	CHECK(is_over(server));
	close(server);
	/* To nowhere nobody gets. */
	unsigned nowhere = open_for(relays, "nowhere", "127.61.0.0/16");
	client = connect_from("127.61.0.1", nowhere);
	CHECK(client < 0 || is_over(client));
	if (client >= 0)
		close(client);
	relays_keep(relays, "nowhere", NULL, 0);
	settle(relays, 0);
}

static void test_many(struct relays *relays, const struct target *t, unsigned port)
{
	int clients[MANY], servers[MANY];
	char text[32];
	for (int i = 0; i < MANY; i++) {
		clients[i] = connect_from("127.61.0.1", port);
		servers[i] = target_accept(t, NULL);
		snprintf(text, sizeof text, "number %d", i);
		CHECK(says(clients[i], text));
		CHECK(hears(servers[i], text));
	}
	settle(relays, MANY);
	for (int i = MANY - 1; i >= 0; i--) {
		snprintf(text, sizeof text, "answer %d", i);
		CHECK(says(servers[i], text) && hears(clients[i], text));
		close(i % 2 ? clients[i] : servers[i]);
		CHECK(is_over(i % 2 ? servers[i] : clients[i]));
		close(i % 2 ? servers[i] : clients[i]);
	}
	settle(relays, 0);
}

/* A reader that does not read slows the writer down; what was on its way arrives whole. */
static void test_slow(struct relays *relays, const struct target *t, unsigned port)
{
	int client = connect_from("127.61.0.1", port), server = target_accept(t, NULL);
	static unsigned char block[65536], got[65536];
	size_t sent = 0, have = 0, quiet = 0;
	fcntl(server, F_SETFL, O_NONBLOCK);
	while (quiet < 20 && sent < ((size_t)256 << 20)) {
		for (size_t i = 0; i < sizeof block; i++)
			block[i] = (unsigned char)((sent + i) * 31 >> 3);
		ssize_t n = send(server, block, sizeof block, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		if (n <= 0)
			usleep(10000);
	}
	CHECK(quiet == 20 && sent > 0);
	shutdown(server, SHUT_WR);
	bool same = true;
	for (ssize_t n; (n = recv(client, got, sizeof got, 0)) > 0; have += (size_t)n)
		for (ssize_t i = 0; i < n; i++)
			same = same && got[i] == (unsigned char)((have + (size_t)i) * 31 >> 3);
	CHECK(same && have == sent);
	close(client);
	close(server);
	settle(relays, 0);
}

static void test_cuts(struct relays *relays, const struct target *t)
{
	unsigned port = open_for(relays, "c/1", "127.61.0.0/16"), other = open_for(relays, "d/1", "127.61.0.0/16");
	int first = connect_from("127.61.0.1", port), a = target_accept(t, NULL);
	int second = connect_from("127.61.0.2", port), b = target_accept(t, NULL);
	int apart = connect_from("127.61.0.1", other), c = target_accept(t, NULL);
	CHECK(says(first, "x") && hears(a, "x") && says(second, "y") && hears(b, "y") && says(apart, "z") &&
	      hears(c, "z"));
	/* Only one of them may pass from now on. */
	CHECK(open_for(relays, "c/1", "127.61.0.2") == port);
	CHECK(is_over(first) && is_over(a));
	CHECK(says(second, "y") && hears(b, "y"));
	close(first);
	close(a);
	first = connect_from("127.61.0.1", port);
	CHECK(first < 0 || is_over(first));
	if (first >= 0)
		close(first);
	CHECK(!is_waiting(t->fd, 50));
	/* And nobody, when it is closed; others stay. */
	relays_keep(relays, "c/", NULL, 0);
	CHECK(is_over(second) && is_over(b));
	CHECK(connect_from("127.61.0.2", port) == -ECONNREFUSED);
	CHECK(says(apart, "z") && hears(c, "z"));
	const char *keep = "d/1";
	relays_keep(relays, "d/", &keep, 1);
	CHECK(says(c, "z") && hears(apart, "z"));
	close(second);
	close(b);
	close(apart);
	close(c);
	relays_keep(relays, "d/", NULL, 0);
	settle(relays, 0);
}

/* Bounds: connections of one relay, and the time that a peer takes nothing. */
static void test_bounds(struct target *t)
{
	struct relays *relays = start(t, &(struct relays_options){.connections_one = 2, .stall_ms = 100});
	unsigned port = open_for(relays, "b/1", "127.61.0.0/16");
	int clients[3], servers[2];
	for (int i = 0; i < 2; i++) {
		clients[i] = connect_from("127.61.0.1", port);
		servers[i] = target_accept(t, NULL);
	}
	settle(relays, 2);
	clients[2] = connect_from("127.61.0.1", port);
	CHECK(clients[2] < 0 || is_over(clients[2]));
	if (clients[2] >= 0)
		close(clients[2]);
	static char block[65536];
	ssize_t n = 1;
	while (n > 0) /* until it is cut off, since nobody reads */
		n = send(servers[0], block, sizeof block, MSG_NOSIGNAL);
	CHECK(errno != EAGAIN && errno != EWOULDBLOCK);
	settle(relays, 1); /* an idle one is left alone */
	CHECK(says(clients[1], "idle") && hears(servers[1], "idle"));
	for (int i = 0; i < 2; i++) {
		close(clients[i]);
		close(servers[i]);
	}
	relays_stop(relays);
}

int main(void)
{
	struct target t = target_open();
	struct relays *relays = start(&t, &(struct relays_options){0});
	unsigned port = open_for(relays, "a/1", "127.61.0.0/16");
	test_both_ways(relays, &t, port);
	test_strangers(relays, &t, port);
	test_many(relays, &t, port);
	test_slow(relays, &t, port);
	test_cuts(relays, &t);
	int left = connect_from("127.61.0.1", port), server = target_accept(&t, NULL);
	relays_stop(relays);
	CHECK(is_over(left) && is_over(server));
	close(left);
	close(server);
	test_bounds(&t);
	close(t.fd);
	return CHECK_DONE();
}
