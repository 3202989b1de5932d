/* Addresses and networks. IPv4 is kept as IPv4-mapped IPv6, so that one comparison serves both. */
#ifndef STEWARD_BASE_IP_H
#define STEWARD_BASE_IP_H

#include "base/str.h"

struct sockaddr;

struct ip {
	unsigned char b[16];
};

struct cidr {
	struct ip net;
	unsigned bits; /* 0 to 128, counted on the mapped form */
	bool v4;
};

#define IP_TEXT 64

struct ip ip_from_sockaddr(const struct sockaddr *sa);
bool ip_is_v4(const struct ip *ip);
must_check bool ip_parse(struct str text, struct ip *ret_ip);
void ip_format(const struct ip *ip, char ret_text[IP_TEXT]);
bool ip_equal(const struct ip *a, const struct ip *b);
/* Whether it can be an address of the public internet: not loopback, private, link-local, multicast, reserved, nor a
 * form of IPv6 that has such an IPv4 address inside. */
bool ip_is_public(const struct ip *ip);

/* "10.0.0.0/8", "::1/128"; a bare address counts as a whole-length prefix. Host bits may be set; they are cleared. */
must_check bool cidr_parse(struct str text, struct cidr *ret_cidr);
void cidr_format(const struct cidr *c, char ret_text[IP_TEXT]);
/* The same with IPv6 written out ("2001:db8:0:0:0:0:0:1/128"), the only form that all patterns of the API accept. */
void ip_format_full(const struct ip *ip, char ret_text[IP_TEXT]);
void cidr_format_full(const struct cidr *c, char ret_text[IP_TEXT]);
/* Whether it is one address. */
bool cidr_is_address(const struct cidr *c);
bool cidr_contains(const struct cidr *c, const struct ip *ip);
bool cidr_overlaps(const struct cidr *a, const struct cidr *b);
bool cidr_within(const struct cidr *inner, const struct cidr *outer);
/* The length of the prefix as it is written: up to 32, or 128. */
unsigned cidr_prefix(const struct cidr *c);
/* Whether the text of a network has bits beyond its prefix. */
bool cidr_has_host_bits(struct str text, const struct cidr *c);
/* The last network with that prefix in an IPv4 range that overlaps none of those taken. False: there is none. */
must_check bool cidr_last_free(const struct cidr *range, unsigned prefix, const struct cidr *taken, size_t count,
                               struct cidr *ret_cidr);

#endif
