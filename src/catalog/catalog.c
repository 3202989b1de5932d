/* Finds the row for a path. The tree has a node per path segment. At each node a literal child is tried first, then a
 * parameter with a suffix ("{x}:invite", "{x}.gz"), then a plain parameter; a branch that leads to no row is left
 * again. The first branch that ends at a row decides, and its methods are those that the path allows. */
#include "catalog/catalog.h"

#include "catalog/dialect.h"

#include <errno.h>

struct node {
	struct str text;   /* the literal, or the suffix of a parameter */
	struct node *next; /* sibling */
	struct node *literal, *suffixed, *param;
	const struct op *ops[METHOD_COUNT]; /* this is the end of a path when any is set */
	bool ends;
};

static struct arena *tree_arena;
static struct node *root;   /* of our own paths */
static struct node **roots; /* of each dialect's, by its index */

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

static int tree_build(const struct dialect *d, struct node *top)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *op = &catalog_ops[i];
		struct str rest = str_of(dialect_path(d, op)), segment;
		struct node *at = top;
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

int catalog_setup(void)
{
	tree_arena = arena_new();
	root = arena_new_of(tree_arena, struct node);
	roots = arena_new_array(tree_arena, struct node *, catalog_dialect_count + 1);
	int result = tree_build(NULL, root);
	for (unsigned i = 0; result == 0 && i < catalog_dialect_count; i++) {
		const struct dialect *d = &catalog_dialects[i];
		roots[d->index] = arena_new_of(tree_arena, struct node);
		result = tree_build(d, roots[d->index]);
	}
	return result;
}

void catalog_teardown(void)
{
	arena_free(tree_arena);
	tree_arena = NULL;
	root = NULL;
	roots = NULL;
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

/* The path below its base, whose tree is returned; NULL: it has none of the bases. */
static const struct node *base_find(struct str path, struct match *m, struct str *ret_rest)
{
	if (base_strip(path, STR(API_BASE), ret_rest))
		return root;
	m->v1 = base_strip(path, STR(API_BASE_V1), ret_rest);
	if (m->v1)
		return root;
	m->dialect = dialect_of_path(path);
	if (!m->dialect)
		return NULL;
	m->v1 = !base_strip(path, str_of(m->dialect->base), ret_rest) &&
	        base_strip(path, str_of(m->dialect->base_v1), ret_rest);
	return roots[m->dialect->index];
}

/* The values of parameters that are words. */
static void params_turn(struct match *m)
{
	for (unsigned i = 0; m->dialect && i < m->op->path_param_count; i++)
		m->params[i] = words_value(dialect_words(m->dialect, m->op->path_params[i].schema), m->params[i]);
}

bool op_is_on(const struct op *op, bool v1, const struct dialect *d)
{
	return !v1 || op->on_v1 || d;
}

void catalog_match(enum method method, struct str path, struct arena *arena, struct match *ret_match)
{
	struct walk w;
	struct str rest;
	*ret_match = (struct match){0};
	const struct node *top = base_find(path, ret_match, &rest);
	if (!top || !path_split(rest, arena, &w))
		return;
	const struct node *n = follow(&w, top, 0, 0);
	if (!n)
		return;
	for (unsigned i = 0; i < METHOD_COUNT; i++)
		if (n->ops[i] && op_is_on(n->ops[i], ret_match->v1, ret_match->dialect))
			ret_match->allowed |= 1u << i;
	if (!(ret_match->allowed & 1u << method))
		return;
	ret_match->op = n->ops[method];
	memcpy(ret_match->params, w.params, sizeof w.params);
	params_turn(ret_match);
}
