/* Addresses and networks, on inet_pton. */
#include "base/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static const unsigned char v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct ip ip_from_sockaddr(const struct sockaddr *sa)
{
	struct ip ip = {{0}};
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)sa;
		memcpy(ip.b, v4_prefix, sizeof v4_prefix);
		memcpy(ip.b + 12, &in->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)sa;
		memcpy(ip.b, &in->sin6_addr, 16);
	}
	return ip;
}

bool ip_is_v4(const struct ip *ip)
{
	return memcmp(ip->b, v4_prefix, sizeof v4_prefix) == 0;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static bool v4_is_public(const unsigned char *b)
{
	return b[0] != 0 && b[0] != 10 && b[0] != 127 && b[0] < 224 && !(b[0] == 100 && (b[1] & 0xc0) == 64) &&
	       !(b[0] == 169 && b[1] == 254) && !(b[0] == 172 && (b[1] & 0xf0) == 16) &&
	       !(b[0] == 192 && b[1] == 168) && !(b[0] == 192 && b[1] == 0 && b[2] == 0) &&
	       !(b[0] == 198 && (b[1] & 0xfe) == 18);
}

bool ip_is_public(const struct ip *ip)
{
	static const unsigned char translated[12] = {0, 0x64, 0xff, 0x9b};
	const unsigned char *b = ip->b;
	if (ip_is_v4(ip))
		return v4_is_public(b + 12);
	if (memcmp(b, translated, sizeof translated) == 0) /* NAT64 */
		return v4_is_public(b + 12);
	if (b[0] == 0x20 && b[1] == 0x02) /* 6to4 */
		return v4_is_public(b + 2);
	/* Global addresses are 2000::/3; Teredo has an IPv4 address inside in a form of its own. */
	return (b[0] & 0xe0) == 0x20 && !(b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0);
}

bool ip_parse(struct str text, struct ip *ret_ip)
{
	char z[IP_TEXT];
	struct ip ip;
	if (text.n == 0 || text.n >= sizeof z || memchr(text.p, 0, text.n))
		return false;
	memcpy(z, text.p, text.n);
	z[text.n] = '\0';
	if (inet_pton(AF_INET, z, ip.b + 12) == 1)
		memcpy(ip.b, v4_prefix, sizeof v4_prefix);
	else if (inet_pton(AF_INET6, z, ip.b) != 1)
		return false;
	*ret_ip = ip;
	return true;
}

void ip_format(const struct ip *ip, char ret_text[IP_TEXT])
{
	if (ip_is_v4(ip))
		inet_ntop(AF_INET, ip->b + 12, ret_text, IP_TEXT);
	else
		inet_ntop(AF_INET6, ip->b, ret_text, IP_TEXT);
}

static void clear_host_bits(struct cidr *c)
{
	for (unsigned bit = c->bits; bit < 128; bit++)
		c->net.b[bit / 8] &= (unsigned char)~(0x80u >> (bit % 8));
}

bool cidr_parse(struct str text, struct cidr *ret_cidr)
{
	struct str address, length;
	struct cidr c;
	uint64_t bits;
	bool has_length = str_cut(text, '/', &address, &length);
	if (!ip_parse(address, &c.net))
		return false;
	c.v4 = memchr(address.p, ':', address.n) == NULL;
	uint64_t most = c.v4 ? 32 : 128;
	bits = most;
	if (has_length && !str_to_u64(length, most, &bits))
		return false;
	c.bits = (unsigned)(c.v4 ? bits + 96 : bits);
	/* An IPv4-mapped network is the IPv4 network: one text for one meaning. */
	c.v4 = c.v4 || (c.bits >= 96 && ip_is_v4(&c.net));
	clear_host_bits(&c);
	*ret_cidr = c;
	return true;
}

void cidr_format(const struct cidr *c, char ret_text[IP_TEXT])
{
	char address[IP_TEXT];
	if (c->v4)
		inet_ntop(AF_INET, c->net.b + 12, address, sizeof address);
	else
		inet_ntop(AF_INET6, c->net.b, address, sizeof address);
	snprintf(ret_text, IP_TEXT, "%.50s/%u", address, c->v4 ? c->bits - 96 : c->bits);
}

void ip_format_full(const struct ip *ip, char ret_text[IP_TEXT])
{
	int n = 0;
	if (ip_is_v4(ip)) {
		inet_ntop(AF_INET, ip->b + 12, ret_text, IP_TEXT);
		return;
	}
	for (int i = 0; i < 16; i += 2)
		n += snprintf(ret_text + n, (size_t)(IP_TEXT - n), "%s%x", i ? ":" : "", ip->b[i] << 8 | ip->b[i + 1]);
}

void cidr_format_full(const struct cidr *c, char ret_text[IP_TEXT])
{
	char address[IP_TEXT];
	if (c->v4) {
		cidr_format(c, ret_text);
		return;
	}
	ip_format_full(&c->net, address);
	snprintf(ret_text, IP_TEXT, "%.50s/%u", address, c->bits);
}

bool cidr_is_address(const struct cidr *c)
{
	return c->bits == 128;
}

static bool same_prefix(const struct ip *a, const struct ip *b, unsigned bits)
{
	if (memcmp(a->b, b->b, bits / 8) != 0)
		return false;
	if (bits % 8 == 0)
		return true;
	unsigned char mask = (unsigned char)(0xffu << (8 - bits % 8));
	return ((a->b[bits / 8] ^ b->b[bits / 8]) & mask) == 0;
}

bool cidr_contains(const struct cidr *c, const struct ip *ip)
{
	return same_prefix(&c->net, ip, c->bits);
}

bool cidr_overlaps(const struct cidr *a, const struct cidr *b)
{
	return same_prefix(&a->net, &b->net, a->bits < b->bits ? a->bits : b->bits);
}

bool cidr_within(const struct cidr *inner, const struct cidr *outer)
{
	return inner->bits >= outer->bits && cidr_contains(outer, &inner->net);
}

unsigned cidr_prefix(const struct cidr *c)
{
	return c->v4 ? c->bits - 96 : c->bits;
}

bool cidr_has_host_bits(struct str text, const struct cidr *c)
{
	struct str address, rest;
	struct ip ip;
	str_cut(text, '/', &address, &rest);
	return !ip_parse(address, &ip) || !ip_equal(&ip, &c->net);
}

static struct cidr v4_block(uint32_t address, unsigned prefix)
{
	struct cidr block = {.bits = 96 + prefix, .v4 = true};
	block.net.b[10] = block.net.b[11] = 0xff;
	for (unsigned i = 0; i < 4; i++)
		block.net.b[12 + i] = (unsigned char)(address >> (24 - 8 * i));
	return block;
}

static bool overlaps_any(const struct cidr *block, const struct cidr *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (cidr_overlaps(block, &list[i]))
			return true;
	return false;
}

bool cidr_last_free(const struct cidr *range, unsigned prefix, const struct cidr *taken, size_t count,
                    struct cidr *ret_cidr)
{
	const unsigned char *b = range->net.b;
	uint32_t first = (uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
	for (uint32_t k = 1u << (prefix - cidr_prefix(range)); k-- > 0;) {
		struct cidr block = v4_block(first + (k << (32 - prefix)), prefix);
		if (!overlaps_any(&block, taken, count)) {
			*ret_cidr = block;
			return true;
		}
	}
	return false;
}
