/* The meter: what ran, from when to when. It keeps measurements, each an amount of one SKU that lasted from one second
 * to another, and is told what was observed; what a month had of what is added up from them when somebody asks.
 *
 * What lasts (a node, its disk, a snapshot that is kept) is open until something else is observed. Then, in one
 * transaction, the open measurement ends, is written down month by month, and the next one begins at the same second:
 * so there are neither gaps nor doubles, whoever dies in between, and an observation that finds nothing new writes
 * nothing. How far open ones have come is one document of each host, its mark: all that is open there was seen to be so
 * until then.
 *
 *   meter_open   id: the subject, parent: the organization; {"group", "groupName", "name", "host",
 *                "open": {KEY: {"id", "sku", "provider", "region", "amount", "from", "since"}},
 *                "last": {KEY: 1763337600}}, when a node that does not run now was last metered
 *   meter        parent: "ORG/2026-11"; one that has ended: {"group", ..., "key", "sku", "amount", "from", "to"}
 *   meter_org    id: "ORG/2026-11", parent: "2026-11"; there is one as soon as such a measurement is there
 *   meter_mark   id: the host, or "service"; {"seen": 1763337600}
 *   meter_count  id: the subject; {KEY: {"counter", "bytes", "at", "measurement"}}, how far each counter was metered
 *
 * Times in documents are whole seconds since 1970; times of arguments are milliseconds, rounded down. */
#ifndef STEWARD_METER_METER_H
#define STEWARD_METER_METER_H

#include "store/store.h"

#define METER_OPEN_KIND "meter_open"
#define METER_KIND "meter"
#define METER_ORG_KIND "meter_org"
#define METER_MARK_KIND "meter_mark"
#define METER_COUNT_KIND "meter_count"
/* Starts of a process that are no further apart are the same one: who finds it running knows the second only. */
#define METER_SLACK_MS 2000
#define METER_SERVICE "service" /* the mark of what belongs to no host */

/* Whose it is. The subject is a cluster's id (or the id of another thing that outlives it no longer than its own
 * measurements do); the name is kept because it may be gone when it is billed. */
struct meter_subject {
	struct str org_id, group_id, group_name;
	struct str id, name; /* of the cluster; name empty: none */
	struct str host;     /* that observes it; empty: any process, or as it was */
};

/* One thing as it was observed. */
struct meter_thing {
	struct str key;              /* unique within the subject: "node/ab12cd-shard-00-00", "snapshot/ID/REGION" */
	struct str sku;              /* id in the price book: "AWS_INSTANCE_M10" */
	struct str provider, region; /* "AWS", "US_EAST_1" */
	int64_t amount;              /* nodes: 1; disks and snapshots: kilobytes */
	int64_t since_ms;            /* when it began, should it be new; 0: when it was observed */
	bool runs;                   /* since_ms is since when it runs without a break: a later one is a restart */
};

/* --- being told, in a write */

struct meter_observation {
	const char *prefixes; /* of the keys that it is about: "node/,disk/" */
	const struct meter_thing *things;
	size_t count;
	int64_t at_ms;      /* when it came to be so */
	int64_t watched_ms; /* since when this process watches: a host's mark that is older was set by an earlier one */
};
/* All things of the subject whose keys begin with one of the prefixes are these. One that was open and is not among
 * them ended at at_ms; one that is another by now (its SKU, amount or region) changed then, or when it was restarted;
 * one that is new began at its since_ms. One that runs, and ended or was restarted while nobody watched, ended at the
 * mark, when it was last seen. */
must_check int meter_observe(struct tx *tx, struct arena *a, const struct meter_subject *s,
                             const struct meter_observation *o);
/* One thing begins, or ends: what of it is already so is left alone. */
must_check int meter_begin(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_thing *t,
                           int64_t at_ms);
must_check int meter_end(struct tx *tx, struct arena *a, struct str subject_id, struct str key, int64_t at_ms,
                         int64_t watched_ms);
/* All of the subject whose keys begin with one of the prefixes end ("": all); all of a project. */
must_check int meter_end_those(struct tx *tx, struct arena *a, struct str subject_id, const char *prefixes,
                               int64_t at_ms);
must_check int meter_end_group(struct tx *tx, struct arena *a, struct str org_id, struct str group_id, int64_t at_ms);
/* Something that has no length: an export of so many kilobytes, a snapshot. In the write that makes it, once. */
must_check int meter_add(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_thing *t,
                         int64_t at_ms);
/* The same of something that comes in pieces: what is of the day of the measurement *row, and else like it, is added to
 * it; else there is a new one, and *row becomes its id. */
must_check int meter_add_to(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_thing *t,
                            int64_t at_ms, struct str *row);
/* The project's things belong to another organization from now on. */
must_check int meter_move(struct tx *tx, struct arena *a, struct str group_id, struct str from_org, struct str to_org,
                          int64_t at_ms);
/* Everything of that host (empty: of no host) was seen to be as noted until then. Never goes back. */
must_check int meter_mark(struct tx *tx, struct arena *a, struct str host, int64_t seen_ms);

/* --- counts.c: what somebody else counts. How far it was metered is noted in the write that meters it, so that
 * nothing is lost and nothing doubled, whoever dies in between. It is metered when it is read. */

struct meter_counter {
	struct meter_thing thing; /* amount is not looked at; no SKU: it is not metered, now that it is read */
	struct str counter;       /* its identity: another one begins at 0 */
	int64_t bytes;
};
/* Meters the whole kilobytes that came since the last time. */
must_check int meter_count(struct tx *tx, struct arena *a, const struct meter_subject *s,
                           const struct meter_counter *list, size_t count, int64_t at_ms);
/* Whether that is worth a write: a megabyte has come, or anything in an earlier hour. Needs keys, identities and bytes
 * alone. */
must_check int meter_count_is_due(struct tx *tx, struct arena *a, struct str subject_id,
                                  const struct meter_counter *list, size_t count, int64_t at_ms, bool *ret_due);
must_check int meter_count_forget(struct tx *tx, struct str subject_id);

/* --- reading */

/* Up to when that host has looked; 0: never. */
must_check int meter_marked(struct tx *tx, struct arena *a, struct str host, int64_t *ret_ms);

/* The moment before which nothing is open to change: the oldest mark of a host that has open measurements; or now. A
 * month may be closed once this is not before its end. What a host that was away tells later about that month is
 * metered nevertheless: compare with what was billed. */
must_check int meter_settled(struct tx *tx, struct arena *a, struct str org_id, int64_t *ret_ms);

/* What an organization had on one day in UTC of one SKU, by project, cluster and region. */
struct usage {
	int64_t day_ms; /* 00:00 UTC */
	struct str group_id, group_name, cluster_id, cluster_name, sku, provider, region;
	int64_t quantity; /* in parts of the SKU's unit (prices.h): node-seconds, kilobyte-seconds, kilobytes */
};
/* All of [from_ms, to_ms), which may begin and end within a day; ordered by day, project, cluster, SKU, region. Open
 * measurements count up to their host's mark. The result is in the arena. */
must_check int meter_usage(struct tx *tx, struct arena *a, struct str org_id, int64_t from_ms, int64_t to_ms,
                           struct usage **ret_list, size_t *ret_count);

/* The measurements themselves that touch [from_ms, to_ms), as they are: the evidence of a line. */
struct measurement {
	struct str id, group_id, group_name, cluster_id, cluster_name, key, sku, provider, region;
	int64_t amount, from_ms, to_ms; /* of something without length both are the same */
	bool open;                      /* to_ms is how far it was seen */
};
typedef int meter_visit(void *ctx, const struct measurement *m); /* valid for the call; negative ends it */
must_check int meter_each(struct tx *tx, struct arena *a, struct str org_id, int64_t from_ms, int64_t to_ms,
                          meter_visit *visit, void *ctx);
/* Organizations that have, or had in that month, anything metered: ids, each once. */
must_check int meter_orgs(struct tx *tx, struct arena *a, int64_t month_ms, struct str **ret_ids, size_t *ret_count);

/* --- names */

/* The month, as in the parents of measurements ("2026-11"), its first moment and the next one's. */
#define METER_MONTH 8
void meter_month(int64_t ms, char ret_month[METER_MONTH], int64_t *ret_from_ms, int64_t *ret_to_ms);
int64_t meter_day(int64_t ms); /* 00:00 UTC */

#endif
