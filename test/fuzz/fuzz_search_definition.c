/* Definitions of search indexes, of text and of vectors. Any JSON object is read; what comes out is bounded, and each field has its place, a path
 * and its steps. A definition that has no fault searches something. */
#include "fuzz.h"

#include "search/definition.h"
#include "search/vector.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_setup();
	return 0;
}

static void field_hold(const struct search_field *f)
{
	HOLDS(f->type < SEARCH_TYPES && f->depth >= 1 && f->depth <= SEARCH_DEPTH_MAX);
	HOLDS(str_starts(str_of(f->place), STR("definition.mappings.fields")) && f->language && f->search_language);
	for (size_t i = 0; i < f->depth; i++)
		HOLDS(*f->steps[i]);
	HOLDS(f->type != SEARCH_AUTOCOMPLETE ||
	      (f->tokenization && f->min_grams >= 1 && f->max_grams <= SEARCH_GRAMS_MAX));
}

static void vector_hold(struct arena *a, const json_t *value)
{
	struct faults faults = {.count = 0};
	struct search_vector v;
	search_vector_read(a, value, "definition.", &faults, &v);
	HOLDS(v.filter_count <= SEARCH_FILTERS_MAX && v.dimensions <= SEARCH_DIMENSIONS_MAX);
	HOLDS(faults.count || (v.place && *v.path && *v.similarity && v.dimensions));
	for (size_t i = 0; i < v.filter_count; i++)
		HOLDS(v.filters[i].depth >= 1 && *v.filters[i].steps[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	json_t *value = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct faults faults = {.count = 0};
	struct search_definition d;
	if (json_is_object(value)) {
		vector_hold(a, value);
		search_definition_read(a, value, "definition.", &faults, &d);
		HOLDS(d.field_count <= SEARCH_FIELDS_MAX && d.language && d.search_language);
		HOLDS(faults.count || d.field_count || d.dynamic);
		for (size_t i = 0; i < d.field_count; i++)
			field_hold(&d.fields[i]);
	}
	json_decref(value);
	arena_free(a);
	return 0;
}
