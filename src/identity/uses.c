/* Uses of credentials. Each loop collects them in its own table; the main thread takes the table away by exchanging the
 * pointer, and the store writes it. Whoever holds the pointer is the only owner of the table, so there is no lock: the
 * loop takes its table out for the few instructions of a count, and the main thread finds either the whole table or
 * none.
 *
 * A full table goes to the store at once. Counts that the store has no room for are lost: they are no reason to refuse
 * a call. */
#include "identity/uses.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOTS 256
#define FULL 192

struct use {
	char id[ID_LEN + 1]; /* the credential, or the secret; "": an empty slot */
	bool is_secret;
	struct cidr entry;
	struct ip from;
	int64_t count, last_ms;
};

struct uses {
	struct write write;
	unsigned count;
	struct use slots[SLOTS];
};

static void flush_done(void *ctx, int result)
{
	free(ctx);
}

static json_t *time_json(int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	return json_string(text);
}

static void entry_change(json_t *body, const struct use *u)
{
	char from[IP_TEXT];
	ip_format(&u->from, from);
	json_int_t before = json_integer_value(json_object_get(body, "count"));
	/* The API counts in 32 bits. */
	json_int_t after = before + u->count < INT32_MAX ? before + u->count : INT32_MAX;
	json_put(body, "count", json_integer(after));
	json_put(body, "lastUsed", time_json(u->last_ms));
	json_put_z(body, "lastUsedAddress", from);
}

static int use_write(struct tx *tx, struct arena *a, const struct use *u)
{
	char network[IP_TEXT];
	struct doc d;
	cidr_format(&u->entry, network);
	int result = u->is_secret ? tx_get(tx, a, "sa_secret", str_of(u->id), &d)
	                          : tx_get_by_name(tx, a, "api_access", str_of(u->id), str_of(network), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result; /* gone since */
	json_t *body = json_loadb(d.body.p, d.body.n, 0, NULL);
	if (!json_is_object(body)) {
		json_decref(body);
		return 0;
	}
	if (u->is_secret)
		json_put(body, "lastUsedAt", time_json(u->last_ms));
	else
		entry_change(body, u);
	size_t n = json_dumpb(body, NULL, 0, JSON_COMPACT);
	char *text = arena_alloc(a, n + 1);
	json_dumpb(body, text, n, JSON_COMPACT);
	json_decref(body);
	d.body = (struct str){text, n};
	return tx_update(tx, &d);
}

static int flush_run(struct tx *tx, void *ctx)
{
	const struct uses *t = ctx;
	struct arena *a = arena_new();
	int result = 0;
	for (unsigned i = 0; result == 0 && i < SLOTS; i++)
		if (t->slots[i].id[0])
			result = use_write(tx, a, &t->slots[i]);
	arena_free(a);
	return result;
}

static void table_flush(struct store *store, struct uses *t)
{
	t->write = (struct write){.run = flush_run, .done = flush_done, .ctx = t};
	if (!store_write(store, &t->write))
		free(t);
}

static bool same(const struct use *a, const struct use *b)
{
	return memcmp(a->id, b->id, ID_LEN) == 0 && a->is_secret == b->is_secret && a->entry.bits == b->entry.bits &&
	       ip_equal(&a->entry.net, &b->entry.net);
}

static struct use *slot_find(struct uses *t, const struct use *u)
{
	uint64_t hash = 0xcbf29ce484222325u ^ u->entry.bits;
	for (size_t i = 0; i < ID_LEN; i++)
		hash = (hash ^ (unsigned char)u->id[i]) * 0x100000001b3u;
	for (size_t i = 0; i < sizeof u->entry.net.b; i++)
		hash = (hash ^ u->entry.net.b[i]) * 0x100000001b3u;
	unsigned at = (unsigned)(hash >> 20) % SLOTS;
	while (t->slots[at].id[0] && !same(&t->slots[at], u))
		at = (at + 1) % SLOTS;
	return &t->slots[at];
}

static void note(struct service *s, unsigned loop, const struct use *u)
{
	struct uses *_Atomic *mine = &s->loop[loop].uses;
	struct uses *t = atomic_exchange_explicit(mine, NULL, memory_order_acquire);
	if (!t)
		t = must_calloc(1, sizeof *t);
	struct use *slot = slot_find(t, u);
	int64_t count = slot->count;
	t->count += !slot->id[0];
	*slot = *u;
	slot->count = count + 1;
	slot->last_ms = clock_now_ms();
	if (t->count >= FULL)
		table_flush(s->store, t);
	else
		atomic_store_explicit(mine, t, memory_order_release);
}

void use_access(struct service *s, unsigned loop, const struct principal *p, size_t entry, const struct ip *peer)
{
	struct use u = {.entry = p->access_list[entry], .from = *peer};
	memcpy(u.id, p->id, ID_LEN);
	note(s, loop, &u);
}

void use_secret(struct service *s, unsigned loop, struct str secret_id)
{
	struct use u = {.is_secret = true};
	if (secret_id.n != ID_LEN)
		return;
	memcpy(u.id, secret_id.p, ID_LEN);
	note(s, loop, &u);
}

void uses_flush(struct service *s)
{
	for (unsigned i = 0; i < s->lanes; i++) {
		struct uses *t = atomic_exchange_explicit(&s->loop[i].uses, NULL, memory_order_acquire);
		if (t)
			table_flush(s->store, t);
	}
}

void uses_free(struct uses *u)
{
	free(u);
}
