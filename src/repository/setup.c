/* From options to repositories. A secret is read from a file or from the environment, never from a flag, which every
 * user of the machine can see. */
#include "repository/setup.h"

#include "base/option.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define SECRET_MAX 4096

static int url_check(const char *option, const char *url)
{
	struct str u = str_of(url);
	if (!u.n)
		return option_refuse("%s: needs a directory or a URL", option);
	if (strstr(url, "://") && !str_starts(u, STR("file:///")) && !str_starts(u, STR("s3://")))
		return option_refuse("%s: \"%s\" is not file:///DIRECTORY, a path, or s3://BUCKET/PREFIX", option, url);
	return 0;
}

static bool url_is_s3(const char *url)
{
	return str_starts(str_of(url), STR("s3://"));
}

static int secret_read(const char *path, char ret_secret[SECRET_MAX])
{
	FILE *f = fopen(path, "re");
	if (!f)
		return option_refuse("--s3-secret-file: %s: %s", path, strerror(errno));
	size_t n = fread(ret_secret, 1, SECRET_MAX - 1, f);
	fclose(f);
	while (n && (ret_secret[n - 1] == '\n' || ret_secret[n - 1] == '\r'))
		n--;
	ret_secret[n] = 0;
	return n == 0 || strlen(ret_secret) != n ? option_refuse("--s3-secret-file: %s holds no secret", path) : 0;
}

/* Whether some repository is in a bucket. */
static int places_check(const struct repository_settings *s, const char *fallback, bool *ret_s3)
{
	int result = url_check("--backups", fallback);
	*ret_s3 = url_is_s3(fallback);
	for (size_t i = 0; i < s->region_count && result == 0; i++) {
		const char *is = strchr(s->regions[i], '=');
		if (!is || is == s->regions[i])
			return option_refuse("--backups-region: \"%s\" is not REGION=URL", s->regions[i]);
		result = url_check("--backups-region", is + 1);
		*ret_s3 = *ret_s3 || url_is_s3(is + 1);
	}
	return result;
}

static int secret_find(const struct repository_settings *s, char ret_secret[SECRET_MAX])
{
	const char *given = getenv("STEWARD_S3_SECRET");
	if (!s->s3_key_id)
		return option_refuse("--s3-key-id is missing: a bucket needs a key, by --s3-key-id and "
		                     "--s3-secret-file or STEWARD_S3_SECRET");
	if (s->s3_secret_file)
		return secret_read(s->s3_secret_file, ret_secret);
	if (!given || !*given || strlen(given) >= SECRET_MAX)
		return option_refuse("the secret of --s3-key-id is missing: give --s3-secret-file or "
		                     "STEWARD_S3_SECRET in the environment");
	memcpy(ret_secret, given, strlen(given) + 1);
	return 0;
}

static struct objects_options s3_options(const struct repository_settings *s)
{
	return (struct objects_options){.endpoint = s->s3_endpoint,
	                                .region = s->s3_region,
	                                .key_id = s->s3_key_id,
	                                .ca_file = s->s3_ca_file,
	                                .token = getenv("STEWARD_S3_TOKEN")};
}

int s3_setup(const struct repository_settings *s, struct arena *a, struct objects_options *ret_s3)
{
	char *secret = arena_alloc(a, SECRET_MAX);
	int result = secret_find(s, secret);
	*ret_s3 = s3_options(s);
	ret_s3->secret = secret;
	return result;
}

int repositories_setup(const struct repository_settings *s, struct repositories **ret_all)
{
	char secret[SECRET_MAX] = "", *made = NULL;
	char *whole = s->backups ? NULL : realpath(s->data_dir, NULL);
	if (!s->backups && asprintf(&made, "%s/backups", whole ? whole : s->data_dir) < 0)
		abort();
	free(whole);
	struct repositories_options o = {.fallback = s->backups ? s->backups : made,
	                                 .fallback_is_own = !s->backups,
	                                 .regions = s->regions,
	                                 .region_count = s->region_count,
	                                 .quota = s->quota,
	                                 .s3 = s3_options(s)};
	bool s3 = false;
	int result = places_check(s, o.fallback, &s3);
	if (result == 0 && s3)
		result = secret_find(s, secret);
	if (result == 0) {
		o.s3.secret = secret;
		seal_mac("backups", STR("service key"), o.key);
		result = repositories_open(&o, ret_all);
		if (result < 0)
			option_refuse("--backups-region: %s", repository_why());
	}
	OPENSSL_cleanse(secret, sizeof secret);
	OPENSSL_cleanse(o.key, sizeof o.key);
	free(made);
	return result;
}
