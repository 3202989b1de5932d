/* Messages in the forms that chat, paging and monitoring services take. */
#ifndef STEWARD_OUTBOX_VENDORS_H
#define STEWARD_OUTBOX_VENDORS_H

#include "base/arena.h"

#include <jansson.h>

/* What is to be said of one thing that begins, goes on and ends: an alert. */
struct notice {
	struct str id; /* of the thing: receivers join all messages of one id */
	enum notice_kind {
		NOTICE_OPEN,
		NOTICE_CLOSED,
		NOTICE_INFORMATION, /* of what neither begins nor ends */
		NOTICE_EVENT        /* no alert at all: for webhooks */
	} kind;
	struct str title, text, source; /* source: what it is about, a host or a cluster */
	const char *severity;           /* INFO, WARNING, ERROR or CRITICAL */
	int64_t at_ms;
	const json_t *details; /* an object, sent as it is by a webhook */
};

/* The request for a receiver as alert configurations describe it (typeName, keys, region ...): content of an outbox
 * message, kept by the arena. NULL: such a receiver is not reached by HTTP. */
json_t *vendor_request(struct arena *a, const json_t *receiver, const struct notice *n);
/* The request to the operator's gateway for text messages: {"to", "text", "alertId"}. */
json_t *sms_request(struct arena *a, struct str number, const struct notice *n);
/* The request to the operator's payment service, with that body. */
json_t *billing_request(struct arena *a, const json_t *body);

/* The names that the operator can give addresses for, and their usual addresses (NULL: none). A name of NULL is the
 * end. */
struct vendor_endpoint {
	const char *name, *url;
};
extern const struct vendor_endpoint vendor_endpoints[];

#endif
