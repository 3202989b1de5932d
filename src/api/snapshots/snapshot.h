/* Snapshots as documents of the catalogue. */
#ifndef STEWARD_API_SNAPSHOTS_SNAPSHOT_H
#define STEWARD_API_SNAPSHOTS_SNAPSHOT_H

#include "api/snapshots/line.h"

#define SNAPSHOT_KIND "backup_snapshot"

struct snapshot {
	struct doc doc;
	json_t *body, *plan;
};

/* One of the path's cluster, or of the line; -ENOENT. */
must_check int snapshot_load(struct call *c, struct str id, struct snapshot *ret_snapshot);
/* A document that was read already. */
struct snapshot snapshot_of(struct arena *a, const struct doc *d);
must_check int snapshot_get(struct tx *tx, struct arena *a, struct str id, struct snapshot *ret_snapshot);
must_check int snapshot_save(struct tx *tx, struct arena *a, struct snapshot *s);
/* All of a line, oldest first. */
must_check int snapshots_of(struct tx *tx, struct arena *a, struct str cluster_id, struct snapshot **ret_list,
                            size_t *ret_count);
bool snapshot_is(const struct snapshot *s, const char *status);
int64_t snapshot_expires(const struct snapshot *s);
/* Where it lies: in its own region. */
struct engine_source snapshot_source(const struct snapshot *s);
/* Whether it lies in that region: its own, or one with a copy that is complete. */
bool snapshot_lies_in(const struct snapshot *s, struct str region);
/* Where it can be read from: its own region first, then its copies. */
size_t snapshot_sources(struct arena *a, const struct snapshot *s, struct engine_source **ret_list);
/* Whether what failed so with one source is worth a try with the next: it is away, or has lost it. */
bool source_is_bad(int result);
/* Whether a window of the source's begins with it, or goes on over it: a moment after it in that window is restored
 * from it. What is offered, and what is announced as lost, both come from here. */
bool snapshot_is_base(const struct snapshot *s, const struct engine_source *of, const struct engine_window *w);
/* In a read: the stores of all snapshots that are kept are expected to be there. */
must_check int snapshots_expect(struct tx *tx, struct arena *a, struct repositories *all);
/* How long from its creation a snapshot of that frequency is kept at least, by the project's compliance policy; 0: as
 * long as its owner says. */
must_check int retention_floor(struct tx *tx, struct arena *a, struct str group_id, int frequency, int64_t *ret_ms);
/* Links for a snapshot to its line: what the snapshot's frequency is. */
int snapshot_frequency(const struct snapshot *s);

#endif
