/* The gates, in the order in which they run. Each returns 0 to let the call pass, or negative after it has written the
 * problem. They run on a loop or a worker, outside any write, and only read the store. */
#ifndef STEWARD_GATE_GATE_H
#define STEWARD_GATE_GATE_H

#include "call/call.h"

must_check int gate_authenticate(struct call *c); /* authenticate.c: 401 */
must_check int gate_access_list(struct call *c);  /* access_list.c: 403 */
must_check int gate_membership(struct call *c);   /* membership.c: 404, 401, 403 */
must_check int gate_bucket(struct call *c);       /* bucket.c: 429 */
must_check int gate_version(struct call *c);      /* version.c: 406 */
must_check int gate_roles(struct call *c);        /* roles.c: 403 */
must_check int gate_proof(struct call *c);        /* proof.c: 403 */
must_check int gate_parameters(struct call *c);   /* parameters.c: 400 */
must_check int gate_body(struct call *c);         /* body.c: 400, 413, 415 */
must_check int gate_body_scope(struct call *c);   /* body_scope.c: 404, 401, 403 */
must_check int gate_payment(struct call *c);      /* payment.c: 402 */
/* The same of another organization that a handler makes something in. */
must_check int payment_check(struct call *c, struct str org_id);
/* What gate_proof() asks, where only a handler can see that a way in is left behind. */
must_check int proof_check(struct call *c);

/* A locked organization: id = organization; {"reason", "wayOut"?, "invoiceId"?, "since", "paused"?, "byLimit"?}. */
#define ORG_LOCK_KIND "org_lock"

/* dispatch.c: reads a document for a gate, as tx_get() does. */
must_check int gate_get(struct call *c, const char *kind, struct str id, struct doc *ret_doc);
/* access_list.c: whether that address may use the credential. */
bool access_list_permits(const struct principal *p, const struct ip *peer);
/* access_list.c: the 403 for an address that may not, and for a user without a second factor where one is demanded. */
int access_list_refuse(struct call *c);
/* bucket.c: the address as a scope of a limit: IPv4 whole, IPv6 by its /64. */
void bucket_address(const struct ip *ip, char ret_text[IP_TEXT]);

/* version.c: the items of an Accept header that can matter here. */
#define ACCEPT_MAX 32
enum accept_kind { ACCEPT_ANY, ACCEPT_CURRENT, ACCEPT_DATED, ACCEPT_BAD_DATE, ACCEPT_OTHER };
struct accept_item {
	enum accept_kind kind;
	unsigned produces; /* the PRODUCES_ bits that are acceptable */
	unsigned q;        /* 0 to 1000 */
	char date[11];     /* ACCEPT_DATED: "2023-01-01" */
};
struct accept {
	struct accept_item items[ACCEPT_MAX];
	size_t count;
};
/* Adds the value's items, in order, to ret_accept; items beyond ACCEPT_MAX are dropped. `vendor` is what media types
 * with a date begin with. */
void accept_parse(struct str value, struct str vendor, struct accept *ret_accept);
/* The best item that the operation can serve. Negative, with nothing written, when there is none. */
must_check int accept_choose(const struct accept *a, const struct op *op, const struct op_version **ret_version,
                             unsigned *ret_produces);

#endif
