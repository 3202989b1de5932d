/* The authority by which hosts know each other: made by the first of them, kept in the store with its key sealed, so
 * that whoever has the store and the service's key is a host, and nobody else. Each process issues its own
 * certificates from it at its start; their keys are never written down. */
#include "hosts/hosts.h"

#include "base/certs.h"
#include "base/clock.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/obj_mac.h>

#define AUTHORITY_KIND "hosts_ca"
#define AUTHORITY_ID "hosts"
#define CONTEXT STR(AUTHORITY_KIND "/" AUTHORITY_ID)
#define CA_DAYS 3650
#define LEAST_DAYS 60 /* an authority that ends sooner is replaced at the next start */
#define DAYS 30
#define DAY_MS 86400000LL

struct keeping {
	struct arena *arena;
	bool follows; /* the one that is there is taken as it is */
	struct str certificate, key;
};

static int authority_make(struct keeping *k)
{
	struct pair ca = {0};
	/* A name of its own: of two with one name, verifiers may try only the first. */
	struct str name = arena_printf(k->arena, "Steward hosts %llx", (unsigned long long)(clock_now_ms() / 1000));
	int r = pair_begin_named(&ca, CERT_CA, name.p, NULL, CA_DAYS) && pair_sign(&ca, ca.key)
	                ? pair_pem(&ca, k->arena, &k->certificate, &k->key)
	                : -EIO;
	pair_free(&ca);
	return r;
}

static bool lasts(struct str certificate)
{
	struct pair ca = pair_parse(certificate, STR_NONE);
	bool good = ca.cert && !cert_ends_within(ca.cert, LEAST_DAYS) && !cert_begins_later(ca.cert);
	pair_free(&ca);
	return good;
}

static int keep(struct tx *tx, void *ctx)
{
	struct keeping *k = ctx;
	struct doc d;
	int r = tx_get(tx, k->arena, AUTHORITY_KIND, STR(AUTHORITY_ID), &d);
	if (r < 0 && r != -ENOENT)
		return r;
	bool there = r == 0;
	if (there) {
		k->certificate = arena_dup(k->arena, json_field(doc_json(k->arena, d.body), "certificate"));
		r = seal_open(k->arena, d.secret, CONTEXT, &k->key);
		if (r < 0 || k->follows || lasts(k->certificate))
			return r;
	}
	r = authority_make(k);
	if (r < 0)
		return r;
	json_t *body = doc_json(k->arena, STR("{}"));
	json_put_str(body, "certificate", k->certificate);
	d = (struct doc){.kind = STR(AUTHORITY_KIND),
	                 .id = STR(AUTHORITY_ID),
	                 .parent = STR(""),
	                 .created_ms = clock_now_ms(),
	                 .body = json_text(k->arena, body),
	                 .secret = seal(k->arena, k->key, CONTEXT)};
	return there ? tx_update(tx, &d) : tx_insert(tx, &d);
}

static int issue(struct arena *a, const struct pair *ca, const char *id, bool server, struct str *ret_certificate,
                 struct str *ret_key)
{
	struct pair own = {0};
	struct str name = arena_printf(a, "DNS:%s" HOST_DOMAIN, id);
	int r = pair_begin_named(&own, server ? CERT_SERVER : CERT_CLIENT, id, ca->cert, DAYS) &&
	                        cert_extend(own.cert, ca->cert, NID_subject_alt_name, name.p) &&
	                        pair_sign(&own, ca->key)
	                ? pair_pem(&own, a, ret_certificate, ret_key)
	                : -EIO;
	pair_free(&own);
	return r;
}

int hosts_authority(struct tx *tx, struct arena *a, struct str *ret_certificate)
{
	struct doc d;
	int r = tx_get(tx, a, AUTHORITY_KIND, STR(AUTHORITY_ID), &d);
	*ret_certificate = r == 0 ? json_field(doc_json(a, d.body), "certificate") : STR_NONE;
	return r == -ENOENT ? 0 : r;
}

int papers_make(struct store *store, struct arena *a, const char *id, bool follows, struct host_papers *ret_papers)
{
	struct keeping k = {.arena = a, .follows = follows};
	struct host_papers p = {.renew_ms = clock_now_ms() + DAYS / 2 * DAY_MS};
	int r = store_write_wait(store, keep, &k);
	if (r < 0)
		return r;
	struct pair ca = pair_parse(k.certificate, k.key);
	p.authority = k.certificate;
	r = pair_fits(&ca) ? issue(a, &ca, id, true, &p.certificate, &p.key) : -EIO;
	if (r == 0)
		r = issue(a, &ca, id, false, &p.client_certificate, &p.client_key);
	pair_free(&ca);
	if (r == 0)
		*ret_papers = p;
	return r;
}
