/* List documents: results, totalCount, links to the pages around. A page costs what its own items cost, however deep it
 * lies; only a filter by name has to look at what it skips. */
#include "api/verbs.h"

#include "gate/service.h"

#include <strings.h>

#define FILTER_BATCH 500

int64_t list_offset(const struct call *c)
{
	return (c->page - 1) * c->page_size;
}

void list_begin(struct call *c)
{
	c->is_list = true;
	json_open(&c->out, '{');
	json_key(&c->out, "results");
	json_open(&c->out, '[');
}

/* The request's own URL with another pageNum, all else kept. */
static void page_link(struct call *c, const char *rel, int64_t page)
{
	struct buf url = {0};
	struct str rest = c->request->query, pair;
	bool first = true;
	buf_z(&url, c->service->base_url);
	buf_str(&url, c->request->path);
	while (rest.n) {
		str_cut(rest, '&', &pair, &rest);
		if (pair.n == 0 || (page && str_starts(pair, STR("pageNum="))))
			continue;
		buf_c(&url, first ? '?' : '&');
		buf_str(&url, pair);
		first = false;
	}
	if (page)
		buf_printf(&url, "%cpageNum=%lld", first ? '?' : '&', (long long)page);
	json_open(&c->out, '{');
	json_key(&c->out, "href");
	json_str(&c->out, buf_view(&url));
	json_key(&c->out, "rel");
	json_z(&c->out, rel);
	json_close(&c->out, '}');
	buf_free(&url);
}

void list_end(struct call *c, int64_t total, bool has_next)
{
	json_close(&c->out, ']');
	json_key(&c->out, "links");
	json_open(&c->out, '[');
	page_link(c, "self", 0);
	if (c->page > 1)
		page_link(c, "previous", c->page - 1);
	if (has_next)
		page_link(c, "next", c->page + 1);
	json_close(&c->out, ']');
	if (c->include_count && total >= 0) {
		json_key(&c->out, "totalCount");
		json_int(&c->out, total);
	}
	json_close(&c->out, '}');
}

static int item_write(struct call *c, const void *ctx, const struct doc *d)
{
	const struct resource *r = ctx;
	entity_write(c, &c->out, d->body, r->self, r->key_param, r->key_is_name ? d->name : d->id, true);
	return 0;
}

static bool name_matches(struct call *c, const struct doc *d, struct str prefix)
{
	if (d->name.n)
		return d->name.n >= prefix.n && strncasecmp(d->name.p, prefix.p, prefix.n) == 0;
	json_t *name = json_object_get(doc_json(c->arena, d->body), "name");
	return json_string_length(name) >= prefix.n && strncasecmp(json_string_value(name), prefix.p, prefix.n) == 0;
}

struct page {
	int64_t skip, room, total;
};

static int segment_count(struct call *c, const struct segment *s, int64_t *ret_count)
{
	if (s->id.n) {
		*ret_count = 1;
		return 0;
	}
	return tx_count(c->tx, s->kind, s->parent, ret_count);
}

static int segment_read(struct call *c, const struct segment *s, int64_t offset, int64_t limit, struct doc **ret_docs,
                        size_t *ret_count)
{
	if (!s->id.n)
		return tx_list(c->tx, c->arena, s->kind, s->parent, offset, limit, ret_docs, ret_count);
	struct doc *one = arena_new_of(c->arena, struct doc);
	int result = tx_get(c->tx, c->arena, s->kind, s->id, one);
	if (result < 0)
		return result;
	*ret_docs = one;
	*ret_count = 1;
	return 0;
}

static int segment_plain(struct call *c, const struct segment *s, segment_writer *write, const void *ctx,
                         struct page *p)
{
	int64_t count;
	struct doc *docs;
	size_t got = 0;
	int result = segment_count(c, s, &count);
	if (result < 0)
		return result;
	p->total += count;
	if (p->skip >= count || p->room == 0) {
		p->skip -= p->skip >= count ? count : 0;
		return 0;
	}
	int64_t limit = count - p->skip < p->room ? count - p->skip : p->room;
	result = segment_read(c, s, p->skip, limit, &docs, &got);
	for (size_t i = 0; result == 0 && i < got; i++)
		result = write(c, ctx, &docs[i]);
	p->room -= (int64_t)got;
	p->skip = 0;
	return result;
}

static int segment_filtered(struct call *c, const struct resource *r, const struct segment *s, struct str prefix,
                            struct page *p)
{
	int64_t count;
	int result = segment_count(c, s, &count);
	for (int64_t at = 0; result == 0 && at < count; at += FILTER_BATCH) {
		struct doc *docs;
		size_t got = 0;
		result = segment_read(c, s, at, FILTER_BATCH, &docs, &got);
		for (size_t i = 0; result == 0 && i < got; i++) {
			if (!name_matches(c, &docs[i], prefix))
				continue;
			p->total++;
			if (p->skip > 0) {
				p->skip--;
			} else if (p->room > 0) {
				p->room--;
				result = item_write(c, r, &docs[i]);
			}
		}
	}
	return result;
}

/* Whether a filter by name has more to look at than a loop should. */
static int filter_is_long(struct call *c, const struct segment *segments, size_t count, bool *ret_long)
{
	int64_t all = 0, one = 0;
	for (size_t i = 0; i < count; i++) {
		int result = segment_count(c, &segments[i], &one);
		if (result < 0)
			return result;
		all += one;
	}
	*ret_long = call_takes_long(c, all);
	return 0;
}

static int list_finish(struct call *c, int result, const struct page *p)
{
	if (result < 0)
		return call_fail_store(c, result, c->op->id);
	list_end(c, p->total, list_offset(c) + c->page_size < p->total);
	return 0;
}

int list_segments_by(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
                     const void *ctx)
{
	struct page p = {.skip = list_offset(c), .room = c->page_size};
	int result = 0;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = segment_plain(c, &segments[i], write, ctx, &p);
	return list_finish(c, result, &p);
}

int list_segments(struct call *c, const struct resource *r, const struct segment *segments, size_t count,
                  struct str name_prefix)
{
	struct page p = {.skip = list_offset(c), .room = c->page_size};
	bool is_long = false;
	if (!name_prefix.n)
		return list_segments_by(c, segments, count, item_write, r);
	int result = filter_is_long(c, segments, count, &is_long);
	if (result < 0 || is_long)
		return result;
	list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = segment_filtered(c, r, &segments[i], name_prefix, &p);
	return list_finish(c, result, &p);
}
