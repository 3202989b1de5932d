/* The path of one call. Reads run on the calling thread, with its own reader: on the loop, or on a worker when the
 * store is behind a network. The handler of a row that is marked slow always runs on a worker. Writes run in the
 * store's transaction, and the answer is sent when they are on disk. */
#include "gate/dispatch.h"

#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/compress.h"
#include "call/kept_answer.h"
#include "call/pool.h"
#include "call/query.h"
#include "call/workers.h"
#include "gate/gate.h"
#include "identity/gifts.h"
#include "trail/events.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

typedef int (*gate)(struct call *c);

/* The order is the contract: the first gate that refuses writes the error document. */
static const gate gates[] = {gate_authenticate, gate_access_list, gate_membership, gate_bucket,
                             gate_version,      gate_roles,       gate_proof,      gate_parameters,
                             gate_body,         gate_body_scope,  gate_payment};

/* A body may take half a minute to arrive, and rights that were revoked meanwhile must not count any more, so most
 * gates run again then. But a call takes its token from the bucket only once, and version and parameters cannot have
 * changed. */
static bool asked_once(gate g)
{
	return g == gate_bucket || g == gate_version || g == gate_parameters;
}

#define LONG_READ 2000 /* entries that a loop may look at: a few milliseconds */
#define PREPARING_MAX 64
#define PREPARING_WAIT 1024
static struct pool preparing = POOL(PREPARING_MAX, PREPARING_WAIT); /* for the rows' prepare functions */

struct pending {
	struct write write;
	struct call *call;
	size_t headers; /* the gates' */
};

static void release(void *arg)
{
	struct call *c = arg;
	request_buf_return(c->request, &c->out);
	principal_unref(c->caller);
}

static void compress_and_answer(struct request *r)
{
	response_compress(r);
	respond_here(r);
}

static void answer_now(struct call *c)
{
	struct request *r = c->request;
	idempotency_end(c->service, c->idempotency);
	call_finish(c);
	bool compressed = !c->op || !c->op->writes;
	if (compressed && !on_worker() && response_compressible(r) > COMPRESS_ON_LOOP && c->service->workers &&
	    workers_run(c->service->workers, r, call_key(c), compress_and_answer))
		return;
	if (compressed)
		response_compress(r);
	respond_here(r);
}

/* A retried write starts from the state before the handler. */
static void forget_answer(struct call *c)
{
	c->out.n = 0;
	c->problem = (struct problem){0};
	c->status = 0;
	c->etag = 0;
	c->location = STR_NONE;
	c->is_list = false;
	c->is_whole = false;
	c->momentary = c->is_final = false;
	c->item = NULL;
	c->event = (struct call_event){0};
	c->noted = NULL;
	c->committed = NULL;
	c->held = NULL;
	c->noted = NULL;
}

/* Discards the result of a handler that met a document that cannot be read. */
static int handle(struct call *c)
{
	uint64_t before = json_corruptions();
	c->noted = NULL; /* it may have been run before */
	c->missing = (struct missing){0};
	int result = c->op->handler(c);
	return json_corruptions() == before ? result : call_fail(c, 500, "STORE_DAMAGED", STORE_DAMAGED_DETAIL);
}

/* A handler that set no status succeeded with the row's status. */
static int settle(struct call *c, int result)
{
	if (result < 0 && !c->problem.status)
		return call_fail_store(c, result, c->op->id);
	if (result >= 0 && !c->status)
		c->status = c->op->success;
	return result;
}

/* The gates looked before the transaction began. What they found may be deleted by now, and nothing may be written
 * below it. */
static int scope_again(struct call *c)
{
	int result = 0;
	if (c->op->tenant == TENANT_GROUP) {
		result = tx_get(c->tx, c->arena, "project", c->group.id, &c->group);
		/* Nor into a project that moved to another organization: the caller's roles were checked in the old
		 * one. */
		if (result == 0 && !str_eq(c->group.parent, c->org.id))
			result = -ENOENT;
	} else if (c->op->tenant == TENANT_ORG) {
		result = tx_get(c->tx, c->arena, "org", c->org.id, &c->org);
	}
	return result != -ENOENT ? result : call_param_not_found(c, c->group.id.n ? "groupId" : "orgId");
}

/* Checks the roles that the handler gave to others before anything is committed. */
static int handle_write(struct call *c)
{
	struct gifts gifts;
	gifts_begin(&gifts, c);
	return gifts_end(&gifts, handle(c));
}

static int run_write(struct tx *tx, void *ctx)
{
	struct pending *p = ctx;
	struct call *c = p->call;
	int result = 0;
	forget_answer(c);
	c->request->response.header_count = 0;
	c->extra_header_count = p->headers;
	c->tx = tx;
	if (c->idempotency)
		result = idempotency_replay(c, c->idempotency);
	if (result == 0) {
		result = scope_again(c);
		if (result == 0)
			result = settle(c, handle_write(c));
		if (result >= 0)
			result = event_write(c);
		if (result >= 0 && c->idempotency)
			result = idempotency_keep(c, c->idempotency);
	}
	if (result < 0)
		c->extra_header_count = p->headers;
	c->tx = NULL;
	return result < 0 ? result : 0;
}

void call_send(struct call *c)
{
	idempotency_end(c->service, c->idempotency);
	call_finish(c);
	/* What another host has answered is sent as this one would send it. Its thread has others to serve. */
	if (c->relayed && response_compressible(c->request) && c->service->workers &&
	    workers_run(c->service->workers, c->request, call_key(c), compress_and_answer))
		return;
	http_respond_from_thread(c->request);
}

/* Writes the event of a refusal. The change is undone, so the event needs its own write; the answer waits for it, as
 * for every event. */
static int refusal_run(struct tx *tx, void *ctx)
{
	struct pending *p = ctx;
	p->call->tx = tx;
	int result = event_write(p->call);
	p->call->tx = NULL;
	return result;
}

static void refusal_done(void *ctx, int result)
{
	struct pending *p = ctx;
	if (result < 0)
		log_error("%s was refused, and the event of that could not be written (error %d)", p->call->op->id,
		          result);
	call_send(p->call);
}

static bool start_refusal(struct pending *p)
{
	p->write = (struct write){.run = refusal_run, .done = refusal_done, .ctx = p, .item.key = call_key(p->call)};
	return store_write(p->call->service->store, &p->write);
}

static void write_done(void *ctx, int result)
{
	struct pending *p = ctx;
	struct call *c = p->call;
	if (result < 0 && c->problem.status && c->event.of_refusal && start_refusal(p))
		return;
	if (result == -ENOTCONN || result == -ENOSPC || (result < 0 && !c->problem.status)) {
		forget_answer(c);
		c->extra_header_count = p->headers;
		call_fail_store(c, result, c->op->id);
	}
	if (result >= 0 && c->committed)
		c->committed(c, c->committed_arg);
	if (result >= 0 && c->held)
		c->held(c, c->held_arg);
	else
		call_send(c);
}

static void start_write(struct call *c)
{
	struct pending *p = arena_new_of(c->arena, struct pending);
	p->call = c;
	p->headers = c->extra_header_count;
	p->write = (struct write){.run = run_write, .done = write_done, .ctx = p, .item.key = call_key(c)};
	if (store_write(c->service->store, &p->write))
		return;
	call_header(c, STR("retry-after"), STR("1"));
	call_fail(c, 503, "SERVICE_BUSY", "The service has too many writes waiting. Try again in a second.");
	answer_now(c);
}

static void prepared(struct request *r)
{
	struct call *c = r->app;
	if (c->problem.status)
		answer_now(c);
	else
		start_write(c);
}

/* The test control's delay is spent at the point where a slow operation would spend its time. */
static void delay(unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	if (ms)
		nanosleep(&t, NULL);
}

static void prepare_run(void *arg)
{
	struct call *c = arg;
	delay(c->delay_ms);
	if (c->op->prepare(c) < 0)
		call_fail(c, 503, "SERVICE_BUSY", "The service could not do this now. Try again in a second.");
	http_call_on_loop(c->request, prepared);
}

static void start_prepare(struct call *c)
{
	struct pool_work *w = arena_new_of(c->arena, struct pool_work);
	*w = (struct pool_work){.run = prepare_run, .ctx = c};
	if (pool_run(&preparing, w, call_key(c)))
		return;
	call_header(c, STR("retry-after"), STR("1"));
	call_fail(c, 503, "SERVICE_BUSY", "The service has too many such calls under way. Try again in a second.");
	answer_now(c);
}

bool call_takes_long(struct call *c, int64_t entries)
{
	c->rerun_on_worker = entries > LONG_READ && c->service->workers && !on_worker();
	return c->rerun_on_worker;
}

static void start_on_worker(struct call *c);

static void run_read(struct call *c)
{
	if (c->op->slow)
		workers_share();
	if (on_worker())
		delay(c->delay_ms);
	c->tx = call_loop(c)->reader;
	tx_begin_read(c->tx);
	int result = kept_answer_get(c) ? 0 : settle(c, handle(c));
	kept_answer_read(c);
	tx_end_read(c->tx);
	c->tx = NULL;
	if (result >= 0 && c->rerun_on_worker)
		start_on_worker(c);
	else if (result >= 0 && c->held)
		c->held(c, c->held_arg);
	else
		answer_now(c);
}

static void run_read_of(struct request *r)
{
	workers_share();
	run_read(r->app);
}

static void start_on_worker(struct call *c)
{
	forget_answer(c);
	c->rerun_on_worker = false;
	c->snapshot = 0; /* of the loop's reader: a worker counts its own */
	if (workers_run_slow(c->service->workers, c->request, call_key(c), run_read_of))
		return;
	call_header(c, STR("retry-after"), STR("1"));
	call_fail(c, 503, "SERVICE_BUSY", "The service has too many calls waiting. Try again in a second.");
	answer_now(c);
}

/* A slow read goes to the queue of its organization, even when this is a worker already. */
static void start_read(struct call *c)
{
	if (!c->op->slow && (on_worker() || !c->service->remote))
		run_read(c);
	else
		start_on_worker(c);
}

static void run_handler(struct call *c)
{
	if (!c->op->handler) {
		call_fail(c, 501, "NOT_IMPLEMENTED", "%s is not part of this version of Steward.", c->op->id);
		answer_now(c);
	} else if (c->op->prepare) {
		start_prepare(c);
	} else if (c->op->writes) {
		start_write(c);
	} else {
		start_read(c);
	}
}

/* Continues a call that was delayed, unless it has to be refused. */
static void resume(struct request *r)
{
	struct call *c = r->app;
	if (c->problem.status)
		answer_now(c);
	else
		run_handler(c);
}

struct delay {
	struct request *request;
	unsigned ms;
};

static void *delay_run(void *arg)
{
	struct delay *d = arg;
	delay(d->ms);
	http_call_on_loop(d->request, resume);
	return NULL;
}

void call_send_failed(struct call *c, int status, const char *code, struct str detail)
{
	forget_answer(c);
	call_fail(c, status, code, "%.*s", STR_ARG(detail));
	call_send(c);
}

/* Faults that the test control injects. True when the call is delayed or already answered. */
static bool faulted(struct call *c)
{
	struct injected fault = {.status = 0};
	pthread_t thread;
	if (!fault_take(c->service, c->op, &fault))
		return false;
	c->delay_ms = !fault.status && c->op->handler && (c->op->prepare || c->op->slow) ? fault.delay_ms : 0;
	if (c->delay_ms)
		return false;
	if (fault.status)
		call_fail(c, fault.status, "INJECTED_FAULT", "The test control asked for this answer.");
	/* The service's own refusals with these statuses have this header too. */
	if (fault.status == 429 || fault.status == 503)
		call_header(c, STR("retry-after"), arena_printf(c->arena, "%u", fault.retry_after));
	struct delay *d = arena_new_of(c->arena, struct delay);
	*d = (struct delay){c->request, fault.delay_ms};
	if (d->ms && pthread_create(&thread, NULL, delay_run, d) == 0) {
		pthread_detach(thread);
		return true;
	}
	if (fault.status)
		answer_now(c);
	return fault.status;
}

static int method_not_allowed(struct call *c, unsigned allowed)
{
	struct buf b = {0};
	for (unsigned i = 0; i < METHOD_COUNT; i++)
		if (allowed & 1u << i)
			buf_printf(&b, "%s%s", b.n ? ", " : "", method_name((enum method)i));
	struct str list = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	call_header(c, STR("allow"), list);
	int result = call_fail(c, 405, "METHOD_NOT_ALLOWED", "%.*s is not supported here. Use %.*s.",
	                       STR_ARG(c->request->method), STR_ARG(list));
	call_fail_param(c, c->request->method);
	return result;
}

static int find_row(struct call *c)
{
	struct match m;
	bool known = method_parse(c->request->method, &c->method);
	catalog_match(known ? c->method : METHOD_GET, c->request->path, c->arena, &m);
	c->dialect = m.dialect;
	if (!m.allowed)
		return call_not_found(c);
	if (!known || !m.op)
		return method_not_allowed(c, m.allowed);
	c->op = m.op;
	c->v1 = m.v1;
	memcpy(c->params, m.params, sizeof m.params);
	return 0;
}

/* The document that a gate is about to read. */
static bool gate_wants(const struct call *c, gate g, struct doc_wanted *ret_wanted)
{
	struct str id = STR_NONE;
	bool of_group = g == gate_membership && c->op->tenant == TENANT_GROUP;
	if (of_group && c->caller) {
		id = call_path(c, "groupId");
	} else if (g == gate_membership && c->op->tenant == TENANT_ORG && c->caller) {
		id = call_path(c, "orgId");
	} else if (g == gate_body_scope && c->op->body_org_field) {
		const json_t *value = json_object_get(c->body, c->op->body_org_field);
		id = (struct str){json_string_value(value), json_string_length(value)};
	}
	*ret_wanted = (struct doc_wanted){.arena = c->arena, .kind = of_group ? "project" : "org", .id = id};
	return id_is_valid(id);
}

int gate_get(struct call *c, const char *kind, struct str id, struct doc *ret_doc)
{
	const struct doc_wanted *w = c->wanted;
	if (!w || strcmp(w->kind, kind) != 0 || !str_eq(w->id, id))
		return tx_get(c->tx, c->arena, kind, id, ret_doc);
	c->wanted = NULL;
	if (w->result == 0)
		*ret_doc = w->doc;
	return w->result;
}

static void gates_resume(struct request *r);

/* True: the gate's document is read together with those of other calls, and the call continues afterwards. */
static bool gather(struct call *c, gate g)
{
	struct doc_wanted w;
	if (!c->service->remote || c->wanted || !gate_wants(c, g, &w))
		return false;
	c->wanted = arena_new_of(c->arena, struct doc_wanted);
	*c->wanted = w;
	if (workers_gather(c->request, c->wanted, gates_resume))
		return true;
	c->wanted = NULL;
	return false;
}

static void body_take(struct call *c)
{
	if (on_worker())
		http_call_on_loop(c->request, http_body_take);
	else
		http_body_take(c->request);
}

static void gates_run(struct call *c)
{
	int result = 0;
	c->tx = call_loop(c)->reader;
	if (c->gate == 0)
		tx_begin_read(c->tx);
	for (; result == 0 && c->gate < sizeof gates / sizeof *gates; c->gate++) {
		if (c->again && asked_once(gates[c->gate]))
			continue;
		if (c->awaits_body && gates[c->gate] == gate_body)
			break;
		/* The caller is read from one snapshot, and is mostly cached. Later gates read a document or two: over
		 * a network, a statement outside a snapshot costs one message each way instead of two. */
		if (c->service->remote && gates[c->gate] == gate_membership)
			tx_end_read(c->tx);
		if (gather(c, gates[c->gate])) {
			c->tx = NULL;
			return;
		}
		result = gates[c->gate](c);
	}
	c->snapshot = c->op->kept ? tx_snapshot(c->tx) : 0;
	tx_end_read(c->tx);
	c->tx = NULL;
	if (result == 0 && c->awaits_body) {
		body_take(c);
		return;
	}
	if (result == 0 && c->op->writes && c->op->handler && c->op->method == METHOD_POST)
		result = idempotency_begin(c, &c->idempotency);
	if (result < 0)
		answer_now(c);
	else if (!c->service->test_control || !faulted(c))
		run_handler(c);
}

static void gates_resume(struct request *r)
{
	gates_run(r->app);
}

/* The parameters of a path of the catalog, for a row beside it. */
static int find_params(struct call *c, struct str path)
{
	struct match m;
	catalog_match(METHOD_GET, path, c->arena, &m);
	if (!m.op)
		return call_not_found(c);
	memcpy(c->params, m.params, sizeof m.params);
	return 0;
}

/* `op`: NULL: the path tells which. `path`: where its parameters are; empty: it has none. */
static void start(struct service *s, struct request *r, const struct op *op, struct str path, bool awaits_body)
{
	struct call *c = arena_new_of(r->arena, struct call);
	c->service = s;
	c->request = r;
	c->arena = r->arena;
	c->page = 1;
	c->page_size = 100;
	c->include_count = true;
	c->awaits_body = awaits_body;
	r->app = c;
	if (!on_worker())
		request_buf_lend(r, &c->out);
	arena_defer(r->arena, release, c);
	query_peek(r->query, &c->envelope, &c->pretty);
	c->op = op;
	if (op && !method_parse(r->method, &c->method))
		c->method = METHOD_GET;
	if (!op ? find_row(c) < 0 : path.n && find_params(c, path) < 0)
		answer_now(c);
	else
		gates_run(c);
}

void dispatch(struct service *s, struct request *r)
{
	start(s, r, NULL, STR_NONE, false);
}

void dispatch_as(struct service *s, struct request *r, const struct op *op)
{
	start(s, r, op, STR_NONE, false);
}

void dispatch_below(struct service *s, struct request *r, const struct op *op, struct str path)
{
	start(s, r, op, path, false);
}

void dispatch_begin(struct service *s, struct request *r)
{
	start(s, r, NULL, STR_NONE, true);
}

void dispatch_resume(struct request *r)
{
	struct call *c = r->app;
	principal_unref(c->caller);
	c->caller = NULL;
	c->roles = 0;
	c->wanted = NULL;
	c->gate = 0;
	c->awaits_body = false;
	c->again = true;
	gates_run(c);
}
