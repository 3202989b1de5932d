/* A hash table of sets: a text lies in one of the few places of its name's set, which are beside each other. */
#include "base/kept.h"

#include "base/arena.h"
#include "base/fair.h"

#include <stdlib.h>

#define SETS ((size_t)256)
#define WAYS 8 /* of which one goes when something has to */
#define PLACES (SETS * WAYS)
#define OWNERS 256 /* that are told apart; two that share a number only share their share */
#define PART 8     /* of the room that one text may take */

struct entry {
	uint64_t hash; /* of the name */
	uint64_t number;
	unsigned owner;
	size_t name_n, source_n, text_n;
	char bytes[]; /* name, source, text */
};

struct kept {
	size_t bytes_max, bytes;
	size_t held[OWNERS]; /* bytes by owner */
	uint64_t count;      /* of all that was ever put */
	size_t hand;         /* the place from which room is made next */
	struct entry *places[PLACES];
};

struct kept *kept_new(size_t bytes_max)
{
	struct kept *k = must_calloc(1, sizeof *k);
	k->bytes_max = bytes_max;
	return k;
}

void kept_free(struct kept *k)
{
	for (size_t i = 0; k && i < PLACES; i++)
		free(k->places[i]);
	free(k);
}

static size_t entry_size(const struct entry *e)
{
	return sizeof *e + e->name_n + e->source_n + e->text_n;
}

static void entry_drop(struct kept *k, size_t place)
{
	struct entry *e = k->places[place];
	k->bytes -= entry_size(e);
	k->held[e->owner] -= entry_size(e);
	free(e);
	k->places[place] = NULL;
}

static size_t set_of(uint64_t hash)
{
	return hash % SETS * WAYS;
}

static struct entry *entry_find(const struct kept *k, uint64_t hash, struct str name, size_t *ret_place)
{
	size_t set = set_of(hash);
	for (size_t i = set; i < set + WAYS; i++) {
		struct entry *e = k->places[i];
		if (e && e->hash == hash && str_eq((struct str){e->bytes, e->name_n}, name)) {
			*ret_place = i;
			return e;
		}
	}
	return NULL;
}

bool kept_get(const struct kept *k, struct str name, struct str source, struct str *ret_text)
{
	size_t place;
	const struct entry *e = entry_find(k, fair_key(name), name, &place);
	if (!e || !str_eq((struct str){e->bytes + e->name_n, e->source_n}, source))
		return false;
	*ret_text = (struct str){e->bytes + e->name_n + e->source_n, e->text_n};
	return true;
}

static bool goes_before(const struct kept *k, const struct entry *a, const struct entry *b)
{
	size_t held = k->held[a->owner], other = k->held[b->owner];
	return held > other || (held == other && a->number < b->number);
}

/* Drops one of the next few texts from that place on: of the owner who has the most, the oldest. Returns its place;
 * *ret_next is where the look ended. */
static size_t entry_drop_one(struct kept *k, size_t from, size_t *ret_next)
{
	size_t chosen = PLACES, at = from;
	for (size_t seen = 0, left = PLACES; seen < WAYS && left; left--, at = (at + 1) % PLACES) {
		if (!k->places[at])
			continue;
		seen++;
		if (chosen == PLACES || goes_before(k, k->places[at], k->places[chosen]))
			chosen = at;
	}
	if (chosen < PLACES)
		entry_drop(k, chosen);
	*ret_next = at;
	return chosen;
}

/* A free place of the set. In a full one the next few are all of its places. */
static size_t place_take(struct kept *k, size_t set)
{
	size_t next;
	for (size_t i = set; i < set + WAYS; i++)
		if (!k->places[i])
			return i;
	return entry_drop_one(k, set, &next);
}

static char *text_put(char *to, struct str s)
{
	if (s.n)
		memcpy(to, s.p, s.n);
	return to + s.n;
}

void kept_put(struct kept *k, uint64_t owner, struct str name, struct str source, struct str text)
{
	uint64_t hash = fair_key(name);
	size_t place, size = sizeof(struct entry) + name.n + source.n + text.n;
	if (size > k->bytes_max / PART)
		return;
	if (entry_find(k, hash, name, &place))
		entry_drop(k, place);
	while (k->bytes + size > k->bytes_max)
		(void)entry_drop_one(k, k->hand, &k->hand);
	place = place_take(k, set_of(hash));
	struct entry *e = k->places[place] = must_malloc(size);
	*e = (struct entry){hash, k->count++, (unsigned)(owner % OWNERS), name.n, source.n, text.n};
	text_put(text_put(text_put(e->bytes, name), source), text);
	k->bytes += size;
	k->held[e->owner] += size;
}

size_t kept_bytes(const struct kept *k)
{
	return k->bytes;
}
