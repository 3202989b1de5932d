/* The store and the data directory as a process finds them: whether they, and the key beside them, belong together. */
#include "serve/store.h"

#include "base/id.h"
#include "store/rotation.h"
#include "store/seal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int print_errno(const char *what, const char *name)
{
	int error = -errno;
	fprintf(stderr, "steward: cannot %s %s: %s\n", what, name, strerror(errno));
	return error;
}

static const char *user_name(struct arena *a, uid_t uid)
{
	const struct passwd *p = getpwuid(uid);
	return p ? arena_z(a, str_of(p->pw_name)) : arena_printf(a, "%u", (unsigned)uid).p;
}

static int owner_refuse(struct opening *s, const char *path, uid_t owner)
{
	const char *mine = user_name(s->arena, geteuid()), *theirs = user_name(s->arena, owner);
	fprintf(stderr,
	        "steward: %s belongs to %s, and this process runs as %s: what it makes there, %s could not use. Run it "
	        "as "
	        "%s, or give the directory to %s: chown -R %s '%s'. Nothing was changed.\n",
	        path, theirs, mine, theirs, theirs, mine, mine, s->data_dir);
	return -EPERM;
}

/* The directory of another user, or with something of another in it: one start as root in a user's directory made the
 * next start of that user fail on what lay there. Root can use whatever is in its own. */
static int owner_check(struct opening *s)
{
	struct stat st;
	DIR *d = NULL;
	int result = stat(s->data_dir, &st) < 0 ? print_errno("look at", s->data_dir) : 0;
	if (result == 0 && st.st_uid != geteuid())
		return owner_refuse(s, s->data_dir, st.st_uid);
	if (result == 0 && geteuid() != 0 && !(d = opendir(s->data_dir)))
		result = print_errno("open", s->data_dir);
	for (struct dirent *entry; result == 0 && d && (entry = readdir(d));) {
		/* A file system of its own has a directory of root's in it. */
		bool ours = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		            strcmp(entry->d_name, "lost+found") != 0;
		if (ours && fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid != geteuid())
			result = owner_refuse(s, arena_printf(s->arena, "%s/%s", s->data_dir, entry->d_name).p,
			                      st.st_uid);
	}
	if (d)
		closedir(d);
	return result;
}

/* One service per data directory. The kernel releases the lock when the process ends, however it ends. */
int opening_take(struct opening *s, int *ret_lock)
{
	const char *dir = s->data_dir;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return print_errno("make the data directory", dir);
	int result = owner_check(s);
	if (result < 0)
		return result;
	const char *path = arena_printf(s->arena, "%s/lock", dir).p;
	*ret_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*ret_lock < 0)
		return print_errno("open", path);
	if (flock(*ret_lock, LOCK_EX | LOCK_NB) < 0) {
		fprintf(stderr, "steward: another service is running on %s. Stop it, or choose another --data.\n", dir);
		return -EBUSY;
	}
	return 0;
}

/* A state file of a real cluster's database, when the directory holds one; or NULL. */
static const char *database_state_file(struct opening *s)
{
	glob_t found = {0};
	const char *file = NULL;
	if (glob(arena_printf(s->arena, "%s/engine/*/state.json", s->data_dir).p, 0, NULL, &found) == 0)
		file = arena_z(s->arena, str_of(found.gl_pathv[0]));
	globfree(&found);
	return file;
}

/* This node's name among those that share a store: made once and kept in the data directory, which only one process
 * uses. */
int opening_node(struct opening *s, const char **ret_name)
{
	const char *path = arena_printf(s->arena, "%s/node.id", s->data_dir).p;
	char text[ID_LEN] = {0};
	struct id id = id_new();
	if (store_url_is_remote(s->url) && access(path, F_OK) < 0 && database_state_file(s)) {
		fprintf(stderr,
		        "steward: %s is missing, and the databases in %s/engine belong to the node that it named: with "
		        "a new name nobody would look after them. Bring the file back; it holds the node's name, which "
		        "the store has too: select distinct id from steward.ref where kind = 'job_host'. Nothing was "
		        "changed.\n",
		        path, s->data_dir);
		return -ENOENT;
	}
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return print_errno("open", path);
	if (read(fd, text, ID_LEN) != ID_LEN || !id_is_valid((struct str){text, ID_LEN})) {
		memcpy(text, id.z, ID_LEN);
		if (pwrite(fd, text, ID_LEN, 0) != ID_LEN || fsync(fd) < 0) {
			int result = print_errno("write", path);
			close(fd);
			return result;
		}
	}
	close(fd);
	*ret_name = arena_z(s->arena, (struct str){text, ID_LEN});
	return 0;
}

/* When another node was first, its key stays. */
static int key_remember(struct tx *tx, void *ctx)
{
	struct arena *a = arena_new();
	struct str kept;
	int result = tx_meta_get(tx, a, "secret_key", &kept);
	if (result == 0)
		result = str_is(kept, ctx) ? 0 : -EKEYREJECTED;
	else if (result == -ENOENT)
		result = tx_meta_put(tx, "secret_key", str_of(ctx));
	arena_free(a);
	return result;
}

/* Whether the store has been used before; -ENOENT: it is new. */
static int store_used(struct opening *s)
{
	struct str kept;
	int result = tx_meta_get(s->reader, s->arena, "secret_key", &kept);
	return result == -ENOENT ? tx_meta_get(s->reader, s->arena, "bootstrap", &kept) : result;
}

/* A key is made only for a new store. For a store in use, a new key could not open its secrets, and there would then be
 * two keys to tell apart when the right one is brought back. */
int opening_key_ensure(struct opening *s)
{
	const char *dir = s->data_dir;
	if (seal_is_ready())
		return 0;
	int result = store_used(s);
	if (result == -ENOENT) {
		s->key_made = true;
		return seal_setup(dir);
	}
	if (result == 0)
		fprintf(stderr,
		        "steward: %s/secret.key is missing, and the secrets of this store open with no other key. "
		        "Bring the file back from where it is kept safe, or copy it from another node. Nothing was "
		        "changed.\n",
		        dir);
	return result < 0 ? result : -ENOKEY;
}

/* The directory shows an organization or databases, but the store is empty: the store was lost, or another one is
 * meant. Continuing would make a new first organization, overwrite its credentials, and leave the databases without an
 * owner. */
int opening_belongs(struct opening *s)
{
	const char *dir = s->data_dir, *file = arena_printf(s->arena, "%s/bootstrap.json", dir).p;
	struct str kept;
	int result = tx_meta_get(s->reader, s->arena, "bootstrap", &kept);
	if (result != -ENOENT)
		return result;
	if (access(file, F_OK) < 0)
		file = database_state_file(s);
	if (!file)
		return 0;
	fprintf(stderr,
	        "steward: the store is empty, but %s was in use: there is %s. Bring back the store (steward.db, or "
	        "name the right one with --store); to begin anew, choose another --data. Nothing that was there was "
	        "changed.\n",
	        dir, file);
	return -ENOTEMPTY;
}

/* Sealed values open only with the key that sealed them: a store and a key that do not belong together are refused. */
int opening_key_check(struct opening *s)
{
	char mine[65];
	seal_key_name(seal_key_active(), mine);
	int result = rotation_follow(s->reader);
	if (result == -ENOENT)
		result = store_write_wait(s->store, key_remember, mine);
	else if (result == -ENOKEY)
		result = -EKEYREJECTED;
	if (result == -EKEYREJECTED) {
		fprintf(stderr,
		        "steward: %s/secret.key is not the key of this store. Bring back the file that was beside it, "
		        "or copy it from another node: a key that was rotated there is in that node's file.\n",
		        s->data_dir);
		/* Another node has set up the new store first, so our new key is useless. */
		if (s->key_made)
			seal_unmake(s->data_dir);
		return -EINVAL;
	}
	return result;
}
