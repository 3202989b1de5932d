/* An organization that was locked, because nobody pays for it, reads and deletes, and makes nothing new: a row that
 * makes or changes something is refused, unless it says "whileLocked". */
#include "gate/gate.h"

#include "base/json.h"

#include <errno.h>

static int refuse(struct call *c, const struct doc *lock)
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
	return refuse(c, &lock);
}

int gate_payment(struct call *c)
{
	if (!c->op->writes || c->op->method == METHOD_DELETE || c->op->while_locked || !c->org.id.n)
		return 0;
	return payment_check(c, c->org.id);
}
