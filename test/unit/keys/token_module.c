/* A module of PKCS #11 that does what the test wants, by files in the directory of TOKEN_STATE:
 *   calls   the names of functions that were called, a line each; written here
 *   fault   "FUNCTION VALUE": it returns that once. "FUNCTION VALUE always"; "FUNCTION hang", which writes `hung`, the
 *           id of this process; "FUNCTION crash"
 *   pin, key, flags
 *           the right PIN; the bytes of the key, without which there is none; more flags of the token (hexadecimal)
 * Its cipher is none: that the real one is used rightly is a matter of the tests with SoftHSM. */
#define CRYPTOKI_GNU
#include <fcntl.h>
#include <p11-kit/pkcs11.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY 32
#define TAG 16

ck_rv_t C_GetFunctionList(struct ck_function_list **ret_list);

static struct ck_gcm_params gcm;
static int finds;

static int state_open(const char *name, int flags)
{
	char path[4200];
	const char *state = getenv("TOKEN_STATE");
	snprintf(path, sizeof path, "%s/%s", state ? state : "/nonexistent", name);
	if (flags == -1)
		return unlink(path);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* Whether the file is there; its text ends with a NUL. */
static int state_read(const char *name, char *ret_text, size_t size)
{
	int fd = state_open(name, O_RDONLY);
	memset(ret_text, 0, size);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, ret_text, size - 1);
	close(fd);
	return n >= 0;
}

static void state_add(const char *name, const char *line)
{
	int fd = state_open(name, O_WRONLY | O_CREAT | O_APPEND);
	if (fd < 0)
		return;
	(void)!write(fd, line, strlen(line));
	close(fd);
}

static ck_rv_t called(const char *name)
{
	char fault[128], line[64];
	size_t n = strlen(name);
	state_add("calls", name);
	state_add("calls", "\n");
	if (!state_read("fault", fault, sizeof fault) || strncmp(fault, name, n) != 0 || fault[n] != ' ')
		return CKR_OK;
	if (!strstr(fault, "always"))
		state_open("fault", -1);
	if (strstr(fault, " crash"))
		abort();
	if (strstr(fault, " hang")) {
		snprintf(line, sizeof line, "%d", (int)getpid());
		state_add("hung", line);
		for (;;)
			pause();
	}
	return strtoul(fault + n, NULL, 16);
}

static ck_rv_t initialize(void *args)
{
	const struct ck_c_initialize_args *a = args;
	return !a || !(a->flags & CKF_OS_LOCKING_OK) ? CKR_ARGUMENTS_BAD : called("C_Initialize");
}

static ck_rv_t finalize(void *reserved)
{
	return called("C_Finalize");
}

static ck_rv_t slots(unsigned char present, ck_slot_id_t *list, unsigned long *count)
{
	list[0] = 7;
	list[1] = 8;
	*count = 2;
	return called("C_GetSlotList");
}

static ck_rv_t token_info(ck_slot_id_t slot, struct ck_token_info *info)
{
	char flags[32];
	memset(info, ' ', sizeof *info);
	memcpy(info->label, slot == 8 ? "steward" : "stewards", slot == 8 ? 7 : 8);
	memcpy(info->serial_number, slot == 8 ? "0815" : "4711", 4);
	state_read("flags", flags, sizeof flags);
	info->flags = CKF_LOGIN_REQUIRED | CKF_TOKEN_INITIALIZED | strtoul(flags, NULL, 16);
	return CKR_OK;
}

static ck_rv_t session_open(ck_slot_id_t slot, ck_flags_t flags, void *application, ck_notify_t notify,
                            ck_session_handle_t *ret_session)
{
	*ret_session = 1;
	return slot != 8 || !(flags & CKF_SERIAL_SESSION) ? CKR_SLOT_ID_INVALID : called("C_OpenSession");
}

static ck_rv_t session_close(ck_session_handle_t session)
{
	return CKR_OK;
}

static ck_rv_t login(ck_session_handle_t session, ck_user_type_t user, unsigned char *pin, unsigned long n)
{
	char right[256];
	ck_rv_t rv = called("C_Login");
	state_read("pin", right, sizeof right);
	if (rv != CKR_OK)
		return rv;
	return user == CKU_USER && n == strlen(right) && memcmp(pin, right, n) == 0 ? CKR_OK : CKR_PIN_INCORRECT;
}

static ck_rv_t find_begin(ck_session_handle_t session, struct ck_attribute *wanted, unsigned long count)
{
	char key[KEY + 1];
	finds = state_read("key", key, sizeof key) && wanted[count - 1].type == CKA_LABEL &&
	        wanted[count - 1].value_len == 4 && memcmp(wanted[count - 1].value, "main", 4) == 0;
	return called("C_FindObjectsInit");
}

static ck_rv_t find(ck_session_handle_t session, ck_object_handle_t *list, unsigned long most, unsigned long *count)
{
	list[0] = 3;
	*count = finds ? 1 : 0;
	return CKR_OK;
}

static ck_rv_t find_end(ck_session_handle_t session)
{
	return CKR_OK;
}

static ck_rv_t attributes(ck_session_handle_t session, ck_object_handle_t key, struct ck_attribute *list,
                          unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		list[i].value_len = ~0ul;
	return CKR_ATTRIBUTE_TYPE_INVALID;
}

static ck_rv_t crypt_begin(ck_session_handle_t session, struct ck_mechanism *m, ck_object_handle_t key)
{
	gcm = *(struct ck_gcm_params *)m->parameter;
	return m->mechanism != CKM_AES_GCM ? CKR_MECHANISM_INVALID : CKR_OK;
}

static void run(const unsigned char *in, unsigned long n, unsigned char *out, unsigned char tag[TAG])
{
	char key[KEY + 1];
	state_read("key", key, sizeof key);
	for (unsigned long i = 0; i < n; i++)
		out[i] = in[i] ^ (unsigned char)key[i % KEY];
	for (unsigned long i = 0; i < TAG; i++)
		tag[i] = (unsigned char)(key[i] ^ gcm.iv_ptr[i % gcm.iv_len] ^ gcm.aad_ptr[i % gcm.aad_len]);
}

/* As some HSMs do, it changes the nonce. */
static ck_rv_t encrypt(ck_session_handle_t session, unsigned char *in, unsigned long n, unsigned char *out,
                       unsigned long *ret_n)
{
	gcm.iv_ptr[0]++;
	run(in, n, out, out + n);
	*ret_n = n + TAG;
	return called("C_Encrypt");
}

static ck_rv_t decrypt(ck_session_handle_t session, unsigned char *in, unsigned long n, unsigned char *out,
                       unsigned long *ret_n)
{
	unsigned char tag[TAG];
	run(in, n - TAG, out, tag);
	*ret_n = n - TAG;
	ck_rv_t rv = called("C_Decrypt");
	return rv != CKR_OK ? rv : memcmp(tag, in + n - TAG, TAG) == 0 ? CKR_OK : CKR_GENERAL_ERROR;
}

ck_rv_t C_GetFunctionList(struct ck_function_list **ret_list)
{
	static struct ck_function_list list = {.version = {2, 40},
	                                       .C_Initialize = initialize,
	                                       .C_Finalize = finalize,
	                                       .C_GetSlotList = slots,
	                                       .C_GetTokenInfo = token_info,
	                                       .C_OpenSession = session_open,
	                                       .C_CloseSession = session_close,
	                                       .C_Login = login,
	                                       .C_FindObjectsInit = find_begin,
	                                       .C_FindObjects = find,
	                                       .C_FindObjectsFinal = find_end,
	                                       .C_GetAttributeValue = attributes,
	                                       .C_EncryptInit = crypt_begin,
	                                       .C_Encrypt = encrypt,
	                                       .C_DecryptInit = crypt_begin,
	                                       .C_Decrypt = decrypt};
	*ret_list = &list;
	return CKR_OK;
}
