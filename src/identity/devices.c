/* Requests of clients to act for a person who is at a browser. */
#include "identity/devices.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "catalog/formats.h"
#include "identity/identity.h"
#include "store/seal.h"

#include <ctype.h>
#include <errno.h>

#define KIND "device_request"
#define CODE_REF "device_user_code"
#define SECRET 32
#define SWEEP 16
#define AGENT_MAX 200
#define NETWORK_BYTES 6 /* of IPv6: a site has a network of 48 bits, and 65,536 of 64 in it */

/* Consonants: no code spells a word, and none has a letter that looks like a digit (RFC 8628, 6.1). */
static const char letters[] = "BCDFGHJKLMNPQRSTVWXZ";
#define LETTERS (sizeof letters - 1)

/* The address as a prefix of names. */
static struct str address_prefix(struct arena *a, const struct ip *peer)
{
	char hex[2 * sizeof peer->b + 1];
	hex_encode(peer->b, ip_is_v4(peer) ? sizeof peer->b : NETWORK_BYTES, hex);
	return arena_printf(a, "%s/", hex);
}

int device_room(struct tx *tx, struct arena *a, const struct ip *peer)
{
	struct str prefix = address_prefix(a, peer), none = STR("");
	struct doc *heads;
	size_t count = 0, waiting = 0, same = 0;
	int r = tx_heads(tx, a, KIND, &none, &heads, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		/* Those that are over are taken away by the next that begins: they must not keep it from beginning. */
		bool waits = heads[i].created_ms + DEVICE_SECONDS_MAX * INT64_C(1000) > clock_now_ms();
		waiting += waits;
		same += waits && str_starts(heads[i].name, prefix);
	}
	return r < 0 ? r : same >= DEVICES_OF_ADDRESS ? -EBUSY : waiting >= DEVICES_MAX ? -EDQUOT : 0;
}

static bool device_read(struct arena *a, const struct doc *doc, struct device_request *d)
{
	const json_t *body = doc_json(a, doc->body);
	struct str answer = json_field(body, "answer");
	*d = (struct device_request){.id = doc->id,
	                             .code = json_field(body, "code"),
	                             .address = json_field(body, "address"),
	                             .agent = json_field(body, "agent"),
	                             .answer = str_is(answer, "allowed")  ? DEVICE_ALLOWED
	                                       : str_is(answer, "denied") ? DEVICE_DENIED
	                                                                  : DEVICE_ASKED,
	                             .user_id = json_field(body, "userId"),
	                             .how = json_field(body, "how"),
	                             .session = json_field(body, "session"),
	                             .strong = json_flag(body, "strong")};
	return clock_parse(json_field(body, "until"), &d->until_ms) && d->until_ms > clock_now_ms();
}

int device_end(struct tx *tx, const struct device_request *d)
{
	int r = tx_ref_delete(tx, CODE_REF, d->code);
	return r < 0 && r != -ENOENT ? r : tx_delete(tx, KIND, d->id);
}

/* They all last as long, so the oldest are over first. */
static int requests_sweep(struct tx *tx, struct arena *a)
{
	struct doc *docs;
	size_t count = 0;
	struct device_request d;
	int r = tx_list(tx, a, KIND, STR(""), 0, SWEEP, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!device_read(a, &docs[i], &d))
			r = device_end(tx, &d);
	return r;
}

/* Each letter is as likely as another: bytes beyond the last whole multiple are thrown away. */
static struct str code_make(struct arena *a)
{
	char text[DEVICE_CODE_TEXT];
	for (size_t n = 0; n < sizeof text;) {
		unsigned char byte;
		random_bytes(&byte, 1);
		if (byte < 256 / LETTERS * LETTERS)
			text[n++] = letters[byte % LETTERS];
	}
	return arena_printf(a, "%.4s-%.4s", text, text + 4);
}

static bool code_read(struct arena *a, struct str typed, struct str *ret_code)
{
	char text[DEVICE_CODE_TEXT];
	size_t n = 0;
	for (size_t i = 0; i < typed.n; i++) {
		char c = (char)toupper((unsigned char)typed.p[i]);
		if (c == '-' || c == ' ')
			continue;
		if (n == sizeof text || !memchr(letters, c, LETTERS))
			return false;
		text[n++] = c;
	}
	*ret_code = arena_printf(a, "%.4s-%.4s", text, text + 4);
	return n == sizeof text;
}

int device_begin(struct tx *tx, struct arena *a, const struct request *r, struct str *ret_device_code,
                 struct str *ret_user_code)
{
	unsigned char raw[SECRET];
	char secret[BASE64_TEXT(SECRET)], hash[65], address[IP_TEXT];
	struct str agent = utf8_prefix(request_header(r, "user-agent"), AGENT_MAX), code = code_make(a);
	int result = requests_sweep(tx, a);
	if (result == 0)
		result = device_room(tx, a, &r->peer);
	if (result < 0)
		return result;
	random_bytes(raw, sizeof raw);
	base64url_encode(raw, sizeof raw, secret);
	sha256_hex(str_of(secret), hash);
	ip_format(&r->peer, address);
	json_t *body = json_new(a);
	json_put_str(body, "code", code);
	json_put_z(body, "address", address);
	json_put_str(body, "agent", agent.n && utf8_is_valid(agent) ? agent : STR(""));
	json_put_time(body, "until", clock_now_ms() + DEVICE_SECONDS_MAX * INT64_C(1000));
	struct doc d = doc_new(a, KIND, STR_NONE, STR_NONE, json_text(a, body));
	struct str prefix = address_prefix(a, &r->peer);
	d.name = arena_printf(a, "%.*s%.*s", STR_ARG(prefix), STR_ARG(d.id));
	d.secret = str_of(hash);
	result = tx_ref_put(tx, CODE_REF, code, d.id);
	if (result == 0)
		result = tx_insert(tx, &d);
	*ret_device_code = arena_printf(a, "%.*s.%s", STR_ARG(d.id), secret);
	*ret_user_code = code;
	return result;
}

int device_find(struct tx *tx, struct arena *a, struct str user_code, struct device_request *ret_device)
{
	struct device_request found;
	struct str code, id;
	struct doc doc;
	if (!code_read(a, user_code, &code))
		return -ENOENT;
	int r = tx_ref_get(tx, a, CODE_REF, code, &id);
	if (r == 0)
		r = tx_get(tx, a, KIND, id, &doc);
	if (r < 0)
		return r;
	if (!device_read(a, &doc, &found) || found.answer != DEVICE_ASKED)
		return -ENOENT;
	*ret_device = found;
	return 0;
}

int device_decide(struct tx *tx, struct arena *a, const struct device_request *d, const struct session *by,
                  bool allowed)
{
	struct doc doc;
	int r = tx_get(tx, a, KIND, d->id, &doc);
	if (r < 0)
		return r;
	json_t *body = json_keep(a, json_deep_copy(doc_json(a, doc.body)));
	json_put_z(body, "answer", allowed ? "allowed" : "denied");
	json_put_str(body, "userId", by->user_id);
	json_put_str(body, "how", by->how);
	json_put(body, "strong", json_boolean(by->strong));
	json_put_str(body, "session", by->id);
	doc.body = json_text(a, body);
	return tx_update(tx, &doc);
}

int device_look(struct tx *tx, struct arena *a, struct str device_code, struct device_request *ret_device)
{
	struct device_request found;
	struct str id, secret;
	struct doc doc;
	char hash[65];
	if (!str_cut(device_code, '.', &id, &secret) || !id_is_valid(id) || secret.n != BASE64_TEXT(SECRET) - 1)
		return -EACCES;
	int r = tx_get(tx, a, KIND, id, &doc);
	if (r < 0)
		return r == -ENOENT ? -EACCES : r;
	sha256_hex(secret, hash);
	if (!str_eq_secret(doc.secret, str_of(hash)) || !device_read(a, &doc, &found))
		return -EACCES;
	*ret_device = found;
	return 0;
}
