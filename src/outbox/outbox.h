/* All that leaves for people and for services of others, in one durable queue. A message is added in the transaction of
 * what it tells about, so that it leaves if and only if that was kept. Messages to one receiver leave in order, one at
 * a time; a receiver that fails delays its own messages only. Several processes may share the store: one of them at a
 * time holds a receiver.
 *
 *   "outbox_receiver"  id = hash of tenant and receiver; parent none, or "later" while it fails;
 *                      body {"tenant","via","dueMs","attempts","owner","leaseMs"}
 *   "outbox_message"   id; parent = outbox_receiver: what waits, in order
 *   "outbox_waiting"   id = the message's, parent = tenant: how much of it is whose
 *   "delivery"         id = the message's; parent = who keeps the record, name = key; secret: the content, sealed,
 *                      until it has left; body {"id","kind","receiver","status","attempts","created",
 *                      "updated","lastError"?,...}: status QUEUED, DELIVERED, FAILED or DROPPED
 *
 * A process that is killed between the receiver's answer and the record of it sends the message again: with the same
 * id, by which receivers can tell (X-Steward-Delivery, Message-ID). */
#ifndef STEWARD_OUTBOX_OUTBOX_H
#define STEWARD_OUTBOX_OUTBOX_H

#include "base/buf.h"
#include "base/option.h"
#include "outbox/mail.h"
#include "store/store.h"

#include <jansson.h>

struct outbox;

struct outbox_options {
	struct store *store;
	const struct mail_options *mail;      /* NULL: no mail server */
	const char *ca_file;                  /* certificates to trust instead of the system's, or NULL */
	bool private_networks;                /* tenants may send to private and loopback addresses, and over http */
	const struct option_texts *endpoints; /* "slack=https://..." */
};

/* Starts the thread that looks for what is due. On failure: a message on stderr, negative. */
must_check int outbox_open(const struct outbox_options *o, struct outbox **ret_outbox);
/* Ends transfers that are under way; what has not left stays queued. Before the store is closed. Accepts NULL. */
void outbox_close(struct outbox *o);
/* Whether there is a mail server. */
bool outbox_has_mail(const struct outbox *o);
/* What is wrong with an address of a tenant that messages shall go to; NULL: nothing. Static. */
const char *outbox_url_fault(const struct outbox *o, struct arena *a, struct str url);
/* Whether the operator has given an address for that endpoint. */
bool outbox_has_endpoint(const struct outbox *o, const char *name);
/* For what is sent outside of the queue: how addresses may be reached; and the address of an endpoint, the operator's
 * or the vendor's own. STR_NONE: it has none. *ret_trusted: the operator has given it. */
struct post_options;
const struct post_options *outbox_post(const struct outbox *o);
struct str outbox_endpoint(const struct outbox *o, struct str name, bool *ret_trusted);
/* Something may be due: the clock was moved, a message was added. From any thread; accepts NULL. */
void outbox_wake(struct outbox *o);

/* For /metrics. Since the start of this process: what receivers took, attempts that failed and were put off, what was
 * given up, and what was dropped because too much waited or had gone to the address. And what the queue of all
 * processes had when this one last counted. */
struct outbox_stats {
	uint64_t delivered, put_off, failed, dropped;
	uint64_t messages, receivers, failing;
	int64_t oldest_ms; /* when the oldest message was added; 0: none waits */
};
/* From any thread; touches no store. */
void outbox_stats(struct outbox *o, struct outbox_stats *ret_stats);
/* As lines of /metrics; accepts NULL. */
void outbox_metrics_write(struct buf *b, struct outbox *o);

struct outbox_message {
	struct str tenant;     /* the organization, or the person, in whose name it is sent: tenants take turns */
	struct str receiver;   /* "mail:ada@example.com": messages to one leave in order */
	struct str keeper;     /* whose record it is */
	struct str key;        /* of two messages with one key and keeper only the first is sent; empty: none */
	bool forget;           /* no record stays once it has left or failed */
	const char *kind;      /* EMAIL, WEBHOOK ... */
	struct str about;      /* receiver as the record shows it: no secret */
	const json_t *content; /* {"to","subject","text"}, or a request of vendors.h */
	const json_t *record;  /* more fields of the record, or NULL */
	unsigned *room;        /* how many more this write may add, a long one for several: it counts down; or NULL */
};
/* In a write. A message to a receiver or of a tenant with too many that wait, and a letter to an address that has had
 * too many within the hour (hourly.h), are dropped, with a line in the log. */
must_check int outbox_add(struct tx *tx, struct arena *a, const struct outbox_message *m);
/* Counts a message that is not even added, with a line in the log. Returns 0. */
int outbox_drop(const char *kind, struct str about);
/* In a write: a letter without a record. Senders are organizations. */
must_check int outbox_mail(struct tx *tx, struct arena *a, struct str sender, struct str to, struct str subject,
                           struct str text);
/* In a write: the keeper is gone. Its records go too; those of what has not left yet, once that has left. */
must_check int outbox_forget(struct tx *tx, struct arena *a, struct str keeper);

#endif
