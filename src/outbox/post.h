/* POST to services of others: webhooks and vendors. Addresses may come from tenants, so they are checked after names
 * are resolved. */
#ifndef STEWARD_OUTBOX_POST_H
#define STEWARD_OUTBOX_POST_H

#include "base/arena.h"

#include <curl/curl.h>
#include <jansson.h>

struct post_options {
	const char *ca_file;   /* certificates to trust instead of the system's, or NULL */
	bool private_networks; /* tenants' addresses may be private or loopback, and http */
};

/* One request. */
struct post {
	const char *url;
	const json_t *headers; /* an object of texts */
	struct str body;
	bool trusted;   /* the operator named the address: it may be private, and http */
	bool says_ok;   /* a success has {"ok": true} in its body */
	bool *ret_gone; /* set when the receiver says that it will never take anything again (410) */
	bool (*stops)(void *ctx);
	void *ctx;
};

/* Sends it now and waits for the answer, at most 20 seconds. False, with the reason, unless the answer is a 2xx. */
must_check bool post_deliver(const struct post_options *o, const struct post *p, char ret_fault[CURL_ERROR_SIZE]);

/* What is wrong with an address that a tenant gives, as text for people; NULL: nothing that can be seen before its name
 * is resolved. */
const char *post_url_fault(struct arena *a, struct str url);
/* "https://example.com:8443" of an address. */
struct str post_url_origin(struct str url);

#endif
