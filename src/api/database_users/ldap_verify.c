/* Checks of an LDAP directory: a request is kept, a job does what the databases would do, step by step, and notes how
 * far it got. The bind password is sealed until then and forgotten afterwards. A project's checks run one after the
 * other, so that a directory that does not answer costs one job thread at most. */
#include "api/database_users/user_security.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "directory/directory.h"

#include <errno.h>

#define VERIFY_KIND "ldap_verification"
#define KEPT 50 /* a project's checks; the oldest goes */

static int oldest_drop(struct call *c)
{
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_count(c->tx, VERIFY_KIND, c->group.id, &total);
	if (result < 0 || total < KEPT)
		return result;
	result = tx_list(c->tx, c->arena, VERIFY_KIND, c->group.id, 0, 1, &docs, &count);
	return result < 0 || !count ? result : tx_delete(c->tx, VERIFY_KIND, docs[0].id);
}

int ldap_verify_create(struct call *c)
{
	struct faults faults = {.count = 0};
	struct str id = id_make(c->arena);
	json_t *request = json_clone(c->arena, c->body);
	schema_add_defaults(c->version->request, request);
	ldap_server_check(request, "", c->arena, &faults);
	if (!json_field(request, "hostname").n)
		faults_add(&faults, c->arena, STR("hostname"), "must be a host name or an IP address");
	if (faults.count)
		return call_fail_faults(c, &faults);
	struct doc d = {
	        .kind = STR(VERIFY_KIND), .id = id, .parent = c->group.id, .created_ms = clock_now_ms(), .rev = 1};
	/* The query is not shown either, so it goes where the password goes. */
	json_t *hidden = json_pack("{s:O,s:O}", "password", json_object_get(request, "bindPassword"), "query",
	                           json_object_get(request, "authzQueryTemplate"));
	d.secret = doc_seal(c->arena, &d, json_text(c->arena, hidden));
	json_decref(hidden);
	json_object_del(request, "links");
	schema_strip_write_only(c->version->request, request);
	json_t *body = doc_json(c->arena, STR("{\"status\":\"PENDING\",\"validations\":[]}"));
	json_put_str(body, "groupId", c->group.id);
	json_put_str(body, "requestId", id);
	json_object_set(body, "request", request);
	d.body = json_text(c->arena, body);
	struct job job = {.kind = STR(LDAP_VERIFY_JOB),
	                  .subject = arena_printf(c->arena, "ldap/%.*s", STR_ARG(c->group.id)),
	                  .args = arena_printf(c->arena, "{\"id\":\"%.*s\"}", STR_ARG(id)),
	                  .due_ms = clock_now_ms()};
	int result = oldest_drop(c);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == 0)
		result = tx_job_add(c->tx, &job);
	if (result < 0)
		return result;
	c->location = link_href(c, resource_ldap_verification.self, "requestId", d.id);
	entity_write(c, &c->out, d.body, resource_ldap_verification.self, "requestId", d.id, false);
	return 0;
}

void ldap_verify_link(struct call *c)
{
	struct doc d;
	if (doc_last(c->tx, c->arena, VERIFY_KIND, c->group.id, &d) == 0)
		entity_link_op(c, "verify", resource_ldap_verification.self, "requestId", d.id);
}

/* One check under way. */
struct check {
	struct arena *arena;
	struct doc doc;
	json_t *body, *validations;
	struct directory_server server;
	struct str user, password, query;
	bool good; /* every step */
};

static bool note(struct check *k, const char *type, bool good)
{
	json_array_append_new(k->validations,
	                      json_pack("{s:s,s:s}", "status", good ? "OK" : "FAIL", "validationType", type));
	return good;
}

/* {USER} becomes the name of the one who asks. */
static bool query_make(struct check *k, struct ldap_query *ret_query)
{
	struct str mark = STR("{USER}");
	const char *at = memmem(k->query.p, k->query.n, mark.p, mark.n);
	if (!note(k, "TEMPLATE", at != NULL))
		return false;
	struct str rest = {at + mark.n, k->query.n - (size_t)(at - k->query.p) - mark.n};
	bool in_filter = memchr(k->query.p, '?', (size_t)(at - k->query.p)) != NULL;
	struct str user = in_filter ? ldap_escape_filter(k->arena, k->user) : k->user;
	struct str text = arena_printf(k->arena, "%.*s%.*s%.*s", (int)(at - k->query.p), k->query.p, STR_ARG(user),
	                               STR_ARG(rest));
	return note(k, "PARSE_AUTHZ_QUERY", ldap_query_parse(text, ret_query));
}

/* Notes a step of the directory's, and logs why it failed. */
static bool step_note(struct check *k, const char *type, int result, const char *why)
{
	if (result < 0)
		log_info("LDAP check %.*s: %s: %s", STR_ARG(k->doc.id), type, why);
	return note(k, type, result == 0);
}

static bool directory_try(struct check *k)
{
	struct directory *d = NULL;
	struct ldap_query query;
	const char *why = NULL;
	int result = directory_open(&k->server, k->arena, &d, &why);
	bool good = step_note(k, "CONNECT", result, why);
	if (good) {
		result = directory_bind(d, k->user, k->password, &why);
		good = step_note(k, "AUTHENTICATE", result, why);
	}
	good = good && note(k, "AUTHORIZATION_ENABLED", true) && query_make(k, &query);
	if (good) {
		result = directory_search(d, &query, &why);
		good = step_note(k, "QUERY_SERVER", result, why);
	}
	directory_close(d);
	return good;
}

static int check_load(struct job_run *r, struct check *k)
{
	struct str id = json_field(doc_json(r->arena, r->job.args), "id"), plain;
	int result = tx_get(r->reader, r->arena, VERIFY_KIND, id, &k->doc);
	if (result == 0)
		result = k->doc.secret.n ? doc_unseal(r->arena, &k->doc, &plain) : -EBADMSG;
	if (result < 0)
		return result;
	const json_t *hidden = doc_json(r->arena, plain);
	k->arena = r->arena;
	k->body = doc_json(r->arena, k->doc.body);
	k->validations = json_object_get(k->body, "validations");
	const json_t *request = json_object_get(k->body, "request");
	k->server = (struct directory_server){.host = json_field(request, "hostname"),
	                                      .ca = json_field(request, "caCertificate"),
	                                      .port = (unsigned)json_number(request, "port")};
	k->user = json_field(request, "bindUsername");
	k->password = json_field(hidden, "password");
	k->query = json_field(hidden, "query");
	return 0;
}

/* The password is not needed any more. */
static int check_end(struct tx *tx, struct arena *a, struct doc *d, json_t *body, const char *status)
{
	json_put_z(body, "status", status);
	d->body = json_text(a, body);
	d->secret = STR_NONE;
	d->rev = 0;
	int result = tx_update(tx, d);
	return result == -ENOENT ? 0 : result;
}

static int check_save(struct tx *tx, struct job_run *r)
{
	struct check *k = r->save_ctx;
	return check_end(tx, r->arena, &k->doc, k->body, k->good ? "SUCCESS" : "FAIL");
}

int ldap_verify_step(struct job_run *r)
{
	struct check *k = arena_new_of(r->arena, struct check);
	tx_begin_read(r->reader);
	int result = check_load(r, k);
	job_read_end(r);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	k->good = note(k, "SERVER_SPECIFIED", true) && directory_try(k);
	r->save = check_save;
	r->save_ctx = k;
	return JOB_DONE;
}

int ldap_verify_failed(struct tx *tx, struct job_run *r)
{
	struct doc d;
	int result = tx_get(tx, r->arena, VERIFY_KIND, json_field(doc_json(r->arena, r->job.args), "id"), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return check_end(tx, r->arena, &d, doc_json(r->arena, d.body), "FAIL");
}
