/* What the engine shall have of an instance: the document, with all that it names found. What is gone meanwhile is
 * left out where that leaves the rest as it is: a wildcard has one archive fewer. A table whose source is gone
 * stays, and fails the queries that ask for it: its store has no cluster. */
#include "api/data_federation/instance.h"
#include "api/data_federation/storage.h"

#include <errno.h>

struct making {
	struct tx *tx;
	struct arena *arena;
	const struct instance *instance;
	const json_t *storage;
	struct engine_federation *want;
};

/* NULL where nothing was said. */
static const char *text_of(struct arena *a, const json_t *object, const char *field)
{
	struct str text = json_field(object, field);
	return text.n ? arena_z(a, text) : NULL;
}

static const char *const *urls_of(struct arena *a, const json_t *object, size_t *ret_count)
{
	const json_t *urls = json_object_get(object, "urls");
	size_t count = json_array_size(urls);
	const char **list = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		list[i] = arena_z(a, json_item(urls, i));
	*ret_count = count;
	return list;
}

/* --- stores */

static int cluster_store_make(struct making *m, const json_t *body, struct engine_federation_store *store)
{
	const json_t *preference = json_object_get(body, "readPreference");
	struct str name = json_field(body, "clusterName"), group = m->instance->doc.parent;
	struct doc d;
	store->cluster_name = arena_z(m->arena, name);
	store->secondary = str_is_one_of("secondary|secondaryPreferred|nearest", json_field(preference, "mode"));
	int r = tx_get_by_name(m->tx, m->arena, CLUSTER_KIND, group, name, &d);
	if (r == -ENOENT)
		r = tx_get_by_name(m->tx, m->arena, FLEX_KIND, group, name, &d);
	if (r == 0)
		store->cluster_id = arena_z(m->arena, d.id);
	return r == -ENOENT ? 0 : r;
}

static int store_make(struct making *m, const json_t *body, struct engine_federation_store *store)
{
	struct arena *a = m->arena;
	if (!store_kind_of(json_field(body, "provider"), &store->kind))
		return -EINVAL;
	store->name = arena_z(a, json_field(body, "name"));
	store->region = text_of(a, body, "region");
	store->urls = urls_of(a, body, &store->url_count);
	store->format = text_of(a, body, "defaultFormat");
	store->insecure = json_flag(body, "allowInsecure");
	if (store->kind == STORE_CLUSTER)
		return cluster_store_make(m, body, store);
	if (!store_is_objects(store->kind))
		return 0;
	store->bucket = text_of(a, body, store->kind == STORE_AZURE ? "containerName" : "bucket");
	store->prefix = text_of(a, body, "prefix");
	store->delimiter = text_of(a, body, "delimiter");
	store->endpoint = text_of(a, body, "serviceURL");
	store->is_public = json_flag(body, "public");
	struct str role = federation_role_id(m->instance->body, store->kind);
	store->role_id = role.n && !store->is_public ? arena_z(a, role) : NULL;
	return 0;
}

static int stores_make(struct making *m)
{
	const json_t *list = json_object_get(m->storage, "stores");
	size_t count = json_array_size(list);
	struct engine_federation_store *stores = arena_calloc(m->arena, count + 1, sizeof *stores);
	int r = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = store_make(m, json_array_get(list, i), &stores[i]);
	m->want->stores = stores;
	m->want->store_count = count;
	return r;
}

/* --- sources */

static size_t store_place(const struct making *m, struct str name)
{
	size_t i = 0;
	while (i < m->want->store_count && !str_is(name, m->want->stores[i].name))
		i++;
	return i;
}

struct sources {
	struct engine_federation_source *list;
	size_t count, room;
};

static void source_add(struct making *m, struct sources *s, const struct engine_federation_source *source)
{
	ARENA_FIT(m->arena, s->list, s->count, s->room);
	s->list[s->count++] = *source;
}

static int archives_add(struct making *m, struct sources *s, const json_t *body, struct engine_federation_source *one)
{
	struct str name = json_field(body, "datasetName"), group = m->instance->doc.parent;
	struct engine_lake *list = arena_new_of(m->arena, struct engine_lake);
	size_t count = 1;
	int r = name.n ? archive_dataset_find(m->tx, m->arena, group, name, list)
	               : archive_datasets_list(m->tx, m->arena, group, json_field(body, "datasetPrefix"), &list,
	                                       &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		one->archive = &list[i];
		source_add(m, s, one);
	}
	return r == -ENOENT ? 0 : r;
}

static int source_make(struct making *m, struct sources *s, const json_t *body)
{
	struct arena *a = m->arena;
	struct engine_federation_source one = {.store = store_place(m, json_field(body, "storeName"))};
	if (one.store == m->want->store_count)
		return -EINVAL;
	one.database = text_of(a, body, "database");
	one.table = text_of(a, body, "collection");
	one.database_pattern = text_of(a, body, "databaseRegex");
	one.table_pattern = text_of(a, body, "collectionRegex");
	one.path = arena_z(a, json_field(body, "path"));
	one.format = text_of(a, body, "defaultFormat");
	one.urls = urls_of(a, body, &one.url_count);
	one.provenance = text_of(a, body, "provenanceFieldName");
	one.insecure = json_flag(body, "allowInsecure") || m->want->stores[one.store].insecure;
	if (m->want->stores[one.store].kind == STORE_ARCHIVES)
		return archives_add(m, s, body, &one);
	source_add(m, s, &one);
	return 0;
}

static int table_make(struct making *m, const json_t *database, const json_t *body,
                      struct engine_federation_table *table)
{
	const json_t *list = json_object_get(body, "dataSources");
	struct sources s = {.list = NULL};
	int r = 0;
	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = source_make(m, &s, json_array_get(list, i));
	json_int_t most = json_number(database, "maxWildcardCollections");
	*table = (struct engine_federation_table){.database = arena_z(m->arena, json_field(database, "name")),
	                                          .name = arena_z(m->arena, json_field(body, "name")),
	                                          .sources = s.list,
	                                          .source_count = s.count,
	                                          .wildcard_max = most > 0 ? (unsigned)most : 100};
	return r;
}

/* --- databases */

static size_t entries_count(const json_t *databases, const char *field)
{
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(databases); i++)
		count += json_array_size(json_object_get(json_array_get(databases, i), field));
	return count;
}

static int tables_make(struct making *m, const json_t *databases)
{
	struct engine_federation_table *tables =
	        arena_new_array(m->arena, struct engine_federation_table, entries_count(databases, "collections") + 1);
	int r = 0;
	m->want->tables = tables;
	for (size_t i = 0; r == 0 && i < json_array_size(databases); i++) {
		const json_t *database = json_array_get(databases, i), *list = json_object_get(database, "collections");
		for (size_t t = 0; r == 0 && t < json_array_size(list); t++)
			r = table_make(m, database, json_array_get(list, t), &tables[m->want->table_count++]);
	}
	return r;
}

static void views_make(struct making *m, const json_t *databases)
{
	struct engine_federation_view *views =
	        arena_new_array(m->arena, struct engine_federation_view, entries_count(databases, "views") + 1);
	m->want->views = views;
	for (size_t i = 0; i < json_array_size(databases); i++) {
		const json_t *database = json_array_get(databases, i), *list = json_object_get(database, "views");
		for (size_t v = 0; v < json_array_size(list); v++) {
			const json_t *body = json_array_get(list, v);
			struct str pipeline = json_field(body, "pipeline");
			views[m->want->view_count++] = (struct engine_federation_view){
			        .database = arena_z(m->arena, json_field(database, "name")),
			        .name = arena_z(m->arena, json_field(body, "name")),
			        .source = arena_z(m->arena, json_field(body, "source")),
			        .pipeline = pipeline.n ? arena_z(m->arena, pipeline) : "[]"};
		}
	}
}

static void names_make(struct making *m, const json_t *databases)
{
	size_t count = json_array_size(databases);
	const char **names = arena_new_array(m->arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		names[i] = arena_z(m->arena, json_field(json_array_get(databases, i), "name"));
	m->want->databases = names;
	m->want->database_count = count;
}

/* --- limits */

static int limits_add(struct making *m, struct engine_federation_limit *limits, const char *kind, struct str parent,
                      const char *begin)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(m->tx, m->arena, kind, parent, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *body = doc_json(m->arena, docs[i].body);
		struct str name = docs[i].name, skip = str_of(begin);
		struct engine_federation_limit one = {.bytes = (uint64_t)json_number(body, "value"), .project = skip.n};
		if (!str_starts(name, skip) ||
		    !limit_span_of((struct str){name.p + skip.n, name.n - skip.n}, &one.span))
			continue;
		one.kill = str_is(json_field(body, "overrunPolicy"), "BLOCK_AND_KILL");
		limits[m->want->limit_count++] = one;
	}
	return r;
}

/* Its own, and the project's (api/projects.json), which have no policy: new queries are refused. */
static int limits_make(struct making *m)
{
	struct engine_federation_limit *limits =
	        arena_new_array(m->arena, struct engine_federation_limit, (size_t)FEDERATION_SPANS * 2);
	m->want->limits = limits;
	int r = limits_add(m, limits, FEDERATION_LIMIT_KIND, m->instance->doc.id, "");
	return r < 0 ? r : limits_add(m, limits, "project_limit", m->instance->doc.parent, "dataFederation.");
}

/* --- access */

/* Scopes of users name federated database instances by another type than clusters (clusters/access.h). */
static int access_make(struct making *m, const struct service *s, struct engine_access *access)
{
	const struct doc *d = &m->instance->doc;
	struct str *ids;
	size_t count = 0;
	int r = cluster_access_load(m->tx, m->arena, d->parent,
	                            arena_printf(m->arena, SCOPE_FEDERATION "%.*s", STR_ARG(d->name)), access);
	if (r == 0)
		r = endpoints_open(m->tx, m->arena, d->parent, &ids, &count);
	if (r < 0)
		return r;
	const char **names = arena_new_array(m->arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		names[i] = arena_z(m->arena, instance_host_name(s, m->arena, d, ids[i]));
	access->host_names = names;
	access->host_name_count = count;
	return 0;
}

int instance_want_load(const struct service *s, struct tx *tx, struct arena *a, const struct instance *x,
                       struct engine_federation *ret_want, struct engine_access *ret_access, const char **ret_why)
{
	struct engine_federation want = {.id = arena_z(a, x->doc.id),
	                                 .group_id = arena_z(a, x->doc.parent),
	                                 .name = arena_z(a, x->doc.name),
	                                 .host_name = instance_host_name(s, a, &x->doc, STR_NONE).p,
	                                 .generation = json_number(x->run, "generation")};
	struct making m = {
	        .tx = tx, .arena = a, .instance = x, .storage = json_object_get(x->body, "storage"), .want = &want};
	const json_t *databases = json_object_get(m.storage, "databases");
	struct authority ca;
	*ret_why = "what it names cannot be read";
	int r = authority_load(tx, a, x->doc.parent, &ca);
	if (r == 0)
		r = stores_make(&m);
	if (r == 0)
		r = tables_make(&m, databases);
	if (r == 0)
		r = limits_make(&m);
	if (r == 0)
		r = access_make(&m, s, ret_access);
	if (r < 0)
		return r;
	views_make(&m, databases);
	names_make(&m, databases);
	want.ca_cert = ca.certificate.p;
	want.ca_key = ca.key.p;
	*ret_want = want;
	return 0;
}
