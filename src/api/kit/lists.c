/* List documents: results, totalCount, links to the pages around. A page costs what its own items cost, however deep it
 * lies; only a filter by name has to look at what it skips. */
#include "api/kit/verbs.h"

#include "call/service.h"
#include "gate/dispatch.h"

#define FILTER_BATCH 100
#define ROOM_MAX ((size_t)128 * 1024) /* to make on a guess */

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
	json_pair_str(&c->out, "href", buf_view(&url));
	json_pair_z(&c->out, "rel", rel);
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
	if (c->include_count && total >= 0)
		json_pair_int(&c->out, "totalCount", total);
	json_close(&c->out, '}');
}

int segments_docs(struct call *c, struct doc *docs, size_t count, struct segment **ret_list, size_t *ret_count)
{
	*ret_list = arena_new_of(c->arena, struct segment);
	**ret_list = (struct segment){.docs = docs ? docs : arena_new_of(c->arena, struct doc), .count = count};
	*ret_count = 1;
	return 0;
}

struct page {
	int64_t skip, room, total;
};

static int segment_count(struct call *c, const struct segment *s, int64_t *ret_count)
{
	if (s->docs || s->id.n) {
		*ret_count = s->docs ? (int64_t)s->count : 1;
		return 0;
	}
	return tx_count(c->tx, s->kind, s->parent, ret_count);
}

static int segment_read(struct call *c, const struct segment *s, int64_t offset, int64_t limit, struct doc **ret_docs,
                        size_t *ret_count)
{
	if (s->docs) {
		int64_t left = (int64_t)s->count - offset;
		*ret_docs = s->docs + offset;
		*ret_count = (size_t)(left < limit ? left : limit);
		return 0;
	}
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

int list_item_plain(struct call *c, const void *ctx, const struct doc *d)
{
	const struct resource *r = ctx;
	entity_write(c, &c->out, d->body, r->self, r->key_param, r->key_is_name ? d->name : d->id, true);
	return 0;
}

struct showing {
	struct call *call;
	const struct resource *resource;
	int64_t limit, count;
};

static int item_show(void *ctx, const struct doc *d)
{
	struct showing *s = ctx;
	struct buf *out = &s->call->out;
	size_t before = out->n;
	entity_write_by_id(s->call, out, d, s->resource);
	/* Items are about as long as each other: a buffer that grows by doubling would copy them again and again. */
	if (s->count++ == 0) {
		size_t room = (size_t)(s->limit - 1) * (out->n - before + 16);
		buf_reserve(out, room < ROOM_MAX ? room : ROOM_MAX);
	}
	return call_grown(s->call);
}

static int item_put(struct call *c, segment_writer *write, const void *ctx, const struct doc *d)
{
	int result = write(c, ctx, d);
	return result < 0 ? result : call_grown(c);
}

/* Resources that are written as they are, and found by their id, need no copy of their documents. */
static int segment_write(struct call *c, const struct segment *s, int64_t offset, int64_t limit, segment_writer *write,
                         const void *ctx, int64_t *ret_count)
{
	struct doc *docs;
	size_t got = 0;
	const struct resource *plain = write == list_item_plain ? ctx : NULL;
	if (plain && !plain->key_is_name && !s->id.n && !s->docs) {
		struct showing all = {.call = c, .resource = plain, .limit = limit};
		int result = tx_list_each(c->tx, c->arena, s->kind, s->parent, offset, limit, item_show, &all);
		*ret_count = all.count;
		return result;
	}
	int result = 0;
	*ret_count = 0;
	/* In parts: what was read is asked about before more is. */
	for (got = FILTER_BATCH; result == 0 && got == FILTER_BATCH && *ret_count < limit; *ret_count += (int64_t)got) {
		int64_t left = limit - *ret_count;
		result =
		        segment_read(c, s, offset + *ret_count, left < FILTER_BATCH ? left : FILTER_BATCH, &docs, &got);
		for (size_t i = 0; result == 0 && i < got; i++)
			result = item_put(c, write, ctx, &docs[i]);
	}
	return result;
}

static int segment_plain(struct call *c, const struct segment *s, segment_writer *write, const void *ctx,
                         struct page *p)
{
	int64_t count, got = 0;
	int result = segment_count(c, s, &count);
	if (result < 0)
		return result;
	p->total += count;
	if (p->skip >= count || p->room == 0) {
		p->skip -= p->skip >= count ? count : 0;
		return 0;
	}
	int64_t limit = count - p->skip < p->room ? count - p->skip : p->room;
	result = segment_write(c, s, p->skip, limit, write, ctx, &got);
	p->room -= got;
	p->skip = 0;
	return result;
}

static int segment_filtered(struct call *c, const struct segment *s, segment_writer *write, segment_filter *takes,
                            const void *ctx, struct page *p)
{
	int64_t count;
	int result = segment_count(c, s, &count);
	for (int64_t at = 0; result == 0 && at < count; at += FILTER_BATCH) {
		struct doc *docs;
		size_t got = 0;
		result = segment_read(c, s, at, FILTER_BATCH, &docs, &got);
		for (size_t i = 0; result == 0 && i < got; i++) {
			if (!takes(c, ctx, &docs[i]))
				continue;
			p->total++;
			if (p->skip > 0) {
				p->skip--;
			} else if (p->room > 0) {
				p->room--;
				result = item_put(c, write, ctx, &docs[i]);
			}
		}
		if (result == 0)
			result = call_grown(c);
	}
	return result;
}

/* Whether a filter has more to look at than a loop should. */
static int filter_is_long(struct call *c, const struct segment *segments, size_t count, bool *ret_long)
{
	int64_t all = 0, one = 0;
	for (size_t i = 0; i < count; i++) {
		int result = segments[i].whole ? 0 : segment_count(c, &segments[i], &one);
		if (result < 0)
			return result;
		all += segments[i].whole ? 0 : one;
	}
	*ret_long = call_takes_long(c, all);
	return 0;
}

int list_segments(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
                  segment_filter *takes, const void *ctx)
{
	bool is_array = c->version->response && c->version->response->type == TYPE_ARRAY, is_long = false;
	struct page p = {.skip = is_array ? 0 : list_offset(c), .room = is_array ? INT64_MAX : c->page_size};
	int result = takes ? filter_is_long(c, segments, count, &is_long) : 0;
	if (result < 0 || is_long)
		return result;
	c->is_list = true;
	if (is_array)
		json_open(&c->out, '[');
	else
		list_begin(c);
	for (size_t i = 0; result == 0 && i < count; i++)
		result = takes && !segments[i].whole ? segment_filtered(c, &segments[i], write, takes, ctx, &p)
		                                     : segment_plain(c, &segments[i], write, ctx, &p);
	if (result < 0)
		return c->problem.status ? result : call_fail_store(c, result, c->op->id);
	if (is_array) {
		c->is_list = false; /* the envelope holds an array as its content */
		json_close(&c->out, ']');
		return 0;
	}
	list_end(c, p.total, list_offset(c) + c->page_size < p.total);
	return 0;
}
