/* Access lists of credentials: the addresses from which one may be used. An entry's name in the store is its canonical
 * network, so that 10.0.0.1 and 10.0.0.1/32 are one entry. An owner may shut itself out: a list can be narrowed to
 * where the next call will come from. */
#include "api/credentials/credentials.h"
#include "api/kit/networks.h"

#include "trail/events.h"

#include <errno.h>

#define ENTRIES_MAX 200

static int entry_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str owner;
	struct cidr network;
	int result = resource_parent(c, r, &owner);
	if (result < 0)
		return result;
	if (!network_parse(c->arena, call_path(c, r->key_param), &network)) /* what cannot be a network is not there */
		return -ENOENT;
	return tx_get_by_name(c->tx, c->arena, r->kind, owner, network_name(c->arena, &network), ret_doc);
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
	if (cidr_parse(d->name, &network))
		network_put(c->arena, &network, entity);
	if (c->op->resource != &resource_key_access) {
		rename_field(entity, "created", "createdAt");
		rename_field(entity, "lastUsed", "lastUsedAt");
		rename_field(entity, "count", "requestCount");
	} else if (json_number(entity, "count") == 0) {
		json_object_del(entity, "count"); /* a key's starts with the first use */
	}
	return 0;
}

/* An event of a key names it; the path does so for an account. */
static void entry_event(struct call *c, const struct doc *owner, struct str name)
{
	struct str public_key = document_text(c->arena, owner->body, STR("publicKey"));
	struct cidr network;
	if (public_key.n)
		event_field(c, "targetPublicKey", public_key);
	if (cidr_parse(name, &network))
		event_field(c, "whitelistEntry", network_text(c->arena, &network, false));
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
        .load = entry_load, .key = network_doc_key, .view = entry_view, .remove = entry_remove};

/* Each entry is an event; the last of the call's is written by the dispatcher. */
static int entries_insert(struct call *c, const struct doc *owner, const struct cidr *networks, size_t count)
{
	struct doc d;
	int64_t total;
	size_t added = 0;
	char name[IP_TEXT];
	int result = tx_count(c->tx, "api_access", owner->id, &total);
	struct doc_question *asked = arena_new_array(c->arena, struct doc_question, count + 1);
	for (size_t i = 0; i < count; i++) {
		cidr_format(&networks[i], name);
		asked[i] = (struct doc_question){
		        .kind = "api_access", .parent = owner->id, .name = arena_dup(c->arena, str_of(name))};
	}
	tx_read_ahead(c->tx, asked, count);
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
	if (result == 0 && total + (int64_t)added > ENTRIES_MAX)
		return call_fail_about(c, 400, "TOO_MANY_ACCESS_LIST_ENTRIES",
		                       arena_printf(c->arena, "%d", ENTRIES_MAX),
		                       "The access list has %lld entries; with %zu more it would have more than %d.",
		                       (long long)total, added, ENTRIES_MAX);
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
		(void)!network_read(c, json_array_get(c->body, i), i, &faults, &networks[i]);
	if (faults.count)
		return call_fail_faults(c, &faults);
	result = entries_insert(c, &owner, networks, count);
	return result < 0 ? result : verb_list(c);
}
