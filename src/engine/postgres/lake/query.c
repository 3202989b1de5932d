/* As in rows.c, nothing here may fail for any row, and nothing but PostgreSQL's own operators is named. A row has a
 * field, or it has not: what would be unknown in SQL is false, so that "is not" is true of rows without the field, as
 * the query language has it. Values of different types are different, and neither is before the other. */
#include "engine/postgres/lake/query.h"

#include "base/clock.h"
#include "base/id.h"

/* What is compared: a column, or a value in a document. */
struct field {
	struct str name;
	const struct pg_lake_column *column;
	const char *value; /* of SQL */
	bool is_document;
};

struct query {
	const struct pg_lake_column *columns;
	size_t count;
	struct buf *sql, *why;
};

static bool filter_sql(struct query *q, const json_t *filter);
static bool condition_sql(struct query *q, const struct field *f, const json_t *want);

static bool refuse(struct query *q, const struct field *f, const char *words)
{
	if (!q->why->n)
		buf_printf(q->why, "%.*s %s", STR_ARG(f->name), words);
	return false;
}

/* The session has standard_conforming_strings, and the text is UTF-8 without NUL: it came from JSON. */
static void literal_add(struct buf *sql, struct str text)
{
	buf_c(sql, '\'');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\'')
			buf_c(sql, '\'');
		buf_c(sql, text.p[i]);
	}
	buf_c(sql, '\'');
}

const struct pg_lake_column *pg_lake_field(const struct pg_lake_column *columns, size_t count, struct str field,
                                           struct str *ret_rest)
{
	struct str name, rest;
	*ret_rest = STR_NONE;
	for (size_t i = 0; i < count; i++)
		if (str_is(field, columns[i].name))
			return &columns[i];
	if (!str_cut(field, '.', &name, &rest) || !rest.n)
		return NULL;
	*ret_rest = rest;
	for (size_t i = 0; i < count; i++)
		if (str_is(name, columns[i].name))
			return &columns[i];
	return NULL;
}

void pg_lake_path_sql(struct str rest, struct buf *sql)
{
	struct str part;
	for (bool first = true; rest.n; first = false) {
		str_cut(rest, '.', &part, &rest);
		buf_z(sql, first ? "" : ",");
		literal_add(sql, part);
	}
}

/* --- one value */

static bool is_of(const struct field *f, const char *types)
{
	return f->column->ours && str_is_one_of(types, str_of(f->column->type));
}

static bool is_equality(const char *operator)
{
	return strcmp(operator, "=") == 0;
}

static void number_add(struct buf *sql, const json_t *value)
{
	if (json_is_integer(value))
		buf_printf(sql, "%lld", (long long)json_integer_value(value));
	else
		buf_printf(sql, "%.17g", json_real_value(value));
}

static void constant_add(struct buf *sql, const json_t *value)
{
	if (json_is_string(value))
		literal_add(sql, (struct str){json_string_value(value), json_string_length(value)});
	else if (json_is_number(value))
		number_add(sql, value);
	else
		buf_z(sql, json_is_true(value) ? "'true'" : "'false'");
}

/* In a document: only a value of the same type is compared. */
static bool document_sql(struct query *q, const struct field *f, const char *operator, const json_t * value)
{
	const char *kind = strcmp(f->column->type, "json") == 0 ? "json" : "jsonb";
	buf_printf(q->sql, "coalesce(case when %s_typeof(%s) = ", kind, f->value);
	if (json_is_number(value))
		buf_printf(q->sql,
		           "'number' and (%s #>> '{}') ~ '^-?[0-9]{1,30}(\\.[0-9]{1,30})?$' then (%s #>> "
		           "'{}')::pg_catalog.numeric %s ",
		           f->value, f->value, operator);
	else
		buf_printf(q->sql, "'%s' then (%s #>> '{}') collate \"C\" %s ",
		           json_is_string(value) ? "string" : "boolean", f->value, operator);
	constant_add(q->sql, value);
	buf_z(q->sql, " end, false)");
	return true;
}

static bool time_sql(struct query *q, const struct field *f, const char *operator, struct str text)
{
	int64_t ms;
	char day[CLOCK_TEXT];
	if (!clock_parse(text, &ms))
		return refuse(q, f, "must be compared with a date and time in ISO 8601");
	clock_format(ms, day);
	if (is_of(f, "date") && text.n != strlen("2026-01-01"))
		return refuse(q, f, "must be compared with a date (YYYY-MM-DD)");
	if (is_of(f, "date"))
		buf_printf(q->sql, "coalesce(%s %s '%.10s'::pg_catalog.date, false)", f->value, operator, day);
	else
		buf_printf(q->sql, "coalesce(%s %s to_timestamp(%lld / 1000.0)%s, false)",
		           f->value, operator,(long long) ms, is_of(f, "timestamp") ? " at time zone 'UTC'" : "");
	return true;
}

static bool is_uuid(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23 ? text.p[i] != '-' : hex_value(text.p[i]) < 0)
			return false;
	return text.n == 36;
}

static bool text_sql(struct query *q, const struct field *f, const char *operator, const json_t * value)
{
	struct str text = {json_string_value(value), json_string_length(value)};
	if (is_of(f, "timestamptz|timestamp|date"))
		return time_sql(q, f, operator, text);
	if (is_of(f, "uuid") && !is_uuid(text))
		return refuse(q, f, "must be compared with a UUID");
	if (!is_of(f, "uuid|text|varchar|bpchar"))
		return refuse(q, f, "is a column that is not compared with text");
	if (is_of(f, "uuid"))
		buf_printf(q->sql, "coalesce(%s %s ", f->value, operator);
	else
		buf_printf(q->sql, "coalesce(%s::pg_catalog.text collate \"C\" %s ", f->value, operator);
	literal_add(q->sql, text);
	buf_z(q->sql, is_of(f, "uuid") ? "::pg_catalog.uuid, false)" : ", false)");
	return true;
}

static bool column_sql(struct query *q, const struct field *f, const char *operator, const json_t * value)
{
	if (json_is_string(value))
		return text_sql(q, f, operator, value);
	if (json_is_number(value) && !is_of(f, "int2|int4|int8|numeric|float4|float8"))
		return refuse(q, f, "is a column that is not compared with numbers");
	if (json_is_boolean(value) && (!is_of(f, "bool") || !is_equality(operator)))
		return refuse(q, f, "is a column that is not compared with true or false");
	buf_printf(q->sql, "coalesce(%s %s ", f->value, operator);
	constant_add(q->sql, value);
	buf_z(q->sql, ", false)");
	return true;
}

static bool null_sql(struct query *q, const struct field *f)
{
	if (f->is_document)
		buf_printf(q->sql, "coalesce((%s #>> '{}') is null, true)", f->value);
	else
		buf_printf(q->sql, "(%s is null)", f->value);
	return true;
}

static bool value_sql(struct query *q, const struct field *f, const char *operator, const json_t * value)
{
	if (json_is_object(value) || json_is_array(value))
		return refuse(q, f, "must be compared with text, a number, true, false or null");
	if (json_is_null(value))
		return is_equality(operator) ? null_sql(q, f) : refuse(q, f, "is neither before nor after null");
	if (f->is_document)
		return document_sql(q, f, operator, value);
	return column_sql(q, f, operator, value);
}

/* --- conditions */

static bool any_value_sql(struct query *q, const struct field *f, const json_t *list)
{
	bool valid = true;
	buf_z(q->sql, "(false");
	for (size_t i = 0; valid && i < json_array_size(list); i++) {
		buf_z(q->sql, " or ");
		valid = value_sql(q, f, "=", json_array_get(list, i));
	}
	buf_z(q->sql, ")");
	return valid;
}

static bool exists_sql(struct query *q, const struct field *f, const json_t *value)
{
	bool absent =
	        json_is_false(value) || json_is_null(value) || (json_is_number(value) && json_number_value(value) == 0);
	buf_printf(q->sql, "(%s is %snull)", f->value, absent ? "" : "not ");
	return true;
}

static bool operator_sql(struct query *q, const struct field *f, const char *name, const json_t *value)
{
	static const char *const ordered[][2] = {{"$gt", ">"}, {"$gte", ">="}, {"$lt", "<"}, {"$lte", "<="}};
	for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
		if (strcmp(name, ordered[i][0]) == 0)
			return value_sql(q, f, ordered[i][1], value);
	bool negative = str_is_one_of("$ne|$nin|$not", str_of(name));
	bool valid;
	buf_z(q->sql, negative ? "(not " : "(");
	if (str_is_one_of("$in|$nin", str_of(name)))
		valid = any_value_sql(q, f, value);
	else if (str_is_one_of("$eq|$ne", str_of(name)))
		valid = value_sql(q, f, "=", value);
	else if (strcmp(name, "$exists") == 0)
		valid = exists_sql(q, f, value);
	else if (strcmp(name, "$not") == 0)
		valid = condition_sql(q, f, value);
	else
		valid = refuse(q, f, "must be compared by $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists or $not");
	buf_z(q->sql, ")");
	return valid;
}

/* A value that it equals, or operators, all of which hold. */
static bool condition_sql(struct query *q, const struct field *f, const json_t *want)
{
	bool valid = true;
	const char *name, *between = "";
	json_t *value;
	if (!json_is_object(want))
		return value_sql(q, f, "=", want);
	buf_z(q->sql, json_object_size(want) ? "(" : "(true");
	json_object_foreach((json_t *)(uintptr_t)want, name, value)
	{
		buf_z(q->sql, between);
		valid = valid && operator_sql(q, f, name, value);
		between = " and ";
	}
	buf_z(q->sql, ")");
	return valid;
}

static bool field_sql(struct query *q, struct str name, const json_t *want)
{
	struct str rest;
	struct field f = {.name = name, .column = pg_lake_field(q->columns, q->count, name, &rest)};
	struct buf value = {0};
	if (!f.column)
		return refuse(q, &f, "is no column of the table");
	f.is_document = is_of(&f, "json|jsonb");
	if (rest.n && !f.is_document)
		return refuse(q, &f, "is no field of a json or jsonb column");
	if (f.is_document) {
		buf_printf(&value, "(%s #> array[", f.column->quoted);
		pg_lake_path_sql(rest, &value);
		buf_z(&value, "]::pg_catalog.text[])");
	} else {
		buf_z(&value, f.column->quoted);
	}
	buf_c(&value, 0);
	f.value = value.p;
	bool valid = condition_sql(q, &f, want);
	buf_free(&value);
	return valid;
}

static bool list_sql(struct query *q, const char *name, const json_t *list)
{
	bool valid = true, all = strcmp(name, "$and") == 0;
	buf_z(q->sql, strcmp(name, "$nor") == 0 ? "(not (false" : all ? "((true" : "((false");
	for (size_t i = 0; valid && i < json_array_size(list); i++) {
		buf_z(q->sql, all ? " and " : " or ");
		valid = filter_sql(q, json_array_get(list, i));
	}
	buf_z(q->sql, "))");
	return valid;
}

static bool filter_sql(struct query *q, const json_t *filter)
{
	bool valid = true;
	const char *name;
	json_t *want;
	buf_z(q->sql, "(true");
	json_object_foreach((json_t *)(uintptr_t)filter, name, want)
	{
		buf_z(q->sql, " and ");
		if (valid && str_is_one_of("$and|$or|$nor", str_of(name)))
			valid = list_sql(q, name, want);
		else
			valid = valid && field_sql(q, str_of(name), want);
	}
	buf_z(q->sql, ")");
	return valid;
}

bool pg_lake_query_sql(const struct pg_lake_column *columns, size_t count, const json_t *filter, struct buf *sql,
                       struct buf *why)
{
	struct query q = {.columns = columns, .count = count, .sql = sql, .why = why};
	return filter_sql(&q, filter);
}
