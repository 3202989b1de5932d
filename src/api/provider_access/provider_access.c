/* Cloud provider access. A role is made without asking anybody; authorizing it asks the provider, and keeps nothing of
 * what that gives but the fact: credentials stay in memory (providers/). */
#include "api/provider_access/provider_access.h"

#include "api/kit/verbs.h"
#include "api/provider_access/roles.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

/* From a service principal at Azure to the organization that authorized it first. Nothing there tells tenants of this
 * service apart, as AWS's external id does: whoever else names the same principal is refused. */
#define PRINCIPAL_ORG_REF "azure_principal_org"
#define USES_TOLD 20

static const struct {
	const char *list, *added, *updated, *deleted;
} words[PROVIDERS] = {{"awsIamRoles", "CLOUD_PROVIDER_ACCESS_AWS_IAM_ROLE_ADDED",
                       "CLOUD_PROVIDER_ACCESS_AWS_IAM_ROLE_UPDATED", "CLOUD_PROVIDER_ACCESS_AWS_IAM_ROLE_DELETED"},
                      {"azureServicePrincipals", "CLOUD_PROVIDER_ACCESS_AZURE_SERVICE_PRINCIPAL_ADDED",
                       "CLOUD_PROVIDER_ACCESS_AZURE_SERVICE_PRINCIPAL_UPDATED",
                       "CLOUD_PROVIDER_ACCESS_AZURE_SERVICE_PRINCIPAL_DELETED"},
                      {"gcpServiceAccounts", "CLOUD_PROVIDER_ACCESS_GCP_SERVICE_ACCOUNT_ADDED",
                       "CLOUD_PROVIDER_ACCESS_GCP_SERVICE_ACCOUNT_UPDATED",
                       "CLOUD_PROVIDER_ACCESS_GCP_SERVICE_ACCOUNT_DELETED"}};

enum provider role_provider(const json_t *role)
{
	enum provider provider = PROVIDER_AWS;
	(void)!provider_of_name(json_field(role, "providerName"), &provider);
	return provider;
}

struct provider_role role_facts(const json_t *role)
{
	return (struct provider_role){.provider = role_provider(role),
	                              .id = json_field(role, "roleId"),
	                              .arn = json_field(role, "iamAssumedRoleArn"),
	                              .external_id = json_field(role, "svcAssumedRoleExternalId"),
	                              .tenant = json_field(role, "tenantId"),
	                              .principal = json_field(role, "servicePrincipalId"),
	                              .account = json_field(role, "gcpServiceAccountForSvc")};
}

int provider_role_find(struct tx *tx, struct arena *a, struct str group_id, struct str id,
                       struct provider_role *ret_role)
{
	struct doc d;
	int r = id.n ? tx_get(tx, a, PROVIDER_ROLE_KIND, id, &d) : -ENOENT;
	if (r == 0 && !str_eq(d.parent, group_id))
		r = -ENOENT;
	if (r < 0)
		return r;
	const json_t *body = doc_json(a, d.body);
	if (!json_field(body, "authorizedDate").n)
		return -EACCES;
	*ret_role = role_facts(body);
	return 0;
}

/* --- a new one */

static json_t *uuid_make(void)
{
	unsigned char b[16];
	char hex[33];
	random_bytes(b, sizeof b);
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	hex_encode(b, sizeof b, hex);
	return json_sprintf("%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

static int app_check(struct call *c, const json_t *document)
{
	struct str given = json_field(document, "svcAzureAppId");
	const char *app = providers_azure_app(c->service->providers);
	if (!given.n || str_ieq(given, str_of(app)))
		return 0;
	return call_fail_fault(c, STR("svcAzureAppId"), "is the id of this service's application: %s", app);
}

static int role_create(struct call *c, json_t *document)
{
	enum provider provider = role_provider(document);
	struct providers *p = c->service->providers;
	event_set_type(c, words[provider].added);
	if (!providers_offer(p, provider))
		return call_fail_field(c, 400, "CLOUD_PROVIDER_NOT_CONFIGURED", "providerName",
		                       "the operator of this service has configured nothing for %s.",
		                       provider_names[provider]);
	switch (provider) {
	case PROVIDER_AWS:
		json_put_z(document, "svcAWSAccountArn", providers_aws_arn(p));
		json_put(document, "svcAssumedRoleExternalId", uuid_make());
		return 0;
	case PROVIDER_AZURE:
		if (app_check(c, document) < 0)
			return -400;
		json_put_z(document, "svcAzureAppId", providers_azure_app(p));
		json_put_time(document, "lastUpdatedDate", clock_now_ms());
		return 0;
	case PROVIDER_GCP:
		json_put_str(document, "gcpServiceAccountForSvc", providers_google_account(p, c->arena));
		json_put_z(document, "status", "IN_PROGRESS");
		return 0;
	}
	return 0;
}

static int role_written(struct call *c, const struct doc *d, const struct doc *old)
{
	bool is_google = role_provider(doc_json(c->arena, d->body)) == PROVIDER_GCP;
	return !old && is_google ? role_account_begin(c->tx, c->arena, d) : 0;
}

/* --- authorizing */

static bool is_role_arn(struct str arn)
{
	struct str part[6], rest = arn;
	for (unsigned i = 0; i < 5; i++)
		if (!str_cut(rest, ':', &part[i], &rest))
			return false;
	part[5] = rest;
	bool digits = part[4].n == 12;
	for (size_t i = 0; digits && i < part[4].n; i++)
		digits = part[4].p[i] >= '0' && part[4].p[i] <= '9';
	for (size_t i = 0; i < arn.n; i++) {
		char ch = arn.p[i];
		if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
		      (ch && strchr(":/+=,.@_-", ch))))
			return false;
	}
	return str_is(part[0], "arn") && part[1].n && str_is(part[2], "iam") && !part[3].n && digits &&
	       str_starts(part[5], STR("role/")) && part[5].n > strlen("role/");
}

/* That there is all that the provider has to be asked with. */
static int facts_check(struct call *c, const json_t *role)
{
	struct provider_role facts = role_facts(role);
	struct faults faults = {.count = 0};
	if (facts.provider == PROVIDER_AWS && !facts.arn.n)
		faults_add(&faults, c->arena, STR("iamAssumedRoleArn"), "is required: the ARN of the role to assume");
	else if (facts.provider == PROVIDER_AWS && !is_role_arn(facts.arn))
		faults_add(&faults, c->arena, STR("iamAssumedRoleArn"),
		           "must be the ARN of a role, as arn:aws:iam::123456789012:role/NAME");
	if (facts.provider == PROVIDER_AZURE && !facts.tenant.n)
		faults_add(&faults, c->arena, STR("tenantId"), "is required: the id of the directory");
	if (facts.provider == PROVIDER_AZURE && !facts.principal.n)
		faults_add(&faults, c->arena, STR("servicePrincipalId"),
		           "is required: the id of the application's service principal in the directory");
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static struct str principal_key(struct arena *a, const struct provider_role *facts)
{
	return arena_lower(a, arena_printf(a, "%.*s/%.*s", STR_ARG(facts->tenant), STR_ARG(facts->principal)));
}

/* 0: nobody has it, or this organization. */
static int principal_check(struct call *c, const struct provider_role *facts, bool *ret_free)
{
	struct str owner;
	*ret_free = false;
	if (facts->provider != PROVIDER_AZURE)
		return 0;
	int r = tx_ref_get(c->tx, c->arena, PRINCIPAL_ORG_REF, principal_key(c->arena, facts), &owner);
	*ret_free = r == -ENOENT;
	if (r == 0 && !str_eq(owner, c->org.id))
		return call_fail_field(c, 409, "CLOUD_PROVIDER_ACCESS_PRINCIPAL_TAKEN", "servicePrincipalId",
		                       "another organization of this service has authorized this service principal.");
	return r == -ENOENT ? 0 : r;
}

/* What the role will be, checked; asks nobody yet. */
static int wanted_load(struct call *c, json_t **ret_role)
{
	struct doc d;
	bool is_free;
	int r = resource_load(c, &resource_provider_role, &d);
	if (r < 0)
		return r;
	json_t *role = doc_json(c->arena, d.body);
	if (!str_eq(json_field(role, "providerName"), json_field(c->body, "providerName")))
		return call_fail_fault(c, STR("providerName"), "cannot be changed: the role is of %s",
		                       provider_names[role_provider(role)]);
	json_merge(role, c->body);
	if (role_provider(role) == PROVIDER_AZURE && providers_offer(c->service->providers, PROVIDER_AZURE) &&
	    (r = app_check(c, role)) < 0)
		return r;
	struct provider_role facts = role_facts(role);
	r = facts_check(c, role);
	if (r == 0)
		r = principal_check(c, &facts, &is_free);
	if (r == 0)
		*ret_role = role;
	return r;
}

/* This thread has no reader of its own. */
static int wanted_read(struct call *c, json_t **ret_role)
{
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	tx_begin_read(reader);
	int r = wanted_load(c, ret_role);
	if (r == -ENOENT)
		r = call_not_found(c);
	tx_end_read(reader);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

static const char *field_of(enum provider provider)
{
	static const char *const fields[PROVIDERS] = {"iamAssumedRoleArn", "servicePrincipalId", "providerName"};
	return fields[provider];
}

static int role_refuse(struct call *c, const struct provider_role *role, int result, const char *why)
{
	const char *field = field_of(role->provider);
	if (result == -ENOTSUP)
		return call_fail_field(c, 400, "CLOUD_PROVIDER_NOT_CONFIGURED", "providerName",
		                       "the operator of this service has configured nothing for %s.",
		                       provider_names[role->provider]);
	struct str remedy = provider_remedy(c->service->providers, c->arena, role);
	switch (result) {
	case -EACCES:
	case -EPERM:
		return call_fail_field(c, 400, "CLOUD_PROVIDER_ACCESS_REFUSED", field, "%s. %.*s", why,
		                       STR_ARG(remedy));
	case -EKEYREJECTED:
		log_error("provider role %.*s: %s refuses this service itself: %s", STR_ARG(role->id),
		          provider_names[role->provider], why);
		return call_fail_field(c, 409, "CLOUD_PROVIDER_REFUSES_SERVICE", field,
		                       "%s. The provider refuses this service, not the role: its operator must mend "
		                       "the service's own credentials or rights.%s%.*s",
		                       why, role->provider == PROVIDER_GCP ? " " : "",
		                       role->provider == PROVIDER_GCP ? (int)remedy.n : 0, remedy.p);
	default:
		log_warn("provider role %.*s: %s", STR_ARG(role->id), why);
		return call_fail_field(c, 409, "CLOUD_PROVIDER_UNAVAILABLE", field,
		                       "%s. Nothing was changed; try again later.", why);
	}
}

/* The role may be deleted meanwhile, and the job that deletes its account be over before this makes it. */
static int account_make(struct call *c, const struct provider_role *facts, json_t **ret_role, char *why)
{
	struct providers *p = c->service->providers;
	int r = provider_account_make(p, facts->account, why), found = wanted_read(c, ret_role);
	if (found < 0 && c->problem.status == 404 && provider_account_drop(p, facts->account, why) < 0)
		log_error("the account %.*s of a role that is gone is still there: %s", STR_ARG(facts->account), why);
	return found < 0 ? found : r;
}

/* Before the write, because it waits for the provider. */
int provider_roles_prepare(struct call *c)
{
	char why[PROVIDER_WHY];
	json_t *role = NULL;
	int r = wanted_read(c, &role);
	if (r < 0)
		return r;
	struct provider_role facts = role_facts(role);
	/* Its account may be missing: making it is tried again here. */
	if (facts.provider == PROVIDER_GCP && !json_field(role, "authorizedDate").n) {
		r = account_make(c, &facts, &role, why);
		if (c->problem.status)
			return r;
	}
	if (r == 0)
		r = provider_prove(c->service->providers, &facts, why);
	c->prepared = role;
	return r < 0 ? role_refuse(c, &facts, r, why) : 0;
}

/* What was proven is what is stored. */
static bool is_proven(const json_t *proven, const json_t *document)
{
	static const char *const asked[] = {"iamAssumedRoleArn", "svcAssumedRoleExternalId", "tenantId",
	                                    "servicePrincipalId", "gcpServiceAccountForSvc"};
	bool same = true;
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		same = same && str_eq(json_field(proven, asked[i]), json_field(document, asked[i]));
	return same;
}

static int role_update(struct call *c, const struct doc *old, json_t *document)
{
	struct provider_role facts = role_facts(document);
	bool is_free;
	event_set_type(c, words[facts.provider].updated);
	if (!is_proven(c->prepared, document))
		return call_fail_about(c, 409, "CLOUD_PROVIDER_ACCESS_ROLE_CHANGED", old->id,
		                       "The role was changed at the same time. Try again.");
	int r = principal_check(c, &facts, &is_free);
	if (r == 0 && is_free)
		r = tx_ref_put(c->tx, PRINCIPAL_ORG_REF, principal_key(c->arena, &facts), c->org.id);
	json_put_time(document, "authorizedDate", clock_now_ms());
	if (facts.provider == PROVIDER_AZURE)
		json_put_time(document, "lastUpdatedDate", clock_now_ms());
	if (facts.provider == PROVIDER_GCP)
		json_put_z(document, "status", "COMPLETE");
	return r;
}

/* --- looking */

/* The path of a deletion names the provider too. */
static bool role_hides(struct call *c, const struct doc *d)
{
	struct str provider = call_path(c, "cloudProvider");
	return provider.n && !str_eq(provider, json_field(doc_json(c->arena, d->body), "providerName"));
}

/* Of all roles of the project at once, when first asked for. */
static int uses_of(struct call *c, struct role_uses **ret_uses)
{
	int r = 0;
	if (!c->noted) {
		struct role_uses *uses;
		r = role_uses_load(c->tx, c->arena, c->group.id, &uses);
		if (r == 0)
			c->noted = uses;
	}
	*ret_uses = c->noted;
	return r;
}

/* The reference's form of a use has its type alone: which it is stands in a header, for people. */
static void uses_tell(struct call *c, const struct role_uses *uses, struct str role_id)
{
	struct buf text = {0};
	const struct role_use *use;
	size_t at = 0;
	for (unsigned i = 0; i < USES_TOLD && (use = role_uses_next(uses, role_id, &at)); i++)
		buf_printf(&text, "%s%.*s", i ? ", " : "", STR_ARG(use->what));
	if (text.n)
		call_header(c, STR("x-steward-used-by"), buf_keep(&text, c->arena));
}

static int role_show(struct call *c, const struct doc *d, json_t *entity)
{
	enum provider provider = role_provider(entity);
	struct role_uses *uses;
	const struct role_use *use;
	size_t at = 0;
	json_t *list = json_array();
	int r = uses_of(c, &uses);
	while (r == 0 && (use = role_uses_next(uses, d->id, &at)))
		json_array_append_new(list, json_pack("{s:s}", "featureType", use->feature));
	json_put(entity, "featureUsages", list);
	if (provider != PROVIDER_AWS)
		json_object_del(entity, "authorizedDate");
	if (provider == PROVIDER_AZURE) {
		json_put_str(entity, "_id", d->id);
		json_object_del(entity, "roleId");
	}
	return r;
}

static int role_view(struct call *c, const struct doc *d, json_t *entity)
{
	int r = role_show(c, d, entity);
	if (r == 0)
		uses_tell(c, c->noted, d->id);
	return r;
}

/* All of them, by provider, which no verb does. */
int provider_roles_list(struct call *c)
{
	struct doc *docs;
	size_t count;
	json_t *all = json_new(c->arena);
	for (unsigned i = 0; i < PROVIDERS; i++)
		json_put(all, words[i].list, json_array());
	int r = tx_list_all(c->tx, c->arena, PROVIDER_ROLE_KIND, c->group.id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		json_t *role = doc_json(c->arena, docs[i].body);
		r = role_show(c, &docs[i], role);
		json_array_append(json_object_get(all, words[role_provider(role)].list), role);
	}
	if (r == 0)
		json_raw(&c->out, json_text(c->arena, all));
	return r;
}

/* --- the end */

static int role_remove(struct call *c, const struct doc *d)
{
	struct role_uses *uses;
	size_t at = 0;
	event_set_type(c, words[role_provider(doc_json(c->arena, d->body))].deleted);
	int r = uses_of(c, &uses);
	if (r < 0)
		return r;
	const struct role_use *use = role_uses_next(uses, d->id, &at);
	if (use)
		return call_fail_about(c, 409, "CLOUD_PROVIDER_ACCESS_ROLE_IN_USE", d->id,
		                       "The role %.*s is used by %.*s.", STR_ARG(d->id), STR_ARG(use->what));
	provider_forget(c->service->providers, d->id);
	return 0;
}

/* Also when its project is deleted. */
static int role_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return role_provider(doc_json(a, d->body)) == PROVIDER_GCP ? role_account_end(tx, a, d) : 0;
}

const struct resource_hooks provider_role_hooks = {.create = role_create,
                                                   .update = role_update,
                                                   .written = role_written,
                                                   .remove = role_remove,
                                                   .gone = role_gone,
                                                   .view = role_view,
                                                   .hides = role_hides};
