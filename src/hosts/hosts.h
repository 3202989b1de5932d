/* The hosts of a service: its processes that share a store, each the agent of its machine. They know each other through
 * the store: who is where (registry.c), by which certificate they trust each other (authority.c), where a new cluster
 * goes (place.c). forward.c is the one way from a call to another host.
 *
 * What a host says of itself and what the operator says of it is a document (kind "host", id = the node's name in
 * DIR/node.id):
 *
 *   {"id", "name", "address": "10.0.0.5:9443" or "",  "cordoned": false,
 *    "capacity": {"cores", "memoryMB", "diskMB"},     the machine's
 *    "bound": the same, 0 where there is none         what clusters may take of it in all
 *    "used": the same, and "clusters"                 what the clusters that are placed there stand for
 *    "configured": {}, "set": {}, "labels": {}}       by --label, by the operator, and both: the operator's word holds
 *
 * Whether it is alive, and how busy its machine is, changes each second and stands in the store's row of the node. */
#ifndef STEWARD_HOSTS_HOSTS_H
#define STEWARD_HOSTS_HOSTS_H

#include "base/json.h"
#include "call/call.h"

#define HOST_KIND "host"
#define HOST_NAME_TEXT 63

struct host_room {
	int64_t cores, memory_mb, disk_mb;
};

struct host {
	struct str id, name, address;
	bool cordoned;
	bool alive;     /* heard within the last seconds */
	bool shared;    /* other processes can be in the same store */
	int64_t age_ms; /* since it was heard; -1: it is not there */
	struct host_room capacity, bound, used;
	int64_t clusters;
	struct str usage; /* JSON: how busy it is; "" where it is not known */
	const json_t *labels;
	struct doc doc;
	json_t *body;
};

struct hosts_options {
	struct store *store;
	const char *id;   /* of this host: the node's name */
	const char *name; /* for people; NULL: the machine's name */
	const char *data_dir;
	bool shared;               /* several processes can use the store */
	unsigned workers;          /* that run calls, where it is shared */
	const char *const *labels; /* "region=US_EAST_1" */
	size_t label_count;
	struct host_room bound; /* 0: none */
	/* Counts what this host's clusters stand for, when it was removed and is back; NULL: it has none. */
	int (*count)(struct store *store);
};

/* Once, before anything below. Where the store is shared it makes the authority, if nobody has, and this host's
 * certificates. On failure: a message on stderr, negative. */
must_check int hosts_open(const struct hosts_options *o);
/* No call may be under way any more. */
void hosts_close(void);

/* For http_start(), when the store is shared: what this host shows and accepts on the inner port. `listen` is the
 * caller's. */
void hosts_inner(struct http_inner *ret_inner);
/* Whether clusters are processes of a host, so that placing them means something. */
void hosts_bind(bool binds);
/* Tells the store where this host is: "HOST:PORT" of the inner port, or "". Waits for the store. */
must_check int hosts_announce(const char *address);
/* Where the store is shared, and once the inner port is open and announced: looks who is there, now, and then each
 * second on a thread of its own, until hosts_close(); and renews the port's certificate in time. */
must_check int hosts_watch(struct http_server *http);
/* Ends that, before the server ends. */
void hosts_unwatch(void);

/* The name of this host; "" before hosts_open(). */
struct str hosts_self(void);
/* Whether other processes can be in the store. */
bool hosts_shared(void);
/* Whether that host is another one, which must be asked. */
bool host_is_elsewhere(struct str id);

/* All hosts, in the order in which they came. */
must_check int hosts_read(struct tx *tx, struct arena *a, struct host **ret_list, size_t *ret_count);
/* By id or name. -ENOENT. */
must_check int host_find(struct tx *tx, struct arena *a, struct str which, struct host *ret_host);
/* The names of hosts that have been heard lately and have not said that they have a key of the service's (by its name),
 * or (in_use) that they use it; empty: all have. A process of an earlier version says nothing of keys. */
#define HOST_KEY_TEXT 16
must_check int hosts_without_key(struct tx *tx, struct arena *a, const char *key, bool in_use, struct str *ret_names);
/* In a write: the operator's word, with its event for the first organization. 1: it was so already. */
must_check int host_cordon(struct tx *tx, struct arena *a, struct host *host, bool cordoned);
/* `value` empty: the label goes. -EINVAL: no label can look like that. */
must_check int host_label(struct tx *tx, struct arena *a, struct host *host, struct str name, struct str value);
/* Takes a host that will not come back out of the registry. -EBUSY: it is alive. */
must_check int host_remove(struct tx *tx, struct arena *a, struct host *host);
bool host_label_is_valid(struct str name, struct str value);

/* In a write: the host for a new cluster whose first region this is, with room for it, which is taken. *ret_host is
 * empty where no host is known. -EDQUOT: none fits, and *ret_why says what lacks. */
must_check int hosts_place(struct tx *tx, struct arena *a, struct str provider, struct str region,
                           const struct host_room *need, struct str *ret_host, struct str *ret_why);
/* Whether a cluster there may grow so. -EDQUOT: the host has no room for it, and *ret_why says what lacks. */
must_check int hosts_fit(struct tx *tx, struct arena *a, struct str host, const struct host_room *before,
                         const struct host_room *after, struct str *ret_why);
/* In a write: what a cluster there stands for has changed; `clusters`: -1 when it is gone. */
must_check int hosts_account(struct tx *tx, struct arena *a, struct str host, const struct host_room *before,
                             const struct host_room *after, int64_t clusters);

/* The same for this host, counted anew. */
must_check int hosts_used(struct tx *tx, struct arena *a, const struct host_room *used, int64_t clusters);

/* The way to another host, in a reading handler that finds that only that host can answer: `return hosts_forward(...)`.
 * The call is asked there, under the caller's name and the same request id; its answer is passed on as it comes. The
 * host reads the caller's rights again, and takes no token. A call that was passed on is not passed on again. */
must_check int hosts_forward(struct call *c, struct str host);

/* Questions of the service itself, for an answer that is put together from several hosts. `path` is below
 * HOSTS_PATH; the answer is a JSON object, freed with the call. */
#define HOSTS_PATH "/hosts/"
struct host_question {
	struct str host, path;
	json_t *answer;
	bool may_fail; /* no answer is no problem of the call: `away` then is the host's name */
	const char *away;
};
/* Asks all at once and waits, at most about two seconds: only on a worker. Negative, with the problem written, when one
 * did not answer that must. */
must_check int hosts_ask(struct call *c, struct host_question *list, size_t count);

/* Since the start: calls that other hosts have answered, and those that they have not; and who is there now. */
struct hosts_stats {
	uint64_t answered, failed, alive, away;
};
void hosts_stats(struct hosts_stats *ret_stats);

/* For the edge: a request that came by the inner port takes the id and the address of the call that it is for. */
void hosts_adopt(struct request *r);

/* forward.c, for hosts_open() and hosts_close(). */
must_check int forward_start(unsigned workers);
void forward_stats(struct hosts_stats *stats);
void forward_stop(void);
/* registry.c, for forward.c: where a host is, copied. -ENOENT: nobody knows it; -EHOSTDOWN: it was not heard lately. */
struct host_place {
	char id[25], name[HOST_NAME_TEXT + 1], address[128];
};
must_check int host_where(struct str id, struct host_place *ret_place);
/* registry.c: see hosts_bind(). */
bool hosts_binds(void);
/* The same; one that is not known or not heard is looked for in the store again, now and then. In a read. */
must_check int host_look_up(struct tx *tx, struct str id, struct host_place *ret_place);

/* authority.c. */
struct host_papers {
	struct str authority;                      /* the certificate that all trust */
	struct str certificate, key;               /* of the inner port */
	struct str client_certificate, client_key; /* for asking others */
	int64_t renew_ms;
};
/* In the arena. Makes the authority where there is none; and, unless it follows others, where it ends soon. */
must_check int papers_make(struct store *store, struct arena *a, const char *id, bool follows,
                           struct host_papers *ret_papers);
/* In a read: the authority's certificate as the store has it; empty where there is none. */
must_check int hosts_authority(struct tx *tx, struct arena *a, struct str *ret_certificate);
/* The name in the certificate of a host's inner port. */
#define HOST_DOMAIN ".hosts.steward"
/* registry.c: the papers in force; all stay valid until hosts_close(). */
const struct host_papers *host_papers(void);

#endif
