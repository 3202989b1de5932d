/* The generic verbs on a store: what they find, what If-Match lets through, and what a document is after a write. The
 * resources are made for this test; their paths are those of real rows, because links come from the catalog. */
#include "gate_fixture.h"
#include "quoted.h"

#include "api/kit/verbs.h"

#include <errno.h>

#define PLAIN .pattern = -1
#define BASE_URL "https://test"

static const struct schema text = {.type = TYPE_STRING, PLAIN},
                           any = {.type = TYPE_OBJECT, PLAIN, .flags = SCHEMA_OPEN},
                           color = {.type = TYPE_STRING, PLAIN, .default_json = "\"red\""},
                           date = {.type = TYPE_STRING, PLAIN, .format = FORMAT_DATE_TIME},
                           number = {.type = TYPE_INTEGER, PLAIN};
static const struct field thing_fields[] = {{"color", &color}, {"id", &text},    {"name", &text, .required = true},
                                            {"options", &any}, {"since", &date}, {"size", &number}};
static const struct schema thing_schema = {.type = TYPE_OBJECT, PLAIN, .field_count = 6, .fields = thing_fields};

static int hook_result;
static json_t *hook_saw;

static int hook_create(struct call *c, json_t *document)
{
	json_put(document, "size", json_integer(7));
	return hook_result;
}

static int hook_update(struct call *c, const struct doc *old, json_t *document)
{
	hook_saw = json_clone(c->arena, document);
	return hook_result;
}

static int hook_remove(struct call *c, const struct doc *old)
{
	return hook_result;
}

static const struct resource_hooks hooks = {.create = hook_create, .update = hook_update, .remove = hook_remove};
static struct resource by_name = {.kind = "thing",
                                  .parent_param = "groupId",
                                  .key_param = "roleName",
                                  .key_is_name = true,
                                  .name_field = "name",
                                  .schema = &thing_schema},
                       by_id = {.kind = "thing",
                                .parent_param = "groupId",
                                .key_param = "containerId",
                                .name_field = "name",
                                .id_field = "id",
                                .schema = &thing_schema,
                                .hooks = &hooks},
                       single = {.kind = "setting",
                                 .parent_param = "groupId",
                                 .schema = &any,
                                 .defaults = "{\"on\":true,\"level\":1}"};

static const struct op *row(const char *id)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (strcmp(catalog_ops[i].id, id) == 0)
			return &catalog_ops[i];
	fprintf(stderr, "no row %s\n", id);
	exit(1);
}

static void out_free(void *call)
{
	buf_free(&((struct call *)call)->out);
}

/* A call of a row as if it were one of this resource. Its key, if any, is the second path parameter. */
static struct call *call_of(const char *op_id, const struct resource *r, const char *group, const char *key,
                            const char *body, const char *match)
{
	struct op *op = arena_new_of(fx.arena, struct op);
	*op = *row(op_id);
	op->resource = r;
	struct call *c = fixture_call(op, "GET", "/", match ? "if-match" : NULL, match, NULL);
	arena_defer(fx.arena, out_free, c);
	c->params[0] = str_of(group);
	c->params[1] = str_of(key);
	c->version = &op->versions[op->version_count - 1];
	c->body = body ? quoted_json(fx.arena, body) : NULL;
	return c;
}

struct work {
	struct call *call;
	int (*verb)(struct call *c);
};

static int work_run(struct tx *tx, void *ctx)
{
	struct work *w = ctx;
	w->call->tx = tx;
	return w->verb(w->call);
}

static int write_call(struct call *c, int (*verb)(struct call *c))
{
	struct work w = {c, verb};
	int r = store_write_wait(fx.service.store, work_run, &w);
	c->tx = fx.loop.reader;
	return r;
}

/* What the call answers with, without its links. */
static json_t *answer_of(struct call *c)
{
	json_t *o = doc_json(c->arena, arena_dup(c->arena, buf_view(&c->out)));
	json_object_del(o, "links");
	return o;
}

static struct str stored(const struct resource *r, struct str id)
{
	struct doc d = {.body = STR_NONE};
	return tx_get(fx.loop.reader, fx.arena, r->kind, id, &d) == 0 ? d.body : STR_NONE;
}

#define IDS "getGroupContainer", &by_id
#define NAMES "getCustomDbRole", &by_name
#define SINGLE "getGroupSettings", &single
#define THING "0000000000000000000000a1"
#define OTHER_THING "0000000000000000000000a2"

static void test_load(void)
{
	struct doc d;
	fixture_put("thing", THING, GROUP, "one", "{\"id\":\"" THING "\",\"name\":\"one\"}");
	fixture_put("thing", OTHER_THING, OTHER_GROUP, "one", "{\"id\":\"" OTHER_THING "\",\"name\":\"one\"}");
	CHECK(resource_load(call_of(IDS, GROUP, THING, NULL, NULL), &by_id, &d) == 0 && str_is(d.id, THING));
	CHECK(resource_load(call_of(NAMES, GROUP, "one", NULL, NULL), &by_name, &d) == 0 && str_is(d.id, THING));
	CHECK(resource_load(call_of(NAMES, OTHER_GROUP, "one", NULL, NULL), &by_name, &d) == 0 &&
	      str_is(d.id, OTHER_THING));
	/* Of another parent: as if it were not there. */
	CHECK(resource_load(call_of(IDS, GROUP, OTHER_THING, NULL, NULL), &by_id, &d) == -ENOENT);
	CHECK(resource_load(call_of(IDS, GROUP, KEY, NULL, NULL), &by_id, &d) == -ENOENT);
	CHECK(resource_load(call_of(NAMES, GROUP, "two", NULL, NULL), &by_name, &d) == -ENOENT);
	CHECK(resource_load(call_of(NAMES, GROUP, THING, NULL, NULL), &by_name, &d) == -ENOENT);
}

static void test_singleton(void)
{
	struct doc d;
	struct call *c = call_of(SINGLE, GROUP, "", "{'level': 2}", NULL);
	CHECK(resource_load(c, &single, &d) == 0 && d.rev == 0 && str_is(d.body, single.defaults));
	/* The first change writes all of it. */
	CHECK(write_call(c, verb_update) == 0 && c->etag == 1 &&
	      is_json(fx.arena, answer_of(c), "{'on': true, 'level': 2}"));
	CHECK(resource_load(c, &single, &d) == 0 && d.rev == 1 &&
	      is_json(fx.arena, doc_json(fx.arena, d.body), "{'on': true, 'level': 2}"));
	c = call_of(SINGLE, GROUP, "", "{'on': null}", "\"1\"");
	CHECK(write_call(c, verb_update) == 0 && c->etag == 2 && is_json(fx.arena, answer_of(c), "{'level': 2}"));
	/* Another parent has its own; one without defaults is absent. */
	struct resource bare = single;
	bare.defaults = NULL;
	CHECK(resource_load(call_of(SINGLE, OTHER_GROUP, "", NULL, NULL), &single, &d) == 0 && d.rev == 0);
	CHECK(resource_load(call_of(SINGLE, OTHER_GROUP, "", NULL, NULL), &bare, &d) == -ENOENT);
	/* Deleted, it is its defaults again; deleted once more, nothing happens. */
	for (int i = 0; i < 2; i++) {
		CHECK(write_call(call_of(SINGLE, GROUP, "", NULL, NULL), verb_delete) == 0);
		CHECK(resource_load(call_of(SINGLE, GROUP, "", NULL, NULL), &single, &d) == 0 && d.rev == 0);
	}
}

static void test_if_match(void)
{
	static const struct {
		const char *header;
		bool fits; /* revision 3 */
	} cases[] = {{NULL, true},           {"*", true},        {" * ", true},     {"\"3\"", true},
	             {"\"1\", \"3\"", true}, {"\"3\",", true},   {"\"2\"", false},  {"3", false},
	             {"\"\"", false},        {"W/\"3\"", false}, {"\"33\"", false}, {"\"1\",*", false},
	             {"\"1\",\"2\"", false}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct call *c = call_of(IDS, GROUP, THING, NULL, cases[i].header);
		int r = if_match(c, 3);
		CHECK(r == (cases[i].fits ? 0 : -412));
		CHECK(cases[i].fits ||
		      (c->problem.status == 412 && strcmp(c->problem.code, "PRECONDITION_FAILED") == 0));
		if (r != (cases[i].fits ? 0 : -412))
			fprintf(stderr, "If-Match: %s\n", cases[i].header);
	}
}

static void test_create(void)
{
	struct call *c = call_of(IDS, GROUP, "", "{'name': 'made', 'since': '2025-01-01T02:00:00+02:00'}", NULL);
	CHECK(write_call(c, verb_create) == 0 && c->etag == 1);
	json_t *made = answer_of(c);
	struct str id = json_field(made, "id");
	CHECK(id.n == 24 && str_is(json_field(made, "color"), "red") &&
	      str_is(json_field(made, "since"), "2025-01-01T00:00:00Z"));
	CHECK(json_integer_value(json_object_get(made, "size")) == 7); /* of the hook */
	CHECK(json_equal(doc_json(fx.arena, stored(&by_id, id)), made));
	CHECK(str_is(c->location,
	             arena_printf(fx.arena, BASE_URL "/api/svc/v2/groups/" GROUP "/containers/%.*s", STR_ARG(id)).p));
	/* The name is taken here, not elsewhere. */
	c = call_of(IDS, GROUP, "", "{'name': 'made'}", NULL);
	CHECK(write_call(c, verb_create) == -409 && strcmp(c->problem.code, "DUPLICATE_NAME") == 0);
	CHECK(write_call(call_of(IDS, OTHER_GROUP, "", "{'name': 'made'}", NULL), verb_create) == 0);
	/* The whole is held against the schema. */
	c = call_of(IDS, GROUP, "", "{'color': 'blue'}", NULL);
	CHECK(write_call(c, verb_create) == -400 && c->problem.status == 400);
	hook_result = -403;
	CHECK(write_call(call_of(IDS, GROUP, "", "{'name': 'refused'}", NULL), verb_create) == -403);
	hook_result = 0;
	struct doc d;
	CHECK(resource_load(call_of(NAMES, GROUP, "refused", NULL, NULL), &by_name, &d) == -ENOENT);
}

static void test_update(void)
{
	struct call *c = call_of(IDS, GROUP, THING, "{'options': {'a': 1, 'b': {'x': 1}}, 'color': 'blue'}", NULL);
	CHECK(write_call(c, verb_update) == 0 && c->etag == 2);
	c = call_of(IDS, GROUP, THING, "{'options': {'b': {'y': 2}, 'a': null}}", "\"2\"");
	CHECK(write_call(c, verb_update) == 0 && c->etag == 3);
	const char *whole = "{'id': '" THING "', 'name': 'one', 'color': 'blue', 'options': {'b': {'x': 1, 'y': 2}}}";
	CHECK(is_json(fx.arena, answer_of(c), whole) && is_json(fx.arena, hook_saw, whole));
	CHECK(is_json(fx.arena, doc_json(fx.arena, stored(&by_id, STR(THING))), whole));
	/* Taken away, a field with a default has its default; one that must be there is missed. */
	c = call_of(IDS, GROUP, THING, "{'color': null}", NULL);
	CHECK(write_call(c, verb_update) == 0 && str_is(json_field(answer_of(c), "color"), "red"));
	CHECK(write_call(call_of(IDS, GROUP, THING, "{'name': null}", NULL), verb_update) == -400);
	/* Refused ones leave no trace. */
	CHECK(write_call(call_of(IDS, GROUP, THING, "{'color': 'x'}", "\"2\""), verb_update) == -412);
	hook_result = -409;
	CHECK(write_call(call_of(IDS, GROUP, THING, "{'color': 'x'}", NULL), verb_update) == -409);
	hook_result = 0;
	CHECK(write_call(call_of(IDS, GROUP, OTHER_THING, "{'color': 'x'}", NULL), verb_update) == -ENOENT);
	CHECK(write_call(call_of(IDS, GROUP, THING, "{'name': 'made'}", NULL), verb_update) == -409);
	CHECK(str_is(json_field(doc_json(fx.arena, stored(&by_id, STR(THING))), "color"), "red"));
	c = call_of(IDS, GROUP, THING, NULL, NULL);
	CHECK(verb_get(c) == 0 && c->etag == 4 && str_is(json_field(answer_of(c), "name"), "one"));
}

static void test_replace(void)
{
	struct call *c = call_of(IDS, GROUP, THING, "{'name': 'renamed', 'size': 3}", "\"4\"");
	CHECK(write_call(c, verb_replace) == 0 && c->etag == 5);
	CHECK(is_json(fx.arena, answer_of(c), "{'id': '" THING "', 'name': 'renamed', 'size': 3, 'color': 'red'}"));
	struct doc d;
	CHECK(resource_load(call_of(NAMES, GROUP, "renamed", NULL, NULL), &by_name, &d) == 0);
	CHECK(resource_load(call_of(NAMES, GROUP, "one", NULL, NULL), &by_name, &d) == -ENOENT);
}

/* A document that does not parse is never taken for an empty one. */
static void test_corrupt(void)
{
	static const char id[] = "0000000000000000000000a3";
	fixture_put("thing", id, GROUP, "broken", "{\"name\":");
	CHECK(write_call(call_of(IDS, GROUP, id, "{'color': 'x'}", NULL), verb_update) == -EIO);
	CHECK(str_is(stored(&by_id, str_of(id)), "{\"name\":"));
	fixture_delete("thing", id);
}

static void test_delete(void)
{
	hook_result = -409;
	CHECK(write_call(call_of(IDS, GROUP, THING, NULL, NULL), verb_delete) == -409);
	hook_result = 0;
	CHECK(write_call(call_of(IDS, GROUP, THING, NULL, "\"1\""), verb_delete) == -412 &&
	      stored(&by_id, STR(THING)).n);
	CHECK(write_call(call_of(IDS, GROUP, OTHER_THING, NULL, NULL), verb_delete) == -ENOENT);
	CHECK(write_call(call_of(IDS, GROUP, THING, NULL, "\"5\""), verb_delete) == 0 && !stored(&by_id, STR(THING)).n);
	CHECK(write_call(call_of(IDS, GROUP, THING, NULL, NULL), verb_delete) == -ENOENT);
	CHECK(stored(&by_id, STR(OTHER_THING)).n);
}

static void test_last(void)
{
	struct doc d;
	CHECK(doc_last(fx.loop.reader, fx.arena, "thing", STR("none"), &d) == -ENOENT);
	fixture_put("line", "0000000000000000000000b1", GROUP, "", "{}");
	fixture_put("line", "0000000000000000000000b2", GROUP, "", "{}");
	CHECK(doc_last(fx.loop.reader, fx.arena, "line", STR(GROUP), &d) == 0 &&
	      str_is(d.id, "0000000000000000000000b2"));
}

int main(void)
{
	json_setup();
	if (schema_setup() < 0)
		return 1;
	fixture_setup();
	fx.service.base_url = BASE_URL;
	links_setup();
	links_base(BASE_URL);
	by_name.self = row("getCustomDbRole");
	by_id.self = row("getGroupContainer");
	single.self = row("getGroupSettings");
	test_load();
	test_singleton();
	test_if_match();
	test_create();
	test_update();
	test_replace();
	test_corrupt();
	test_delete();
	test_last();
	links_teardown();
	fixture_teardown();
	schema_teardown();
	return CHECK_DONE();
}
