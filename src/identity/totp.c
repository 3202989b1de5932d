/* One-time passwords by time, with OpenSSL's HMAC. */
#include "identity/totp.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define BASE32 "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#define KEY_TEXT (TOTP_KEY * 8 / 5)
#define FREE_FAILURES 10
#define WAIT_MS 30000
#define WAIT_MOST_MS 900000

void totp_code(const unsigned char *key, size_t key_n, uint64_t step, char ret_code[TOTP_DIGITS + 1])
{
	unsigned char counter[8], mac[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	for (int i = 0; i < 8; i++)
		counter[i] = (unsigned char)(step >> (56 - 8 * i));
	HMAC(EVP_sha1(), key, (int)key_n, counter, sizeof counter, mac, &n);
	const unsigned char *at = mac + (mac[19] & 15);
	uint32_t number = (uint32_t)(at[0] & 127) << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
	snprintf(ret_code, TOTP_DIGITS + 1, "%06u", (unsigned)(number % 1000000));
	OPENSSL_cleanse(mac, sizeof mac);
}

/* Whole groups only: 20 bytes are 32 characters. */
static struct str key_text(struct arena *a, const unsigned char key[TOTP_KEY])
{
	char *text = arena_alloc(a, KEY_TEXT + 1);
	for (size_t i = 0; i < KEY_TEXT; i++) {
		size_t bit = i * 5, byte = bit / 8;
		unsigned two = (unsigned)key[byte] << 8 | (byte + 1 < TOTP_KEY ? key[byte + 1] : 0);
		text[i] = BASE32[two >> (11 - bit % 8) & 31];
	}
	return (struct str){text, KEY_TEXT};
}

static bool key_read(struct str text, unsigned char ret_key[TOTP_KEY])
{
	uint64_t bits = 0;
	size_t out = 0;
	if (text.n != KEY_TEXT)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		const char *at = memchr(BASE32, text.p[i], 32);
		if (!at)
			return false;
		bits = bits << 5 | (uint64_t)(at - BASE32);
		for (; out < (i + 1) * 5 / 8; out++)
			ret_key[out] = (unsigned char)(bits >> ((i + 1) * 5 - (out + 1) * 8));
	}
	return true;
}

int totp_is_on(struct tx *tx, struct arena *a, struct str user_id, bool *ret_on)
{
	struct doc d;
	int result = tx_get(tx, a, "user_totp", user_id, &d);
	*ret_on = result == 0 && json_flag(doc_json(a, d.body), "confirmed");
	return result == -ENOENT ? 0 : result;
}

int totp_added(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_ms)
{
	struct doc d;
	int result = tx_get(tx, a, "user_totp", user_id, &d);
	*ret_ms = result == 0 ? json_number(doc_json(a, d.body), "confirmedMs") : 0;
	return result == -ENOENT ? 0 : result;
}

int totp_enroll(struct tx *tx, struct arena *a, struct str user_id, struct str *ret_base32)
{
	unsigned char key[TOTP_KEY];
	struct doc d;
	int result = tx_get(tx, a, "user_totp", user_id, &d);
	bool known = result == 0;
	if (result < 0 && result != -ENOENT)
		return result;
	if (known && json_flag(doc_json(a, d.body), "confirmed"))
		return -EEXIST;
	if (!known)
		d = doc_new(a, "user_totp", STR_NONE, STR_NONE, STR_NONE);
	d.id = user_id;
	d.body = STR("{\"confirmed\":false}");
	random_bytes(key, sizeof key);
	*ret_base32 = key_text(a, key);
	OPENSSL_cleanse(key, sizeof key);
	d.secret = doc_seal(a, &d, *ret_base32);
	return known ? tx_update(tx, &d) : tx_insert(tx, &d);
}

/* The step whose code it is, from the one before this to the one after; 0: none. All three are always compared. */
static int64_t step_of(const unsigned char key[TOTP_KEY], struct str code)
{
	int64_t now = clock_now_ms() / 1000 / TOTP_SECONDS, found = 0;
	for (int64_t step = now - 1; step <= now + 1; step++) {
		char right[TOTP_DIGITS + 1];
		totp_code(key, TOTP_KEY, (uint64_t)step, right);
		if (str_eq_secret(code, str_of(right)))
			found = step;
	}
	return found;
}

/* Milliseconds until the next try; 0: now. */
static int64_t wait_of(const json_t *body)
{
	json_int_t failures = json_number(body, "failures"), more = failures - FREE_FAILURES;
	if (more < 0)
		return 0;
	int64_t wait = more < 5 ? (int64_t)WAIT_MS << more : WAIT_MOST_MS,
	        left = json_number(body, "failedAtMs") + wait - clock_now_ms();
	return left > 0 ? left : 0;
}

int totp_check(struct tx *tx, struct arena *a, struct str user_id, struct str code, bool confirm, unsigned *ret_seconds)
{
	unsigned char key[TOTP_KEY];
	struct doc d;
	struct str text;
	int result = tx_get(tx, a, "user_totp", user_id, &d);
	if (result == 0)
		result = doc_unseal(a, &d, &text);
	if (result < 0)
		return result;
	json_t *body = doc_json(a, d.body);
	if (json_flag(body, "confirmed") == confirm)
		return -ENOENT;
	int64_t wait = wait_of(body);
	if (wait) {
		*ret_seconds = (unsigned)((wait + 999) / 1000);
		return -EBUSY;
	}
	int64_t step = key_read(text, key) ? step_of(key, code) : 0;
	OPENSSL_cleanse(key, sizeof key);
	bool right = step > json_number(body, "lastStep");
	if (right) {
		if (confirm)
			json_put(body, "confirmedMs", json_integer(clock_now_ms()));
		json_put(body, "confirmed", json_true());
		json_put(body, "lastStep", json_integer(step));
		json_put(body, "failures", json_integer(0));
	} else {
		json_put(body, "failures", json_integer(json_number(body, "failures") + 1));
		json_put(body, "failedAtMs", json_integer(clock_now_ms()));
	}
	d.body = json_text(a, body);
	result = tx_update(tx, &d);
	return result < 0 ? result : right ? 0 : -EACCES;
}

int totp_remove(struct tx *tx, struct str user_id)
{
	return tx_delete(tx, "user_totp", user_id);
}
