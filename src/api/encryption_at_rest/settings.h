/* For the family's own files: the stored settings, and how a key is asked for. */
#ifndef STEWARD_API_ENCRYPTION_AT_REST_SETTINGS_H
#define STEWARD_API_ENCRYPTION_AT_REST_SETTINGS_H

#include "api/encryption_at_rest/encryption_at_rest.h"
#include "base/json.h"
#include "keys/keys.h"

#define SETTINGS_KIND "encryption_at_rest"
#define DATA_KEY_KIND "data_key"
#define CHECK_JOB "encryption_check" /* its subject is the project */
#define CHECK_MS INT64_C(900000)
#define CHECKS_MISSED 4 /* after which a service that gives no answer counts as one that refuses */

/* The part of the settings that is one provider's. */
struct section {
	const char *name, *key, *secret; /* "awsKms", and the fields of the key and of the secret */
};
extern const struct section sections[PROVIDERS];

/* A data key as one service has wrapped it. */
struct wrap {
	enum provider provider;
	const json_t *section;
	struct str bytes, version, secret;
	struct provider_role role;
	bool has_role, is_lost; /* lost: its role is gone */
};

/* All of a project, as stored. Freed with the arena. */
struct settings {
	struct str group_id;
	struct doc doc, key_doc; /* rev 0: there is none */
	json_t *body, *secrets;  /* secrets by the section's name */
	json_t *key;             /* the current data key's document; NULL: none was made yet */
	struct wrap wraps[PROVIDERS];
	size_t wrap_count;
};
/* In a read or write. */
must_check int settings_load(struct tx *tx, struct arena *a, struct str group_id, struct settings *ret_settings);
/* The wraps of a data key's document. */
must_check int wraps_load(struct tx *tx, struct arena *a, const struct doc *key, json_t *ret_secrets,
                          struct wrap ret_wraps[PROVIDERS], size_t *ret_count);

bool section_is(const json_t *body, enum provider provider, const char *flag);
/* Whether any provider is enabled. */
bool settings_enabled(const json_t *body);
/* A reader of this thread's own, for as long as `read` takes. */
must_check int with_reader(struct store *store, int (*read)(struct tx *tx, void *ctx), void *ctx);

/* Borrowed from the section. */
struct key_place place_of(enum provider provider, const json_t *section, struct str secret,
                          const struct provider_role *role, struct str group_id);
struct key_place wrap_place(const struct wrap *w, struct str group_id);

/* Asks the wrap's service for the data key, and holds it against the proof. `with`: asked with these credentials where
 * not NULL. The key has its id. */
must_check int wrap_open(struct keys *k, const struct wrap *w, const struct key_place *with, struct str group_id,
                         const json_t *key, struct data_key *ret_key, char why[KEY_WHY]);
/* Whether a failure says that the key is taken back, not that nobody answers. */
bool is_refusal(int result);

/* The first cluster whose data is under the provider's key, or (PROVIDERS) any provider's; empty: none. */
must_check int cluster_using(struct tx *tx, struct arena *a, struct str group_id, unsigned provider,
                             struct str *ret_name);

/* In a write: what follows from the validity of a provider's key having changed. `why`: of what is lost. */
must_check int validity_changed(struct tx *tx, struct arena *a, struct str group_id, enum provider provider, bool valid,
                                const char *why);
/* In a write: the next check, so much later. */
must_check int check_ask(struct tx *tx, struct str group_id, int64_t after_ms);
int check_step(struct job_run *r);

#endif
