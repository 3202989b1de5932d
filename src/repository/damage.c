/* Notes of chunks that did not open, in the repository itself, so that other processes and later ones know of them:
 *
 *   damaged/PACK   their numbers in its index, 4 bytes each, in order
 *
 * A writer stores such a chunk again. A reader still tries it when there is no other copy: it may be whole again, or
 * never have been the store's fault. The note goes with its pack, or when a check finds all of it whole. */
#include "repository/damage.h"

#include "base/arena.h"
#include "base/log.h"
#include "repository/format.h"
#include "repository/index.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/pack.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdlib.h>

#define NOTE_MAX ((size_t)PACK_CHUNKS * 4)

static void note_name(const unsigned char pack[PACK_ID], char ret_name[64])
{
	pack_name(pack, "damaged", ret_name);
}

static int number_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* On the heap; none: 0 of them. */
static int note_get(struct repository *r, const char *name, uint32_t **ret_numbers, size_t *ret_count)
{
	char *plain = NULL;
	size_t n = 0;
	int result = object_get(r, SEALED_DAMAGE, name, NOTE_MAX, &plain, &n);
	*ret_numbers = NULL;
	*ret_count = 0;
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	*ret_count = n / 4;
	*ret_numbers = must_calloc(n / 4 + 1, sizeof(uint32_t));
	for (size_t i = 0; i < n / 4; i++)
		(*ret_numbers)[i] = get_u32((const unsigned char *)plain + i * 4);
	free(plain);
	return 0;
}

/* Only a help: who found the damage has his own to tell, and his words stay. */
void damage_note(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count)
{
	char name[64], why[512];
	uint32_t *all;
	size_t old, made = 0;
	snprintf(why, sizeof why, "%s", repository_why());
	note_name(pack, name);
	int result = note_get(r, name, &all, &old);
	if (result == -EBADMSG || result == 0) {
		all = must_realloc(all, (old + count + 1) * sizeof *all);
		memcpy(all + old, numbers, count * sizeof *all);
		qsort(all, old + count, sizeof *all, number_compare);
		unsigned char *plain = must_malloc((old + count) * 4 + 1);
		for (size_t i = 0; i < old + count && made < PACK_CHUNKS; i++)
			if (!i || all[i] != all[i - 1])
				put_u32(plain + 4 * made++, all[i]);
		result = made == old ? 0 : object_put(r, SEALED_DAMAGE, name, plain, made * 4, NULL);
		free(plain);
	}
	if (result < 0)
		log_warn("backups: that %s has damage cannot be noted: %s", name, repository_why());
	free(all);
	(void)!repo_fail(0, "%s", why);
}

void damage_forget(struct repository *r, const unsigned char pack[PACK_ID])
{
	char name[64];
	note_name(pack, name);
	if (object_delete(r, name) < 0)
		log_warn("backups: %s", repository_why());
}

struct loading {
	struct repository *r;
	struct note {
		unsigned char pack[PACK_ID];
		uint64_t size;
		int64_t modified_ms;
	} * notes;
	size_t count, room;
};

static int note_listed(void *ctx, const struct object_info *info)
{
	struct loading *l = ctx;
	unsigned char id[PACK_ID];
	if (!pack_name_parse(info->name + strlen("damaged/"), id) ||
	    index_knows_note(l->r, id, info->size, info->modified_ms))
		return 0;
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 16;
		l->notes = must_realloc(l->notes, l->room * sizeof *l->notes);
	}
	struct note *n = &l->notes[l->count++];
	*n = (struct note){.size = info->size, .modified_ms = info->modified_ms};
	memcpy(n->pack, id, PACK_ID);
	return 0;
}

int damage_load(struct repository *r)
{
	struct loading l = {.r = r};
	int result = object_list(r, "damaged/", note_listed, &l);
	for (size_t i = 0; i < l.count && result == 0; i++) {
		char name[64];
		uint32_t *numbers;
		size_t count;
		const struct note *n = &l.notes[i];
		note_name(n->pack, name);
		result = note_get(r, name, &numbers, &count);
		if (result == 0) {
			index_doubt(r, n->pack, numbers, count);
			index_note(r, n->pack, n->size, n->modified_ms);
		} else if (result == -EBADMSG)
			log_error("backups: %s", repository_why());
		result = result == -EBADMSG || repo_key_is_lost(result) ? 0 : result;
		free(numbers);
	}
	free(l.notes);
	return result;
}
