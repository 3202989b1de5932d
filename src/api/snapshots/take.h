/* Snapshots are taken, shown and deleted. */
#ifndef STEWARD_API_SNAPSHOTS_TAKE_H
#define STEWARD_API_SNAPSHOTS_TAKE_H

#include "api/snapshots/snapshot.h"

struct segment;

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
/* What the API shows of the shape of the line's cluster. */
void snapshot_shape(struct arena *a, const struct backup_line *line, json_t *body);
must_check int snapshot_find(struct call *c, const struct resource *r, struct doc *ret_doc);
must_check int snapshot_segments(struct call *c, struct segment **ret_list, size_t *ret_count);
must_check int snapshot_remove_check(struct call *c, const struct doc *d);
must_check int snapshot_drop(struct call *c, const struct doc *d);
/* 409 where somebody has set doNotDelete. */
must_check int snapshot_protected(struct call *c, const struct snapshot *s);
/* 400 where the compliance policy asks for more. */
must_check int retention_check(struct call *c, int64_t ms, int frequency, const char *field);

#endif
