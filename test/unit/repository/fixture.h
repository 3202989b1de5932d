/* A repository in a directory of its own, files with content that can be made again, and comparisons. */
#ifndef STEWARD_TEST_REPOSITORY_FIXTURE_H
#define STEWARD_TEST_REPOSITORY_FIXTURE_H

#include "base/arena.h"
#include "base/buf.h"
#include "check.h"
#include "repository/repository.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP "6740a1b2c3d4e5f601234567"

static char root[64];
static unsigned packs_for_parity; /* of what is opened from then on */

static inline int path_remove(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

static inline void tree_remove(const char *path)
{
	nftw(path, path_remove, 32, FTW_DEPTH | FTW_PHYS);
}

static inline void root_make(void)
{
	snprintf(root, sizeof root, "/tmp/steward-repository-XXXXXX");
	if (!mkdtemp(root))
		abort();
}

static inline const char *below(const char *name)
{
	static char paths[8][256];
	static unsigned next;
	char *path = paths[next++ % 8];
	snprintf(path, 256, "%s/%s", root, name);
	return path;
}

/* The address of a server, where the objects are in its buckets. */
static inline const char *on_azure(void)
{
	return getenv("STEWARD_TEST_AZURE");
}

static inline const char *on_s3(void)
{
	return on_azure() ? on_azure() : getenv("STEWARD_TEST_S3");
}

static inline struct repositories *places_open(unsigned char key)
{
	char url[128];
	const char *regions[1];
	char region[160];
	snprintf(url, sizeof url, "file://%s/store", root);
	snprintf(region, sizeof region, "EU_WEST_1=file://%s/far", root);
	regions[0] = region;
	struct repositories_options o = {
	        .fallback = url, .regions = regions, .region_count = 1, .parity = packs_for_parity};
	memset(o.key, key, sizeof o.key);
	/* In buckets of the server that test/backup/on_s3.py has started. */
	if (on_s3()) {
		snprintf(url, sizeof url, "s3://bucket/store");
		snprintf(region, sizeof region, "EU_WEST_1=s3://bucket/far");
		o.s3 = (struct objects_options){
		        .endpoint = on_s3(), .key_id = "TESTKEYID", .secret = "test/secret+with=characters"};
	}
	if (on_azure()) {
		snprintf(url, sizeof url, "azure://bucket/store");
		snprintf(region, sizeof region, "EU_WEST_1=azure://bucket/far");
		o.azure = (struct objects_options){
		        .endpoint = on_azure(), .account = "stewardtest", .secret = getenv("STEWARD_TEST_AZURE_KEY")};
	}
	struct repositories *all = NULL;
	if (repositories_open(&o, &all) < 0)
		abort();
	return all;
}

static inline struct repository *get(struct repositories *all, const char *region)
{
	struct repository *r = NULL;
	int result = repository_get(all, region, GROUP, &r);
	if (result < 0)
		fprintf(stderr, "repository_get: %d %s\n", result, repository_why());
	return r;
}

/* The same bytes for the same seed; about half of them compress. */
static inline void fill(unsigned char *bytes, size_t n, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;
	for (size_t i = 0; i < n; i++) {
		if (i % 8 == 0) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		bytes[i] = i % 64 < 32 ? (unsigned char)(x >> i % 8 * 8) : (unsigned char)(i >> 9);
	}
}

static inline unsigned char *bytes_make(size_t n, uint64_t seed)
{
	unsigned char *bytes = must_malloc(n + 1);
	fill(bytes, n, seed);
	return bytes;
}

static inline int write_one(struct repo_writer *w, const char *path, const void *bytes, size_t n)
{
	struct repo_file f = {.path = path, .mode = 0640, .modified_s = 1700000000};
	return repo_write_bytes(w, &f, bytes, n);
}

/* The whole file; NULL: it cannot be read. */
static inline unsigned char *file_bytes(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	if (!f || fstat(fileno(f), &st) < 0) {
		if (f)
			fclose(f);
		return NULL;
	}
	unsigned char *bytes = must_malloc((size_t)st.st_size + 1);
	*ret_n = fread(bytes, 1, (size_t)st.st_size, f);
	fclose(f);
	return bytes;
}

static inline bool file_is(const char *path, const void *bytes, size_t n)
{
	size_t there = 0;
	unsigned char *have = file_bytes(path, &there);
	bool same = have && there == n && memcmp(have, bytes, n) == 0;
	free(have);
	return same;
}

static inline void fault_count(void *ctx, const char *words)
{
	(void)words;
	(*(unsigned *)ctx)++;
}

static inline void fault_print(void *ctx, const char *words)
{
	fprintf(stderr, "fault: %s\n", words);
	(*(unsigned *)ctx)++;
}

static inline bool is_clean(struct repository *r)
{
	unsigned faults = 0;
	struct repo_check seen;
	int result = repo_check(r, 1, fault_print, &faults, &seen);
	return result == 0 && faults == 0 && seen.faults == 0;
}

#endif
