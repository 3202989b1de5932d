/* Databases and their tables. A name that leads elsewhere than its reader thinks is worse than a refusal: each is
 * there once, and what it names is there. */
#include "api/data_federation/storage.h"

static bool is_repeated(const json_t *list, size_t index, struct str name)
{
	for (size_t i = 0; i < index; i++)
		if (str_eq(json_field(json_array_get(list, i), "name"), name))
			return true;
	return false;
}

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f || name.p[i] == '"' || name.p[i] == '\\')
			return false;
	return name.n > 0 && name.n <= NAME_MAX_BYTES;
}

static void name_check(struct storage *s, const json_t *list, size_t index, struct str place)
{
	struct str name = json_field(json_array_get(list, index), "name");
	struct str at = arena_printf(s->arena, "%.*s.name", STR_ARG(place));
	if (!is_name(name))
		faults_add(s->faults, s->arena, at,
		           "must have from 1 to %d bytes, without quotation marks, backslashes and control characters",
		           NAME_MAX_BYTES);
	else if (is_repeated(list, index, name))
		faults_add(s->faults, s->arena, at, "is the name of an earlier one");
}

static void table_check(struct storage *s, const json_t *list, size_t index, struct str place)
{
	const json_t *table = json_array_get(list, index), *sources = json_object_get(table, "dataSources");
	bool wildcard = str_is(json_field(table, "name"), "*");
	struct str at = arena_printf(s->arena, "%.*s.dataSources", STR_ARG(place));
	name_check(s, list, index, place);
	if (!json_array_size(sources))
		faults_add(s->faults, s->arena, at, "must have one or more");
	s->sources += json_array_size(sources);
	if (s->sources > SOURCES_MAX) {
		faults_add(s->faults, s->arena, at, "must be at most %d in all collections together", SOURCES_MAX);
		return;
	}
	for (size_t i = 0; i < json_array_size(sources); i++)
		source_check(s, json_array_get(sources, i), wildcard,
		             arena_printf(s->arena, "%.*s[%zu]", STR_ARG(at), i));
}

static void database_check(struct storage *s, const json_t *list, size_t index)
{
	const json_t *database = json_array_get(list, index), *tables = json_object_get(database, "collections");
	struct str place = arena_printf(s->arena, "storage.databases[%zu]", index);
	name_check(s, list, index, place);
	s->tables += json_array_size(tables) + json_array_size(json_object_get(database, "views"));
	if (s->tables > TABLES_MAX) {
		faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s.collections", STR_ARG(place)),
		           "must be at most %d in all databases together, with the views", TABLES_MAX);
		return;
	}
	for (size_t i = 0; i < json_array_size(tables); i++)
		table_check(s, tables, i, arena_printf(s->arena, "%.*s.collections[%zu]", STR_ARG(place), i));
	views_check(s, database, place);
}

void storage_check(const json_t *body, const struct engine_federation_ops *offered, struct arena *a,
                   struct faults *faults)
{
	struct storage s = {.body = body, .arena = a, .faults = faults, .offered = offered};
	const json_t *databases = json_object_get(body, "databases");
	stores_check(&s);
	if (faults_too_many(faults, a, STR("storage.databases"), databases, DATABASES_MAX))
		return;
	for (size_t i = 0; i < json_array_size(databases); i++)
		database_check(&s, databases, i);
}
