/* Clusters whose files become encrypted, or plain, node by node: each is stopped, copied beside, and the copy takes its
 * place, while the others go on. And those whose key is lost: stopped, durably. crypt.c says what such files are. */
#include "engine/postgres/cluster/crypt_convert.h"

#include "base/nolink.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/hba.h"
#include "engine/postgres/cluster/make.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
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

#define COPY_MS (24 * 3600 * 1000)
#define EXCHANGE (1u << 1) /* RENAME_EXCHANGE */

int pg_crypt_lock(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->paused = c->locked = true;
	c->open = false;
	pthread_mutex_unlock(&c->lock);
	int r = pg_state_save(c);
	r = r < 0 ? r : pg_cluster_halt(c);
	r = r < 0 ? r : pg_crypt_close(c);
	if (c->engine->repositories)
		repositories_forget(c->engine->repositories, c->group_id);
	return r;
}

static bool node_is_as(const struct pg_cluster *c, const struct pg_node *n, bool encrypted)
{
	char path[PG_PATH];
	unsigned char key[PG_FILES_KEY];
	pg_node_path(c, n, "", path);
	int r = pg_policy_get(path, key);
	return encrypted ? r == 0 && memcmp(key, c->files_key, sizeof key) == 0 : r == -ENODATA;
}

/* What the service alone writes, it copies itself; the rest is the nodes' own, and so is its copy. */
static int conf_copy(const struct pg_user *u, const char *from, const char *to)
{
	char source[PG_PATH], target[PG_PATH], *text;
	DIR *d = nolink_opendir(from);
	int r = d ? pg_dir_make(u, to, false) : -errno;
	for (struct dirent *entry; r == 0 && d && (entry = readdir(d));) {
		struct stat st;
		pg_path_set(source, "%s/%s", from, entry->d_name);
		pg_path_set(target, "%s/%s", to, entry->d_name);
		if (entry->d_name[0] == '.' || nolink_lstat(source, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		r = pg_file_read(source, PG_HBA_MAX, &text);
		if (r < 0)
			break;
		r = strcmp(entry->d_name, PG_KEY_FILE) == 0
		            ? pg_key_write(u, target, text, strlen(text))
		            : pg_file_write(u, target, text, strlen(text), (st.st_mode & 0040) != 0);
		free(text);
	}
	if (d)
		closedir(d);
	return r;
}

struct converting {
	struct pg_cluster *c;
	const struct engine_progress *progress;
	bool encrypted;
};

static bool is_stopped(void *ctx)
{
	const struct converting *v = ctx;
	pthread_mutex_lock(&v->c->lock);
	bool destroying = v->c->destroying;
	pthread_mutex_unlock(&v->c->lock);
	return destroying || pg_is_stopped(v->progress);
}

static int node_copy(const struct converting *v, const char *from, const char *to)
{
	struct pg_cluster *c = v->c;
	const struct pg_stop stop = {.asked = is_stopped, .ctx = (void *)(uintptr_t)v};
	static const char *const parts[] = {"data", "log", "spool"};
	char source[PG_PATH], target[PG_PATH];
	int r = 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && r == 0; i++) {
		pg_path_set(source, "%s/%s", from, parts[i]);
		pg_path_set(target, "%s/%s", to, parts[i]);
		const char *copy[] = {"/bin/cp", "-a", "--", source, target, NULL};
		if (pg_file_is(source))
			r = pg_process_run_until(c->user, copy, COPY_MS, &stop);
	}
	pg_path_set(source, "%s/conf", from);
	pg_path_set(target, "%s/conf", to);
	return r < 0 ? r : conf_copy(c->user, source, target);
}

/* Both are there at every moment, under one name or the other. */
static int exchange(const char *a, const char *b)
{
	return renameat2(AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) < 0 ? -errno : 0;
}

/* Of a node that stands still. The copy is made without the cluster's lock, as those of new nodes are. */
static int node_turn(const struct converting *v, struct pg_node *n)
{
	struct pg_cluster *c = v->c;
	char path[PG_PATH], fresh[PG_PATH];
	pg_node_path(c, n, "", path);
	pg_path_set(fresh, "%s/%s/.%s", c->engine->dir, c->id, n->want.name);
	c->copying = true;
	pthread_mutex_unlock(&c->work);
	int r = pg_tree_remove(fresh); /* of one that was cut short */
	r = r < 0 ? r : pg_dir_make(c->user, fresh, true);
	r = r < 0 || !v->encrypted ? r : pg_policy_set(fresh, c->files_key);
	r = r < 0 ? r : node_copy(v, path, fresh);
	r = r < 0 ? r : pg_filesystem_sync(fresh);
	pthread_mutex_lock(&c->work);
	c->copying = false;
	pthread_cond_broadcast(&c->copied);
	if (r == 0 && c->destroying)
		r = -ENOENT;
	r = r < 0 ? r : exchange(path, fresh);
	if (r == 0) {
		pg_path_set(path, "%s/%s", c->engine->dir, c->id);
		r = pg_dir_sync(path);
	}
	int removed = pg_tree_remove(fresh);
	return r < 0 ? r : removed;
}

static int node_convert(const struct converting *v, struct pg_set *s, struct pg_node *n, const char **ret_why)
{
	struct pg_cluster *c = v->c;
	bool ran = n->pid != 0;
	pg_node_busy(c, n, true);
	int r = pg_node_halt(c, n, PG_HALT_FAST);
	r = r < 0 ? r : node_turn(v, n);
	if (r < 0)
		pg_why_set(ret_why, "%s: its files cannot be %s: %s", n->want.name,
		           v->encrypted ? "encrypted" : "decrypted", strerror(-r));
	if (ran && !c->destroying) {
		int started = pg_node_start(c, n);
		started = started < 0 ? started : pg_node_wait_ready(c, n, PG_START_MS, r < 0 ? NULL : ret_why);
		r = r < 0 ? r : started;
	}
	pg_node_busy(c, n, false);
	return r < 0 || !ran ? r : pg_cluster_wait_streaming(c, s, 30000);
}

static int set_convert(const struct converting *v, struct pg_set *s, const char **ret_why)
{
	struct pg_cluster *c = v->c;
	int r = 0;
	for (int pass = 0; pass < 2 && r == 0; pass++) {
		for (size_t i = 0; i < c->node_count && r == 0; i++) {
			struct pg_node *n = c->nodes[i];
			bool leads = pg_set_primary(c, s) == n;
			if (n->set != s->number || leads != (pass == 1) || node_is_as(c, n, v->encrypted))
				continue;
			/* Another leads meanwhile, where there is one. */
			if (leads && !c->paused && c->node_count > 1)
				(void)!pg_set_switchover(c, s, ret_why);
			r = node_convert(v, s, n, ret_why);
		}
	}
	return r;
}

int pg_crypt_convert(struct pg_cluster *c, bool encrypted, const struct engine_progress *progress, const char **ret_why)
{
	const struct converting v = {c, progress, encrypted};
	int r = 0;
	if (!c->data_key[0])
		return 0;
	for (size_t i = 0; i < c->set_count && r == 0; i++)
		r = set_convert(&v, &c->sets[i], ret_why);
	if (r < 0 || encrypted)
		return r;
	(void)!pg_crypt_close(c);
	pthread_mutex_lock(&c->lock);
	c->data_key[0] = 0;
	c->files_open = true;
	pthread_mutex_unlock(&c->lock);
	return pg_state_save(c);
}
