/* The answers of Azure's Blob service: pages of a list. */
#include "objects/azure_xml.h"

#include <errno.h>
#include <stdio.h>

struct page {
	object_entry_visit *visit; /* NULL: the page is only looked through */
	void *ctx;
	struct buf key, *token;
	struct object_entry entry;
	bool has_key, has_size, has_marker;
};

static int page_entry(struct page *p)
{
	if (!p->has_key || !p->has_size)
		return -EPROTO;
	p->entry.key = buf_view(&p->key);
	int r = p->visit ? p->visit(p->ctx, &p->entry) : 0;
	p->entry = (struct object_entry){.size = 0};
	p->has_key = p->has_size = false;
	return r;
}

/* "Tue, 17 Nov 2026 03:45:09 GMT" */
static bool date_read(struct str text, int64_t *ret_ms)
{
	char copy[64];
	str_copy(text, copy, sizeof copy);
	time_t at = text.n < sizeof copy ? curl_getdate(copy, NULL) : -1;
	*ret_ms = at > 0 ? at * INT64_C(1000) : 0;
	return at > 0;
}

static int page_property(struct page *p, struct str name, struct str text)
{
	if (str_is(name, "Content-Length"))
		p->has_size = str_to_u64(text, INT64_MAX, &p->entry.size);
	else if (str_is(name, "Last-Modified") && !date_read(text, &p->entry.modified_ms))
		return -EPROTO;
	return 0;
}

static int page_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct page *p = ctx;
	if (depth == 1)
		return str_is(name, "EnumerationResults") ? 0 : -EPROTO;
	if (depth == 2 && str_is(name, "NextMarker")) {
		p->has_marker = true;
		if (!p->visit) {
			p->token->n = 0;
			buf_str(p->token, text);
		}
	} else if (depth == 3 && str_is(around, "Blobs") && str_is(name, "Blob")) {
		return page_entry(p);
	} else if (depth == 4 && str_is(around, "Blob") && str_is(name, "Name")) {
		p->key.n = 0;
		buf_str(&p->key, text);
		p->has_key = text.n > 0;
	} else if (depth == 5 && str_is(around, "Properties")) {
		return page_property(p, name, text);
	}
	return 0;
}

int azure_xml_page(struct str xml, object_entry_visit *visit, void *ctx, struct buf *ret_token)
{
	struct page look = {.token = ret_token}, p = {.visit = visit, .ctx = ctx, .token = ret_token};
	ret_token->n = 0;
	int r = object_xml_walk(xml, page_end, &look);
	/* Who does not say whether more follows may have left some out. */
	if (r == 0 && !look.has_marker)
		r = -EPROTO;
	if (r == 0)
		r = object_xml_walk(xml, page_end, &p);
	buf_free(&look.key);
	buf_free(&p.key);
	return r;
}
