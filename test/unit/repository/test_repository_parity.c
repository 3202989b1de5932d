/* The second copy of packs: whatever befalls any one of them, the snapshots above it come back as they were, and a
 * repair leaves the very bytes that were there; through sweeps too, wherever these are ended. */
#include "base/log.h"
#include "fixture.h"
#include "repository/check.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/manifest.h"
#include "repository/pack.h"
#include "repository/parity.h"
#include "repository/parity_settle.h"
#include "repository/places.h"
#include "repository/restore.h"
#include "repository/sweep.h"
#include "repository/why.h"
#include "repository/write.h"

#include <dirent.h>
#include <errno.h>

#define SHARED 90000
#define OWN 40000
#define SNAPSHOTS 9
#define MOST 4
#define OBJECTS_MAX 64

static char store[128];

struct object {
	char path[300];
	unsigned char *bytes;
	size_t n;
};
struct objects_seen {
	struct object all[OBJECTS_MAX];
	size_t count;
};

static void bytes_write(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static int object_compare(const void *a, const void *b)
{
	return strcmp(((const struct object *)a)->path, ((const struct object *)b)->path);
}

/* All objects of a folder, as they are, in the order of their ids. */
static void objects_read_all(const char *folder, struct objects_seen *ret)
{
	char dir[200];
	snprintf(dir, sizeof dir, "%s/%s", store, folder);
	DIR *d = opendir(dir);
	ret->count = 0;
	for (const struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.' || ret->count == OBJECTS_MAX)
			continue;
		struct object *o = &ret->all[ret->count++];
		snprintf(o->path, sizeof o->path, "%s/%.64s", dir, e->d_name);
		o->bytes = file_bytes(o->path, &o->n);
	}
	if (d)
		closedir(d);
	qsort(ret->all, ret->count, sizeof *ret->all, object_compare);
}

static void objects_free(struct objects_seen *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->all[i].bytes);
	o->count = 0;
}

static size_t objects_count(const char *folder)
{
	struct objects_seen seen;
	objects_read_all(folder, &seen);
	size_t count = seen.count;
	objects_free(&seen);
	return count;
}

/* A file that all have, and one of its own. */
static void snapshot_make(struct repository *r, unsigned number)
{
	struct repo_writer *w = NULL;
	char name[16];
	unsigned char *shared = bytes_make(SHARED, 1), *own = bytes_make(OWN, 100 + number);
	snprintf(name, sizeof name, "s%u", number);
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(write_one(w, "shared", shared, SHARED) == 0 && write_one(w, "own", own, OWN) == 0);
	CHECK(repo_write_commit(w, "c1", name, "set0", NULL, NULL) == 0);
	free(shared);
	free(own);
}

/* 1: it came back as it was; 0: it was refused; -1: it is another. */
static int snapshot_restore(struct repository *r, unsigned number)
{
	struct repo_manifest *m = NULL;
	char name[16];
	const char *to = below("back");
	snprintf(name, sizeof name, "s%u", number);
	int result = repo_manifest_open(r, "c1", name, "set0", &m);
	if (result < 0)
		return 0;
	unsigned char *shared = bytes_make(SHARED, 1), *own = bytes_make(OWN, 100 + number);
	mkdir(to, 0700);
	result = repo_restore(m, to, getuid(), getgid(), 2, NULL);
	bool same = file_is(below("back/shared"), shared, SHARED) && file_is(below("back/own"), own, OWN);
	tree_remove(to);
	free(shared);
	free(own);
	repo_manifest_close(m);
	return result < 0 ? 0 : same ? 1 : -1;
}

struct words {
	char all[8192];
	size_t n;
};

static void words_add(void *ctx, const char *words)
{
	struct words *w = ctx;
	int made = snprintf(w->all + w->n, sizeof w->all - w->n, "%s\n", words);
	if (made > 0 && (size_t)made < sizeof w->all - w->n)
		w->n += (size_t)made;
}

enum damage { FLIPPED_FIRST, FLIPPED_CHUNK, FLIPPED_LAST, CUT, EMPTY, LONGER, GONE, GONE_WITH_INDEX, DAMAGES };

static void index_path(const struct object *pack, char ret_path[320])
{
	snprintf(ret_path, 320, "%s/index/%s", store, strrchr(pack->path, '/') + 1);
}

static void damage(const struct object *o, enum damage kind)
{
	char index[320];
	unsigned char *bytes = must_malloc(o->n + 1);
	const size_t at[] = {[FLIPPED_FIRST] = 0, [FLIPPED_CHUNK] = 40, [FLIPPED_LAST] = o->n - 1};
	memcpy(bytes, o->bytes, o->n);
	bytes[o->n] = 'x';
	if (kind <= FLIPPED_LAST) {
		bytes[at[kind]] ^= 1;
		bytes_write(o->path, bytes, o->n);
	} else if (kind == GONE || kind == GONE_WITH_INDEX) {
		CHECK(unlink(o->path) == 0);
		index_path(o, index);
		CHECK(kind == GONE || unlink(index) == 0);
	} else {
		bytes_write(o->path, bytes, kind == CUT ? o->n / 2 : kind == EMPTY ? 0 : o->n + 1);
	}
	free(bytes);
}

/* As another process has it. */
static struct repository *reopen(struct repositories **all)
{
	repositories_close(*all);
	*all = places_open(7);
	return get(*all, "US_EAST_1");
}

/* Any one pack, in any way: a check names it, a repair makes it whole. */
static void one_repaired(struct repositories **all, const struct object *o, enum damage kind)
{
	struct repo_check seen;
	struct words words = {.n = 0};
	struct repository *r = reopen(all);
	damage(o, kind);
	CHECK(repo_check(r, 1, words_add, &words, &seen) == 0 && seen.faults > 0 && seen.mended == 0);
	CHECK(strstr(words.all, strrchr(o->path, '/') + 1));
	repository_put(r);
	r = reopen(all);
	CHECK(repo_repair(r, words_add, &words, &seen) == 0 && seen.faults > 0 && seen.mended == seen.faults);
	if (seen.mended != seen.faults)
		fprintf(stderr, "%d: %s\n", (int)kind, words.all);
	CHECK(strstr(words.all, "whole again"));
	CHECK(file_is(o->path, o->bytes, o->n));
	CHECK(is_clean(r));
	repository_put(r);
	r = reopen(all);
	CHECK(is_clean(r));
	repository_put(r);
}

/* A restore meets it: what comes back is right, and the pack is whole afterwards. What no chunk is read of is not
 * met. */
static void one_restored(struct repositories **all, const struct object *o, enum damage kind, const unsigned *kept,
                         size_t count)
{
	struct repository *r = reopen(all);
	damage(o, kind);
	for (size_t i = 0; i < count; i++) {
		int came = snapshot_restore(r, kept[i]);
		if (came != 1)
			fprintf(stderr, "damage %d of %s: s%u: %d %s\n", (int)kind, o->path, kept[i], came,
			        repository_why());
		CHECK(came == 1);
	}
	CHECK(kind == FLIPPED_FIRST || kind == FLIPPED_LAST || kind == LONGER || kind == CUT ||
	      file_is(o->path, o->bytes, o->n));
	bytes_write(o->path, o->bytes, o->n);
	CHECK(is_clean(r));
	repository_put(r);
}

static void all_mendable(struct repositories **all, const unsigned *kept, size_t count)
{
	struct objects_seen packs;
	objects_read_all("packs", &packs);
	for (size_t i = 0; i < packs.count; i++)
		for (enum damage kind = 0; kind < DAMAGES; kind++) {
			one_repaired(all, &packs.all[i], kind);
			one_restored(all, &packs.all[i], kind, kept, count);
		}
	objects_free(&packs);
}

static void sweep(struct repository *r, const unsigned *kept, size_t count)
{
	static char names[SNAPSHOTS][16];
	const char *list[SNAPSHOTS];
	struct repo_swept swept;
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "c1/s%u", kept[i]);
		list[i] = names[i];
	}
	struct repo_keep keep = {.snapshots = list, .snapshot_count = count};
	CHECK(repo_sweep(r, &keep, &swept) == 0);
}

static const unsigned every[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, some[] = {0, 2, 3, 7}, one[] = {7};

static void test_packs(struct repositories **all)
{
	struct repository *r = reopen(all);
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		snapshot_make(r, i);
	CHECK(objects_count("parity") == SNAPSHOTS && objects_count("packs") == SNAPSHOTS);
	sweep(r, every, SNAPSHOTS);
	/* Small groups have become one, and cost less. */
	CHECK(objects_count("parity") == (SNAPSHOTS + MOST - 1) / MOST && objects_count("packs") == SNAPSHOTS);
	CHECK(is_clean(r));
	repository_put(r);
	all_mendable(all, every, SNAPSHOTS);
	r = reopen(all);
	sweep(r, some, 4);
	CHECK(objects_count("packs") == 4 && objects_count("parity") == 1 && is_clean(r));
	repository_put(r);
	all_mendable(all, some, 4);
}

/* Two packs of a group: the damage is told, and nothing is put in their place. */
static void test_two(struct repositories **all)
{
	struct objects_seen packs;
	struct repo_check seen;
	struct words words = {.n = 0};
	objects_read_all("packs", &packs);
	struct repository *r = reopen(all);
	for (size_t i = 0; i < 2; i++)
		damage(&packs.all[i], FLIPPED_CHUNK);
	CHECK(repo_repair(r, words_add, &words, &seen) == 0 && seen.faults >= 2 && seen.mended == 0);
	for (size_t i = 0; i < 4; i++)
		CHECK(snapshot_restore(r, some[i]) >= 0);
	for (size_t i = 0; i < 2; i++)
		CHECK(!file_is(packs.all[i].path, packs.all[i].bytes, packs.all[i].n));
	/* One of them comes back, from wherever: the other follows. */
	bytes_write(packs.all[0].path, packs.all[0].bytes, packs.all[0].n);
	repository_put(r);
	r = reopen(all);
	CHECK(repo_repair(r, words_add, &words, &seen) == 0 && seen.mended == seen.faults && is_clean(r));
	CHECK(file_is(packs.all[1].path, packs.all[1].bytes, packs.all[1].n));
	repository_put(r);
	objects_free(&packs);
}

/* A parity that is damaged is told, and made anew; one that is gone comes back with a sweep. */
static void test_parity(struct repositories **all)
{
	struct objects_seen there;
	struct repo_check seen;
	objects_read_all("parity", &there);
	CHECK(there.count == 1);
	for (size_t at = 0; at < there.all[0].n; at += at < 400 ? 1 : there.all[0].n / 7) {
		unsigned char *bytes = must_malloc(there.all[0].n);
		struct words words = {.n = 0};
		memcpy(bytes, there.all[0].bytes, there.all[0].n);
		bytes[at] ^= 4;
		bytes_write(there.all[0].path, bytes, there.all[0].n);
		struct repository *r = reopen(all);
		CHECK(repo_check(r, 1, words_add, &words, &seen) == 0 && seen.faults == 1);
		CHECK(strstr(words.all, strrchr(there.all[0].path, '/') + 1));
		CHECK(snapshot_restore(r, 7) == 1);
		repository_put(r);
		free(bytes);
	}
	struct repository *r = reopen(all);
	struct words words = {.n = 0};
	CHECK(repo_repair(r, words_add, &words, &seen) == 0 && seen.faults == 1 && seen.mended == 1 && is_clean(r));
	repository_put(r);
	objects_free(&there);
	objects_read_all("parity", &there);
	CHECK(there.count == 1 && unlink(there.all[0].path) == 0);
	r = reopen(all);
	CHECK(is_clean(r) && snapshot_restore(r, 7) == 1);
	sweep(r, some, 4);
	CHECK(objects_count("parity") == 1);
	repository_put(r);
	objects_free(&there);
	all_mendable(all, some, 4);
}

/* --- a sweep that is ended anywhere */

static unsigned steps_left;

static int step_limited(void *ctx)
{
	(void)ctx;
	return steps_left-- ? 0 : -EBUSY;
}

/* The first packs go; the group that they are in is never without what makes the others again. */
static int settle_by(struct repository *r, size_t going, int (*step)(void *ctx), void *ctx)
{
	struct objects_seen seen;
	struct parity_pack packs[OBJECTS_MAX] = {{.there = false}};
	uint64_t stored = 0;
	objects_read_all("packs", &seen);
	for (size_t i = 0; i < seen.count; i++) {
		CHECK(pack_name_parse(strrchr(seen.all[i].path, '/') + 1, packs[i].id));
		packs[i].there = true;
		packs[i].going = i < going;
		packs[i].needed = !packs[i].going;
	}
	int result = parity_settle(r, packs, seen.count, MOST, step, ctx, &stored);
	objects_free(&seen);
	return result;
}

static int settle_some(struct repository *r, size_t going)
{
	return settle_by(r, going, step_limited, NULL);
}

/* All but the first, which go. */
static bool have_a_copy(struct repository *r, size_t going)
{
	struct objects_seen seen;
	bool all = true;
	objects_read_all("packs", &seen);
	for (size_t i = going; i < seen.count; i++) {
		unsigned char id[PACK_ID];
		char *bytes = NULL;
		size_t n = 0;
		CHECK(pack_name_parse(strrchr(seen.all[i].path, '/') + 1, id));
		CHECK(unlink(seen.all[i].path) == 0);
		bool same = pack_rebuild(r, id, &bytes, &n) == 0 && n == seen.all[i].n &&
		            memcmp(bytes, seen.all[i].bytes, n) == 0;
		all = all && same;
		free(bytes);
		bytes_write(seen.all[i].path, seen.all[i].bytes, seen.all[i].n);
	}
	objects_free(&seen);
	return all;
}

static bool all_have_a_copy(struct repository *r)
{
	return have_a_copy(r, 0);
}

static void test_ended(struct repositories **all)
{
	struct repository *r = reopen(all);
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		if (i != 0 && i != 2 && i != 3 && i != 7)
			snapshot_make(r, i);
	for (steps_left = 0; settle_some(r, 0) == -EBUSY;) {
		static unsigned given;
		CHECK(all_have_a_copy(r));
		steps_left = ++given;
	}
	CHECK(all_have_a_copy(r) && objects_count("packs") == SNAPSHOTS);
	/* Those that go have none in the end; until then each has what makes it again, but for those that have
	 * left theirs. */
	int result = -EBUSY;
	for (unsigned given = 0; result == -EBUSY && given < 100; given++) {
		steps_left = given;
		result = settle_some(r, 3);
		CHECK(result == 0 || result == -EBUSY);
	}
	CHECK(result == 0 && is_clean(r));
	sweep(r, some, 4);
	sweep(r, some, 4);
	CHECK(is_clean(r) && all_have_a_copy(r) && objects_count("packs") == 4);
	/* A pack that goes cannot be read: the others are read in its place. */
	struct objects_seen packs;
	objects_read_all("packs", &packs);
	damage(&packs.all[0], FLIPPED_CHUNK);
	steps_left = 1000;
	CHECK(settle_some(r, 1) == 0 && objects_count("parity") == 1);
	CHECK(unlink(packs.all[0].path) == 0 && all_have_a_copy(r));
	bytes_write(packs.all[0].path, packs.all[0].bytes, packs.all[0].n);
	objects_free(&packs);
	sweep(r, one, 1);
	CHECK(is_clean(r) && all_have_a_copy(r) && snapshot_restore(r, 7) == 1);
	repository_put(r);
}

/* A repository of an earlier version has none until its first sweep; and who wants none any more loses it. */
static void test_added_and_taken_away(struct repositories **all)
{
	packs_for_parity = 0;
	struct repository *r = reopen(all);
	sweep(r, one, 1);
	CHECK(objects_count("parity") == 0);
	for (unsigned i = 0; i < 7; i++)
		snapshot_make(r, i);
	CHECK(objects_count("parity") == 0);
	repository_put(r);
	packs_for_parity = MOST;
	r = reopen(all);
	/* One that is damaged already gets none, and is told as before. */
	sweep(r, every, SNAPSHOTS);
	CHECK(objects_count("parity") == 2 && is_clean(r) && all_have_a_copy(r));
	/* Nothing more to do: what is there stays. */
	struct objects_seen before, after;
	objects_read_all("parity", &before);
	sweep(r, every, SNAPSHOTS);
	objects_read_all("parity", &after);
	for (size_t i = 0; i < before.count; i++)
		CHECK(file_is(before.all[i].path, before.all[i].bytes, before.all[i].n));
	CHECK(before.count == after.count);
	objects_free(&before);
	objects_free(&after);
	repository_put(r);
}

/* --- parities that name the same packs */

static void parities_remove(struct repository *r)
{
	struct objects_seen there;
	objects_read_all("parity", &there);
	for (size_t i = 0; i < there.count; i++)
		CHECK(unlink(there.all[i].path) == 0);
	objects_free(&there);
	CHECK(parities_refresh(r) == 0);
}

/* A parity of the packs that the digits tell; it is known from now on, after those before it. */
static void parity_make(struct repository *r, const struct objects_seen *packs, const char *members)
{
	struct parity_builder b;
	uint64_t stored = 0;
	parity_setup(&b, PARITY_MOST);
	for (; *members; members++) {
		const struct object *o = &packs->all[*members - '0'];
		unsigned char id[PACK_ID];
		CHECK(pack_name_parse(strrchr(o->path, '/') + 1, id));
		CHECK(parity_add(r, &b, id, o->bytes, o->n, &stored) == 0);
	}
	CHECK(parity_flush(r, &b, &stored) == 0);
	parity_free(&b);
	CHECK(parities_refresh(r) == 0);
}

/* What an ended sweep leaves: some packs are in several parities. Afterwards as many parities are there. */
static void test_overlapping(struct repositories **all)
{
	static const struct {
		const char *parities[4];
		size_t going, left;
	} cases[] = {
	        {{"3", "23"}, 0, 2},           /* the second has taken the first's place, which was not deleted */
	        {{"23", "3"}, 0, 2},           /* in the other order */
	        {{"3", "2", "23", "4"}, 0, 2}, /* neither was deleted */
	        {{"23", "34"}, 0, 3},          /* each has a pack that the other has not: both stay */
	        {{"023", "134"}, 2, 3},        /* and of each a pack goes */
	        {{"0235", "3"}, 2, 2},
	};
	struct repository *r = reopen(all);
	struct objects_seen packs;
	objects_read_all("packs", &packs);
	CHECK(packs.count == 8);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		parities_remove(r);
		for (size_t j = 0; j < 4 && cases[i].parities[j]; j++)
			parity_make(r, &packs, cases[i].parities[j]);
		steps_left = 1000;
		CHECK(settle_some(r, cases[i].going) == 0);
		bool copies = have_a_copy(r, cases[i].going);
		size_t left = objects_count("parity");
		if (!copies || left != cases[i].left)
			fprintf(stderr, "overlap %zu: %d, %zu parities\n", i, copies, left);
		CHECK(copies && left == cases[i].left);
	}
	objects_free(&packs);
	repository_put(r);
}

/* A parity that names a pack twice does not make it again: those that it names get another. */
static void test_doubled(struct repositories **all)
{
	struct repository *r = reopen(all);
	struct objects_seen packs;
	objects_read_all("packs", &packs);
	parities_remove(r);
	parity_make(r, &packs, "323");
	steps_left = 1000;
	CHECK(settle_some(r, 0) == 0 && all_have_a_copy(r) && objects_count("parity") == 2);
	/* What it names once is damaged, and it alone makes that again: it goes once that is whole. */
	parities_remove(r);
	parity_make(r, &packs, "323");
	damage(&packs.all[2], FLIPPED_CHUNK);
	CHECK(settle_some(r, 0) == 0);
	char *bytes = NULL;
	size_t n = 0;
	unsigned char id[PACK_ID];
	CHECK(pack_name_parse(strrchr(packs.all[2].path, '/') + 1, id) && pack_mend(r, id, &bytes, &n) == 0);
	free(bytes);
	CHECK(file_is(packs.all[2].path, packs.all[2].bytes, packs.all[2].n));
	bytes_write(packs.all[2].path, packs.all[2].bytes, packs.all[2].n);
	CHECK(settle_some(r, 0) == 0 && all_have_a_copy(r) && objects_count("parity") == 3);
	objects_free(&packs);
	repository_put(r);
}

/* As a restore does that makes a pack again meanwhile. */
static int step_refreshing(void *ctx)
{
	return parities_refresh(ctx);
}

/* Parities that tell nothing go, while another looks which there are. */
static void test_damaged_meanwhile(struct repositories **all)
{
	struct repository *r = reopen(all);
	parities_remove(r);
	for (unsigned i = 0; i < 5; i++) {
		char path[200];
		snprintf(path, sizeof path, "%s/parity/%032x", store, i);
		bytes_write(path, "nothing", 7);
	}
	CHECK(settle_by(r, 0, step_refreshing, r) == 0);
	CHECK(objects_count("parity") == 2 && all_have_a_copy(r));
	repository_put(r);
}

/* Several packs of full length in one snapshot, by several threads: they cost an eighth. */
static void test_cost(void)
{
	packs_for_parity = 8;
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "COST");
	struct repo_writer *w = NULL;
	struct repo_amount amount;
	size_t n = (size_t)1 << 20;
	unsigned char *bytes = must_malloc(n);
	CHECK(repo_write_begin(r, &w) == 0);
	for (unsigned i = 0; i < 160; i++) {
		char path[32];
		for (size_t at = 0; at < n; at += OWN)
			fill(bytes + at, n - at < OWN ? n - at : OWN, 1000 + i * 100 + at / OWN);
		snprintf(path, sizeof path, "f%u", i);
		CHECK(write_one(w, path, bytes, n) == 0);
	}
	CHECK(repo_write_commit(w, "c1", "cost", "set0", NULL, &amount) == 0);
	snprintf(store, sizeof store, "%s/store/COST/" GROUP, root);
	struct objects_seen packs, parity;
	uint64_t stored = 0, extra = 0;
	objects_read_all("packs", &packs);
	objects_read_all("parity", &parity);
	for (size_t i = 0; i < packs.count; i++)
		stored += packs.all[i].n;
	for (size_t i = 0; i < parity.count; i++)
		extra += parity.all[i].n;
	CHECK(packs.count >= 5 && parity.count == 1 && extra * 4 < stored && amount.stored > stored + extra);
	CHECK(all_have_a_copy(r));
	objects_free(&packs);
	objects_free(&parity);
	free(bytes);
	repository_put(r);
	repositories_close(all);
}

static int stderr_hide(void)
{
	int said = dup(STDERR_FILENO), none = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (none >= 0 && !getenv("DEBUG"))
		dup2(none, STDERR_FILENO);
	close(none);
	return said;
}

int main(void)
{
	json_setup();
	log_setup(LOG_ERROR, false);
	int said = stderr_hide();
	root_make();
	snprintf(store, sizeof store, "%s/store/US_EAST_1/" GROUP, root);
	packs_for_parity = MOST;
	struct repositories *all = places_open(7);
	test_packs(&all);
	test_two(&all);
	test_parity(&all);
	test_ended(&all);
	test_added_and_taken_away(&all);
	test_overlapping(&all);
	test_doubled(&all);
	test_damaged_meanwhile(&all);
	repositories_close(all);
	test_cost();
	tree_remove(root);
	dup2(said, STDERR_FILENO);
	close(said);
	return CHECK_DONE();
}
