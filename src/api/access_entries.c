/* Access lists of credentials. An entry's name in the store is its canonical network, so that 10.0.0.1 and
 * 10.0.0.1/32 are one entry; the answers write IPv6 out in full, because that is the only form that the patterns of
 * the API take. An owner may shut itself out: a list can be narrowed to where the next call will come from. */
#include "api/access_entries.h"

#include "api/credentials.h"
#include "api/verbs.h"
#include "gate/audit.h"

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

static void use_text(json_t *to, const char *name, const json_t *from, const char *field)
{
	json_t *value = json_object_get(from, field);
	if (value)
		json_object_set(to, name, value);
}

/* The entry in the words of its kind of credential. */
static struct str entry_body(struct call *c, enum grantee who, const struct doc *d)
{
	bool key = who == GRANTEE_KEY;
	const json_t *kept = doc_json(c->arena, d->body);
	json_t *out = doc_json(c->arena, STR("{}"));
	json_int_t count = json_integer_value(json_object_get(kept, "count"));
	struct cidr network;
	char text[IP_TEXT];
	if (!cidr_parse(d->name, &network))
		return STR("{}");
	cidr_format_full(&network, text);
	json_object_set_new(out, "cidrBlock", json_string(text));
	if (cidr_is_address(&network)) {
		ip_format_full(&network.net, text);
		json_object_set_new(out, "ipAddress", json_string(text));
	}
	use_text(out, key ? "created" : "createdAt", kept, "created");
	use_text(out, key ? "lastUsed" : "lastUsedAt", kept, "lastUsed");
	use_text(out, "lastUsedAddress", kept, "lastUsedAddress");
	/* A key's count starts with the first use. */
	if (count > 0 || !key)
		json_object_set_new(out, key ? "count" : "requestCount", json_integer(count));
	return json_text(c->arena, out);
}

/* Only an entry of a key can be read alone, and so has a link to itself. */
static const struct op *entry_self(const struct access_owner *owner)
{
	return owner->who == GRANTEE_KEY ? catalog_op("getOrgAccessEntry") : NULL;
}

static void entry_write(struct call *c, const struct access_owner *owner, const struct doc *d, const struct op *self)
{
	struct str body = entry_body(c, owner->who, d);
	if (self)
		entity_write(c, &c->out, body, self, "ipAddress", network_key(c->arena, d->name), c->is_list);
	else
		json_raw(&c->out, body);
}

int access_entries_list(struct call *c, const struct access_owner *owner)
{
	struct doc *docs;
	size_t count;
	int64_t total;
	const struct op *self = entry_self(owner);
	int result = tx_list(c->tx, c->arena, "api_access", owner->id, list_offset(c), c->page_size, &docs, &count);
	if (result == 0)
		result = tx_count(c->tx, "api_access", owner->id, &total);
	if (result < 0)
		return result;
	list_begin(c);
	for (size_t i = 0; i < count; i++)
		entry_write(c, owner, &docs[i], self);
	list_end(c, total, list_offset(c) + c->page_size < total);
	return 0;
}

static int entry_find(struct call *c, struct str owner_id, const struct cidr *network, struct doc *ret_doc)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	return tx_get_by_name(c->tx, c->arena, "api_access", owner_id, str_of(text), ret_doc);
}

/* Each change is an event; the last of the call's is written by the dispatcher. */
static int entry_event(struct call *c, const struct access_owner *owner, const struct cidr *network, bool first)
{
	int result = first ? 0 : audit_next(c);
	char text[IP_TEXT];
	cidr_format_full(network, text);
	if (owner->who == GRANTEE_KEY)
		audit_field(c, "targetPublicKey", owner->name);
	audit_field(c, "whitelistEntry", arena_dup(c->arena, str_of(text)));
	return result;
}

static int entries_insert(struct call *c, const struct access_owner *owner, const struct cidr *networks, size_t count)
{
	struct doc d;
	int64_t total;
	size_t added = 0;
	int result = tx_count(c->tx, "api_access", owner->id, &total);
	for (size_t i = 0; result == 0 && i < count; i++) {
		result = entry_find(c, owner->id, &networks[i], &d);
		if (result != -ENOENT)
			continue;
		result = entry_event(c, owner, &networks[i], added++ == 0);
		if (result == 0)
			result = credential_add_access(c->tx, c->arena, owner->id, &networks[i]);
	}
	if (result < 0)
		return result;
	if (total + (int64_t)added > ENTRIES_MAX) {
		call_fail(c, 400, "TOO_MANY_ACCESS_LIST_ENTRIES",
		          "The access list has %lld entries; with %zu more it would have more than %d.",
		          (long long)total, added, ENTRIES_MAX);
		return call_fail_param(c, arena_printf(c->arena, "%d", ENTRIES_MAX));
	}
	if (!added)
		audit_type(c, NULL);
	return 0;
}

int access_entries_add(struct call *c, const struct access_owner *owner)
{
	struct faults faults = {.count = 0};
	size_t count = json_array_size(c->body);
	if (count == 0 || count > ENTRIES_MAX)
		faults_add(&faults, c->arena, STR_NONE, "must have from 1 to %d entries", ENTRIES_MAX);
	struct cidr *networks = arena_new_array(c->arena, struct cidr, count + 1);
	for (size_t i = 0; i < count && count <= ENTRIES_MAX; i++)
		if (!network_read(c, json_array_get(c->body, i), i, &faults, &networks[i]))
			continue;
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = entries_insert(c, owner, networks, count);
	return result < 0 ? result : access_entries_list(c, owner);
}

/* The entry that the path names: what cannot be a network is not there. */
static int entry_of_path(struct call *c, const struct access_owner *owner, struct cidr *ret_network,
                         struct doc *ret_doc)
{
	struct cidr network;
	if (!network_parse(c->arena, call_path(c, "ipAddress"), &network))
		return -ENOENT;
	int result = entry_find(c, owner->id, &network, ret_doc);
	if (result == 0)
		*ret_network = network;
	return result;
}

int access_entries_get(struct call *c, const struct access_owner *owner)
{
	struct cidr network;
	struct doc d;
	int result = entry_of_path(c, owner, &network, &d);
	if (result == 0)
		entry_write(c, owner, &d, entry_self(owner));
	return result;
}

int access_entries_remove(struct call *c, const struct access_owner *owner)
{
	struct cidr network;
	struct doc d;
	int result = entry_of_path(c, owner, &network, &d);
	if (result == 0)
		result = tx_delete(c->tx, "api_access", d.id);
	if (result == 0)
		result = entry_event(c, owner, &network, true);
	tx_touch_identity(c->tx);
	return result;
}
