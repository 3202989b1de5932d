/* The XML of S3 servers. Any bytes: a page that is refused visits nothing, and one that is taken says whether more
 * follows. And back: a key that is written as XML is read as it was. */
#include "fuzz_objects.h"

#include "base/xml.h"
#include "objects/s3_xml.h"

#include <errno.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static int upload_visit(void *ctx, const struct s3_upload *u)
{
	HOLDS(u->key.n > 0 && u->id.n > 0);
	return 0;
}

static void round_trip(struct str key)
{
	struct buf xml = {0}, token = {0};
	if (key.n == 0)
		return;
	buf_z(&xml, "<ListBucketResult><IsTruncated>true</IsTruncated>");
	xml_element(&xml, "NextContinuationToken", key);
	buf_z(&xml, "<Contents><Size>7</Size>");
	xml_element(&xml, "Key", key);
	buf_z(&xml, "</Contents></ListBucketResult>");
	HOLDS(s3_xml_page(buf_view(&xml), same_visit, &key, &token) == 0 && token.n == key.n);
	buf_free(&xml);
	buf_free(&token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	char *exact = fuzz_copy(input);
	struct str xml = {exact, input.n};
	struct buf token = {0}, text = {0};
	struct object_fault fault;
	unsigned visited = 0;
	int r = s3_xml_page(xml, count_visit, &visited, &token);
	HOLDS(r <= 0 && (r == 0 || visited == 0));
	object_xml_fault(xml, &fault);
	HOLDS(memchr(fault.code, 0, sizeof fault.code) && memchr(fault.message, 0, sizeof fault.message));
	HOLDS(r < 0 || !fault.code[0]);
	HOLDS(object_xml_field(xml, "ListBucketResult", "IsTruncated", &text) == 0 || r < 0);
	/* As STS's answers are read: what is found is in the document, and a whole page has it at whichever depth. */
	text.n = 0;
	int found = object_xml_find(xml, "ListBucketResult", "ListBucketResult", "IsTruncated", &text);
	HOLDS((found == 0 || (found == -EPROTO && r < 0)) && text.n <= xml.n);
	HOLDS(object_xml_find(xml, "ErrorResponse", "Error", "Code", &text) <= 0);
	HOLDS(s3_xml_uploads(xml, upload_visit, NULL) <= 0);
	round_trip(xml);
	buf_free(&token);
	buf_free(&text);
	free(exact);
	return 0;
}
