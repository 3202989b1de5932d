/* Directories that the kernel encrypts (fscrypt, policies of version 2): the key that it has for one, and the
 * directories that are encrypted with it. cluster/crypt.c says when. */
#include "engine/postgres/host/fscrypt.h"

#include "base/arena.h"
#include "base/data_key.h"
#include "base/nolink.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FILES_KEY_BYTES 64
#define BUSY_TRIES 50
#define BUSY_MS 100

_Static_assert(PG_FILES_KEY == FSCRYPT_KEY_IDENTIFIER_SIZE, "a key's name");

static int directory_open(const char *path)
{
	int fd = nolink_open(path, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? -errno : fd;
}

/* The name of the key that a directory is encrypted with. -ENODATA: it is not. */
int pg_policy_get(const char *path, unsigned char ret_key[PG_FILES_KEY])
{
	struct fscrypt_get_policy_ex_arg arg = {.policy_size = sizeof arg.policy};
	int fd = directory_open(path);
	if (fd < 0)
		return fd;
	int r = ioctl(fd, FS_IOC_GET_ENCRYPTION_POLICY_EX, &arg) < 0 ? -errno : 0;
	close(fd);
	if (r < 0)
		return r;
	if (arg.policy.version != FSCRYPT_POLICY_V2)
		return -EEXIST; /* somebody else's */
	memcpy(ret_key, arg.policy.v2.master_key_identifier, PG_FILES_KEY);
	return 0;
}

/* Of an empty directory. */
int pg_policy_set(const char *path, const unsigned char key[PG_FILES_KEY])
{
	struct fscrypt_policy_v2 policy = {.version = FSCRYPT_POLICY_V2,
	                                   .contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS,
	                                   .filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS,
	                                   .flags = FSCRYPT_POLICY_FLAGS_PAD_32};
	memcpy(policy.master_key_identifier, key, PG_FILES_KEY);
	int fd = directory_open(path);
	if (fd < 0)
		return fd;
	int r = ioctl(fd, FS_IOC_SET_ENCRYPTION_POLICY, &policy) < 0 ? -errno : 0;
	close(fd);
	return r;
}

bool pg_key_is_given(const struct engine *e, const unsigned char key[PG_FILES_KEY])
{
	struct fscrypt_get_key_status_arg arg = {.key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER};
	memcpy(arg.key_spec.u.identifier, key, PG_FILES_KEY);
	int fd = directory_open(e->dir);
	bool has = fd >= 0 && ioctl(fd, FS_IOC_GET_ENCRYPTION_KEY_STATUS, &arg) == 0 &&
	           arg.status == FSCRYPT_KEY_STATUS_PRESENT;
	if (fd >= 0)
		close(fd);
	return has;
}

/* Its name is made from it. */
int pg_key_give(const struct engine *e, const struct data_key *key, const char *cluster,
                unsigned char ret_key[PG_FILES_KEY])
{
	struct data_key memory;
	char label[64];
	unsigned length = FILES_KEY_BYTES;
	int fd = directory_open(e->dir);
	if (fd < 0)
		return fd;
	data_key_make(&memory); /* a page of it, which is neither swapped out nor dumped */
	struct fscrypt_add_key_arg *arg = (struct fscrypt_add_key_arg *)(void *)memory.bytes;
	arg->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
	arg->raw_size = FILES_KEY_BYTES;
	int n = snprintf(label, sizeof label, "cluster files %s", cluster);
	HMAC(EVP_sha512(), key->bytes, DATA_KEY_BYTES, (const unsigned char *)label, (size_t)n, arg->raw, &length);
	int r = ioctl(fd, FS_IOC_ADD_ENCRYPTION_KEY, arg) < 0 ? -errno : 0;
	if (r == 0)
		memcpy(ret_key, arg->key_spec.u.identifier, PG_FILES_KEY);
	OPENSSL_cleanse(memory.bytes, sizeof *arg + FILES_KEY_BYTES);
	data_key_free(&memory);
	close(fd);
	return r;
}

/* The key itself is wiped at once; what of the files is still open, or in the kernel's memory, goes when it is closed,
 * for which this waits. */
int pg_key_take(const struct engine *e, const unsigned char key[PG_FILES_KEY])
{
	int fd = directory_open(e->dir), r = -EBUSY;
	if (fd < 0)
		return fd;
	for (int i = 0; i < BUSY_TRIES && r == -EBUSY; i++) {
		struct fscrypt_remove_key_arg arg = {.key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER};
		memcpy(arg.key_spec.u.identifier, key, PG_FILES_KEY);
		r = ioctl(fd, FS_IOC_REMOVE_ENCRYPTION_KEY, &arg) < 0 ? -errno : 0;
		if (r == -ENOKEY)
			r = 0;
		else if (r == 0 && arg.removal_status_flags & FSCRYPT_KEY_REMOVAL_STATUS_FLAG_FILES_BUSY)
			r = -EBUSY;
		if (r == -EBUSY)
			pg_sleep_ms(BUSY_MS);
	}
	close(fd);
	return r;
}

void pg_crypt_probe(struct engine *e)
{
	unsigned char key[PG_FILES_KEY];
	int r = pg_policy_get(e->dir, key);
	e->encryption = r == -ENODATA ? 0 : r == 0 || r == -EEXIST ? -EEXIST : -EOPNOTSUPP;
}

int pg_can_encrypt(struct engine *e, struct arena *a, const char **ret_why)
{
	if (e->encryption == 0)
		return 0;
	if (e->encryption == -EEXIST) {
		*ret_why = arena_printf(a,
		                        "files cannot be encrypted in %s, because it lies in a directory that somebody "
		                        "else has encrypted: put --data elsewhere",
		                        e->dir)
		                   .p;
		return -EEXIST;
	}
	*ret_why = arena_printf(
	                   a,
	                   "files cannot be encrypted in %s, because its file system is without encryption: turn it on "
	                   "(tune2fs -O encrypt DEVICE), or make one that has it (mkfs.ext4 -O encrypt DEVICE) and put "
	                   "--data there",
	                   e->dir)
	                   .p;
	return e->encryption;
}

int pg_crypt_dir(const struct pg_cluster *c, const char *path)
{
	unsigned char key[PG_FILES_KEY];
	if (!c->data_key[0])
		return 0;
	int r = pg_policy_get(path, key);
	if (r != -ENODATA)
		return r;
	r = pg_policy_set(path, c->files_key);
	return r == -ENOTEMPTY ? 0 : r; /* one from before, which is turned into another later */
}

int pg_crypt_dir_of(struct engine *e, const char *cluster_id, const char *path)
{
	struct pg_cluster *c = cluster_id ? pg_cluster_find(e, cluster_id) : NULL;
	if (!c)
		return 0;
	int r = pg_crypt_is_shut(c) ? -ENOKEY : pg_crypt_dir(c, path);
	pg_cluster_put(c);
	return r;
}
