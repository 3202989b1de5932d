/* Every five minutes: what ran becomes lines, months that are over are closed, and who has not paid is warned, locked,
 * and in the end has its clusters paused. A cluster is never deleted for that. */
#include "api/billing/billing.h"

#include "base/clock.h"
#include "base/log.h"
#include "billing/billing.h"
#include "gate/gate.h"
#include "outbox/outbox.h"

#include <errno.h>

/* By the hour, usage was empty for the first one, with clusters running. */
#define INVOICES_MS (5 * INT64_C(60000))
#define INVOICES_JOB "invoices"

struct orgs {
	struct arena *arena;
	struct str *ids;
	size_t count, room;
};

static void org_add(struct orgs *o, struct str id)
{
	ARENA_FIT(o->arena, o->ids, o->count, o->room);
	o->ids[o->count++] = arena_dup(o->arena, id);
}

static int org_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	org_add(ctx, d->id);
	return 0;
}

static bool org_is_known(const struct orgs *o, size_t from, struct str id)
{
	while (from < o->count && !str_eq(o->ids[from], id))
		from++;
	return from < o->count;
}

/* Those that were deleted and had anything in that month, once each. */
static int orgs_deleted(struct job_run *r, struct orgs *o, size_t living, int64_t month_ms)
{
	struct str *metered;
	size_t count = 0;
	struct doc d;
	int result = meter_orgs(r->reader, r->arena, month_ms, &metered, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = tx_get(r->reader, r->arena, "org", metered[i], &d);
		if (result == -ENOENT && !org_is_known(o, living, metered[i]))
			org_add(o, metered[i]);
		result = result == -ENOENT ? 0 : result;
	}
	return result;
}

/* Also those that were deleted: what they had is billed to the end of their last month, in the one after it. */
static int orgs_collect(struct job_run *r, struct orgs *o)
{
	char month[METER_MONTH];
	int64_t now = clock_now_ms(), from;
	meter_month(now, month, &from, NULL);
	int result = tx_walk_all(r->reader, "org", org_visit, o);
	size_t living = o->count;
	if (result == 0)
		result = orgs_deleted(r, o, living, now);
	if (result == 0)
		result = orgs_deleted(r, o, living, from - 1);
	return result;
}

/* --- those that need no look of their own */

/* Most organizations have nothing to bill or to pay in five minutes. Who they are is found out of all at once. */
struct quiet {
	struct arena *page;
	const struct billing_run *run;
	json_t *waits; /* {ORG: whether its last invoice is open, and has nothing in it} */
	json_t *has;   /* {ORG: true}: something else is to be done */
};

static void org_has(struct quiet *q, struct str org_id)
{
	json_put(q->has, arena_z(q->page, org_id), json_true());
}

/* They come in the order in which they were made. */
static int invoice_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	struct quiet *q = ctx;
	struct invoice i = invoice_of(q->page, d);
	bool empty = !json_number(i.state, "open") && !json_object_get(i.state, "waits");
	bool waits = invoice_is(&i, "PENDING") && q->run->now_ms < i.to_ms && empty;
	json_put(q->waits, arena_z(q->page, d->parent), json_boolean(waits));
	if (json_object_get(i.state, "unsettled") ||
	    (q->run->rules.lock_days && (invoice_is(&i, "CLOSED") || invoice_is(&i, "FAILED"))))
		org_has(q, d->parent);
	arena_reset(q->page);
	return 0;
}

static int setting_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	struct quiet *q = ctx;
	org_has(q, d->id);
	arena_reset(q->page);
	return 0;
}

static int quiet_find(struct job_run *r, struct quiet *q)
{
	struct str *metered;
	size_t count = 0;
	int result = meter_orgs(r->reader, r->arena, q->run->now_ms, &metered, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		org_has(q, metered[i]);
	if (result == 0)
		result = tx_walk_all(r->reader, INVOICE_KIND, invoice_visit, q);
	if (result == 0)
		result = tx_walk_all(r->reader, BILLING_KIND, setting_visit, q);
	return result < 0 ? result : tx_walk_all(r->reader, ORG_LOCK_KIND, setting_visit, q);
}

static bool org_is_quiet(const struct quiet *q, struct arena *a, struct str org_id)
{
	const char *id = arena_z(a, org_id);
	return json_is_true(json_object_get(q->waits, id)) && !json_object_get(q->has, id);
}

/* --- who has not paid */

struct looking {
	struct arena *arena;
	const struct billing_run *run;
	struct str org_id;
	bool pause;
};

static int look_run(struct tx *tx, void *ctx)
{
	struct looking *l = ctx;
	return payment_look(tx, l->arena, l->run, l->org_id, &l->pause);
}

struct owing {
	struct arena *arena;
	bool is;
};

static int owing_show(void *ctx, const struct doc *d)
{
	struct owing *o = ctx;
	o->is |= str_is_one_of("CLOSED|FAILED", json_field(doc_json(o->arena, d->body), "statusName"));
	return 0;
}

/* Whether there is anything to look at: most organizations owe nothing, and cost no write. */
static int needs_look(const struct billing_run *run, struct arena *a, struct str org_id, bool *ret_needs)
{
	struct doc lock;
	struct owing owing = {.arena = a};
	json_t *billing;
	tx_begin_read(run->reader);
	int r = billing_get(run->reader, a, org_id, &billing);
	*ret_needs = r == 0 && json_number(billing, "limitCents");
	if (r == 0)
		r = tx_get(run->reader, a, ORG_LOCK_KIND, org_id, &lock);
	*ret_needs |= r == 0;
	if (r == -ENOENT)
		r = run->rules.lock_days
		            ? tx_list_each(run->reader, a, INVOICE_KIND, org_id, 0, INT32_MAX, owing_show, &owing)
		            : 0;
	tx_end_read(run->reader);
	tx_rest(run->reader);
	*ret_needs |= owing.is;
	return r;
}

/* --- pausing */

struct pausing {
	struct arena *arena;
	struct str org_id;
	unsigned count;
};

static int cluster_pause(struct tx *tx, void *ctx, const struct doc *d)
{
	struct pausing *p = ctx;
	struct cluster cluster = cluster_of(p->arena, d);
	if (!str_is(d->kind, CLUSTER_KIND) || cluster_is(&cluster, "DELETING") || json_flag(cluster.body, "paused") ||
	    str_is(json_field(region_next(cluster.body, &(struct region_walk){0}), "providerName"), "TENANT"))
		return 0;
	json_put(cluster.body, "paused", json_true());
	p->count++;
	return cluster_change(tx, p->arena, &cluster, NULL);
}

/* Unless a payment has ended the lock since it was looked at. */
static int pause_run(struct tx *tx, void *ctx)
{
	struct pausing *p = ctx;
	struct doc *projects, lock;
	size_t count = 0;
	p->count = 0;
	int r = tx_get(tx, p->arena, ORG_LOCK_KIND, p->org_id, &lock);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = tx_list_all(tx, p->arena, "project", p->org_id, &projects, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = clusters_walk_group(tx, p->arena, projects[i].id, cluster_pause, p);
	return r < 0 ? r : payment_paused(tx, p->arena, p->org_id);
}

static int org_look(const struct billing_run *run, struct arena *a, struct str org_id)
{
	struct looking l = {.arena = a, .run = run, .org_id = org_id};
	struct pausing p = {.arena = a, .org_id = org_id};
	bool needs = false;
	int r = needs_look(run, a, org_id, &needs);
	if (r == 0 && needs)
		r = store_write_wait(run->store, look_run, &l);
	if (r < 0 || !l.pause)
		return r;
	r = store_write_wait(run->store, pause_run, &p);
	if (r == 0)
		log_warn("billing: organization %.*s is locked, and its grace is over: %u clusters are being paused",
		         STR_ARG(org_id), p.count);
	return r;
}

static int org_bill(const struct billing_run *run, struct arena *a, struct str org_id)
{
	int r = invoices_advance(run, org_id);
	if (r == 0)
		r = invoices_late(run, org_id);
	if (r == 0)
		r = org_look(run, a, org_id);
	if (r < 0 && r != -ESHUTDOWN)
		log_error("billing: organization %.*s: error %d", STR_ARG(org_id), r);
	return r;
}

/* One organization that fails does not keep the others waiting. */
static int invoices_step(struct job_run *r)
{
	struct service *s = r->ctx;
	struct orgs orgs = {.arena = r->arena};
	struct arena *a = arena_new();
	int result = metering_mark_now(s, r->reader, r->arena), first = 0;
	struct billing_run run = {.store = r->store,
	                          .reader = r->reader,
	                          .prices = s->prices,
	                          .rules = {.lock_days = s->billing_lock_days,
	                                    .grace_days = s->billing_grace_days,
	                                    .has_hook = outbox_has_endpoint(s->outbox, "billing")},
	                          .now_ms = clock_now_ms()};
	struct quiet quiet = {.page = a, .run = &run, .waits = json_new(r->arena), .has = json_new(r->arena)};
	tx_begin_read(r->reader);
	if (result == 0)
		result = orgs_collect(r, &orgs);
	if (result == 0)
		result = quiet_find(r, &quiet);
	job_read_end(r);
	for (size_t i = 0; result == 0 && i < orgs.count && !*job_stop(r); i++) {
		int one = org_is_quiet(&quiet, a, orgs.ids[i]) ? 0 : org_bill(&run, a, orgs.ids[i]);
		first = first ? first : one;
		arena_reset(a);
	}
	arena_free(a);
	if (result < 0 || first < 0)
		return result < 0 ? result : first;
	outbox_wake(s->outbox);
	r->due_ms = run.now_ms - run.now_ms % INVOICES_MS + INVOICES_MS;
	return JOB_LATER;
}

static const struct job_kind kinds[] = {
        {.name = INVOICES_JOB, .step = invoices_step, .period_ms = INVOICES_MS, .lasts = JOB_IS_LONG},
};
const struct job_kinds invoices_jobs = JOB_KINDS(kinds);
