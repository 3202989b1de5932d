/* The heads of calls that are passed on between hosts, both ways. A host is trusted with what it answers, but not with
 * how: its bytes become a caller's headers. */
#include "hosts/head.h"

#include "base/id.h"
#include "hosts/hosts.h"

enum host_line host_head_take(struct host_head *h, struct str line, struct str *ret_name, struct str *ret_value)
{
	struct str word, rest;
	uint64_t number;
	while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
		line.n--;
	if (!line.n)
		return h->status >= 200 ? HOST_LINE_END : HOST_LINE_NOTHING;
	if (str_starts(line, STR("HTTP/"))) {
		str_cut(line, ' ', &word, &rest);
		str_cut(rest, ' ', &word, &rest);
		h->status = str_to_u64(word, 999, &number) ? (int)number : 0;
		h->length = SIZE_MAX;
		return HOST_LINE_NOTHING;
	}
	if (!str_cut(line, ':', ret_name, ret_value))
		return HOST_LINE_NOTHING;
	*ret_value = str_trim(*ret_value);
	if (str_ieq(*ret_name, STR("content-length")) && str_to_u64(*ret_value, SIZE_MAX - 1, &number))
		h->length = (size_t)number;
	return HOST_LINE_FIELD;
}

static bool is_text(struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
			return false;
	return true;
}

const char *host_head_passes(struct str name, struct str value)
{
	static const char *const passed[] = {"content-type", "etag",        "retry-after",   "content-disposition",
	                                     "location",     "deprecation", "sunset",        "x-steward-progress",
	                                     "allow",        "link",        "cache-control", "www-authenticate"};
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (str_ieq(name, str_of(passed[i])))
			return is_text(value) ? passed[i] : NULL;
	return NULL;
}

void hosts_adopt(struct request *r)
{
	struct str id = request_header(r, "x-request-id");
	struct ip peer;
	if (!r->from_host[0])
		return;
	if (id.n == sizeof r->id - 1 && id_is_valid(id))
		memcpy(r->id, id.p, id.n);
	if (request_header_count(r, HEADER_PEER) == 1 && ip_parse(request_header(r, HEADER_PEER), &peer))
		r->peer = peer;
}
