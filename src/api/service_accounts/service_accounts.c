/* Service accounts. An account belongs to an organization; projects have it assigned, with roles of their own.
 *
 * Who has a secret of an account is the account. So a project's owner manages the secrets, the details and the access
 * list only of accounts that have nothing but their roles in that project: those of an account that may do more are
 * for the owners of its organization.
 *
 * An account has at most two secrets in force, enough to change from one to the next; those that have expired make
 * room when a new one is made. */
#include "api/credentials/credentials.h"
#include "identity/identity.h"
#include "trail/events.h"

static int account_find(struct call *c, bool assigned, struct doc *ret_doc)
{
	struct str id;
	int result = tx_ref_get(c->tx, c->arena, "service_account_client", call_path(c, "clientId"), &id);
	return result < 0 ? result : credential_load(c, &resource_service_account, id, assigned, ret_doc);
}

/* What changes the secrets and the access list gives power over the account itself. */
static int account_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct doc d;
	int result = account_find(c, c->group.id.n != 0, &d);
	if (result == 0 && c->op->writes && c->op->resource != r)
		result = credential_check_ours(c, &d);
	if (result == 0)
		*ret_doc = d;
	return result;
}

static struct str account_key(struct call *c, const struct doc *d)
{
	return document_text(c->arena, d->body, STR("clientId"));
}

static int account_create(struct call *c, json_t *document)
{
	int result = credential_create(c, document);
	json_object_del(document, "secretExpiresAfterHours");
	return result < 0 ? result : credential_secret_hours(c, c->org.id, c->body, "", &credential_wish(c)->hours);
}

static int account_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	struct credential_wish *wish = credential_wish(c);
	struct new_account account = {.id = d->id};
	if (old)
		return tx_update(c->tx, d);
	int result = credential_add_account(c->tx, c->arena, d->parent, json_field(document, "name"),
	                                    json_field(document, "description"), NULL, 0, wish->hours, &account);
	event_field(c, "clientId", account.client_id);
	wish->secret = account.secret;
	d->body = account.body;
	return result;
}

/* With its roles in the call's scope. */
static int account_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct str secret = credential_wish(c)->secret, scope = c->group.id.n ? c->group.id : d->parent;
	int result = credential_account_more(c->tx, c->arena, d->id, scope, entity);
	if (result == 0 && secret.n)
		json_put_str(json_array_get(json_object_get(entity, "secrets"), 0), "secret", secret);
	return result;
}

const struct resource_hooks service_account_hooks = {.load = account_load,
                                                     .key = account_key,
                                                     .segments = credential_segments,
                                                     .create = account_create,
                                                     .update = credential_update,
                                                     .save = account_save,
                                                     .written = credential_written,
                                                     .drop = credential_drop,
                                                     .gone = credential_gone,
                                                     .view = account_view};

/* Adds the roles to what the account has in the project. */
int service_accounts_invite(struct call *c)
{
	struct doc d;
	role_mask more;
	int result = account_find(c, false, &d);
	if (result == 0)
		result = role_field_read(c, "roles", &more);
	if (result == 0)
		result = credential_assign(c, &d, more);
	return result < 0 ? result : resource_write(c, &resource_service_account, &d);
}

/* The projects that an account is assigned to: its grants, without those in organizations. */

static int projects_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct doc account, *grants = NULL;
	size_t count, kept = 0;
	int result = resource_load(c, &resource_service_account, &account);
	if (result == 0)
		result = tx_list_all(c->tx, c->arena, "grant", account.id, &grants, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!json_flag(doc_json(c->arena, grants[i].body), "inOrg"))
			grants[kept++] = grants[i];
	return segments_docs(c, grants, kept, ret_list, ret_count);
}

static int project_view(struct call *c, const struct doc *d, json_t *entity)
{
	json_object_del(entity, "inOrg");
	json_put_str(entity, "groupId", d->name);
	return 0;
}

const struct resource_hooks account_project_hooks = {.segments = projects_segments, .view = project_view};

/* Secrets. */

/* Those that have expired go: the limit counts the ones in force. */
static int secrets_tidy(struct call *c)
{
	struct str account_id;
	struct doc *docs;
	size_t count;
	int64_t until;
	int result = resource_parent(c, c->op->resource, &account_id);
	if (result == 0)
		result = tx_list_all(c->tx, c->arena, "sa_secret", account_id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (!secret_in_force(&docs[i], &until))
			result = tx_delete(c->tx, "sa_secret", docs[i].id);
	return result;
}

static int secret_create(struct call *c, json_t *document)
{
	struct credential_wish *wish = credential_wish(c);
	int result = credential_secret_hours(c, c->org.id, c->body, "", &wish->hours);
	if (result < 0)
		return result;
	json_object_del(document, "secretExpiresAfterHours");
	credential_secret_fill(c->arena, wish->hours, document, &wish->secret);
	return secrets_tidy(c);
}

static int secret_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	const struct op *one = catalog_op(c->group.id.n ? "deleteGroupSecret" : "deleteOrgSecret");
	event_field(c, "secretId", d->id);
	c->location = link_href(c, one, "secretId", d->id);
	return credential_secret_insert(c->tx, d, credential_wish(c)->secret);
}

static int secret_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct str secret = credential_wish(c)->secret;
	if (secret.n)
		json_put_str(entity, "secret", secret);
	return 0;
}

/* Its tokens die with it. */
static int secret_remove(struct call *c, const struct doc *d)
{
	tx_touch_identity(c->tx);
	return 0;
}

const struct resource_hooks sa_secret_hooks = {
        .create = secret_create, .save = secret_save, .view = secret_view, .remove = secret_remove};
