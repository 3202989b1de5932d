/* Limits of a project. The table is data (api/projects.json); a document exists only where a project has a value of its
 * own. */

#include "api/kit/verbs.h"

#include <errno.h>

/* One that the project has no value for, and that has no default, can still be set. */
static int load(struct call *c, const struct project_limit *l, struct doc *ret_doc)
{
	bool sets = c->op->writes && c->op->method != METHOD_DELETE;
	int result = resource_named(c, &resource_project_limit, c->group.id, str_of(l->name), ret_doc);
	if (result < 0 || ret_doc->rev)
		return result;
	if (l->standard < 0 && !sets)
		return -ENOENT;
	ret_doc->body = arena_printf(c->arena, "{\"name\":\"%s\",\"value\":%lld}", l->name, (long long)l->standard);
	return 0;
}

static int limit_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	const struct project_limit *l = limit_find(call_path(c, "limitName"));
	return l ? load(c, l, ret_doc) : -ENOENT;
}

static int limit_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct doc *docs = arena_new_array(c->arena, struct doc, project_limit_count);
	size_t count = 0;
	for (unsigned i = 0; i < project_limit_count; i++) {
		int result = load(c, &project_limits[i], &docs[count]);
		if (result < 0 && result != -ENOENT)
			return result;
		count += result == 0;
	}
	return segments_docs(c, docs, count, ret_list, ret_count);
}

static int limit_update(struct call *c, const struct doc *old, json_t *document)
{
	const struct project_limit *l = limit_find(old->name);
	int64_t value = json_integer_value(json_object_get(c->body, "value"));
	if (value >= l->least && value <= l->most)
		return 0;
	return call_fail_field(c, 400, "LIMIT_OUT_OF_RANGE", "value", "must be from %lld to %lld for %s, not %lld.",
	                       (long long)l->least, (long long)l->most, l->name, (long long)value);
}

static int limit_view(struct call *c, const struct doc *d, json_t *entity)
{
	const struct project_limit *l = limit_find(d->name);
	int64_t usage = 0;
	int result = limit_usage(c, l, &usage);
	if (l->counts[0])
		json_put(entity, "currentUsage", json_integer(usage));
	if (l->standard >= 0)
		json_put(entity, "defaultLimit", json_integer(l->standard));
	json_put(entity, "maximumLimit", json_integer(l->most));
	return result;
}

const struct resource_hooks limit_hooks = {
        .load = limit_load, .segments = limit_segments, .update = limit_update, .view = limit_view};
