/* May this address use the credential? A credential with an access list works only from the listed addresses. A
 * credential without one works from nowhere when its organization demands lists. */
#include "gate/gate.h"
#include "identity/uses.h"

/* The index of the first entry that contains the address; access_count when there is none. */
static size_t entry_find(const struct principal *p, const struct ip *peer)
{
	size_t i = 0;
	while (i < p->access_count && !cidr_contains(&p->access_list[i], peer))
		i++;
	return i;
}

bool access_list_permits(const struct principal *p, const struct ip *peer)
{
	if (p->access_count == 0)
		return !p->access_required;
	return entry_find(p, peer) < p->access_count;
}

int gate_access_list(struct call *c)
{
	if (!c->caller || (c->caller->access_count == 0 && !c->caller->access_required))
		return 0;
	size_t entry = entry_find(c->caller, &c->request->peer);
	if (entry < c->caller->access_count) {
		if (!c->again && !call_is_passed_on(c))
			use_access(c->service, thread_lane, c->caller, entry, &c->request->peer);
		return 0;
	}
	return access_list_refuse(c);
}

int access_list_refuse(struct call *c)
{
	if (c->caller->kind == PRINCIPAL_USER)
		return call_fail(
		        c, 403, "MULTI_FACTOR_AUTH_REQUIRED",
		        "The organization demands a second factor. Set up one-time codes or a passkey for your "
		        "account, and sign in with it.");
	char peer[IP_TEXT];
	ip_format(&c->request->peer, peer);
	call_fail(c, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
	          "The address %s is not on the access list of this credential.", peer);
	return call_fail_param(c, arena_dup(c->arena, str_of(peer)));
}
