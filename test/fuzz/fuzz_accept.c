/* The Accept header and the choice of a version, on the real operations. The first line of the input names the
 * operation (any other text picks one), each further line is one Accept header. */
#include "fuzz.h"

#include "base/clock.h"
#include "gate/gate.h"
#include "pick.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void item_holds(const struct accept_item *item)
{
	int64_t ms;
	HOLDS(item->q <= 1000 && item->kind <= ACCEPT_OTHER);
	HOLDS((item->kind == ACCEPT_OTHER) == (item->produces == 0));
	HOLDS((item->produces & ~(unsigned)(PRODUCES_JSON | PRODUCES_GZIP | PRODUCES_CSV | PRODUCES_EVENTS)) == 0);
	if (item->kind == ACCEPT_DATED)
		HOLDS(item->date[10] == '\0' && strlen(item->date) == 10 && clock_parse(str_of(item->date), &ms));
}

/* The version that an item asks for, or NULL when the operation cannot serve it. */
static const struct op_version *served(const struct op *op, const struct accept_item *item)
{
	const struct op_version *v = NULL;
	if (item->q == 0 || item->kind == ACCEPT_OTHER || item->kind == ACCEPT_BAD_DATE ||
	    !(item->produces & op->produces))
		return NULL;
	if (item->kind != ACCEPT_DATED)
		return &op->versions[op->version_count - 1];
	for (unsigned i = 0; i < op->version_count; i++)
		if (strcmp(op->versions[i].date, item->date) <= 0)
			v = &op->versions[i];
	return v;
}

static void choice_holds(const struct accept *a, const struct op *op)
{
	const struct op_version *version = NULL;
	unsigned produces = 0, best = 0;
	bool chosen = accept_choose(a, op, &version, &produces) == 0, explained = false;
	for (size_t i = 0; i < a->count; i++)
		if (served(op, &a->items[i]) && a->items[i].q > best)
			best = a->items[i].q;
	HOLDS(chosen == (best > 0));
	if (!chosen) {
		HOLDS(!version && !produces);
		return;
	}
	HOLDS(version >= op->versions && version < op->versions + op->version_count);
	HOLDS((produces & op->produces) == produces && produces && (produces & (produces - 1)) == 0);
	for (size_t i = 0; i < a->count; i++)
		explained |= a->items[i].q == best && served(op, &a->items[i]) == version &&
		             (a->items[i].produces & produces);
	HOLDS(explained);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str line, rest;
	struct accept a;
	memset(&a, 0x5e, sizeof a);
	a.count = 0;
	str_cut(fuzz_input(data, size), '\n', &line, &rest);
	const struct op *op = pick_op(line);
	while (rest.n) {
		size_t before = a.count;
		str_cut(rest, '\n', &line, &rest);
		char *exact = fuzz_copy(line);
		accept_parse((struct str){exact, line.n}, STR(API_MEDIA), &a);
		free(exact);
		HOLDS(a.count >= before && a.count <= ACCEPT_MAX);
	}
	for (size_t i = 0; i < a.count; i++)
		item_holds(&a.items[i]);
	choice_holds(&a, op);
	return 0;
}
