/* Who pays, who has not, and what follows from that. A payment method is the operator's payment service's own name for
 * something that it can charge, never a number of a card: what that service has done, it or the operator tells by
 * `steward billing`. Times from which something is counted (a failure, a lock) are set by the service when it first
 * sees them, so that they are of its clock. */
#include "billing/billing.h"

#include "base/clock.h"
#include "gate/gate.h"
#include "trail/events.h"

#include <errno.h>

#define WARN_DAYS_1 3 /* before the lock, beside the letter about the failure itself */
#define WARN_DAYS_2 1
#define NO_METHOD "there is no payment method"

int billing_get(struct tx *tx, struct arena *a, struct str org_id, json_t **ret_billing)
{
	struct doc d;
	int r = tx_get(tx, a, BILLING_KIND, org_id, &d);
	if (r == 0 || r == -ENOENT)
		*ret_billing = r == 0 ? doc_json(a, d.body) : json_new(a);
	return r == -ENOENT ? 0 : r;
}

/* The same of the organization that pays for it, which is mostly itself. */
static int payer_get(struct tx *tx, struct arena *a, struct str org_id, json_t **ret_billing)
{
	int r = billing_get(tx, a, org_id, ret_billing);
	struct str payer = r == 0 ? json_field(*ret_billing, "payer") : STR_NONE;
	return payer.n ? billing_get(tx, a, payer, ret_billing) : r;
}

static int billing_put(struct tx *tx, struct arena *a, struct str org_id, const json_t *billing)
{
	struct doc d;
	int r = tx_get(tx, a, BILLING_KIND, org_id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	struct doc put = {
	        .kind = STR(BILLING_KIND), .id = org_id, .created_ms = clock_now_ms(), .rev = r == 0 ? d.rev : 0};
	put.body = json_text(a, billing);
	return r == 0 ? tx_update(tx, &put) : tx_insert(tx, &put);
}

static int event_of(struct tx *tx, struct arena *a, const char *type, struct str org_id, struct str invoice_id,
                    struct str payment_id, struct str reason)
{
	struct event_detail details[3];
	size_t count = 0;
	if (invoice_id.n)
		details[count++] = (struct event_detail){.name = "invoiceId", .text = invoice_id};
	if (payment_id.n)
		details[count++] = (struct event_detail){.name = "paymentId", .text = payment_id};
	if (reason.n)
		details[count++] = (struct event_detail){.name = "reason", .text = reason};
	return event_service_about(tx, a, type,
	                           &(struct event_about){.org_id = org_id, .details = details, .detail_count = count});
}

static struct str money_text(struct arena *a, const struct invoice *i, int64_t cents)
{
	return arena_printf(a, "%lld.%02lld %.*s", (long long)(cents / 100), (long long)(cents % 100),
	                    STR_ARG(json_field(i->state, "currency")));
}

static int64_t owed(const struct invoice *i)
{
	return json_number(i->body, "amountBilledCents") - json_number(i->body, "amountPaidCents");
}

/* --- payments of an invoice */

static int payment_insert(struct tx *tx, struct arena *a, const struct invoice *i, const char *status, int64_t paid,
                          struct str *ret_id)
{
	int64_t now = clock_now_ms();
	json_t *body = json_new(a);
	struct doc d = doc_new(a, PAYMENT_KIND, i->doc.id, STR_NONE, STR_NONE);
	json_put(body, "amountBilledCents", json_integer(json_number(i->body, "amountBilledCents")));
	json_put(body, "amountPaidCents", json_integer(paid));
	json_put_time(body, "created", now);
	json_put_str(body, "currency", json_field(i->state, "currency"));
	json_put_str(body, "id", d.id);
	json_put(body, "salesTaxCents", json_integer(json_number(i->body, "salesTaxCents")));
	json_put_z(body, "statusName", status);
	json_put(body, "subtotalCents", json_integer(json_number(i->body, "subtotalCents")));
	json_put_time(body, "updated", now);
	d.body = json_text(a, body);
	*ret_id = d.id;
	return tx_insert(tx, &d);
}

static bool is_due(const struct invoice *i)
{
	return str_is_one_of("CLOSED|FAILED|INVOICED", json_field(i->body, "statusName"));
}

/* Whether another invoice of the organization has failed. */
static int has_failed(struct tx *tx, struct arena *a, struct str org_id, struct str but, bool *ret_has)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, INVOICE_KIND, org_id, &docs, &count);
	*ret_has = false;
	for (size_t k = 0; r == 0 && k < count; k++)
		*ret_has |= !str_eq(docs[k].id, but) &&
		            str_is(json_field(doc_json(a, docs[k].body), "statusName"), "FAILED");
	return r;
}

/* A lock that came from failed payments ends with the last of them; the operator's own stays. */
static int lock_end(struct tx *tx, struct arena *a, struct str org_id, struct str invoice_id)
{
	bool failed = false;
	struct doc lock;
	int r = tx_get(tx, a, ORG_LOCK_KIND, org_id, &lock);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = has_failed(tx, a, org_id, invoice_id, &failed);
	if (r < 0 || failed || !json_field(doc_json(a, lock.body), "invoiceId").n)
		return r;
	return payment_unlock(tx, a, org_id);
}

/* Nothing is owed for it any more. */
static int settled(struct tx *tx, struct arena *a, struct invoice *i, const char *status)
{
	json_put_z(i->body, "statusName", status);
	json_object_del(i->state, "failed");
	json_object_del(i->state, "warned");
	int r = invoice_save(tx, a, i, clock_now_ms());
	return r < 0 ? r : lock_end(tx, a, i->doc.parent, i->doc.id);
}

int payment_paid(struct tx *tx, struct arena *a, struct invoice *i, int64_t cents, struct str reference)
{
	struct str id;
	if (!is_due(i) || cents < 0 || cents > owed(i))
		return -EINVAL;
	if (cents == 0)
		cents = owed(i);
	bool whole = cents == owed(i);
	int r = payment_insert(tx, a, i, whole ? "PAID" : "PARTIAL_PAID", cents, &id);
	json_put(i->body, "amountPaidCents", json_integer(json_number(i->body, "amountPaidCents") + cents));
	if (r == 0)
		r = event_of(tx, a, "CHARGE_SUCCEEDED", i->doc.parent, i->doc.id, id, reference);
	if (r == 0 && !whole)
		return invoice_save(tx, a, i, clock_now_ms());
	return r < 0 ? r : settled(tx, a, i, "PAID");
}

/* The caller saves the invoice. */
static int charge_failed(struct tx *tx, struct arena *a, const struct invoice *i, struct str reason)
{
	struct str id;
	int r = payment_insert(tx, a, i, "FAILED", 0, &id);
	json_put_z(i->body, "statusName", "FAILED");
	return r < 0 ? r : event_of(tx, a, "CHARGE_FAILED", i->doc.parent, i->doc.id, id, reason);
}

int payment_failed(struct tx *tx, struct arena *a, struct invoice *i, struct str reason)
{
	if (!is_due(i))
		return -EINVAL;
	int r = charge_failed(tx, a, i, reason);
	return r < 0 ? r : invoice_save(tx, a, i, clock_now_ms());
}

int payment_forgive(struct tx *tx, struct arena *a, struct invoice *i, struct str reason)
{
	struct str id;
	if (!is_due(i))
		return -EINVAL;
	int r = payment_insert(tx, a, i, "FORGIVEN", 0, &id);
	if (r == 0)
		r = event_of(tx, a, "PAYMENT_FORGIVEN", i->doc.parent, i->doc.id, id, reason);
	return r < 0 ? r : settled(tx, a, i, "FORGIVEN");
}

int payment_refund(struct tx *tx, struct arena *a, struct invoice *i, int64_t cents, struct str reason)
{
	struct doc *payments;
	size_t count = 0;
	struct str of = STR_NONE;
	int64_t paid = json_number(i->body, "amountPaidCents");
	int r = tx_list_all(tx, a, PAYMENT_KIND, i->doc.id, &payments, &count);
	for (size_t k = 0; r == 0 && k < count; k++)
		if (json_number(doc_json(a, payments[k].body), "amountPaidCents"))
			of = payments[k].id;
	if (r == 0 && (!of.n || cents <= 0 || cents > paid))
		return -EINVAL;
	json_t *body = json_new(a);
	json_put(body, "amountCents", json_integer(cents));
	json_put_time(body, "created", clock_now_ms());
	json_put_str(body, "paymentId", of);
	json_put_str(body, "reason", reason);
	struct doc d = doc_new(a, REFUND_KIND, i->doc.id, STR_NONE, json_text(a, body));
	json_put(i->body, "amountPaidCents", json_integer(paid - cents));
	if (r == 0)
		r = tx_insert(tx, &d);
	if (r == 0)
		r = invoice_save(tx, a, i, clock_now_ms());
	return r < 0 ? r : event_of(tx, a, "REFUND_ISSUED", i->doc.parent, i->doc.id, of, reason);
}

/* --- the end of a month */

static const char *status_at_close(const struct invoice *i, const json_t *billing)
{
	if (json_number(i->body, "amountBilledCents") > 0)
		return str_is(json_field(billing, "method"), "invoice") ? "INVOICED" : "CLOSED";
	return json_number(i->body, "subtotalCents") > 0 ? "PREPAID" : "FREE";
}

/* A month that was corrected to less than nothing leaves a credit for the next ones. */
static int surplus_credit(struct tx *tx, struct arena *a, const struct invoice *i)
{
	int64_t subtotal = json_number(i->body, "subtotalCents");
	if (subtotal >= 0)
		return 0;
	return payment_credit(tx, a, i->doc.parent, -subtotal,
	                      arena_printf(a, "from the invoice of %.*s", STR_ARG(i->doc.name)));
}

int payment_close(struct tx *tx, struct arena *a, const struct billing_run *run, struct invoice *i)
{
	json_t *billing;
	int r = payer_get(tx, a, i->doc.parent, &billing);
	if (r < 0)
		return r;
	const char *status = status_at_close(i, billing);
	json_put_z(i->body, "statusName", status);
	if (r == 0)
		r = surplus_credit(tx, a, i);
	/* A month in which nothing was had is nothing to tell of. */
	if (r == 0 && json_number(i->state, "lines"))
		r = event_of(tx, a, "INVOICE_CLOSED", i->doc.parent, i->doc.id, STR_NONE, STR_NONE);
	/* With the closing, so that the payment service is told the state that is: once it was told of a closed invoice
	 * which had failed by the time that it asked. */
	if (r == 0 && run->rules.lock_days && !json_field(billing, "method").n && strcmp(status, "CLOSED") == 0)
		r = charge_failed(tx, a, i, STR(NO_METHOD));
	if (r == 0 && run->rules.has_hook && strcmp(status, "FREE") != 0)
		r = notice_hook(tx, a, i, billing);
	return r;
}

/* --- warnings and the lock */

static struct str date_text(struct arena *a, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	return arena_dup(a, (struct str){text, sizeof "2026-11-17" - 1});
}

static int warn(struct tx *tx, struct arena *a, const struct invoice *i, int64_t lock_ms)
{
	struct str date = date_text(a, lock_ms), money = money_text(a, i, owed(i));
	int r = event_service_field(tx, a, "ORG_SUSPENSION_DATE_CHANGED", i->doc.parent, STR_NONE, "date", date);
	return r < 0 ? r
	             : notice_mail(
	                       tx, a, i->doc.parent, STR("An invoice is not paid"),
	                       arena_printf(a,
	                                    "The invoice %.*s of %.*s (%.*s) has not been paid.\n\nUnless it is paid, "
	                                    "the organization %.*s is locked on %.*s: it can then read and delete, "
	                                    "and make nothing new. Databases go on for a while, and are then paused; "
	                                    "none is deleted.\n\nTo mend this, have the operator of the service take "
	                                    "the payment, or set another payment method.\n",
	                                    STR_ARG(i->doc.id), STR_ARG(i->doc.name), STR_ARG(money),
	                                    STR_ARG(i->doc.parent), STR_ARG(date)));
}

/* How many warnings there have to be by now: at the failure, and some days before the lock. */
static int64_t warnings_due(int64_t now_ms, int64_t lock_ms)
{
	return 1 + (now_ms >= lock_ms - WARN_DAYS_1 * DAY_MS) + (now_ms >= lock_ms - WARN_DAYS_2 * DAY_MS);
}

static int failed_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct invoice *i, bool locked)
{
	int64_t since = json_number(i->state, "failed"), warned = json_number(i->state, "warned"), now = run->now_ms;
	bool changed = !since;
	int r = 0;
	since = since ? since : now;
	json_put(i->state, "failed", json_integer(since));
	int64_t lock_ms = since + (int64_t)run->rules.lock_days * DAY_MS, due = warnings_due(now, lock_ms);
	if (locked)
		return 0;
	if (now >= lock_ms) {
		if (changed)
			r = invoice_save(tx, a, i, now);
		return r < 0 ? r
		             : payment_lock(tx, a, i->doc.parent,
		                            arena_printf(a, "the invoice of %.*s is not paid", STR_ARG(i->doc.name)),
		                            i->doc.id, now);
	}
	if (due > warned) {
		json_put(i->state, "warned", json_integer(due));
		changed = true;
		r = warn(tx, a, i, lock_ms);
	}
	return r < 0 || !changed ? r : invoice_save(tx, a, i, now);
}

/* Nobody can be charged for it: the payment method was taken away since it was closed, or locks are new here. */
static int closed_look(struct tx *tx, struct arena *a, struct invoice *i)
{
	json_t *billing;
	int r = payer_get(tx, a, i->doc.parent, &billing);
	if (r < 0 || json_field(billing, "method").n)
		return r;
	return payment_failed(tx, a, i, STR(NO_METHOD));
}

static int lock_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id, bool *ret_locked,
                     bool *ret_pause)
{
	struct doc d;
	int r = tx_get(tx, a, ORG_LOCK_KIND, org_id, &d);
	*ret_locked = r == 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *lock = doc_json(a, d.body);
	int64_t since = json_number(lock, "since");
	if (!since) {
		json_put(lock, "since", json_integer(run->now_ms));
		d.body = json_text(a, lock);
		return tx_update(tx, &d);
	}
	*ret_pause = !json_flag(lock, "paused") && !json_flag(lock, "byLimit") &&
	             run->now_ms >= since + (int64_t)run->rules.grace_days * DAY_MS;
	return 0;
}

int payment_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id, bool *ret_pause)
{
	struct doc *docs;
	size_t count = 0;
	bool locked = false;
	*ret_pause = false;
	int r = spending_look(tx, a, run, org_id);
	if (r == 0)
		r = lock_look(tx, a, run, org_id, &locked, ret_pause);
	if (r == 0 && run->rules.lock_days)
		r = tx_list_all(tx, a, INVOICE_KIND, org_id, &docs, &count);
	for (size_t k = 0; r == 0 && k < count; k++) {
		struct invoice i = invoice_of(a, &docs[k]);
		if (invoice_is(&i, "CLOSED"))
			r = closed_look(tx, a, &i);
		if (r == 0 && invoice_is(&i, "FAILED"))
			r = failed_look(tx, a, run, &i, locked);
		struct doc lock;
		locked = locked || (r == 0 && tx_get(tx, a, ORG_LOCK_KIND, org_id, &lock) == 0);
	}
	return r;
}

int payment_paused(struct tx *tx, struct arena *a, struct str org_id)
{
	struct doc d;
	int r = tx_get(tx, a, ORG_LOCK_KIND, org_id, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *lock = doc_json(a, d.body);
	json_put(lock, "paused", json_true());
	d.body = json_text(a, lock);
	r = tx_update(tx, &d);
	return r < 0 ? r : event_of(tx, a, "ORG_CLUSTERS_PAUSED", org_id, STR_NONE, STR_NONE, STR_NONE);
}

int payment_lock(struct tx *tx, struct arena *a, struct str org_id, struct str reason, struct str invoice_id,
                 int64_t at_ms)
{
	struct doc d;
	json_t *body = json_new(a);
	int r = tx_get(tx, a, ORG_LOCK_KIND, org_id, &d);
	if (r != -ENOENT)
		return r < 0 ? r : -EINVAL;
	json_put_str(body, "reason", reason);
	if (invoice_id.n) {
		json_put_str(body, "invoiceId", invoice_id);
		json_put_z(body, "wayOut",
		           "Have the invoice paid that the parameters name, and the lock ends by itself; the operator "
		           "of this "
		           "service can also end it.");
	}
	json_put(body, "since", json_integer(at_ms));
	d = (struct doc){
	        .kind = STR(ORG_LOCK_KIND), .id = org_id, .created_ms = clock_now_ms(), .body = json_text(a, body)};
	r = tx_insert(tx, &d);
	if (r == 0)
		r = event_of(tx, a, "ORG_LOCKED", org_id, invoice_id, STR_NONE, reason);
	return r < 0 ? r
	             : notice_mail(
	                       tx, a, org_id, STR("The organization is locked"),
	                       arena_printf(a,
	                                    "The organization %.*s is locked: %.*s.\n\nIt can read and delete, and "
	                                    "make nothing new. Databases go on for a while, and are then paused; none "
	                                    "is deleted. A payment unlocks it.\n",
	                                    STR_ARG(org_id), STR_ARG(reason)));
}

int payment_unlock(struct tx *tx, struct arena *a, struct str org_id)
{
	int r = tx_delete(tx, ORG_LOCK_KIND, org_id);
	if (r == -ENOENT)
		return -EINVAL;
	if (r == 0)
		r = event_of(tx, a, "ORG_ACTIVATED", org_id, STR_NONE, STR_NONE, STR_NONE);
	return r < 0 ? r
	             : notice_mail(tx, a, org_id, STR("The organization is unlocked"),
	                           arena_printf(a,
	                                        "The organization %.*s is no longer locked. Clusters that were paused "
	                                        "meanwhile can be resumed.\n",
	                                        STR_ARG(org_id)));
}

/* --- the operator's other orders */

/* The days until the lock begin anew for what has failed: otherwise it would be back within the hour. */
int payment_unlock_by_hand(struct tx *tx, struct arena *a, struct str org_id)
{
	struct doc *docs;
	size_t count = 0;
	int r = payment_unlock(tx, a, org_id);
	if (r == 0)
		r = tx_list_all(tx, a, INVOICE_KIND, org_id, &docs, &count);
	for (size_t k = 0; r == 0 && k < count; k++) {
		struct invoice i = invoice_of(a, &docs[k]);
		if (!invoice_is(&i, "FAILED"))
			continue;
		json_object_del(i.state, "failed");
		json_object_del(i.state, "warned");
		r = invoice_save(tx, a, &i, clock_now_ms());
	}
	return r;
}

int payment_method_set(struct tx *tx, struct arena *a, struct str org_id, struct str method, struct str email)
{
	json_t *billing;
	int r = billing_get(tx, a, org_id, &billing);
	if (r < 0)
		return r;
	bool had = json_field(billing, "method").n;
	if (method.n)
		json_put_str(billing, "method", method);
	else if (method.p)
		json_object_del(billing, "method");
	if (email.n)
		json_put_str(billing, "email", email);
	else if (email.p)
		json_object_del(billing, "email");
	r = billing_put(tx, a, org_id, billing);
	if (r == 0 && email.p)
		r = event_of(tx, a, email.n ? "BILLING_EMAIL_ADDRESS_CHANGED" : "BILLING_EMAIL_ADDRESS_REMOVED", org_id,
		             STR_NONE, STR_NONE, STR_NONE);
	if (r == 0 && method.p && (method.n || had))
		r = event_of(tx, a,
		             method.n ? "ORG_OVERRIDE_PAYMENT_METHOD_ADDED" : "ADMIN_OVERRIDE_PAYMENT_METHOD_DELETED",
		             org_id, STR_NONE, STR_NONE, STR_NONE);
	return r;
}

int payment_limit(struct tx *tx, struct arena *a, struct str org_id, int64_t cents)
{
	json_t *billing;
	int r = billing_get(tx, a, org_id, &billing);
	if (r < 0 || cents < 0)
		return r < 0 ? r : -EINVAL;
	if (cents)
		json_put(billing, "limitCents", json_integer(cents));
	else
		json_object_del(billing, "limitCents");
	r = billing_put(tx, a, org_id, billing);
	return r < 0 ? r : event_of(tx, a, "ORG_LIMIT_UPDATED", org_id, STR_NONE, STR_NONE, STR("spending"));
}

int payment_credit(struct tx *tx, struct arena *a, struct str org_id, int64_t cents, struct str note)
{
	json_t *body = json_new(a);
	if (cents <= 0)
		return -EINVAL;
	json_put(body, "cents", json_integer(cents));
	json_put(body, "remaining", json_integer(cents));
	json_put(body, "from", json_integer(0));
	json_put(body, "to", json_integer(0));
	json_put_str(body, "note", note);
	struct doc d = doc_new(a, CREDIT_KIND, org_id, STR_NONE, json_text(a, body));
	int r = tx_insert(tx, &d);
	return r < 0 ? r : event_of(tx, a, "CREDIT_ISSUED", org_id, STR_NONE, STR_NONE, note);
}

int payment_correct(struct tx *tx, struct arena *a, struct str org_id, int64_t cents, struct str note)
{
	struct invoice i;
	size_t count;
	int64_t now = clock_now_ms();
	int r = invoice_last(tx, a, org_id, &i);
	if (r == 0 && (!cents || !invoice_is(&i, "PENDING")))
		r = -EINVAL;
	if (r < 0)
		return r;
	struct bill_line line = line_of_correction(cents, note, now);
	struct doc *docs = lines_docs(a, LINES_KIND, i.doc.id, &line, 1, now, &count);
	json_put(i.state, "frozen", json_integer(json_number(i.state, "frozen") + cents));
	json_put(i.state, "lines", json_integer(json_number(i.state, "lines") + 1));
	r = tx_insert(tx, &docs[0]);
	if (r == 0)
		r = invoice_sum(tx, a, NULL, &i, json_number(i.state, "open"), false);
	if (r == 0)
		r = invoice_save(tx, a, &i, now);
	return r < 0 ? r : event_of(tx, a, "DISCOUNT_APPLIED", org_id, i.doc.id, STR_NONE, note);
}

int payment_link(struct tx *tx, struct arena *a, struct str org_id, struct str payer_id)
{
	json_t *billing, *of_payer;
	int64_t links = 0;
	int r = billing_get(tx, a, org_id, &billing);
	struct str before = r == 0 ? json_field(billing, "payer") : STR_NONE;
	before = before.n ? arena_dup(a, before) : before;
	if (r == 0)
		r = tx_count(tx, LINK_KIND, org_id, &links);
	if (r == 0 && payer_id.n)
		r = billing_get(tx, a, payer_id, &of_payer);
	/* Who is paid for pays for nobody, and nobody for itself. */
	if (r == 0 && (str_eq(org_id, payer_id) || (payer_id.n && (links || json_field(of_payer, "payer").n))))
		r = -EINVAL;
	if (r == 0 && before.n)
		r = tx_set_by_name(tx, a, LINK_KIND, before, org_id, STR_NONE);
	if (r == 0 && payer_id.n)
		r = tx_set_by_name(tx, a, LINK_KIND, payer_id, org_id, STR("{}"));
	if (r < 0)
		return r;
	if (payer_id.n)
		json_put_str(billing, "payer", payer_id);
	else
		json_object_del(billing, "payer");
	r = billing_put(tx, a, org_id, billing);
	return r < 0 ? r
	             : event_of(tx, a, payer_id.n ? "ORG_LINKED_TO_PAYING_ORG" : "ORG_UNLINKED_FROM_PAYING_ORG", org_id,
	                        STR_NONE, STR_NONE, STR_NONE);
}
