/* What a project's objects are sealed with. */
#ifndef STEWARD_REPOSITORY_KEYS_H
#define STEWARD_REPOSITORY_KEYS_H

#include "base/data_key.h"
#include "repository/common.h"

#include <errno.h>

struct repo_key {
	char id[DATA_KEY_ID + 1];        /* of the project's data key; "": of the service's alone */
	const unsigned char *data, *ids; /* REPO_KEY_BYTES each: of objects and packs; of chunks' ids */
	struct data_key memory[2];
	int64_t asked_us; /* when its holder last gave it; with the repository's key_lock */
	struct repo_key *next;
};
/* The first of a repository, which the service's key opens. */
void repo_keys_begin(struct repository *r, const unsigned char data[REPO_KEY_BYTES]);
void repo_keys_free(struct repository *r);
/* Makes the project's key the one for new objects; NULL: the first. */
void repo_keys_choose(struct repository *r, const struct data_key *key);
const struct repo_key *repo_key_current(struct repository *r);
/* By the id of a project's key, asked for where it is not known yet. -EKEYREVOKED, -EAGAIN; -ENOKEY: nobody has it. */
must_check int repo_key_find(struct repository *r, const char *id, const struct repo_key **ret_key);
/* For whoever reads data with it: whether it was taken back since, which happens to earlier keys as to the current one.
 * Sweeps do not ask: what they know and what they cannot open must not change in their midst. A holder that gives no
 * answer takes nothing back. */
must_check int repo_key_check(struct repository *r, const struct repo_key *k);
/* Of these: what is sealed with the key is out of reach, and stays as it is. */
static inline bool repo_key_is_lost(int result)
{
	return result == -EKEYREVOKED || result == -ENOKEY;
}

#endif
