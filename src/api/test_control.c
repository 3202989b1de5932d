/* /api/test/: for tests, ours and our users'. It moves the virtual clock, brings the store back to its first state, makes
 * tenants and credentials, and injects faults. It exists only when the service was started with --test-control.
 *
 * Each call runs on a thread of its own, because it may wait for the store. */
#include "api/cluster_jobs.h"
#include "api/credentials.h"
#include "api/federations.h"
#include "api/tenants.h"
#include "api/verbs.h"

#include "base/clock.h"
#include "base/id.h"
#include "gate/answer.h"
#include "gate/audit.h"
#include "gate/authenticate.h"
#include "gate/dispatch.h"
#include "gate/service.h"

#include <errno.h>
#include <pthread.h>

#define BULK 5000

struct control {
	struct service *service;
	struct request *request;
	json_t *body;
	int result; /* HTTP status of a refusal, or 0 */
	const char *why;
};

static int refuse(struct control *t, int status, const char *why)
{
	t->result = status;
	t->why = why;
	return -status;
}

static void clock_get(struct control *t, struct buf *b)
{
	char now[CLOCK_TEXT];
	clock_format(clock_now_ms(), now);
	json_open(b, '{');
	json_key(b, "now");
	json_z(b, now);
	json_key(b, "virtual");
	json_bool(b, clock_is_virtual());
	json_close(b, '}');
}

static void clock_post(struct control *t, struct buf *b)
{
	const json_t *seconds = json_object_get(t->body, "advanceSeconds");
	double value = json_number_value(seconds);
	if (!clock_is_virtual()) {
		refuse(t, 409, "the clock is real: start the service with --clock virtual");
	} else if (!json_is_number(seconds) || value < 0 || value > 1e10) {
		refuse(t, 400, "advanceSeconds: must be a number from 0 to 10000000000");
	} else {
		clock_advance_ms((int64_t)(value * 1000));
		jobs_wake(t->service->jobs);
		clock_get(t, b);
	}
}

#define STANDARD_SECONDS 3 /* of --simulated-seconds */

static bool is_simulated(const struct control *t)
{
	return t->service->engine_ops == &engine_simulated;
}

/* The simulated engine: {"seconds": 0, "fail": "create", "times": 2}. */
static void engine_post(struct control *t, struct buf *b)
{
	const json_t *seconds = json_object_get(t->body, "seconds"), *fail = json_object_get(t->body, "fail"),
	             *times = json_object_get(t->body, "times");
	double value = json_is_number(seconds) ? json_number_value(seconds) : STANDARD_SECONDS;
	json_int_t count = json_is_integer(times) ? json_integer_value(times) : 1000000;
	if (!is_simulated(t))
		refuse(t, 409, "the engine is not the simulated one");
	else if (value < 0 || value > 86400 || count < 0 || count > 1000000)
		refuse(t, 400, "seconds: must be from 0 to 86400; times: from 0 to 1000000");
	else
		simulated_tell(t->service->engine_state, value, json_string_value(fail), (unsigned)count);
}

static void reset(struct control *t, struct buf *b)
{
	struct str *ids = NULL;
	size_t count = 0;
	fault_clear(t->service);
	if (clock_is_virtual())
		clock_reset();
	bool collected = clusters_collect(t->service->store, t->request->arena, &ids, &count) == 0;
	if (!collected || bootstrap_reset(t->service->store, t->service->data_dir) < 0 ||
	    store_write_wait(t->service->store, jobs_schedule, t->service->jobs) < 0)
		refuse(t, 500, "the store could not be reset");
	if (is_simulated(t))
		simulated_tell(t->service->engine_state, 0, NULL, 0);
	clusters_destroy(t->service, ids, count);
	if (is_simulated(t))
		simulated_tell(t->service->engine_state, STANDARD_SECONDS, NULL, 0);
	limiter_reset(t->service->limiter);
}

static void buckets_reset(struct control *t, struct buf *b)
{
	limiter_reset(t->service->limiter);
}

static void faults_post(struct control *t, struct buf *b)
{
	const json_t *id = json_object_get(t->body, "operationId"), *times = json_object_get(t->body, "times");
	int64_t status = json_integer_value(json_object_get(t->body, "status")),
	        delay = json_integer_value(json_object_get(t->body, "delayMs"));
	if (!json_is_string(id) || !catalog_op(json_string_value(id)))
		refuse(t, 400, "operationId: must be the id of an operation");
	else if ((status && (status < 400 || status > 599)) || delay < 0 || delay > 60000)
		refuse(t, 400, "status: must be from 400 to 599; delayMs: from 0 to 60000");
	else
		fault_inject(t->service, str_of(json_string_value(id)), (int)status, (unsigned)delay,
		             times ? (unsigned)json_integer_value(times) : 1);
}

static void faults_delete(struct control *t, struct buf *b)
{
	fault_clear(t->service);
}

/* Seeding. One organization is one write; bulk projects follow in writes of BULK. */

struct seeding {
	struct arena *arena;
	const json_t *wanted;
	json_t *answer; /* of this organization */
	struct str org_id;
	int64_t bulk_from, bulk_to;
	struct str first_bulk;
};

static struct str new_id(struct arena *a)
{
	struct id id = id_new();
	return arena_dup(a, id_str(&id));
}

static json_t *str_json(struct str s)
{
	return json_stringn(s.p, s.n);
}

static int seed_project(struct tx *tx, struct arena *a, struct str org_id, struct str name, struct str *ret_id)
{
	struct str id = new_id(a);
	json_t *body = json_pack("{s:o, s:o}", "name", str_json(name), "orgId", str_json(org_id));
	project_complete(body, id);
	struct doc d = {.kind = STR("project"),
	                .id = id,
	                .parent = org_id,
	                .name = name,
	                .created_ms = clock_now_ms(),
	                .body = json_text(a, body)};
	json_decref(body);
	*ret_id = id;
	return tx_insert(tx, &d);
}

static int seed_projects(struct tx *tx, struct seeding *s)
{
	const json_t *names = json_object_get(s->wanted, "projects");
	json_t *list = json_array();
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(names); i++) {
		const json_t *name = json_array_get(names, i);
		struct str id, text = {json_string_value(name), json_string_length(name)};
		if (!text.n) {
			result = -EINVAL;
			break;
		}
		result = seed_project(tx, s->arena, s->org_id, text, &id);
		if (result == 0)
			result = audit_service(tx, s->arena, "GROUP_CREATED", s->org_id, id, STR_NONE);
		json_array_append_new(list, json_pack("{s:o, s:o}", "id", str_json(id), "name", str_json(text)));
	}
	json_object_set_new(s->answer, "projects", list);
	return result;
}

static const char *project_by_name(const struct seeding *s, const char *name)
{
	const json_t *list = json_object_get(s->answer, "projects");
	for (size_t i = 0; name && i < json_array_size(list); i++) {
		const json_t *p = json_array_get(list, i);
		if (strcmp(json_string_value(json_object_get(p, "name")), name) == 0)
			return json_string_value(json_object_get(p, "id"));
	}
	return NULL;
}

/* Roles of the organization, and of its projects by their names. */
static struct grant_row *grants_wanted(const struct seeding *s, const json_t *wanted, size_t *ret_count)
{
	const json_t *projects = json_object_get(wanted, "projectRoles");
	struct grant_row *rows = arena_new_array(s->arena, struct grant_row, json_array_size(projects) + 1);
	size_t count = 0;
	role_mask in_org = roles_from_json(json_object_get(wanted, "roles"), true);
	if (in_org)
		rows[count++] = (struct grant_row){s->org_id, true, in_org};
	for (size_t i = 0; i < json_array_size(projects); i++) {
		const json_t *entry = json_array_get(projects, i);
		const char *id = project_by_name(s, json_string_value(json_object_get(entry, "project")));
		if (id)
			rows[count++] = (struct grant_row){arena_dup(s->arena, str_of(id)), false,
			                                   roles_from_json(json_object_get(entry, "roles"), false)};
	}
	*ret_count = count;
	return rows;
}

static int seed_key(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *answer, struct str *ret_id)
{
	struct new_key key = {.id = STR_NONE};
	size_t count;
	struct grant_row *grants = grants_wanted(s, wanted, &count);
	int result = credential_add_key(tx, s->arena, s->org_id, STR("seeded"), grants, count, &key);
	json_object_set_new(answer, "publicKey", str_json(key.public_key));
	json_object_set_new(answer, "privateKey", str_json(key.private_key));
	*ret_id = key.id;
	return result;
}

static int seed_account(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *answer, struct str *ret_id)
{
	struct new_account account = {.id = STR_NONE};
	size_t count;
	struct grant_row *grants = grants_wanted(s, wanted, &count);
	int result = credential_add_account(tx, s->arena, s->org_id, STR("seeded"), STR("seeded"), grants, count, 8760,
	                                    &account);
	struct str token =
	        token_issue(s->arena, account.id, account.secret_id, clock_now_ms() + TOKEN_SECONDS * 1000LL);
	json_object_set_new(answer, "clientId", str_json(account.client_id));
	json_object_set_new(answer, "clientSecret", str_json(account.secret));
	json_object_set_new(answer, "accessToken", str_json(token));
	*ret_id = account.id;
	return result;
}

static int seed_principal(struct tx *tx, struct seeding *s, const json_t *wanted, json_t *list)
{
	const char *type = json_string_value(json_object_get(wanted, "type"));
	const json_t *access = json_object_get(wanted, "accessList");
	bool key = type && strcmp(type, "apiKey") == 0;
	struct str id;
	json_t *answer = json_pack("{s:s}", "type", key ? "apiKey" : "serviceAccount");
	int result = key ? seed_key(tx, s, wanted, answer, &id) : seed_account(tx, s, wanted, answer, &id);
	json_object_set_new(answer, "id", str_json(id));
	json_array_append_new(list, answer);
	for (size_t i = 0; result == 0 && i < json_array_size(access); i++) {
		struct cidr network;
		const json_t *text = json_array_get(access, i);
		if (!cidr_parse((struct str){json_string_value(text), json_string_length(text)}, &network))
			return -EINVAL;
		result = credential_add_access(tx, s->arena, id, &network);
	}
	return result;
}

static int seed_settings(struct tx *tx, struct seeding *s)
{
	int result = 0;
	if (json_is_true(json_object_get(s->wanted, "apiAccessListRequired"))) {
		struct doc d = {.kind = STR("org_settings"),
		                .id = s->org_id,
		                .parent = s->org_id,
		                .created_ms = clock_now_ms(),
		                .body = STR("{\"apiAccessListRequired\":true}")};
		result = tx_insert(tx, &d);
	}
	struct str federation_id;
	if (result == 0)
		result = federation_create(tx, s->arena, s->org_id, &federation_id);
	if (result == 0)
		json_object_set_new(s->answer, "federationSettingsId", str_json(federation_id));
	return result;
}

static int seed_org(struct tx *tx, void *ctx)
{
	struct seeding *s = ctx;
	const json_t *principals = json_object_get(s->wanted, "principals"), *name = json_object_get(s->wanted, "name");
	json_t *list = json_array();
	json_object_clear(s->answer);
	json_object_set_new(s->answer, "id", str_json(s->org_id));
	json_object_set_new(s->answer, "name", json_string(json_is_string(name) ? json_string_value(name) : "Seeded"));
	json_t *body = json_pack("{s:O, s:b, s:O, s:b}", "id", json_object_get(s->answer, "id"), "isDeleted", 0, "name",
	                         json_object_get(s->answer, "name"), "skipDefaultAlertsSettings", 0);
	struct doc d = {
	        .kind = STR("org"), .id = s->org_id, .created_ms = clock_now_ms(), .body = json_text(s->arena, body)};
	json_decref(body);
	int result = tx_insert(tx, &d);
	if (result == 0)
		result = audit_service(tx, s->arena, "ORG_CREATED", s->org_id, STR_NONE, STR_NONE);
	if (result == 0)
		result = seed_settings(tx, s);
	if (result == 0)
		result = seed_projects(tx, s);
	for (size_t i = 0; result == 0 && i < json_array_size(principals); i++)
		result = seed_principal(tx, s, json_array_get(principals, i), list);
	json_object_set_new(s->answer, "principals", list);
	return result;
}

static int seed_bulk(struct tx *tx, void *ctx)
{
	struct seeding *s = ctx;
	struct arena *a = arena_new();
	int result = 0;
	for (int64_t i = s->bulk_from; result == 0 && i < s->bulk_to; i++) {
		struct str id, name = arena_printf(a, "project-%06lld", (long long)i + 1);
		result = seed_project(tx, a, s->org_id, name, &id);
		if (i == 0)
			s->first_bulk = arena_dup(s->arena, id);
	}
	arena_free(a);
	return result;
}

static int seed_one(struct control *t, const json_t *wanted, json_t *list)
{
	struct seeding s = {.arena = t->request->arena, .wanted = wanted, .answer = json_object()};
	int64_t count = json_integer_value(json_object_get(wanted, "projectCount"));
	s.org_id = new_id(s.arena);
	json_array_append_new(list, s.answer);
	int result = store_write_wait(t->service->store, seed_org, &s);
	for (; result == 0 && s.bulk_from < count; s.bulk_from += BULK) {
		s.bulk_to = s.bulk_from + BULK < count ? s.bulk_from + BULK : count;
		result = store_write_wait(t->service->store, seed_bulk, &s);
	}
	if (result == 0 && count > 0)
		json_object_set_new(s.answer, "firstProjectId", str_json(s.first_bulk));
	return result;
}

static void seed(struct control *t, struct buf *b)
{
	const json_t *organizations = json_object_get(t->body, "organizations");
	json_t *list = json_array(), *answer = json_pack("{s:o}", "organizations", list);
	int result = json_is_array(organizations) ? 0 : -EINVAL;
	for (size_t i = 0; result == 0 && i < json_array_size(organizations); i++)
		result = seed_one(t, json_array_get(organizations, i), list);
	if (result < 0)
		refuse(t, 400, "organizations: must be a list as docs/testing.md describes it");
	else
		buf_str(b, json_text(t->request->arena, answer));
	json_decref(answer);
}

static const struct {
	const char *method, *path;
	void (*run)(struct control *t, struct buf *b);
} routes[] = {{"GET", "/api/test/clock", clock_get},     {"POST", "/api/test/clock", clock_post},
              {"POST", "/api/test/reset", reset},        {"POST", "/api/test/buckets/reset", buckets_reset},
              {"POST", "/api/test/faults", faults_post}, {"DELETE", "/api/test/faults", faults_delete},
              {"POST", "/api/test/engine", engine_post}, {"POST", "/api/test/seed", seed}};

static void run_route(struct control *t, struct buf *b)
{
	struct request *r = t->request;
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
		if (str_is(r->method, routes[i].method) && str_is(r->path, routes[i].path)) {
			if (r->body.n && !json_is_object(t->body))
				refuse(t, 400, "the body must be a JSON object");
			else
				routes[i].run(t, b);
			return;
		}
	refuse(t, 404, "the test control has clock, reset, buckets/reset, faults, engine and seed");
}

static void *control_run(void *arg)
{
	struct control *t = arg;
	struct request *r = t->request;
	struct buf b = {0};
	t->body = r->body.n ? json_loadb(r->body.p, r->body.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	run_route(t, &b);
	json_decref(t->body);
	if (t->result) {
		struct problem p = {.status = t->result, .code = "TEST_CONTROL", .detail = str_of(t->why)};
		answer_problem(r, &p);
		buf_free(&b);
	} else if (b.n) {
		answer_json(r, 200, &b);
	} else {
		r->response.status = 204;
	}
	http_respond_from_thread(r);
	return NULL;
}

void test_control(struct service *s, struct request *r)
{
	struct control *t = arena_new_of(r->arena, struct control);
	pthread_t thread;
	*t = (struct control){.service = s, .request = r};
	if (pthread_create(&thread, NULL, control_run, t) == 0) {
		pthread_detach(thread);
		return;
	}
	struct problem p = {.status = 503, .code = "SERVICE_BUSY", .detail = STR("Try again in a second.")};
	answer_problem(r, &p);
	http_respond(r);
}
