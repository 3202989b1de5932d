/* The project's certificate authority and the certificates of its nodes. ECDSA P-256. The CA's key is readable by the
 * service alone; a node gets its own key and the CA's certificate, against which it also checks its clients. */
#include "engine/postgres.h"

#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400
#define CA_DAYS 3650
#define NODE_DAYS 397
#define RENEW_DAYS 30

struct pair {
	X509 *cert;
	EVP_PKEY *key;
};

static void pair_free(struct pair *p)
{
	X509_free(p->cert);
	EVP_PKEY_free(p->key);
	*p = (struct pair){0};
}

void node_host(const struct pg_cluster *c, const char *name, char ret_host[192])
{
	snprintf(ret_host, 192, "%s.%s.%s", name, c->project_hash, c->engine->domain);
}

static int no_pass_phrase(char *text, int size, int writing, void *ctx)
{
	return 0;
}

static struct pair pair_read(const char *cert_path, const char *key_path)
{
	struct pair p = {0};
	BIO *cert = BIO_new_file(cert_path, "r"), *key = BIO_new_file(key_path, "r");
	if (cert)
		p.cert = PEM_read_bio_X509(cert, NULL, no_pass_phrase, NULL);
	if (key)
		p.key = PEM_read_bio_PrivateKey(key, NULL, no_pass_phrase, NULL);
	BIO_free(cert);
	BIO_free(key);
	ERR_clear_error();
	return p;
}

static int bio_write(const struct engine *e, const char *path, BIO *bio, bool for_nodes)
{
	char *bytes;
	long n = BIO_get_mem_data(bio, &bytes);
	return n > 0 ? file_write(e, path, bytes, (size_t)n, for_nodes) : -EIO;
}

/* The key first: a crash between the two leaves a pair that does not fit, and is made again. */
static int pair_write(const struct engine *e, const struct pair *p, const char *cert, const char *key, bool for_nodes)
{
	BIO *c = BIO_new(BIO_s_mem()), *k = BIO_new(BIO_s_mem());
	int r = -EIO;
	if (c && k && PEM_write_bio_X509(c, p->cert) &&
	    PEM_write_bio_PKCS8PrivateKey(k, p->key, NULL, NULL, 0, NULL, NULL))
		r = bio_write(e, key, k, for_nodes);
	if (r == 0)
		r = bio_write(e, cert, c, for_nodes);
	BIO_free(c);
	BIO_free(k);
	return r;
}

static bool is_current(const struct pair *p)
{
	/* From the machine's time, not the service's: the databases' clients look at that one too. */
	int days = 0, seconds = 0;
	bool good = p->cert && p->key && X509_check_private_key(p->cert, p->key) == 1 &&
	            ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(p->cert)) && days >= RENEW_DAYS;
	ERR_clear_error();
	return good;
}

static bool extension_add(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	bool added = e && X509_add_ext(cert, e, -1);
	X509_EXTENSION_free(e);
	return added;
}

static bool pair_begin(struct pair *p, const char *common_name, X509 *issuer, int days)
{
	unsigned char serial[16];
	random_bytes(serial, sizeof serial);
	serial[0] = (serial[0] & 0x7f) | 0x40;
	BIGNUM *n = BN_bin2bn(serial, sizeof serial, NULL);
	p->key = EVP_EC_gen("P-256");
	p->cert = X509_new();
	bool good = n && p->key && p->cert && X509_set_version(p->cert, X509_VERSION_3) &&
	            BN_to_ASN1_INTEGER(n, X509_get_serialNumber(p->cert));
	BN_free(n);
	if (!good)
		return false;
	X509_NAME *name = X509_get_subject_name(p->cert);
	return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)"Steward", -1, -1, 0) &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0) &&
	       X509_gmtime_adj(X509_getm_notBefore(p->cert), -3600) &&
	       X509_gmtime_adj(X509_getm_notAfter(p->cert), (long)days * DAY) &&
	       X509_set_issuer_name(p->cert, issuer ? X509_get_subject_name(issuer) : name) &&
	       X509_set_pubkey(p->cert, p->key);
}

static bool ca_make(struct pair *p, const char *group_id)
{
	char name[64];
	snprintf(name, sizeof name, "Steward project %s", group_id);
	return pair_begin(p, name, NULL, CA_DAYS) &&
	       extension_add(p->cert, p->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
	       extension_add(p->cert, p->cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
	       extension_add(p->cert, p->cert, NID_subject_key_identifier, "hash") &&
	       X509_sign(p->cert, p->key, EVP_sha256());
}

static bool node_make(struct pair *p, const struct pair *ca, const char *common_name, const char *names)
{
	return pair_begin(p, common_name, ca->cert, NODE_DAYS) &&
	       extension_add(p->cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	       extension_add(p->cert, ca->cert, NID_key_usage, "critical,digitalSignature") &&
	       extension_add(p->cert, ca->cert, NID_ext_key_usage, "serverAuth") &&
	       extension_add(p->cert, ca->cert, NID_authority_key_identifier, "keyid:always") &&
	       extension_add(p->cert, ca->cert, NID_subject_alt_name, names) &&
	       X509_sign(p->cert, ca->key, EVP_sha256());
}

/* Under the engine's lock: two clusters of a project may be made at once. */
static int ca_ensure(struct pg_cluster *c, struct pair *ret_ca)
{
	struct engine *e = c->engine;
	char dir[PG_PATH], cert[PG_PATH], key[PG_PATH];
	path_set(dir, "%s/ca/%s", e->dir, c->group_id);
	path_set(cert, "%s/ca.crt", dir);
	path_set(key, "%s/ca.key", dir);
	struct pair ca = pair_read(cert, key);
	int r = 0;
	if (!is_current(&ca)) {
		pair_free(&ca);
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			r = -errno;
		else if (!ca_make(&ca, c->group_id))
			r = -EIO;
		else
			r = pair_write(e, &ca, cert, key, false);
	}
	if (r < 0)
		pair_free(&ca);
	else
		*ret_ca = ca;
	return r;
}

/* Whether the node's certificate stands for these names and is of this CA. */
static bool node_is_good(const struct pair *p, const struct pair *ca, const char *host, const char *address)
{
	if (!is_current(p))
		return false;
	bool good = X509_verify(p->cert, ca->key) == 1 && X509_check_host(p->cert, host, 0, 0, NULL) == 1 &&
	            X509_check_ip_asc(p->cert, address, 0) == 1;
	ERR_clear_error();
	return good;
}

static int node_issue(struct pg_cluster *c, struct pg_node *n, const struct pair *ca)
{
	char host[192], private_name[80], private_host[192], cluster[192], names[800], cn[65];
	char cert[PG_PATH], key[PG_PATH], ca_path[PG_PATH];
	node_host(c, n->want.name, host);
	snprintf(private_name, sizeof private_name, "%s-pri", n->want.name);
	node_host(c, private_name, private_host);
	node_host(c, c->label, cluster);
	node_path(c, n, "conf/server.crt", cert);
	node_path(c, n, "conf/server.key", key);
	node_path(c, n, "conf/ca.crt", ca_path);
	struct pair p = pair_read(cert, key);
	if (node_is_good(&p, ca, host, n->address) && file_is(ca_path)) {
		pair_free(&p);
		return 0;
	}
	pair_free(&p);
	snprintf(names, sizeof names, "DNS:%s,DNS:%s,DNS:%s,IP:%s", host, private_host, cluster, n->address);
	snprintf(cn, sizeof cn, "%s", n->want.name);
	BIO *bio = BIO_new(BIO_s_mem());
	int r = bio && node_make(&p, ca, cn, names) && PEM_write_bio_X509(bio, ca->cert) ? 0 : -EIO;
	if (r == 0)
		r = bio_write(c->engine, ca_path, bio, true);
	if (r == 0)
		r = pair_write(c->engine, &p, cert, key, true);
	BIO_free(bio);
	pair_free(&p);
	return r;
}

int tls_ensure(struct pg_cluster *c, struct pg_node *n)
{
	struct pair ca = {0};
	pthread_mutex_lock(&c->engine->lock);
	int r = ca_ensure(c, &ca);
	pthread_mutex_unlock(&c->engine->lock);
	if (r == 0)
		r = node_issue(c, n, &ca);
	if (r < 0)
		log_error("engine: no certificate for %s: %s", n->want.name, strerror(-r));
	ERR_clear_error();
	pair_free(&ca);
	return r;
}
