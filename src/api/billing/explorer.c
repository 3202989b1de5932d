/* Cost queries: a call says what is wanted and gets a token; another one, with the token, gets the answer. That is
 * made when it is asked for, on a worker, from the sums of closed months and the lines of what is still open.
 *
 *   "cost_query"  id = the token, parent = organization; body: what was asked. Kept for a day */
#include "api/billing/csv.h"
#include "api/billing/pages.h"
#include "api/kit/verbs.h"

#include "base/clock.h"
#include "base/id.h"
#include "call/service.h"

#include <errno.h>
#include <stdlib.h>

#define QUERY_KIND "cost_query"
#define TOKEN_LEN 64
#define QUERIES_MAX 100 /* of an organization; the oldest goes */
#define MONTHS_MAX INT64_C(60)

/* --- asking */

static int period_check(struct call *c)
{
	int64_t from, to;
	if (!clock_parse(json_field(c->body, "startDate"), &from))
		return call_fail_fault(c, STR("startDate"), "must be a date");
	if (!clock_parse(json_field(c->body, "endDate"), &to))
		return call_fail_fault(c, STR("endDate"), "must be a date");
	if (from > to)
		return call_fail_fault(c, STR("endDate"), "must not be before startDate");
	if (to - from > MONTHS_MAX * 31 * DAY_MS)
		return call_fail_fault(c, STR("startDate"), "must be %lld months before endDate at most",
		                       (long long)MONTHS_MAX);
	return 0;
}

static int old_queries_end(struct call *c)
{
	struct doc *docs;
	size_t count = 0;
	int64_t now = clock_now_ms();
	int r = tx_list_all(c->tx, c->arena, QUERY_KIND, c->org.id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (docs[i].created_ms < now - DAY_MS || count - i >= QUERIES_MAX)
			r = tx_delete(c->tx, QUERY_KIND, docs[i].id);
	return r;
}

int billing_cost_query_create(struct call *c)
{
	char token[TOKEN_LEN + 1];
	int r = period_check(c);
	if (r == 0)
		r = old_queries_end(c);
	if (r < 0)
		return r;
	random_text(token, TOKEN_LEN, "0123456789abcdef");
	r = doc_insert(c->tx, QUERY_KIND, arena_dup(c->arena, str_of(token)), c->org.id, STR_NONE,
	               json_text(c->arena, c->body));
	if (r < 0)
		return r;
	json_open(&c->out, '{');
	json_key(&c->out, "token");
	json_z(&c->out, token);
	json_close(&c->out, '}');
	return 0;
}

/* --- answering */

enum group_by { BY_NOTHING, BY_ORG, BY_PROJECT, BY_CLUSTER, BY_SERVICE };

struct query {
	struct call *call;
	const json_t *orgs, *groups, *clusters, *services;
	int64_t from_ms, to_ms;
	enum group_by by;
	bool partial;
	/* Of the month in hand. */
	struct str org_id;
	json_t *sums;  /* {ID: cents} of all its organizations */
	json_t *names; /* as they were billed: of what is gone */
};

static struct query query_read(struct call *c, const json_t *asked)
{
	struct str by = json_field(asked, "groupBy");
	struct query q = {.call = c,
	                  .orgs = filter_of(c->arena, json_object_get(asked, "organizations")),
	                  .groups = filter_of(c->arena, json_object_get(asked, "projects")),
	                  .clusters = filter_of(c->arena, json_object_get(asked, "clusters")),
	                  .services = filter_of(c->arena, json_object_get(asked, "services")),
	                  .partial = json_flag(asked, "includePartialMatches"),
	                  .by = str_is(by, "organizations") ? BY_ORG
	                        : str_is(by, "projects")    ? BY_PROJECT
	                        : str_is(by, "clusters")    ? BY_CLUSTER
	                        : str_is(by, "services")    ? BY_SERVICE
	                                                    : BY_NOTHING};
	if (!clock_parse(json_field(asked, "startDate"), &q.from_ms) ||
	    !clock_parse(json_field(asked, "endDate"), &q.to_ms))
		q.to_ms = q.from_ms;
	/* The last day does not belong to the period, unless it is the only one. */
	if (q.to_ms == q.from_ms)
		q.to_ms += DAY_MS;
	return q;
}

/* Costs of no cluster, or of no project, match where partial matches do. */
static bool value_fits(const struct query *q, const json_t *filter, struct str value)
{
	return value.n ? filter_has(filter, value) : !filter || q->partial;
}

static struct str cost_id(const struct query *q, const struct cost *c)
{
	switch (q->by) {
	case BY_ORG: return q->org_id;
	case BY_PROJECT: return c->group_id;
	case BY_CLUSTER: return c->cluster_id;
	case BY_SERVICE: return c->service;
	case BY_NOTHING: break;
	}
	return STR_NONE;
}

static void cost_add(void *ctx, const struct cost *c)
{
	const struct query *q = ctx;
	char id[64];
	if (!value_fits(q, q->groups, c->group_id) || !value_fits(q, q->clusters, c->cluster_id) ||
	    !value_fits(q, q->services, c->service))
		return;
	str_copy(cost_id(q, c), id, sizeof id);
	json_put(q->sums, id, json_integer(json_number(q->sums, id) + c->cents));
}

static int org_add(struct query *q, struct str org_id, struct str month)
{
	struct doc d;
	if (!value_fits(q, q->orgs, org_id))
		return 0;
	int r = tx_get_by_name(q->call->tx, q->call->arena, INVOICE_KIND, org_id, month, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct invoice i = invoice_of(q->call->arena, &d);
	q->org_id = org_id;
	return costs_each(q->call->tx, &i, q->from_ms, q->to_ms, cost_add, q, q->names);
}

static int month_add(struct query *q, struct str month)
{
	struct doc *links;
	size_t count = 0;
	q->sums = json_new(q->call->arena);
	q->names = json_new(q->call->arena);
	int r = org_add(q, q->call->org.id, month);
	if (r == 0)
		r = tx_list_all(q->call->tx, q->call->arena, LINK_KIND, q->call->org.id, &links, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = org_add(q, links[i].name, month);
	return r;
}

static struct str name_of(struct query *q, struct str id)
{
	static const char *const kinds[] = {[BY_ORG] = "org", [BY_PROJECT] = "project", [BY_CLUSTER] = "cluster"};
	struct doc d;
	if (q->by == BY_SERVICE)
		return id;
	if (q->by == BY_NOTHING || !id.n)
		return STR_NONE;
	if (tx_get(q->call->tx, q->call->arena, kinds[q->by], id, &d) < 0)
		return json_field(q->names, id.p);
	return json_field(doc_json(q->call->arena, d.body), "name");
}

static void date_write(char ret_text[CLOCK_TEXT], int64_t ms)
{
	clock_format(ms, ret_text);
	ret_text[sizeof "2026-11-17" - 1] = 0;
}

static void cost_write_json(struct buf *b, const char *date, struct str id, struct str name, int64_t cents)
{
	json_open(b, '{');
	if (id.n) {
		json_key(b, "id");
		json_str(b, id);
	}
	if (name.n) {
		json_key(b, "name");
		json_str(b, name);
	}
	json_key(b, "usageAmount");
	decimal_write(b, cents, 100);
	json_key(b, "usageCents");
	json_int(b, cents);
	json_key(b, "usageDate");
	json_z(b, date);
	json_close(b, '}');
}

static void cost_write_csv(struct buf *b, const char *date, struct str id, struct str name, int64_t cents)
{
	buf_printf(b, "%s,", date);
	csv_cell(b, id);
	buf_c(b, ',');
	csv_cell(b, name);
	buf_printf(b, ",%lld\r\n", (long long)cents);
}

/* In the order of their ids; returns their sum. */
static int64_t month_write(struct query *q, int64_t month_ms)
{
	struct buf *b = &q->call->out;
	char date[CLOCK_TEXT];
	int64_t total = 0;
	const char *id;
	json_t *cents;
	bool csv = q->call->produces == PRODUCES_CSV;
	date_write(date, month_ms);
	json_object_foreach(q->sums, id, cents)
	{
		struct str name = name_of(q, str_of(id));
		int64_t value = json_integer_value(cents);
		(csv ? cost_write_csv : cost_write_json)(b, date, str_of(id), name, value);
		total += value;
	}
	return total;
}

/* What the month comes to if it goes on as it has so far. */
static void forecast_write(struct query *q, int64_t month_ms, int64_t end_ms, int64_t cents)
{
	struct buf *b = &q->call->out;
	int64_t now = clock_now_ms(), gone = now - month_ms;
	char date[CLOCK_TEXT];
	date_write(date, month_ms);
	json_key(b, "forecast");
	json_open(b, '{');
	json_key(b, "forecastCents");
	json_int(b, gone > 0 ? (int64_t)(money_times(cents, end_ms - month_ms) / gone) : cents);
	json_key(b, "usageCents");
	json_int(b, cents);
	json_key(b, "usageDate");
	json_z(b, date);
	json_close(b, '}');
}

struct month_seen {
	int64_t from_ms, to_ms, cents;
	bool whole; /* the query takes in all of it that has been */
};

static int months_write(struct query *q, int64_t *ret_total, struct month_seen *ret_last)
{
	char month[METER_MONTH];
	int64_t from, to, now = clock_now_ms();
	int r = 0;
	for (int64_t at = q->from_ms; r == 0 && at < q->to_ms && at <= now; at = to) {
		meter_month(at, month, &from, &to);
		r = month_add(q, arena_dup(q->call->arena, str_of(month)));
		if (r < 0)
			break;
		int64_t cents = month_write(q, from);
		*ret_total += cents;
		*ret_last = (struct month_seen){from, to, cents, q->from_ms <= from && q->to_ms > now};
	}
	return r;
}

static int answer_write(struct query *q)
{
	struct buf *b = &q->call->out;
	struct month_seen last = {0};
	int64_t total = 0, now = clock_now_ms();
	if (q->call->produces == PRODUCES_CSV) {
		buf_z(b, "Month,Id,Name,Cents\r\n");
		q->call->content_type = arena_printf(q->call->arena, API_MEDIA "%s+csv", q->call->version->date).p;
		return months_write(q, &total, &last);
	}
	json_open(b, '{');
	json_key(b, "usageDetails");
	json_open(b, '[');
	int r = months_write(q, &total, &last);
	json_close(b, ']');
	json_key(b, "currency");
	json_str(b, prices_newest(q->call->service->prices)->currency);
	if (last.whole && last.from_ms <= now && now < last.to_ms)
		forecast_write(q, last.from_ms, last.to_ms, last.cents);
	json_key(b, "totalCents");
	json_int(b, total);
	json_close(b, '}');
	return r;
}

int billing_cost_query_get(struct call *c)
{
	struct doc d;
	int r = tx_get(c->tx, c->arena, QUERY_KIND, call_path(c, "token"), &d);
	if (r == 0 && (!str_eq(d.parent, c->org.id) || d.created_ms < clock_now_ms() - DAY_MS))
		r = -ENOENT;
	if (r < 0)
		return r == -ENOENT ? call_missing_param(c, "token") : r;
	struct query q = query_read(c, doc_json(c->arena, d.body));
	return answer_write(&q);
}
