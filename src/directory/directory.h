/* A client of LDAP directories: connect, bind, search. Each step is bounded by a few seconds where libldap can do that;
 * it cannot for the handshake of TLS, so a thread cuts a connection that takes too long in all. Tenants name the
 * hosts: only addresses that those may have are reached (fetch/fetch.h). */
#ifndef STEWARD_DIRECTORY_DIRECTORY_H
#define STEWARD_DIRECTORY_DIRECTORY_H

#include "base/arena.h"
#include "directory/ldap_mapping.h"

struct directory_server {
	struct str host, ca; /* ca: PEM, or empty: those of this host */
	unsigned port;
};

struct directory;

/* Whether a text can be a directory's host. */
bool directory_host_is_good(struct str host);
/* Whether the host is an address, or a name of this machine, that may not be reached; other names are resolved when
 * they are used. */
bool directory_host_is_inner(struct str host);
/* How a directory is spoken to on that port: 389 and 3268 in the clear, with StartTLS where a certificate authority is
 * given, every other port with TLS from the first byte. */
void directory_transport(unsigned port, bool has_ca, bool *ret_tls, bool *ret_start_tls);

/* All three: 0, or negative and in words why not. A build without libldap connects to nothing. */
must_check int directory_open(const struct directory_server *s, struct arena *a, struct directory **ret_directory,
                              const char **ret_why);
must_check int directory_bind(struct directory *d, struct str user, struct str password, const char **ret_why);
/* Whether the query is answered; what is found is not kept. */
must_check int directory_search(struct directory *d, const struct ldap_query *q, const char **ret_why);
/* Accepts NULL. */
void directory_close(struct directory *d);

#endif
