/* One call of one operation, on its way through the gates to its handler. */
#ifndef STEWARD_CALL_CALL_H
#define STEWARD_CALL_CALL_H

#include "base/arena.h"
#include "base/problem.h"
#include "call/principal.h"
#include "catalog/catalog.h"
#include "catalog/dialect.h"
#include "http/http.h"
#include "limit/limit.h"
#include "store/seal.h"
#include "store/store.h"

struct kept;
struct service; /* what the process holds: call/service.h */

struct query_value {
	const struct param *param;
	struct str text; /* percent-decoded; a repeated parameter is joined with commas */
};

/* What the call's event adds to the row's type and the caller: trail/events.h. */
struct call_event {
	const char *type;
	bool type_chosen;
	struct str org_id, group_id, cluster;
	struct call_event_field {
		const char *name;
		struct str value;
		bool is_list; /* value is a JSON array */
	} * fields;           /* in the arena */
	size_t field_count, field_room;
	bool of_refusal; /* the event is written although the call is refused */
};

struct call {
	struct service *service;
	struct request *request;
	struct arena *arena; /* the request's */
	const struct op *op;
	enum method method; /* as called: HEAD stays HEAD while op is the GET */
	bool v1;
	const struct dialect *dialect; /* see call_dialect() */
	struct str params[PATH_PARAMS_MAX];

	struct principal *caller; /* NULL on public operations */
	bool by_session;          /* the caller is a user with a browser, */
	bool weak;                /* who has signed in without a second factor, */
	int64_t proven_ms;        /* and has last shown at this time who it is */
	struct doc org, group;    /* the documents of the path's scope; org is also set to a project's organization */
	role_mask roles;          /* the caller's closed roles in that scope */
	struct limit_answer limit;
	bool limited; /* gate_bucket() has asked a bucket */

	const struct op_version *version;
	unsigned produces; /* the PRODUCES_ bit of the answer */
	bool is_whole;     /* the handler has shown what the schema shows: schema_add_shown() */
	struct query_value *query;
	size_t query_count;
	bool envelope, pretty, include_count;
	int64_t page, page_size;
	json_t *body; /* checked; NULL without a body. Freed with the arena */

	unsigned gate;             /* index of the next gate to run */
	bool awaits_body;          /* only the header block has arrived */
	bool again;                /* the body came later: gates whose answer may have changed run again */
	struct doc_wanted *wanted; /* a document that a gate needs and that is read ahead; or NULL */
	struct tx *tx;             /* the loop's or worker's reader; inside a write, its transaction */
	struct call_event event;
	struct idempotency *idempotency; /* of a POST with an Idempotency-Key */
	void *prepared;                  /* result of the row's prepare function */
	void *noted;                     /* left by one hook for a later one of the same call */
	struct missing {
		const char *code;                /* or NULL: of what the path's last parameter names */
		const struct resource *resource; /* or NULL */
		struct str key;
	} missing; /* what was looked for last and is not there: call_missing() */
	/* A writing handler may set it. Called once, on the store's thread, when its write is on disk. Must be
	 * quick. */
	void (*committed)(struct call *c, void *arg);
	void *committed_arg;
	/* A handler may set it when the answer has to wait for more than the handler. Called once, when the write is on
	 * disk, on the store's thread, or when the read has ended; must be quick. Nothing is sent until call_send(),
	 * which may come from any thread, exactly once. */
	void (*held)(struct call *c, void *arg);
	void *held_arg;
	bool rerun_on_worker; /* see call_takes_long() in gate/dispatch.h */
	unsigned delay_ms;    /* asked for by the test control; spent where the operation does its work */

	/* Whether the answer can be given again: call/kept_answer.h. */
	bool momentary;      /* it depends on more than the store and the call: the clock, the engine */
	bool is_final;       /* out is the answer as it was kept: nothing is done to it any more */
	uint64_t snapshot;   /* what the gates have read from; 0: not known */
	size_t kept_headers; /* those of the gates */
	struct kept *kept;   /* where it is kept, or NULL */
	struct str kept_name, kept_before;

	/* The answer. */
	int status;
	struct problem problem;   /* status >= 400 */
	struct buf out;           /* JSON text of an entity or list, without envelope; freed with the arena */
	size_t reserved;          /* memory that is reserved for the answer: call_grown() */
	bool is_list;             /* out is a list document: the envelope only adds status */
	int64_t etag;             /* revision, or 0 */
	struct str location;      /* of a created resource, or empty */
	struct item_link *item;   /* what the links of the list's items share; or NULL */
	const char *content_type; /* set: the body is not JSON and response.stream or out is sent as it is */
	bool relayed;             /* another host's answer: status, out and response.headers are its */
	struct str extra_headers[8][2];
	size_t extra_header_count;
};

/* Headers of a call that one host of the service passes on to another, where they are believed because of the
 * certificate that the connection showed (request.from_host): who calls ("KIND/ID"), and from which address. */
#define HEADER_CALLER "x-steward-caller"
#define HEADER_PEER "x-steward-peer"
/* Whether the call came from another host of the service. */
static inline bool call_is_passed_on(const struct call *c)
{
	return c->request->from_host[0];
}

/* The dialect that the call was made in; NULL: our own. */
static inline const struct dialect *call_dialect(const struct call *c)
{
	return c->dialect;
}

/* The first fault wins. Returns -status, so that a gate or handler can `return call_fail(...)`. */
int call_fail(struct call *c, int status, const char *code, const char *format, ...) printf_like(4, 5);
/* The same for a field or parameter: the detail begins with its path, and the path is the only parameter. */
int call_fail_field(struct call *c, int status, const char *code, const char *path, const char *format, ...)
        printf_like(5, 6);
/* The same with this one parameter: the name, id or number that the detail is about. */
int call_fail_about(struct call *c, int status, const char *code, struct str parameter, const char *format, ...)
        printf_like(5, 6);
/* Adds one string to the problem's parameters, after call_fail(). Returns -status again. */
int call_fail_param(struct call *c, struct str parameter);
/* 400 VALIDATION_ERROR that names all faults; parameters hold the paths. */
int call_fail_faults(struct call *c, const struct faults *faults);
/* The same with one fault; an empty path is the body as a whole. */
int call_fail_fault(struct call *c, struct str path, const char *format, ...) printf_like(3, 4);
/* Remembers what is not there, in case the call ends with that: a document of the resource, or what a parameter of the
 * path names. Returns -ENOENT. */
int call_missing(struct call *c, const struct resource *r, struct str key);
int call_missing_param(struct call *c, const char *param);
/* 404 with the requested path, in the specification's words, and the code of what is missing. What another API of the
 * same project has is refused as its row says ("elsewhere"). Needs c->tx where the call has a project. */
int call_not_found(struct call *c);
/* The same for what a parameter of the path names. */
int call_param_not_found(struct call *c, const char *param);
/* Maps a store's error to 409, 412, 500 or 503. */
int call_fail_store(struct call *c, int error, const char *what);

/* The value of a path or query parameter; STR_NONE when absent. */
struct str call_path(const struct call *c, const char *name);
struct str call_query(const struct call *c, const char *name);
bool call_query_bool(const struct call *c, const char *name, bool otherwise);

void call_header(struct call *c, struct str name, struct str value);

/* Whose share of the common threads and queues the call uses: its organization's, else the caller's, else the
 * address's. */
uint64_t call_key(const struct call *c);

/* Memory of a call that is not asked about, and steps in which more is. */
#define CALL_MEMORY_STEP ((size_t)256 * 1024)
/* call.c: see call_grown(). `more` is about to be added. */
must_check int call_reserve(struct call *c, size_t more);
/* Call it while a long answer is made, after each item. Fails the call with 503 and Retry-After when the caller's
 * address has no room for what the answer takes by now: forty lists of 16 MB, which nobody read, were 2.9 GB. */
static inline int call_grown(struct call *c)
{
	return c->out.cap + arena_held(c->arena) < c->reserved + CALL_MEMORY_STEP ? 0 : call_reserve(c, 0);
}

/* finish.c: builds the answer's bytes and headers from what the handler left in the call; does not send. */
void call_finish(struct call *c);

#endif
