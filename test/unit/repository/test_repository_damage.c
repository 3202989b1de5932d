/* A flipped byte anywhere, a cut or a swapped object: each is found, by its name, and nothing wrong is ever restored. */
#include "base/log.h"
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

#define FILES_MAX 64
#define SMALL 70000

struct object {
	char path[256];
	char name[256]; /* below the project */
	unsigned char *bytes;
	size_t n;
};

static struct object objects[FILES_MAX];
static size_t object_count;
static char store[128];

static int object_seen(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	if (kind != FTW_F || object_count == FILES_MAX)
		return 0;
	struct object *o = &objects[object_count++];
	snprintf(o->path, sizeof o->path, "%s", path);
	snprintf(o->name, sizeof o->name, "%s", path + strlen(store) + 1);
	o->bytes = file_bytes(path, &o->n);
	return 0;
}

static void bytes_write(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static void snapshot_make(struct repository *r, const char *name, uint64_t seed)
{
	struct repo_writer *w = NULL;
	unsigned char *bytes = bytes_make(SMALL, seed);
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(write_one(w, "file", bytes, SMALL) == 0);
	CHECK(repo_write_commit(w, "c1", name, "set0", NULL, NULL) == 0);
	free(bytes);
}

struct words {
	char all[4096];
	size_t n;
};

static void words_add(void *ctx, const char *words)
{
	struct words *w = ctx;
	int made = snprintf(w->all + w->n, sizeof w->all - w->n, "%s\n", words);
	if (made > 0 && (size_t)made < sizeof w->all - w->n)
		w->n += (size_t)made;
}

/* Whether the snapshot comes back, and as it was; or not at all. */
static bool snapshot_honest(struct repository *r, const char *name, uint64_t seed)
{
	struct repo_manifest *m = NULL;
	const char *to = below("honest");
	if (repo_manifest_open(r, "c1", name, "set0", &m) < 0)
		return true;
	unsigned char *bytes = bytes_make(SMALL, seed);
	mkdir(to, 0700);
	bool honest =
	        repo_restore(m, to, getuid(), getgid(), 1, NULL) < 0 || file_is(below("honest/file"), bytes, SMALL);
	free(bytes);
	repo_manifest_close(m);
	tree_remove(to);
	return honest;
}

/* As another process sees it: the damage is found, and told by the object's name. */
static bool is_found(const char *name, const char *other)
{
	struct repositories *all = places_open(7);
	struct repository *r = NULL;
	struct repo_check seen;
	struct words words = {.n = 0};
	int result = repository_get(all, "US_EAST_1", GROUP, &r);
	bool found = result == -EBADMSG && strstr(repository_why(), name);
	if (result == 0) {
		result = repo_check(r, 1, words_add, &words, &seen);
		found = result == 0 && seen.faults > 0 &&
		        (strstr(words.all, name) || (other && strstr(words.all, other)));
		CHECK(snapshot_honest(r, "s1", 1) && snapshot_honest(r, "s2", 2));
	}
	if (!found)
		fprintf(stderr, "%s: %d: %s\n", name, result, words.all);
	repository_put(r);
	repositories_close(all);
	return found;
}

/* An index is told of by its pack's name too. */
static const char *base_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

static void flip(const struct object *o, size_t at)
{
	unsigned char *bytes = must_malloc(o->n);
	memcpy(bytes, o->bytes, o->n);
	bytes[at] ^= (unsigned char)(1 << at % 8);
	bytes_write(o->path, bytes, o->n);
	bool found = is_found(base_name(o->name), NULL);
	if (!found)
		fprintf(stderr, "%s: byte %zu of %zu\n", o->name, at, o->n);
	CHECK(found);
	free(bytes);
}

/* All of the header's bytes, all at the end, and some between. */
static void test_flips(void)
{
	for (size_t i = 0; i < object_count; i++) {
		const struct object *o = &objects[i];
		for (size_t at = 0; at < o->n; at += at < 33 || at + 30 > o->n ? 1 : 1 + (o->n - 63) / 12)
			flip(o, at);
		bytes_write(o->path, o->bytes, o->n);
	}
}

static void test_cuts(void)
{
	for (size_t i = 0; i < object_count; i++) {
		const struct object *o = &objects[i];
		const size_t lengths[] = {0, 1, o->n / 2, o->n - 1};
		for (size_t j = 0; j < 4; j++) {
			bytes_write(o->path, o->bytes, lengths[j]);
			CHECK(is_found(base_name(o->name), NULL));
		}
		unsigned char *longer = must_malloc(o->n + 1);
		memcpy(longer, o->bytes, o->n);
		longer[o->n] = 0;
		bytes_write(o->path, longer, o->n + 1);
		CHECK(is_found(base_name(o->name), NULL));
		free(longer);
		bytes_write(o->path, o->bytes, o->n);
	}
}

static void test_swaps(void)
{
	for (size_t i = 0; i < object_count; i++)
		for (size_t j = i + 1; j < object_count; j++) {
			const struct object *a = &objects[i], *b = &objects[j];
			bytes_write(a->path, b->bytes, b->n);
			bytes_write(b->path, a->bytes, a->n);
			CHECK(is_found(base_name(a->name), base_name(b->name)));
			bytes_write(a->path, a->bytes, a->n);
			bytes_write(b->path, b->bytes, b->n);
		}
}

/* A pack that is gone: the check says which snapshots need it. */
static void test_lost(void)
{
	for (size_t i = 0; i < object_count; i++) {
		const struct object *o = &objects[i];
		if (strncmp(o->name, "packs/", 6) != 0)
			continue;
		CHECK(unlink(o->path) == 0);
		struct repositories *all = places_open(7);
		struct repository *r = get(all, "US_EAST_1");
		struct repo_check seen;
		struct words words = {.n = 0};
		CHECK(repo_check(r, 1, words_add, &words, &seen) == 0 && seen.faults == 1);
		CHECK(strstr(words.all, base_name(o->name)) &&
		      (strstr(words.all, "c1/s1/set0") || strstr(words.all, "c1/s2/set0")));
		repository_put(r);
		repositories_close(all);
		bytes_write(o->path, o->bytes, o->n);
	}
}

/* A chunk that was found damaged is stored again by the next snapshot, and serves the old one too, after a restart as
 * well and through a sweep. */
static void test_healed(void)
{
	static const char *const kept[] = {"c1/s1", "c1/s2", "c1/again"};
	struct repo_keep keep = {.snapshots = kept, .snapshot_count = 3};
	struct repo_swept swept;
	struct repo_manifest *m = NULL;
	for (size_t i = 0; i < object_count; i++) {
		const struct object *o = &objects[i];
		if (strncmp(o->name, "packs/", 6) != 0)
			continue;
		o->bytes[50] ^= 1;
		bytes_write(o->path, o->bytes, o->n);
	}
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "US_EAST_1");
	CHECK(repo_manifest_open(r, "c1", "s1", "set0", &m) == 0);
	CHECK(repo_verify(m, 1, NULL) == -EBADMSG && strstr(repository_why(), "damaged"));
	snapshot_make(r, "again", 1);
	CHECK(repo_verify(m, 1, NULL) == 0);
	CHECK(repo_sweep(r, &keep, &swept) == 0 && repo_verify(m, 1, NULL) == 0);
	repo_manifest_close(m);
	repository_put(r);
	repositories_close(all);
	for (int i = 0; i < 2; i++) {
		all = places_open(7);
		r = get(all, "US_EAST_1");
		CHECK(repo_manifest_open(r, "c1", i ? "again" : "s1", "set0", &m) == 0 && repo_verify(m, 2, NULL) == 0);
		repo_manifest_close(m);
		repository_put(r);
		repositories_close(all);
	}
}

/* The same of a pack that is cut off: all that it has lost. */
static void test_cut_healed(void)
{
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "CUT");
	struct repo_manifest *m = NULL;
	char path[256] = "";
	snapshot_make(r, "s1", 1);
	DIR *d = opendir(below("store/CUT/" GROUP "/packs"));
	for (const struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			snprintf(path, sizeof path, "%s/store/CUT/" GROUP "/packs/%.40s", root, e->d_name);
	if (d)
		closedir(d);
	CHECK(truncate(path, 60) == 0);
	CHECK(repo_manifest_open(r, "c1", "s1", "set0", &m) == 0);
	CHECK(repo_verify(m, 1, NULL) == -EBADMSG && strstr(repository_why(), "cut off"));
	snapshot_make(r, "again", 1);
	CHECK(repo_verify(m, 1, NULL) == 0);
	repo_manifest_close(m);
	repository_put(r);
	repositories_close(all);
}

static void pack_flip(const char *region)
{
	char path[300] = "", dir[200];
	snprintf(dir, sizeof dir, "%s/store/%s/" GROUP "/packs", root, region);
	DIR *d = opendir(dir);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			snprintf(path, sizeof path, "%s/%.40s", dir, e->d_name);
	if (d)
		closedir(d);
	size_t n = 0;
	unsigned char *bytes = file_bytes(path, &n);
	CHECK(bytes && n > 60);
	bytes[50] ^= 1;
	bytes_write(path, bytes, n);
	free(bytes);
}

static bool has_notes(const char *region)
{
	char dir[200];
	bool found = false;
	snprintf(dir, sizeof dir, "%s/store/%s/" GROUP "/damaged", root, region);
	DIR *d = opendir(dir);
	for (const struct dirent *e; d && (e = readdir(d));)
		found |= e->d_name[0] != '.';
	if (d)
		closedir(d);
	return found;
}

/* Damage that another process found, with a check or with a read: this one stores the chunk again. */
static void test_noted(const char *region, bool check)
{
	static const char *const kept[] = {"c1/again"};
	struct repo_keep keep = {.snapshots = kept, .snapshot_count = 1};
	struct repo_swept swept;
	struct repo_check seen;
	struct repositories *all = places_open(7), *others = places_open(7);
	struct repository *r = get(all, region), *other;
	struct repo_manifest *m = NULL;
	snapshot_make(r, "s1", 1);
	pack_flip(region);
	other = get(others, region);
	if (check) {
		CHECK(repo_check(other, 1, NULL, NULL, &seen) == 0 && seen.faults == 1);
	} else {
		CHECK(repo_manifest_open(other, "c1", "s1", "set0", &m) == 0 && repo_verify(m, 1, NULL) == -EBADMSG);
		repo_manifest_close(m);
	}
	repository_put(other);
	repositories_close(others);
	CHECK(has_notes(region));
	snapshot_make(r, "again", 1);
	others = places_open(7);
	other = get(others, region);
	for (int i = 0; i < 4; i++) {
		CHECK(repo_manifest_open(i / 2 ? other : r, "c1", i % 2 ? "again" : "s1", "set0", &m) == 0);
		CHECK(repo_verify(m, 1, NULL) == 0);
		repo_manifest_close(m);
	}
	/* Once is enough. */
	struct repo_writer *w = NULL;
	struct repo_amount amount = {.new_chunks = 9};
	unsigned char *bytes = bytes_make(SMALL, 1);
	CHECK(repo_write_begin(other, &w) == 0 && write_one(w, "file", bytes, SMALL) == 0);
	CHECK(repo_write_commit(w, "c1", "third", "set0", NULL, &amount) == 0 && amount.new_chunks == 0);
	free(bytes);
	/* The note goes with its pack. */
	CHECK(repo_sweep(other, &keep, &swept) == 0 && repo_sweep(other, &keep, &swept) == 0 && !has_notes(region));
	CHECK(repo_check(other, 1, NULL, NULL, &seen) == 0 && seen.faults == 0);
	repository_put(other);
	repositories_close(others);
	repository_put(r);
	repositories_close(all);
}

/* What was not the store's fault is read again, and a check forgets it. */
static void test_passing(void)
{
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "PASSING");
	struct repo_manifest *m = NULL;
	struct repo_check seen;
	snapshot_make(r, "s1", 1);
	pack_flip("PASSING");
	CHECK(repo_manifest_open(r, "c1", "s1", "set0", &m) == 0);
	CHECK(repo_verify(m, 1, NULL) == -EBADMSG && has_notes("PASSING"));
	pack_flip("PASSING");
	CHECK(repo_verify(m, 1, NULL) == 0);
	CHECK(repo_check(r, 1, NULL, NULL, &seen) == 0 && seen.faults == 0 && !has_notes("PASSING"));
	repo_manifest_close(m);
	repository_put(r);
	repositories_close(all);
}

static void test_key(void)
{
	struct repositories *wrong = places_open(9);
	struct repository *r = NULL;
	CHECK(repository_get(wrong, "US_EAST_1", GROUP, &r) == -EBADMSG && strstr(repository_why(), "secret.key"));
	repositories_close(wrong);
}

/* Somebody who can write to the store and has no key puts a large object in the place of a manifest: it is not held in
 * memory before it is known to be ours. One of ours comes back whole. */
static void test_large(void)
{
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "LARGE");
	struct repo_manifest *m = NULL;
	struct rusage before, after;
	const struct repo_line line = {"c1", "c1", "large"};
	size_t n = (size_t)70 << 20, got = 0;
	char path[300], *there = NULL;
	snapshot_make(r, "large", 31);
	snprintf(path, sizeof path, "%s/store/LARGE/" GROUP "/manifests/c1/large/set0", root);
	CHECK(truncate(path, (off_t)1 << 30) == 0);
	getrusage(RUSAGE_SELF, &before);
	CHECK(repo_manifest_open(r, "c1", "large", "set0", &m) == -EBADMSG && strstr(repository_why(), "large"));
	getrusage(RUSAGE_SELF, &after);
	CHECK(after.ru_maxrss - before.ru_maxrss < 600 << 10);
	unsigned char *bytes = must_malloc(n);
	uint64_t x = 88172645463325252ULL;
	for (size_t i = 0; i + 8 <= n; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, &x, 8);
	}
	CHECK(repo_wal_put(r, &line, "000000010000000000000001", bytes, n) == 0);
	CHECK(repo_wal_get(r, &line, "000000010000000000000001", n, &there, &got) == 0);
	CHECK(there && got == n && memcmp(there, bytes, n) == 0);
	free(there);
	free(bytes);
	repository_put(r);
	repositories_close(all);
}

/* The index says on stderr what it could not read, a thousand times here. */
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
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "US_EAST_1");
	struct repo_line line = {"c1", "i1", "set0"};
	unsigned char *bytes = bytes_make(20000, 9);
	snapshot_make(r, "s1", 1);
	snapshot_make(r, "s2", 2);
	CHECK(repo_wal_put(r, &line, "000000010000000000000001", bytes, 20000) == 0);
	CHECK(repo_wal_put(r, &line, "000000010000000000000002", bytes, 10000) == 0);
	CHECK(repo_wal_put(r, &line, "00000002.history", "1\t0/3000000\n", 12) == 0);
	CHECK(repo_seconds_put(r, &line, 472222, bytes, 300) == 0);
	CHECK(is_clean(r));
	free(bytes);
	repository_put(r);
	repositories_close(all);
	nftw(store, object_seen, 32, FTW_PHYS);
	CHECK(object_count == 1 + 2 * 3 + 4);
	test_flips();
	test_cuts();
	test_swaps();
	test_lost();
	test_key();
	all = places_open(7);
	r = get(all, "US_EAST_1");
	CHECK(is_clean(r));
	repository_put(r);
	repositories_close(all);
	test_healed();
	test_cut_healed();
	test_noted("CHECKED", true);
	test_noted("READ", false);
	test_passing();
	test_large();
	for (size_t i = 0; i < object_count; i++)
		free(objects[i].bytes);
	tree_remove(root);
	dup2(said, STDERR_FILENO);
	close(said);
	return CHECK_DONE();
}
