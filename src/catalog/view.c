/* Which schemas describe an object: the branch of a oneOf or anyOf. The discriminator's value picks it, or the
 * discriminator's default. Without either, every branch is tried, and the one with the fewest faults is what the caller
 * meant. */
#include "catalog/checker.h"

static bool view_has(const struct view *v, const struct schema *s)
{
	for (unsigned i = 0; i < v->count; i++)
		if (v->of[i] == s)
			return true;
	return false;
}

const struct field *view_field(const struct view *v, struct str name)
{
	for (unsigned i = v->count; i-- > 0;) {
		const struct field *f = schema_field(v->of[i], name);
		if (f)
			return f;
	}
	return NULL;
}

static bool is_open(const struct schema *s)
{
	return s->flags & SCHEMA_OPEN || (!s->field_count && !s->branch_count && !s->mapping_count && !s->additional);
}

bool view_is_open(const struct view *v, const struct schema **ret_additional)
{
	bool open = false;
	*ret_additional = NULL;
	for (unsigned i = 0; i < v->count; i++) {
		if (v->of[i]->additional)
			*ret_additional = v->of[i]->additional;
		/* A branch without fields adds none; only when it is the only schema does it mean "anything". */
		open = open || v->of[i]->additional || v->of[i]->flags & SCHEMA_OPEN ||
		       (v->count == 1 && is_open(v->of[i]));
	}
	return open;
}

const struct schema *mapping_find(const struct schema *s, struct str value)
{
	for (unsigned i = 0; i < s->mapping_count; i++)
		if (str_is(value, s->mapping[i].value))
			return s->mapping[i].schema;
	return NULL;
}

static const struct schema *mapping_default(const struct schema *s, const struct view *v)
{
	const struct field *f = view_field(v, str_of(s->discriminator));
	const char *json = f ? f->schema->default_json : NULL;
	size_t n = json ? strlen(json) : 0;
	return n >= 2 && json[0] == '"' ? mapping_find(s, (struct str){json + 1, n - 2}) : NULL;
}

/* The score of an object if this branch were the right one. */
static unsigned branch_score(struct checker *c, const struct view *v, const struct schema *branch, json_t *object,
                             const struct place *at, unsigned limit)
{
	struct checker trial = checker_trial(c, limit);
	struct view whole = *v;
	if (branch)
		view_resolve(&trial, branch, object, at, &whole);
	if (!whole.scored)
		view_check(&trial, &whole, object, at);
	return trial.score;
}

static void resolve_by_trial(struct checker *c, const struct branch *list, unsigned count, bool alone, json_t *object,
                             const struct place *at, struct view *v)
{
	unsigned best = trial_limit(c);
	const struct schema *chosen = list[0].schema;
	for (unsigned i = 0; i < count && best > 0 && *c->work > 0; i++) {
		if (i > 0 && list[i].schema == list[i - 1].schema)
			continue;
		unsigned score = branch_score(c, v, list[i].schema, object, at, best);
		if (score < best) {
			best = score;
			chosen = list[i].schema;
		}
	}
	unsigned without = alone && best > 0 ? branch_score(c, v, NULL, object, at, best) : best;
	if (without < best) {
		best = without;
		chosen = NULL;
	}
	if (c->faults && best > 0) {
		/* Check the chosen branch again, this time with fault texts. */
		if (chosen)
			view_resolve(c, chosen, object, at, v);
		return;
	}
	v->scored = true;
	trial_score(c, best);
	if (chosen && v->count < VIEW_MAX)
		v->of[v->count++] = chosen;
}

static void resolve_by_value(struct checker *c, const struct schema *s, json_t *object, const struct place *at,
                             struct view *v)
{
	struct str name = str_of(s->discriminator);
	json_t *value = json_object_getn(object, name.p, name.n);
	const struct schema *branch = NULL;
	const struct field *own = view_field(v, name);
	const struct field *demanded = own ? own : schema_field(s->mapping[0].schema, name);
	struct place here = {at, name, 0};

	if (json_is_string(value)) {
		struct str text = {json_string_value(value), json_string_length(value)};
		branch = mapping_find(s, text);
		/* Without a oneOf a value that is not in the mapping is allowed: the schema itself then describes the
		 * object. */
		bool own_will_do =
		        own && !s->branch_count && (!own->schema->enum_count || schema_allows(own->schema, text));
		if (!branch && !own_will_do && c->use != SCHEMA_STORED) {
			fault_mapping(c, &here, s);
			v->settled = s->discriminator;
		}
		if (!branch)
			v->undecided = own_will_do ? NULL : s;
	} else if (value) {
		if (!own)
			fault_add(c, &here, WEIGHT_FAULT, "must be a string");
		v->undecided = s;
		if (!own)
			v->settled = s->discriminator;
	} else {
		branch = mapping_default(s, v);
		if (!branch && demanded && demanded->required && !(demanded->schema->flags & SCHEMA_READ_ONLY)) {
			if (!own)
				fault_add(c, &here, WEIGHT_FAULT, "is required");
			v->undecided = s;
		} else if (!branch) {
			const struct branch *list = s->branch_count ? s->branches : s->mapping;
			unsigned count = s->branch_count ? s->branch_count : s->mapping_count;
			resolve_by_trial(c, list, count, !s->branch_count, object, at, v);
			return;
		}
	}
	if (branch)
		view_resolve(c, branch, object, at, v);
}

void view_resolve(struct checker *c, const struct schema *s, json_t *object, const struct place *at, struct view *v)
{
	if (v->count == VIEW_MAX || view_has(v, s))
		return;
	v->of[v->count++] = s;
	if (s->mapping_count)
		resolve_by_value(c, s, object, at, v);
	else if (s->branch_count)
		resolve_by_trial(c, s->branches, s->branch_count, false, object, at, v);
}
