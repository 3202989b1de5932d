/* From a region to its repository. */
#ifndef STEWARD_REPOSITORY_PLACES_H
#define STEWARD_REPOSITORY_PLACES_H

#include "repository/common.h"

struct data_key;  /* base/data_key.h */
struct data_keys; /* the same */
struct pace;      /* base/pace.h */

struct repositories_options {
	const char *fallback;       /* URL for regions without one of their own; never NULL */
	bool fallback_is_own;       /* a directory of the service's own, which it makes anew whatever was there */
	const char *const *regions; /* "US_EAST_1=URL" */
	size_t region_count;
	uint64_t quota; /* bytes that a project may take in a region; what comes then is refused: -EDQUOT. 0: none */
	/* So many packs share a second copy of what one of them has (parity.h); 0: there is none. */
	unsigned parity;
	struct pace *pace; /* of what is read for snapshots and written by restores (base/pace.h); NULL: no bound */
	struct objects_options s3;         /* endpoint, region, keys for all that are s3:// */
	struct objects_options azure;      /* endpoint, account, key for all that are azure:// */
	unsigned char key[REPO_KEY_BYTES]; /* the service's: seals the projects' keys */
	const struct data_keys *keys;      /* of projects with encryption at rest; NULL: none is at hand */
	int64_t keys_us; /* how long it holds what they told of a project's key; 0: ten seconds. Snapshots always ask */
};
must_check int repositories_open(const struct repositories_options *o, struct repositories **ret_all);
void repositories_close(struct repositories *all); /* accepts NULL */
/* The service's keys from now on: the first seals, all of them open. */
#define REPO_SERVICE_KEYS 4
struct repo_service_keys {
	size_t count;
	unsigned char keys[REPO_SERVICE_KEYS][REPO_KEY_BYTES];
};
/* Seals what the service's keys seal (the project's key, what its key service needs) with the first of them. The number
 * of objects that were put anew. */
must_check int repository_rewrap(struct repository *r, uint64_t *ret_count);
/* A hash of all places: of two processes the same when both keep their backups in the same ones. */
void repositories_places_hash(const struct repositories *all, unsigned char ret_hash[32]);
void repositories_keys_set(struct repositories *all, const struct repo_service_keys *keys);
/* The project's in a region; counted: put it back. Makes its key where there is none. Opened once, and kept open for
 * a while. What is written from then on is sealed with the project's data key, where it has one: -EKEYREVOKED, and
 * -EAGAIN where it was not open yet, when that is out of reach. */
must_check int repository_get(struct repositories *all, const char *region, const char *group_id,
                              struct repository **ret_repository);
void repository_put(struct repository *r); /* accepts NULL */
/* The project's key was taken back: of repositories that nobody uses just now, none is left in memory. */
void repositories_forget(struct repositories *all, const char *group_id);
/* Which object store the region's repositories lie in: the same for regions that share one. */
const void *repositories_store(const struct repositories *all, const char *region);
/* Each repository that there is, as the object stores list it; negative ends it with that. */
typedef int repositories_visit(void *ctx, const char *region, const char *group_id);
must_check int repositories_each(struct repositories *all, repositories_visit *visit, void *ctx);
/* Backups lie in the region's store: where nothing is found it is away, and no new one is made. Before it is used. */
void repositories_expect(struct repositories *all, const char *region);
/* Each data key of the project, as its key services have wrapped it (data_keys.wrapped). */
typedef int repo_wrapped_visit(void *ctx, const char *text);
must_check int repo_wrapped_each(struct repository *r, repo_wrapped_visit *visit, void *ctx);

/* New objects are sealed with the key that the project has now. */
must_check int repository_key_refresh(struct repository *r);
/* How long a key that was given is used before its holder is asked again. */
int64_t place_keys_us(const struct repository *r);
/* The project's key of that id, as the service holds it. */
must_check int place_key_get(const struct repository *r, const char *id, struct data_key *ret_key);

#endif
