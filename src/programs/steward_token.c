/* steward-token MODULE TOKEN: the operator's PKCS #11 module, in a process of its own. Modules are foreign code that
 * starts threads, keeps files and devices open, changes OpenSSL's settings, and may hang or crash: none of that shall
 * be the service's, nor be inherited by its databases. Answers the questions of keys/token.h on its standard input.
 *
 * A data key is encrypted by the token with AES-GCM; the token's key is never asked for. The session is kept between
 * questions. After a failure the program ends: the next one loads the module, looks for the token and logs in anew.
 * Words are shown to tenants, so they do not tell the operator's names. */
#include "confine/confine.h"
#include "keys/token.h"

#define CRYPTOKI_GNU
#include <dlfcn.h>
#include <p11-kit/pkcs11.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_SECONDS 60 /* for one question; the service gives up before, but may be gone */
#define SLOTS_MAX 256
#define ROOM 128 /* modules may want more of it than the result takes */

static struct ck_function_list *module;
static const char *token_name;
static ck_session_handle_t session;
static bool is_initialized, is_open;

/* What passes through: the PIN and data keys. */
static struct {
	struct token_question question;
	struct token_answer answer;
	unsigned char in[TOKEN_SEALED], out[ROOM];
} secret;

static enum token_result fail(enum token_result result, const char *format, const char *about)
{
	snprintf(secret.answer.why, sizeof secret.answer.why, format, about);
	return result;
}

/* What a return value says about what was asked of a key; all others are the token's. */
static bool is_about_key(ck_rv_t rv)
{
	switch (rv) {
	case CKR_KEY_FUNCTION_NOT_PERMITTED:
	case CKR_KEY_HANDLE_INVALID:
	case CKR_KEY_SIZE_RANGE:
	case CKR_KEY_TYPE_INCONSISTENT:
	case CKR_MECHANISM_INVALID:
	case CKR_MECHANISM_PARAM_INVALID:
	case CKR_ENCRYPTED_DATA_INVALID:
	case CKR_ENCRYPTED_DATA_LEN_RANGE: return true;
	default: return false;
	}
}

static bool is_about_pin(ck_rv_t rv)
{
	switch (rv) {
	case CKR_PIN_INCORRECT:
	case CKR_PIN_INVALID:
	case CKR_PIN_LEN_RANGE:
	case CKR_PIN_EXPIRED: return true;
	default: return false;
	}
}

static enum token_result fail_rv(enum token_result result, const char *call, ck_rv_t rv)
{
	snprintf(secret.answer.why, sizeof secret.answer.why, "%s answered 0x%lx%s", call, rv,
	         rv == CKR_PIN_INCORRECT           ? " (the PIN is wrong)"
	         : rv == CKR_PIN_LOCKED            ? " (the PIN is locked)"
	         : rv == CKR_DEVICE_REMOVED        ? " (the token was removed)"
	         : rv == CKR_MECHANISM_INVALID     ? " (it does not offer AES-GCM)"
	         : rv == CKR_KEY_TYPE_INCONSISTENT ? " (it is no AES key)"
	                                           : "");
	return result;
}

/* From the module to a session. */

static enum token_result module_load(const char *path)
{
	ck_rv_t (*list)(struct ck_function_list **) = NULL;
	if (module)
		return TOKEN_GOOD;
	void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!file)
		return fail(TOKEN_AWAY, "%s",
		            secret.question.task == TOKEN_LOAD ? dlerror() : "its module cannot be loaded");
	void *symbol = dlsym(file, "C_GetFunctionList");
	memcpy(&list, &symbol, sizeof list);
	if (!list || list(&module) != CKR_OK || !module)
		return fail(TOKEN_AWAY, "%s", "its module has no C_GetFunctionList: it is none of PKCS #11");
	return TOKEN_GOOD;
}

static enum token_result module_start(void)
{
	struct ck_c_initialize_args locks = {.flags = CKF_OS_LOCKING_OK};
	if (is_initialized)
		return TOKEN_GOOD;
	ck_rv_t rv = module->C_Initialize(&locks);
	if (rv == CKR_CANT_LOCK) /* there is but one thread here */
		rv = module->C_Initialize(NULL);
	is_initialized = rv == CKR_OK || rv == CKR_CRYPTOKI_ALREADY_INITIALIZED;
	return is_initialized ? TOKEN_GOOD : fail_rv(TOKEN_AWAY, "C_Initialize", rv);
}

/* Texts of tokens are filled up with spaces. */
static bool is_called(const unsigned char *text, size_t size, const char *name)
{
	size_t n = strlen(name);
	if (!n || n > size || memcmp(text, name, n) != 0)
		return false;
	while (n < size && (text[n] == ' ' || !text[n]))
		n++;
	return n == size;
}

static enum token_result slot_find(ck_slot_id_t *ret_slot, ck_flags_t *ret_flags)
{
	ck_slot_id_t slots[SLOTS_MAX];
	unsigned long n = SLOTS_MAX, found = 0;
	ck_rv_t rv = module->C_GetSlotList(true, slots, &n);
	if (rv != CKR_OK)
		return fail_rv(TOKEN_AWAY, "C_GetSlotList", rv);
	for (unsigned long i = 0; i < n; i++) {
		struct ck_token_info info;
		if (module->C_GetTokenInfo(slots[i], &info) != CKR_OK ||
		    !(is_called(info.label, sizeof info.label, token_name) ||
		      is_called(info.serial_number, sizeof info.serial_number, token_name)))
			continue;
		*ret_slot = slots[i];
		*ret_flags = info.flags;
		found++;
	}
	return found == 1 ? TOKEN_GOOD
	                  : fail(TOKEN_AWAY, "%s",
	                         found ? "several have its label: its serial number is needed" : "it is not there");
}

/* A PIN that is refused makes a token lock itself after some more: the last attempt is left to people. */
static enum token_result log_in(ck_flags_t flags)
{
	char *pin = secret.question.pin;
	if (!(flags & CKF_LOGIN_REQUIRED))
		return TOKEN_GOOD;
	if (!*pin)
		return fail(TOKEN_PIN_SHUT, "%s", "its PIN cannot be read");
	if (flags & CKF_USER_PIN_LOCKED)
		return fail(TOKEN_PIN_SHUT, "%s", "the token's PIN is locked");
	if (flags & CKF_USER_PIN_FINAL_TRY)
		return fail(TOKEN_PIN_SHUT, "%s",
		            "one more wrong PIN would lock the token: log in to it once by its own tools");
	ck_rv_t rv = module->C_Login(session, CKU_USER, (unsigned char *)pin, strlen(pin));
	if (rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN)
		return TOKEN_GOOD;
	bool shut = rv == CKR_PIN_LOCKED || rv == CKR_USER_PIN_NOT_INITIALIZED; /* whatever PIN was given */
	return fail_rv(shut ? TOKEN_PIN_SHUT : is_about_pin(rv) ? TOKEN_PIN_REFUSED : TOKEN_AWAY, "C_Login", rv);
}

static enum token_result session_open(void)
{
	ck_slot_id_t slot = 0;
	ck_flags_t flags = 0;
	if (is_open)
		return TOKEN_GOOD;
	enum token_result result = slot_find(&slot, &flags);
	if (result != TOKEN_GOOD)
		return result;
	ck_rv_t rv = module->C_OpenSession(slot, CKF_SERIAL_SESSION, NULL, NULL, &session);
	if (rv != CKR_OK)
		return fail_rv(TOKEN_AWAY, "C_OpenSession", rv);
	result = log_in(flags);
	is_open = result == TOKEN_GOOD;
	if (!is_open)
		module->C_CloseSession(session);
	return result;
}

/* Keys. */

/* A key whose value can be read is no better than a file. What a token does not tell is taken to be right. */
static enum token_result key_look(ck_object_handle_t key)
{
	unsigned char sensitive = 1;
	unsigned long size = TOKEN_PLAIN;
	struct ck_attribute wanted[] = {{CKA_SENSITIVE, &sensitive, sizeof sensitive},
	                                {CKA_VALUE_LEN, &size, sizeof size}};
	module->C_GetAttributeValue(session, key, wanted, 2);
	if (!sensitive)
		return fail(TOKEN_KEY_REFUSED, "its key %s is not sensitive: whoever logs in can read it",
		            secret.question.key);
	return size == TOKEN_PLAIN ? TOKEN_GOOD
	                           : fail(TOKEN_KEY_REFUSED, "its key %s has not 256 bits", secret.question.key);
}

/* Looked for each time: it may have been deleted or replaced. */
static enum token_result key_find(ck_object_handle_t *ret_key)
{
	ck_object_class_t class = CKO_SECRET_KEY;
	ck_key_type_t type = CKK_AES;
	ck_object_handle_t found[2];
	unsigned long n = 0;
	struct ck_attribute wanted[] = {{CKA_CLASS, &class, sizeof class},
	                                {CKA_KEY_TYPE, &type, sizeof type},
	                                {CKA_LABEL, secret.question.key, strlen(secret.question.key)}};
	ck_rv_t rv = module->C_FindObjectsInit(session, wanted, sizeof wanted / sizeof *wanted);
	if (rv == CKR_OK)
		rv = module->C_FindObjects(session, found, 2, &n);
	if (rv != CKR_OK)
		return fail_rv(TOKEN_AWAY, "C_FindObjects", rv);
	module->C_FindObjectsFinal(session);
	if (n != 1)
		return fail(TOKEN_KEY_REFUSED, n ? "it has several AES keys %s" : "it has no AES key %s",
		            secret.question.key);
	*ret_key = found[0];
	return key_look(found[0]);
}

static ck_rv_t encrypt_or_decrypt(bool decrypt, ck_object_handle_t key, unsigned char *nonce, unsigned long *ret_n)
{
	char *project = secret.question.project;
	struct ck_gcm_params gcm = {.iv_ptr = nonce,
	                            .iv_len = TOKEN_NONCE,
	                            .iv_bits = TOKEN_NONCE * 8ul,
	                            .aad_ptr = (unsigned char *)project,
	                            .aad_len = strlen(project),
	                            .tag_bits = TOKEN_TAG * 8ul};
	struct ck_mechanism mechanism = {CKM_AES_GCM, &gcm, sizeof gcm};
	*ret_n = ROOM;
	ck_rv_t rv = decrypt ? module->C_DecryptInit(session, &mechanism, key)
	                     : module->C_EncryptInit(session, &mechanism, key);
	if (rv != CKR_OK)
		return rv;
	return decrypt ? module->C_Decrypt(session, secret.in, TOKEN_SEALED, secret.out, ret_n)
	               : module->C_Encrypt(session, secret.in, TOKEN_PLAIN, secret.out, ret_n);
}

/* Modules do not agree on what they answer when the key is not the one that has encrypted. One that still encrypts is
 * there, so the failure was about what it was given. */
static bool still_encrypts(ck_object_handle_t key)
{
	unsigned char nonce[TOKEN_NONCE];
	unsigned long n;
	return getrandom(nonce, sizeof nonce, 0) == (ssize_t)sizeof nonce &&
	       encrypt_or_decrypt(false, key, nonce, &n) == CKR_OK;
}

static enum token_result work(void)
{
	bool unwrap = secret.question.task == TOKEN_UNWRAP;
	ck_object_handle_t key = 0;
	unsigned long n;
	enum token_result result = key_find(&key);
	if (result != TOKEN_GOOD)
		return result;
	memcpy(secret.answer.nonce, secret.question.nonce, TOKEN_NONCE);
	ck_rv_t rv = encrypt_or_decrypt(unwrap, key, secret.answer.nonce, &n);
	if (unwrap && rv != CKR_OK && !is_about_key(rv)) { /* a token that fails now and then does not refuse */
		memcpy(secret.answer.nonce, secret.question.nonce, TOKEN_NONCE);
		rv = encrypt_or_decrypt(unwrap, key, secret.answer.nonce, &n);
	}
	if (rv == CKR_OK && n == (unsigned long)(unwrap ? TOKEN_PLAIN : TOKEN_SEALED))
		return TOKEN_GOOD;
	explicit_bzero(secret.out, sizeof secret.out);
	if (rv == CKR_OK)
		return fail(TOKEN_KEY_REFUSED, "%s", "what it made has not the size that AES-GCM gives");
	if (!is_about_key(rv) && !(unwrap && still_encrypts(key)))
		return fail_rv(TOKEN_AWAY, unwrap ? "C_Decrypt" : "C_Encrypt", rv);
	explicit_bzero(secret.out, sizeof secret.out);
	return unwrap ? fail(TOKEN_KEY_REFUSED, "its key %s is another one than the data key was wrapped with",
	                     secret.question.key)
	              : fail_rv(TOKEN_KEY_REFUSED, "C_Encrypt", rv);
}

static enum token_result serve(const char *path)
{
	enum token_result result = module_load(path);
	if (result != TOKEN_GOOD || secret.question.task == TOKEN_LOAD)
		return result;
	result = module_start();
	if (result == TOKEN_GOOD)
		result = session_open();
	return result == TOKEN_GOOD ? work() : result;
}

/* The process. */

static bool question_read(void)
{
	struct iovec parts[] = {{&secret.question, sizeof secret.question}, {secret.in, sizeof secret.in}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n = recvmsg(STDIN_FILENO, &m, 0);
	secret.question.key[TOKEN_LABEL - 1] = secret.question.pin[TOKEN_PIN - 1] = 0;
	secret.question.project[sizeof secret.question.project - 1] = 0;
	return n >= (ssize_t)sizeof secret.question;
}

static bool answer_write(void)
{
	size_t bytes = secret.question.task == TOKEN_WRAP     ? TOKEN_SEALED
	               : secret.question.task == TOKEN_UNWRAP ? TOKEN_PLAIN
	                                                      : 0;
	struct iovec parts[] = {{&secret.answer, sizeof secret.answer}, {secret.out, bytes}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	return sendmsg(STDIN_FILENO, &m, MSG_NOSIGNAL) == (ssize_t)(sizeof secret.answer + bytes);
}

/* Before the module is loaded: it is foreign code from its first instruction on. Memory is locked while that is
 * allowed. */
static void rights_drop(void)
{
	static const struct confine_bounds bounds = {.files = 1024};
	(void)!mlock(&secret, sizeof secret);
	confine_with_module(&bounds);
}

int main(int argc, char **argv)
{
	bool going = argc == 3;
	token_name = going ? argv[2] : "";
	rights_drop();
	while (going && question_read()) {
		alarm(MOST_SECONDS);
		secret.answer.result = serve(argv[1]);
		going = answer_write() && secret.answer.result == TOKEN_GOOD;
		explicit_bzero(&secret, sizeof secret);
		alarm(0);
	}
	alarm(MOST_SECONDS);
	if (is_initialized)
		module->C_Finalize(NULL); /* sessions end with it */
	_exit(0); /* what modules leave to be done at the end of a process has crashed in some */
}
