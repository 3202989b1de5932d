/* WAL, one sealed object for each segment:
 *
 *   wal/CLUSTER/INCARNATION/SET/TIMELINE/SEGMENT[.partial]
 *   wal/CLUSTER/INCARNATION/SET/TIMELINE.history
 *   wal/CLUSTER/INCARNATION/SET/seconds/HOUR */
#include "repository/wal.h"

#include "base/arena.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/quota.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SEGMENT_NAME 24
#define TIMELINE_NAME 8
#define PARTIAL ".partial"
#define HISTORY ".history"
#define WAL_MAX ((size_t)1 << 30) /* PostgreSQL's longest segment */

static bool hex_is(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hex_value(text[i]) < 0)
			return false;
	return true;
}

static int line_prefix(const struct repo_line *line, char ret_name[OBJECT_NAME])
{
	if (!name_part_ok(line->cluster) || !name_part_ok(line->incarnation) || !name_part_ok(line->set))
		return repo_fail(-EINVAL, "no such names");
	snprintf(ret_name, OBJECT_NAME, "wal/%s/%s/%s/", line->cluster, line->incarnation, line->set);
	return 0;
}

static int wal_name(const struct repo_line *line, const char *name, char ret_name[OBJECT_NAME], bool *ret_partial)
{
	char prefix[OBJECT_NAME];
	size_t n = strlen(name);
	*ret_partial = n == SEGMENT_NAME + strlen(PARTIAL) && strcmp(name + SEGMENT_NAME, PARTIAL) == 0;
	bool history = n == TIMELINE_NAME + strlen(HISTORY) && strcmp(name + TIMELINE_NAME, HISTORY) == 0;
	if (!(history && hex_is(name, TIMELINE_NAME)) &&
	    !((n == SEGMENT_NAME || *ret_partial) && hex_is(name, SEGMENT_NAME)))
		return repo_fail(-EINVAL, "%s: is no name of WAL", name);
	int result = line_prefix(line, prefix);
	if (result < 0)
		return result;
	int made = history ? snprintf(ret_name, OBJECT_NAME, "%s%s", prefix, name)
	                   : snprintf(ret_name, OBJECT_NAME, "%s%.8s/%s", prefix, name, name);
	return made >= OBJECT_NAME ? repo_fail(-EINVAL, "%s: its name is too long", name) : 0;
}

/* 0: the same bytes lie there. -ENOENT, -EEXIST: others. */
static int wal_compare(struct repository *r, const char *name, const void *bytes, size_t n)
{
	uint64_t size;
	char *there = NULL;
	size_t there_n = 0;
	int result = object_size(r, name, &size);
	if (result == 0)
		result = object_get(r, SEALED_WAL, name, WAL_MAX, &there, &there_n);
	if (result < 0)
		return result;
	if (there_n != n || (n && memcmp(there, bytes, n) != 0))
		result = repo_fail(-EEXIST, "%s: other bytes lie under that name", name);
	free(there);
	return result;
}

static int partial_put(struct repository *r, const char *name, const void *bytes, size_t n)
{
	char whole[OBJECT_NAME];
	uint64_t size;
	snprintf(whole, sizeof whole, "%.*s", (int)(strlen(name) - strlen(PARTIAL)), name);
	int result = object_size(r, whole, &size);
	if (result == -ENOENT)
		result = quota_check(r);
	else
		return result;
	return result < 0 ? result : object_put(r, SEALED_WAL, name, bytes, n, NULL);
}

int repo_wal_put(struct repository *r, const struct repo_line *line, const char *name, const void *bytes, size_t n)
{
	char object[OBJECT_NAME], partial[OBJECT_NAME];
	bool is_partial;
	int result = wal_name(line, name, object, &is_partial);
	if (result < 0)
		return result;
	if (is_partial)
		return partial_put(r, object, bytes, n);
	result = wal_compare(r, object, bytes, n);
	if (result == -ENOENT && (result = quota_check(r)) == 0) {
		uint64_t stored = 0;
		result = object_put(r, SEALED_WAL, object, bytes, n, &stored);
		quota_add(r, result == 0 ? stored : 0);
	}
	if (result < 0 || strlen(name) != SEGMENT_NAME)
		return result;
	int made = snprintf(partial, sizeof partial, "%s" PARTIAL, object);
	return made >= OBJECT_NAME ? 0 : object_delete(r, partial);
}

int repo_wal_get(struct repository *r, const struct repo_line *line, const char *name, size_t max, char **ret_bytes,
                 size_t *ret_n)
{
	char object[OBJECT_NAME];
	bool is_partial;
	int result = wal_name(line, name, object, &is_partial);
	return result < 0 ? result : object_get(r, SEALED_WAL, object, max, ret_bytes, ret_n);
}

struct wal_listing {
	repo_wal_visit *visit;
	void *ctx;
	size_t skip;
};

static int wal_listed(void *ctx, const struct object_info *info)
{
	struct wal_listing *l = ctx;
	const char *name = info->name + l->skip, *slash = strchr(name, '/');
	if (strncmp(name, "seconds/", 8) == 0)
		return 0;
	return l->visit(l->ctx, slash ? slash + 1 : name, info->size);
}

int repo_wal_list(struct repository *r, const struct repo_line *line, repo_wal_visit *visit, void *ctx)
{
	char prefix[OBJECT_NAME];
	int result = line_prefix(line, prefix);
	struct wal_listing l = {visit, ctx, strlen(prefix)};
	return result < 0 ? result : object_list(r, prefix, wal_listed, &l);
}

struct wal_lines {
	struct arena *arena;
	struct repo_line *list;
	size_t count, room;
};

/* Names come sorted: those of a line follow each other. */
static int line_listed(void *ctx, const struct object_info *info)
{
	struct wal_lines *l = ctx;
	struct str cluster, incarnation, set, rest = str_of(info->name + strlen("wal/"));
	if (!str_cut(rest, '/', &cluster, &rest) || !str_cut(rest, '/', &incarnation, &rest) ||
	    !str_cut(rest, '/', &set, &rest))
		return 0;
	const struct repo_line *last = l->count ? &l->list[l->count - 1] : NULL;
	if (last && str_is(cluster, last->cluster) && str_is(incarnation, last->incarnation) && str_is(set, last->set))
		return 0;
	if (!l->list || l->count == l->room) {
		l->room = l->room ? l->room * 2 : 16;
		l->list = arena_grow(l->arena, l->list, l->count, l->room, sizeof *l->list);
	}
	l->list[l->count++] =
	        (struct repo_line){arena_z(l->arena, cluster), arena_z(l->arena, incarnation), arena_z(l->arena, set)};
	return 0;
}

int repo_wal_lines(struct repository *r, struct arena *a, struct repo_line **ret_lines, size_t *ret_count)
{
	struct wal_lines l = {.arena = a};
	int result = object_list(r, "wal/", line_listed, &l);
	*ret_lines = l.list;
	*ret_count = l.count;
	return result;
}

static int seconds_name(const struct repo_line *line, int64_t hour, char ret_name[OBJECT_NAME])
{
	char prefix[OBJECT_NAME];
	int result = line_prefix(line, prefix);
	if (result < 0)
		return result;
	int made = snprintf(ret_name, OBJECT_NAME, "%sseconds/%010lld", prefix, (long long)hour);
	return made >= OBJECT_NAME || hour < 0 ? repo_fail(-EINVAL, "no such hour") : 0;
}

int repo_seconds_put(struct repository *r, const struct repo_line *line, int64_t hour, const void *bytes, size_t n)
{
	char name[OBJECT_NAME];
	int result = seconds_name(line, hour, name);
	return result < 0 ? result : object_put(r, SEALED_SECONDS, name, bytes, n, NULL);
}

int repo_seconds_get(struct repository *r, const struct repo_line *line, int64_t hour, char **ret_bytes, size_t *ret_n)
{
	char name[OBJECT_NAME];
	int result = seconds_name(line, hour, name);
	return result < 0 ? result : object_get(r, SEALED_SECONDS, name, WAL_MAX, ret_bytes, ret_n);
}
