/* All that leaves by HTTP begins here: which addresses may be reached, handles of libcurl with safe defaults, and one
 * request with its answer. The rule is about the address that a socket is opened to, after its name was resolved, so
 * that no name can lead around it. What leaves in another way (LDAP) asks the same rule.
 *
 * Who named the host decides. A tenant's leads to no inner network: clouds keep their metadata on link-local addresses,
 * operators their other services on private ones, and answers would tell which of their ports are open. */
#ifndef STEWARD_FETCH_FETCH_H
#define STEWARD_FETCH_FETCH_H

#include "base/buf.h"
#include "base/ip.h"

#include <curl/curl.h>

enum fetch_named {
	FETCH_BY_TENANT,   /* public addresses, and the networks that the operator allows */
	FETCH_BY_ANSWER,   /* by an answer of a tenant's host: public addresses alone */
	FETCH_BY_PROVIDER, /* one of a cloud's own names: private addresses too, where operators have private links */
	FETCH_BY_OPERATOR, /* any address */
};

/* Once, before anything is fetched: the networks of the operator's own that tenants' hosts may lead to. `all`: any
 * address. Borrowed. */
void fetch_allow(bool all, const struct cidr *networks, size_t count);

/* Whether a host that was so named may have that address. */
bool fetch_may_reach(enum fetch_named named, const struct ip *ip);

#define FETCH_REFUSED "its address may not be reached"
#define FETCH_AGENT "steward/" STEWARD_VERSION

/* --- one request, and its answer */

struct fetch_request {
	const char *url;
	const char *protocols; /* "https" */
	const char *ca_file;   /* certificates to trust instead of the system's, or NULL */
	enum fetch_named named;
	const char *agent;                /* NULL: FETCH_AGENT */
	const struct curl_slist *headers; /* or NULL */
	bool posts;                       /* the body; else it is a GET */
	struct str body;
	long connect_seconds, all_seconds; /* the latter: of all of it */
	size_t most;                       /* bytes of the answer: where there are more, it is cut off and failed */
	size_t keeps;                      /* of these: what comes after them is read and dropped; 0: all */
	bool wipes; /* secrets are in it: neither the answer's memory nor OpenSSL's keeps any. fetch_memory_setup() */
	bool (*stops)(void *ctx); /* asked while it waits; or NULL */
	void *ctx;                /* of the functions */
	/* What else the caller wants of the handle, as a signature; or NULL. */
	void (*more)(CURL *curl, void *ctx);
};

struct fetch_answer {
	CURLcode code;
	long status; /* 0: none came */
	struct buf body;
	bool refused;                /* an address that may not be reached was among the host's */
	bool too_long;               /* than `most` */
	char fault[CURL_ERROR_SIZE]; /* why there is no answer, for people; "" where there is one */
};

/* It blocks: never on a loop or in a write. The answer is the caller's, whatever came of it: fetch_answer_free(). What
 * its body had before goes. */
void fetch_run(const struct fetch_request *r, struct fetch_answer *a);
/* Wipes it, too. */
void fetch_answer_free(struct fetch_answer *a);

/* Text on its way to a server is wiped where it was: a buffer, and a list of headers. Both accept nothing. */
void fetch_buf_wipe(struct buf *b);
void fetch_headers_wipe(struct curl_slist *list);
/* As URLs and forms want it: all but letters, digits, "-._~" and those of `keep` as %XX. */
void fetch_encode(struct buf *b, struct str text, const char *keep);

/* Once, before anything else uses libcurl: what that frees is wiped, since keys and tokens pass through its buffers. On
 * failure: a message on stderr, negative. */
must_check int fetch_memory_setup(void);

/* --- handles, for who has transfers of their own */

/* A handle's part; it lives as long as that does. */
struct fetch {
	enum fetch_named named;
	bool refused; /* an address that may not be reached was among the host's */
};

/* No redirects, no proxy, no signals, TLS 1.2 at least, sockets that are not passed on, and only addresses that may be
 * reached. Bounds of time and size, and what is done with the answer, are the caller's. */
void fetch_setup(CURL *curl, struct fetch *f, const char *protocols, const char *ca_file);
/* For programs that people run: the proxies of their environment count, but not for addresses of the machine itself,
 * for which a proxy would use its own. */
void fetch_proxies(CURL *curl, const char *url);

#endif
