/* The documents of an instance, and how its job is asked for. */
#include "api/data_federation/instance.h"

#include "base/clock.h"
#include "hosts/hosts.h"

#include <errno.h>

int instance_get(struct tx *tx, struct arena *a, struct str id, struct instance *ret_instance)
{
	struct instance x;
	int r = tx_get(tx, a, FEDERATION_KIND, id, &x.doc);
	if (r == 0)
		r = tx_get(tx, a, FEDERATION_RUN_KIND, id, &x.run_doc);
	if (r < 0)
		return r;
	x.body = doc_json(a, x.doc.body);
	x.run = doc_json(a, x.run_doc.body);
	*ret_instance = x;
	return 0;
}

int instance_run_save(struct tx *tx, struct arena *a, struct instance *x)
{
	x->run_doc.body = json_text(a, x->run);
	return doc_put(tx, &x->run_doc);
}

bool instance_is(const json_t *body, const char *state)
{
	return str_is(json_field(body, "state"), state);
}

/* One label each, so that a certificate for all names below the project's stands for it too. */
struct str instance_host_name(const struct service *s, struct arena *a, const struct doc *d, struct str endpoint)
{
	char hash[PROJECT_HASH];
	project_hash(d->parent, hash);
	return arena_printf(a, "fdb-%.*s%s%.*s.%s.%s", STR_ARG(d->id), endpoint.n ? "-" : "", STR_ARG(endpoint), hash,
	                    s->db_domain);
}

int instance_ask(struct tx *tx, struct arena *a, struct str id, struct str group_id, struct str host, int64_t due_ms)
{
	struct job job = {.kind = STR(FEDERATION_JOB),
	                  .subject = arena_printf(a, "data_federation/%.*s", STR_ARG(id)),
	                  .host = host,
	                  .args = STR("{}"),
	                  .tenant = group_id,
	                  .due_ms = due_ms};
	return tx_job_ensure(tx, &job);
}

int instance_changed(struct tx *tx, struct arena *a, struct str id)
{
	struct instance x;
	int r = instance_get(tx, a, id, &x);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_put(x.run, "generation", json_integer(json_number(x.run, "generation") + 1));
	r = instance_run_save(tx, a, &x);
	return r < 0 ? r : instance_ask(tx, a, x.doc.id, x.doc.parent, json_field(x.run, "host"), clock_now_ms());
}

int instances_changed(struct tx *tx, struct arena *a, struct str group_id)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, FEDERATION_KIND, group_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = instance_changed(tx, a, docs[i].id);
	return r;
}

int instances_offered(struct call *c)
{
	const struct engine_federation_ops *f = c->service->engine_ops->federation;
	const char *why = "";
	if (!f)
		return cluster_not_offered(c);
	if (f->can(c->service->engine_state, c->arena, &why) < 0)
		return call_fail(c, 501, "NOT_IMPLEMENTED",
		                 "This service cannot have federated database instances: %s.", why);
	return 0;
}

static void used_noted(const json_t *run, struct engine_federation_used *ret_used)
{
	const json_t *used = json_object_get(run, "used");
	*ret_used = (struct engine_federation_used){.queries = 0};
	for (size_t i = 0; i < FEDERATION_SPANS; i++)
		ret_used->bytes[i] = (uint64_t)json_integer_value(json_array_get(used, i));
}

bool instance_used(const struct service *s, struct arena *a, const struct instance *x,
                   struct engine_federation_used *ret_used)
{
	const struct engine_federation_ops *f = s->engine_ops->federation;
	used_noted(x->run, ret_used);
	if (f && !host_is_elsewhere(json_field(x->run, "host")) &&
	    f->used(s->engine_state, arena_z(a, x->doc.id), ret_used) == 0)
		return true;
	return json_object_get(x->run, "used");
}
