/* Checks path, query and header parameters against their schemas. A path parameter that cannot name anything is a 404,
 * like an unknown name; faults in the query and the headers are one 400 that lists all of them. */
#include "base/buf.h"
#include "call/query.h"
#include "catalog/common.h"
#include "catalog/formats.h"
#include "gate/gate.h"

#define NAME_SHOWN 64

/* Patterns that describe a network or a path expect the slash as it is written in the URL (percent-encoded). */
static bool fits_encoded(const struct param *p, struct str text, struct arena *arena)
{
	struct faults ignored = {.count = 0};
	char *out = arena_alloc(arena, text.n * 3 + 1);
	size_t n = 0;
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '/') {
			out[n++] = '%';
			out[n++] = '2';
			out[n++] = 'F';
		} else {
			out[n++] = text.p[i];
		}
	}
	return schema_check_text(p->schema, str_of(p->name), (struct str){out, n}, arena, &ignored);
}

/* The path parameter that cannot name anything; NULL: none. Its fault goes to `faults` when it can be explained. */
static const struct param *path_misfit(struct call *c, struct faults *faults)
{
	for (unsigned i = 0; i < c->op->path_param_count; i++) {
		const struct param *p = &c->op->path_params[i];
		struct str text = c->params[i];
		if (text.n == 0 || memchr(text.p, 0, text.n))
			return p;
		if (schema_check_text(p->schema, str_of(p->name), text, c->arena, faults))
			continue;
		if (!utf8_is_valid(text) || !memchr(text.p, '/', text.n) || !fits_encoded(p, text, c->arena))
			return p;
		faults->count = 0;
	}
	return NULL;
}

/* For an enumeration of names the answer lists them. */
static int path_fail(struct call *c, const struct param *p, const struct faults *faults)
{
	if (!p->schema->enum_count || !faults->count)
		return call_param_not_found(c, p->name);
	struct str text = words_sentence(dialect_words(c->dialect, p->schema), faults->list[0].text, c->arena);
	call_fail(c, 404, p->not_found, "Cannot find resource %.*s: %s %.*s.", STR_ARG(c->request->path), p->name,
	          STR_ARG(text));
	return call_fail_param(c, c->request->path);
}

/* The common parameters that the query has given; the operation's own are in c->query. */
struct given {
	struct str common[COMMON_COUNT];
	bool has_common[COMMON_COUNT];
};

static struct query_value *query_find(struct call *c, const struct param *p)
{
	for (size_t i = 0; i < c->query_count; i++)
		if (c->query[i].param == p)
			return &c->query[i];
	return NULL;
}

static const struct param *param_find(const struct op *op, struct str name)
{
	for (unsigned i = 0; i < op->query_param_count; i++)
		if (str_is(name, op->query_params[i].name))
			return &op->query_params[i];
	return NULL;
}

static int common_find(const struct op *op, struct str name)
{
	for (int i = 0; i < COMMON_COUNT; i++)
		if (common_applies((enum common)i, op) && str_is(name, common_params[i].name))
			return i;
	return -1;
}

static void fault_unknown_param(struct call *c, struct str name, struct faults *faults)
{
	struct buf known = {0};
	for (unsigned i = 0; i < c->op->query_param_count; i++)
		buf_printf(&known, "%s, ", c->op->query_params[i].name);
	for (int i = 0; i < COMMON_COUNT; i++)
		if (common_applies((enum common)i, c->op))
			buf_printf(&known, "%s, ", common_params[i].name);
	faults_add(faults, c->arena, name, "unknown parameter; this operation takes %.*s", (int)known.n - 2, known.p);
	buf_free(&known);
}

/* In a query '+' means a space, and few callers encode the '+' of a time zone. No other space can follow the time, so
 * it is changed back. */
static struct str zone_restore(struct arena *a, struct str date)
{
	enum { TIME = sizeof "2026-01-31T00" - 1 };
	const char *space = date.n > TIME ? memrchr(date.p + TIME, ' ', date.n - TIME) : NULL;
	if (!space)
		return date;
	char *copy = arena_z(a, date);
	copy[space - date.p] = '+';
	return (struct str){copy, date.n};
}

static void query_take(struct call *c, struct str name, struct str value, struct given *given, struct faults *faults)
{
	const struct param *p = param_find(c->op, name);
	int common = p ? -1 : common_find(c->op, name);
	if (name.n == 0) {
		faults_add(faults, c->arena, STR("query"), "a parameter must have a name");
		return;
	}
	if (!p && common < 0) {
		fault_unknown_param(c, utf8_prefix(name, NAME_SHOWN), faults);
		return;
	}
	if (p && p->schema->format == FORMAT_DATE_TIME)
		value = zone_restore(c->arena, value);
	if (p && c->dialect)
		value = words_list(dialect_words(c->dialect, p->schema), value, c->arena);
	struct query_value *before = p ? query_find(c, p) : NULL;
	if (p && !before) {
		if (!c->query)
			c->query = arena_new_array(c->arena, struct query_value, c->op->query_param_count);
		c->query[c->query_count++] = (struct query_value){p, value};
	} else if (p && p->schema->type == TYPE_ARRAY) {
		before->text = arena_printf(c->arena, "%.*s,%.*s", STR_ARG(before->text), STR_ARG(value));
	} else if (p || given->has_common[common]) {
		faults_add(faults, c->arena, name, "must be given only once");
	} else {
		given->common[common] = value;
		given->has_common[common] = true;
	}
}

static void query_read(struct call *c, struct given *given, struct faults *faults)
{
	struct str rest = c->request->query, raw_name, raw_value, name, value;
	for (unsigned count = 0; query_next(&rest, &raw_name, &raw_value); count++) {
		if (count == QUERY_PARAMS_MAX) {
			faults_add(faults, c->arena, STR("query"), "must have at most %d parameters", QUERY_PARAMS_MAX);
			return;
		}
		if (!query_decode(raw_name, c->arena, &name)) {
			struct str shown = utf8_is_valid(raw_name) ? utf8_prefix(raw_name, NAME_SHOWN) : STR("query");
			faults_add(faults, c->arena, shown, "must be named in percent-encoded UTF-8");
		} else if (!query_decode(raw_value, c->arena, &value)) {
			faults_add(faults, c->arena, utf8_prefix(name, NAME_SHOWN),
			           "must be percent-encoded UTF-8 text");
		} else {
			query_take(c, name, value, given, faults);
		}
	}
}

static void query_check(struct call *c, const struct given *given, struct faults *faults)
{
	for (size_t i = 0; i < c->query_count; i++) {
		const struct param *p = c->query[i].param;
		(void)schema_check_text(p->schema, str_of(p->name), c->query[i].text, c->arena, faults);
	}
	for (unsigned i = 0; i < c->op->query_param_count; i++) {
		const struct param *p = &c->op->query_params[i];
		/* A parameter with a default is never missing. */
		if (p->required && !p->schema->default_json && !query_find(c, p))
			faults_add(faults, c->arena, str_of(p->name), "is required");
	}
	for (int i = 0; i < COMMON_COUNT; i++) {
		const struct param *p = &common_params[i];
		if (given->has_common[i])
			(void)schema_check_text(p->schema, str_of(p->name), given->common[i], c->arena, faults);
	}
}

static void headers_check(struct call *c, struct faults *faults)
{
	for (unsigned i = 0; i < c->op->header_param_count; i++) {
		const struct param *p = &c->op->header_params[i];
		char name[64];
		size_t n = 0;
		for (; p->name[n] && n < sizeof name - 1; n++)
			name[n] = (char)(p->name[n] >= 'A' && p->name[n] <= 'Z' ? p->name[n] | 0x20 : p->name[n]);
		name[n] = 0;
		size_t count = request_header_count(c->request, name);
		if (count > 1)
			faults_add(faults, c->arena, str_of(p->name), "must be given only once");
		else if (count == 1)
			(void)schema_check_text(p->schema, str_of(p->name), str_trim(request_header(c->request, name)),
			                        c->arena, faults);
		else if (p->required)
			faults_add(faults, c->arena, str_of(p->name), "is required");
	}
}

static int64_t number_of(const struct given *given, enum common which, int64_t otherwise)
{
	uint64_t value;
	return given->has_common[which] && str_to_u64(given->common[which], INT32_MAX, &value) ? (int64_t)value
	                                                                                       : otherwise;
}

static bool is_true(const struct given *given, enum common which, bool otherwise)
{
	return given->has_common[which] ? str_is(given->common[which], "true") : otherwise;
}

int gate_parameters(struct call *c)
{
	struct given given = {.has_common = {false}};
	struct faults faults = {.count = 0};
	const struct param *misfit = path_misfit(c, &faults);
	if (misfit)
		return path_fail(c, misfit, &faults);
	query_read(c, &given, &faults);
	query_check(c, &given, &faults);
	headers_check(c, &faults);
	c->envelope = is_true(&given, COMMON_ENVELOPE, false);
	c->pretty = is_true(&given, COMMON_PRETTY, false);
	if (faults.count)
		return call_fail_faults(c, &faults);
	c->page = number_of(&given, COMMON_PAGE, 1);
	c->page_size = number_of(&given, COMMON_PAGE_SIZE, PAGE_SIZE_DEFAULT);
	c->include_count = is_true(&given, COMMON_INCLUDE_COUNT, true);
	return 0;
}
