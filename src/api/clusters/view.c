/* From the stored document to the answer. The current form goes out as it is stored, unless a header asks for the sizes
 * in effect or something in it depends on the time. */
#include "api/clusters/view.h"

#include "api/clusters/clusters.h"
#include "api/clusters/forms.h"
#include "api/clusters/jobs.h"
#include "api/clusters/update.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

static bool is_past(const json_t *object, const char *field)
{
	int64_t ms;
	return clock_parse(json_field(object, field), &ms) && ms <= clock_now_ms();
}

const json_t *cluster_grant(const json_t *body)
{
	const json_t *grant = json_object_get(body, "vendorEmployeeAccessGrant");
	return grant && !is_past(grant, "expirationTime") ? grant : NULL;
}

bool cluster_is_pinned(const json_t *body)
{
	static const char field[] = "featureCompatibilityVersionExpirationDate";
	return json_object_get(body, field) && !is_past(body, field);
}

static bool contains(struct str body, const char *word)
{
	return memmem(body.p, body.n, word, strlen(word)) != NULL;
}

static bool header_is_true(const struct call *c, const char *name)
{
	return str_ieq(request_header(c->request, name), STR("true"));
}

/* The sizes in effect: those asked for, since nothing here scales by itself. */
static void effective_add(const json_t *cluster)
{
	static const char *const names[][2] = {{"electableSpecs", "effectiveElectableSpecs"},
	                                       {"readOnlySpecs", "effectiveReadOnlySpecs"},
	                                       {"analyticsSpecs", "effectiveAnalyticsSpecs"}};
	struct region_walk walk = {.spec = 0};
	json_t *config;
	while ((config = region_next(cluster, &walk)))
		for (size_t k = 0; k < 3 && !str_is(json_field(config, "providerName"), "TENANT"); k++)
			if (json_object_get(config, names[k][0]))
				json_put(config, names[k][1], json_deep_copy(json_object_get(config, names[k][0])));
}

static struct str view_make(struct call *c, const struct doc *d, enum cluster_form form)
{
	json_t *body = doc_json(c->arena, d->body), *older = NULL;
	if (!cluster_grant(body))
		json_object_del(body, "vendorEmployeeAccessGrant");
	if (!cluster_is_pinned(body))
		json_object_del(body, "featureCompatibilityVersionExpirationDate");
	if (form == FORM_ADVANCED)
		older = cluster_to_advanced(body);
	else if (form == FORM_LEGACY)
		older = cluster_to_legacy(c->arena, body);
	else if (header_is_true(c, "use-effective-instance-fields"))
		effective_add(body);
	if (form == FORM_CURRENT && header_is_true(c, "use-effective-fields-replication-specs"))
		json_put(body, "effectiveReplicationSpecs", json_deep_copy(json_object_get(body, "replicationSpecs")));
	if (older)
		json_keep(c->arena, older);
	return json_text(c->arena, older ? older : body);
}

static struct str cluster_text(struct call *c, const struct doc *d)
{
	enum cluster_form form = cluster_form(c->version ? c->version->response : NULL);
	bool plain = form == FORM_CURRENT && !contains(d->body, "ExpirationDate") &&
	             !contains(d->body, "expirationTime") &&
	             !request_header(c->request, "use-effective-instance-fields").p &&
	             !request_header(c->request, "use-effective-fields-replication-specs").p;
	return plain ? d->body : view_make(c, d, form);
}

static void cluster_links(struct call *c, const struct doc *d)
{
	struct cluster cluster = cluster_of(c->arena, d);
	outage_link(c, d);
	sample_link(c, d);
	if (!c->op->writes && !cluster_is(&cluster, "IDLE"))
		cluster_progress_header(c, &cluster);
}

/* The job takes it away; the document stays until then. */
int cluster_drop(struct call *c, const struct doc *d)
{
	struct cluster cluster;
	int result = cluster_get(c->tx, c->arena, d->id, &cluster);
	return result < 0 ? result : cluster_delete(c, &cluster);
}

const struct resource_hooks cluster_hooks = {
        .text = cluster_text, .links = cluster_links, .save = cluster_put, .drop = cluster_drop};

int cluster_write(struct call *c, const struct doc *d)
{
	return resource_write(c, &resource_cluster, d);
}

/* Long enough for an engine's sentence with two paths in it: the cause stands at its end. */
#define HEADER_TEXT_MAX 600

void cluster_progress_say(struct call *c, const char *what, struct str text)
{
	struct str said = arena_printf(c->arena, "%s%s%.*s", what, *what ? ": " : "", STR_ARG(text));
	char *z = arena_z(c->arena, said);
	for (char *p = z; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = ' ';
	call_header(c, STR("x-steward-progress"), (struct str){z, said.n < HEADER_TEXT_MAX ? said.n : HEADER_TEXT_MAX});
}

void cluster_progress_header(struct call *c, const struct cluster *cluster)
{
	struct job job;
	struct str why = json_field(cluster->plan, "why");
	/* While it is tried again, what went wrong is what somebody wants to know. */
	if (why.n && cluster_is(cluster, "REPAIRING"))
		cluster_progress_say(c, "failed", why);
	else if (tx_job_of(c->tx, c->arena, cluster->doc.id, &job) < 0)
		cluster_disk_header(c, cluster);
	else if (str_is(job.kind, "access") && job.error.n)
		cluster_progress_say(c, "access", job.error);
	else if (job.failed)
		cluster_progress_say(c, "failed", job.error);
	else
		cluster_progress_say(c, "", job.progress.n ? job.progress : STR("0% waiting"));
}
