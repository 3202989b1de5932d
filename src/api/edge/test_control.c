/* /api/test/: for tests, ours and our users'. It moves the virtual clock, brings the store back to its first state,
 * makes tenants and credentials, and injects faults. It exists only when the service was started with --test-control.
 *
 * Each call runs on a thread of its own, because it may wait for the store. */
#include "api/clusters/clusters.h"
#include "api/edge/edge.h"
#include "api/kit/verbs.h"
#include "api/log_export/log_export.h"

#include "base/clock.h"
#include "call/answer.h"
#include "call/workers.h"
#include "gate/dispatch.h"
#include "identity/attempts.h"
#include "identity/password.h"
#include "outbox/outbox.h"

#include <errno.h>
#include <pthread.h>

#define SETTLE_MS 5000 /* for a job that waits for somebody else, who may not come */

struct control {
	struct service *service;
	struct request *request;
	json_t *body;
	struct problem problem; /* status 0: none */
};

static void control_refuse(struct control *t, int status, const char *why)
{
	t->problem = (struct problem){.status = status, .code = "TEST_CONTROL", .detail = str_of(why)};
}

static void clock_get(struct control *t, struct buf *b)
{
	char now[CLOCK_TEXT];
	clock_format(clock_now_ms(), now);
	buf_printf(b, "{\"now\":\"%s\",\"virtual\":%s}", now, clock_is_virtual() ? "true" : "false");
}

static void clock_post(struct control *t, struct buf *b)
{
	if (!clock_is_virtual()) {
		control_refuse(t, 409, "the clock is real: start the service with --clock virtual");
		return;
	}
	/* What was asked for before begins before the clock moves, so that the time passes for it too; and it was
	 * waited for when this is answered. Real databases take their own time. */
	bool waits = t->service->engine_ops->control;
	if (waits)
		(void)jobs_settle(t->service->jobs, SETTLE_MS);
	clock_advance_ms((int64_t)(json_number_value(json_object_get(t->body, "advanceSeconds")) * 1000));
	jobs_wake(t->service->jobs);
	outbox_wake(t->service->outbox);
	shipper_wake(t->service->shipper);
	if (waits)
		(void)jobs_settle(t->service->jobs, SETTLE_MS);
	clock_get(t, b);
}

#define TIMES_MAX 1000000

static void engine_check(struct arena *a, const json_t *body, struct faults *faults)
{
	struct str fail = json_field(body, "fail");
	if (fail.n && !str_is_one_of(ENGINE_CHANGES, fail))
		faults_add(faults, a, STR("fail"), "must be one of " ENGINE_CHANGES);
	if (json_object_get(body, "times") && !fail.n)
		faults_add(faults, a, STR("times"), "goes with fail, and says how often");
}

/* Each field changes what it names and nothing else; none at all brings back how the engine was started. */
static void engine_post(struct control *t, struct buf *b)
{
	const json_t *seconds = json_object_get(t->body, "seconds"), *fail = json_object_get(t->body, "fail"),
	             *times = json_object_get(t->body, "times"), *patch = json_object_get(t->body, "patch"),
	             *away = json_object_get(t->body, "away"), *download = json_object_get(t->body, "downloadBytes");
	const struct engine_control_ops *control = t->service->engine_ops->control;
	struct engine *e = t->service->engine_state;
	if (!control) {
		control_refuse(t, 409, "the engine is not the simulated one");
		return;
	}
	if (!json_object_size(t->body))
		control->standard(e);
	if (seconds)
		control->seconds(e, json_number_value(seconds));
	if (fail)
		control->fail(e, json_string_value(fail), times ? (unsigned)json_integer_value(times) : TIMES_MAX);
	if (patch)
		control->patch(e, (unsigned)json_integer_value(patch));
	if (away)
		control->away(e, json_string_value(away));
	if (download)
		control->download(e, (uint64_t)json_integer_value(download));
}

static void reset(struct control *t, struct buf *b)
{
	const struct engine_control_ops *control = t->service->engine_ops->control;
	struct engine *e = t->service->engine_state;
	struct str *ids = NULL;
	size_t count = 0;
	fault_clear(t->service);
	if (clock_is_virtual())
		clock_reset();
	bool collected = clusters_collect(t->service->store, t->request->arena, &ids, &count) == 0;
	if (!collected || bootstrap_reset(t->service->store, t->service->data_dir) < 0 ||
	    store_write_wait(t->service->store, jobs_schedule, t->service->jobs) < 0)
		control_refuse(t, 500, "the store could not be reset");
	if (control) {
		control->standard(e);
		control->seconds(e, 0);
	}
	clusters_destroy(t->service, ids, count);
	if (control) {
		control->standard(e);
		control->patch(e, 0);
	}
	limiter_reset(t->service->limiter);
	attempts_reset(t->service->attempts);
}

static void buckets_reset(struct control *t, struct buf *b)
{
	limiter_reset(t->service->limiter);
	attempts_reset(t->service->attempts);
}

static unsigned number_or(const json_t *body, const char *name, unsigned otherwise)
{
	const json_t *value = json_object_get(body, name);
	return value ? (unsigned)json_integer_value(value) : otherwise;
}

static void faults_check(struct arena *a, const json_t *body, struct faults *faults)
{
	unsigned status = number_or(body, "status", 0);
	if (!catalog_op(json_string_value(json_object_get(body, "operationId"))))
		faults_add(faults, a, STR("operationId"), "must be that of an operation, as GET /openapi.json has it");
	if (!status && !json_object_get(body, "delayMs"))
		faults_add(faults, a, STR("status"), "is required where there is no delayMs");
	if (json_object_get(body, "retryAfterSeconds") && status != 429 && status != 503)
		faults_add(faults, a, STR("retryAfterSeconds"), "goes with the status 429 or 503");
}

static void faults_post(struct control *t, struct buf *b)
{
	struct injected fault = {.op = catalog_op(json_string_value(json_object_get(t->body, "operationId"))),
	                         .status = (int)number_or(t->body, "status", 0),
	                         .delay_ms = number_or(t->body, "delayMs", 0),
	                         .retry_after = number_or(t->body, "retryAfterSeconds", 1),
	                         .times = number_or(t->body, "times", 1)};
	if (!fault_inject(t->service, &fault))
		control_refuse(t, 409, "too many faults wait for their calls; DELETE /api/test/faults takes them back");
}

static void faults_delete(struct control *t, struct buf *b)
{
	fault_clear(t->service);
}

static void seed(struct control *t, struct buf *b)
{
	const json_t *organizations = json_object_get(t->body, "organizations");
	json_t *list = json_array(), *answer = json_pack("{s:o}", "organizations", list);
	int result = 0;
	for (size_t i = 0; result == 0 && i < json_array_size(organizations); i++)
		result =
		        seed_organization(t->service->store, t->request->arena, json_array_get(organizations, i), list);
	if (result == -EEXIST)
		control_refuse(t, 409,
		               "organizations: a user, or a project of an organization, is there already by that name");
	else if (result < 0)
		control_refuse(t, 500, "organizations: the store could not make them");
	else
		buf_str(b, json_text(t->request->arena, answer));
	json_decref(answer);
}

static void events_post(struct control *t, struct buf *b)
{
	if (happening_event(t->service, t->request->arena, t->body) < 0)
		control_refuse(t, 500, "the event could not be written");
}

static void passwords_post(struct control *t, struct buf *b)
{
	password_cheap(json_is_true(json_object_get(t->body, "cheap")));
}

static void readings_post(struct control *t, struct buf *b)
{
	if (happening_reading(t->service, t->request->arena, t->body) < 0)
		control_refuse(t, 500, "the value could not be judged");
}

static const struct {
	const char *method, *path;
	void (*run)(struct control *t, struct buf *b);
	const char *schema; /* of the body; NULL: it has no fields */
	/* Beyond the schema; or NULL. */
	void (*check)(struct arena *a, const json_t *body, struct faults *faults);
} routes[] = {{"GET", "/api/test/clock", clock_get},
              {"POST", "/api/test/clock", clock_post, "TestClock"},
              {"POST", "/api/test/reset", reset},
              {"POST", "/api/test/buckets/reset", buckets_reset},
              {"POST", "/api/test/faults", faults_post, "TestFault", faults_check},
              {"DELETE", "/api/test/faults", faults_delete},
              {"POST", "/api/test/engine", engine_post, "TestEngine", engine_check},
              {"POST", "/api/test/events", events_post, "TestEvent", happening_check},
              {"POST", "/api/test/passwords", passwords_post, "TestPasswords"},
              {"POST", "/api/test/readings", readings_post, "TestReading"},
              {"POST", "/api/test/seed", seed, "TestSeed", seed_check}};
#define ROUTES (sizeof routes / sizeof *routes)

/* False after the refusal is written. A field that is misspelt makes a test pass that tests nothing. */
static bool body_fits(struct control *t, size_t route)
{
	struct faults faults = {.count = 0};
	struct arena *a = t->request->arena;
	if (!json_is_object(t->body)) {
		control_refuse(t, 400, "the body must be a JSON object, with each field once");
		return false;
	}
	const char *first = json_object_iter_key(json_object_iter(t->body));
	if (routes[route].schema)
		schema_check(schema_find(str_of(routes[route].schema)), t->body, SCHEMA_CREATE, a, &faults);
	else if (first)
		faults_add(&faults, a, str_of(first), "unknown field: this call takes none");
	if (!faults.count && routes[route].check)
		routes[route].check(a, t->body, &faults);
	if (!faults.count)
		return true;
	struct call call = {.arena = a};
	(void)call_fail_faults(&call, &faults);
	t->problem = call.problem;
	return false;
}

static void run_route(struct control *t, struct buf *b)
{
	struct request *r = t->request;
	const char *other = NULL;
	for (size_t i = 0; i < ROUTES; i++) {
		if (!str_is(r->path, routes[i].path))
			continue;
		if (str_is(r->method, routes[i].method)) {
			if (body_fits(t, i))
				routes[i].run(t, b);
			return;
		}
		other = routes[i].method;
	}
	if (other) {
		response_header(&r->response, "allow", str_of(other));
		control_refuse(t, 405, "the test control has this path for another method; Allow names one");
	} else {
		control_refuse(
		        t, 404,
		        "the test control has clock, reset, buckets/reset, faults, engine, events, passwords, readings "
		        "and seed");
	}
}

static void *control_run(void *arg)
{
	struct control *t = arg;
	struct request *r = t->request;
	struct buf b = {0};
	t->body = r->body.n ? json_loadb(r->body.p, r->body.n, JSON_REJECT_DUPLICATES, NULL) : json_object();
	run_route(t, &b);
	json_decref(t->body);
	if (t->problem.status) {
		answer_problem(r, &t->problem);
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
	respond_here(r);
}
