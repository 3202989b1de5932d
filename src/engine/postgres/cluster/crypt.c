/* Encryption of clusters' files by the kernel (fscrypt, policies of version 2). A cluster that shall be encrypted has
 * the directories of its nodes, and what else of its data lies beside them, made as encrypted ones; all that is made
 * below is encrypted without anybody's doing. The kernel needs the key while servers run: it is given it before they
 * start and loses it when they have stopped, and without it neither names nor contents can be read, by nobody.
 *
 * Each cluster has a key of its own, derived from the project's data key (base/data_key.h), whose id state.json has.
 * No right is needed for any of it but to own the directories. A key stays with the kernel when this process ends, as
 * the servers do; after a start of the machine it is asked for again. */
#include "engine/postgres/cluster/crypt.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/data_key.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/fscrypt.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RETRY_US INT64_C(2000000)
#define REVOKED_US INT64_C(30000000)
#define PAUSED_US INT64_C(3000000)
#define ARCHIVE_US INT64_C(15000000)

/* --- a cluster's key */

static int key_ask(struct pg_cluster *c, const char *id, struct data_key *ret_key, const char **ret_why)
{
	const struct data_keys *keys = c->engine->keys;
	char why[DATA_KEY_WHY] = "this service has no keys of projects";
	int r = keys ? keys->get(keys->ctx, str_of(c->group_id), str_of(id), ret_key, why) : -ENOKEY;
	if (r < 0)
		pg_why_set(ret_why, "the files of the cluster cannot be opened without the project's key: %s", why);
	return r == -ENOENT ? -ENOKEY : r;
}

static int key_give(struct pg_cluster *c, const struct data_key *key, const char **ret_why)
{
	unsigned char name[PG_FILES_KEY] = {0};
	int r = pg_key_give(c->engine, key, c->id, name);
	if (r < 0) {
		pg_why_set(ret_why, "the kernel does not take the key of the cluster's files: %s", strerror(-r));
		return r;
	}
	pthread_mutex_lock(&c->lock);
	memcpy(c->files_key, name, sizeof name);
	memcpy(c->data_key, key->id, sizeof c->data_key);
	c->files_open = true;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int pg_crypt_open(struct pg_cluster *c, const char **ret_why)
{
	struct data_key key;
	int r = 0;
	pthread_mutex_lock(&c->crypt);
	if (c->locked) {
		pg_why_set(ret_why, "the project's key was taken back");
		r = -EKEYREVOKED;
	} else if (!c->data_key[0] || pg_key_is_given(c->engine, c->files_key)) {
		c->files_open = true;
	} else {
		c->files_open = false;
		r = key_ask(c, c->data_key, &key, ret_why);
		if (r == 0) {
			r = key_give(c, &key, ret_why);
			data_key_free(&key);
		}
	}
	c->key_due_us = clock_mono_us() + (r == -EKEYREVOKED || r == -ENOKEY ? REVOKED_US
	                                   : r < 0                           ? RETRY_US
	                                                                     : PAUSED_US);
	pthread_mutex_unlock(&c->crypt);
	return r;
}

int pg_crypt_close(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->crypt);
	int r = 0;
	if (c->data_key[0]) {
		c->files_open = false;
		pg_archive_settle(c);
		r = pg_key_take(c->engine, c->files_key);
	}
	c->key_due_us = clock_mono_us() + RETRY_US;
	pthread_mutex_unlock(&c->crypt);
	if (r < 0)
		log_warn("engine: %s: its key is taken away, but not all of its files are closed yet: %s", c->id,
		         strerror(-r));
	return r;
}

void pg_crypt_recall(struct pg_cluster *c)
{
	c->files_open = !c->data_key[0] || pg_key_is_given(c->engine, c->files_key);
}

void pg_crypt_hold(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->files_users++;
	pthread_mutex_unlock(&c->lock);
}

void pg_crypt_release(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->files_users--;
	pthread_mutex_unlock(&c->lock);
}

/* With cluster.lock. A paused cluster's key goes when nobody needs its files, a running one's comes. */
bool pg_crypt_is_due(const struct pg_cluster *c)
{
	bool wrong = c->paused ? c->files_open && !c->files_users : !c->files_open;
	return c->data_key[0] && !c->locked && wrong && clock_mono_us() >= c->key_due_us;
}

/* Log of a paused cluster that is on its way. */
static bool is_archiving(struct pg_cluster *c)
{
	struct arena *a = arena_new();
	struct engine_archive archive;
	bool on = pg_backup_archive(c->engine, c->id, a, &archive) == 0 && archive.on &&
	          (archive.spool_bytes > 0 || archive.lag_ms > 0);
	arena_free(a);
	return on;
}

void pg_crypt_rest(struct pg_cluster *c)
{
	if (!c->data_key[0])
		return;
	if (pg_archives(c)) /* the last of its log has yet to be handed on */
		c->key_due_us = clock_mono_us() + ARCHIVE_US;
	else
		(void)!pg_crypt_close(c);
}

int pg_crypt_care(struct pg_cluster *c)
{
	const char *why = NULL;
	if (!c->data_key[0])
		return 0;
	if (c->locked)
		return -EKEYREVOKED;
	if (!c->paused) {
		bool shut = pg_crypt_is_shut(c);
		int r = pg_crypt_open(c, &why);
		if (r < 0)
			log_warn("engine: %s: %s", c->id, why);
		else if (shut)
			log_info("engine: %s: its files are open", c->id);
		return r;
	}
	bool runs = false;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->node_count; i++)
		runs |= c->nodes[i]->pid != 0 || c->nodes[i]->busy;
	bool close = c->files_open && !c->files_users && !runs && clock_mono_us() >= c->key_due_us;
	pthread_mutex_unlock(&c->lock);
	if (close && !is_archiving(c))
		(void)!pg_crypt_close(c);
	return 0;
}

int pg_crypt_begin(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	struct data_key key;
	pthread_mutex_lock(&c->lock);
	c->locked = false;
	memcpy(c->group_id, want->group_id, sizeof c->group_id);
	pthread_mutex_unlock(&c->lock);
	if (!want->encrypted || c->data_key[0])
		return pg_crypt_open(c, ret_why);
	struct arena *a = arena_new();
	const char *why = NULL;
	int r = pg_can_encrypt(c->engine, a, &why);
	if (r < 0)
		pg_why_set(ret_why, "%s", why);
	arena_free(a);
	r = r < 0 ? r : key_ask(c, "", &key, ret_why);
	if (r == 0) {
		pthread_mutex_lock(&c->crypt);
		r = key_give(c, &key, ret_why);
		pthread_mutex_unlock(&c->crypt);
		data_key_free(&key);
	}
	return r;
}
