/* Networks in bodies and paths. */
#include "api/kit/networks.h"

#include "base/json.h"

bool network_parse(struct arena *a, struct str text, struct cidr *ret_network)
{
	for (size_t i = 0; i + 3 <= text.n; i++)
		if (str_ieq((struct str){text.p + i, 3}, STR("%2f"))) {
			text = arena_printf(a, "%.*s/%.*s", (int)i, text.p, (int)(text.n - i - 3), text.p + i + 3);
			break;
		}
	return cidr_parse(text, ret_network);
}

struct str network_text(struct arena *a, const struct cidr *network, bool as_address)
{
	char text[IP_TEXT];
	if (as_address)
		ip_format_full(&network->net, text);
	else
		cidr_format_full(network, text);
	return arena_dup(a, str_of(text));
}

struct str network_name(struct arena *a, const struct cidr *network)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	return arena_dup(a, str_of(text));
}

void network_put(struct arena *a, const struct cidr *network, json_t *entry)
{
	json_put_str(entry, "cidrBlock", network_text(a, network, false));
	if (cidr_is_address(network))
		json_put_str(entry, "ipAddress", network_text(a, network, true));
}

struct str network_doc_key(struct call *c, const struct doc *d)
{
	struct cidr network;
	return cidr_parse(d->name, &network) ? network_text(c->arena, &network, cidr_is_address(&network)) : d->name;
}

bool network_read(struct call *c, const json_t *entry, size_t index, struct faults *faults, struct cidr *ret_network)
{
	struct str block = json_field(entry, "cidrBlock"), address = json_field(entry, "ipAddress");
	struct cidr network;
	struct ip ip;
	if (!block.p == !address.p) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu]", index),
		           "must have exactly one of cidrBlock and ipAddress");
		return false;
	}
	if (address.p && !ip_parse(address, &ip)) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu].ipAddress", index),
		           "must be an IPv4 or IPv6 address, like 192.0.2.15");
		return false;
	}
	if (!network_parse(c->arena, block.p ? block : address, &network)) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu].cidrBlock", index),
		           "must be a network in CIDR notation, like 192.0.2.0/24");
		return false;
	}
	*ret_network = network;
	return true;
}
