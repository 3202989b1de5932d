/* Has the person at the browser shown lately who it is? Asked for what leaves a way in behind: credentials, members,
 * identity providers, users of databases. Somebody with a stolen session would otherwise make one of them and keep it
 * after the session has ended. Keys and service accounts show who they are with each call. */
#include "gate/gate.h"
#include "identity/sessions.h"

int proof_check(struct call *c)
{
	if (!c->by_session || session_is_proven(c->proven_ms))
		return 0;
	return call_fail(c, 403, PROOF_NEEDED, PROOF_NEEDED_DETAIL);
}

int gate_proof(struct call *c)
{
	return c->op->lasting ? proof_check(c) : 0;
}
