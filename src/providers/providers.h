/* Identities at cloud providers: what a tenant's role gives the service there, as credentials that last an hour.
 *
 *   AWS     the service assumes the tenant's IAM role, with the role's own external id (STS AssumeRole)
 *   AZURE   the service's application gets a token of the tenant's directory (client credentials)
 *   GCP     the service's account makes an account for each role, and tokens of that one (a signed assertion, IAM)
 *
 * The service's own keys and all addresses are the operator's; nothing that a tenant says becomes an address. Servers
 * are not trusted: answers are bounded in size and time, redirects are not followed, and what an answer says is cut and
 * cleaned before it is shown. Credentials are kept in memory only, and wiped. All functions wait for the provider, so
 * never call them on a loop or in a write; they may be called from several threads at once. */
#ifndef STEWARD_PROVIDERS_PROVIDERS_H
#define STEWARD_PROVIDERS_PROVIDERS_H

#include "base/arena.h"

struct providers;

enum provider { PROVIDER_AWS, PROVIDER_AZURE, PROVIDER_GCP };
#define PROVIDERS 3
extern const char *const provider_names[PROVIDERS];
/* False: it is no name of a provider's. */
must_check bool provider_of_name(struct str name, enum provider *ret_provider);

struct provider_settings {
	const char *aws_arn, *aws_key_id, *aws_secret_file, *aws_region, *aws_endpoint;
	const char *azure_app_id, *azure_secret_file, *azure_endpoint;
	const char *google_key_file, *google_endpoint;
	const char *ca_file; /* certificates that all of them are trusted by; NULL: the system's */
};

/* Secrets are read from the files, or from STEWARD_PROVIDER_AWS_SECRET and STEWARD_PROVIDER_AZURE_SECRET. A provider
 * without settings is not offered. A message on stderr, and negative, when a setting is wrong. */
must_check int providers_open(const struct provider_settings *s, struct providers **ret_providers);
void providers_close(struct providers *p); /* accepts NULL */

bool providers_offer(const struct providers *p, enum provider provider);
/* Whom tenants trust: the ARN of the service's user or role, the id of its application. NULL where not offered. */
const char *providers_aws_arn(const struct providers *p);
const char *providers_azure_app(const struct providers *p);
/* A new name of an account for a role, in the service's project. */
struct str providers_google_account(const struct providers *p, struct arena *a);

/* A role as its provider knows it. */
struct provider_role {
	enum provider provider;
	struct str id;                /* ours: sessions are named by it */
	struct str arn, external_id;  /* of AWS */
	struct str tenant, principal; /* of Azure: the directory, and the application's service principal there */
	struct str account;           /* of Google */
	struct str scope;             /* of Azure: what tokens are for; empty: storage */
};

/* Results are 0 or, with words about the call that failed:
 *   -EACCES        the provider refuses the role: the tenant can mend it (provider_remedy())
 *   -EPERM         the role lets in everybody who knows its name: likewise
 *   -EKEYREJECTED  the provider refuses the service itself: its operator can mend it
 *   -EHOSTUNREACH  no answer, or not now; -ETIMEDOUT
 *   -EPROTO        an answer that makes no sense
 *   -ENOTSUP       the operator has configured nothing for the provider */
#define PROVIDER_WHY 600

/* Asks the provider now, whatever is kept, and for AWS also whether the role wants its external id. */
must_check int provider_prove(struct providers *p, const struct provider_role *role, char ret_why[PROVIDER_WHY]);
/* What would make provider_prove() succeed: a policy or a command, for the tenant. */
struct str provider_remedy(const struct providers *p, struct arena *a, const struct provider_role *role);

struct provider_credentials {
	char *key_id, *secret; /* of AWS; NULL elsewhere */
	char *token;
};
void provider_credentials_free(struct provider_credentials *c);
/* Such as hold for some minutes more: kept ones, or new ones. */
must_check int provider_credentials_get(struct providers *p, const struct provider_role *role,
                                        struct provider_credentials *ret_credentials, char ret_why[PROVIDER_WHY]);
/* The role is gone: so is what is kept of it. */
void provider_forget(struct providers *p, struct str role_id);

/* Accounts of roles at Google: 0 too when it is there, or is gone, already. */
must_check int provider_account_make(struct providers *p, struct str account, char ret_why[PROVIDER_WHY]);
must_check int provider_account_drop(struct providers *p, struct str account, char ret_why[PROVIDER_WHY]);

#endif
