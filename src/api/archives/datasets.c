/* Archives by the names of their data sets, for who reads them from elsewhere. */
#include "api/archives/archive.h"
#include "api/kit/verbs.h"

#include <errno.h>

#define NAME_BEGIN "archive-"

static int lake_make(struct tx *tx, struct arena *a, struct str id, struct str group_id, struct engine_lake *ret_lake)
{
	struct archive x;
	int r = archive_get(tx, a, id, &x);
	if (r == 0 && (!str_eq(json_field(x.body, "groupId"), group_id) || archive_is(&x, "DELETED")))
		r = -ENOENT;
	if (r == 0)
		archive_want_make(a, x.doc.parent, json_field(x.run, "region"), x.body, 0, ret_lake);
	return r;
}

int archive_dataset_find(struct tx *tx, struct arena *a, struct str group_id, struct str name,
                         struct engine_lake *ret_lake)
{
	struct str begin = STR(NAME_BEGIN);
	if (!str_starts(name, begin))
		return -ENOENT;
	return lake_make(tx, a, (struct str){name.p + begin.n, name.n - begin.n}, group_id, ret_lake);
}

struct listing {
	struct arena *arena;
	struct str group_id, prefix;
	struct engine_lake *list;
	size_t count, room;
};

static int cluster_list(struct tx *tx, void *ctx, const struct doc *d)
{
	struct listing *l = ctx;
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, l->arena, ARCHIVE_KIND, arena_dup(l->arena, d->id), &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!str_starts(json_field(doc_json(l->arena, docs[i].body), "dataSetName"), l->prefix))
			continue;
		ARENA_FIT(l->arena, l->list, l->count, l->room);
		r = lake_make(tx, l->arena, docs[i].id, l->group_id, &l->list[l->count]);
		l->count += r == 0;
		r = r == -ENOENT ? 0 : r;
	}
	return r;
}

int archive_datasets_list(struct tx *tx, struct arena *a, struct str group_id, struct str prefix,
                          struct engine_lake **ret_list, size_t *ret_count)
{
	struct listing l = {.arena = a, .group_id = group_id, .prefix = prefix};
	int r = clusters_walk_group(tx, a, group_id, cluster_list, &l);
	if (r == 0) {
		*ret_list = l.list;
		*ret_count = l.count;
	}
	return r;
}
