/* Stores: what each kind must say of itself. That a role or a cluster is there is asked of the store of documents
 * (references.c); what a bucket has in it is not known before a query asks. */
#include "api/data_federation/storage.h"

#define AZURE_HOST ".blob.core.windows.net"
#define URL_BYTES 2000
#define BUCKET_BYTES 63
#define PREFIX_BYTES 512

static const struct {
	const char *provider;
	enum federation_store kind;
} kinds[] = {{"svc", STORE_CLUSTER},        {"s3", STORE_S3},
             {"azure", STORE_AZURE},        {"gcs", STORE_GCS},
             {"http", STORE_HTTP},          {"dls:aws", STORE_ARCHIVES},
             {"dls:azure", STORE_ARCHIVES}, {"dls:gcp", STORE_ARCHIVES}};

bool store_kind_of(struct str provider, enum federation_store *ret_kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (str_is(provider, kinds[i].provider)) {
			*ret_kind = kinds[i].kind;
			return true;
		}
	return false;
}

bool store_is_objects(enum federation_store kind)
{
	return kind == STORE_S3 || kind == STORE_AZURE || kind == STORE_GCS;
}

static void fault(struct storage *s, struct str place, const char *field, const char *text)
{
	faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s.%s", STR_ARG(place), field), "%s", text);
}

static bool is_plain(struct str text, const char *others)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || strchr(others, c)) || !c)
			return false;
	}
	return true;
}

/* Only the account's name is taken from it: nothing that a tenant says becomes the address of a provider. */
bool azure_account_of(struct str url, struct str *ret_account)
{
	struct str scheme = STR("https://"), host, path;
	if (!str_starts(url, scheme))
		return false;
	str_cut((struct str){url.p + scheme.n, url.n - scheme.n}, '/', &host, &path);
	if (path.n || !str_ends(host, STR(AZURE_HOST)))
		return false;
	*ret_account = (struct str){host.p, host.n - strlen(AZURE_HOST)};
	return ret_account->n >= 3 && ret_account->n <= 24 && is_plain(*ret_account, "");
}

/* --- objects */

static bool is_bucket(struct str name)
{
	return name.n >= 3 && name.n <= BUCKET_BYTES && is_plain(name, ".-_") && name.p[0] != '.' && name.p[0] != '-' &&
	       name.p[name.n - 1] != '-' && name.p[name.n - 1] != '.';
}

static bool has_climbing(struct str path)
{
	struct str part, rest = path;
	do {
		str_cut(rest, '/', &part, &rest);
		if (str_is(part, "..") || str_is(part, "."))
			return true;
	} while (rest.n);
	return false;
}

static void objects_check(struct storage *s, const json_t *store, enum federation_store kind, struct str place)
{
	const char *field = kind == STORE_AZURE ? "containerName" : "bucket";
	struct str prefix = json_field(store, "prefix"), account;
	const json_t *delimiter = json_object_get(store, "delimiter");
	if (!is_bucket(json_field(store, field)))
		fault(s, place, field,
		      "must have from 3 to 63 lower-case letters and digits and, between them, . _ and -");
	if (prefix.n > PREFIX_BYTES || has_climbing(prefix))
		fault(s, place, "prefix", "must have at most 512 bytes, and no part . or ..");
	if (delimiter && !str_is(json_str_of(delimiter), "/"))
		fault(s, place, "delimiter", "must be /: paths are cut there");
	if (json_field(store, "replacementDelimiter").n)
		fault(s, place, "replacementDelimiter", "must not be given: no name is replaced");
	if (kind == STORE_AZURE && !azure_account_of(json_field(store, "serviceURL"), &account))
		fault(s, place, "serviceURL", "must be https://ACCOUNT" AZURE_HOST);
	if (kind == STORE_S3 && json_flag(store, "includeTags"))
		fault(s, place, "includeTags", "must be false: objects' tags become no columns");
}

/* --- HTTP */

static const char *url_fault(struct str url, bool insecure)
{
	struct str secure = STR("https://"), open = STR("http://"), host, path;
	bool is_open = str_starts(url, open);
	if (url.n > URL_BYTES)
		return "must have at most 2000 bytes";
	if (!is_open && !str_starts(url, secure))
		return "must begin with https:// or, where allowInsecure is true, http://";
	if (is_open && !insecure)
		return "must begin with https://, because allowInsecure is not true";
	for (size_t i = 0; i < url.n; i++)
		if ((unsigned char)url.p[i] <= ' ' || (unsigned char)url.p[i] >= 0x7f)
			return "must have printable ASCII only";
	size_t skip = is_open ? open.n : secure.n;
	str_cut((struct str){url.p + skip, url.n - skip}, '/', &host, &path);
	if (!host.n || memchr(host.p, '@', host.n))
		return "must have a host, without a name or password before it";
	return NULL;
}

void urls_check(struct storage *s, const json_t *owner, bool insecure, struct str place)
{
	const json_t *urls = json_object_get(owner, "urls");
	struct str at = arena_printf(s->arena, "%.*s.urls", STR_ARG(place));
	if (faults_too_many(s->faults, s->arena, at, urls, URLS_MAX))
		return;
	for (size_t i = 0; i < json_array_size(urls); i++) {
		const char *text = url_fault(json_item(urls, i), insecure);
		if (text)
			faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s[%zu]", STR_ARG(at), i), "%s",
			           text);
	}
}

/* --- all */

static void cluster_check(struct storage *s, const json_t *store, struct str place)
{
	const json_t *preference = json_object_get(store, "readPreference");
	if (!json_field(store, "clusterName").n)
		fault(s, place, "clusterName", "is required where the provider is svc");
	if (json_array_size(json_object_get(preference, "tagSets")))
		fault(s, place, "readPreference.tagSets", "must not be given: nodes have no tags here");
	if (json_number(preference, "maxStalenessSeconds"))
		fault(s, place, "readPreference.maxStalenessSeconds",
		      "must not be given: how old a standby's answer may be is not a choice of each query");
}

static void store_check(struct storage *s, const json_t *list, size_t index)
{
	const json_t *store = json_array_get(list, index);
	struct str place = arena_printf(s->arena, "storage.stores[%zu]", index), name = json_field(store, "name");
	enum federation_store kind;
	if (!name.n || name.n > NAME_MAX_BYTES)
		fault(s, place, "name", "must have from 1 to 63 bytes");
	for (size_t i = 0; i < index; i++)
		if (name.n && str_eq(json_field(json_array_get(list, i), "name"), name))
			fault(s, place, "name", "is the name of an earlier store");
	if (!store_kind_of(json_field(store, "provider"), &kind))
		fault(s, place, "provider", "must be one of svc, s3, azure, gcs, http, dls:aws, dls:azure, dls:gcp");
	else if (!(s->offered->stores & 1u << kind))
		fault(s, place, "provider", "is a kind of store that the engine of this service does not read");
	else if (kind == STORE_CLUSTER)
		cluster_check(s, store, place);
	else if (store_is_objects(kind))
		objects_check(s, store, kind, place);
	else if (kind == STORE_HTTP)
		urls_check(s, store, json_flag(store, "allowInsecure"), place);
}

void stores_check(struct storage *s)
{
	const json_t *stores = json_object_get(s->body, "stores");
	if (faults_too_many(s->faults, s->arena, STR("storage.stores"), stores, STORES_MAX))
		return;
	for (size_t i = 0; i < json_array_size(stores); i++)
		store_check(s, stores, i);
}
