/* Printing answers: tables, entities, names, paths, and no control character anywhere. */
#include "cli/output.h"

#include "base/json.h"
#include "check.h"

static struct arena *a;

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, JSON_DECODE_ANY, &error);
	if (!value)
		fprintf(stderr, "%s: %s\n", text, error.text);
	return json_keep(a, value);
}

/* What is printed; NULL when it was refused. */
static const char *printed(const char *text, const char *const *columns, size_t count, struct output_options o)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);
	int r = output_print(out, a, parse(text), columns, count, &o);
	fclose(out);
	const char *kept = r < 0 ? NULL : arena_dup(a, (struct str){bytes, n}).p;
	free(bytes);
	return kept;
}

static bool same(const char *got, const char *wanted)
{
	bool equal = got && strcmp(got, wanted) == 0;
	if (!equal)
		fprintf(stderr, "got\n%s\nwanted\n%s\n", got ? got : "(refused)", wanted);
	return equal;
}

#define TWO                                                                                                 \
	"{\"results\": [{\"id\": \"1\", \"stateName\": \"IDLE\", \"name\": \"a\", \"deep\": {\"x\": [7]}}," \
	"{\"id\": \"22\", \"name\": \"bcd\", \"stateName\": \"CREATING\"}], \"totalCount\": 2}"

static void test_tables(void)
{
	static const char *const columns[] = {"name", "deep.x.0", "stateName"};
	struct output_options o = {.form = OUTPUT_TABLE};
	CHECK(same(printed(TWO, columns, 3, o), "NAME  X  STATE_NAME\n"
	                                        "a     7  IDLE\n"
	                                        "bcd   -  CREATING\n"));
	CHECK(same(printed(TWO, NULL, 0, o), "NAME  ID  STATE_NAME\n"
	                                     "a     1   IDLE\n"
	                                     "bcd   22  CREATING\n"));
	CHECK(same(printed("[\"x\", 2, null]", NULL, 0, o), "x\n2\n-\n"));
	CHECK(same(printed("[]", columns, 3, o), ""));
	CHECK(same(printed("{\"results\": []}", NULL, 0, o), ""));
	CHECK(same(printed("[{\"name\": \"\\u00e9t\\u00e9\", \"b\": 1}, {\"name\": \"longer\"}]", NULL, 0, o),
	           "NAME    B\n\u00e9t\u00e9     1\nlonger  -\n"));
	CHECK(same(printed("[{\"a\": {}}, {\"a\": {}}]", NULL, 0, o), "{\"a\":{}}\n{\"a\":{}}\n"));
}

static void test_few_columns(void)
{
	struct output_options o = {.form = OUTPUT_TABLE};
	const char *text =
	        printed("[{\"zId\": 1, \"h\": 2, \"g\": 3, \"f\": 4, \"e\": 5, \"id\": 6, \"name\": 7}]", NULL, 0, o);
	CHECK(same(text, "NAME  ID  H  G  F  E\n7     6   2  3  4  5\n"));
}

static void test_entities(void)
{
	struct output_options o = {.form = OUTPUT_TABLE};
	CHECK(same(
	        printed("{\"name\": \"a\", \"links\": [{\"rel\": \"self\"}], \"roles\": [\"x\", \"y\"], \"none\": [],"
	                "\"spec\": {\"size\": \"M10\", \"on\": false}, \"list\": [{\"k\": 1}], \"empty\": \"\"}",
	                NULL, 0, o),
	        "name       a\nroles      x, y\nnone       -\nspec.size  M10\nspec.on    false\nlist.0.k   1\n"
	        "empty      -\n"));
	CHECK(same(printed("\"text\"", NULL, 0, o), "text\n"));
}

static void test_names(void)
{
	static const char *const columns[] = {"eventTypeName"};
	struct output_options o = {.form = OUTPUT_NAME};
	CHECK(same(printed(TWO, NULL, 0, o), "a\nbcd\n"));
	CHECK(same(printed("{\"id\": \"5\", \"x\": 1}", NULL, 0, o), "5\n"));
	CHECK(same(printed("[{\"eventTypeName\": \"E\"}]", columns, 1, o), "E\n"));
	CHECK(same(printed("[{\"x\": 1}]", NULL, 0, o), ""));
}

static void test_queries(void)
{
	struct output_options o = {.form = OUTPUT_TABLE, .query = "results.*.name"};
	CHECK(same(printed(TWO, NULL, 0, o), "a\nbcd\n"));
	o.query = "results.1.stateName";
	CHECK(same(printed(TWO, NULL, 0, o), "CREATING\n"));
	o.query = "results.*.deep.x.*";
	o.form = OUTPUT_JSON;
	CHECK(same(printed(TWO, NULL, 0, o), "[\n  [\n    7\n  ]\n]\n"));
	o.query = "results.2.name";
	CHECK(!printed(TWO, NULL, 0, o));
	o.query = "results.x";
	CHECK(!printed(TWO, NULL, 0, o));
	o.query = "totalCount.x";
	CHECK(!printed(TWO, NULL, 0, o));
}

static void test_colours(void)
{
	struct output_options o = {.form = OUTPUT_TABLE, .colour = true};
	CHECK(same(
	        printed("[{\"name\": \"a\", \"state\": \"IDLE\"}, {\"name\": \"IDLE\", \"state\": \"x\"}]", NULL, 0, o),
	        "\033[1mNAME\033[0m  \033[1mSTATE\033[0m\na     \033[32mIDLE\033[0m\nIDLE  x\n"));
}

/* Everything that a terminal could take for a command, in each form. */
static void test_control_characters(void)
{
	static const char bad[] =
	        "[{\"na\\u001bme\": \"x\\u001b[2J\\u009b31m\\u0007\\u007f\\r\\ny\", \"name\": \"\\u0085\"}]";
	for (int form = OUTPUT_TABLE; form <= OUTPUT_NAME; form++) {
		struct output_options o = {.form = (enum output_form)form};
		const char *text = printed(bad, NULL, 0, o);
		CHECK(text && *text);
		for (const unsigned char *p = (const unsigned char *)text; p && *p; p++)
			CHECK(*p == '\n' || (*p >= 0x20 && *p != 0x7f && !(*p == 0xc2 && p[1] < 0xa0)));
		/* An entity's own names, too. */
		o.query = "0";
		text = printed(bad, NULL, 0, o);
		for (const unsigned char *p = (const unsigned char *)text; p && *p; p++)
			CHECK(*p == '\n' || (*p >= 0x20 && *p != 0x7f && !(*p == 0xc2 && p[1] < 0xa0)));
	}
	struct output_options o = {.form = OUTPUT_JSON};
	CHECK(json_equal(parse(printed(bad, NULL, 0, o)), parse(bad)));
}

static void test_options(void)
{
	struct output_options o = {.form = OUTPUT_NAME};
	CHECK(output_options_parse("yaml", "results.*.id", &o) == 0 && o.form == OUTPUT_YAML && !o.colour);
	CHECK(output_options_parse(NULL, NULL, &o) == 0 && o.form == OUTPUT_TABLE && !o.query);
	CHECK(output_options_parse("csv", NULL, &o) < 0);
	CHECK(output_options_parse("json", "", &o) < 0);
	CHECK(output_options_parse("json", "a..b", &o) < 0);
	CHECK(output_options_parse("json", ".a", &o) < 0);
	CHECK(output_options_parse("json", "a.", &o) < 0);
	CHECK(o.form == OUTPUT_TABLE);
}

int main(void)
{
	json_setup();
	a = arena_new();
	test_tables();
	test_few_columns();
	test_entities();
	test_names();
	test_queries();
	test_colours();
	test_control_characters();
	test_options();
	arena_free(a);
	return CHECK_DONE();
}
