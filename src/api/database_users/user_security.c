/* User security: the LDAP directory and the customer's certificate authorities of a project. One document a project;
 * the bind password is sealed beside it and never shown. A change reaches the databases like a change of users does,
 * and the answer leaves when it is in force there. */
#include "api/database_users/user_security.h"

#include "api/clusters/clusters.h"
#include "api/database_users/ldap_mapping.h"
#include "api/kit/verbs.h"
#include "api/maintenance/maintenance.h"
#include "base/certs.h"
#include "base/clock.h"
#include "base/ip.h"
#include "trail/events.h"

#include <ctype.h>
#include <errno.h>

#define SECURITY_KIND "user_security"
#define TEXT_MAX 1024

static struct str seal_context(struct arena *a, struct str group_id)
{
	return arena_printf(a, SECURITY_KIND "/%.*s", STR_ARG(group_id));
}

bool ldap_host_is_good(struct str host)
{
	struct ip ip;
	if (ip_parse(host, &ip))
		return true;
	for (size_t i = 0; i < host.n; i++)
		if (!isalnum((unsigned char)host.p[i]) && host.p[i] != '-' && host.p[i] != '.')
			return false;
	return host.n > 0 && host.n < 254 && host.p[0] != '-' && host.p[0] != '.';
}

void ldap_transport(unsigned port, bool has_ca, bool *ret_tls, bool *ret_start_tls)
{
	bool clear = port == 389 || port == 3268;
	*ret_tls = !clear;
	*ret_start_tls = clear && has_ca;
}

static bool text_is_plain(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ')
			return false;
	return text.n <= TEXT_MAX;
}

void ldap_server_check(json_t *ldap, const char *prefix, struct arena *a, struct faults *faults)
{
	struct str host = json_field(ldap, "hostname"), ca = json_field(ldap, "caCertificate"), pem;
	const json_t *port = json_object_get(ldap, "port"), *password = json_object_get(ldap, "bindPassword");
	struct ldap_query query;
	const char *fault;
	if (host.p && !ldap_host_is_good(host))
		faults_add(faults, a, arena_printf(a, "%shostname", prefix), "must be a host name or an IP address");
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
	if (ca.n && certs_normalize(a, ca, &pem, &fault) < 0)
		faults_add(faults, a, arena_printf(a, "%scaCertificate", prefix), "%s", fault);
	else if (ca.n)
		json_put_str(ldap, "caCertificate", pem);
	else
		json_object_del(ldap, "caCertificate");
}

static void needs(struct faults *faults, struct arena *a, const json_t *ldap, const char *field, bool has)
{
	if (!has && !json_field(ldap, field).n)
		faults_add(faults, a, arena_printf(a, "ldap.%s", field),
		           "is required where ldap.authenticationEnabled is true");
}

static int security_check(struct call *c, json_t *document, bool has_password)
{
	json_t *ldap = json_object_get(document, "ldap"), *x509 = json_object_get(document, "customerX509");
	struct faults faults = {.count = 0};
	struct str cas = json_field(x509, "cas"), pem;
	const char *fault;
	ldap_server_check(ldap, "ldap.", c->arena, &faults);
	ldap_mapping_check(json_object_get(ldap, "userToDNMapping"), STR("ldap.userToDNMapping"), c->arena, &faults);
	if (json_is_true(json_object_get(ldap, "authenticationEnabled"))) {
		needs(&faults, c->arena, ldap, "hostname", false);
		needs(&faults, c->arena, ldap, "bindUsername", false);
		needs(&faults, c->arena, ldap, "bindPassword", has_password);
	} else if (json_is_true(json_object_get(ldap, "authorizationEnabled"))) {
		faults_add(&faults, c->arena, STR("ldap.authorizationEnabled"),
		           "can be true only where ldap.authenticationEnabled is");
	}
	if (cas.n && certs_normalize(c->arena, cas, &pem, &fault) < 0)
		faults_add(&faults, c->arena, STR("customerX509.cas"), "%s", fault);
	else if (cas.n)
		json_put_str(x509, "cas", pem);
	else
		json_object_del(x509, "cas");
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
		d->secret = seal(c->arena, password, seal_context(c->arena, d->id));
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
	struct doc old, d;
	int result = resource_load(c, &resource_user_security, &old);
	if (result == 0)
		result = if_match(c, old.rev);
	if (result < 0)
		return result;
	json_t *document = doc_json(c->arena, old.body), *from = json_object_get(document, part);
	json_object_del(from, field);
	if (strcmp(field, "userToDNMapping") == 0)
		json_put(from, field, json_array());
	d = old;
	d.created_ms = old.rev ? old.created_ms : clock_now_ms();
	schema_add_defaults(resource_user_security.schema, document);
	result = security_save(c, &d, &old, document);
	if (result == 0)
		result = access_changed(c, NULL, 0);
	d.rev = old.rev + 1;
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
	struct str ca = json_field(ldap, "caCertificate"), password = STR_NONE;
	int result = d->secret.n ? seal_open(a, d->secret, seal_context(a, d->id), &password) : 0;
	if (result < 0)
		return result;
	*to = (struct engine_ldap){.host = arena_z(a, json_field(ldap, "hostname")),
	                           .port = (unsigned)json_integer_value(json_object_get(ldap, "port")),
	                           .bind_dn = arena_z(a, json_field(ldap, "bindUsername")),
	                           .bind_password = arena_z(a, password),
	                           .ca = ca.n ? arena_z(a, ca) : NULL};
	ldap_transport(to->port, ca.n > 0, &to->tls, &to->start_tls);
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
	struct str cas = STR_NONE;
	int result = authority_load(tx, a, group_id, &authority);
	if (result < 0 && result != -ENOENT)
		return result;
	result = tx_get(tx, a, SECURITY_KIND, group_id, &d);
	if (result == 0) {
		const json_t *document = doc_json(a, d.body), *ldap = json_object_get(document, "ldap");
		cas = json_field(json_object_get(document, "customerX509"), "cas");
		if (json_is_true(json_object_get(ldap, "authenticationEnabled")))
			result = ldap_join(a, &d, ldap, users, access);
	}
	if (result < 0 && result != -ENOENT)
		return result;
	if (authority.certificate.n || cas.n)
		access->client_cas = arena_printf(a, "%.*s%.*s%.*s", STR_ARG(authority.certificate),
		                                  STR_ARG(authority.earlier), STR_ARG(cas))
		                             .p;
	return audit_users_join(tx, a, group_id, users, access->user_count);
}
