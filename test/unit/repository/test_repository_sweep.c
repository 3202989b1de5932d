/* What nobody keeps goes, and nothing else: by hand, beside writers, through kill -9, and in random sequences that are
 * held against a model. */
#include "base/clock.h"
#include "base/log.h"
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define POOL 24 /* contents that files can have */
#define FILE_BYTES 150000
#define SNAPSHOTS 12 /* names */
#define FILES 6

static uint64_t dice_state = 88172645463325252ULL;

static unsigned dice(unsigned sides)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (unsigned)(dice_state >> 20) % sides;
}

/* What a snapshot holds: which content each file has. */
struct model {
	bool there, maybe; /* maybe: a crash may or may not have left it */
	unsigned seeds[FILES];
	unsigned serial;
};

static void snapshot_name(const struct model *m, size_t number, char ret_name[32])
{
	snprintf(ret_name, 32, "s%zu-%u", number, m->serial);
}

static int snapshot_write(struct repository *r, const struct model *m, const char *name)
{
	struct repo_writer *w = NULL;
	unsigned char *bytes = must_malloc(FILE_BYTES);
	int result = repo_write_begin(r, &w);
	for (unsigned i = 0; i < FILES && result == 0; i++) {
		char path[16];
		snprintf(path, sizeof path, "f%u", i);
		fill(bytes, FILE_BYTES, m->seeds[i]);
		result = write_one(w, path, bytes, FILE_BYTES);
	}
	free(bytes);
	if (result < 0) {
		repo_write_abort(w);
		return result;
	}
	return repo_write_commit(w, "c1", name, "set0", NULL, NULL);
}

static bool snapshot_is(struct repository *r, const struct model *m, const char *name)
{
	struct repo_manifest *manifest = NULL;
	const char *to = below("back");
	int result = repo_manifest_open(r, "c1", name, "set0", &manifest);
	mkdir(to, 0700);
	if (result == 0)
		result = repo_restore(manifest, to, getuid(), getgid(), 2, NULL);
	unsigned char *bytes = must_malloc(FILE_BYTES);
	for (unsigned i = 0; i < FILES && result == 0; i++) {
		char path[16];
		snprintf(path, sizeof path, "back/f%u", i);
		fill(bytes, FILE_BYTES, m->seeds[i]);
		result = file_is(below(path), bytes, FILE_BYTES) ? 0 : -EILSEQ;
	}
	if (result < 0)
		fprintf(stderr, "%s: %d %s\n", name, result, repository_why());
	free(bytes);
	repo_manifest_close(manifest);
	tree_remove(to);
	return result == 0;
}

static int sweep_keeping(struct repository *r, const struct model *models, struct repo_swept *ret_swept)
{
	char texts[SNAPSHOTS][48];
	const char *names[SNAPSHOTS];
	struct repo_keep keep = {.snapshots = names};
	for (size_t i = 0; i < SNAPSHOTS; i++) {
		char name[32];
		if (!models[i].there)
			continue;
		snapshot_name(&models[i], i, name);
		snprintf(texts[i], sizeof texts[i], "c1/%s", name);
		names[keep.snapshot_count++] = texts[i];
	}
	return repo_sweep(r, &keep, ret_swept);
}

static uint64_t usage_of(struct repository *r)
{
	uint64_t packs = 0, wal = 0;
	CHECK(repo_usage(r, &packs, &wal) == 0);
	return packs + wal;
}

static char *record_given(void *ctx, struct str cluster, struct str snapshot)
{
	unsigned *asked = ctx;
	++*asked;
	return str_is(snapshot, "s1-0") ? must_strdup("given") : NULL;
}

static bool record_is(struct repository *r, const char *snapshot, const char *wanted)
{
	char *text = NULL;
	int result = repo_record_get(r, "c1", snapshot, &text);
	bool is = wanted ? result == 0 && strcmp(text, wanted) == 0 : result == -ENOENT;
	free(text);
	return is;
}

/* What the catalogue says of snapshots: a sweep writes what is missing of those that are kept, and takes away what no
 * snapshot is left of. */
static void test_records(struct repositories *all)
{
	static const char *const names[] = {"c1/s0-0", "c1/s1-0", "c1/s2-0"};
	struct repository *r = get(all, "RECORDS");
	struct model m = {.seeds = {1, 2, 3, 4, 5, 6}};
	unsigned asked = 0;
	struct repo_keep keep = {.snapshots = names, .snapshot_count = 3, .record = record_given, .record_ctx = &asked};
	struct repo_swept swept = {0};
	for (size_t i = 0; i < 3; i++)
		CHECK(snapshot_write(r, &m, names[i] + 3) == 0);
	CHECK(repo_record_put(r, "c1", "s0-0", "own") == 0 && repo_record_put(r, "c1", "s9-9", "of none") == 0);
	CHECK(repo_record_put(r, "c1", "../s", "") == -EINVAL);
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.manifests == 0 && asked == 2);
	CHECK(record_is(r, "s0-0", "own") && record_is(r, "s1-0", "given") && record_is(r, "s2-0", NULL));
	CHECK(record_is(r, "s9-9", NULL) && is_clean(r));
	CHECK(repo_manifest_delete(r, "c1", "s0-0") == 0 && record_is(r, "s0-0", NULL));
	keep.snapshot_count = 0;
	CHECK(repo_sweep(r, &keep, &swept) == 0 && record_is(r, "s1-0", NULL));
	repository_put(r);
}

static void test_by_hand(struct repositories *all)
{
	struct repository *r = get(all, "HAND");
	struct model models[SNAPSHOTS] = {{.there = true, .seeds = {1, 2, 3, 4, 5, 6}},
	                                  {.there = true, .seeds = {1, 7, 8, 9, 10, 11}}};
	struct repo_swept swept = {0};
	uint64_t before = usage_of(r);
	CHECK(snapshot_write(r, &models[0], "s0-0") == 0);
	CHECK(snapshot_write(r, &models[1], "s1-0") == 0);
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.manifests == 0 && swept.packs == 0);
	uint64_t both = usage_of(r);
	CHECK(both == swept.bytes_kept && swept.bytes_freed == 0);
	/* One file of six lives on: its pack is written anew. */
	models[0].there = false;
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.manifests == 1 && swept.rewritten == 1);
	CHECK(usage_of(r) == swept.bytes_kept && swept.bytes_kept < both * 2 / 3);
	CHECK(snapshot_is(r, &models[1], "s1-0") && is_clean(r));
	models[1].there = false;
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.manifests == 1 && swept.packs >= 1);
	CHECK(usage_of(r) == before && is_clean(r));
	/* What is young stays, named or not. */
	CHECK(snapshot_write(r, &models[0], "s0-1") == 0);
	struct repo_keep keep = {.young_ms = 3600000};
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.manifests == 0 && swept.packs == 0);
	CHECK(snapshot_is(r, &models[0], "s0-1"));
	repository_put(r);
}

struct strange {
	unsigned told;
	char name[64];
};

static bool strange_is(void *ctx, struct str id)
{
	(void)ctx;
	return str_starts(id, STR("x"));
}

static void strange_found(void *ctx, struct str name)
{
	struct strange *s = ctx;
	s->told++;
	str_copy(name, s->name, sizeof s->name);
}

/* What was made behind the catalogue's back stays, with its chunks and its log; what the catalogue has deleted goes. */
static void test_strangers(struct repositories *all)
{
	struct repository *r = get(all, "STRANGE");
	struct model models[SNAPSHOTS] = {{.seeds = {1, 2, 3, 4, 5, 6}}, {.seeds = {1, 7, 8, 9, 10, 11}}};
	struct repo_line known = {"c1", "i1", "set0"}, strange = {"c1", "x1", "set0"};
	struct strange seen = {0};
	struct repo_swept swept = {0};
	struct repo_keep keep = {.stranger = strange_is, .stranger_found = strange_found, .stranger_ctx = &seen};
	char *bytes = NULL;
	size_t n = 0;
	CHECK(snapshot_write(r, &models[0], "x0-0") == 0);
	CHECK(snapshot_write(r, &models[1], "s1-0") == 0);
	CHECK(repo_wal_put(r, &known, "000000010000000000000001", "segment", 7) == 0);
	CHECK(repo_wal_put(r, &strange, "000000010000000000000001", "segment", 7) == 0);
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.manifests == 1 && swept.segments == 1);
	CHECK(seen.told == 1 && strcmp(seen.name, "c1/x0-0") == 0);
	CHECK(snapshot_is(r, &models[0], "x0-0") && is_clean(r));
	CHECK(repo_wal_get(r, &strange, "000000010000000000000001", 4096, &bytes, &n) == 0);
	free(bytes);
	repository_put(r);
}

static void test_wal(struct repositories *all)
{
	struct repository *r = get(all, "WAL");
	struct repo_line kept = {"c1", "i1", "set0"}, gone = {"c1", "i0", "set0"}, other = {"c1", "i1", "set1"};
	struct repo_line shared = {"c1", "i1", "_cluster"}, gone_shared = {"c1", "i0", "_cluster"};
	char *bytes = NULL;
	size_t n = 0;
	for (int i = 1; i <= 6; i++) {
		char name[32];
		snprintf(name, sizeof name, "00000001000000000000000%d", i);
		CHECK(repo_wal_put(r, &kept, name, "wal", 3) == 0 && repo_wal_put(r, &gone, name, "old", 3) == 0);
	}
	CHECK(repo_wal_put(r, &kept, "00000002.history", "h", 1) == 0);
	CHECK(repo_wal_put(r, &kept, "000000020000000000000003", "wal", 3) == 0);
	CHECK(repo_seconds_put(r, &kept, 1, "s", 1) == 0 && repo_seconds_put(r, &gone, 1, "s", 1) == 0);
	CHECK(repo_seconds_put(r, &shared, 0, "s", 1) == 0 && repo_seconds_put(r, &gone_shared, 0, "s", 1) == 0);
	CHECK(repo_seconds_put(r, &other, 1, "s", 1) == 0);
	struct repo_keep_wal rule = {.line = {"c1", "i1", "set0"}, .from = "0000000000000004"};
	struct repo_keep keep = {.wal = &rule, .wal_count = 1};
	struct repo_swept swept;
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.segments == 3 + 1 + 6 + 1 + 2);
	CHECK(repo_wal_get(r, &kept, "000000010000000000000003", 64, &bytes, &n) == -ENOENT);
	CHECK(repo_wal_get(r, &kept, "000000010000000000000004", 64, &bytes, &n) == 0 && n == 3);
	free(bytes);
	CHECK(repo_wal_get(r, &kept, "00000002.history", 64, &bytes, &n) == 0);
	free(bytes);
	CHECK(repo_seconds_get(r, &kept, 1, &bytes, &n) == 0);
	free(bytes);
	CHECK(repo_seconds_get(r, &gone, 1, &bytes, &n) == -ENOENT);
	/* What all sets share is kept with any of them, and goes with the last. */
	CHECK(repo_seconds_get(r, &shared, 0, &bytes, &n) == 0);
	free(bytes);
	CHECK(repo_seconds_get(r, &gone_shared, 0, &bytes, &n) == -ENOENT);
	CHECK(repo_seconds_get(r, &other, 1, &bytes, &n) == -ENOENT);
	repository_put(r);
}

/* Hours of positions go when they are over; the last before what is needed stays, and so does the list of them. */
static void test_hours(struct repositories *all)
{
	struct repository *r = get(all, "HOURS");
	struct repo_line lines[] = {{"c1", "i1", "0"}, {"c1", "i1", "_cluster"}};
	struct repo_keep_wal rule = {
	        .line = {"c1", "i1", "0"}, .from = "0000000000000004", .from_ms = 13 * 3600000 + 5};
	struct repo_keep keep = {.wal = &rule, .wal_count = 1};
	struct repo_swept swept;
	static const int64_t hours[] = {0, 9, 10, 11, 13, 14};
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof hours / sizeof *hours; k++)
			CHECK(repo_seconds_put(r, &lines[i], hours[k], "s", 1) == 0);
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.segments == 4);
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof hours / sizeof *hours; k++) {
			char *bytes = NULL;
			size_t n = 0;
			CHECK(repo_seconds_get(r, &lines[i], hours[k], &bytes, &n) ==
			      (hours[k] == 9 || hours[k] == 10 ? -ENOENT : 0));
			free(bytes);
		}
	rule.from_ms = 0;
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.segments == 0);
	repository_put(r);
}

/* The only file of a folder of the repository. */
static void only_file(const char *folder, char ret_path[256])
{
	char command[256];
	snprintf(command, sizeof command, "ls %s/store/MEND/" GROUP "/%s/*", root, folder);
	FILE *f = popen(command, "re");
	CHECK(f && fgets(ret_path, 256, f));
	ret_path[strcspn(ret_path, "\n")] = 0;
	if (f)
		pclose(f);
}

/* A sweep over a repository that has lost or damaged parts takes nothing that is needed, and mends what it can. */
static void test_mend(void)
{
	struct model models[SNAPSHOTS] = {{.there = true, .seeds = {1, 2, 3, 4, 5, 6}}};
	struct repo_swept swept;
	char index[256], pack[256];
	size_t n = 0;
	struct repositories *all = places_open(7);
	struct repository *r = get(all, "MEND");
	CHECK(snapshot_write(r, &models[0], "s0-0") == 0);
	only_file("index", index);
	only_file("packs", pack);
	repository_put(r);
	repositories_close(all);
	/* Its index is gone: made again from the pack's end. */
	CHECK(unlink(index) == 0);
	all = places_open(7);
	r = get(all, "MEND");
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.packs == 0);
	CHECK(access(index, F_OK) == 0 && access(pack, F_OK) == 0);
	CHECK(snapshot_is(r, &models[0], "s0-0") && is_clean(r));
	repository_put(r);
	repositories_close(all);
	/* Its index is damaged, and then its own end too: it stays. */
	unsigned char *bytes = file_bytes(index, &n);
	bytes[40] ^= 1;
	FILE *f = fopen(index, "wb");
	CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
	free(bytes);
	all = places_open(7);
	r = get(all, "MEND");
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.packs == 0 && snapshot_is(r, &models[0], "s0-0"));
	repository_put(r);
	repositories_close(all);
	bytes = file_bytes(pack, &n);
	bytes[n - 20] ^= 1;
	f = fopen(pack, "wb");
	CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
	all = places_open(7);
	r = get(all, "MEND");
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.packs == 0 && access(pack, F_OK) == 0);
	/* The next snapshot stores again what cannot be found any more; the old one then comes back by it. */
	CHECK(snapshot_write(r, &models[0], "s1-0") == 0 && snapshot_is(r, &models[0], "s0-0"));
	free(bytes);
	repository_put(r);
	repositories_close(all);
}

/* A writer of another process that has found a chunk keeps it; once it is killed, nothing does. */
static void test_lease(struct repositories *all)
{
	struct repository *r = get(all, "LEASE");
	struct model models[SNAPSHOTS] = {{.there = false, .seeds = {1, 2, 3, 4, 5, 6}}};
	struct repo_swept swept;
	int ready[2];
	char byte;
	CHECK(snapshot_write(r, &models[0], "s0-0") == 0 && pipe(ready) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct repositories *own = places_open(7);
		struct repository *mine = get(own, "LEASE");
		struct repo_writer *w = NULL;
		bool ok = repo_write_begin(mine, &w) == 0 && write(ready[1], "x", 1) == 1;
		(void)ok;
		pause();
		_exit(0);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.manifests == 1 && swept.packs == 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(sweep_keeping(r, models, &swept) == 0 && swept.packs == 1);
	close(ready[0]);
	close(ready[1]);
	repository_put(r);
}

/* What a sweeper takes that has stood still for long is missed before a snapshot names it; so is a lease that is gone,
 * and a list of what is kept that is too old. */
static void test_stood_still(struct repositories *all)
{
	struct repository *r = get(all, "STILL");
	struct model models[SNAPSHOTS] = {{.there = true, .seeds = {1, 2, 3, 4, 5, 6}}};
	struct repo_writer *w = NULL;
	struct repo_manifest *m = NULL;
	struct repo_swept swept;
	struct repo_keep old = {.young_ms = 2, .read_us = 1};
	unsigned char *bytes = bytes_make(FILE_BYTES, 1);
	if (!on_s3()) {
		CHECK(snapshot_write(r, &models[0], "s0-0") == 0);
		CHECK(repo_write_begin(r, &w) == 0 && write_one(w, "f0", bytes, FILE_BYTES) == 0);
		tree_remove(below("store/STILL/" GROUP "/index"));
		tree_remove(below("store/STILL/" GROUP "/packs"));
		CHECK(repo_write_commit(w, "c1", "late", "set0", NULL, NULL) == -ESTALE);
		CHECK(repo_manifest_open(r, "c1", "late", "set0", &m) == -ENOENT);
		CHECK(repo_write_begin(r, &w) == 0 && write_one(w, "f0", bytes, FILE_BYTES) == 0);
		tree_remove(below("store/STILL/" GROUP "/leases"));
		CHECK(repo_write_commit(w, "c1", "late", "set0", NULL, NULL) == -ESTALE);
		CHECK(repo_manifest_open(r, "c1", "late", "set0", &m) == -ENOENT);
		CHECK(repo_manifest_delete(r, "c1", "s0-0") == 0);
	}
	CHECK(snapshot_write(r, &models[0], "s0-0") == 0);
	CHECK(repo_sweep(r, &old, &swept) == -ESTALE && snapshot_is(r, &models[0], "s0-0"));
	old.read_us = clock_boot_us();
	old.young_ms = 3600000;
	CHECK(repo_sweep(r, &old, &swept) == 0 && snapshot_is(r, &models[0], "s0-0") && is_clean(r));
	free(bytes);
	repository_put(r);
}

struct sweeper {
	struct repository *r;
	_Atomic bool stop;
	unsigned rounds, failed;
};

static void *sweeper_run(void *arg)
{
	struct sweeper *s = arg;
	while (!s->stop) {
		struct repo_swept swept;
		const char *names[1] = {"c1/kept"};
		struct repo_keep keep = {.snapshots = names, .snapshot_count = 1};
		s->failed += repo_sweep(s->r, &keep, &swept) < 0;
		s->rounds++;
	}
	return NULL;
}

/* Snapshots are written while another thread sweeps all the time: the one that is kept always comes back. */
static void test_beside(struct repositories *all)
{
	struct repository *r = get(all, "BESIDE");
	struct sweeper s = {.r = r};
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, sweeper_run, &s) == 0);
	for (unsigned i = 0; i < 8; i++) {
		struct model m = {.seeds = {1, 2, 3 + i, 4 + i, 5, 6}};
		CHECK(repo_manifest_delete(r, "c1", "kept") == 0);
		CHECK(snapshot_write(r, &m, "kept") == 0);
		CHECK(snapshot_is(r, &m, "kept"));
	}
	s.stop = true;
	pthread_join(thread, NULL);
	CHECK(s.rounds > 0 && s.failed == 0 && is_clean(r));
	repository_put(r);
}

static void model_make(struct model *m)
{
	m->there = true;
	m->serial++;
	for (unsigned i = 0; i < FILES; i++)
		m->seeds[i] = dice(POOL);
}

/* A process of its own does it, and is killed at some moment, or not in time. */
static void crash_in(const struct model *models, int written)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct repositories *own = places_open(7);
		struct repository *r = get(own, "RANDOM");
		struct repo_swept swept;
		char name[32];
		int result;
		if (written >= 0) {
			snapshot_name(&models[written], (size_t)written, name);
			result = snapshot_write(r, &models[written], name);
		} else {
			result = sweep_keeping(r, models, &swept);
		}
		_exit(result < 0);
	}
	nanosleep(&(struct timespec){.tv_nsec = (long)dice(60) * 1000000L}, NULL);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* How much the kept snapshots would take in a repository of their own. */
static uint64_t usage_least(struct repositories *all, const struct model *models, unsigned round)
{
	char region[32], name[32];
	snprintf(region, sizeof region, "FRESH-%u", round);
	struct repository *r = get(all, region);
	for (size_t i = 0; i < SNAPSHOTS; i++) {
		if (!models[i].there)
			continue;
		snapshot_name(&models[i], i, name);
		CHECK(snapshot_write(r, &models[i], name) == 0);
	}
	uint64_t usage = usage_of(r);
	repository_put(r);
	return usage;
}

static void kept_compare(struct repository *r, struct model *models)
{
	for (size_t i = 0; i < SNAPSHOTS; i++) {
		char name[32];
		struct repo_manifest *m = NULL;
		snapshot_name(&models[i], i, name);
		if (models[i].maybe) { /* whole, or not there */
			models[i].there = repo_manifest_open(r, "c1", name, "set0", &m) == 0;
			models[i].maybe = false;
			repo_manifest_close(m);
		}
		if (models[i].there)
			CHECK(snapshot_is(r, &models[i], name));
	}
}

static void test_random(struct repositories *all, unsigned rounds)
{
	struct repository *r = get(all, "RANDOM");
	struct model models[SNAPSHOTS] = {0};
	struct repo_swept swept;
	for (unsigned round = 1; round <= rounds; round++) {
		size_t at = dice(SNAPSHOTS);
		char name[32];
		switch (dice(6)) {
		case 0:
		case 1:
			model_make(&models[at]);
			snapshot_name(&models[at], at, name);
			CHECK(snapshot_write(r, &models[at], name) == 0);
			break;
		case 2: models[at].there = false; break;
		case 3:
			model_make(&models[at]);
			crash_in(models, (int)at);
			models[at].maybe = true;
			kept_compare(r, models);
			break;
		case 4: crash_in(models, -1); break;
		default: CHECK(sweep_keeping(r, models, &swept) == 0);
		}
		if (round % 5 == 0) {
			kept_compare(r, models);
			CHECK(is_clean(r));
		}
		if (round % 20 == 0) {
			CHECK(sweep_keeping(r, models, &swept) == 0);
			kept_compare(r, models);
			uint64_t least = usage_least(all, models, round), now = usage_of(r);
			if (now > 2 * least + 4096)
				fprintf(stderr, "round %u: %llu bytes, needed %llu\n", round, (unsigned long long)now,
				        (unsigned long long)least);
			CHECK(now <= 2 * least + 4096);
		}
	}
	repository_put(r);
}

int main(void)
{
	const char *rounds = getenv("ROUNDS"), *seed = getenv("SEED");
	json_setup();
	log_setup(LOG_ERROR, false);
	root_make();
	if (seed)
		dice_state ^= strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15ULL;
	struct repositories *all = places_open(7);
	test_by_hand(all);
	test_records(all);
	test_strangers(all);
	test_wal(all);
	test_hours(all);
	if (!on_s3())
		test_mend();
	test_lease(all);
	test_stood_still(all);
	test_beside(all);
	test_random(all, rounds ? (unsigned)strtoul(rounds, NULL, 10) : 60);
	repositories_close(all);
	tree_remove(root);
	return CHECK_DONE();
}
