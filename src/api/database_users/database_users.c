/* Database users. A call keeps the document and asks for jobs that bring it to the clusters in the user's scope; the
 * answer leaves when the user can log in there (jobs/waits.h). Of a password only the SCRAM verifier is kept; it is
 * made before the write, on the call's own thread.
 *
 * The databases know users by their names alone. That is why a name is taken once in a project, whatever it
 * authenticates against, and why names that log in have at most 63 bytes. */
#include "api/database_users/database_users.h"

#include "api/clusters/clusters.h"
#include "api/database_users/rules.h"
#include "api/database_users/x509.h"
#include "api/kit/temporary.h"
#include "api/kit/verbs.h"
#include "engine/scram.h"
#include "trail/events.h"

#include <errno.h>

static bool type_is(const json_t *user, const char *field, const char *value)
{
	struct str type = json_field(user, field);
	return type.p ? str_is(type, value) : strcmp(value, "NONE") == 0;
}

bool database_user_logs_in(const json_t *user)
{
	return type_is(user, "awsIAMType", "NONE") && type_is(user, "oidcAuthType", "NONE") &&
	       !type_is(user, "ldapAuthType", "GROUP");
}

/* What does not fit is left for the handler to refuse. */
int database_users_prepare(struct call *c)
{
	struct str password = json_field(c->body, "password"), *verifier = arena_new_of(c->arena, struct str);
	if (!scram_password_fits(password))
		return 0;
	int result = scram_verifier(c->arena, password, verifier);
	if (result == 0)
		c->prepared = verifier;
	return result;
}

static void verifier_keep(struct call *c, struct doc *d)
{
	const struct str *verifier = c->prepared;
	if (verifier)
		d->secret = doc_seal(c->arena, d, *verifier);
}

/* The stored form: without the password, with defaults. */
static void document_complete(json_t *document)
{
	json_object_del(document, "password");
	schema_add_defaults(resource_database_user.schema, document);
	schema_normalize_dates(resource_database_user.schema, document);
	json_default(document, "labels", json_array());
	json_default(document, "scopes", json_array());
}

static void user_links(struct call *c, const struct doc *d)
{
	if (str_is(json_field(doc_json(c->arena, d->body), "x509Type"), "MANAGED"))
		entity_link_op(c, "certs", catalog_op("listDatabaseUserCerts"), "username", d->name);
}

static int user_update(struct call *c, const struct doc *old, json_t *document)
{
	int result = database_user_check(c, document, old ? doc_json(c->arena, old->body) : NULL);
	if (result == 0)
		document_complete(document);
	return result;
}

static int user_create(struct call *c, json_t *document)
{
	return user_update(c, NULL, document);
}

static int user_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	verifier_keep(c, d);
	return resource_put(c->tx, d, old);
}

static int user_written(struct call *c, const struct doc *d, const struct doc *old)
{
	const json_t *document = doc_json(c->arena, d->body), *before = old ? doc_json(c->arena, old->body) : document;
	int result = temporary_schedule(c->tx, USER_END_JOB, d->id, temporary_end(document));
	return result < 0 ? result : access_changed(c, (const json_t *const[]){document, before}, 2);
}

/* By its name and what it authenticates against. */
static int user_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	int result = tx_get_by_name(c->tx, c->arena, r->kind, c->group.id, call_path(c, "username"), ret_doc);
	if (result < 0)
		return result;
	struct str database = json_field(doc_json(c->arena, ret_doc->body), "databaseName");
	return str_eq(database, call_path(c, "databaseName")) ? 0 : -ENOENT;
}

static int user_remove(struct call *c, const struct doc *d)
{
	const json_t *document = doc_json(c->arena, d->body);
	size_t certs;
	int result = x509_forget(c->tx, c->arena, d, &certs);
	if (result == 0 && certs) {
		/* Two things happened, so there are two events. */
		result = event_next(c);
		event_set_type(c, "DB_USER_X509_CERT_REVOKED");
		event_field(c, "dbUserUsername", d->name);
	}
	return result < 0 ? result : access_changed(c, (const json_t *const[]){document}, 1);
}

static int user_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return tx_jobs_cancel(tx, USER_END_JOB, d->id);
}

const struct resource_hooks database_user_hooks = {.create = user_create,
                                                   .update = user_update,
                                                   .remove = user_remove,
                                                   .load = user_load,
                                                   .save = user_save,
                                                   .written = user_written,
                                                   .gone = user_gone,
                                                   .links = user_links};

/* The end of temporary users. */

int user_end_save(struct tx *tx, struct job_run *r)
{
	struct doc user;
	size_t certs;
	int result = temporary_due(tx, r, DATABASE_USER, &user);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = tx_delete(tx, DATABASE_USER, user.id);
	if (result == 0)
		result = x509_forget(tx, r->arena, &user, &certs);
	if (result == 0)
		result = access_ask(tx, r->arena, user.parent);
	if (result < 0)
		return result;
	return event_service_field(tx, r->arena, "DB_USER_DELETED", STR_NONE, user.parent, "dbUserUsername", user.name);
}
