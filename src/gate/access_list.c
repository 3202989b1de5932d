/* May this address use the credential? A credential with a list is bound to it; one whose organization demands lists
 * and that has none may be used from nowhere. */
#include "gate/gate.h"

bool access_list_permits(const struct principal *p, const struct ip *peer)
{
	if (p->access_count == 0)
		return !p->access_required;
	for (size_t i = 0; i < p->access_count; i++)
		if (cidr_contains(&p->access_list[i], peer))
			return true;
	return false;
}

int gate_access_list(struct call *c)
{
	if (!c->caller || access_list_permits(c->caller, &c->request->peer))
		return 0;
	char peer[IP_TEXT];
	ip_format(&c->request->peer, peer);
	call_fail(c, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
	          "The address %s is not on the access list of this credential.", peer);
	return call_fail_param(c, arena_dup(c->arena, str_of(peer)));
}
