/* Paths on which somebody has put symbolic links, pipes and trees that lead elsewhere. */
#include "check.h"

#include "base/file.h"
#include "base/nolink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char root[] = "/tmp/steward-nolink-XXXXXX";

static const char *at(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, PATH_MAX, "%s/%s", root, name);
	return path;
}

static bool is_there(const char *name)
{
	struct stat st;
	return lstat(at(name), &st) == 0;
}

static bool make(const char *name)
{
	int fd = nolink_open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
	return fd >= 0 && close(fd) == 0;
}

static void test_links(void)
{
	struct stat st;
	CHECK(symlink(at("theirs"), at("ours/way")) == 0 && symlink(at("theirs/secret"), at("ours/end")) == 0);
	CHECK(nolink_open(at("ours/way/secret"), O_RDONLY, 0) < 0 && errno == ENOTDIR);
	CHECK(nolink_open(at("ours/end"), O_RDONLY, 0) < 0 && errno == ELOOP);
	CHECK(nolink_open(at("ours/way"), O_RDONLY | O_DIRECTORY, 0) < 0 && !nolink_opendir(at("ours/way")));
	CHECK(!make("ours/way/new") && !is_there("theirs/new"));
	CHECK(nolink_mkdir(at("ours/way/new"), 0700) < 0 && !is_there("theirs/new"));
	CHECK(nolink_unlink(at("ours/way/secret")) < 0 && nolink_rmdir(at("ours/way/empty")) < 0);
	CHECK(nolink_rename(at("ours/way/secret"), at("ours/taken")) < 0);
	CHECK(nolink_rename(at("ours/own"), at("ours/way/own")) < 0 && is_there("ours/own"));
	CHECK(nolink_lstat(at("ours/way/secret"), &st) < 0);
	CHECK(nolink_lstat(at("ours/end"), &st) == 0 && S_ISLNK(st.st_mode));
	CHECK(is_there("theirs/secret") && is_there("theirs/empty"));
	/* The links themselves are ours to remove. */
	CHECK(nolink_unlink(at("ours/way")) == 0 && nolink_unlink(at("ours/end")) == 0);
}

static void test_files(void)
{
	char name[NAME_MAX + 1];
	int fd = nolink_open(at("ours/deep//own/"), O_RDONLY, 0);
	CHECK(fd < 0);
	CHECK(make("ours/deep/one") && nolink_rename(at("ours/deep/one"), at("ours/two")) == 0 && is_there("ours/two"));
	CHECK(nolink_mkdir(at("ours/below/"), 0700) == 0 && nolink_rmdir(at("ours/below/")) == 0);
	/* A pipe would keep the caller waiting for somebody at its other end. */
	CHECK(mkfifo(at("ours/pipe"), 0600) == 0);
	CHECK(nolink_open(at("ours/pipe"), O_RDONLY, 0) < 0 && nolink_open(at("ours/pipe"), O_WRONLY, 0) < 0);
	int dir = nolink_parent(AT_FDCWD, at("ours/text"), name);
	CHECK(dir >= 0 && strcmp(name, "text") == 0);
	CHECK(file_replace_at(dir, name, STR("words"), 0640, 0, FILE_NO_GROUP) == 0);
	CHECK(file_replace(at("ours/text"), STR("others"), 0600, FILE_NO_GROUP) == 0 && close(dir) == 0);
	fd = nolink_open(at("ours/text"), O_RDONLY, 0);
	char text[16] = "";
	CHECK(fd >= 0 && read(fd, text, sizeof text) == 6 && strcmp(text, "others") == 0 && close(fd) == 0);
	CHECK(!is_there("ours/text.new"));
	char longest[NAME_MAX + 8];
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	CHECK(nolink_open(at(longest), O_RDONLY, 0) < 0 && errno == ENAMETOOLONG && nolink_open("", O_RDONLY, 0) < 0);
}

static void test_tree(void)
{
	CHECK(nolink_mkdir(at("tree"), 0700) == 0 && nolink_mkdir(at("tree/a"), 0700) == 0);
	CHECK(make("tree/a/one") && symlink(at("theirs"), at("tree/a/link")) == 0);
	CHECK(nolink_tree_remove(at("tree")) == 0 && !is_there("tree"));
	CHECK(nolink_tree_remove(at("tree")) == 0 && nolink_tree_remove(at("nobody/tree")) == 0);
	CHECK(symlink(at("theirs"), at("link")) == 0);
	CHECK(nolink_tree_remove(at("link/empty")) < 0);
	CHECK(nolink_tree_remove(at("link")) == 0 && !is_there("link"));
	CHECK(is_there("theirs/secret") && is_there("theirs/empty"));
}

/* As deep as only one step after the other leads, with something at each level, and two ways down. */
static bool chain_make(const char *name, unsigned levels)
{
	int dir = open(at(name), O_RDONLY | O_DIRECTORY);
	for (unsigned i = 0; dir >= 0 && i < levels; i++) {
		int file = i % 50 ? -1 : openat(dir, "file", O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (file >= 0)
			close(file);
		int below = mkdirat(dir, "d", 0700) < 0 ? -1 : openat(dir, "d", O_RDONLY | O_DIRECTORY);
		if (i % 100 == 0 && symlinkat(at("theirs"), dir, "link") < 0)
			below = -1;
		close(dir);
		dir = below;
	}
	return dir >= 0 && close(dir) == 0;
}

static void test_deep_tree(void)
{
	CHECK(nolink_mkdir(at("deep"), 0700) == 0 && nolink_mkdir(at("deep/a"), 0700) == 0);
	CHECK(nolink_mkdir(at("deep/b"), 0700) == 0);
	CHECK(chain_make("deep", 65) && chain_make("deep/a", 1000) && chain_make("deep/b", 3000));
	CHECK(nolink_tree_remove(at("deep")) == 0 && !is_there("deep"));
	CHECK(is_there("theirs/secret") && is_there("theirs/empty"));
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	CHECK(nolink_mkdir(at("ours"), 0700) == 0 && nolink_mkdir(at("theirs"), 0700) == 0);
	CHECK(nolink_mkdir(at("theirs/empty"), 0700) == 0 && nolink_mkdir(at("ours/deep"), 0700) == 0);
	CHECK(make("theirs/secret") && make("ours/own"));
	test_links();
	test_files();
	test_tree();
	test_deep_tree();
	CHECK(nolink_tree_remove(root) == 0);
	return CHECK_DONE();
}
