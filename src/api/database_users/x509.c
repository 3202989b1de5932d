/* X.509 certificates that the API issues to database users, from the project's CA. The key is made for the answer and
 * kept nowhere. Of what was issued a list is kept with the user, bounded; an ended certificate leaves it for a new one.
 *
 * There is no revocation list: a certificate is refused as soon as its subject is nobody's any more, that is with the
 * deletion of the user. PostgreSQL would ask every authority for a revocation list if it had one of ours, also those of
 * the customer that have none. */
#include "api/database_users/x509.h"

#include "api/clusters/clusters.h"
#include "api/database_users/database_users.h"
#include "api/kit/verbs.h"
#include "base/certs.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define CERTS_KIND "user_certs"
#define CERTS_MAX 100
#define MONTHS 3
#define DAYS_OF_MONTH 30.4375
#define NAME_MAX_BYTES 64 /* of a common name */

static bool is_type(const json_t *user, const char *type)
{
	return str_is(json_field(user, "x509Type"), type);
}

/* A name that stands in a distinguished name as it is. */
static bool name_is_plain(struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || strchr(",+\"\\<>;=#", name.p[i]) ||
		    (unsigned char)name.p[i] > 126)
			return false;
	return name.n > 0 && name.n <= NAME_MAX_BYTES && name.p[0] != ' ' && name.p[name.n - 1] != ' ';
}

struct str x509_subject(struct arena *a, const struct doc *user, const json_t *document)
{
	if (is_type(document, "CUSTOMER"))
		return user->name;
	if (!is_type(document, "MANAGED") || !name_is_plain(user->name))
		return STR_NONE;
	return arena_printf(a, "CN=%.*s,OU=%.*s,DC=steward", STR_ARG(user->name), STR_ARG(user->id));
}

static int user_load(struct call *c, struct doc *ret_doc, json_t **ret_document)
{
	int result = tx_get_by_name(c->tx, c->arena, DATABASE_USER, c->group.id, call_path(c, "username"), ret_doc);
	*ret_document = result < 0 ? NULL : doc_json(c->arena, ret_doc->body);
	return result;
}

/* Those issued to a user; revision 0 when none ever was. */
static int certs_load(struct tx *tx, struct arena *a, const struct doc *user, struct doc *ret_doc)
{
	int result = tx_get(tx, a, CERTS_KIND, user->id, ret_doc);
	if (result != -ENOENT)
		return result;
	*ret_doc = (struct doc){.kind = STR(CERTS_KIND), .id = user->id, .parent = user->parent, .body = STR("{}")};
	return 0;
}

static bool has_ended(const json_t *cert)
{
	int64_t end;
	return !clock_parse(json_field(cert, "notAfter"), &end) || end <= clock_now_ms();
}

int x509_forget(struct tx *tx, struct arena *a, const struct doc *user, size_t *ret_count)
{
	struct doc d;
	size_t in_force = 0;
	int result = certs_load(tx, a, user, &d);
	if (result == 0 && d.rev) {
		const json_t *certs = json_object_get(doc_json(a, d.body), "certs");
		for (size_t i = 0; i < json_array_size(certs); i++)
			in_force += !has_ended(json_array_get(certs, i));
		result = tx_delete(tx, CERTS_KIND, d.id);
	}
	if (result == 0)
		*ret_count = in_force;
	return result;
}

static int certs_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct doc user, d;
	json_t *document;
	int result = user_load(c, &user, &document);
	if (result == 0)
		result = certs_load(c->tx, c->arena, &user, &d);
	if (result < 0)
		return result;
	const json_t *certs = json_object_get(doc_json(c->arena, d.body), "certs");
	size_t count = json_array_size(certs);
	struct doc *docs = arena_new_array(c->arena, struct doc, count + 1);
	for (size_t i = 0; i < count; i++)
		docs[i] = (struct doc){.body = json_text(c->arena, json_array_get(certs, i))};
	return segments_docs(c, docs, count, ret_list, ret_count);
}

const struct resource_hooks user_certs_hooks = {.segments = certs_segments};

static int certificate_check(struct call *c, const struct doc *user, const json_t *document)
{
	if (is_type(document, "MANAGED") && name_is_plain(user->name))
		return 0;
	if (is_type(document, "MANAGED"))
		return call_fail_about(
		        c, 400, "VALIDATION_ERROR", STR("username"),
		        "username: a certificate can name only a user whose name has 1 to %d printable ASCII "
		        "characters "
		        "other than , + \" \\ < > ; = and #.",
		        NAME_MAX_BYTES);
	return call_fail_about(
	        c, 409, "X509_TYPE_NOT_MANAGED", user->name,
	        "\"%.*s\" is not a user of x509Type MANAGED: certificates are issued to such users only.",
	        STR_ARG(user->name));
}

static int months_read(struct call *c, int64_t *ret_months)
{
	const json_t *months = json_object_get(c->body, "monthsUntilExpiration");
	*ret_months = months ? json_integer_value(months) : MONTHS;
	if (*ret_months >= 1)
		return 0;
	return call_fail_field(c, 400, "VALIDATION_ERROR", "monthsUntilExpiration", "must be at least 1.");
}

/* One file for a client: the key, the certificate, and the authority's, by which it knows the databases. */
static int issue(struct call *c, const struct doc *user, int64_t months, json_t **ret_row, struct str *ret_pem)
{
	const struct cert_name names[] = {{"DC", STR("steward")}, {"OU", user->id}, {"CN", user->name}};
	struct authority authority;
	struct pair p = {0};
	struct str cert, key;
	int result = authority_ensure(c->tx, c->arena, c->group.id, &authority);
	/* The databases must know a new authority before anybody comes with what it signed. */
	if (result == 0 && authority.is_new)
		result = access_changed(c, NULL, 0);
	if (result < 0)
		return result;
	struct pair ca = pair_parse(authority.certificate, authority.key);
	bool made = pair_fits(&ca) &&
	            pair_begin(&p, CERT_CLIENT, names, 3, ca.cert, (int64_t)((double)months * DAYS_OF_MONTH)) &&
	            pair_sign(&p, ca.key);
	result = made ? pair_pem(&p, c->arena, &cert, &key) : -EIO;
	if (result == 0) {
		char created[CLOCK_TEXT], ends[CLOCK_TEXT];
		struct str subject = cert_subject(c->arena, p.cert);
		clock_format(clock_now_ms(), created);
		clock_format(cert_ends_ms(p.cert), ends);
		*ret_row = json_pack("{s:I,s:s,s:s%,s:s,s:s%}", "_id", (json_int_t)cert_serial(p.cert), "createdAt",
		                     created, "groupId", c->group.id.p, c->group.id.n, "notAfter", ends, "subject",
		                     subject.p, subject.n);
		*ret_pem = arena_printf(c->arena, "%.*s%.*s%.*s", STR_ARG(key), STR_ARG(cert),
		                        STR_ARG(authority.certificate));
		result = *ret_row ? 0 : -EIO;
	}
	pair_free(&p);
	pair_free(&ca);
	return result;
}

/* Room for one more: those that have ended go. */
static int certs_make_room(struct call *c, json_t *certs)
{
	for (size_t i = json_array_size(certs); i-- > 0 && json_array_size(certs) >= CERTS_MAX;)
		if (has_ended(json_array_get(certs, i)))
			json_array_remove(certs, i);
	if (json_array_size(certs) < CERTS_MAX)
		return 0;
	return call_fail(c, 409, "TOO_MANY_CERTIFICATES",
	                 "The user has %d certificates that are valid, which is the most.", CERTS_MAX);
}

int x509_create_cert(struct call *c)
{
	struct doc user, d;
	json_t *document, *row = NULL;
	struct str pem;
	int64_t months = 0;
	int result = user_load(c, &user, &document);
	if (result == 0)
		result = months_read(c, &months);
	if (result == 0)
		result = certificate_check(c, &user, document);
	if (result == 0)
		result = certs_load(c->tx, c->arena, &user, &d);
	if (result < 0)
		return result;
	json_t *body = doc_json(c->arena, d.body), *certs = json_default(body, "certs", json_array());
	result = certs_make_room(c, certs);
	if (result == 0)
		result = issue(c, &user, months, &row, &pem);
	if (result < 0)
		return result;
	event_field(c, "dbUserUsername", user.name);
	json_array_append_new(certs, row);
	d.body = json_text(c->arena, body);
	result = doc_put(c->tx, &d);
	if (result == 0)
		json_str(&c->out, pem);
	return result;
}
