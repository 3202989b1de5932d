/* Database users. A call keeps the document and asks for jobs that bring it to the clusters in the user's scope; the
 * answer leaves when the user can log in there (access_jobs.h). Of a password only the SCRAM verifier is kept; it is made
 * before the write, on the call's own thread.
 *
 * The databases know users by their names alone. That is why a name is taken once in a project, whatever it authenticates
 * against, and why names that log in have at most 63 bytes. */
#include "api/database_users.h"

#include "api/access_jobs.h"
#include "api/database_user_rules.h"
#include "api/project_limits.h"
#include "api/scram.h"
#include "api/verbs.h"
#include "api/x509.h"
#include "base/clock.h"
#include "base/id.h"
#include "gate/audit.h"

#include <errno.h>

int database_users_prepare(struct call *c);
int database_users_create(struct call *c);
int database_users_get(struct call *c);
int database_users_update(struct call *c);
int database_users_delete(struct call *c);

#define LIMIT "svc.project.security.databaseAccess.users"

extern const struct resource resource_database_user;

bool database_user_in_scope(const json_t *user, struct str cluster_name)
{
	const json_t *scopes = json_object_get(user, "scopes");
	for (size_t i = 0; i < json_array_size(scopes); i++) {
		const json_t *scope = json_array_get(scopes, i);
		if (str_is(json_field(scope, "type"), "CLUSTER") && str_eq(json_field(scope, "name"), cluster_name))
			return true;
	}
	return json_array_size(scopes) == 0;
}

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

static struct str seal_context(struct arena *a, struct str id)
{
	return arena_printf(a, DATABASE_USER "/%.*s", STR_ARG(id));
}

int database_user_verifier(struct arena *a, const struct doc *user, struct str *ret_verifier)
{
	if (user->secret.n)
		return seal_open(a, user->secret, seal_context(a, user->id), ret_verifier);
	*ret_verifier = STR_NONE;
	return 0;
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
		d->secret = seal(c->arena, *verifier, seal_context(c->arena, d->id));
}

/* The end of a temporary user is a job that is due then. */
static int end_schedule(struct tx *tx, struct str id, const json_t *user)
{
	int64_t until;
	int result = tx_jobs_cancel(tx, USER_END_JOB, id);
	if (result < 0 || !clock_parse(json_field(user, "deleteAfterDate"), &until))
		return result;
	struct job job = {.kind = STR(USER_END_JOB), .subject = id, .due_ms = until};
	return tx_job_add(tx, &job);
}

static void array_default(json_t *document, const char *field)
{
	if (!json_object_get(document, field))
		json_object_set_new(document, field, json_array());
}

/* The stored form: without the password, with defaults. */
static void document_complete(json_t *document)
{
	json_object_del(document, "password");
	schema_add_defaults(resource_database_user.schema, document);
	schema_normalize_dates(resource_database_user.schema, document);
	array_default(document, "labels");
	array_default(document, "scopes");
}

static int answer(struct call *c, const struct doc *d, const json_t *document)
{
	const struct op *certs = catalog_op("listDatabaseUserCerts");
	c->etag = d->rev;
	entity_write(c, &c->out, d->body, resource_database_user.self, "username", d->name, false);
	if ((certs->roles & c->roles) && str_is(json_field(document, "x509Type"), "MANAGED"))
		entity_link(c, &c->out, "certs", link_href(c, certs, "username", d->name));
	return 0;
}

static int insert(struct call *c, json_t *document, struct doc *d)
{
	int result = tx_insert(c->tx, d);
	if (result == -EEXIST) {
		call_fail(c, 409, "DUPLICATE_DATABASE_USER",
		          "username: the project has a database user \"%.*s\" already. Choose another.",
		          STR_ARG(d->name));
		return call_fail_param(c, d->name);
	}
	if (result == 0)
		result = end_schedule(c->tx, d->id, document);
	return result < 0 ? result : access_changed(c, (const json_t *const[]){document}, 1);
}

int database_users_create(struct call *c)
{
	struct id id = id_new();
	json_t *document = json_keep(c->arena, json_deep_copy(c->body));
	int result = database_user_check(c, document, NULL);
	if (result == 0)
		result = limit_enforce(c, LIMIT, 1);
	if (result < 0)
		return result;
	document_complete(document);
	struct doc d = {.kind = STR(DATABASE_USER),
	                .id = arena_dup(c->arena, id_str(&id)),
	                .parent = c->group.id,
	                .name = json_field(document, "username"),
	                .created_ms = clock_now_ms(),
	                .rev = 1,
	                .body = json_text(c->arena, document)};
	verifier_keep(c, &d);
	audit_field(c, "dbUserUsername", d.name);
	result = insert(c, document, &d);
	if (result < 0)
		return result;
	c->location = entity_href(c, resource_database_user.self, "username", d.name, d.body);
	return answer(c, &d, document);
}

/* The user that the path names, by its name and what it authenticates against. */
static int user_load(struct call *c, struct doc *ret_doc, json_t **ret_document)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, DATABASE_USER, c->group.id, call_path(c, "username"), &d);
	if (result < 0)
		return result;
	json_t *document = doc_json(c->arena, d.body);
	if (!str_eq(json_field(document, "databaseName"), call_path(c, "databaseName")))
		return -ENOENT;
	*ret_doc = d;
	*ret_document = document;
	return 0;
}

int database_users_get(struct call *c)
{
	struct doc d;
	json_t *document;
	int result = user_load(c, &d, &document);
	return result < 0 ? result : answer(c, &d, document);
}

int database_users_update(struct call *c)
{
	struct doc d;
	json_t *old;
	int result = user_load(c, &d, &old);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	json_t *document = json_keep(c->arena, json_deep_copy(old));
	json_object_update(document, c->body);
	result = database_user_check(c, document, old);
	if (result < 0)
		return result;
	document_complete(document);
	d.body = json_text(c->arena, document);
	verifier_keep(c, &d);
	audit_field(c, "dbUserUsername", d.name);
	result = tx_update(c->tx, &d);
	d.rev++;
	if (result == 0)
		result = end_schedule(c->tx, d.id, document);
	if (result == 0)
		result = access_changed(c, (const json_t *const[]){old, document}, 2);
	return result < 0 ? result : answer(c, &d, document);
}

int database_users_delete(struct call *c)
{
	struct doc d;
	size_t certs;
	json_t *document;
	int result = user_load(c, &d, &document);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	audit_field(c, "dbUserUsername", d.name);
	result = tx_delete(c->tx, DATABASE_USER, d.id);
	if (result == 0)
		result = x509_forget(c->tx, c->arena, &d, &certs);
	if (result == 0 && certs) {
		/* Two things happened, so there are two events. */
		result = audit_next(c);
		audit_type(c, "DB_USER_X509_CERT_REVOKED");
		audit_field(c, "dbUserUsername", d.name);
	}
	if (result == 0)
		result = tx_jobs_cancel(c->tx, USER_END_JOB, d.id);
	return result < 0 ? result : access_changed(c, (const json_t *const[]){document}, 1);
}

/* The end of temporary users. */

static int end_save(struct tx *tx, struct job_run *r)
{
	struct doc user, group;
	int64_t until;
	size_t certs;
	int result = tx_get(tx, r->arena, DATABASE_USER, r->job.subject, &user);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	const json_t *document = doc_json(r->arena, user.body);
	/* It may have been given more time meanwhile: then another job is due. */
	if (!clock_parse(json_field(document, "deleteAfterDate"), &until) || until > clock_now_ms())
		return 0;
	result = tx_get(tx, r->arena, "project", user.parent, &group);
	if (result == 0)
		result = tx_delete(tx, DATABASE_USER, user.id);
	if (result == 0)
		result = x509_forget(tx, r->arena, &user, &certs);
	if (result == 0)
		result = access_ask(tx, r->arena, user.parent);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return audit_service_field(tx, r->arena, "DB_USER_DELETED", group.parent, group.id, "dbUserUsername",
	                           user.name);
}

int user_end_step(struct job_run *r)
{
	r->save = end_save;
	return JOB_DONE;
}
