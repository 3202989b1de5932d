/* The answers of S3 servers. */
#ifndef STEWARD_OBJECTS_S3_XML_H
#define STEWARD_OBJECTS_S3_XML_H

#include "objects/request.h"

/* One page of a list: see struct object_dialect. */
must_check int s3_xml_page(struct str xml, object_entry_visit *visit, void *ctx, struct buf *ret_token);

struct s3_upload {
	struct str key, id;
	int64_t started_ms;
};
/* The first uploads that are under way. */
must_check int s3_xml_uploads(struct str xml, int (*visit)(void *ctx, const struct s3_upload *upload), void *ctx);

#endif
