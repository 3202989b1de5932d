/* Views: a name for what a pipeline makes of a table, or of an earlier view, of the same database. */
#include "api/data_federation/storage.h"

#include "filter/filter.h"

#define PIPELINE_BYTES 16384
#define STAGES_MAX 32

/* A view in hand. */
struct view {
	struct storage *storage;
	const json_t *database, *body;
	size_t index;
	struct str place;
};

static void fault(const struct view *v, const char *field, struct str text)
{
	struct storage *s = v->storage;
	faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s.%s", STR_ARG(v->place), field), "%.*s",
	           STR_ARG(text));
}

static bool is_earlier(const struct view *v, struct str name)
{
	const json_t *views = json_object_get(v->database, "views");
	for (size_t i = 0; i < v->index; i++)
		if (str_eq(json_field(json_array_get(views, i), "name"), name))
			return true;
	return false;
}

static void names_check(const struct view *v)
{
	const json_t *tables = json_object_get(v->database, "collections");
	struct str name = json_field(v->body, "name"), source = json_field(v->body, "source");
	bool wildcard = json_find(tables, "name", STR("*"));
	if (!name.n || name.n > NAME_MAX_BYTES || str_is(name, "*"))
		fault(v, "name", STR("must have from 1 to 63 bytes, and not be *"));
	else if (is_earlier(v, name) || json_find(tables, "name", name))
		fault(v, "name", STR("is the name of an earlier view or of a collection of the database"));
	if (!source.n)
		fault(v, "source", STR("is required"));
	else if (!wildcard && !is_earlier(v, source) && !json_find(tables, "name", source))
		fault(v, "source", STR("names no collection and no earlier view of the database"));
}

/* --- the pipeline */

static const char *count_fault(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0 ? NULL : "must be a whole number of 0 or more";
}

/* {"field": 1, "other": "$field.name"}: what is shown. */
static const char *project_fault(const json_t *value)
{
	const char *name;
	json_t *one;
	if (!json_is_object(value) || !json_object_size(value))
		return "must be an object with one field or more";
	json_object_foreach((json_t *)(uintptr_t)value, name, one)
	{
		bool flag = json_is_boolean(one) || (json_is_integer(one) && (json_integer_value(one) | 1) == 1);
		const char *text = json_string_value(one);
		if (!flag && !(text && text[0] == '$' && text[1]))
			return "must have 0, 1, true, false or \"$FIELD\" for each field";
	}
	return NULL;
}

static const char *sort_fault(const json_t *value)
{
	const char *name;
	json_t *one;
	if (!json_is_object(value) || !json_object_size(value))
		return "must be an object with one field or more";
	json_object_foreach((json_t *)(uintptr_t)value, name, one)
	{
		if (!json_is_integer(one) || (json_integer_value(one) != 1 && json_integer_value(one) != -1))
			return "must have 1 or -1 for each field";
	}
	return NULL;
}

static const char *stage_fault(const struct view *v, const char *name, const json_t *value)
{
	const char *why = NULL;
	if (strcmp(name, "$match") == 0) {
		if (!json_is_object(value))
			return "must be an object";
		return filter_parse_ordered(json_text(v->storage->arena, value), v->storage->arena, &why) ? NULL : why;
	}
	if (strcmp(name, "$project") == 0)
		return project_fault(value);
	if (strcmp(name, "$sort") == 0)
		return sort_fault(value);
	if (strcmp(name, "$limit") == 0 || strcmp(name, "$skip") == 0)
		return count_fault(value);
	return "is not offered here: $match, $project, $sort, $limit and $skip are";
}

static void stages_check(const struct view *v, json_t *pipeline)
{
	for (size_t i = 0; i < json_array_size(pipeline); i++) {
		json_t *stage = json_array_get(pipeline, i);
		const char *name = json_object_iter_key(json_object_iter(stage));
		if (json_object_size(stage) != 1) {
			fault(v, "pipeline",
			      arena_printf(v->storage->arena, "has in stage %zu other than an object with one field",
			                   i + 1));
			continue;
		}
		const char *why = stage_fault(v, name, json_object_get(stage, name));
		if (why)
			fault(v, "pipeline",
			      arena_printf(v->storage->arena, "has in stage %zu a %.32s that %s", i + 1, name, why));
	}
}

static void pipeline_check(const struct view *v)
{
	struct str text = json_field(v->body, "pipeline");
	json_t *pipeline = NULL;
	if (text.n > PIPELINE_BYTES) {
		fault(v, "pipeline", STR("must have at most 16384 bytes"));
		return;
	}
	if (text.n)
		pipeline = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
	if (text.n && !json_is_array(pipeline))
		fault(v, "pipeline", STR("must be a JSON array of stages, as text"));
	else if (json_array_size(pipeline) > STAGES_MAX)
		fault(v, "pipeline", STR("must have at most 32 stages"));
	else
		stages_check(v, pipeline);
	json_decref(pipeline);
}

void views_check(struct storage *s, const json_t *database, struct str place)
{
	const json_t *views = json_object_get(database, "views");
	if (json_array_size(views) && !s->offered->views) {
		faults_add(s->faults, s->arena, arena_printf(s->arena, "%.*s.views", STR_ARG(place)),
		           "must not be given: the engine of this service has none");
		return;
	}
	for (size_t i = 0; i < json_array_size(views); i++) {
		struct view v = {.storage = s, .database = database, .body = json_array_get(views, i), .index = i};
		v.place = arena_printf(s->arena, "%.*s.views[%zu]", STR_ARG(place), i);
		names_check(&v);
		pipeline_check(&v);
	}
}
