/* Databases that are not there: clusters in memory, that take as long as they are told to, on the service's clock. For
 * trying tools in milliseconds, with the same transitions and failures as the real thing.
 *
 * A change takes its time without holding a thread: the first call notes when it will be done and says "again then".
 * What is in memory is gone with the process; the documents say what is wanted, and converging again brings it back. */
#include "engine/simulated/simulated.h"

#include "base/clock.h"
#include "engine/simulated/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PORT 27017

static const char *const change_names[] = {"none",    "create", "update", "delete", "sample",  "access", "snapshot",
                                           "restore", "drill",  "index",  "search", "archive", "table",  "federation"};
/* Shares of the time that a creation takes; backup.c has its own. */
static const double change_share[SIM_CHANGES] = {0, 1, 2 / 3.0, 1 / 3.0, 2 / 3.0};
static const char *const change_words[] = {"", "making nodes", "changing nodes", "removing nodes", "loading data"};

static uint64_t hash_add(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_z(uint64_t h, const char *z)
{
	return hash_add(h, z, strlen(z) + 1);
}

static struct sim_cluster **cluster_slot(struct engine *e, const char *id)
{
	struct sim_cluster **at = &e->buckets[hash_z(0xcbf29ce484222325u, id) % SIM_BUCKETS];
	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

static struct sim_cluster *cluster_make(struct engine *e, const char *id)
{
	struct sim_cluster **at = cluster_slot(e, id);
	if (!*at) {
		*at = must_calloc(1, sizeof **at);
		snprintf((*at)->id, sizeof(*at)->id, "%s", id);
	}
	return *at;
}

static void cluster_drop(struct engine *e, const char *id)
{
	struct sim_cluster **at = cluster_slot(e, id), *s = *at;
	if (!s)
		return;
	*at = s->next;
	free(s->nodes);
	free(s->moments);
	free(s);
}

static uint64_t shape_of(const struct engine_cluster *want)
{
	uint64_t h = 0xcbf29ce484222325u;
	const unsigned facts[] = {want->version, want->paused, want->quorum, want->shards};
	h = hash_add(h, facts, sizeof facts);
	for (size_t i = 0; i < want->node_count; i++) {
		const struct engine_node *n = &want->nodes[i];
		const unsigned numbers[] = {(unsigned)n->kind, n->shard, n->disk_gb, n->priority, n->outage};
		h = hash_z(hash_z(hash_z(h, n->name), n->region), n->instance_size);
		h = hash_add(h, numbers, sizeof numbers);
	}
	for (size_t i = 0; i < want->param_count; i++)
		h = hash_z(hash_z(h, want->params[i].name), want->params[i].value);
	return want->audit.enabled ? hash_z(h, want->audit.classes) : h;
}

static bool was_primary(const struct sim_cluster *old, const char *name)
{
	for (size_t i = 0; i < old->node_count; i++)
		if (old->nodes[i].primary && strcmp(old->nodes[i].name, name) == 0)
			return true;
	return false;
}

/* The primary of each shard: a node of the highest priority, and among those the one it has. */
static void primaries_choose(const struct engine_cluster *want, const struct sim_cluster *old,
                             struct node_status *nodes)
{
	for (unsigned shard = 0; shard < want->shards; shard++) {
		const struct engine_node *best = NULL;
		for (size_t i = 0; i < want->node_count; i++) {
			const struct engine_node *n = &want->nodes[i];
			if (n->shard != shard || n->kind != NODE_ELECTABLE || !n->priority || n->outage)
				continue;
			if (!best || n->priority > best->priority ||
			    (n->priority == best->priority && was_primary(old, n->name)))
				best = n;
		}
		if (best && !want->paused)
			nodes[best - want->nodes].primary = true;
	}
}

static int64_t started_before(const struct sim_cluster *old, const char *name, int64_t otherwise)
{
	for (size_t i = 0; i < old->node_count; i++)
		if (strcmp(old->nodes[i].name, name) == 0 && old->nodes[i].state == NODE_RUNNING)
			return old->nodes[i].started_ms;
	return otherwise;
}

static void cluster_become(struct engine *e, struct sim_cluster *s, const struct engine_cluster *want, bool renew)
{
	struct node_status *nodes = must_calloc(want->node_count + 1, sizeof *nodes);
	int64_t now = clock_now_ms();
	if (!s->exists || renew)
		s->patch = e->patch;
	for (size_t i = 0; i < want->node_count; i++) {
		const struct engine_node *n = &want->nodes[i];
		struct node_status *to = &nodes[i];
		*to = (struct node_status){.port = PORT,
		                           .kind = n->kind,
		                           .shard = n->shard,
		                           .state = want->paused || n->outage ? NODE_STOPPED : NODE_RUNNING,
		                           .started_ms = renew ? now : started_before(s, n->name, now)};
		snprintf(to->name, sizeof to->name, "%s", n->name);
		snprintf(to->host, sizeof to->host, "%s.%s.%s", n->name, want->project_hash, e->domain);
		snprintf(to->version, sizeof to->version, "%u.%u.0", want->version, 20 - want->version % 20 + s->patch);
	}
	primaries_choose(want, s, nodes);
	free(s->nodes);
	s->nodes = nodes;
	s->node_count = want->node_count;
	s->shards = want->shards;
	s->shape = shape_of(want);
	/* One that was found again was so before. */
	sim_moments_note(s, want->adopt && !s->exists ? 0 : now);
	s->exists = true;
	s->change = SIM_NONE;
}

struct sim_cluster *sim_cluster_find(struct engine *e, const char *id)
{
	return *cluster_slot(e, id);
}

bool sim_told_to_fail(struct engine *e, enum sim_change change)
{
	if (!e->fail[change])
		return false;
	e->fail[change]--;
	return true;
}

/* What change_wait() has to say, once the lock is let go: telling may wait for the store. */
struct waiting {
	enum sim_change change;
	unsigned percent;
	int64_t again_ms, reached_ms;
};

/* 0: the time for the change has passed. -EAGAIN: not yet. -EIO: it was told to fail. */
static int change_wait(struct engine *e, struct sim_cluster *s, enum sim_change change, uint64_t to, struct waiting *w)
{
	int64_t now = clock_now_ms();
	if (s->change != change || s->changing_to != to) {
		s->change = change;
		s->changing_to = to;
		s->from_ms = now;
		s->until_ms = now + (int64_t)(e->seconds * change_share[change] * 1000 + 0.5);
	}
	if (now < s->until_ms) {
		/* In between, to tell how far it is. */
		int64_t whole = s->until_ms - s->from_ms,
		        again = now + (whole > 4LL * SIM_TELL_MS ? whole / 4 : SIM_TELL_MS);
		w->again_ms = again < s->until_ms ? again : s->until_ms;
		w->percent = (unsigned)((now - s->from_ms) * 100 / whole);
		w->change = change;
		return -EAGAIN;
	}
	s->change = SIM_NONE;
	w->reached_ms = s->until_ms;
	return sim_told_to_fail(e, change) ? -EIO : 0;
}

static void waiting_tell(const struct waiting *w, struct engine_progress *p)
{
	p->reached_ms = w->reached_ms;
	if (!w->again_ms)
		return;
	p->again_ms = w->again_ms;
	p->tell(p->ctx, w->percent, change_words[w->change]);
}

static int sim_can_run(bool real_clock, struct arena *a, const char **ret_why)
{
	return 0;
}

static int sim_start(const struct engine_options *o, struct engine **ret_engine)
{
	struct engine *e = must_calloc(1, sizeof *e);
	pthread_mutex_init(&e->lock, NULL);
	snprintf(e->domain, sizeof e->domain, "%s", o->domain);
	e->seconds = e->standard_seconds = o->simulated_seconds;
	e->backups = sim_backups_new();
	e->keys = o->keys;
	*ret_engine = e;
	return 0;
}

static void sim_stop(struct engine *e)
{
	for (size_t i = 0; i < SIM_BUCKETS; i++)
		while (e->buckets[i])
			cluster_drop(e, e->buckets[i]->id);
	sim_backups_free(e->backups);
	sim_lakes_free(e);
	sim_federations_free(e);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static int sim_converge(struct engine *e, const struct engine_cluster *want, const struct engine_access *access,
                        struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	struct sim_cluster *s = cluster_make(e, want->id);
	uint64_t shape = shape_of(want);
	struct waiting w = {.again_ms = 0};
	int r = 0;
	if (!s->exists && want->adopt)
		cluster_become(e, s, want, false);
	bool renew = want->renew && s->exists && s->patch < e->patch;
	bool change = !s->exists || s->shape != shape || renew;
	if (change)
		r = change_wait(e, s, s->exists ? SIM_UPDATE : SIM_CREATE, shape + renew, &w);
	if (r == 0 && change)
		cluster_become(e, s, want, renew);
	if (r == 0) {
		s->slow_fixed = want->slow_fixed;
		sim_archive_note(e, want);
	}
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress);
	if (r == -EIO)
		*ret_why = "the test control asked for this failure";
	return r;
}

static int sim_destroy(struct engine *e, const char *cluster_id, struct engine_progress *progress)
{
	pthread_mutex_lock(&e->lock);
	struct sim_cluster *s = *cluster_slot(e, cluster_id);
	struct waiting w = {.again_ms = 0};
	int r = s && s->exists ? change_wait(e, s, SIM_DELETE, 0, &w) : 0;
	if (r == 0) {
		sim_archive_end(e, cluster_id);
		cluster_drop(e, cluster_id);
	}
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress);
	return r;
}

/* The next electable node in the order of the list takes over. */
static int sim_switchover(struct engine *e, const char *cluster_id, unsigned shard, const char *from,
                          const char **ret_why)
{
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	struct sim_cluster *s = *cluster_slot(e, cluster_id);
	size_t old = 0;
	while (s && old < s->node_count && !(s->nodes[old].primary && s->nodes[old].shard == shard))
		old++;
	if (s && old < s->node_count)
		r = 0;
	if (r == 0 && strcmp(s->nodes[old].name, from) == 0) {
		for (size_t i = 1; i < s->node_count; i++) {
			struct node_status *n = &s->nodes[(old + i) % s->node_count];
			if (n->shard != shard || n->kind != NODE_ELECTABLE || n->state != NODE_RUNNING)
				continue;
			s->nodes[old].primary = false;
			n->primary = true;
			break;
		}
		s->nodes[old].started_ms = clock_now_ms();
		sim_moments_note(s, clock_now_ms());
	}
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		*ret_why = "the shard has no primary";
	return r;
}

static int sim_access_apply(struct engine *e, const char *cluster_id, const struct engine_access *access,
                            const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = *cluster_slot(e, cluster_id);
	int r = !s || !s->exists ? -ENOENT : sim_told_to_fail(e, SIM_ACCESS) ? -EIO : 0;
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		*ret_why = r == -EIO ? "the test control asked for this failure" : "there is no such cluster";
	return r;
}

static int sim_observe(struct engine *e, const char *cluster_id, struct arena *a, struct cluster_status *ret_status)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = *cluster_slot(e, cluster_id);
	*ret_status = (struct cluster_status){.exists = s && s->exists};
	if (s && s->exists) {
		ret_status->nodes = arena_new_array(a, struct node_status, s->node_count + 1);
		ret_status->node_count = s->node_count;
		memcpy(ret_status->nodes, s->nodes, s->node_count * sizeof *s->nodes);
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static void sim_stats(struct engine *e, struct engine_stats *ret_stats)
{
	*ret_stats = (struct engine_stats){.failovers = 0};
	pthread_mutex_lock(&e->lock);
	for (size_t b = 0; b < SIM_BUCKETS; b++)
		for (const struct sim_cluster *s = e->buckets[b]; s; s = s->next)
			for (size_t i = 0; i < s->node_count; i++) {
				const struct node_status *n = &s->nodes[i];
				bool follows = n->state == NODE_RUNNING && !n->primary && n->kind != NODE_ROUTER;
				ret_stats->nodes[n->kind][n->primary][n->state]++;
				ret_stats->standbys += follows;
				ret_stats->streaming += follows;
			}
	pthread_mutex_unlock(&e->lock);
}

/* 0 when there is such a node and it runs. */
static int node_check(struct engine *e, const char *cluster_id, const char *node)
{
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = *cluster_slot(e, cluster_id);
	for (size_t i = 0; s && i < s->node_count; i++)
		if (strcmp(s->nodes[i].name, node) == 0)
			r = s->nodes[i].state == NODE_RUNNING ? 0 : -EAGAIN;
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* A new server has this one. */
static int sim_databases(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                         struct str **ret_names, size_t *ret_count)
{
	int r = node_check(e, cluster_id, node);
	if (r < 0)
		return r;
	*ret_names = arena_new_of(a, struct str);
	**ret_names = STR("postgres");
	*ret_count = 1;
	return 0;
}

static int sim_partitions(struct engine *e, const char *cluster_id, const char *node, struct arena *a,
                          struct str **ret_names, size_t *ret_count)
{
	int r = node_check(e, cluster_id, node);
	if (r < 0 && r != -EAGAIN)
		return r;
	*ret_names = arena_new_of(a, struct str);
	**ret_names = STR("data");
	*ret_count = 1;
	return 0;
}

static int sim_sent(struct engine *e, const char *cluster_id, struct arena *a, struct engine_sent **ret_list,
                    size_t *ret_count)
{
	*ret_list = NULL;
	*ret_count = 0; /* nobody connects */
	return 0;
}

static int sim_tables_check(struct engine *e, const char *cluster_id, const char *node, const struct str *names,
                            size_t count, bool *ret_there)
{
	int r = node_check(e, cluster_id, node);
	if (r == 0)
		sim_tables_find(names, count, ret_there);
	return r;
}

static int sim_audit_check(struct engine *e, const char **ret_why)
{
	return 0;
}

static size_t sim_versions(struct engine *e, unsigned *ret_versions, size_t max)
{
	static const unsigned versions[] = {17, 16, 15};
	size_t n = 0;
	for (; n < max && n < sizeof versions / sizeof *versions; n++)
		ret_versions[n] = versions[n];
	return n;
}

static int sim_load_sample(struct engine *e, const char *cluster_id, struct engine_progress *progress, struct arena *a,
                           const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	struct sim_cluster *s = *cluster_slot(e, cluster_id);
	struct waiting w = {.again_ms = 0};
	int r = s && s->exists ? change_wait(e, s, SIM_SAMPLE, 0, &w) : -ENOENT;
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress);
	if (r == -EIO)
		*ret_why = "the test control asked for this failure";
	return r;
}

static bool sim_behind(struct engine *e, const char *cluster_id)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = *cluster_slot(e, cluster_id);
	bool behind = s && s->exists && s->patch < e->patch;
	pthread_mutex_unlock(&e->lock);
	return behind;
}

static void sim_patch(struct engine *e, unsigned patch)
{
	pthread_mutex_lock(&e->lock);
	e->patch = patch;
	pthread_mutex_unlock(&e->lock);
}

static void sim_seconds(struct engine *e, double seconds)
{
	pthread_mutex_lock(&e->lock);
	e->seconds = seconds;
	pthread_mutex_unlock(&e->lock);
}

static void sim_fail(struct engine *e, const char *change, unsigned times)
{
	pthread_mutex_lock(&e->lock);
	for (size_t i = 1; i < SIM_CHANGES; i++)
		e->fail[i] = change && strcmp(change, change_names[i]) == 0 ? times : 0;
	pthread_mutex_unlock(&e->lock);
}

static void sim_away(struct engine *e, const char *region)
{
	pthread_mutex_lock(&e->lock);
	snprintf(e->away, sizeof e->away, "%s", region ? region : "");
	pthread_mutex_unlock(&e->lock);
}

static void sim_download(struct engine *e, uint64_t bytes)
{
	pthread_mutex_lock(&e->lock);
	e->download_bytes = bytes;
	pthread_mutex_unlock(&e->lock);
}

static void sim_standard(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	e->seconds = e->standard_seconds;
	memset(e->fail, 0, sizeof e->fail);
	e->away[0] = 0;
	e->download_bytes = 0;
	pthread_mutex_unlock(&e->lock);
}

static int sim_can_encrypt(struct engine *e, struct arena *a, const char **ret_why)
{
	return 0;
}

/* Its clusters are in memory, made from what the store says. */
static int sim_known(struct engine *e, struct arena *a, struct engine_known **ret_list, size_t *ret_count)
{
	*ret_list = NULL;
	*ret_count = 0;
	return 0;
}

static const struct engine_core_ops sim_core = {
        .can_run = sim_can_run,
        .start = sim_start,
        .stop = sim_stop,
        .converge = sim_converge,
        .destroy = sim_destroy,
        .known = sim_known,
        .observe = sim_observe,
        .switchover = sim_switchover,
        .behind = sim_behind,
        .versions = sim_versions,
        .can_encrypt = sim_can_encrypt,
};
static const struct engine_access_ops sim_access = {.apply = sim_access_apply};
static const struct engine_log_ops sim_logs = {.open = sim_log_open,
                                               .logins = sim_logins,
                                               .follow = sim_log_follow,
                                               .end = sim_log_end,
                                               .audit_check = sim_audit_check};
static const struct engine_statistics_ops sim_statistics = {.host = sim_stats,
                                                            .databases = sim_databases,
                                                            .partitions = sim_partitions,
                                                            .tables = sim_tables_check,
                                                            .sent = sim_sent};
static const struct engine_query_ops sim_query = {.load_sample = sim_load_sample};
static const struct engine_control_ops sim_control = {.seconds = sim_seconds,
                                                      .fail = sim_fail,
                                                      .patch = sim_patch,
                                                      .away = sim_away,
                                                      .download = sim_download,
                                                      .standard = sim_standard};

const struct engine_ops engine_simulated = {
        .name = "simulated",
        .core = &sim_core,
        .access = &sim_access,
        .advice = &sim_advice,
        .logs = &sim_logs,
        .statistics = &sim_statistics,
        .history = &sim_history,
        .backup = &sim_backup,
        .query = &sim_query,
        .index = &sim_index,
        .lake = &sim_lake,
        .federation = &sim_federation,
        .shapes = &sim_shapes,
        .control = &sim_control,
};
