/* The log of one set since its incarnation began. */
#ifndef STEWARD_REPOSITORY_WAL_H
#define STEWARD_REPOSITORY_WAL_H

#include "base/arena.h"
#include "repository/common.h"

struct repo_line { /* one set's WAL since its incarnation began */
	const char *cluster, *incarnation, *set;
};
/* `name` is a segment's (24 hex digits), one with ".partial" (the segment that is being written, up to where it is
 * flushed), or "00000002.history". A complete segment takes the place of its partial. -EEXIST: other bytes lie under
 * the name of a complete one; the same bytes again are no error. */
must_check int repo_wal_put(struct repository *r, const struct repo_line *line, const char *name, const void *bytes,
                            size_t n);
/* On the heap. -ENOENT. */
must_check int repo_wal_get(struct repository *r, const struct repo_line *line, const char *name, size_t max,
                            char **ret_bytes, size_t *ret_n);
typedef int repo_wal_visit(void *ctx, const char *name, uint64_t stored);
must_check int repo_wal_list(struct repository *r, const struct repo_line *line, repo_wal_visit *visit, void *ctx);
/* All lines, in the arena. */
must_check int repo_wal_lines(struct repository *r, struct arena *a, struct repo_line **ret_lines, size_t *ret_count);
/* One hour of the index from seconds to positions: sealed as it is given, in place of what was there. hour: seconds
 * since 1970 / 3600. */
must_check int repo_seconds_put(struct repository *r, const struct repo_line *line, int64_t hour, const void *bytes,
                                size_t n);
must_check int repo_seconds_get(struct repository *r, const struct repo_line *line, int64_t hour, char **ret_bytes,
                                size_t *ret_n);

#endif
