/* Addresses and networks. The input is one or two texts, separated by a space; both are read as address and as network
 * and held against a slow oracle that compares bit by bit. */
#include "fuzz.h"

#include "base/ip.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static unsigned bit_of(const struct ip *ip, unsigned i)
{
	return ip->b[i / 8] >> (7 - i % 8) & 1u;
}

static bool same_bits(const struct ip *a, const struct ip *b, unsigned bits)
{
	for (unsigned i = 0; i < bits; i++)
		if (bit_of(a, i) != bit_of(b, i))
			return false;
	return true;
}

static void ip_holds(struct str text, const struct ip *ip)
{
	char out[IP_TEXT];
	struct ip again;
	struct cidr whole;
	ip_format(ip, out);
	HOLDS(strlen(out) < IP_TEXT && strlen(out) > 1);
	HOLDS(ip_parse(str_of(out), &again) && ip_equal(ip, &again));
	HOLDS(cidr_parse(text, &whole) && cidr_contains(&whole, ip) && whole.bits == 128);
}

static void cidr_holds(const struct cidr *c)
{
	char out[IP_TEXT], twice[IP_TEXT];
	struct cidr again;
	HOLDS(c->bits <= 128 && (!c->v4 || (c->bits >= 96 && ip_is_v4(&c->net))));
	for (unsigned i = c->bits; i < 128; i++)
		HOLDS(bit_of(&c->net, i) == 0);
	HOLDS(cidr_contains(c, &c->net));
	cidr_format(c, out);
	HOLDS(cidr_parse(str_of(out), &again));
	HOLDS(again.bits == c->bits && again.v4 == c->v4 && ip_equal(&again.net, &c->net));
	cidr_format(&again, twice);
	HOLDS(strcmp(out, twice) == 0);
}

static void pair_holds(const struct cidr *a, const struct cidr *b)
{
	HOLDS(cidr_contains(a, &b->net) == same_bits(&a->net, &b->net, a->bits));
	HOLDS(cidr_overlaps(a, b) == cidr_overlaps(b, a));
	HOLDS(cidr_overlaps(a, b) == (cidr_contains(a, &b->net) || cidr_contains(b, &a->net)));
}

static bool text_holds(struct str text, struct cidr *ret)
{
	struct ip ip, ip_before;
	struct cidr before;
	char *exact = fuzz_copy(text);
	struct str s = {exact, text.n};
	memset(&ip, 0x5e, sizeof ip);
	memset(&ip_before, 0x5e, sizeof ip);
	memset(ret, 0x5e, sizeof *ret);
	memset(&before, 0x5e, sizeof before);
	if (ip_parse(s, &ip))
		ip_holds(s, &ip);
	else
		HOLDS(memcmp(&ip, &ip_before, sizeof ip) == 0);
	bool ok = cidr_parse(s, ret);
	if (ok)
		cidr_holds(ret);
	else
		HOLDS(memcmp(ret, &before, sizeof before) == 0);
	free(exact);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str left, right;
	struct cidr a, b;
	str_cut(fuzz_input(data, size), ' ', &left, &right);
	bool both = text_holds(left, &a);
	both = text_holds(right, &b) && both;
	if (both)
		pair_holds(&a, &b);
	return 0;
}
