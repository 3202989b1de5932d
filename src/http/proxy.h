/* The PROXY protocol: when a balancer forwards a connection, the first bytes name the client. */
#ifndef STEWARD_HTTP_PROXY_H
#define STEWARD_HTTP_PROXY_H

#include "base/ip.h"

#define PROXY_HEADER_MAX 2048

/* Reads the header (version 1 or 2) at the start of `bytes` and returns its length. Sets `*peer` to the client's
 * address; leaves it when the balancer speaks for itself or names no client. -EAGAIN: more bytes are needed; -EINVAL:
 * not a header. */
must_check int proxy_header_read(struct str bytes, struct ip *peer);

#endif
