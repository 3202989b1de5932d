/* What another host says around a call that is passed on. Any bytes: as the head of its answer, no field that is passed on
 * to a caller ends a header, and a length holds for one head alone; as the headers of the call, an id stays an id. */
#include "fuzz.h"

#include "base/id.h"
#include "hosts/head.h"
#include "hosts/hosts.h"

#define HEADERS_MAX 16

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void field_holds(struct str line, struct str name, struct str value)
{
	const char *passed = host_head_passes(name, value);
	HOLDS(name.p >= line.p && value.p + value.n <= line.p + line.n && name.p + name.n < value.p + value.n + 1);
	for (size_t i = 0; passed && i < value.n; i++)
		HOLDS(value.p[i] == '\t' || ((unsigned char)value.p[i] >= ' ' && value.p[i] != 0x7f));
	HOLDS(!passed || str_ieq(name, str_of(passed)));
}

static void answer_holds(struct str rest)
{
	struct host_head h = {.length = SIZE_MAX};
	while (rest.n) {
		struct str line, name, value;
		str_cut(rest, '\n', &line, &rest);
		line.n += rest.p > line.p + line.n; /* with its end, as curl gives it */
		switch (host_head_take(&h, line, &name, &value)) {
		case HOST_LINE_FIELD: field_holds(line, name, value); break;
		case HOST_LINE_END: HOLDS(h.status >= 200 && h.status <= 999); break;
		case HOST_LINE_NOTHING: break;
		}
		HOLDS(h.status >= 0 && h.status <= 999);
		HOLDS(!str_starts(line, STR("HTTP/")) || h.length == SIZE_MAX);
	}
}

static void call_holds(struct str rest, bool from_host)
{
	struct header headers[HEADERS_MAX];
	struct request r = {.headers = headers, .id = "0123456789abcdef01234567"};
	struct ip before = r.peer;
	char id[sizeof r.id];
	memcpy(id, r.id, sizeof id);
	if (from_host)
		memcpy(r.from_host, "fedcba98", 9);
	while (rest.n && r.header_count < HEADERS_MAX) {
		struct str line;
		str_cut(rest, '\n', &line, &rest);
		if (str_cut(line, ':', &headers[r.header_count].name, &headers[r.header_count].value))
			r.header_count++;
	}
	hosts_adopt(&r);
	HOLDS(strlen(r.id) == sizeof id - 1 && id_is_valid(str_of(r.id)));
	HOLDS(from_host || (strcmp(r.id, id) == 0 && ip_equal(&r.peer, &before)));
	HOLDS(request_header_count(&r, HEADER_PEER) == 1 || ip_equal(&r.peer, &before));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = fuzz_input(data, size);
	char *exact = fuzz_copy(input);
	answer_holds((struct str){exact, input.n});
	call_holds((struct str){exact, input.n}, true);
	call_holds((struct str){exact, input.n}, false);
	free(exact);
	return 0;
}
