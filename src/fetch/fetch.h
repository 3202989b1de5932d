/* All that leaves by HTTP begins here: which addresses may be reached, and a handle of libcurl with safe defaults. The
 * rule is about the address that a socket is opened to, after its name was resolved, so that no name can lead around
 * it. What leaves in another way (LDAP) asks the same rule.
 *
 * Who named the host decides. A tenant's leads to no inner network: clouds keep their metadata on link-local addresses,
 * operators their other services on private ones, and answers would tell which of their ports are open. */
#ifndef STEWARD_FETCH_FETCH_H
#define STEWARD_FETCH_FETCH_H

#include "base/ip.h"

#include <curl/curl.h>

enum fetch_named {
	FETCH_BY_TENANT,   /* public addresses, and the networks that the operator allows */
	FETCH_BY_ANSWER,   /* by an answer of a tenant's host: public addresses alone */
	FETCH_BY_PROVIDER, /* one of a cloud's own names: private addresses too, where operators have private links */
	FETCH_BY_OPERATOR, /* any address */
};

/* Once, before anything is fetched: the networks of the operator's own that tenants' hosts may lead to. `all`: any
 * address. Borrowed. */
void fetch_allow(bool all, const struct cidr *networks, size_t count);

/* Whether a host that was so named may have that address. */
bool fetch_may_reach(enum fetch_named named, const struct ip *ip);

/* A request under way. */
struct fetch {
	enum fetch_named named;
	bool refused; /* an address that may not be reached was among the host's */
};

#define FETCH_REFUSED "its address may not be reached"

/* No redirects, no proxy, no signals, TLS 1.2 at least, and only addresses that may be reached. Protocols, bounds of
 * time and size, and what is done with the answer are the caller's. `f` lives as long as the handle does. */
void fetch_setup(CURL *curl, struct fetch *f, const char *protocols, const char *ca_file);

#endif
