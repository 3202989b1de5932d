/* Inside the load client: one connection, what it sends, and what was counted. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <openssl/md5.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HEAD_MAX 8192
#define REQUEST_MAX 8192
#define HEX_MD5 33
#define NONCE_MAX 256
#define BODY_MAX 2048
#define STATUS_MAX 600

struct plan {
	const char *host, *port, *path;
	const char *accept, *bearer;
	const char *user, *password; /* digest */
	const char *post;            /* a JSON body in which "{n}" stands for a number that no other request has */
	const char *run;             /* part of the unique text: several runs on one store */
	unsigned connections, threads;
	unsigned streams; /* requests at once on a connection, over HTTP/2; 0: one after the other over HTTP/1.1 */
	double seconds, settle;
	uint64_t count;
	bool reconnect; /* a new connection, with a full handshake, for each request */
	bool hold;      /* one request on each, then wait for the end of stdin */
	char ha1[HEX_MD5], ha2[HEX_MD5];
	char fixed
	        [REQUEST_MAX]; /* the request, or, with a body, all before the number that is its length; none with digest */
	size_t fixed_n;
	char authority[300], authorization[2048]; /* for HTTP/2 */
};

struct tally {
	uint64_t requests, challenges, broken;
	uint64_t statuses[STATUS_MAX];
	uint64_t body_bytes;
	uint32_t *micros;
	size_t sample_count, sample_cap;
};

enum link_state { LINK_DOWN, LINK_CONNECTING, LINK_HANDSHAKE, LINK_SENDING, LINK_READING, LINK_HELD, LINK_STREAMS };

struct link {
	struct worker *worker;
	unsigned number;
	int fd;
	SSL *ssl;
	enum link_state state;
	bool settled; /* has had an answer that counts */
	uint64_t began_us;
	char nonce[NONCE_MAX];
	uint32_t nonce_count;
	char proof[512];      /* what the digest's response is the hash of */
	MD5_CTX before_count; /* of what comes before the count in it, which stays the same */
	char request[REQUEST_MAX];
	size_t request_n;
	char *count_in_proof, *count, *response; /* what changes from one digest to the next: in proof and in request */
	const char *out;
	size_t out_n, out_at;
	char head[HEAD_MAX];
	size_t head_n;
	uint64_t body_left, body_n;
	bool head_done;
	int status;
	struct streams *streams;
};

struct worker {
	const struct plan *plan;
	SSL_CTX *tls;
	int poll;
	struct link *links;
	unsigned link_count;
	struct tally tally;
	atomic_uint *settled;
	atomic_int *phase;          /* enum phase */
	atomic_ullong *done, *made; /* answers that counted; bodies with a number of their own */
};

enum phase { PHASE_SETTLING, PHASE_COUNTING, PHASE_OVER };

uint64_t now_us(void);

/* link.c: does what can be done without waiting. */
void link_drive(struct link *l);
void link_down(struct link *l);
/* -1: broken, 0: must wait, 1: go on. */
int tls_result(const struct link *l, int r);
void answer_count(struct link *l, int status, uint64_t body_n, uint64_t began_us);

/* streams.c */
bool streams_start(struct link *l);
void streams_end(struct link *l);
int streams_drive(struct link *l);

/* speak.c: the request's text and the answer's meaning. */
void plan_prepare(struct plan *p);
void link_compose(struct link *l);
size_t body_compose(struct link *l, char ret_body[BODY_MAX]);
/* The header block is complete in l->head: status and length. False: not to be understood. */
bool link_understand(struct link *l);

#endif
