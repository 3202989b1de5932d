/* Snapshots as documents of the catalogue. */
#ifndef STEWARD_API_SNAPSHOTS_SNAPSHOT_H
#define STEWARD_API_SNAPSHOTS_SNAPSHOT_H

#include "api/snapshots/catalogue.h"

#define SNAPSHOT_KIND "backup_snapshot"

struct segment;

struct snapshot {
	struct doc doc;
	json_t *body, *plan;
};

/* One of the path's cluster, or of the line; -ENOENT. */
must_check int snapshot_load(struct call *c, struct str id, struct snapshot *ret_snapshot);
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
/* A snapshot that shall be taken. */
struct snapshot_wish {
	const char *type;     /* "onDemand", "scheduled", "fallback" */
	int frequency;        /* enum frequency of times.h */
	int64_t retention_ms; /* before what the schedule adds, and the policy asks for */
	struct str description;
	const json_t *items; /* ids of the policy items that it serves; or NULL */
};

/* In a write: queued, with its job. */
must_check int snapshot_take(struct tx *tx, struct arena *a, struct backup_line *line, const struct snapshot_wish *wish,
                             struct snapshot *ret_snapshot);
/* In a write: its document goes, and the engine forgets it, with its copies. */
must_check int snapshot_delete(struct tx *tx, struct arena *a, const struct snapshot *s);
/* Takes the copy in that region away. */
must_check int snapshot_drop_copy(struct tx *tx, struct arena *a, struct snapshot *s, struct str region);
/* What needs snapshots: restores and exports attach theirs (edge/families.c). */
struct snapshot_user {
	/* In a read: whether it needs the snapshot, which cannot be deleted then. */
	int (*needs)(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_needed);
	/* In the write in which a snapshot is complete; or NULL. */
	int (*taken)(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s);
};

extern const struct snapshot_user *const snapshot_users[];
extern const size_t snapshot_user_count;
/* Whether any of them needs it. */
must_check int snapshot_in_use(struct tx *tx, struct arena *a, const struct snapshot *s, bool *ret_used);
/* How long from its creation a snapshot of that frequency is kept at least, by the project's compliance policy; 0: as
 * long as its owner says. */
must_check int retention_floor(struct tx *tx, struct arena *a, struct str group_id, int frequency, int64_t *ret_ms);
/* What the API shows of the shape of the line's cluster. */
void snapshot_shape(struct arena *a, const struct backup_line *line, json_t *body);
/* Links for a snapshot to its line: what the snapshot's frequency is. */
int snapshot_frequency(const struct snapshot *s);
must_check int snapshot_find(struct call *c, const struct resource *r, struct doc *ret_doc);
must_check int snapshot_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
must_check int snapshot_remove_check(struct call *c, const struct doc *d);
must_check int snapshot_drop(struct call *c, const struct doc *d);
/* 409 where somebody has set doNotDelete. */
must_check int snapshot_protected(struct call *c, const struct snapshot *s);
/* 400 where the compliance policy asks for more. */
must_check int retention_check(struct call *c, int64_t ms, int frequency, const char *field);

#endif
