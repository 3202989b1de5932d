/* The calls about federated database instances. What the schema cannot say is checked before the write, with a
 * reader: the configuration by itself, what it names, and whether the provider lets the role in. */
#include "api/data_federation/instance.h"
#include "api/data_federation/storage.h"
#include "api/exports/exports.h"
#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>

/* --- before the write */

/* What the instance would be: the body, or the stored one with the body's fields in the place of its own. */
static int wanted_make(struct call *c, struct tx *reader, json_t **ret_wanted)
{
	json_t *wanted = json_clone(c->arena, c->body);
	struct doc d;
	if (c->method != METHOD_POST) {
		int r = tx_get_by_name(reader, c->arena, FEDERATION_KIND, c->group.id, call_path(c, "tenantName"), &d);
		if (r < 0)
			return r == -ENOENT ? call_missing(c, c->op->resource, call_path(c, "tenantName")) : r;
		wanted = doc_json(c->arena, d.body);
		json_object_update(wanted, json_clone(c->arena, c->body));
	}
	*ret_wanted = wanted;
	return 0;
}

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		char k = name.p[i];
		bool plain = (k >= 'a' && k <= 'z') || (k >= 'A' && k <= 'Z') || (k >= '0' && k <= '9');
		if (!plain && (i == 0 || (k != '-' && k != '_')))
			return false;
	}
	return name.n > 0 && name.n <= 64;
}

static void region_check(const json_t *body, struct arena *a, struct faults *faults)
{
	static const char *const forms[][2] = {{"AWS", "ApiSvcDataLakeAWSRegionView"},
	                                       {"AZURE", "SvcDataFederationAzureRegion"},
	                                       {"GCP", "SvcDataFederationGCPRegion"}};
	const json_t *region = json_object_get(body, "dataProcessRegion");
	struct str provider = json_field(region, "cloudProvider");
	for (size_t i = 0; region && i < sizeof forms / sizeof *forms; i++)
		if (str_is(provider, forms[i][0]) &&
		    !schema_allows(schema_find(str_of(forms[i][1])), json_field(region, "region")))
			faults_add(faults, a, STR("dataProcessRegion.region"), "must be a region of %s", forms[i][0]);
}

static int faults_find(struct call *c, struct tx *reader, const json_t *wanted)
{
	struct faults faults = {.count = 0};
	if (!is_name(json_field(wanted, "name")))
		faults_add(&faults, c->arena, STR("name"),
		           "must have from 1 to 64 letters, digits, - and _, and begin with a letter or digit");
	region_check(wanted, c->arena, &faults);
	storage_check(json_object_get(wanted, "storage"), c->service->engine_ops->federation, c->arena, &faults);
	int r = references_check(reader, c->arena, c->group.id, wanted, &faults);
	return r == 0 && faults.count ? call_fail_faults(c, &faults) : r;
}

/* The roles that shall be asked for, once the reader is given back. */
struct proving {
	struct provider_role roles[PROVIDERS];
	bool wanted[PROVIDERS];
};

static int roles_find(struct call *c, struct tx *reader, const json_t *wanted, struct proving *p)
{
	static const enum federation_store kinds[PROVIDERS] = {STORE_S3, STORE_AZURE, STORE_GCS};
	int r = 0;
	for (size_t i = 0; r == 0 && i < PROVIDERS; i++) {
		struct str id = federation_role_id(wanted, kinds[i]);
		p->wanted[i] = id.n;
		if (id.n)
			r = provider_role_find(reader, c->arena, c->group.id, id, &p->roles[i]);
	}
	return r;
}

static int look(struct call *c, struct tx *reader)
{
	struct proving *p = arena_calloc(c->arena, 1, sizeof *p);
	json_t *wanted = NULL;
	tx_begin_read(reader);
	int r = wanted_make(c, reader, &wanted);
	if (r == 0)
		r = faults_find(c, reader, wanted);
	if (r == 0)
		r = roles_find(c, reader, wanted, p);
	tx_end_read(reader);
	c->prepared = p;
	return r;
}

static int bucket_prove(struct call *c, const struct provider_role *role, const char **ret_why)
{
	const json_t *aws = json_object_get(json_object_get(c->body, "cloudProviderConfig"), "aws");
	struct objects_options o = bucket_options_by_role(c->service, c->arena, role, -ENOTSUP);
	struct str bucket = json_field(aws, "testS3Bucket");
	struct objects *store;
	o.url = arena_printf(c->arena, "%s%.*s", bucket_schemes[PROVIDER_AWS], STR_ARG(bucket)).p;
	int r = objects_open(&o, &store);
	if (r == 0)
		objects_close(store);
	else
		*ret_why = arena_z(c->arena, str_of(objects_why()));
	return r;
}

static int role_prove(struct call *c, enum provider provider, const struct provider_role *role)
{
	static const char *const places[PROVIDERS] = {"cloudProviderConfig.aws.testS3Bucket",
	                                              "cloudProviderConfig.azure.roleId",
	                                              "cloudProviderConfig.gcp.roleId"};
	char *said = arena_calloc(c->arena, 1, PROVIDER_WHY);
	const char *why = said;
	int r = provider == PROVIDER_AWS ? bucket_prove(c, role, &why)
	                                 : provider_prove(c->service->providers, role, said);
	if (r == 0)
		return 0;
	return call_fail_field(
	        c, 400, "DATA_FEDERATION_ROLE_VALIDATION_FAILED", places[provider],
	        "the role of the project cannot read it: %s. With skipRoleValidation=true this is not asked.", why);
}

/* Asked when the body names the role: what did not change was asked before. */
static int roles_prove(struct call *c, const struct proving *p)
{
	int r = 0;
	if (call_query_bool(c, "skipRoleValidation", false) || !json_object_get(c->body, "cloudProviderConfig"))
		return 0;
	for (size_t i = 0; r == 0 && i < PROVIDERS; i++)
		if (p->wanted[i])
			r = role_prove(c, (enum provider)i, &p->roles[i]);
	return r;
}

int data_federation_prepare(struct call *c)
{
	int r = instances_offered(c);
	if (r == 0)
		r = prepare_with_reader(c, look);
	return r < 0 ? r : roles_prove(c, c->prepared);
}

/* --- the write */

/* Beside the first cluster that it reads; or here. */
static int host_choose(struct call *c, const json_t *body, struct str *ret_host)
{
	const json_t *stores = json_object_get(json_object_get(body, "storage"), "stores");
	struct cluster cluster;
	*ret_host = hosts_binds() ? hosts_self() : STR_NONE;
	for (size_t i = 0; i < json_array_size(stores); i++) {
		struct str name = json_field(json_array_get(stores, i), "clusterName");
		int r = name.n ? cluster_load_named(c, name, &cluster) : -ENOENT;
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && cluster_host(&cluster).n) {
			*ret_host = cluster_host(&cluster);
			return 0;
		}
	}
	c->missing = (struct missing){0};
	return 0;
}

static int run_begin(struct call *c, const struct doc *d)
{
	json_t *run = json_new(c->arena);
	struct authority ca;
	struct str host;
	int r = host_choose(c, doc_json(c->arena, d->body), &host);
	if (r == 0)
		r = authority_ensure(c->tx, c->arena, c->group.id, &ca);
	if (r < 0)
		return r;
	json_put_str(run, "host", host);
	json_put(run, "generation", json_integer(1));
	r = doc_insert(c->tx, FEDERATION_RUN_KIND, d->id, c->group.id, STR_NONE, json_text(c->arena, run));
	return r < 0 ? r : instance_ask(c->tx, c->arena, d->id, c->group.id, host, clock_now_ms());
}

static int federation_written(struct call *c, const struct doc *d, const struct doc *old)
{
	return old ? instance_changed(c->tx, c->arena, d->id) : run_begin(c, d);
}

static int federation_update(struct call *c, const struct doc *old, json_t *document)
{
	if (instance_is(doc_json(c->arena, old->body), "DELETED"))
		return call_missing(c, c->op->resource, old->name);
	if (!str_eq(json_field(document, "name"), old->name))
		return call_fail_fault(c, STR("name"),
		                       "cannot be changed: clients and scopes of users know the instance by it");
	return 0;
}

/* One that is on its way out is as if it were gone. */
static int federation_remove(struct call *c, const struct doc *old)
{
	return instance_is(doc_json(c->arena, old->body), "DELETED") ? call_missing(c, c->op->resource, old->name) : 0;
}

static int federation_drop(struct call *c, const struct doc *d)
{
	struct doc going = *d;
	int r = call_lifecycle_move(c, &going, "DELETE");
	return r < 0 ? r : instance_changed(c->tx, c->arena, d->id);
}

static int federation_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return instance_gone_ask(tx, a, d);
}

/* --- looking */

static int federation_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	int result = instances_offered(c);
	if (result < 0)
		return result;
	return tx_get_by_name(c->tx, c->arena, r->kind, c->group.id, call_path(c, "tenantName"), ret_doc);
}

static int federation_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *all = arena_calloc(c->arena, 1, sizeof *all);
	int r = instances_offered(c);
	*all = (struct segment){.kind = FEDERATION_KIND, .parent = c->group.id};
	*ret_list = all;
	*ret_count = 1;
	return r;
}

/* Archives are read through instances that users make: the service makes none for them. */
static bool federation_takes(struct call *c, const struct doc *d)
{
	(void)d;
	return !str_is(call_query(c, "type"), "ONLINE_ARCHIVE");
}

static void aws_show(const struct service *s, const struct provider_role *role, json_t *config)
{
	const char *arn = providers_aws_arn(s->providers);
	json_put_str(config, "externalId", role->external_id);
	json_put_str(config, "iamAssumedRoleARN", role->arn);
	if (arn)
		json_put_z(config, "iamUserARN", arn);
}

static void azure_show(const struct service *s, const struct provider_role *role, json_t *config)
{
	const char *app = providers_azure_app(s->providers);
	json_put_str(config, "servicePrincipalId", role->principal);
	json_put_str(config, "tenantId", role->tenant);
	if (app)
		json_put_z(config, "svcAppId", app);
}

/* What the roles are at their providers; the bucket of the test is not shown. */
static int config_show(struct call *c, json_t *entity)
{
	static const char *const names[PROVIDERS] = {"aws", "azure", "gcp"};
	json_t *all = json_object_get(entity, "cloudProviderConfig");
	for (size_t i = 0; i < PROVIDERS; i++) {
		json_t *config = json_object_get(all, names[i]);
		struct provider_role role;
		int r = config ? provider_role_find(c->tx, c->arena, c->group.id, json_field(config, "roleId"), &role)
		               : -ENOENT;
		if (r < 0 && r != -ENOENT && r != -EACCES)
			return r;
		if (config)
			json_object_del(config, "testS3Bucket");
		if (r == 0 && i == PROVIDER_AWS)
			aws_show(c->service, &role, config);
		if (r == 0 && i == PROVIDER_AZURE)
			azure_show(c->service, &role, config);
		if (r == 0 && i == PROVIDER_GCP)
			json_put_str(config, "gcpServiceAccount", role.account);
	}
	return 0;
}

static int names_show(struct call *c, const struct doc *d, json_t *entity)
{
	struct str *ids;
	size_t count = 0;
	json_t *names = json_array(), *private = json_array();
	json_add_str(names, instance_host_name(c->service, c->arena, d, STR_NONE));
	json_put(entity, "hostnames", names);
	json_put(entity, "privateEndpointHostnames", private);
	int r = endpoints_open(c->tx, c->arena, d->parent, &ids, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		json_t *one = json_object();
		json_put_str(one, "hostname", instance_host_name(c->service, c->arena, d, ids[i]));
		json_put_str(one, "privateEndpoint", ids[i]);
		json_array_append_new(private, one);
	}
	return r;
}

static void clusters_show(const struct call *c, json_t *entity)
{
	json_t *stores = json_object_get(json_object_get(entity, "storage"), "stores");
	for (size_t i = 0; i < json_array_size(stores); i++)
		if (str_is(json_field(json_array_get(stores, i), "provider"), "svc"))
			json_put_str(json_array_get(stores, i), "projectId", c->group.id);
}

/* The reference's form has no place for where it listens, nor for why it does not go on: headers tell. */
static int headers_show(struct call *c, const struct doc *d)
{
	struct instance x;
	int r = instance_get(c->tx, c->arena, d->id, &x);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (json_field(x.run, "reason").n)
		call_header(c, STR("x-steward-reason"), json_field(x.run, "reason"));
	if (json_number(x.run, "port"))
		call_header(c, STR("x-steward-endpoint"),
		            arena_printf(c->arena, "address=%.*s, port=%lld", STR_ARG(json_field(x.run, "address")),
		                         (long long)json_number(x.run, "port")));
	return 0;
}

static int federation_view(struct call *c, const struct doc *d, json_t *entity)
{
	int r = config_show(c, entity);
	if (r == 0)
		r = names_show(c, d, entity);
	clusters_show(c, entity);
	return r < 0 || c->is_list || c->op->writes ? r : headers_show(c, d);
}

const struct resource_hooks data_federation_hooks = {.load = federation_load,
                                                     .segments = federation_segments,
                                                     .takes = federation_takes,
                                                     .update = federation_update,
                                                     .written = federation_written,
                                                     .remove = federation_remove,
                                                     .drop = federation_drop,
                                                     .gone = federation_gone,
                                                     .view = federation_view};
