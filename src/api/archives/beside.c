/* Of online archives, beyond the reference: what an archive would move, before it is made and while it is there; and
 * archived rows that come back.
 *
 *   GET  …/onlineArchives:preview?dbName=…&collName=…&dateField=…&expireAfterDays=…   or &query=…
 *   GET  …/onlineArchives/ID:preview
 *   POST …/onlineArchives/ID:bringBack?query=…   all rows, if no query is given
 *
 * Who may make an archive may ask what it would move, which tells what is in the table. Rows come back to an archive
 * that is paused, because they would leave again; its job brings them, a file at a time. */
#include "api/archives/calls.h"
#include "api/archives/rules.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "filter/filter.h"
#include "gate/dispatch.h"
#include "trail/events.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define ARCHIVES_PATH "/groups/{groupId}/clusters/{clusterName}/onlineArchives"
#define PREVIEW ":preview"
#define BRING ":bringBack"
#define CRITERIA "criteria."

/* --- what would move */

static int preview_answer(struct call *c, const struct engine_lake_preview *p)
{
	json_open(&c->out, '{');
	json_pair_int(&c->out, "bytes", (int64_t)p->bytes);
	json_pair_bool(&c->out, "estimated", p->estimated);
	json_pair_int(&c->out, "rows", (int64_t)p->rows);
	json_close(&c->out, '}');
	c->content_type = "application/json";
	return 0;
}

/* 1: another host answers. */
static int cluster_begin(struct call *c, struct cluster *ret_cluster)
{
	bool forwarded = false;
	int r = cluster_load(c, ret_cluster);
	if (r == 0)
		r = cluster_forward(c, ret_cluster, &forwarded);
	if (r < 0 || forwarded)
		return r < 0 ? r : 1;
	r = archives_refuse_unable(c);
	return r < 0 ? r : archives_refuse_state(c, ret_cluster);
}

/* It takes up to half a minute, in which nothing is read of the store. */
static int preview_ask(struct call *c, const struct engine_lake *want, struct engine_lake_preview *ret_preview,
                       const char **ret_field, const char **ret_why)
{
	const struct service *s = c->service;
	tx_end_read(c->tx);
	return s->engine_ops->lake->check(s->engine_state, want, c->arena, ret_preview, ret_field, ret_why);
}

static json_t *asked_make(struct call *c, const struct cluster *cluster)
{
	struct str query = call_query(c, "query"), field = call_query(c, "dateField"),
	           days = call_query(c, "expireAfterDays"), format = call_query(c, "dateFormat");
	json_t *asked = json_new(c->arena), *criteria = json_default(asked, "criteria", json_object());
	json_put_str(asked, "groupId", c->group.id);
	json_put_str(asked, "dbName", call_query(c, "dbName"));
	json_put_str(asked, "collName", call_query(c, "collName"));
	json_put_z(criteria, "type", query.n ? "CUSTOM" : "DATE");
	if (query.n)
		json_put_str(criteria, "query", query);
	if (field.n)
		json_put_str(criteria, "dateField", field);
	if (format.n)
		json_put_str(criteria, "dateFormat", format);
	if (days.n)
		json_put(criteria, "expireAfterDays", json_integer(strtoll(arena_z(c->arena, days), NULL, 10)));
	archive_rules_complete(asked);
	return asked;
}

/* Parameters have the names of the fields, without those of the objects around them. */
static struct str param_of(struct str field)
{
	struct str head = STR(CRITERIA);
	return str_starts(field, head) ? (struct str){field.p + head.n, field.n - head.n} : field;
}

static int asked_check(struct call *c, const json_t *asked)
{
	struct faults faults = {.count = 0};
	archive_rules_check(asked, c->arena, &faults);
	if (call_query(c, "query").n && call_query(c, "dateField").n)
		faults_add(&faults, c->arena, STR("query"), "must not be given together with dateField");
	for (size_t i = 0; i < faults.count && i < FAULTS_MAX; i++)
		faults.list[i].path = param_of(faults.list[i].path);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int preview_of_new(struct call *c)
{
	struct cluster cluster;
	struct engine_lake want;
	struct engine_lake_preview p;
	const char *field = "", *why = "";
	int r = cluster_begin(c, &cluster);
	if (r != 0)
		return r < 0 ? r : 0;
	json_t *asked = asked_make(c, &cluster);
	r = asked_check(c, asked);
	if (r < 0)
		return r;
	archive_want_make(c->arena, cluster.doc.id, archives_region_choose(&cluster, asked), asked, clock_now_ms(),
	                  &want);
	r = preview_ask(c, &want, &p, &field, &why);
	if (r == -EINVAL || r == -ENOENT)
		return call_fail_fault(c, param_of(str_of(field)), "%s", why);
	return r < 0 ? archives_refuse_silent(c, &cluster) : preview_answer(c, &p);
}

static int preview_of_one(struct call *c)
{
	struct cluster cluster;
	struct archive x;
	struct doc d;
	struct engine_lake want;
	struct engine_lake_preview p;
	const char *field = "", *why = "";
	int r = cluster_begin(c, &cluster);
	if (r != 0)
		return r < 0 ? r : 0;
	r = resource_load(c, c->op->resource, &d);
	r = r < 0 ? r : archive_get(c->tx, c->arena, d.id, &x);
	if (r < 0)
		return r;
	archive_want_make(c->arena, cluster.doc.id, json_field(x.run, "region"), x.body, clock_now_ms(), &want);
	r = preview_ask(c, &want, &p, &field, &why);
	if (r == -EINVAL || r == -ENOENT)
		return call_fail_about(c, 409, "ONLINE_ARCHIVE_ORPHANED", d.id, "Nothing can be archived so now: %s.",
		                       why);
	return r < 0 ? archives_refuse_silent(c, &cluster) : preview_answer(c, &p);
}

/* --- rows that come back */

static int bring_refuse(struct call *c, const struct archive *x)
{
	struct str query = call_query(c, "query");
	const char *fault;
	if (query.n && !filter_parse_ordered(query, c->arena, &fault))
		return call_fail_fault(c, STR("query"), "%s", fault);
	if (!archive_is(x, "PAUSED") && !archive_is(x, "PAUSING"))
		return call_fail_about(c, 409, "ONLINE_ARCHIVE_MUST_BE_PAUSED", x->doc.id,
		                       "Pause the online archive %.*s first: rows that come back would leave again.",
		                       STR_ARG(x->doc.id));
	if (json_object_get(x->run, "bring"))
		return call_fail_about(c, 409, "ONLINE_ARCHIVE_BRINGS_BACK", x->doc.id,
		                       "Rows of the online archive %.*s are coming back already.", STR_ARG(x->doc.id));
	return 0;
}

static int bring_begin(struct call *c)
{
	struct cluster cluster;
	struct archive x;
	struct doc d;
	struct str query = call_query(c, "query");
	if (!c->service->engine_ops->lake || !c->service->engine_ops->lake->bring)
		return cluster_not_offered(c);
	int r = cluster_load(c, &cluster);
	r = r < 0 ? r : archives_refuse_state(c, &cluster);
	r = r < 0 ? r : resource_load(c, c->op->resource, &d);
	r = r < 0 ? r : archive_get(c->tx, c->arena, d.id, &x);
	r = r < 0 ? r : bring_refuse(c, &x);
	if (r < 0)
		return r;
	json_t *bring = json_object();
	json_put(bring, "from", json_integer(clock_now_ms()));
	if (query.n)
		json_put_str(bring, "query", query);
	json_put(x.run, "bring", bring);
	json_object_del(x.run, "reason");
	event_field(c, "archiveId", d.id);
	r = archive_run_save(c->tx, c->arena, &x);
	return r < 0 ? r : archive_work_ask(c->tx, c->arena, &cluster, d.id, clock_now_ms());
}

/* --- their rows */

static struct op rows[3];
static struct param new_params[6], bring_params[1];
static pthread_once_t rows_once = PTHREAD_ONCE_INIT;

static const struct {
	const char *end, *method, *id, *like, *roles, *path;
	op_handler handler;
	bool of_one;
} parts[] = {
        {PREVIEW, "GET", "previewNewOnlineArchive", "listOnlineArchives", "createOnlineArchive", ARCHIVES_PATH PREVIEW,
         preview_of_new, false},
        {PREVIEW, "GET", "previewOnlineArchive", "getOnlineArchive", "createOnlineArchive",
         ARCHIVES_PATH "/{archiveId}" PREVIEW, preview_of_one, true},
        {BRING, "POST", "bringBackOnlineArchive", "deleteOnlineArchive", "updateOnlineArchive",
         ARCHIVES_PATH "/{archiveId}" BRING, bring_begin, true},
};
#define PARTS (sizeof parts / sizeof *parts)

static struct param param_make(const char *schema, const char *name, bool required)
{
	return (struct param){.name = name, .schema = schema_of_field(schema, name), .required = required};
}

static void params_make(void)
{
	static const char *const dated[] = {"dateField", "dateFormat", "expireAfterDays"};
	size_t n = 0;
	new_params[n++] = param_make("BackupOnlineArchiveCreate", "dbName", true);
	new_params[n++] = param_make("BackupOnlineArchiveCreate", "collName", true);
	for (size_t i = 0; i < sizeof dated / sizeof *dated; i++)
		new_params[n++] = param_make("DateCriteriaView", dated[i], false);
	new_params[n] = bring_params[0] = param_make("CustomCriteriaView", "query", false);
}

static void rows_make(void)
{
	params_make();
	for (size_t i = 0; i < PARTS; i++) {
		rows[i] = *catalog_op(parts[i].like);
		rows[i].id = parts[i].id;
		rows[i].path = parts[i].path;
		rows[i].roles = catalog_op(parts[i].roles)->roles;
		rows[i].handler = parts[i].handler;
		rows[i].paginated = rows[i].kept = false;
		rows[i].slow = !rows[i].writes;
		rows[i].query_params = NULL;
		rows[i].query_param_count = rows[i].filter_count = 0;
	}
	rows[0].query_params = new_params;
	rows[0].query_param_count = sizeof new_params / sizeof *new_params;
	rows[2].method = METHOD_POST;
	rows[2].success = 202;
	rows[2].event = "ONLINE_ARCHIVE_UPDATED";
	rows[2].danger = DANGER_CONFIRM;
	rows[2].query_params = bring_params;
	rows[2].query_param_count = 1;
}

/* Below a cluster's archives alone: names of other things can end so. */
static bool is_below_archives(struct str path, bool *ret_of_one)
{
	struct str base = STR(API_BASE "/groups/"), part, rest;
	if (!str_starts(path, base) || !str_cut((struct str){path.p + base.n, path.n - base.n}, '/', &part, &rest) ||
	    !str_cut(rest, '/', &part, &rest) || !str_is(part, "clusters") || !str_cut(rest, '/', &part, &rest))
		return false;
	*ret_of_one = str_cut(rest, '/', &part, &rest);
	return *ret_of_one ? str_is(part, "onlineArchives") && !memchr(rest.p, '/', rest.n)
	                   : str_is(part, "onlineArchives" PREVIEW);
}

/* Whatever is there is found by any other method, too. */
static const struct op *part_of(struct str path, size_t *ret_length)
{
	bool of_one;
	if (!is_below_archives(path, &of_one))
		return NULL;
	for (size_t i = 0; i < PARTS; i++)
		if (parts[i].of_one == of_one && str_ends(path, str_of(parts[i].end))) {
			*ret_length = path.n - strlen(parts[i].end);
			return &rows[i];
		}
	return NULL;
}

bool archives_are_previewed(struct str path)
{
	size_t length;
	const struct op *found = part_of(path, &length);
	return found && found != &rows[PARTS - 1];
}

bool archives_are_brought(const struct request *r)
{
	size_t length;
	return part_of(r->path, &length) == &rows[PARTS - 1] && str_is(r->method, "POST");
}

void archives_beside(struct service *s, struct request *r)
{
	size_t length = 0;
	pthread_once(&rows_once, rows_make);
	const struct op *row = part_of(r->path, &length);
	dispatch_below(s, r, row, (struct str){r->path.p, length});
}
