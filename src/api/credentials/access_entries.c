/* Access lists of credentials. An entry's name in the store is its canonical network, so that 10.0.0.1 and
 * 10.0.0.1/32 are one entry; the answers write IPv6 out in full, because that is the only form that the patterns of
 * the API take. An owner may shut itself out: a list can be narrowed to where the next call will come from. */
#include "api/credentials/credentials.h"

#include "trail/events.h"

#include <errno.h>

#define ENTRIES_MAX 200

bool network_parse(struct arena *a, struct str text, struct cidr *ret_network)
{
	for (size_t i = 0; i + 3 <= text.n; i++)
		if (str_ieq((struct str){text.p + i, 3}, STR("%2f"))) {
			text = arena_printf(a, "%.*s/%.*s", (int)i, text.p, (int)(text.n - i - 3), text.p + i + 3);
			break;
		}
	return cidr_parse(text, ret_network);
}

struct str network_key(struct arena *a, struct str name)
{
	struct cidr network;
	char text[IP_TEXT];
	if (!cidr_parse(name, &network))
		return name;
	if (cidr_is_address(&network))
		ip_format_full(&network.net, text);
	else
		cidr_format_full(&network, text);
	return arena_dup(a, str_of(text));
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

static int entry_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str owner;
	struct cidr network;
	char text[IP_TEXT];
	int result = resource_parent(c, r, &owner);
	if (result < 0)
		return result;
	if (!network_parse(c->arena, call_path(c, r->key_param), &network)) /* what cannot be a network is not there */
		return -ENOENT;
	cidr_format(&network, text);
	return tx_get_by_name(c->tx, c->arena, r->kind, owner, str_of(text), ret_doc);
}

static struct str entry_key(struct call *c, const struct doc *d)
{
	return network_key(c->arena, d->name);
}

static void rename_field(json_t *entity, const char *from, const char *to)
{
	json_t *value = json_object_get(entity, from);
	if (value)
		json_object_set(entity, to, value);
	json_object_del(entity, from);
}

/* The entry in the words of its kind of credential. */
static int entry_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct cidr network;
	char text[IP_TEXT];
	bool known = cidr_parse(d->name, &network);
	if (known) {
		cidr_format_full(&network, text);
		json_put_z(entity, "cidrBlock", text);
	}
	if (known && cidr_is_address(&network)) {
		ip_format_full(&network.net, text);
		json_put_z(entity, "ipAddress", text);
	}
	if (c->op->resource != &resource_key_access) {
		rename_field(entity, "created", "createdAt");
		rename_field(entity, "lastUsed", "lastUsedAt");
		rename_field(entity, "count", "requestCount");
	} else if (json_integer_value(json_object_get(entity, "count")) == 0) {
		json_object_del(entity, "count"); /* a key's starts with the first use */
	}
	return 0;
}

/* An event of a key names it; the path does so for an account. */
static void entry_event(struct call *c, const struct doc *owner, struct str name)
{
	struct str public_key = document_text(c->arena, owner->body, STR("publicKey"));
	struct cidr network;
	char text[IP_TEXT];
	if (public_key.n)
		event_field(c, "targetPublicKey", public_key);
	if (!cidr_parse(name, &network))
		return;
	cidr_format_full(&network, text);
	event_field(c, "whitelistEntry", arena_dup(c->arena, str_of(text)));
}

static int entry_remove(struct call *c, const struct doc *old)
{
	struct doc owner;
	int result = resource_load(c, c->op->resource->above, &owner);
	if (result < 0)
		return result;
	entry_event(c, &owner, old->name);
	tx_touch_identity(c->tx);
	return 0;
}

const struct resource_hooks credential_access_hooks = {
        .load = entry_load, .key = entry_key, .view = entry_view, .remove = entry_remove};

/* Each entry is an event; the last of the call's is written by the dispatcher. */
static int entries_insert(struct call *c, const struct doc *owner, const struct cidr *networks, size_t count)
{
	struct doc d;
	int64_t total;
	size_t added = 0;
	char name[IP_TEXT];
	int result = tx_count(c->tx, "api_access", owner->id, &total);
	for (size_t i = 0; result == 0 && i < count; i++) {
		cidr_format(&networks[i], name);
		result = tx_get_by_name(c->tx, c->arena, "api_access", owner->id, str_of(name), &d);
		if (result != -ENOENT)
			continue;
		result = added++ ? event_next(c) : 0;
		entry_event(c, owner, str_of(name));
		if (result == 0)
			result = credential_add_access(c->tx, c->arena, owner->id, &networks[i]);
	}
	if (result == 0 && total + (int64_t)added > ENTRIES_MAX) {
		call_fail(c, 400, "TOO_MANY_ACCESS_LIST_ENTRIES",
		          "The access list has %lld entries; with %zu more it would have more than %d.",
		          (long long)total, added, ENTRIES_MAX);
		return call_fail_param(c, arena_printf(c->arena, "%d", ENTRIES_MAX));
	}
	if (result == 0 && !added)
		event_set_type(c, NULL);
	return result;
}

/* Adds the body's entries; those that are there already stay as they are. Answers with the list. */
int access_entries_add(struct call *c)
{
	struct faults faults = {.count = 0};
	struct doc owner;
	size_t count = json_array_size(c->body);
	int result = resource_load(c, c->op->resource->above, &owner);
	if (result < 0)
		return result;
	if (count == 0 || count > ENTRIES_MAX)
		faults_add(&faults, c->arena, STR_NONE, "must have from 1 to %d entries", ENTRIES_MAX);
	struct cidr *networks = arena_new_array(c->arena, struct cidr, count + 1);
	for (size_t i = 0; i < count && count <= ENTRIES_MAX; i++)
		if (!network_read(c, json_array_get(c->body, i), i, &faults, &networks[i]))
			continue;
	if (faults.count)
		return call_fail_faults(c, &faults);
	result = entries_insert(c, &owner, networks, count);
	return result < 0 ? result : verb_list(c);
}
