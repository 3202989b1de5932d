/* TLS for the loops: one context that all of them use, exchanged as a whole when the certificate is read again. */
#ifndef STEWARD_HTTP_TLS_H
#define STEWARD_HTTP_TLS_H

#include "base/str.h"

#include <openssl/ssl.h>

struct tls;

/* Failure: a sentence to stderr, negative. */
must_check int tls_new(const char *cert_file, const char *key_file, struct tls **ret_tls);
void tls_free(struct tls *t);
/* Reads the files again. The old context stays when they are bad, and for connections that have it. */
must_check int tls_reload(struct tls *t);
/* Ticket keys whose time is over are changed. New connections do it too: this is for when there are none. Any thread. */
void tls_rotate(struct tls *t);
/* The server's side of a new connection; NULL when OpenSSL has no memory. */
SSL *tls_accept(struct tls *t, int fd);
bool tls_chose_http2(const SSL *ssl);

#endif
