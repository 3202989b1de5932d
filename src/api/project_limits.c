/* Limits of a project. The table is data (api/projects.json); a document exists only where a project has a value of its
 * own. */
#include "api/project_limits.h"

#include "api/verbs.h"
#include "base/clock.h"
#include "base/id.h"

#include <assert.h>
#include <errno.h>

int projects_list_limits(struct call *c);
int projects_get_limit(struct call *c);
int projects_set_limit(struct call *c);
int projects_delete_limit(struct call *c);

extern const struct resource resource_project_limit;

static const struct project_limit *limit_find(struct str name)
{
	for (unsigned i = 0; i < project_limit_count; i++)
		if (str_is(name, project_limits[i].name))
			return &project_limits[i];
	return NULL;
}

static int limit_value(struct call *c, const struct project_limit *l, struct doc *ret_doc, int64_t *ret_value)
{
	int result = tx_get_by_name(c->tx, c->arena, "project_limit", c->group.id, str_of(l->name), ret_doc);
	if (result == 0) {
		*ret_value = json_integer_value(json_object_get(doc_json(c->arena, ret_doc->body), "value"));
	} else if (result == -ENOENT && l->standard >= 0) {
		*ret_doc = (struct doc){.rev = 0};
		*ret_value = l->standard;
		result = 0;
	}
	return result;
}

/* What the project has of all that the limit counts. */
static int limit_usage(struct call *c, const struct project_limit *l, int64_t *ret_used)
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
	struct doc d;
	int64_t most, used = 0;
	assert(l && l->counts[0]);
	int result = limit_value(c, l, &d, &most);
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

static int limit_write(struct call *c, const struct project_limit *l, int64_t value, bool in_list)
{
	int64_t usage = 0;
	struct buf b = {0};
	int result = limit_usage(c, l, &usage);
	if (result < 0)
		return result;
	json_open(&b, '{');
	if (l->counts[0]) {
		json_key(&b, "currentUsage");
		json_int(&b, usage);
	}
	if (l->standard >= 0) {
		json_key(&b, "defaultLimit");
		json_int(&b, l->standard);
	}
	json_key(&b, "maximumLimit");
	json_int(&b, l->most);
	json_key(&b, "name");
	json_z(&b, l->name);
	json_key(&b, "value");
	json_int(&b, value);
	json_close(&b, '}');
	entity_write(c, &c->out, buf_view(&b), resource_project_limit.self, "limitName", str_of(l->name), in_list);
	buf_free(&b);
	return 0;
}

int projects_list_limits(struct call *c)
{
	json_open(&c->out, '[');
	for (unsigned i = 0; i < project_limit_count; i++) {
		struct doc d;
		int64_t value;
		int result = limit_value(c, &project_limits[i], &d, &value);
		if (result == 0)
			result = limit_write(c, &project_limits[i], value, true);
		if (result < 0 && result != -ENOENT)
			return result;
	}
	json_close(&c->out, ']');
	return 0;
}

int projects_get_limit(struct call *c)
{
	const struct project_limit *l = limit_find(call_path(c, "limitName"));
	struct doc d;
	int64_t value;
	int result = l ? limit_value(c, l, &d, &value) : -ENOENT;
	if (result < 0)
		return result;
	c->etag = d.rev;
	return limit_write(c, l, value, false);
}

int projects_set_limit(struct call *c)
{
	const struct project_limit *l = limit_find(call_path(c, "limitName"));
	int64_t value = json_integer_value(json_object_get(c->body, "value")), before;
	struct doc d;
	if (!l)
		return -ENOENT;
	if (value < l->least || value > l->most) {
		call_fail(c, 400, "LIMIT_OUT_OF_RANGE", "value: must be from %lld to %lld for %s, not %lld.",
		          (long long)l->least, (long long)l->most, l->name, (long long)value);
		return call_fail_param(c, STR("value"));
	}
	int result = limit_value(c, l, &d, &before);
	if (result == -ENOENT)
		d = (struct doc){.rev = 0};
	else if (result < 0)
		return result;
	if ((result = if_match(c, d.rev)) < 0)
		return result;
	d.body = arena_printf(c->arena, "{\"name\":\"%s\",\"value\":%lld}", l->name, (long long)value);
	if (d.rev) {
		result = tx_update(c->tx, &d);
	} else {
		struct id id = id_new();
		d = (struct doc){.kind = STR("project_limit"),
		                 .id = arena_dup(c->arena, id_str(&id)),
		                 .parent = c->group.id,
		                 .name = str_of(l->name),
		                 .created_ms = clock_now_ms(),
		                 .body = d.body};
		result = tx_insert(c->tx, &d);
	}
	c->etag = d.rev + 1;
	return result < 0 ? result : limit_write(c, l, value, false);
}

int projects_delete_limit(struct call *c)
{
	const struct project_limit *l = limit_find(call_path(c, "limitName"));
	struct doc d;
	int64_t value;
	int result = l ? limit_value(c, l, &d, &value) : -ENOENT;
	if (result == 0)
		result = if_match(c, d.rev);
	/* One that has the default already stays as it is. */
	return result < 0 || !d.rev ? result : tx_delete(c->tx, "project_limit", d.id);
}
