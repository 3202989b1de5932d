/* The file of the keys. It is never written in place: a process that is killed leaves the old file or the new one, at
 * worst a draft beside it, which the next rotation removes. A version of this program that knows one key only refuses a
 * file with more by its size. */
#include "store/keyring.h"

#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_FILE "secret.key"

static bool write_all(int fd, const unsigned char *p, size_t n)
{
	while (n > 0) {
		ssize_t wrote = write(fd, p, n);
		if (wrote < 0 && errno != EINTR)
			return false;
		if (wrote > 0) {
			p += wrote;
			n -= (size_t)wrote;
		}
	}
	return true;
}

static int directory_flush(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

/* `owner`: of the file that it will replace. An operator may run the command as root, and the service must be able to
 * read what was written. */
static int draft_write(const char *draft, const struct keyring *ring, const struct stat *owner)
{
	int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = 0;
	if (!write_all(fd, ring->keys[0], (size_t)ring->count * KEY_SIZE) ||
	    (owner && (owner->st_uid != geteuid() || owner->st_gid != getegid()) &&
	     fchown(fd, owner->st_uid, owner->st_gid) < 0) ||
	    fsync(fd) < 0)
		r = -errno;
	close(fd);
	if (r < 0)
		unlink(draft);
	return r;
}

/* Tells of a failure, and lets both names go. */
static int finish(char *path, char *draft, int r)
{
	if (r < 0)
		fprintf(stderr, "steward: cannot write the key %s: %s\n", path, strerror(-r));
	free(draft);
	free(path);
	return r;
}

/* Linked into place, so that of two processes that start at once one makes the key and the other uses it. */
int keyring_make(const char *data_dir)
{
	struct keyring ring = {.count = 1};
	char *path = NULL, *draft = NULL;
	struct id unique = id_new();
	if (asprintf(&path, "%s/" KEY_FILE, data_dir) < 0 || asprintf(&draft, "%s.%s", path, unique.z) < 0)
		abort();
	random_bytes(ring.keys[0], KEY_SIZE);
	int r = draft_write(draft, &ring, NULL);
	OPENSSL_cleanse(&ring, sizeof ring);
	if (r == 0) {
		if (link(draft, path) < 0 && errno != EEXIST)
			r = -errno;
		unlink(draft);
	}
	r = r == 0 ? directory_flush(data_dir) : r;
	return finish(path, draft, r);
}

/* Drafts of processes that were killed: they hold keys. */
static void drafts_remove(const char *path)
{
	glob_t found = {0};
	char *pattern = NULL;
	if (asprintf(&pattern, "%s.*", path) < 0)
		abort();
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (id_is_valid(str_of(found.gl_pathv[i] + strlen(path) + 1)))
				unlink(found.gl_pathv[i]);
	globfree(&found);
	free(pattern);
}

int keyring_replace(const char *data_dir, const struct keyring *ring)
{
	char *path = NULL, *draft = NULL;
	struct id unique = id_new();
	struct stat owner;
	if (asprintf(&path, "%s/" KEY_FILE, data_dir) < 0 || asprintf(&draft, "%s.%s", path, unique.z) < 0)
		abort();
	int r = stat(path, &owner) < 0 ? -errno : 0;
	if (r == 0) {
		drafts_remove(path);
		r = draft_write(draft, ring, &owner);
	}
	if (r == 0 && rename(draft, path) < 0) {
		r = -errno;
		unlink(draft);
	}
	r = r == 0 ? directory_flush(data_dir) : r;
	return finish(path, draft, r);
}

static int file_check(int fd, const char *path, unsigned *ret_count)
{
	struct stat info;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
		fprintf(stderr,
		        "steward: %s is not a file: move it away, or restore the key from where it is kept safe\n",
		        path);
		return -EINVAL;
	}
	if (info.st_mode & 077) {
		fprintf(stderr, "steward: %s can be read by others (mode %04o): run chmod 600 %s\n", path,
		        (unsigned)info.st_mode & 07777, path);
		return -EPERM;
	}
	if (info.st_size <= 0 || info.st_size % KEY_SIZE ||
	    info.st_size > (off_t)sizeof((struct keyring *)NULL)->keys) {
		fprintf(stderr,
		        "steward: %s has %lld bytes instead of %d for each key, of which there are 1 to %d: restore it "
		        "from where it is kept safe (without it no stored secret can be read)\n",
		        path, (long long)info.st_size, KEY_SIZE, KEYRING_MAX);
		return -EINVAL;
	}
	*ret_count = (unsigned)(info.st_size / KEY_SIZE);
	return 0;
}

int keyring_read(const char *data_dir, struct keyring *ret_ring)
{
	struct keyring ring = {0};
	char *path = NULL;
	if (asprintf(&path, "%s/" KEY_FILE, data_dir) < 0)
		abort();
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = fd < 0 ? -errno : 0;
	if (r < 0 && r != -ENOENT)
		fprintf(stderr, "steward: cannot read the key %s: %s\n", path, strerror(-r));
	if (r == 0)
		r = file_check(fd, path, &ring.count);
	if (r == 0 && read(fd, ring.keys, (size_t)ring.count * KEY_SIZE) != (ssize_t)ring.count * KEY_SIZE) {
		fprintf(stderr, "steward: cannot read the key %s\n", path);
		r = -EIO;
	}
	if (fd >= 0)
		close(fd);
	if (r == 0)
		*ret_ring = ring;
	OPENSSL_cleanse(&ring, sizeof ring);
	free(path);
	return r;
}

bool keyring_has(const struct keyring *ring, const unsigned char key[KEY_SIZE])
{
	for (unsigned i = 0; i < ring->count; i++)
		if (CRYPTO_memcmp(ring->keys[i], key, KEY_SIZE) == 0)
			return true;
	return false;
}
