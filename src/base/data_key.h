/* The key that a project's data is encrypted with. It lies in memory of its own, which is neither swapped out nor part
 * of a core dump, and is wiped when it is given back.
 *
 * Who encrypts (repository/, engine/) stands below who holds the keys (keys/): it is given a `struct data_keys`. */
#ifndef STEWARD_BASE_DATA_KEY_H
#define STEWARD_BASE_DATA_KEY_H

#include "base/str.h"

#define DATA_KEY_BYTES 32
#define DATA_KEY_ID 24
#define DATA_KEY_WHY 600

struct data_key {
	char id[DATA_KEY_ID + 1]; /* names it for ever: to be stored beside what it has encrypted */
	unsigned char *bytes;     /* DATA_KEY_BYTES; NULL: none */
};

/* Memory for a key, with zeros. Never fails: where it cannot be locked, it still is not dumped, and the log says so
 * once. */
void data_key_make(struct data_key *ret_key);
/* A copy in memory of its own. */
void data_key_copy(const struct data_key *from, struct data_key *ret_key);
/* Wipes and frees. Accepts one that has no bytes. */
void data_key_free(struct data_key *key);

/* Where keys are got: called from any thread, never with a transaction open, and it may take seconds. */
struct data_keys {
	void *ctx;
	/* The project's key of that id; where `id` is empty, the one that new data is encrypted with. 0, the key is the
	 * caller's; or negative, with words in ret_why:
	 *   -ENOENT       the project has no encryption at rest (id empty), or never had a key of that id
	 *   -EKEYREVOKED  the key service refuses the project's key, or gives another: only its owner can mend that
	 *   -EAGAIN       the key service gives no answer now: try again later */
	int (*get)(void *ctx, struct str group_id, struct str id, struct data_key *ret_key, char ret_why[DATA_KEY_WHY]);
	/* The key as its key services have wrapped it, for whoever has nothing but a backup: {"id", "proof",
	 * "created", "wraps": [{"provider", "key", "region", "wrapped", "section", "version"}]}, on the heap. Nothing
	 * in it is secret, and no key service is asked. -ENOENT. May be NULL. */
	int (*wrapped)(void *ctx, struct str group_id, struct str id, char **ret_json);
};

#endif
