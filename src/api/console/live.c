/* Live events for clients of the API and for browsers: who may listen to what.
 *
 * A stream passes the gates of the list of the same events, once. Afterwards its rights are looked at when any rights
 * have changed: a stream of one list goes on as long as its caller may read the list; one of all that the caller may
 * see ends with any change, and its client asks again. */
#include "api/console/live.h"

#include "call/workers.h"
#include "gate/gate.h"
#include "gate/right.h"
#include "trail/live.h"

#include <errno.h>
#include <stdlib.h>

#define STREAM_END "/events:stream"
#define LAST_ID "lastEventId"
#define PARAMS_MAX 8

/* A caller who listens. */
struct ear {
	struct service *service;
	struct principal *caller;          /* as it was when the stream began */
	const struct op *list;             /* the list of the same events; NULL: all that the caller may see */
	struct right right;                /* to the list */
	char *types, *excluded, *clusters; /* with commas between them; NULL: no such filter */
};

static const struct op *org_list, *group_list;
/* Callers by their ids, of the thread that looks at rights. */
static struct token_cache *known;

static bool path_split(struct str path, const char *base, struct str *ret_id)
{
	struct str prefix = str_of(base), end = STR(STREAM_END);
	if (path.n <= prefix.n + end.n || !str_starts(path, prefix) || !str_ends(path, end))
		return false;
	*ret_id = (struct str){path.p + prefix.n, path.n - prefix.n - end.n};
	return !memchr(ret_id->p, '/', ret_id->n);
}

bool live_is_path(struct str path)
{
	struct str id;
	return path_split(path, API_BASE "/orgs/", &id) || path_split(path, API_BASE "/groups/", &id);
}

/* What it sees. */

static bool list_has(const char *list, struct str value)
{
	struct str rest = str_of(list), one;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		if (str_eq(one, value))
			return true;
	}
	return false;
}

static bool in_scope(const struct ear *e, const struct live_event *v)
{
	if (e->list == org_list)
		return v->for_org && str_eq(v->org_id, id_str(&e->right.scope));
	if (e->list == group_list)
		return v->for_group && str_eq(v->group_id, id_str(&e->right.scope));
	if (v->for_org && (principal_org_roles(e->caller, v->org_id) & org_list->roles))
		return true;
	return v->for_group &&
	       ((principal_org_roles(e->caller, v->org_id) | principal_group_roles(e->caller, v->org_id, v->group_id)) &
	        group_list->roles);
}

static bool ear_sees(void *ctx, const struct live_event *v)
{
	const struct ear *e = ctx;
	return in_scope(e, v) && (!e->types || list_has(e->types, v->type)) &&
	       (!e->excluded || !list_has(e->excluded, v->type)) && (!e->clusters || list_has(e->clusters, v->cluster));
}

/* Whether it may go on. */

static bool grants_are_same(const struct principal *a, const struct principal *b)
{
	bool same = a->grant_count == b->grant_count;
	for (size_t i = 0; same && i < a->grant_count; i++) {
		const struct grant *x = &a->grants[i], *y = &b->grants[i];
		same = strcmp(x->scope.z, y->scope.z) == 0 && x->roles == y->roles && x->shut == y->shut;
	}
	return same;
}

/* One that sees all that its caller may see ends with any change. */
static int all_check(const struct ear *e, struct tx *tx, struct arena *a)
{
	struct principal *now;
	int r = right_caller(e->service, known, tx, a, &e->right, &now);
	if (r < 0)
		return r;
	r = grants_are_same(e->caller, now) ? 0 : -EPERM;
	principal_unref(now);
	return r;
}

static const char *ear_check(void *ctx, struct tx *tx, struct arena *a)
{
	const struct ear *e = ctx;
	switch (e->list ? right_check(e->service, known, tx, a, &e->right) : all_check(e, tx, a)) {
	case 0: return NULL;
	case -EADDRNOTAVAIL:
	case -EPERM: return "RIGHTS_CHANGED";
	case -EACCES:
	case -ENOENT: return "SESSION_ENDED";
	default: return "STORE_UNAVAILABLE";
	}
}

static void ear_free(void *ctx)
{
	struct ear *e = ctx;
	principal_unref(e->caller);
	free(e->types);
	free(e->excluded);
	free(e->clusters);
	free(e);
}

static char *filter_of(struct call *c, const char *name)
{
	struct str text = call_query(c, name);
	if (!text.n)
		return NULL;
	char *kept = must_malloc(text.n + 1);
	str_copy(text, kept, text.n + 1);
	return kept;
}

static struct ear *ear_new(struct call *c, const struct op *list, int64_t *ret_until_ms)
{
	struct ear *e = must_calloc(1, sizeof *e);
	e->service = c->service;
	e->caller = principal_ref(c->caller);
	e->list = list;
	right_of_call(c, &e->right);
	e->right.op = list;
	if (!list)
		e->right.scope = (struct id){.z = ""};
	e->types = filter_of(c, "eventType");
	e->excluded = filter_of(c, "excludedEventType");
	e->clusters = filter_of(c, "clusterNames");
	*ret_until_ms = e->right.until_ms;
	return e;
}

/* The call. */

static const struct schema text_schema = {.type = TYPE_STRING, .pattern = -1};
static const struct param last_id_param = {.name = LAST_ID, .schema = &text_schema};

/* The list's row, as a stream has it: its filters, no pages, and a form of its own. */
static const struct op *row_of(struct arena *a, const struct op *list)
{
	struct op *row = arena_new_of(a, struct op);
	struct param *params = arena_new_array(a, struct param, PARAMS_MAX);
	static const char *const filters[] = {"eventType", "excludedEventType", "clusterNames"};
	unsigned char count = 0;
	params[count++] = last_id_param;
	for (unsigned i = 0; i < list->query_param_count; i++)
		for (size_t k = 0; k < sizeof filters / sizeof *filters; k++)
			if (strcmp(list->query_params[i].name, filters[k]) == 0 && count < PARAMS_MAX)
				params[count++] = list->query_params[i];
	*row = *list;
	row->produces = PRODUCES_EVENTS;
	row->paginated = false;
	row->query_params = params;
	row->query_param_count = count;
	return row;
}

static int gates_pass(struct call *c)
{
	static int (*const gates[])(struct call *) = {gate_authenticate, gate_access_list, gate_membership, gate_bucket,
	                                              gate_version,      gate_roles,       gate_parameters};
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof gates / sizeof *gates; i++)
		r = gates[i](c);
	return r;
}

static struct str last_id_of(struct call *c)
{
	struct str header = request_header(c->request, "last-event-id");
	return header.n ? header : call_query(c, LAST_ID);
}

static int stream_refuse(struct call *c, int error)
{
	static const struct {
		int error, status, most;
		const char *code, *whose, *next;
	} bounds[] = {{-EMFILE, 429, LIVE_CALLER_MAX, "TOO_MANY_EVENT_STREAMS", "This caller has",
	               "Close some, or let one reader hand the events on."},
	              {-EDQUOT, 429, LIVE_ORG_MAX, "TOO_MANY_EVENT_STREAMS", "The callers of this organization have",
	               "Close some, or let one reader hand the events on."},
	              {-EBUSY, 503, LIVE_MAX - LIVE_RESERVE, "SERVICE_BUSY", "The service has more than",
	               "Try again later, or read the lists of events."}};
	if (error == -ESHUTDOWN) {
		call_header(c, STR("retry-after"), STR("1"));
		return call_fail(c, 503, "NOT_READY", "The service is stopping.");
	}
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		if (error == bounds[i].error) {
			call_header(c, STR("retry-after"), STR("10"));
			return call_fail(c, bounds[i].status, bounds[i].code,
			                 "%s %d streams of events open, which is the most. %s", bounds[i].whose,
			                 bounds[i].most, bounds[i].next);
		}
	return call_fail_store(c, error, "events");
}

/* Whose share of the listeners a stream takes: the organization of its list; else the caller's own, or of a user the
 * first one that it is in. */
static struct str payer_of(const struct call *c, const struct op *list)
{
	const struct principal *p = c->caller;
	if (list)
		return c->org.id;
	for (size_t i = 0; !p->org_id[0] && i < p->grant_count; i++)
		if (p->grants[i].roles & role_org_mask)
			return str_of(p->grants[i].scope.z);
	return str_of(p->org_id);
}

static int stream_begin(struct call *c, const struct op *list)
{
	struct event_filter filter = {.in_org = list == org_list};
	struct live_join join = {
	        .tx = c->tx, .generation = tx_identity_generation(c->tx), .list = list ? &filter : NULL};
	tx_begin_read(c->tx);
	int r = gates_pass(c);
	struct ear *e = r == 0 ? ear_new(c, list, &join.until_ms) : NULL;
	tx_end_read(c->tx);
	if (!e)
		return r;
	join.caller = str_of(c->caller->id);
	join.org = payer_of(c, list);
	join.last_id = last_id_of(c);
	filter.scope = id_str(&e->right.scope);
	const struct live_ear ear = {.sees = ear_sees, .check = ear_check, .free = ear_free, .ctx = e};
	r = live_listen(c->service->live, c->request, &join, &ear);
	if (r < 0) {
		ear_free(e);
		return stream_refuse(c, r);
	}
	c->status = 200;
	c->content_type = LIVE_CONTENT_TYPE;
	call_header(c, STR("x-accel-buffering"), STR("no")); /* for proxies that would gather the answer */
	return 0;
}

static void release(void *arg)
{
	struct call *c = arg;
	buf_free(&c->out);
	principal_unref(c->caller);
}

void live_serve(struct service *s, struct request *r)
{
	struct call *c = arena_new_of(r->arena, struct call);
	const struct op *list = NULL;
	c->service = s;
	c->request = r;
	c->arena = r->arena;
	c->tx = lane_here(s)->reader;
	arena_defer(r->arena, release, c);
	if (path_split(r->path, API_BASE "/orgs/", &c->params[0]))
		list = org_list;
	else if (path_split(r->path, API_BASE "/groups/", &c->params[0]))
		list = group_list;
	c->op = row_of(r->arena, list ? list : catalog_op("listOrgs"));
	(void)stream_begin(c, list); /* a refusal is in the call */
	c->tx = NULL;
	call_finish(c);
	c->op = NULL; /* the row is none of the catalog's */
	r->app = c;
	respond_here(r);
}

int live_start(struct service *s)
{
	org_list = catalog_op("listOrgEvents");
	group_list = catalog_op("listGroupEvents");
	known = token_cache_new();
	return live_open(s->store, &s->live);
}

void live_teardown(struct service *s)
{
	live_stop(s->live);
	token_cache_free(known);
	known = NULL;
}
