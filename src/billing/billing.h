/* Invoices: what an organization had in a month, line by line, what it owes for it, and whether it has paid.
 *
 *   "invoice"        parent = organization, name = "2026-11"; body: as callers see it, without links; secret:
 *                    {"next", "carry", "frozen", "lines", "tiers": {"SKU/REGION": parts}, "currency", "failed"?,
 *                    "warned"?, "unsettled"?}
 *   "invoice_lines"  parent = invoice, in order: some lines of a day that is over; body {"items": [...]} as callers see
 *                    them; secret: {"keys": [[project, cluster, service, cents, sku, region, parts, from], ...],
 *                    "names": {ID: of a project or cluster, ...}}
 *   "invoice_open"   the same of the day that is not over: made anew each five minutes
 *   "invoice_costs"  id = invoice: the sums of a closed one, {"costs": [[project, cluster, service, cents], ...],
 *                    "names": {...}}
 *   "invoice_payment", "invoice_refund"  parent = invoice
 *   "billing"        id = organization: how it pays, {"method"?, "email"?, "payer"?, "limitCents"?}
 *   "billing_link"   parent = who pays, name = who is paid for
 *   "billing_credit" parent = organization, name: of the price book's; {"cents", "remaining", "from", "to", "note"}
 *   "org_lock"       id = organization: gate/gate.h
 *
 * A month is billed day by day, in UTC and in order. A day that is over, and about which the meter expects nothing
 * more, becomes lines that are never changed again; the cents of a day are what the month's exact sum has grown by,
 * rounded before and after, and are given to its lines by largest remainder. So lines add up to their day, days to the
 * month, and the month is rounded once. What turns out to be wrong later becomes a line of its own, in the invoice that
 * is open then. */
#ifndef STEWARD_BILLING_BILLING_H
#define STEWARD_BILLING_BILLING_H

#include "base/buf.h"
#include "base/json.h"
#include "meter/meter.h"
#include "prices/prices.h"
#include "store/store.h"

#define INVOICE_KIND "invoice"
#define LINES_KIND "invoice_lines"
#define OPEN_KIND "invoice_open"
#define COSTS_KIND "invoice_costs"
#define PAYMENT_KIND "invoice_payment"
#define REFUND_KIND "invoice_refund"
#define BILLING_KIND "billing"
#define LINK_KIND "billing_link"
#define CREDIT_KIND "billing_credit"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

/* What the operator has decided about organizations that do not pay. */
struct billing_rules {
	unsigned lock_days;  /* after a failed payment; 0: nothing is ever locked */
	unsigned grace_days; /* that databases of a locked organization go on */
	bool has_hook;       /* the operator's payment service is told of closed invoices */
};

/* --- lines.c: from what was metered to lines. Pure. */

struct bill_line {
	int64_t from_ms, to_ms;
	struct str group_id, group_name, cluster_id, cluster_name, sku, provider, region;
	struct str service, note;
	const char *unit;
	int64_t parts, unit_parts; /* how much, in parts of the unit */
	struct price_tier tier;
	bool tiered;
	money_atoms gross, net;
	int64_t discount_ppm;
	int64_t cents, discount_cents;
};
struct bill_state {
	json_t *tiers; /* {"SKU/REGION": parts}: what the month has had so far */
	int64_t carry; /* atoms that the month's exact sum is above the cents that were given out; or below: negative */
};
/* The lines of one day, which ends at to_ms at the latest, and the state after it. */
size_t lines_make(struct arena *a, const struct prices *prices, struct str org_id, const struct usage *rows,
                  size_t count, int64_t to_ms, struct bill_state *state, struct bill_line **ret_lines);
/* Gives each line its cents: they add up to what the sum has grown by. Returns that. */
int64_t lines_cents(struct arena *a, struct bill_line *lines, size_t count, int64_t *carry);
/* Documents of so many lines each, in order; kind is LINES_KIND or OPEN_KIND. */
#define LINES_OF_DOC 400
struct doc *lines_docs(struct arena *a, const char *kind, struct str invoice_id, const struct bill_line *lines,
                       size_t count, int64_t now_ms, size_t *ret_count);
/* A line without a measurement: a correction by the operator. */
struct bill_line line_of_correction(int64_t cents, struct str note, int64_t at_ms);
/* The number as text, exact: "12.5"; `parts` make one. */
void decimal_write(struct buf *b, int64_t value, int64_t parts);
/* The text of the JSON array in a document of lines. */
struct str lines_items(const struct doc *d);

/* --- invoices.c: an organization's invoices, brought up to date. */

struct invoice {
	struct doc doc;
	json_t *body, *state;
	int64_t from_ms, to_ms;
};
struct invoice invoice_of(struct arena *a, const struct doc *d);
must_check int invoice_get(struct tx *tx, struct arena *a, struct str id, struct invoice *ret_invoice);
must_check int invoice_last(struct tx *tx, struct arena *a, struct str org_id, struct invoice *ret_invoice);
must_check int invoice_save(struct tx *tx, struct arena *a, struct invoice *i, int64_t now_ms);
bool invoice_is(const struct invoice *i, const char *status);
/* Sums anew: credits, tax, what is billed. In a write; `takes`: the credits are used up. */
must_check int invoice_sum(struct tx *tx, struct arena *a, const struct prices *prices, struct invoice *i,
                           int64_t open_cents, bool takes);

struct billing_run {
	struct store *store;
	struct tx *reader;
	const struct prices *prices;
	struct billing_rules rules;
	const char *base_url;
	int64_t now_ms;
};
/* Not on a loop, nor in a transaction. Closes months that are over. */
must_check int invoices_advance(const struct billing_run *run, struct str org_id);

/* late.c: after it. What hosts have told of days that were billed without them, as lines of the open invoice. */
must_check int invoices_late(const struct billing_run *run, struct str org_id);

/* --- costs.c: an invoice's lines as sums by project, cluster and service. */

struct cost {
	struct str group_id, cluster_id, service;
	int64_t cents;
};
typedef void cost_visit(void *ctx, const struct cost *c);
/* Those of lines that began in [from_ms, to_ms), in a read: several of one project, cluster and service may come. Of a
 * whole month that is closed from what costs_keep() has left. names: gets what projects and clusters were called, also
 * those that are gone. */
must_check int costs_each(struct tx *tx, const struct invoice *i, int64_t from_ms, int64_t to_ms, cost_visit *visit,
                          void *ctx, json_t *names);
/* After an invoice was closed. Not in a transaction. */
must_check int costs_keep(const struct billing_run *run, struct str invoice_id);

/* --- payment.c: who pays, who has not, and what follows. All in a write. */

/* The invoice's month is over. */
must_check int payment_close(struct tx *tx, struct arena *a, const struct billing_run *run, struct invoice *i);
/* What time has brought for an organization: warnings and the lock. *ret_pause: its databases are to be paused now. */
must_check int payment_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id,
                            bool *ret_pause);
must_check int payment_paused(struct tx *tx, struct arena *a, struct str org_id);

/* The operator's orders. -ENOENT: no such organization or invoice; -EINVAL: not in the state that it is in. */
must_check int payment_method_set(struct tx *tx, struct arena *a, struct str org_id, struct str method,
                                  struct str email);
must_check int payment_paid(struct tx *tx, struct arena *a, struct invoice *i, int64_t cents, struct str reference);
must_check int payment_failed(struct tx *tx, struct arena *a, struct invoice *i, struct str reason);
must_check int payment_forgive(struct tx *tx, struct arena *a, struct invoice *i, struct str reason);
must_check int payment_refund(struct tx *tx, struct arena *a, struct invoice *i, int64_t cents, struct str reason);
must_check int payment_lock(struct tx *tx, struct arena *a, struct str org_id, struct str reason, struct str invoice_id,
                            int64_t at_ms);
must_check int payment_unlock(struct tx *tx, struct arena *a, struct str org_id);
must_check int payment_unlock_by_hand(struct tx *tx, struct arena *a, struct str org_id);
/* Cents that it may spend in a month; 0: any. */
must_check int payment_limit(struct tx *tx, struct arena *a, struct str org_id, int64_t cents);
must_check int payment_credit(struct tx *tx, struct arena *a, struct str org_id, int64_t cents, struct str note);
must_check int payment_correct(struct tx *tx, struct arena *a, struct str org_id, int64_t cents, struct str note);
/* payer empty: it pays for itself again. */
must_check int payment_link(struct tx *tx, struct arena *a, struct str org_id, struct str payer_id);
/* The organization's record; an empty object where it has none. */
must_check int billing_get(struct tx *tx, struct arena *a, struct str org_id, json_t **ret_billing);

/* spending.c: a part of payment_look(). */
must_check int spending_look(struct tx *tx, struct arena *a, const struct billing_run *run, struct str org_id);

/* --- notices.c */

/* A letter to the organization's owners, its billing administrators and the address for bills. */
must_check int notice_mail(struct tx *tx, struct arena *a, struct str org_id, struct str subject, struct str text);
/* To the operator's payment service, through the outbox. */
must_check int notice_hook(struct tx *tx, struct arena *a, const struct invoice *i, const json_t *billing);

#endif
