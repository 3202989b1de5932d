/* Answers to invitations: GET tells whose it is and where to, POST accepts, DELETE declines. Outside the catalog: the
 * token is the only credential, so that somebody without an account can use it; wrong ones, and wrong passwords, are
 * failed sign-ins.
 *
 * The link proves the address: it went there and nowhere else. Accepting makes the account, with the password that is
 * given. Somebody who has accepted before gives the password of the account, so that a link in the wrong hands does not
 * open one. An account whose address nobody has proved (kept by an older version, with whatever password its maker
 * chose) gets its password now. Passwords are hashed on a thread of the request's own.
 *
 * Browsers that open the letter's link get the console's page; who accepts there is signed in. */
#include "api/console/console.h"
#include "api/edge/edge.h"
#include "api/federation/federation.h"
#include "api/sign_in/sign_in.h"
#include "api/users/users.h"

#include "base/id.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/pool.h"
#include "call/workers.h"
#include "catalog/formats.h"
#include "identity/attempts.h"
#include "identity/identity.h"
#include "identity/password.h"
#include "identity/totp.h"
#include "trail/events.h"

#include <errno.h>

#define NAME_MAX_BYTES 200
#define HASHING_MAX 4 /* few more than are hashed at once: those that wait do so here, where it is fair */
#define HASHING_WAIT 256

/* Not of the catalog: it only stands in the events. */
static const struct op answer_op = {.id = "answerInvitation", .method = METHOD_POST};

static struct pool hashing = POOL(HASHING_MAX, HASHING_WAIT); /* for passwords */

struct answering {
	struct write write;
	struct pool_work work;
	struct service *service;
	struct request *request;
	struct str token;
	struct member invitation;
	json_t *body; /* of POST; freed with the arena */
	bool declines;
	bool has_account, is_proven,
	        has_password;           /* before the answer; proven: its owner has accepted something before */
	struct str kept_hash, new_hash; /* of the password: the account's; to be set */
	struct call call;               /* for refusals and events */
	json_t *out;                    /* what it is answered with, or NULL; freed with the arena */
	struct str cookie;              /* of the session that has begun; or empty */
};

static int fail_store(struct answering *w, int error)
{
	if (error != -ENOENT)
		return call_fail_store(&w->call, error, "invitations");
	return call_fail(&w->call, 404, "INVITATION_NOT_FOUND",
	                 "There is no such invitation, or it has been answered, withdrawn, or is over. Ask to be "
	                 "invited again.");
}

static int fail_busy(struct answering *w, const char *detail)
{
	call_header(&w->call, STR("retry-after"), STR("1"));
	return call_fail(&w->call, 503, "SERVICE_BUSY", "%s Try again in a second.", detail);
}

static void respond(struct answering *w)
{
	struct request *r = w->request;
	for (size_t i = 0; i < w->call.extra_header_count; i++)
		response_header(&r->response, w->call.extra_headers[i][0].p, w->call.extra_headers[i][1]);
	if (w->cookie.n && !w->call.problem.status)
		response_header(&r->response, "set-cookie", w->cookie);
	if (w->call.problem.status)
		answer_problem(r, &w->call.problem);
	else if (w->out)
		answer_value(r, 200, json_incref(w->out));
	else
		r->response.status = 204;
}

static void respond_now(struct answering *w)
{
	respond(w);
	respond_here(w->request);
}

/* Who and where. */

static int account_look(struct tx *tx, struct answering *w)
{
	struct doc user;
	struct arena *a = w->request->arena;
	int result = tx_get(tx, a, "user", w->invitation.user_id, &user);
	w->has_account = result == 0;
	w->is_proven = result == 0 && user_is_proven(a, &user);
	w->has_password = w->is_proven && user.secret.n;
	w->kept_hash = result == 0 ? user.secret : STR_NONE;
	return result == -ENOENT ? 0 : result;
}

static int invitation_write(struct tx *tx, struct answering *w)
{
	struct arena *a = w->request->arena;
	w->out = json_new(a);
	int result = invitation_view(tx, a, &w->invitation, w->invitation.group_id, w->out);
	json_put(w->out, "hasAccount", json_boolean(w->has_account));
	json_put(w->out, "hasPassword", json_boolean(w->has_password));
	return result;
}

/* The body of POST. */

static void name_check(struct answering *w, const char *field, struct faults *faults)
{
	struct str name = json_field(w->body, field);
	bool known = w->has_account || json_field(w->invitation.profile, field).n;
	if (known && !json_object_get(w->body, field))
		return;
	if (w->is_proven)
		faults_add(faults, w->request->arena, str_of(field), "is the account's already; leave it out");
	else if (!str_trim(name).n || name.n > NAME_MAX_BYTES)
		faults_add(faults, w->request->arena, str_of(field), "must be a name of at most %d bytes",
		           NAME_MAX_BYTES);
}

static void fields_check(struct answering *w, struct faults *faults)
{
	struct arena *a = w->request->arena;
	struct str password = json_field(w->body, "password");
	const struct schema *account = schema_find(STR("CloudAppUser"));
	const char *key;
	json_t *value;
	json_object_foreach(w->body, key, value)
	{
		bool checked = str_is_one_of("country|mobileNumber", str_of(key));
		if (!checked && !str_is_one_of("password|firstName|lastName", str_of(key)))
			faults_add(faults, a, str_of(key), "is not a field of this");
		else if (checked && (!json_is_string(value) ||
		                     !pattern_matches(schema_field(account, str_of(key))->schema->pattern,
		                                      json_field(w->body, key))))
			faults_add(faults, a, str_of(key), "must be of the form that the user schema says");
	}
	name_check(w, "firstName", faults);
	name_check(w, "lastName", faults);
	if (utf8_length(password) < PASSWORD_MIN || password.n > PASSWORD_MAX)
		faults_add(faults, a, STR("password"), "must have %d characters or more, and not more than %d bytes",
		           PASSWORD_MIN, PASSWORD_MAX);
}

static int body_read(struct answering *w)
{
	struct request *r = w->request;
	struct faults faults = {.count = 0};
	json_t *body = json_keep(r->arena, json_loadb(r->body.p, r->body.n, JSON_REJECT_DUPLICATES, NULL));
	if (!json_is_object(body))
		return call_fail(&w->call, 400, "INVALID_JSON",
		                 "The body must be a JSON object with a password, firstName and lastName.");
	w->body = body;
	fields_check(w, &faults);
	return faults.count ? call_fail_faults(&w->call, &faults) : 0;
}

/* The write. */

static int event_add(struct answering *w, const char *type, struct str org_id, struct str group_id)
{
	event_set_type(&w->call, type);
	event_scope(&w->call, org_id, group_id);
	event_field(&w->call, "targetUsername", w->invitation.username);
	return event_next(&w->call);
}

/* What the person says of itself, and where it says nothing, what was said of it. */
static json_t *profile_of(struct answering *w)
{
	json_t *profile = json_new(w->request->arena);
	if (w->invitation.profile)
		json_object_update(profile, w->invitation.profile);
	json_object_update(profile, w->body);
	return profile;
}

static int account_ensure(struct tx *tx, struct answering *w)
{
	struct arena *a = w->request->arena;
	struct doc user;
	int result = tx_get(tx, a, "user", w->invitation.user_id, &user);
	if (result == -ENOENT)
		return w->has_account ? -ENOENT
		                      : user_add(tx, a, w->invitation.username, profile_of(w), w->new_hash, &user);
	if (result < 0)
		return result;
	/* Somebody made the account, or changed its password, while this was worked on. */
	if (!w->has_account || !str_eq(user.secret, w->kept_hash))
		return call_fail(&w->call, 409, "ACCOUNT_CHANGED",
		                 "The account has just changed. Look at the invitation again.");
	if (w->has_password)
		return 0;
	result = account_take_over(tx, a, &user);
	if (result < 0)
		return result;
	user.secret = w->new_hash;
	json_t *body = doc_json(a, user.body);
	user_profile_set(body, w->body);
	user.body = json_text(a, body);
	return tx_update(tx, &user);
}

static int join_place(struct tx *tx, struct answering *w, const struct place *p, struct str org_id)
{
	struct arena *a = w->request->arena;
	struct str user_id = w->invitation.user_id;
	int result = p->is_team ? team_set_user(tx, a, p->id, user_id, true)
	                        : grant_add(tx, a, GRANTEE_USER, user_id, false, p->id, p->roles);
	if (p->is_team)
		event_field(&w->call, "teamId", p->id);
	if (result < 0)
		return result;
	return p->is_team ? event_add(w, "JOINED_TEAM", org_id, STR_NONE) : event_add(w, "JOINED_GROUP", org_id, p->id);
}

static int join(struct tx *tx, struct answering *w, struct str org_id)
{
	const struct member *i = &w->invitation;
	/* For a member of the organization: the token stands for nothing otherwise. */
	if (!i->org_id.n)
		return join_place(tx, w, &(struct place){i->group_id, false, i->roles}, org_id);
	/* The organization may have begun to take only some domains since it invited. */
	int result = federation_admit(&w->call, org_id, i->username);
	if (result == 0)
		result = grant_add(tx, w->request->arena, GRANTEE_USER, i->user_id, true, org_id, i->roles);
	if (result == 0)
		result = federation_joined(tx, w->request->arena, i->user_id);
	if (result == 0)
		result = event_add(w, "JOINED_ORG", org_id, STR_NONE);
	for (size_t k = 0; result == 0 && k < i->place_count; k++)
		result = join_place(tx, w, &i->places[k], org_id);
	return result;
}

static int invitation_decline(struct tx *tx, struct answering *w, struct str org_id)
{
	const struct member old = w->invitation;
	struct member *i = &w->invitation;
	i->rejected = true;
	int result = i->org_id.n ? invitation_update(tx, w->request->arena, &old, i)
	                         : invitation_delete(tx, w->request->arena, i);
	if (result < 0)
		return result;
	return event_add(w, i->org_id.n ? "ORG_INVITATION_DELETED" : "GROUP_INVITATION_DELETED", org_id, i->group_id);
}

/* For the console. Where the account asks for a code too, the person signs in as always. */
static int sign_in(struct tx *tx, struct answering *w)
{
	struct arena *a = w->request->arena;
	struct session session;
	bool codes = false;
	if (request_fetch_site(w->request) != FETCH_SAME_ORIGIN)
		return 0;
	int result = totp_is_on(tx, a, w->invitation.user_id, &codes);
	if (result < 0 || codes)
		return result;
	result = session_replace(tx, a, w->request);
	return result < 0 ? result
	                  : session_begin(tx, a, w->service, w->request, w->invitation.user_id, "invitation", false,
	                                  &session, &w->cookie);
}

static int invitation_accept(struct tx *tx, struct answering *w, struct str org_id)
{
	struct arena *a = w->request->arena;
	const struct member *i = &w->invitation;
	int result = account_ensure(tx, w);
	if (result == 0)
		result = user_signed_in(tx, a, i->user_id);
	if (result == 0)
		result = principal_load(tx, PRINCIPAL_USER, i->user_id, &w->call.caller);
	if (result == 0)
		result = join(tx, w, org_id);
	principal_unref(w->call.caller);
	w->call.caller = NULL;
	if (result == 0)
		result = invitation_delete(tx, a, i);
	if (result == 0)
		result = sign_in(tx, w);
	w->out = json_new(a);
	json_put_str(w->out, "userId", i->user_id);
	json_put_str(w->out, "username", i->username);
	json_put_str(w->out, i->org_id.n ? "orgId" : "groupId", i->org_id.n ? i->org_id : i->group_id);
	return result;
}

static int answer_run(struct tx *tx, void *ctx)
{
	struct answering *w = ctx;
	struct doc project = {.rev = 0};
	w->call.problem = (struct problem){0};
	w->cookie = STR_NONE;
	w->call.tx = tx;
	w->call.event = (struct call_event){0};
	/* Again, in the transaction: it may have been answered or withdrawn since. */
	int result = invitation_by_token(tx, w->request->arena, w->token, &w->invitation);
	if (result == 0 && !w->invitation.org_id.n)
		result = tx_get(tx, w->request->arena, "project", w->invitation.group_id, &project);
	if (result < 0)
		return result;
	struct str org_id = w->invitation.org_id.n ? w->invitation.org_id : project.parent;
	return w->declines ? invitation_decline(tx, w, org_id) : invitation_accept(tx, w, org_id);
}

static void sign_in_tell(const struct answering *w)
{
	char peer[IP_TEXT];
	ip_format(&w->request->peer, peer);
	log_info("sign-in: %.*s from %s by invitation", STR_ARG(w->invitation.username), peer);
	attempt_signed_in(w->service->attempts);
}

static void answer_done(void *ctx, int result)
{
	struct answering *w = ctx;
	if (result < 0 && !w->call.problem.status)
		fail_store(w, result);
	if (w->cookie.n && !w->call.problem.status)
		sign_in_tell(w);
	respond(w);
	http_respond_from_thread(w->request);
}

static void start_write(struct answering *w)
{
	w->write =
	        (struct write){.run = answer_run, .done = answer_done, .ctx = w, .item.key = address_key(w->request)};
	if (store_write(w->service->store, &w->write))
		return;
	fail_busy(w, "The service has too many writes waiting.");
	respond_now(w);
}

/* Passwords. */

static void hashed(struct request *r)
{
	struct answering *w = r->app;
	r->app = NULL; /* the router takes what is there for a call of the catalog */
	if (w->call.problem.status)
		respond_now(w);
	else
		start_write(w);
}

static void hash_run(void *arg)
{
	struct answering *w = arg;
	struct str password = json_field(w->body, "password");
	if (w->has_password && password_verify(password, w->kept_hash)) {
		attempt_take_back(w->service->attempts, w->invitation.id, &w->request->peer);
	} else if (w->has_password) {
		attempt_wrong(w->service->attempts);
		call_fail_field(&w->call, 403, "WRONG_PASSWORD", "password", "is not the one of the account.");
	} else if (password_hash(w->request->arena, password, &w->new_hash) < 0) {
		call_fail(&w->call, 503, "SERVICE_BUSY", "The service could not do this now. Try again in a second.");
	}
	http_call_on_loop(w->request, hashed);
}

/* Of the address, or of an invitation from there: passwords are people's, so they are not even looked at. */
static int attempt_count(struct answering *w, struct str invitation)
{
	unsigned seconds;
	enum attempt_state state = attempt_begin(w->service->attempts, invitation, &w->request->peer, &seconds);
	if (state == ATTEMPT_OPEN)
		return 0;
	if (state == ATTEMPT_KNOWN)
		attempt_take_back(w->service->attempts, invitation, &w->request->peer);
	call_header(&w->call, STR("retry-after"), arena_printf(w->request->arena, "%u", seconds));
	return call_fail(&w->call, 429, "TOO_MANY_FAILED_ATTEMPTS", "Too many failed attempts. Try again in a minute.");
}

static void start_hash(struct answering *w)
{
	if (w->has_password && attempt_count(w, w->invitation.id) < 0) {
		respond_now(w);
		return;
	}
	w->request->app = w;
	w->work = (struct pool_work){.run = hash_run, .ctx = w};
	if (pool_run(&hashing, &w->work, address_key(w->request)))
		return;
	if (w->has_password)
		attempt_take_back(w->service->attempts, w->invitation.id, &w->request->peer);
	w->request->app = NULL;
	fail_busy(w, "The service has too many such calls under way.");
	respond_now(w);
}

/* The request. */

static int find(struct answering *w)
{
	struct request *r = w->request;
	struct tx *reader = lane_here(w->service)->reader;
	tx_begin_read(reader);
	int result = invitation_by_token(reader, r->arena, w->token, &w->invitation);
	if (result == 0)
		result = account_look(reader, w);
	if (result == 0 && !str_is(r->method, "POST") && !str_is(r->method, "DELETE"))
		result = invitation_write(reader, w);
	tx_end_read(reader);
	if (result == -ENOENT && (result = attempt_count(w, STR_NONE)) == 0) {
		attempt_wrong(w->service->attempts);
		result = -ENOENT;
	}
	if (result < 0)
		return w->call.problem.status ? result : fail_store(w, result);
	return 0;
}

static int method_check(struct answering *w)
{
	if (str_is_one_of("GET|HEAD|POST|DELETE", w->request->method))
		return 0;
	call_header(&w->call, STR("allow"), STR("DELETE, GET, HEAD, POST"));
	return call_fail(&w->call, 405, "METHOD_NOT_ALLOWED", "Use GET, POST or DELETE.");
}

/* The letter's link, opened in a browser. */
static bool is_page(const struct request *r)
{
	struct str accept = request_header(r, "accept");
	return str_starts(r->path, STR(INVITATIONS_LINK)) && str_is_one_of("GET|HEAD", r->method) && accept.n &&
	       memmem(accept.p, accept.n, "text/html", 9);
}

static void page_lead(struct request *r, struct str token)
{
	r->response.status = 303;
	response_header(&r->response, "location",
	                arena_printf(r->arena, CONSOLE_PATH "invitations/%.*s", STR_ARG(token)));
	respond_here(r);
}

void invitations_serve(struct service *s, struct request *r)
{
	struct answering *w = arena_new_of(r->arena, struct answering);
	const char *slash = memrchr(r->path.p, '/', r->path.n);
	w->service = s;
	w->request = r;
	w->call = (struct call){.service = s, .request = r, .arena = r->arena, .op = &answer_op};
	w->token = (struct str){slash + 1, r->path.n - (size_t)(slash + 1 - r->path.p)};
	if (is_page(r)) {
		page_lead(r, w->token);
		return;
	}
	w->declines = str_is(r->method, "DELETE");
	bool posts = str_is(r->method, "POST");
	int result = method_check(w);
	if (result == 0)
		result = find(w);
	if (result == 0 && posts)
		result = body_read(w);
	if (result < 0 || (!posts && !w->declines))
		respond_now(w);
	else if (posts)
		start_hash(w);
	else
		start_write(w);
}
