/* What browsers say for authenticators. Input: byte 1 is how the rest is read; then, as they stand, what an authenticator
 * says, or (from 'c' on) what a browser says of the call. Nothing is accepted that was not asked for. */
#include "fuzz.h"

#include "base/json.h"
#include "identity/passkey.h"

#define CHALLENGE "Y2hhbGxlbmdl"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static bool is_within(struct str part, struct str whole)
{
	return !part.n || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void authenticator(struct str in)
{
	struct passkey_authenticator said, before;
	memset(&said, 0x5e, sizeof said);
	memset(&before, 0x5e, sizeof before);
	if (!passkey_authenticator_parse(in, &said)) {
		HOLDS(memcmp(&said, &before, sizeof said) == 0);
		return;
	}
	HOLDS(said.rp_hash.n == 32 && is_within(said.rp_hash, in) && is_within(said.credential_id, in));
	HOLDS(said.credential_id.n <= PASSKEY_ID_MAX && in.n >= 37);
	HOLDS((said.credential_id.n > 0) == ((in.p[32] & 0x40) != 0));
	HOLDS(said.verified == ((in.p[32] & 4) != 0) && said.present == ((in.p[32] & 1) != 0));
}

/* The key is none, so that whatever comes is refused; what it says about why tells how far it came. */
static void client_data(struct str in)
{
	static const char right[] =
	        "\x49\x96\x0d\xe5\x88\x0e\x8c\x68\x74\x34\x17\x0f\x64\x76\x60\x5b\x8f\xe4\xae\xb9\xa2"
	        "\x86\x32\xc7\x99\x5c\xf3\xba\x83\x1d\x97\x63\x05\0\0\0\1"; /* of "localhost" */
	struct passkey_place here = {STR("localhost"), STR("https://localhost:8443")};
	struct passkey_answer answer = {.authenticator = {right, 37}, .client_data = in};
	struct passkey_authenticator said;
	const char *fault = passkey_fault(&answer, STR(CHALLENGE), &here, &said);
	HOLDS(fault);
	if (strncmp(fault, "clientDataJSON", 14) == 0)
		return;
	json_t *read = json_loadb(in.p, in.n, 0, NULL);
	HOLDS(strncmp(fault, "publicKey", 9) == 0 && str_is(json_field(read, "challenge"), CHALLENGE) &&
	      str_is(json_field(read, "type"), "webauthn.get") &&
	      str_is(json_field(read, "origin"), "https://localhost:8443"));
	json_decref(read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	unsigned what = fuzz_byte(&in);
	char *exact = fuzz_copy(in);
	(what < 'c' ? authenticator : client_data)((struct str){exact, in.n});
	free(exact);
	return 0;
}
