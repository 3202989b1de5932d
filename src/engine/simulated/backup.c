/* Backups of databases that are not there: snapshots that take as long as their size asks for, on the service's clock,
 * archives that have every moment since they began, and a small tar. What a process knew of them is gone with it; ids
 * that it does not know are taken to be there, since the service's documents say that they are. */
#include "base/clock.h"
#include "base/data_key.h"
#include "engine/simulated/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SET_BYTES (256ull << 20) /* of a new set; it grows by GROWTH each second */
#define GROWTH 1024ull
#define PACKED 4ull           /* a stored byte for so many */
#define SNAPSHOT_SHARE 0.3333 /* of the time of a creation, for SET_BYTES */
#define RESTORE_SHARE 0.6666
#define LSN_PER_MS 16ull
#define CHECKPOINT_MS 60000LL
#define WORK_TEXT 64

struct sim_snapshot {
	struct sim_snapshot *next;
	struct engine_source source; /* its region is one of those that it lies in: one entry each */
	uint64_t bytes, stored;
	int64_t at_ms;
	char data_key[25];
};

/* The log of an incarnation. */
struct sim_line {
	struct sim_line *next;
	char cluster_id[25], incarnation[25], group_id[25];
	struct engine_archiving where; /* its region, and those that it is copied to */
	int64_t from_ms, to_ms;        /* to_ms 0: it goes on */
	bool found;                    /* it was there before this process */
};

/* What takes time. */
struct sim_work {
	struct sim_work *next;
	char key[WORK_TEXT];
	int64_t from_ms, until_ms;
};

struct sim_backups {
	struct sim_snapshot *snapshots;
	struct sim_line *lines;
	struct sim_work *works;
};

struct sim_backups *sim_backups_new(void)
{
	return must_calloc(1, sizeof(struct sim_backups));
}

void sim_backups_free(struct sim_backups *b)
{
	while (b->snapshots) {
		struct sim_snapshot *s = b->snapshots;
		b->snapshots = s->next;
		free(s);
	}
	while (b->lines) {
		struct sim_line *l = b->lines;
		b->lines = l->next;
		free(l);
	}
	while (b->works) {
		struct sim_work *w = b->works;
		b->works = w->next;
		free(w);
	}
	free(b);
}

/* --- what takes time */

static struct sim_work **work_place(struct sim_backups *b, const char *key)
{
	struct sim_work **at = &b->works;
	while (*at && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

static void work_end(struct sim_backups *b, const char *key)
{
	struct sim_work **at = work_place(b, key), *w = *at;
	if (!w)
		return;
	*at = w->next;
	free(w);
}

struct waiting {
	unsigned percent;
	int64_t again_ms;
};

/* 0: the time has passed; -EAGAIN: not yet. */
static int work_wait(struct engine *e, const char *key, double seconds, struct waiting *ret_waiting)
{
	struct sim_work **at = work_place(e->backups, key);
	int64_t now = clock_now_ms();
	if (!*at) {
		*at = must_calloc(1, sizeof **at);
		snprintf((*at)->key, sizeof(*at)->key, "%s", key);
		(*at)->from_ms = now;
		(*at)->until_ms = now + (int64_t)(seconds * 1000 + 0.5);
	}
	const struct sim_work *w = *at;
	if (now < w->until_ms) {
		int64_t whole = w->until_ms - w->from_ms,
		        again = now + (whole > 4LL * SIM_TELL_MS ? whole / 4 : SIM_TELL_MS);
		ret_waiting->again_ms = again < w->until_ms ? again : w->until_ms;
		ret_waiting->percent = (unsigned)((now - w->from_ms) * 100 / whole);
		return -EAGAIN;
	}
	work_end(e->backups, key);
	return 0;
}

static void waiting_tell(const struct waiting *w, struct engine_progress *p, const char *what)
{
	if (!w->again_ms)
		return;
	p->again_ms = w->again_ms;
	p->tell(p->ctx, w->percent, what);
}

/* --- what there is */

static bool is_of(const struct sim_snapshot *s, const struct engine_source *of)
{
	return strcmp(s->source.cluster_id, of->cluster_id) == 0 && strcmp(s->source.snapshot_id, of->snapshot_id) == 0;
}

static struct sim_snapshot *snapshot_find(struct engine *e, const struct engine_source *of, const char *region)
{
	struct sim_snapshot *s = e->backups->snapshots;
	while (s && !(is_of(s, of) && strcmp(s->source.region, region) == 0))
		s = s->next;
	return s;
}

static struct sim_snapshot *snapshot_add(struct engine *e, const struct engine_source *of, const char *region)
{
	struct sim_snapshot *s = must_calloc(1, sizeof *s);
	s->source = *of;
	snprintf(s->source.region, sizeof s->source.region, "%s", region);
	s->next = e->backups->snapshots;
	e->backups->snapshots = s;
	return s;
}

/* The newest of the cluster in that region before this one: only what has changed since is stored. */
static const struct sim_snapshot *snapshot_before(struct engine *e, const struct engine_source *of, const char *region)
{
	for (const struct sim_snapshot *s = e->backups->snapshots; s; s = s->next)
		if (strcmp(s->source.cluster_id, of->cluster_id) == 0 && strcmp(s->source.region, region) == 0 &&
		    strcmp(s->source.snapshot_id, of->snapshot_id) != 0)
			return s;
	return NULL;
}

static uint64_t stored_of(const struct sim_snapshot *before, uint64_t bytes)
{
	uint64_t known = before ? before->bytes : 0;
	return (bytes > known ? bytes - known : 0) / PACKED + 4096;
}

static unsigned set_count(const struct sim_cluster *s)
{
	return s->shards ? s->shards : 1;
}

static uint64_t bytes_of(const struct sim_cluster *s)
{
	int64_t oldest = clock_now_ms(), now = oldest;
	for (size_t i = 0; i < s->node_count; i++)
		if (s->nodes[i].started_ms && s->nodes[i].started_ms < oldest)
			oldest = s->nodes[i].started_ms;
	return set_count(s) * (SET_BYTES + (uint64_t)(now - oldest) / 1000 * GROWTH);
}

static void position_set(struct engine_position *p, unsigned set, int64_t at_ms)
{
	snprintf(p->set, sizeof p->set, "%u", set);
	p->timeline = 1;
	p->bytes = p->stored = 0;
	p->lsn = (uint64_t)at_ms * LSN_PER_MS;
}

/* Whether the region's repository can be reached. */
static int reach(const struct engine *e, const char *region, const char **ret_why)
{
	if (!e->away[0] || strcmp(e->away, region) != 0)
		return 0;
	if (ret_why)
		*ret_why = "the test control asked for a repository that is away";
	return -EHOSTUNREACH;
}

static int told(struct engine *e, enum sim_change change, const char **ret_why)
{
	if (!sim_told_to_fail(e, change))
		return 0;
	*ret_why = "the test control asked for this failure";
	return -EIO;
}

/* --- keys */

/* Whether the project's key can be had: the current one where `id` is empty, whose id it writes there. Nothing is
 * encrypted here, but what a real repository refuses without its key is refused. Without the lock: it may ask a key
 * service. */
static int key_ask(struct engine *e, const char *group_id, char id[25], struct arena *a, const char **ret_why)
{
	struct data_key key = {.bytes = NULL};
	char why[DATA_KEY_WHY] = "";
	struct str group = {group_id, strlen(group_id)}; /* never NULL, which str_of() would allow */
	int r = e->keys ? e->keys->get(e->keys->ctx, group, str_of(id), &key, why) : -ENOENT;
	if (r == -ENOENT && !id[0])
		return 0;
	if (r == 0)
		snprintf(id, 25, "%s", key.id);
	else
		*ret_why = arena_printf(a, "the project's data key is out of reach: %s", why).p;
	data_key_free(&key);
	return r;
}

/* The same of what is read. */
static int key_ask_of(struct engine *e, const struct engine_source *of, struct arena *a, const char **ret_why)
{
	char id[25] = "";
	pthread_mutex_lock(&e->lock);
	const struct sim_snapshot *s = snapshot_find(e, of, of->region);
	if (s)
		memcpy(id, s->data_key, sizeof id);
	pthread_mutex_unlock(&e->lock);
	return id[0] ? key_ask(e, of->group_id, id, a, ret_why) : 0;
}

/* --- snapshots */

static void snapshot_tell(const struct sim_cluster *c, uint64_t bytes, uint64_t stored, struct arena *a,
                          struct engine_snapshot *ret)
{
	*ret = (struct engine_snapshot){.at_ms = clock_now_ms(), .bytes = bytes, .stored = stored};
	ret->set_count = set_count(c);
	ret->sets = arena_new_array(a, struct engine_position, ret->set_count);
	for (unsigned i = 0; i < ret->set_count; i++) {
		position_set(&ret->sets[i], i, ret->at_ms);
		/* The first has what does not divide. */
		ret->sets[i].bytes = bytes / ret->set_count + (i ? 0 : bytes % ret->set_count);
		ret->sets[i].stored = stored / ret->set_count + (i ? 0 : stored % ret->set_count);
	}
	if (c->node_count)
		snprintf(ret->version, sizeof ret->version, "%s", c->nodes[0].version);
	ret->from_standby = c->node_count > 1;
}

static int sim_snapshot(struct engine *e, const struct engine_source *to, struct engine_progress *progress,
                        struct arena *a, struct engine_snapshot *ret_snapshot, const char **ret_why)
{
	struct waiting w = {.again_ms = 0};
	char key[WORK_TEXT], data_key[25] = "";
	snprintf(key, sizeof key, "snapshot/%s", to->snapshot_id);
	int keyed = key_ask(e, to->group_id, data_key, a, ret_why);
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *c = sim_cluster_find(e, to->cluster_id);
	int r = keyed < 0 ? keyed : c && c->exists ? 0 : -ENOENT;
	if (r < 0 && r != keyed)
		*ret_why = "there is no such cluster";
	r = r < 0 ? r : reach(e, to->region, ret_why);
	uint64_t bytes = r == 0 ? bytes_of(c) : 0;
	if (r == 0)
		r = work_wait(e, key, e->seconds * SNAPSHOT_SHARE * (double)bytes / (double)SET_BYTES, &w);
	if (r == 0)
		r = told(e, SIM_SNAPSHOT, ret_why);
	if (r == 0) {
		uint64_t stored = stored_of(snapshot_before(e, to, to->region), bytes);
		struct sim_snapshot *s = snapshot_find(e, to, to->region);
		s = s ? s : snapshot_add(e, to, to->region);
		snapshot_tell(c, bytes, stored, a, ret_snapshot);
		s->bytes = bytes;
		s->stored = stored;
		s->at_ms = ret_snapshot->at_ms;
		memcpy(s->data_key, data_key, sizeof s->data_key);
		memcpy(ret_snapshot->data_key, data_key, sizeof data_key);
	}
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress, "copying data");
	return r;
}

static int sim_copy(struct engine *e, const struct engine_source *from, const char *region,
                    struct engine_progress *progress, const char **ret_why)
{
	struct waiting w = {.again_ms = 0};
	char key[WORK_TEXT + 48];
	snprintf(key, sizeof key, "copy/%s/%.24s", from->snapshot_id, region);
	pthread_mutex_lock(&e->lock);
	const struct sim_snapshot *s = snapshot_find(e, from, from->region);
	uint64_t bytes = s ? s->bytes : SET_BYTES;
	int r = reach(e, from->region, ret_why);
	r = r < 0 ? r : reach(e, region, ret_why);
	r = r < 0 ? r : work_wait(e, key, e->seconds * SNAPSHOT_SHARE * (double)bytes / (double)SET_BYTES, &w);
	if (r == 0 && !snapshot_find(e, from, region)) {
		uint64_t stored = stored_of(snapshot_before(e, from, region), bytes);
		struct sim_snapshot *copy = snapshot_add(e, from, region);
		copy->bytes = bytes;
		copy->stored = stored;
		copy->at_ms = s ? s->at_ms : 0;
		if (s)
			memcpy(copy->data_key, s->data_key, sizeof copy->data_key);
	}
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress, "copying to another region");
	return r;
}

static int sim_forget(struct engine *e, const struct engine_source *of)
{
	pthread_mutex_lock(&e->lock);
	struct sim_snapshot **at = &e->backups->snapshots;
	while (*at) {
		struct sim_snapshot *s = *at;
		if (is_of(s, of) && strcmp(s->source.region, of->region) == 0) {
			*at = s->next;
			free(s);
		} else {
			at = &s->next;
		}
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static bool is_kept(const struct sim_snapshot *s, const struct repo_keep *keep)
{
	char name[64];
	snprintf(name, sizeof name, "%s/%s", s->source.cluster_id, s->source.snapshot_id);
	for (size_t i = 0; i < keep->snapshot_count; i++)
		if (strcmp(keep->snapshots[i], name) == 0)
			return true;
	return false;
}

static bool is_line_kept(const struct sim_line *l, const struct repo_keep *keep)
{
	for (size_t i = 0; i < keep->wal_count; i++)
		if (strcmp(keep->wal[i].line.cluster, l->cluster_id) == 0 &&
		    strcmp(keep->wal[i].line.incarnation, l->incarnation) == 0)
			return true;
	return false;
}

/* Of lines that have ended: what goes on is not older than what a sweep touches. */
static void lines_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep)
{
	for (struct sim_line **at = &e->backups->lines; *at;) {
		struct sim_line *l = *at;
		bool here = strcmp(l->where.region, region) == 0 && strcmp(l->group_id, group_id) == 0;
		if (!here || !l->to_ms || is_line_kept(l, keep)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
	}
}

static int sim_sweep(struct engine *e, const char *region, const char *group_id, const struct repo_keep *keep,
                     struct repo_swept *ret_swept)
{
	struct repo_swept swept = {0};
	pthread_mutex_lock(&e->lock);
	struct sim_snapshot **at = &e->backups->snapshots;
	while (*at) {
		struct sim_snapshot *s = *at;
		bool here = strcmp(s->source.region, region) == 0 && strcmp(s->source.group_id, group_id) == 0;
		if (!here || is_kept(s, keep)) {
			swept.bytes_kept += here ? s->stored : 0;
			at = &s->next;
			continue;
		}
		swept.manifests++;
		swept.bytes_freed += s->stored;
		*at = s->next;
		free(s);
	}
	lines_sweep(e, region, group_id, keep);
	pthread_mutex_unlock(&e->lock);
	*ret_swept = swept;
	return 0;
}

static int sim_usage(struct engine *e, const char *region, const char *group_id, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&e->lock);
	for (const struct sim_snapshot *s = e->backups->snapshots; s; s = s->next)
		if (strcmp(s->source.region, region) == 0 && strcmp(s->source.group_id, group_id) == 0)
			bytes += s->stored;
	pthread_mutex_unlock(&e->lock);
	*ret_bytes = bytes;
	return 0;
}

/* --- the archive */

static struct sim_line *line_find(struct engine *e, const char *cluster_id, const char *incarnation)
{
	struct sim_line *l = e->backups->lines;
	while (l && !(strcmp(l->cluster_id, cluster_id) == 0 && strcmp(l->incarnation, incarnation) == 0))
		l = l->next;
	return l;
}

/* When an id was made: its first eight digits. */
static int64_t id_time_ms(const char *id)
{
	char seconds[9] = "";
	memcpy(seconds, id, strlen(id) < 8 ? 0 : 8);
	return (int64_t)strtoull(seconds, NULL, 16) * 1000;
}

void sim_archive_note(struct engine *e, const struct engine_cluster *want)
{
	int64_t now = clock_now_ms();
	bool on = want->backup.archive;
	for (struct sim_line *l = e->backups->lines; l; l = l->next)
		if (strcmp(l->cluster_id, want->id) == 0 && !l->to_ms &&
		    (!on || strcmp(l->incarnation, want->backup.incarnation) != 0))
			l->to_ms = now;
	if (!on)
		return;
	struct sim_line *l = line_find(e, want->id, want->backup.incarnation);
	if (!l) {
		l = must_calloc(1, sizeof *l);
		snprintf(l->cluster_id, sizeof l->cluster_id, "%s", want->id);
		snprintf(l->incarnation, sizeof l->incarnation, "%s", want->backup.incarnation);
		snprintf(l->group_id, sizeof l->group_id, "%s", want->group_id);
		l->found = want->adopt;
		l->from_ms = want->adopt ? id_time_ms(l->incarnation) : now;
		l->next = e->backups->lines;
		e->backups->lines = l;
	} else if (l->to_ms) { /* there is a gap */
		l->from_ms = now;
		l->to_ms = 0;
		l->found = false;
	}
	l->where = want->backup;
}

void sim_archive_end(struct engine *e, const char *cluster_id)
{
	for (struct sim_line *l = e->backups->lines; l; l = l->next)
		if (strcmp(l->cluster_id, cluster_id) == 0 && !l->to_ms)
			l->to_ms = clock_now_ms();
}

static bool is_there(const struct sim_line *l, const char *region)
{
	bool there = strcmp(l->where.region, region) == 0;
	for (size_t i = 0; i < l->where.copy_count; i++)
		there |= strcmp(l->where.copies[i], region) == 0;
	return there;
}

/* The first moment that can be restored from that region: that of the first snapshot there which the log goes on
 * from. */
static bool line_window(struct engine *e, const struct sim_line *l, const char *region,
                        struct engine_window *ret_window)
{
	int64_t first = 0;
	if (!is_there(l, region))
		return false;
	for (const struct sim_snapshot *s = e->backups->snapshots; s; s = s->next)
		if (strcmp(s->source.cluster_id, l->cluster_id) == 0 &&
		    strcmp(s->source.incarnation, l->incarnation) == 0 && s->at_ms >= l->from_ms &&
		    strcmp(s->source.region, region) == 0 && (!first || s->at_ms < first))
			first = s->at_ms;
	if (l->found)
		first = l->from_ms;
	ret_window->from_ms = first;
	ret_window->to_ms = l->to_ms ? l->to_ms : clock_now_ms();
	return first && first <= ret_window->to_ms;
}

static int sim_window(struct engine *e, const struct engine_source *of, struct arena *a,
                      struct engine_window **ret_list, size_t *ret_count)
{
	struct engine_window *list = arena_new_array(a, struct engine_window, 1);
	pthread_mutex_lock(&e->lock);
	const struct sim_line *l = line_find(e, of->cluster_id, of->incarnation);
	int r = reach(e, of->region, NULL);
	size_t count = r == 0 && l && line_window(e, l, of->region, list);
	pthread_mutex_unlock(&e->lock);
	*ret_list = list;
	*ret_count = count;
	return r;
}

/* The last checkpoint until then: they are made at fixed times, and of a sharded cluster with each snapshot too, so
 * that a window, which begins with a snapshot, begins with a moment that can be restored. */
static int64_t checkpoint_before(struct engine *e, const struct sim_line *l, bool sharded, int64_t at_ms)
{
	int64_t last = at_ms - at_ms % CHECKPOINT_MS;
	for (const struct sim_snapshot *s = e->backups->snapshots; sharded && s; s = s->next)
		if (strcmp(s->source.cluster_id, l->cluster_id) == 0 &&
		    strcmp(s->source.incarnation, l->incarnation) == 0 && s->at_ms <= at_ms && s->at_ms > last)
			last = s->at_ms;
	return last;
}

static int sim_checkpoints(struct engine *e, const struct engine_source *of, int64_t from_ms, int64_t to_ms, size_t max,
                           struct arena *a, struct engine_checkpoint **ret_list, size_t *ret_count)
{
	struct engine_window window;
	unsigned sets = 1;
	pthread_mutex_lock(&e->lock);
	const struct sim_line *l = line_find(e, of->cluster_id, of->incarnation);
	const struct sim_cluster *c = sim_cluster_find(e, of->cluster_id);
	int r = reach(e, of->region, NULL);
	bool any = r == 0 && l && line_window(e, l, of->region, &window);
	if (c)
		sets = set_count(c);
	struct engine_checkpoint *list = arena_new_array(a, struct engine_checkpoint, max);
	size_t count = 0;
	if (any) {
		from_ms = from_ms > window.from_ms ? from_ms : window.from_ms;
		to_ms = to_ms < window.to_ms ? to_ms : window.to_ms;
	}
	for (int64_t until = to_ms; any && count < max;) {
		int64_t at = checkpoint_before(e, l, sets > 1, until);
		if (at < from_ms)
			break;
		struct engine_checkpoint *p = &list[count++];
		p->at_ms = at;
		snprintf(p->id, sizeof p->id, "%08llx%016x", (unsigned long long)(at / 1000), (unsigned)(at % 1000));
		p->sets = arena_new_array(a, struct engine_position, sets);
		p->set_count = sets;
		for (unsigned i = 0; i < sets; i++)
			position_set(&p->sets[i], i, at);
		until = at - 1;
	}
	pthread_mutex_unlock(&e->lock);
	*ret_list = list;
	*ret_count = count;
	return r;
}

static int sim_position(struct engine *e, const struct engine_source *of, int64_t time_ms,
                        struct engine_position *ret_position, uint64_t *ret_second_lsn)
{
	struct engine_window window;
	pthread_mutex_lock(&e->lock);
	const struct sim_line *l = line_find(e, of->cluster_id, of->incarnation);
	int r = reach(e, of->region, NULL);
	bool any = r == 0 && l && line_window(e, l, of->region, &window);
	pthread_mutex_unlock(&e->lock);
	if (r < 0)
		return r;
	/* The second in which it begins counts too. */
	if (!any || time_ms < window.from_ms - window.from_ms % 1000 || time_ms > window.to_ms)
		return -ENOENT;
	position_set(ret_position, 0, time_ms);
	*ret_second_lsn = (uint64_t)(time_ms - time_ms % 1000) * LSN_PER_MS;
	return 0;
}

static int sim_archive(struct engine *e, const char *cluster_id, struct arena *a, struct engine_archive *ret_archive)
{
	struct engine_archive archive = {.on = false};
	pthread_mutex_lock(&e->lock);
	for (const struct sim_line *l = e->backups->lines; l; l = l->next)
		if (strcmp(l->cluster_id, cluster_id) == 0 && !l->to_ms)
			archive = (struct engine_archive){.on = true, .last_ms = clock_now_ms()};
	pthread_mutex_unlock(&e->lock);
	*ret_archive = archive;
	return 0;
}

/* --- bringing back */

static bool can_reach(struct engine *e, const struct engine_source *from, const struct engine_point *to)
{
	struct engine_window window;
	const struct sim_line *l = line_find(e, from->cluster_id, from->incarnation);
	int64_t at = to->kind == POINT_POSITION ? (int64_t)(to->position.lsn / LSN_PER_MS) : to->time_ms;
	if (to->kind == POINT_SNAPSHOT || !l)
		return to->kind == POINT_SNAPSHOT;
	return line_window(e, l, from->region, &window) && at >= window.from_ms && at <= window.to_ms;
}

static int bring(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                 const struct engine_cluster *want, const char *key, const _Atomic bool *cancel,
                 struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	struct waiting w = {.again_ms = 0};
	int keyed = key_ask_of(e, from, a, ret_why);
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *c = sim_cluster_find(e, want->id);
	int away = keyed < 0 ? keyed : reach(e, from->region, ret_why);
	int r = cancel && *cancel                          ? -ECANCELED
	        : away < 0                                 ? away
	        : c && c->exists && can_reach(e, from, to) ? 0
	                                                   : -ENOENT;
	if (r == -ENOENT)
		*ret_why = c && c->exists ? "that point cannot be restored" : "there is no such cluster";
	if (r == 0)
		r = work_wait(e, key, e->seconds * RESTORE_SHARE * (double)bytes_of(c) / (double)SET_BYTES, &w);
	else if (r != away)
		work_end(e->backups, key);
	if (r == 0)
		r = told(e, SIM_RESTORE, ret_why);
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress, "bringing back data");
	return r;
}

static int sim_restore(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                       const struct engine_cluster *want, const struct engine_access *access,
                       const _Atomic bool *cancel, struct engine_progress *progress, struct arena *a,
                       const char **ret_why)
{
	char key[WORK_TEXT];
	snprintf(key, sizeof key, "restore/%s", want->backup.incarnation);
	int r = bring(e, from, to, want, key, cancel, progress, a, ret_why);
	if (r < 0)
		return r;
	pthread_mutex_lock(&e->lock);
	sim_archive_note(e, want);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* It has no databases to bring back: it takes as long, and the cluster's data is the same after it. */
static int sim_restore_piece(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                             const struct engine_piece *piece, const struct engine_cluster *want,
                             const struct engine_access *access, const _Atomic bool *cancel,
                             struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	char key[WORK_TEXT];
	snprintf(key, sizeof key, "piece/%s", piece->id);
	return bring(e, from, to, want, key, cancel, progress, a, ret_why);
}

static int tar_make(struct engine *e, const struct engine_source *of, const char *set, objects_write *write, void *ctx,
                    const char **ret_why)
{
	char label[160];
	snprintf(label, sizeof label, "CLUSTER: %s\nSNAPSHOT: %s\nSET: %s\n", of->cluster_id, of->snapshot_id, set);
	pthread_mutex_lock(&e->lock);
	int r = reach(e, of->region, ret_why);
	uint64_t bytes = e->download_bytes;
	pthread_mutex_unlock(&e->lock);
	return r < 0 ? r : sim_tar_write(label, bytes, write, ctx);
}

struct tar_rest {
	objects_write *write; /* NULL: it is only counted */
	void *ctx;
	uint64_t skip;
};

static int rest_write(void *ctx, const void *bytes, size_t n)
{
	struct tar_rest *t = ctx;
	size_t known = t->skip < n ? (size_t)t->skip : n;
	t->skip -= known;
	return n > known ? t->write(t->ctx, (const char *)bytes + known, n - known) : 0;
}

static int sim_stream(struct engine *e, const struct engine_source *of, const char *set, uint64_t from,
                      objects_write *write, void *ctx, const char **ret_why)
{
	struct tar_rest t = {write, ctx, from};
	return tar_make(e, of, set, rest_write, &t, ret_why);
}

static int sim_stream_size(struct engine *e, const struct engine_source *of, const char *set, uint64_t *ret_bytes,
                           const char **ret_why)
{
	struct tar_rest t = {.skip = UINT64_MAX};
	int r = tar_make(e, of, set, rest_write, &t, ret_why);
	*ret_bytes = UINT64_MAX - t.skip;
	return r;
}

static int sim_export(struct engine *e, const struct engine_source *of, const struct engine_export *to,
                      struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	static const char *const tables[] = {"customers", "orders"};
	static const char rows[] = "{\"id\":1,\"name\":\"one\"}\n{\"id\":2,\"name\":\"two\"}\n";
	const size_t count = sizeof tables / sizeof *tables;
	struct waiting w = {.again_ms = 0};
	char key[WORK_TEXT];
	snprintf(key, sizeof key, "export/%s", of->snapshot_id);
	pthread_mutex_lock(&e->lock);
	int r = reach(e, of->region, ret_why);
	r = r < 0 ? r : work_wait(e, key, e->seconds * SNAPSHOT_SHARE, &w);
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress, "restoring");
	if (r == 0)
		to->count(to->ctx, count);
	for (size_t i = 0; r >= 0 && i < count; i++) {
		const struct engine_table table = {
		        .database = "postgres", .schema = "public", .name = tables[i], .set = "0"};
		r = to->begin(to->ctx, &table);
		if (r >= 0)
			r = to->write(to->ctx, rows, sizeof rows - 1);
		if (r >= 0)
			r = to->end(to->ctx, 2);
	}
	return r < 0 ? r : 0;
}

static int sim_prove(struct engine *e, const struct engine_source *of, bool start, struct engine_progress *progress,
                     struct arena *a, struct engine_proof *ret_proof, const char **ret_why)
{
	struct waiting w = {.again_ms = 0};
	char key[WORK_TEXT];
	snprintf(key, sizeof key, "drill/%s", of->snapshot_id);
	pthread_mutex_lock(&e->lock);
	const struct sim_snapshot *s = snapshot_find(e, of, of->region);
	int r = reach(e, of->region, ret_why);
	if (r == 0)
		r = work_wait(e, key, e->seconds * SNAPSHOT_SHARE, &w);
	if (r == 0)
		r = told(e, SIM_DRILL, ret_why);
	*ret_proof = (struct engine_proof){
	        .files = 2, .bytes = s ? s->bytes : SET_BYTES, .relations = start ? 2 : 0, .started = start};
	pthread_mutex_unlock(&e->lock);
	waiting_tell(&w, progress, "reading");
	return r;
}

/* Its snapshots end with the process: nothing could be made of a record. */
static int sim_record(struct engine *e, const struct engine_source *of, const char *text)
{
	return 0;
}

/* Its log is memory, of which nothing is lost, and nothing of it lies in a repository. */
static int sim_prove_log(struct engine *e, const char *region, const struct repo_keep_wal *of)
{
	return -ENOENT;
}

static int sim_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                         struct repo_check *seen)
{
	return 0;
}

const struct engine_backup_ops sim_backup = {
        .snapshot = sim_snapshot,
        .restore = sim_restore,
        .restore_piece = sim_restore_piece,
        .window = sim_window,
        .checkpoints = sim_checkpoints,
        .position = sim_position,
        .stream = sim_stream,
        .stream_size = sim_stream_size,
        .copy = sim_copy,
        .export = sim_export,
        .prove = sim_prove,
        .record = sim_record,
        .forget = sim_forget,
        .sweep = sim_sweep,
        .prove_log = sim_prove_log,
        .check_log = sim_check_log,
        .archive = sim_archive,
        .usage = sim_usage,
};
