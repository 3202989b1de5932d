/* Requests to issuers of OIDC providers: GET, or POST of a form, with a JSON object as the answer. They block: never on
 * a loop or in a write. */
#ifndef STEWARD_IDENTITY_ISSUER_H
#define STEWARD_IDENTITY_ISSUER_H

#include "base/arena.h"

#include <jansson.h>

#define ISSUER_FAULT 256 /* bytes of a reason, with the NUL */

struct issuer_request {
	const char *url;
	const char *ca_file;      /* certificates to trust beside the system's, or NULL */
	struct str form;          /* of a POST; empty: GET */
	bool is_public;           /* the host is not the issuer's own: no inner address may be reached, even one that
	                           * the operator allows */
	bool (*stops)(void *ctx); /* asked while it waits; or NULL */
	void *ctx;
};

/* The object, owned; NULL, with why in `ret_fault`, when there is none. A POST that is refused with an object
 * (RFC 6749, 5.2) is a fault with its "error". */
json_t *issuer_ask(const struct issuer_request *r, char ret_fault[ISSUER_FAULT]);

/* Whether both URLs have the same scheme, host and port. */
bool issuer_same_origin(struct str a, struct str b);

#endif
