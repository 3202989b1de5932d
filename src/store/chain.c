/* The chain of events, for both back ends: the hash of an event covers the hash of its predecessor and all of its own
 * fields, so that store_check() finds an event that was changed or removed from the middle. Both ends of the chain are
 * in meta, signed with the service's key and written with each event: so events that are missing at either end are
 * found too. */
#include "store/backend.h"

#include "base/buf.h"
#include "base/id.h"
#include "store/seal.h"

static void add_number(struct buf *b, uint64_t v)
{
	char bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(v >> (56 - 8 * i));
	buf_add(b, bytes, sizeof bytes);
}

void event_hash(const unsigned char prev[32], const struct event_row *row, unsigned char ret_hash[32])
{
	const struct event *e = &row->event;
	const struct str texts[] = {e->id, e->org_id, e->group_id, e->type, e->body, e->cluster, e->raw};
	struct buf b = {0};
	buf_reserve(&b, 256 + e->body.n + e->raw.n);
	buf_add(&b, prev, 32);
	add_number(&b, (uint64_t)row->seq);
	add_number(&b, (uint64_t)e->created_ms);
	add_number(&b, (uint64_t)e->for_org << 1 | e->for_group);
	/* Lengths are hashed too, so that no two rows give the same bytes. */
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		add_number(&b, texts[i].n);
		buf_str(&b, texts[i]);
	}
	sha256(buf_view(&b), ret_hash);
	buf_free(&b);
}

/* The chain's ends: "FIRST LAST BEFORE HEAD MAC", numbers and hexadecimal hashes. */

static bool hash_parse(struct str text, unsigned char ret_hash[32])
{
	if (text.n != 64)
		return false;
	for (size_t i = 0; i < 64; i++) {
		char c = text.p[i];
		int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (v < 0)
			return false;
		ret_hash[i / 2] = (unsigned char)(i % 2 ? ret_hash[i / 2] | v : v << 4);
	}
	return true;
}

static struct str chain_text(const struct event_chain *chain, char ret_text[EVENT_CHAIN_TEXT])
{
	char before[65], head[65];
	hex_encode(chain->before, sizeof chain->before, before);
	hex_encode(chain->head, sizeof chain->head, head);
	int n = snprintf(ret_text, EVENT_CHAIN_TEXT, "%lld %lld %s %s", (long long)chain->first, (long long)chain->last,
	                 before, head);
	return (struct str){ret_text, (size_t)n};
}

static void chain_mac(const struct event_chain *chain, char ret_mac[65])
{
	char text[EVENT_CHAIN_TEXT];
	unsigned char mac[32];
	seal_mac("events", chain_text(chain, text), mac);
	hex_encode(mac, sizeof mac, ret_mac);
}

bool event_chain_parse(struct str rest, struct event_chain *ret_chain)
{
	struct event_chain chain = {0};
	struct str word[5];
	uint64_t first, last;
	for (size_t i = 0; i < 5; i++)
		str_cut(rest, ' ', &word[i], &rest);
	if (!str_to_u64(word[0], INT64_MAX, &first) || !str_to_u64(word[1], INT64_MAX, &last) ||
	    !hash_parse(word[2], chain.before) || !hash_parse(word[3], chain.head))
		return false;
	chain.first = (int64_t)first;
	chain.last = (int64_t)last;
	if (seal_is_ready()) {
		char text[EVENT_CHAIN_TEXT];
		chain.forged = word[4].n != 64 || !seal_mac_is_hex("events", chain_text(&chain, text), word[4]);
	}
	*ret_chain = chain;
	return true;
}

struct str event_chain_format(const struct event_chain *chain, char ret_text[EVENT_CHAIN_TEXT])
{
	char mac[65] = "-";
	struct str ends = chain_text(chain, ret_text);
	/* A chain that somebody else wrote is never signed: that would hide the forgery. */
	if (seal_is_ready() && !chain->forged)
		chain_mac(chain, mac);
	int n = snprintf(ret_text + ends.n, EVENT_CHAIN_TEXT - ends.n, " %s", mac);
	return (struct str){ret_text, ends.n + (size_t)n};
}
