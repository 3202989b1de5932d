/* From options to repositories. A secret is read from a file or from the environment, never from a flag, which every
 * user of the machine can see. */
#include "repository/setup.h"

#include "base/option.h"
#include "store/keyring.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define SECRET_MAX 4096

static bool url_is(const char *url, const char *scheme)
{
	return str_starts(str_of(url), str_of(scheme));
}

static int url_check(const char *option, const char *url)
{
	if (!*url)
		return option_refuse("%s: needs a directory or a URL", option);
	if (strstr(url, "://") && !url_is(url, "file:///") && !url_is(url, "s3://") && !url_is(url, "azure://"))
		return option_refuse("%s: \"%s\" is not file:///DIRECTORY, a path, s3://BUCKET/PREFIX or "
		                     "azure://CONTAINER/PREFIX",
		                     option, url);
	return 0;
}

/* Which kinds of buckets there are. */
struct kinds {
	bool s3, azure;
};

static void url_count(const char *url, struct kinds *kinds)
{
	kinds->s3 = kinds->s3 || url_is(url, "s3://");
	kinds->azure = kinds->azure || url_is(url, "azure://");
}

static int places_check(const struct repository_settings *s, const char *fallback, struct kinds *ret_kinds)
{
	int result = url_check("--backups", fallback);
	url_count(fallback, ret_kinds);
	for (size_t i = 0; i < s->region_count && result == 0; i++) {
		const char *is = strchr(s->regions[i], '=');
		if (!is || is == s->regions[i])
			return option_refuse("--backups-region: \"%s\" is not REGION=URL", s->regions[i]);
		result = url_check("--backups-region", is + 1);
		url_count(is + 1, ret_kinds);
	}
	return result;
}

/* From the file, or from the environment. */
static int secret_find(const char *of, const char *option, const char *file, const char *variable,
                       char ret_secret[SECRET_MAX])
{
	const char *given = getenv(variable);
	if (file)
		return option_secret_read(option, file, ret_secret, SECRET_MAX);
	if (!given || !*given || strlen(given) >= SECRET_MAX)
		return option_refuse("the secret of %s is missing: give %s or %s in the environment", of, option,
		                     variable);
	memcpy(ret_secret, given, strlen(given) + 1);
	return 0;
}

static int s3_secret(const struct repository_settings *s, char ret_secret[SECRET_MAX])
{
	if (!s->s3_key_id)
		return option_refuse("--s3-key-id is missing: a bucket needs a key, by --s3-key-id and "
		                     "--s3-secret-file or STEWARD_S3_SECRET");
	return secret_find("--s3-key-id", "--s3-secret-file", s->s3_secret_file, "STEWARD_S3_SECRET", ret_secret);
}

static int azure_secret(const struct repository_settings *s, char ret_secret[SECRET_MAX])
{
	if (!s->azure_account)
		return option_refuse("--azure-account is missing: a container needs a storage account and its key, by "
		                     "--azure-key-file or STEWARD_AZURE_KEY");
	return secret_find("--azure-account", "--azure-key-file", s->azure_key_file, "STEWARD_AZURE_KEY", ret_secret);
}

static struct objects_options s3_options(const struct repository_settings *s)
{
	return (struct objects_options){.endpoint = s->s3_endpoint,
	                                .region = s->s3_region,
	                                .key_id = s->s3_key_id,
	                                .ca_file = s->s3_ca_file,
	                                .token = getenv("STEWARD_S3_TOKEN")};
}

static struct objects_options azure_options(const struct repository_settings *s)
{
	return (struct objects_options){
	        .endpoint = s->azure_endpoint, .account = s->azure_account, .ca_file = s->azure_ca_file};
}

int s3_setup(const struct repository_settings *s, struct arena *a, struct objects_options *ret_s3)
{
	char *secret = arena_alloc(a, SECRET_MAX);
	int result = s3_secret(s, secret);
	*ret_s3 = s3_options(s);
	ret_s3->secret = secret;
	return result;
}

int azure_setup(const struct repository_settings *s, struct arena *a, struct objects_options *ret_azure)
{
	char *secret = arena_alloc(a, SECRET_MAX);
	int result = azure_secret(s, secret);
	*ret_azure = azure_options(s);
	ret_azure->secret = secret;
	return result;
}

void repositories_keys_renew(struct repositories *all)
{
	unsigned count = seal_key_count(), active = seal_key_active();
	struct repo_service_keys keys = {.count = 0};
	_Static_assert(REPO_SERVICE_KEYS >= KEYRING_MAX, "all keys of the file fit");
	seal_mac_by(active, "backups", STR("service key"), keys.keys[keys.count++]);
	for (unsigned i = 0; i < count; i++)
		if (i != active)
			seal_mac_by(i, "backups", STR("service key"), keys.keys[keys.count++]);
	repositories_keys_set(all, &keys);
	OPENSSL_cleanse(&keys, sizeof keys);
}

int repositories_setup(const struct repository_settings *s, struct repositories **ret_all)
{
	char secret[SECRET_MAX] = "", azure[SECRET_MAX] = "", *made = NULL;
	char *whole = s->backups ? NULL : realpath(s->data_dir, NULL);
	if (!s->backups && asprintf(&made, "%s/backups", whole ? whole : s->data_dir) < 0)
		abort();
	free(whole);
	struct repositories_options o = {.fallback = s->backups ? s->backups : made,
	                                 .fallback_is_own = !s->backups,
	                                 .regions = s->regions,
	                                 .region_count = s->region_count,
	                                 .quota = s->quota,
	                                 .parity = s->parity,
	                                 .pace = s->pace,
	                                 .keys = s->keys,
	                                 .s3 = s3_options(s),
	                                 .azure = azure_options(s)};
	struct kinds kinds = {.s3 = false};
	int result = places_check(s, o.fallback, &kinds);
	if (result == 0 && kinds.s3)
		result = s3_secret(s, secret);
	if (result == 0 && kinds.azure)
		result = azure_secret(s, azure);
	if (result == 0) {
		o.s3.secret = secret;
		o.azure.secret = azure;
		result = repositories_open(&o, ret_all);
		if (result < 0)
			option_refuse("--backups-region: %s", repository_why());
		else
			repositories_keys_renew(*ret_all);
	}
	OPENSSL_cleanse(secret, sizeof secret);
	OPENSSL_cleanse(azure, sizeof azure);
	free(made);
	return result;
}
