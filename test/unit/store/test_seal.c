/* Secrets at rest. */
#include "check.h"

#include "base/id.h"
#include "store/keyring.h"
#include "store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_values(void)
{
	struct arena *a = arena_new();
	struct str plain = STR("a private key"), got = STR_NONE;
	struct str one = seal(a, plain, STR("api_key/1")), two = seal(a, plain, STR("api_key/1"));
	CHECK(!str_eq(one, two));
	CHECK(seal_open(a, one, STR("api_key/1"), &got) == 0 && str_eq(got, plain));
	CHECK(seal_open(a, one, STR("api_key/2"), &got) == -EBADMSG);
	CHECK(seal_open(a, one, STR(""), &got) == -EBADMSG);
	CHECK(seal_open(a, STR(""), STR("api_key/1"), &got) == -EBADMSG);
	CHECK(seal_open(a, STR("AAAA"), STR("api_key/1"), &got) == -EBADMSG);
	CHECK(seal_open(a, (struct str){one.p, one.n - 1}, STR("api_key/1"), &got) == -EBADMSG);
	for (size_t i = 0; i < one.n; i++) {
		char *bent = arena_z(a, one);
		bent[i] = bent[i] == 'A' ? 'B' : 'A';
		if (seal_open(a, (struct str){bent, one.n}, STR("api_key/1"), &got) != -EBADMSG)
			CHECK(!"every character is authenticated");
		bent[i] = '=';
		CHECK(seal_open(a, (struct str){bent, one.n}, STR("api_key/1"), &got) == -EBADMSG);
	}
	for (size_t n = 0; n < 70; n++) {
		char text[70];
		random_bytes(text, n);
		struct str sealed = seal(a, (struct str){text, n}, STR_NONE);
		CHECK(seal_open(a, sealed, STR_NONE, &got) == 0 && str_eq(got, (struct str){text, n}));
	}
	arena_free(a);
}

static void test_macs(void)
{
	unsigned char x[32], y[32], z[32];
	char hex[65];
	seal_mac("tokens", STR("message"), x);
	seal_mac("nonces", STR("message"), y);
	seal_mac("tokens", STR("message"), z);
	CHECK(memcmp(x, z, 32) == 0 && memcmp(x, y, 32) != 0);
	seal_mac("tokens", STR_NONE, y);
	CHECK(memcmp(x, y, 32) != 0);
	sha256_hex(STR("abc"), hex);
	CHECK(str_is(str_of(hex), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	sha256_hex(STR_NONE, hex);
	CHECK(str_is(str_of(hex), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
}

static void *thread_main(void *arg)
{
	struct arena *a = arena_new();
	unsigned char mac[32];
	struct str got;
	bool ok = true;
	for (int i = 0; i < 200; i++) {
		struct str sealed = seal(a, STR("x"), STR("c"));
		ok = ok && seal_open(a, sealed, STR("c"), &got) == 0;
		seal_mac("tokens", STR("message"), mac);
		arena_reset(a);
	}
	arena_free(a);
	return ok ? arg : NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread_main, threads);
	for (int i = 0; i < 4; i++) {
		void *result;
		pthread_join(threads[i], &result);
		CHECK(result != NULL);
	}
}

static void test_key_file(const char *dir, const char *path)
{
	unsigned char before[32], after[32];
	struct stat info;
	seal_mac("x", STR("m"), before);
	CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600 && info.st_size == 32);
	CHECK(seal_setup(dir) == 0);
	seal_mac("x", STR("m"), after);
	CHECK(memcmp(before, after, 32) == 0);
	int saved = dup(2), null = open("/dev/null", O_WRONLY);
	dup2(null, 2);
	chmod(path, 0640);
	int wide = seal_setup(dir);
	chmod(path, 0600);
	int cut = truncate(path, 31), small = seal_setup(dir);
	unlink(path);
	mkdir(path, 0700);
	int folder = seal_setup(dir);
	rmdir(path);
	int nowhere = seal_setup("/nonexistent/dir");
	dup2(saved, 2);
	close(saved);
	close(null);
	CHECK(wide == -EPERM && cut == 0 && small == -EINVAL && folder < 0 && nowhere == -ENOENT);
}

static void ring_write(const char *dir, const struct keyring *ring)
{
	CHECK(keyring_replace(dir, ring) == 0);
}

/* Old and new side by side: each opens its own, the one in use seals, and what must last does not change. */
static void test_rotation(const char *dir, const char *path)
{
	struct arena *a = arena_new();
	struct keyring one = {0}, two;
	struct str got = STR_NONE, old, fresh;
	unsigned char before[32], after[32], lasting[32], mac[32];
	char names[2][65];
	unsigned key = 9;
	unlink(path);
	CHECK(seal_setup(dir) == 0 && keyring_read(dir, &one) == 0 && one.count == 1);
	old = seal(a, STR("x"), STR("c"));
	seal_mac("token", STR("m"), before);
	seal_mac_lasting("user id", STR("m"), lasting);
	seal_mac("user id", STR("m"), mac);
	CHECK(memcmp(lasting, mac, 32) == 0); /* as it was before there were rotations */
	two = one;
	two.count = 2;
	memcpy(two.keys[1], one.keys[0], KEY_SIZE);
	random_bytes(two.keys[0], KEY_SIZE);
	ring_write(dir, &two);
	CHECK(seal_reload(dir) == 1 && seal_reload(dir) == 0 && seal_key_count() == 2 && seal_key_active() == 1);
	CHECK(seal_open_by(a, seal(a, STR("y"), STR("c")), STR("c"), &got, &key) == 0 && key == 1);
	seal_key_name(0, names[0]);
	seal_key_name(1, names[1]);
	CHECK(seal_key_use(STR("nobody")) == -ENOKEY && seal_key_use(str_of(names[0])) == 0 && seal_key_active() == 0);
	fresh = seal(a, STR("y"), STR("c"));
	CHECK(seal_open_by(a, fresh, STR("c"), &got, &key) == 0 && key == 0);
	CHECK(seal_open_by(a, old, STR("c"), &got, &key) == 0 && key == 1 && str_is(got, "x"));
	CHECK(seal_open(a, old, STR("d"), &got) == -EBADMSG);
	seal_mac("token", STR("m"), after);
	CHECK(memcmp(before, after, 32) != 0 && seal_mac_is("token", STR("m"), before, 32) &&
	      seal_mac_is("token", STR("m"), after, 32) && !seal_mac_is("token", STR("n"), after, 32));
	/* A file that lacks the key in use is not taken. */
	ring_write(dir, &one);
	CHECK(seal_reload(dir) == -ENOKEY && seal_key_count() == 2);
	struct str kept = seal_lasting_keep(a);
	two.count = 1;
	ring_write(dir, &two);
	CHECK(seal_reload(dir) == 1 && seal_key_count() == 1);
	/* Who had counted the keys just before asks for one that is gone: it has no name, and the process goes on. */
	seal_key_name(1, names[1]);
	CHECK(!names[1][0]);
	CHECK(seal_open(a, old, STR("c"), &got) == -EBADMSG && seal_open(a, fresh, STR("c"), &got) == 0);
	CHECK(!seal_mac_is("token", STR("m"), before, 32));
	seal_mac_lasting("user id", STR("m"), mac);
	CHECK(memcmp(lasting, mac, 32) == 0);
	/* After a start, it comes from the store. */
	CHECK(seal_read(dir) == 0 && seal_lasting_take(a, kept, &key) == 0 && key == 0);
	seal_mac_lasting("user id", STR("m"), mac);
	CHECK(memcmp(lasting, mac, 32) == 0);
	CHECK(seal_is_sealed(fresh) && !seal_is_sealed(STR("$2b$12$abcdefghijklmnopqrstuvwxyzabcdefghijklmnop")) &&
	      !seal_is_sealed(STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")));
	arena_free(a);
}

int main(void)
{
	char dir[] = "/tmp/steward-seal-XXXXXX", path[64];
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/secret.key", dir);
	CHECK(seal_setup(dir) == 0);
	test_values();
	test_macs();
	test_threads();
	test_key_file(dir, path);
	test_rotation(dir, path);
	unlink(path);
	rmdir(dir);
	return CHECK_DONE();
}
