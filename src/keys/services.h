/* The key services, for the files of this folder. */
#ifndef STEWARD_KEYS_SERVICES_H
#define STEWARD_KEYS_SERVICES_H

#include "keys/keys.h"
#include "providers/request.h"

#include <pthread.h>

#define KEYS_KEPT 1024 /* at once */
#define KEYS_KNOWN_US (INT64_C(5) * 1000000)
#define KEYS_KEPT_US (INT64_C(3600) * 1000000) /* then they are wiped, unless confirmed again */
#define WRAPPED_MAX 8192

struct kept_key {
	char group_id[25];
	struct data_key key;
	int64_t at_us; /* clock_boot_us() when its service confirmed it */
};

struct known_key {
	char group_id[25], id[DATA_KEY_ID + 1];
	int64_t until_us; /* clock_boot_us() */
};

struct token;

struct keys {
	struct providers *providers;
	struct token *token;                              /* NULL: not configured */
	char *aws, *azure, *google, *azure_login, *local; /* NULL: not configured */
	pthread_mutex_t lock;                             /* of what follows */
	struct kept_key *kept;
	size_t kept_count;
	struct known_key *known;
	size_t known_count;
};

/* One service: `plain` is DATA_KEY_BYTES. */
struct key_service {
	int (*wrap)(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
	            struct key_wrap *ret_wrap, char *why);
	int (*unwrap)(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why);
};
extern const struct key_service aws_keys, azure_keys, google_keys, local_keys, token_keys;
/* What is wrong with a place of the service. */
const char *aws_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);
const char *azure_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);
const char *google_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);
const char *local_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);
const char *token_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field);

/* The operator's token, where the settings name one. Negative after a message on stderr; it is to be closed then too.
 * Whether the token is there is not asked. */
must_check int token_open(const struct key_settings *s, struct token **ret_token);
void token_close(struct token *t); /* accepts NULL */

/* Base64 with padding; `ret_text` has PLAIN_TEXT bytes for a data key. */
#define PLAIN_TEXT 45
void base64_padded(const void *bytes, size_t n, char *ret_text);
/* On the heap, with a NUL at its end. */
char *text_copy(struct str text);
bool text_is_plain(struct str text, const char *more);
/* What a service calls its answers to wrap and unwrap. */
struct key_words {
	const char *what;  /* the call's name, for people */
	const char *bytes; /* the field that has the key */
	const char *by; /* the field that names what has wrapped it: at most by_most of letters, digits and by_more */
	size_t by_most;
	const char *by_more;
};
/* A wrapped key out of an answer, or a plain one, which is wiped there. Both free the answer. `payload`: what was sent
 * and no words may repeat. */
must_check int answer_wrap(struct arena *a, json_t *answer, const struct key_words *words, const char *payload,
                           struct key_wrap *ret_wrap, char *why);
must_check int answer_unwrap(json_t *answer, const struct key_words *words, unsigned char *ret_plain, char *why);
/* A question to a service that takes JSON, by a token. */
struct key_question {
	const char *service; /* its name, for messages */
	const char *code;    /* it refuses with {"error": {code: "...", "message": "..."}} */
	const char *what, *payload;
	char *url;
	bool own; /* the address is the operator's */
	struct buf body;
	struct provider_credentials by;
};
/* Asks; the answer is owned. All that the question has is wiped and freed. */
must_check int answer_get(struct keys *k, struct key_question *q, json_t **ret_answer, char *why);

#endif
