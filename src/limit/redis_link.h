/* One connection to Redis, plain or with TLS. hiredis opens the socket, writes commands and reads replies as the
 * protocol has them; the bytes go through here, because Debian's hiredis has no TLS. One path serves both kinds. */
#ifndef STEWARD_LIMIT_REDIS_LINK_H
#define STEWARD_LIMIT_REDIS_LINK_H

#include "base/str.h"

#include <hiredis/hiredis.h>
#include <openssl/types.h>

#define REDIS_WHY 160

struct redis_target {
	char *host; /* a name, or an address without brackets */
	int port;
	SSL_CTX *tls; /* NULL: plain */
};

struct redis_link;

/* What TLS connections share: TLS 1.2 or 1.3, the server verified by `ca_file` (NULL: the system's authorities), our
 * own certificate where there is one. NULL after a message on stderr. Freed with SSL_CTX_free(). */
SSL_CTX *redis_tls_new(const char *ca_file, const char *cert_file, const char *key_file);

/* Connected, and with TLS the server's certificate and name verified; else NULL, and a reason. No longer than a
 * quarter of a second for each address of the host, and a second for the handshake. */
struct redis_link *redis_link_open(const struct redis_target *t, char ret_why[REDIS_WHY]);
void redis_link_free(struct redis_link *l); /* accepts NULL */
/* The reply, to be freed with freeReplyObject(); NULL when there is none within a quarter of a second: the connection
 * is of no use any more. */
redisReply *redis_link_ask(struct redis_link *l, int argc, const char **argv, const size_t *lengths);
/* Why there was no reply; and whether the reason was that Redis had closed the connection. */
const char *redis_link_why(const struct redis_link *l);
bool redis_link_closed(const struct redis_link *l);

#endif
