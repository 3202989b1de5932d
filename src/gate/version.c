/* Which version of the operation, and in which format? Accept names a media type with a date; the newest version not
 * after that date is used. The parser has no side effects and is bounded; an item that it cannot read counts as
 * unservable. */
#include "base/clock.h"
#include "gate/gate.h"

#include <errno.h>

#define ALL_FORMS (PRODUCES_JSON | PRODUCES_GZIP | PRODUCES_CSV | PRODUCES_EVENTS)

/* "2023-01-01", a day that exists. */
static bool date_is_valid(struct str date)
{
	int64_t ms;
	return date.n == 10 && date.p[4] == '-' && date.p[7] == '-' && clock_parse(date, &ms);
}

static unsigned form_of(struct str suffix)
{
	return str_ieq(suffix, STR("json"))   ? PRODUCES_JSON
	       : str_ieq(suffix, STR("gzip")) ? PRODUCES_GZIP
	       : str_ieq(suffix, STR("csv"))  ? PRODUCES_CSV
	                                      : 0;
}

static void type_parse(struct str type, struct str vendor, struct accept_item *item)
{
	static const struct {
		const char *type;
		enum accept_kind kind;
		unsigned produces;
	} plain[] = {
	        {"*/*", ACCEPT_ANY, ALL_FORMS},
	        {"application/*", ACCEPT_ANY, ALL_FORMS},
	        {"application/json", ACCEPT_CURRENT, PRODUCES_JSON},
	        {"application/gzip", ACCEPT_CURRENT, PRODUCES_GZIP},
	        {"text/csv", ACCEPT_CURRENT, PRODUCES_CSV},
	        {"text/event-stream", ACCEPT_CURRENT, PRODUCES_EVENTS},
	        {"text/*", ACCEPT_CURRENT, PRODUCES_CSV | PRODUCES_EVENTS},
	};
	const size_t prefix = vendor.n;
	bool dated = type.n > prefix && str_ieq((struct str){type.p, prefix}, vendor);
	for (size_t i = 0; !dated && i < sizeof plain / sizeof *plain; i++) {
		if (str_ieq(type, str_of(plain[i].type))) {
			item->kind = plain[i].kind;
			item->produces = plain[i].produces;
			return;
		}
	}
	item->kind = ACCEPT_OTHER;
	if (!dated)
		return;
	struct str date, suffix;
	str_cut((struct str){type.p + prefix, type.n - prefix}, '+', &date, &suffix);
	item->produces = form_of(suffix);
	if (!item->produces)
		return;
	if (!date_is_valid(date)) {
		item->kind = ACCEPT_BAD_DATE;
		return;
	}
	item->kind = ACCEPT_DATED;
	memcpy(item->date, date.p, 10);
}

/* "1", "0.5", "0.125" in thousandths; anything else counts as 0. */
static unsigned weight_parse(struct str text)
{
	if (text.n == 0 || text.n > 5 || (text.p[0] != '0' && text.p[0] != '1') || (text.n > 1 && text.p[1] != '.'))
		return 0;
	unsigned q = (unsigned)(text.p[0] - '0') * 1000, unit = 100;
	for (size_t i = 2; i < text.n; i++, unit /= 10) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return 0;
		q += (unsigned)(text.p[i] - '0') * unit;
	}
	return q > 1000 ? 0 : q;
}

static void item_parse(struct str text, struct str vendor, struct accept_item *item)
{
	struct str type, rest, parameter, name, value;
	*item = (struct accept_item){.q = 1000};
	str_cut(text, ';', &type, &rest);
	type_parse(str_trim(type), vendor, item);
	while (rest.n) {
		str_cut(rest, ';', &parameter, &rest);
		str_cut(parameter, '=', &name, &value);
		if (str_ieq(str_trim(name), STR("q")))
			item->q = weight_parse(str_trim(value));
	}
}

/* The next item ends at a comma outside quotes. */
static struct str item_take(struct str *rest)
{
	bool quoted = false;
	size_t n = 0;
	for (; n < rest->n && (quoted || rest->p[n] != ','); n++) {
		if (quoted && rest->p[n] == '\\' && n + 1 < rest->n)
			n++;
		else if (rest->p[n] == '"')
			quoted = !quoted;
	}
	struct str item = {rest->p, n};
	size_t used = n < rest->n ? n + 1 : n;
	*rest = (struct str){rest->p + used, rest->n - used};
	return str_trim(item);
}

void accept_parse(struct str value, struct str vendor, struct accept *ret_accept)
{
	while (value.n && ret_accept->count < ACCEPT_MAX) {
		struct str item = item_take(&value);
		if (item.n)
			item_parse(item, vendor, &ret_accept->items[ret_accept->count++]);
	}
}

static const struct op_version *version_at(const struct op *op, const char *date)
{
	for (unsigned i = op->version_count; i-- > 0;)
		if (strcmp(op->versions[i].date, date) <= 0)
			return &op->versions[i];
	return NULL;
}

static unsigned form_choose(unsigned have)
{
	return have & PRODUCES_JSON   ? PRODUCES_JSON
	       : have & PRODUCES_GZIP ? PRODUCES_GZIP
	                              : have & (PRODUCES_CSV | PRODUCES_EVENTS);
}

/* Among items of equal weight the most specific one wins, wherever it stands, because HTTP libraries add a wildcard of
 * their own. */
static unsigned item_rank(const struct accept_item *item)
{
	return item->q * 4 + (item->kind == ACCEPT_DATED ? 2 : item->kind == ACCEPT_CURRENT ? 1 : 0);
}

int accept_choose(const struct accept *a, const struct op *op, const struct op_version **ret_version,
                  unsigned *ret_produces)
{
	const struct op_version *newest = &op->versions[op->version_count - 1], *best = NULL;
	unsigned produces = 0, rank = 0;
	for (size_t i = 0; i < a->count; i++) {
		const struct accept_item *item = &a->items[i];
		if (item->q == 0 || (best && item_rank(item) <= rank) || item->kind == ACCEPT_OTHER ||
		    item->kind == ACCEPT_BAD_DATE)
			continue;
		const struct op_version *v = item->kind == ACCEPT_DATED ? version_at(op, item->date) : newest;
		unsigned form = form_choose(item->produces & op->produces);
		if (!v || !form)
			continue;
		best = v;
		produces = form;
		rank = item_rank(item);
	}
	if (!best)
		return -ENOENT;
	*ret_version = best;
	*ret_produces = produces;
	return 0;
}

/* Says what is wrong with the first item, and what would be right. */
static int version_refuse(struct call *c, const struct accept *a)
{
	const struct op *op = c->op;
	const struct accept_item *first = &a->items[0];
	struct buf dates = {0};
	int r;
	for (unsigned i = 0; i < op->version_count; i++)
		buf_printf(&dates, "%s%s", i ? ", " : "", op->versions[i].date);
	struct str list = arena_dup(c->arena, buf_view(&dates));
	buf_free(&dates);
	if (op->produces == PRODUCES_EVENTS)
		r = call_fail(c, 406, "NOT_ACCEPTABLE", "Accept: this operation answers as text/event-stream.");
	else if (first->kind == ACCEPT_BAD_DATE)
		r = call_fail(c, 406, "INVALID_VERSION_DATE",
		              "Accept: the version must be a date (YYYY-MM-DD). This operation has %.*s.",
		              STR_ARG(list));
	else if (first->kind == ACCEPT_DATED && !version_at(op, first->date))
		r = call_fail(c, 406, "VERSION_NOT_AVAILABLE",
		              "Accept: no version of this operation is as old as %s. It has %.*s.", first->date,
		              STR_ARG(list));
	else
		r = call_fail(c, 406, "NOT_ACCEPTABLE",
		              "Accept: this operation answers as %s%s+%s. It has the versions %.*s.",
		              dialect_media(c->dialect), op->versions[op->version_count - 1].date,
		              op->produces & PRODUCES_JSON   ? "json"
		              : op->produces & PRODUCES_GZIP ? "gzip"
		                                             : "csv",
		              STR_ARG(list));
	for (unsigned i = 0; i < op->version_count; i++)
		call_fail_param(c, str_of(op->versions[i].date));
	return r;
}

/* "Thu, 01 Jul 2027 00:00:00 GMT" */
static struct str http_date(struct arena *a, const char *date)
{
	static const char days[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t ms;
	uint64_t month;
	if (!clock_parse(str_of(date), &ms) || !str_to_u64((struct str){date + 5, 2}, 12, &month) || !month)
		return STR_NONE;
	int64_t weekday = (ms / 86400000 % 7 + 7) % 7;
	return arena_printf(a, "%.3s, %.2s %.3s %.4s 00:00:00 GMT", days + 3 * weekday, date + 8,
	                    months + 3 * (month - 1), date);
}

/* A version is deprecated since its successor was published; without one, as far as is known, since it was itself.
 * Deprecation is a time in seconds (RFC 9745), Sunset an HTTP date (RFC 8594). */
static void deprecation(struct call *c)
{
	const struct op_version *v = c->version, *last = &c->op->versions[c->op->version_count - 1];
	const char *since = v < last ? v[1].date : v->date;
	int64_t ms;
	struct str sunset = v->sunset ? http_date(c->arena, v->sunset) : STR_NONE;
	if (clock_parse(str_of(since), &ms))
		call_header(c, STR("deprecation"), arena_printf(c->arena, "@%lld", (long long)(ms / 1000)));
	if (sunset.n)
		call_header(c, STR("sunset"), sunset);
}

int gate_version(struct call *c)
{
	struct accept a;
	/* Clients of a dialect's v1 were written before versions had dates: they are answered whatever they accept. */
	bool is_old = c->v1 && c->dialect;
	a.count = 0;
	for (size_t i = 0; i < c->request->header_count; i++)
		if (str_is(c->request->headers[i].name, "accept"))
			accept_parse(c->request->headers[i].value, str_of(dialect_media(c->dialect)), &a);
	if (a.count == 0) {
		c->version = &c->op->versions[c->op->version_count - 1];
		c->produces = form_choose(c->op->produces);
	} else if (accept_choose(&a, c->op, &c->version, &c->produces) < 0) {
		if (!is_old)
			return version_refuse(c, &a);
		c->produces = form_choose(c->op->produces);
	}
	if (is_old)
		c->version = &c->op->versions[0];
	if (c->version->sunset || c->op->deprecated)
		deprecation(c);
	return 0;
}
