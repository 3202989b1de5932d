/* See vector.h. An index has one vector: it is a B-tree over the cells of one column (decisions/0044-vectors.md). */
#include "search/vector.h"

#define PATH_BYTES 255
#define DEPTH_MAX 10

struct reading {
	struct arena *arena;
	struct faults *faults;
	struct search_vector *vector;
	struct search_filter *filters;
	size_t filter_count;
};

#define FAULT(r, place, ...) faults_add((r)->faults, (r)->arena, str_of(place), __VA_ARGS__)

static const char *below(const struct reading *r, const char *place, const char *name)
{
	return arena_printf(r->arena, "%s%s%.80s", place, *place && place[strlen(place) - 1] != '.' ? "." : "", name).p;
}

bool search_is_vector(const json_t *definition)
{
	return json_object_get(definition, "fields") && !json_object_get(definition, "mappings");
}

static void names_check(struct reading *r, const json_t *field, const char *known, const char *place)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)field, name, value) if (!str_is_one_of(known, str_of(name)))
	        FAULT(r, below(r, place, name), "is not supported");
}

static const char *word_read(struct reading *r, const json_t *field, const char *name, const char *known,
                             const char *usual, const char *place)
{
	const json_t *value = json_object_get(field, name);
	if (!value && usual)
		return usual;
	if (json_is_string(value) && str_is_one_of(known, json_str_of(value)))
		return arena_z(r->arena, json_str_of(value));
	FAULT(r, below(r, place, name), "must be one of %s", known);
	return usual ? usual : "";
}

/* The parts of a path, none of which is empty; 0: it is faulty. */
static size_t path_split(struct reading *r, const json_t *field, const char *place, const char **ret_path,
                         const char *const **ret_steps)
{
	struct str path = json_field(field, "path"), part, rest = path;
	const char **steps = arena_new_array(r->arena, const char *, DEPTH_MAX);
	size_t depth = 0;
	bool more = true, good = path.n > 0 && path.n <= PATH_BYTES && !memchr(path.p, 0, path.n);
	while (good && more) {
		more = str_cut(rest, '.', &part, &rest);
		good = part.n > 0 && depth < DEPTH_MAX;
		if (good)
			steps[depth++] = arena_z(r->arena, part);
	}
	if (!good)
		FAULT(r, below(r, place, "path"),
		      "must be a path of 1 to %d names with dots between them, of at most %d bytes", DEPTH_MAX,
		      PATH_BYTES);
	*ret_path = arena_z(r->arena, path);
	*ret_steps = steps;
	return good ? depth : 0;
}

static void vector_read(struct reading *r, const json_t *field, const char *place)
{
	const json_t *dimensions = json_object_get(field, "numDimensions");
	json_int_t n = json_integer_value(dimensions);
	const char *const *steps;
	names_check(r, field, "type|path|numDimensions|similarity|quantization", place);
	if (r->vector->place) {
		FAULT(r, place, "is a second vector: an index has one");
		return;
	}
	r->vector->place = place;
	if (path_split(r, field, place, &r->vector->path, &steps) > 1)
		FAULT(r, below(r, place, "path"), "must be a column: vectors in documents are not searched");
	if (!json_is_integer(dimensions) || n < 1 || n > SEARCH_DIMENSIONS_MAX)
		FAULT(r, below(r, place, "numDimensions"), "must be a whole number from 1 to %d",
		      SEARCH_DIMENSIONS_MAX);
	else
		r->vector->dimensions = (unsigned)n;
	r->vector->similarity = word_read(r, field, "similarity", "cosine|euclidean|dotProduct", NULL, place);
	r->vector->binary =
	        str_is(str_of(word_read(r, field, "quantization", "none|scalar|binary", "none", place)), "binary");
}

static void filter_read(struct reading *r, const json_t *field, const char *place)
{
	struct search_filter f = {.place = place};
	names_check(r, field, "type|path", place);
	f.depth = path_split(r, field, place, &f.path, &f.steps);
	for (size_t i = 0; f.depth && i < r->filter_count; i++)
		if (strcmp(r->filters[i].path, f.path) == 0) {
			FAULT(r, below(r, place, "path"), "is the path of an earlier filter");
			return;
		}
	if (r->filter_count == SEARCH_FILTERS_MAX)
		FAULT(r, place, "is one of more than %d filters", SEARCH_FILTERS_MAX);
	else if (f.depth)
		r->filters[r->filter_count++] = f;
}

static void refused_check(struct reading *r, const json_t *definition, const char *place)
{
	const json_t *stored = json_object_get(definition, "storedSource"),
	             *parts = json_object_get(definition, "numPartitions");
	if (json_is_object(stored) && json_object_size(stored))
		FAULT(r, below(r, place, "storedSource"), "is not supported: rows are returned from their table");
	if (json_object_get(definition, "nestedRoot"))
		FAULT(r, below(r, place, "nestedRoot"), "is not supported: vectors are columns");
	if (parts && json_integer_value(parts) != 1)
		FAULT(r, below(r, place, "numPartitions"), "must be 1: an index is not divided");
}

void search_vector_read(struct arena *a, const json_t *definition, const char *place, struct faults *faults,
                        struct search_vector *ret_vector)
{
	const json_t *fields = json_object_get(definition, "fields");
	struct search_vector vector = {.similarity = ""};
	struct reading r = {.arena = a,
	                    .faults = faults,
	                    .vector = &vector,
	                    .filters = arena_new_array(a, struct search_filter, SEARCH_FILTERS_MAX)};
	refused_check(&r, definition, place);
	for (size_t i = 0; i < json_array_size(fields) && faults->count < FAULTS_MAX; i++) {
		const json_t *field = json_array_get(fields, i);
		const char *at = arena_printf(a, "%sfields[%zu]", place, i).p;
		if (str_is(json_field(field, "type"), "vector"))
			vector_read(&r, field, at);
		else if (str_is(json_field(field, "type"), "filter"))
			filter_read(&r, field, at);
		else
			FAULT(&r, below(&r, at, "type"), "must be vector or filter");
	}
	if (!vector.place && !faults->count)
		FAULT(&r, below(&r, place, "fields"), "must have a field of the type vector");
	vector.filters = r.filters;
	vector.filter_count = r.filter_count;
	*ret_vector = vector;
}
