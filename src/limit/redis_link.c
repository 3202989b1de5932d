/* Each exchange has one deadline, however the bytes come: a server that sends one now and then does not hold anybody.
 * With TLS the socket does not block, because OpenSSL would read whole records without looking at the time. A plain
 * one blocks for a quarter of a second at most, which saves a system call for each answer, and the time is looked at
 * between two reads. */
#include "limit/redis_link.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/ip.h"
#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#define PATIENCE_US 250000
#define HANDSHAKE_US 1000000
#define READ_AT_ONCE 4096
#define REPLY_MAX 65536 /* bytes; the longest that is expected has 40 */

static const struct timeval patience = {.tv_usec = PATIENCE_US};
static const char silent[] = "no answer within a quarter of a second";

struct redis_link {
	redisContext *c; /* its socket, and its reader of replies */
	SSL *tls;        /* NULL: plain */
	bool closed;
	char why[REDIS_WHY];
};

/* Of the thread's first error of OpenSSL; NULL: there is none. */
static const char *tls_reason(void)
{
	return ERR_reason_error_string(ERR_peek_error());
}

static SSL_CTX *tls_refuse(SSL_CTX *ctx, const char *option, const char *file)
{
	const char *reason = tls_reason();
	option_refuse("--%s: %s: %s", option, file, reason ? reason : "cannot be used");
	ERR_clear_error();
	SSL_CTX_free(ctx);
	return NULL;
}

SSL_CTX *redis_tls_new(const char *ca_file, const char *cert_file, const char *key_file)
{
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
		return tls_refuse(ctx, "limits", "TLS");
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (ca_file ? SSL_CTX_load_verify_file(ctx, ca_file) != 1 : SSL_CTX_set_default_verify_paths(ctx) != 1)
		return tls_refuse(ctx, "limits-ca", ca_file ? ca_file : "the system's certificates");
	if (cert_file && SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
		return tls_refuse(ctx, "limits-cert", cert_file);
	if (key_file &&
	    (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1))
		return tls_refuse(ctx, "limits-key", key_file);
	return ctx;
}

static bool link_fail(struct redis_link *l, const char *why)
{
	snprintf(l->why, sizeof l->why, "%s", why);
	return false;
}

/* False: not before the deadline. */
static bool link_wait(const struct redis_link *l, short events, int64_t until_us)
{
	struct pollfd p = {.fd = l->c->fd, .events = events};
	for (;;) {
		int64_t left = until_us - clock_mono_us();
		int n = left > 0 ? poll(&p, 1, (int)((left + 999) / 1000)) : 0;
		if (n >= 0 || errno != EINTR)
			return n > 0;
	}
}

/* What a call of the socket or of OpenSSL that gave `n` comes to: 0, or what to wait for, or negative with the reason
 * noted. */
static int link_result(struct redis_link *l, ssize_t n)
{
	int error = errno;
	if (n > 0)
		return 0;
	if (!l->tls) {
		if (n < 0 && error == EINTR)
			return POLLIN | POLLOUT;
		l->closed = n == 0 || error == ECONNRESET || error == EPIPE;
		link_fail(l, n == 0 ? "it closed the connection" : error == EAGAIN ? silent : strerror(error));
		return -EIO;
	}
	int kind = SSL_get_error(l->tls, (int)n);
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
	const char *reason = tls_reason();
	bool ended =
	        kind == SSL_ERROR_ZERO_RETURN || ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
	l->closed = ended || (kind == SSL_ERROR_SYSCALL && (!error || error == ECONNRESET || error == EPIPE));
	link_fail(l, l->closed ? "it closed the connection" : reason ? reason : error ? strerror(error) : "TLS failed");
	ERR_clear_error();
	return -EIO;
}

static bool link_write(struct redis_link *l, const char *bytes, size_t n, int64_t until_us)
{
	while (n) {
		ssize_t sent = l->tls ? SSL_write(l->tls, bytes, (int)n) : send(l->c->fd, bytes, n, MSG_NOSIGNAL);
		int wait = link_result(l, sent);
		if (wait < 0)
			return false;
		if (wait && !link_wait(l, (short)wait, until_us))
			return link_fail(l, silent);
		if (!wait) {
			bytes += sent;
			n -= (size_t)sent;
		}
	}
	return true;
}

/* At least one byte more for the reader of replies. */
static bool link_read(struct redis_link *l, int64_t until_us, size_t *ret_n)
{
	char bytes[READ_AT_ONCE];
	short events = POLLIN;
	for (;;) {
		if (l->tls && !SSL_has_pending(l->tls) && !link_wait(l, events, until_us))
			return link_fail(l, silent);
		ssize_t n = l->tls ? SSL_read(l->tls, bytes, sizeof bytes) : recv(l->c->fd, bytes, sizeof bytes, 0);
		int wait = link_result(l, n);
		if (wait < 0)
			return false;
		if (!wait) {
			*ret_n = (size_t)n;
			return redisReaderFeed(l->c->reader, bytes, (size_t)n) == REDIS_OK ||
			       link_fail(l, l->c->reader->errstr);
		}
		events = (short)wait;
	}
}

redisReply *redis_link_ask(struct redis_link *l, int argc, const char **argv, const size_t *lengths)
{
	char *command = NULL;
	void *reply = NULL;
	int64_t until = clock_mono_us() + PATIENCE_US;
	if (l->tls)
		ERR_clear_error(); /* what others have left in this thread */
	int n = redisFormatCommandArgv(&command, argc, argv, lengths);
	bool good = n > 0 ? link_write(l, command, (size_t)n, until) : link_fail(l, "out of memory");
	redisFreeCommand(command);
	for (size_t sum = 0, got = 0; good && !reply; sum += got) {
		good = sum > REPLY_MAX ? link_fail(l, "its answer is too long") : link_read(l, until, &got);
		if (good && redisReaderGetReply(l->c->reader, &reply) != REDIS_OK)
			good = link_fail(l, l->c->reader->errstr);
		if (good && !reply && clock_mono_us() > until)
			good = link_fail(l, silent);
	}
	return good ? reply : NULL;
}

/* --- opening */

/* The host as its certificate must name it. */
static bool tls_name(SSL *tls, char *host)
{
	struct ip ip;
	X509_VERIFY_PARAM *p = SSL_get0_param(tls);
	X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (ip_parse(str_of(host), &ip))
		return X509_VERIFY_PARAM_set1_ip_asc(p, host) == 1;
	return X509_VERIFY_PARAM_set1_host(p, host, 0) == 1 && SSL_set_tlsext_host_name(tls, host) == 1;
}

/* A plain Redis answers to a handshake nothing, or something, or ends the connection, as the random bytes in it
 * happen to be: one sentence for all, because each other sentence would be logged anew. */
static void handshake_why(struct redis_link *l, unsigned long error)
{
	long verified = SSL_get_verify_result(l->tls);
	if (verified != X509_V_OK)
		snprintf(l->why, sizeof l->why, "its certificate is refused: %s",
		         X509_verify_cert_error_string(verified));
	else if (!error || l->closed || ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
		link_fail(l, "no TLS handshake with it: it hangs, or does not speak TLS");
}

static bool handshake(struct redis_link *l, const struct redis_target *t)
{
	int64_t until = clock_mono_us() + HANDSHAKE_US;
	ERR_clear_error();
	l->tls = SSL_new(t->tls);
	if (!l->tls || SSL_set_fd(l->tls, l->c->fd) != 1 || !tls_name(l->tls, t->host)) {
		ERR_clear_error();
		return link_fail(l, "out of memory");
	}
	for (;;) {
		int n = SSL_connect(l->tls);
		unsigned long error = ERR_peek_error();
		int wait = link_result(l, n);
		if (!wait)
			return true;
		if (wait < 0 || !link_wait(l, (short)wait, until)) {
			handshake_why(l, error);
			return false;
		}
	}
}

static bool socket_prepare(struct redis_link *l, bool tls)
{
	int flags = fcntl(l->c->fd, F_GETFL);
	bool good = flags >= 0 && fcntl(l->c->fd, F_SETFD, FD_CLOEXEC) == 0;
	if (good && tls)
		good = fcntl(l->c->fd, F_SETFL, flags | O_NONBLOCK) == 0;
	else if (good)
		good = redisSetTimeout(l->c, patience) == REDIS_OK;
	return good || link_fail(l, strerror(errno));
}

struct redis_link *redis_link_open(const struct redis_target *t, char ret_why[REDIS_WHY])
{
	struct redis_link *l = must_calloc(1, sizeof *l);
	l->c = redisConnectWithTimeout(t->host, t->port, patience);
	bool good =
	        l->c && !l->c->err ? socket_prepare(l, t->tls) : link_fail(l, l->c ? l->c->errstr : "out of memory");
	if (good && t->tls)
		good = handshake(l, t);
	if (good)
		return l;
	memcpy(ret_why, l->why, REDIS_WHY);
	redis_link_free(l);
	return NULL;
}

/* Without a word of TLS: Redis sees the end, and nobody waits for its answer. */
void redis_link_free(struct redis_link *l)
{
	if (!l)
		return;
	SSL_free(l->tls);
	redisFree(l->c);
	free(l);
}

const char *redis_link_why(const struct redis_link *l)
{
	return l->why;
}

bool redis_link_closed(const struct redis_link *l)
{
	return l->closed;
}
