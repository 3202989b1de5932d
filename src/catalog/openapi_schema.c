/* Writes schemas as OpenAPI. A oneOf without a discriminator is exported as anyOf, because it is checked like one and
 * its branches overlap. A mapping without a oneOf gets one, because OpenAPI requires one beside a discriminator. */
#include "catalog/openapi_schema.h"

#include <math.h>

struct schema_marks {
	bool *marked; /* by index of schema_all */
};

struct schema_marks *openapi_marks_new(void)
{
	struct schema_marks *m = must_calloc(1, sizeof *m);
	m->marked = must_calloc(schema_all_count + 1, sizeof *m->marked);
	return m;
}

void openapi_marks_free(struct schema_marks *m)
{
	free(m->marked);
	free(m);
}

/* schema_all is sorted, so its order of names is that of the indices. */
static size_t index_of(const struct schema *s)
{
	size_t low = 0, high = schema_all_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(s->name, schema_all[middle]->name);
		if (order == 0)
			return middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return schema_all_count;
}

bool openapi_mark_one(struct schema_marks *m, const struct schema *s)
{
	bool *marked = &m->marked[index_of(s)], was = *marked;
	*marked = true;
	return !was;
}

void openapi_mark(struct schema_marks *m, const struct schema *s)
{
	if (!s)
		return;
	if (s->name) {
		bool *marked = &m->marked[index_of(s)];
		if (*marked)
			return;
		*marked = true;
	}
	for (unsigned i = 0; i < s->field_count; i++)
		openapi_mark(m, s->fields[i].schema);
	for (unsigned i = 0; i < s->branch_count; i++)
		openapi_mark(m, s->branches[i].schema);
	for (unsigned i = 0; i < s->mapping_count; i++)
		openapi_mark(m, s->mapping[i].schema);
	openapi_mark(m, s->items);
	openapi_mark(m, s->additional);
}

static void write_number(struct buf *b, const char *key, double v)
{
	json_key(b, key);
	if (fabs(v) < 1e15 && v == trunc(v))
		json_int(b, (int64_t)v);
	else
		buf_printf(b, "%.17g", v);
}

static void write_flag(struct buf *b, const struct schema *s, unsigned flag, const char *key)
{
	if (s->flags & flag)
		json_pair_bool(b, key, true);
}

static void write_bounds(struct buf *b, const struct schema *s)
{
	static const char *const least[] = {
	        [TYPE_STRING] = "minLength", [TYPE_ARRAY] = "minItems", [TYPE_OBJECT] = "minProperties"};
	static const char *const most[] = {
	        [TYPE_STRING] = "maxLength", [TYPE_ARRAY] = "maxItems", [TYPE_OBJECT] = "maxProperties"};
	if (s->flags & SCHEMA_HAS_MIN)
		write_number(b, "minimum", s->min);
	if (s->flags & SCHEMA_HAS_MAX)
		write_number(b, "maximum", s->max);
	write_flag(b, s, SCHEMA_EXCLUSIVE_MIN, "exclusiveMinimum");
	if (s->flags & SCHEMA_HAS_MIN_LENGTH && least[s->type])
		write_number(b, least[s->type], s->min_length);
	if (s->flags & SCHEMA_HAS_MAX_LENGTH && most[s->type])
		write_number(b, most[s->type], s->max_length);
}

static void write_values(struct buf *b, const struct schema *s)
{
	if (s->enum_count) {
		json_key(b, "enum");
		json_open(b, '[');
		for (unsigned i = 0; i < s->enum_count; i++)
			json_raw(b, str_of(s->enums[i]));
		json_close(b, ']');
	}
	if (s->default_json) {
		json_key(b, "default");
		json_raw(b, str_of(s->default_json));
	}
	if (s->pattern >= 0)
		json_pair_z(b, "pattern", schema_patterns[s->pattern]);
}

static void write_fields(struct buf *b, const struct schema *s)
{
	bool required = false;
	if (!s->field_count)
		return;
	json_key(b, "properties");
	json_open(b, '{');
	for (unsigned i = 0; i < s->field_count; i++) {
		json_key(b, s->fields[i].name);
		openapi_schema(b, s->fields[i].schema);
		required = required || s->fields[i].required;
	}
	json_close(b, '}');
	if (!required)
		return;
	json_key(b, "required");
	json_open(b, '[');
	for (unsigned i = 0; i < s->field_count; i++)
		if (s->fields[i].required)
			json_z(b, s->fields[i].name);
	json_close(b, ']');
}

static bool listed_before(const struct branch *list, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (list[k].schema == list[i].schema)
			return true;
	return false;
}

static void write_branches(struct buf *b, const struct schema *s)
{
	const struct branch *list = s->branch_count ? s->branches : s->mapping;
	unsigned count = s->branch_count ? s->branch_count : s->mapping_count;
	if (!count)
		return;
	json_key(b, s->mapping_count ? "oneOf" : "anyOf");
	json_open(b, '[');
	for (unsigned i = 0; i < count; i++)
		if (!listed_before(list, i))
			openapi_schema(b, list[i].schema);
	json_close(b, ']');
	if (!s->mapping_count)
		return;
	json_key(b, "discriminator");
	json_open(b, '{');
	json_pair_z(b, "propertyName", s->discriminator);
	json_key(b, "mapping");
	json_open(b, '{');
	for (unsigned i = 0; i < s->mapping_count; i++) {
		json_key(b, s->mapping[i].value);
		buf_printf(b, "\"#/components/schemas/%s\"", s->mapping[i].schema->name);
	}
	json_close(b, '}');
	json_close(b, '}');
}

static void write_whole(struct buf *b, const struct schema *s)
{
	static const char *const types[] = {NULL, "string", "integer", "number", "boolean", "array", "object"};
	static const char *const formats[] = {NULL,     "date-time", "date", "int32", "int64",    "float",
	                                      "double", "email",     "uuid", "uri",   "password", "binary"};
	json_open(b, '{');
	if (types[s->type])
		json_pair_z(b, "type", types[s->type]);
	const char *format = s->flags & SCHEMA_SECRET ? formats[FORMAT_PASSWORD] : formats[s->format];
	if (format)
		json_pair_z(b, "format", format);
	if (s->description) {
		json_pair_z(b, "description", s->description);
	}
	write_values(b, s);
	write_bounds(b, s);
	write_flag(b, s, SCHEMA_READ_ONLY, "readOnly");
	write_flag(b, s, SCHEMA_WRITE_ONLY, "writeOnly");
	write_flag(b, s, SCHEMA_NULLABLE, "nullable");
	write_flag(b, s, SCHEMA_DEPRECATED, "deprecated");
	write_flag(b, s, SCHEMA_UNIQUE, "uniqueItems");
	write_flag(b, s, SCHEMA_IMMUTABLE, "x-steward-immutable");
	write_fields(b, s);
	if (s->type == TYPE_ARRAY) {
		json_key(b, "items");
		if (s->items)
			openapi_schema(b, s->items);
		else
			buf_z(b, "{}");
	}
	if (s->additional) {
		json_key(b, "additionalProperties");
		openapi_schema(b, s->additional);
	} else if (s->flags & SCHEMA_OPEN) {
		json_pair_bool(b, "additionalProperties", true);
	}
	write_branches(b, s);
	json_close(b, '}');
}

void openapi_schema(struct buf *b, const struct schema *s)
{
	if (!s->name) {
		write_whole(b, s);
		return;
	}
	json_open(b, '{');
	json_key(b, "$ref");
	buf_printf(b, "\"#/components/schemas/%s\"", s->name);
	json_close(b, '}');
}

void openapi_components(struct buf *b, const struct schema_marks *m)
{
	for (unsigned i = 0; i < schema_all_count; i++) {
		if (m->marked[i]) {
			json_key(b, schema_all[i]->name);
			write_whole(b, schema_all[i]);
		}
	}
}
