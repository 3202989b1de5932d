/* An organization that was locked, because nobody pays for it, reads and deletes, and makes nothing new: a row that
 * makes or changes something is refused, unless it says "whileLocked". Nor do its owners and credentials make another
 * one. */
#include "gate/gate.h"

#include "base/json.h"
#include "identity/grants.h"

#include <errno.h>

static int unpaid_refuse(struct call *c, const struct doc *lock)
{
	const json_t *body = doc_json(c->arena, lock->body);
	struct str reason = json_field(body, "reason"), invoice = json_field(body, "invoiceId"),
	           way_out = json_field(body, "wayOut");
	if (!way_out.n)
		way_out = STR("The operator of this service can end the lock.");
	call_fail(c, 402, "ORG_LOCKED",
	          "The organization is locked: %.*s. It can read and delete, and make nothing new. %.*s",
	          STR_ARG(reason), STR_ARG(way_out));
	if (invoice.n)
		call_fail_param(c, invoice);
	return -402;
}

int payment_check(struct call *c, struct str org_id)
{
	struct doc lock;
	int r = tx_get(c->tx, c->arena, ORG_LOCK_KIND, org_id, &lock);
	if (r < 0)
		return r == -ENOENT ? 0 : call_fail_store(c, r, c->op->id);
	return unpaid_refuse(c, &lock);
}

static int caller_pays(struct call *c)
{
	const struct principal *p = c->caller;
	role_mask owner = role_bit("ORG_OWNER");
	int r = p->org_id[0] ? payment_check(c, str_of(p->org_id)) : 0;
	for (size_t i = 0; r == 0 && i < p->grant_count; i++)
		if (p->grants[i].roles & owner)
			r = payment_check(c, str_of(p->grants[i].scope.z));
	return r;
}

int gate_payment(struct call *c)
{
	if (!c->op->writes || c->op->method == METHOD_DELETE || c->op->while_locked)
		return 0;
	if (c->org.id.n)
		return payment_check(c, c->org.id);
	return c->op->open_to_all && c->caller ? caller_pays(c) : 0;
}
