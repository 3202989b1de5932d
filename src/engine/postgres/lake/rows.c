/* A condition is evaluated for every row of a tenant's table, so it must not fail for any: texts are looked at before
 * they are taken for a number or a time, within one CASE, since AND promises no order. It runs as the service's own
 * role, so it has nothing but operators and functions of PostgreSQL's own, and no cast that a tenant could have made:
 * values of tenants' types become text by format(), which asks the type's own output. */
#include "engine/postgres/lake/rows.h"

#include "base/clock.h"

#define DIGITS_MAX 38 /* of a number in a file */
#define MODIFIER_HEAD 4

static bool is_of(const struct pg_lake_column *c, const char *types)
{
	return c->ours && str_is_one_of(types, str_of(c->type));
}

/* --- dates */

static const char *const wants[] = {
        [DATE_ISO] =
                "must be a column of type timestamp, timestamptz, date or text, or a field of a json or jsonb column",
        [DATE_SECONDS] = "must be a column of numbers, or a field of a json or jsonb column",
        [DATE_MILLIS] = "must be a column of numbers, or a field of a json or jsonb column",
        [DATE_NANOS] = "must be a column of numbers, or a field of a json or jsonb column",
        [DATE_OBJECT_ID] = "must be a column of type text or bytea, or a field of a json or jsonb column"};

static int64_t number_of(const struct pg_lake_age *age)
{
	int64_t seconds = age->before_ms / 1000;
	switch (age->format) {
	case DATE_MILLIS: return age->before_ms;
	case DATE_NANOS: return age->before_ms * 1000000;
	default: return seconds;
	}
}

/* `value` is an expression whose type is text. Times are compared to the second, since fractions may or may not be
 * written. */
static void text_sql(const char *value, const struct pg_lake_age *age, struct buf *sql)
{
	char time[CLOCK_TEXT];
	clock_format(age->before_ms, time);
	switch (age->format) {
	case DATE_ISO:
		buf_printf(sql,
		           "(case when %s ~ "
		           "'^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?(Z|[+]00:00)$' then "
		           "left(%s, 19) collate \"C\" < '%.19s' end)",
		           value, value, time);
		break;
	case DATE_OBJECT_ID:
		buf_printf(sql,
		           "(case when %s ~ '^[0-9a-fA-F]{24}$' then lower(left(%s, 8)) collate \"C\" < '%08x' end)",
		           value, value, (unsigned)number_of(age));
		break;
	default:
		buf_printf(
		        sql,
		        "(case when %s ~ '^-?[0-9]{1,30}(\\.[0-9]{1,30})?$' then (%s)::pg_catalog.numeric < %lld end)",
		        value, value, (long long)number_of(age));
	}
}

/* A value that is no text. */
static bool value_sql(const struct pg_lake_column *c, const struct pg_lake_age *age, struct buf *sql)
{
	char time[CLOCK_TEXT];
	clock_format(age->before_ms, time);
	if (age->format == DATE_ISO && is_of(c, "timestamptz|timestamp|date"))
		buf_printf(sql, "(isfinite(%s) and %s < '%s'::pg_catalog.%s)", c->quoted, c->quoted, time, c->type);
	else if (age->format == DATE_OBJECT_ID && is_of(c, "bytea"))
		buf_printf(sql, "(length(%s) = 12 and substring(%s from 1 for 4) < '\\x%08x'::pg_catalog.bytea)",
		           c->quoted, c->quoted, (unsigned)number_of(age));
	else if (age->format != DATE_ISO && age->format != DATE_OBJECT_ID &&
	         is_of(c, "int2|int4|int8|numeric|float4|float8"))
		buf_printf(sql, "(%s < %lld)", c->quoted, (long long)number_of(age));
	else
		return false;
	return true;
}

bool pg_lake_age_sql(const struct pg_lake_column *c, const struct pg_lake_age *age, struct buf *sql,
                     const char **ret_why)
{
	struct buf text = {0};
	bool is_text = age->path ? is_of(c, "json|jsonb")
	                         : is_of(c, "text|varchar|bpchar") &&
	                                   (age->format == DATE_ISO || age->format == DATE_OBJECT_ID);
	/* No ObjectId is from before 1970. */
	if (age->format == DATE_OBJECT_ID && age->before_ms < 0)
		buf_z(sql, "(false)");
	else if (is_text) {
		if (age->path)
			buf_printf(&text, "(%s #>> array[%s]::pg_catalog.text[])", c->quoted, age->path);
		else
			buf_printf(&text, "%s::pg_catalog.text", c->quoted);
		buf_c(&text, 0);
		text_sql(text.p, age, sql);
		buf_free(&text);
	} else if (age->path || !value_sql(c, age, sql)) {
		*ret_why = wants[age->format];
		return false;
	}
	return true;
}

/* --- values */

/* Those that are sent as they are. */
static const char *const types[][2] = {
        {"bool", "boolean"},
        {"int2", "smallint"},
        {"int4", "integer"},
        {"int8", "bigint"},
        {"float4", "real"},
        {"float8", "double precision"},
        {"date", "date"},
        {"time", "time"},
        {"uuid", "uuid"},
        {"timestamp", "timestamp"},
        {"timestamptz", "timestamptz"},
        {"bytea", "bytea"},
        {"text", "text"},
        {"varchar", "text"},
        {"bpchar", "text"},
        {"json", "text"},
};

/* numeric(DIGITS, PLACES), as the server keeps the two. A file has no more places than digits, and none below zero. */
static bool decimal_read(const struct pg_lake_column *c, unsigned *ret_digits, unsigned *ret_places)
{
	if (!is_of(c, "numeric") || c->modifier < MODIFIER_HEAD)
		return false;
	unsigned bits = (unsigned)(c->modifier - MODIFIER_HEAD);
	*ret_digits = bits >> 16 & 0xffffu;
	*ret_places = bits & 0x7ffu;
	return *ret_digits <= DIGITS_MAX && *ret_places <= *ret_digits;
}

void pg_lake_value_sql(const struct pg_lake_column *c, struct buf *sql, char ret_type[PG_LAKE_TYPE])
{
	unsigned digits, places;
	for (size_t i = 0; c->ours && i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i][0], c->type) == 0) {
			snprintf(ret_type, PG_LAKE_TYPE, "%s", types[i][1]);
			buf_z(sql, c->quoted);
			return;
		}
	if (decimal_read(c, &digits, &places))
		snprintf(ret_type, PG_LAKE_TYPE, "decimal(%u,%u)", digits, places);
	else
		snprintf(ret_type, PG_LAKE_TYPE, "text");
	/* The question about NULL is one about the whole value, also of a row of nothing but NULLs. */
	buf_printf(sql, "case when %s is distinct from null then format('%%s', %s) end", c->quoted, c->quoted);
}

void pg_lake_fits_sql(const struct pg_lake_column *c, struct buf *sql)
{
	unsigned digits, places;
	if (decimal_read(c, &digits, &places))
		buf_printf(sql, " and (%s is null or %s <> 'NaN')", c->quoted, c->quoted);
	else if (is_of(c, "timestamp|timestamptz"))
		buf_printf(sql, " and (%s is null or not isfinite(%s) or %s < '294247-01-01')", c->quoted, c->quoted,
		           c->quoted);
}
