/* Limits that a project has on how many documents of a kind it holds. The table is data (api/projects.json); a document
 * exists only where a project has a value of its own. */
#include "api/kit/verbs.h"

#include <assert.h>
#include <errno.h>

const struct project_limit *limit_find(struct str name)
{
	for (unsigned i = 0; i < project_limit_count; i++)
		if (str_is(name, project_limits[i].name))
			return &project_limits[i];
	return NULL;
}

/* The project's own value, or the usual one. -ENOENT: neither. */
static int limit_value(struct call *c, const struct project_limit *l, int64_t *ret_value)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, "project_limit", c->group.id, str_of(l->name), &d);
	*ret_value = result == 0 ? json_number(doc_json(c->arena, d.body), "value") : l->standard;
	return result == -ENOENT && l->standard >= 0 ? 0 : result;
}

int limit_usage(struct call *c, const struct project_limit *l, int64_t *ret_used)
{
	int64_t used = 0, count;
	int result = 0;
	for (size_t i = 0; result == 0 && i < sizeof l->counts / sizeof *l->counts && l->counts[i]; i++) {
		result = tx_count(c->tx, l->counts[i], c->group.id, &count);
		used += result == 0 ? count : 0;
	}
	*ret_used = used;
	return result;
}

int limit_enforce(struct call *c, const char *limit_name, int64_t more)
{
	const struct project_limit *l = limit_find(str_of(limit_name));
	int64_t most, used = 0;
	assert(l && l->counts[0]);
	int result = limit_value(c, l, &most);
	if (result == 0)
		result = limit_usage(c, l, &used);
	if (result < 0)
		return result;
	if (more <= 0 || used + more <= most)
		return 0;
	call_fail(c, 400, "PROJECT_LIMIT_EXCEEDED",
	          "%s: the project has %lld of at most %lld; %lld more would exceed the limit.", limit_name,
	          (long long)used, (long long)most, (long long)more);
	call_fail_param(c, str_of(limit_name));
	call_fail_param(c, arena_printf(c->arena, "%lld", (long long)used));
	return call_fail_param(c, arena_printf(c->arena, "%lld", (long long)most));
}
