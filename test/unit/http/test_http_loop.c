/* A loop with real sockets: whom it serves first, and that nobody is forgotten. */
#include "http/certificate.h"
#include "http/http.h"
#include "http/loop.h"

#include "check.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define STRANGERS 20
#define WAIT_MS 20000

static char dir[] = "/tmp/steward-loop-XXXXXX";
static int port, strangers[STRANGERS];
static SSL_CTX *tls;
static SSL *known;
static char hello[4096]; /* the first bytes of a handshake */
static int hello_n;
static int answered = -1; /* strangers that had an answer when the known client's request was handled */

static int strangers_answered(void)
{
	int n = 0;
	for (int i = 0; i < STRANGERS; i++) {
		struct pollfd p = {.fd = strangers[i], .events = POLLIN};
		n += poll(&p, 1, 0) == 1;
	}
	return n;
}

static void handle(void *ctx, struct request *r)
{
	if (str_is(r->path, "/look"))
		answered = strangers_answered();
	r->response.status = 204;
	http_respond(r);
}

static size_t body_limit(void *ctx, const struct request *r)
{
	return 0;
}

static int connected(void)
{
	struct sockaddr_in to = {
	        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
	return fd;
}

static void ask(const char *path)
{
	char text[128];
	int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
	CHECK(SSL_write(known, text, n) == n);
}

static void answer_await(void)
{
	char text[2048] = "";
	int n = SSL_read(known, text, sizeof text - 1);
	CHECK(n > 0 && strncmp(text, "HTTP/1.1 204 ", 13) == 0);
}

static void hello_make(void)
{
	SSL *ssl = SSL_new(tls);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	CHECK(SSL_do_handshake(ssl) < 0);
	hello_n = BIO_read(out, hello, sizeof hello);
	CHECK(hello_n > 0);
	SSL_free(ssl);
}

/* On the loop's thread: all of it is there when the loop looks next, the strangers' bytes first. */
static void all_at_once(void *ctx, unsigned loop)
{
	for (int i = 0; i < STRANGERS; i++)
		CHECK(send(strangers[i], hello, (size_t)hello_n, MSG_NOSIGNAL) == hello_n);
	ask("/look");
}

static void accepted_await(const struct http_server *s, uint64_t count)
{
	struct http_stats stats = {0};
	for (int i = 0; i < WAIT_MS && stats.connections_accepted < count; i++) {
		http_stats(s, &stats);
		poll(NULL, 0, 1);
	}
	CHECK(stats.connections_accepted == count);
}

/* Handshakes of strangers, half a millisecond each, used to come before the requests of those who are known, in the
 * order in which the bytes arrived. */
static void open_connections_first(struct http_server *s)
{
	int fd = connected();
	known = SSL_new(tls);
	CHECK(SSL_set_fd(known, fd) == 1 && SSL_connect(known) == 1);
	ask("/");
	answer_await();
	for (int i = 0; i < STRANGERS; i++)
		strangers[i] = connected();
	accepted_await(s, STRANGERS + 1);
	http_each_loop(s, all_at_once, NULL);
	answer_await();
	CHECK(answered == 0);
	/* What a turn had no time for comes in the next ones. */
	for (int i = 0; i < STRANGERS; i++) {
		struct pollfd p = {.fd = strangers[i], .events = POLLIN};
		CHECK(poll(&p, 1, WAIT_MS) == 1);
		close(strangers[i]);
	}
	SSL_free(known);
	close(fd);
}

static int removed(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	return remove(path);
}

/* A loop that has ended by itself meanwhile takes nothing any more: what it was told with leaked. */
static void test_drain_of_an_ended_loop(void)
{
	struct loop l = {.wakeup = eventfd(0, EFD_NONBLOCK)};
	uint64_t count = 0;
	loop_drain(&l, 1);
	CHECK(!atomic_load(&l.mailbox) && atomic_load(&l.drain_until_us) == 1);
	CHECK(read(l.wakeup, &count, sizeof count) == sizeof count && count == 1);
	close(l.wakeup);
}

int main(void)
{
	static const struct http_app app = {.body_limit = body_limit, .handle = handle};
	char cert[128], key[128];
	struct http_server *s = NULL;
	if (!mkdtemp(dir) || certificate_ensure(dir, NULL, NULL) < 0)
		return 1;
	snprintf(cert, sizeof cert, "%s/%s", dir, CERTIFICATE_SERVER);
	snprintf(key, sizeof key, "%s/%s", dir, CERTIFICATE_SERVER_KEY);
	struct http_options o = {.listen = "127.0.0.1:0", .cert_file = cert, .key_file = key, .threads = 1};
	if (http_start(&o, &app, &s) < 0)
		return 1;
	port = http_port(s);
	tls = SSL_CTX_new(TLS_client_method());
	hello_make();
	open_connections_first(s);
	http_drain_and_stop(s, 1);
	SSL_CTX_free(tls);
	nftw(dir, removed, 8, FTW_DEPTH | FTW_PHYS);
	test_drain_of_an_ended_loop();
	return CHECK_DONE();
}
