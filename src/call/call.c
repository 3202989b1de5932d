/* How a gate or a handler refuses a call, and small helpers that every part of a call uses. */
#include "call/call.h"

#include "base/fair.h"
#include "base/log.h"
#include "call/answer.h"
#include "call/pool.h"
#include "call/service.h"

#include <errno.h>
#include <stdarg.h>

int call_fail(struct call *c, int status, const char *code, const char *format, ...)
{
	va_list args;
	if (c->problem.status)
		return -c->problem.status;
	va_start(args, format);
	c->problem = (struct problem){.status = status, .code = code, .detail = arena_vprintf(c->arena, format, args)};
	va_end(args);
	return -status;
}

int call_fail_field(struct call *c, int status, const char *code, const char *path, const char *format, ...)
{
	va_list args;
	if (c->problem.status)
		return -c->problem.status;
	va_start(args, format);
	struct str what = arena_vprintf(c->arena, format, args);
	va_end(args);
	call_fail(c, status, code, "%s: %.*s", path, STR_ARG(what));
	return call_fail_param(c, str_of(path));
}

int call_fail_about(struct call *c, int status, const char *code, struct str parameter, const char *format, ...)
{
	va_list args;
	if (c->problem.status)
		return -c->problem.status;
	va_start(args, format);
	struct str what = arena_vprintf(c->arena, format, args);
	va_end(args);
	call_fail(c, status, code, "%.*s", STR_ARG(what));
	return call_fail_param(c, parameter);
}

int call_fail_param(struct call *c, struct str parameter)
{
	struct buf b = {0};
	struct str old = c->problem.parameters;
	if (old.n)
		buf_add(&b, old.p, old.n - 1);
	else
		json_open(&b, '[');
	json_str(&b, parameter);
	json_close(&b, ']');
	c->problem.parameters = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return -c->problem.status;
}

int call_fail_faults(struct call *c, const struct faults *faults)
{
	struct buf b = {0};
	size_t shown = faults->count < FAULTS_MAX ? faults->count : FAULTS_MAX;
	for (size_t i = 0; i < shown; i++) {
		const struct fault *f = &faults->list[i];
		if (i)
			buf_z(&b, "; ");
		buf_str(&b, f->path.n ? f->path : STR("body"));
		buf_z(&b, ": ");
		buf_str(&b, f->text);
	}
	if (faults->count > shown)
		buf_printf(&b, "; and %zu more", faults->count - shown);
	buf_c(&b, '.');
	int result = call_fail(c, 400, "VALIDATION_ERROR", "%.*s", STR_ARG(buf_view(&b)));
	buf_free(&b);
	for (size_t i = 0; i < shown; i++)
		call_fail_param(c, faults->list[i].path);
	return result;
}

int call_fail_fault(struct call *c, struct str path, const char *format, ...)
{
	struct faults faults = {.count = 0};
	va_list args;
	va_start(args, format);
	struct str text = arena_vprintf(c->arena, format, args);
	va_end(args);
	faults_add(&faults, c->arena, path, "%.*s", STR_ARG(text));
	return call_fail_faults(c, &faults);
}

int call_missing(struct call *c, const struct resource *r, struct str key)
{
	c->missing.code = r->not_found;
	c->missing.resource = r;
	c->missing.key = key;
	return -ENOENT;
}

int call_missing_param(struct call *c, const char *param)
{
	c->missing.resource = NULL;
	for (unsigned i = 0; i < c->op->path_param_count; i++)
		if (strcmp(c->op->path_params[i].name, param) == 0)
			c->missing.code = c->op->path_params[i].not_found;
	return -ENOENT;
}

/* A 404 would say that a cluster is gone which is only asked for in the wrong API. */
static bool is_elsewhere(struct call *c)
{
	const struct resource *r = c->missing.resource;
	struct doc d;
	return r && r->elsewhere_kind && c->tx && c->missing.key.n &&
	       tx_get_by_name(c->tx, c->arena, r->elsewhere_kind, c->group.id, c->missing.key, &d) == 0;
}

static int fail_elsewhere(struct call *c)
{
	static const char word[] = "{name}";
	const struct resource_refusal *with = &c->missing.resource->elsewhere;
	const char *at = strstr(with->text, word), *rest = at ? at + sizeof word - 1 : with->text;
	return call_fail_about(c, with->status, with->code, c->missing.key, "%.*s%.*s%s",
	                       (int)(at ? at - with->text : 0), with->text, STR_ARG(at ? c->missing.key : STR_NONE),
	                       rest);
}

/* The code of what the path's last parameter names, unless it is known what is missing. */
static const char *missing_code(const struct call *c)
{
	if (c->missing.code)
		return c->missing.code;
	unsigned count = c->op ? c->op->path_param_count : 0;
	return count ? c->op->path_params[count - 1].not_found : "RESOURCE_NOT_FOUND";
}

int call_not_found(struct call *c)
{
	struct str path = c->request->path;
	if (is_elsewhere(c))
		return fail_elsewhere(c);
	int result = call_fail(c, 404, missing_code(c), "Cannot find resource %.*s.", STR_ARG(path));
	call_fail_param(c, path);
	return result;
}

int call_param_not_found(struct call *c, const char *param)
{
	(void)call_missing_param(c, param);
	return call_not_found(c);
}

int call_fail_store(struct call *c, int error, const char *what)
{
	switch (error) {
	case -ENOENT: return call_not_found(c);
	case -EEXIST: return call_fail(c, 409, "DUPLICATE_RESOURCE", "%s: already exists.", what);
	case -ESTALE:
		return call_fail(c, 412, "PRECONDITION_FAILED", "%s: has changed since the revision in If-Match.",
		                 what);
	case -ENOTCONN:
		if (!c->problem.status)
			call_header(c, STR("retry-after"), STR("1"));
		return call_fail(c, 503, "STORE_UNAVAILABLE",
		                 "The service cannot reach its store. Try again in a second.");
	case -ENOSPC:
		if (!c->problem.status)
			call_header(c, STR("retry-after"), STR(STORE_FULL_SECONDS));
		return call_fail(c, 503, "STORE_FULL", STORE_FULL_DETAIL);
	default:
		log_error("store: %s: error %d, request %s", what, error, c->request->id);
		if (error == -EIO && store_damage(c->service->store, NULL, 0))
			return call_fail(c, 500, "STORE_DAMAGED", STORE_DAMAGED_DETAIL);
		return call_fail(c, 500, "UNEXPECTED_ERROR",
		                 "The service could not read or write its store. Try again later.");
	}
}

int call_reserve(struct call *c, size_t more)
{
	size_t held = c->out.cap + arena_held(c->arena) + more;
	if (held < c->reserved + CALL_MEMORY_STEP)
		return 0;
	if (http_reserve(c->request, held)) {
		c->reserved = held;
		return 0;
	}
	call_header(c, STR("retry-after"), STR("1"));
	return call_fail(c, 503, "SERVICE_BUSY",
	                 "The answer is long, and others of this address are still being made or read. Try again in a "
	                 "second.");
}

uint64_t call_key(const struct call *c)
{
	if (c->org.id.n)
		return fair_key(c->org.id);
	return c->caller ? fair_key(str_of(c->caller->id)) : address_key(c->request);
}

struct str call_path(const struct call *c, const char *name)
{
	for (unsigned i = 0; i < c->op->path_param_count; i++)
		if (strcmp(c->op->path_params[i].name, name) == 0)
			return c->params[i];
	return STR_NONE;
}

struct str call_query(const struct call *c, const char *name)
{
	for (size_t i = 0; i < c->query_count; i++)
		if (strcmp(c->query[i].param->name, name) == 0)
			return c->query[i].text;
	return STR_NONE;
}

bool call_query_bool(const struct call *c, const char *name, bool otherwise)
{
	struct str text = call_query(c, name);
	return text.p ? str_is(text, "true") : otherwise;
}

void call_header(struct call *c, struct str name, struct str value)
{
	size_t room = sizeof c->extra_headers / sizeof *c->extra_headers;
	if (c->extra_header_count == room) {
		log_error("call: more than %zu headers on %s", room, c->op ? c->op->id : "?");
		return;
	}
	c->extra_headers[c->extra_header_count][0] = name;
	c->extra_headers[c->extra_header_count][1] = value;
	c->extra_header_count++;
}
