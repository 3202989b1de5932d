/* A limit on what an organization may spend in a month, set by the operator: told of when most of it is spent; once all
 * of it is, the organization is locked until the month is over or the limit is raised. Its databases go on, so that
 * the month may come to more: nothing that runs is ever paused for a limit. */
#include "billing/billing.h"

#include "base/clock.h"
#include "gate/gate.h"
#include "trail/events.h"

#include <errno.h>

#define WARN_PERCENT 80

static int limit_lock(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id)
{
	static const char reason[] = "the spending limit of the month is reached";
	json_t *body = json_new(a);
	json_put(body, "byLimit", json_true());
	json_put_z(body, "reason", reason);
	json_put(body, "since", json_integer(run->now_ms));
	json_put_z(body, "wayOut",
	           "The lock ends with the month, or when the operator of this service raises the limit.");
	struct doc d = {
	        .kind = STR(ORG_LOCK_KIND), .id = org_id, .created_ms = run->now_ms, .body = json_text(a, body)};
	int r = tx_insert(tx, &d);
	if (r == 0)
		r = event_service_field(tx, a, "ORG_LOCKED", org_id, STR_NONE, "reason", STR(reason));
	return r < 0 ? r
	             : notice_mail(
	                       tx, a, org_id, STR("The spending limit is reached"),
	                       arena_printf(a,
	                                    "The organization %.*s has spent what it may in this month. It can read "
	                                    "and delete, and make nothing new; its databases go on. This ends with "
	                                    "the month, or when the operator raises the limit.\n",
	                                    STR_ARG(org_id)));
}

static int limit_warn(struct tx *tx, struct arena *a, const struct billing_run *run, struct invoice *i, int64_t limit)
{
	json_put(i->state, "limitWarned", json_integer(limit));
	int r = invoice_save(tx, a, i, run->now_ms);
	if (r == 0)
		r = event_service_field(tx, a, "ORG_INVOICE_OVER_THRESHOLD", i->doc.parent, STR_NONE, "invoiceId",
		                        i->doc.id);
	return r < 0 ? r
	             : notice_mail(
	                       tx, a, i->doc.parent, STR("Most of the spending limit is used"),
	                       arena_printf(a,
	                                    "The organization %.*s has used more than %d percent of its spending "
	                                    "limit of this month (%lld of %lld cents). When all of it is used, it is "
	                                    "locked until the month is over: it can then make nothing new.\n",
	                                    STR_ARG(i->doc.parent), WARN_PERCENT,
	                                    (long long)json_number(i->body, "subtotalCents"), (long long)limit));
}

int spending_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id)
{
	struct invoice i;
	struct doc lock;
	json_t *billing;
	int r = billing_get(tx, a, org_id, &billing);
	if (r == 0)
		r = invoice_last(tx, a, org_id, &i);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	int64_t limit = json_number(billing, "limitCents"), spent = json_number(i.body, "subtotalCents");
	r = tx_get(tx, a, ORG_LOCK_KIND, org_id, &lock);
	if (r < 0 && r != -ENOENT)
		return r;
	bool locked = r == 0, by_limit = locked && json_flag(doc_json(a, lock.body), "byLimit"),
	     over = limit && spent >= limit;
	if (by_limit && !over)
		return payment_unlock(tx, a, org_id);
	r = 0;
	if (limit && spent >= limit * WARN_PERCENT / 100 && json_number(i.state, "limitWarned") != limit)
		r = limit_warn(tx, a, run, &i, limit);
	return r == 0 && over && !locked ? limit_lock(tx, a, run, org_id) : r;
}
