/* What lies below /api/session: the functions of its rows, which session.c lists, and what they share. */
#ifndef STEWARD_API_EDGE_SIGN_IN_H
#define STEWARD_API_EDGE_SIGN_IN_H

#include "api/edge/visit.h"

/* sign_in.c */
visit_step sign_in_password, sign_in_totp, sign_in_recovery, first_look, first_set, forgotten_ask, reset_set;
/* 400 for a password that is too short, too long, or the name itself. */
must_check int password_check(struct visit *v, const char *field, struct str password, struct str username);
/* The link that gives the first owner's account to who opens it first. */
struct str first_link(struct arena *a, const char *base_url, struct str user_id);
/* Whether it still does. */
bool first_is_open(struct arena *a, const struct doc *user);

/* account.c */
visit_step account_change_password, totp_begin, totp_confirm, totp_end, recovery_again;
/* In a write, before the link of a letter sets an account's password: all sessions end, and where the account's owner
 * was never there before, what somebody else may have put into it (passkeys, codes) goes. */
must_check int account_take_over(struct tx *tx, struct arena *a, const struct doc *user);
/* In save(): the account has this password from now on, and all its sessions but one (empty: all) end. Changes
 * user->secret. */
must_check int account_set_password(struct visit *v, struct doc *user, struct str hash, struct str but);

#endif
