/* What a configuration names: each must be the project's own. A cluster or an archive that goes later fails the
 * queries that need it, and nothing else. */
#include "api/data_federation/storage.h"

#include "api/data_federation/instance.h"

#include <errno.h>

static const struct {
	const char *config; /* of cloudProviderConfig */
	enum federation_store kind;
	enum provider provider;
} clouds[] = {
        {"aws", STORE_S3, PROVIDER_AWS}, {"azure", STORE_AZURE, PROVIDER_AZURE}, {"gcp", STORE_GCS, PROVIDER_GCP}};

struct checking {
	struct tx *tx;
	struct arena *arena;
	struct str group_id;
	const json_t *body;
	struct faults *faults;
};

struct str federation_role_id(const json_t *body, enum federation_store kind)
{
	for (size_t i = 0; i < sizeof clouds / sizeof *clouds; i++)
		if (clouds[i].kind == kind)
			return json_field(
			        json_object_get(json_object_get(body, "cloudProviderConfig"), clouds[i].config),
			        "roleId");
	return STR_NONE;
}

static int role_check(struct checking *k, size_t cloud)
{
	const json_t *config = json_object_get(json_object_get(k->body, "cloudProviderConfig"), clouds[cloud].config);
	struct str place = arena_printf(k->arena, "cloudProviderConfig.%s.roleId", clouds[cloud].config);
	struct provider_role role;
	if (!config)
		return 0;
	int r = provider_role_find(k->tx, k->arena, k->group_id, json_field(config, "roleId"), &role);
	if (r == -ENOENT)
		faults_add(k->faults, k->arena, place, "names no cloud provider role of the project");
	else if (r == -EACCES)
		faults_add(k->faults, k->arena, place, "names a cloud provider role that is not authorized yet");
	else if (r == 0 && role.provider != clouds[cloud].provider)
		faults_add(k->faults, k->arena, place, "names a cloud provider role of another provider");
	return r == -ENOENT || r == -EACCES ? 0 : r;
}

static int named_cluster_check(struct checking *k, const json_t *store, size_t index)
{
	struct str name = json_field(store, "clusterName"), other = json_field(store, "projectId");
	struct doc d;
	int r = tx_get_by_name(k->tx, k->arena, CLUSTER_KIND, k->group_id, name, &d);
	if (r == -ENOENT)
		r = tx_get_by_name(k->tx, k->arena, FLEX_KIND, k->group_id, name, &d);
	if (r == -ENOENT)
		faults_add(k->faults, k->arena, arena_printf(k->arena, "storage.stores[%zu].clusterName", index),
		           "names no cluster of the project");
	if (other.n && !str_eq(other, k->group_id))
		faults_add(k->faults, k->arena, arena_printf(k->arena, "storage.stores[%zu].projectId", index),
		           "must be the project's own id");
	return r == -ENOENT ? 0 : r;
}

static int named_store_check(struct checking *k, const json_t *store, size_t index)
{
	enum federation_store kind;
	if (!store_kind_of(json_field(store, "provider"), &kind))
		return 0;
	if (kind == STORE_CLUSTER)
		return named_cluster_check(k, store, index);
	if (store_is_objects(kind) && !json_flag(store, "public") && !federation_role_id(k->body, kind).n)
		faults_add(k->faults, k->arena, arena_printf(k->arena, "storage.stores[%zu].public", index),
		           "must be true, or cloudProviderConfig must have a role of the store's provider");
	return 0;
}

static int sources_check(struct checking *k, const json_t *table, struct str place)
{
	const json_t *sources = json_object_get(table, "dataSources");
	struct engine_lake lake;
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(sources); i++) {
		struct str name = json_field(json_array_get(sources, i), "datasetName");
		if (name.n)
			r = archive_dataset_find(k->tx, k->arena, k->group_id, name, &lake);
		if (r == -ENOENT)
			faults_add(k->faults, k->arena,
			           arena_printf(k->arena, "%.*s.dataSources[%zu].datasetName", STR_ARG(place), i),
			           "names no data set of the project's online archives");
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

static int tables_check(struct checking *k, const json_t *databases)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(databases); i++) {
		const json_t *tables = json_object_get(json_array_get(databases, i), "collections");
		for (size_t t = 0; r == 0 && t < json_array_size(tables); t++)
			r = sources_check(k, json_array_get(tables, t),
			                  arena_printf(k->arena, "storage.databases[%zu].collections[%zu]", i, t));
	}
	return r;
}

int references_check(struct tx *tx, struct arena *a, struct str group_id, const json_t *body, struct faults *faults)
{
	struct checking k = {.tx = tx, .arena = a, .group_id = group_id, .body = body, .faults = faults};
	const json_t *storage = json_object_get(body, "storage"), *stores = json_object_get(storage, "stores");
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof clouds / sizeof *clouds; i++)
		r = role_check(&k, i);
	for (size_t i = 0; r == 0 && i < json_array_size(stores); i++)
		r = named_store_check(&k, json_array_get(stores, i), i);
	return r < 0 ? r : tables_check(&k, json_object_get(storage, "databases"));
}

/* --- for provider access */

static int role_uses_list(struct tx *tx, struct arena *a, struct str group_id, struct role_uses *uses)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, FEDERATION_KIND, group_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *body = doc_json(a, docs[i].body);
		for (size_t k = 0; k < sizeof clouds / sizeof *clouds; k++) {
			struct str id = federation_role_id(body, clouds[k].kind);
			if (id.n)
				role_use_add(uses, id,
				             arena_printf(a, "the federated database instance \"%.*s\"",
				                          STR_ARG(docs[i].name)));
		}
	}
	return r;
}

const struct role_user data_federation_role_user = {.feature = "SVC_DATA_LAKE", .list = role_uses_list};
