/* Reads definitions from the outside in: what holds for all fields, then field by field, documents within documents
 * to a bounded depth. Options are checked against tables of what each type takes; an option that would change what a
 * search finds, and that PostgreSQL has no equal for, is refused unless it has its usual value. */
#include "search/definition.h"

#include <stdio.h>

#define NAME_BYTES 255

struct reading {
	struct arena *arena;
	struct faults *faults;
	struct search_field *fields;
	size_t count;
	bool full; /* said so already */
	const struct search_analyzers *analyzers;
	const char *language, *search_language;
};

#define FAULT(r, place, ...) faults_add((r)->faults, (r)->arena, str_of(place), __VA_ARGS__)

/* Where in the definition something stands: a document's fields know what they lie in. */
struct level {
	const struct level *above;
	const char *place; /* of the fields: "definition.mappings.fields" */
	struct str name;   /* of what they lie in */
	size_t depth;
};

static const char *place_below(struct reading *r, const char *place, const char *name)
{
	return arena_printf(r->arena, "%s%s%.80s", place, *place && place[strlen(place) - 1] != '.' ? "." : "", name).p;
}

/* --- types */

static const char *const type_names[SEARCH_TYPES] = {
        [SEARCH_STRING] = "string",      [SEARCH_NUMBER] = "number", [SEARCH_DATE] = "date",
        [SEARCH_BOOLEAN] = "boolean",    [SEARCH_TOKEN] = "token",   [SEARCH_AUTOCOMPLETE] = "autocomplete",
        [SEARCH_OBJECT_ID] = "objectId", [SEARCH_UUID] = "uuid"};

#define TYPE_WORDS "string, number, date, boolean, token, autocomplete, objectId, uuid or document"

const char *search_type_name(enum search_type type)
{
	return type_names[type];
}

static int type_find(struct str name)
{
	for (int i = 0; i < SEARCH_TYPES; i++)
		if (str_is(name, type_names[i]))
			return i;
	return -1;
}

/* --- analyzers */

/* The other one where there is none, or it is faulty. A fault of a custom analyzer was told where that stands. */
static const char *analyzer_read(struct reading *r, const json_t *object, const char *field, const char *place,
                                 const char *otherwise)
{
	const json_t *value = json_object_get(object, field);
	bool is_known = false;
	const char *found = value ? search_analyzer_find(r->analyzers, json_str_of(value), &is_known) : NULL;
	if (value && !is_known)
		FAULT(r, place_below(r, place, field),
		      "has no equal in PostgreSQL: take lucene.standard, simple, whitespace, keyword, cjk, one of its "
		      "languages (lucene.english ...), or one of the analyzers that the definition has itself");
	return found ? found : otherwise;
}

/* --- options */

struct option {
	const char *types; /* which take it: "string|token" */
	const char *name;
	const char *usual; /* JSON: the one value that it can have; NULL: it is read elsewhere */
};

static const struct option options[] = {
        {"string|token|autocomplete|number|date|boolean|objectId|uuid|document", "type", NULL},
        {"string|autocomplete", "analyzer", NULL},
        {"string", "searchAnalyzer", NULL},
        {"string", "multi", NULL},
        {"string", "indexOptions", "\"offsets\""},
        {"string", "store", "true"},
        {"string", "norms", "\"include\""},
        {"token", "normalizer", NULL},
        {"autocomplete", "tokenization", NULL},
        {"autocomplete", "minGrams", NULL},
        {"autocomplete", "maxGrams", NULL},
        {"autocomplete", "foldDiacritics", "false"},
        {"number", "representation", "\"double\""},
        {"number", "indexIntegers", "true"},
        {"number", "indexDoubles", "true"},
        {"document", "fields", NULL},
        {"document", "dynamic", "false"},
};

static const struct option *option_find(struct str type, const char *name)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		if (strcmp(options[i].name, name) == 0 && str_is_one_of(options[i].types, type))
			return &options[i];
	return NULL;
}

static void options_check(struct reading *r, const json_t *field, struct str type, const char *place)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)field, name, value)
	{
		const struct option *o = option_find(type, name);
		if (!o)
			FAULT(r, place_below(r, place, name), "is not supported in a field of the type %.*s",
			      STR_ARG(type));
		else if (o->usual && !str_is(arena_printf(r->arena, json_is_string(value) ? "\"%s\"" : "%s",
		                                          json_is_string(value)  ? json_string_value(value)
		                                          : json_is_true(value)  ? "true"
		                                          : json_is_false(value) ? "false"
		                                                                 : "?"),
		                             o->usual))
			FAULT(r, place_below(r, place, name), "must be %s, or be left out", o->usual);
	}
}

static unsigned grams_read(struct reading *r, const json_t *field, const char *name, const char *place, unsigned usual)
{
	const json_t *value = json_object_get(field, name);
	json_int_t n = json_integer_value(value);
	if (!value)
		return usual;
	if (json_is_integer(value) && n >= 1 && n <= SEARCH_GRAMS_MAX)
		return (unsigned)n;
	FAULT(r, place_below(r, place, name), "must be a whole number from 1 to %d", SEARCH_GRAMS_MAX);
	return usual;
}

static void autocomplete_read(struct reading *r, const json_t *field, const char *place, struct search_field *f)
{
	struct str word = json_field(field, "tokenization");
	if (!json_object_get(field, "tokenization"))
		word = STR("edgeGram");
	if (!str_is_one_of("edgeGram|rightEdgeGram|nGram", word)) {
		FAULT(r, place_below(r, place, "tokenization"), "must be edgeGram, rightEdgeGram or nGram");
		word = STR("edgeGram");
	}
	f->tokenization = arena_z(r->arena, word);
	f->min_grams = grams_read(r, field, "minGrams", place, 2);
	f->max_grams = grams_read(r, field, "maxGrams", place, 15);
	if (f->min_grams > f->max_grams)
		FAULT(r, place_below(r, place, "minGrams"), "must not be more than maxGrams");
	/* Grams are of words as they are written, in lower case. */
	if (strcmp(analyzer_read(r, field, "analyzer", place, "simple"), "simple") != 0)
		FAULT(r, place_below(r, place, "analyzer"), "must be lucene.standard, or be left out");
}

static void token_read(struct reading *r, const json_t *field, const char *place, struct search_field *f)
{
	struct str word = json_field(field, "normalizer");
	if (!json_object_get(field, "normalizer"))
		return;
	f->lower = str_is(word, "lowercase");
	if (!f->lower && !str_is(word, "none"))
		FAULT(r, place_below(r, place, "normalizer"), "must be lowercase or none");
}

/* --- fields */

static void steps_fill(struct reading *r, const struct level *l, struct str name, struct search_field *f)
{
	const char **steps = arena_new_array(r->arena, const char *, l->depth + 1);
	struct str path = name;
	steps[l->depth] = arena_z(r->arena, name);
	for (const struct level *at = l; at->above; at = at->above) {
		steps[at->depth - 1] = arena_z(r->arena, at->name);
		path = arena_printf(r->arena, "%.*s.%.*s", STR_ARG(at->name), STR_ARG(path));
	}
	f->steps = steps;
	f->depth = l->depth + 1;
	f->path = arena_z(r->arena, path);
}

static bool is_known(struct reading *r, const struct search_field *f)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->fields[i].path, f->path) == 0 && r->fields[i].type == f->type && !r->fields[i].multi)
			return true;
	return false;
}

/* NULL: there are too many. */
static struct search_field *field_new(struct reading *r, const char *place)
{
	if (r->count < SEARCH_FIELDS_MAX)
		return &r->fields[r->count];
	if (!r->full)
		FAULT(r, place, "is one of more than %d fields", SEARCH_FIELDS_MAX);
	r->full = true;
	return NULL;
}

/* Each analysis is a field of its own, which queries name by {"value": PATH, "multi": NAME}. */
static void multi_add(struct reading *r, const json_t *field, const struct search_field *of, const char *name,
                      const char *place)
{
	struct search_field *f = field_new(r, place);
	if (!f)
		return;
	if (!*name || strlen(name) > NAME_BYTES || !str_is(json_field(field, "type"), "string") ||
	    json_object_get(field, "multi")) {
		FAULT(r, place,
		      "must be an object of the type string with a name of 1 to %d bytes, and no multi of its own",
		      NAME_BYTES);
		return;
	}
	options_check(r, field, STR("string"), place);
	*f = *of;
	f->place = place;
	f->multi = arena_z(r->arena, str_of(name));
	f->language = analyzer_read(r, field, "analyzer", place, r->language);
	f->search_language = analyzer_read(r, field, "searchAnalyzer", place,
	                                   json_object_get(field, "analyzer") ? f->language : r->search_language);
	r->count++;
}

static void multi_read(struct reading *r, const json_t *field, size_t of, const char *place)
{
	const json_t *multi = json_object_get(field, "multi");
	const char *at = place_below(r, place, "multi"), *name;
	json_t *one;
	if (multi && !json_is_object(multi))
		FAULT(r, at, "must be an object with a field of the type string for each name");
	json_object_foreach((json_t *)(uintptr_t)multi, name, one)
	{
		if (!r->full)
			multi_add(r, one, &r->fields[of], name, place_below(r, at, name));
	}
}

static void field_add(struct reading *r, const json_t *field, const struct level *l, struct str name,
                      enum search_type type, const char *place)
{
	struct search_field *f = field_new(r, place);
	if (!f)
		return;
	*f = (struct search_field){.place = place, .type = type};
	steps_fill(r, l, name, f);
	if (is_known(r, f)) {
		FAULT(r, place, "repeats a field of the type %s with the path %.200s", type_names[type], f->path);
		return;
	}
	f->language = analyzer_read(r, field, "analyzer", place, r->language);
	bool own = json_object_get(field, "analyzer") && type == SEARCH_STRING;
	f->search_language = analyzer_read(r, field, "searchAnalyzer", place, own ? f->language : r->search_language);
	if (type == SEARCH_AUTOCOMPLETE)
		autocomplete_read(r, field, place, f);
	if (type == SEARCH_TOKEN)
		token_read(r, field, place, f);
	r->count++;
	if (type == SEARCH_STRING)
		multi_read(r, field, r->count - 1, place);
}

static void fields_read(struct reading *r, const json_t *fields, const struct level *l);

static void document_read(struct reading *r, const json_t *field, const struct level *l, struct str name,
                          const char *place)
{
	struct level below = {
	        .above = l, .place = place_below(r, place, "fields"), .name = name, .depth = l->depth + 1};
	const json_t *fields = json_object_get(field, "fields");
	if (below.depth >= SEARCH_DEPTH_MAX)
		FAULT(r, place, "lies in more than %d documents", SEARCH_DEPTH_MAX - 1);
	else if (!json_is_object(fields) || !json_object_size(fields))
		FAULT(r, place_below(r, place, "fields"), "must name the fields of the document that are searched");
	else
		fields_read(r, fields, &below);
}

static void field_read(struct reading *r, const json_t *field, const struct level *l, struct str name,
                       const char *place)
{
	struct str type = json_field(field, "type");
	int known = type_find(type);
	if (!json_is_object(field))
		FAULT(r, place, "must be an object with a type, or an array of such");
	else if (known < 0 && !str_is(type, "document"))
		FAULT(r, place_below(r, place, "type"), "must be " TYPE_WORDS);
	else {
		options_check(r, field, type, place);
		if (known < 0)
			document_read(r, field, l, name, place);
		else
			field_add(r, field, l, name, (enum search_type)known, place);
	}
}

static void fields_read(struct reading *r, const json_t *fields, const struct level *l)
{
	const char *name;
	size_t n;
	json_t *value, *one;
	json_object_keylen_foreach((json_t *)(uintptr_t)fields, name, n, value)
	{
		const char *place = place_below(r, l->place, name);
		size_t i;
		if (!n || n > NAME_BYTES || memchr(name, 0, n)) {
			FAULT(r, place, "must have a name of 1 to %d bytes", NAME_BYTES);
			continue;
		}
		if (r->full)
			return;
		struct str key = {name, n};
		if (!json_is_array(value)) {
			field_read(r, value, l, key, place);
			continue;
		}
		json_array_foreach(value, i, one)
		{
			if (r->full)
				return;
			field_read(r, one, l, key, arena_printf(r->arena, "%s[%zu]", place, i).p);
		}
	}
}

/* --- dynamic mappings */

#define ALL_TYPES \
	(1u << SEARCH_STRING | 1u << SEARCH_NUMBER | 1u << SEARCH_DATE | 1u << SEARCH_BOOLEAN | 1u << SEARCH_UUID)

static unsigned types_read(struct reading *r, const json_t *set, const char *place)
{
	const json_t *types = json_object_get(set, "types");
	unsigned found = 0;
	for (size_t i = 0; i < json_array_size(types); i++) {
		const json_t *one = json_array_get(types, i);
		int type = type_find(json_field(one, "type"));
		const char *here = arena_printf(r->arena, "%s.types[%zu]", place, i).p;
		if (type < 0 || !(ALL_TYPES & 1u << type))
			FAULT(r, place_below(r, here, "type"), "must be string, number, date, boolean or uuid");
		else if (json_object_size(one) > 1)
			FAULT(r, here, "must have its type alone: options belong to fields that are named");
		else
			found |= 1u << type;
	}
	return found;
}

static unsigned type_set_find(struct reading *r, const json_t *definition, struct str name, const char *place,
                              const char *at)
{
	const json_t *sets = json_object_get(definition, "typeSets");
	for (size_t i = 0; i < json_array_size(sets); i++)
		if (str_eq(json_field(json_array_get(sets, i), "name"), name))
			return types_read(r, json_array_get(sets, i),
			                  arena_printf(r->arena, "%stypeSets[%zu]", place, i).p);
	FAULT(r, place_below(r, at, "typeSet"), "must name one of typeSets");
	return 0;
}

static unsigned dynamic_read(struct reading *r, const json_t *definition, const char *place, const char *at)
{
	const json_t *dynamic = json_object_get(json_object_get(definition, "mappings"), "dynamic");
	if (!dynamic || json_is_boolean(dynamic))
		return json_is_true(dynamic) ? ALL_TYPES : 0;
	if (json_is_object(dynamic) && !json_object_size(dynamic))
		return ALL_TYPES;
	if (json_object_size(dynamic) == 1 && json_is_string(json_object_get(dynamic, "typeSet")))
		return type_set_find(r, definition, json_field(dynamic, "typeSet"), place, at);
	FAULT(r, at, "must be true, false, or an object with a typeSet");
	return 0;
}

/* --- synonyms */

static bool synonyms_known(const struct search_synonyms *list, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_is(name, list[i].name))
			return true;
	return false;
}

static void synonym_read(struct reading *r, const json_t *given, const char *place, struct search_synonyms *list,
                         size_t *count)
{
	struct str name = json_field(given, "name"), table = json_field(json_object_get(given, "source"), "collection");
	if (!name.n || name.n > NAME_BYTES || synonyms_known(list, *count, name))
		FAULT(r, place_below(r, place, "name"), "must be a name of 1 to %d bytes that no others have",
		      NAME_BYTES);
	else if (!table.n || table.n > NAME_BYTES)
		FAULT(r, place_below(r, place, "source.collection"), "must name a table, in at most %d bytes",
		      NAME_BYTES);
	else
		list[(*count)++] =
		        (struct search_synonyms){.place = place_below(r, place, "source.collection"),
		                                 .name = arena_z(r->arena, name),
		                                 .table = arena_z(r->arena, table),
		                                 .language = analyzer_read(r, given, "analyzer", place, r->language)};
}

static size_t synonyms_read(struct reading *r, const json_t *definition, const char *place,
                            struct search_synonyms *list)
{
	const json_t *given = json_object_get(definition, "synonyms");
	const char *at = place_below(r, place, "synonyms");
	size_t count = 0;
	if (given && (!json_is_array(given) || json_array_size(given) > SEARCH_SYNONYMS_MAX)) {
		FAULT(r, at, "must be an array of at most %d", SEARCH_SYNONYMS_MAX);
		return 0;
	}
	for (size_t i = 0; i < json_array_size(given); i++)
		synonym_read(r, json_array_get(given, i), arena_printf(r->arena, "%s[%zu]", at, i).p, list, &count);
	return count;
}

/* --- the whole */

static bool is_empty(const json_t *value)
{
	return !value || json_is_false(value) || json_is_null(value) ||
	       (json_is_object(value) && !json_object_size(value)) || (json_is_array(value) && !json_array_size(value));
}

/* true is all columns, and so is an exclusion of none; false is the same as nothing. */
static void stored_read(struct reading *r, const json_t *definition, const char *place,
                        struct search_stored *ret_stored)
{
	const json_t *given = json_object_get(definition, "storedSource"), *list = json_object_get(given, "include");
	const char *at = place_below(r, place, "storedSource");
	*ret_stored = (struct search_stored){.place = at};
	if (is_empty(given))
		return;
	ret_stored->there = true;
	ret_stored->excluded = !list;
	if (json_is_true(given))
		return;
	if (!list)
		list = json_object_get(given, "exclude");
	at = place_below(r, at, ret_stored->excluded ? "exclude" : "include");
	if (json_object_size(given) != 1 || !json_is_array(list) || json_array_size(list) > SEARCH_STORED_MAX) {
		FAULT(r, ret_stored->place, "must have either include or exclude, an array of at most %d columns",
		      SEARCH_STORED_MAX);
		return;
	}
	ret_stored->columns = arena_new_array(r->arena, const char *, json_array_size(list) + 1);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str name = json_item(list, i);
		if (name.n && name.n <= NAME_BYTES && !memchr(name.p, 0, name.n))
			ret_stored->columns[ret_stored->count++] = arena_z(r->arena, name);
		else
			FAULT(r, arena_printf(r->arena, "%s[%zu]", at, i).p, "must be a column of 1 to %d bytes",
			      NAME_BYTES);
	}
}

static void refused_check(struct reading *r, const json_t *definition, const char *place)
{
	if (!is_empty(json_object_get(definition, "sort")))
		FAULT(r, place_below(r, place, "sort"), "is not supported: rows are sorted by the query");
	const json_t *parts = json_object_get(definition, "numPartitions");
	if (parts && json_integer_value(parts) != 1)
		FAULT(r, place_below(r, place, "numPartitions"), "must be 1: an index is not divided");
}

void search_definition_read(struct arena *a, const json_t *definition, const char *place, struct faults *faults,
                            struct search_definition *ret_definition)
{
	struct reading r = {
	        .arena = a, .faults = faults, .fields = arena_new_array(a, struct search_field, SEARCH_FIELDS_MAX)};
	const json_t *mappings = json_object_get(definition, "mappings");
	const char *mappings_at = place_below(&r, place, "mappings");
	struct level top = {.place = place_below(&r, mappings_at, "fields")};
	const char *dynamic_at = place_below(&r, mappings_at, "dynamic");
	struct search_analyzers *analyzers = arena_new_of(a, struct search_analyzers);
	refused_check(&r, definition, place);
	search_analyzers_read(a, json_object_get(definition, "analyzers"), place_below(&r, place, "analyzers"), faults,
	                      analyzers);
	r.analyzers = analyzers;
	r.language = analyzer_read(&r, definition, "analyzer", place, "simple");
	r.search_language = analyzer_read(&r, definition, "searchAnalyzer", place, r.language);
	fields_read(&r, json_object_get(mappings, "fields"), &top);
	unsigned dynamic = dynamic_read(&r, definition, place, dynamic_at);
	struct search_synonyms *synonyms = arena_new_array(a, struct search_synonyms, SEARCH_SYNONYMS_MAX);
	size_t synonym_count = synonyms_read(&r, definition, place, synonyms);
	*ret_definition = (struct search_definition){.fields = r.fields,
	                                             .field_count = r.count,
	                                             .dynamic = dynamic,
	                                             .dynamic_place = dynamic_at,
	                                             .language = r.language,
	                                             .search_language = r.search_language,
	                                             .synonyms = synonyms,
	                                             .synonym_count = synonym_count,
	                                             .patterns = analyzers->patterns,
	                                             .pattern_count = analyzers->pattern_count};
	stored_read(&r, definition, place, &ret_definition->stored);
	if (!r.count && !ret_definition->dynamic && !faults->count)
		FAULT(&r, mappings_at, "must have fields, or be dynamic");
}
