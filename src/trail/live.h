/* Events as they are committed, for callers who listen: bodies in the form of server-sent events that do not end.
 *
 * One thread reads new events from the store, in the order of their commits, whichever process has written them, and
 * encodes each once into a ring that all listeners share. A listener is a place in the ring. It holds no copies, so a
 * slow reader costs no memory: when the ring has gone past its place it is told to load anew ("resync"). Nothing new
 * is shown before the rights of listeners were read again, where rights have changed since. */
#ifndef STEWARD_TRAIL_LIVE_H
#define STEWARD_TRAIL_LIVE_H

#include "http/http.h"
#include "store/store.h"

#define LIVE_CONTENT_TYPE "text/event-stream"
#define LIVE_CALLER_MAX 500 /* listeners of one caller */
#define LIVE_ORG_MAX 1000   /* of all callers of one organization, which may have many */
#define LIVE_MAX 5000       /* in all */
#define LIVE_RESERVE 1000   /* of these, for callers and organizations that have fewer than: */
#define LIVE_FEW 20

struct live;

struct live_event {
	int64_t seq;
	struct str id, org_id, group_id, type, cluster;
	bool for_org, for_group;
};

/* Who listens. */
struct live_ear {
	/* Whether it is shown the event. Any thread; must be quick. */
	bool (*sees)(void *ctx, const struct live_event *e);
	/* When rights may have changed, and once a minute: NULL: goes on; else the reason for its end. On the thread
	 * that feeds, and only there. */
	const char *(*check)(void *ctx, struct tx *tx, struct arena *a);
	void (*free)(void *ctx);
	void *ctx;
};

struct live_join {
	struct tx *tx;       /* the calling thread's, outside of a read */
	uint64_t generation; /* of identities, when the caller's rights were read */
	struct str caller;   /* whose share of the listeners it takes */
	struct str org;      /* and of which organization's; or empty */
	int64_t until_ms;    /* when its credential ends; INT64_MAX: never */
	struct str last_id;  /* the last event that the client has seen; or empty: begins now */
	/* The one list that it sees, or NULL: then what was missed is looked for only among the newest events of
	 * all. */
	const struct event_filter *list;
};

must_check int live_open(struct store *s, struct live **ret_live);
/* Sets the request's response.stream. -EMFILE: the caller has too many; -EDQUOT: its organization; -EBUSY: there are
 * too many; -ESHUTDOWN; or the store's. Then free() is not called. */
must_check int live_listen(struct live *l, struct request *r, const struct live_join *j, const struct live_ear *ear);
/* Ends all listeners, and takes no more: before the edge is drained. Accepts NULL. */
void live_end_all(struct live *l);
/* After the edge has stopped: ends the thread. Accepts NULL. */
void live_stop(struct live *l);
/* After the store was closed. Accepts NULL. */
void live_free(struct live *l);

/* Whether another may listen, where so many do in all, of its caller and of its organization: 0, or as
 * live_listen(). Without the reserve, five organizations would keep all others out. */
must_check int live_admits(size_t all, size_t of_caller, size_t of_org);

struct live_stats {
	uint64_t listeners, events, resyncs, refused;
	size_t ring_bytes;
};
void live_stats(struct live *l, struct live_stats *ret_stats);

#endif
