/* The C library's resolver, with a state of its own for each question, so that any thread may ask. The name is asked
 * for as it is: no search list of the machine is appended. */
#include "identity/dns.h"

#include "base/ip.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>
#include <string.h>

#define SECONDS 2 /* for each try */
#define TRIES 2
#define ANSWER_MAX 4096
#define TEXT_MAX 1024

/* "127.0.0.1:53". */
static bool server_set(res_state state, const char *server)
{
	struct str host, port;
	char address[INET_ADDRSTRLEN];
	uint64_t number;
	struct sockaddr_in at = {.sin_family = AF_INET};
	if (!str_cut(str_of(server), ':', &host, &port) || host.n >= sizeof address ||
	    !str_to_u64(port, UINT16_MAX, &number))
		return false;
	str_copy(host, address, sizeof address);
	at.sin_port = htons((uint16_t)number);
	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		return false;
	state->nsaddr_list[0] = at;
	state->nscount = 1;
	return true;
}

/* A record's text comes in pieces of at most 255 bytes, each after its length. */
static bool record_is(const unsigned char *data, size_t n, struct str wanted)
{
	char text[TEXT_MAX];
	size_t used = 0;
	for (size_t at = 0; at < n; at += 1u + data[at]) {
		size_t piece = data[at];
		if (piece > n - at - 1 || piece > sizeof text - used)
			return false;
		memcpy(text + used, data + at + 1, piece);
		used += piece;
	}
	return str_eq((struct str){text, used}, wanted);
}

static bool answer_has(const unsigned char *answer, int n, struct str wanted)
{
	ns_msg message;
	ns_rr record;
	if (ns_initparse(answer, n, &message) < 0)
		return false;
	for (int i = 0; i < ns_msg_count(message, ns_s_an); i++)
		if (ns_parserr(&message, ns_s_an, i, &record) == 0 && ns_rr_type(record) == ns_t_txt &&
		    record_is(ns_rr_rdata(record), ns_rr_rdlen(record), wanted))
			return true;
	return false;
}

bool dns_has_text(const char *server, const char *name, struct str wanted)
{
	struct __res_state state = {.nscount = 0};
	unsigned char answer[ANSWER_MAX];
	if (res_ninit(&state) < 0)
		return false;
	state.retrans = SECONDS;
	state.retry = TRIES;
	bool asks = !server || server_set(&state, server);
	int n = asks ? res_nquery(&state, name, ns_c_in, ns_t_txt, answer, sizeof answer) : -1;
	res_nclose(&state);
	return n > 0 && answer_has(answer, n < ANSWER_MAX ? n : ANSWER_MAX, wanted);
}
