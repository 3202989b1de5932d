/* What lies below /api/session: the functions of its rows, which session.c lists, and what they share. */
#ifndef STEWARD_API_SIGN_IN_SIGN_IN_H
#define STEWARD_API_SIGN_IN_SIGN_IN_H

#include "api/sign_in/visit.h"

/* sign_in.c */
visit_step sign_in_password, sign_in_totp, sign_in_recovery, first_look, first_set, forgotten_ask, reset_set;
/* 400 for a password that is too short, too long, or the name itself. */
must_check int password_check(struct visit *v, const char *field, struct str password, struct str username);
/* The link that gives the first owner's account to who opens it first. */
struct str first_link(struct arena *a, const char *base_url, struct str user_id);
/* Whether it still does. */
bool first_is_open(struct arena *a, const struct doc *user);

/* device.c */
visit_step device_show, device_decision;

/* account.c */
visit_step account_prove, account_change_password, totp_begin, totp_confirm, totp_end, recovery_again;
/* In a write, before the link of a letter sets an account's password: all sessions end, and where the account's owner
 * was never there before, what somebody else may have put into it (passkeys, codes) goes. */
must_check int account_take_over(struct tx *tx, struct arena *a, const struct doc *user);
/* In save(): the link of a letter sets the password. All sessions end, what was added to the account lately goes, since
 * a thief may have added it (one-time and recovery codes only where not keeps_codes), and its owner is told what went
 * and what is left: [{"kind","name"?,"addedAt"?}, ...], freed with the arena. */
struct found_factors {
	json_t *removed, *kept;
};
must_check int account_reset(struct visit *v, struct doc *user, struct str hash, bool keeps_codes,
                             struct found_factors *f);
/* In save(): the account has this password from now on, and all its sessions but one (empty: all) end. Changes
 * user->secret. */
must_check int account_set_password(struct visit *v, struct doc *user, struct str hash, struct str but);

/* In a write: a letter to an account's owner. There must be a mail server. */
must_check int account_letter(struct tx *tx, struct arena *a, struct str user_id, struct str username,
                              const char *subject, struct str text);
/* In save(): how the account is signed in to has changed: a line in the log, and a letter to its owner, who may not be
 * the one who did it. */
must_check int account_changed(struct visit *v, struct str user_id, struct str username, const char *what);

/* sign_in.c, in a write: a link that sets a new password, once and within an hour, for the operator to hand over; and
 * where wanted, one-time codes of the account are not asked for any more. -ENOENT: nobody has that name. */
must_check int password_link(struct tx *tx, struct arena *a, const char *base_url, struct str username,
                             bool without_codes, struct str *ret_link);

/* passkeys.c, in a write: the passkey signs nobody in any more, and may be registered again. */
must_check int passkey_delete(struct tx *tx, struct arena *a, const struct doc *passkey);

/* passkeys.c, oidc.c: paths of theirs below SESSION_PATH. */
void passkeys_serve(struct service *s, struct request *r);
void oidc_serve(struct service *s, struct request *r);
/* saml.c: the same, and where SAML providers send their answers (saml_acs_url()). */
#define SAML_PATH "/sso/saml2/"
void saml_serve(struct service *s, struct request *r);

#endif
