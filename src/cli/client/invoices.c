/* `steward invoices pdf`: an invoice as a document for people: what is owed, and what for, added up by project, cluster
 * and SKU. All other commands of invoices are derived (command.c). */
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/client/command.h"
#include "cli/client/pdf.h"
#include "cli/derived/command.h"
#include "cli/meant.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct invoices_arguments {
	struct profile_arguments at;
	const char *file;
};

#define AT(member) offsetof(struct invoices_arguments, member)

const struct option_row invoices_options[] = {
        {"file", 'f', OPTION_TEXT, AT(file), NULL, "FILE", "pdf: where to write it; without it invoice-ID.pdf.",
         .flag_only = true},
        PROFILE_OPTIONS,
};
const size_t invoices_option_count = sizeof invoices_options / sizeof *invoices_options;

struct sum {
	struct str project, cluster, sku, unit;
	double quantity;
	int64_t cents;
};

struct sums {
	struct arena *arena;
	struct sum *list;
	size_t count, room;
	json_t *places; /* {KEY: index} */
};

static void line_add(struct sums *s, const json_t *line)
{
	struct str project = json_field(line, "groupName"), cluster = json_field(line, "clusterName"),
	           sku = json_field(line, "sku"), note = json_field(line, "note");
	bool plain = str_is(sku, "CREDIT");
	struct str key = arena_printf(s->arena, "%.*s/%.*s/%.*s/%.*s", STR_ARG(json_field(line, "groupId")),
	                              STR_ARG(cluster), STR_ARG(sku), plain ? (int)note.n : 0, note.p ? note.p : "");
	const json_t *place = json_object_get(s->places, key.p);
	size_t at = place ? (size_t)json_integer_value(place) : s->count;
	ARENA_FIT(s->arena, s->list, s->count, s->room);
	struct sum *to = s->list + at;
	if (!place) {
		*to = (struct sum){.project = plain ? note : project,
		                   .cluster = cluster,
		                   .sku = sku,
		                   .unit = json_field(line, "unit")};
		json_put(s->places, key.p, json_integer((json_int_t)s->count++));
	}
	to->quantity += json_number_value(json_object_get(line, "quantity"));
	to->cents += json_number(line, "totalPriceCents");
}

/* So many letters of UTF-8: what is longer is cut, what is shorter is filled up. A name never moves an amount. */
static struct str cell(struct arena *a, struct str text, size_t width)
{
	size_t at = 0, letters = 0;
	for (; at < text.n; at++) {
		bool begins = ((unsigned char)text.p[at] & 0xc0) != 0x80;
		if (begins && letters == width)
			break;
		letters += begins;
	}
	return arena_printf(a, "%.*s%*s", (int)at, text.p ? text.p : "", (int)(width - letters), "");
}

/* "2026-11-01" of a date and time. */
static struct str day_of(const json_t *invoice, const char *name)
{
	struct str text = json_field(invoice, name);
	return (struct str){text.p, text.n < 10 ? text.n : 10};
}

/* Where the service has it. */
static struct str self_of(const json_t *invoice)
{
	const json_t *link;
	size_t i;
	json_array_foreach(json_object_get(invoice, "links"), i, link)
	{
		if (str_is(json_field(link, "rel"), "self"))
			return json_field(link, "href");
	}
	return STR_NONE;
}

/* Amounts stand at the right of a column that all of them share, so that they can be added up by eye. */
#define AMOUNT_COLUMN "%s %14s"

static const char *money(struct arena *a, int64_t cents)
{
	long long whole = llabs(cents);
	return arena_printf(a, "%s%lld.%02lld", cents < 0 ? "-" : "", whole / 100, whole % 100).p;
}

static void amount_line(struct pdf *p, struct arena *a, struct str what, const char *amount)
{
	pdf_line(p, arena_printf(a, AMOUNT_COLUMN, cell(a, what, 84).p, amount));
}

static void pair_line(struct pdf *p, struct arena *a, const char *what, struct str value)
{
	if (value.n)
		pdf_line(p, arena_printf(a, "%-14s%.*s", what, STR_ARG(value)));
}

/* Name, address and tax number, below each other. */
static void party_write(struct pdf *p, struct arena *a, const char *what, const json_t *party)
{
	const json_t *line, *address = json_object_get(party, "address");
	size_t i;
	struct str tax_id = json_field(party, "taxId");
	pair_line(p, a, what, json_field(party, "name"));
	json_array_foreach(address, i, line)
	{
		pair_line(p, a, "", json_str_of(line));
	}
	if (tax_id.n)
		pair_line(p, a, "", arena_printf(a, "Tax number %.*s", STR_ARG(tax_id)));
}

static void head_write(struct pdf *p, struct arena *a, const json_t *invoice)
{
	struct str self = self_of(invoice);
	pdf_line(p, arena_printf(a, "INVOICE %.*s", STR_ARG(json_field(invoice, "id"))));
	if (self.n)
		pdf_link(p, self);
	pdf_line(p, STR(""));
	party_write(p, a, "From", json_object_get(invoice, "issuer"));
	party_write(p, a, "To", json_object_get(invoice, "customer"));
	pair_line(p, a, "Organization", json_field(invoice, "orgId"));
	pdf_line(p, STR(""));
	pdf_line(p, arena_printf(a, "Period        %.*s to %.*s (excluded)", STR_ARG(day_of(invoice, "startDate")),
	                         STR_ARG(day_of(invoice, "endDate"))));
	pair_line(p, a, "Status", json_field(invoice, "statusName"));
	pair_line(p, a, "Due", day_of(invoice, "dueDate"));
	pair_line(p, a, "Currency", json_field(invoice, "currency"));
	pdf_line(p, STR(""));
	const char *heads = arena_printf(a, "%-20s %-16s %-24s %12s %-8s", "Project", "Cluster", "SKU", "Quantity",
	                                 "Unit")
	                            .p,
	           *amount = arena_printf(a, "Amount %.*s", STR_ARG(json_field(invoice, "currency"))).p;
	amount_line(p, a, str_of(heads), json_field(invoice, "currency").n ? amount : "Amount");
}

/* "7.5": a rate has four digits behind the point at most. */
static const char *rate_text(struct arena *a, double percent)
{
	char *text = arena_z(a, arena_printf(a, "%.4f", percent)), *end = text + strlen(text);
	while (end[-1] == '0')
		*--end = 0;
	if (end[-1] == '.')
		end[-1] = 0;
	return text;
}

static void foot_write(struct pdf *p, struct arena *a, const json_t *invoice)
{
	const json_t *rate = json_object_get(invoice, "taxPercent");
	int64_t billed = json_number(invoice, "amountBilledCents"), paid = json_number(invoice, "amountPaidCents");
	struct str tax = rate ? arena_printf(a, "Tax (%s%%)", rate_text(a, json_number_value(rate))) : STR("Tax"),
	           due = day_of(invoice, "dueDate");
	pdf_line(p, STR(""));
	amount_line(p, a, STR("Subtotal"), money(a, json_number(invoice, "subtotalCents")));
	amount_line(p, a, STR("Credits"), money(a, -json_number(invoice, "creditsCents")));
	amount_line(p, a, tax, money(a, json_number(invoice, "salesTaxCents")));
	amount_line(p, a, STR("Billed"), money(a, billed));
	amount_line(p, a, STR("Paid"), money(a, paid));
	if (str_is_one_of("CLOSED|FAILED|INVOICED", json_field(invoice, "statusName")))
		amount_line(p, a, due.n ? arena_printf(a, "To be paid by %.*s", STR_ARG(due)) : STR("To be paid"),
		            money(a, billed - paid));
}

static void invoice_write(struct pdf *p, struct arena *a, const json_t *invoice)
{
	struct sums s = {.arena = a, .places = json_new(a)};
	const json_t *line;
	size_t i;
	json_array_foreach(json_object_get(invoice, "lineItems"), i, line)
	{
		line_add(&s, line);
	}
	head_write(p, a, invoice);
	for (i = 0; i < s.count; i++) {
		const struct sum *one = &s.list[i];
		struct str project = cell(a, one->project, 20), cluster = cell(a, one->cluster, 16),
		           sku = cell(a, one->sku, 24), unit = cell(a, one->unit, 8);
		struct str cells = arena_printf(a, "%.*s %.*s %.*s %12.2f %.*s", STR_ARG(project), STR_ARG(cluster),
		                                STR_ARG(sku), one->quantity, STR_ARG(unit));
		amount_line(p, a, cells, money(a, one->cents));
	}
	foot_write(p, a, invoice);
}

static int file_write(const char *name, struct str text)
{
	FILE *f = fopen(name, "wb");
	bool good = f && fwrite(text.p, 1, text.n, f) == text.n;
	good = f && fclose(f) == 0 && good;
	if (!good)
		option_refuse("%s cannot be written: %s", name, strerror(errno));
	else
		printf("%s\n", name);
	return good ? EXIT_DONE : EXIT_NOT_DONE;
}

static int pdf_run(struct client *c, struct arena *a, const struct invoices_arguments *g, const char *id)
{
	struct client_answer answer;
	struct pdf p;
	const char *org = client_profile(c)->organization;
	if (!org) {
		option_refuse("invoices pdf: which organization? Give --org ID");
		return EXIT_USAGE;
	}
	const char *path =
	        arena_printf(a, API_BASE "/orgs/%s/invoices/%s", url_escape(a, str_of(org)), url_escape(a, str_of(id)))
	                .p;
	int code = client_get(c, a, path, &answer);
	if (code != EXIT_DONE)
		return code;
	/* What the reference's form of an invoice has no fields for. */
	struct str papers = client_header(&answer, "x-steward-invoice");
	json_t *more = papers.n ? json_loadb(papers.p, papers.n, 0, NULL) : NULL;
	if (json_is_object(more))
		(void)!json_object_update_missing(answer.json, more);
	json_decref(more);
	pdf_begin(&p);
	invoice_write(&p, a, answer.json);
	pdf_end(&p);
	code = file_write(g->file ? g->file : arena_printf(a, "invoice-%s.pdf", id).p, buf_view(&p.out));
	pdf_free(&p);
	return code;
}

static int invoices_run(const struct client_call *call)
{
	struct arena *a = call->arena;
	const struct invoices_arguments *g = call->given;
	const char *const *words = call->words;
	const size_t count = call->count;
	static const char *const verbs[] = {"pdf"};
	const struct command_family *family = command_family_find("invoices");
	struct profile profile;
	struct client *client = NULL;
	if (!count) {
		usage_family(stderr, family);
		return EXIT_USAGE;
	}
	if (strcmp(words[0], verbs[0]) != 0)
		return meant_verb(family, words[0], count > 1 ? words[1] : NULL, verbs, 1);
	if (count < 2 || !*words[1] || strspn(words[1], "0123456789abcdef") != strlen(words[1])) {
		option_refuse(
		        "invoices pdf: the invoice's id is missing: steward invoices pdf INVOICE; \"steward invoices "
		        "list\" shows ids");
		return EXIT_USAGE;
	}
	if (profile_load(a, &g->at, &profile) < 0 || client_open(a, &profile, &client) < 0)
		return EXIT_USAGE;
	int code = pdf_run(client, a, g, words[1]);
	client_close(client);
	return code;
}

static const struct client_command command = {.name = "invoices",
                                              .options = invoices_options,
                                              .option_count = &invoices_option_count,
                                              .words_max = 2,
                                              .has_family = true,
                                              .run = invoices_run};

int invoices_command(int argc, char **argv)
{
	struct invoices_arguments g = {.file = NULL};
	return client_command_run(&command, argc, argv, &g);
}
