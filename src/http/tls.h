/* TLS for the loops: one context for all of them, replaced as a whole when the certificate is read again. */
#ifndef STEWARD_HTTP_TLS_H
#define STEWARD_HTTP_TLS_H

#include "http/http.h"

#include <openssl/ssl.h>

struct tls;

/* On failure: a message on stderr, negative. */
must_check int tls_new(const char *cert_file, const char *key_file, struct tls **ret_tls);
/* TLS of the inner port: 1.3 alone, no resumption, and only peers that show a certificate of inner->authority. */
must_check int tls_new_inner(const struct http_inner *inner, struct tls **ret_tls);
/* For new connections; the old context stays in use when the texts are bad. */
must_check int tls_renew_inner(struct tls *t, const struct http_inner *inner);
void tls_free(struct tls *t); /* accepts NULL */
/* Reads the files again. The old context stays in use when they are bad, and for connections that already have it. */
must_check int tls_reload(struct tls *t);
/* Replaces ticket keys that are too old. New connections do it too; this is for times without connections. Any
 * thread. */
void tls_rotate(struct tls *t);
/* The server's side of a new connection; NULL when OpenSSL has no memory. */
SSL *tls_accept(struct tls *t, int fd);
bool tls_chose_http2(const SSL *ssl);
/* The common name of the peer's certificate, when it is an id; else false. */
must_check bool tls_peer_name(const SSL *ssl, char ret_name[25]);

#endif
