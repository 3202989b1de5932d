/* Who works on which cluster's archive, and what others ask of it. One thread looks which cluster is due and gives it
 * to a worker; a worker that waits for a repository holds up no other cluster. Some stores, as directories on a file
 * system whose server is gone, cannot be given up: of those that wait for one store there are only so many, and the
 * bound of the spools is held beside them. Copies of the log have workers of their own, which archives never wait for.
 */
#include "engine/postgres/archive/archive_run.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/archive/archive_copy.h"
#include "engine/postgres/archive/archive_marks.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/work.h"

#include <errno.h>
#include <stdio.h>

#define LOOK_MS 100
#define WORKERS_MAX 24 /* at once, of those that are not waiting */
#define WORKERS_ALL 256
#define WORKERS_STORE 8    /* of one store, that are not waiting */
#define WORKERS_WAITING 24 /* of one store, that are */
#define COPIES_MAX 4       /* the same of copies */
#define COPIES_ALL 64
#define COPIES_STORE 2
#define COPIES_WAITING 8
#define SUSPECT 2       /* more of a store whose workers wait */
#define STORES_MAX 64   /* that are told from each other */
#define WAITING_MS 5000 /* a worker that is on longer waits for something */
#define SPOOL_LOOK_MS 1000
#define LAST_MS 10000
#define SETTLE_MS 10000

/* --- workers */

static void *tick_thread(void *arg)
{
	struct pg_cluster *c = arg;
	struct engine *e = c->engine;
	struct pg_archive *a = c->archive;
	pg_archive_tick(c, a);
	pthread_mutex_lock(&a->lock);
	a->working = false;
	pthread_mutex_unlock(&a->lock);
	pg_cluster_put(c);
	pg_engine_work_done(e);
	return NULL;
}

static void archive_free(struct pg_cluster *c)
{
	struct pg_archive *a = c->archive;
	if (!a)
		return;
	pg_archive_forget(a, true);
	for (size_t i = 0; i < a->copy_count; i++)
		pg_copy_free(a->copies[i]);
	pg_index_free(&a->common);
	buf_free(&a->commons);
	free(a->pending);
	pthread_mutex_destroy(&a->lock);
	free(a);
	c->archive = NULL;
}

static struct pg_archive *archive_of(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	if (!c->archive && c->backup.incarnation[0]) {
		c->archive = must_calloc(1, sizeof *c->archive);
		c->archive_free = archive_free;
		pthread_mutex_init(&c->archive->lock, NULL);
		c->archive->due_ms = pg_mono_ms();
	}
	struct pg_archive *a = c->archive;
	pthread_mutex_unlock(&c->lock);
	return a;
}

void pg_archive_hurry(struct pg_cluster *c)
{
	struct pg_archive *a = archive_of(c);
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->urgent = true;
	pthread_mutex_unlock(&a->lock);
}

/* Takes the turn when it is due. */
static bool turn_take(struct pg_archive *a, int64_t now)
{
	pthread_mutex_lock(&a->lock);
	bool due = !a->working && (a->urgent || now >= a->due_ms);
	if (due) {
		a->working = true;
		a->urgent = false;
		a->began_ms = now;
	}
	pthread_mutex_unlock(&a->lock);
	return due;
}

/* Workers at one moment, and how many there may be. */
struct turns {
	unsigned busy, all, most, all_most, store_most, waiting_most;
	size_t store_count;
	struct turns_store {
		const void *store;
		unsigned busy, waiting;
	} stores[STORES_MAX];
};

static struct turns_store *turns_at(struct turns *t, const void *store)
{
	size_t i = 0;
	while (i < t->store_count && t->stores[i].store != store)
		i++;
	if (i == STORES_MAX)
		return &t->stores[STORES_MAX - 1];
	if (i == t->store_count)
		t->stores[t->store_count++] = (struct turns_store){.store = store};
	return &t->stores[i];
}

static void turn_count(struct turns *t, const void *store, int64_t for_ms)
{
	bool waits = for_ms >= WAITING_MS;
	struct turns_store *s = turns_at(t, store);
	t->all++;
	t->busy += !waits;
	s->busy += !waits;
	s->waiting += waits;
}

static bool turn_fits(struct turns *t, const void *store)
{
	const struct turns_store *s = turns_at(t, store);
	return t->busy < t->most && t->all < t->all_most && s->busy < (s->waiting ? SUSPECT : t->store_most) &&
	       s->waiting < t->waiting_most;
}

static const void *store_of(struct pg_cluster *c)
{
	char region[sizeof c->backup.region];
	pthread_mutex_lock(&c->lock);
	memcpy(region, c->backup.region, sizeof region);
	pthread_mutex_unlock(&c->lock);
	return repositories_store(c->engine->repositories, region);
}

static void cluster_hold(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->engine->lock);
	c->refs++;
	pthread_mutex_unlock(&c->engine->lock);
}

static void turns_give(struct engine *e, struct pg_cluster **all, size_t count, size_t first)
{
	int64_t now = pg_mono_ms();
	struct turns t = {.most = WORKERS_MAX,
	                  .all_most = WORKERS_ALL,
	                  .store_most = WORKERS_STORE,
	                  .waiting_most = WORKERS_WAITING};
	for (size_t i = 0; i < count; i++) {
		struct pg_archive *a = archive_of(all[i]);
		if (!a)
			continue;
		pthread_mutex_lock(&a->lock);
		bool working = a->working;
		int64_t began = a->began_ms;
		pthread_mutex_unlock(&a->lock);
		if (working)
			turn_count(&t, store_of(all[i]), now - began);
	}
	for (size_t i = 0; i < count; i++) {
		struct pg_cluster *c = all[(first + i) % count];
		struct pg_archive *a = archive_of(c);
		const void *store = store_of(c);
		if (!a || !turn_fits(&t, store) || !turn_take(a, now))
			continue;
		turn_count(&t, store, 0);
		cluster_hold(c);
		if (pg_engine_work(e, tick_thread, c) < 0) {
			pthread_mutex_lock(&a->lock);
			a->working = false;
			pthread_mutex_unlock(&a->lock);
			pg_cluster_put(c);
		}
	}
}

/* --- copies */

struct copy_work {
	struct pg_cluster *c;
	struct pg_log_copy *k;
};

static void copy_end(const struct copy_work *w)
{
	struct pg_archive *a = w->c->archive;
	pthread_mutex_lock(&a->lock);
	w->k->working = false;
	pthread_mutex_unlock(&a->lock);
	pg_cluster_put(w->c);
}

static void *copy_thread(void *arg)
{
	struct copy_work w = *(struct copy_work *)arg;
	struct engine *e = w.c->engine;
	free(arg);
	pg_copy_tick(w.c, w.c->archive, w.k);
	copy_end(&w);
	pg_engine_work_done(e);
	return NULL;
}

/* Those that are wanted, and no others, unless one is being worked on. */
static void copies_follow(struct pg_cluster *c, struct pg_archive *a)
{
	size_t kept = 0;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->copy_count; i++)
		a->copies[i]->wanted = false;
	for (size_t i = 0; i < c->backup.copy_count && c->backup.archive; i++) {
		struct pg_log_copy *k = NULL;
		for (size_t n = 0; n < a->copy_count && !k; n++)
			k = strcmp(a->copies[n]->region, c->backup.copies[i]) == 0 ? a->copies[n] : NULL;
		if (!k && a->copy_count < ENGINE_COPIES_MAX) {
			k = a->copies[a->copy_count++] = must_calloc(1, sizeof *k);
			memcpy(k->region, c->backup.copies[i], sizeof k->region);
			k->store = repositories_store(c->engine->repositories, k->region);
		}
		if (k)
			k->wanted = true;
	}
	for (size_t i = 0; i < a->copy_count; i++)
		if (a->copies[i]->wanted || a->copies[i]->working)
			a->copies[kept++] = a->copies[i];
		else
			pg_copy_free(a->copies[i]);
	a->copy_count = kept;
	pthread_mutex_unlock(&a->lock);
	pthread_mutex_unlock(&c->lock);
}

/* Nothing can be copied from a repository that does not answer the archive. */
static bool copy_take(struct pg_archive *a, struct pg_log_copy *k, int64_t now)
{
	pthread_mutex_lock(&a->lock);
	bool waits = a->away_ms || (a->working && now - a->began_ms >= WAITING_MS);
	bool due = k->wanted && !k->working && now >= k->due_ms && !waits;
	if (due) {
		k->working = true;
		k->began_ms = now;
	}
	pthread_mutex_unlock(&a->lock);
	return due;
}

static void copy_begin(struct engine *e, struct pg_cluster *c, struct pg_log_copy *k)
{
	struct copy_work *w = must_malloc(sizeof *w);
	*w = (struct copy_work){c, k};
	cluster_hold(c);
	if (pg_engine_work(e, copy_thread, w) < 0) {
		copy_end(w);
		free(w);
	}
}

static void copies_count(struct pg_archive *a, struct turns *t, int64_t now)
{
	for (size_t n = 0; n < a->copy_count; n++) { /* which this thread alone changes */
		const struct pg_log_copy *k = a->copies[n];
		pthread_mutex_lock(&a->lock);
		int64_t for_ms = k->working ? now - k->began_ms : -1;
		pthread_mutex_unlock(&a->lock);
		if (for_ms >= 0)
			turn_count(t, k->store, for_ms);
	}
}

static void copies_give(struct engine *e, struct pg_cluster **all, size_t count, size_t first)
{
	int64_t now = pg_mono_ms();
	struct turns t = {
	        .most = COPIES_MAX, .all_most = COPIES_ALL, .store_most = COPIES_STORE, .waiting_most = COPIES_WAITING};
	for (size_t i = 0; i < count; i++) {
		struct pg_archive *a = archive_of(all[i]);
		if (!a)
			continue;
		copies_follow(all[i], a);
		copies_count(a, &t, now);
	}
	for (size_t i = 0; i < count; i++) {
		struct pg_cluster *c = all[(first + i) % count];
		struct pg_archive *a = archive_of(c);
		for (size_t n = 0; a && n < a->copy_count; n++) {
			struct pg_log_copy *k = a->copies[n];
			if (!turn_fits(&t, k->store) || !copy_take(a, k, now))
				continue;
			turn_count(&t, k->store, 0);
			copy_begin(e, c, k);
		}
	}
}

/* --- the spools of clusters whose worker waits, or who wait for one */

static void spools_look(struct pg_cluster **all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct pg_archive *a = archive_of(all[i]);
		if (!a)
			continue;
		int64_t now = pg_mono_ms();
		pthread_mutex_lock(&all[i]->lock);
		bool on = pg_archives(all[i]);
		pthread_mutex_unlock(&all[i]->lock);
		pthread_mutex_lock(&a->lock);
		bool late = on && now - (a->working ? a->began_ms : a->due_ms) >= SPOOL_LOOK_MS &&
		            now - a->spool_ms >= SPOOL_LOOK_MS;
		if (late)
			a->spool_ms = now;
		pthread_mutex_unlock(&a->lock);
		if (late)
			pg_spool_bound(all[i], a);
	}
}

void *pg_archive_run(void *arg)
{
	struct engine *e = arg;
	bool stopping = false;
	for (size_t turn = 0; !stopping; turn++) {
		struct pg_cluster **all;
		size_t count = pg_clusters_hold(e, &all);
		if (count && e->repositories) {
			turns_give(e, all, count, turn % count);
			copies_give(e, all, count, turn % count);
			spools_look(all, count);
		}
		for (size_t i = 0; i < count; i++)
			pg_cluster_put(all[i]);
		free(all);
		pg_sleep_ms(LOOK_MS);
		pthread_mutex_lock(&e->lock);
		stopping = e->stopping;
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

/* --- for others */

/* What was put aside of a cluster that goes is stored before its directory is removed: a while is waited for that, and
 * no longer. */
void pg_archive_last(struct pg_cluster *c)
{
	struct pg_archive *a = c->archive;
	int64_t end = pg_mono_ms() + LAST_MS;
	bool more = true;
	if (!a || !pg_archives(c))
		return;
	while (!turn_take(a, INT64_MAX)) {
		if (pg_mono_ms() >= end)
			return; /* somebody waits for the repository already */
		pg_sleep_ms(10);
	}
	pthread_mutex_lock(&a->lock);
	a->began_ms = pg_mono_ms();
	snprintf(a->incarnation, sizeof a->incarnation, "%s", c->backup.incarnation);
	pthread_mutex_unlock(&a->lock);
	int r = repository_get(c->engine->repositories, c->backup.region, c->group_id, &a->repository);
	while (r == 0 && more && pg_mono_ms() < end)
		r = pg_spools_move(c, a, &more);
	for (size_t i = 0; i < a->set_count && r == 0; i++)
		r = pg_archive_index(c, a, a->sets[i], true);
	if (r < 0)
		log_warn("engine: %s: the last of its log is not in the repository: %s", c->id, strerror(-r));
	repository_put(a->repository);
	a->repository = NULL;
	pthread_mutex_lock(&a->lock);
	a->working = false;
	pthread_mutex_unlock(&a->lock);
}

void pg_archive_settle(struct pg_cluster *c)
{
	struct pg_archive *a = archive_of(c);
	bool working = a;
	for (int64_t end = pg_mono_ms() + SETTLE_MS; working && pg_mono_ms() < end;) {
		pthread_mutex_lock(&a->lock);
		working = a->working;
		pthread_mutex_unlock(&a->lock);
		if (working)
			pg_sleep_ms(10);
	}
}

/* 1: it is there; 0: not yet. */
static int wait_look(struct pg_archive *a, unsigned set, unsigned timeline, uint64_t lsn)
{
	int r = 0;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->set_count; i++) {
		struct pg_archive_set *s = a->sets[i];
		if (s->number != set || !s->loaded)
			continue;
		s->mark_due = s->marked < lsn;
		if (s->marked >= lsn && s->stored > lsn && s->timeline >= timeline)
			r = s->gap <= lsn / PG_SEGMENT ? 1 : -ENODATA;
	}
	if (r == 1)
		a->based = true;
	else
		a->urgent = true;
	pthread_mutex_unlock(&a->lock);
	return r;
}

int pg_archive_wait(struct pg_cluster *c, const struct pg_set *s, unsigned timeline, uint64_t lsn, int timeout_ms)
{
	struct pg_archive *a = archive_of(c);
	int64_t end = pg_mono_ms() + timeout_ms;
	unsigned number = s->number;
	int r = a ? 0 : -ENODATA;
	while (r == 0) {
		r = wait_look(a, number, timeline, lsn);
		if (r == 0 && pg_mono_ms() >= end)
			r = -ETIMEDOUT;
		if (r == 0)
			pg_sleep_ms(50);
	}
	return r > 0 ? 0 : r;
}

bool pg_archive_now(struct engine *e, const struct engine_source *of, const char *set, struct pg_archive_now *ret_now)
{
	struct pg_cluster *c = pg_cluster_find(e, of->cluster_id);
	bool found = false;
	if (!c)
		return false;
	pthread_mutex_lock(&c->lock);
	struct pg_archive *a = c->archive;
	pthread_mutex_unlock(&c->lock);
	if (a) {
		pthread_mutex_lock(&a->lock);
		/* Of a copy in another region it knows nothing. */
		bool same = strcmp(a->incarnation, of->incarnation) == 0 && strcmp(a->region, of->region) == 0;
		for (size_t i = 0; i < a->set_count && same && !found; i++) {
			const struct pg_archive_set *s = a->sets[i];
			found = strcmp(s->name, set) == 0 && s->loaded;
			if (found)
				*ret_now = (struct pg_archive_now){s->last, s->timeline, s->stored};
		}
		pthread_mutex_unlock(&a->lock);
	}
	pg_cluster_put(c);
	return found;
}

int pg_backup_archive(struct engine *e, const char *cluster_id, struct arena *arena, struct engine_archive *ret_archive)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	*ret_archive = (struct engine_archive){0};
	if (!c)
		return -ENOENT;
	struct pg_archive *a = archive_of(c);
	pthread_mutex_lock(&c->lock);
	ret_archive->on = pg_archives(c);
	pthread_mutex_unlock(&c->lock);
	if (a && ret_archive->on) {
		int64_t now = clock_now_ms();
		pthread_mutex_lock(&a->lock);
		/* Who asks between a snapshot and the next look at the archive would have another one taken. */
		ret_archive->broken = (a->broken && !a->based) || a->full;
		ret_archive->proving = a->proving;
		ret_archive->last_ms = a->last_ms;
		ret_archive->spool_bytes = a->spool_bytes;
		ret_archive->crowded = a->told = a->crowded;
		ret_archive->why = a->why[0] ? arena_z(arena, str_of(a->why)) : NULL;
		for (size_t i = 0; i < a->set_count; i++) {
			const struct pg_archive_set *s = a->sets[i];
			int64_t since = s->moved_ms ? now - (s->stored_ms ? s->stored_ms : s->moved_ms) : 0;
			ret_archive->lag_ms = since > ret_archive->lag_ms ? since : ret_archive->lag_ms;
		}
		if (a->away_ms && now - a->away_ms > ret_archive->lag_ms)
			ret_archive->lag_ms = now - a->away_ms;
		/* A repository that does not even fail; and one that others wait for already. */
		bool early = a->working && a->began_ms < a->due_ms;
		int64_t waits = pg_mono_ms() - (early ? a->began_ms : a->due_ms);
		if (waits > ret_archive->lag_ms + WAITING_MS) {
			ret_archive->lag_ms = waits;
			if (!ret_archive->why)
				ret_archive->why = "the repository does not answer";
		}
		pthread_mutex_unlock(&a->lock);
	}
	pg_cluster_put(c);
	return 0;
}
