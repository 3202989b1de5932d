/* Custom analyzers: the steps that they come to, and the place of what is refused. */
#include "search/analyzer.h"

#include "check.h"

static struct arena *arena;
static struct faults faults;
static struct search_analyzers found;

static void read_of(const char *text)
{
	faults.count = 0;
	search_analyzers_read(arena, json_keep(arena, json_loads(text, 0, NULL)), "analyzers", &faults, &found);
}

static const char *steps_of(const char *analyzer)
{
	bool known;
	read_of(arena_printf(arena, "[{\"name\": \"own\", %s}]", analyzer).p);
	const char *steps = search_analyzer_find(&found, STR("own"), &known);
	CHECK(known);
	return steps ? steps : "none";
}

/* The one fault that it has. */
static bool refuses(const char *analyzer, const char *place)
{
	(void)steps_of(analyzer);
	if (faults.count == 1 && str_is(faults.list[0].path, place))
		return true;
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++)
		fprintf(stderr, "%s: %.*s: %.*s\n", analyzer, STR_ARG(faults.list[i].path),
		        STR_ARG(faults.list[i].text));
	return false;
}

static void test_steps(void)
{
	CHECK(strcmp(steps_of("\"tokenizer\": {\"type\": \"standard\"}"),
	             "{\"chars\":[],\"tokens\":[\"parsed\",255],\"words\":[]}") == 0);
	CHECK(strcmp(steps_of(
	                     "\"tokenizer\": {\"type\": \"keyword\"}, \"charFilters\": [{\"type\": \"mapping\", "
	                     "\"mappings\": "
	                     "{\".\": \"\", \"ab\": \" \"}}], \"tokenFilters\": [{\"type\": \"lowercase\"}, {\"type\": "
	                     "\"flattenGraph\"}, {\"type\": \"edgeGram\", \"minGram\": 2, \"maxGram\": 5}]"),
	             "{\"chars\":[[\"map\",\"ab|\\\\.\",{\".\":\"\",\"ab\":\" "
	             "\"}]],\"tokens\":[\"whole\"],\"words\":[[\"lower\"],"
	             "[\"edges\",2,5,false]]}") == 0);
	CHECK(strcmp(steps_of("\"tokenizer\": {\"type\": \"regexCaptureGroup\", \"pattern\": \"(a+)-(b)\", \"group\": "
	                      "2}"),
	             "{\"chars\":[],\"tokens\":[\"match\",0,\"((a+)-(b))\",3],\"words\":[]}") == 0);
	CHECK(faults.count == 0 && found.pattern_count == 1 && strcmp(found.patterns[0].text, "(a+)-(b)") == 0);
	CHECK(strcmp(found.patterns[0].place, "analyzers[0].tokenizer.pattern") == 0);
	CHECK(strcmp(steps_of("\"tokenizer\": {\"type\": \"regexSplit\", \"pattern\": \"a.[.\\\\d-]\\\\.\\\\W\"}"),
	             "{\"chars\":[],\"tokens\":[\"split\",\"a[^\\\\n\\\\r\\\\u0085\\\\u2028\\\\u2029][.0-9-]\\\\.[^a-"
	             "zA-Z0-9_]\"],"
	             "\"words\":[]}") == 0);
}

#define WITH_FILTER(filter) \
	"\"tokenizer\": {\"type\": \"standard\"}, \"tokenFilters\": [{\"type\": \"lowercase\"}, " filter "]"
#define FILTER_AT "analyzers[0].tokenFilters[1]"
#define SPLIT(pattern) "\"tokenizer\": {\"type\": \"regexSplit\", \"pattern\": \"" pattern "\"}"

static void test_refusals(void)
{
	static const char *const bad[][2] = {
	        {"\"charFilters\": []", "analyzers[0].tokenizer.type"},
	        {"\"tokenizer\": {\"type\": \"icu\"}", "analyzers[0].tokenizer.type"},
	        {"\"tokenizer\": {\"type\": \"keyword\", \"maxTokenLength\": 3}",
	         "analyzers[0].tokenizer.maxTokenLength"},
	        {"\"tokenizer\": {\"type\": \"keyword\", \"\": 3}", "analyzers[0].tokenizer."},
	        {"\"tokenizer\": {\"type\": \"standard\", \"maxTokenLength\": 256}",
	         "analyzers[0].tokenizer.maxTokenLength"},
	        {"\"tokenizer\": {\"type\": \"standard\"}, \"other\": 1", "analyzers[0].other"},
	        {"\"tokenizer\": {\"type\": \"standard\"}, \"charFilters\": {}", "analyzers[0].charFilters"},
	        {"\"tokenizer\": {\"type\": \"standard\"}, \"charFilters\": [{\"type\": \"mapping\"}]",
	         "analyzers[0].charFilters[0].mappings"},
	        {"\"tokenizer\": {\"type\": \"standard\"}, \"charFilters\": [{\"type\": \"htmlStrip\", "
	         "\"ignoredTags\": "
	         "[\"a)\"]}]",
	         "analyzers[0].charFilters[0].ignoredTags[0]"},
	        {WITH_FILTER("{\"type\": \"kStemming\"}"), FILTER_AT ".type"},
	        {WITH_FILTER("{\"type\": \"wordDelimiterGraph\"}"), FILTER_AT ".type"},
	        {WITH_FILTER("{\"type\": \"daitchMokotoffSoundex\"}"), FILTER_AT ".type"},
	        {WITH_FILTER("{\"type\": \"lowercase\", \"x\": 1}"), FILTER_AT ".x"},
	        {WITH_FILTER("{\"type\": \"snowballStemming\", \"stemmerName\": \"lovins\"}"),
	         FILTER_AT ".stemmerName"},
	        {WITH_FILTER("{\"type\": \"nGram\", \"minGram\": 3, \"maxGram\": 2}"), FILTER_AT ".minGram"},
	        {WITH_FILTER("{\"type\": \"nGram\", \"minGram\": 3}"), FILTER_AT ".maxGram"},
	        {WITH_FILTER("{\"type\": \"stopword\", \"tokens\": [1]}"), FILTER_AT ".tokens"},
	        {WITH_FILTER("{\"type\": \"length\", \"min\": 9, \"max\": 3}"), FILTER_AT ".min"},
	        {WITH_FILTER("{\"type\": \"icuNormalizer\", \"normalizationForm\": \"x\"}"),
	         FILTER_AT ".normalizationForm"},
	        {WITH_FILTER("{\"type\": \"asciiFolding\", \"originalTokens\": \"x\"}"), FILTER_AT ".originalTokens"},
	        {WITH_FILTER(
	                 "{\"type\": \"regex\", \"pattern\": \"a\", \"replacement\": \"$1\", \"matches\": \"all\"}"),
	         FILTER_AT ".replacement"},
	        {WITH_FILTER("{\"type\": \"regex\", \"pattern\": \"a\", \"replacement\": \"\"}"), FILTER_AT ".matches"},
	        {SPLIT(""), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("(?=a)b"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("(a)\\\\1"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("\\\\bx"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("a*?"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("a++"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("a{x}"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("a{2"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[a[b]]"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[[:alpha:]]"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[a&&b]"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[]a]"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[a\\\\W]"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("[a"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("a\\\\"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("\\\\u12"), "analyzers[0].tokenizer.pattern"},
	        {SPLIT("***=a"), "analyzers[0].tokenizer.pattern"},
	        {"\"tokenizer\": {\"type\": \"regexCaptureGroup\", \"pattern\": \"(a)\", \"group\": 2}",
	         "analyzers[0].tokenizer.group"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK(refuses(bad[i][0], bad[i][1]));
	CHECK(strcmp(steps_of(SPLIT("[^\\\\w.-]+|\\\\u00e4{2,}(?:x|y)?")), "none") != 0 && faults.count == 0);
}

static void test_names(void)
{
	bool known;
	read_of("[{\"name\": \"a\", \"tokenizer\": {\"type\": \"keyword\"}}, {\"name\": \"a\", \"tokenizer\": "
	        "{\"type\": "
	        "\"keyword\"}}]");
	CHECK(faults.count == 1 && str_is(faults.list[0].path, "analyzers[1].name"));
	read_of("[{\"name\": \"lucene.own\", \"tokenizer\": {\"type\": \"keyword\"}}]");
	CHECK(faults.count == 1 && str_is(faults.list[0].path, "analyzers[0].name"));
	read_of("{}");
	CHECK(faults.count == 1 && str_is(faults.list[0].path, "analyzers") && found.count == 0);
	read_of("[]");
	CHECK(strcmp(search_analyzer_find(&found, STR("lucene.english"), &known), "english") == 0 && known);
	CHECK(search_analyzer_is_steps(search_analyzer_find(&found, STR("lucene.keyword"), &known)) && known);
	CHECK(!search_analyzer_find(&found, STR("lucene.thai"), &known) && !known);
	CHECK(!search_analyzer_find(&found, STR("english"), &known) && !known);
	static const char *const built_in[] = {"lucene.simple", "lucene.whitespace", "lucene.keyword", "lucene.cjk"};
	for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
		json_t *value = json_loads(search_analyzer_find(&found, str_of(built_in[i]), &known), 0, NULL);
		CHECK(json_is_object(value));
		json_decref(value);
	}
}

/* A list of words that is too long, characters that PostgreSQL does not keep, analyzers without number. */
static void test_bounds(void)
{
	json_t *tokens = json_array();
	for (int i = 0; i < 1000; i++)
		json_array_append_new(tokens, json_string("a word that is longer than most words are"));
	const char *words = arena_z(arena, json_text(arena, json_keep(arena, tokens)));
	CHECK(refuses(arena_printf(arena, WITH_FILTER("{\"type\": \"stopword\", \"tokens\": %s}"), words).p,
	              "analyzers[0]"));
	json_t *list = json_keep(arena, json_array());
	for (int i = 0; i <= SEARCH_ANALYZERS_MAX; i++)
		json_array_append_new(list, json_object());
	faults.count = 0;
	search_analyzers_read(arena, list, "analyzers", &faults, &found);
	CHECK(faults.count == 1 && found.count == 0);
}

int main(void)
{
	json_setup();
	arena = arena_new();
	test_steps();
	test_refusals();
	test_names();
	test_bounds();
	arena_free(arena);
	return CHECK_DONE();
}
