/* Flex clusters: clusters like any other, of one small node, in a list of their own and with a form of their own. They
 * are kept in the clusters' form, with the provider FLEX; only here it is turned into theirs. A serverless instance,
 * which shared-tier clusters could once become, is one too. */
#include "api/clusters/flex.h"

#include "api/clusters/cluster.h"
#include "api/clusters/forms.h"
#include "api/clusters/nodes.h"
#include "api/clusters/spec.h"
#include "api/clusters/store.h"
#include "api/clusters/update.h"
#include "api/clusters/view.h"
#include "api/kit/verbs.h"

#include <errno.h>

#define DISK_GB 5
#define SPEC_PATH "replicationSpecs[0].regionConfigs[0]."

/* Of a region, in whatever form. */
static const char *const place_fields[] = {"backingProviderName", "regionName"};
#define PLACE_FIELDS (sizeof place_fields / sizeof *place_fields)
/* What an update, and a way to another tier, can change. */
static const char *const free_fields[] = {"tags", "terminationProtectionEnabled"};
#define FREE_FIELDS (sizeof free_fields / sizeof *free_fields)

/* From the settings of a request to the clusters' form. */
static json_t *specs_make(const json_t *settings)
{
	json_t *electable = json_pack("{s:s, s:f}", "instanceSize", "FLEX", "diskSizeGB", (double)DISK_GB);
	json_t *config = json_pack("{s:s, s:o}", "providerName", "FLEX", "electableSpecs", electable);
	json_copy_fields(config, settings, place_fields, PLACE_FIELDS);
	return json_pack("[{s:[o]}]", "regionConfigs", config);
}

/* And back: { backingProviderName, diskSizeGB, providerName, regionName }. */
static json_t *settings_make(const json_t *cluster)
{
	const json_t *config = region_at(cluster, 0, 0);
	json_t *to = json_object();
	json_object_set(to, "backingProviderName", json_object_get(config, "backingProviderName"));
	json_object_set(to, "diskSizeGB", json_object_get(json_object_get(config, "electableSpecs"), "diskSizeGB"));
	json_put_z(to, "providerName", "FLEX");
	json_object_set(to, "regionName", json_object_get(config, "regionName"));
	return to;
}

static struct str body_text(struct call *c, json_t *body)
{
	return json_text(c->arena, json_keep(c->arena, body));
}

/* Takes the settings, which an upgraded cluster has no more. */
static struct str view_text(struct call *c, const json_t *cluster, json_t *settings)
{
	static const char *const same[] = {"clusterType",
	                                   "createDate",
	                                   "dbVersion",
	                                   "groupId",
	                                   "id",
	                                   "name",
	                                   "stateName",
	                                   "tags",
	                                   "terminationProtectionEnabled",
	                                   "versionReleaseSystem"};
	static const char *const kinds[] = {"standard", "standardSrv"};
	const json_t *strings = json_object_get(cluster, "connectionStrings");
	json_t *to = json_object(), *shown = json_object();
	json_copy_fields(to, cluster, same, sizeof same / sizeof *same);
	json_copy_fields(shown, strings, kinds, 2);
	json_put(to, "connectionStrings", shown);
	json_put(to, "backupSettings", json_pack("{s:b}", "enabled", true));
	json_put(to, "providerSettings", settings);
	return body_text(c, to);
}

static struct str flex_text(struct call *c, const struct doc *d)
{
	const json_t *cluster = doc_json(c->arena, d->body);
	return view_text(c, cluster, settings_make(cluster));
}

/* There is no status to ask beside it. */
static void flex_links(struct call *c, const struct doc *d)
{
	struct cluster cluster = cluster_of(c->arena, d);
	cluster_progress_header(c, &cluster);
}

static void body_write(struct call *c, struct str body, struct str name)
{
	entity_write(c, &c->out, body, resource_flex_cluster.self, resource_flex_cluster.key_param, name, false);
}

/* What is wrong with the one region is said in the words of the request. */
static int fail_faults(struct call *c, struct faults *faults)
{
	for (size_t i = 0; i < faults->count && i < FAULTS_MAX; i++) {
		struct str *path = &faults->list[i].path;
		if (str_starts(*path, STR(SPEC_PATH)))
			*path = arena_printf(c->arena, "providerSettings.%.*s", (int)(path->n - strlen(SPEC_PATH)),
			                     path->p + strlen(SPEC_PATH));
	}
	return call_fail_faults(c, faults);
}

static int create(struct call *c, struct cluster *ret_cluster)
{
	static const char *const same[] = {"name", "tags", "terminationProtectionEnabled"};
	json_t *body = json_keep(c->arena, json_object());
	struct faults faults = {.count = 0};
	json_copy_fields(body, c->body, same, sizeof same / sizeof *same);
	json_put(body, "replicationSpecs", specs_make(json_object_get(c->body, "providerSettings")));
	int result = cluster_validate(c, body, NULL, &faults);
	if (result == 0 && faults.count)
		result = fail_faults(c, &faults);
	return result < 0 ? result : cluster_create(c, FLEX_KIND, body, false, ret_cluster);
}

static json_t *patch_of(struct call *c, const json_t *cluster)
{
	json_t *patch = json_object();
	json_copy_fields(patch, c->body, free_fields, FREE_FIELDS);
	return patch;
}

static int flex_put(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	return cluster_put_by(c, d, old, create, patch_of);
}

const struct resource_hooks flex_hooks = {
        .text = flex_text, .links = flex_links, .save = flex_put, .drop = cluster_drop};

static void dedicated_check(struct call *c, struct faults *faults)
{
	const json_t *specs = json_object_get(c->body, "replicationSpecs");
	if (!json_array_size(specs))
		faults_add(faults, c->arena, STR("replicationSpecs"), "is required: what the cluster shall become");
	else if (cluster_is_tenant(c->body))
		faults_add(faults, c->arena, STR(SPEC_PATH "providerName"), "must be one of AWS, AZURE, GCP");
}

/* It is a dedicated cluster from now on, that is being changed; the answer shows it for the last time in this form. */
int flex_upgrade(struct call *c)
{
	struct doc d;
	struct faults faults = {.count = 0};
	struct str name = json_field(c->body, "name");
	int result = tx_get_by_name(c->tx, c->arena, FLEX_KIND, c->group.id, name, &d);
	if (result < 0)
		return result == -ENOENT ? call_missing(c, &resource_flex_cluster, name) : result;
	struct cluster cluster = cluster_of(c->arena, &d);
	result = cluster_check_change(c, &cluster);
	if (result < 0)
		return result;
	dedicated_check(c, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	json_t *settings = settings_make(cluster.body),
	       *patch = cluster_from(c->arena, FORM_CURRENT, c->body, cluster.body);
	json_keep(c->arena, patch);
	json_keep(c->arena, settings);
	result = cluster_move(c->tx, c->arena, &cluster, CLUSTER_KIND);
	if (result == 0)
		result = cluster_update_to(c, &cluster, patch);
	if (result < 0)
		return result;
	body_write(c, view_text(c, cluster.body, json_incref(settings)), cluster.doc.name);
	return 0;
}

static void serverless_write(struct call *c, const json_t *cluster)
{
	static const char *const same[] = {"createDate", "dbVersion", "groupId", "id",
	                                   "name",       "stateName", "tags",    "terminationProtectionEnabled"};
	const json_t *strings = json_object_get(cluster, "connectionStrings");
	json_t *to = json_object(), *shown = json_object(),
	       *settings = json_pack("{s:s, s:s, s:i}", "providerName", "SERVERLESS", "effectiveProviderName", "FLEX",
	                             "effectiveDiskSizeGBLimit", DISK_GB);
	json_copy_fields(to, cluster, same, sizeof same / sizeof *same);
	json_copy_fields(shown, strings, (const char *const[]){"standardSrv"}, 1);
	json_copy_fields(settings, region_at(cluster, 0, 0), place_fields, PLACE_FIELDS);
	json_put(to, "connectionStrings", shown);
	json_put(to, "providerSettings", settings);
	json_put(to, "serverlessBackupOptions", json_pack("{s:b}", "serverlessContinuousBackupEnabled", false));
	body_write(c, body_text(c, to), json_field(cluster, "name"));
}

int flex_become(struct call *c, struct cluster *cluster, json_t *patch)
{
	json_t *settings = json_clone(c->arena, json_object_get(c->body, "providerSettings"));
	for (size_t i = 0; i < PLACE_FIELDS; i++)
		if (!json_field(settings, place_fields[i]).n)
			json_copy_fields(settings, region_at(cluster->body, 0, 0), &place_fields[i], 1);
	json_put(patch, "replicationSpecs", specs_make(settings));
	int result = cluster_move(c->tx, c->arena, cluster, FLEX_KIND);
	return result < 0 ? result : cluster_update_to(c, cluster, patch);
}

int flex_from_tenant(struct call *c)
{
	struct str name = json_field(c->body, "name");
	struct cluster cluster;
	struct faults faults = {.count = 0};
	json_t *patch = json_keep(c->arena, json_object());
	if (!name.n)
		faults_add(&faults, c->arena, STR("name"), "is required");
	int result = faults.count ? 0 : cluster_load_named(c, name, &cluster);
	if (result == 0 && !faults.count)
		result = cluster_check_change(c, &cluster);
	if (result < 0)
		return result;
	if (!faults.count && !cluster_is_tenant(cluster.body))
		faults_add(&faults, c->arena, STR("name"), "%.*s is no shared-tier cluster", STR_ARG(name));
	if (faults.count)
		return call_fail_faults(c, &faults);
	json_copy_fields(patch, c->body, free_fields, FREE_FIELDS);
	result = flex_become(c, &cluster, patch);
	if (result < 0)
		return result;
	serverless_write(c, cluster.body);
	return 0;
}
