/* Paths against the real trees, ours and those of the dialects. The input is a method's number and a path. What is found
 * must be what the row says, and the row's own path with the found parameters put in must lead to the same row. */
#include "fuzz.h"

#include "base/buf.h"
#include "catalog/dialect.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	HOLDS(catalog_setup() == 0);
	return 0;
}

static void put_escaped(struct buf *b, struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		buf_printf(b, "%%%02X", (unsigned char)value.p[i]);
}

/* The row's path with each "{...}" replaced, all of it escaped: case and escapes must make no difference. Parameters were
 * found in our words, and a dialect's path has them in its own. */
static void path_write(struct buf *b, const struct match *m)
{
	struct str rest = str_of(dialect_path(m->dialect, m->op)), before;
	unsigned param = 0;
	buf_z(b, dialect_base(m->dialect, m->v1));
	while (str_cut(rest, '{', &before, &rest)) {
		buf_str(b, before);
		HOLDS(param < m->op->path_param_count);
		put_escaped(b,
		            dialect_param(m->dialect, m->op, str_of(m->op->path_params[param].name), m->params[param]));
		param++;
		HOLDS(str_cut(rest, '}', &before, &rest));
	}
	buf_str(b, before);
	HOLDS(param == m->op->path_param_count);
}

static void found_holds(const struct match *m, enum method method, struct arena *a)
{
	const struct op *op = m->op;
	struct buf b = {0};
	struct match again;
	HOLDS(op >= catalog_ops && op < catalog_ops + catalog_op_count);
	HOLDS(op->method == method || (method == METHOD_HEAD && op->method == METHOD_GET));
	/* Below our own v1.0 is what the row says; a dialect's v1.0 has all of it (docs/dialects.md). */
	HOLDS(!m->v1 || op->on_v1 || m->dialect);
	HOLDS(op->path_param_count <= PATH_PARAMS_MAX);
	for (unsigned i = 0; i < op->path_param_count; i++)
		HOLDS(m->params[i].p && m->params[i].n && !memchr(m->params[i].p, 0, m->params[i].n));
	path_write(&b, m);
	catalog_match(method, buf_view(&b), a, &again);
	HOLDS(again.op == op && again.allowed == m->allowed && again.v1 == m->v1 && again.dialect == m->dialect);
	for (unsigned i = 0; i < op->path_param_count; i++)
		HOLDS(str_eq(m->params[i], again.params[i]));
	buf_free(&b);
}

static void path_holds(struct str path, enum method asked)
{
	struct arena *a = arena_new();
	struct match m, other;
	catalog_match(asked, path, a, &m);
	HOLDS((m.op != NULL) == (m.allowed >> asked & 1u));
	HOLDS((m.allowed >> METHOD_GET & 1u) == (m.allowed >> METHOD_HEAD & 1u));
	HOLDS(m.allowed >> METHOD_COUNT == 0);
	/* What a path allows does not depend on the method that is asked for. */
	for (int i = 0; i < METHOD_COUNT; i++) {
		catalog_match((enum method)i, path, a, &other);
		HOLDS(other.allowed == m.allowed && other.v1 == m.v1 && other.dialect == m.dialect);
	}
	if (m.op)
		found_holds(&m, asked, a);
	arena_free(a);
}

/* The same below a base, so that the fuzzer need not find it. */
static void path_below_holds(const char *base, struct str path, enum method asked)
{
	struct buf b = {0};
	buf_z(&b, base);
	buf_c(&b, '/');
	buf_str(&b, path);
	char *exact = fuzz_copy(buf_view(&b));
	path_holds((struct str){exact, b.n}, asked);
	free(exact);
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = fuzz_input(data, size);
	enum method asked = (enum method)(fuzz_byte(&in) % METHOD_COUNT), parsed;
	if (!fuzz_is_target(in))
		return 0;
	HOLDS(method_parse(str_of(method_name(asked)), &parsed) && parsed == asked);
	path_holds(in, asked);
	path_below_holds(API_BASE, in, asked);
	path_below_holds(API_BASE_V1, in, asked);
	path_below_holds(catalog_dialects[0].base, in, asked);
	path_below_holds(catalog_dialects[0].base_v1, in, asked);
	return 0;
}
