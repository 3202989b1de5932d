/* Query strings: piece by piece, and through the gate of the parameters on the real operations. The first line of the
 * input names the operation, the second is the path's parameters separated by '/', the rest is the query. Whatever is
 * refused is refused with an error document that is JSON. */
#include "fuzz.h"

#include "call/query.h"
#include "catalog/formats.h"
#include "gate/gate.h"
#include "pick.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	HOLDS(schema_setup() == 0 && catalog_setup() == 0);
	return 0;
}

static void text_holds(struct str raw, struct arena *a)
{
	struct str text, again;
	struct buf b = {0};
	if (!query_decode(raw, a, &text))
		return;
	HOLDS(text.n <= raw.n && utf8_is_valid(text) && (text.n == 0 || !memchr(text.p, 0, text.n)));
	for (size_t i = 0; i < text.n; i++)
		buf_printf(&b, "%%%02x", (unsigned char)text.p[i]);
	char *exact = fuzz_copy(buf_view(&b));
	HOLDS(query_decode((struct str){exact, b.n}, a, &again) && str_eq(text, again));
	free(exact);
	buf_free(&b);
}

/* The pieces are the query, but for what separates them. */
static void pieces_hold(struct str query, struct arena *a)
{
	struct str rest = query, name, value;
	size_t bytes = 0, count = 0;
	bool envelope, pretty;
	while (query_next(&rest, &name, &value)) {
		bytes += name.n + value.n;
		count++;
		HOLDS(!memchr(name.n ? name.p : "", '&', name.n) && !memchr(name.n ? name.p : "", '=', name.n));
		HOLDS(!memchr(value.n ? value.p : "", '&', value.n));
		text_holds(name, a);
		text_holds(value, a);
	}
	HOLDS(rest.n == 0 && bytes <= query.n && count <= query.n);
	query_peek(query, &envelope, &pretty);
}

static void problem_holds(const struct problem *p)
{
	struct buf b = {0};
	HOLDS(p->status == 400 || p->status == 404);
	HOLDS(p->code && p->detail.n);
	problem_write(&b, p);
	json_t *document = json_loadb(b.p, b.n, 0, NULL);
	HOLDS(json_is_object(document) && json_is_array(json_object_get(document, "parameters")));
	HOLDS(json_integer_value(json_object_get(document, "error")) == p->status);
	json_decref(document);
	buf_free(&b);
}

static void gate_holds(const struct op *op, struct str path, struct str query, struct arena *a)
{
	struct request request = {.arena = a, .path = STR(API_BASE "/x"), .query = query};
	struct call c = {.request = &request, .arena = a, .op = op, .method = op->method};
	for (unsigned i = 0; i < op->path_param_count; i++)
		str_cut(path, '/', &c.params[i], &path);
	if (gate_parameters(&c) < 0) {
		problem_holds(&c.problem);
		return;
	}
	HOLDS(c.problem.status == 0);
	HOLDS(c.page >= 1 && c.page_size >= 1 && c.page_size <= 500);
	HOLDS(c.query_count <= op->query_param_count);
	for (size_t i = 0; i < c.query_count; i++) {
		const struct param *p = c.query[i].param;
		struct faults faults = {.count = 0};
		HOLDS(p >= op->query_params && p < op->query_params + op->query_param_count);
		HOLDS(schema_check_text(p->schema, str_of(p->name), c.query[i].text, a, &faults));
		HOLDS(str_eq(call_query(&c, p->name), c.query[i].text));
		for (size_t k = 0; k < i; k++)
			HOLDS(c.query[k].param != p);
	}
	/* One with a default is never missing. */
	for (unsigned i = 0; i < op->query_param_count; i++) {
		const struct param *p = &op->query_params[i];
		HOLDS(!p->required || p->schema->default_json || call_query(&c, p->name).p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str line, path, query;
	str_cut(fuzz_input(data, size), '\n', &line, &query);
	str_cut(query, '\n', &path, &query);
	if (!fuzz_is_target(query))
		return 0;
	struct arena *a = arena_new();
	char *exact = fuzz_copy(query);
	pieces_hold((struct str){exact, query.n}, a);
	gate_holds(pick_op(line), path, (struct str){exact, query.n}, a);
	free(exact);
	arena_free(a);
	return 0;
}
