/* The reference's schemas say little of which fields belong together: here is the rest. Whether the table has such
 * columns is asked of the database (calls.c). */
#include "api/archives/rules.h"

#include "api/archives/schedule.h"
#include "base/json.h"
#include "filter/filter.h"

#define DATABASE_BYTES 63
#define TABLE_BYTES 127 /* a schema, a dot and a table */
#define FIELD_BYTES 700
#define QUERY_BYTES 8192
#define DAYS_MAX 36500
#define PARTITIONS_MAX 4

static void name_check(const json_t *archive, const char *field, size_t most, struct arena *a, struct faults *faults)
{
	struct str name = json_field(archive, field);
	if (!name.n || name.n > most)
		faults_add(faults, a, str_of(field), "must have from 1 to %zu bytes", most);
}

/* --- criteria */

static void date_check(const json_t *criteria, struct arena *a, struct faults *faults)
{
	const json_t *days = json_object_get(criteria, "expireAfterDays");
	struct str field = json_field(criteria, "dateField");
	if (!field.n || field.n > FIELD_BYTES)
		faults_add(faults, a, STR("criteria.dateField"), "must have from 1 to %d bytes", FIELD_BYTES);
	if (!days)
		faults_add(faults, a, STR("criteria.expireAfterDays"), "is required where the type is DATE");
	else if (json_integer_value(days) < 0 || json_integer_value(days) > DAYS_MAX)
		faults_add(faults, a, STR("criteria.expireAfterDays"), "must be from 0 to %d", DAYS_MAX);
}

static void query_check(const json_t *criteria, struct arena *a, struct faults *faults)
{
	struct str query = json_field(criteria, "query");
	const char *fault;
	if (!query.n || query.n > QUERY_BYTES)
		faults_add(faults, a, STR("criteria.query"), "must have from 1 to %d bytes", QUERY_BYTES);
	else if (!filter_parse_ordered(query, a, &fault))
		faults_add(faults, a, STR("criteria.query"), "%s", fault);
}

static bool is_by_date(const json_t *archive)
{
	return str_is(json_field(json_object_get(archive, "criteria"), "type"), "DATE");
}

static void criteria_check(const json_t *archive, struct arena *a, struct faults *faults)
{
	const json_t *criteria = json_object_get(archive, "criteria");
	if (!json_field(criteria, "type").n)
		faults_add(faults, a, STR("criteria.type"), "is required: DATE or CUSTOM");
	else if (is_by_date(archive))
		date_check(criteria, a, faults);
	else if (str_is(json_field(archive, "collectionType"), "TIMESERIES"))
		faults_add(faults, a, STR("criteria.type"), "must be DATE where the collectionType is TIMESERIES");
	else
		query_check(criteria, a, faults);
}

/* --- the rest */

static bool is_repeated(const json_t *list, size_t index, struct str name)
{
	for (size_t i = 0; i < index; i++)
		if (str_eq(json_field(json_array_get(list, i), "fieldName"), name))
			return true;
	return false;
}

/* Each place is taken once: then no field lacks one, and none is too large. */
static bool is_place_taken(const json_t *list, size_t index, json_int_t place)
{
	for (size_t i = 0; i < index; i++)
		if (json_number(json_array_get(list, i), "order") == place)
			return true;
	return false;
}

static void partition_check(const json_t *list, size_t index, struct arena *a, struct faults *faults)
{
	const json_t *one = json_array_get(list, index);
	struct str name = json_field(one, "fieldName");
	json_int_t place = json_number(one, "order");
	size_t count = json_array_size(list);
	if (!name.n)
		faults_add(faults, a, arena_printf(a, "partitionFields[%zu].fieldName", index), "must not be empty");
	else if (is_repeated(list, index, name))
		faults_add(faults, a, arena_printf(a, "partitionFields[%zu].fieldName", index),
		           "repeats an earlier one");
	if (place < 0 || place >= (json_int_t)count || is_place_taken(list, index, place))
		faults_add(faults, a, arena_printf(a, "partitionFields[%zu].order", index),
		           "must be from 0 to %zu, and of no other field", count - 1);
}

static void partitions_check(const json_t *archive, struct arena *a, struct faults *faults)
{
	const json_t *list = json_object_get(archive, "partitionFields");
	if (faults_too_many(faults, a, STR("partitionFields"), list, PARTITIONS_MAX))
		return;
	for (size_t i = 0; i < json_array_size(list); i++)
		partition_check(list, i, a, faults);
}

/* A row that would end with the day on which it is archived was never worth the way. */
static void expiration_check(const json_t *archive, struct arena *a, struct faults *faults)
{
	const json_t *rule = json_object_get(archive, "dataExpirationRule");
	json_int_t days = json_number(json_object_get(archive, "criteria"), "expireAfterDays");
	if (json_object_get(rule, "expireAfterDays") && is_by_date(archive) &&
	    json_number(rule, "expireAfterDays") <= days)
		faults_add(faults, a, STR("dataExpirationRule.expireAfterDays"),
		           "must be more than criteria.expireAfterDays, which is %lld", (long long)days);
}

void archive_rules_check(const json_t *archive, struct arena *a, struct faults *faults)
{
	const json_t *schedule = json_object_get(archive, "schedule");
	name_check(archive, "dbName", DATABASE_BYTES, a, faults);
	name_check(archive, "collName", TABLE_BYTES, a, faults);
	criteria_check(archive, a, faults);
	partitions_check(archive, a, faults);
	if (schedule)
		archive_schedule_check(schedule, a, faults);
	if (!faults->count)
		expiration_check(archive, a, faults);
}

/* Rows by a date that is a column are sorted by it, so that readers of a file can leave out what is too old or new. */
static void partitions_complete(json_t *archive, const json_t *criteria)
{
	struct str field = json_field(criteria, "dateField");
	if (json_object_get(archive, "partitionFields") || !is_by_date(archive) || !field.n ||
	    memchr(field.p, '.', field.n))
		return;
	json_t *one = json_object(), *list = json_array();
	json_put_str(one, "fieldName", field);
	json_put(one, "order", json_integer(0));
	if (str_is(json_field(criteria, "dateFormat"), "ISODATE"))
		json_put_z(one, "fieldType", "date");
	else if (str_is(json_field(criteria, "dateFormat"), "OBJECT_ID"))
		json_put_z(one, "fieldType", "objectId");
	json_array_append_new(list, one);
	json_put(archive, "partitionFields", list);
}

void archive_rules_complete(json_t *archive)
{
	json_t *criteria = json_object_get(archive, "criteria");
	if (is_by_date(archive))
		json_default(criteria, "dateFormat", json_string("ISODATE"));
	if (!json_object_get(archive, "schedule"))
		json_put(archive, "schedule", json_pack("{s:s}", "type", "DEFAULT"));
	if (json_object_size(json_object_get(archive, "dataExpirationRule")) == 0)
		json_object_del(archive, "dataExpirationRule");
	json_default(archive, "paused", json_false());
	partitions_complete(archive, criteria);
}

static void object_merge(json_t *archive, const json_t *change, const char *field)
{
	const json_t *given = json_object_get(change, field);
	json_t *was = json_object_get(archive, field);
	struct str type = json_field(given, "type");
	if (!given)
		return;
	if (was && (!type.n || str_eq(type, json_field(was, "type"))))
		json_merge(was, given);
	else
		json_put(archive, field, json_deep_copy(given));
}

void archive_rules_merge(json_t *archive, const json_t *change)
{
	const json_t *rule = json_object_get(change, "dataExpirationRule"), *paused = json_object_get(change, "paused");
	object_merge(archive, change, "criteria");
	object_merge(archive, change, "schedule");
	if (rule)
		json_put(archive, "dataExpirationRule", json_deep_copy(rule));
	if (paused)
		json_put(archive, "paused", json_deep_copy(paused));
	archive_rules_complete(archive);
}
