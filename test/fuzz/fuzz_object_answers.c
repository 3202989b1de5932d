/* What Azure's Blob service and Google Cloud Storage answer. Any bytes: a page that is refused visits nothing; a header
 * gives a bounded text without what would end an address; and a name that is written is read as it was. */
#include "fuzz_objects.h"

#include "base/xml.h"
#include "objects/azure_xml.h"
#include "objects/gcs_json.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void round_trip(struct str key)
{
	struct buf xml = {0}, token = {0};
	if (key.n == 0)
		return;
	buf_z(&xml, "<EnumerationResults><Blobs><Blob>");
	xml_element(&xml, "Name", key);
	buf_z(&xml, "<Properties><Content-Length>7</Content-Length></Properties></Blob></Blobs>");
	xml_element(&xml, "NextMarker", key);
	buf_z(&xml, "</EnumerationResults>");
	HOLDS(azure_xml_page(buf_view(&xml), same_visit, &key, &token) == 0 && token.n == key.n);
	buf_free(&xml);
	buf_free(&token);
}

static void headers(struct str line)
{
	struct object_answer a = {.status = 0};
	struct str name, value;
	str_cut(line, ':', &name, &value);
	gcs_header(&a, name, str_trim(value));
	HOLDS(memchr(a.sum, 0, sizeof a.sum) && memchr(a.upload, 0, sizeof a.upload));
	HOLDS(!strpbrk(a.upload, " \"#<>\\\r\n") && !strchr(a.upload, '&'));
	HOLDS(!a.has_kept || a.kept < INT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	char *exact = fuzz_copy(input);
	struct str text = {exact, input.n};
	struct buf token = {0};
	struct object_fault fault = {.code = ""};
	struct gcs_object object;
	unsigned visited = 0;
	int r = azure_xml_page(text, count_visit, &visited, &token);
	HOLDS(r <= 0 && (r == 0 || visited == 0));
	r = gcs_json_page(text, count_visit, &visited, &token);
	HOLDS(r <= 0);
	gcs_json_fault(text, &fault);
	HOLDS(memchr(fault.code, 0, sizeof fault.code) && memchr(fault.message, 0, sizeof fault.message));
	if (gcs_json_object(text, &object) == 0)
		HOLDS(object.generation[0] && memchr(object.crc32c, 0, sizeof object.crc32c));
	headers(text);
	round_trip(text);
	buf_free(&token);
	free(exact);
	return 0;
}
