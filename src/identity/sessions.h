/* Sessions of people who have signed in with a browser. A session acts as its user: the roles are the user's.
 *
 * The cookie's value is "ID.SECRET"; the store keeps a hash of the secret. A session is read from the store on each
 * call, so it ends on the next call everywhere once its document is gone: nothing of it is cached. It has two ends: a
 * time from its beginning, and a time from its last use.
 *
 *   "user_session"   id, parent = user; secret: SHA-256 of the cookie's secret as hexadecimal (empty: no browser's);
 *                    body {"expiresAt","idleSeconds","usedAt","address","agent","how","strong","provenAt"?,"stamps"?}
 *   "session_stamp"  id, parent = organization; body {"stamp","at"}: sessions that identity providers have begun
 *                    for its people are over when theirs is another. So all of them end by one small write: to look
 *                    for them among everybody's sessions made others' writes wait. None: the stamp is empty */
#ifndef STEWARD_IDENTITY_SESSIONS_H
#define STEWARD_IDENTITY_SESSIONS_H

#include "call/service.h"

#include <jansson.h>

#define SESSION_COOKIE "__Host-steward"
#define SESSIONS_MAX 50 /* of a user; the oldest ends when another begins */

struct session {
	struct str id, user_id;                           /* id empty: none */
	int64_t created_ms, used_ms, expires_ms, idle_ms; /* idle_ms: when it ends without another use */
	struct str how;                                   /* it was begun: "password", "passkey", "oidc" ... */
	bool strong;                                      /* with more than a password */
	int64_t proven_ms; /* when its user has last shown who it is: at the beginning, or later */
};

/* A session may be stolen, so what would outlive it (factors, passwords, credentials, members) is changed only by who
 * has shown within these minutes who it is: by signing in, or by a password, a code or a passkey once more. */
#define PROOF_MINUTES 15
#define PROOF_NEEDED "PROOF_NEEDED"
#define PROOF_NEEDED_DETAIL                                                                           \
	"This needs a fresh proof of who you are: the password, a code or a passkey once more (POST " \
	"/api/session/proof), or sign in again."
bool session_is_proven(int64_t proven_ms);
/* In a write: the session's user has just shown who it is. */
must_check int session_prove(struct tx *tx, struct arena *a, struct str id);

/* The value of a cookie; STR_NONE when it is not there, or there more than once. */
struct str request_cookie(const struct request *r, const char *name);
/* What the browser says about who made the request. Pages cannot set this header. FETCH_PERSON ("none"): no page at
 * all, but the person, by the address bar or a bookmark; FETCH_OTHER: a page of another origin. */
enum fetch_site { FETCH_UNSAID, FETCH_SAME_ORIGIN, FETCH_PERSON, FETCH_OTHER };
enum fetch_site request_fetch_site(const struct request *r);

/* The session of a request that a page of ours has made. -ENOENT: there is no cookie, or another site may have made the
 * request, whose cookie is not looked at; -EACCES: no session in force. */
must_check int session_find(struct tx *tx, struct arena *a, const struct request *r, struct session *ret_session);
/* The same by the id, for what goes on after its request: a stream. No use is noted. */
must_check int session_look(struct tx *tx, struct arena *a, struct str id, struct session *ret_session);
/* session_find(), with the user as a caller, owned by our caller; and the use is noted. */
must_check int session_caller(struct service *s, struct tx *tx, struct arena *a, const struct request *r,
                              struct session *ret_session, struct principal **ret_caller);

/* In the place of session_caller(), for a caller by a token of a session (tokens.c): what the session says. The caller
 * loses the roles that want a second factor where it has none. -ENOENT: a session that only the test control makes,
 * which says nothing; -EACCES: none in force. */
must_check int session_of_token(struct service *s, struct tx *tx, struct arena *a, struct str text,
                                struct session *ret_session, struct principal **caller);

/* In a write: a new session, with a new secret. *ret_cookie is the whole value for Set-Cookie. */
must_check int session_begin(struct tx *tx, struct arena *a, const struct service *s, const struct request *r,
                             struct str user_id, const char *how, bool strong, struct session *ret_session,
                             struct str *ret_cookie);
/* The browser is known to the person with that (lower-case) name, who has signed in with it: guesses at the name from
 * elsewhere do not keep it out. The value for Set-Cookie, and whether a request has it. */
struct str device_cookie(struct arena *a, struct str username);
bool device_is_known(struct arena *a, const struct request *r, struct str username);
/* In a write: the user has just shown a second factor. */
must_check int session_strengthen(struct tx *tx, struct arena *a, struct str id);
/* The value for Set-Cookie that takes the cookie away. */
#define SESSION_COOKIE_GONE SESSION_COOKIE "=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"
/* In a write. -ENOENT: the user has no such session. */
must_check int session_end(struct tx *tx, struct arena *a, struct str user_id, struct str id);
/* In a write: ends the session that the browser had before. Nobody could end it once its cookie is replaced. */
must_check int session_replace(struct tx *tx, struct arena *a, const struct request *r);
/* In a write: all sessions of a user but one (empty: all), and all links that the user has asked for: whoever had one
 * of the sessions may have them (identity/links.h). */
must_check int sessions_end(struct tx *tx, struct arena *a, struct str user_id, struct str but);
/* In a write: all sessions of an organization's people that identity providers have begun. */
must_check int sessions_end_federated(struct tx *tx, struct arena *a, struct str org_id);
/* Whether an identity provider has begun the session. */
bool session_is_federated(struct arena *a, const struct doc *session);
/* -EACCES: the stamps of the session are not those of its person's organizations. */
must_check int session_stamps_check(struct tx *tx, struct arena *a, const struct doc *session);
/* The same for what has no stamps of its own and was made by such a session: -EACCES when one of the organizations of
 * the user has made a stamp since. */
must_check int session_stamps_check_since(struct tx *tx, struct arena *a, struct str user_id, int64_t since_ms);
/* [{"id","createdAt","lastUsedAt","expiresAt","address","agent","method","current"}, ...], those in force. */
must_check int sessions_list(struct tx *tx, struct arena *a, struct str user_id, struct str current, json_t *list);

#endif
