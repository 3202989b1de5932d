/* The keys of one repository. The first is opened by the service's key, and every repository has it. Where the project
 * has encryption at rest, what is written is sealed with keys that are derived from its data key, and names that key;
 * older objects stay as they are, and are opened with the key that they name. Chunks' ids are of the same key as what
 * names them: nothing that one key has sealed depends on what another has.
 *
 * Keys lie in memory that is neither swapped out nor dumped, and go with the repository. */
#include "repository/keys.h"

#include "base/arena.h"
#include "base/clock.h"
#include "repository/common.h"
#include "repository/crypt.h"
#include "repository/internal.h"
#include "repository/places.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>

/* `data` is what objects and packs have theirs from. */
static struct repo_key *key_make(const char *id, const unsigned char data[REPO_KEY_BYTES])
{
	struct repo_key *k = must_calloc(1, sizeof *k);
	for (size_t i = 0; i < 2; i++)
		data_key_make(&k->memory[i]);
	memcpy(k->memory[0].bytes, data, REPO_KEY_BYTES);
	crypt_derive(data, NULL, 0, "chunk id", k->memory[1].bytes);
	memcpy(k->id, id, strlen(id) + 1);
	k->data = k->memory[0].bytes;
	k->ids = k->memory[1].bytes;
	return k;
}

static struct repo_key *key_of(const struct repository *r, const struct data_key *key)
{
	unsigned char data[REPO_KEY_BYTES];
	crypt_derive(key->bytes, r->group, strlen(r->group), "backups", data);
	struct repo_key *k = key_make(key->id, data);
	OPENSSL_cleanse(data, sizeof data);
	return k;
}

static void key_free(struct repo_key *k)
{
	for (size_t i = 0; i < 2; i++)
		data_key_free(&k->memory[i]);
	free(k);
}

void repo_keys_begin(struct repository *r, const unsigned char data[REPO_KEY_BYTES])
{
	r->keys = key_make("", data);
	r->current = r->keys;
}

void repo_keys_free(struct repository *r)
{
	while (r->keys) {
		struct repo_key *k = r->keys;
		r->keys = k->next;
		key_free(k);
	}
}

/* With the lock. */
static struct repo_key *key_known(const struct repository *r, const char *id)
{
	struct repo_key *k = r->keys;
	while (k && strcmp(k->id, id) != 0)
		k = k->next;
	return k;
}

static const struct repo_key *key_keep(struct repository *r, const struct data_key *key)
{
	pthread_mutex_lock(&r->key_lock);
	struct repo_key *k = key_known(r, key->id);
	if (!k) {
		k = key_of(r, key);
		k->next = r->keys;
		r->keys = k;
	}
	k->asked_us = clock_boot_us();
	pthread_mutex_unlock(&r->key_lock);
	return k;
}

void repo_keys_choose(struct repository *r, const struct data_key *key)
{
	pthread_mutex_lock(&r->key_lock);
	const struct repo_key *first = key_known(r, "");
	pthread_mutex_unlock(&r->key_lock);
	r->current = key ? key_keep(r, key) : first;
}

const struct repo_key *repo_key_current(struct repository *r)
{
	return r->current;
}

int repo_key_find(struct repository *r, const char *id, const struct repo_key **ret_key)
{
	struct data_key key;
	pthread_mutex_lock(&r->key_lock);
	const struct repo_key *k = key_known(r, id);
	pthread_mutex_unlock(&r->key_lock);
	if (!k) {
		int result = place_key_get(r, id, &key);
		if (result < 0)
			return result;
		k = key_keep(r, &key);
		data_key_free(&key);
	}
	*ret_key = k;
	return 0;
}

int repo_key_check(struct repository *r, const struct repo_key *k)
{
	struct data_key key;
	pthread_mutex_lock(&r->key_lock);
	/* The current one is asked for by whoever gets the repository. */
	bool fresh = !k->id[0] || k == r->current || clock_boot_us() - k->asked_us < place_keys_us(r);
	pthread_mutex_unlock(&r->key_lock);
	int result = fresh ? 0 : place_key_get(r, k->id, &key);
	if (result == 0 && !fresh) {
		(void)key_keep(r, &key);
		data_key_free(&key);
	}
	return result == -EAGAIN ? 0 : result;
}
