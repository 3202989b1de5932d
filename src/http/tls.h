/* TLS for the loops: one context for all of them, replaced as a whole when the certificate is read again. */
#ifndef STEWARD_HTTP_TLS_H
#define STEWARD_HTTP_TLS_H

#include "base/str.h"

#include <openssl/ssl.h>

struct tls;

/* On failure: a message on stderr, negative. */
must_check int tls_new(const char *cert_file, const char *key_file, struct tls **ret_tls);
void tls_free(struct tls *t);
/* Reads the files again. The old context stays in use when they are bad, and for connections that already have it. */
must_check int tls_reload(struct tls *t);
/* Replaces ticket keys that are too old. New connections do it too; this is for times without connections. Any
 * thread. */
void tls_rotate(struct tls *t);
/* The server's side of a new connection; NULL when OpenSSL has no memory. */
SSL *tls_accept(struct tls *t, int fd);
bool tls_chose_http2(const SSL *ssl);

#endif
