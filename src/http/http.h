/* The HTTP edge: turns bytes into struct request, and struct response into bytes. It knows TLS, HTTP/1.1, HTTP/2,
 * deadlines and size limits, but nothing about the API.
 *
 * One loop per thread, each with its own listening socket. A request belongs to the loop of its connection. The handler
 * runs on that loop, must not block, and answers either at once with http_respond() or later, from any thread, with
 * http_respond_from_thread(). Every request is answered exactly once, even when its client has gone. */
#ifndef STEWARD_HTTP_HTTP_H
#define STEWARD_HTTP_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/ip.h"
#include "base/str.h"

#include <sys/types.h>

struct header {
	struct str name; /* lower case */
	struct str value;
};

/* A body that is produced while it is sent. read() fills up to n bytes and returns the count, 0 at the end, -EAGAIN
 * when nothing is ready (http_stream_ready() wakes it), another negative number to cut the connection. Runs on the
 * loop. */
struct body_stream {
	ssize_t (*read)(void *ctx, char *ret_bytes, size_t n);
	void (*close)(void *ctx);
	void *ctx;
	bool endless; /* it is for a client that listens: one that closes its side has left */
};

#define RESPONSE_HEADERS_MAX 32

struct response {
	int status;
	struct header headers[RESPONSE_HEADERS_MAX]; /* the edge adds content-length, connection and date itself */
	size_t header_count;
	struct str body;  /* lives at least as long as the request's arena */
	bool body_shared; /* other requests share the same bytes, so they do not count as this client's */
	struct str plain; /* the body as it was before it was compressed, for recordings; or empty */
	struct body_stream stream;
};

struct request {
	struct arena *arena;
	struct str method;    /* "GET" */
	struct str target;    /* as sent: path and query */
	struct str path;      /* still percent-encoded */
	struct str query;     /* without '?' */
	struct str authority; /* Host or :authority */
	struct header *headers;
	size_t header_count;
	struct str body;
	struct ip peer;
	unsigned loop;      /* index of the loop that serves it */
	int http_version;   /* 10, 11 or 20 */
	char id[25];        /* X-Request-Id, made by the edge */
	char from_host[25]; /* of one that came by the inner port: the common name of the peer's certificate; else "" */
	int64_t started_us; /* clock_mono_us() when the header block was complete */
	struct response response;
	void *app;          /* for the application */
	void *stream_state; /* for the edge */
};

/* The first header of that (lower-case) name; STR_NONE when absent. */
struct str request_header(const struct request *r, const char *name);
/* How often it occurs. */
size_t request_header_count(const struct request *r, const char *name);

/* Borrows name and value: they must live as long as the arena. More than RESPONSE_HEADERS_MAX is a bug: it asserts. */
void response_header(struct response *r, const char *name, struct str value);

struct http_app {
	void *ctx;
	/* Called when the header block is complete, before the body: returns the largest body that this request may
	 * have. */
	size_t (*body_limit)(void *ctx, const struct request *r);
	/* Or NULL. Called when the header block is complete and the body has not arrived yet. The application calls
	 * http_body_take(), now or later, or answers. A request that is refused here costs no memory for a body. Not
	 * called when the body came together with the headers. */
	void (*begin)(void *ctx, struct request *r);
	/* The request is complete. */
	void (*handle)(void *ctx, struct request *r);
	/* The answer has been handed to the socket or dropped: for the access log, metrics and recordings. Also called
	 * for requests that the edge itself refused (r->path may be empty). */
	void (*done)(void *ctx, struct request *r, size_t bytes_sent);
	/* Or NULL. Called on each loop's thread before it accepts anything, for per-thread state. http_start() returns
	 * after all of these calls. */
	void (*loop_start)(void *ctx, unsigned loop);
	/* Or NULL. Called on the loop's thread when the requests of a turn are done and the loop is about to wait. */
	void (*turn_end)(void *ctx, unsigned loop);
};

/* A second port, for the processes of one service alone: TLS 1.3, and each side must show a certificate of `authority`.
 * PEM texts. */
struct http_inner {
	const char *listen; /* as http_options.listen */
	struct str certificate, key, authority;
};

struct http_options {
	const char *listen; /* "127.0.0.1:8443", "[::1]:8443" */
	const char *cert_file, *key_file;
	unsigned threads;
	/* Called once the port is known, before anything is served. */
	void (*bound)(void *ctx, int port);
	void *bound_ctx;
	/* Zero means the default in parentheses. */
	size_t header_max;                /* (32768) whole header block */
	unsigned header_count_max;        /* (100) */
	unsigned header_seconds;          /* (10) deadline for the whole header block, handshake included */
	unsigned body_seconds;            /* (30) deadline for the whole body */
	unsigned idle_seconds;            /* (75) keep-alive */
	unsigned send_seconds;            /* (30) a client that reads nothing for so long is cut off */
	unsigned connections_max;         /* (10000) in all */
	unsigned connections_per_address; /* (2000) */
	unsigned streams_max;             /* (100) concurrent HTTP/2 streams per connection */
	unsigned resets_max;              /* (200) client resets in 10 s before GOAWAY */
	size_t buffer_max;                /* (256 MB) all buffered input and output: http/budget.h */
	/* Connections from these networks begin with a PROXY header and count as connections of the client that it
	 * names. */
	const struct cidr *proxies;
	size_t proxy_count;
	const struct http_inner *inner; /* or NULL; borrowed for http_start() */
};

struct http_stats { /* sums over all loops since start */
	uint64_t connections_accepted, connections_open, connections_refused;
	uint64_t handshakes_full, handshakes_resumed, handshakes_failed;
	uint64_t timeouts, protocol_errors, bytes_in, bytes_out, requests_http1, requests_http2;
	uint64_t busy; /* refused because too much was waiting already */
};

struct http_server;

/* Binds, loads the certificate and starts the loops. On failure: a message on stderr, negative. */
must_check int http_start(const struct http_options *options, const struct http_app *app,
                          struct http_server **ret_server);
/* The port in use (for --listen HOST:0). */
int http_port(const struct http_server *s);
/* The same of the inner port; 0 without one. */
int http_inner_port(const struct http_server *s);
/* New certificates for the inner port's new connections; the old ones stay in use when these are bad. */
must_check int http_inner_renew(struct http_server *s, const struct http_inner *inner);
/* Reads certificate and key again, for new connections. When the files are bad the old ones stay in use. */
must_check int http_reload_certificate(struct http_server *s);
/* Call about once a minute: replaces TLS ticket keys that are too old. Any thread. */
void http_rotate_keys(struct http_server *s);
/* Stops accepting, finishes the current requests (for at most `seconds`), closes, joins the loops, frees. */
void http_drain_and_stop(struct http_server *s, unsigned seconds);
void http_stats(const struct http_server *s, struct http_stats *ret_stats);
/* Bytes that wait for clients now, and their limit. */
void http_buffered(const struct http_server *s, size_t *ret_bytes, size_t *ret_max);

/* Runs fn(ctx) once on each loop's thread, between events, and returns when all have run. For state that must exist
 * before the first request, use http_app.loop_start. */
void http_each_loop(struct http_server *s, void (*fn)(void *ctx, unsigned loop), void *ctx);

/* On the request's own loop: lends a buffer for the answer's body that was used before, when one is free; and returns
 * it. */
void request_buf_lend(struct request *r, struct buf *b);
void request_buf_return(struct request *r, struct buf *b);

/* After begin(): accepts the body. On the request's own loop; handle() is called when the body has arrived. */
void http_body_take(struct request *r);
/* The answer that is being made takes so many bytes by now: counted for the client's address (http/budget.h) until the
 * request ends. False: the address has no room for it, and the caller answers 503. Before the answer, from the thread
 * that makes it. */
must_check bool http_reserve(struct request *r, size_t bytes);
/* Answer with r->response. On the request's own loop. */
void http_respond(struct request *r);
/* The same from any other thread: the loop is woken and sends. */
void http_respond_from_thread(struct request *r);
/* Runs fn(r) soon on the request's loop. From any thread. */
void http_call_on_loop(struct request *r, void (*fn)(struct request *r));
/* The body stream has bytes again, or has ended. From any thread, but not after its close() was called. */
void http_stream_ready(struct request *r);

#endif
