/* Sessions: making, finding and ending them.
 *
 * Cross-site requests are kept out twice: the cookie is SameSite=Strict, and it is looked at only when the browser says
 * (Sec-Fetch-Site) that a page of this very origin has made the request. A page of another port or subdomain, which
 * browsers call the same site, gets nothing. */
#include "identity/sessions.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "catalog/formats.h"
#include "identity/grants.h"
#include "identity/identity.h"
#include "identity/links.h"

#include <errno.h>
#include <stdlib.h>

#define SECRET 32 /* random bytes */
#define AGENT_MAX 200
#define TOUCH_MS 60000 /* uses are noted this often */

struct str request_cookie(const struct request *r, const char *name)
{
	struct str found = STR_NONE;
	/* HTTP/2 may bring each cookie in a header of its own. */
	for (size_t i = 0; i < r->header_count; i++) {
		struct str rest = r->headers[i].value, one, key, value;
		if (!str_is(r->headers[i].name, "cookie"))
			continue;
		while (rest.n) {
			str_cut(rest, ';', &one, &rest);
			if (!str_cut(str_trim(one), '=', &key, &value) || !str_is(key, name))
				continue;
			if (found.p)
				return STR_NONE;
			found = value;
		}
	}
	return found;
}

enum fetch_site request_fetch_site(const struct request *r)
{
	size_t count = request_header_count(r, "sec-fetch-site");
	struct str site = request_header(r, "sec-fetch-site");
	if (count == 0)
		return FETCH_UNSAID;
	return count > 1                     ? FETCH_OTHER
	       : str_is(site, "same-origin") ? FETCH_SAME_ORIGIN
	       : str_is(site, "none")        ? FETCH_PERSON
	                                     : FETCH_OTHER;
}

/* False when a time is missing: a session without an end is none. */
static bool session_read(struct arena *a, const struct doc *d, struct session *s)
{
	const json_t *body = doc_json(a, d->body);
	*s = (struct session){.id = d->id,
	                      .user_id = d->parent,
	                      .created_ms = d->created_ms,
	                      .how = json_field(body, "how"),
	                      .strong = json_flag(body, "strong")};
	if (!clock_parse(json_field(body, "expiresAt"), &s->expires_ms) ||
	    !clock_parse(json_field(body, "usedAt"), &s->used_ms))
		return false;
	s->idle_ms = s->used_ms + json_number(body, "idleSeconds") * 1000;
	if (!clock_parse(json_field(body, "provenAt"), &s->proven_ms))
		s->proven_ms = d->created_ms;
	return true;
}

/* Stamps. */

#define STAMP_KIND "session_stamp"

static bool how_is_federated(struct str how)
{
	return str_is_one_of("oidc|saml", how);
}

bool session_is_federated(struct arena *a, const struct doc *session)
{
	return how_is_federated(json_field(doc_json(a, session->body), "how"));
}

int sessions_end_federated(struct tx *tx, struct arena *a, struct str org_id)
{
	struct id stamp = id_new();
	struct doc d;
	json_t *body = json_new(a);
	json_put_z(body, "stamp", stamp.z);
	json_put(body, "at", json_integer(clock_now_ms()));
	tx_touch_identity(tx);
	int result = tx_get(tx, a, STAMP_KIND, org_id, &d);
	d = result == 0 ? d : (struct doc){.kind = STR(STAMP_KIND), .id = org_id, .parent = org_id};
	d.body = json_text(a, body);
	return result == 0 ? tx_update(tx, &d) : result == -ENOENT ? tx_insert(tx, &d) : result;
}

/* Empty, and *ret_at_ms 0, where there is none. */
static int stamp_get(struct tx *tx, struct arena *a, struct str org_id, struct str *ret_stamp, int64_t *ret_at_ms)
{
	struct doc d;
	int result = tx_get(tx, a, STAMP_KIND, org_id, &d);
	if (result < 0 && result != -ENOENT)
		return result;
	const json_t *body = result == 0 ? doc_json(a, d.body) : NULL;
	*ret_stamp = body ? json_field(body, "stamp") : STR("");
	*ret_at_ms = body ? json_number(body, "at") : 0;
	return 0;
}

/* Of the organizations that the user is in. Who joins another begins a new session: federation_joined(). */
static int stamps_note(struct tx *tx, struct arena *a, struct str user_id, json_t *session)
{
	struct grant_row *rows;
	size_t count = 0;
	json_t *stamps = json_object();
	json_put(session, "stamps", stamps);
	int result = grants_of(tx, a, user_id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct str stamp;
		int64_t at_ms;
		if (!rows[i].in_org)
			continue;
		result = stamp_get(tx, a, rows[i].id, &stamp, &at_ms);
		if (result == 0)
			json_put_str(stamps, arena_z(a, rows[i].id), stamp);
	}
	return result;
}

int session_stamps_check_since(struct tx *tx, struct arena *a, struct str user_id, int64_t since_ms)
{
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_of(tx, a, user_id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct str stamp;
		int64_t at_ms;
		result = rows[i].in_org ? stamp_get(tx, a, rows[i].id, &stamp, &at_ms) : 0;
		if (result == 0 && rows[i].in_org && stamp.n && at_ms >= since_ms)
			result = -EACCES;
	}
	return result;
}

int session_stamps_check(struct tx *tx, struct arena *a, const struct doc *session)
{
	json_t *body = doc_json(a, session->body), *stamps = json_object_get(body, "stamps"), *had;
	const char *org_id;
	int result = 0;
	if (!how_is_federated(json_field(body, "how")))
		return 0;
	if (!stamps) /* of an older release */
		return session_stamps_check_since(tx, a, session->parent, session->created_ms);
	json_object_foreach(stamps, org_id, had)
	{
		struct str stamp;
		int64_t at_ms;
		result = stamp_get(tx, a, str_of(org_id), &stamp, &at_ms);
		if (result == 0 && !str_eq(stamp, json_str_of(had)))
			result = -EACCES;
		if (result < 0)
			break;
	}
	return result;
}

static bool session_in_force(const struct session *s)
{
	int64_t now = clock_now_ms();
	return now < s->expires_ms && now < s->idle_ms;
}

int session_find(struct tx *tx, struct arena *a, const struct request *r, struct session *ret_session)
{
	struct str cookie = request_cookie(r, SESSION_COOKIE), id, secret;
	struct session found;
	struct doc d;
	char hash[65];
	if (!cookie.n || request_fetch_site(r) != FETCH_SAME_ORIGIN)
		return -ENOENT;
	if (!str_cut(cookie, '.', &id, &secret) || !id_is_valid(id) || secret.n != BASE64_TEXT(SECRET) - 1)
		return -EACCES;
	int result = tx_get(tx, a, "user_session", id, &d);
	if (result < 0)
		return result == -ENOENT ? -EACCES : result;
	sha256_hex(secret, hash);
	if (!d.secret.n || !str_eq_secret(d.secret, str_of(hash)) || !session_read(a, &d, &found) ||
	    !session_in_force(&found))
		return -EACCES;
	result = session_stamps_check(tx, a, &d);
	if (result == 0)
		*ret_session = found;
	return result;
}

int session_look(struct tx *tx, struct arena *a, struct str id, struct session *ret_session)
{
	struct session found;
	struct doc d;
	int result = id_is_valid(id) ? tx_get(tx, a, "user_session", id, &d) : -ENOENT;
	if (result < 0)
		return result == -ENOENT ? -EACCES : result;
	if (!d.secret.n || !session_read(a, &d, &found) || !session_in_force(&found))
		return -EACCES;
	result = session_stamps_check(tx, a, &d);
	if (result == 0)
		*ret_session = found;
	return result;
}

/* Noting uses: a write that nobody waits for. Where the store has no room for it, the next call tries again. */

struct touch {
	struct write write;
	struct arena *arena;
	struct id id;
	int64_t at_ms; /* of the use: the write may wait */
};

static int touch_run(struct tx *tx, void *ctx)
{
	struct touch *t = ctx;
	/* It may have ended meanwhile. */
	return tx_set_field(tx, t->arena, "user_session", id_str(&t->id), "usedAt", json_time(t->at_ms));
}

static void touch_done(void *ctx, int result)
{
	struct touch *t = ctx;
	arena_free(t->arena);
	free(t);
}

static void session_touch(struct service *s, const struct session *session)
{
	int64_t now = clock_now_ms();
	if (now - session->used_ms < TOUCH_MS)
		return;
	struct touch *t = must_calloc(1, sizeof *t);
	t->arena = arena_new();
	t->at_ms = now;
	str_copy(session->id, t->id.z, sizeof t->id.z);
	t->write =
	        (struct write){.run = touch_run, .done = touch_done, .ctx = t, .item.key = fair_key(session->user_id)};
	if (!store_write(s->store, &t->write))
		touch_done(t, -EBUSY);
}

int session_caller(struct service *s, struct tx *tx, struct arena *a, const struct request *r,
                   struct session *ret_session, struct principal **ret_caller)
{
	struct session session = {.id = STR_NONE};
	struct principal *caller = NULL;
	int result = session_find(tx, a, r, &session);
	if (result == 0)
		result = known_caller(s, lane_here(s)->tokens, tx, PRINCIPAL_USER, session.user_id, &caller);
	if (result < 0)
		return result == -ENOENT && session.id.n ? -EACCES : result;
	result = session.strong ? 0 : principal_weaken(tx, &caller);
	if (result < 0) {
		principal_unref(caller);
		return result;
	}
	session_touch(s, &session);
	*ret_session = session;
	*ret_caller = caller;
	return 0;
}

int session_of_token(struct service *s, struct tx *tx, struct arena *a, struct str text, struct session *ret_session,
                     struct principal **caller)
{
	struct session session;
	struct token token;
	struct doc d;
	if (!token_parse(text, &token))
		return -EACCES;
	int result = tx_get(tx, a, "user_session", id_str(&token.secret_id), &d);
	if (result < 0)
		return result == -ENOENT ? -EACCES : result;
	if (!d.secret.n)
		return -ENOENT;
	if (!session_read(a, &d, &session) || !session_in_force(&session))
		return -EACCES;
	result = session_stamps_check(tx, a, &d);
	if (result == 0 && !session.strong)
		result = principal_weaken(tx, caller);
	if (result < 0)
		return result;
	session_touch(s, &session);
	*ret_session = session;
	return 0;
}

/* Beginning. */

/* The shortest times that an organization of the user asks for ("customSessionTimeouts"). */
static int timeouts_shorten(struct tx *tx, struct arena *a, struct str user_id, int64_t *seconds, int64_t *idle)
{
	struct grant_row *rows;
	size_t count = 0;
	int result = grants_of(tx, a, user_id, &rows, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct doc settings;
		if (!rows[i].in_org)
			continue;
		result = tx_get(tx, a, "org_settings", rows[i].id, &settings);
		if (result == -ENOENT) {
			result = 0;
			continue;
		}
		const json_t *wanted =
		        result == 0 ? json_object_get(doc_json(a, settings.body), "customSessionTimeouts") : NULL;
		int64_t whole = json_number(wanted, "absoluteSessionTimeoutInSeconds"),
		        pause = json_number(wanted, "idleSessionTimeoutInSeconds");
		*seconds = whole > 0 && whole < *seconds ? whole : *seconds;
		*idle = pause > 0 && pause < *idle ? pause : *idle;
	}
	return result;
}

/* Ends sessions that are over, and of the others the oldest ones of a user who has too many. */
static int sessions_sweep(struct tx *tx, struct arena *a, struct str user_id)
{
	struct doc *docs;
	size_t count = 0, live = 0;
	int result = tx_list_all(tx, a, "user_session", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct session s;
		if (!docs[i].secret.n)
			continue;
		bool over = !session_read(a, &docs[i], &s) || !session_in_force(&s);
		int stamps = over ? 0 : session_stamps_check(tx, a, &docs[i]);
		if (over || stamps == -EACCES)
			result = tx_delete(tx, "user_session", docs[i].id);
		else if (stamps == 0)
			docs[live++] = docs[i];
		else
			result = stamps;
	}
	for (size_t i = 0; result == 0 && i + SESSIONS_MAX <= live; i++)
		result = tx_delete(tx, "user_session", docs[i].id);
	return result;
}

/* What the browser says of itself is shown to its owner later: text, and short. */
static struct str agent_of(struct arena *a, const struct request *r)
{
	struct str agent = utf8_prefix(request_header(r, "user-agent"), AGENT_MAX);
	return agent.n && utf8_is_valid(agent) ? arena_dup(a, agent) : STR("");
}

int session_begin(struct tx *tx, struct arena *a, const struct service *s, const struct request *r, struct str user_id,
                  const char *how, bool strong, struct session *ret_session, struct str *ret_cookie)
{
	unsigned char raw[SECRET];
	char secret[BASE64_TEXT(SECRET)], hash[65], address[IP_TEXT];
	int64_t seconds = s->session_hours * INT64_C(3600), idle = s->session_idle_minutes * INT64_C(60);
	int result = timeouts_shorten(tx, a, user_id, &seconds, &idle);
	if (result == 0)
		result = sessions_sweep(tx, a, user_id);
	if (result < 0)
		return result;
	random_bytes(raw, sizeof raw);
	base64url_encode(raw, sizeof raw, secret);
	sha256_hex(str_of(secret), hash);
	ip_format(&r->peer, address);
	json_t *body = json_new(a);
	int64_t now = clock_now_ms();
	json_put_time(body, "expiresAt", now + seconds * 1000);
	json_put_time(body, "usedAt", now);
	json_put(body, "idleSeconds", json_integer(idle));
	json_put_z(body, "address", address);
	json_put_str(body, "agent", agent_of(a, r));
	json_put_z(body, "how", how);
	json_put(body, "strong", json_boolean(strong));
	result = how_is_federated(str_of(how)) ? stamps_note(tx, a, user_id, body) : 0;
	if (result < 0)
		return result;
	struct doc d = doc_new(a, "user_session", user_id, STR_NONE, json_text(a, body));
	d.secret = str_of(hash);
	result = tx_insert(tx, &d);
	if (result < 0)
		return result;
	*ret_session = (struct session){.id = d.id,
	                                .user_id = user_id,
	                                .created_ms = d.created_ms,
	                                .used_ms = now,
	                                .expires_ms = now + seconds * 1000,
	                                .idle_ms = now + idle * 1000,
	                                .how = str_of(how),
	                                .strong = strong,
	                                .proven_ms = now};
	*ret_cookie =
	        arena_printf(a, SESSION_COOKIE "=%.*s.%s; Path=/; Max-Age=%lld; Secure; HttpOnly; SameSite=Strict",
	                     STR_ARG(d.id), secret, (long long)seconds);
	return 0;
}

/* Known browsers. */

#define DEVICE_COOKIE "__Host-steward-device"
#define DEVICE_SECONDS 31536000

static struct str device_text(struct arena *a, struct str id, struct str username)
{
	return arena_printf(a, "%.*s/%.*s", STR_ARG(id), STR_ARG(username));
}

static struct str device_mark(struct arena *a, struct str id, struct str username)
{
	unsigned char mac[32];
	char text[65];
	seal_mac("device", device_text(a, id, username), mac);
	hex_encode(mac, sizeof mac, text);
	return arena_printf(a, "%.*s.%s", STR_ARG(id), text);
}

struct str device_cookie(struct arena *a, struct str username)
{
	struct str mark = device_mark(a, id_make(a), username);
	return arena_printf(a, DEVICE_COOKIE "=%.*s; Path=/; Max-Age=%d; Secure; HttpOnly; SameSite=Strict",
	                    STR_ARG(mark), DEVICE_SECONDS);
}

bool device_is_known(struct arena *a, const struct request *r, struct str username)
{
	struct str mark = request_cookie(r, DEVICE_COOKIE), id, mac;
	return str_cut(mark, '.', &id, &mac) && id_is_valid(id) && mac.n == 64 &&
	       seal_mac_is_hex("device", device_text(a, id, username), mac);
}

int session_strengthen(struct tx *tx, struct arena *a, struct str id)
{
	return tx_set_field(tx, a, "user_session", id, "strong", json_true());
}

bool session_is_proven(int64_t proven_ms)
{
	return clock_now_ms() - proven_ms < PROOF_MINUTES * INT64_C(60000);
}

int session_prove(struct tx *tx, struct arena *a, struct str id)
{
	return tx_set_field(tx, a, "user_session", id, "provenAt", json_time(clock_now_ms()));
}

/* Ending. Who listens to a stream of events is told by the store's generation of identities. */

int session_end(struct tx *tx, struct arena *a, struct str user_id, struct str id)
{
	struct doc d;
	int result = id_is_valid(id) ? tx_get(tx, a, "user_session", id, &d) : -ENOENT;
	if (result == 0 && !str_eq(d.parent, user_id))
		result = -ENOENT;
	if (result == 0)
		result = tx_delete(tx, "user_session", id);
	tx_touch_identity(tx);
	return result;
}

int session_replace(struct tx *tx, struct arena *a, const struct request *r)
{
	struct session before;
	int result = session_find(tx, a, r, &before);
	if (result == 0)
		result = session_end(tx, a, before.user_id, before.id);
	return result == -ENOENT || result == -EACCES ? 0 : result;
}

int sessions_end(struct tx *tx, struct arena *a, struct str user_id, struct str but)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, "user_session", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (!str_eq(docs[i].id, but))
			result = tx_delete(tx, "user_session", docs[i].id);
	return result < 0 ? result : links_end(tx, a, user_id);
}

int sessions_list(struct tx *tx, struct arena *a, struct str user_id, struct str current, json_t *list)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list_all(tx, a, "user_session", user_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		struct session s;
		if (!docs[i].secret.n || !session_read(a, &docs[i], &s) || !session_in_force(&s))
			continue;
		result = session_stamps_check(tx, a, &docs[i]);
		if (result == -EACCES) {
			result = 0;
			continue;
		}
		if (result < 0)
			break;
		const json_t *body = doc_json(a, docs[i].body);
		json_t *one = json_object();
		json_put_str(one, "id", s.id);
		json_put_time(one, "createdAt", s.created_ms);
		json_put_time(one, "lastUsedAt", s.used_ms);
		json_put_time(one, "expiresAt", s.expires_ms < s.idle_ms ? s.expires_ms : s.idle_ms);
		json_put_str(one, "address", json_field(body, "address"));
		json_put_str(one, "agent", json_field(body, "agent"));
		json_put_str(one, "method", s.how);
		json_put(one, "current", json_boolean(str_eq(s.id, current)));
		json_array_append_new(list, one);
	}
	return result;
}
