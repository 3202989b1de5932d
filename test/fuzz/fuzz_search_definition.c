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

/* Another analysis of a field is of the same values, and stands behind it under a name that it shares with none. */
static void multi_hold(const struct search_definition *d, size_t i)
{
	const struct search_field *f = &d->fields[i], *before = i ? &d->fields[i - 1] : NULL;
	if (!f->multi)
		return;
	HOLDS(before && f->type == SEARCH_STRING && before->type == SEARCH_STRING && *f->multi);
	HOLDS(strcmp(f->path, before->path) == 0 && f->depth == before->depth && strstr(f->place, ".multi."));
	for (size_t j = i; j-- > 0 && d->fields[j].multi && strcmp(d->fields[j].path, f->path) == 0;)
		HOLDS(strcmp(d->fields[j].multi, f->multi) != 0);
}

static void synonyms_hold(const struct search_definition *d)
{
	HOLDS(d->synonym_count <= SEARCH_SYNONYMS_MAX);
	for (size_t i = 0; i < d->synonym_count; i++) {
		const struct search_synonyms *s = &d->synonyms[i];
		HOLDS(*s->name && *s->table && s->language &&
		      str_starts(str_of(s->place), STR("definition.synonyms[")));
		for (size_t j = 0; j < i; j++)
			HOLDS(strcmp(d->synonyms[j].name, s->name) != 0);
	}
}

/* A configuration's name, or steps that a database reads: an object of three lists, whose tokenizer is a step. */
static void analyzer_hold(struct arena *a, const char *analyzer)
{
	if (!search_analyzer_is_steps(analyzer)) {
		HOLDS(*analyzer && strspn(analyzer, "abcdefghijklmnopqrstuvwxyz") == strlen(analyzer));
		return;
	}
	HOLDS(strlen(analyzer) <= SEARCH_ANALYZER_BYTES && !strstr(analyzer, "\\u0000"));
	json_t *steps = json_keep(a, json_loads(analyzer, 0, NULL));
	HOLDS(json_is_array(json_object_get(steps, "chars")) && json_is_array(json_object_get(steps, "words")));
	HOLDS(json_item(json_object_get(steps, "tokens"), 0).n);
}

static void patterns_hold(const struct search_definition *d)
{
	HOLDS(d->pattern_count <= SEARCH_PATTERNS_MAX);
	for (size_t i = 0; i < d->pattern_count; i++) {
		const char *text = d->patterns[i].text;
		HOLDS(*text && str_starts(str_of(d->patterns[i].place), STR("definition.analyzers[")));
		for (const char *at = strstr(text, "(?"); at; at = strstr(at + 1, "(?"))
			HOLDS(at[2] == ':' ||
			      (at > text && (at[-1] == '\\' || memchr(text, '[', (size_t)(at - text)))));
	}
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
		HOLDS(d.stored.count <= SEARCH_STORED_MAX);
		synonyms_hold(&d);
		patterns_hold(&d);
		for (size_t i = 0; i < d.field_count; i++) {
			field_hold(&d.fields[i]);
			multi_hold(&d, i);
			analyzer_hold(a, d.fields[i].language);
			analyzer_hold(a, d.fields[i].search_language);
		}
	}
	json_decref(value);
	arena_free(a);
	return 0;
}
