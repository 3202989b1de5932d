/* Threads that send something to receivers outside, which may be slow, refuse, or never answer. One thread looks what
 * is due, and starts a short-lived one for each receiver that has something: a few at a time, fewer for one tenant and
 * for receivers that fail, so that nobody's dead receiver holds up the others. The outbox and the log export send so.
 *
 * The caller brings three things: `due` finds what is due and calls senders_start() for it; `send` sends one piece of
 * it; and what came of that is written by senders_record(), also through a failover of the store. How long a receiver
 * that failed is left alone is the caller's to keep, in the store or in memory. */
#ifndef STEWARD_JOBS_SENDERS_H
#define STEWARD_JOBS_SENDERS_H

#include "store/store.h"

struct senders;

struct senders_options {
	const char *name; /* for the log, as "outbox" */
	struct store *store;
	void *ctx; /* of the functions */
	/* On the looking thread, again and again. `news`: somebody has called senders_wake() since. */
	void (*due)(void *ctx, bool news);
	/* On a thread of its own. Returns whether another piece may leave now. */
	bool (*send)(void *ctx, void *item);
	/* On the same thread, after its last piece: the item is the caller's again. */
	void (*done)(void *ctx, void *item);
	int64_t look_us; /* between two looks, when nobody wakes the thread */
	/* How many threads may be under way, beside the bound of them all: for one tenant; via one server, vendor or
	 * host that may be slow for all (0: no bound); for receivers that have failed. `spare` places are left to
	 * tenants that have none yet. */
	unsigned of_tenant, of_via, failing, spare;
};

/* Starts the looking thread. -EAGAIN: it cannot be started. */
must_check int senders_open(const struct senders_options *o, struct senders **ret_senders);
/* No new piece is begun, and those under way may take a few seconds longer; returns when all threads are over. Before
 * the store is closed. Accepts NULL. */
void senders_close(struct senders *s);
/* Something may be due. From any thread; accepts NULL. */
void senders_wake(struct senders *s);

/* Whom something is for. Texts are cut where they are longer than an id is; `via` may be a bit longer. */
struct sender_for {
	struct str receiver; /* has one thread at a time; STR_NONE: the caller sees to that */
	struct str tenant, via;
	bool failing; /* it has failed before */
};

/* On the looking thread: whether a thread could be started for it now. */
bool senders_have_place(struct senders *s, const struct sender_for *whom);
/* On the looking thread. False: there is no place, or no thread; the item stays the caller's. */
must_check bool senders_start(struct senders *s, const struct sender_for *whom, void *item);

/* On a sender's thread: runs the write that records what came of a piece, and again each second while the store does
 * not take it. -ESTALE and -ESHUTDOWN are final, as is the end of the process. */
must_check int senders_record(struct senders *s, int (*record)(struct tx *tx, void *ctx), void *ctx);
/* On a sender's thread: waits so long, or until the process ends. */
void senders_pause(struct senders *s, int64_t us);
/* Whether the process ends: nothing new is begun. */
bool senders_end(const struct senders *s);
/* Whether it ends and the time for what was under way is over: a transfer that is cut off then says nothing of the
 * receiver. For libcurl's callbacks, with the senders as `ctx`. */
bool senders_cut_off(void *ctx);

/* Whether a time, of the service's clock, is still to come. One that no clock of now can have set is not: clocks are
 * put back, too. */
bool due_later(int64_t ms);

#endif
