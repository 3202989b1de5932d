/* Device authorization (RFC 8628): a client without a browser, the command line, asks to act for a person. The person
 * confirms it in the console, where the code is shown that the client shows too; then the client gets a token of a
 * session of its own. What strangers may leave here is bounded, and over in ten minutes.
 *
 *   "device_request"  id; name = the address that asks, in hexadecimal, "/" and the id;
 *                     ref "device_user_code" -> id; secret: SHA-256 of the device code's secret as hexadecimal;
 *                     body {"code","address","agent","until","answer"?,"userId"?,"how"?,"strong"?,"session"?} */
#ifndef STEWARD_IDENTITY_DEVICES_H
#define STEWARD_IDENTITY_DEVICES_H

#include "identity/sessions.h"

#define DEVICE_SECONDS_MAX 600
#define DEVICE_INTERVAL 5    /* seconds between two questions of a client */
#define DEVICES_OF_ADDRESS 8 /* that wait at a time; an IPv6 address counts as its network of 64 bits */
#define DEVICES_MAX 1024     /* of all addresses */
#define DEVICE_CODE_TEXT 8   /* letters of the code that people see, without the dash */

enum device_answer { DEVICE_ASKED, DEVICE_ALLOWED, DEVICE_DENIED };

struct device_request {
	struct str id, code, address, agent; /* code: with its dash */
	int64_t until_ms;
	enum device_answer answer;
	struct str user_id, how, session; /* of the person who has allowed it */
	bool strong;
};

/* Whether one more may ask. -EBUSY: too many from that address; -EDQUOT: too many in all. */
must_check int device_room(struct tx *tx, struct arena *a, const struct ip *peer);
/* In a write: a new request, after device_room(). Both codes live in the arena; the device code is a secret. */
must_check int device_begin(struct tx *tx, struct arena *a, const struct request *r, struct str *ret_device_code,
                            struct str *ret_user_code);
/* The request that waits under the code that its client shows; case, dashes and spaces do not matter. -ENOENT. */
must_check int device_find(struct tx *tx, struct arena *a, struct str user_code, struct device_request *ret_device);
/* In a write: the person of the session allows it or not. */
must_check int device_decide(struct tx *tx, struct arena *a, const struct device_request *d, const struct session *by,
                             bool allowed);
/* The request of a device code. -EACCES: there is none, or it is over. */
must_check int device_look(struct tx *tx, struct arena *a, struct str device_code, struct device_request *ret_device);
/* In a write: the codes are good for nothing any more. */
must_check int device_end(struct tx *tx, const struct device_request *d);

#endif
