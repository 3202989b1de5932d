/* API keys. A key belongs to an organization; projects have it assigned, with roles of their own. A project sees only
 * what a key may do in it and in the organization, not in other projects. */
#include "api/credentials/credentials.h"
#include "trail/events.h"

static int key_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	return credential_load(c, r, call_path(c, "apiUserId"), c->group.id.n != 0, ret_doc);
}

static int key_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct new_key key = {.id = d->id};
	if (old)
		return tx_update(c->tx, d);
	int result = credential_add_key(c->tx, c->arena, d->parent, json_field(document, "desc"), NULL, 0, &key);
	if (result < 0)
		return result;
	json_put_str(document, "publicKey", key.public_key);
	credential_wish(c)->secret = key.private_key;
	d->body = key.body;
	return 0;
}

static int key_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct str secret = credential_wish(c)->secret;
	if (secret.n)
		json_put_str(entity, "privateKey", secret);
	return credential_key_roles(c->tx, c->arena, d->id, c->group.id, entity);
}

const struct resource_hooks api_key_hooks = {.load = key_load,
                                             .segments = credential_segments,
                                             .create = credential_create,
                                             .update = credential_update,
                                             .save = key_save,
                                             .written = credential_written,
                                             .drop = credential_drop,
                                             .gone = credential_gone,
                                             .view = key_view};

/* Adds the roles of all the body's entries to what the key has in the project. */
int api_keys_assign(struct call *c)
{
	struct doc d;
	role_mask roles = 0;
	int result = credential_load(c, &resource_api_key, call_path(c, "apiUserId"), false, &d);
	if (result == 0 && json_array_size(c->body) == 0)
		result = call_fail_fault(c, STR_NONE, "must have at least one entry, with roles");
	for (size_t i = 0; result == 0 && i < json_array_size(c->body); i++) {
		role_mask more = 0;
		const json_t *names = json_object_get(json_array_get(c->body, i), "roles");
		result = role_list_read(c, names, arena_printf(c->arena, "[%zu].roles", i).p, false, &more);
		roles |= more;
	}
	if (result < 0)
		return result;
	event_field(c, "targetPublicKey", document_text(c->arena, d.body, STR("publicKey")));
	return credential_assign(c, &d, roles);
}
