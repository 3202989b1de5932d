/* Links make the API browsable: an entity links to itself and to every built GET that lies below its path without another
 * parameter. All of it comes from the catalog; nothing is written by hand. */
#include "api/verbs.h"

#include "gate/service.h"

#include <stdlib.h>

struct children {
	const struct op **ops;
	size_t count;
};

static struct children *children; /* by index of catalog_ops */
static struct arena *links_arena;

static bool is_below(const struct op *parent, const struct op *op)
{
	size_t n = strlen(parent->path);
	return op->method == METHOD_GET && op->handler && strncmp(op->path, parent->path, n) == 0 && op->path[n] == '/' &&
	       !strchr(op->path + n, '{');
}

void links_setup(void)
{
	links_arena = arena_new();
	children = arena_new_array(links_arena, struct children, catalog_op_count);
	for (unsigned i = 0; i < catalog_op_count; i++) {
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

static bool is_unreserved(char c)
{
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'))
		return true;
	return c && strchr("-._~:@!$'()*,;=+", c);
}

static void encode(struct buf *b, struct str text)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t plain = 0;
	while (plain < text.n && is_unreserved(text.p[plain]))
		plain++;
	buf_add(b, text.p, plain);
	for (size_t i = plain; i < text.n; i++) {
		char c = text.p[i];
		if (is_unreserved(c)) {
			buf_c(b, c);
		} else {
			char escaped[] = {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
			buf_add(b, escaped, sizeof escaped);
		}
	}
}

/* Paths below a project do not name its organization; links from there may lead to it. */
static struct str param_value(struct call *c, struct str name)
{
	struct str value = call_path(c, arena_z(c->arena, name));
	return value.p || !str_is(name, "orgId") ? value : c->org.id;
}

static void href_write(struct buf *b, struct call *c, const struct op *op, const char *key_param, struct str key)
{
	buf_z(b, c->service->base_url);
	buf_z(b, c->v1 ? API_BASE_V1 : API_BASE);
	for (const char *p = op->path; *p;) {
		const char *open = strchr(p, '{');
		if (!open) {
			buf_z(b, p);
			return;
		}
		buf_add(b, p, (size_t)(open - p));
		const char *shut = strchr(open, '}');
		struct str name = {open + 1, (size_t)(shut - open - 1)};
		if (key_param && str_is(name, key_param))
			encode(b, key);
		else
			encode(b, param_value(c, name));
		p = shut + 1;
	}
}

struct str link_href(struct call *c, const struct op *op, const char *key_param, struct str key)
{
	struct buf b = {0};
	href_write(&b, c, op, key_param, key);
	struct str href = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return href;
}

static void link_write(struct buf *b, struct str href, const char *below, struct call *c)
{
	json_open(b, '{');
	json_key(b, "href");
	/* URLs are percent-encoded: nothing in them needs escaping. */
	buf_c(b, '"');
	buf_str(b, href);
	buf_z(b, below);
	buf_z(b, "\",\"rel\":\"");
	buf_z(b, c->service->base_url);
	buf_z(b, "/rels");
	buf_z(b, below);
	buf_z(b, "\"}");
}

static void child_links(struct call *c, struct buf *b, const struct op *self, struct str href)
{
	const struct children *list = &children[self - catalog_ops];
	size_t from = strlen(self->path);
	for (size_t i = 0; i < list->count; i++) {
		const struct op *op = list->ops[i];
		if (c->v1 && !op->on_v1)
			continue;
		if (op->open_to_all || (op->roles & c->roles))
			link_write(b, href, op->path + from, c);
	}
}

void entity_link(struct call *c, struct buf *b, const char *rel, struct str href)
{
	b->n -= 2; /* the brackets of the links and of the entity */
	json_open(b, '{');
	json_key(b, "href");
	json_str(b, href);
	json_key(b, "rel");
	buf_printf(b, "\"%s/rels/%s\"", c->service->base_url, rel);
	json_close(b, '}');
	json_close(b, ']');
	json_close(b, '}');
}

void entity_write(struct call *c, struct buf *b, struct str body, const struct op *self, const char *key_param, struct str key,
		  bool in_list)
{
	json_sep(b);
	buf_reserve(b, body.n + 256);
	buf_add(b, body.p, body.n - 1);
	json_key(b, "links");
	buf_z(b, "[{\"href\":\"");
	size_t from = b->n;
	href_write(b, c, self, key_param, key);
	size_t to = b->n;
	buf_z(b, "\",\"rel\":\"self\"}");
	if (!in_list)
		child_links(c, b, self, arena_dup(c->arena, (struct str){b->p + from, to - from}));
	buf_z(b, "]}");
}
