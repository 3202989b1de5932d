/* Checks a body against its schema, in one pass over the body. Nothing is allocated unless there is a fault (or a long
 * array whose items must differ): the place in the body is a chain on the stack, and strings are not copied. Every
 * fault is reported, not only the first, so that a caller can correct a body in one attempt. */
#include "catalog/schema.h"

#include "base/id.h"
#include "catalog/checker.h"
#include "catalog/formats.h"

static uint64_t hash_seed;

int schema_setup(void)
{
	random_bytes(&hash_seed, sizeof hash_seed);
	return patterns_setup();
}

int schema_prepare(void)
{
	random_bytes(&hash_seed, sizeof hash_seed);
	return patterns_prepare();
}

void schema_teardown(void)
{
	patterns_teardown();
}

static int name_order(struct str name, const char *known)
{
	size_t n = strlen(known);
	int order = name.n ? memcmp(name.p, known, name.n < n ? name.n : n) : 0;
	return order ? order : (name.n > n) - (name.n < n);
}

const struct schema *schema_find(struct str name)
{
	size_t low = 0, high = schema_all_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = name_order(name, schema_all[middle]->name);
		if (order == 0)
			return schema_all[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct field *schema_field(const struct schema *s, struct str name)
{
	size_t low = 0, high = s->field_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = name_order(name, s->fields[middle].name);
		if (order == 0)
			return &s->fields[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct schema *schema_of_field(const char *schema, const char *field)
{
	const struct schema *s = schema_find(str_of(schema));
	const struct field *f = s ? schema_field(s, str_of(field)) : NULL;
	return f && f->schema->items ? f->schema->items : f ? f->schema : NULL;
}

struct str schema_enum(const struct schema *s, unsigned i)
{
	struct str quoted = str_of(s->enums[i]);
	return (struct str){quoted.p + 1, quoted.n - 2};
}

bool schema_allows(const struct schema *s, struct str text)
{
	for (unsigned i = 0; s && i < s->enum_count; i++)
		if (str_eq(schema_enum(s, i), text))
			return true;
	return false;
}

bool checker_stops(const struct checker *c)
{
	return *c->work == 0 || (!c->faults && c->score >= c->limit);
}

struct checker checker_trial(const struct checker *c, unsigned limit)
{
	return (struct checker){.use = c->use,
	                        .arena = c->arena,
	                        .limit = limit,
	                        .depth = c->depth,
	                        .trial_depth = c->depth,
	                        .work = c->work};
}

unsigned trial_limit(const struct checker *c)
{
	unsigned left = c->limit - c->score;
	bool capped = c->depth > c->trial_depth && left > WEIGHT_INSIDE_MAX;
	return c->faults || capped ? UINT32_MAX : left;
}

void trial_score(struct checker *c, unsigned best)
{
	c->score += c->depth > c->trial_depth && best > WEIGHT_INSIDE_MAX ? WEIGHT_INSIDE_MAX : best;
}

static bool has_parts(const struct schema *s)
{
	return s->field_count || s->branch_count || s->mapping_count;
}

bool schema_is_choice(const struct schema *s)
{
	if (!s->branch_count || s->field_count || s->mapping_count)
		return false;
	for (unsigned i = 0; i < s->branch_count; i++) {
		const struct schema *b = s->branches[i].schema;
		if ((b->type != TYPE_OBJECT && !has_parts(b)) || schema_is_choice(b))
			return true;
	}
	return false;
}

static bool takes_null(const struct schema *s, unsigned depth)
{
	if (s->flags & SCHEMA_NULLABLE || (s->type == TYPE_ANY && !s->branch_count))
		return true;
	for (unsigned i = 0; depth < 4 && i < s->branch_count; i++)
		if (takes_null(s->branches[i].schema, depth + 1))
			return true;
	return false;
}

bool schema_takes_null(const struct schema *s)
{
	return takes_null(s, 0);
}

/* The hash of an object does not depend on the order of its fields, because equality does not either. */
static uint64_t hash_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t hash_bytes(const char *p, size_t n)
{
	uint64_t h = hash_seed ^ n;
	for (size_t i = 0; i < n; i++)
		h = hash_mix(h, (unsigned char)p[i]);
	return h;
}

static uint64_t hash_value(json_t *value)
{
	uint64_t h = hash_mix(hash_seed, (uint64_t)json_typeof(value));
	size_t i, n;
	const char *key;
	json_t *item;
	double real;

	switch (json_typeof(value)) {
	case JSON_STRING: return hash_mix(h, hash_bytes(json_string_value(value), json_string_length(value)));
	case JSON_INTEGER: return hash_mix(h, (uint64_t)json_integer_value(value));
	case JSON_REAL:
		real = json_real_value(value) + 0.0; /* -0.0 is equal to 0.0 */
		return hash_mix(h, hash_bytes((const char *)&real, sizeof real));
	case JSON_ARRAY: json_array_foreach(value, i, item) h = hash_mix(h, hash_value(item)); return h;
	case JSON_OBJECT: {
		uint64_t sum = 0;
		json_object_keylen_foreach(value, key, n, item) sum += hash_mix(hash_bytes(key, n), hash_value(item));
		return hash_mix(h, sum);
	}
	default: return h;
	}
}

struct hashed {
	uint64_t hash;
	size_t index;
};

static int hashed_order(const void *a, const void *b)
{
	const struct hashed *x = a, *y = b;
	return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

/* The index of an item that equals an earlier one, or 0. */
static size_t array_repeat(struct arena *arena, json_t *array)
{
	size_t n = json_array_size(array);
	if (n <= 16) {
		for (size_t i = 1; i < n; i++)
			for (size_t k = 0; k < i; k++)
				if (json_equal(json_array_get(array, i), json_array_get(array, k)))
					return i;
		return 0;
	}
	struct hashed *list = arena_new_array(arena, struct hashed, n);
	for (size_t i = 0; i < n; i++)
		list[i] = (struct hashed){hash_value(json_array_get(array, i)), i};
	qsort(list, n, sizeof *list, hashed_order);
	for (size_t i = 1; i < n; i++)
		if (list[i].hash == list[i - 1].hash &&
		    json_equal(json_array_get(array, list[i].index), json_array_get(array, list[i - 1].index)))
			return list[i].index;
	return 0;
}

static void check_array(struct checker *c, const struct schema *s, json_t *array, const struct place *at)
{
	size_t i, count = json_array_size(array);
	json_t *item;
	check_count(c, s, count, "item", at);
	if (s->flags & SCHEMA_HAS_MAX_LENGTH && count > s->max_length)
		return;
	if (s->items) {
		json_array_foreach(array, i, item)
		{
			struct place here = {at, STR_NONE, i};
			if (checker_stops(c))
				return;
			check_value(c, s->items, item, &here);
		}
	}
	if (s->flags & SCHEMA_UNIQUE) {
		struct place here = {at, STR_NONE, array_repeat(c->arena, array)};
		if (here.index)
			fault_add(c, &here, WEIGHT_FAULT, "must not repeat an earlier item");
	}
}

/* The field belongs to one of the branches, but it is not known which branch is meant. */
static bool known_to_branch(const struct schema *s, struct str name)
{
	for (unsigned i = 0; i < s->mapping_count; i++)
		if (schema_field(s->mapping[i].schema, name))
			return true;
	return false;
}

static void check_unlisted(struct checker *c, const struct view *v, struct str name, json_t *value,
                           const struct place *at)
{
	const struct schema *additional;
	bool open = view_is_open(v, &additional);
	if (additional)
		check_value(c, additional, value, at);
	else if (!open && !(v->undecided && known_to_branch(v->undecided, name)))
		fault_unknown(c, at, v, name);
}

/* Whether the object says by an id that only the service gives which one it is: the rest is known then. */
static bool is_named(const struct view *v, const json_t *object)
{
	const struct field *id = view_field(v, STR("id"));
	return id && id->schema->flags & SCHEMA_READ_ONLY && json_object_get(object, "id");
}

/* Of an own document, and where a handler compares it, what is read-only may be there. */
static bool takes_read_only(const struct checker *c)
{
	return c->use == SCHEMA_STORED || c->use == SCHEMA_AS_READ;
}

static void check_required(struct checker *c, const struct view *v, json_t *object, const struct place *at)
{
	if ((c->use == SCHEMA_PARTIAL || c->use == SCHEMA_AS_READ) && !at)
		return;
	if (c->use == SCHEMA_AS_READ && is_named(v, object))
		return;
	for (unsigned i = v->count; i-- > 0;) {
		for (unsigned k = 0; k < v->of[i]->field_count; k++) {
			const struct field *f = &v->of[i]->fields[k];
			if (!f->required)
				continue;
			struct str name = str_of(f->name);
			if (json_object_getn(object, name.p, name.n))
				continue;
			const struct field *best = view_field(v, name);
			if (best != f && best->required)
				continue; /* reported with the other field */
			if (best->schema->flags & SCHEMA_READ_ONLY && c->use != SCHEMA_STORED)
				continue;
			struct place here = {at, name, 0};
			fault_add(c, &here, WEIGHT_FAULT, "is required");
		}
	}
}

void view_check(struct checker *c, const struct view *v, json_t *object, const struct place *at)
{
	const char *key;
	size_t n;
	json_t *value;
	check_count(c, v->of[0], json_object_size(object), "field", at);
	json_object_keylen_foreach(object, key, n, value)
	{
		struct str name = {key, n};
		struct place here = {at, name, 0};
		const struct field *f = view_field(v, name);
		if (checker_stops(c))
			return;
		if (v->settled && str_is(name, v->settled))
			continue;
		if (!f)
			check_unlisted(c, v, name, value, &here);
		else if (f->schema->flags & SCHEMA_READ_ONLY && !takes_read_only(c))
			fault_add(c, &here, WEIGHT_FAULT, "is read-only");
		else if (f->schema->flags & SCHEMA_IMMUTABLE && c->use != SCHEMA_CREATE && c->use != SCHEMA_STORED)
			fault_add(c, &here, WEIGHT_FAULT, "cannot be changed");
		else
			check_value(c, f->schema, value, &here);
	}
	check_required(c, v, object, at);
}

static void check_choice(struct checker *c, const struct schema *s, json_t *value, const struct place *at)
{
	unsigned best = UINT32_MAX;
	const struct schema *chosen = s->branches[0].schema;
	bool enums = json_is_string(value);
	for (unsigned i = 0; i < s->branch_count && best > 0; i++) {
		const struct schema *branch = s->branches[i].schema;
		struct checker trial = checker_trial(c, best);
		check_value(&trial, branch, value, at);
		enums = enums && branch->type == TYPE_STRING && branch->enum_count;
		if (trial.score < best) {
			best = trial.score;
			chosen = branch;
		}
	}
	if (best > 0 && !c->faults)
		c->score += enums ? weight_enum(c) : WEIGHT_FAULT;
	else if (best > 0 && enums)
		fault_choice(c, at, s);
	else if (best > 0)
		check_value(c, chosen, value, at);
}

static void check_type(struct checker *c, const struct schema *s, json_t *value, const struct place *at)
{
	static const char *const rules[] = {
	        [TYPE_STRING] = "must be a string", [TYPE_INTEGER] = "must be an integer",
	        [TYPE_NUMBER] = "must be a number", [TYPE_BOOLEAN] = "must be true or false",
	        [TYPE_ARRAY] = "must be an array",  [TYPE_OBJECT] = "must be an object",
	};
	unsigned type = s->type == TYPE_ANY && has_parts(s) ? TYPE_OBJECT : s->type;

	if (type == TYPE_ANY)
		return;
	if (type == TYPE_STRING && json_is_string(value)) {
		check_string(c, s, (struct str){json_string_value(value), json_string_length(value)}, at);
	} else if (type == TYPE_INTEGER && json_is_integer(value)) {
		check_integer(c, s, json_integer_value(value), at);
	} else if (type == TYPE_NUMBER && json_is_number(value)) {
		check_number(c, s, json_number_value(value), at);
	} else if (type == TYPE_BOOLEAN && json_is_boolean(value)) {
		check_boolean(c, s, json_is_true(value), at);
	} else if (type == TYPE_ARRAY && json_is_array(value)) {
		check_array(c, s, value, at);
	} else if (type == TYPE_OBJECT && json_is_object(value)) {
		struct view v = {.count = 0};
		view_resolve(c, s, value, at, &v);
		if (!v.scored)
			view_check(c, &v, value, at);
	} else {
		fault_add(c, at, WEIGHT_ENUM, "%s", rules[type]);
	}
}

void check_value(struct checker *c, const struct schema *s, json_t *value, const struct place *at)
{
	if (*c->work == 0)
		return;
	if (--*c->work == 0) {
		fault_add(c, at, WEIGHT_FAULT, "is where the body became too large to check");
		return;
	}
	if (c->depth >= CHECK_DEPTH) {
		fault_add(c, at, WEIGHT_FAULT, "must not be nested more than %d levels deep", CHECK_DEPTH);
		return;
	}
	c->depth++;
	if (json_is_null(value)) {
		if (!takes_null(s, 0))
			fault_add(c, at, WEIGHT_FAULT, "must not be null");
	} else if (schema_is_choice(s)) {
		check_choice(c, s, value, at);
	} else {
		check_type(c, s, value, at);
	}
	c->depth--;
}

void schema_check(const struct schema *s, json_t *value, enum schema_use use, struct arena *arena,
                  struct faults *faults)
{
	unsigned work = CHECK_WORK;
	size_t before = faults->count;
	struct checker c = {.use = use, .arena = arena, .faults = faults, .work = &work};
	check_value(&c, s, value, NULL);
	/* When the work ran out while branches were compared, no fault was written yet. */
	if (work == 0 && faults->count == before)
		fault_add(&c, NULL, WEIGHT_FAULT, "is too large to check");
}
