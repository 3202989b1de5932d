/* The strict reading of an HTTP/1 header block, before the real parser sees it: a pure function on bytes. Anything that
 * two parsers could read in two ways is refused, because request smuggling exploits the difference. */
#ifndef STEWARD_HTTP_PRESCAN_H
#define STEWARD_HTTP_PRESCAN_H

#include "base/str.h"

#include <sys/types.h>

#define TARGET_MAX 8192u

struct prescan {
	int status; /* 0: fine; otherwise the refusal: 400, 414, 417, 431, 501 or 505, with code and detail */
	const char *code, *detail;
	struct str method, target;
	int version; /* 10 or 11 */
	size_t header_count;
	uint64_t content_length;
	bool has_length, chunked, has_host, keep_alive, expect_continue;
};

/* Returns the length of the block that starts at p, including the empty line; 0 when it is not complete; -EBADMSG when
 * a line ends without CR. The first `from` bytes were searched before. */
ssize_t prescan_end(const char *p, size_t n, size_t from);

/* `block` is the request line, the fields and the empty line. */
void prescan(struct str block, unsigned header_count_max, struct prescan *ret);

/* One line of a trailer section, without its CRLF. */
bool prescan_field_ok(struct str line);
/* "localhost", "localhost:8443", "[::1]:8443". */
bool prescan_authority_ok(struct str host);
/* The methods that the application gets; others are answered with 501. */
bool prescan_method_known(struct str method);
/* '/' and printable ASCII without '#', or "*". */
bool prescan_target_ok(struct str target);

#endif
