/* Events and their types: what happened in an organization or a project, newest first. An organization's list shows
 * what happened to the organization itself and to what it has in its projects, not what happened inside them: a member
 * of the organization may not read all of its projects. */
#include "api/events/events.h"
#include "api/kit/verbs.h"

#include "base/clock.h"
#include "gate/dispatch.h"
#include "trail/event_types.h"
#include "trail/events.h"

int events_list_types(struct call *c)
{
	size_t count;
	const struct event_type *types = event_types(&count);
	int64_t from = list_offset(c);
	list_begin(c);
	for (int64_t i = from; i < from + c->page_size && i < (int64_t)count; i++) {
		json_open(&c->out, '{');
		json_pair_bool(&c->out, "alertable", types[i].alertable);
		json_pair_str(&c->out, "description", event_type_describe(c->arena, c->dialect, types[i].name));
		json_pair_str(&c->out, "eventType", types[i].name);
		json_close(&c->out, '}');
	}
	list_end(c, (int64_t)count, from + c->page_size < (int64_t)count);
	return 0;
}

/* A list parameter as a JSON array, as the store takes it; empty when it is not given. */
static struct str texts_of(struct call *c, const char *name)
{
	struct str rest = call_query(c, name), one;
	json_t *texts = json_keep(c->arena, json_array());
	if (!rest.n)
		return STR_NONE;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		if (one.n)
			json_add_str(texts, one);
	}
	return json_text(c->arena, texts);
}

int events_filter(struct call *c, const char *clusters, struct event_filter *ret_filter)
{
	struct event_filter f = {.in_org = c->op->tenant == TENANT_ORG};
	struct str min = call_query(c, "minDate"), max = call_query(c, "maxDate");
	f.scope = f.in_org ? c->org.id : c->group.id;
	f.types = texts_of(c, "eventType");
	f.excluded = texts_of(c, "excludedEventType");
	f.clusters = texts_of(c, clusters);
	f.has_min = min.n && clock_parse(min, &f.min_ms);
	f.has_max = max.n && clock_parse(max, &f.max_ms);
	if (f.has_min && f.has_max && f.min_ms > f.max_ms)
		return call_fail_field(c, 400, "INVALID_DATE_RANGE", "minDate", "must not be after maxDate.");
	/* Events show whole seconds: the one that shows this time is not after it. */
	if (f.has_max)
		f.max_ms += 999 - f.max_ms % 1000;
	*ret_filter = f;
	return 0;
}

static struct str raw_text(struct call *c, const struct event *e)
{
	if (!c->dialect)
		return e->raw;
	json_t *value = doc_json(c->arena, e->raw);
	json_put_str(value, "description",
	             event_description(c->arena, c->dialect, e->type, json_field(value, "description")));
	return json_text(c->arena, value);
}

static void entry_write(struct call *c, const struct event *e, bool in_org, bool in_list)
{
	struct str body = e->body;
	if (e->raw.n && call_query_bool(c, "includeRaw", false)) {
		struct str raw = raw_text(c, e);
		body = arena_printf(c->arena, "%.*s,\"raw\":%.*s}", (int)body.n - 1, body.p, STR_ARG(raw));
	}
	const struct op *self = catalog_op(in_org ? "getOrgEvent" : "getGroupEvent");
	entity_write(c, &c->out, body, self, "eventId", e->id, in_list);
}

/* How many events a filter may have to look at: none without one. */
static int walk_length(struct call *c, const struct event_filter *f, int64_t *ret_length)
{
	const struct event_filter all = {.scope = f->scope, .in_org = f->in_org};
	*ret_length = 0;
	if (!f->types.n && !f->excluded.n && !f->clusters.n && !f->has_min && !f->has_max)
		return 0;
	return tx_event_count(c->tx, &all, ret_length);
}

int events_list(struct call *c)
{
	struct event_filter f = {.in_org = false};
	struct event *events = NULL;
	size_t count = 0;
	int64_t total = -1, length = 0;
	int result = events_filter(c, "clusterNames", &f);
	if (result == 0)
		result = walk_length(c, &f, &length);
	if (result < 0 || call_takes_long(c, length))
		return result;
	/* One more than the page tells, without counting, whether there is a next. */
	result = tx_event_list(c->tx, c->arena, &f, list_offset(c), c->page_size + 1, &events, &count);
	if (result == 0 && c->include_count)
		result = tx_event_count(c->tx, &f, &total);
	if (result < 0)
		return result;
	bool more = (int64_t)count > c->page_size;
	list_begin(c);
	for (size_t i = 0; events && i < count - more; i++)
		entry_write(c, &events[i], f.in_org, true);
	list_end(c, total, more);
	return 0;
}

int events_get(struct call *c)
{
	bool in_org = c->op->tenant == TENANT_ORG;
	struct event e;
	int result = tx_event_get(c->tx, c->arena, call_path(c, "eventId"), &e);
	if (result < 0)
		return result;
	if (in_org ? !e.for_org || !str_eq(e.org_id, c->org.id) : !e.for_group || !str_eq(e.group_id, c->group.id))
		return call_not_found(c);
	entry_write(c, &e, in_org, false);
	return 0;
}

/* Retention. */

static int prune_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	if (s->event_retention_days)
		events_prune(r->store, s->event_retention_days);
	return JOB_DONE;
}

static const struct job_kind kinds[] = {{.name = "events_prune", .step = prune_step, .period_ms = 3600000}};
const struct job_kinds events_jobs = JOB_KINDS(kinds);
