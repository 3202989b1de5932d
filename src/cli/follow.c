/* Following. What was seen is kept as hashes with their times, for as long as a later question could bring it again. */
#include "cli/follow.h"

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/moment.h"

#include <errno.h>
#include <stdlib.h>

#define OVERLAP_MS 5000
#define PAUSE_MS 2000
#define PAUSE_MOST_S 60u
#define ROOM_FIRST 1024

struct follow_entry {
	uint64_t hash;
	int64_t at_ms;
};

int follow_since(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	return moment_parse("since", text, now_ms, ret_ms);
}

/* FNV-1a. Nothing that must be secret or cannot be repeated hangs on it. */
static uint64_t hash_of(struct str text)
{
	uint64_t h = UINT64_C(14695981039346656037);
	for (size_t i = 0; i < text.n; i++)
		h = (h ^ (unsigned char)text.p[i]) * UINT64_C(1099511628211);
	return h;
}

static int by_hash(const void *a, const void *b)
{
	uint64_t x = ((const struct follow_entry *)a)->hash, y = ((const struct follow_entry *)b)->hash;
	return (x > y) - (x < y);
}

void follow_free(struct follow_seen *s)
{
	free(s->list);
	*s = (struct follow_seen){.list = NULL};
}

/* From when the next question asks: a whole second, because questions name no less. */
static int64_t next_ms(const struct follow_seen *s)
{
	return s->newest_ms / 1000 * 1000 - OVERLAP_MS;
}

/* Keeps the order of the rest. */
static void old_drop(struct follow_seen *s)
{
	size_t kept = 0, sorted = 0;
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].at_ms >= next_ms(s)) {
			sorted += i < s->sorted;
			s->list[kept++] = s->list[i];
		}
	s->count = kept;
	s->sorted = sorted;
}

bool follow_is_new(struct follow_seen *s, struct str text, int64_t at_ms)
{
	struct follow_entry e = {hash_of(text), at_ms};
	/* Within one answer nothing comes twice, so only the turns before are looked through. */
	if (s->sorted && bsearch(&e, s->list, s->sorted, sizeof e, by_hash))
		return false;
	if (s->count == s->room) {
		old_drop(s);
		if (s->count >= s->room / 2)
			s->room = s->room ? 2 * s->room : ROOM_FIRST;
		s->list = must_realloc(s->list, s->room * sizeof *s->list);
	}
	s->list[s->count++] = e;
	if (at_ms > s->newest_ms)
		s->newest_ms = at_ms;
	return true;
}

int64_t follow_turn(struct follow_seen *s)
{
	old_drop(s);
	if (s->count)
		qsort(s->list, s->count, sizeof *s->list, by_hash);
	s->sorted = s->count;
	return next_ms(s);
}

int follow_step(struct follow *f, struct client *c, int result, const struct client_answer *answer)
{
	f->pause_ms = PAUSE_MS;
	if (result == -EHOSTUNREACH && f->unreached++ < FOLLOW_PATIENCE)
		return FOLLOW_ON;
	if (result < 0)
		return client_exit(result);
	f->unreached = 0;
	if (answer->retry_after)
		f->pause_ms = (answer->retry_after < PAUSE_MOST_S ? answer->retry_after : PAUSE_MOST_S) * 1000;
	if (answer->status < 300 || answer->status == 429 || answer->status == 503)
		return FOLLOW_ON;
	client_explain(c, answer);
	return EXIT_NOT_DONE;
}

void follow_wait(const struct follow *f)
{
	struct timespec t = {.tv_sec = f->pause_ms / 1000, .tv_nsec = f->pause_ms % 1000 * 1000000L};
	nanosleep(&t, NULL);
}
