/* Networks within networks, and free ones. */
#include "base/ip.h"

#include "check.h"

static struct cidr network(const char *text)
{
	struct cidr c = {.bits = 0};
	CHECK(cidr_parse(str_of(text), &c));
	return c;
}

static bool within(const char *inner, const char *outer)
{
	struct cidr a = network(inner), b = network(outer);
	return cidr_within(&a, &b);
}

static bool has_host_bits(const char *text)
{
	struct cidr c = network(text);
	return cidr_has_host_bits(str_of(text), &c);
}

static void test_prefixes(void)
{
	struct cidr four = network("10.8.0.0/21"), six = network("2001:db8::/32");
	CHECK(cidr_prefix(&four) == 21 && cidr_prefix(&six) == 32);
	CHECK(within("10.8.0.0/21", "10.0.0.0/8") && within("10.0.0.0/8", "10.0.0.0/8"));
	CHECK(!within("10.0.0.0/7", "10.0.0.0/8") && !within("11.0.0.0/21", "10.0.0.0/8"));
	CHECK(has_host_bits("10.8.0.1/21") && !has_host_bits("10.8.0.0/21") && !has_host_bits("10.8.0.1"));
}

/* The last free one of a range, or "". */
static const char *last_free(const char *range_text, unsigned prefix, const struct cidr *taken, size_t count)
{
	static char text[IP_TEXT];
	struct cidr range = network(range_text), found;
	text[0] = '\0';
	if (cidr_last_free(&range, prefix, taken, count, &found))
		cidr_format(&found, text);
	return text;
}

static void test_free(void)
{
	const struct cidr taken[] = {network("192.168.248.0/21"), network("192.168.240.0/22")};
	const struct cidr halves[] = {network("10.0.0.0/9"), network("10.128.0.0/9")};
	CHECK(strcmp(last_free("192.168.0.0/16", 21, taken, 0), "192.168.248.0/21") == 0);
	CHECK(strcmp(last_free("192.168.0.0/16", 21, taken, 1), "192.168.240.0/21") == 0);
	CHECK(strcmp(last_free("192.168.0.0/16", 21, taken, 2), "192.168.232.0/21") == 0);
	CHECK(strcmp(last_free("10.0.0.0/8", 8, NULL, 0), "10.0.0.0/8") == 0);
	CHECK(strcmp(last_free("10.0.0.0/8", 18, halves, 1), "10.255.192.0/18") == 0);
	CHECK(!*last_free("10.0.0.0/8", 18, halves, 2));
}

static void test_public(void)
{
	static const char *const open[] = {"8.8.8.8",     "172.15.0.1", "172.32.0.1",       "100.63.0.1",
	                                   "192.169.0.1", "2a00::1",    "64:ff9b::808:808", "2002:808:808::1"};
	static const char *const closed[] = {"127.0.0.1",       "10.1.2.3",        "172.16.0.1", "172.31.255.255",
	                                     "192.168.1.1",     "169.254.169.254", "0.0.0.0",    "224.0.0.1",
	                                     "255.255.255.255", "100.64.0.1",      "::1",        "::",
	                                     "fe80::1",         "fd00::1",         "ff02::1",    "::ffff:10.0.0.1",
	                                     "64:ff9b::a00:1",  "2002:a00:1::1",   "2001::1"};
	struct ip ip;
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		CHECK(ip_parse(str_of(open[i]), &ip) && ip_is_public(&ip));
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		CHECK(ip_parse(str_of(closed[i]), &ip) && !ip_is_public(&ip));
}

int main(void)
{
	test_prefixes();
	test_free();
	test_public();
	return CHECK_DONE();
}
