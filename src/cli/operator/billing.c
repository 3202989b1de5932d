/* `steward billing`: what the operator, or a program of the payment service, tells about money. It writes into the
 * store beside a running service; each order is an event of the organization. */
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "billing/billing.h"
#include "cli/client.h"
#include "gate/gate.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct billing_arguments {
	const char *data, *store, *org, *method, *email, *cents, *note, *payer, *output, *day, *cluster;
};

#define AT(member) offsetof(struct billing_arguments, member)

const struct option_row billing_options[] = {
        OPERATOR_STORE(struct billing_arguments),
        {"org", 0, OPTION_TEXT, AT(org), NULL, "ID", "The organization.", .flag_only = true},
        {"method", 0, OPTION_TEXT, AT(method), NULL, "REFERENCE",
         "What the payment service charges: its own reference. Empty: nothing.", .flag_only = true},
        {"email", 0, OPTION_TEXT, AT(email), NULL, "ADDRESS",
         "Who gets letters about money, beside owners and billing administrators. Empty: nobody.", .flag_only = true},
        {"cents", 0, OPTION_TEXT, AT(cents), NULL, "N", "How much, in hundredths of the currency.", .flag_only = true},
        {"note", 0, OPTION_TEXT, AT(note), NULL, "TEXT", "Why, or the payment service's reference.", .flag_only = true},
        {"payer", 0, OPTION_TEXT, AT(payer), NULL, "ID", "Of link: the organization that pays.", .flag_only = true},
        {"day", 0, OPTION_TEXT, AT(day), NULL, "DATE", "Of evidence: the day, in UTC: 2026-11-17.", .flag_only = true},
        {"cluster", 0, OPTION_TEXT, AT(cluster), NULL, "NAME", "Of evidence: only this cluster.", .flag_only = true},
        {"output", 'o', OPTION_CHOICE, AT(output), "text", "FORMAT", "Of show: text or json.", "text|json",
         .flag_only = true},
};
const size_t billing_option_count = sizeof billing_options / sizeof *billing_options;

struct order {
	struct arena *arena;
	const struct verb *verb;
	const struct billing_arguments *given;
	const char *has_method, *has_email;
	struct str org_id, invoice_id, note, payer_id;
	int64_t cents;
};

struct verb {
	const char *name;
	bool of_invoice, of_org, needs_cents, takes_cents, may_be_negative, may_be_zero;
	int (*run)(struct tx *tx, const struct order *o, struct invoice *i);
	int (*look)(struct tx *tx, const struct order *o); /* in its place: reads and prints */
	const char *done, *wrong;
};

static int show_read(struct tx *tx, const struct order *o);
static int evidence_read(struct tx *tx, const struct order *o);

static int run_method(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_method_set(tx, o->arena, o->org_id, str_of(o->has_method), str_of(o->has_email));
}

static int run_paid(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_paid(tx, o->arena, i, o->cents, o->note);
}

static int run_failed(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_failed(tx, o->arena, i, o->note);
}

static int run_forgive(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_forgive(tx, o->arena, i, o->note);
}

static int run_refund(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_refund(tx, o->arena, i, o->cents, o->note);
}

/* The grace begins when the service first sees the lock, by its own clock. */
static int run_lock(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_lock(tx, o->arena, o->org_id, o->note.n ? o->note : STR("the operator has locked it"), STR_NONE,
	                    0);
}

static int run_unlock(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_unlock_by_hand(tx, o->arena, o->org_id);
}

static int run_credit(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_credit(tx, o->arena, o->org_id, o->cents, o->note);
}

static int run_limit(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_limit(tx, o->arena, o->org_id, o->cents);
}

static int run_correct(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_correct(tx, o->arena, o->org_id, o->cents, o->note.n ? o->note : STR("correction"));
}

static int run_link(struct tx *tx, const struct order *o, struct invoice *i)
{
	return payment_link(tx, o->arena, o->org_id, o->payer_id);
}

static const struct verb verbs[] = {
        {.name = "show", .of_org = true, .look = show_read},
        {.name = "evidence", .of_org = true, .look = evidence_read},
        {.name = "method", .of_org = true, .run = run_method, .done = "set"},
        {.name = "paid",
         .of_invoice = true,
         .takes_cents = true,
         .run = run_paid,
         .done = "noted as paid",
         .wrong = "nothing is owed for it, or less than that"},
        {.name = "failed",
         .of_invoice = true,
         .run = run_failed,
         .done = "noted as failed",
         .wrong = "nothing is owed for it"},
        {.name = "forgive",
         .of_invoice = true,
         .run = run_forgive,
         .done = "forgiven",
         .wrong = "nothing is owed for it"},
        {.name = "refund",
         .of_invoice = true,
         .takes_cents = true,
         .needs_cents = true,
         .run = run_refund,
         .done = "noted as given back",
         .wrong = "less than that was paid"},
        {.name = "lock", .of_org = true, .run = run_lock, .done = "locked", .wrong = "it is locked already"},
        {.name = "unlock", .of_org = true, .run = run_unlock, .done = "unlocked", .wrong = "it is not locked"},
        {.name = "credit",
         .of_org = true,
         .takes_cents = true,
         .needs_cents = true,
         .run = run_credit,
         .done = "credited",
         .wrong = "a credit is above 0"},
        {.name = "correct",
         .of_org = true,
         .takes_cents = true,
         .needs_cents = true,
         .may_be_negative = true,
         .run = run_correct,
         .done = "corrected, by a line of the open invoice",
         .wrong = "it has no open invoice"},
        {.name = "limit",
         .of_org = true,
         .takes_cents = true,
         .needs_cents = true,
         .may_be_zero = true,
         .run = run_limit,
         .done = "set"},
        {.name = "link",
         .of_org = true,
         .run = run_link,
         .done = "set",
         .wrong = "who is paid for pays for nobody, and nobody for itself"},
};
#define VERBS (sizeof verbs / sizeof *verbs)
#define CENTS_MAX INT64_C(1000000000000)

static int order_run(struct tx *tx, void *ctx)
{
	const struct order *o = ctx;
	struct invoice i;
	struct doc org;
	if (o->verb->of_invoice) {
		int r = invoice_get(tx, o->arena, o->invoice_id, &i);
		return r < 0 ? r : o->verb->run(tx, o, &i);
	}
	int r = tx_get(tx, o->arena, "org", o->org_id, &org);
	if (r == 0 && o->payer_id.n)
		r = tx_get(tx, o->arena, "org", o->payer_id, &org);
	return r < 0 ? r : o->verb->run(tx, o, NULL);
}

/* --- show */

static void show_text(struct arena *a, const json_t *shown)
{
	const json_t *one, *lock = json_object_get(shown, "lock");
	struct str method = json_field(shown, "method");
	size_t i;
	printf("payment method: %s\n", method.n ? text_shown(a, method) : "none");
	if (json_field(shown, "payer").n)
		printf("paid for by %.*s\n", STR_ARG(json_field(shown, "payer")));
	if (lock)
		printf("LOCKED: %s\n", text_shown(a, json_field(lock, "reason")));
	if (json_number(shown, "limitCents"))
		printf("spending limit: %lld cents a month\n", (long long)json_number(shown, "limitCents"));
	printf("credits left: %lld cents\n", (long long)json_number(shown, "creditsCents"));
	json_array_foreach(json_object_get(shown, "invoices"), i, one)
	{
		printf("%.*s  %.*s  %-8.*s  billed %10lld  paid %10lld\n", STR_ARG(json_field(one, "id")), 7,
		       json_field(one, "startDate").p, STR_ARG(json_field(one, "statusName")),
		       (long long)json_number(one, "amountBilledCents"),
		       (long long)json_number(one, "amountPaidCents"));
	}
}

static int org_read(struct tx *tx, struct arena *a, struct str org_id, json_t **ret_shown)
{
	struct doc *docs, d;
	size_t count = 0;
	int64_t left = 0;
	json_t *shown, *list = json_array();
	int r = tx_get(tx, a, "org", org_id, &d);
	if (r == 0)
		r = billing_get(tx, a, org_id, &shown);
	if (r == 0)
		r = tx_list_all(tx, a, CREDIT_KIND, org_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		left += json_number(doc_json(a, docs[i].body), "remaining");
	if (r == 0)
		r = tx_list_all(tx, a, INVOICE_KIND, org_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		json_array_append(list, doc_json(a, docs[i].body));
	json_keep(a, list);
	if (r < 0)
		return r;
	json_object_set(shown, "invoices", list);
	json_put(shown, "creditsCents", json_integer(left));
	if (tx_get(tx, a, ORG_LOCK_KIND, org_id, &d) == 0)
		json_object_set(shown, "lock", doc_json(a, d.body));
	*ret_shown = shown;
	return 0;
}

static int show_read(struct tx *tx, const struct order *o)
{
	json_t *shown;
	int r = org_read(tx, o->arena, o->org_id, &shown);
	if (r == 0 && strcmp(o->given->output, "json") == 0) {
		struct str text = json_text(o->arena, shown);
		printf("%.*s\n", STR_ARG(text));
	} else if (r == 0) {
		show_text(o->arena, shown);
	}
	return r;
}

/* --- evidence: the measurements that the lines of a day are made of */

struct evidence {
	const struct order *order;
	int64_t from_ms, to_ms;
};

static int measurement_show(void *ctx, const struct measurement *m)
{
	const struct evidence *e = ctx;
	const char *cluster = e->order->given->cluster;
	char from[CLOCK_TEXT], to[CLOCK_TEXT];
	if (cluster && !str_is(m->cluster_name, cluster))
		return 0;
	json_t *one = json_object();
	clock_format(m->from_ms > e->from_ms ? m->from_ms : e->from_ms, from);
	clock_format(m->to_ms < e->to_ms ? m->to_ms : e->to_ms, to);
	json_put_str(one, "id", m->id);
	json_put_str(one, "groupId", m->group_id);
	json_put_str(one, "clusterName", m->cluster_name);
	json_put_str(one, "what", m->key);
	json_put_str(one, "sku", m->sku);
	json_put_str(one, "region", m->region);
	json_put(one, "amount", json_integer(m->amount));
	json_put_z(one, "from", from);
	json_put_z(one, "to", to);
	json_put(one, "open", json_boolean(m->open));
	struct str line = json_text(e->order->arena, one);
	printf("%.*s\n", STR_ARG(line));
	json_decref(one);
	return 0;
}

static int evidence_read(struct tx *tx, const struct order *o)
{
	struct evidence e = {.order = o};
	if (!clock_parse(str_of(o->given->day), &e.from_ms) || e.from_ms % DAY_MS) {
		option_refuse("--day: give a day, such as 2026-11-17");
		return -ECANCELED;
	}
	e.to_ms = e.from_ms + DAY_MS;
	return meter_each(tx, o->arena, o->org_id, e.from_ms, e.to_ms, measurement_show, &e);
}

static int order_look(const struct order *o, struct store *store)
{
	struct tx *reader = store_reader(store);
	if (!reader)
		return -EIO;
	tx_begin_read(reader);
	int r = o->verb->look(reader, o);
	tx_end_read(reader);
	store_reader_free(reader);
	return r;
}

/* --- the command */

static bool cents_read(struct order *o)
{
	const char *text = o->given->cents;
	char *end = NULL;
	if (!text && o->verb->needs_cents) {
		option_refuse("billing %s: --cents N is missing", o->verb->name);
		return false;
	}
	if (!text)
		return true;
	errno = 0;
	o->cents = strtoll(text, &end, 10);
	if (errno || end == text || *end || !o->verb->takes_cents || (o->cents == 0 && !o->verb->may_be_zero) ||
	    o->cents > CENTS_MAX || o->cents < -CENTS_MAX || (o->cents < 0 && !o->verb->may_be_negative)) {
		option_refuse(o->verb->takes_cents ? "--cents: \"%s\" is no number of cents that %s takes"
		                                   : "--cents: \"%s\" does not go with %s",
		              text, o->verb->name);
		return false;
	}
	return true;
}

static bool id_fits(const char *name, struct str id)
{
	if (id_is_valid(id))
		return true;
	option_refuse("%s: %s an id of 24 hexadecimal digits", name, id.n ? "is not" : "is missing: give");
	return false;
}

/* Such a number has no place in the store: 13 to 19 digits, of which the last checks the others. */
static bool is_card_number(struct str text)
{
	unsigned sum = 0, digits = 0;
	for (size_t i = text.n; i-- > 0;) {
		if (text.p[i] == ' ' || text.p[i] == '-')
			continue;
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		unsigned digit = (unsigned)(text.p[i] - '0') << (digits++ & 1);
		sum += digit > 9 ? digit - 9 : digit;
	}
	return digits >= 13 && digits <= 19 && sum % 10 == 0;
}

static bool order_fits(struct order *o, const char *word)
{
	const struct billing_arguments *g = o->given;
	o->org_id = str_of(g->org);
	o->invoice_id = str_of(word);
	o->note = str_of(g->note);
	o->payer_id = str_of(g->payer);
	o->has_method = g->method;
	o->has_email = g->email;
	if (o->verb->of_invoice ? !id_fits("INVOICE", o->invoice_id) : !id_fits("--org", o->org_id))
		return false;
	if (o->payer_id.n && !id_fits("--payer", o->payer_id))
		return false;
	if (o->verb->run == run_method && !g->method && !g->email) {
		option_refuse("billing method: give --method REFERENCE, --email ADDRESS or both");
		return false;
	}
	if (is_card_number(str_of(g->method))) {
		option_refuse(
		        "billing method: that is the number of a card; give the payment service's reference to it");
		return false;
	}
	return cents_read(o);
}

static int outcome(const struct order *o, int r)
{
	struct str what = o->verb->of_invoice ? o->invoice_id : o->org_id;
	if (r == 0 && o->verb->done)
		printf("%.*s: %s\n", STR_ARG(what), o->verb->done);
	if (r == -ENOENT)
		option_refuse("billing %s: there is no %s %.*s", o->verb->name,
		              o->verb->of_invoice ? "invoice" : "organization of this id, or no invoice of",
		              STR_ARG(what));
	else if (r == -EINVAL)
		option_refuse("billing %s: %.*s: %s", o->verb->name, STR_ARG(what), o->verb->wrong);
	else if (r < 0 && r != -ECANCELED)
		option_refuse("billing %s: the store refused: %s", o->verb->name, strerror(-r));
	return r < 0 ? EXIT_NOT_DONE : EXIT_DONE;
}

static int order_give(struct order *o)
{
	struct store *store;
	if (service_store_open(o->arena, o->given->data, o->given->store, &store) < 0)
		return EXIT_USAGE;
	int r = o->verb->run ? store_write_wait(store, order_run, o) : order_look(o, store);
	store_close(store);
	return outcome(o, r);
}

static const struct verb *verb_find(const char *word)
{
	for (size_t i = 0; word && i < VERBS; i++)
		if (strcmp(verbs[i].name, word) == 0)
			return &verbs[i];
	return NULL;
}

static int billing_run(const struct operator_call *c)
{
	struct order o = {.arena = c->arena, .given = c->given, .verb = verb_find(c->count ? c->words[0] : NULL)};
	if (!o.verb)
		option_refuse("billing: say show, evidence, method, paid, failed, forgive, refund, lock, "
		              "unlock, credit, "
		              "correct, limit or link; \"steward billing --help\" shows how");
	else if (order_fits(&o, c->count > 1 ? c->words[1] : NULL))
		return order_give(&o);
	return EXIT_USAGE;
}

int billing_command(int argc, char **argv)
{
	struct billing_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "billing",
	                                               .options = billing_options,
	                                               .option_count = billing_option_count,
	                                               .words_max = 2,
	                                               .run = billing_run},
	                    argc, argv, &g);
}
