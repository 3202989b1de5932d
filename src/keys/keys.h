/* Keys of projects at key services: AWS KMS, Azure Key Vault, Google Cloud KMS, or the operator's own files
 * or token. A project's data key is made here and leaves this process only wrapped: encrypted by the key service with a
 * key that never leaves it.
 *
 * The addresses are the operator's, or the providers' own; nothing that a tenant says becomes a host, but the name of a
 * vault below Azure's domain. Servers are not trusted: answers are bounded, redirects are not followed, and whether a
 * service gives back what it was given is told by data_key_proof(). All that asks a service waits for it: never on a
 * loop, nor in a write. From several threads at once. */
#ifndef STEWARD_KEYS_KEYS_H
#define STEWARD_KEYS_KEYS_H

#include "base/data_key.h"
#include "base/option.h"
#include "providers/providers.h"

struct keys;

struct key_settings {
	const char *aws_endpoint, *azure_endpoint, *google_endpoint; /* NULL: the providers' own */
	const char *azure_login;                                     /* who gives Azure's tokens; NULL: likewise */
	const char *local;                                           /* directory of keys; NULL: there are none */
	/* A token of PKCS #11; NULL: there is none. The PIN is in the file, or in STEWARD_KEYS_PKCS11_PIN. */
	const char *pkcs11_module, *pkcs11_token, *pkcs11_pin_file;
	struct option_texts pkcs11_keys; /* labels of keys that projects may name */
	const char *pkcs11_helper;       /* NULL: the one beside this program */
	int64_t pkcs11_answer_ms;        /* 0: the usual */
};
/* A message on stderr, and negative, when a setting is wrong. */
must_check int keys_open(const struct key_settings *s, struct providers *p, struct keys **ret_keys);
void keys_close(struct keys *k); /* accepts NULL */

/* One key at one service, and who asks for it: a role of the project, or credentials of its own. Borrowed. */
struct key_place {
	enum provider provider;
	struct str group_id; /* what is wrapped for one project is not unwrapped for another, where services can tell */
	struct str key;      /* AWS: id, ARN, alias, local/NAME, pkcs11/LABEL; Azure: identifier; Google: a version */
	struct str region;   /* AWS: US_EAST_1 */
	struct str environment, vault, tenant, client; /* Azure */
	const struct provider_role *role;              /* or NULL: */
	struct str key_id;                             /* AWS: of the access key */
	struct str secret;                             /* its secret; Azure: the client's; Google: the account's key */
};
/* What is wrong with a place as it is written, before anybody is asked: NULL, or words, and the field's name as the API
 * has it. */
const char *key_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);
/* Whether it is one of the operator's own keys, for which nobody needs credentials. */
bool key_is_local(struct str key);

/* Results are 0 or, with words about the call that failed:
 *   -EACCES        the service refuses the key or who asks for it
 *   -EBADMSG       what it gave back is not what it was given
 *   -EHOSTUNREACH  no answer, or not now; -ETIMEDOUT
 *   -EPROTO        an answer that makes no sense
 *   -EKEYREJECTED  the provider refuses this service itself: its operator can mend it
 *   -ENOTSUP       the operator has configured nothing for it */
#define KEY_WHY PROVIDER_WHY

/* What a service made of a data key, in the arena. */
struct key_wrap {
	struct str bytes;   /* base64, as the service has it */
	struct str version; /* which of its keys, where it says so */
};
must_check int key_wrap(struct keys *k, struct arena *a, const struct key_place *p, const struct data_key *key,
                        struct key_wrap *ret_wrap, char ret_why[KEY_WHY]);
/* ret_key is made; its id is the caller's to set. */
must_check int key_unwrap(struct keys *k, const struct key_place *p, struct str bytes, struct data_key *ret_key,
                          char ret_why[KEY_WHY]);
/* Wraps, unwraps and compares. */
must_check int key_prove(struct keys *k, struct arena *a, const struct key_place *p, const struct data_key *key,
                         struct key_wrap *ret_wrap, char ret_why[KEY_WHY]);
/* What mends a refusal, for the key's owner. */
struct str key_remedy(struct arena *a, const struct key_place *p);

/* A new data key, with an id. */
void data_key_new(struct data_key *ret_key);
/* Tells keys apart without telling anything of them: 64 hexadecimal digits. */
void data_key_proof(const struct data_key *key, char ret_proof[65]);

/* kept.c: keys that were unwrapped, in memory. A copy, where it was confirmed by its service not longer ago. */
must_check bool keys_kept_get(struct keys *k, struct str group_id, struct str id, int64_t age_us,
                              struct data_key *ret_key);
void keys_kept_put(struct keys *k, struct str group_id, const struct data_key *key);
/* All of the project's: wiped; and what is known of it. */
void keys_kept_drop(struct keys *k, struct str group_id);
/* Which key is the project's current one, for some seconds: those who ask often need not ask the store each time. "":
 * it has none. */
must_check bool keys_known_get(struct keys *k, struct str group_id, char ret_id[DATA_KEY_ID + 1]);
void keys_known_put(struct keys *k, struct str group_id, struct str id);
void keys_known_drop(struct keys *k, struct str group_id);

#endif
