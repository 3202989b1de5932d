/* Definitions of search indexes: what they come to, and the place of what is refused. */
#include "search/definition.h"

#include "base/buf.h"
#include "check.h"

static struct arena *arena;
static struct faults faults;

static struct search_definition read_of(const char *text)
{
	struct search_definition d;
	faults.count = 0;
	search_definition_read(arena, doc_json(arena, str_of(text)), "definition.", &faults, &d);
	return d;
}

/* The one fault that a definition has. */
static bool refuses(const char *text, const char *place)
{
	(void)read_of(text);
	if (faults.count == 1 && str_is(faults.list[0].path, place))
		return true;
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++)
		fprintf(stderr, "%s: %.*s\n", text, STR_ARG(faults.list[i].path));
	return false;
}

static void test_fields(void)
{
	struct search_definition d =
	        read_of("{\"analyzer\": \"lucene.german\", \"mappings\": {\"fields\": {\"title\": [{\"type\": "
	                "\"string\"}, {\"type\": "
	                "\"autocomplete\", \"minGrams\": 3}], \"tag\": {\"type\": \"token\", \"normalizer\": "
	                "\"lowercase\"}, \"doc\": "
	                "{\"type\": \"document\", \"fields\": {\"a.b\": {\"type\": \"document\", \"fields\": {\"n\": "
	                "{\"type\": "
	                "\"number\"}}}, \"text\": {\"type\": \"string\", \"analyzer\": \"lucene.english\"}}}}}}");
	CHECK(faults.count == 0 && d.field_count == 5 && !d.dynamic);
	CHECK(strcmp(d.fields[0].path, "title") == 0 && strcmp(d.fields[0].language, "german") == 0);
	CHECK(strcmp(d.fields[0].place, "definition.mappings.fields.title[0]") == 0);
	CHECK(d.fields[1].type == SEARCH_AUTOCOMPLETE && d.fields[1].min_grams == 3 && d.fields[1].max_grams == 15);
	CHECK(strcmp(d.fields[1].tokenization, "edgeGram") == 0);
	CHECK(d.fields[2].type == SEARCH_TOKEN && d.fields[2].lower);
	CHECK(strcmp(d.fields[3].path, "doc.a.b.n") == 0 && d.fields[3].depth == 3);
	CHECK(strcmp(d.fields[3].steps[0], "doc") == 0 && strcmp(d.fields[3].steps[1], "a.b") == 0 &&
	      strcmp(d.fields[3].steps[2], "n") == 0);
	CHECK(strcmp(d.fields[4].language, "english") == 0 && strcmp(d.fields[4].search_language, "english") == 0);
}

static void test_dynamic(void)
{
	struct search_definition d = read_of("{\"mappings\": {\"dynamic\": true}}");
	CHECK(faults.count == 0 && d.dynamic & 1u << SEARCH_STRING && d.dynamic & 1u << SEARCH_UUID);
	CHECK(!(d.dynamic & 1u << SEARCH_TOKEN) && strcmp(d.language, "simple") == 0);
	d = read_of(
	        "{\"mappings\": {\"dynamic\": {\"typeSet\": \"few\"}}, \"typeSets\": [{\"name\": \"few\", \"types\": "
	        "[{\"type\": \"number\"}]}]}");
	CHECK(faults.count == 0 && d.dynamic == 1u << SEARCH_NUMBER);
	CHECK(refuses("{\"mappings\": {\"dynamic\": {\"typeSet\": \"none\"}}}", "definition.mappings.dynamic.typeSet"));
	CHECK(refuses("{\"mappings\": {\"dynamic\": 1}}", "definition.mappings.dynamic"));
	CHECK(refuses("{\"mappings\": {\"dynamic\": false}}", "definition.mappings"));
}

#define FIELD(field) "{\"mappings\": {\"fields\": {\"a\": " field "}}}"
#define OWN "\"mappings\": {\"dynamic\": true}"

static void test_refusals(void)
{
	static const char *const bad[][2] = {
	        {FIELD("1"), "definition.mappings.fields.a"},
	        {FIELD("{\"type\": \"geo\"}"), "definition.mappings.fields.a.type"},
	        {FIELD("{\"type\": \"knnVector\"}"), "definition.mappings.fields.a.type"},
	        {FIELD("{}"), "definition.mappings.fields.a.type"},
	        {FIELD("{\"type\": \"string\", \"multi\": []}"), "definition.mappings.fields.a.multi"},
	        {FIELD("{\"type\": \"string\", \"multi\": {\"b\": {\"type\": \"number\"}}}"),
	         "definition.mappings.fields.a.multi.b"},
	        {FIELD("{\"type\": \"string\", \"multi\": {\"b\": {\"type\": \"string\", \"multi\": {}}}}"),
	         "definition.mappings.fields.a.multi.b"},
	        {FIELD("{\"type\": \"string\", \"norms\": \"omit\"}"), "definition.mappings.fields.a.norms"},
	        {FIELD("{\"type\": \"string\", \"analyzer\": \"lucene.klingon\"}"),
	         "definition.mappings.fields.a.analyzer"},
	        {FIELD("{\"type\": \"string\", \"analyzer\": \"own\"}"), "definition.mappings.fields.a.analyzer"},
	        {FIELD("{\"type\": \"string\", \"analyzer\": \"lucene.kuromoji\"}"),
	         "definition.mappings.fields.a.analyzer"},
	        {FIELD("{\"type\": \"token\", \"normalizer\": \"upper\"}"), "definition.mappings.fields.a.normalizer"},
	        {FIELD("{\"type\": \"autocomplete\", \"minGrams\": 9, \"maxGrams\": 3}"),
	         "definition.mappings.fields.a.minGrams"},
	        {FIELD("{\"type\": \"autocomplete\", \"maxGrams\": 0}"), "definition.mappings.fields.a.maxGrams"},
	        {FIELD("{\"type\": \"autocomplete\", \"tokenization\": \"x\"}"),
	         "definition.mappings.fields.a.tokenization"},
	        {FIELD("{\"type\": \"document\"}"), "definition.mappings.fields.a.fields"},
	        {FIELD("{\"type\": \"document\", \"dynamic\": true, \"fields\": {\"b\": {\"type\": \"number\"}}}"),
	         "definition.mappings.fields.a.dynamic"},
	        {FIELD("[{\"type\": \"number\"}, {\"type\": \"number\"}]"), "definition.mappings.fields.a[1]"},
	        {"{" OWN ", \"numPartitions\": 2}", "definition.numPartitions"},
	        {"{" OWN ", \"analyzers\": [{}]}", "definition.analyzers[0].name"},
	        {"{" OWN ", \"analyzers\": [{\"name\": \"a\", \"tokenizer\": {}}]}",
	         "definition.analyzers[0].tokenizer.type"},
	        {"{" OWN ", \"synonyms\": [{}]}", "definition.synonyms[0].name"},
	        {"{" OWN ", \"storedSource\": 1}", "definition.storedSource"},
	        {"{" OWN ", \"storedSource\": {\"include\": [\"a\"], \"exclude\": [\"b\"]}}",
	         "definition.storedSource"},
	        {"{" OWN ", \"storedSource\": {\"include\": [\"a\", 1]}}", "definition.storedSource.include[1]"},
	        {"{" OWN ", \"sort\": {\"a\": 1}}", "definition.sort"},
	        {"{" OWN ", \"searchAnalyzer\": \"lucene.thai\"}", "definition.searchAnalyzer"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(refuses(bad[i][0], bad[i][1]));
}

static void test_analyzers(void)
{
	struct search_definition d = read_of(
	        "{\"analyzers\": [{\"name\": \"own\", \"tokenizer\": {\"type\": \"keyword\"}}], \"mappings\": "
	        "{\"fields\": "
	        "{\"a\": {\"type\": \"string\", \"analyzer\": \"own\", \"searchAnalyzer\": \"lucene.english\"}}}}");
	CHECK(faults.count == 0 && d.field_count == 1 && search_analyzer_is_steps(d.fields[0].language));
	CHECK(strcmp(d.fields[0].search_language, "english") == 0);
}

static void test_stored(void)
{
	struct search_definition d = read_of("{" OWN ", \"storedSource\": {\"include\": [\"a\", \"b\"]}}");
	CHECK(faults.count == 0 && d.stored.there && !d.stored.excluded && d.stored.count == 2);
	CHECK(strcmp(d.stored.columns[1], "b") == 0);
	d = read_of("{" OWN ", \"storedSource\": {\"exclude\": [\"a\"]}}");
	CHECK(faults.count == 0 && d.stored.there && d.stored.excluded && d.stored.count == 1);
	d = read_of("{" OWN ", \"storedSource\": true}");
	CHECK(faults.count == 0 && d.stored.there && d.stored.excluded && d.stored.count == 0);
	d = read_of("{" OWN ", \"storedSource\": false}");
	CHECK(faults.count == 0 && !d.stored.there);
}

/* Ten thousand fields, and documents in documents, are one fault each. */
static void test_bounds(void)
{
	struct buf b = {0};
	buf_z(&b, "{\"mappings\": {\"fields\": {");
	for (int i = 0; i < 10000; i++)
		buf_printf(&b, "%s\"f%d\": {\"type\": \"number\"}", i ? ", " : "", i);
	buf_z(&b, "}}}");
	struct search_definition d = read_of(arena_z(arena, buf_view(&b)));
	CHECK(faults.count == 1 && d.field_count == SEARCH_FIELDS_MAX);
	buf_free(&b);
	buf_z(&b, "{\"mappings\": {\"fields\": ");
	for (int i = 0; i < 50; i++)
		buf_z(&b, "{\"a\": {\"type\": \"document\", \"fields\": ");
	buf_z(&b, "{}");
	for (int i = 0; i < 50; i++)
		buf_z(&b, "}}");
	buf_z(&b, "}}");
	(void)read_of(arena_z(arena, buf_view(&b)));
	CHECK(faults.count == 1);
	buf_free(&b);
}

int main(void)
{
	json_setup();
	arena = arena_new();
	test_fields();
	test_dynamic();
	test_refusals();
	test_analyzers();
	test_stored();
	test_bounds();
	arena_free(arena);
	return CHECK_DONE();
}
