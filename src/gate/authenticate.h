/* What a caller who is not known is told. */
#ifndef STEWARD_GATE_AUTHENTICATE_H
#define STEWARD_GATE_AUTHENTICATE_H

#include "call/call.h"

/* The WWW-Authenticate headers of a 401. */
void authenticate_challenge(struct call *c, bool stale, bool bad_token);

#endif
