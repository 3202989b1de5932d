/* Query strings, and the gates of parameters and bodies, on hand-made rows. Links with call/query.c, call/call.c,
 * gate/parameters.c, gate/body.c and the catalog's schema files; the edge's request_header() is replaced here. */
#include "call/query.h"
#include "gate/gate.h"

#include "check.h"

const char *const schema_patterns[] = {"^([a-f0-9]{24})$", "^%2[fF]subscriptions|^[0-9.]+(%2[fF][0-9]+)?$"};
const char *const schema_pattern_rules[] = {"must be an id", "must be an address"};
const unsigned schema_pattern_count = 2;

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define PLAIN .pattern = -1

static const char *const states[] = {"\"OPEN\"", "\"CLOSED\""};
static const struct schema id = {.type = TYPE_STRING, .pattern = 0};
static const struct schema entry = {.type = TYPE_STRING, .pattern = 1};
static const struct schema state = {.type = TYPE_STRING, PLAIN, .enum_count = 2, .enums = states};
static const struct schema state_list = {.type = TYPE_ARRAY, PLAIN, .items = &state};
static const struct schema text = {.type = TYPE_STRING, PLAIN};
static const struct schema boolean = {.type = TYPE_BOOLEAN, PLAIN};
static const struct schema frozen = {.type = TYPE_STRING, PLAIN, .flags = SCHEMA_IMMUTABLE};
static const struct field body_fields[] = {{"frozen", &frozen}, {"name", &text, true}};
static const struct schema body_schema = {
        .name = "Body", .type = TYPE_OBJECT, PLAIN, .field_count = 2, .fields = body_fields};
const struct schema *const schema_all[] = {&body_schema};
const unsigned schema_all_count = 1;
const struct schema *const schema_rows = NULL;
const struct op catalog_ops[1] = {{0}};
const struct dialect catalog_dialects[1] = {{0}};
const unsigned catalog_dialect_count = 0;

static const struct param path_params[] = {{"groupId", NULL, &id, true}, {"entry", NULL, &entry, true}};
static const struct param query_params[] = {{"q", NULL, &text}, {"state", NULL, &state}, {"states", NULL, &state_list}};
static const struct param needed[] = {{"need", NULL, &boolean, true}};
static const struct param headers[] = {{"Use-Effective-Fields", NULL, &boolean}};
static const struct op_version version = {.date = "2024-08-05", .request = &body_schema};
static const struct op_version bare_version = {.date = "2024-08-05"};
static const struct op list_op = {.id = "listThings",
                                  .method = METHOD_GET,
                                  .paginated = true,
                                  .path_params = path_params,
                                  .path_param_count = 2,
                                  .query_params = query_params,
                                  .query_param_count = 3,
                                  .header_params = headers,
                                  .header_param_count = 1};
static const struct op need_op = {.id = "need", .query_params = needed, .query_param_count = 1};
static const struct op post_op = {.id = "createThing", .method = METHOD_POST, .request_required = true};
static const struct op patch_op = {.id = "updateThing", .method = METHOD_PATCH};

static struct header header_list[4];
static size_t header_count;

struct str request_header(const struct request *r, const char *name)
{
	for (size_t i = 0; i < header_count; i++)
		if (str_is(header_list[i].name, name))
			return header_list[i].value;
	return STR_NONE;
}

bool http_reserve(struct request *r, size_t bytes)
{
	return true;
}

size_t request_header_count(const struct request *r, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < header_count; i++)
		n += str_is(header_list[i].name, name);
	return n;
}

static struct arena *arena;
static struct request request;
static struct call call;

static struct call *fresh(const struct op *op)
{
	arena_reset(arena);
	request = (struct request){.arena = arena, .path = STR("/x")};
	call = (struct call){.arena = arena, .request = &request, .op = op, .version = &version};
	return &call;
}

static int parameters(const struct op *op, const char *query)
{
	struct call *c = fresh(op);
	c->params[0] = STR("0123456789abcdef01234567");
	c->params[1] = STR("10.0.0.0");
	request.query = str_of(query);
	return gate_parameters(c);
}

static bool says(const char *detail)
{
	bool same = str_is(call.problem.detail, detail);
	if (!same)
		fprintf(stderr, "  said: %.*s\n", STR_ARG(call.problem.detail));
	return same;
}

static void test_decode(void)
{
	struct str out;
	CHECK(query_decode(STR("a+b%20c%C3%A4"), arena, &out) && str_is(out, "a b c\xc3\xa4"));
	CHECK(query_decode(STR(""), arena, &out) && out.n == 0);
	CHECK(query_decode(STR("%41%2b"), arena, &out) && str_is(out, "A+"));
	CHECK(!query_decode(STR("%"), arena, &out) && !query_decode(STR("%4"), arena, &out) &&
	      !query_decode(STR("%zz"), arena, &out));
	CHECK(!query_decode(STR("%00"), arena, &out) && !query_decode(STR("%ff"), arena, &out) &&
	      !query_decode(STR("%C3"), arena, &out));
	bool envelope, pretty;
	query_peek(STR("a=b&envelope=true&&pretty"), &envelope, &pretty);
	CHECK(envelope && !pretty);
	query_peek(STR("pretty=true&envelope=TRUE"), &envelope, &pretty);
	CHECK(!envelope && pretty);
	query_peek(STR_NONE, &envelope, &pretty);
	CHECK(!envelope && !pretty);
}

static void test_parameters(void)
{
	CHECK(parameters(&list_op, "") == 0 && call.page == 1 && call.page_size == 100 && call.include_count &&
	      !call.envelope && !call.pretty);
	CHECK(parameters(&list_op, "pageNum=3&itemsPerPage=500&includeCount=false&envelope=true&pretty=true") == 0);
	CHECK(call.page == 3 && call.page_size == 500 && !call.include_count && call.envelope && call.pretty);
	CHECK(parameters(&list_op, "itemsPerPage=501") == -400 && says("itemsPerPage: must be at most 500."));
	CHECK(parameters(&list_op, "itemsPerPage=0&pageNum=0&pretty=yes") == -400);
	CHECK(says("pretty: must be true or false; pageNum: must be at least 1; itemsPerPage: must be at least 1."));
	CHECK(parameters(&list_op, "pageNum=99999999999") == -400);
	CHECK(parameters(&list_op, "pageNum=-1") == -400 && parameters(&list_op, "pageNum=") == -400 &&
	      parameters(&list_op, "pageNum=1x") == -400);
	CHECK(parameters(&list_op, "q=a+b%21&state=OPEN") == 0 && call.query_count == 2);
	CHECK(str_is(call_query(&call, "q"), "a b!") && str_is(call_query(&call, "state"), "OPEN"));
	CHECK(parameters(&list_op, "state=open") == -400 && says("state: must be one of OPEN, CLOSED."));
	CHECK(parameters(&list_op, "q=1&q=2") == -400 && says("q: must be given only once."));
	CHECK(parameters(&list_op, "pretty=true&pretty=true") == -400 && says("pretty: must be given only once."));
	CHECK(parameters(&list_op, "states=OPEN,CLOSED&states=OPEN") == 0 &&
	      str_is(call_query(&call, "states"), "OPEN,CLOSED,OPEN"));
	CHECK(parameters(&list_op, "states=OPEN&states=x") == -400 && says("states: must be one of OPEN, CLOSED."));
	CHECK(parameters(&list_op, "q=%zz&state=OPEN") == -400 && says("q: must be percent-encoded UTF-8 text."));
	CHECK(parameters(&list_op, "%ff=1") == -400 && says("%ff: must be named in percent-encoded UTF-8."));
	CHECK(parameters(&list_op, "\xff%=1") == -400 && says("query: must be named in percent-encoded UTF-8."));
	CHECK(parameters(&need_op, "pageNum=1") == -400);
	CHECK(says("pageNum: unknown parameter; this operation takes need, envelope, pretty; need: is required."));
	CHECK(str_is(call.problem.parameters, "[\"pageNum\",\"need\"]"));
	CHECK(parameters(&need_op, "need=true") == 0);

	char many[1000] = "";
	for (size_t i = 0; i < 101; i++)
		memcpy(many + 4 * i, "q=1&", 5);
	CHECK(parameters(&list_op, many) == -400);
}

static void test_paths_and_headers(void)
{
	struct call *c = fresh(&list_op);
	c->params[0] = STR("0123456789abcdef01234567");
	c->params[1] = STR("10.0.0.0/8");
	CHECK(gate_parameters(c) == 0);
	c->params[1] = STR("/subscriptions/x");
	CHECK(gate_parameters(c) == 0);
	c->params[1] = STR("nope");
	CHECK(gate_parameters(c) == -404 && says("Cannot find resource /x."));
	c = fresh(&list_op);
	c->params[0] = STR("0123456789abcdef0123456\0");
	c->params[1] = STR("10.0.0.0");
	CHECK(gate_parameters(c) == -404);

	header_list[0] = (struct header){STR("use-effective-fields"), STR(" true ")};
	header_count = 1;
	CHECK(parameters(&list_op, "") == 0);
	header_list[0].value = STR("1");
	CHECK(parameters(&list_op, "") == -400 && says("Use-Effective-Fields: must be true or false."));
	header_list[1] = header_list[0];
	header_count = 2;
	CHECK(parameters(&list_op, "") == -400 && says("Use-Effective-Fields: must be given only once."));
	header_count = 0;
}

static int body(const struct op *op, const char *type, const char *json)
{
	struct call *c = fresh(op);
	header_count = type ? 1 : 0;
	header_list[0] = (struct header){STR("content-type"), str_of(type)};
	request.body = str_of(json);
	return gate_body(c);
}

static void test_body(void)
{
	static const char *const good[] = {"application/json", "Application/JSON; charset=UTF-8",
	                                   "application/json;charset=\"utf-8\"", "application/vnd.svc.2024-08-05+json",
	                                   " application/json ;"};
	static const char *const bad[] = {"",
	                                  "text/json",
	                                  "application/json; charset=latin1",
	                                  "application/vnd.svc.+json",
	                                  "application/vnd.svc.2024-8-05+json",
	                                  "application/jsonx",
	                                  "application/json; q=1"};
	for (size_t i = 0; i < COUNT(good); i++)
		CHECK(body(&post_op, good[i], " {\"name\":\"x\"} ") == 0 && call.body);
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK(body(&post_op, bad[i], "{\"name\":\"x\"}") == -415);
	CHECK(body(&post_op, NULL, "{\"name\":\"x\"}") == -415);
	CHECK(body(&post_op, NULL, "") == -400 && says("body: is required: send a JSON object."));
	CHECK(body(&patch_op, NULL, " \n") == 0 && !call.body);
	CHECK(body(&post_op, good[0], "[]") == -400 && says("body: must be an object."));
	CHECK(body(&post_op, good[0], "3") == -400 && says("body: must be an object."));
	CHECK(body(&post_op, good[0], "{\"frozen\":\"a\",\"name\":1,\"nam\":2}") == -400 &&
	      says("name: must be a string; nam: unknown field (did you mean name?)."));
	CHECK(body(&patch_op, good[0], "{\"frozen\":\"a\",\"name\":\"\"}") == -400 &&
	      says("frozen: cannot be changed."));
	CHECK(body(&post_op, good[0], "{\"name\":") == -400 && strcmp(call.problem.code, "INVALID_JSON") == 0);
	CHECK(body(&post_op, good[0], "{\"name\":\"x\",\"name\":\"y\"}") == -400 &&
	      strcmp(call.problem.code, "INVALID_JSON") == 0);
	CHECK(body(&post_op, good[0], "{\"name\":\"\xff\"}") == -400 &&
	      body(&post_op, good[0], "{\"name\":\"\\u0000\"}") == -400);

	char deep[200];
	memset(deep, '[', sizeof deep - 1);
	deep[sizeof deep - 1] = 0;
	CHECK(body(&post_op, good[0], deep) == -400 && says("The body must not be nested more than 64 levels deep."));

	struct call *c = fresh(&post_op);
	c->version = &bare_version;
	request.body = STR(" { } ");
	CHECK(gate_body(c) == 0 && !c->body);
	request.body = STR("{\"a\":1}");
	CHECK(gate_body(c) == -400 && says("body: this operation takes no body."));
}

int main(void)
{
	CHECK(schema_setup() == 0);
	arena = arena_new();
	test_decode();
	test_parameters();
	test_paths_and_headers();
	test_body();
	arena_free(arena);
	schema_teardown();
	return CHECK_DONE();
}
