/* A document from a schema and a string of bytes that decide: which fields are there, which branch, which enumerated
 * value, and now and then something that does not belong. Without bytes left it makes the smallest thing it can. */
#ifndef STEWARD_TEST_SPROUT_H
#define STEWARD_TEST_SPROUT_H

#include "catalog/catalog.h"
#include "fuzz.h"

#define SPROUT_DEPTH 12

static json_t *sprout(const struct schema *s, struct str *in, unsigned depth);

static inline json_t *sprout_wrong(struct str *in)
{
	switch (fuzz_byte(in) % 8) {
	case 0: return json_null();
	case 1: return json_integer(-1);
	case 2: return json_real(0.5);
	case 3: return json_string("");
	case 4: return json_array();
	case 5: return json_object();
	case 6: return json_true();
	default: return json_integer((json_int_t)1 << 53);
	}
}

static inline json_t *sprout_string(const struct schema *s, struct str *in)
{
	static const char *const by_format[] = {
	        [FORMAT_DATE_TIME] = "2026-11-15T10:00:00+02:00",
	        [FORMAT_DATE] = "2026-11-15",
	        [FORMAT_EMAIL] = "a@example.com",
	        [FORMAT_UUID] = "32b6e34b-3d91-4bfb-ae35-b2ff16f7c6a4",
	        [FORMAT_URI] = "https://example.com/a",
	        [FORMAT_BINARY] = "",
	};
	static const char *const usual[] = {
	        "32b6e34b3d91647abb20e7b8",
	        "a",
	        "name-1",
	        "10.0.0.0/8",
	        "192.0.2.1",
	        "2020-01-31",
	        "0000-01-01T00:30+01:00",
	        "arn:aws:iam::123456789012:role/x",
	        "example.com",
	        "us-east-1",
	        "1.0",
	        "admin",
	        "\xc3\xa9\xe2\x82\xac",
	        "$external",
	        "9999-12-31T23:59:60-01:00",
	        "2026-W01",
	};
	size_t n = fuzz_byte(in);
	if (s->enum_count) {
		json_t *value = json_loads(s->enums[n % s->enum_count], JSON_DECODE_ANY, NULL);
		HOLDS(value);
		return value;
	}
	if (n < 128 && s->format < sizeof by_format / sizeof *by_format && by_format[s->format])
		return json_string(by_format[s->format]);
	if (n < 192)
		return json_string(usual[n % (sizeof usual / sizeof *usual)]);
	/* Letters in a length that the schema names, or one less or more. */
	char text[300];
	size_t length = n % 2 && s->flags & SCHEMA_HAS_MAX_LENGTH ? s->max_length : s->min_length;
	length += n / 2 % 3;
	length = length > 0 ? length - 1 : 0;
	length = length < sizeof text ? length : sizeof text;
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + i % 26);
	return json_stringn(text, length);
}

static inline json_t *sprout_number(const struct schema *s, struct str *in)
{
	unsigned n = fuzz_byte(in);
	double value = s->flags & SCHEMA_HAS_MIN ? s->min : s->flags & SCHEMA_HAS_MAX ? s->max : 1;
	if (s->enum_count)
		value = strtod(s->enums[n % s->enum_count], NULL);
	else if (n & 1 && s->flags & SCHEMA_HAS_MAX)
		value = s->max - (n >> 1) % 3 + 1;
	else
		value += n >> 1;
	if (s->type == TYPE_NUMBER)
		return json_real(value + (n > 200 ? 0.25 : 0));
	return json_integer(value > -9e15 && value < 9e15 ? (json_int_t)value : 0);
}

static inline json_t *sprout_array(const struct schema *s, struct str *in, unsigned depth)
{
	json_t *array = json_array();
	size_t count = s->flags & SCHEMA_HAS_MIN_LENGTH && s->min_length < 8 ? s->min_length : 0;
	if (in->n && depth < SPROUT_DEPTH) {
		unsigned n = fuzz_byte(in);
		count += n < 250 ? n % 4 : 20;
	}
	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, s->items ? sprout(s->items, in, depth + 1) : json_integer((json_int_t)i));
	return array;
}

/* Adds the fields that one of the schemas of an object has. */
static inline void sprout_fields(const struct schema *s, json_t *object, struct str *in, unsigned depth)
{
	for (unsigned i = 0; i < s->field_count; i++) {
		const struct field *f = &s->fields[i];
		unsigned n = fuzz_byte(in);
		bool ours = f->schema->flags & SCHEMA_READ_ONLY && n < 250;
		bool wanted = (f->required && n < 250) || (in->n && n % 3 == 1);
		if (!ours && wanted && !json_object_get(object, f->name))
			json_object_set_new(object, f->name, sprout(f->schema, in, depth + 1));
	}
	if (s->additional || s->flags & SCHEMA_OPEN)
		for (unsigned k = fuzz_byte(in) % 3; k > 0; k--) {
			char name[] = {'k', (char)('0' + k), 0};
			json_object_set_new(object, name,
			                    s->additional ? sprout(s->additional, in, depth + 1) : sprout_wrong(in));
		}
}

static inline json_t *sprout_object(const struct schema *s, struct str *in, unsigned depth)
{
	json_t *object = json_object();
	for (unsigned level = 0; s && level < 4; level++) {
		const struct schema *next = NULL;
		unsigned n = fuzz_byte(in);
		if (s->mapping_count && s->discriminator) {
			const struct branch *b = &s->mapping[n % s->mapping_count];
			json_object_set_new(object, s->discriminator, json_string(b->value));
			next = b->schema != s ? b->schema : NULL;
		} else if (s->branch_count) {
			next = s->branches[n % s->branch_count].schema;
		}
		sprout_fields(s, object, in, depth);
		s = next;
	}
	if (fuzz_byte(in) > 250)
		json_object_set_new(object, "unknownField", sprout_wrong(in));
	return object;
}

static json_t *sprout(const struct schema *s, struct str *in, unsigned depth)
{
	unsigned n = fuzz_byte(in);
	if (n > 252)
		return sprout_wrong(in);
	if (n > 240 && s->flags & SCHEMA_NULLABLE)
		return json_null();
	if (depth > SPROUT_DEPTH)
		return json_object();
	switch (s->type) {
	case TYPE_STRING: return sprout_string(s, in);
	case TYPE_INTEGER:
	case TYPE_NUMBER: return sprout_number(s, in);
	case TYPE_BOOLEAN: return json_boolean(n & 1);
	case TYPE_ARRAY: return sprout_array(s, in, depth);
	case TYPE_OBJECT: return sprout_object(s, in, depth);
	default: break;
	}
	if (s->field_count || s->mapping_count)
		return sprout_object(s, in, depth);
	if (s->branch_count)
		return sprout(s->branches[n % s->branch_count].schema, in, depth + 1);
	return sprout_wrong(in);
}

#endif
