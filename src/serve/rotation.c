/* A rotation, as a running service sees it (docs/decisions/0028):
 *
 * 1. The file has a new key before the old one. Each process reads it within a second and says so to the others. It is
 *    used for nothing yet: another process may not be able to open what it would seal.
 * 2. When every process has it, one of them writes into the store that it is in use. All follow within a second. What
 *    was sealed or signed before still opens: the old key is there.
 * 3. One process walks over all documents and seals them anew, again and again until a walk finds nothing, and then
 *    each hour while there is more than one key. Wherever it is killed, the next walk does what is left.
 *
 * The operator retires the old key, when nothing needs it (cli/operator/secret_key.c). */
#include "serve/rotation.h"

#include "base/clock.h"
#include "base/log.h"
#include "hosts/hosts.h"
#include "store/seal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TELL_US 60000000
#define WALK_AGAIN_US (3600 * INT64_C(1000000))
#define WALK_RETRY_US 5000000
#define WALK_SHARE_US 20000 /* of each quarter of a second */

/* Whether to tell of a fault that lasts: once a minute. */
static bool told_long_ago(struct key_watch *k)
{
	int64_t now = clock_mono_us();
	if (k->told_us && now - k->told_us < TELL_US)
		return false;
	k->told_us = now;
	return true;
}

static bool file_read(struct key_watch *k)
{
	struct stat now;
	char path[4096];
	snprintf(path, sizeof path, "%s/secret.key", k->data_dir);
	/* A file that is gone or damaged is the operator's mistake: what was read before stays. */
	if (stat(path, &now) < 0) {
		if (told_long_ago(k))
			log_error("%s cannot be read: the service goes on with what it has in memory, and will not "
			          "start again without it: %s",
			          path, strerror(errno));
		return false;
	}
	if (now.st_ino == k->file.st_ino && now.st_size == k->file.st_size &&
	    now.st_mtim.tv_sec == k->file.st_mtim.tv_sec && now.st_mtim.tv_nsec == k->file.st_mtim.tv_nsec)
		return false;
	k->file = now;
	int r = seal_reload(k->data_dir);
	if (r == -ENOKEY)
		log_error("%s lacks the key that is in use: what was read before stays. Bring it back before the "
		          "service is started again",
		          path);
	else if (r < 0)
		log_error("%s was changed and cannot be used: what was read before stays", path);
	else if (r > 0)
		log_info("%s was changed: it has %u keys", path, seal_key_count());
	return r > 0;
}

static bool store_follow(struct key_watch *k)
{
	unsigned before = seal_key_active();
	int r = rotation_follow(k->reader);
	if (r == -ENOKEY && told_long_ago(k))
		log_error("%s/secret.key lacks the key that the store uses now: what other hosts seal, this one cannot "
		          "open. Copy the file from another host",
		          k->data_dir);
	return r == 0 && seal_key_active() != before;
}

/* The newest key comes into use when every host has it. */
static bool use_begin(struct key_watch *k)
{
	struct arena *a = arena_new();
	struct str without = STR("");
	char name[65];
	seal_key_name(0, name);
	int r = hosts_without_key(k->reader, a, name, false, &without);
	tx_rest(k->reader);
	if (r == 0 && without.n && !str_is(without, k->waits_for)) {
		snprintf(k->waits_for, sizeof k->waits_for, "%.*s", STR_ARG(without));
		log_warn("the new key of %s/secret.key waits until these hosts have it: %s. Copy the file to them",
		         k->data_dir, k->waits_for);
	}
	bool begins = r == 0 && !without.n;
	arena_free(a);
	if (!begins || rotation_begin(k->store) < 0)
		return false;
	log_info("the key %.*s is in use from now on", HOST_KEY_TEXT, name);
	k->walk_due_us = clock_mono_us();
	return store_follow(k);
}

/* Where this host's backups lie, for "steward repository rewrap": with other options than the service's it would find
 * nothing to do, and an old key would be retired that all backups need. */
static void places_note(struct key_watch *k)
{
	bool are = false;
	int r = rotation_places_are(k->reader, hosts_self(), k->places, &are);
	if (r == 0 && !are)
		r = rotation_places_note(k->store, hosts_self(), k->places);
	tx_rest(k->reader);
	k->noted = r == 0;
}

int key_watch_look(struct key_watch *k)
{
	if (!k->noted)
		places_note(k);
	bool changed = file_read(k);
	changed |= store_follow(k);
	if (seal_key_count() > 1 && seal_key_active() != 0)
		changed |= use_begin(k);
	tx_rest(k->reader);
	return changed;
}

/* One process does it: the first of those that are there. */
static bool walks_here(struct key_watch *k)
{
	struct arena *a = arena_new();
	struct host *list = NULL;
	size_t count = 0, i = 0;
	int r = hosts_read(k->reader, a, &list, &count);
	tx_rest(k->reader);
	while (r == 0 && i < count && !list[i].alive)
		i++;
	bool here = r == 0 && (i == count || !hosts_shared() || str_eq(list[i].id, hosts_self()));
	arena_free(a);
	return here;
}

static void walk_end(struct key_watch *k, int r)
{
	const struct rotation_walk *w = &k->walk;
	k->walking = false;
	k->walk_due_us = clock_mono_us() + (r < 0 ? WALK_RETRY_US : w->older ? 0 : WALK_AGAIN_US);
	if (r < 0) {
		log_warn("sealing anew was interrupted (error %d) and begins again in seconds", r);
		return;
	}
	if (w->unknown)
		log_error("%lld sealed values open with no key, as that of %s: the key that sealed them is missing",
		          (long long)w->unknown, w->example);
	if (w->older)
		log_info("%lld values were sealed anew with the new key", (long long)w->older);
	else if (rotation_settle(k->store) < 0)
		k->walk_due_us = clock_mono_us() + WALK_RETRY_US;
	else
		log_info("everything in the store is sealed with the new key (%lld values)", (long long)w->current);
}

void key_watch_walk(struct key_watch *k)
{
	int64_t now = clock_mono_us();
	if (seal_key_count() < 2 || seal_key_active() != 0 || (!k->walking && now < k->walk_due_us))
		return;
	if (!k->walking) {
		k->walk = (struct rotation_walk){.current = 0};
		k->walking = walks_here(k);
		if (!k->walking) {
			k->walk_due_us = now + WALK_RETRY_US;
			return;
		}
	}
	int r = 1;
	while (r > 0 && clock_mono_us() - now < WALK_SHARE_US)
		r = rotation_slice(k->reader, &k->walk, k->store);
	if (r <= 0)
		walk_end(k, r);
}
