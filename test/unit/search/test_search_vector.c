/* Definitions of indexes of vectors: what they come to, and the place of what is refused. */
#include "search/vector.h"

#include "check.h"

#define VECTOR "{\"type\": \"vector\", \"path\": \"v\", \"numDimensions\": 3, \"similarity\": \"cosine\"}"
#define FIELDS(text) "{\"fields\": [" text "]}"

static struct arena *arena;
static struct faults faults;

static struct search_vector read_of(const char *text)
{
	struct search_vector v;
	faults.count = 0;
	search_vector_read(arena, doc_json(arena, str_of(text)), "definition.", &faults, &v);
	return v;
}

/* The one fault that a definition has. */
static bool refuses(const char *text, const char *place)
{
	(void)read_of(text);
	return faults.count == 1 && str_is(faults.list[0].path, place);
}

static void test_fields(void)
{
	struct search_vector v = read_of(FIELDS("{\"type\": \"filter\", \"path\": \"a.b\"}, " VECTOR));
	CHECK(faults.count == 0 && strcmp(v.path, "v") == 0 && v.dimensions == 3 &&
	      strcmp(v.similarity, "cosine") == 0);
	CHECK(strcmp(v.place, "definition.fields[1]") == 0 && v.filter_count == 1);
	CHECK(v.filters[0].depth == 2 && strcmp(v.filters[0].path, "a.b") == 0);
	CHECK(strcmp(v.filters[0].steps[0], "a") == 0 && strcmp(v.filters[0].steps[1], "b") == 0);
}

static void test_kinds(void)
{
	CHECK(search_is_vector(doc_json(arena, STR(FIELDS(VECTOR)))));
	CHECK(!search_is_vector(doc_json(arena, STR("{\"mappings\": {}, \"fields\": []}"))));
	CHECK(!search_is_vector(doc_json(arena, STR("{}"))));
}

static void test_refusals(void)
{
	CHECK(refuses(FIELDS(""), "definition.fields"));
	CHECK(refuses(FIELDS("3"), "definition.fields[0].type"));
	CHECK(refuses(FIELDS(VECTOR ", " VECTOR), "definition.fields[1]"));
	CHECK(refuses(FIELDS(VECTOR ", {\"type\": \"filter\", \"path\": \"\"}"), "definition.fields[1].path"));
	CHECK(refuses(FIELDS(VECTOR ", {\"type\": \"filter\", \"path\": \"a.b.c.d.e.f.g.h.i.j.k\"}"),
	              "definition.fields[1].path"));
	CHECK(refuses("{\"nestedRoot\": \"a\", \"fields\": [" VECTOR "]}", "definition.nestedRoot"));
	CHECK(refuses("{\"storedSource\": {\"include\": []}, \"fields\": [" VECTOR "]}", "definition.storedSource"));
}

int main(void)
{
	json_setup();
	arena = arena_new();
	test_fields();
	test_kinds();
	test_refusals();
	arena_free(arena);
	return CHECK_DONE();
}
