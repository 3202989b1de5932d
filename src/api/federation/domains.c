/* Domains that federations have proven to be theirs.
 *
 * An identity provider makes accounts for the people of its domains, and whoever owns an organization may write any
 * domain into its settings. A provider that was believed for it took the people of others: an account that it had made
 * shut its owner out of the right organization, and twenty organizations that named a domain hid the right provider. So
 * a provider counts only for domains that its federation has proven:
 *
 *   a record    _steward.example.com  TXT  "federation=ID"
 *   a file      https://example.com/.well-known/steward-federation.json: {"federations": ["ID"]}
 *   the operator  steward domains approve
 *
 * Several federations may prove one domain: only who holds the domain can say so.
 *
 *   "proven_domain"  parent = domain, name = federation; body {"how","provenAt"} */
#include "api/federation/domains.h"

#include "api/federation/federation.h"
#include "api/federation/identity_providers.h"
#include "api/federation/membership.h"
#include "base/clock.h"
#include "base/fair.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "identity/dns.h"
#include "identity/issuer.h"
#include "trail/events.h"

#include <errno.h>
#include <pthread.h>

#define KIND "proven_domain"
#define JOB "domain_check"
#define DAY_MS 86400000LL
#define LOOK_FIRST_MS 10000LL    /* between the first two looks, */
#define LOOK_LAST_MS 3600000LL   /* and between later ones, */
#define LOOK_FOR_MS (7 * DAY_MS) /* for so long after the domains were last changed */
#define LOOK_NEXT_MS 2000LL      /* to the next domain of one federation, */
#define LOOK_SHARE 20            /* or as many times as long as the look took */
#define LOOK_SLOW_MS 2000LL      /* a look in which a name server was asked twice, or worse */
#define LISTED_MAX 500

static struct {
	const char *name_server, *ca_file;
} outside;

/* "none": nothing is looked for outside, and only the operator's word counts. Where a name server is given, names are
 * not resolved as the system does it, which could find the file of somebody else: only records count. */
static bool looks_outside(void)
{
	return !outside.name_server || strcmp(outside.name_server, "none") != 0;
}

void domains_setup(const char *name_server, const char *ca_file)
{
	outside.name_server = name_server;
	outside.ca_file = ca_file;
}

int domain_is_proven(struct tx *tx, struct arena *a, struct str federation_id, struct str domain, bool *ret_is)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, KIND, domain, federation_id, &d);
	*ret_is = result == 0;
	return result == -ENOENT ? 0 : result;
}

int domain_provers(struct tx *tx, struct arena *a, struct str domain, size_t most, struct doc **ret_docs,
                   size_t *ret_count)
{
	return tx_list(tx, a, KIND, domain, 0, (int64_t)most, ret_docs, ret_count);
}

/* In each organization of the federation: all of them depend on it. */
static int domain_tell(struct tx *tx, struct arena *a, struct str federation_id, struct str domain, const char *type)
{
	const struct event_detail details[] = {{.name = "domain", .text = domain}};
	struct doc *orgs;
	size_t count = 0;
	int result = connected_orgs(tx, a, federation_id, &orgs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = event_service_about(
		        tx, a, type,
		        &(struct event_about){.org_id = orgs[i].id, .details = details, .detail_count = 1});
	return result;
}

int domain_prove(struct tx *tx, struct arena *a, struct str federation_id, struct str domain, const char *how)
{
	bool is = false;
	char now[CLOCK_TEXT];
	int result = domain_is_proven(tx, a, federation_id, domain, &is);
	if (result < 0 || is)
		return result;
	clock_format(clock_now_ms(), now);
	struct doc d = doc_new(a, KIND, domain, federation_id,
	                       arena_printf(a, "{\"how\":\"%s\",\"provenAt\":\"%s\"}", how, now));
	result = tx_insert(tx, &d);
	if (result < 0)
		return result;
	log_info("domains: %.*s is proven for federation %.*s, by %s", STR_ARG(domain), STR_ARG(federation_id), how);
	return domain_tell(tx, a, federation_id, domain, "DOMAIN_VERIFIED");
}

int domain_withdraw(struct tx *tx, struct arena *a, struct str federation_id, struct str domain)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, KIND, domain, federation_id, &d);
	if (result == 0)
		result = tx_delete(tx, KIND, d.id);
	if (result == 0)
		result = federation_distrust(tx, a, federation_id, domain);
	return result < 0 ? result : domain_tell(tx, a, federation_id, domain, "DOMAIN_DELETED");
}

int domain_federation(struct tx *tx, struct arena *a, struct str id, struct str *ret_federation)
{
	struct doc d;
	int result = id_is_valid(id) ? tx_get(tx, a, "connected_org", id, &d) : -ENOENT;
	if (result == 0)
		*ret_federation = d.parent;
	if (result != -ENOENT)
		return result;
	result = id_is_valid(id) ? tx_get(tx, a, "federation", id, &d) : -ENOENT;
	if (result == 0)
		*ret_federation = d.id;
	return result;
}

/* Looking outside. */

int domains_check_later(struct tx *tx, struct str federation_id)
{
	struct job job = {.kind = STR(JOB), .subject = federation_id, .due_ms = clock_now_ms()};
	int result = tx_jobs_cancel(tx, JOB, federation_id);
	return result < 0 || !looks_outside() ? result : tx_job_add(tx, &job);
}

/* The federation's domains that are not proven. */
static int waiting_find(struct tx *tx, struct arena *a, struct str federation_id, json_t *waiting)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, "identity_provider", federation_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *domains = json_object_get(doc_json(a, docs[i].body), "associatedDomains");
		for (size_t k = 0; result == 0 && k < json_array_size(domains) && json_array_size(waiting) < LISTED_MAX;
		     k++) {
			bool is = true;
			struct str domain = json_item(domains, k);
			if (!json_has(waiting, domain))
				result = domain_is_proven(tx, a, federation_id, domain, &is);
			if (result == 0 && !is)
				json_add_str(waiting, domain);
		}
	}
	return result;
}

/* How the domain says that it is the federation's; NULL: it does not. */
static const char *domain_ask(struct job_run *r, struct str domain)
{
	struct str federation = r->job.subject, record = arena_printf(r->arena, "federation=%.*s", STR_ARG(federation));
	char fault[ISSUER_FAULT];
	if (dns_has_text(outside.name_server, arena_printf(r->arena, "_steward.%.*s", STR_ARG(domain)).p, record))
		return "DNS";
	if (outside.name_server || *job_stop(r))
		return NULL;
	struct issuer_request request = {
	        .url = arena_printf(r->arena, "https://%.*s/.well-known/steward-federation.json", STR_ARG(domain)).p,
	        .ca_file = outside.ca_file,
	        .is_public = true};
	json_t *said = json_keep(r->arena, issuer_ask(&request, fault));
	return json_has(json_object_get(said, "federations"), federation) ? "FILE" : NULL;
}

struct found {
	struct str domain;
	const char *how;
};

static int check_save(struct tx *tx, struct job_run *r)
{
	const struct found *f = r->save_ctx;
	json_t *waiting = json_keep(r->arena, json_array());
	int result = waiting_find(tx, r->arena, r->job.subject, waiting);
	/* It may have been taken out of the settings since. */
	return result < 0 || !json_has(waiting, f->domain)
	               ? result
	               : domain_prove(tx, r->arena, r->job.subject, f->domain, f->how);
}

/* Who names hundreds of domains whose name servers say nothing would keep a worker for a week, and two such federations
 * everybody's snapshots waiting: after a look that took long the federation waits longer still, also where its settings
 * were changed meanwhile, which asks for a look at once. Two that meet in one place take turns in it. */
#define SLOW_PLACES 1024u

static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t key;
		int64_t until_ms;
	} of[SLOW_PLACES];
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void slow_note(struct str federation_id, int64_t until_ms)
{
	uint64_t key = fair_key(federation_id);
	pthread_mutex_lock(&slow.lock);
	slow.of[key % SLOW_PLACES].key = key;
	slow.of[key % SLOW_PLACES].until_ms = until_ms;
	pthread_mutex_unlock(&slow.lock);
}

static int64_t slow_until(struct str federation_id)
{
	uint64_t key = fair_key(federation_id);
	pthread_mutex_lock(&slow.lock);
	int64_t until_ms = slow.of[key % SLOW_PLACES].key == key ? slow.of[key % SLOW_PLACES].until_ms : 0;
	pthread_mutex_unlock(&slow.lock);
	return until_ms;
}

static int look_again(struct job_run *r, int64_t pause_ms, int64_t rest_ms)
{
	pause_ms = pause_ms > LOOK_NEXT_MS ? pause_ms : LOOK_NEXT_MS;
	return job_later(r, clock_now_ms() + (pause_ms > rest_ms ? pause_ms : rest_ms));
}

/* One domain at a time, so that no federation keeps a worker for long: an answer may take some twenty seconds. */
static int check_step(struct job_run *r)
{
	json_t *waiting = json_keep(r->arena, json_array());
	int64_t age = clock_now_ms() - r->job.created_ms, pause = age / 2, begun_us = clock_mono_us(),
	        until = slow_until(r->job.subject);
	if (until > clock_now_ms())
		return job_later(r, until);
	tx_begin_read(r->reader);
	int result = waiting_find(r->reader, r->arena, r->job.subject, waiting);
	job_read_end(r);
	size_t count = json_array_size(waiting);
	if (result < 0 || !count || !looks_outside())
		return result < 0 ? result : JOB_DONE;
	uint32_t any;
	random_bytes((unsigned char *)&any, sizeof any);
	struct found *f = arena_new_of(r->arena, struct found);
	f->domain = json_item(waiting, any % count);
	f->how = domain_ask(r, f->domain);
	int64_t took = (clock_mono_us() - begun_us) / 1000, rest = took * LOOK_SHARE;
	if (took >= LOOK_SLOW_MS)
		slow_note(r->job.subject, clock_now_ms() + rest);
	if (f->how) {
		r->save = check_save;
		r->save_ctx = f;
		return count == 1 ? JOB_DONE : look_again(r, 0, rest);
	}
	if (age > LOOK_FOR_MS)
		return JOB_DONE;
	pause = pause < LOOK_FIRST_MS ? LOOK_FIRST_MS : pause > LOOK_LAST_MS ? LOOK_LAST_MS : pause;
	return look_again(r, pause / (int64_t)count, rest);
}

static const struct job_kind kinds[] = {{.name = JOB, .step = check_step, .lasts = JOB_IS_BACKGROUND}};
const struct job_kinds domains_jobs = JOB_KINDS(kinds);

/* Older stores. */

static int open_one(struct tx *tx, void *ctx, const struct doc *d)
{
	struct arena *a = arena_new();
	const json_t *domains = json_object_get(doc_json(a, d->body), "associatedDomains");
	int result = json_array_size(domains) ? domains_check_later(tx, d->parent) : 0;
	for (size_t i = 0; result == 0 && i < json_array_size(domains); i++)
		log_warn(
		        "domains: %.*s of federation %.*s is not proven, and nobody of it is signed in by its identity "
		        "provider: see `steward domains`",
		        STR_ARG(json_item(domains, i)), STR_ARG(d->parent));
	arena_free(a);
	return result;
}

static int open_run(struct tx *tx, void *ctx)
{
	struct str value;
	int result = tx_meta_get(tx, ctx, "proven_domains", &value);
	if (result != -ENOENT)
		return result;
	result = tx_walk_all(tx, "identity_provider", open_one, NULL);
	return result < 0 ? result : tx_meta_put(tx, "proven_domains", STR("1"));
}

int domains_open(struct store *store)
{
	struct arena *a = arena_new();
	int result = store_write_wait(store, open_run, a);
	arena_free(a);
	return result;
}

/* The operator's list. */

static int listed_one(struct tx *tx, void *ctx, const struct doc *d)
{
	json_t *list = ctx;
	struct arena *a = arena_new();
	const json_t *domains = json_object_get(doc_json(a, d->body), "associatedDomains");
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(domains); i++) {
		struct doc proof = {.rev = 0};
		json_t *one = json_object();
		json_put_str(one, "domain", json_item(domains, i));
		json_put_str(one, "federationSettingsId", d->parent);
		json_put_str(one, "identityProvider", d->name);
		result = tx_get_by_name(tx, a, KIND, json_item(domains, i), d->parent, &proof);
		if (result == 0)
			json_object_update(one, doc_json(a, proof.body));
		result = result == -ENOENT ? 0 : result;
		json_array_append_new(list, one);
	}
	arena_free(a);
	return result;
}

int domains_list(struct tx *tx, json_t *list)
{
	return tx_walk_all(tx, "identity_provider", listed_one, list);
}
