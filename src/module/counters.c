/* The pools of counters.h. Nothing here can raise an error, and nothing takes memory, but counters_attach(). */
#include "module/counters.h"

#include <storage/shmem.h>
#include <utils/guc.h>
#include <utils/timestamp.h>

#define SEGMENT "steward 2" /* another number with each change of struct counters */
#define WAYS 8
#define FREE 0
#define BUSY 1

struct counters *counters;

static int buckets = LATENCY_BUCKETS;

void counters_define(void)
{
	DefineCustomIntVariable("steward.buckets", "Into how many buckets times of statements are counted.", NULL,
	                        &buckets, LATENCY_BUCKETS, 0, INT_MAX, PGC_INTERNAL,
	                        GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}

bool counters_are_ours(void)
{
	const char *told = GetConfigOption("steward.buckets", true, false);
	return told && atoi(told) == LATENCY_BUCKETS;
}

static void pool_init(struct counter *c)
{
	pg_atomic_init_u64(&c->key, FREE);
	pg_atomic_init_u64(&c->last, 0);
	pg_atomic_init_u64(&c->total_us, 0);
	for (int i = 0; i < LATENCY_BUCKETS; i++)
		pg_atomic_init_u64(&c->buckets[i], 0);
}

void counters_attach(void)
{
	bool found;
	counters = ShmemInitStruct(SEGMENT, sizeof *counters, &found);
	if (found)
		return;
	counters->since = GetCurrentTimestamp();
	pg_atomic_init_u64(&counters->lost_tables, 0);
	pg_atomic_init_u64(&counters->lost_statements, 0);
	for (int kind = 0; kind < COUNTER_KINDS; kind++)
		for (int i = 0; i < COUNTER_TABLES; i++)
			pool_init(&counters->tables[kind][i]);
	for (int i = 0; i < COUNTER_STATEMENTS; i++) {
		struct statement *s = &counters->statements[i];
		pool_init(&s->counter);
		pg_atomic_init_u64(&s->last_us, 0);
		pg_atomic_init_u64(&s->refused, 0);
	}
}

/* A pool of entries that begin with a counter. */
struct pool {
	char *entries;
	size_t size, count;
	pg_atomic_uint64 *lost;
};

/* The first of the places that a key may have. */
static char *places(const struct pool *p, uint64 key)
{
	size_t sets = p->count / WAYS;
	uint64 mixed = key * UINT64CONST(0x9E3779B97F4A7C15);
	return p->entries + (size_t)((mixed >> 32) % sets) * WAYS * p->size;
}

static struct counter *pool_find(const struct pool *p, uint64 key)
{
	char *at = places(p, key);
	for (int i = 0; i < WAYS; i++, at += p->size) {
		struct counter *c = (struct counter *)(void *)at;
		if (pg_atomic_read_u64(&c->key) == key) {
			pg_read_barrier();
			return c;
		}
	}
	return NULL;
}

/* A place that is ours to fill: free, or that of the entry that was used longest ago. */
static struct counter *pool_take(const struct pool *p, uint64 key)
{
	char *at = places(p, key);
	struct counter *oldest = NULL;
	uint64 oldest_last = PG_UINT64_MAX, oldest_key = FREE;
	for (int i = 0; i < WAYS; i++, at += p->size) {
		struct counter *c = (struct counter *)(void *)at;
		uint64 old = FREE, last = pg_atomic_read_u64(&c->last);
		if (pg_atomic_compare_exchange_u64(&c->key, &old, BUSY))
			return c;
		if (old != BUSY && last < oldest_last) {
			oldest = c;
			oldest_last = last;
			oldest_key = old;
		}
	}
	if (!oldest || !pg_atomic_compare_exchange_u64(&oldest->key, &oldest_key, BUSY))
		return NULL;
	pg_atomic_fetch_add_u64(p->lost, 1);
	return oldest;
}

static void counter_begin(struct counter *c, TimestampTz now)
{
	pg_atomic_write_u64(&c->last, (uint64)now);
	pg_atomic_write_u64(&c->total_us, 0);
	for (int i = 0; i < LATENCY_BUCKETS; i++)
		pg_atomic_write_u64(&c->buckets[i], 0);
}

static void counter_publish(struct counter *c, uint64 key)
{
	pg_write_barrier();
	pg_atomic_write_u64(&c->key, key);
}

static void counter_add(struct counter *c, uint64 us, TimestampTz now)
{
	pg_atomic_write_u64(&c->last, (uint64)now);
	pg_atomic_fetch_add_u64(&c->total_us, (int64)us);
	pg_atomic_fetch_add_u64(&c->buckets[latency_bucket(us)], 1);
}

void counters_table(enum counter_kind kind, Oid dbid, Oid relid, uint64 us, TimestampTz now)
{
	uint64 key = (uint64)dbid << 32 | relid;
	const struct pool p = {(char *)counters->tables[kind], sizeof(struct counter), COUNTER_TABLES,
	                       &counters->lost_tables};
	struct counter *c = pool_find(&p, key);
	if (!c && (c = pool_take(&p, key))) {
		counter_begin(c, now);
		counter_publish(c, key);
	}
	if (c)
		counter_add(c, us, now);
}

static struct pool statements_pool(void)
{
	return (struct pool){(char *)counters->statements, sizeof(struct statement), COUNTER_STATEMENTS,
	                     &counters->lost_statements};
}

struct statement *counters_statement(uint64 queryid)
{
	const struct pool p = statements_pool();
	return queryid > BUSY ? (struct statement *)(void *)pool_find(&p, queryid) : NULL;
}

struct statement *counters_statement_add(uint64 queryid, const struct statement *fresh, TimestampTz now)
{
	const struct pool p = statements_pool();
	struct statement *s = queryid > BUSY ? (struct statement *)(void *)pool_take(&p, queryid) : NULL;
	if (!s)
		return NULL;
	counter_begin(&s->counter, now);
	pg_atomic_write_u64(&s->last_us, 0);
	pg_atomic_write_u64(&s->refused, 0);
	s->shape = fresh->shape;
	s->first = now;
	s->dbid = fresh->dbid;
	s->relid = fresh->relid;
	s->command = fresh->command;
	memcpy(s->name, fresh->name, sizeof s->name);
	memcpy(s->application, fresh->application, sizeof s->application);
	counter_publish(&s->counter, queryid);
	return s;
}

void counters_statement_count(struct statement *s, uint64 us, TimestampTz now)
{
	counter_add(&s->counter, us, now);
	pg_atomic_write_u64(&s->last_us, us);
}

void counters_statement_refuse(struct statement *s, TimestampTz now)
{
	pg_atomic_write_u64(&s->counter.last, (uint64)now);
	pg_atomic_fetch_add_u64(&s->refused, 1);
}
