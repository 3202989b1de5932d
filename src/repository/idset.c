/* A set of chunk ids with a number beside each, as open addressing: which chunks are needed, or damaged. */
#include "repository/idset.h"

#include "base/arena.h"
#include "repository/format.h"

#include <stdlib.h>

#define FIRST_ROOM 4096

static struct id_item *item_of(const struct id_set *s, const unsigned char id[CHUNK_ID])
{
	size_t i = get_u64(id) & (s->room - 1);
	while (s->items[i].used && memcmp(s->items[i].id, id, CHUNK_ID) != 0)
		i = (i + 1) & (s->room - 1);
	return &s->items[i];
}

static void id_set_grow(struct id_set *s)
{
	struct id_item *old = s->items;
	size_t room = s->room;
	s->room = room ? room * 2 : FIRST_ROOM;
	s->items = must_calloc(s->room, sizeof(*s->items));
	for (size_t i = 0; i < room; i++)
		if (old[i].used)
			*item_of(s, old[i].id) = old[i];
	free(old);
}

struct id_item *id_set_add(struct id_set *s, const unsigned char id[CHUNK_ID])
{
	if (s->count * 3 >= s->room * 2)
		id_set_grow(s);
	struct id_item *item = item_of(s, id);
	if (!item->used) {
		*item = (struct id_item){.used = true, .number = ID_NUMBER_NONE};
		memcpy(item->id, id, CHUNK_ID);
		s->count++;
	}
	return item;
}

struct id_item *id_set_find(const struct id_set *s, const unsigned char id[CHUNK_ID])
{
	struct id_item *item = s->room ? item_of(s, id) : NULL;
	return item && item->used ? item : NULL;
}

void id_set_free(struct id_set *s)
{
	free(s->items);
	*s = (struct id_set){0};
}
