/* Checks strings, numbers and booleans against a schema, from a body or from the text of a parameter. */
#include "catalog/checker.h"
#include "catalog/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

/* A value such as "<a custom role name>" stands for names that only the family knows, so any text is allowed. */
static bool enum_is_open(const char *json)
{
	size_t n = strlen(json);
	return n > 4 && json[1] == '<' && json[n - 2] == '>';
}

static bool enum_has_string(const struct schema *s, struct str text)
{
	for (unsigned i = 0; i < s->enum_count; i++) {
		/* Enumerated strings hold no character that JSON escapes: the build checks this. */
		const char *e = s->enums[i];
		if (e[0] == '"' && strlen(e) == text.n + 2 && (text.n == 0 || memcmp(e + 1, text.p, text.n) == 0))
			return true;
		if (enum_is_open(e) && text.n)
			return true;
	}
	return false;
}

static bool enum_has_number(const struct schema *s, double value)
{
	for (unsigned i = 0; i < s->enum_count; i++)
		if (s->enums[i][0] != '"' && strtod(s->enums[i], NULL) == value)
			return true;
	return false;
}

void check_string(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	if (s->enum_count) {
		if (!enum_has_string(s, text))
			fault_enum(c, at, s);
		return;
	}
	if (s->flags & (SCHEMA_HAS_MIN_LENGTH | SCHEMA_HAS_MAX_LENGTH)) {
		size_t length = utf8_length(text);
		if (s->flags & SCHEMA_HAS_MIN_LENGTH && length < s->min_length)
			fault_add(c, at, WEIGHT_FAULT, "must be at least %u character%s long", s->min_length,
			          s->min_length == 1 ? "" : "s");
		else if (s->flags & SCHEMA_HAS_MAX_LENGTH && length > s->max_length)
			fault_add(c, at, WEIGHT_FAULT, "must be at most %u character%s long", s->max_length,
			          s->max_length == 1 ? "" : "s");
	}
	if (s->pattern >= 0 && !pattern_matches(s->pattern, text))
		fault_add(c, at, WEIGHT_FAULT, "%s", schema_pattern_rules[s->pattern]);
	if (s->format && !format_fits(s->format, text))
		fault_add(c, at, WEIGHT_FAULT, "%s", format_rule(s->format));
}

static void fault_bound(struct checker *c, const struct place *at, const char *what, double bound)
{
	if (fabs(bound) < 1e18 && bound == trunc(bound))
		fault_add(c, at, WEIGHT_FAULT, "must be %s %" PRId64, what, (int64_t)bound);
	else
		fault_add(c, at, WEIGHT_FAULT, "must be %s %g", what, bound);
}

void check_number(struct checker *c, const struct schema *s, double value, const struct place *at)
{
	if (s->enum_count && !enum_has_number(s, value))
		fault_enum(c, at, s);
	else if (s->flags & SCHEMA_HAS_MIN && s->flags & SCHEMA_EXCLUSIVE_MIN && value <= s->min)
		fault_bound(c, at, "more than", s->min);
	else if (s->flags & SCHEMA_HAS_MIN && value < s->min)
		fault_bound(c, at, "at least", s->min);
	else if (s->flags & SCHEMA_HAS_MAX && value > s->max)
		fault_bound(c, at, "at most", s->max);
}

void check_integer(struct checker *c, const struct schema *s, int64_t value, const struct place *at)
{
	if (s->format == FORMAT_INT32 && (value < INT32_MIN || value > INT32_MAX)) {
		double low = s->flags & SCHEMA_HAS_MIN ? s->min : INT32_MIN;
		double high = s->flags & SCHEMA_HAS_MAX ? s->max : INT32_MAX;
		fault_add(c, at, WEIGHT_FAULT, "must be between %.0f and %.0f", low, high);
	} else {
		check_number(c, s, (double)value, at);
	}
}

void check_boolean(struct checker *c, const struct schema *s, bool value, const struct place *at)
{
	const char *text = value ? "true" : "false";
	for (unsigned i = 0; i < s->enum_count; i++)
		if (strcmp(s->enums[i], text) == 0)
			return;
	if (s->enum_count)
		fault_enum(c, at, s);
}

void check_count(struct checker *c, const struct schema *s, size_t count, const char *noun, const struct place *at)
{
	if (s->flags & SCHEMA_HAS_MIN_LENGTH && count < s->min_length)
		fault_add(c, at, WEIGHT_FAULT, "must have at least %u %s%s", s->min_length, noun,
		          s->min_length == 1 ? "" : "s");
	else if (s->flags & SCHEMA_HAS_MAX_LENGTH && count > s->max_length)
		fault_add(c, at, WEIGHT_FAULT, "must have at most %u %s%s", s->max_length, noun,
		          s->max_length == 1 ? "" : "s");
}

/* The text of a parameter. */

static void check_text(struct checker *c, const struct schema *s, struct str text, const struct place *at);

/* For numbers of more than 64 bits: where the schema has no limit of its own, 64 bits are the limit. */
static void check_text_beyond(struct checker *c, const struct schema *s, bool minus, const struct place *at)
{
	unsigned before = c->score;
	check_integer(c, s, minus ? INT64_MIN : INT64_MAX, at);
	if (c->score == before)
		fault_add(c, at, WEIGHT_FAULT, "must be between %" PRId64 " and %" PRId64, INT64_MIN, INT64_MAX);
}

static void check_text_integer(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	uint64_t value;
	bool minus = text.n > 1 && text.p[0] == '-';
	struct str digits = {text.p + minus, text.n - minus};
	size_t n = 0;
	while (n < digits.n && digits.p[n] >= '0' && digits.p[n] <= '9')
		n++;
	if (n == 0 || n < digits.n)
		fault_add(c, at, WEIGHT_FAULT, "must be an integer");
	else if (!str_to_u64(digits, INT64_MAX, &value))
		check_text_beyond(c, s, minus, at);
	else
		check_integer(c, s, minus ? -(int64_t)value : (int64_t)value, at);
}

static void check_text_number(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	char z[64], *end = z;
	double value = 0;
	size_t n = text.n < sizeof z ? text.n : 0;
	memcpy(z, n ? text.p : "", n);
	z[n] = 0;
	/* strtod() accepts more than JSON does: hexadecimal, infinities, spaces. */
	if (n > 0 && strspn(z, "-.0123456789eE") == n)
		value = strtod(z, &end);
	if (end == z || *end || !isfinite(value))
		fault_add(c, at, WEIGHT_FAULT, "must be a number");
	else
		check_number(c, s, value, at);
}

static int str_order(const void *a, const void *b)
{
	const struct str *x = a, *y = b;
	size_t n = x->n < y->n ? x->n : y->n;
	int order = n ? memcmp(x->p, y->p, n) : 0;
	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static void check_text_array(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	size_t count = text.n > 0;
	for (size_t i = 0; i < text.n; i++)
		count += text.p[i] == ',';
	check_count(c, s, count, "value", at);
	if (s->flags & SCHEMA_HAS_MAX_LENGTH && count > s->max_length)
		return;
	struct str *items = arena_new_array(c->arena, struct str, count + 1), rest = text;
	for (size_t i = 0; i < count; i++) {
		unsigned before = c->score;
		str_cut(rest, ',', &items[i], &rest);
		if (s->items)
			check_text(c, s->items, items[i], at);
		if (c->score != before)
			return; /* the path has no index to tell a second one from the first */
	}
	if (!(s->flags & SCHEMA_UNIQUE) || count < 2)
		return;
	qsort(items, count, sizeof *items, str_order);
	for (size_t i = 1; i < count; i++) {
		if (str_eq(items[i - 1], items[i])) {
			fault_add(c, at, WEIGHT_FAULT, "must not repeat a value");
			return;
		}
	}
}

static void check_text_choice(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	bool enums = true;
	const struct schema *best = s->branches[0].schema;
	unsigned best_score = UINT32_MAX;
	for (unsigned i = 0; i < s->branch_count; i++) {
		struct checker trial = checker_trial(c, best_score);
		check_text(&trial, s->branches[i].schema, text, at);
		if (trial.score == 0)
			return;
		if (trial.score < best_score) {
			best_score = trial.score;
			best = s->branches[i].schema;
		}
		enums = enums && s->branches[i].schema->enum_count;
	}
	if (enums)
		fault_choice(c, at, s);
	else
		check_text(c, best, text, at);
}

static void check_text(struct checker *c, const struct schema *s, struct str text, const struct place *at)
{
	if (c->depth >= 8 || checker_stops(c))
		return;
	c->depth++;
	if (schema_is_choice(s)) {
		check_text_choice(c, s, text, at);
	} else {
		switch (s->type) {
		case TYPE_STRING: check_string(c, s, text, at); break;
		case TYPE_INTEGER: check_text_integer(c, s, text, at); break;
		case TYPE_NUMBER: check_text_number(c, s, text, at); break;
		case TYPE_BOOLEAN:
			if (!str_is(text, "true") && !str_is(text, "false"))
				fault_add(c, at, WEIGHT_FAULT, "must be true or false");
			break;
		case TYPE_ARRAY: check_text_array(c, s, text, at); break;
		default: break;
		}
	}
	c->depth--;
}

bool schema_check_text(const struct schema *s, struct str name, struct str text, struct arena *arena,
                       struct faults *faults)
{
	unsigned work = CHECK_WORK;
	size_t before = faults->count;
	struct checker c = {.use = SCHEMA_CREATE, .arena = arena, .faults = faults, .work = &work};
	struct place at = {.key = name};
	if (!utf8_is_valid(text))
		fault_add(&c, &at, WEIGHT_FAULT, "must be UTF-8 text");
	else
		check_text(&c, s, text, &at);
	return faults->count == before;
}
