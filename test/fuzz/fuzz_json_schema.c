/* Bodies against the request schemas of the real operations.
 *
 * The first line of the input names the operation; '@' before it takes the oldest version instead of the newest. If the
 * line ends with '*', the rest is not JSON but decides, byte by byte, which document is made from the schema
 * (sprout.h): so the fuzzer gets to valid and almost valid documents of any depth. */
#include "fuzz.h"

#include "base/buf.h"
#include "catalog/catalog.h"
#include "gate/gate.h"
#include "pick.h"
#include "sprout.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	HOLDS(schema_setup() == 0 && catalog_setup() == 0);
	return 0;
}

/* The nearest operation that has a body: the picked one or one after it. */
static const struct op_version *pick_version(struct str line, bool oldest, const struct op **ret_op)
{
	const struct op *op = pick_op(line);
	for (unsigned i = 0; i < catalog_op_count; i++, op++) {
		if (op == catalog_ops + catalog_op_count)
			op = catalog_ops;
		const struct op_version *v = &op->versions[oldest ? 0 : op->version_count - 1];
		*ret_op = op;
		if (v->request)
			return v;
	}
	abort();
}

static void faults_hold(const struct faults *f)
{
	for (size_t i = 0; i < f->count && i < FAULTS_MAX; i++)
		HOLDS(f->list[i].text.n > 0 && f->list[i].path.n < 4096 && f->list[i].text.n < 16384);
}

static void check(const struct schema *s, json_t *value, enum schema_use use, struct arena *a, struct faults *f)
{
	f->count = 0;
	schema_check(s, value, use, a, f);
	faults_hold(f);
}

static void say(const char *what, const struct faults *f)
{
	for (size_t i = 0; i < f->count && i < FAULTS_MAX; i++)
		fprintf(stderr, "%s: \"%.*s\" %.*s\n", what, STR_ARG(f->list[i].path), STR_ARG(f->list[i].text));
}

static void changes_hold(const struct schema *s, json_t *value)
{
	json_t *once = json_deep_copy(value);
	schema_add_defaults(s, once);
	json_t *twice = json_deep_copy(once);
	schema_add_defaults(s, twice);
	HOLDS(json_equal(once, twice));
	json_decref(twice);
	schema_normalize_dates(s, once);
	twice = json_deep_copy(once);
	schema_normalize_dates(s, twice);
	HOLDS(json_equal(once, twice));
	json_decref(twice);
	schema_strip_write_only(s, once);
	twice = json_deep_copy(once);
	schema_strip_write_only(s, twice);
	HOLDS(json_equal(once, twice));
	json_decref(twice);
	json_decref(once);
}

/* What was accepted and is made ready for the store is still valid there, and dumps and loads to itself. */
static void accepted_holds(const struct schema *s, json_t *value, struct arena *a)
{
	struct faults f = {.count = 0};
	schema_add_defaults(s, value);
	schema_normalize_dates(s, value);
	check(s, value, SCHEMA_STORED, a, &f);
	/* A document of ours also has the read-only fields; that they are missing here is no fault of the body. */
	size_t serious = 0;
	for (size_t i = 0; i < f.count && i < FAULTS_MAX; i++)
		serious += !str_is(f.list[i].text, "is required");
	if (serious)
		say("stored", &f);
	HOLDS(serious == 0);
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	HOLDS(text);
	json_t *back = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	HOLDS(back && json_equal(back, value));
	json_decref(back);
	free(text);
}

static void body_holds(const struct op *op, const struct op_version *v, json_t *value)
{
	struct arena *a = arena_new();
	struct faults f, g;
	enum schema_use use = op->method == METHOD_PATCH ? SCHEMA_UPDATE : SCHEMA_CREATE;
	check(v->request, value, use, a, &f);
	check(v->request, value, use, a, &g);
	HOLDS(f.count == g.count);
	for (size_t i = 0; i < f.count && i < FAULTS_MAX; i++)
		HOLDS(str_eq(f.list[i].path, g.list[i].path) && str_eq(f.list[i].text, g.list[i].text));
	changes_hold(v->request, value);
	/* What an update may hold, a create may hold too. */
	check(v->request, value, SCHEMA_UPDATE, a, &g);
	check(v->request, value, SCHEMA_CREATE, a, &f);
	HOLDS(g.count > 0 || f.count == 0);
	check(v->request, value, use, a, &f);
	if (f.count == 0)
		accepted_holds(v->request, value, a);
	arena_free(a);
}

/* The same text through the gate: what it refuses comes with a document that is JSON, whatever bytes it speaks of. */
static void gate_holds(const struct op *op, const struct op_version *v, struct str text, json_t *value)
{
	struct arena *a = arena_new();
	struct header type = {STR("content-type"), STR("application/json")};
	struct request request = {.arena = a, .headers = &type, .header_count = 1, .body = text};
	struct call c = {.request = &request, .arena = a, .op = op, .method = op->method, .version = v};
	if (gate_body(&c) == 0) {
		HOLDS(c.body ? json_equal(c.body, value) : !op->request_required);
	} else {
		struct buf b = {0};
		HOLDS(c.problem.status == 400 && c.problem.code && c.problem.detail.n);
		problem_write(&b, &c.problem);
		json_t *document = json_loadb(b.p, b.n, 0, NULL);
		HOLDS(json_is_object(document) && json_is_array(json_object_get(document, "parameters")));
		json_decref(document);
		buf_free(&b);
	}
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str line, rest;
	const struct op *op;
	str_cut(fuzz_input(data, size), '\n', &line, &rest);
	bool oldest = line.n && line.p[0] == '@', made = line.n && line.p[line.n - 1] == '*';
	line = (struct str){line.p + oldest, line.n - oldest};
	line.n -= made && line.n;
	const struct op_version *v = pick_version(line, oldest, &op);
	json_t *value = made ? sprout(v->request, &rest, 0)
	                     : json_loadb(rest.p ? rest.p : "", rest.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
	if (!made)
		gate_holds(op, v, rest, value);
	if (value)
		body_holds(op, v, value);
	json_decref(value);
	return 0;
}
