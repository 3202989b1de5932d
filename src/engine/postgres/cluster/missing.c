/* Data that should be there and is not. A copy of the store put into an empty directory, a disk that was not mounted, a
 * directory that somebody removed: each looks like a cluster that was never made, and was once made anew, empty,
 * without a word. So what a set was made with is noted, here in state.json and by the service in its store, and a set
 * that was made is never made again. As long as one of its nodes has the data the others get it from there; where none
 * has, or where the data of another database lies in its place, nothing is done until it is back or was given up. */
#include "engine/postgres/cluster/missing.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/identity.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define WAYS_OUT "Put it back, delete the cluster, or give the data up: steward give-up --help"

/* --- one set, as it lies on the disk */

struct found {
	unsigned own;     /* nodes that have its data, and whole */
	unsigned leading; /* of them, those of the newest timeline that are no standby's */
	uint32_t timeline;
	char leader[64], standby[64]; /* one of the leading; a standby of the newest timeline */
	uint32_t standby_timeline;
	int unknown;      /* negative: what a node has cannot be known, and why */
	char unclear[64]; /* that node */
	char other[64];   /* one that has another's */
	uint64_t others;
};

static bool is_below(const struct pg_cluster *c, const char *node, const char *below)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/%s/%s/%s", c->engine->dir, c->id, node, below);
	return pg_file_is(path);
}

static void node_find(const struct pg_cluster *c, const char *node, uint64_t expected, struct found *f)
{
	char data[PG_PATH];
	uint64_t identity;
	uint32_t timeline;
	char path[PG_PATH];
	pg_path_set(data, "%s/%s/%s/data", c->engine->dir, c->id, node);
	pg_path_set(path, "%s/PG_VERSION", data);
	int r = pg_file_look(path);
	r = r > 0 ? pg_data_identify(data, &identity, &timeline) : r < 0 ? r : -ENOENT;
	if (r < 0 && r != -ENODATA && !pg_is_absence(-r)) {
		/* Out of descriptors, healthy clusters were once called lost. */
		f->unknown = r;
		snprintf(f->unclear, sizeof f->unclear, "%s", node);
	}
	if (r < 0)
		return;
	if (expected && identity != expected) {
		snprintf(f->other, sizeof f->other, "%s", node);
		f->others = identity;
		return;
	}
	bool standby = is_below(c, node, "data/standby.signal");
	/* Cut short in a rewind or a copy: it is made anew from a primary, and cannot be one. */
	if (is_below(c, node, "conf/rebuild") || (standby && is_below(c, node, "conf/unflushed")))
		return;
	f->own++;
	if (standby) {
		if (!f->standby[0] || timeline > f->standby_timeline)
			snprintf(f->standby, sizeof f->standby, "%s", node);
		f->standby_timeline = timeline > f->standby_timeline ? timeline : f->standby_timeline;
		return;
	}
	if (f->leading && timeline < f->timeline)
		return;
	f->leading = f->leading && timeline == f->timeline ? f->leading + 1 : 1;
	f->timeline = timeline;
	snprintf(f->leader, sizeof f->leader, "%s", node);
}

/* All nodes that are wanted in the set, and those that shall leave it. */
static struct found set_find(const struct pg_cluster *c, const struct pg_set *s, const struct engine_cluster *want,
                             const char *name, uint64_t expected)
{
	struct found f = {0};
	char other[64];
	for (size_t i = 0; i < want->node_count; i++) {
		pg_set_name(&want->nodes[i], other);
		if (strcmp(other, name) == 0)
			node_find(c, want->nodes[i].name, expected, &f);
	}
	for (size_t i = 0; s && i < c->node_count; i++) {
		bool wanted = c->nodes[i]->set != s->number;
		for (size_t k = 0; k < want->node_count && !wanted; k++)
			wanted = strcmp(c->nodes[i]->want.name, want->nodes[k].name) == 0;
		if (!wanted)
			node_find(c, c->nodes[i]->want.name, expected, &f);
	}
	return f;
}

/* --- what was made */

static struct pg_set *set_of(struct pg_cluster *c, const struct engine_node *want)
{
	const struct pg_node *n = pg_cluster_node(c, want->name);
	return pg_cluster_set(c, n ? n->set : want->kind == NODE_ROUTER ? UINT32_MAX : want->shard);
}

static bool was_removed(const struct pg_cluster *c, uint64_t identity)
{
	for (size_t i = 0; i < PG_REMOVED_MAX; i++)
		if (identity && c->removed[i] == identity)
			return true;
	return false;
}

/* Whether the set had data, and which, by the store's word and our own. The store's may be older than an upgrade or
 * a removal that it was not told of any more. */
static bool was_made(const struct pg_cluster *c, const struct pg_set *s, const struct engine_cluster *want,
                     const char *name, uint64_t *ret_expected)
{
	uint64_t marked = 0, kept = s ? s->identity : 0;
	bool made = kept != 0;
	for (size_t i = 0; i < want->made_count; i++) {
		if (strcmp(want->made[i].set, name) != 0)
			continue;
		if (!str_to_u64(str_of(want->made[i].identity), UINT64_MAX, &marked))
			marked = 0;
		if (was_removed(c, marked))
			marked = 0;
		else
			made = true;
	}
	*ret_expected = !marked || (kept && s->former == marked) ? kept : marked;
	return made;
}

static void thing_name(const struct engine_node *n, char ret_text[96])
{
	if (n->kind == NODE_ROUTER)
		snprintf(ret_text, 96, "the router %s", n->name);
	else
		snprintf(ret_text, 96, "shard %u", n->shard);
}

static int set_check(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_node *first,
                     const char **ret_why)
{
	char name[64], thing[96];
	uint64_t expected;
	const struct pg_set *s = set_of(c, first);
	pg_set_name(first, name);
	thing_name(first, thing);
	if (!was_made(c, s, want, name, &expected))
		return 0;
	struct found f = set_find(c, s, want, name, expected);
	if (f.unknown < 0) {
		pg_why_set(ret_why, "the data of %s cannot be looked at: %s/%s/%s: %s", thing, c->engine->dir, c->id,
		           f.unclear, strerror(-f.unknown));
		return f.unknown;
	}
	if (f.other[0])
		pg_why_set(ret_why,
		           "%s/%s/%s/data is another database's data (system identifier %" PRIu64
		           ", that of %s is %" PRIu64 "). Put its own back, delete the cluster, or take what is there: "
		           "steward give-up --help",
		           c->engine->dir, c->id, f.other, f.others, thing, expected);
	else if (f.own == 0)
		pg_why_set(ret_why, "the data of %s is missing: no node of it has any in %s/%s. " WAYS_OUT, thing,
		           c->engine->dir, c->id);
	else if (!s && f.leading != 1)
		pg_why_set(ret_why,
		           "%s/%s/state.json is missing, and the data of %s does not tell which node was its primary. "
		           "Put the file back, delete the cluster, or give it up: steward give-up --help",
		           c->engine->dir, c->id, thing);
	else
		return 0;
	return -ENOMEDIUM;
}

static bool is_first(const struct engine_cluster *want, size_t at)
{
	char name[64], other[64];
	pg_set_name(&want->nodes[at], name);
	for (size_t i = 0; i < at; i++) {
		pg_set_name(&want->nodes[i], other);
		if (strcmp(name, other) == 0)
			return false;
	}
	return true;
}

int pg_missing_check(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	int r = 0;
	for (size_t i = 0; i < want->node_count && r == 0 && !want->give_up; i++)
		if (is_first(want, i))
			r = set_check(c, want, &want->nodes[i], ret_why);
	return r;
}

/* --- going on with what is there */

/* The directory that its last server had its socket in, by its configuration. */
static void sockets_forget(const struct pg_cluster *c, const struct pg_node *n)
{
	static const char key[] = "unix_socket_directories = '";
	char path[PG_PATH], prefix[PG_PATH], *text;
	pg_node_path(c, n, "conf/postgresql.conf", path);
	if (pg_file_read(path, 1 << 20, &text) < 0)
		return;
	const char *at = strstr(text, key);
	pg_path_set(prefix, "%s/run/", c->engine->dir);
	if (at) {
		struct str dir, rest;
		str_cut(str_of(at + strlen(key)), '\'', &dir, &rest);
		pg_path_set(path, "%.*s", STR_ARG(dir));
		const char *slot = path + strlen(prefix);
		if (str_starts(dir, str_of(prefix)) && *slot && strspn(slot, "0123456789") == strlen(slot))
			pg_tree_remove(path);
	}
	free(text);
}

/* The state was lost and the data is there: whoever led leads again. Its servers, should they run, have sockets that
 * nobody knows of any more. */
static int set_recover(struct pg_cluster *c, const struct pg_node *n, const struct found *f, uint64_t identity)
{
	if (c->set_count == PG_SETS_MAX)
		return -E2BIG;
	pthread_mutex_lock(&c->lock);
	struct pg_set *s = &c->sets[c->set_count++];
	*s = (struct pg_set){.number = n->set, .term = 1, .identity = identity};
	snprintf(s->primary, sizeof s->primary, "%s", f->leader[0] ? f->leader : f->standby);
	pthread_mutex_unlock(&c->lock);
	log_warn("engine: %s set %u: its state was lost; %s leads, by its data", c->id, s->number, s->primary);
	int r = 0;
	for (size_t i = 0; i < c->node_count && r == 0; i++)
		if (c->nodes[i]->set == n->set) {
			r = pg_node_halt(c, c->nodes[i], PG_HALT_FAST);
			sockets_forget(c, c->nodes[i]);
		}
	return r;
}

static int set_take(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_node *first)
{
	char name[64];
	uint64_t expected;
	const struct pg_node *n = pg_cluster_node(c, first->name);
	struct pg_set *s = set_of(c, first);
	pg_set_name(first, name);
	bool made = was_made(c, s, want, name, &expected);
	if (!n || (!made && !want->give_up))
		return 0;
	struct found f = set_find(c, s, want, name, want->give_up ? 0 : expected);
	if (f.unknown < 0)
		return f.unknown;
	if (!s && f.own)
		return set_recover(c, n, &f, expected);
	if (s) {
		pthread_mutex_lock(&c->lock);
		s->identity = want->give_up ? 0 : expected; /* given up: learned again from what is there */
		pthread_mutex_unlock(&c->lock);
	}
	return 0;
}

int pg_missing_take(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	int r = 0;
	for (size_t i = 0; i < want->node_count && r == 0; i++)
		if (is_first(want, i))
			r = set_take(c, want, &want->nodes[i]);
	if (r < 0)
		pg_why_set(ret_why, "servers of a state that was lost do not end: %s", strerror(-r));
	else
		pg_identities_learn(c);
	return r;
}

void pg_missing_lead(struct pg_cluster *c)
{
	bool lost = false;
	for (size_t i = 0; i < c->set_count && !c->paused; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (!p || !c->sets[i].identity || pg_node_is_made(c, p))
			continue;
		lost = true;
		pthread_mutex_lock(&c->lock);
		p->busy = false;
		pthread_mutex_unlock(&c->lock);
	}
	/* The first time starts the standbys, the second chooses among them. */
	for (int i = 0; i < 2 && lost; i++)
		pg_cluster_care(c, true);
}

void pg_strays_end(const struct engine *e, const char *path)
{
	char data[PG_PATH];
	DIR *d = nolink_opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		pg_path_set(data, "%s/%s/data", path, entry->d_name);
		if (entry->d_name[0] != '.' && pg_file_is(data) && pg_process_sweep(e, data) < 0)
			log_error("engine: processes of %s do not end", data);
	}
	if (d)
		closedir(d);
}
