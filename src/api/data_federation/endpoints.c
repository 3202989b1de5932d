/* Private endpoints of federated database instances and online archives. While one is open, each instance of the
 * project has a host name for it, which its certificate stands for too. The list of them is the answer to a new
 * one, as the reference has it; one that is there already is changed by the same call. */
#include "api/data_federation/instance.h"

#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>

#define ID_BEGIN "vpce-"
#define ID_DIGITS 17
#define COMMENT_BYTES 1000

static bool is_id(struct str id)
{
	struct str begin = STR(ID_BEGIN);
	if (!str_starts(id, begin) || id.n != begin.n + ID_DIGITS)
		return false;
	for (size_t i = begin.n; i < id.n; i++)
		if (!((id.p[i] >= '0' && id.p[i] <= '9') || (id.p[i] >= 'a' && id.p[i] <= 'f')))
			return false;
	return true;
}

static int entry_check(struct call *c, const json_t *body)
{
	static const char *const shown[] = {"azureLinkId", "errorMessage", "status"};
	struct faults faults = {.count = 0};
	if (!is_id(json_field(body, "endpointId")))
		faults_add(&faults, c->arena, STR("endpointId"),
		           "must be " ID_BEGIN " and %d digits of 0-9 and a-f: paths have no other", ID_DIGITS);
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		if (json_object_get(body, shown[i]))
			faults_add(&faults, c->arena, str_of(shown[i]), "must not be given: the service tells it");
	if (json_field(body, "comment").n > COMMENT_BYTES)
		faults_add(&faults, c->arena, STR("comment"), "must have at most %d bytes", COMMENT_BYTES);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int entry_insert(struct call *c, const struct resource *r, json_t *document)
{
	struct doc d =
	        doc_new(c->arena, FEDERATION_ENDPOINT_KIND, c->group.id, json_field(document, "endpointId"), STR_NONE);
	json_default(document, "provider", json_string("AWS"));
	json_default(document, "type", json_string("DATA_LAKE"));
	int result = resource_limit(c, r, c->group.id, 1);
	if (result == 0)
		result = call_lifecycle_create(c, &d, document);
	d.body = json_text(c->arena, document);
	return result < 0 ? result : doc_put(c->tx, &d);
}

static int entry_change(struct call *c, struct doc *d)
{
	json_t *document = doc_json(c->arena, d->body);
	if (str_is(json_field(document, "status"), "DELETING"))
		return call_fail_about(c, 400, "DATA_FEDERATION_PRIVATE_ENDPOINT_IS_DELETING", d->name,
		                       "The private endpoint %.*s is being removed.", STR_ARG(d->name));
	json_object_update(document, json_clone(c->arena, c->body));
	d->body = json_text(c->arena, document);
	event_set_type(c, "PRIVATE_NETWORK_ENDPOINT_ENTRY_UPDATED");
	return doc_put(c->tx, d);
}

int federation_endpoint_add(struct call *c)
{
	const struct resource *r = c->op->resource;
	json_t *document = json_clone(c->arena, c->body);
	struct doc d;
	int result = instances_offered(c);
	if (result == 0)
		result = entry_check(c, document);
	if (result == 0)
		result = tx_get_by_name(c->tx, c->arena, FEDERATION_ENDPOINT_KIND, c->group.id,
		                        json_field(document, "endpointId"), &d);
	if (result == 0)
		result = entry_change(c, &d);
	else if (result == -ENOENT)
		result = entry_insert(c, r, document);
	event_field(c, "endpointId", arena_dup(c->arena, json_field(document, "endpointId")));
	return result < 0 ? result : verb_list(c);
}

/* It was opened, or is on its way out: the instances have a name more, or fewer. */
int federation_endpoint_moved(struct tx *tx, struct arena *a, struct lifecycle_step *step)
{
	return instances_changed(tx, a, step->doc->parent);
}

int endpoints_open(struct tx *tx, struct arena *a, struct str group_id, struct str **ret_ids, size_t *ret_count)
{
	struct doc *docs;
	size_t count = 0, open = 0;
	int r = tx_list_all(tx, a, FEDERATION_ENDPOINT_KIND, group_id, &docs, &count);
	if (r < 0)
		return r;
	struct str *ids = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; i < count; i++)
		if (str_is(json_field(doc_json(a, docs[i].body), "status"), "OK"))
			ids[open++] = docs[i].name;
	*ret_ids = ids;
	*ret_count = open;
	return 0;
}

static int endpoint_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	int result = instances_offered(c);
	if (result < 0)
		return result;
	return tx_get_by_name(c->tx, c->arena, r->kind, c->group.id, call_path(c, "endpointId"), ret_doc);
}

static int endpoint_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	struct segment *all = arena_calloc(c->arena, 1, sizeof *all);
	int r = instances_offered(c);
	*all = (struct segment){.kind = FEDERATION_ENDPOINT_KIND, .parent = c->group.id, .whole = true};
	*ret_list = all;
	*ret_count = 1;
	return r;
}

const struct resource_hooks federation_endpoint_hooks = {.load = endpoint_load, .segments = endpoint_segments};
