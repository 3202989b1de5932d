/* User security: the LDAP directory and the customer's certificate authorities of a project. One document a project;
 * the bind password is sealed beside it and never shown. A change reaches the databases like a change of users does,
 * and the answer leaves when it is in force there. */
#include "api/database_users/user_security.h"

#include "api/clusters/clusters.h"
#include "api/kit/verbs.h"
#include "api/maintenance/maintenance.h"
#include "base/certs.h"
#include "directory/directory.h"

#include <errno.h>

#define TEXT_MAX 1024

static bool text_is_plain(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ')
			return false;
	return text.n <= TEXT_MAX;
}

/* Certificates are kept in one form, and an empty text not at all. */
static void pem_check(json_t *of, const char *field, struct str path, struct arena *a, struct faults *faults)
{
	struct str given = json_field(of, field), pem;
	const char *fault;
	if (!given.n)
		json_object_del(of, field);
	else if (certs_normalize(a, given, &pem, &fault) < 0)
		faults_add(faults, a, path, "%s", fault);
	else
		json_put_str(of, field, pem);
}

void ldap_server_check(json_t *ldap, const char *prefix, struct arena *a, struct faults *faults)
{
	struct str host = json_field(ldap, "hostname");
	const json_t *port = json_object_get(ldap, "port"), *password = json_object_get(ldap, "bindPassword");
	struct ldap_query query;
	if (host.p && !directory_host_is_good(host))
		faults_add(faults, a, arena_printf(a, "%shostname", prefix), "must be a host name or an IP address");
	if (host.p && directory_host_is_inner(host))
		faults_add(faults, a, arena_printf(a, "%shostname", prefix),
		           "must not be an address of an inner network: the operator does not allow this one");
	if (port && (json_integer_value(port) < 1 || json_integer_value(port) > 65535))
		faults_add(faults, a, arena_printf(a, "%sport", prefix), "must be from 1 to 65535");
	if (!text_is_plain(json_field(ldap, "bindUsername")))
		faults_add(faults, a, arena_printf(a, "%sbindUsername", prefix),
		           "must be at most %d bytes without control characters", TEXT_MAX);
	/* An empty one would be taken for nobody by a directory, and accepted. */
	if (password && (json_string_length(password) == 0 || !text_is_plain(json_field(ldap, "bindPassword"))))
		faults_add(faults, a, arena_printf(a, "%sbindPassword", prefix),
		           "must be 1 to %d bytes without control characters", TEXT_MAX);
	struct str template = json_field(ldap, "authzQueryTemplate");
	if (template.p && (!text_is_plain(template) || !ldap_query_parse(template, &query)))
		faults_add(faults, a, arena_printf(a, "%sauthzQueryTemplate", prefix),
		           "must be a query like {USER}?memberOf?base");
	pem_check(ldap, "caCertificate", arena_printf(a, "%scaCertificate", prefix), a, faults);
}

static void needs(struct faults *faults, struct arena *a, const json_t *ldap, const char *field, bool has)
{
	if (!has && !json_field(ldap, field).n)
		faults_add(faults, a, arena_printf(a, "ldap.%s", field),
		           "is required where ldap.authenticationEnabled is true");
}

static int security_check(struct call *c, json_t *document, bool has_password)
{
	json_t *ldap = json_object_get(document, "ldap");
	struct faults faults = {.count = 0};
	ldap_server_check(ldap, "ldap.", c->arena, &faults);
	ldap_mapping_check(json_object_get(ldap, "userToDNMapping"), STR("ldap.userToDNMapping"), c->arena, &faults);
	if (json_flag(ldap, "authenticationEnabled")) {
		needs(&faults, c->arena, ldap, "hostname", false);
		needs(&faults, c->arena, ldap, "bindUsername", false);
		needs(&faults, c->arena, ldap, "bindPassword", has_password);
	} else if (json_flag(ldap, "authorizationEnabled")) {
		faults_add(&faults, c->arena, STR("ldap.authorizationEnabled"),
		           "can be true only where ldap.authenticationEnabled is");
	}
	pem_check(json_object_get(document, "customerX509"), "cas", STR("customerX509.cas"), c->arena, &faults);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static void security_links(struct call *c, const struct doc *d)
{
	if (!c->op->writes)
		ldap_verify_link(c);
}

static int security_update(struct call *c, const struct doc *old, json_t *document)
{
	return security_check(c, document, old->secret.n > 0);
}

static int security_save(struct call *c, struct doc *d, const struct doc *old, json_t *document)
{
	json_t *ldap = json_object_get(document, "ldap");
	struct str password = arena_dup(c->arena, json_field(ldap, "bindPassword"));
	if (password.n)
		d->secret = doc_seal(c->arena, d, password);
	json_object_del(ldap, "bindPassword");
	d->body = json_text(c->arena, document);
	return resource_put(c->tx, d, old);
}

static int security_written(struct call *c, const struct doc *d, const struct doc *old)
{
	return access_changed(c, NULL, 0);
}

const struct resource_hooks user_security_hooks = {
        .update = security_update, .save = security_save, .written = security_written, .links = security_links};

/* A part of the settings as it was at first; the answer is all of them. */
static int part_drop(struct call *c, const char *part, const char *field)
{
	struct doc d;
	int result = resource_load(c, &resource_user_security, &d);
	if (result == 0)
		result = if_match(c, d.rev);
	if (result < 0)
		return result;
	json_t *document = doc_json(c->arena, d.body), *from = json_object_get(document, part);
	json_object_del(from, field);
	if (strcmp(field, "userToDNMapping") == 0)
		json_put(from, field, json_array());
	schema_add_defaults(resource_user_security.schema, document);
	d.body = json_text(c->arena, document);
	result = doc_put(c->tx, &d);
	if (result == 0)
		result = access_changed(c, NULL, 0);
	return result < 0 ? result : resource_write(c, &resource_user_security, &d);
}

int user_security_drop_mapping(struct call *c)
{
	return part_drop(c, "ldap", "userToDNMapping");
}

int user_security_drop_x509(struct call *c)
{
	return part_drop(c, "customerX509", "cas");
}

/* To the engines. */

static int ldap_join(struct arena *a, const struct doc *d, const json_t *ldap, struct engine_user *users,
                     struct engine_access *access)
{
	struct engine_ldap *to = arena_new_of(a, struct engine_ldap);
	struct str ca = json_field(ldap, "caCertificate"), password;
	int result = doc_unseal(a, d, &password);
	if (result < 0)
		return result;
	*to = (struct engine_ldap){.host = arena_z(a, json_field(ldap, "hostname")),
	                           .port = (unsigned)json_number(ldap, "port"),
	                           .bind_dn = arena_z(a, json_field(ldap, "bindUsername")),
	                           .bind_password = arena_z(a, password),
	                           .ca = ca.n ? arena_z(a, ca) : NULL};
	directory_transport(to->port, ca.n > 0, &to->tls, &to->start_tls);
	access->ldap = to;
	for (size_t i = 0; i < access->user_count; i++) {
		struct str dn, query;
		if (!users[i].ldap)
			continue;
		ldap_mapping_apply(json_object_get(ldap, "userToDNMapping"), str_of(users[i].name), a, &dn, &query);
		users[i].ldap_dn = dn.p;
		users[i].ldap_query = query.p;
	}
	return 0;
}

int user_security_join(struct tx *tx, struct arena *a, struct str group_id, struct engine_user *users,
                       struct engine_access *access)
{
	struct authority authority = {.certificate = STR_NONE};
	struct doc d;
	int result = authority_load(tx, a, group_id, &authority);
	if (result == 0 || result == -ENOENT)
		result = resource_singleton(tx, a, &resource_user_security, group_id, &d);
	if (result < 0)
		return result;
	const json_t *document = doc_json(a, d.body), *ldap = json_object_get(document, "ldap");
	struct str cas = json_field(json_object_get(document, "customerX509"), "cas");
	if (json_flag(ldap, "authenticationEnabled"))
		result = ldap_join(a, &d, ldap, users, access);
	if (result < 0)
		return result;
	if (authority.certificate.n || cas.n)
		access->client_cas = arena_printf(a, "%.*s%.*s%.*s", STR_ARG(authority.certificate),
		                                  STR_ARG(authority.earlier), STR_ARG(cas))
		                             .p;
	return audit_users_join(tx, a, group_id, users, access->user_count);
}
