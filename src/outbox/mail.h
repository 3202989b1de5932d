/* Mail to people, through an SMTP server: one letter at a time. The queue is the outbox's. */
#ifndef STEWARD_OUTBOX_MAIL_H
#define STEWARD_OUTBOX_MAIL_H

#include "base/arena.h"

#include <curl/curl.h>

struct mail;

struct mail_options {
	const char *url;           /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
	const char *from;          /* address of the sender */
	const char *user;          /* or NULL: no sign-in */
	const char *password_file; /* with user */
};

/* Reads the password. On failure: a message on stderr, negative. */
must_check int mail_open(const struct mail_options *o, struct mail **ret_mail);
/* Accepts NULL. */
void mail_close(struct mail *m);

/* One letter of the outbox: ASCII subject, UTF-8 text with "\n" lines. The id becomes its Message-ID, the same at each
 * attempt. */
struct mail_letter {
	struct str id, to, subject, text;
	int64_t created_ms;
};

/* Sends it now; waits for the server, at most 30 seconds, or until `stops` says so. False, with the reason, when the
 * server has not taken it; *ret_gone: it says that it never will (550 to 554). */
must_check bool mail_deliver(struct mail *m, const struct mail_letter *l, bool (*stops)(void *ctx), void *ctx,
                             bool *ret_gone, char ret_fault[CURL_ERROR_SIZE]);

/* The letter in the form that is sent (RFC 5322). */
struct str mail_text(struct arena *a, struct str from, const struct mail_letter *l);

#endif
