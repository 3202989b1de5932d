/* One call of one operation, on its way through the gates to its handler. */
#ifndef STEWARD_GATE_CALL_H
#define STEWARD_GATE_CALL_H

#include "base/problem.h"
#include "catalog/catalog.h"
#include "gate/principal.h"
#include "http/http.h"
#include "limit/limit.h"
#include "store/seal.h"
#include "store/store.h"

struct service; /* what the process holds: gate/service.h */

struct query_value {
	const struct param *param;
	struct str text; /* percent-decoded; a repeated parameter is joined with commas */
};

#define EVENT_FIELDS_MAX 8

/* What the call's event says beyond the row's type and the caller: gate/audit.h. */
struct call_event {
	const char *type;
	bool type_chosen;
	struct str org_id, group_id, cluster;
	struct {
		const char *name;
		struct str value;
		bool is_list; /* value is a JSON array */
	} fields[EVENT_FIELDS_MAX];
	size_t field_count;
	bool of_refusal; /* written although, and because, the call is refused */
};

struct call {
	struct service *service;
	struct request *request;
	struct arena *arena; /* the request's */
	const struct op *op;
	enum method method; /* as called: HEAD stays HEAD while op is the GET */
	bool v1;
	struct str params[PATH_PARAMS_MAX];

	struct principal *caller; /* NULL on public operations */
	struct doc org, group;    /* the scope's documents, where the path names one (org: also the project's) */
	role_mask roles;          /* the caller's closed roles in that scope */
	struct limit_answer limit;
	bool limited; /* a bucket was asked */

	const struct op_version *version;
	unsigned produces; /* the PRODUCES_ bit of the answer */
	struct query_value *query;
	size_t query_count;
	bool envelope, pretty, include_count;
	int64_t page, page_size;
	json_t *body; /* checked; NULL when none. Freed with the arena */

	unsigned gate;             /* the next to ask */
	bool awaits_body;          /* the header block alone has come */
	bool again;                /* the body came later: those gates are asked again whose answer may have changed */
	struct doc_wanted *wanted; /* what a gate asks for, read ahead; or NULL */
	struct tx *tx;             /* reads on the loop; a write's transaction in a write */
	struct call_event event;
	struct idempotency *idempotency; /* of a POST with an Idempotency-Key */
	void *prepared;                  /* what the row's prepare function made */
	/* A writing handler may set it: called once, on the store's thread, when its write is on disk. Must be quick. */
	void (*committed)(struct call *c, void *arg);
	void *committed_arg;
	/* A writing handler may set it, for an answer that has to wait for more than the write: called once, on the store's
	 * thread, when the write is on disk; must be quick. Nothing is sent until call_send(), from any thread, exactly once. */
	void (*held)(struct call *c, void *arg);
	void *held_arg;
	bool elsewhere;    /* see call_takes_long() */
	unsigned delay_ms; /* of the test control, where its work is done */

	/* The answer. */
	int status;
	struct problem problem;   /* status >= 400 */
	struct buf out;           /* JSON text of an entity or list, without envelope; freed with the arena */
	bool is_list;             /* out is a list document: the envelope only adds status */
	int64_t etag;             /* revision, or 0 */
	struct str location;      /* of a created resource, or empty */
	const char *content_type; /* set: the body is not JSON and response.stream or out is sent as it is */
	struct str extra_headers[8][2];
	size_t extra_header_count;
};

/* The first fault wins. Returns -status, so that a gate or handler can `return call_fail(...)`. `parameters` are strings. */
int call_fail(struct call *c, int status, const char *code, const char *format, ...) printf_like(4, 5);
/* Adds one string to the problem's parameters, after call_fail(). Returns -status again. */
int call_fail_param(struct call *c, struct str parameter);
/* 400 VALIDATION_ERROR that names all faults; parameters hold the paths. */
int call_fail_faults(struct call *c, const struct faults *faults);
/* 404 RESOURCE_NOT_FOUND with the requested path, in the specification's words. */
int call_not_found(struct call *c);
/* A store's error: 409, 412, 500 or 503 as fits. */
int call_fail_store(struct call *c, int error, const char *what);

/* The value of a path or query parameter; STR_NONE when absent. */
struct str call_path(const struct call *c, const char *name);
struct str call_query(const struct call *c, const char *name);
bool call_query_bool(const struct call *c, const char *name, bool otherwise);

void call_header(struct call *c, struct str name, struct str value);

/* Whose share of what all share (threads, queues) it uses: its organization's, or the caller's, or the address's. */
uint64_t call_key(const struct call *c);

/* dispatch.c: for a reading handler that has found how many entries it will have to look at. True: they are too many for a
 * loop, and the handler returns 0 at once; it is run again, from the start, on a worker. */
must_check bool call_takes_long(struct call *c, int64_t entries);
/* dispatch.c: lets go of an answer that was held. */
void call_send(struct call *c);
/* The same for a change that is saved, but is not what a success would say: with this refusal in place of its answer. The
 * details are the caller's, who has called nothing else for the call. */
void call_send_failed(struct call *c, int status, const char *code, struct str detail);

#endif
