/* /api/test/: for tests, ours and our users'. It moves the virtual clock, brings the store back to its first state, makes
 * tenants and credentials, and injects faults. It exists only when the service was started with --test-control.
 *
 * Each call runs on a thread of its own, because it may wait for the store. */
#include "api/cluster_jobs.h"
#include "api/tenants.h"
#include "api/verbs.h"

#include "base/clock.h"
#include "gate/answer.h"
#include "gate/dispatch.h"
#include "gate/workers.h"

#include <errno.h>
#include <pthread.h>

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

/* The simulated engine: {"seconds": 0, "fail": "create", "times": 2, "patch": 1}. */
static void engine_post(struct control *t, struct buf *b)
{
	const json_t *seconds = json_object_get(t->body, "seconds"), *fail = json_object_get(t->body, "fail"),
	             *times = json_object_get(t->body, "times"), *patch = json_object_get(t->body, "patch");
	double value = json_is_number(seconds) ? json_number_value(seconds) : STANDARD_SECONDS;
	json_int_t count = json_is_integer(times) ? json_integer_value(times) : 1000000;
	if (!is_simulated(t))
		refuse(t, 409, "the engine is not the simulated one");
	else if (value < 0 || value > 86400 || count < 0 || count > 1000000)
		refuse(t, 400, "seconds: must be from 0 to 86400; times: from 0 to 1000000");
	else if (patch && (json_integer_value(patch) < 0 || json_integer_value(patch) > 1000))
		refuse(t, 400, "patch: must be from 0 to 1000");
	else {
		simulated_tell(t->service->engine_state, value, json_string_value(fail), (unsigned)count);
		if (patch)
			simulated_patch(t->service->engine_state, (unsigned)json_integer_value(patch));
	}
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

static void seed(struct control *t, struct buf *b)
{
	const json_t *organizations = json_object_get(t->body, "organizations");
	json_t *list = json_array(), *answer = json_pack("{s:o}", "organizations", list);
	int result = json_is_array(organizations) ? 0 : -EINVAL;
	for (size_t i = 0; result == 0 && i < json_array_size(organizations); i++)
		result =
		        seed_organization(t->service->store, t->request->arena, json_array_get(organizations, i), list);
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
	respond_here(r);
}
