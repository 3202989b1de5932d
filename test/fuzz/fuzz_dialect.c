/* Answers in the words of a dialect. The first line of the input names the operation; the rest is any text. Translated
 * twice it is itself again, whatever it is, and what is JSON is translated as its value is. Also sentences and the paths
 * of faults. */
#include "fuzz.h"

#include "base/json.h"
#include "catalog/dialect.h"
#include "pick.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	HOLDS(catalog_setup() == 0);
	return 0;
}

static void value_holds(const struct vocabulary *w, struct str text, struct str turned)
{
	const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
	json_t *value = json_loadb(text.p, text.n, flags, NULL);
	/* A field or a word that is written with an escape is found in the value alone. */
	if (value && !memchr(text.p, '\\', text.n)) {
		json_t *other = json_loadb(turned.p, turned.n, flags, NULL);
		words_json(w, value);
		HOLDS(other && json_equal(value, other));
		json_decref(other);
	}
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct str line, rest;
	struct buf once = {0}, twice = {0};
	str_cut(fuzz_input(data, size), '\n', &line, &rest);
	const struct op *op = pick_op(line);
	const struct op_version *v = &op->versions[op->version_count - 1];
	const struct dialect *d = &catalog_dialects[0];
	const struct vocabulary *w = dialect_words(d, v->response);
	rest = rest.p ? rest : STR("");
	words_text(w, rest, &once);
	words_text(w, buf_view(&once), &twice);
	HOLDS(str_eq(buf_view(&twice), rest));
	value_holds(w, rest, buf_view(&once));
	struct fault f = {.path = rest, .text = rest};
	words_fault(w, &f, a);
	words_fault(w, &f, a);
	struct str told = dialect_sentence(d, rest, line, STR_NONE, a);
	HOLDS(str_eq(dialect_sentence(d, told, line, STR_NONE, a), told));
	HOLDS(str_eq(dialect_sentence(d, rest, rest, STR_NONE, a), rest));
	buf_free(&once);
	buf_free(&twice);
	arena_free(a);
	return 0;
}
