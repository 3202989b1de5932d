/* What the operator says of endpoints: that one is accepted, and where its consumers come from; or that it is not. The
 * command notes it beside the endpoint, whether the service runs or not; the service carries it out. */
#include "api/private_endpoints/endpoints.h"

#include "base/clock.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>

#define VERDICT_KIND "endpoint_verdict" /* of the endpoint's id; below nothing */

struct search {
	struct arena *arena;
	struct str which;
	struct doc found;
	size_t count;
};

static int search_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	struct search *s = ctx;
	if (!str_eq(d->id, s->which) && !str_eq(d->name, s->which))
		return 0;
	s->found = *d;
	s->found.id = arena_dup(s->arena, d->id);
	s->count++;
	return 0;
}

static int endpoint_find(struct tx *tx, struct arena *a, struct str which, struct doc *ret_doc)
{
	struct search s = {.arena = a, .which = which};
	int r = tx_walk_all(tx, ENDPOINT_KIND, search_visit, &s);
	if (r == 0)
		r = s.count == 0 ? -ENOENT : s.count > 1 ? -EEXIST : 0;
	return r < 0 ? r : tx_get(tx, a, ENDPOINT_KIND, s.found.id, ret_doc);
}

static bool is_decided(const json_t *endpoint, const struct endpoint_verdict *v)
{
	const char *state = lifecycle_state(STR(ENDPOINT_KIND), endpoint);
	bool gone = !state || strcmp(state, "DELETING") == 0 || strcmp(state, "REJECTED") == 0 ||
	            strcmp(state, "FAILED") == 0;
	return gone || (v->reject.n && !lifecycle_allows(STR(ENDPOINT_KIND), endpoint, "REJECT"));
}

int endpoint_verdict_note(struct tx *tx, struct arena *a, struct endpoint_verdict *v)
{
	struct doc d, service, before;
	int r = endpoint_find(tx, a, v->endpoint, &d);
	if (r == 0)
		r = tx_get(tx, a, SERVICE_KIND, d.parent, &service);
	if (r < 0)
		return r;
	const json_t *endpoint = doc_json(a, d.body);
	const char *state = lifecycle_state(d.kind, endpoint);
	v->id = d.id;
	v->name = d.name;
	v->service_id = service.id;
	v->group_id = service.parent;
	v->provider = json_field(endpoint, "cloudProvider");
	v->state = str_of(state ? state : "unknown");
	if (!v->address_count && !v->reject.n)
		return 0;
	if (is_decided(endpoint, v))
		return -EINVAL;
	json_t *note = json_new(a), *addresses = json_array();
	for (size_t i = 0; i < v->address_count; i++)
		json_add_str(addresses, v->addresses[i]);
	json_put(note, "addresses", addresses);
	json_put_str(note, "reject", v->reject);
	r = tx_get(tx, a, VERDICT_KIND, d.id, &before);
	if (r == 0)
		r = tx_delete(tx, VERDICT_KIND, d.id);
	if (r < 0 && r != -ENOENT)
		return r;
	return tx_insert(tx, &(struct doc){.kind = STR(VERDICT_KIND),
	                                   .id = d.id,
	                                   .parent = STR(""),
	                                   .created_ms = clock_now_ms(),
	                                   .body = json_text(a, note)});
}

/* --- by the service */

static int patched_tell(struct tx *tx, struct arena *a, struct str group_id, struct str name)
{
	return event_service_field(tx, a, "INTERFACE_ENDPOINT_PATCHED", STR_NONE, group_id, "endpointId", name);
}

static int endpoint_accept(struct tx *tx, struct arena *a, struct doc *d, json_t *body, const json_t *note)
{
	struct doc service;
	bool open = endpoint_is_open(body);
	json_object_set(body, "consumers", json_object_get(note, "addresses"));
	d->body = json_text(a, body);
	int r = tx_update(tx, d);
	d->rev++;
	if (r == 0)
		r = tx_get(tx, a, SERVICE_KIND, d->parent, &service);
	if (r == 0)
		r = patched_tell(tx, a, service.parent, d->name);
	if (r < 0)
		return r;
	return open ? endpoints_changed(tx, a, service.parent) : lifecycle_ask(tx, a, d);
}

static int verdict_apply(struct tx *tx, struct arena *a, const struct doc *verdict)
{
	const json_t *note = doc_json(a, verdict->body);
	struct endpoint_verdict v = {.reject = json_field(note, "reject")};
	struct doc d;
	int r = tx_delete(tx, VERDICT_KIND, verdict->id);
	if (r == 0)
		r = tx_get(tx, a, ENDPOINT_KIND, verdict->id, &d);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *body = doc_json(a, d.body);
	if (is_decided(body, &v))
		return 0;
	if (!v.reject.n)
		return endpoint_accept(tx, a, &d, body, note);
	json_put_str(body, "errorMessage", v.reject);
	d.body = json_text(a, body);
	return lifecycle_move(tx, a, &d, "REJECT");
}

static int verdicts_run(struct tx *tx, void *ctx)
{
	struct arena *a = ctx;
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, VERDICT_KIND, STR(""), &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = verdict_apply(tx, a, &docs[i]);
	return r;
}

void endpoint_verdicts_apply(struct service *s, struct tx *reader)
{
	int64_t count = 0;
	if (tx_count(reader, VERDICT_KIND, STR(""), &count) < 0 || !count)
		return;
	struct arena *a = arena_new();
	int r = store_write_wait(s->store, verdicts_run, a);
	if (r < 0)
		log_error("private endpoints: what the operator has said could not be carried out: %s", strerror(-r));
	arena_free(a);
}
