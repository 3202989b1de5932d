/* Sealing anew. A piece is read on a reader, and only what needs it is written, in writes of a few documents each, so
 * that a rotation delays nobody's write by more than such a write takes. A write replaces a secret only if it is still
 * the one that was read, and leaves the document's revision alone: no caller sees an ETag change. Who had read a
 * document before and writes it back after may bring the old seal back; so walks are repeated until one finds nothing,
 * and whoever retires a key walks once more. */
#include "store/rotation.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/backend.h"
#include "store/seal.h"

#include <errno.h>

#define SLICE 256
#define PIECE 32
#define META_KEY "secret_key"
#define META_SINCE "secret_key_since"
#define META_LASTING "lasting_keys"

static int lasting_follow(struct tx *tx, struct arena *a)
{
	struct str kept;
	unsigned key;
	int r = tx_meta_get(tx, a, META_LASTING, &kept);
	return r == -ENOENT ? 0 : r < 0 ? r : seal_lasting_take(a, kept, &key);
}

int rotation_follow(struct tx *tx)
{
	struct arena *a = arena_new();
	struct str name;
	int r = tx_meta_get(tx, a, META_KEY, &name);
	if (r == 0)
		r = seal_key_use(name);
	if (r == 0)
		r = lasting_follow(tx, a);
	arena_free(a);
	return r;
}

/* The lasting keys come with it, still sealed with the key before: both are in every file. */
static int begin_run(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	struct str kept;
	char name[65];
	int r = tx_meta_get(tx, a, META_LASTING, &kept);
	if (r == -ENOENT)
		r = tx_meta_put(tx, META_LASTING, seal_lasting_keep(a));
	seal_key_name(0, name);
	if (r == 0)
		r = tx_meta_put(tx, META_SINCE, arena_printf(a, "%lld", (long long)clock_now_ms()));
	if (r == 0)
		r = tx_meta_put(tx, META_KEY, str_of(name));
	arena_free(a);
	return r;
}

int rotation_begin(struct store *s)
{
	return store_write_wait(s, begin_run, NULL);
}

struct piece {
	struct doc docs[PIECE];
	struct str sealed[PIECE];
	size_t count;
};

static int piece_run(struct tx *tx, void *ctx)
{
	const struct piece *p = ctx;
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->count; i++)
		r = tx_secret_replace(tx, &p->docs[i], p->sealed[i]);
	return r;
}

static int piece_write(struct store *s, struct piece *p)
{
	int r = p->count ? store_write_wait(s, piece_run, p) : 0;
	p->count = 0;
	return r;
}

static int doc_look(struct arena *a, struct rotation_walk *w, const struct doc *d, struct store *s, struct piece *p)
{
	struct str plain, context = arena_printf(a, "%.*s/%.*s", STR_ARG(d->kind), STR_ARG(d->id));
	unsigned key;
	if (!d->secret.n || !seal_is_sealed(d->secret))
		return 0;
	if (seal_open_by(a, d->secret, context, &plain, &key) < 0) {
		w->unknown++;
		snprintf(w->example, sizeof w->example, "%.*s", STR_ARG(context));
		return 0;
	}
	if (key == 0) {
		w->current++;
		return 0;
	}
	w->older++;
	if (!s)
		return 0;
	p->docs[p->count] = *d;
	p->sealed[p->count++] = seal(a, plain, context);
	return p->count == PIECE ? piece_write(s, p) : 0;
}

int rotation_slice(struct tx *reader, struct rotation_walk *w, struct store *s)
{
	struct arena *a = arena_new();
	struct doc *docs = NULL;
	struct piece p = {.count = 0};
	size_t count = 0;
	int r = tx_secrets(reader, a, str_of(w->kind), str_of(w->id), SLICE, &docs, &count);
	tx_rest(reader);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = doc_look(a, w, &docs[i], s, &p);
	if (r == 0 && s)
		r = piece_write(s, &p);
	if (r == 0 && count) {
		const struct doc *last = &docs[count - 1];
		if (last->kind.n >= sizeof w->kind || last->id.n >= sizeof w->id)
			r = -ENAMETOOLONG;
		snprintf(w->kind, sizeof w->kind, "%.*s", STR_ARG(last->kind));
		snprintf(w->id, sizeof w->id, "%.*s", STR_ARG(last->id));
	}
	arena_free(a);
	return r < 0 ? r : count == SLICE;
}

static int settle_run(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	int r = tx_meta_put(tx, META_LASTING, seal_lasting_keep(a));
	if (r == 0)
		r = tx_events_sign(tx);
	arena_free(a);
	return r;
}

int rotation_settle(struct store *s)
{
	return store_write_wait(s, settle_run, NULL);
}

/* "FIRST LAST HASH HASH SIGNATURE": see chain.c. */
static bool chain_is_newest(struct str text)
{
	size_t n = text.n;
	while (n && text.p[n - 1] != ' ')
		n--;
	struct str mac = {text.p + n, text.n - n}, ends = {text.p, n ? n - 1 : 0};
	return seal_mac_is_hex_by(0, "events", ends, mac);
}

static int settled_look(struct tx *reader, struct arena *a, bool *ret_settled)
{
	struct str chain, sealed;
	unsigned key = 0;
	bool settled = true;
	int r = tx_meta_get(reader, a, META_CHAIN, &chain);
	if (r == 0)
		settled = chain_is_newest(chain);
	if (r == 0 || r == -ENOENT)
		r = tx_meta_get(reader, a, META_LASTING, &sealed);
	if (r == 0)
		settled = seal_lasting_take(a, sealed, &key) == 0 && key == 0 && settled;
	/* A key that is the installation's first needs none. */
	else if (r == -ENOENT)
		settled = settled && seal_key_count() == 1;
	*ret_settled = settled;
	return r == -ENOENT ? 0 : r;
}

int rotation_state(struct tx *reader, struct rotation_state *ret_state)
{
	struct arena *a = arena_new();
	struct rotation_state state = {.begun = false};
	struct str name, since;
	uint64_t ms;
	char newest[65];
	seal_key_name(0, newest);
	int r = tx_meta_get(reader, a, META_KEY, &name);
	if (r == 0) {
		state.begun = str_is(name, newest);
		r = tx_meta_get(reader, a, META_SINCE, &since);
		if (r == 0 && str_to_u64(since, INT64_MAX, &ms))
			state.since_ms = (int64_t)ms;
		r = r == -ENOENT ? 0 : r;
	}
	if (r == 0)
		r = settled_look(reader, a, &state.settled);
	tx_rest(reader);
	if (r == 0)
		*ret_state = state;
	arena_free(a);
	return r;
}

static struct str backups_meta(struct arena *a, struct str host)
{
	return arena_printf(a, "secret_key_backups/%.*s", STR_ARG(host));
}

static int backups_run(struct tx *tx, void *ctx)
{
	char name[65];
	seal_key_name(0, name);
	return tx_meta_put(tx, ctx, str_of(name));
}

int rotation_backups_mark(struct store *s, struct str host)
{
	struct arena *a = arena_new();
	int r = store_write_wait(s, backups_run, arena_z(a, backups_meta(a, host)));
	arena_free(a);
	return r;
}

int rotation_backups_marked(struct tx *reader, struct str host, bool *ret_marked)
{
	struct arena *a = arena_new();
	struct str kept;
	char name[65];
	int r = tx_meta_get(reader, a, arena_z(a, backups_meta(a, host)), &kept);
	seal_key_name(0, name);
	*ret_marked = r == 0 && str_is(kept, name);
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

struct noting {
	struct str key, value;
	struct arena *arena;
};

static int note_run(struct tx *tx, void *ctx)
{
	const struct noting *n = ctx;
	return tx_meta_put(tx, arena_z(n->arena, n->key), n->value);
}

static struct str places_meta(struct arena *a, struct str host)
{
	return arena_printf(a, "backups_places/%.*s", STR_ARG(host));
}

int rotation_places_note(struct store *s, struct str host, const char *places)
{
	struct arena *a = arena_new();
	struct noting n = {places_meta(a, host), str_of(places), a};
	int r = store_write_wait(s, note_run, &n);
	arena_free(a);
	return r;
}

int rotation_places_are(struct tx *reader, struct str host, const char *places, bool *ret_are)
{
	struct arena *a = arena_new();
	struct str kept;
	int r = tx_meta_get(reader, a, arena_z(a, places_meta(a, host)), &kept);
	*ret_are = r == 0 && str_is(kept, places);
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}
