/* The PROXY protocol: the first bytes of a connection that a balancer has passed on tell whose connection it is. */
#ifndef STEWARD_HTTP_PROXY_H
#define STEWARD_HTTP_PROXY_H

#include "base/ip.h"

#define PROXY_HEADER_MAX 2048

/* The length of the header at the start of `bytes`, versions 1 and 2. `*peer` becomes the client's address, and stays as
 * it is when the balancer speaks for itself or names none. -EAGAIN: more bytes are needed; -EINVAL: no such header. */
must_check int proxy_header_read(struct str bytes, struct ip *peer);

#endif
