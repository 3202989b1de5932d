/* Recovery codes, as hashes. */
#include "identity/recovery.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <errno.h>

/* No letter or digit that is easily taken for another. */
#define ALPHABET "abcdefghjkmnpqrstuvwxyz23456789"
#define LETTERS 16
#define GROUP 4

static void code_hash(struct str letters, char ret_hash[65])
{
	sha256_hex(letters, ret_hash);
}

int recovery_make(struct tx *tx, struct arena *a, struct str user_id, json_t *codes)
{
	struct doc d;
	json_t *hashes = json_keep(a, json_array());
	int result = tx_get(tx, a, "user_recovery", user_id, &d);
	bool known = result == 0;
	if (result < 0 && result != -ENOENT)
		return result;
	if (!known)
		d = doc_new(a, "user_recovery", STR_NONE, STR_NONE, STR_NONE);
	json_array_clear(codes);
	for (int i = 0; i < RECOVERY_CODES; i++) {
		char letters[LETTERS + 1], hash[65];
		random_text(letters, LETTERS, ALPHABET);
		code_hash(str_of(letters), hash);
		json_add_str(hashes, str_of(hash));
		json_add_str(codes, arena_printf(a, "%.4s-%.4s-%.4s-%.4s", letters, letters + GROUP,
		                                 letters + 2 * (size_t)GROUP, letters + 3 * (size_t)GROUP));
	}
	d.id = user_id;
	d.secret = json_text(a, hashes);
	d.body = arena_printf(a, "{\"left\":%d,\"madeMs\":%lld}", RECOVERY_CODES, (long long)clock_now_ms());
	return known ? tx_update(tx, &d) : tx_insert(tx, &d);
}

/* The letters alone, in lower case; empty when there are not as many as a code has. */
static struct str code_read(struct arena *a, struct str code)
{
	char *letters = arena_alloc(a, LETTERS + 1);
	struct str lower = arena_lower(a, code);
	size_t n = 0;
	for (size_t i = 0; i < lower.n; i++) {
		if (lower.p[i] == ' ' || lower.p[i] == '-')
			continue;
		if (n == LETTERS)
			return STR_NONE;
		letters[n++] = lower.p[i];
	}
	return n == LETTERS ? (struct str){letters, n} : STR_NONE;
}

int recovery_use(struct tx *tx, struct arena *a, struct str user_id, struct str code)
{
	struct doc d;
	char hash[65];
	struct str letters = code_read(a, code);
	int result = tx_get(tx, a, "user_recovery", user_id, &d);
	if (result < 0 || !letters.n)
		return result < 0 && result != -ENOENT ? result : -EACCES;
	json_t *hashes = json_keep(a, json_loadb(d.secret.p, d.secret.n, 0, NULL));
	size_t count = json_array_size(hashes), found = count;
	code_hash(letters, hash);
	for (size_t i = 0; i < count; i++)
		if (str_eq_secret(json_item(hashes, i), str_of(hash)))
			found = i;
	if (found == count)
		return -EACCES;
	json_array_remove(hashes, found);
	d.secret = json_text(a, hashes);
	json_t *body = doc_json(a, d.body);
	json_put(body, "left", json_integer((json_int_t)count - 1));
	d.body = json_text(a, body);
	return tx_update(tx, &d);
}

int recovery_left(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_left)
{
	struct doc d;
	int result = tx_get(tx, a, "user_recovery", user_id, &d);
	*ret_left = result == 0 ? json_number(doc_json(a, d.body), "left") : 0;
	return result == -ENOENT ? 0 : result;
}

int recovery_added(struct tx *tx, struct arena *a, struct str user_id, int64_t *ret_ms)
{
	struct doc d;
	int result = tx_get(tx, a, "user_recovery", user_id, &d);
	*ret_ms = result == 0 ? json_number(doc_json(a, d.body), "madeMs") : 0;
	return result == -ENOENT ? 0 : result;
}

int recovery_remove(struct tx *tx, struct str user_id)
{
	int result = tx_delete(tx, "user_recovery", user_id);
	return result == -ENOENT ? 0 : result;
}
