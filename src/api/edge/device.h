/* Device authorization (RFC 8628), behind oauth.c, which has read the form. */
#ifndef STEWARD_API_EDGE_DEVICE_H
#define STEWARD_API_EDGE_DEVICE_H

#include "call/service.h"

#define DEVICE_GRANT "urn:ietf:params:oauth:grant-type:device_code"

/* A new device code and user code; answers now or later. */
void device_authorize(struct service *s, struct request *r);
/* A token, or why there is none yet. */
void device_token(struct service *s, struct request *r, struct str device_code);
/* Ends the session that the token is of. False: the token is not of a person's session, and nothing was answered. */
bool device_revoke(struct service *s, struct request *r, struct str token);

#endif
