/* The calls about online archives: what an archive may be, and what is shown of it.
 *
 * Before its write a call asks the host that has the cluster whether rows can leave the table so, so that what is wrong
 * is told at once and by its field. */
#include "api/archives/calls.h"

#include "api/archives/metering.h"
#include "api/archives/rules.h"
#include "api/archives/schedule.h"
#include "api/archives/work.h"
#include "api/kit/lifecycle.h"
#include "api/kit/verbs.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/workers.h"
#include "hosts/hosts.h"
#include "trail/events.h"

#include <errno.h>

#define QUESTION_BYTES 12000u /* of an archive that another host is asked about: a query has 8192 at most */

/* --- the question whether rows can be archived so */

struct verdict {
	int result; /* of engine_lake_ops.check() */
	const char *field, *why;
};

static struct verdict check_here(const struct service *s, struct arena *a, struct str cluster_id, const json_t *body)
{
	struct engine_lake want;
	struct verdict v = {.field = "", .why = ""};
	archive_want_make(a, cluster_id, json_field(body, "region"), body, clock_now_ms(), &want);
	v.result = s->engine_ops->lake->check(s->engine_state, &want, a, NULL, &v.field, &v.why);
	return v;
}

/* "?cluster=ID&archive=BASE64" */
void archives_checked(struct service *s, struct request *r)
{
	struct str cluster, encoded, rest, name;
	struct verdict v = {.result = -EAGAIN, .field = "", .why = ""};
	char text[QUESTION_BYTES];
	str_cut(r->query, '&', &cluster, &encoded);
	str_cut(cluster, '=', &name, &cluster);
	str_cut(encoded, '=', &name, &rest);
	ssize_t n = base64_decode(rest, text, sizeof text);
	json_t *body = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	if (body && id_is_valid(cluster) && s->engine_ops->lake)
		v = check_here(s, r->arena, cluster, json_keep(r->arena, body));
	else
		json_decref(body);
	answer_value(r, 200,
	             json_pack("{s:i, s:s, s:s}", "result", v.result, "field", v.field ? v.field : "", "why",
	                       v.why ? v.why : ""));
	respond_here(r);
}

/* An archive that is too long for a question is left to the job. */
static int check_there(struct call *c, const struct cluster *cluster, const json_t *body, struct verdict *ret_verdict)
{
	struct str text = json_text(c->arena, body);
	*ret_verdict = (struct verdict){.result = 0};
	if (text.n > QUESTION_BYTES)
		return 0;
	char *encoded = arena_alloc(c->arena, BASE64_TEXT(text.n));
	base64url_encode(text.p, text.n, encoded);
	struct host_question q = {.host = cluster_host(cluster),
	                          .path = arena_printf(c->arena, ARCHIVES_CHECKED "?cluster=%.*s&archive=%s",
	                                               STR_ARG(cluster->doc.id), encoded)};
	tx_begin_read(c->tx);
	int r = hosts_ask(c, &q, 1);
	tx_end_read(c->tx);
	if (r < 0)
		return r;
	*ret_verdict = (struct verdict){.result = (int)json_number(q.answer, "result"),
	                                .field = arena_z(c->arena, json_field(q.answer, "field")),
	                                .why = arena_z(c->arena, json_field(q.answer, "why"))};
	return 0;
}

int archives_refuse_silent(struct call *c, const struct cluster *cluster)
{
	return call_fail_about(c, 409, "CLUSTER_NOT_AVAILABLE", cluster->doc.name,
	                       "The databases of the cluster \"%.*s\" do not answer now. Try again once it is IDLE.",
	                       STR_ARG(cluster->doc.name));
}

static int verdict_answer(struct call *c, const struct cluster *cluster, const struct verdict *v)
{
	if (v->result == -EINVAL || v->result == -ENOENT)
		return call_fail_fault(c, str_of(v->field), "%s", v->why);
	return v->result < 0 ? archives_refuse_silent(c, cluster) : 0;
}

int archives_refuse_state(struct call *c, const struct cluster *cluster)
{
	int r = cluster_refuse_deleting(c, cluster);
	if (r == 0)
		r = cluster_refuse_paused(c, cluster);
	if (r == 0 && json_object_get(cluster->plan, "restoring"))
		return call_fail_about(c, 409, "CLUSTER_RESTORE_IN_PROGRESS", cluster->doc.name,
		                       "The cluster \"%.*s\" is being restored.", STR_ARG(cluster->doc.name));
	return r;
}

/* --- where the files lie */

/* A region of the reference's form; the cluster's own one may be none. */
static void region_show(json_t *document, struct str provider, struct str region)
{
	static const char *const forms[][2] = {{"AWS", "AWSDataProcessRegionView"},
	                                       {"AZURE", "AzureDataProcessRegionView"},
	                                       {"GCP", "GCPDataProcessRegionView"}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!str_is(provider, forms[i][0]))
			continue;
		json_t *o = json_object();
		json_put_str(o, "cloudProvider", provider);
		if (schema_allows(schema_of_field(forms[i][1], "region"), region))
			json_put_str(o, "region", region);
		json_put(document, "dataProcessRegion", o);
	}
}

struct str archives_region_choose(const struct cluster *cluster, json_t *document)
{
	const json_t *given = json_object_get(document, "dataProcessRegion"),
	             *first = json_array_get(json_object_get(cluster->plan, "nodes"), 0);
	struct str own = json_field(first, "region"), region = json_field(given, "region"),
	           provider = json_field(given, "cloudProvider");
	if (region.n)
		return region;
	region_show(document, provider.n ? provider : json_field(first, "provider"), own);
	return own;
}

/* --- before the write */

/* What the archive would be: the body, or the stored one with the body's changes. */
static int wanted_make(struct call *c, const struct cluster *cluster, json_t **ret_wanted)
{
	json_t *wanted = json_clone(c->arena, c->body);
	struct archive x;
	if (c->method != METHOD_POST) {
		struct doc d;
		int r = resource_load(c, c->op->resource, &d);
		if (r == 0)
			r = archive_get(c->tx, c->arena, d.id, &x);
		if (r < 0)
			return r;
		wanted = x.body;
		archive_rules_merge(wanted, c->body);
		json_put_str(wanted, "region", json_field(x.run, "region"));
	} else {
		json_put_str(wanted, "groupId", c->group.id);
		archive_rules_complete(wanted);
		json_put_str(wanted, "region", arena_dup(c->arena, archives_region_choose(cluster, wanted)));
	}
	*ret_wanted = wanted;
	return 0;
}

static int look(struct call *c)
{
	struct faults faults = {.count = 0};
	struct cluster cluster;
	struct verdict v;
	json_t *wanted = NULL;
	tx_begin_read(c->tx);
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = wanted_make(c, &cluster, &wanted);
	tx_end_read(c->tx);
	if (r < 0)
		return r;
	archive_rules_check(wanted, c->arena, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	/* What else is changed does not need the databases. */
	if (c->method != METHOD_POST && !json_object_get(c->body, "criteria"))
		return 0;
	r = archives_refuse_state(c, &cluster);
	if (r < 0)
		return r;
	if (host_is_elsewhere(cluster_host(&cluster)))
		r = check_there(c, &cluster, wanted, &v);
	else
		v = check_here(c->service, c->arena, cluster.doc.id, wanted);
	return r < 0 ? r : verdict_answer(c, &cluster, &v);
}

int archives_refuse_unable(struct call *c)
{
	const struct engine_lake_ops *lake = c->service->engine_ops->lake;
	const char *why = "";
	if (!lake)
		return cluster_not_offered(c);
	if (lake->can(c->service->engine_state, c->arena, &why) < 0)
		return call_fail(c, 501, "NOT_IMPLEMENTED", "This service cannot archive rows: %s.", why);
	return 0;
}

int online_archive_prepare(struct call *c)
{
	int r = archives_refuse_unable(c);
	if (r < 0)
		return r;
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	r = look(c);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* --- making one */

static bool is_same(const json_t *one, const json_t *other)
{
	return str_eq(json_field(one, "dbName"), json_field(other, "dbName")) &&
	       str_eq(json_field(one, "collName"), json_field(other, "collName")) &&
	       json_equal(json_object_get(one, "criteria"), json_object_get(other, "criteria"));
}

/* Two archives that want the same rows would share them by chance. */
static int same_refuse(struct call *c, struct str cluster_id, struct str own_id, const json_t *document)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, ARCHIVE_KIND, cluster_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *other = doc_json(c->arena, docs[i].body);
		if (!str_eq(docs[i].id, own_id) && !str_is(json_field(other, "state"), "DELETED") &&
		    is_same(other, document))
			return call_fail_field(c, 409, "ONLINE_ARCHIVE_ALREADY_EXISTS", "criteria",
			                       "the archive %.*s of the collection has the same", STR_ARG(docs[i].id));
	}
	return r;
}

static int run_begin(struct call *c, const struct cluster *cluster, struct str id, struct str region)
{
	json_t *run = json_new(c->arena);
	json_put_str(run, "region", region);
	json_put(run, "generation", json_integer(0));
	json_put(run, "cared", json_integer(clock_now_ms()));
	int r = doc_insert(c->tx, ARCHIVE_RUN_KIND, id, cluster->doc.id, STR_NONE, json_text(c->arena, run));
	return r < 0 ? r : archive_work_ask(c->tx, c->arena, cluster, id, clock_now_ms());
}

/* Of a new one: PENDING; or, if it is not to begin yet, on its way to PAUSED. */
static int state_begin(struct call *c, const struct cluster *cluster, struct str id, json_t *document)
{
	struct doc d = {.kind = STR(ARCHIVE_KIND), .id = id, .parent = cluster->doc.id};
	int r = call_lifecycle_create(c, &d, document);
	if (r < 0 || !json_flag(document, "paused"))
		return r;
	d.body = json_text(c->arena, document);
	r = call_lifecycle_change(c, &d, document, "PAUSE");
	event_set_type(c, "ONLINE_ARCHIVE_CREATED");
	return r;
}

static int online_archive_create(struct call *c, json_t *document)
{
	struct str id = arena_dup(c->arena, json_field(document, "_id"));
	struct cluster cluster;
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = archives_refuse_state(c, &cluster);
	if (r < 0)
		return r;
	archive_rules_complete(document);
	json_put_str(document, "clusterName", cluster.doc.name);
	json_put_str(document, "dataSetName", arena_printf(c->arena, "archive-%.*s", STR_ARG(id)));
	struct str region = arena_dup(c->arena, archives_region_choose(&cluster, document));
	r = same_refuse(c, cluster.doc.id, id, document);
	if (r == 0)
		r = state_begin(c, &cluster, id, document);
	return r < 0 ? r : run_begin(c, &cluster, id, region);
}

/* --- changing one */

/* Which event tells of the change: what happened to the rule, or to the whole. */
static int expiration_tell(struct call *c, const json_t *was, const json_t *now)
{
	const json_t *before = json_object_get(was, "dataExpirationRule"),
	             *after = json_object_get(now, "dataExpirationRule");
	if (before == after || (before && after && json_equal(before, after)))
		return 0;
	event_set_type(c, !before ? "ONLINE_ARCHIVE_DATA_EXPIRATION_RULE_ENABLED"
	                  : after ? "ONLINE_ARCHIVE_DATA_EXPIRATION_RULE_UPDATED"
	                          : "ONLINE_ARCHIVE_DATA_EXPIRATION_RULE_DISABLED");
	event_field(c, "archiveId", arena_dup(c->arena, json_field(now, "_id")));
	int r = event_next(c);
	event_set_type(c, "ONLINE_ARCHIVE_UPDATED");
	event_field(c, "archiveId", arena_dup(c->arena, json_field(now, "_id")));
	return r;
}

static int pause_move(struct call *c, const struct doc *old, json_t *document)
{
	const char *word = json_flag(document, "paused") ? "PAUSE" : "RESUME";
	return lifecycle_allows(old->kind, document, word) ? call_lifecycle_change(c, old, document, word) : 0;
}

/* A pass that is under way goes on, unless other rows are wanted. */
static int run_change(struct call *c, struct archive *x, const json_t *now)
{
	struct cluster cluster;
	int r = cluster_get(c->tx, c->arena, x->doc.parent, &cluster);
	if (r < 0)
		return r;
	if (!json_equal(json_object_get(x->body, "criteria"), json_object_get(now, "criteria")))
		archive_begin_anew(x);
	if (!json_flag(now, "paused"))
		json_object_del(x->run, "bring");   /* what comes back would leave again */
	json_put(x->run, "cared", json_integer(0)); /* the rule may be another */
	r = archive_run_save(c->tx, c->arena, x);
	return r < 0 ? r : archive_work_ask(c->tx, c->arena, &cluster, x->doc.id, clock_now_ms());
}

static int online_archive_update(struct call *c, const struct doc *old, json_t *document)
{
	struct faults faults = {.count = 0};
	struct archive x;
	int r = archive_get(c->tx, c->arena, old->id, &x);
	if (r < 0)
		return r;
	if (archive_is(&x, "DELETED"))
		return call_fail_about(c, 409, "ONLINE_ARCHIVE_IS_DELETED", old->id,
		                       "The online archive %.*s is being deleted.", STR_ARG(old->id));
	json_object_clear(document);
	json_object_update(document, json_clone(c->arena, x.body));
	archive_rules_merge(document, c->body);
	archive_rules_check(document, c->arena, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	r = same_refuse(c, old->parent, old->id, document);
	if (r == 0)
		r = expiration_tell(c, x.body, document);
	if (r == 0)
		r = pause_move(c, old, document);
	return r < 0 ? r : run_change(c, &x, document);
}

/* --- deleting one */

/* One that is on its way out is as if it were gone. */
static int online_archive_remove(struct call *c, const struct doc *old)
{
	if (str_is(json_field(doc_json(c->arena, old->body), "state"), "DELETED"))
		return call_missing(c, c->op->resource, old->id);
	return 0;
}

static int online_archive_drop(struct call *c, const struct doc *d)
{
	struct doc going = *d;
	struct cluster cluster;
	int r = cluster_get(c->tx, c->arena, d->parent, &cluster);
	if (r == 0)
		r = call_lifecycle_move(c, &going, "DELETE");
	return r < 0 ? r : archive_work_ask(c->tx, c->arena, &cluster, d->id, clock_now_ms());
}

static int online_archive_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	struct archive x;
	int r = archive_get(tx, a, d->id, &x);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = archive_remains_ask(tx, a, &x);
	r = r < 0 ? r : archive_meter_end(tx, a, &x);
	return r < 0 ? r : tx_delete(tx, ARCHIVE_RUN_KIND, d->id);
}

/* --- what is shown */

/* What all kinds of criteria and all providers share; the rest where the answer is whole. */
static void forms_show(struct call *c, json_t *entity)
{
	static const char *const forms[][2] = {{"criteria", "CriteriaView"},
	                                       {"dataProcessRegion", "DataProcessRegionView"}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (json_object_get(entity, forms[i][0]))
			answer_form(c, schema_find(str_of(forms[i][1])), json_object_get(entity, forms[i][0]));
}

static struct str counts_text(struct call *c, const json_t *of)
{
	return arena_printf(c->arena, "files=%lld, rows=%lld, bytes=%lld", (long long)json_number(of, "files"),
	                    (long long)json_number(of, "rows"), (long long)json_number(of, "bytes"));
}

/* The reference's form has no place for what the archive has, nor for why it does not go on: headers tell. */
static int headers_show(struct call *c, const struct doc *d)
{
	struct archive x;
	int r = archive_get(c->tx, c->arena, d->id, &x);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	call_header(c, STR("x-steward-archived"), counts_text(c, x.run));
	if (json_object_get(x.run, "bring"))
		call_header(c, STR("x-steward-brought-back"), counts_text(c, json_object_get(x.run, "bring")));
	if (json_field(x.run, "reason").n)
		call_header(c, STR("x-steward-reason"), json_field(x.run, "reason"));
	return 0;
}

static int online_archive_view(struct call *c, const struct doc *d, json_t *entity)
{
	forms_show(c, entity);
	return c->is_list || c->op->writes ? 0 : headers_show(c, d);
}

const struct resource_hooks online_archive_hooks = {.create = online_archive_create,
                                                    .update = online_archive_update,
                                                    .remove = online_archive_remove,
                                                    .drop = online_archive_drop,
                                                    .gone = online_archive_gone,
                                                    .view = online_archive_view};
