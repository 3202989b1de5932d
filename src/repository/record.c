/* What the catalogue says of a snapshot lies beside it, as "catalogue/CLUSTER/SNAPSHOT": names, times, sizes,
 * positions. With secret.key and the objects alone the catalogue can be made again. A record is sealed with the
 * project's first key, which secret.key opens, also where the snapshot is sealed with a key of the project's own: it
 * says no more than the service's store does, and without it nobody could tell what such a snapshot is. */
#include "repository/record.h"

#include "base/arena.h"
#include "repository/common.h"
#include "repository/format.h"
#include "repository/internal.h"
#include "repository/keys.h"
#include "repository/sealed.h"
#include "repository/why.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int record_name(char ret_name[OBJECT_NAME], const char *cluster, const char *snapshot)
{
	if (!name_part_ok(cluster) || !name_part_ok(snapshot))
		return repo_fail(-EINVAL, "no such names");
	snprintf(ret_name, OBJECT_NAME, RECORDS "%s/%s", cluster, snapshot);
	return 0;
}

int repo_record_put(struct repository *r, const char *cluster, const char *snapshot, const char *text)
{
	char name[OBJECT_NAME];
	const struct repo_key *first = NULL;
	int result = record_name(name, cluster, snapshot);
	if (result == 0)
		result = repo_key_find(r, "", &first);
	return result < 0 ? result : object_put_as(r, first, SEALED_RECORD, name, text, strlen(text), NULL);
}

int repo_record_get(struct repository *r, const char *cluster, const char *snapshot, char **ret_text)
{
	char name[OBJECT_NAME];
	size_t n = 0;
	int result = record_name(name, cluster, snapshot);
	return result < 0 ? result : object_get(r, SEALED_RECORD, name, RECORD_MAX, ret_text, &n);
}

struct record_list {
	repo_snapshot_visit *visit;
	void *ctx;
};

static int record_listed(void *ctx, const struct object_info *info)
{
	const struct record_list *l = ctx;
	struct str cluster, snapshot;
	if (!str_cut(str_of(info->name + strlen(RECORDS)), '/', &cluster, &snapshot))
		return 0;
	return l->visit(l->ctx, cluster, snapshot, info->modified_ms);
}

int repo_records(struct repository *r, repo_snapshot_visit *visit, void *ctx)
{
	struct record_list l = {visit, ctx};
	return object_list(r, RECORDS, record_listed, &l);
}
