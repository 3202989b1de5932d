/* Reading PROXY headers, bounded: version 1 is a line of text, version 2 a fixed block with a length. */
#include "http/proxy.h"

#include <errno.h>

#define TEXT_MAX 107 /* of version 1, line end included */
#define FIXED 16     /* of version 2, before the addresses */

enum { LOCAL = 0x20, PROXY = 0x21 }; /* version 2 and its commands */
enum { FAMILY_IPV4 = 1, FAMILY_IPV6 = 2 };

static const char text_start[] = "PROXY ";
static const char binary_start[] = "\r\n\r\n\0\r\nQUIT\n";

static bool begins(struct str bytes, const char *start, size_t n)
{
	return memcmp(bytes.p, start, bytes.n < n ? bytes.n : n) == 0;
}

/* "PROXY TCP4 192.0.2.1 198.51.100.1 40000 443": everything after the client's address is ignored. */
static int text_read(struct str bytes, struct ip *peer)
{
	const char *end = memmem(bytes.p, bytes.n < TEXT_MAX ? bytes.n : TEXT_MAX, "\r\n", 2);
	if (!end)
		return bytes.n < TEXT_MAX ? -EAGAIN : -EINVAL;
	size_t length = (size_t)(end - bytes.p);
	struct str line = {bytes.p, length}, start, family, rest, address;
	struct ip found;
	str_cut(line, ' ', &start, &rest);
	bool more = str_cut(rest, ' ', &family, &rest);
	if (str_is(family, "UNKNOWN"))
		return (int)length + 2;
	bool v4 = str_is(family, "TCP4");
	if (!more || (!v4 && !str_is(family, "TCP6")) || !str_cut(rest, ' ', &address, &rest) ||
	    !ip_parse(address, &found) || (v4 && !ip_is_v4(&found)))
		return -EINVAL;
	*peer = found;
	return (int)length + 2;
}

static int binary_read(struct str bytes, struct ip *peer)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	const unsigned char *b = (const unsigned char *)bytes.p;
	if (bytes.n < FIXED)
		return -EAGAIN;
	size_t addresses = (size_t)b[14] << 8 | b[15], total = FIXED + addresses;
	unsigned family = b[13] >> 4;
	size_t needed = family == FAMILY_IPV4 ? 12 : family == FAMILY_IPV6 ? 36 : 0;
	if ((b[12] != LOCAL && b[12] != PROXY) || total > PROXY_HEADER_MAX || (b[12] == PROXY && addresses < needed))
		return -EINVAL;
	if (bytes.n < total)
		return -EAGAIN;
	if (b[12] == PROXY && family == FAMILY_IPV4) {
		memcpy(peer->b, mapped, sizeof mapped);
		memcpy(peer->b + sizeof mapped, b + FIXED, 4);
	} else if (b[12] == PROXY && family == FAMILY_IPV6) {
		memcpy(peer->b, b + FIXED, 16);
	}
	return (int)total;
}

int proxy_header_read(struct str bytes, struct ip *peer)
{
	if (begins(bytes, binary_start, sizeof binary_start - 1))
		return binary_read(bytes, peer);
	if (begins(bytes, text_start, sizeof text_start - 1))
		return text_read(bytes, peer);
	return -EINVAL;
}
