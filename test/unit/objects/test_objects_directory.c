/* What is particular to objects in a directory: what lies there that is no object, a large folder, a full disk, and a
 * directory that goes away. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <utime.h>

static char *below(const char *name)
{
	static char paths[4][256];
	static unsigned at;
	char *path = paths[at++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static struct objects *open_at(const char *name)
{
	struct objects_options options = {.url = below(name)};
	struct objects *o = NULL;
	CHECK(objects_open(&options, &o) == 0);
	if (!o) {
		fprintf(stderr, "%s\n", objects_why());
		exit(1);
	}
	return o;
}

static void file_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool is_there(const char *name)
{
	struct stat st;
	return lstat(below(name), &st) == 0;
}

static unsigned entries_of(const char *name)
{
	unsigned count = 0;
	DIR *dir = opendir(below(name));
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count - 2;
}

static void test_urls(void)
{
	struct objects *o = NULL;
	char url[128];
	struct objects_options options = {.url = url};
	snprintf(url, sizeof url, "file://%s/with%%20space/and%%2Fmore", folder);
	CHECK(objects_open(&options, &o) == 0 && is_there("with space/and/more/~put"));
	objects_close(o);
	static const char *const wrong[] = {"",
	                                    "file:",
	                                    "file://",
	                                    "file://host/x",
	                                    "file:///a%0",
	                                    "file:///a%zz",
	                                    "file:///a%00b",
	                                    "http://x/y",
	                                    "ftp://x/y",
	                                    "file:///proc/none/x"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(url, sizeof url, "%s", wrong[i]);
		CHECK(objects_open(&options, &o) < 0 && *objects_why());
	}
	file_write(below("file"), "x");
	snprintf(url, sizeof url, "%s/file", folder);
	CHECK(objects_open(&options, &o) == -EEXIST || objects_open(&options, &o) == -ENOTDIR ||
	      objects_open(&options, &o) == -EHOSTUNREACH);
}

/* A mount point whose file system is away looks empty, or is not there. */
static void test_expected(void)
{
	struct objects *o = NULL;
	char url[128];
	struct objects_options options = {.url = url, .expected = true};
	snprintf(url, sizeof url, "%s/mount", folder);
	CHECK(objects_open(&options, &o) == -EHOSTUNREACH && strstr(objects_why(), "mounted") && !is_there("mount"));
	CHECK(mkdir(below("mount"), 0700) == 0);
	CHECK(objects_open(&options, &o) == -EHOSTUNREACH && !is_there("mount/~put"));
	options.expected = false;
	CHECK(objects_open(&options, &o) == 0 && is_there("mount/~put"));
	objects_close(o);
	options.expected = true;
	CHECK(objects_open(&options, &o) == 0);
	objects_close(o);
}

/* Links lead nowhere, and what is no file is no object. */
static void test_strangers(void)
{
	struct objects *o = open_at("strangers");
	char *bytes = NULL;
	size_t n;
	CHECK(put_of(o, "real/one", 1, 10) == 0);
	CHECK(mkdir(below("outside"), 0700) == 0);
	file_write(below("outside/secret"), "secret");
	CHECK(symlink("../outside", below("strangers/link")) == 0);
	CHECK(symlink("../outside/secret", below("strangers/file")) == 0);
	CHECK(symlink("real/one", below("strangers/inner")) == 0);
	CHECK(mkfifo(below("strangers/pipe"), 0600) == 0);
	file_write(below("strangers/with space"), "x");
	file_write(below("strangers/back~"), "x");
	static const char *const names[] = {"link/secret", "file", "inner", "pipe", "real", "real/one/more"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		uint64_t size;
		CHECK(objects_get_bytes(o, names[i], 100, &bytes, &n) == -ENOENT);
		CHECK(objects_size(o, names[i], &size) == -ENOENT);
	}
	CHECK(count_of(o, "") == 1 && count_of(o, "link/") == 0 && count_of(o, "li") == 0);
	CHECK(put_of(o, "link/new", 1, 10) == -EINVAL && strstr(objects_why(), "folder") && entries_of("outside") == 1);
	CHECK(objects_delete(o, "link/secret") == 0 && is_there("outside/secret"));
	CHECK(objects_delete(o, "real") == 0 && has_object(o, "real/one", 1, 10));
	/* A put takes the link's place. */
	CHECK(put_of(o, "file", 2, 20) == 0 && has_object(o, "file", 2, 20));
	CHECK(entries_of("outside") == 1);
	/* Names that are folders of others. */
	CHECK(put_of(o, "real", 1, 10) == -EINVAL && put_of(o, "real/one/more", 1, 10) == -EINVAL);
	CHECK(has_object(o, "real/one", 1, 10));
	CHECK(entries_of("strangers/~put") == 0);
	objects_close(o);
}

static void test_folders(void)
{
	struct objects *o = open_at("folders");
	CHECK(put_of(o, "a/b/c/one", 1, 10) == 0 && put_of(o, "a/b/two", 1, 10) == 0);
	CHECK(objects_delete(o, "a/b/c/one") == 0);
	CHECK(!is_there("folders/a/b/c") && is_there("folders/a/b/two"));
	CHECK(objects_delete(o, "a/b/two") == 0);
	CHECK(!is_there("folders/a") && is_there("folders/~put"));
	struct source failing = {.size = 100, .fail_at = 1, .most = 10};
	CHECK(objects_put(o, "x/y/z", source_read, &failing) == -ENOTRECOVERABLE && !is_there("folders/x"));
	objects_close(o);
}

struct large {
	unsigned count, wrong;
	char last[64];
};

static int large_visit(void *ctx, const struct object_info *info)
{
	struct large *l = ctx;
	l->wrong += l->count > 0 && strcmp(l->last, info->name) >= 0;
	snprintf(l->last, sizeof l->last, "%s", info->name);
	l->count++;
	return 0;
}

/* More than is kept in memory at a time. */
static void test_large_folder(void)
{
	enum { COUNT = 40000 };
	struct objects *o = open_at("many");
	struct large l = {.count = 0}, some = l;
	unsigned begin = 0;
	CHECK(mkdir(below("many/d"), 0700) == 0);
	int at = open(below("many/d"), O_RDONLY | O_DIRECTORY);
	for (unsigned i = 0; i < COUNT; i++) {
		char name[32];
		snprintf(name, sizeof name, "%08x", i * 2654435761u);
		begin += name[0] == '7';
		int fd = openat(at, name, O_WRONLY | O_CREAT, 0600);
		CHECK(fd >= 0);
		close(fd);
	}
	close(at);
	CHECK(put_of(o, "c", 1, 1) == 0 && put_of(o, "d.e", 1, 1) == 0 && put_of(o, "d0", 1, 1) == 0);
	CHECK(objects_list(o, "", large_visit, &l) == 0 && l.count == COUNT + 3 && l.wrong == 0);
	CHECK(objects_list(o, "d/7", large_visit, &some) == 0 && some.count == begin && some.wrong == 0);
	objects_close(o);
}

/* What a killed process has left is removed when it is old and nobody holds it. */
static void test_sweep(void)
{
	struct objects *o = open_at("swept");
	objects_close(o);
	file_write(below("swept/~put/old"), "x");
	file_write(below("swept/~put/held"), "x");
	file_write(below("swept/~put/young"), "x");
	struct utimbuf hours_ago = {.actime = 1600000000, .modtime = 1600000000};
	CHECK(utime(below("swept/~put/old"), &hours_ago) == 0 && utime(below("swept/~put/held"), &hours_ago) == 0);
	int held = open(below("swept/~put/held"), O_RDONLY);
	CHECK(flock(held, LOCK_EX) == 0);
	o = open_at("swept");
	CHECK(!is_there("swept/~put/old") && is_there("swept/~put/held") && is_there("swept/~put/young"));
	CHECK(count_of(o, "") == 0);
	close(held);
	objects_close(o);
}

static void test_away(void)
{
	struct objects *o = open_at("place");
	uint64_t size;
	CHECK(put_of(o, "a/b", 1, 10) == 0);
	CHECK(rename(below("place"), below("elsewhere")) == 0);
	/* First nothing is there, then an empty mount point. */
	for (int i = 0; i < 2; i++) {
		CHECK(put_of(o, "a/c", 1, 10) == -EHOSTUNREACH);
		CHECK(objects_size(o, "a/b", &size) == -EHOSTUNREACH);
		CHECK(objects_get(o, "a/b", 0, 0, sink_write, &(struct sink){.seed = 0}) == -EHOSTUNREACH);
		CHECK(objects_delete(o, "a/b") == -EHOSTUNREACH);
		CHECK(count_of(o, "") == -EHOSTUNREACH);
		CHECK(i == 1 || mkdir(below("place"), 0700) == 0);
	}
	CHECK(entries_of("place") == 0);
	CHECK(rmdir(below("place")) == 0 && rename(below("elsewhere"), below("place")) == 0);
	CHECK(has_object(o, "a/b", 1, 10) && put_of(o, "a/c", 1, 10) == 0 && count_of(o, "") == 2);
	objects_close(o);
}

static void full_disk(void)
{
	struct objects *o = open_at("small");
	CHECK(put_of(o, "fits", 1, 100000) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(put_of(o, "deep/too/large", 2, 4 << 20) == -ENOSPC && *objects_why());
		CHECK(put_of(o, "fits", 2, 4 << 20) == -ENOSPC);
		CHECK(entries_of("small/~put") == 0 && !is_there("small/deep"));
	}
	CHECK(has_object(o, "fits", 1, 100000) && count_of(o, "") == 1);
	CHECK(put_of(o, "deep/fits/too", 3, 100000) == 0 && has_object(o, "deep/fits/too", 3, 100000));
	objects_close(o);
	/* And read-only: what is there can be read. */
	CHECK(mount(NULL, below("small"), NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	o = open_at("small");
	CHECK(has_object(o, "fits", 1, 100000) && put_of(o, "x", 1, 1) == -EROFS &&
	      objects_delete(o, "fits") == -EROFS);
	objects_close(o);
}

/* A small file system of its own, seen by a process of its own; where that may not be made, this is not tested. */
static void test_full(void)
{
	int status = 0;
	CHECK(mkdir(below("small"), 0700) == 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("small", below("small"), "tmpfs", 0, "size=1m") < 0)
			_exit(77);
		check_passed = check_failed = 0;
		full_disk();
		fflush(NULL);
		_exit(check_failed ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("no file system can be mounted here: a full disk is not tested\n");
	else
		CHECK(WEXITSTATUS(status) == 0);
}

int main(void)
{
	folder_make();
	test_urls();
	test_expected();
	test_strangers();
	test_folders();
	test_large_folder();
	test_sweep();
	test_away();
	test_full();
	folder_remove();
	return CHECK_DONE();
}
