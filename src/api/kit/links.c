/* Links make the API browsable: an entity links to itself, to every built GET that lies below its path without another
 * parameter, and to the other paths under which it is found (rows with "linkFrom", such as byName). What may be absent
 * is linked to by whoever knows that it is there. All of it comes from the catalog; nothing is written by hand. */
#include "api/kit/verbs.h"

#include "call/service.h"

struct children {
	const struct op **ops;
	struct tails {
		struct str *list; /* what follows the entity's own URL in the link to each, up to the next link's URL */
		size_t bytes;     /* of all */
	} * tails;                /* our own, and by the index of dialects */
	size_t count;
};

static struct children *children, *others; /* by index of catalog_ops */
static struct arena *links_arena;

static bool is_below(const struct op *parent, const struct op *op)
{
	size_t n = strlen(parent->path);
	return op->method == METHOD_GET && op->handler && !op->may_be_absent &&
	       strncmp(op->path, parent->path, n) == 0 && op->path[n] == '/' && !strchr(op->path + n, '{');
}

static bool unreserved[256]; /* a link asks of each byte of a key */

/* Before main, so that the loops need no lock. */
__attribute__((constructor)) static void unreserved_fill(void)
{
	static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:@!$'()*,;=+";
	for (const char *p = all; *p; p++)
		unreserved[(unsigned char)*p] = true;
}

void links_setup(void)
{
	links_arena = arena_new();
	children = arena_new_array(links_arena, struct children, catalog_op_count);
	others = arena_new_array(links_arena, struct children, catalog_op_count);
	for (unsigned i = 0; i < catalog_op_count; i++) {
		const struct op *from = catalog_ops[i].handler ? catalog_ops[i].link_from : NULL;
		if (from) {
			struct children *list = &others[from - catalog_ops];
			if (!list->ops)
				list->ops = arena_new_array(links_arena, const struct op *, catalog_op_count);
			list->ops[list->count++] = &catalog_ops[i];
		}
		if (catalog_ops[i].method != METHOD_GET)
			continue;
		children[i].ops = arena_new_array(links_arena, const struct op *, catalog_op_count);
		for (unsigned j = 0; j < catalog_op_count; j++)
			if (is_below(&catalog_ops[i], &catalog_ops[j]))
				children[i].ops[children[i].count++] = &catalog_ops[j];
	}
}

void links_teardown(void)
{
	arena_free(links_arena);
	links_arena = NULL;
}

static void encode(struct buf *b, struct str text)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t plain = 0;
	while (plain < text.n && unreserved[(unsigned char)text.p[plain]])
		plain++;
	buf_add(b, text.p, plain);
	for (size_t i = plain; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		const char escaped[] = {'%', hex[c >> 4], hex[c & 15]};
		if (unreserved[c])
			buf_c(b, text.p[i]);
		else
			buf_add(b, escaped, sizeof escaped);
	}
}

/* Paths below a project do not name its organization; links from there may lead to it. */
static struct str param_value(struct call *c, struct str name)
{
	struct str value = call_path(c, arena_z(c->arena, name));
	return value.p || !str_is(name, "orgId") ? value : c->org.id;
}

/* The path from `p` to `end`. A parameter that neither the key nor the call's path gives is a field of the entity. */
static void path_write(struct buf *b, struct call *c, const struct op *op, const char *p, const char *end,
                       const char *key_param, struct str key, struct str body)
{
	while (p < end) {
		const char *open = memchr(p, '{', (size_t)(end - p));
		if (!open) {
			buf_add(b, p, (size_t)(end - p));
			return;
		}
		buf_add(b, p, (size_t)(open - p));
		const char *shut = strchr(open, '}');
		struct str name = {open + 1, (size_t)(shut - open - 1)};
		struct str value = key_param && str_is(name, key_param) ? key : param_value(c, name);
		if (!value.p)
			value = document_text(c->arena, body, name);
		encode(b, dialect_param(c->dialect, op, name, value));
		p = shut + 1;
	}
}

static void href_write(struct buf *b, struct call *c, const struct op *op, const char *key_param, struct str key,
                       struct str body)
{
	buf_z(b, c->service->base_url);
	buf_z(b, dialect_base(c->dialect, c->v1));
	struct str path = str_of(dialect_path(c->dialect, op));
	path_write(b, c, op, path.p, path.p + path.n, key_param, key, body);
}

struct str entity_href(struct call *c, const struct op *op, const char *key_param, struct str key, struct str body)
{
	struct buf b = {0};
	href_write(&b, c, op, key_param, key, body);
	return buf_keep(&b, c->arena);
}

struct str link_href(struct call *c, const struct op *op, const char *key_param, struct str key)
{
	return entity_href(c, op, key_param, key, STR_NONE);
}

/* URLs are percent-encoded: nothing in them needs escaping. */
#define LINK_NEXT ",{\"href\":\""
enum { LINK_NEXT_N = sizeof LINK_NEXT - 1 };

static void tails_fill(const struct children *list, const struct op *parent, const struct dialect *d,
                       const char *base_url, struct tails *ret_tails)
{
	ret_tails->list = arena_new_array(links_arena, struct str, list->count + 1);
	for (size_t j = 0; j < list->count; j++) {
		const char *below = dialect_path(d, list->ops[j]) + strlen(dialect_path(d, parent));
		ret_tails->list[j] =
		        arena_printf(links_arena, "%s\",\"rel\":\"%s/rels%s\"}" LINK_NEXT, below, base_url, below);
		ret_tails->bytes += ret_tails->list[j].n;
	}
}

void links_base(const char *base_url)
{
	for (unsigned i = 0; i < catalog_op_count; i++) {
		struct children *list = &children[i];
		list->tails = arena_new_array(links_arena, struct tails, catalog_dialect_count + 1);
		for (unsigned k = 0; k <= catalog_dialect_count; k++)
			tails_fill(list, &catalog_ops[i], k ? &catalog_dialects[k - 1] : NULL, base_url,
			           &list->tails[k]);
	}
}

static char *text_put(char *to, struct str s)
{
	memcpy(to, s.p, s.n);
	return to + s.n;
}

/* Most of what an entity's answer is: room is made once, then bytes are only copied. */
static void child_links(struct call *c, struct buf *b, const struct op *self, struct str href)
{
	const struct children *list = &children[self - catalog_ops];
	const struct tails *tails = &list->tails[c->dialect ? c->dialect->index : 0];
	buf_reserve(b, LINK_NEXT_N + list->count * href.n + tails->bytes);
	char *to = text_put(b->p + b->n, STR(LINK_NEXT));
	for (size_t i = 0; i < list->count; i++) {
		const struct op *op = list->ops[i];
		if (op_is_on(op, c->v1, c->dialect) && (op->open_to_all || (op->roles & c->roles)))
			to = text_put(text_put(to, href), tails->list[i]);
	}
	b->n = (size_t)(to - b->p) - LINK_NEXT_N; /* none follows the last */
}

/* What follows a link's URL. */
static void rel_write(const struct call *c, struct buf *b, struct str rel)
{
	buf_z(b, "\",\"rel\":\"");
	buf_z(b, c->service->base_url);
	buf_z(b, "/rels/");
	buf_str(b, rel);
	buf_z(b, "\"}");
}

void entity_link(struct call *c, struct buf *b, const char *rel, struct str href)
{
	b->n -= 2; /* the brackets of the links and of the entity, which has a link to itself */
	buf_z(b, LINK_NEXT);
	buf_str(b, href);
	rel_write(c, b, str_of(rel));
	buf_z(b, "]}");
}

void entity_link_op(struct call *c, const char *rel, const struct op *op, const char *key_param, struct str key)
{
	if (op->roles & c->roles)
		entity_link(c, &c->out, rel, link_href(c, op, key_param, key));
}

/* "byName" of ".../byName/{groupName}". */
static struct str other_rel(const struct op *op)
{
	const char *end = strrchr(op->path, '{') - 1, *start = end;
	while (start > op->path && start[-1] != '/')
		start--;
	return (struct str){start, (size_t)(end - start)};
}

static void other_links(struct call *c, struct buf *b, const struct op *self, struct str body)
{
	const struct children *list = &others[self - catalog_ops];
	for (size_t i = 0; i < list->count && (!c->v1 || c->dialect); i++) {
		const struct op *op = list->ops[i];
		struct str key = document_text(c->arena, body, str_of(op->link_field));
		/* Clients take dots as a part of a path for a step up. */
		if (!key.n || str_is(key, ".") || str_is(key, "..") || !(op->open_to_all || (op->roles & c->roles)))
			continue;
		buf_z(b, LINK_NEXT);
		href_write(b, c, op, op->path_params[op->path_param_count - 1].name, key, STR_NONE);
		rel_write(c, b, other_rel(op));
	}
}

#define SELF_OPEN "\"links\":[{\"href\":\""
#define SELF_SHUT "\",\"rel\":\"self\"}"

/* The items of a list link to themselves, and only the key differs: the text around it, from "links" to the item's end,
 * is made once. */
struct item_link {
	const struct op *self;
	const char *key_param;
	struct str before, after; /* `before` is NULL where a part of the link comes from the item's own fields */
};

/* Where the key stands in the path; NULL when it does not, or when something else is not in the call. */
static const char *key_place(struct call *c, const char *path, const char *key_param)
{
	const char *place = NULL;
	for (const char *p = path; key_param && (p = strchr(p, '{')); p++) {
		struct str name = {p + 1, strcspn(p + 1, "}")};
		if (str_is(name, key_param))
			place = p;
		else if (!param_value(c, name).p)
			return NULL;
	}
	return place;
}

static const struct item_link *item_link(struct call *c, const struct op *self, const char *key_param)
{
	struct item_link *i = c->item;
	if (i && i->self == self && i->key_param == key_param)
		return i;
	i = c->item = arena_new_of(c->arena, struct item_link);
	*i = (struct item_link){.self = self, .key_param = key_param};
	const char *path = dialect_path(c->dialect, self), *place = key_place(c, path, key_param);
	if (!place)
		return i;
	struct buf b = {0};
	buf_z(&b, SELF_OPEN);
	buf_z(&b, c->service->base_url);
	buf_z(&b, dialect_base(c->dialect, c->v1));
	path_write(&b, c, self, path, place, NULL, STR_NONE, STR_NONE);
	i->before = arena_dup(c->arena, buf_view(&b));
	b.n = 0;
	path_write(&b, c, self, strchr(place, '}') + 1, path + strlen(path), NULL, STR_NONE, STR_NONE);
	buf_z(&b, SELF_SHUT "]}");
	i->after = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return i;
}

/* `is_id`: the key needs no encoding. False: the item's link is none of those. */
static bool item_write(struct call *c, struct buf *b, struct str body, const struct op *self, const char *key_param,
                       struct str key, bool is_id)
{
	const struct item_link *item = item_link(c, self, key_param);
	if (!item->before.p)
		return false;
	json_sep(b);
	buf_reserve(b, body.n + item->before.n + key.n + item->after.n + 1);
	char *to = text_put(b->p + b->n, (struct str){body.p, body.n - 1});
	if (body.n > 2)
		*to++ = ',';
	b->n = (size_t)(text_put(to, item->before) - b->p);
	if (is_id)
		buf_str(b, key);
	else
		encode(b, dialect_param(c->dialect, self, str_of(key_param), key));
	buf_str(b, item->after);
	return true;
}

void entity_write(struct call *c, struct buf *b, struct str body, const struct op *self, const char *key_param,
                  struct str key, bool in_list)
{
	if (in_list && item_write(c, b, body, self, key_param, key, false))
		return;
	json_sep(b);
	buf_reserve(b, body.n + 256);
	buf_add(b, body.p, body.n - 1);
	json_sep(b);
	buf_z(b, SELF_OPEN);
	size_t from = b->n;
	href_write(b, c, self, key_param, key, body);
	size_t to = b->n;
	buf_z(b, SELF_SHUT);
	if (!in_list) {
		child_links(c, b, self, arena_dup(c->arena, (struct str){b->p + from, to - from}));
		other_links(c, b, self, body);
	}
	buf_z(b, "]}");
}

void entity_write_by_id(struct call *c, struct buf *b, const struct doc *d, const struct resource *r)
{
	if (!item_write(c, b, d->body, r->self, r->key_param, d->id, true))
		entity_write(c, b, d->body, r->self, r->key_param, d->id, true);
}
