/* Keys on the operator's PKCS #11 token (an HSM, a smart card, SoftHSM), for people who trust neither a file nor a
 * cloud. A data key is wrapped by the token, with AES-GCM under one of its keys, and the project's id is authenticated
 * with that. The module is loaded by a program of its own, steward-token, which is started when it is needed, asked one
 * question at a time, and killed when it does not answer.
 *
 * Tokens lock themselves after some wrong PINs. One that was refused is never sent again: only another one is. */
#include "keys/token.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/option.h"
#include "keys/services.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELPER "steward-token" /* beside this program */
#define ANSWER_MS 15000
#define LOAD_MS 60000 /* at the start, when nobody waits */
#define END_MS 2000   /* to let go of the token; then it is killed */
#define WRAPPED (TOKEN_NONCE + TOKEN_SEALED)
#define PIN_VARIABLE "STEWARD_KEYS_PKCS11_PIN"

struct token {
	char *helper, *module, *name, *pin_file;
	char *keys[OPTION_TEXTS_MAX];
	size_t key_count;
	int64_t answer_ms;
	pthread_mutex_t lock; /* of what follows */
	int fd;               /* of the running helper; -1: none */
	pid_t pid;
	bool has_refused;
	unsigned char salt[16], refused[EVP_MAX_MD_SIZE]; /* the digest of the PIN that the token has refused */
};

/* The helper. */

/* As ours, because modules are configured by it, but without what is the service's own. On the heap. */
static char **environment_make(void)
{
	size_t n = 0, kept = 0;
	while (environ[n])
		n++;
	char **list = must_calloc(n + 1, sizeof *list);
	for (size_t i = 0; i < n; i++)
		if (strncmp(environ[i], "STEWARD_", 8) != 0)
			list[kept++] = environ[i];
	return list;
}

/* What modules print may have secrets in it, so nobody sees it. */
static int helper_start(struct token *t)
{
	char *argv[] = {t->helper, t->module, t->name, NULL}, **environment;
	int ends[2];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	environment = environment_make();
	int error = posix_spawn(&t->pid, t->helper, &actions, &attributes, argv, environment);
	free(environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(ends[1]);
	if (error)
		close(ends[0]);
	else
		t->fd = ends[0];
	return -error;
}

/* Without its socket it ends by itself. */
static void helper_end(struct token *t, int ms)
{
	if (t->fd < 0)
		return;
	int pidfd = pidfd_open(t->pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	close(t->fd);
	t->fd = -1;
	if (pidfd >= 0) {
		(void)!poll(&p, 1, ms);
		close(pidfd);
	}
	kill(t->pid, SIGKILL);
	/* One that a driver holds does not end now: it is left behind. */
	for (int i = 0; i < 100 && waitpid(t->pid, NULL, WNOHANG) == 0; i++)
		usleep(10000);
}

/* One question: the bytes go from and to where the caller has them, which is memory for keys. */
static int exchange(struct token *t, struct token_question *q, struct iovec in, struct token_answer *ret_answer,
                    struct iovec out)
{
	struct iovec asked[] = {{q, sizeof *q}, in}, answered[] = {{ret_answer, sizeof *ret_answer}, out};
	struct msghdr ask = {.msg_iov = asked, .msg_iovlen = 2}, answer = {.msg_iov = answered, .msg_iovlen = 2};
	struct pollfd p = {.fd = t->fd, .events = POLLIN};
	int64_t until = clock_mono_us() + t->answer_ms * 1000;
	int n = 0;
	if (sendmsg(t->fd, &ask, MSG_NOSIGNAL) < 0)
		return -EPIPE;
	do {
		int64_t left = (until - clock_mono_us()) / 1000;
		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return -ETIMEDOUT;
	if (recvmsg(t->fd, &answer, 0) != (ssize_t)(sizeof *ret_answer + out.iov_len))
		return -EPIPE;
	ret_answer->why[sizeof ret_answer->why - 1] = 0;
	return 0;
}

/* A helper that has a session from before may have lost its token since. What it says against token or key is believed
 * when a new one says it too. The caller holds the lock. */
static int helper_ask(struct token *t, struct token_question *q, struct iovec in, struct token_answer *ret_answer,
                      struct iovec out)
{
	for (;;) {
		bool is_new = t->fd < 0;
		int r = is_new ? helper_start(t) : 0;
		if (r == 0)
			r = exchange(t, q, in, ret_answer, out);
		enum token_result result = r == 0 ? ret_answer->result : TOKEN_AWAY;
		if (result != TOKEN_GOOD)
			helper_end(t, r == 0 ? END_MS : 0);
		if (is_new || r == -ETIMEDOUT || (result != TOKEN_AWAY && result != TOKEN_KEY_REFUSED))
			return r;
	}
}

/* The PIN. */

static bool pin_read(const struct token *t, char ret_pin[TOKEN_PIN])
{
	const char *given = getenv(PIN_VARIABLE);
	size_t n = 0;
	if (t->pin_file) {
		int fd = open(t->pin_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t got = fd < 0 ? -1 : read(fd, ret_pin, TOKEN_PIN);
		n = got > 0 ? (size_t)got : 0;
		if (fd >= 0)
			close(fd);
	} else if (given && strlen(given) < TOKEN_PIN) {
		n = strlen(given);
		memcpy(ret_pin, given, n);
	}
	while (n && (ret_pin[n - 1] == '\n' || ret_pin[n - 1] == '\r'))
		n--;
	if (!n || n >= TOKEN_PIN)
		return false;
	ret_pin[n] = 0;
	return strlen(ret_pin) == n;
}

static void pin_digest(const struct token *t, const char *pin, unsigned char ret_digest[EVP_MAX_MD_SIZE])
{
	unsigned char salted[sizeof t->salt + TOKEN_PIN];
	memcpy(salted, t->salt, sizeof t->salt);
	memcpy(salted + sizeof t->salt, pin, strlen(pin));
	memset(ret_digest, 0, EVP_MAX_MD_SIZE);
	EVP_Digest(salted, sizeof t->salt + strlen(pin), ret_digest, NULL, EVP_sha256(), NULL);
	OPENSSL_cleanse(salted, sizeof salted);
}

static bool pin_was_refused(const struct token *t, const char *pin)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	pin_digest(t, pin, digest);
	return t->has_refused && CRYPTO_memcmp(digest, t->refused, sizeof digest) == 0;
}

static void pin_refuse(struct token *t, const char *pin)
{
	pin_digest(t, pin, t->refused);
	t->has_refused = true;
}

/* Settings. */

static int module_check(struct token *t)
{
	struct token_question q = {.task = TOKEN_LOAD};
	struct token_answer answer = {.why = ""};
	int r = helper_ask(t, &q, (struct iovec){0}, &answer, (struct iovec){0});
	if (r == 0 && answer.result == TOKEN_GOOD)
		return 0;
	return option_refuse("--keys-pkcs11-module: %s: %s", t->module,
	                     r == -ETIMEDOUT ? "does not come to an end when it is loaded"
	                     : r < 0         ? "ends the program that loads it"
	                                     : answer.why);
}

static int settings_check(const struct key_settings *s)
{
	const char *pin = getenv(PIN_VARIABLE);
	if (!s->pkcs11_module)
		return option_refuse("--keys-pkcs11-module is missing: the other settings of a token need it");
	if (!s->pkcs11_token || !s->pkcs11_keys.n)
		return option_refuse("--keys-pkcs11-module: which token and which of its keys is missing, by "
		                     "--keys-pkcs11-token and --keys-pkcs11-key");
	if (!s->pkcs11_pin_file && !(pin && *pin))
		return option_refuse("--keys-pkcs11-module: the token's PIN is missing, by --keys-pkcs11-pin-file or "
		                     "by " PIN_VARIABLE " in the environment");
	for (size_t i = 0; i < s->pkcs11_keys.n; i++) {
		struct str label = str_of(s->pkcs11_keys.v[i]);
		if (!label.n || label.n >= TOKEN_LABEL || !text_is_plain(label, "-_"))
			return option_refuse("--keys-pkcs11-key: \"%s\" must be at most %d letters, digits, hyphens "
			                     "and underscores",
			                     s->pkcs11_keys.v[i], TOKEN_LABEL - 1);
	}
	return 0;
}

int token_open(const struct key_settings *s, struct token **ret_token)
{
	char helper[4200];
	if (!s->pkcs11_module && !s->pkcs11_token && !s->pkcs11_keys.n && !s->pkcs11_pin_file)
		return 0;
	int r = settings_check(s);
	if (r < 0)
		return r;
	if (!s->pkcs11_helper && !file_beside_program(HELPER, helper, sizeof helper))
		return option_refuse("--keys-pkcs11-module: " HELPER " does not lie beside this program; it is built "
		                     "where libp11-kit-dev is installed");
	struct token *t = must_calloc(1, sizeof *t);
	char *real = realpath(s->pkcs11_module, NULL);
	t->helper = must_strdup(s->pkcs11_helper ? s->pkcs11_helper : helper);
	t->module = must_strdup(real ? real : s->pkcs11_module);
	t->name = must_strdup(s->pkcs11_token);
	t->pin_file = s->pkcs11_pin_file ? must_strdup(s->pkcs11_pin_file) : NULL;
	while (t->key_count < s->pkcs11_keys.n) {
		t->keys[t->key_count] = must_strdup(s->pkcs11_keys.v[t->key_count]);
		t->key_count++;
	}
	t->answer_ms = LOAD_MS;
	t->fd = -1;
	random_bytes(t->salt, sizeof t->salt);
	pthread_mutex_init(&t->lock, NULL);
	free(real);
	*ret_token = t;
	r = module_check(t);
	t->answer_ms = s->pkcs11_answer_ms ? s->pkcs11_answer_ms : ANSWER_MS;
	return r;
}

void token_close(struct token *t)
{
	if (!t)
		return;
	helper_end(t, END_MS);
	for (size_t i = 0; i < t->key_count; i++)
		free(t->keys[i]);
	free(t->helper);
	free(t->module);
	free(t->name);
	free(t->pin_file);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Keys. */

static struct str label_of(const struct key_place *p)
{
	return (struct str){p->key.p + 7, p->key.n - 7};
}

static bool has_key(const struct token *t, struct str label)
{
	bool found = false;
	for (size_t i = 0; t && i < t->key_count; i++)
		found = found || str_is(label, t->keys[i]);
	return found;
}

const char *token_place_fault(const struct keys *k, const struct key_place *p, const char **ret_field)
{
	*ret_field = "customerMasterKeyID";
	if (!k->token)
		return "names a key on the operator's token, who has none (--keys-pkcs11-module)";
	return has_key(k->token, label_of(p)) ? NULL : "names no key on the token that the operator offers";
}

/* Asks, and turns the answer into a result. The caller holds the lock. */
static int token_ask(struct token *t, struct token_question *q, struct iovec in, struct token_answer *ret_answer,
                     struct iovec out, char *why)
{
	struct provider_request about = {.what = "the operator's token"};
	bool has_pin = pin_read(t, q->pin);
	if (!has_pin) /* a helper that is logged in needs none */
		OPENSSL_cleanse(q->pin, sizeof q->pin);
	if (has_pin && pin_was_refused(t, q->pin))
		return provider_fail(&about, -EKEYREJECTED, why,
		                     ": it has refused its PIN, which is not tried again before it is changed");
	int r = helper_ask(t, q, in, ret_answer, out);
	if (r == -ETIMEDOUT)
		return provider_fail(&about, r, why, ": no answer in time");
	if (r < 0)
		return provider_fail(&about, -EHOSTUNREACH, why, ": no answer of its module (%s)", strerror(-r));
	if (ret_answer->result == TOKEN_PIN_REFUSED)
		pin_refuse(t, q->pin);
	switch (ret_answer->result) {
	case TOKEN_GOOD: return 0;
	case TOKEN_KEY_REFUSED: return provider_fail(&about, -EACCES, why, ": %s", ret_answer->why);
	case TOKEN_PIN_REFUSED:
	case TOKEN_PIN_SHUT: return provider_fail(&about, -EKEYREJECTED, why, ": %s", ret_answer->why);
	default: return provider_fail(&about, -EHOSTUNREACH, why, ": %s", ret_answer->why);
	}
}

/* `nonce` is the question's, and becomes the answer's. */
static int token_run(struct token *t, const struct key_place *p, enum token_task task, unsigned char *nonce,
                     struct iovec in, struct iovec out, char *why)
{
	struct provider_request about = {.what = "the operator's token"};
	struct token_question q = {.task = task};
	struct token_answer answer = {.why = ""};
	if (!has_key(t, label_of(p)))
		return provider_fail(&about, -ENOTSUP, why, ": the operator does not offer %.*s", STR_ARG(p->key));
	int64_t until_us = clock_mono_us() + t->answer_ms * 1000;
	struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
	str_copy(label_of(p), q.key, sizeof q.key);
	str_copy(p->group_id, q.project, sizeof q.project);
	memcpy(q.nonce, nonce, TOKEN_NONCE);
	if (pthread_mutex_clocklock(&t->lock, CLOCK_MONOTONIC, &until) != 0)
		return provider_fail(&about, -ETIMEDOUT, why, ": it is busy, and gave no answer in time");
	int r = token_ask(t, &q, in, &answer, out, why);
	pthread_mutex_unlock(&t->lock);
	OPENSSL_cleanse(q.pin, sizeof q.pin);
	memcpy(nonce, answer.nonce, TOKEN_NONCE);
	return r;
}

static int wrap(struct keys *k, struct arena *a, const struct key_place *p, const unsigned char *plain,
                struct key_wrap *ret_wrap, char *why)
{
	unsigned char wrapped[WRAPPED];
	char *text = arena_alloc(a, BASE64_TEXT(WRAPPED));
	struct iovec in = {(void *)(uintptr_t)plain, TOKEN_PLAIN}, out = {wrapped + TOKEN_NONCE, TOKEN_SEALED};
	random_bytes(wrapped, TOKEN_NONCE);
	int r = token_run(k->token, p, TOKEN_WRAP, wrapped, in, out, why);
	if (r < 0)
		return r;
	base64url_encode(wrapped, sizeof wrapped, text);
	ret_wrap->bytes = str_of(text);
	ret_wrap->version = arena_dup(a, p->key);
	return 0;
}

static int unwrap(struct keys *k, const struct key_place *p, struct str bytes, unsigned char *ret_plain, char *why)
{
	struct provider_request about = {.what = "the operator's token"};
	unsigned char wrapped[WRAPPED];
	struct iovec in = {wrapped + TOKEN_NONCE, TOKEN_SEALED}, out = {ret_plain, TOKEN_PLAIN};
	if (base64_decode(bytes, wrapped, sizeof wrapped) != WRAPPED)
		return provider_fail(&about, -EACCES, why, ": the data key was not wrapped by one");
	return token_run(k->token, p, TOKEN_UNWRAP, wrapped, in, out, why);
}

_Static_assert(TOKEN_PLAIN == DATA_KEY_BYTES, "data keys are what it wraps");
const struct key_service token_keys = {wrap, unwrap};
