/* Data keys in memory, so that work on a project's data does not wait for its key service each time. */
#include "base/clock.h"
#include "keys/services.h"

#include <stdlib.h>

/* The caller holds the lock. */
static void kept_remove(struct keys *k, size_t at)
{
	data_key_free(&k->kept[at].key);
	k->kept[at] = k->kept[--k->kept_count];
}

static void kept_prune(struct keys *k, int64_t now)
{
	for (size_t i = k->kept_count; i-- > 0;)
		if (now - k->kept[i].at_us > KEYS_KEPT_US)
			kept_remove(k, i);
}

static bool is_of(const struct kept_key *kept, struct str group_id, struct str id)
{
	return str_is(group_id, kept->group_id) && str_is(id, kept->key.id);
}

bool keys_kept_get(struct keys *k, struct str group_id, struct str id, int64_t age_us, struct data_key *ret_key)
{
	int64_t now = clock_boot_us();
	bool found = false;
	pthread_mutex_lock(&k->lock);
	kept_prune(k, now);
	for (size_t i = 0; !found && i < k->kept_count; i++)
		if (is_of(&k->kept[i], group_id, id) && now - k->kept[i].at_us <= age_us) {
			data_key_copy(&k->kept[i].key, ret_key);
			found = true;
		}
	pthread_mutex_unlock(&k->lock);
	return found;
}

void keys_kept_put(struct keys *k, struct str group_id, const struct data_key *key)
{
	size_t oldest = 0;
	pthread_mutex_lock(&k->lock);
	kept_prune(k, clock_boot_us());
	if (!k->kept)
		k->kept = must_calloc(KEYS_KEPT, sizeof *k->kept);
	for (size_t i = k->kept_count; i-- > 0;)
		if (is_of(&k->kept[i], group_id, str_of(key->id)))
			kept_remove(k, i);
	for (size_t i = 1; i < k->kept_count; i++)
		if (k->kept[i].at_us < k->kept[oldest].at_us)
			oldest = i;
	if (k->kept_count == KEYS_KEPT)
		kept_remove(k, oldest);
	struct kept_key *kept = &k->kept[k->kept_count++];
	*kept = (struct kept_key){.at_us = clock_boot_us()};
	str_copy(group_id, kept->group_id, sizeof kept->group_id);
	data_key_copy(key, &kept->key);
	pthread_mutex_unlock(&k->lock);
}

static void known_remove(struct keys *k, struct str group_id, int64_t now)
{
	for (size_t i = k->known_count; i-- > 0;)
		if (k->known[i].until_us < now || str_is(group_id, k->known[i].group_id))
			k->known[i] = k->known[--k->known_count];
}

bool keys_known_get(struct keys *k, struct str group_id, char ret_id[DATA_KEY_ID + 1])
{
	int64_t now = clock_boot_us();
	bool found = false;
	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; !found && i < k->known_count; i++)
		if (k->known[i].until_us >= now && str_is(group_id, k->known[i].group_id)) {
			memcpy(ret_id, k->known[i].id, DATA_KEY_ID + 1);
			found = true;
		}
	pthread_mutex_unlock(&k->lock);
	return found;
}

void keys_known_put(struct keys *k, struct str group_id, struct str id)
{
	int64_t now = clock_boot_us();
	pthread_mutex_lock(&k->lock);
	if (!k->known)
		k->known = must_calloc(KEYS_KEPT, sizeof *k->known);
	known_remove(k, group_id, now);
	if (k->known_count < KEYS_KEPT) {
		struct known_key *known = &k->known[k->known_count++];
		*known = (struct known_key){.until_us = now + KEYS_KNOWN_US};
		str_copy(group_id, known->group_id, sizeof known->group_id);
		str_copy(id, known->id, sizeof known->id);
	}
	pthread_mutex_unlock(&k->lock);
}

void keys_known_drop(struct keys *k, struct str group_id)
{
	pthread_mutex_lock(&k->lock);
	known_remove(k, group_id, clock_boot_us());
	pthread_mutex_unlock(&k->lock);
}

void keys_kept_drop(struct keys *k, struct str group_id)
{
	pthread_mutex_lock(&k->lock);
	known_remove(k, group_id, clock_boot_us());
	for (size_t i = k->kept_count; i-- > 0;)
		if (str_is(group_id, k->kept[i].group_id))
			kept_remove(k, i);
	pthread_mutex_unlock(&k->lock);
}
