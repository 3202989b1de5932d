/* The service's own certificate authority and server certificate, used when the operator provides none. */
#ifndef STEWARD_HTTP_CERTIFICATE_H
#define STEWARD_HTTP_CERTIFICATE_H

#include "base/str.h"

/* Below the data directory. */
#define CERTIFICATE_DIR "tls"
#define CERTIFICATE_CA "tls/ca.crt"
#define CERTIFICATE_CA_KEY "tls/ca.key"
#define CERTIFICATE_SERVER "tls/server.crt"
#define CERTIFICATE_SERVER_KEY "tls/server.key"

/* Makes what is missing: a CA (10 years) and a server certificate (397 days) for localhost, 127.0.0.1, ::1, this
 * machine's name, `listen_host` and the host of `base_url` (either may be NULL). The server certificate is issued again
 * when it ends within 30 days, when those names have changed, or when it does not match its key or CA; a good one is
 * kept. On failure: a message on stderr, negative. Blocks: call it at start, and before a reload on SIGHUP. */
must_check int certificate_ensure(const char *data_dir, const char *listen_host, const char *base_url);

#endif
