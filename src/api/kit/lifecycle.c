/* Walks documents through their lifecycles. A state's time begins when it is reached: a move takes back the job that
 * waits for the old state and asks for one for the new. A job that a call has overtaken finds a newer one, or another
 * state than its own, and does nothing. */
#include "api/kit/lifecycle.h"

#include "api/kit/resources.h"
#include "base/clock.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>

static struct {
	const struct lifecycle *const *list;
	unsigned count;
} tables;

void lifecycle_use(const struct lifecycle *const *list, unsigned count)
{
	tables.list = list;
	tables.count = count;
}

static const struct lifecycle *const *tables_get(unsigned *ret_count)
{
	*ret_count = tables.list ? tables.count : catalog_lifecycle_count;
	return tables.list ? tables.list : catalog_lifecycles;
}

/* What the table says. */

const struct lifecycle *lifecycle_of(struct str kind, const json_t *body)
{
	unsigned count;
	const struct lifecycle *const *list = tables_get(&count);
	for (unsigned i = 0; i < count; i++)
		if (str_is(kind, list[i]->kind) &&
		    (!list[i]->when_field || str_is(json_field(body, list[i]->when_field), list[i]->when_value)))
			return list[i];
	return NULL;
}

static int state_find(const struct lifecycle *l, const json_t *body)
{
	struct str value = json_field(body, l->field);
	if (l->boolean)
		value = json_flag(body, l->field) ? STR("true") : STR("false");
	for (int i = 0; i < l->state_count; i++)
		if (str_is(value, l->states[i].value))
			return i;
	return LIFECYCLE_NONE;
}

static void state_put(const struct lifecycle *l, int state, json_t *body)
{
	const char *value = l->states[state].value;
	if (l->boolean)
		json_put(body, l->field, json_boolean(strcmp(value, "true") == 0));
	else
		json_put_z(body, l->field, value);
}

static const struct lifecycle_transition *by_word(const struct lifecycle *l, int from, const char *word)
{
	for (int i = 0; i < l->transition_count; i++) {
		const struct lifecycle_transition *t = &l->transitions[i];
		if (t->from == from && t->word && strcmp(t->word, word) == 0)
			return t;
	}
	return NULL;
}

/* The one that the job takes; a state has at most one. */
static const struct lifecycle_transition *by_job(const struct lifecycle *l, int from)
{
	for (int i = 0; i < l->transition_count; i++) {
		const struct lifecycle_transition *t = &l->transitions[i];
		if (t->from == from && (t->by == BY_TIME || t->by == BY_JOB))
			return t;
	}
	return NULL;
}

const char *lifecycle_state(struct str kind, const json_t *body)
{
	const struct lifecycle *l = lifecycle_of(kind, body);
	int state = l ? state_find(l, body) : LIFECYCLE_NONE;
	return state == LIFECYCLE_NONE ? NULL : l->states[state].name;
}

bool lifecycle_allows(struct str kind, const json_t *body, const char *word)
{
	const struct lifecycle *l = lifecycle_of(kind, body);
	int state = l ? state_find(l, body) : LIFECYCLE_NONE;
	return state != LIFECYCLE_NONE && by_word(l, state, word);
}

static bool kind_has_any(struct str kind)
{
	unsigned count;
	const struct lifecycle *const *list = tables_get(&count);
	for (unsigned i = 0; i < count; i++)
		if (str_is(kind, list[i]->kind))
			return true;
	return false;
}

bool lifecycle_knows(struct arena *a, const struct doc *d, const char *word)
{
	/* Most kinds have none, and are not parsed for it. */
	const struct lifecycle *l = kind_has_any(d->kind) ? lifecycle_of(d->kind, doc_json(a, d->body)) : NULL;
	for (int i = 0; l && i < l->transition_count; i++)
		if (l->transitions[i].word && strcmp(l->transitions[i].word, word) == 0)
			return true;
	return false;
}

bool lifecycle_is_leaving(struct arena *a, const struct doc *d)
{
	const json_t *body = kind_has_any(d->kind) ? doc_json(a, d->body) : NULL;
	const struct lifecycle *l = body ? lifecycle_of(d->kind, body) : NULL;
	int state = l ? state_find(l, body) : LIFECYCLE_NONE;
	for (int i = 0; state != LIFECYCLE_NONE && i < l->transition_count; i++)
		if (l->transitions[i].to == state && l->transitions[i].word &&
		    strcmp(l->transitions[i].word, "DELETE") == 0)
			return true;
	return false;
}

void lifecycle_keep(struct arena *a, const struct doc *d, json_t *body)
{
	const json_t *before = kind_has_any(d->kind) ? doc_json(a, d->body) : NULL;
	const struct lifecycle *l = before ? lifecycle_of(d->kind, before) : NULL;
	if (l)
		json_put(body, l->field, json_deep_copy(json_object_get(before, l->field)));
}

/* The job. */

static int job_ask_in(struct tx *tx, struct arena *a, const struct lifecycle *l, int state, struct str id,
                      struct str tenant, int64_t ms)
{
	const struct lifecycle_state *s = &l->states[state];
	json_t *args = json_keep(a, json_object());
	json_put_z(args, "kind", l->kind);
	json_put_z(args, "state", s->name);
	struct job job = {.kind = STR(LIFECYCLE_JOB),
	                  .subject = id,
	                  .args = json_text(a, args),
	                  .tenant = tenant,
	                  .due_ms = clock_now_ms() + ms};
	return tx_job_ensure(tx, &job);
}

static int job_ask(struct tx *tx, struct arena *a, const struct lifecycle *l, int state, struct str id,
                   struct str tenant)
{
	return job_ask_in(tx, a, l, state, id, tenant, l->states[state].dwell_ms);
}

int lifecycle_ask(struct tx *tx, struct arena *a, const struct doc *d)
{
	const json_t *body = doc_json(a, d->body);
	const struct lifecycle *l = lifecycle_of(d->kind, body);
	int state = l ? state_find(l, body) : LIFECYCLE_NONE;
	const struct lifecycle_transition *t = state == LIFECYCLE_NONE ? NULL : by_job(l, state);
	return t && t->by == BY_JOB ? job_ask(tx, a, l, state, d->id, STR_NONE) : 0;
}

/* One move. */

struct move {
	struct tx *tx;
	struct arena *arena;
	struct call *call; /* whose event it is; NULL: the service's */
	struct str tenant; /* of the job; empty: the store looks, where the document is there already */
	const struct lifecycle *lifecycle;
	const struct doc *doc;
	json_t *body;
	const struct lifecycle_transition *taken;
	int64_t later_ms; /* it was not taken: the job comes again */
};

/* A test's kind need not be a resource. */
static const struct resource *resource_of(const char *kind)
{
	for (unsigned i = 0; i < catalog_resource_count; i++)
		if (strcmp(catalog_resources[i]->kind, kind) == 0)
			return catalog_resources[i];
	return NULL;
}

/* One step up. */
static int above_load(const struct move *m, const struct resource **r, struct doc *d)
{
	const struct resource *tries[] = {(*r)->above, (*r)->above_else};
	struct str id = d->parent;
	int result = -ENOENT;
	for (int i = 0; result == -ENOENT && i < 2 && tries[i]; i++) {
		result = tx_get(m->tx, m->arena, tries[i]->kind, id, d);
		*r = tries[i];
	}
	return result;
}

/* The project or the organization, and the cluster where it lies below one. */
static int about_load(const struct move *m, struct event_about *ret_about)
{
	static const struct resource of_cluster = {.above = &resource_cluster};
	const struct resource *r = resource_of(m->lifecycle->kind);
	struct doc d = *m->doc, project;
	int result = 0;
	if (!r && tx_get(m->tx, m->arena, "project", d.parent, &project) == -ENOENT)
		r = &of_cluster;
	while (result == 0 && r && r->above) {
		result = above_load(m, &r, &d);
		if (result == 0 && (r == &resource_cluster || r == &resource_flex_cluster))
			ret_about->cluster = d.name;
	}
	if (result < 0)
		return result;
	if (r && r->parent_param && strcmp(r->parent_param, "orgId") == 0) {
		ret_about->org_id = d.parent;
		return 0;
	}
	result = tx_get(m->tx, m->arena, "project", d.parent, &project);
	if (result < 0)
		return result;
	ret_about->group_id = d.parent;
	ret_about->org_id = project.parent;
	return 0;
}

static int event_tell(const struct move *m)
{
	const char *type = m->taken->event, *field = m->lifecycle->event_field;
	if (m->call) {
		if (type)
			event_set_type(m->call, type);
		if (field)
			event_field(m->call, field, m->doc->id);
		return 0;
	}
	if (!type)
		return 0;
	const struct event_detail detail = {.name = field, .text = m->doc->id};
	struct event_about about = {.details = &detail, .detail_count = field ? 1 : 0};
	int r = about_load(m, &about);
	return r < 0 ? r : event_service_about(m->tx, m->arena, type, &about);
}

/* The body gets the state, and the hook runs; it may turn the way into a fault's. */
static int state_enter(struct move *m, const struct lifecycle_transition *t)
{
	const struct lifecycle *l = m->lifecycle;
	struct lifecycle_step step = {
	        .doc = m->doc, .body = m->body, .from = t->from == LIFECYCLE_NONE ? NULL : l->states[t->from].name};
	m->taken = t;
	if (t->to == LIFECYCLE_NONE)
		return 0;
	state_put(l, t->to, m->body);
	int r = l->states[t->to].reached ? l->states[t->to].reached(m->tx, m->arena, &step) : 0;
	if (r == 0 && step.later_ms && (t->by == BY_TIME || t->by == BY_JOB)) {
		state_put(l, t->from, m->body);
		m->later_ms = step.later_ms;
	}
	if (r < 0 || !step.fault)
		return r;
	const struct lifecycle_transition *other = by_word(l, t->from, step.fault);
	/* A fault that meets a fault would go on for ever. */
	if (!other || other->by != BY_FAULT || t->by == BY_FAULT) {
		log_error("lifecycle %s: no fault %s on the way to %s", l->name, step.fault, l->states[t->to].name);
		return -EIO;
	}
	return state_enter(m, other);
}

static int transition_take(struct move *m, const struct lifecycle_transition *t)
{
	if (!t)
		return -EINVAL;
	int r = state_enter(m, t);
	if (r == 0 && t->from != LIFECYCLE_NONE)
		r = tx_jobs_cancel(m->tx, LIFECYCLE_JOB, m->doc->id);
	if (r < 0)
		return r;
	if (m->later_ms)
		return job_ask_in(m->tx, m->arena, m->lifecycle, t->from, m->doc->id, m->tenant, m->later_ms);
	int to = m->taken->to;
	const struct lifecycle_transition *next = to == LIFECYCLE_NONE ? NULL : by_job(m->lifecycle, to);
	if (next && next->by == BY_TIME)
		r = job_ask(m->tx, m->arena, m->lifecycle, to, m->doc->id, m->call ? m->call->org.id : m->tenant);
	return r < 0 ? r : event_tell(m);
}

static int move_create(struct move *m)
{
	m->lifecycle = lifecycle_of(m->doc->kind, m->body);
	const struct lifecycle *l = m->lifecycle;
	for (int i = 0; l && i < l->transition_count; i++)
		if (l->transitions[i].from == LIFECYCLE_NONE)
			return transition_take(m, &l->transitions[i]);
	return -EINVAL;
}

static int move_change(struct move *m, const char *word)
{
	const json_t *before = doc_json(m->arena, m->doc->body);
	m->lifecycle = lifecycle_of(m->doc->kind, before);
	int from = m->lifecycle ? state_find(m->lifecycle, before) : LIFECYCLE_NONE;
	return from == LIFECYCLE_NONE ? -EINVAL : transition_take(m, by_word(m->lifecycle, from, word));
}

/* With what lies below it, and what names it and goes with it. */
static int document_end(const struct move *m, const struct doc *d)
{
	const struct resource *r = resource_of(m->lifecycle->kind);
	return r ? resource_take_away(m->tx, m->arena, r, d) : tx_delete(m->tx, m->lifecycle->kind, d->id);
}

static int move_write(const struct move *m, struct doc *d)
{
	if (m->taken->to == LIFECYCLE_NONE)
		return document_end(m, d);
	d->body = json_text(m->arena, m->body);
	int r = tx_update(m->tx, d);
	d->rev++;
	return r;
}

static int move_stored(struct move *m, struct doc *d, const char *word)
{
	m->body = doc_json(m->arena, d->body);
	int r = move_change(m, word);
	return r < 0 ? r : move_write(m, d);
}

int lifecycle_create(struct tx *tx, struct arena *a, const struct doc *d, json_t *body)
{
	return move_create(&(struct move){.tx = tx, .arena = a, .doc = d, .body = body});
}

int lifecycle_change(struct tx *tx, struct arena *a, const struct doc *d, json_t *body, const char *word)
{
	return move_change(&(struct move){.tx = tx, .arena = a, .doc = d, .body = body}, word);
}

int lifecycle_move(struct tx *tx, struct arena *a, struct doc *d, const char *word)
{
	return move_stored(&(struct move){.tx = tx, .arena = a, .doc = d}, d, word);
}

int call_lifecycle_create(struct call *c, const struct doc *d, json_t *body)
{
	return move_create(&(struct move){.tx = c->tx, .arena = c->arena, .call = c, .doc = d, .body = body});
}

int call_lifecycle_change(struct call *c, const struct doc *d, json_t *body, const char *word)
{
	return move_change(&(struct move){.tx = c->tx, .arena = c->arena, .call = c, .doc = d, .body = body}, word);
}

int call_lifecycle_move(struct call *c, struct doc *d, const char *word)
{
	return move_stored(&(struct move){.tx = c->tx, .arena = c->arena, .call = c, .doc = d}, d, word);
}

/* The job's end. */

/* `state`: that it must have; empty: any. */
static int advance(struct tx *tx, struct arena *a, struct doc *d, struct str state, struct str tenant)
{
	struct move m = {.tx = tx, .arena = a, .tenant = tenant, .doc = d, .body = doc_json(a, d->body)};
	m.lifecycle = lifecycle_of(d->kind, m.body);
	int from = m.lifecycle ? state_find(m.lifecycle, m.body) : LIFECYCLE_NONE;
	if (from == LIFECYCLE_NONE || (state.n && !str_is(state, m.lifecycle->states[from].name)))
		return 0;
	const struct lifecycle_transition *t = by_job(m.lifecycle, from);
	if (!t)
		return 0;
	int r = transition_take(&m, t);
	return r < 0 ? r : move_write(&m, d);
}

int lifecycle_advance(struct tx *tx, struct arena *a, struct doc *d)
{
	return advance(tx, a, d, STR_NONE, STR_NONE);
}

/* The document that the job is about. One of an earlier version's jobs names the id alone. */
static int subject_load(struct tx *tx, struct job_run *r, struct str kind, struct doc *ret_doc)
{
	unsigned count;
	const struct lifecycle *const *list = tables_get(&count);
	int result = -ENOENT;
	for (unsigned i = 0; i < count && result == -ENOENT; i++)
		if ((!kind.n || str_is(kind, list[i]->kind)) &&
		    (i == 0 || strcmp(list[i]->kind, list[i - 1]->kind) != 0))
			result = tx_get(tx, r->arena, list[i]->kind, r->job.subject, ret_doc);
	return result;
}

int lifecycle_save(struct tx *tx, struct job_run *r)
{
	const json_t *args = r->job.args.n ? doc_json(r->arena, r->job.args) : NULL;
	struct str state = json_field(args, "state");
	struct job newer;
	struct doc d;
	int result = tx_job_find(tx, r->arena, LIFECYCLE_JOB, r->job.subject, &newer);
	if (result != -ENOENT && (result < 0 || !newer.failed))
		return result;
	result = subject_load(tx, r, json_field(args, "kind"), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result; /* it went with its parent */
	return advance(tx, r->arena, &d, state, r->job.tenant);
}

static const struct job_kind kinds[] = {{.name = LIFECYCLE_JOB, .save = lifecycle_save}};
const struct job_kinds lifecycle_jobs = JOB_KINDS(kinds);
