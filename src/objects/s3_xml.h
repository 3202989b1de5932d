/* The answers of S3 servers, which are not trusted: XML of bounded depth, without document types. */
#ifndef STEWARD_OBJECTS_S3_XML_H
#define STEWARD_OBJECTS_S3_XML_H

#include "base/buf.h"

#define S3_WORDS 200

/* <Error>: its code and message, cut to their buffers; both empty when it is no error. */
struct s3_fault {
	char code[64], message[S3_WORDS];
};
void s3_xml_fault(struct str xml, struct s3_fault *ret_fault);

/* The text of `name` right below the root element `root`. -EPROTO: there is none, or no such root. */
must_check int s3_xml_field(struct str xml, const char *root, const char *name, struct buf *ret_text);

/* The same of `name` in an element `around`, at whichever depth; the first. */
must_check int s3_xml_find(struct str xml, const char *root, const char *around, const char *name,
                           struct buf *ret_text);

struct s3_entry {
	struct str key;
	uint64_t size;
	int64_t modified_ms;
};
/* One page of a list. The page is read to its end before the first entry is visited. *ret_token is empty on the last
 * page. -EPROTO: it is no whole page. */
must_check int s3_xml_page(struct str xml, int (*visit)(void *ctx, const struct s3_entry *entry), void *ctx,
                           struct buf *ret_token);

struct s3_upload {
	struct str key, id;
	int64_t started_ms;
};
/* The first uploads that are under way. */
must_check int s3_xml_uploads(struct str xml, int (*visit)(void *ctx, const struct s3_upload *upload), void *ctx);

#endif
