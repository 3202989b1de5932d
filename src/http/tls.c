/* TLS 1.2 and 1.3 with OpenSSL. Tickets resume a session on any loop, and after a reload, because their keys belong to
 * the service and not to a context. OpenSSL counts references to contexts: a connection keeps the one it started with.
 *
 * A ticket key makes tickets for an hour and still opens them for another hour; then it is wiped, so that traffic that
 * was recorded under its tickets cannot be decrypted with anything that is left here. Keys are replaced by each new
 * connection that finds them too old, and by tls_rotate(), which the service calls now and then in case there are no
 * connections. */
#include "http/tls.h"

#include "base/arena.h"
#include "base/certs.h"
#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>

#define TICKET_KEY_SECONDS 3600
#define TICKET_NAME 16

struct ticket_key {
	unsigned char name[TICKET_NAME], cipher[32], mac[32];
};

struct tls {
	char *cert_file, *key_file;
	pthread_mutex_t lock; /* protects everything below */
	struct ticket_key current, previous;
	bool has_previous;
	int64_t changed_ms; /* when current was made */
	SSL_CTX *ctx;
};

/* With the lock held. Setting the clock back does not prolong a key's life. */
static void keys_rotate(struct tls *t)
{
	int64_t now = clock_now_ms(), age = now - t->changed_ms, most = TICKET_KEY_SECONDS * INT64_C(1000);
	if (age >= 0 && age < most)
		return;
	t->has_previous = age >= 0 && age < 2 * most;
	if (t->has_previous)
		t->previous = t->current;
	else
		OPENSSL_cleanse(&t->previous, sizeof t->previous);
	random_bytes(&t->current, sizeof t->current);
	t->changed_ms = now;
}

/* The key to make a ticket with, or the key that a ticket names. 1: use it; 2: use it and give the client a new ticket;
 * 0: there is none. */
static int key_choose(struct tls *t, const unsigned char *name, struct ticket_key *ret_key)
{
	int result = 0;
	pthread_mutex_lock(&t->lock);
	keys_rotate(t);
	if (!name || CRYPTO_memcmp(name, t->current.name, TICKET_NAME) == 0) {
		*ret_key = t->current;
		result = 1;
	} else if (t->has_previous && CRYPTO_memcmp(name, t->previous.name, TICKET_NAME) == 0) {
		*ret_key = t->previous;
		result = 2;
	}
	pthread_mutex_unlock(&t->lock);
	return result;
}

static int ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                      int makes)
{
	struct tls *t = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct ticket_key key;
	char digest[] = "SHA256"; /* the parameter must be writable */
	int result = key_choose(t, makes ? NULL : name, &key);
	if (result == 0)
		return 0;
	OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac, sizeof key.mac),
	                       OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	                       OSSL_PARAM_construct_end()};
	if (makes) {
		memcpy(name, key.name, TICKET_NAME);
		random_bytes(iv, EVP_MAX_IV_LENGTH);
	}
	if (EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key.cipher, iv, makes) != 1 ||
	    EVP_MAC_CTX_set_params(mac, params) != 1)
		result = -1;
	OPENSSL_cleanse(&key, sizeof key);
	return result;
}

static int choose_protocol(SSL *ssl, const unsigned char **ret_out, unsigned char *ret_n, const unsigned char *in,
                           unsigned n, void *arg)
{
	static const unsigned char ours[] = "\x02h2\x08http/1.1";
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, ret_n, ours, sizeof ours - 1, in, n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret_out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static void complain(const char *what, const char *file)
{
	char text[256];
	ERR_error_string_n(ERR_peek_last_error(), text, sizeof text);
	fprintf(stderr, "steward: %s %s: %s\n", what, file, text);
	ERR_clear_error();
}

static bool context_load(SSL_CTX *ctx, const char *cert_file, const char *key_file)
{
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1) {
		complain("cannot use the certificate", cert_file);
		return false;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1) {
		complain("cannot use the key", key_file);
		return false;
	}
	return true;
}

static SSL_CTX *context_new(struct tls *t)
{
	static const unsigned char id[] = "steward";
	char groups[] = "X25519:P-256:P-384"; /* the macro needs a writable text */
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx) {
		complain("cannot set up TLS for", t->cert_file);
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	/* All our ciphers are strong, so the client's order decides: the client knows what its processor does well. */
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
	                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
	SSL_CTX_sess_set_cache_size(ctx, 2048);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_timeout(ctx, TICKET_KEY_SECONDS);
	SSL_CTX_set_app_data(ctx, t);
	SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	if (SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1 ||
	    SSL_CTX_set1_groups_list(ctx, groups) != 1 || SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticket_key) != 1) {
		complain("cannot set up TLS for", t->cert_file);
		SSL_CTX_free(ctx);
		return NULL;
	}
	if (!context_load(ctx, t->cert_file, t->key_file)) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	return ctx;
}

int tls_new(const char *cert_file, const char *key_file, struct tls **ret_tls)
{
	struct tls *t = must_calloc(1, sizeof *t);
	t->cert_file = must_strdup(cert_file);
	t->key_file = must_strdup(key_file);
	random_bytes(&t->current, sizeof t->current);
	t->changed_ms = clock_now_ms();
	pthread_mutex_init(&t->lock, NULL);
	t->ctx = context_new(t);
	if (!t->ctx) {
		tls_free(t);
		return -EINVAL;
	}
	*ret_tls = t;
	return 0;
}

static int choose_http1(SSL *ssl, const unsigned char **ret_out, unsigned char *ret_n, const unsigned char *in,
                        unsigned n, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, ret_n, ours, sizeof ours - 1, in, n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*ret_out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* Every handshake verifies the peer's certificate: no session is resumed. */
static SSL_CTX *context_inner(struct tls *t, const struct http_inner *inner)
{
	struct pair own = pair_parse(inner->certificate, inner->key), ca = pair_parse(inner->authority, STR_NONE);
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	bool good = ctx && own.cert && own.key && ca.cert && SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	            SSL_CTX_use_certificate(ctx, own.cert) == 1 && SSL_CTX_use_PrivateKey(ctx, own.key) == 1 &&
	            SSL_CTX_check_private_key(ctx) == 1 &&
	            X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), ca.cert) == 1;
	if (good) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		SSL_CTX_set_verify_depth(ctx, 1);
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
		                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
		SSL_CTX_set_num_tickets(ctx, 0);
		SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
		SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
		                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		SSL_CTX_set_read_ahead(ctx, 1);
		SSL_CTX_set_app_data(ctx, t);
		SSL_CTX_set_alpn_select_cb(ctx, choose_http1, NULL);
	} else {
		complain("cannot set up TLS for", inner->listen);
		SSL_CTX_free(ctx);
		ctx = NULL;
	}
	pair_free(&own);
	pair_free(&ca);
	return ctx;
}

int tls_new_inner(const struct http_inner *inner, struct tls **ret_tls)
{
	struct tls *t = must_calloc(1, sizeof *t);
	random_bytes(&t->current, sizeof t->current);
	t->changed_ms = clock_now_ms();
	pthread_mutex_init(&t->lock, NULL);
	t->ctx = context_inner(t, inner);
	if (!t->ctx) {
		tls_free(t);
		return -EINVAL;
	}
	*ret_tls = t;
	return 0;
}

static void context_replace(struct tls *t, SSL_CTX *fresh)
{
	pthread_mutex_lock(&t->lock);
	SSL_CTX *old = t->ctx;
	t->ctx = fresh;
	pthread_mutex_unlock(&t->lock);
	SSL_CTX_free(old);
}

int tls_renew_inner(struct tls *t, const struct http_inner *inner)
{
	SSL_CTX *fresh = context_inner(t, inner);
	if (!fresh)
		return -EINVAL;
	context_replace(t, fresh);
	return 0;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	pthread_mutex_destroy(&t->lock);
	OPENSSL_cleanse(&t->current, sizeof t->current);
	OPENSSL_cleanse(&t->previous, sizeof t->previous);
	free(t->cert_file);
	free(t->key_file);
	free(t);
}

int tls_reload(struct tls *t)
{
	SSL_CTX *fresh = context_new(t);
	if (!fresh)
		return -EINVAL;
	context_replace(t, fresh);
	return 0;
}

void tls_rotate(struct tls *t)
{
	pthread_mutex_lock(&t->lock);
	keys_rotate(t);
	pthread_mutex_unlock(&t->lock);
}

SSL *tls_accept(struct tls *t, int fd)
{
	pthread_mutex_lock(&t->lock);
	keys_rotate(t);
	SSL *ssl = SSL_new(t->ctx);
	pthread_mutex_unlock(&t->lock);
	if (!ssl || SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}

bool tls_chose_http2(const SSL *ssl)
{
	const unsigned char *name = NULL;
	unsigned n = 0;
	SSL_get0_alpn_selected(ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0;
}

bool tls_peer_name(const SSL *ssl, char ret_name[25])
{
	char name[ID_LEN + 2] = "";
	X509 *cert = SSL_get0_peer_certificate(ssl);
	int n = cert ? X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof name) : -1;
	if (n != ID_LEN || !id_is_valid((struct str){name, ID_LEN}) || SSL_get_verify_result(ssl) != X509_V_OK)
		return false;
	memcpy(ret_name, name, ID_LEN + 1);
	return true;
}
