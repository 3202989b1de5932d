/* Paths of federated sources, and names of objects. The input up to its first line's end is a path, the rest a
 * name. What is a path takes a name in full or not: its texts are in it in their order, and its values are parts of
 * the name that lie between them. */
#include "fuzz.h"

#include "engine/federation_path.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static bool lies_in(struct str part, struct str all)
{
	return !part.n || (part.p >= all.p && part.p + part.n <= all.p + all.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct str text, name, values[PATH_PARTS];
	struct federation_path p;
	const char *why = NULL;
	str_cut((struct str){(const char *)data, size}, '\n', &text, &name);
	if (federation_path_parse(text, a, &p, &why) < 0) {
		HOLDS(why && *why);
		arena_free(a);
		return 0;
	}
	HOLDS(p.count > 0 && p.count <= PATH_PARTS);
	bool taken = federation_path_match(&p, name, a, values);
	size_t sum = 0;
	for (size_t i = 0; i < p.count; i++) {
		HOLDS(lies_in(values[i], name));
		HOLDS(!taken || p.parts[i].kind != PATH_TABLE || values[i].n);
		sum += p.parts[i].kind == PATH_TEXT ? p.parts[i].text.n : values[i].n;
	}
	HOLDS(!taken || sum <= name.n);
	HOLDS(!taken || str_starts(name, federation_path_prefix(&p, a)));
	arena_free(a);
	return 0;
}
