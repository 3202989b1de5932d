/* Mail to people, through an SMTP server. Letters wait in a bounded queue in memory, and a thread of their own sends
 * them: no call waits for a mail server or fails because of it. */
#ifndef STEWARD_OUTBOX_MAIL_H
#define STEWARD_OUTBOX_MAIL_H

#include "base/arena.h"

struct mail;

struct mail_options {
	const char *url;           /* smtp://HOST[:PORT] or smtps://HOST[:PORT] */
	const char *from;          /* address of the sender */
	const char *user;          /* or NULL: no sign-in */
	const char *password_file; /* with user */
};

/* Reads the password, starts the thread. On failure: a message on stderr, negative. */
must_check int mail_open(const struct mail_options *o, struct mail **ret_mail);
/* Sends letters that were not tried yet, for at most five seconds, and drops the rest with a warning. Accepts NULL. */
void mail_close(struct mail *m);

/* Queues a letter: ASCII subject, UTF-8 text with "\n" lines. From any thread; never waits. A letter that cannot be
 * delivered is tried again three times, then dropped with a line in the log that names the address and not the text. */
void mail_send(struct mail *m, struct str to, struct str subject, struct str text);
/* The same on behalf of a sender (an organization's id): senders take turns, and none can fill the queue. */
void mail_send_for(struct mail *m, struct str sender, struct str to, struct str subject, struct str text);

/* The letter in the form that is sent (RFC 5322). */
struct str mail_letter(struct arena *a, struct str from, struct str to, struct str subject, struct str text,
                       int64_t now_ms);

#endif
