/* Who is signed in, the sessions of the account, and the table of paths below /api/session. */
#include "api/sign_in/sign_in.h"

#include "api/users/users.h"
#include "base/id.h"
#include "identity/grants.h"
#include "identity/links.h"
#include "identity/recovery.h"
#include "identity/totp.h"
#include "outbox/outbox.h"

#include <errno.h>

/* GET: who am I? */

static int user_show(struct visit *v)
{
	static const char *const fields[] = {"id", "username", "firstName", "lastName"};
	struct doc user;
	int64_t keys = 0, codes = 0;
	bool totp = false;
	int result = tx_get(v->reader, v->arena, "user", v->session.user_id, &user);
	if (result == 0)
		result = totp_is_on(v->reader, v->arena, user.id, &totp);
	if (result == 0)
		result = recovery_left(v->reader, v->arena, user.id, &codes);
	if (result == 0)
		result = tx_count(v->reader, "user_passkey", user.id, &keys);
	if (result < 0)
		return result;
	json_t *shown = json_object();
	json_copy_fields(shown, doc_json(v->arena, user.body), fields, sizeof fields / sizeof *fields);
	json_put(v->out, "user", shown);
	json_put(v->out, "security",
	         json_pack("{s:b, s:b, s:I, s:I}", "password", user.secret.n != 0, "totp", totp, "passkeys",
	                   (json_int_t)keys, "recoveryCodesLeft", (json_int_t)codes));
	return 0;
}

static void session_show(struct visit *v)
{
	json_t *shown = json_object();
	json_put_str(shown, "id", v->session.id);
	json_put_time(shown, "createdAt", v->session.created_ms);
	json_put_time(shown, "expiresAt", v->session.expires_ms);
	json_put_time(shown, "idleAt", v->session.idle_ms);
	json_put_str(shown, "method", v->session.how);
	json_put(v->out, "session", shown);
}

/* The roles with all that they include, those of teams too: what the gates see. */
static int roles_show(struct visit *v)
{
	const struct principal *p = v->call.caller;
	struct grant_row *rows = arena_new_array(v->arena, struct grant_row, p->grant_count + 1);
	json_t *orgs = json_array();
	int result = 0;
	json_put(v->out, "orgs", orgs);
	for (size_t i = 0; result == 0 && i < p->grant_count; i++) {
		struct doc org;
		bool in_org = p->grants[i].roles & role_org_mask;
		role_mask kind = in_org ? role_org_mask : ~role_org_mask;
		rows[i] = (struct grant_row){{p->grants[i].scope.z, ID_LEN}, in_org, p->grants[i].roles & kind};
		if (!in_org && !p->grants[i].shut)
			continue;
		result = tx_get(v->reader, v->arena, "org", rows[i].id, &org);
		if (result == 0) {
			json_t *one = json_object();
			json_put_str(one, "id", org.id);
			json_put_str(one, "name", json_field(doc_json(v->arena, org.body), "name"));
			if (p->grants[i].shut)
				json_put(one, "multiFactorAuthRequired", json_true());
			json_array_append_new(orgs, one);
		}
		result = result == -ENOENT ? 0 : result;
	}
	json_put(v->out, "roles", assignments_json(rows, p->grant_count));
	return result;
}

/* Who sees the hosts, and hands out links of invitations: owners of the first organization. */
static int operator_find(struct visit *v, bool *ret_operator)
{
	struct str first;
	int result = tx_meta_get(v->reader, v->arena, "bootstrap", &first);
	*ret_operator = result == 0 && principal_org_roles(v->call.caller, first) & role_owner_mask;
	return result == -ENOENT ? 0 : result;
}

static int operator_show(struct visit *v)
{
	bool is_operator;
	int result = operator_find(v, &is_operator);
	if (is_operator)
		json_put(v->out, "operator", json_true());
	if (!outbox_has_mail(v->service->outbox))
		json_put(v->out, "noMail", json_true());
	return result;
}

static int who_am_i(struct visit *v)
{
	v->out = json_new(v->arena);
	int result = user_show(v);
	session_show(v);
	if (result == 0)
		result = roles_show(v);
	return result < 0 ? result : operator_show(v);
}

/* Ending sessions. */

static int sign_out_save(struct visit *v)
{
	int result = session_end(v->call.tx, v->arena, v->session.user_id, v->session.id);
	v->cookie = STR(SESSION_COOKIE_GONE);
	return result == -ENOENT ? 0 : result;
}

/* Also of a session that has ended already: the cookie goes. */
static int sign_out(struct visit *v)
{
	int result = session_find(v->reader, v->arena, v->request, &v->session);
	v->cookie = STR(SESSION_COOKIE_GONE);
	if (result == 0)
		v->save = sign_out_save;
	return result == -ENOENT || result == -EACCES ? 0 : result;
}

static int sessions_show(struct visit *v)
{
	json_t *list = json_array();
	v->out = json_new(v->arena);
	json_put(v->out, "results", list);
	return sessions_list(v->reader, v->arena, v->session.user_id, v->session.id, list);
}

static int one_end_save(struct visit *v)
{
	bool own = str_eq(v->rest, v->session.id);
	int result = session_end(v->call.tx, v->arena, v->session.user_id, v->rest);
	if (result == 0 && own)
		v->cookie = STR(SESSION_COOKIE_GONE);
	if (result == 0 && !own) /* it may have been stolen */
		result = links_end(v->call.tx, v->arena, v->session.user_id);
	return result == -ENOENT ? call_fail(&v->call, 404, "SESSION_NOT_FOUND", "The account has no such session.")
	                         : result;
}

static int one_end(struct visit *v)
{
	v->save = one_end_save;
	return 0;
}

static int others_end_save(struct visit *v)
{
	return sessions_end(v->call.tx, v->arena, v->session.user_id, v->session.id);
}

static int others_end(struct visit *v)
{
	v->save = others_end_save;
	return 0;
}

/* Links of invitations, where no letter brings them. A link proves the invited address, so inviters do not get it: they
 * would take accounts in the names of others. The operator can run `steward invitation-link` just as well. */

static int invitation_save(struct visit *v)
{
	struct str link, *id = v->state;
	int result = visit_still_signed_in(v);
	if (result == 0)
		result = invitation_link(v->call.tx, v->arena, v->service->base_url, *id, &link);
	if (result == -ENOENT)
		return call_fail(&v->call, 404, "INVITATION_NOT_FOUND", "No invitation that waits has this id.");
	if (result < 0)
		return result;
	v->out = json_new(v->arena);
	json_put_str(v->out, "link", link);
	visit_note(v, arena_printf(v->arena, "invitation: a link for %.*s was made in the console by session %.*s",
	                           STR_ARG(*id), STR_ARG(v->session.id)));
	return 0;
}

static int invitation_open(struct visit *v)
{
	bool is_operator;
	struct str *id = v->state = arena_new_of(v->arena, struct str);
	int result = operator_find(v, &is_operator);
	if (result == 0)
		result = visit_text(v, "invitationId", ID_LEN, id);
	if (result < 0)
		return result;
	if (!is_operator)
		return call_fail(&v->call, 403, "NOT_THE_OPERATOR",
		                 "Links of invitations are for owners of the first organization.");
	if (outbox_has_mail(v->service->outbox))
		return call_fail(&v->call, 409, "LETTERS_ARE_SENT", "There is a mail server: the letter has the link.");
	if (!session_is_proven(v->session.proven_ms))
		return call_fail(&v->call, 403, PROOF_NEEDED, PROOF_NEEDED_DETAIL);
	v->save = invitation_save;
	return 0;
}

static const struct visit_row rows[] = {
        {"GET", "", who_am_i, VISIT_SIGNED_IN},
        {"DELETE", "", sign_out, 0},
        {"POST", "/password", sign_in_password, VISIT_BODY},
        {"POST", "/totp", sign_in_totp, VISIT_BODY},
        {"DELETE", "/totp", totp_end, VISIT_SIGNED_IN | VISIT_BODY},
        {"POST", "/totp/enroll", totp_begin, VISIT_SIGNED_IN},
        {"POST", "/totp/confirm", totp_confirm, VISIT_SIGNED_IN | VISIT_BODY},
        {"POST", "/recovery", sign_in_recovery, VISIT_BODY},
        {"POST", "/recovery-codes", recovery_again, VISIT_SIGNED_IN},
        {"POST", "/proof", account_prove, VISIT_SIGNED_IN | VISIT_BODY},
        {"POST", "/change-password", account_change_password, VISIT_SIGNED_IN | VISIT_BODY},
        {"POST", "/forgotten", forgotten_ask, VISIT_BODY},
        {"POST", "/reset", reset_set, VISIT_BODY},
        {"GET", "/first/", first_look, 0},
        {"POST", "/first", first_set, VISIT_BODY},
        {"POST", "/invitation-link", invitation_open, VISIT_SIGNED_IN | VISIT_BODY},
        {"GET", "/device/", device_show, VISIT_SIGNED_IN},
        {"POST", "/device", device_decision, VISIT_SIGNED_IN | VISIT_BODY},
        {"GET", "/sessions", sessions_show, VISIT_SIGNED_IN},
        {"DELETE", "/sessions", others_end, VISIT_SIGNED_IN},
        {"DELETE", "/sessions/", one_end, VISIT_SIGNED_IN},
};

void session_serve(struct service *s, struct request *r)
{
	visit_serve(s, r, rows, sizeof rows / sizeof *rows);
}
