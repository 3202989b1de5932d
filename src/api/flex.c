/* Flex clusters: clusters like any other, of one small node, in a list of their own and with a form of their own. They
 * are kept in the clusters' form, with the provider FLEX; only here it is turned into theirs. A serverless instance, which
 * shared-tier clusters could once become, is one too. */
#include "api/cluster_forms.h"
#include "api/cluster_spec.h"
#include "api/cluster_update.h"
#include "api/cluster_view.h"
#include "api/verbs.h"
#include "gate/audit.h"

#include <errno.h>

int flex_list(struct call *c);
int flex_get(struct call *c);
int flex_create(struct call *c);
int flex_update(struct call *c);
int flex_delete(struct call *c);
int flex_upgrade(struct call *c);
int flex_from_tenant(struct call *c);

extern const struct resource resource_flex_cluster;

#define DISK_GB 5
#define SPEC_PATH "replicationSpecs[0].regionConfigs[0]."

/* From the settings of a request to the clusters' form. */
static json_t *specs_make(const json_t *settings)
{
	json_t *electable = json_pack("{s:s, s:f}", "instanceSize", "FLEX", "diskSizeGB", (double)DISK_GB);
	json_t *config = json_pack("{s:s, s:o}", "providerName", "FLEX", "electableSpecs", electable);
	json_object_set(config, "backingProviderName", json_object_get(settings, "backingProviderName"));
	json_object_set(config, "regionName", json_object_get(settings, "regionName"));
	return json_pack("[{s:[o]}]", "regionConfigs", config);
}

static const json_t *config_of(const json_t *cluster)
{
	const json_t *specs = json_object_get(cluster, "replicationSpecs");
	return json_array_get(json_object_get(json_array_get(specs, 0), "regionConfigs"), 0);
}

/* And back: { backingProviderName, diskSizeGB, providerName, regionName }. */
static json_t *settings_make(const json_t *cluster)
{
	const json_t *config = config_of(cluster);
	json_t *to = json_object();
	json_object_set(to, "backingProviderName", json_object_get(config, "backingProviderName"));
	json_object_set(to, "diskSizeGB", json_object_get(json_object_get(config, "electableSpecs"), "diskSizeGB"));
	json_object_set_new(to, "providerName", json_string("FLEX"));
	json_object_set(to, "regionName", json_object_get(config, "regionName"));
	return to;
}

static void fields_copy(json_t *to, const json_t *from, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (json_object_get(from, names[i]))
			json_object_set(to, names[i], json_object_get(from, names[i]));
}

static void body_write(struct call *c, json_t *body, struct str name, bool in_list)
{
	struct str text = json_text(c->arena, body);
	json_decref(body);
	entity_write(c, &c->out, text, resource_flex_cluster.self, resource_flex_cluster.key_param, name, in_list);
}

/* Takes the settings, which an upgraded cluster has no more. */
static void view_write(struct call *c, const json_t *cluster, json_t *settings, bool in_list)
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
	fields_copy(to, cluster, same, sizeof same / sizeof *same);
	fields_copy(shown, strings, kinds, 2);
	json_object_set_new(to, "connectionStrings", shown);
	json_object_set_new(to, "backupSettings",
	                    json_pack("{s:b}", "enabled", json_is_true(json_object_get(cluster, "backupEnabled"))));
	json_object_set_new(to, "providerSettings", settings);
	body_write(c, to, json_field(cluster, "name"), in_list);
}

static void flex_write(struct call *c, const struct doc *d, bool in_list)
{
	const json_t *cluster = doc_json(c->arena, d->body);
	view_write(c, cluster, settings_make(cluster), in_list);
}

static int flex_answer(struct call *c, const struct cluster *cluster)
{
	c->etag = cluster->doc.rev;
	cluster_progress_header(c, cluster); /* there is no status to ask beside it */
	flex_write(c, &cluster->doc, false);
	return 0;
}

static int flex_load(struct call *c, struct str name, struct cluster *ret_cluster)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, FLEX_KIND, c->group.id, name, &d);
	return result < 0 ? result : cluster_get(c->tx, c->arena, d.id, ret_cluster);
}

int flex_list(struct call *c)
{
	return cluster_list(c, FLEX_KIND, flex_write);
}

int flex_get(struct call *c)
{
	struct cluster cluster;
	int result = flex_load(c, call_path(c, "name"), &cluster);
	return result < 0 ? result : flex_answer(c, &cluster);
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

int flex_create(struct call *c)
{
	static const char *const same[] = {"name", "tags", "terminationProtectionEnabled"};
	json_t *body = json_object();
	struct faults faults = {.count = 0};
	struct cluster cluster;
	json_keep(c->arena, body);
	fields_copy(body, c->body, same, sizeof same / sizeof *same);
	json_object_set_new(body, "replicationSpecs", specs_make(json_object_get(c->body, "providerSettings")));
	int result = cluster_judge(c, body, NULL, &faults);
	if (result == 0 && faults.count)
		result = fail_faults(c, &faults);
	if (result == 0)
		result = cluster_create(c, FLEX_KIND, body, false, &cluster);
	if (result < 0)
		return result;
	c->location = link_href(c, resource_flex_cluster.self, resource_flex_cluster.key_param, cluster.doc.name);
	return flex_answer(c, &cluster);
}

int flex_update(struct call *c)
{
	static const char *const same[] = {"tags", "terminationProtectionEnabled"};
	struct cluster cluster;
	json_t *patch = json_keep(c->arena, json_object());
	fields_copy(patch, c->body, same, sizeof same / sizeof *same);
	int result = flex_load(c, call_path(c, "name"), &cluster);
	if (result == 0)
		result = cluster_check_change(c, &cluster);
	if (result == 0)
		result = cluster_update_to(c, &cluster, patch);
	return result < 0 ? result : flex_answer(c, &cluster);
}

int flex_delete(struct call *c)
{
	struct cluster cluster;
	int result = flex_load(c, call_path(c, "name"), &cluster);
	return result < 0 ? result : cluster_delete(c, &cluster);
}

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
	struct cluster cluster;
	struct faults faults = {.count = 0};
	int result = flex_load(c, json_field(c->body, "name"), &cluster);
	if (result == 0)
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
	view_write(c, cluster.body, json_incref(settings), false);
	return 0;
}

static void serverless_write(struct call *c, const json_t *cluster)
{
	static const char *const same[] = {"createDate", "dbVersion", "groupId", "id",
	                                   "name",       "stateName", "tags",    "terminationProtectionEnabled"};
	const json_t *config = config_of(cluster), *strings = json_object_get(cluster, "connectionStrings");
	json_t *to = json_object(), *shown = json_object(),
	       *settings = json_pack("{s:s, s:s, s:i}", "providerName", "SERVERLESS", "effectiveProviderName", "FLEX",
	                             "effectiveDiskSizeGBLimit", DISK_GB);
	fields_copy(to, cluster, same, sizeof same / sizeof *same);
	if (json_object_get(strings, "standardSrv"))
		json_object_set(shown, "standardSrv", json_object_get(strings, "standardSrv"));
	json_object_set(settings, "backingProviderName", json_object_get(config, "backingProviderName"));
	json_object_set(settings, "regionName", json_object_get(config, "regionName"));
	json_object_set_new(to, "connectionStrings", shown);
	json_object_set_new(to, "providerSettings", settings);
	json_object_set_new(to, "serverlessBackupOptions",
	                    json_pack("{s:b}", "serverlessContinuousBackupEnabled", false));
	body_write(c, to, json_field(cluster, "name"), false);
}

int flex_from_tenant(struct call *c)
{
	static const char *const same[] = {"tags", "terminationProtectionEnabled"};
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
	fields_copy(patch, c->body, same, sizeof same / sizeof *same);
	json_object_set_new(patch, "replicationSpecs", specs_make(json_object_get(c->body, "providerSettings")));
	result = cluster_move(c->tx, c->arena, &cluster, FLEX_KIND);
	if (result == 0)
		result = cluster_update_to(c, &cluster, patch);
	if (result < 0)
		return result;
	serverless_write(c, cluster.body);
	return 0;
}
