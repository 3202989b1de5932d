/* Requests to providers, and what the kinds of providers have in common: known to this folder and to keys/ alone. */
#ifndef STEWARD_PROVIDERS_REQUEST_H
#define STEWARD_PROVIDERS_REQUEST_H

#include "base/buf.h"
#include "fetch/fetch.h"
#include "providers/providers.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>

#define PROVIDER_SESSION_SECONDS 3600
#define PROVIDER_KEPT 1024 /* credentials that are kept at once */

/* What is kept of a role, or of the service itself (an empty id). */
struct provider_kept {
	char *key; /* id, and all that the credentials depend on */
	struct provider_credentials credentials;
	int64_t until_us; /* clock_boot_us() */
};

struct providers {
	char *ca_file;
	struct {
		char *arn, *key_id, *secret, *region, *endpoint;
	} aws;
	struct {
		char *app_id, *secret, *endpoint;
	} azure;
	struct {
		char *email, *project, *token_url, *key_id, *iam, *credentials; /* the last two: addresses */
		EVP_PKEY *key;
	} google;
	pthread_mutex_t lock; /* of what follows */
	struct provider_kept *kept;
	size_t kept_count;
};

/* Whose signature a request to AWS has. */
struct provider_signer {
	const char *key_id, *secret, *token; /* token: of a session, or NULL */
	const char *region, *service;
	const char *target; /* X-Amz-Target: then the body is JSON as AWS has it */
};

struct provider_request {
	const char *what;   /* "sts:AssumeRole": the call's name, for people */
	const char *method; /* NULL: POST */
	const char *url;
	enum fetch_named named; /* who says which host it is */
	struct str body;
	bool json;                            /* the body; else a form */
	const char *bearer;                   /* a token, or NULL */
	bool sign;                            /* with the service's key at AWS, for STS */
	const struct provider_signer *signer; /* or with this one */
	/* Texts that were sent and that no words may repeat; or NULL. */
	const char *secret, *payload;
};

struct provider_answer {
	long status;
	struct buf body;
};
void provider_answer_free(struct provider_answer *a);

/* 0: an answer with whichever status below 500, but a 429 that passes. Tried again, a little later, where the provider
 * says that it is busy. */
must_check int provider_call(const struct providers *p, const struct provider_request *q,
                             struct provider_answer *ret_answer, char ret_why[PROVIDER_WHY]);
/* The JSON object that an answer is; NULL: none. Owned. */
json_t *provider_answer_json(const struct provider_answer *a);

/* Words for people: control characters become spaces, a secret takes all of them along. Returns the code. */
int provider_fail(const struct provider_request *q, int code, char ret_why[PROVIDER_WHY], const char *format, ...)
        printf_like(4, 5);

/* Appends name=value, encoded, and "&" before it where something stands there. */
void provider_form_add(struct buf *b, const char *name, struct str value);
/* Text on the heap that ends with a NUL; wiped and freed. Accepts NULL. */
void provider_wipe(char *text);

/* Whether a text can be a token: it becomes a header. */
bool provider_token_is_good(struct str token);

/* The credentials that a token's endpoint answered with: the token is the text of `field`; it holds until the time that
 * the text of `until` is (NULL: there is none), or for "expires_in" seconds. */
must_check int provider_token_read(const struct provider_request *q, const struct provider_answer *a, const char *field,
                                   const char *until, struct provider_credentials *ret_credentials,
                                   int64_t *ret_lasts_us, char *why);
/* How long credentials hold, from what the provider says: as text of a time, or in seconds. 0: not at all. */
int64_t provider_lasts_us(struct str until, int64_t seconds);

/* Whose address is an operator's option: 0, or negative after a message on stderr. A copy without the slash at its
 * end. */
must_check int provider_endpoint_check(const char *option, const char *url);
char *provider_endpoint_copy(const char *url);

/* New credentials. *ret_lasts_us: from now on. */
typedef int provider_fetch(struct providers *p, const struct provider_role *role,
                           struct provider_credentials *ret_credentials, int64_t *ret_lasts_us,
                           char ret_why[PROVIDER_WHY]);
provider_fetch aws_fetch, azure_fetch, google_fetch;
/* Whether the role can be assumed with another external id than its own. */
must_check int aws_prove_closed(struct providers *p, const struct provider_role *role, char ret_why[PROVIDER_WHY]);

/* A token for an application of a directory, by its secret. */
struct azure_client {
	const char *endpoint, *secret;
	struct str tenant, app_id, scope;
};
must_check int azure_token(const struct providers *p, const struct azure_client *client,
                           struct provider_credentials *ret_credentials, int64_t *ret_lasts_us,
                           char ret_why[PROVIDER_WHY]);

/* A token for an account at Google, by its key. */
struct google_signer {
	const char *email, *token_url, *key_id;
	EVP_PKEY *key;
};
must_check int google_token(const struct providers *p, const struct google_signer *signer,
                            struct provider_credentials *ret_credentials, int64_t *ret_lasts_us,
                            char ret_why[PROVIDER_WHY]);
/* An RSA key in PEM; NULL: it is none, or too short. */
EVP_PKEY *google_key_parse(struct str pem);

/* Google's: the service's own key file; negative after a message on stderr. */
must_check int google_key_read(struct providers *p, const char *file, const char *endpoint);

/* kept.c */
/* A copy of what is kept under the key and holds for some minutes more. */
must_check bool provider_kept_get(struct providers *p, const char *key, struct provider_credentials *ret_credentials);
/* Copies the credentials. */
void provider_kept_put(struct providers *p, const char *key, const struct provider_credentials *c, int64_t lasts_us);
void provider_kept_drop(struct providers *p, struct str id);
void provider_kept_free(struct providers *p);

#endif
