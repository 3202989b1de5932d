/* The certificates of a project's nodes. The project's CA is the service's, which gives it with each converge; it is
 * held in memory and never written here. A node gets its own key and certificate; which authorities its clients'
 * certificates may come from is part of the access rules. */
#include "engine/postgres/cluster/tls.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/certs.h"
#include "base/log.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/paths.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#define NODE_DAYS 397
#define RENEW_DAYS 30
#define PEM_MAX 65536

void pg_node_host(const struct pg_cluster *c, const char *name, char ret_host[192])
{
	snprintf(ret_host, 192, "%s.%s.%s", name, c->project_hash, c->engine->domain);
}

void pg_tls_take(struct pg_cluster *c, const struct engine_cluster *want)
{
	if (c->ca_key)
		OPENSSL_cleanse(c->ca_key, strlen(c->ca_key));
	free(c->ca_key);
	free(c->ca_cert);
	c->ca_cert = must_strdup(want->ca_cert);
	c->ca_key = must_strdup(want->ca_key);
}

/* Whether the node's certificate stands for these names and is of this CA. */
static bool node_is_good(const struct pair *p, const struct pair *ca, const char *host, const char *address,
                         const struct engine_access *access)
{
	bool good = pair_fits(p) && !cert_ends_within(p->cert, RENEW_DAYS) && !cert_begins_later(p->cert) &&
	            cert_is_of(p->cert, ca->cert) && X509_check_host(p->cert, host, 0, 0, NULL) == 1 &&
	            X509_check_ip_asc(p->cert, address, 0) == 1;
	for (size_t i = 0; good && access && i < access->host_name_count; i++)
		good = X509_check_host(p->cert, access->host_names[i], 0, 0, NULL) == 1;
	ERR_clear_error();
	return good;
}

/* Through no link, and not from a pipe, which would keep us waiting. */
static struct pair node_pair(const char *cert, const char *key)
{
	char *own_cert = NULL, *own_key = NULL;
	if (pg_file_read(cert, PEM_MAX, &own_cert) < 0)
		own_cert = NULL;
	if (pg_file_read(key, PEM_MAX, &own_key) < 0)
		own_key = NULL;
	struct pair p = pair_parse(own_cert ? str_of(own_cert) : STR_NONE, own_key ? str_of(own_key) : STR_NONE);
	if (own_key)
		OPENSSL_cleanse(own_key, strlen(own_key));
	free(own_cert);
	free(own_key);
	return p;
}

static int node_issue(struct pg_cluster *c, struct pg_node *n, const struct pair *ca, bool *ret_changed)
{
	char host[192], private_name[80], private_host[192], cluster[192];
	char cert[PG_PATH], key[PG_PATH];
	pg_node_host(c, n->want.name, host);
	snprintf(private_name, sizeof private_name, "%s-pri", n->want.name);
	pg_node_host(c, private_name, private_host);
	pg_node_host(c, c->label, cluster);
	pg_node_path(c, n, "conf/server.crt", cert);
	pg_node_path(c, n, "conf/" PG_KEY_FILE, key);
	struct pair p = node_pair(cert, key);
	bool good = node_is_good(&p, ca, host, n->address, c->access);
	pair_free(&p);
	if (good)
		return 0;
	struct buf names = {0};
	buf_printf(&names, "DNS:%s,DNS:%s,DNS:%s,IP:%s", host, private_host, cluster, n->address);
	for (size_t i = 0; c->access && i < c->access->host_name_count; i++)
		buf_printf(&names, ",DNS:%s", c->access->host_names[i]);
	struct arena *a = arena_new();
	bool made = pair_begin_named(&p, CERT_SERVER, n->want.name, ca->cert, NODE_DAYS) &&
	            cert_extend(p.cert, ca->cert, NID_subject_alt_name, arena_z(a, buf_view(&names))) &&
	            pair_sign(&p, ca->key);
	buf_free(&names);
	struct str own_cert, own_key;
	int r = made ? pair_pem(&p, a, &own_cert, &own_key) : -EIO;
	r = r < 0 ? r : pg_key_write(c->user, key, own_key.p, own_key.n);
	r = r < 0 ? r : pg_file_write(c->user, cert, own_cert.p, own_cert.n, true);
	arena_free(a);
	pair_free(&p);
	if (r == 0 && ret_changed)
		*ret_changed = true;
	return r;
}

bool pg_tls_ends_soon(const struct pg_cluster *c, const struct pg_node *n)
{
	char cert[PG_PATH], key[PG_PATH];
	pg_node_path(c, n, "conf/server.crt", cert);
	pg_node_path(c, n, "conf/server.key", key);
	struct pair p = node_pair(cert, key);
	bool soon = p.cert && cert_ends_within(p.cert, RENEW_DAYS);
	pair_free(&p);
	ERR_clear_error();
	return soon;
}

int pg_tls_ensure(struct pg_cluster *c, struct pg_node *n, bool *ret_changed)
{
	if (!c->ca_key)
		return 0;
	struct pair ca = pair_parse(str_of(c->ca_cert), str_of(c->ca_key));
	int r = pair_fits(&ca) ? node_issue(c, n, &ca, ret_changed) : -EINVAL;
	if (r < 0)
		log_error("engine: no certificate for %s: %s", n->want.name, strerror(-r));
	ERR_clear_error();
	pair_free(&ca);
	return r;
}
