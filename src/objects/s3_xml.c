/* The answers of S3 servers: pages of a list, and uploads. */
#include "objects/s3_xml.h"

#include "base/clock.h"

#include <errno.h>

struct page {
	object_entry_visit *visit; /* NULL: the page is only looked through */
	void *ctx;
	struct buf key, *token;
	struct object_entry entry;
	bool has_key, has_size, ends, goes_on;
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

static int page_field(struct page *p, struct str name, struct str text)
{
	if (str_is(name, "Key")) {
		p->key.n = 0;
		buf_str(&p->key, text);
		p->has_key = text.n > 0;
	} else if (str_is(name, "Size")) {
		p->has_size = str_to_u64(text, INT64_MAX, &p->entry.size);
	} else if (str_is(name, "LastModified") && !clock_parse(text, &p->entry.modified_ms)) {
		return -EPROTO;
	}
	return 0;
}

static int page_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct page *p = ctx;
	if (depth == 1 && !str_is(name, "ListBucketResult"))
		return -EPROTO;
	if (depth == 3 && str_is(around, "Contents"))
		return page_field(p, name, text);
	if (depth != 2)
		return 0;
	if (str_is(name, "Contents"))
		return page_entry(p);
	if (str_is(name, "IsTruncated")) {
		p->goes_on = str_is(text, "true");
		p->ends = str_is(text, "false");
	} else if (str_is(name, "NextContinuationToken") && !p->visit) {
		p->token->n = 0;
		buf_str(p->token, text);
	}
	return 0;
}

int s3_xml_page(struct str xml, object_entry_visit *visit, void *ctx, struct buf *ret_token)
{
	struct page look = {.token = ret_token}, p = {.visit = visit, .ctx = ctx, .token = ret_token};
	ret_token->n = 0;
	int r = object_xml_walk(xml, page_end, &look);
	/* Who does not say whether more follows may have left some out. */
	if (r == 0 && (look.goes_on == look.ends || (look.goes_on && ret_token->n == 0)))
		r = -EPROTO;
	if (r == 0 && look.ends)
		ret_token->n = 0;
	if (r == 0)
		r = object_xml_walk(xml, page_end, &p);
	buf_free(&look.key);
	buf_free(&p.key);
	return r;
}

struct uploads {
	int (*visit)(void *ctx, const struct s3_upload *upload);
	void *ctx;
	struct buf key, id;
	int64_t started_ms;
};

static int uploads_end(void *ctx, unsigned depth, struct str around, struct str name, struct str text)
{
	struct uploads *u = ctx;
	if (depth == 1 && !str_is(name, "ListMultipartUploadsResult"))
		return -EPROTO;
	if (depth == 3 && str_is(around, "Upload")) {
		struct buf *into = str_is(name, "Key") ? &u->key : str_is(name, "UploadId") ? &u->id : NULL;
		if (into) {
			into->n = 0;
			buf_str(into, text);
		} else if (str_is(name, "Initiated") && !clock_parse(text, &u->started_ms)) {
			return -EPROTO;
		}
	}
	if (depth != 2 || !str_is(name, "Upload"))
		return 0;
	struct s3_upload upload = {.key = buf_view(&u->key), .id = buf_view(&u->id), .started_ms = u->started_ms};
	int r = u->key.n && u->id.n && u->started_ms ? u->visit(u->ctx, &upload) : -EPROTO;
	u->key.n = u->id.n = 0;
	u->started_ms = 0;
	return r;
}

int s3_xml_uploads(struct str xml, int (*visit)(void *ctx, const struct s3_upload *upload), void *ctx)
{
	struct uploads u = {.visit = visit, .ctx = ctx};
	int r = object_xml_walk(xml, uploads_end, &u);
	buf_free(&u.key);
	buf_free(&u.id);
	return r;
}
