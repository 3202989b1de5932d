/* From the stored document to the answer. What is stored is what was asked for; what is shown has also the fields that
 * have a value without being asked for. */
#include "api/clusters/view.h"

#include "api/clusters/cluster.h"
#include "api/clusters/disk.h"
#include "api/clusters/forms.h"
#include "api/clusters/lifetime.h"
#include "api/clusters/nodes.h"
#include "api/clusters/outage.h"
#include "api/clusters/samples.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/update.h"
#include "api/kit/verbs.h"
#include "base/id.h"
#include "base/kept.h"
#include "call/service.h"

const json_t *cluster_grant(const json_t *body)
{
	const json_t *grant = json_object_get(body, "vendorEmployeeAccessGrant");
	return grant && !json_time_is_over(grant, "expirationTime") ? grant : NULL;
}

bool cluster_is_pinned(const json_t *body)
{
	static const char field[] = "featureCompatibilityVersionExpirationDate";
	return json_object_get(body, field) && !json_time_is_over(body, field);
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

/* Of the volumes that every size comes with. */
#define USUAL_IOPS 3000

static void volume_show(struct str provider, json_t *hardware)
{
	bool aws = str_is(provider, "AWS");
	if (aws || str_is(provider, "AZURE"))
		json_default(hardware, "diskIOPS", json_integer(USUAL_IOPS));
	if (aws)
		json_default(hardware, "ebsVolumeType", json_string("STANDARD"));
	else
		json_object_del(hardware, "ebsVolumeType");
}

static void tenant_show(json_t *hardware)
{
	struct str size = json_field(hardware, "instanceSize");
	json_default(hardware, "diskSizeGB", json_real(str_is(size, "M0") ? 0.5 : str_is(size, "M2") ? 2 : 5));
}

/* Nodes of every kind; those that are not there have the size of the others. */
static void region_show(json_t *config, const json_t *like)
{
	struct str provider = json_field(config, "providerName");
	if (region_is_shared(config)) {
		tenant_show(json_default(config, "electableSpecs", json_object()));
		return;
	}
	for (int h = 0; h < HARDWARE; h++) {
		json_t *hardware = json_object_get(config, hardware_fields[h]);
		if (!hardware && !like)
			continue;
		if (!hardware) {
			static const char *const same[] = {"instanceSize", "diskSizeGB"};
			hardware = json_pack("{s:i}", "nodeCount", 0);
			json_copy_fields(hardware, like, same, 2);
			json_put(config, hardware_fields[h], hardware);
		}
		volume_show(provider, hardware);
		/* A number is written in two ways. */
		if (json_is_integer(json_object_get(hardware, "diskSizeGB")))
			json_put(hardware, "diskSizeGB", json_real((double)json_number(hardware, "diskSizeGB")));
	}
}

void cluster_show(json_t *body)
{
	const json_t *specs = json_object_get(body, "replicationSpecs");
	struct region_walk walk = {.spec = 0};
	json_t *config;
	while ((config = region_next(body, &walk)))
		region_show(config, shard_hardware(json_array_get(specs, walk.spec)));
	if (!json_object_get(body, "featureCompatibilityVersion"))
		json_put_str(body, "featureCompatibilityVersion", json_field(body, "dbMajorVersion"));
	schema_add_shown(resource_cluster.schema, body);
}

/* How a stored cluster is shown depends on this, and on the clock where a part of it ends by itself. */
struct shown {
	enum cluster_form form;
	bool effective;
	struct str source;     /* the stored bytes: a revision could be that of an earlier life, as a flex cluster */
	char name[ID_LEN + 2]; /* for base/kept.h */
};

static struct shown shown_of(struct call *c, const struct doc *d)
{
	struct shown s = {.form = cluster_form(c->version ? c->version->response : NULL), .source = d->body};
	s.effective = s.form == FORM_CURRENT &&
	              str_ieq(request_header(c->request, "use-effective-instance-fields"), STR("true"));
	/* The oldest form shows when the cluster ends, from when it was made and from its plan. */
	if (s.form == FORM_LEGACY)
		s.source = arena_printf(c->arena, "%lld%.*s%.*s", (long long)d->created_ms, STR_ARG(d->body),
		                        STR_ARG(d->secret));
	str_copy(d->id, s.name + 1, sizeof s.name - 1);
	s.name[0] = (char)('0' + 2 * s.form + s.effective);
	return s;
}

static bool ends_by_itself(const json_t *body)
{
	return json_object_get(body, "vendorEmployeeAccessGrant") ||
	       json_object_get(body, "featureCompatibilityVersionExpirationDate");
}

/* ret_timed: it will be shown otherwise after a while. */
static struct str text_make(struct call *c, const struct doc *d, const struct shown *s, bool *ret_timed)
{
	json_t *body = doc_json(c->arena, d->body), *older = NULL;
	enum cluster_form form = s->form;
	*ret_timed = ends_by_itself(body);
	if (!cluster_grant(body))
		json_object_del(body, "vendorEmployeeAccessGrant");
	if (!cluster_is_pinned(body))
		json_object_del(body, "featureCompatibilityVersionExpirationDate");
	cluster_show(body);
	if (form == FORM_ADVANCED)
		older = cluster_to_advanced(body);
	else if (form == FORM_LEGACY)
		older = cluster_to_legacy(c->arena, body);
	else if (s->effective)
		effective_add(body);
	json_object_del(body, CLUSTER_BACKUPS_ASKED);
	if (form == FORM_CURRENT)
		json_put(body, "effectiveReplicationSpecs", json_incref(json_object_get(body, "replicationSpecs")));
	if (older)
		json_keep(c->arena, older);
	if (form == FORM_LEGACY)
		lifetime_show(c->arena, d, older);
	return json_text(c->arena, older ? older : body);
}

static struct str cluster_text(struct call *c, const struct doc *d)
{
	const struct shown s = shown_of(c, d);
	struct kept *kept = call_kept(c);
	struct str text;
	bool timed;
	c->is_whole = true;
	if (kept && kept_get(kept, str_of(s.name), s.source, &text))
		return text;
	text = text_make(c, d, &s, &timed);
	c->momentary |= timed;
	if (kept && !timed)
		kept_put(kept, call_key(c), str_of(s.name), s.source, text);
	return text;
}

static void cluster_links(struct call *c, const struct doc *d)
{
	outage_link(c, d);
	sample_link(c, d);
	for (size_t i = 0; i < cluster_part_count; i++)
		if (cluster_parts[i]->links)
			cluster_parts[i]->links(c, d);
	if (c->op->writes || str_is(document_text(c->arena, d->body, STR("stateName")), "IDLE"))
		return;
	struct cluster cluster = cluster_of(c->arena, d);
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
	const struct resource *flex = &resource_flex_cluster;
	if (!str_is(d->kind, FLEX_KIND))
		return resource_write(c, &resource_cluster, d);
	/* It has just become one, and is found there from now on. */
	entity_write(c, &c->out, cluster_text(c, d), flex->self, flex->key_param, d->name, false);
	return 0;
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
	c->momentary = true; /* the engine knows whether a disk is full */
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
