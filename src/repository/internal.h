/* A repository that is open, as its own files see it. */
#ifndef STEWARD_REPOSITORY_INTERNAL_H
#define STEWARD_REPOSITORY_INTERNAL_H

#include "repository/index.h"
#include "repository/keys.h"
#include "repository/parity.h"

#include <stdatomic.h>

struct quota; /* quota.h */

struct repository {
	struct repositories *all;
	struct quota *quota; /* NULL: none */
	struct objects *objects;
	char *place; /* "REGION/GROUP/" */
	char *group;
	pthread_mutex_t key_lock;
	struct repo_key *keys; /* the last is the first that it had; none goes before the repository does */
	const struct repo_key *_Atomic current;
	_Atomic int64_t asked_us; /* when the project's key was last asked for; 0: never */
	char *wrapped;            /* what was last put in keys/ID; NULL: it is not known */
	struct chunk_index index;
	struct parities parities;
	unsigned parity; /* packs that share one; 0: none is made */
	struct pace *pace;
	unsigned users;
	uint64_t last_use;
	struct repository *next;
};

#endif
