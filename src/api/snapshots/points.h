/* Points in time that can be restored. */
#ifndef STEWARD_API_SNAPSHOTS_POINTS_H
#define STEWARD_API_SNAPSHOTS_POINTS_H

#include "api/snapshots/snapshot.h"

#define INCREMENT_BASE 1199145600LL /* the schema's least increment */
#define POSITION_UNIT 8             /* bytes of log that an increment stands for */

/* What a request asks for. */
struct wanted_point {
	int64_t ms;
	int64_t increment; /* of a position within that second; 0: the time itself */
	const char *field; /* of the request */
};

struct found_point {
	struct wanted_point wanted;
	struct engine_point point;
	struct engine_source from;
	struct snapshot base; /* the newest before the point */
	int64_t at_ms;
	int64_t units; /* of the position within its second */
};

/* On a thread that may wait, with a reader of its own: c->prepared is the point. 400 with the nearest window, when it
 * cannot be restored; 503: the repository cannot be read; -ENOENT: there is no such cluster. */
must_check int point_find(struct call *c, struct tx *reader, const struct wanted_point *wanted);

/* A stretch of time that can be restored: the engine has it without gaps, and its first snapshot is kept. */
struct restorable {
	struct engine_source source;
	struct engine_window window;
};

/* All of a line, the newest data first. On a thread that may wait, in a read of c->tx. */
must_check int points_list(struct call *c, const struct backup_line *line, struct restorable **ret_list,
                           size_t *ret_count);
/* In full seconds, as a request can ask for them: what a refused restore names and what the list's header tells are
 * the same. False: it has no full second. */
bool window_seconds(const struct engine_window *w, int64_t *ret_from, int64_t *ret_to);
/* "FROM/TO, FROM/TO", the newest data first, WINDOWS_TOLD at most; or "none". */
#define WINDOWS_TOLD 16
struct str windows_text(struct arena *a, const struct restorable *list, size_t count);
/* 503: what the repository has cannot be told now. */
int point_unavailable(struct call *c);
/* Runs `find` with a reader of its own, on a thread that may wait, as in a row's prepare. */
must_check int prepare_with_reader(struct call *c, int (*find)(struct call *c, struct tx *reader));

#endif
