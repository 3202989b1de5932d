/* From options to providers, and from roles to credentials. A secret is read from a file or from the environment, never
 * from a flag, which every user of the machine can see. */
#include "base/id.h"
#include "base/option.h"
#include "providers/request.h"

#include <curl/curl.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#define SECRET_MAX 4096
#define ACCOUNT_CHARS 16

const char *const provider_names[PROVIDERS] = {"AWS", "AZURE", "GCP"};

bool provider_of_name(struct str name, enum provider *ret_provider)
{
	for (unsigned i = 0; i < PROVIDERS; i++)
		if (str_is(name, provider_names[i])) {
			*ret_provider = (enum provider)i;
			return true;
		}
	return false;
}

/* Settings. */

/* Without TLS only to this machine: what comes back are keys. */
int provider_endpoint_check(const char *option, const char *url)
{
	static const char *const near[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
	struct str u = str_of(url);
	bool good = str_starts(u, STR("https://")) && u.n > 8;
	for (size_t i = 0; !good && i < sizeof near / sizeof *near; i++) {
		size_t n = strlen(near[i]);
		good = str_starts(u, str_of(near[i])) && (u.n == n || u.p[n] == ':' || u.p[n] == '/');
	}
	for (size_t i = 0; good && i < u.n; i++)
		good = (unsigned char)u.p[i] > ' ' && (unsigned char)u.p[i] < 0x7f && !strchr("?#@\"<>\\", u.p[i]);
	return good ? 0
	            : option_refuse("%s: \"%s\" is not https://HOST[:PORT]; http:// is for this machine only", option,
	                            url);
}

/* Without the slash at its end. */
char *provider_endpoint_copy(const char *url)
{
	char *copy = must_strdup(url);
	for (size_t n = strlen(copy); n && copy[n - 1] == '/'; n--)
		copy[n - 1] = 0;
	return copy;
}

static int secret_read(const char *option, const char *file, const char *variable, char **ret_secret)
{
	const char *given = getenv(variable);
	char text[SECRET_MAX] = "";
	FILE *f = file ? fopen(file, "re") : NULL;
	size_t n = 0;
	if (file && !f)
		return option_refuse("--%s-file: %s: %s", option, file, strerror(errno));
	if (f) {
		n = fread(text, 1, sizeof text - 1, f);
		fclose(f);
	} else if (given && strlen(given) < sizeof text) {
		n = strlen(given);
		memcpy(text, given, n);
	}
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = 0;
	bool good = n && strlen(text) == n;
	*ret_secret = good ? must_strdup(text) : NULL;
	OPENSSL_cleanse(text, sizeof text);
	return good ? 0
	            : option_refuse("--%s-file: gives no secret, and %s in the environment neither", option, variable);
}

static bool is_plain(const char *text, const char *more)
{
	for (; *text; text++)
		if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
		      (*text >= '0' && *text <= '9') || strchr(more, *text)))
			return false;
	return true;
}

static int aws_open(struct providers *p, const struct provider_settings *s)
{
	struct buf url = {0};
	const char *region = s->aws_region ? s->aws_region : "us-east-1";
	if (!s->aws_arn && !s->aws_key_id)
		return 0;
	if (!s->aws_arn || !s->aws_key_id)
		return option_refuse("--provider-aws-arn and --provider-aws-key-id go together: give both or none");
	if (strlen(s->aws_arn) < 20 || !str_starts(str_of(s->aws_arn), STR("arn:")) ||
	    !is_plain(s->aws_arn, ":/+=,.@_-"))
		return option_refuse("--provider-aws-arn: \"%s\" is no ARN of a user or role, as "
		                     "arn:aws:iam::123456789012:user/NAME",
		                     s->aws_arn);
	if (!*region || strlen(region) > 60 || !is_plain(region, "-"))
		return option_refuse("--provider-aws-region: \"%s\" is no region, as us-east-1", region);
	if (s->aws_endpoint && provider_endpoint_check("--provider-aws-endpoint", s->aws_endpoint) < 0)
		return -EINVAL;
	buf_printf(&url, "https://sts.%s.amazonaws.com%c", region, 0);
	p->aws.endpoint = provider_endpoint_copy(s->aws_endpoint ? s->aws_endpoint : url.p);
	buf_free(&url);
	p->aws.endpoint = must_realloc(p->aws.endpoint, strlen(p->aws.endpoint) + 2);
	memcpy(p->aws.endpoint + strlen(p->aws.endpoint), "/", 2); /* signatures have the path */
	p->aws.arn = must_strdup(s->aws_arn);
	p->aws.key_id = must_strdup(s->aws_key_id);
	p->aws.region = must_strdup(region);
	return secret_read("provider-aws-secret", s->aws_secret_file, "STEWARD_PROVIDER_AWS_SECRET", &p->aws.secret);
}

static int azure_open(struct providers *p, const struct provider_settings *s)
{
	if (!s->azure_app_id)
		return 0;
	if (strlen(s->azure_app_id) != 36 || !is_plain(s->azure_app_id, "-"))
		return option_refuse("--provider-azure-app-id: \"%s\" is no id of an application (a UUID)",
		                     s->azure_app_id);
	const char *endpoint = s->azure_endpoint ? s->azure_endpoint : "https://login.microsoftonline.com";
	if (provider_endpoint_check("--provider-azure-endpoint", endpoint) < 0)
		return -EINVAL;
	p->azure.endpoint = provider_endpoint_copy(endpoint);
	p->azure.app_id = must_strdup(s->azure_app_id);
	return secret_read("provider-azure-secret", s->azure_secret_file, "STEWARD_PROVIDER_AZURE_SECRET",
	                   &p->azure.secret);
}

static int google_open(struct providers *p, const struct provider_settings *s)
{
	char *endpoint = NULL;
	if (!s->google_key_file)
		return 0;
	if (s->google_endpoint && provider_endpoint_check("--provider-google-endpoint", s->google_endpoint) < 0)
		return -EINVAL;
	if (s->google_endpoint)
		endpoint = provider_endpoint_copy(s->google_endpoint);
	int r = google_key_read(p, s->google_key_file, endpoint);
	free(endpoint);
	return r < 0 ? r : provider_endpoint_check("--provider-google-key-file: token_uri", p->google.token_url);
}

int providers_open(const struct provider_settings *s, struct providers **ret_providers)
{
	struct providers *p = must_calloc(1, sizeof *p);
	pthread_mutex_init(&p->lock, NULL);
	p->ca_file = s->ca_file ? must_strdup(s->ca_file) : NULL;
	int r = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -EIO;
	if (r == 0)
		r = aws_open(p, s);
	if (r == 0)
		r = azure_open(p, s);
	if (r == 0)
		r = google_open(p, s);
	if (r < 0) {
		providers_close(p);
		return r;
	}
	*ret_providers = p;
	return 0;
}

void providers_close(struct providers *p)
{
	if (!p)
		return;
	provider_kept_free(p);
	free(p->aws.arn);
	free(p->aws.key_id);
	free(p->aws.region);
	free(p->aws.endpoint);
	provider_wipe(p->aws.secret);
	free(p->azure.app_id);
	free(p->azure.endpoint);
	provider_wipe(p->azure.secret);
	free(p->google.email);
	free(p->google.project);
	free(p->google.token_url);
	free(p->google.key_id);
	free(p->google.iam);
	free(p->google.credentials);
	EVP_PKEY_free(p->google.key);
	free(p->ca_file);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

bool providers_offer(const struct providers *p, enum provider provider)
{
	switch (provider) {
	case PROVIDER_AWS: return p->aws.secret;
	case PROVIDER_AZURE: return p->azure.secret;
	case PROVIDER_GCP: return p->google.key;
	}
	return false;
}

const char *providers_aws_arn(const struct providers *p)
{
	return p->aws.arn;
}

const char *providers_azure_app(const struct providers *p)
{
	return p->azure.app_id;
}

struct str providers_google_account(const struct providers *p, struct arena *a)
{
	char name[ACCOUNT_CHARS + 1];
	random_text(name, ACCOUNT_CHARS, "0123456789abcdefghijklmnopqrstuvwxyz");
	return arena_printf(a, "db-svc-%s@%s.iam.gserviceaccount.com", name, p->google.project);
}

/* Roles. */

static char *key_of(const struct provider_role *r)
{
	struct buf key = {0};
	buf_printf(&key, "%.*s\n%s\n%.*s\n%.*s\n%.*s\n%.*s\n%.*s\n%.*s%c", STR_ARG(r->id), provider_names[r->provider],
	           STR_ARG(r->arn), STR_ARG(r->external_id), STR_ARG(r->tenant), STR_ARG(r->principal),
	           STR_ARG(r->account), STR_ARG(r->scope), 0);
	return key.p;
}

static int fetch(struct providers *p, const struct provider_role *role, struct provider_credentials *ret_credentials,
                 char *why)
{
	static provider_fetch *const by_provider[PROVIDERS] = {aws_fetch, azure_fetch, google_fetch};
	int64_t lasts_us = 0;
	if (!providers_offer(p, role->provider)) {
		snprintf(why, PROVIDER_WHY, "the operator has configured nothing for %s",
		         provider_names[role->provider]);
		return -ENOTSUP;
	}
	int r = by_provider[role->provider](p, role, ret_credentials, &lasts_us, why);
	if (r == 0) {
		char *key = key_of(role);
		provider_kept_put(p, key, ret_credentials, lasts_us);
		free(key);
	}
	return r;
}

int provider_prove(struct providers *p, const struct provider_role *role, char ret_why[PROVIDER_WHY])
{
	struct provider_credentials c;
	int r = fetch(p, role, &c, ret_why);
	if (r < 0)
		return r;
	provider_credentials_free(&c);
	if (role->provider == PROVIDER_AWS && (r = aws_prove_closed(p, role, ret_why)) < 0)
		provider_kept_drop(p, role->id);
	return r;
}

int provider_credentials_get(struct providers *p, const struct provider_role *role,
                             struct provider_credentials *ret_credentials, char ret_why[PROVIDER_WHY])
{
	char *key = key_of(role);
	bool kept = provider_kept_get(p, key, ret_credentials);
	free(key);
	return kept ? 0 : fetch(p, role, ret_credentials, ret_why);
}

void provider_forget(struct providers *p, struct str role_id)
{
	provider_kept_drop(p, role_id);
}

struct str provider_remedy(const struct providers *p, struct arena *a, const struct provider_role *role)
{
	switch (role->provider) {
	case PROVIDER_AWS:
		return arena_printf(a,
		                    "Give the role this trust policy: {\"Version\":\"2012-10-17\",\"Statement\":[{"
		                    "\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"%s\"},\"Action\":\"sts:AssumeRole\","
		                    "\"Condition\":{\"StringEquals\":{\"sts:ExternalId\":\"%.*s\"}}}]}",
		                    p->aws.arn, STR_ARG(role->external_id));
	case PROVIDER_AZURE:
		return arena_printf(
		        a,
		        "Let an administrator of the directory %.*s run: az ad sp create --id %s; the id that "
		        "this prints is the servicePrincipalId.",
		        STR_ARG(role->tenant), p->azure.app_id);
	case PROVIDER_GCP:
		return arena_printf(a,
		                    "Let the operator run: gcloud iam service-accounts add-iam-policy-binding %.*s "
		                    "--member=serviceAccount:%s --role=roles/iam.serviceAccountTokenCreator",
		                    STR_ARG(role->account), p->google.email);
	}
	return STR_NONE;
}
