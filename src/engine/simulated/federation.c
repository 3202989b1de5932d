/* Federated database instances of the simulated engine. Nobody can connect to one: each of its users in turn asks
 * each of its tables in turn, one query every ten minutes of the service's clock, and what that reads is told by
 * the kinds of the table's sources. Limits, counts and the log are as real ones. All of it is in memory alone:
 * after a new start of the service an instance has read nothing yet. */
#include "engine/simulated/state.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define QUERY_EVERY_MS INT64_C(600000)
#define KEPT_MS (INT64_C(30) * 86400000)
#define KEPT_MAX 100000u
#define MIB (UINT64_C(1) << 20)
#define ROW_BYTES 128
#define OBJECTS UINT64_C(4)    /* that a source of objects has, */
#define OBJECT_MIB UINT64_C(8) /* each of them */
#define PORT 27100
#define ALL_STORES ((1u << STORE_ARCHIVES << 1) - 1) /* the last of them */
#define TEXT 160

struct table {
	char database[64], name[64], fault[TEXT]; /* fault: why queries of it fail; empty: they do not */
	uint64_t bytes;
	unsigned files;
};

struct query {
	int64_t at_ms;
	unsigned number, files;
	uint64_t bytes;
	char fault[TEXT];
	bool limited;
	char user_name[64], database[64], table_name[64];
};

struct sim_federation {
	struct sim_federation *next;
	char id[ID_LEN + 1], group_id[ID_LEN + 1];
	int64_t generation, started_ms, ready_ms, asked_ms; /* asked: until when queries were made up */
	bool paused;
	unsigned number; /* of the next query */
	struct table *tables;
	char (*users)[64];
	size_t table_count, user_count;
	struct engine_federation_limit limits[FEDERATION_SPANS * 2];
	size_t limit_count;
	struct query *log; /* oldest first */
	size_t log_count, log_room;
};

static struct sim_federation *federation_find(const struct engine *e, const char *id)
{
	struct sim_federation *f = e->federations;
	while (f && strcmp(f->id, id) != 0)
		f = f->next;
	return f;
}

static struct sim_federation *federation_make(struct engine *e, const struct engine_federation *want)
{
	struct sim_federation *f = must_calloc(1, sizeof *f);
	str_copy(str_of(want->id), f->id, sizeof f->id);
	str_copy(str_of(want->group_id), f->group_id, sizeof f->group_id);
	f->started_ms = f->asked_ms = clock_now_ms();
	f->ready_ms = f->started_ms + (int64_t)(e->seconds * 1000 / 3);
	f->next = e->federations;
	e->federations = f;
	return f;
}

static void federation_free(struct sim_federation *f)
{
	free(f->tables);
	free(f->users);
	free(f->log);
	free(f);
}

void sim_federations_free(struct engine *e)
{
	while (e->federations) {
		struct sim_federation *f = e->federations;
		e->federations = f->next;
		federation_free(f);
	}
}

/* --- what was read */

static uint64_t bytes_since(const struct sim_federation *f, int64_t from_ms)
{
	uint64_t sum = 0;
	for (size_t i = f->log_count; i > 0 && f->log[i - 1].at_ms >= from_ms; i--)
		sum += f->log[i - 1].bytes;
	return sum;
}

static uint64_t bytes_most(const struct sim_federation *f, int64_t from_ms)
{
	uint64_t most = 0;
	for (size_t i = f->log_count; i > 0 && f->log[i - 1].at_ms >= from_ms; i--)
		most = f->log[i - 1].bytes > most ? f->log[i - 1].bytes : most;
	return most;
}

static uint64_t bytes_used(const struct sim_federation *f, enum federation_span span, int64_t now)
{
	int64_t from = federation_span_begin(span, now);
	return span == SPAN_QUERY ? bytes_most(f, from) : bytes_since(f, from);
}

/* Of all instances of the project. */
static uint64_t bytes_project(const struct engine *e, const char *group_id, enum federation_span span, int64_t now)
{
	uint64_t sum = 0;
	for (const struct sim_federation *f = e->federations; f; f = f->next) {
		uint64_t used = strcmp(f->group_id, group_id) == 0 ? bytes_used(f, span, now) : 0;
		sum = span != SPAN_QUERY ? sum + used : used > sum ? used : sum;
	}
	return sum;
}

/* --- queries */

/* What a limit leaves of the query. */
static void limit_hold(const struct engine *e, const struct sim_federation *f, const struct engine_federation_limit *l,
                       struct query *q)
{
	static const char *const spans[FEDERATION_SPANS] = {"a query", "the day", "the week", "the month"};
	uint64_t used = l->span == SPAN_QUERY ? 0
	                : l->project          ? bytes_project(e, f->group_id, l->span, q->at_ms)
	                                      : bytes_used(f, l->span, q->at_ms);
	uint64_t left = used < l->bytes ? l->bytes - used : 0;
	bool refused = l->span != SPAN_QUERY && !left, ended = q->bytes > left && (l->kill || l->span == SPAN_QUERY);
	if (!refused && !ended)
		return;
	q->bytes = refused ? 0 : left;
	q->limited = true;
	snprintf(q->fault, sizeof q->fault, "the limit of %s, %llu bytes%s, %s", spans[l->span],
	         (unsigned long long)l->bytes, l->project ? " of the project" : "",
	         refused ? "was reached before" : "was reached while it ran");
}

static void query_add(struct sim_federation *f, const struct query *q)
{
	size_t old = 0;
	while (old < f->log_count && (f->log[old].at_ms < q->at_ms - KEPT_MS || f->log_count - old >= KEPT_MAX))
		old++;
	/* Those that are too old go many at once. */
	if (old > 1000 || f->log_count == KEPT_MAX) {
		memmove(f->log, f->log + old, (f->log_count - old) * sizeof *f->log);
		f->log_count -= old;
	}
	if (f->log_count == f->log_room) {
		f->log_room = f->log_room ? f->log_room * 2 : 64;
		f->log = must_realloc(f->log, f->log_room * sizeof *f->log);
	}
	f->log[f->log_count++] = *q;
}

static void query_make(struct engine *e, struct sim_federation *f, int64_t at_ms)
{
	const struct table *t = &f->tables[f->number % f->table_count];
	struct query q = {.at_ms = at_ms, .number = f->number, .bytes = t->bytes, .files = t->files};
	str_copy(str_of(f->users[f->number % f->user_count]), q.user_name, sizeof q.user_name);
	str_copy(str_of(t->database), q.database, sizeof q.database);
	str_copy(str_of(t->name), q.table_name, sizeof q.table_name);
	str_copy(str_of(t->fault), q.fault, sizeof q.fault);
	f->number++;
	if (q.fault[0])
		q.bytes = 0;
	for (size_t i = 0; i < f->limit_count && !q.fault[0]; i++)
		limit_hold(e, f, &f->limits[i], &q);
	if (!q.bytes)
		q.files = 0;
	query_add(f, &q);
}

/* Up to now. What was long ago is not kept anyway. With the lock held. */
static void queries_make(struct engine *e, struct sim_federation *f)
{
	int64_t now = clock_now_ms();
	if (f->asked_ms < now - KEPT_MS)
		f->asked_ms = now - KEPT_MS;
	bool asks = f->table_count && f->user_count && !f->paused && f->generation;
	for (; f->asked_ms + QUERY_EVERY_MS <= now; f->asked_ms += QUERY_EVERY_MS)
		if (asks)
			query_make(e, f, f->asked_ms + QUERY_EVERY_MS);
}

/* The limits of a project count all its instances: none lags behind. */
static void all_make(struct engine *e)
{
	for (struct sim_federation *f = e->federations; f; f = f->next)
		queries_make(e, f);
}

/* --- what is wanted */

static void source_count(const struct engine_federation *want, const struct engine_federation_source *s,
                         struct table *t)
{
	const struct engine_federation_store *store = &want->stores[s->store];
	size_t urls = s->url_count ? s->url_count : store->url_count;
	switch (store->kind) {
	case STORE_CLUSTER:
		t->bytes += MIB;
		if (!store->cluster_id)
			snprintf(t->fault, sizeof t->fault, "the store \"%.60s\" has no cluster any more", store->name);
		break;
	case STORE_S3:
	case STORE_AZURE:
	case STORE_GCS:
		t->bytes += OBJECTS * OBJECT_MIB * MIB;
		t->files += (unsigned)OBJECTS;
		break;
	case STORE_HTTP:
		t->bytes += urls * MIB;
		t->files += (unsigned)urls;
		break;
	case STORE_ARCHIVES:
		t->bytes += 2 * MIB;
		t->files++;
		break;
	}
}

static void tables_take(struct sim_federation *f, const struct engine_federation *want)
{
	free(f->tables);
	f->tables = must_calloc(want->table_count + 1, sizeof *f->tables);
	f->table_count = want->table_count;
	for (size_t i = 0; i < want->table_count; i++) {
		const struct engine_federation_table *t = &want->tables[i];
		bool wildcard = strcmp(t->name, "*") == 0;
		str_copy(str_of(t->database), f->tables[i].database, sizeof f->tables[i].database);
		str_copy(str_of(wildcard ? "any" : t->name), f->tables[i].name, sizeof f->tables[i].name);
		for (size_t k = 0; k < t->source_count; k++)
			source_count(want, &t->sources[k], &f->tables[i]);
	}
}

static void users_take(struct sim_federation *f, const struct engine_access *access)
{
	free(f->users);
	f->users = must_calloc(access->user_count + 1, sizeof *f->users);
	f->user_count = access->user_count;
	for (size_t i = 0; i < access->user_count; i++)
		str_copy(str_of(access->users[i].name), f->users[i], sizeof f->users[i]);
}

static void limits_take(struct sim_federation *f, const struct engine_federation_limit *limits, size_t count)
{
	f->limit_count = count < sizeof f->limits / sizeof *f->limits ? count : sizeof f->limits / sizeof *f->limits;
	for (size_t i = 0; i < f->limit_count; i++)
		f->limits[i] = limits[i];
}

/* --- the capability */

static int sim_federation_can(struct engine *e, struct arena *a, const char **ret_why)
{
	return 0;
}

static void sim_federation_bind(struct engine *e, const struct engine_federation_outside *outside)
{
}

static int sim_federation_apply(struct engine *e, const struct engine_federation *want,
                                const struct engine_access *access, struct engine_progress *progress, struct arena *a,
                                const char **ret_why)
{
	int result = 0;
	pthread_mutex_lock(&e->lock);
	struct sim_federation *f = federation_find(e, want->id);
	f = f ? f : federation_make(e, want);
	progress->again_ms = f->ready_ms;
	if (clock_now_ms() < f->ready_ms)
		result = -EAGAIN;
	if (result == 0 && sim_told_to_fail(e, SIM_FEDERATION))
		result = -EIO;
	if (result == 0) {
		all_make(e);
		tables_take(f, want);
		users_take(f, access);
		limits_take(f, want->limits, want->limit_count);
		f->generation = want->generation;
		f->paused = false;
	}
	pthread_mutex_unlock(&e->lock);
	if (result == -EIO)
		*ret_why = "the test control asked for this failure";
	return result;
}

static int sim_federation_bound(struct engine *e, const char *id, const struct engine_federation_limit *limits,
                                size_t count)
{
	pthread_mutex_lock(&e->lock);
	struct sim_federation *f = federation_find(e, id);
	if (f) {
		all_make(e);
		limits_take(f, limits, count);
	}
	pthread_mutex_unlock(&e->lock);
	return f ? 0 : -ENOENT;
}

static int sim_federation_pause(struct engine *e, const char *id)
{
	pthread_mutex_lock(&e->lock);
	struct sim_federation *f = federation_find(e, id);
	if (f) {
		all_make(e);
		f->paused = true;
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int sim_federation_destroy(struct engine *e, const char *id, struct engine_progress *progress, struct arena *a,
                                  const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	struct sim_federation **at = &e->federations;
	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	struct sim_federation *found = *at;
	if (found) {
		*at = found->next;
		federation_free(found);
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int sim_federation_observe(struct engine *e, const char *id, struct engine_federation_status *ret_status)
{
	*ret_status = (struct engine_federation_status){.exists = false};
	pthread_mutex_lock(&e->lock);
	const struct sim_federation *f = federation_find(e, id);
	if (f)
		*ret_status = (struct engine_federation_status){.exists = true,
		                                                .running = f->generation && !f->paused,
		                                                .address = "127.0.0.1",
		                                                .port = PORT,
		                                                .generation = f->generation,
		                                                .started_ms = f->started_ms};
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int sim_federation_used(struct engine *e, const char *id, struct engine_federation_used *ret_used)
{
	struct engine_federation_used used = {.queries = 0};
	int64_t now = clock_now_ms(), month = federation_span_begin(SPAN_MONTH, now);
	pthread_mutex_lock(&e->lock);
	all_make(e);
	const struct sim_federation *f = federation_find(e, id);
	for (size_t i = 0; f && i < FEDERATION_SPANS; i++) {
		used.bytes[i] = bytes_used(f, (enum federation_span)i, now);
		used.project[i] = bytes_project(e, f->group_id, (enum federation_span)i, now);
	}
	for (size_t i = 0; f && i < f->log_count; i++) {
		used.queries += f->log[i].at_ms >= month;
		used.refused += f->log[i].at_ms >= month && f->log[i].limited;
	}
	pthread_mutex_unlock(&e->lock);
	if (f)
		*ret_used = used;
	return f ? 0 : -ENOENT;
}

static int query_tell(const struct query *q, engine_federation_visit *visit, void *ctx)
{
	char statement[200], id[32];
	snprintf(statement, sizeof statement, "select * from \"%s\" where \"at\" > $1", q->table_name);
	snprintf(id, sizeof id, "q%u", q->number);
	return visit(ctx, &(struct engine_federation_query){.at_ms = q->at_ms,
	                                                    .took_ms = 20 + (int64_t)(q->bytes / MIB) * 10,
	                                                    .user = q->user_name,
	                                                    .client = "127.0.0.1",
	                                                    .database = q->database,
	                                                    .statement = statement,
	                                                    .id = id,
	                                                    .bytes = q->bytes,
	                                                    .rows = q->fault[0] ? 0 : q->bytes / ROW_BYTES,
	                                                    .files = q->files,
	                                                    .fault = q->fault[0] ? q->fault : NULL,
	                                                    .limited = q->limited});
}

static int sim_federation_queries(struct engine *e, const char *id, int64_t from_ms, int64_t to_ms,
                                  engine_federation_visit *visit, void *ctx, struct arena *a)
{
	int r = 0;
	pthread_mutex_lock(&e->lock);
	all_make(e);
	const struct sim_federation *f = federation_find(e, id);
	for (size_t i = 0; f && r == 0 && i < f->log_count; i++)
		if (f->log[i].at_ms >= from_ms && f->log[i].at_ms < to_ms)
			r = query_tell(&f->log[i], visit, ctx);
	pthread_mutex_unlock(&e->lock);
	return r;
}

static int sim_federation_known(struct engine *e, struct arena *a, const char *const **ret_ids, size_t *ret_count)
{
	size_t count = 0;
	pthread_mutex_lock(&e->lock);
	for (const struct sim_federation *f = e->federations; f; f = f->next)
		count++;
	const char **ids = arena_new_array(a, const char *, count + 1);
	count = 0;
	for (const struct sim_federation *f = e->federations; f; f = f->next)
		ids[count++] = arena_z(a, str_of(f->id));
	pthread_mutex_unlock(&e->lock);
	*ret_ids = ids;
	*ret_count = count;
	return 0;
}

const struct engine_federation_ops sim_federation = {.stores = ALL_STORES,
                                                     .views = true,
                                                     .can = sim_federation_can,
                                                     .bind = sim_federation_bind,
                                                     .apply = sim_federation_apply,
                                                     .bound = sim_federation_bound,
                                                     .pause = sim_federation_pause,
                                                     .destroy = sim_federation_destroy,
                                                     .observe = sim_federation_observe,
                                                     .used = sim_federation_used,
                                                     .queries = sim_federation_queries,
                                                     .known = sim_federation_known};
