/* The project's CA. Made with the project's first cluster or certificate, for ten years. Two years before its end,
 * which is as long as what it signs can be valid, another takes its place; the old one is trusted until then. */
#include "api/clusters/authority.h"

#include "api/clusters/cluster.h"
#include "api/clusters/collect.h"
#include "api/clusters/store.h"
#include "api/kit/verbs.h"
#include "base/certs.h"
#include "base/clock.h"
#include "store/seal.h"

#include <errno.h>
#include <stdio.h>

#define CA_DAYS 3650
#define LEAST_DAYS 760

static int doc_open(struct arena *a, const struct doc *d, struct authority *ret_authority)
{
	const json_t *body = doc_json(a, d->body);
	struct authority opened = {.certificate = arena_dup(a, json_field(body, "certificate")),
	                           .earlier = arena_dup(a, json_field(body, "earlier"))};
	int result = d->secret.n ? doc_unseal(a, d, &opened.key) : -EBADMSG;
	if (result == 0) {
		opened.key = arena_dup(a, opened.key);
		*ret_authority = opened;
	}
	return result;
}

int authority_load(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority)
{
	struct doc d;
	int result = tx_get(tx, a, AUTHORITY_KIND, group_id, &d);
	return result < 0 ? result : doc_open(a, &d, ret_authority);
}

int authority_certificates(struct tx *tx, struct arena *a, struct str group_id, struct str *ret_pem)
{
	struct doc d;
	int result = tx_get(tx, a, AUTHORITY_KIND, group_id, &d);
	if (result < 0)
		return result;
	const json_t *body = doc_json(a, d.body);
	struct str now = json_field(body, "certificate"), earlier = json_field(body, "earlier");
	*ret_pem = arena_printf(a, "%.*s%.*s", STR_ARG(now), STR_ARG(earlier));
	return 0;
}

static bool lasts(const struct authority *authority)
{
	struct pair ca = pair_parse(authority->certificate, STR_NONE);
	bool good = ca.cert && !cert_ends_within(ca.cert, LEAST_DAYS) && !cert_begins_later(ca.cert);
	pair_free(&ca);
	return good;
}

static int authority_make(struct arena *a, struct str group_id, struct authority *ret_authority)
{
	struct pair ca = {0};
	char name[64];
	/* A name of its own: of two with one name, verifiers may try only the first. */
	snprintf(name, sizeof name, "Steward project %.*s %llx", STR_ARG(group_id),
	         (unsigned long long)(clock_now_ms() / 1000));
	int result = pair_begin_named(&ca, CERT_CA, name, NULL, CA_DAYS) && pair_sign(&ca, ca.key)
	                     ? pair_pem(&ca, a, &ret_authority->certificate, &ret_authority->key)
	                     : -EIO;
	pair_free(&ca);
	return result;
}

int authority_ensure(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority)
{
	struct doc d;
	struct authority made = {.is_new = false};
	int result = tx_get(tx, a, AUTHORITY_KIND, group_id, &d);
	bool there = result == 0;
	if (there)
		result = doc_open(a, &d, &made);
	if ((there && result < 0) || (!there && result != -ENOENT))
		return result;
	if (!there || !lasts(&made)) {
		struct str earlier = arena_printf(a, "%.*s%.*s", STR_ARG(made.certificate), STR_ARG(made.earlier));
		result = authority_make(a, group_id, &made);
		if (result < 0)
			return result;
		made.earlier = earlier;
		made.is_new = true;
		json_t *body = doc_json(a, STR("{}"));
		json_put_str(body, "earlier", earlier);
		json_put_str(body, "certificate", made.certificate);
		d = (struct doc){.kind = STR(AUTHORITY_KIND),
		                 .id = group_id,
		                 .parent = group_id,
		                 .created_ms = clock_now_ms(),
		                 .body = json_text(a, body)};
		d.secret = doc_seal(a, &d, made.key);
		result = there ? tx_update(tx, &d) : tx_insert(tx, &d);
	}
	if (result == 0)
		*ret_authority = made;
	return result;
}

/* Some of the clusters that are looked at again: all at once would be a write that grows with everybody's. */
#define SCAN_PIECE 20

struct scan {
	const struct str *ids;
	size_t count;
};

static int look_again(struct tx *tx, struct arena *a, struct str id)
{
	struct authority authority;
	struct cluster cluster;
	int result = cluster_get(tx, a, id, &cluster);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = authority_ensure(tx, a, cluster.doc.parent, &authority);
	return result < 0 ? result : cluster_reconcile(tx, id);
}

static int piece_run(struct tx *tx, void *ctx)
{
	const struct scan *s = ctx;
	struct arena *a = arena_new();
	int result = 0;
	for (size_t i = 0; result == 0 && i < s->count && i < SCAN_PIECE; i++)
		result = look_again(tx, a, s->ids[i]);
	arena_free(a);
	return result;
}

int authority_scan_step(struct job_run *r)
{
	struct str *ids;
	struct scan s = {.ids = NULL};
	int result = clusters_collect(r->store, r->arena, &ids, &s.count);
	s.ids = ids;
	while (result == 0 && s.count && !*job_stop(r)) {
		result = store_write_wait(r->store, piece_run, &s);
		size_t done = s.count < SCAN_PIECE ? s.count : SCAN_PIECE;
		s.ids += done;
		s.count -= done;
	}
	return result < 0 ? result : s.count ? -ECANCELED : JOB_DONE;
}
