/* The thread that takes samples, the one that looks after their files, and where those lie:
 *
 *   DIR/series/CLUSTER/NODE.process
 *   DIR/series/CLUSTER/NODE.db.HEX     of a database; its name in hexadecimal
 *   DIR/series/CLUSTER/NODE.disk.HEX   of a disk
 *   DIR/series/CLUSTER/NODE.table.HEX  of a table; a hash of its name, which can be longer than a file's
 *   DIR/series/CLUSTER/NODE.tables     the names of those tables, as JSON
 *
 * Files go with what they are of: databases that the server says it does not have, tables that others have taken the
 * place of, nodes that their cluster's plan does not have, clusters that are gone from the store. The store may hang,
 * and samples do not wait for it: it is asked by the second thread alone, which also reads for the first one which
 * tables are pinned. */
#include "api/clusters/clusters.h"
#include "api/metrics/metrics.h"
#include "api/metrics/pins.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "store/seal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 10000
#define WHOLE_MS 60000
#define NAP_MS 200
#define TRACK_US 1000000LL
#define PINS_WAIT_MS 1000
#define SWEEP_US 30000000LL
#define BUCKETS 1024
#define UNUSED_US 900000000LL
#define PATH_ROOM 1024

struct entry {
	struct entry *next;
	char *path;
	struct series *series;
	int64_t used_us;
};

/* The pinned tables of a cluster. */
struct pinned {
	char cluster_id[ID_LEN + 1];
	const char **names;
	size_t count;
};

struct pins {
	struct arena *arena;
	struct pinned *list;
	size_t count;
};

struct sampler {
	struct service *service;
	struct series_sizes sizes;
	char dir[PATH_ROOM - 400];
	pthread_t thread, sweeper;
	bool runs, sweeps;
	_Atomic bool stopping;
	struct tx *reader;    /* of the sweeper */
	pthread_mutex_t lock; /* of the entries; nobody waits for anything else with it */
	struct entry *buckets[BUCKETS];
	int64_t now_ms;              /* of the round under way */
	int64_t whole_ms, before_ms; /* of the last round with `whole`, and of the one before it; 0: none */
	int64_t warned_us;
	struct arena *names_arena; /* of the tables that were last asked for */
	struct pins *pins;         /* of the round under way; NULL: not known */
	/* With the lock: what the sweeper has read since; how often that was asked for, and which time it did last. */
	struct pins *pins_read;
	uint64_t pins_asked, pins_done;
	pthread_cond_t asked;
};

/* --- places */

/* A name within a file's. */
static void name_encode(enum measure_subject subject, const char *name, char ret_hex[129])
{
	ret_hex[0] = '\0';
	if (subject == MEASURE_TABLE)
		sha256_hex(str_of(name), ret_hex);
	else if (subject != MEASURE_PROCESS && strlen(name) < 64)
		hex_encode((const unsigned char *)name, strlen(name), ret_hex);
}

static void file_path(const struct sampler *s, const struct measured *of, char ret_path[PATH_ROOM])
{
	static const char *const kinds[] = {".process", ".db.", ".disk.", ".table."};
	char hex[129];
	name_encode(of->subject, of->name, hex);
	snprintf(ret_path, PATH_ROOM, "%s/%.24s/%.63s%s%s", s->dir, of->cluster_id, of->node, kinds[of->subject], hex);
}

static uint64_t hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return h;
}

static struct entry **entry_place(struct sampler *s, const char *path)
{
	struct entry **at = &s->buckets[hash_of(path) % BUCKETS];
	while (*at && strcmp((*at)->path, path) != 0)
		at = &(*at)->next;
	return at;
}

static void entry_drop(struct entry **at)
{
	struct entry *e = *at;
	*at = e->next;
	series_close(e->series);
	free(e->path);
	free(e);
}

static int entry_open(struct sampler *s, const char *path, const struct measured *of, struct series **ret_series)
{
	struct entry **at = entry_place(s, path);
	if (!*at) {
		char dir[PATH_ROOM];
		struct series *series;
		snprintf(dir, sizeof dir, "%s/%.24s", s->dir, of->cluster_id);
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return -errno;
		int r = series_open(path, &measure_layouts[of->subject], &s->sizes, &series);
		if (r < 0)
			return r;
		*at = must_calloc(1, sizeof **at);
		(*at)->path = must_strdup(path);
		(*at)->series = series;
	}
	(*at)->used_us = clock_mono_us();
	*ret_series = (*at)->series;
	return 0;
}

/* The names in a list of tables; none where there is no list. */
static size_t tables_read(const char *path, struct arena *a, struct str **ret_names)
{
	json_t *list = json_load_file(path, 0, NULL);
	size_t count = json_array_size(list);
	*ret_names = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; i < count; i++)
		(*ret_names)[i] = arena_dup(a, json_item(list, i));
	json_decref(list);
	return count;
}

/* --- samples */

/* A full disk would otherwise fill the log as well. */
static void sampler_warn(struct sampler *s, const char *path, int error)
{
	int64_t now = clock_mono_us();
	if (s->warned_us && now - s->warned_us < UNUSED_US)
		return;
	s->warned_us = now;
	log_warn("series: %s: %s: there will be gaps", path, strerror(-error));
}

static void sample_take(void *ctx, const struct engine_sample *sample)
{
	struct sampler *s = ctx;
	struct measured of = {sample->cluster_id, sample->node, sample->name, sample->subject, 0};
	struct series *series = NULL;
	char path[PATH_ROOM];
	file_path(s, &of, path);
	pthread_mutex_lock(&s->lock);
	int r = entry_open(s, path, &of, &series);
	if (series)
		r = series_put(series, sample->before ? s->before_ms : s->now_ms - sample->ago_ms, sample->mono_us,
		               sample->epoch, sample->inputs);
	pthread_mutex_unlock(&s->lock);
	if (r < 0)
		sampler_warn(s, path, r);
}

static void file_remove(struct sampler *s, const char *path)
{
	pthread_mutex_lock(&s->lock);
	struct entry **at = entry_place(s, path);
	if (*at)
		entry_drop(at);
	unlink(path);
	pthread_mutex_unlock(&s->lock);
}

/* Whether the rest of a file's name is one of these. */
static bool name_is_listed(enum measure_subject subject, const char *hex, const char *const *names, size_t count)
{
	char own[129];
	for (size_t i = 0; i < count; i++) {
		if (subject != MEASURE_TABLE && strlen(hex) != 2 * strlen(names[i]))
			continue;
		name_encode(subject, names[i], own);
		if (own[0] && strcmp(own, hex) == 0)
			return true;
	}
	return false;
}

/* Removes the node's files of a kind that are not of these names. */
static void files_keep(struct sampler *s, const struct measured *of, const char *kind, const char *const *names,
                       size_t count)
{
	char path[PATH_ROOM], begin[80];
	size_t n = (size_t)snprintf(begin, sizeof begin, "%.63s.%s.", of->node, kind);
	snprintf(path, sizeof path, "%s/%.24s", s->dir, of->cluster_id);
	DIR *d = opendir(path);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (strncmp(entry->d_name, begin, n) != 0 ||
		    name_is_listed(of->subject, entry->d_name + n, names, count))
			continue;
		snprintf(path, sizeof path, "%s/%.24s/%.255s", s->dir, of->cluster_id, entry->d_name);
		file_remove(s, path);
	}
	if (d)
		closedir(d);
}

static void databases_keep(void *ctx, const char *cluster_id, const char *node, const char *const *names, size_t count)
{
	files_keep(ctx, &(struct measured){cluster_id, node, "", MEASURE_DATABASE, 0}, "db", names, count);
}

/* --- tables */

static void list_path(const struct sampler *s, const char *cluster_id, const char *node, char ret_path[PATH_ROOM])
{
	snprintf(ret_path, PATH_ROOM, "%s/%.24s/%.63s.tables", s->dir, cluster_id, node);
}

/* NULL: it is not known what is pinned. */
static const struct pinned *pinned_find(const struct sampler *s, const char *cluster_id)
{
	for (size_t i = 0; s->pins && i < s->pins->count; i++)
		if (strcmp(s->pins->list[i].cluster_id, cluster_id) == 0)
			return &s->pins->list[i];
	return NULL;
}

/* The list is written when it has changed. Nothing goes while the engine was not told what is pinned. */
static void tables_keep(void *ctx, const char *cluster_id, const char *node, const char *const *names, size_t count)
{
	struct sampler *s = ctx;
	struct arena *a = arena_new();
	struct str *old;
	char path[PATH_ROOM];
	list_path(s, cluster_id, node, path);
	size_t old_count = tables_read(path, a, &old);
	bool same = old_count == count;
	json_t *list = json_keep(a, json_array());
	for (size_t i = 0; i < count; i++) {
		bool had = false;
		for (size_t k = 0; k < old_count; k++)
			had |= str_is(old[k], names[i]);
		same &= had;
		json_add_str(list, str_of(names[i]));
	}
	if (!same && pinned_find(s, cluster_id)) {
		int r = file_replace(path, json_text(a, list), 0600, FILE_NO_GROUP);
		if (r < 0)
			sampler_warn(s, path, r);
		files_keep(s, &(struct measured){cluster_id, node, "", MEASURE_TABLE, 0}, "table", names, count);
	}
	arena_free(a);
}

static const char *const *tables_pinned(void *ctx, const char *cluster_id, size_t *ret_count)
{
	const struct pinned *p = pinned_find(ctx, cluster_id);
	*ret_count = p ? p->count : 0;
	return p ? p->names : NULL;
}

static const char *const *tables_kept(void *ctx, const char *cluster_id, const char *node, size_t *ret_count)
{
	struct sampler *s = ctx;
	struct str *names;
	char path[PATH_ROOM];
	arena_reset(s->names_arena);
	list_path(s, cluster_id, node, path);
	*ret_count = tables_read(path, s->names_arena, &names);
	const char **texts = arena_new_array(s->names_arena, const char *, *ret_count + 1);
	for (size_t i = 0; i < *ret_count; i++)
		texts[i] = names[i].p;
	return texts;
}

static struct timespec mono_in(int64_t ms)
{
	int64_t us = clock_mono_us() + ms * 1000;
	return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

static void pins_free(struct pins *p)
{
	if (!p)
		return;
	arena_free(p->arena);
	free(p->list);
	free(p);
}

/* Has the pins read anew. A store that does not answer is waited for once, and not long. */
static void pins_ask(struct sampler *s)
{
	const struct timespec until = mono_in(PINS_WAIT_MS);
	pthread_mutex_lock(&s->lock);
	int r = s->pins_done == s->pins_asked ? 0 : ETIMEDOUT;
	s->pins_asked++;
	pthread_cond_broadcast(&s->asked);
	while (r != ETIMEDOUT && s->pins_done != s->pins_asked && !atomic_load(&s->stopping))
		r = pthread_cond_timedwait(&s->asked, &s->lock, &until);
	if (s->pins_read) {
		pins_free(s->pins);
		s->pins = s->pins_read;
		s->pins_read = NULL;
	}
	pthread_mutex_unlock(&s->lock);
}

static void round_run(struct sampler *s, bool whole)
{
	const struct service *v = s->service;
	struct engine_sampling sampling = {.whole = whole,
	                                   .take = sample_take,
	                                   .databases = databases_keep,
	                                   .tables = tables_keep,
	                                   .pinned = tables_pinned,
	                                   .kept = tables_kept,
	                                   .ctx = s};
	if (whole) {
		s->before_ms = s->whole_ms;
		s->whole_ms = s->now_ms;
		pins_ask(s);
	}
	if (v->engine_ops->sampling->sample(v->engine_state, &sampling) < 0)
		log_debug("series: no samples were taken");
}

/* --- what is pinned */

static int clusters_pinned(struct sampler *s, struct pins *to)
{
	DIR *d = opendir(s->dir);
	int r = d ? 0 : -errno;
	tx_begin_read(s->reader);
	for (struct dirent *entry; d && r == 0 && (entry = readdir(d));) {
		struct str id = str_of(entry->d_name);
		if (!id_is_valid(id))
			continue;
		to->list = must_realloc(to->list, (to->count + 1) * sizeof *to->list);
		struct pinned *p = &to->list[to->count++];
		str_copy(id, p->cluster_id, sizeof p->cluster_id);
		r = pins_load(s->reader, to->arena, id, &p->names, &p->count);
	}
	tx_end_read(s->reader);
	tx_rest(s->reader);
	if (d)
		closedir(d);
	return r;
}

/* When they cannot be read they stay as they were. */
static void pins_answer(struct sampler *s, uint64_t asked)
{
	struct pins *made = must_calloc(1, sizeof *made), *old = made;
	made->arena = arena_new();
	int r = clusters_pinned(s, made);
	pthread_mutex_lock(&s->lock);
	if (r == 0) {
		old = s->pins_read;
		s->pins_read = made;
	}
	s->pins_done = asked;
	pthread_cond_broadcast(&s->asked);
	pthread_mutex_unlock(&s->lock);
	pins_free(old);
}

/* --- what goes */

/* Of a cluster's directory: all of it, or the files of nodes that it has no more. */
static void cluster_sweep(struct sampler *s, const char *id, const struct cluster *cluster)
{
	char dir[PATH_ROOM], path[PATH_ROOM];
	const json_t *nodes = cluster ? json_object_get(cluster->plan, "nodes") : NULL;
	snprintf(dir, sizeof dir, "%s/%.24s", s->dir, id);
	DIR *d = opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		struct str name = str_of(entry->d_name), node, rest;
		if (name.p[0] == '.')
			continue;
		str_cut(name, '.', &node, &rest);
		if (cluster && json_find(nodes, "name", node))
			continue;
		snprintf(path, sizeof path, "%s/%.24s/%.255s", s->dir, id, entry->d_name);
		file_remove(s, path);
	}
	if (d)
		closedir(d);
	if (!cluster)
		rmdir(dir);
}

static void clusters_sweep(struct sampler *s)
{
	struct arena *a = arena_new();
	DIR *d = opendir(s->dir);
	tx_begin_read(s->reader);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		struct cluster cluster;
		if (!id_is_valid(str_of(entry->d_name)))
			continue;
		int r = cluster_get(s->reader, a, arena_dup(a, str_of(entry->d_name)), &cluster);
		if (r == 0 || r == -ENOENT)
			cluster_sweep(s, entry->d_name, r == 0 ? &cluster : NULL);
	}
	tx_end_read(s->reader);
	tx_rest(s->reader);
	if (d)
		closedir(d);
	arena_free(a);
}

static void entries_sweep(struct sampler *s)
{
	int64_t now = clock_mono_us();
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct entry **at = &s->buckets[i]; *at;)
			if (now - (*at)->used_us > UNUSED_US)
				entry_drop(at);
			else
				at = &(*at)->next;
	pthread_mutex_unlock(&s->lock);
}

/* --- the threads */

static void *sweeper_run(void *arg)
{
	struct sampler *s = arg;
	int64_t swept_us = clock_mono_us();
	while (!atomic_load(&s->stopping)) {
		const struct timespec until = mono_in(NAP_MS);
		pthread_mutex_lock(&s->lock);
		if (s->pins_done == s->pins_asked)
			pthread_cond_timedwait(&s->asked, &s->lock, &until);
		uint64_t asked = s->pins_asked, done = s->pins_done;
		pthread_mutex_unlock(&s->lock);
		if (asked != done)
			pins_answer(s, asked);
		if (clock_mono_us() - swept_us > SWEEP_US) {
			clusters_sweep(s);
			entries_sweep(s);
			swept_us = clock_mono_us();
		}
	}
	return NULL;
}

static void *sampler_run(void *arg)
{
	struct sampler *s = arg;
	const struct service *v = s->service;
	int64_t tick = -1, minute = -1, tracked_us = 0;
	while (!atomic_load(&s->stopping)) {
		s->now_ms = clock_now_ms();
		if (s->now_ms / TICK_MS != tick) {
			bool whole = s->now_ms / WHOLE_MS != minute;
			tick = s->now_ms / TICK_MS;
			minute = s->now_ms / WHOLE_MS;
			round_run(s, whole);
		}
		/* Lag is of the databases' time, whatever the service's clock says. */
		if (clock_mono_us() - tracked_us >= TRACK_US) {
			tracked_us = clock_mono_us();
			v->engine_ops->sampling->track(v->engine_state);
		}
		/* On time: what is counted before the minute ends is of that minute. */
		int64_t left = TICK_MS - clock_now_ms() % TICK_MS;
		nanosleep(&(struct timespec){.tv_nsec = (left < NAP_MS ? left : NAP_MS) * 1000000L}, NULL);
	}
	return NULL;
}

static int threads_start(struct sampler *s)
{
	int r = -pthread_create(&s->thread, NULL, sampler_run, s);
	s->runs = r == 0;
	if (r == 0)
		r = -pthread_create(&s->sweeper, NULL, sweeper_run, s);
	s->sweeps = s->runs && r == 0;
	if (s->runs)
		pthread_setname_np(s->thread, "samples");
	if (s->sweeps)
		pthread_setname_np(s->sweeper, "series");
	return r;
}

int sampler_start(struct service *v, const char *days, struct sampler **ret_sampler)
{
	struct sampler *s = must_calloc(1, sizeof *s);
	int r = 0;
	s->service = v;
	pthread_condattr_t monotonic;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->asked, &monotonic);
	pthread_condattr_destroy(&monotonic);
	s->names_arena = arena_new();
	snprintf(s->dir, sizeof s->dir, "%s/series", v->data_dir);
	if (!series_sizes_parse(str_of(days), &s->sizes)) {
		fprintf(stderr,
		        "steward: --series-days %s: four numbers of days, from 1 to 3660, such as 2,14,62,732\n", days);
		r = -EINVAL;
	}
	if (r == 0 && v->engine_ops->sampling) {
		if (mkdir(s->dir, 0700) < 0 && errno != EEXIST)
			r = -errno;
		s->reader = r < 0 ? NULL : store_reader(v->store);
		r = r < 0 ? r : !s->reader ? -EIO : threads_start(s);
		if (r < 0)
			fprintf(stderr, "steward: samples cannot be taken into %s: %s\n", s->dir, strerror(-r));
	}
	if (r < 0) {
		sampler_stop(s);
		return r;
	}
	*ret_sampler = s;
	return 0;
}

void sampler_stop(struct sampler *s)
{
	if (!s)
		return;
	atomic_store(&s->stopping, true);
	if (s->runs)
		pthread_join(s->thread, NULL);
	if (s->sweeps)
		pthread_join(s->sweeper, NULL);
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->buckets[i])
			entry_drop(&s->buckets[i]);
	store_reader_free(s->reader);
	pthread_cond_destroy(&s->asked);
	pthread_mutex_destroy(&s->lock);
	arena_free(s->names_arena);
	pins_free(s->pins);
	pins_free(s->pins_read);
	free(s);
}

/* --- reading */

void measured_clip(const struct service *s, const struct measured *of, enum series_level level, int64_t *from_ms,
                   int64_t *to_ms)
{
	int64_t step = series_step_ms(level), now = clock_now_ms();
	int64_t oldest = (now / step + 1 - s->sampler->sizes.count[level]) * step, first = of->since_ms / step * step;
	*from_ms = *from_ms < oldest ? oldest : *from_ms;
	*from_ms = *from_ms < first ? first : *from_ms;
	*to_ms = *to_ms > now + 1 ? now + 1 : *to_ms;
}

/* How often the function is asked for an interval: at each minute of five, each five minutes of an hour, each hour of a
 * day. */
static unsigned parts_of(enum series_level level)
{
	static const unsigned parts[SERIES_LEVELS] = {1, 1, 5, 12, 24};
	return parts[level];
}

/* The mean of what is known of a column, or the greatest. */
static void part_add(const struct series_column *c, double value, unsigned *known, float *ret_value)
{
	float v = (float)value, old = *ret_value;
	if (isnan(value))
		return;
	if (!*known)
		*ret_value = v;
	else if (c->maximum)
		*ret_value = v > old ? v : old;
	else
		*ret_value = old + (v - old) / (float)(*known + 1);
	++*known;
}

struct computing {
	const struct service *service;
	const struct measured *of;
	enum series_level level;
	const unsigned *columns;
	size_t count;
	double *part;
	unsigned *known;
};

static int interval_compute(const struct computing *c, int64_t begin_ms, float *ret_values)
{
	const struct service *s = c->service;
	const struct measured *of = c->of;
	const struct series_layout *layout = &measure_layouts[of->subject];
	int64_t step = series_step_ms(c->level) / parts_of(c->level), now = clock_now_ms();
	for (size_t i = 0; i < c->count; i++) {
		ret_values[i] = NAN;
		c->known[i] = 0;
	}
	for (unsigned k = 0; k < parts_of(c->level); k++) {
		int64_t at = begin_ms + step * (int64_t)k;
		if (at > now)
			break;
		int r = s->engine_ops->history->at(s->engine_state, of->cluster_id, of->node, of->subject, of->name, at,
		                                   c->columns, c->count, c->part);
		if (r < 0)
			return r;
		for (size_t i = 0; i < c->count; i++)
			part_add(&layout->columns[c->columns[i]], c->part[i], &c->known[i], &ret_values[i]);
	}
	return 0;
}

static int measured_compute(const struct service *s, const struct measured *of, enum series_level level,
                            int64_t from_ms, int64_t to_ms, const unsigned *columns, size_t count, float *ret_values)
{
	int64_t step = series_step_ms(level), first = (from_ms + step - 1) / step * step;
	size_t slots = series_slots(level, from_ms, to_ms);
	struct computing c = {s,
	                      of,
	                      level,
	                      columns,
	                      count,
	                      must_calloc(count + 1, sizeof(double)),
	                      must_calloc(count + 1, sizeof(unsigned))};
	int r = 0;
	for (size_t i = 0; r == 0 && i < slots; i++)
		r = interval_compute(&c, first + step * (int64_t)i, ret_values + i * count);
	free(c.part);
	free(c.known);
	return r;
}

int measured_read(const struct service *s, const struct measured *of, enum series_level level, int64_t from_ms,
                  int64_t to_ms, const unsigned *columns, size_t count, float *ret_values)
{
	char path[PATH_ROOM];
	if (s->engine_ops->history)
		return measured_compute(s, of, level, from_ms, to_ms, columns, count, ret_values);
	file_path(s->sampler, of, path);
	return series_read(path, &measure_layouts[of->subject], level, from_ms, to_ms, columns, count, ret_values);
}

bool measured_is_known(const struct service *s, const struct measured *of)
{
	char path[PATH_ROOM];
	if (s->engine_ops->history)
		return false;
	file_path(s->sampler, of, path);
	return access(path, F_OK) == 0;
}

size_t measured_tables(const struct service *s, const char *cluster_id, const char *node, struct arena *a,
                       struct str **ret_names)
{
	char path[PATH_ROOM];
	size_t count;
	if (!s->engine_ops->history) {
		list_path(s->sampler, cluster_id, node, path);
		return tables_read(path, a, ret_names);
	}
	const char *const *names = s->engine_ops->history->tables(&count);
	*ret_names = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; i < count; i++)
		(*ret_names)[i] = str_of(names[i]);
	return count;
}

enum series_level measured_level(const struct service *s, int64_t from_ms, int64_t to_ms)
{
	static const int64_t most_ms[SERIES_LEVELS] = {
	        [SERIES_1M] = 12 * 3600000LL, [SERIES_5M] = 48 * 3600000LL, [SERIES_1H] = 31 * 86400000LL};
	int level = SERIES_1M;
	for (; level < SERIES_1D; level++) {
		int64_t kept = series_step_ms((enum series_level)level) * s->sampler->sizes.count[level];
		if (to_ms - from_ms <= most_ms[level] && clock_now_ms() - from_ms <= kept)
			break;
	}
	return (enum series_level)level;
}
