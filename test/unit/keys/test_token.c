/* Keys on a token, whose module is lost, slow, dead or refuses: token_module.c, which does what files say. */
#include "base/id.h"
#include "check.h"
#include "keys/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RIGHT_PIN "right-4711"
#define PATIENT_MS 120000

static char state[64];
static struct arena *arena;

static void path_of(const char *name, char ret_path[128])
{
	snprintf(ret_path, 128, "%s/%s", state, name);
}

static void put(const char *name, const char *text)
{
	char path[128];
	path_of(name, path);
	FILE *f = fopen(path, "we");
	if (f && text)
		fputs(text, f);
	if (f)
		fclose(f);
	if (!text)
		unlink(path);
}

/* How often a function was called since the last time. */
static unsigned calls(const char *function)
{
	char path[128], line[64];
	unsigned n = 0;
	path_of("calls", path);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		n += strncmp(line, function, strlen(function)) == 0;
	if (f)
		fclose(f);
	unlink(path);
	return n;
}

static struct key_settings settings(void)
{
	static char pin[128];
	path_of("pin-file", pin);
	return (struct key_settings){.pkcs11_module = getenv("TEST_TOKEN_MODULE"),
	                             .pkcs11_helper = getenv("TEST_TOKEN_HELPER"),
	                             .pkcs11_token = "steward",
	                             .pkcs11_keys = {.v = {"main", "other"}, .n = 2},
	                             .pkcs11_pin_file = pin};
}

static struct keys *token(const char *name, int64_t answer_ms)
{
	struct key_settings s = settings();
	struct keys *k = NULL;
	s.pkcs11_token = name;
	s.pkcs11_answer_ms = answer_ms;
	CHECK(keys_open(&s, NULL, &k) == 0);
	return k;
}

static struct key_place place(const char *project)
{
	return (struct key_place){.provider = PROVIDER_AWS, .group_id = str_of(project), .key = STR("pkcs11/main")};
}

/* All is as it should be. */
static void calm(void)
{
	put("fault", NULL);
	put("flags", NULL);
	put("pin", RIGHT_PIN);
	put("pin-file", RIGHT_PIN "\n");
	put("key", "0123456789abcdef0123456789abcdef");
	put("calls", NULL);
}

static int prove_in(struct arena *a, struct keys *k, char why[KEY_WHY])
{
	struct key_place p = place("0123456789abcdef01234567");
	struct key_wrap made;
	struct data_key key;
	why[0] = 0;
	data_key_new(&key);
	int r = key_prove(k, a, &p, &key, &made, why);
	data_key_free(&key);
	return r;
}

static int prove(struct keys *k, char why[KEY_WHY])
{
	int r = prove_in(arena, k, why);
	CHECK(!strstr(why, RIGHT_PIN) && !strstr(why, "wrong-"));
	return r;
}

static void test_settings(void)
{
	struct key_settings s = settings();
	struct keys *k = NULL;
	s.pkcs11_module = "/dev/null";
	CHECK(keys_open(&s, NULL, &k) < 0);
	s.pkcs11_module = NULL;
	CHECK(keys_open(&s, NULL, &k) < 0);
	s = settings();
	s.pkcs11_pin_file = NULL;
	CHECK(keys_open(&s, NULL, &k) < 0);
	s = settings();
	s.pkcs11_keys.v[1] = "a/b";
	CHECK(keys_open(&s, NULL, &k) < 0);
	CHECK(!k && calls("C_Initialize") == 0);
}

static void test_wraps(void)
{
	struct keys *k = token("steward", PATIENT_MS);
	struct key_place p = place("0123456789abcdef01234567"), other = place("ffffffffffffffffffffffff");
	struct key_wrap made;
	struct data_key key, back;
	const char *field;
	char why[KEY_WHY];
	data_key_new(&key);
	CHECK(key_wrap(k, arena, &p, &key, &made, why) == 0);
	CHECK(key_unwrap(k, &p, made.bytes, &back, why) == 0);
	CHECK(memcmp(back.bytes, key.bytes, DATA_KEY_BYTES) == 0);
	data_key_free(&back);
	CHECK(calls("C_Login") == 1);
	CHECK(key_unwrap(k, &other, made.bytes, &back, why) == -EACCES && strstr(why, "another one"));
	CHECK(key_unwrap(k, &p, STR("AAAA"), &back, why) == -EACCES);
	put("key", "another key, of 32 bytes as well");
	CHECK(key_unwrap(k, &p, made.bytes, &back, why) == -EACCES && strstr(why, "another one"));
	put("key", NULL);
	CHECK(key_unwrap(k, &p, made.bytes, &back, why) == -EACCES && strstr(why, "no AES key"));
	p.key = STR("pkcs11/nobody");
	CHECK(key_place_fault(k, &p, &field) && key_wrap(k, arena, &p, &key, &made, why) == -ENOTSUP);
	data_key_free(&key);
	keys_close(k);
	CHECK(calls("C_Finalize") >= 1);
	calm();
	k = token("0815", PATIENT_MS);
	CHECK(prove(k, why) == 0);
	keys_close(k);
}

/* What was lost once is got anew, in the same call; what stays away is told. */
static void test_lost(void)
{
	static const char *const once[] = {"C_FindObjectsInit b3", "C_Encrypt 32", "C_Encrypt crash",
	                                   "C_FindObjectsInit 101"};
	struct keys *k = token("steward", PATIENT_MS);
	char why[KEY_WHY];
	CHECK(prove(k, why) == 0 && calls("C_Login") == 1);
	for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
		put("fault", once[i]);
		CHECK(prove(k, why) == 0);
		CHECK(calls("C_Login") == 1);
	}
	put("fault", "C_Decrypt 30");
	CHECK(prove(k, why) == 0 && calls("C_Login") == 0); /* asked once more */
	put("fault", "C_OpenSession e0 always");
	CHECK(prove(k, why) == 0); /* the session is still there */
	put("fault", "C_FindObjectsInit 32 always");
	CHECK(prove(k, why) == -EHOSTUNREACH && strstr(why, "removed"));
	put("fault", "C_Initialize 30 always");
	CHECK(prove(k, why) == -EHOSTUNREACH && strstr(why, "C_Initialize"));
	put("fault", "C_Encrypt crash always");
	CHECK(prove(k, why) == -EHOSTUNREACH);
	put("fault", NULL);
	CHECK(prove(k, why) == 0);
	keys_close(k);
	k = token("nobody", PATIENT_MS);
	CHECK(prove(k, why) == -EHOSTUNREACH && strstr(why, "not there"));
	keys_close(k);
}

/* A PIN that was refused is not tried again, whoever asks; another one is. */
static void test_pin(void)
{
	struct keys *k = token("steward", PATIENT_MS);
	char why[KEY_WHY];
	put("pin-file", "wrong-1");
	for (unsigned i = 0; i < 4; i++)
		CHECK(prove(k, why) == -EKEYREJECTED);
	CHECK(strstr(why, "not tried again") && calls("C_Login") == 1);
	put("pin-file", "wrong-2\n");
	CHECK(prove(k, why) == -EKEYREJECTED && prove(k, why) == -EKEYREJECTED && calls("C_Login") == 1);
	put("pin-file", NULL);
	CHECK(prove(k, why) == -EKEYREJECTED && calls("C_Login") == 0);
	put("pin-file", RIGHT_PIN);
	put("flags", "20000"); /* one more would lock it */
	CHECK(prove(k, why) == -EKEYREJECTED && strstr(why, "would lock") && calls("C_Login") == 0);
	put("flags", "40000");
	CHECK(prove(k, why) == -EKEYREJECTED && strstr(why, "is locked") && calls("C_Login") == 0);
	put("flags", NULL);
	CHECK(prove(k, why) == 0 && calls("C_Login") == 1);
	keys_close(k);
}

static void *prove_some(void *keys)
{
	struct arena *a = arena_new();
	char why[KEY_WHY];
	int r = 0;
	for (unsigned i = 0; r == 0 && i < 5; i++)
		r = prove_in(a, keys, why);
	arena_free(a);
	return r == 0 ? keys : NULL;
}

static void test_at_once(void)
{
	struct keys *k = token("steward", PATIENT_MS);
	pthread_t threads[4];
	for (size_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, prove_some, k) == 0);
	for (size_t i = 0; i < 4; i++) {
		void *good = NULL;
		pthread_join(threads[i], &good);
		CHECK(good == k);
	}
	CHECK(calls("C_Login") == 1);
	keys_close(k);
}

static void test_hangs(void)
{
	struct keys *k = token("steward", 500);
	char why[KEY_WHY], path[128];
	int pid = 0;
	put("fault", "C_Initialize hang");
	path_of("hung", path);
	while (!pid) { /* it may be too slow even to come to where it hangs */
		CHECK(prove(k, why) == -ETIMEDOUT && strstr(why, "no answer in time"));
		FILE *f = fopen(path, "re");
		if (f && fscanf(f, "%d", &pid) != 1)
			pid = 0;
		if (f)
			fclose(f);
		if (!pid)
			put("fault", "C_Initialize hang");
	}
	CHECK(kill(pid, 0) < 0 && errno == ESRCH);
	keys_close(k);
	calm();
	k = token("steward", PATIENT_MS);
	CHECK(prove(k, why) == 0);
	keys_close(k);
}

int main(void)
{
	snprintf(state, sizeof state, "/tmp/steward-token.XXXXXX");
	if (!mkdtemp(state) || setenv("TOKEN_STATE", state, 1) < 0)
		return 1;
	arena = arena_new();
	calm();
	test_settings();
	test_wraps();
	calm();
	test_lost();
	calm();
	test_pin();
	calm();
	test_at_once();
	calm();
	test_hangs();
	arena_free(arena);
	static const char *const files[] = {"calls", "fault", "flags", "hung", "key", "pin", "pin-file"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		put(files[i], NULL);
	CHECK(rmdir(state) == 0);
	return CHECK_DONE();
}
