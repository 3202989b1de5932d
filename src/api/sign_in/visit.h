/* The paths of people with browsers, below /api/session: JSON in and out, outside the catalog, because the caller is
 * signing in or acts on its own account. A visit goes through at most three steps, which its row's function sets:
 *
 *   run()   on the loop or a worker, with a reader: looks, and refuses or decides what follows;
 *   slow()  on a thread of a pool: passwords are hashed here, or others are asked; may refuse;
 *   save()  in a write: changes the store, in call.tx, and fills the answer.
 *
 * What another site's page may have made is refused before, and so is a body that is no JSON object. */
#ifndef STEWARD_API_SIGN_IN_VISIT_H
#define STEWARD_API_SIGN_IN_VISIT_H

#include "base/json.h"
#include "call/call.h"
#include "call/pool.h"
#include "identity/sessions.h"

#define SESSION_PATH "/api/session"

struct visit;
/* 0, or negative after call_fail() on &v->call. */
typedef int visit_step(struct visit *v);

enum {
	VISIT_SIGNED_IN = 1, /* 401 for others */
	VISIT_BODY = 2,      /* has a JSON object; without this a body is not looked at */
	VISIT_OPEN = 4,      /* other sites may lead here: an identity provider's answer */
};

struct visit_row {
	const char *method, *path; /* the path below SESSION_PATH; one that ends with a slash takes the rest */
	visit_step *run;
	unsigned flags;
};

struct visit {
	struct service *service;
	struct request *request;
	struct arena *arena;
	struct call call;       /* for refusals, headers and events; call.caller: who is signed in, or NULL */
	struct session session; /* of call.caller */
	struct tx *reader;      /* in run() */
	struct str rest;        /* of the path */
	json_t *body;           /* VISIT_BODY */
	visit_step *slow, *save;
	struct pool *pool; /* where slow() runs; NULL: the one for passwords */
	uint64_t pool_key; /* for whom it takes a place there; 0: for the address */
	/* After save(), on the store's thread: whether it was kept. For what is counted in memory. */
	void (*ended)(struct visit *v, bool kept);
	void *state; /* the steps' own */
	/* For the log, where a sign-in is refused: whose it would have been (an account's name, never what was typed),
	 * and what was wrong. */
	struct str whose;
	const char *why;

	/* The answer. */
	int status;        /* 0: 200, or 204 without `out` */
	json_t *out;       /* freed with the arena; NULL: no body */
	struct str page;   /* an HTML page instead of `out`, or empty */
	struct str cookie; /* for Set-Cookie, or empty; see visit_sign_in() */

	/* visit.c's own. */
	struct write write;
	struct pool_work work;
	size_t headers;      /* that run() and slow() have set */
	unsigned known_wait; /* see visit_attempt(): seconds, when only right credentials pass */
	bool counted;        /* by attempt_anywhere() */
	bool trying;         /* by visit_attempt(), and not right so far */
	bool signed_in;
	struct str notes[4];
	size_t note_count;
};

/* What save() returns when its changes are to be kept although it has refused by call_fail(): counted tries. */
#define VISIT_KEPT_REFUSAL 1

/* Serves the request by the first row that fits; 404 and 405 where none does. */
void visit_serve(struct service *s, struct request *r, const struct visit_row *rows, size_t count);

/* In save(): the user is signed in from now on. A new session with a new secret, its cookie, lastAuth, a line in the
 * log, and {"userId","username"} as the answer (added to v->out when there is one). `how` for the log: "passkey".
 * strong: by more than a password. */
must_check int visit_sign_in(struct visit *v, struct str user_id, const char *how, bool strong);
/* In run(): 403 for a session that an identity provider has begun. Who configures a provider must not be able to leave
 * a password or a key behind in the account of somebody of its domain. */
must_check int visit_own_account(struct visit *v);
/* The same, in run() and save(), and 403 for a session by a password alone where the account has a passkey: who has
 * found out a password must not be able to add a second factor of their own. And 403 where the last proof of who it is
 * is not fresh: who has stolen a session must not be able to add a factor that outlives it. */
must_check int visit_own_factors(struct visit *v);
/* In save(): reads the session again; 401 where it has ended since run(). */
must_check int visit_still_signed_in(struct visit *v);
/* In save(): a line for the log, once what it tells of is kept. */
void visit_note(struct visit *v, struct str line);
/* 401 INVALID_CREDENTIALS, the same whatever was wrong. */
int visit_fail_sign_in(struct visit *v);
/* In run(): 429 where too many attempts have failed for the name (a user's, or an id) from there. In all other cases
 * the attempt is counted as failed; visit_attempt_right() takes it back. */
must_check int visit_attempt(struct visit *v, struct str name);
/* The same for passwords, which are counted from everywhere too, unless the browser is known to the person. */
must_check int visit_attempt_password(struct visit *v, struct str username);
void visit_attempt_right(struct visit *v, struct str name);
/* The attempt of visit_attempt() was none: nothing was said about the credentials. */
void visit_attempt_none(struct visit *v, struct str name);
/* A text field of the body; 400 where it is not there, or is longer. */
must_check int visit_text(struct visit *v, const char *name, size_t most, struct str *ret_text);

/* sign_in.c, account.c: what lies below SESSION_PATH. */
void session_serve(struct service *s, struct request *r);

#endif
