/* Finds the row for a path. The tree has a node per path segment. At each node a literal child is tried first, then a
 * parameter with a suffix ("{x}:invite", "{x}.gz"), then a plain parameter; a branch that leads to no row is left
 * again. The first branch that ends at a row decides, and its methods are those that the path allows. */
#include "catalog/catalog.h"

#include <errno.h>

struct node {
	struct str text;   /* the literal, or the suffix of a parameter */
	struct node *next; /* sibling */
	struct node *literal, *suffixed, *param;
	const struct op *ops[METHOD_COUNT]; /* this is the end of a path when any is set */
	bool ends;
};

static struct arena *tree_arena;
static struct node *root;

static const char *const method_names[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};

const char *method_name(enum method m)
{
	return method_names[m];
}

bool method_parse(struct str text, enum method *ret_method)
{
	for (int i = 0; i < METHOD_COUNT; i++)
		if (str_is(text, method_names[i])) {
			*ret_method = (enum method)i;
			return true;
		}
	return false;
}

int role_find(struct str name)
{
	for (unsigned i = 0; i < role_count; i++)
		if (str_is(name, role_names[i]))
			return (int)i;
	return -1;
}

const struct op *catalog_op(const char *operation_id)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (strcmp(catalog_ops[i].id, operation_id) == 0)
			return &catalog_ops[i];
	return NULL;
}

static struct node *child_of(struct node **list, struct str text)
{
	for (struct node *n = *list; n; n = n->next)
		if (str_eq(n->text, text))
			return n;
	struct node *n = arena_new_of(tree_arena, struct node);
	n->text = text;
	/* Longer suffixes come first, because a shorter one may be the end of a longer one. */
	while (*list && (*list)->text.n >= text.n)
		list = &(*list)->next;
	n->next = *list;
	*list = n;
	return n;
}

static struct node *descend(struct node *at, struct str segment)
{
	if (segment.n == 0 || segment.p[0] != '{')
		return child_of(&at->literal, segment);
	struct str name, suffix;
	str_cut(segment, '}', &name, &suffix);
	return child_of(suffix.n ? &at->suffixed : &at->param, suffix);
}

int catalog_setup(void)
{
	tree_arena = arena_new();
	root = arena_new_of(tree_arena, struct node);
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		struct str rest = str_of(op->path), segment;
		struct node *at = root;
		if (rest.n) {
			rest.p++;
			rest.n--;
		}
		while (rest.n) {
			str_cut(rest, '/', &segment, &rest);
			at = descend(at, segment);
		}
		if (at->ops[op->method] || op->path_param_count > PATH_PARAMS_MAX)
			return -EEXIST;
		at->ops[op->method] = op;
		if (op->method == METHOD_GET)
			at->ops[METHOD_HEAD] = op;
		at->ends = true;
	}
	return 0;
}

void catalog_teardown(void)
{
	arena_free(tree_arena);
	tree_arena = NULL;
	root = NULL;
}

#define SEGMENTS_MAX 24

struct walk {
	struct str segments[SEGMENTS_MAX];
	size_t count;
	struct str params[PATH_PARAMS_MAX];
};

static const struct node *follow(struct walk *w, const struct node *at, size_t i, size_t params)
{
	if (i == w->count)
		return at->ends ? at : NULL;
	struct str s = w->segments[i];
	const struct node *found;
	for (const struct node *n = at->literal; n; n = n->next)
		if (str_eq(n->text, s) && (found = follow(w, n, i + 1, params)))
			return found;
	if (params == PATH_PARAMS_MAX)
		return NULL;
	for (const struct node *n = at->suffixed; n; n = n->next)
		if (s.n > n->text.n && str_ends(s, n->text)) {
			if ((found = follow(w, n, i + 1, params + 1))) {
				w->params[params] = (struct str){s.p, s.n - n->text.n};
				return found;
			}
		}
	if (at->param && (found = follow(w, at->param, i + 1, params + 1))) {
		w->params[params] = s;
		return found;
	}
	return NULL;
}

/* False on a broken escape or a NUL. Copies only when there is an escape. */
static bool segment_decode(struct str raw, struct arena *arena, struct str *ret_text)
{
	if (!memchr(raw.p, '%', raw.n)) {
		*ret_text = raw;
		return true;
	}
	char *out = arena_alloc(arena, raw.n + 1);
	size_t n = 0;
	for (size_t i = 0; i < raw.n; i++) {
		if (raw.p[i] != '%') {
			out[n++] = raw.p[i];
			continue;
		}
		if (i + 2 >= raw.n || hex_value(raw.p[i + 1]) < 0 || hex_value(raw.p[i + 2]) < 0)
			return false;
		out[n] = (char)(hex_value(raw.p[i + 1]) * 16 + hex_value(raw.p[i + 2]));
		if (out[n++] == '\0')
			return false;
		i += 2;
	}
	*ret_text = (struct str){out, n};
	return true;
}

static bool path_split(struct str path, struct arena *arena, struct walk *w)
{
	struct str raw;
	w->count = 0;
	if (path.n && path.p[path.n - 1] == '/')
		path.n--;
	if (path.n == 0)
		return true;
	path.p++;
	path.n--;
	for (bool more = true; more;) {
		more = str_cut(path, '/', &raw, &path);
		if (raw.n == 0 || w->count == SEGMENTS_MAX || !segment_decode(raw, arena, &w->segments[w->count++]))
			return false;
	}
	return true;
}

static bool base_strip(struct str path, struct str base, struct str *ret_rest)
{
	if (!str_starts(path, base) || (path.n > base.n && path.p[base.n] != '/'))
		return false;
	*ret_rest = (struct str){path.p + base.n, path.n - base.n};
	return true;
}

void catalog_match(enum method method, struct str path, struct arena *arena, struct match *ret_match)
{
	struct walk w;
	struct str rest;
	*ret_match = (struct match){0};
	if (base_strip(path, STR(API_BASE_V1), &rest))
		ret_match->v1 = true;
	else if (!base_strip(path, STR(API_BASE), &rest))
		return;
	if (!path_split(rest, arena, &w))
		return;
	const struct node *n = follow(&w, root, 0, 0);
	if (!n)
		return;
	for (unsigned i = 0; i < METHOD_COUNT; i++)
		if (n->ops[i] && (!ret_match->v1 || n->ops[i]->on_v1))
			ret_match->allowed |= 1u << i;
	if (!(ret_match->allowed & 1u << method))
		return;
	ret_match->op = n->ops[method];
	memcpy(ret_match->params, w.params, sizeof w.params);
}
