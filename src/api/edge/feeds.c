/* Activity feeds as feed readers get them: GET FEED_PATH<token>, an Atom feed. Outside the catalog: the link is all
 * that a reader has. Each time the feed is read, the caller that asked for the link must still be there, hold the role
 * and be allowed from that address. */
#include "api/edge/edge.h"
#include "api/events/events.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/xml.h"
#include "call/answer.h"
#include "call/workers.h"
#include "gate/right.h"
#include "identity/attempts.h"

#include <errno.h>

#define FEED_ENTRIES 100

/* One reading of a feed. */
struct feed {
	struct service *service;
	struct request *request;
	struct arena *arena;
	struct tx *tx;
	const struct op *op; /* that made the link */
	json_t *token;
	struct event_filter filter;
	struct doc scope;
};

static int feed_refuse(struct feed *f, int status, const char *code, const char *detail)
{
	struct problem p = {.status = status, .code = code, .detail = str_of(detail)};
	answer_problem(f->request, &p);
	return -status;
}

static int not_found(struct feed *f)
{
	return feed_refuse(f, 404, "RESOURCE_NOT_FOUND", "There is no such feed. Ask the API for its link again.");
}

/* A link that this service did not sign is a failed sign-in; a right one is never refused for those. */
static int unknown(struct feed *f)
{
	unsigned seconds;
	enum attempt_state attempt = attempt_ask(f->service->attempts, STR_NONE, &f->request->peer, &seconds);
	attempt_failed(f->service->attempts, STR_NONE, &f->request->peer);
	if (attempt == ATTEMPT_OPEN)
		return not_found(f);
	response_header(&f->request->response, "retry-after", arena_printf(f->arena, "%u", seconds));
	return feed_refuse(f, 429, "TOO_MANY_FAILED_ATTEMPTS", "Too many failed attempts from this address.");
}

static int token_read(struct feed *f)
{
	struct str path = f->request->path, token = {path.p + strlen(FEED_PATH), path.n - strlen(FEED_PATH)};
	f->token = feed_token_read(f->arena, token);
	if (!f->token)
		return unknown(f);
	f->op = catalog_op(arena_z(f->arena, json_field(f->token, "op")));
	if (!f->op)
		return not_found(f);
	if (json_integer_value(json_object_get(f->token, "until")) < clock_now_ms())
		return feed_refuse(f, 404, "FEED_LINK_EXPIRED",
		                   "The time of this link is over. Ask the API for a new one.");
	return 0;
}

static void filter_read(struct feed *f)
{
	const json_t *types = json_object_get(f->token, "types"), *clusters = json_object_get(f->token, "clusters"),
	             *min = json_object_get(f->token, "min"), *max = json_object_get(f->token, "max");
	f->filter = (struct event_filter){.scope = f->scope.id,
	                                  .in_org = f->op->tenant == TENANT_ORG,
	                                  .has_min = min != NULL,
	                                  .min_ms = json_integer_value(min),
	                                  .has_max = max != NULL,
	                                  .max_ms = json_integer_value(max)};
	if (json_array_size(types))
		f->filter.types = json_text(f->arena, types);
	if (json_array_size(clusters))
		f->filter.clusters = json_text(f->arena, clusters);
}

/* The caller that asked for the link must still be allowed to ask, from this address. */
static int caller_check(struct feed *f)
{
	struct right right;
	right_of_link(f->token, f->op, f->scope.id, &f->request->peer, &right);
	switch (right_check(f->service, NULL, f->tx, f->arena, &right)) {
	case 0: return 0;
	case -EADDRNOTAVAIL:
		return feed_refuse(f, 403, "IP_ADDRESS_NOT_ON_ACCESS_LIST",
		                   "This link may not be used from this address.");
	case -EACCES:
		return feed_refuse(
		        f, 403, "FEED_LINK_REVOKED",
		        "What asked for this link was taken back since: a session or a secret. Ask the API for a new "
		        "one.");
	case -ENOENT:
	case -EPERM:
		return feed_refuse(f, 403, "FEED_NOT_PERMITTED",
		                   "Who asked for this link may not read these events any more.");
	default: return feed_refuse(f, 500, "UNEXPECTED_ERROR", "The store could not be read.");
	}
}

static int bucket_check(struct feed *f)
{
	struct limit_answer l;
	limiter_take(f->service->limiter, f->op->set, f->scope.id, &l);
	if (l.granted)
		return 0;
	response_header(&f->request->response, "retry-after", arena_printf(f->arena, "%u", l.retry_after));
	return feed_refuse(f, 429, "RATE_LIMITED_TOKEN_BUCKET", "This feed is read too often. Please retry later.");
}

static void xml_time(struct buf *b, int64_t ms)
{
	char text[CLOCK_TEXT];
	clock_format(ms, text);
	xml_element(b, "updated", str_of(text));
}

static void entry_write(struct feed *f, struct buf *b, const struct event *e)
{
	const json_t *body = doc_json(f->arena, e->body), *raw = doc_json(f->arena, e->raw);
	struct str user = json_field(body, "username"), key = json_field(body, "publicKey");
	const char *scope = f->filter.in_org ? "orgs" : "groups";
	buf_z(b, "<entry>");
	xml_element(b, "id", arena_printf(f->arena, "urn:steward:event:%.*s", STR_ARG(e->id)));
	xml_element(b, "title", json_field(raw, "description").n ? json_field(raw, "description") : e->type);
	xml_time(b, e->created_ms);
	buf_z(b, "<author>");
	xml_element(b, "name", user.n ? user : key.n ? key : STR("Steward"));
	buf_z(b, "</author><category");
	xml_attribute(b, "term", e->type);
	buf_z(b, "/><link rel=\"alternate\" type=\"application/json\"");
	xml_attribute(b, "href",
	              arena_printf(f->arena, "%s" API_BASE "/%s/%.*s/events/%.*s", f->service->base_url, scope,
	                           STR_ARG(f->filter.scope), STR_ARG(e->id)));
	buf_z(b, "/><content type=\"text\">");
	xml_text(b, e->body);
	buf_z(b, "</content></entry>\n");
}

static void feed_write(struct feed *f, const struct event *events, size_t count)
{
	struct buf b = {0};
	struct str name = json_field(doc_json(f->arena, f->scope.body), "name");
	const char *kind = f->filter.in_org ? "organization" : "project";
	buf_z(&b, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">");
	xml_element(&b, "id", arena_printf(f->arena, "urn:steward:%s:%.*s:activity", kind, STR_ARG(f->filter.scope)));
	xml_element(&b, "title", arena_printf(f->arena, "Activity of the %s %.*s", kind, STR_ARG(name)));
	xml_time(&b, count ? events[0].created_ms : f->scope.created_ms);
	buf_z(&b, "<author><name>Steward</name></author><link rel=\"self\" type=\"application/atom+xml\" href=\"");
	buf_z(&b, f->service->base_url);
	xml_text(&b, f->request->path);
	buf_z(&b, "\"/>\n");
	for (size_t i = 0; i < count; i++)
		entry_write(f, &b, &events[i]);
	buf_z(&b, "</feed>\n");
	f->request->response.status = 200;
	f->request->response.body = arena_dup(f->arena, buf_view(&b));
	response_header(&f->request->response, "content-type", STR("application/atom+xml; charset=utf-8"));
	buf_free(&b);
}

/* Fills the answer, also with a refusal. */
static int feed_read(struct feed *f)
{
	struct event *events = NULL;
	size_t count = 0;
	int result = token_read(f);
	if (result < 0)
		return result;
	bool in_org = f->op->tenant == TENANT_ORG;
	result = tx_get(f->tx, f->arena, in_org ? "org" : "project", json_field(f->token, "scope"), &f->scope);
	if (result == -ENOENT)
		return not_found(f);
	if (result == 0 && (result = caller_check(f)) < 0)
		return result;
	if (result == 0 && (result = bucket_check(f)) < 0)
		return result;
	filter_read(f);
	if (result == 0)
		result = tx_event_list(f->tx, f->arena, &f->filter, 0, FEED_ENTRIES, &events, &count);
	if (result == -ENOTCONN) {
		response_header(&f->request->response, "retry-after", STR("1"));
		return feed_refuse(f, 503, "STORE_UNAVAILABLE",
		                   "The service cannot reach its store. Try again in a second.");
	}
	if (result < 0)
		return feed_refuse(f, 500, "UNEXPECTED_ERROR", "The store could not be read.");
	feed_write(f, events, count);
	return 0;
}

void feed_serve(struct service *s, struct request *r)
{
	struct feed f = {.service = s, .request = r, .arena = r->arena, .tx = lane_here(s)->reader};
	tx_begin_read(f.tx);
	feed_read(&f);
	tx_end_read(f.tx);
	respond_here(r);
}
