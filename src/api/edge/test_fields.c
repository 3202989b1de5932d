/* Checks the bodies of the test control. They are no part of the API's data, so its schemas do not know them; but a
 * field that is misspelt here makes a test pass that tests nothing. */
#include "api/edge/test_fields.h"

#include "base/arena.h"
#include "base/buf.h"

#define TEXT_MAX 1024

static struct str path_of(struct arena *a, const char *path, const char *name)
{
	return arena_printf(a, "%s%s%s", path, *path ? "." : "", name);
}

static struct str text_of(const json_t *value)
{
	return (struct str){json_string_value(value), json_string_length(value)};
}

static struct str choices_shown(struct arena *a, const char *choices)
{
	struct buf b = {0};
	for (const char *c = choices; *c; c++)
		if (*c == '|')
			buf_z(&b, ", ");
		else
			buf_c(&b, *c);
	struct str shown = arena_dup(a, buf_view(&b));
	buf_free(&b);
	return shown;
}

static void text_check(struct arena *a, const json_t *value, struct str path, const char *choices,
                       struct faults *faults)
{
	struct str text = text_of(value);
	if (!json_is_string(value) || !text.n || text.n > TEXT_MAX)
		faults_add(faults, a, path, "must be a text of 1 to %d bytes", TEXT_MAX);
	else if (choices && !str_is_one_of(choices, text))
		faults_add(faults, a, path, "must be one of %s", choices_shown(a, choices).p);
}

static void list_check(struct arena *a, const json_t *list, struct str path, const struct test_field *f,
                       struct faults *faults)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str at = arena_printf(a, "%s[%zu]", path.p, i);
		const json_t *one = json_array_get(list, i);
		if (f->kind == TEST_TEXTS)
			text_check(a, one, at, NULL, faults);
		else if (json_is_object(one))
			test_fields_check(a, one, at.p, f->fields, faults);
		else
			faults_add(faults, a, at, "must be an object");
	}
}

static void value_check(struct arena *a, const json_t *value, struct str path, const struct test_field *f,
                        struct faults *faults)
{
	double number = json_number_value(value);
	bool whole = f->kind == TEST_INTEGER;
	switch (f->kind) {
	case TEST_NUMBER:
	case TEST_INTEGER:
		if (!(whole ? json_is_integer(value) : json_is_number(value)) || number < f->min || number > f->max)
			faults_add(faults, a, path, "must be a %s from %.0f to %.0f", whole ? "whole number" : "number",
			           f->min, f->max);
		break;
	case TEST_TEXT: text_check(a, value, path, f->choices, faults); break;
	case TEST_SWITCH:
		if (!json_is_boolean(value))
			faults_add(faults, a, path, "must be true or false");
		break;
	default:
		if (json_is_array(value))
			list_check(a, value, path, f, faults);
		else
			faults_add(faults, a, path, "must be a list of %s",
			           f->kind == TEST_TEXTS ? "texts" : "objects");
	}
}

static void unknown_add(struct arena *a, const char *path, const char *name, const struct test_field *fields,
                        struct faults *faults)
{
	struct buf known = {0};
	for (const struct test_field *f = fields; f->name; f++)
		buf_printf(&known, "%s%s", known.n ? ", " : "", f->name);
	if (known.n)
		faults_add(faults, a, path_of(a, path, name), "is not known here; there are %.*s",
		           STR_ARG(buf_view(&known)));
	else
		faults_add(faults, a, path_of(a, path, name), "is not known here: this call takes no fields");
	buf_free(&known);
}

void test_fields_check(struct arena *a, const json_t *object, const char *path, const struct test_field *fields,
                       struct faults *faults)
{
	const char *name;
	json_t *value;
	for (const struct test_field *f = fields; f->name; f++) {
		value = json_object_get(object, f->name);
		if (!value && f->required)
			faults_add(faults, a, path_of(a, path, f->name), "is required");
		else if (value && !(f->or_null && json_is_null(value)))
			value_check(a, value, path_of(a, path, f->name), f, faults);
	}
	/* Jansson's iterators do not take a const object; nothing is changed. */
	json_t *all = json_incref((json_t *)(uintptr_t)object);
	json_object_foreach(all, name, value)
	{
		const struct test_field *f = fields;
		while (f->name && strcmp(f->name, name) != 0)
			f++;
		if (!f->name)
			unknown_add(a, path, name, fields, faults);
	}
	json_decref(all);
}
