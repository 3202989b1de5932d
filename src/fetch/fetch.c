/* The rule of addresses is the process's: it is set once, when the configuration was read, and read by all threads. */
#include "fetch/fetch.h"

#include <sys/socket.h>

static struct {
	bool all;
	const struct cidr *networks;
	size_t count;
} allowed;

void fetch_allow(bool all, const struct cidr *networks, size_t count)
{
	allowed.all = all;
	allowed.networks = networks;
	allowed.count = count;
}

/* The machine itself, its link, nobody in particular. */
static bool is_own(const struct ip *ip)
{
	static const struct ip none = {{0}}, loopback = {.b = {[15] = 1}};
	const unsigned char *b = ip->b;
	if (ip_is_v4(ip))
		return b[12] == 0 || b[12] == 127 || (b[12] == 169 && b[13] == 254) || b[12] >= 224;
	return ip_equal(ip, &none) || ip_equal(ip, &loopback) || b[0] == 0xff ||
	       (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
}

static bool is_allowed(const struct ip *ip)
{
	bool found = allowed.all;
	for (size_t i = 0; !found && i < allowed.count; i++)
		found = cidr_contains(&allowed.networks[i], ip);
	return found;
}

bool fetch_may_reach(enum fetch_named named, const struct ip *ip)
{
	switch (named) {
	case FETCH_BY_OPERATOR: return true;
	case FETCH_BY_PROVIDER: return !is_own(ip) || is_allowed(ip);
	case FETCH_BY_ANSWER: return ip_is_public(ip);
	case FETCH_BY_TENANT: break;
	}
	return ip_is_public(ip) || is_allowed(ip);
}

/* Not for the databases that this process starts: the socket closes with them. */
static curl_socket_t socket_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct fetch *f = ctx;
	struct ip ip = ip_from_sockaddr(&address->addr);
	(void)purpose;
	if (!fetch_may_reach(f->named, &ip)) {
		f->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void fetch_setup(CURL *curl, struct fetch *f, const char *protocols, const char *ca_file)
{
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, socket_open);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, f);
	if (ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file);
}
