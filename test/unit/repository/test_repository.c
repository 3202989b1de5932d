/* Snapshots into a repository and back: whole, shared, sparse, by many threads, as a tar, in another region; WAL. */
#include "fixture.h"
#include "repository/chunk.h"
#include "repository/common.h"
#include "repository/copy.h"
#include "repository/crypt.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/manifest.h"
#include "repository/places.h"
#include "repository/restore.h"
#include "repository/sealed.h"
#include "repository/sweep.h"
#include "repository/tar.h"
#include "repository/wal.h"
#include "repository/why.h"
#include "repository/write.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#define CHUNK 32768

static const size_t sizes[] = {0, 1, 100, 8192, CHUNK - 1, CHUNK, CHUNK + 1, 1 << 20, (1 << 20) + 7, 5 * CHUNK + 8192};
#define SIZES (sizeof sizes / sizeof *sizes)

static void snapshot_make(struct repository *r, const char *name, uint64_t seed, struct repo_amount *ret_amount)
{
	struct repo_writer *w = NULL;
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(repo_write_directory(w, "base", 0700) == 0);
	CHECK(repo_write_directory(w, "empty", 0750) == 0);
	for (size_t i = 0; i < SIZES; i++) {
		char path[64];
		unsigned char *bytes = bytes_make(sizes[i], seed + i);
		snprintf(path, sizeof path, "base/%zu", sizes[i]);
		CHECK(write_one(w, path, bytes, sizes[i]) == 0);
		free(bytes);
	}
	json_t *facts = json_pack("{s:s}", "version", "15.18");
	CHECK(repo_write_commit(w, "c1", name, "set0", facts, ret_amount) == 0);
	json_decref(facts);
}

static void snapshot_compare(struct repository *r, const char *name, uint64_t seed)
{
	struct repo_manifest *m = NULL;
	const char *to = below("restored");
	CHECK(mkdir(to, 0700) == 0);
	CHECK(repo_manifest_open(r, "c1", name, "set0", &m) == 0);
	CHECK(str_is(json_field(repo_manifest_facts(m), "version"), "15.18"));
	CHECK(repo_verify(m, 2, NULL) == 0);
	CHECK(repo_restore(m, to, getuid(), getgid(), 3, NULL) == 0);
	CHECK(repo_restore(m, to, getuid(), getgid(), 3, NULL) == -ENOTEMPTY);
	for (size_t i = 0; i < SIZES; i++) {
		char path[256];
		struct stat st;
		unsigned char *bytes = bytes_make(sizes[i], seed + i);
		snprintf(path, sizeof path, "%s/base/%zu", to, sizes[i]);
		CHECK(file_is(path, bytes, sizes[i]));
		CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_mtime == 1700000000);
		free(bytes);
	}
	struct stat st;
	CHECK(stat(below("restored/empty"), &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0750);
	repo_manifest_close(m);
	tree_remove(to);
}

/* A manifest as it was before files had a CRC-32C: 32 bytes in its place, and no word of it in the head. */
static void earlier_make(struct repository *r, const char *snapshot)
{
	static const char word[] = "\"checksum\":\"CRC32C\",", zeros[28];
	char name[OBJECT_NAME], *plain = NULL;
	size_t n = 0;
	struct buf out = {0};
	manifest_name(name, "c1", snapshot, "set0");
	CHECK(object_get(r, SEALED_MANIFEST, name, MANIFEST_MAX, &plain, &n) == 0);
	uint32_t head = get_u32((unsigned char *)plain), count = get_u32((unsigned char *)plain + 4 + head);
	unsigned char length[4];
	const char *at = strstr(plain + 4, word);
	CHECK(at && at < plain + 4 + head);
	put_u32(length, head - (uint32_t)(sizeof word - 1));
	buf_add(&out, length, 4);
	buf_add(&out, plain + 4, (size_t)(at - plain - 4));
	at += sizeof word - 1;
	buf_add(&out, at, (size_t)(plain + 8 + head - at));
	at = plain + 8 + head;
	for (uint32_t i = 0; i < count; i++) {
		const unsigned char *p = (const unsigned char *)at;
		size_t path = p[25] | (size_t)p[26] << 8, rest = 2 + path + 1 + 4;
		buf_add(&out, at, 25);
		buf_add(&out, zeros, sizeof zeros);
		rest += (size_t)get_u32(p + 25 + rest - 4) * CHUNK_ID;
		buf_add(&out, at + 25, rest);
		at += 25 + rest;
	}
	CHECK(at == plain + n);
	CHECK(object_delete(r, name) == 0);
	CHECK(object_put(r, SEALED_MANIFEST, name, out.p, out.n, NULL) == 0);
	buf_free(&out);
	free(plain);
}

/* It comes back all the same; what would need the checksum is refused. */
static void test_earlier(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1"), *far = get(all, "EU_WEST_1");
	struct repo_amount amount;
	snapshot_make(r, "earlier", 9, NULL);
	earlier_make(r, "earlier");
	snapshot_compare(r, "earlier", 9);
	CHECK(is_clean(r));
	CHECK(repo_copy(r, far, "c1", "earlier", NULL, &amount) == -ENOTSUP);
	CHECK(repo_manifest_delete(r, "c1", "earlier") == 0);
	repository_put(r);
	repository_put(far);
}

/* From what lies beside it, where files can share blocks; what that lacks, or everything, from the repository. */
static void test_beside(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_manifest *m = NULL;
	const char *first = below("image"), *second = below("beside");
	snapshot_make(r, "beside", 5, NULL);
	CHECK(repo_manifest_open(r, "c1", "beside", "set0", &m) == 0);
	CHECK(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0);
	CHECK(repo_restore(m, first, getuid(), getgid(), 2, NULL) == 0);
	CHECK(unlink(below("image/base/100")) == 0);
	int image = open(first, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(repo_restore_beside(m, second, getuid(), getgid(), 2, NULL, image) == 0);
	for (size_t i = 0; i < SIZES; i++) {
		char path[64];
		struct stat st;
		unsigned char *bytes = bytes_make(sizes[i], 5 + i);
		snprintf(path, sizeof path, "beside/base/%zu", sizes[i]);
		CHECK(file_is(below(path), bytes, sizes[i]));
		CHECK(stat(below(path), &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_mtime == 1700000000);
		free(bytes);
	}
	close(image);
	repo_manifest_close(m);
	tree_remove(below("image"));
	tree_remove(below("beside"));
	repository_put(r);
}

static void test_round_trip(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_amount first, second;
	snapshot_make(r, "s1", 1, &first);
	CHECK(first.files == SIZES && first.new_chunks > 0 && first.stored > 0 && first.chunks >= first.new_chunks);
	snapshot_compare(r, "s1", 1);
	/* Again: nothing but the manifest is new. */
	snapshot_make(r, "s2", 1, &second);
	CHECK(second.new_chunks == 0 && second.chunks == first.chunks && second.stored < 8192);
	snapshot_compare(r, "s2", 1);
	/* Other content, all of it new. */
	snapshot_make(r, "s3", 1000, &second);
	CHECK(second.new_chunks == first.new_chunks);
	struct repo_writer *w = NULL;
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(write_one(w, "x", "x", 1) == 0);
	CHECK(repo_write_commit(w, "c1", "s1", "set0", NULL, NULL) == -EEXIST);
	CHECK(is_clean(r));
	repository_put(r);
	/* Another process, with the same key. */
	struct repositories *other = places_open(7);
	r = get(other, "US_EAST_1");
	snapshot_compare(r, "s1", 1);
	snapshot_compare(r, "s3", 1000);
	snapshot_make(r, "s4", 1, &second);
	CHECK(second.new_chunks == 0);
	struct repo_manifest *m;
	CHECK(repo_manifest_open(r, "c1", "none", "set0", &m) == -ENOENT);
	CHECK(repo_manifest_delete(r, "c1", "s4") == 0);
	CHECK(repo_manifest_open(r, "c1", "s4", "set0", &m) == -ENOENT);
	repository_put(r);
	repositories_close(other);
}

static void test_paths(struct repositories *all)
{
	static const char *const bad[] = {"", "/etc/passwd", "..", "a/../b", "a//b", "./a", "a/", "a/.."};
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	CHECK(repo_write_begin(r, &w) == 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(write_one(w, bad[i], "x", 1) == -EINVAL);
	CHECK(write_one(w, "good", "x", 1) == 0);
	CHECK(write_one(w, "good", "y", 1) == 0);
	CHECK(repo_write_commit(w, "c1", "twice", "set0", NULL, NULL) == -EINVAL);
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(repo_write_commit(w, "c1", "a/b", "set0", NULL, NULL) == -EINVAL);
	repository_put(r);
}

/* Zeros take no space, and come back as holes. */
static void test_zeros(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	struct repo_amount amount;
	struct repo_manifest *m = NULL;
	struct stat st;
	size_t n = (size_t)64 << 20;
	const char *source = below("sparse"), *to = below("zeros");
	int fd = open(source, O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, (off_t)n) == 0 && pwrite(fd, "end", 3, (off_t)n - 3) == 3);
	CHECK(repo_write_begin(r, &w) == 0);
	struct repo_file f = {.path = "sparse", .mode = 0600};
	CHECK(repo_write_file(w, &f, fd, UINT64_MAX) == 0);
	CHECK(repo_write_commit(w, "c1", "zeros", "set0", NULL, &amount) == 0);
	CHECK(amount.new_chunks == 1 && amount.bytes == n && amount.stored < 4096);
	CHECK(repo_manifest_open(r, "c1", "zeros", "set0", &m) == 0);
	CHECK(mkdir(to, 0700) == 0 && repo_restore(m, to, getuid(), getgid(), 2, NULL) == 0);
	size_t there = 0;
	unsigned char *bytes = file_bytes(below("zeros/sparse"), &there);
	CHECK(bytes && there == n && memcmp(bytes + n - 3, "end", 3) == 0 && bytes[0] == 0 &&
	      memcmp(bytes, bytes + 1, n - 4) == 0);
	CHECK(stat(below("zeros/sparse"), &st) == 0 && st.st_blocks * 512 < 1 << 20);
	free(bytes);
	close(fd);
	repo_manifest_close(m);
	tree_remove(to);
	repository_put(r);
}

/* A file that grows while it is read is cut where the caller says; pages are shown to him. */
struct pages {
	uint64_t count;
	uint64_t refuse;
};

static int page_seen(void *ctx, uint64_t block, const void *bytes)
{
	struct pages *p = ctx;
	CHECK(block == p->count && bytes);
	p->count++;
	return block == p->refuse ? -EBADMSG : 0;
}

static void test_file(struct repositories *all, bool large)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	struct repo_amount amount;
	struct pages pages = {.refuse = UINT64_MAX};
	size_t n = large ? (size_t)20 << 20 : (size_t)3 << 20;
	unsigned char *bytes = bytes_make(n, 77);
	int fd = open(below("plain"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	CHECK(repo_write_begin(r, &w) == 0);
	struct repo_file f = {.path = "plain", .mode = 0600, .page_check = page_seen, .ctx = &pages};
	CHECK(repo_write_file(w, &f, fd, n - 5) == 0);
	CHECK(pages.count == (n - 5) / 8192);
	pages = (struct pages){.refuse = 3};
	f.path = "refused";
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && repo_write_file(w, &f, fd, n) == -EBADMSG);
	/* Which is no reason to give up the rest. */
	pages = (struct pages){.refuse = UINT64_MAX};
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && repo_write_file(w, &f, fd, n) == 0);
	CHECK(repo_write_commit(w, "c1", large ? "file-large" : "file", "set0", NULL, &amount) == 0);
	CHECK(amount.files == 2);
	struct repo_manifest *m = NULL;
	const char *to = below("file");
	CHECK(repo_manifest_open(r, "c1", large ? "file-large" : "file", "set0", &m) == 0 && mkdir(to, 0700) == 0);
	CHECK(repo_restore(m, to, getuid(), getgid(), 1, NULL) == 0);
	CHECK(file_is(below("file/plain"), bytes, n - 5) && file_is(below("file/refused"), bytes, n));
	volatile bool cancel = true;
	struct repo_progress p = {.cancel = &cancel};
	CHECK(repo_verify(m, 2, &p) == -ECANCELED);
	repo_manifest_close(m);
	tree_remove(to);
	free(bytes);
	close(fd);
	repository_put(r);
}

/* Who owns what is restored puts a link in place of a directory while it is filled. */
static void link_put(void *ctx, uint64_t done, uint64_t of)
{
	bool *put = ctx;
	(void)done;
	(void)of;
	if (*put)
		return;
	*put = true;
	CHECK(rename(below("linked/base"), below("linked/gone")) == 0);
	CHECK(symlink(below("theirs"), below("linked/base")) == 0);
}

static void test_link(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_manifest *m = NULL;
	struct repo_amount amount;
	struct stat st;
	bool put = false;
	const struct repo_progress p = {.tell = link_put, .ctx = &put};
	snapshot_make(r, "linked", 9, &amount);
	CHECK(mkdir(below("theirs"), 0700) == 0 && mkdir(below("linked"), 0700) == 0);
	CHECK(repo_manifest_open(r, "c1", "linked", "set0", &m) == 0);
	CHECK(repo_restore(m, below("linked"), getuid(), getgid(), 1, &p) == -ENOTDIR && put);
	CHECK(rmdir(below("theirs")) == 0);
	CHECK(symlink(below("linked"), below("way")) == 0);
	CHECK(repo_restore(m, below("way"), getuid(), getgid(), 1, NULL) == -ENOTDIR);
	CHECK(stat(below("linked/gone"), &st) == 0);
	repo_manifest_close(m);
	tree_remove(below("linked"));
	CHECK(unlink(below("way")) == 0);
	repository_put(r);
}

struct many {
	struct repo_writer *w;
	unsigned number, failed;
};

static void *many_write(void *arg)
{
	struct many *t = arg;
	for (unsigned i = 0; i < 8; i++) {
		char path[64];
		/* Half of the content is the same in all threads. */
		unsigned char *bytes = bytes_make(900000, i % 2 ? 5000 + i : 5100 + 8 * t->number + i);
		snprintf(path, sizeof path, "t%u/%u", t->number, i);
		t->failed += write_one(t->w, path, bytes, 900000) < 0;
		free(bytes);
	}
	return NULL;
}

static void test_threads(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	struct repo_amount amount;
	struct many t[4];
	pthread_t ids[4];
	size_t per_file = (900000 + CHUNK - 1) / CHUNK;
	CHECK(repo_write_begin(r, &w) == 0);
	for (unsigned i = 0; i < 4; i++) {
		t[i] = (struct many){w, i, 0};
		CHECK(pthread_create(&ids[i], NULL, many_write, &t[i]) == 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		CHECK(t[i].failed == 0);
	}
	CHECK(repo_write_commit(w, "c1", "threads", "set0", NULL, &amount) == 0);
	CHECK(amount.files == 32 && amount.chunks == 32 * per_file && amount.new_chunks == (4 * 4 + 4) * per_file);
	struct repo_manifest *m = NULL;
	CHECK(repo_manifest_open(r, "c1", "threads", "set0", &m) == 0);
	CHECK(repo_verify(m, 4, NULL) == 0);
	repo_manifest_close(m);
	CHECK(is_clean(r));
	repository_put(r);
}

struct sink {
	int fd;
};

static int memory_write(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
	return 0;
}

/* From wherever a reader goes on: in a header, in a file, in what fills a block, at the end. */
static void tar_parts_compare(struct repo_manifest *m)
{
	struct buf whole = {0};
	uint64_t size = 0;
	CHECK(repo_tar(m, NULL, 0, memory_write, &whole) == 0 && repo_tar_size(m, &size) == 0 && size == whole.n);
	for (uint64_t from = 0; from <= size; from += from % 1024 == 511 ? 1 : 1537) {
		struct buf rest = {0};
		CHECK(repo_tar_from(m, from, memory_write, &rest) == 0 && rest.n == size - from);
		CHECK(rest.n == 0 || memcmp(rest.p, whole.p + from, rest.n) == 0);
		buf_free(&rest);
	}
	buf_free(&whole);
}

static int sink_write(void *ctx, const void *bytes, size_t n)
{
	return write(((struct sink *)ctx)->fd, bytes, n) == (ssize_t)n ? 0 : -EIO;
}

static void test_tar(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	struct repo_manifest *m = NULL;
	char longest[400], command[600], part[101];
	unsigned char *bytes = bytes_make(100000, 5);
	memset(part, 'p', 100);
	part[100] = 0;
	snprintf(longest, sizeof longest, "%s/%s/%s", part, part, part);
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(repo_write_directory(w, "d", 0700) == 0);
	CHECK(write_one(w, "d/one", bytes, 100000) == 0);
	CHECK(write_one(w, longest, bytes, 513) == 0);
	CHECK(repo_write_commit(w, "c1", "tar", "set0", NULL, NULL) == 0);
	CHECK(repo_manifest_open(r, "c1", "tar", "set0", &m) == 0);
	struct sink s = {open(below("t.tar"), O_WRONLY | O_CREAT | O_TRUNC, 0600)};
	struct repo_extra extra = {.path = "d/extra", .mode = 0600, .bytes = "more\n", .n = 5};
	CHECK(s.fd >= 0 && repo_tar(m, &extra, 1, sink_write, &s) == 0);
	close(s.fd);
	tar_parts_compare(m);
	const char *to = below("untar");
	CHECK(mkdir(to, 0700) == 0);
	snprintf(command, sizeof command, "tar -xf %s -C %s", below("t.tar"), to);
	CHECK(system(command) == 0);
	CHECK(file_is(below("untar/d/one"), bytes, 100000) && file_is(below("untar/d/extra"), "more\n", 5));
	snprintf(command, sizeof command, "%s/%s", to, longest);
	CHECK(file_is(command, bytes, 513));
	tree_remove(to);
	free(bytes);
	repo_manifest_close(m);
	repository_put(r);
}

static void test_copy(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1"), *far = get(all, "EU_WEST_1");
	struct repo_amount amount = {0};
	uint64_t packs = 0, wal = 0;
	CHECK(repo_copy(r, far, "c1", "s1", NULL, &amount) == 0);
	CHECK(amount.new_chunks > 0 && amount.files == SIZES);
	snapshot_compare(far, "s1", 1);
	CHECK(repo_copy(r, far, "c1", "s2", NULL, &amount) == 0 && amount.new_chunks == 0);
	CHECK(repo_copy(r, far, "c1", "none", NULL, &amount) == -ENOENT);
	CHECK(repo_usage(far, &packs, &wal) == 0 && packs > 1 << 20 && wal == 0);
	CHECK(is_clean(far));
	repository_put(r);
	repository_put(far);
}

static int wal_seen(void *ctx, const char *name, uint64_t stored)
{
	CHECK(stored > 0);
	struct buf *b = ctx;
	buf_printf(b, "%s ", name);
	return 0;
}

static void test_wal(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_line line = {"c1", "i1", "set0"};
	struct buf names = {0};
	size_t n = 4 << 20, got = 0;
	unsigned char *bytes = bytes_make(n, 3);
	char *back = NULL;
	CHECK(repo_wal_put(r, &line, "000000010000000000000002.partial", bytes, 8192) == 0);
	CHECK(repo_wal_get(r, &line, "000000010000000000000002.partial", n, &back, &got) == 0 && got == 8192 &&
	      memcmp(back, bytes, got) == 0);
	free(back);
	CHECK(repo_wal_put(r, &line, "000000010000000000000002.partial", bytes, 16384) == 0);
	CHECK(repo_wal_put(r, &line, "000000010000000000000002", bytes, n) == 0);
	CHECK(repo_wal_put(r, &line, "000000010000000000000002", bytes, n) == 0);
	CHECK(repo_wal_get(r, &line, "000000010000000000000002.partial", n, &back, &got) == -ENOENT);
	CHECK(repo_wal_put(r, &line, "000000010000000000000002.partial", bytes, 8192) == 0);
	CHECK(repo_wal_get(r, &line, "000000010000000000000002", n, &back, &got) == 0 && got == n &&
	      memcmp(back, bytes, n) == 0);
	free(back);
	CHECK(repo_wal_get(r, &line, "000000010000000000000002", n - 1, &back, &got) < 0);
	bytes[7]++;
	CHECK(repo_wal_put(r, &line, "000000010000000000000002", bytes, n) == -EEXIST);
	CHECK(repo_wal_put(r, &line, "00000002.history", "1\t0/3000000\n", 12) == 0);
	CHECK(repo_wal_put(r, &line, "000000020000000000000003", bytes, n) == 0);
	CHECK(repo_wal_put(r, &line, "nonsense", bytes, n) == -EINVAL);
	CHECK(repo_wal_put(r, &line, "../../../../../etc/passwd", bytes, n) == -EINVAL);
	CHECK(repo_seconds_put(r, &line, 472222, "one", 3) == 0 && repo_seconds_put(r, &line, 472222, "more", 4) == 0);
	CHECK(repo_seconds_get(r, &line, 472222, &back, &got) == 0 && got == 4 && memcmp(back, "more", 4) == 0);
	free(back);
	CHECK(repo_seconds_get(r, &line, 472223, &back, &got) == -ENOENT);
	CHECK(repo_wal_list(r, &line, wal_seen, &names) == 0);
	CHECK(str_is(buf_view(&names), "000000010000000000000002 00000002.history 000000020000000000000003 "));
	uint64_t packs, wal = 0;
	CHECK(repo_usage(r, &packs, &wal) == 0 && wal > 1 << 20);
	buf_free(&names);
	free(bytes);
	repository_put(r);
}

/* A file that several threads restore together; and a cancelled one. */
static void test_large(struct repositories *all)
{
	struct repository *r = get(all, "LARGE");
	struct repo_writer *w = NULL;
	struct repo_manifest *m = NULL;
	size_t n = ((size_t)40 << 20) + 12345;
	unsigned char *bytes = bytes_make(n, 4242);
	const char *to = below("large");
	memset(bytes + (3 << 20), 0, 5 << 20);
	CHECK(repo_write_begin(r, &w) == 0 && write_one(w, "large", bytes, n) == 0);
	CHECK(write_one(w, "other", bytes + 5, n - 5) == 0 && write_one(w, "small", bytes, 5) == 0);
	CHECK(repo_write_commit(w, "c1", "large", "set0", NULL, NULL) == 0);
	CHECK(repo_manifest_open(r, "c1", "large", "set0", &m) == 0);
	for (unsigned threads = 1; threads <= 6; threads += 5) {
		CHECK(mkdir(to, 0700) == 0 && repo_restore(m, to, getuid(), getgid(), threads, NULL) == 0);
		CHECK(file_is(below("large/large"), bytes, n) && file_is(below("large/other"), bytes + 5, n - 5));
		tree_remove(to);
	}
	volatile bool cancel = true;
	CHECK(repo_verify(m, 4, &(struct repo_progress){.cancel = &cancel}) == -ECANCELED);
	CHECK(repo_verify(m, 4, NULL) == 0);
	repo_manifest_close(m);
	free(bytes);
	repository_put(r);
}

/* Processes that are first at once agree on the project's key. */
static void test_first(struct repositories *all)
{
	pid_t pids[4];
	int begin[2], status;
	CHECK(pipe(begin) == 0);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			char byte, name[8];
			struct repositories *own = places_open(7);
			struct repository *r = NULL;
			struct repo_writer *w = NULL;
			snprintf(name, sizeof name, "s%d", i);
			close(begin[1]);
			bool ok = read(begin[0], &byte, 1) == 0 && (r = get(own, "FIRST")) &&
			          repo_write_begin(r, &w) == 0 && write_one(w, "f", "same in all", 11) == 0 &&
			          repo_write_commit(w, "c1", name, "set0", NULL, NULL) == 0;
			if (!ok)
				fprintf(stderr, "process %d: %s\n", i, repository_why());
			_exit(ok ? 0 : 1);
		}
	}
	close(begin[0]);
	close(begin[1]); /* now */
	for (int i = 0; i < 4; i++)
		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	struct repository *r = get(all, "FIRST");
	for (int i = 0; i < 4; i++) {
		char name[8];
		struct repo_manifest *m = NULL;
		snprintf(name, sizeof name, "s%d", i);
		CHECK(repo_manifest_open(r, "c1", name, "set0", &m) == 0 && repo_verify(m, 1, NULL) == 0);
		repo_manifest_close(m);
	}
	CHECK(is_clean(r));
	repository_put(r);
}

/* The service's key is rotated: the new one with the old one opens what is there, and alone once it was wrapped anew. */
static void test_rewrap(void)
{
	struct repo_service_keys both = {.count = 2}, back = {.count = 2};
	memset(both.keys[0], 9, REPO_KEY_BYTES);
	memset(both.keys[1], 7, REPO_KEY_BYTES);
	memset(back.keys[0], 7, REPO_KEY_BYTES);
	memset(back.keys[1], 9, REPO_KEY_BYTES);
	struct repositories *next = places_open(9), *alone = places_open(9);
	struct repository *r = NULL;
	uint64_t count = 0;
	CHECK(repository_get(alone, "US_EAST_1", GROUP, &r) == -EBADMSG);
	repositories_keys_set(next, &both);
	CHECK(repository_get(next, "US_EAST_1", GROUP, &r) == 0);
	CHECK(repository_rewrap(r, &count) == 0 && count == 1);
	CHECK(repository_rewrap(r, &count) == 0 && count == 0);
	repository_put(r);
	r = NULL;
	CHECK(repository_get(alone, "US_EAST_1", GROUP, &r) == 0 && is_clean(r));
	repository_put(r);
	repositories_keys_set(next, &back);
	CHECK(repository_get(next, "US_EAST_1", GROUP, &r) == 0 && repository_rewrap(r, &count) == 0 && count == 1);
	repository_put(r);
	repositories_close(next);
	repositories_close(alone);
}

static void test_keys(struct repositories *all)
{
	struct repositories *wrong = places_open(8);
	struct repository *r = NULL;
	CHECK(repository_get(wrong, "US_EAST_1", GROUP, &r) == -EBADMSG && strstr(repository_why(), "secret.key"));
	CHECK(repository_get(all, "..", GROUP, &r) == -EINVAL &&
	      repository_get(all, "US_EAST_1", "a/b", &r) == -EINVAL);
	repositories_close(wrong);
	if (on_s3())
		return;
	/* A key that is missing beside backups is not made again. */
	char key[256];
	snprintf(key, sizeof key, "%s/store/US_EAST_1/" GROUP "/key", root);
	CHECK(unlink(key) == 0);
	struct repositories *again = places_open(7);
	CHECK(repository_get(again, "US_EAST_1", GROUP, &r) == -EBADMSG && strstr(repository_why(), "is missing"));
	repositories_close(again);
}

static void test_backup_manifest(struct repositories *all)
{
	struct repository *r = get(all, "US_EAST_1");
	struct repo_writer *w = NULL;
	struct repo_manifest *m = NULL;
	const char *to = below("verify");
	CHECK(repo_write_begin(r, &w) == 0);
	CHECK(write_one(w, "PG_VERSION", "15\n", 3) == 0);
	CHECK(write_one(w, "pg_wal/000000010000000000000001", "w", 1) == 0);
	json_t *ranges = json_pack("[{s:i,s:s,s:s}]", "Timeline", 1, "Start-LSN", "0/2000028", "End-LSN", "0/2000100");
	CHECK(repo_write_backup_manifest(w, ranges) == 0);
	json_decref(ranges);
	CHECK(repo_write_commit(w, "c1", "verified", "set0", NULL, NULL) == 0);
	CHECK(repo_manifest_open(r, "c1", "verified", "set0", &m) == 0);
	CHECK(mkdir(to, 0700) == 0 && repo_restore(m, to, getuid(), getgid(), 1, NULL) == 0);
	json_t *manifest = json_load_file(below("verify/backup_manifest"), 0, NULL);
	const json_t *files = json_object_get(manifest, "Files");
	CHECK(json_array_size(files) == 1 && str_is(json_field(json_array_get(files, 0), "Path"), "PG_VERSION"));
	CHECK(str_is(json_field(json_array_get(files, 0), "Checksum"), "8a744722"));
	json_decref(manifest);
	char command[400];
	snprintf(
	        command, sizeof command,
	        "p=$(ls /usr/lib/postgresql/*/bin/pg_verifybackup 2>/dev/null | tail -1); [ -z \"$p\" ] || $p -n -q %s",
	        to);
	CHECK(system(command) == 0);
	tree_remove(to);
	repo_manifest_close(m);
	repository_put(r);
}

/* A project that has used up its quota: what is there can be read, and the sweep makes room. */
static void test_quota(void)
{
	struct repositories *all = NULL;
	struct repo_line line = {"c1", "i1", "0"};
	const char *url = below("bounded");
	struct repositories_options o = {.fallback = url, .quota = 3 << 20};
	struct repo_amount amount;
	struct repo_writer *w = NULL;
	size_t n = 1 << 20, got = 0, puts = 0;
	unsigned char *bytes = bytes_make(n, 77);
	char name[32], *back = NULL;
	CHECK(repositories_open(&o, &all) == 0);
	struct repository *r = get(all, "US_EAST_1");
	int result = 0;
	while (result == 0 && puts < 40) {
		snprintf(name, sizeof name, "0000000100000000%08zX", puts++);
		bytes[puts]++;
		result = repo_wal_put(r, &line, name, bytes, n);
	}
	CHECK(result == -EDQUOT && puts > 3 && puts < 10 && strstr(repository_why(), "quota of 3 MB"));
	CHECK(repo_wal_put(r, &line, "000000010000000000000099.partial", bytes, n) == -EDQUOT);
	CHECK(repo_wal_get(r, &line, "000000010000000000000000", n, &back, &got) == 0 && got == n);
	free(back);
	CHECK(repo_write_begin(r, &w) == 0);
	const struct repo_file f = {.path = "f", .mode = 0600};
	result = repo_write_bytes(w, &f, bytes, n);
	json_t *facts = json_object();
	int committed = repo_write_commit(w, "c1", "s1", "0", facts, &amount);
	CHECK(result == -EDQUOT || committed == -EDQUOT);
	/* Another process counts what is there. */
	repository_put(r);
	repositories_close(all);
	CHECK(repositories_open(&o, &all) == 0);
	r = get(all, "US_EAST_1");
	CHECK(repo_wal_put(r, &line, name, bytes, n) == -EDQUOT);
	struct repo_keep keep = {.young_ms = 0};
	struct repo_swept swept;
	CHECK(repo_sweep(r, &keep, &swept) == 0 && swept.segments == puts - 1);
	CHECK(repo_wal_put(r, &line, name, bytes, n) == 0);
	CHECK(repo_write_begin(r, &w) == 0 && repo_write_bytes(w, &f, bytes, n) == 0 &&
	      repo_write_commit(w, "c1", "s1", "0", facts, &amount) == 0);
	json_decref(facts);
	repository_put(r);
	repositories_close(all);
	free(bytes);
}

/* Where backups lie, nothing is begun anew; in the service's own directory it is. */
static void test_expected(void)
{
	struct repositories *all = NULL;
	struct repository *r = NULL;
	struct repositories_options o = {.fallback = below("unmounted")};
	CHECK(mkdir(o.fallback, 0700) == 0 && repositories_open(&o, &all) == 0);
	repositories_expect(all, "US_EAST_1");
	CHECK(repository_get(all, "US_EAST_1", GROUP, &r) == -EHOSTUNREACH && strstr(repository_why(), "mounted"));
	CHECK(mkdir(below("unmounted/~put"), 0700) == 0 && repository_get(all, "US_EAST_1", GROUP, &r) == 0);
	repository_put(r);
	repositories_close(all);
	o = (struct repositories_options){.fallback = below("own"), .fallback_is_own = true};
	CHECK(repositories_open(&o, &all) == 0);
	repositories_expect(all, "US_EAST_1");
	CHECK(repository_get(all, "US_EAST_1", GROUP, &r) == 0);
	repository_put(r);
	repositories_close(all);
}

/* Entries as an index has them: block and number of the row, length, key. */
static void entries_fill(unsigned char *bytes, size_t n)
{
	for (uint32_t i = 0; (i + 1) * 16 <= n; i++) {
		unsigned char *entry = bytes + n - (i + 1) * 16;
		put_u32(entry, (i / 55) << 16);
		put_u32(entry + 4, (i % 55 + 1) | 16U << 16);
		put_u64(entry + 8, i + 1);
	}
}

/* Zstd's first level does not see what is so short. */
static void test_entries(void)
{
	static unsigned char entries[CHUNK], packed[CHUNK], sealed[CHUNK + TAG_BYTES];
	const unsigned char key[REPO_KEY_BYTES] = {0};
	struct chunk_entry e = {.id = {1}};
	entries_fill(entries, CHUNK);
	size_t first = crypt_compress(1, entries, CHUNK, packed, CHUNK);
	chunk_seal(key, 0, &e, entries, CHUNK, sealed);
	CHECK(e.plain == (CHUNK | CHUNK_PACKED));
	CHECK(first && e.stored - TAG_BYTES < first - first / 20);
}

int main(void)
{
	json_setup();
	root_make();
	struct repositories *all = places_open(7);
	test_round_trip(all);
	test_beside(all);
	test_earlier(all);
	test_paths(all);
	test_link(all);
	test_zeros(all);
	test_file(all, false);
	test_file(all, true);
	test_threads(all);
	test_tar(all);
	test_copy(all);
	test_wal(all);
	test_backup_manifest(all);
	test_large(all);
	test_first(all);
	test_rewrap();
	test_keys(all);
	test_entries();
	test_quota();
	test_expected();
	repositories_close(all);
	tree_remove(root);
	return CHECK_DONE();
}
