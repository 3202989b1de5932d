/* Sources of tables: each kind of store is read in its own way, and what says nothing for a kind is refused,
 * because who wrote it meant something. */
#include "api/data_federation/storage.h"

#include "base/pattern.h"
#include "engine/federation_path.h"

#define DATABASE_BYTES 63
#define TABLE_BYTES 127 /* a schema, a dot and a table */
#define DATASET_BYTES 128

/* Which fields a source may have, by the kind of its store, beside storeName and provenanceFieldName. */
static const struct {
	const char *field;
	unsigned kinds; /* bits: 1 << enum federation_store */
} fields[] = {{"database", 1u << STORE_CLUSTER},
              {"databaseRegex", 1u << STORE_CLUSTER},
              {"collection", 1u << STORE_CLUSTER},
              {"collectionRegex", 1u << STORE_CLUSTER},
              {"path", 1u << STORE_S3 | 1u << STORE_AZURE | 1u << STORE_GCS},
              {"defaultFormat", 1u << STORE_S3 | 1u << STORE_AZURE | 1u << STORE_GCS | 1u << STORE_HTTP},
              {"urls", 1u << STORE_HTTP},
              {"datasetName", 1u << STORE_ARCHIVES},
              {"datasetPrefix", 1u << STORE_ARCHIVES},
              {"trimLevel", 1u << STORE_ARCHIVES}};

/* A source in hand. */
struct source {
	struct storage *storage;
	const json_t *body, *store;
	enum federation_store kind;
	bool wildcard;
	struct str place;
};

static void fault(const struct source *x, const char *field, const char *text)
{
	struct storage *s = x->storage;
	faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s.%s", STR_ARG(x->place), field), "%s", text);
}

static bool has(const struct source *x, const char *field)
{
	const json_t *value = json_object_get(x->body, field);
	return value && !json_is_null(value) && json_string_length(value) + json_array_size(value) > 0;
}

static void fields_check(const struct source *x)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const json_t *value = json_object_get(x->body, fields[i].field);
		if (value && !(fields[i].kinds & 1u << x->kind))
			fault(x, fields[i].field,
			      arena_printf(x->storage->arena,
			                   "must not be given: the store \"%.*s\" is of the provider %.*s",
			                   STR_ARG(json_field(x->store, "name")),
			                   STR_ARG(json_field(x->store, "provider")))
			              .p);
	}
}

/* --- clusters */

static void name_check(const struct source *x, const char *field, size_t most)
{
	struct str name = json_field(x->body, field);
	if (json_object_get(x->body, field) && (!name.n || name.n > most))
		fault(x, field, arena_printf(x->storage->arena, "must have from 1 to %zu bytes", most).p);
}

static void pattern_check(const struct source *x, const char *field)
{
	const struct pattern *p;
	const char *why;
	if (has(x, field) && pattern_parse(json_field(x->body, field), x->storage->arena, &p, &why) < 0)
		fault(x, field, why);
}

static void cluster_check(const struct source *x)
{
	name_check(x, "database", DATABASE_BYTES);
	name_check(x, "collection", TABLE_BYTES);
	pattern_check(x, "databaseRegex");
	pattern_check(x, "collectionRegex");
	if (!has(x, "database") && !has(x, "databaseRegex"))
		fault(x, "database", "is required, or databaseRegex");
	if (has(x, "database") && has(x, "databaseRegex"))
		fault(x, "databaseRegex", "must not be given beside database");
	if (x->wildcard && has(x, "collection"))
		fault(x, "collection", "must not be given: the collection * takes all, or those of collectionRegex");
	if (!x->wildcard && !has(x, "collection") && !has(x, "collectionRegex"))
		fault(x, "collection", "is required, or collectionRegex");
	if (has(x, "collection") && has(x, "collectionRegex"))
		fault(x, "collectionRegex", "must not be given beside collection");
}

/* --- files */

static void format_check(const struct source *x)
{
	struct str format = json_field(x->body, "defaultFormat");
	if (str_is(format, ".orc"))
		fault(x, "defaultFormat", "must not be .orc, which is not read here: .parquet is");
	if (str_is(format, ".bsonx"))
		fault(x, "defaultFormat", "must not be .bsonx, which is not read here: .json is");
}

static void objects_check(const struct source *x)
{
	struct federation_path path;
	const char *why = "";
	format_check(x);
	if (federation_path_parse(json_field(x->body, "path"), x->storage->arena, &path, &why) < 0)
		fault(x, "path", why);
	else if (x->wildcard && !path.has_table)
		fault(x, "path", "must have {collectionName()}, because the collection is *");
	else if (!x->wildcard && path.has_table)
		fault(x, "path", "must not have {collectionName()}, because the collection is not *");
}

static void http_check(const struct source *x)
{
	bool insecure = json_flag(x->body, "allowInsecure") || json_flag(x->store, "allowInsecure");
	format_check(x);
	if (x->wildcard)
		fault(x, "storeName", "must not be a store of the provider http, because the collection is *");
	if (!has(x, "urls") && !json_array_size(json_object_get(x->store, "urls")))
		fault(x, "urls", "is required, because the store names none");
	urls_check(x->storage, x->body, insecure, x->place);
}

/* --- archives */

static void archive_check(const struct source *x)
{
	name_check(x, "datasetName", DATASET_BYTES);
	name_check(x, "datasetPrefix", DATASET_BYTES);
	if (!has(x, "datasetName") && !has(x, "datasetPrefix"))
		fault(x, "datasetName", "is required, or datasetPrefix");
	if (has(x, "datasetName") && has(x, "datasetPrefix"))
		fault(x, "datasetPrefix", "must not be given beside datasetName");
	if (x->wildcard && !has(x, "datasetPrefix"))
		fault(x, "datasetPrefix", "is required, because the collection is *");
	if (json_number(x->body, "trimLevel"))
		fault(x, "trimLevel", "must not be given: names of data sets have no levels here");
}

static void provenance_check(const struct source *x)
{
	if (json_field(x->body, "provenanceFieldName").n > NAME_MAX_BYTES)
		fault(x, "provenanceFieldName", "must have at most 63 bytes");
}

void source_check(struct storage *s, const json_t *source, bool wildcard, struct str place)
{
	struct source x = {.storage = s, .body = source, .wildcard = wildcard, .place = place};
	struct str name = json_field(source, "storeName");
	x.store = name.n ? json_find(json_object_get(s->body, "stores"), "name", name) : NULL;
	if (!x.store) {
		fault(&x, "storeName", name.n ? "names no store of storage.stores" : "is required");
		return;
	}
	if (!store_kind_of(json_field(x.store, "provider"), &x.kind))
		return; /* told of the store */
	fields_check(&x);
	provenance_check(&x);
	if (x.kind == STORE_CLUSTER)
		cluster_check(&x);
	else if (x.kind == STORE_HTTP)
		http_check(&x);
	else if (x.kind == STORE_ARCHIVES)
		archive_check(&x);
	else
		objects_check(&x);
}
