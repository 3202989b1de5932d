/* A pipeline becomes a SELECT over a SELECT for each stage, which the server's planner makes one of, so that what
 * it can is done by the clusters. $match is compiled as the queries of online archives are (lake/query.c). */
#include "engine/postgres/federation/views.h"

#include "base/arena.h"
#include "base/json.h"
#include "engine/postgres/lake/query.h"
#include "filter/filter.h"

#include <errno.h>
#include <jansson.h>

#define STAGES_MAX 50
#define SQL_MAX (1 << 20)

struct view {
	struct arena *arena;
	struct pg_view_columns columns;
	struct buf sql; /* what the stages so far are */
	unsigned stage;
	const char *why;
};

static bool fail(struct view *v, const char *words)
{
	if (!v->why)
		v->why = arena_printf(v->arena, "pipeline[%u]: %s", v->stage, words).p;
	return false;
}

static void columns_add(struct buf *b, const struct pg_view_columns *c)
{
	for (size_t i = 0; i < c->count; i++)
		buf_printf(b, "%s%s", i ? ", " : "", c->list[i].quoted);
}

/* What was there becomes the source of one more. */
static void stage_begin(struct view *v, struct buf *fresh)
{
	*fresh = (struct buf){0};
	buf_z(fresh, "select ");
}

static void stage_end(struct view *v, struct buf *fresh, const struct buf *behind)
{
	buf_printf(fresh, " from (%.*s) s%u", (int)v->sql.n, v->sql.p, v->stage);
	if (behind)
		buf_str(fresh, buf_view(behind));
	buf_free(&v->sql);
	v->sql = *fresh;
}

static void stage_put(struct view *v, const struct buf *behind)
{
	struct buf fresh;
	stage_begin(v, &fresh);
	columns_add(&fresh, &v->columns);
	stage_end(v, &fresh, behind);
}

static const struct pg_lake_column *column_find(const struct view *v, const char *name)
{
	for (size_t i = 0; i < v->columns.count; i++)
		if (strcmp(v->columns.list[i].name, name) == 0)
			return &v->columns.list[i];
	return NULL;
}

static const struct pg_lake_column *column_get(struct view *v, const char *name)
{
	const struct pg_lake_column *c = column_find(v, name);
	if (!c)
		fail(v, arena_printf(v->arena, "%.200s is no column", name).p);
	return c;
}

/* --- stages */

static bool match_add(struct view *v, json_t *value)
{
	const char *fault = NULL;
	struct buf behind = {0}, why = {0};
	const json_t *filter =
	        json_is_object(value) ? filter_parse_ordered(json_text(v->arena, value), v->arena, &fault) : NULL;
	if (!filter)
		return fail(v, arena_printf(v->arena, "$match %s", fault ? fault : "must be an object").p);
	buf_z(&behind, " where ");
	bool valid = pg_lake_query_sql(v->columns.list, v->columns.count, filter, &behind, &why);
	if (valid)
		stage_put(v, &behind);
	else
		fail(v, arena_z(v->arena, buf_view(&why)));
	buf_free(&behind);
	buf_free(&why);
	return valid;
}

static bool sort_add(struct view *v, json_t *value)
{
	struct buf behind = {0};
	const char *name;
	json_t *way;
	bool valid = json_is_object(value) && json_object_size(value) > 0;
	buf_z(&behind, " order by ");
	json_object_foreach(value, name, way)
	{
		const struct pg_lake_column *c = valid ? column_get(v, name) : NULL;
		json_int_t n = json_is_integer(way) ? json_integer_value(way) : 0;
		valid = valid && c && (n == 1 || n == -1);
		if (valid)
			buf_printf(&behind, "%s%s %s", behind.n > 10 ? ", " : "", c->quoted,
			           n == 1 ? "asc nulls first" : "desc nulls last");
	}
	if (valid)
		stage_put(v, &behind);
	buf_free(&behind);
	return valid || fail(v, "$sort must be {COLUMN: 1 or -1}");
}

static bool count_add(struct view *v, const char *word, json_t *value)
{
	struct buf behind = {0};
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return fail(v, "a number of rows must not be negative");
	buf_printf(&behind, " %s %lld", word, (long long)json_integer_value(value));
	stage_put(v, &behind);
	buf_free(&behind);
	return true;
}

static const char *name_quote(struct arena *a, const char *name)
{
	struct buf b = {0};
	buf_c(&b, '"');
	for (const char *p = name; *p; p++) {
		if (*p == '"')
			buf_c(&b, '"');
		buf_c(&b, *p);
	}
	buf_c(&b, '"');
	return buf_keep(&b, a).p;
}

static bool is_yes(json_t *value)
{
	return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0);
}

static bool is_no(json_t *value)
{
	return json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0);
}

/* {a: 0}: all but those. */
static bool columns_drop(struct view *v, json_t *value, struct pg_view_columns *to)
{
	const char *name;
	json_t *way;
	json_object_foreach(value, name, way) if (!column_get(v, name)) return false;
	for (size_t i = 0; i < v->columns.count; i++)
		if (!json_object_get(value, v->columns.list[i].name))
			to->list[to->count++] = v->columns.list[i];
	return to->count > 0 || fail(v, "$project leaves no column");
}

/* {a: 1, b: "$c"}: those, with these names. */
static bool columns_take(struct view *v, json_t *value, struct buf *fresh, struct pg_view_columns *to)
{
	const char *name;
	json_t *way;
	json_object_foreach(value, name, way)
	{
		const char *of = json_string_value(way);
		if (strcmp(name, "_id") == 0 && is_no(way) && !column_find(v, name))
			continue;
		if ((!of && !is_yes(way)) || (of && (of[0] != '$' || !of[1])) || !*name || strlen(name) > 63)
			return fail(v, "$project must be {COLUMN: 1}, {COLUMN: 0} or {NAME: \"$COLUMN\"}");
		const struct pg_lake_column *c = column_get(v, of ? of + 1 : name);
		if (!c)
			return false;
		struct pg_lake_column made = *c;
		made.name = arena_z(v->arena, str_of(name));
		made.quoted = name_quote(v->arena, name);
		buf_printf(fresh, "%s%s as %s", to->count ? ", " : "", c->quoted, made.quoted);
		to->list[to->count++] = made;
	}
	return to->count > 0 || fail(v, "$project leaves no column");
}

static bool project_add(struct view *v, json_t *value)
{
	const char *name;
	json_t *way;
	bool drops = true;
	if (!json_is_object(value) || !json_object_size(value))
		return fail(v, "$project must be an object");
	json_object_foreach(value, name, way) drops = drops && is_no(way);
	size_t most = v->columns.count + json_object_size(value);
	struct pg_view_columns to = {arena_new_array(v->arena, struct pg_lake_column, most + 1), 0};
	struct buf fresh;
	stage_begin(v, &fresh);
	bool valid = drops ? columns_drop(v, value, &to) : columns_take(v, value, &fresh, &to);
	if (!valid) {
		buf_free(&fresh);
		return false;
	}
	if (drops)
		columns_add(&fresh, &to);
	stage_end(v, &fresh, NULL);
	v->columns = to;
	return true;
}

static bool stage_add(struct view *v, json_t *stage)
{
	const char *word = json_object_iter_key(json_object_iter(stage));
	json_t *value = word ? json_object_get(stage, word) : NULL;
	if (!word || json_object_size(stage) != 1)
		return fail(v, "a stage must have one field");
	if (strcmp(word, "$match") == 0)
		return match_add(v, value);
	if (strcmp(word, "$project") == 0)
		return project_add(v, value);
	if (strcmp(word, "$sort") == 0)
		return sort_add(v, value);
	if (strcmp(word, "$limit") == 0 || strcmp(word, "$skip") == 0)
		return count_add(v, strcmp(word, "$skip") == 0 ? "offset" : "limit", value);
	return fail(v, arena_printf(v->arena, "%.100s is no stage of views", word).p);
}

int pg_view_sql(const char *pipeline, const char *from, const struct pg_view_columns *columns, struct arena *a,
                struct buf *sql, struct pg_view_columns *ret_columns, const char **ret_why)
{
	struct view v = {.arena = a, .columns = *columns};
	json_t *stages = json_loads(pipeline ? pipeline : "[]", 0, NULL);
	bool valid = json_is_array(stages) && json_array_size(stages) <= STAGES_MAX;
	if (!valid)
		fail(&v, "must be an array of at most 50 stages");
	buf_z(&v.sql, "select ");
	columns_add(&v.sql, columns);
	buf_printf(&v.sql, " from %s", from);
	for (size_t i = 0; valid && i < json_array_size(stages); i++) {
		v.stage = (unsigned)i;
		valid = stage_add(&v, json_array_get(stages, i)) && (v.sql.n <= SQL_MAX || fail(&v, "it is too long"));
	}
	json_decref(stages);
	if (valid) {
		buf_str(sql, buf_view(&v.sql));
		*ret_columns = v.columns;
	} else {
		*ret_why = v.why;
	}
	buf_free(&v.sql);
	return valid ? 0 : -EINVAL;
}
