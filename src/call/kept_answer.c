/* Which answers are the same. */
#include "call/kept_answer.h"

#include "base/kept.h"
#include "base/log.h"
#include "call/service.h"

#include <stdatomic.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 1024 /* longer ones are not worth the memory */

/* What an answer's name begins with; path, query and headers follow. The path also tells the dialect and whether it is
 * the old API's, and the query all about pages, envelopes and white space. */
struct name_head {
	role_mask roles;
	uint32_t op, version, produces;
	uint32_t path_n;
};

struct text_head {
	int64_t etag;
};

/* Headers of the service itself ask for something about the caller. */
#define OWN_PREFIX "x-steward-"

static const struct header *header_of(const struct call *c, const char *param)
{
	for (size_t i = 0; i < c->request->header_count; i++)
		if (str_ieq(c->request->headers[i].name, str_of(param)))
			return &c->request->headers[i];
	return NULL;
}

/* Whether it can be kept, whatever the answer. A service whose calls wander between threads has no snapshot that gates
 * and handler share. */
static bool is_usual(const struct call *c)
{
	if (!c->op->kept || c->service->remote || !c->version || c->produces != PRODUCES_JSON)
		return false;
	for (size_t i = 0; i < c->request->header_count; i++)
		if (str_starts(c->request->headers[i].name, STR(OWN_PREFIX)))
			return false;
	return true;
}

static char *text_put(char *to, struct str s)
{
	if (s.n)
		memcpy(to, s.p, s.n);
	return to + s.n;
}

/* STR_NONE: it would be too long. Texts of a fixed number, each with its length before it or an end of its own. */
static struct str name_make(struct call *c)
{
	const struct request *r = c->request;
	struct name_head head = {.roles = c->roles,
	                         .op = (uint32_t)(c->op - catalog_ops),
	                         .version = (uint32_t)(c->version - c->op->versions),
	                         .produces = c->produces,
	                         .path_n = (uint32_t)r->path.n};
	size_t n = sizeof head + r->path.n + r->query.n;
	for (unsigned i = 0; i < c->op->header_param_count; i++) {
		const struct header *h = header_of(c, c->op->header_params[i].name);
		n += 1 + (h ? h->value.n + 1 : 0);
	}
	if (n > NAME_MAX_BYTES)
		return STR_NONE;
	char *name = arena_alloc(c->arena, n), *to = name;
	to = text_put(to, (struct str){(const char *)&head, sizeof head});
	to = text_put(text_put(to, r->path), r->query);
	for (unsigned i = 0; i < c->op->header_param_count; i++) {
		const struct header *h = header_of(c, c->op->header_params[i].name);
		*to++ = '\n'; /* which neither a query nor a header has */
		if (h)
			to = text_put(text_put(to, STR("=")), h->value);
	}
	return (struct str){name, n};
}

static struct str snapshot_text(const uint64_t *snapshot)
{
	return (struct str){(const char *)snapshot, sizeof *snapshot};
}

#ifdef __SANITIZE_ADDRESS__
static bool is_checked(void)
{
	static _Thread_local unsigned turn;
	return turn++ % 2 == 0;
}
#else
static bool is_checked(void)
{
	return false;
}
#endif

bool kept_answer_get(struct call *c)
{
	struct loop_state *lane = call_loop(c);
	struct text_head head;
	struct str text;
	c->kept = call_kept(c);
	c->kept_name = c->kept && is_usual(c) ? name_make(c) : STR_NONE;
	uint64_t snapshot = c->kept_name.n ? tx_snapshot(c->tx) : 0;
	c->kept_headers = c->extra_header_count;
	if (!snapshot || !kept_get(c->kept, c->kept_name, snapshot_text(&snapshot), &text))
		return false;
	if (is_checked()) {
		c->kept_before = arena_dup(c->arena, text);
		return false;
	}
	memcpy(&head, text.p, sizeof head);
	c->etag = head.etag;
	c->status = c->op->success;
	c->is_final = true;
	atomic_store_explicit(&lane->repeated, atomic_load_explicit(&lane->repeated, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
	buf_add(&c->out, text.p + sizeof head, text.n - sizeof head);
	return true;
}

void kept_answer_read(struct call *c)
{
	/* What the gates have read is a part of the answer. They were in another read, and a write may have come in
	 * between. */
	if (c->kept_name.n && (!c->snapshot || c->snapshot != tx_snapshot(c->tx)))
		c->kept_name = STR_NONE;
}

static bool can_be_kept(const struct call *c)
{
	return c->kept_name.n && !c->held && !c->momentary && !c->problem.status && c->status == c->op->success &&
	       !c->content_type && !c->relayed && !c->location.n && !c->request->response.stream.read &&
	       c->extra_header_count == c->kept_headers;
}

void kept_answer_put(struct call *c)
{
	struct text_head head = {c->etag};
	if (!can_be_kept(c))
		return;
	char *text = arena_alloc(c->arena, sizeof head + c->out.n);
	text_put(text_put(text, (struct str){(const char *)&head, sizeof head}), buf_view(&c->out));
	struct str whole = {text, sizeof head + c->out.n};
	if (c->kept_before.p && !str_eq(c->kept_before, whole)) {
		log_error("%s: the answer that was kept is not the one that is made now:\n%.*s\n%.*s", c->op->id,
		          STR_ARG(c->kept_before), STR_ARG(whole));
		abort();
	}
	kept_put(c->kept, call_key(c), c->kept_name, snapshot_text(&c->snapshot), whole);
}
