/* Repositories of projects with encryption at rest: what is sealed with which key, and what opens without it. */
#include "base/data_key.h"
#include "base/log.h"
#include "fixture.h"
#include "repository/check.h"
#include "repository/common.h"
#include "repository/copy.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/manifest.h"
#include "repository/places.h"
#include "repository/restore.h"
#include "repository/sealed.h"
#include "repository/sweep.h"
#include "repository/wal.h"
#include "repository/why.h"
#include "repository/write.h"

#include <errno.h>

#define KEY_A "6740a1b2c3d4e5f60123000a"
#define KEY_B "6740a1b2c3d4e5f60123000b"
#define SIZE 200000

/* The service's part: which key is in force, and which are out of reach. */
struct service {
	const char *current; /* NULL: none */
	int answer_a, answer_b, answer;
	unsigned a_again; /* asks after which A is back; 0: it stays as it is */
	const char *wrapped;
	unsigned asked;
};

static int key_get(void *ctx, struct str group, struct str id, struct data_key *ret_key, char ret_why[DATA_KEY_WHY])
{
	struct service *s = ctx;
	const char *name = id.n ? NULL : s->current;
	s->asked++;
	CHECK(str_is(group, GROUP));
	snprintf(ret_why, DATA_KEY_WHY, "the test says so");
	if (!id.n && s->answer < 0)
		return s->answer;
	if (id.n)
		name = str_is(id, KEY_A) ? KEY_A : str_is(id, KEY_B) ? KEY_B : NULL;
	if (!name)
		return -ENOENT;
	if (strcmp(name, KEY_A) == 0 && s->a_again && --s->a_again == 0)
		s->answer_a = 0;
	int answer = strcmp(name, KEY_A) == 0 ? s->answer_a : s->answer_b;
	if (answer < 0)
		return answer;
	data_key_make(ret_key);
	memcpy(ret_key->id, name, sizeof ret_key->id);
	memset(ret_key->bytes, name[DATA_KEY_ID - 1], DATA_KEY_BYTES);
	return 0;
}

static int key_wrapped(void *ctx, struct str group, struct str id, char **ret_json)
{
	const struct service *s = ctx;
	(void)group;
	(void)id;
	*ret_json = must_strdup(s->wrapped);
	return 0;
}

static struct repositories *keyed_open(const struct data_keys *keys)
{
	char url[128], region[160];
	const char *regions[1] = {region};
	snprintf(url, sizeof url, "file://%s/store", root);
	snprintf(region, sizeof region, "EU_WEST_1=file://%s/far", root);
	struct repositories_options o = {
	        .fallback = url, .regions = regions, .region_count = 1, .keys = keys, .keys_us = 1};
	memset(o.key, 7, sizeof o.key);
	struct repositories *all = NULL;
	CHECK(repositories_open(&o, &all) == 0);
	return all;
}

static void take(struct repositories *all, const char *name, uint64_t seed, struct repo_amount *ret_amount)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	unsigned char *bytes = bytes_make(SIZE, seed);
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(write_one(w, "file", bytes, SIZE) == 0);
	CHECK(repo_write_commit(w, "c1", name, "0", NULL, ret_amount) == 0);
	free(bytes);
	repository_put(r);
}

/* 0: it is what was taken. */
static int bring(struct repositories *all, const char *region, const char *name, uint64_t seed)
{
	struct repository *r = NULL;
	struct repo_manifest *m = NULL;
	const char *to = below("restored");
	int result = repository_get(all, region, GROUP, &r);
	if (result < 0)
		return result;
	result = repo_manifest_open(r, "c1", name, "0", &m);
	if (result == 0) {
		unsigned char *bytes = bytes_make(SIZE, seed);
		CHECK(mkdir(to, 0700) == 0);
		CHECK(repo_restore(m, to, getuid(), getgid(), 2, NULL) == 0);
		CHECK(file_is(below("restored/file"), bytes, SIZE));
		free(bytes);
		tree_remove(to);
		repo_manifest_close(m);
	}
	repository_put(r);
	return result;
}

static void sweep(struct repositories *all, const char *const *kept, size_t count, struct repo_swept *ret_swept)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_keep keep = {.snapshots = kept, .snapshot_count = count};
	CHECK(repo_sweep(r, &keep, ret_swept) == 0);
	repository_put(r);
}

/* Before there was a key, with it, with another; chunks are shared within a key, never between two. */
static void test_keys(struct service *s, const struct data_keys *keys)
{
	struct repo_amount amount;
	struct repositories *all = keyed_open(keys);
	take(all, "s1", 1, &amount);
	CHECK(amount.new_chunks == 7);
	s->current = KEY_A;
	take(all, "s2", 1, &amount);
	CHECK(amount.new_chunks == 7);
	take(all, "s3", 1, &amount);
	CHECK(amount.new_chunks == 0);
	s->current = KEY_B;
	take(all, "s4", 1, &amount);
	CHECK(amount.new_chunks == 7);
	s->current = NULL;
	take(all, "s5", 1, &amount);
	CHECK(amount.new_chunks == 0); /* those of the first */
	for (int i = 1; i <= 5; i++) {
		char name[8];
		snprintf(name, sizeof name, "s%d", i);
		CHECK(bring(all, "US_EAST_1", name, 1) == 0);
	}
	struct repository *r = get(all, "US_EAST_1");
	CHECK(is_clean(r));
	repository_put(r);
	repositories_close(all);
	/* Another process, which first has to find out. */
	all = keyed_open(keys);
	CHECK(bring(all, "US_EAST_1", "s3", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "s1", 1) == 0);
	repositories_close(all);
}

static void test_without(void)
{
	static const struct repo_line line = {"c1", "i1", "0"};
	struct repo_check seen;
	struct repositories *all = keyed_open(NULL);
	char *bytes;
	size_t n;
	CHECK(bring(all, "US_EAST_1", "s1", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "s5", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "s2", 1) == -ENOKEY);
	CHECK(strstr(repository_why(), KEY_A));
	CHECK(bring(all, "US_EAST_1", "s4", 1) == -ENOKEY);
	struct repository *r = get(all, "US_EAST_1");
	CHECK(repo_wal_get(r, &line, "000000010000000000000001", 4096, &bytes, &n) == -ENOKEY);
	CHECK(repo_check(r, 1, NULL, NULL, &seen) == 0);
	CHECK(seen.faults == 0 && seen.snapshots == 2 && seen.locked >= 6);
	repository_put(r);
	repositories_close(all);
}

static void test_log(struct service *s, const struct data_keys *keys)
{
	static const struct repo_line line = {"c1", "i1", "0"};
	struct repositories *all = keyed_open(keys);
	char *bytes = NULL;
	size_t n = 0;
	s->current = KEY_A;
	struct repository *r = get(all, "US_EAST_1");
	CHECK(repo_wal_put(r, &line, "000000010000000000000001", "segment", 7) == 0);
	repository_put(r);
	/* The same bytes again, whatever the key is now. */
	s->current = NULL;
	r = get(all, "US_EAST_1");
	CHECK(repo_wal_put(r, &line, "000000010000000000000001", "segment", 7) == 0);
	CHECK(repo_wal_put(r, &line, "000000010000000000000001", "another", 7) == -EEXIST);
	CHECK(repo_wal_get(r, &line, "000000010000000000000001", 4096, &bytes, &n) == 0);
	CHECK(n == 7 && memcmp(bytes, "segment", 7) == 0);
	free(bytes);
	repository_put(r);
	repositories_close(all);
}

static void test_revoked(struct service *s, const struct data_keys *keys)
{
	struct repositories *all = keyed_open(keys);
	struct repository *r = NULL;
	s->current = KEY_A;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	s->answer = -EAGAIN; /* what is open goes on */
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	s->answer = -EKEYREVOKED;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == -EKEYREVOKED);
	CHECK(strstr(repository_why(), "the test says so"));
	/* And does not keep the key. */
	s->answer = -EAGAIN;
	CHECK(repository_get(all, "US_EAST_1", GROUP, &r) == -EAGAIN);
	s->answer = 0;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	/* Nor an earlier one that was taken back: the repository stays open, and the current key is another. */
	s->current = KEY_B;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	s->answer_a = -EAGAIN;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	s->answer_a = -EKEYREVOKED;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == -EKEYREVOKED);
	s->answer_a = 0;
	CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
	repositories_close(all);
}

/* A key that is lost for good leaves what it has sealed where it is, and is in nobody's way. */
static void test_lost(struct service *s, const struct data_keys *keys)
{
	static const char *const kept[] = {"c1/s1", "c1/s2", "c1/s3", "c1/s4", "c1/s5", "c1/s6"};
	struct repo_amount amount;
	struct repo_swept swept;
	s->current = KEY_B;
	s->answer_a = -EKEYREVOKED;
	struct repositories *all = keyed_open(keys);
	take(all, "s6", 1, &amount);
	CHECK(amount.new_chunks == 0);
	sweep(all, kept, 6, &swept);
	CHECK(swept.packs == 0 && swept.manifests == 0);
	CHECK(bring(all, "US_EAST_1", "s2", 1) == -EKEYREVOKED);
	CHECK(bring(all, "US_EAST_1", "s6", 1) == 0);
	repositories_close(all);
	/* Nor when it comes back in the midst of a sweep. */
	for (unsigned asks = 1; asks <= 12; asks++) {
		s->answer_a = -EKEYREVOKED;
		all = keyed_open(keys);
		s->a_again = asks;
		sweep(all, kept, 6, &swept);
		CHECK(swept.packs == 0);
		repositories_close(all);
		s->a_again = 0;
		s->answer_a = 0;
		all = keyed_open(keys);
		CHECK(bring(all, "US_EAST_1", "s2", 1) == 0);
		repositories_close(all);
	}
}

/* Packs that are written anew keep their key. */
static void test_sweep(struct service *s, const struct data_keys *keys)
{
	static const char *const kept[] = {"c1/s1", "c1/s3", "c1/s6", "c1/p9", "c1/q9"};
	struct repo_amount amount;
	struct repo_swept swept;
	char name[8];
	struct repositories *all = keyed_open(keys);
	for (int i = 0; i < 10; i++) { /* many small ones, of two keys */
		s->current = i % 2 ? KEY_A : KEY_B;
		snprintf(name, sizeof name, "%c%d", i % 2 ? 'p' : 'q', i);
		take(all, i == 8 ? "q9" : name, 100 + (uint64_t)i, &amount);
	}
	sweep(all, kept, 5, &swept);
	CHECK(swept.manifests == 16 - 5);
	CHECK(bring(all, "US_EAST_1", "s1", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "s3", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "s6", 1) == 0);
	CHECK(bring(all, "US_EAST_1", "p9", 109) == 0);
	CHECK(bring(all, "US_EAST_1", "q9", 108) == 0);
	struct repository *r = get(all, "US_EAST_1");
	CHECK(is_clean(r));
	repository_put(r);
	repositories_close(all);
}

static void test_copy(struct service *s, const struct data_keys *keys)
{
	struct repositories *all = keyed_open(keys);
	struct repo_amount amount;
	s->current = KEY_B;
	struct repository *from = get(all, "US_EAST_1"), *to = get(all, "EU_WEST_1");
	CHECK(repo_copy(from, to, "c1", "s1", NULL, &amount) == 0);
	CHECK(amount.new_chunks == 7);
	CHECK(repo_copy(from, to, "c1", "s6", NULL, &amount) == 0);
	CHECK(amount.new_chunks == 0);
	repository_put(from);
	repository_put(to);
	CHECK(bring(all, "EU_WEST_1", "s1", 1) == 0);
	CHECK(bring(all, "EU_WEST_1", "s6", 1) == 0);
	repositories_close(all);
	/* What was copied under the key needs it there, too. */
	all = keyed_open(NULL);
	CHECK(bring(all, "EU_WEST_1", "s1", 1) == -ENOKEY);
	repositories_close(all);
}

/* The wrapped key lies beside the backups, as it is after each rotation. */
static void test_wrapped(struct service *s, const struct data_keys *keys)
{
	static const char *const texts[] = {"{\"id\": \"first\"}", "{\"id\": \"second\"}", "{\"id\": \"second\"}"};
	unsigned char service[REPO_KEY_BYTES];
	struct repo_key key = {.data = service};
	unsigned char *before = NULL;
	size_t before_n = 0;
	memset(service, 7, sizeof service);
	s->current = KEY_A;
	for (int i = 0; i < 3; i++) {
		size_t n = 0, plain_n = 0;
		char *plain = NULL;
		s->wrapped = texts[i];
		struct repositories *all = keyed_open(keys);
		repository_put(get(all, "US_EAST_1"));
		repositories_close(all);
		unsigned char *bytes = file_bytes(below("store/US_EAST_1/" GROUP "/keys/" KEY_A), &n);
		CHECK(bytes);
		CHECK(sealed_open(&key, SEALED_KEY, GROUP "/keys/" KEY_A, bytes, n, 4096, &plain, &plain_n) == 0);
		CHECK(plain && strcmp(plain, texts[i]) == 0);
		/* Put again only where it is another. */
		CHECK((i == 2) == (before && n == before_n && memcmp(bytes, before, n) == 0));
		free(before);
		free(plain);
		before = bytes;
		before_n = n;
	}
	free(before);
}

/* Each project has a key of its own, without a key service too, and that of one does not open as that of another. */
static void test_projects(void)
{
	static const char *const groups[] = {GROUP, "6740a1b2c3d4e5f601234568"};
	unsigned char service[REPO_KEY_BYTES];
	char path[96], bound[64], *plain[2] = {NULL, NULL}, *none = NULL;
	size_t n = 0, plain_n[2] = {0, 0}, none_n = 0;
	struct repositories *all = keyed_open(NULL);
	memset(service, 7, sizeof service);
	for (int i = 0; i < 2; i++) {
		struct repository *r = NULL;
		CHECK(repository_get(all, "US_EAST_1", groups[i], &r) == 0);
		repository_put(r);
		snprintf(path, sizeof path, "store/US_EAST_1/%s/key", groups[i]);
		snprintf(bound, sizeof bound, "%s/key", groups[i]);
		unsigned char *bytes = file_bytes(below(path), &n);
		CHECK(bytes);
		CHECK(sealed_open(&(struct repo_key){.data = service}, SEALED_KEY, bound, bytes, n, REPO_KEY_BYTES,
		                  &plain[i], &plain_n[i]) == 0);
		snprintf(bound, sizeof bound, "%s/key", groups[1 - i]);
		CHECK(sealed_open(&(struct repo_key){.data = service}, SEALED_KEY, bound, bytes, n, REPO_KEY_BYTES,
		                  &none, &none_n) < 0);
		free(bytes);
	}
	CHECK(plain_n[0] == REPO_KEY_BYTES && plain_n[1] == REPO_KEY_BYTES);
	CHECK(plain[0] && plain[1] && memcmp(plain[0], plain[1], REPO_KEY_BYTES) != 0);
	free(plain[0]);
	free(plain[1]);
	repositories_close(all);
}

#define ARCHIVE "65f0000000000000000000c1"
#define OTHER_ARCHIVE "65f0000000000000000000c2"
#define ROWS_FILE(n) "65f00000000000000000f00" #n

struct bytes_left {
	const unsigned char *at;
	size_t n;
};

static ssize_t some_read(void *ctx, void *buf, size_t n)
{
	struct bytes_left *left = ctx;
	n = n < left->n ? n : left->n;
	n = n < 10007 ? n : 10007;
	memcpy(buf, left->at, n);
	left->at += n;
	left->n -= n;
	return (ssize_t)n;
}

static ssize_t broken_read(void *ctx, void *buf, size_t n)
{
	struct bytes_left *left = ctx;
	return left->n ? some_read(ctx, buf, n) : -EPIPE;
}

static int some_keep(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
	return 0;
}

static bool rows_are(struct repository *r, const char *file, const unsigned char *bytes)
{
	struct buf out = {0};
	bool same = repo_rows_get(r, ARCHIVE, file, some_keep, &out) == 0 && out.n == SIZE &&
	            memcmp(out.p, bytes, SIZE) == 0;
	buf_free(&out);
	return same;
}

static int rows_count(void *ctx, const char *file)
{
	++*(unsigned *)ctx;
	return 0;
}

static unsigned rows_there(struct repository *r, const char *archive)
{
	unsigned count = 0;
	CHECK(repo_rows_list(r, archive, rows_count, &count) == 0);
	return count;
}

/* Archived rows are sealed with the key that the project has at that time, and no sweep of backups takes them. */
static void test_rows(struct service *s, const struct data_keys *keys)
{
	static const char *const files[] = {ROWS_FILE(1), ROWS_FILE(2), ROWS_FILE(3)}, *const now[] = {NULL, KEY_A,
	                                                                                               KEY_B};
	const struct repo_keep none = {.young_ms = 0};
	struct repo_swept swept;
	struct repositories *all = keyed_open(keys);
	struct repository *r = NULL;
	struct buf out = {0};
	unsigned char *bytes = bytes_make(SIZE, 77);
	s->answer_a = s->answer_b = 0;
	for (size_t i = 0; i < 3; i++) {
		s->current = now[i];
		s->answer = now[i] ? 0 : -ENOENT;
		r = get(all, "US_EAST_1");
		struct bytes_left left = {bytes, SIZE}, broken = {bytes, 1000};
		CHECK(repo_rows_put(r, ARCHIVE, files[i], some_read, &left) == 0);
		CHECK(repo_rows_put(r, OTHER_ARCHIVE, files[i], broken_read, &broken) == -EPIPE);
		repository_put(r);
	}
	r = get(all, "US_EAST_1");
	for (size_t i = 0; i < 3; i++)
		CHECK(rows_are(r, files[i], bytes));
	CHECK(rows_there(r, ARCHIVE) == 3 && rows_there(r, OTHER_ARCHIVE) == 0);
	CHECK(repo_sweep(r, &none, &swept) == 0 && rows_there(r, ARCHIVE) == 3);
	CHECK(repo_rows_get(r, ARCHIVE, ROWS_FILE(4), some_keep, &out) == -ENOENT && out.n == 0);
	CHECK(repo_rows_get(r, ARCHIVE, "../" ROWS_FILE(1), some_keep, &out) == -EINVAL);
	CHECK(repo_rows_delete(r, ARCHIVE, files[0]) == 0 && repo_rows_delete(r, ARCHIVE, files[1]) == 0 &&
	      repo_rows_delete(r, ARCHIVE, files[1]) == 0 && rows_there(r, ARCHIVE) == 1);
	CHECK(repo_rows_delete(r, ARCHIVE, files[2]) == 0 && rows_there(r, ARCHIVE) == 0);
	repository_put(r);
	repositories_close(all);
	free(bytes);
}

int main(void)
{
	struct service s = {.wrapped = "{}"};
	const struct data_keys keys = {.ctx = &s, .get = key_get, .wrapped = key_wrapped};
	json_setup();
	log_setup(LOG_ERROR, false);
	root_make();
	test_keys(&s, &keys);
	test_log(&s, &keys);
	test_without();
	test_revoked(&s, &keys);
	test_lost(&s, &keys);
	test_sweep(&s, &keys);
	test_copy(&s, &keys);
	test_wrapped(&s, &keys);
	test_projects();
	test_rows(&s, &keys);
	tree_remove(root);
	return CHECK_DONE();
}
