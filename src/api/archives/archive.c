/* The document of an archive and that of its work; what the engine is asked for. */
#include "api/archives/archive.h"

#include "api/archives/work.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

#define DAY_MS INT64_C(86400000)

int archive_get(struct tx *tx, struct arena *a, struct str id, struct archive *ret_archive)
{
	struct archive x;
	int r = tx_get(tx, a, ARCHIVE_KIND, id, &x.doc);
	if (r == 0)
		r = tx_get(tx, a, ARCHIVE_RUN_KIND, id, &x.run_doc);
	if (r < 0)
		return r;
	x.body = doc_json(a, x.doc.body);
	x.run = doc_json(a, x.run_doc.body);
	*ret_archive = x;
	return 0;
}

int archive_run_save(struct tx *tx, struct arena *a, struct archive *x)
{
	x->run_doc.body = json_text(a, x->run);
	return doc_put(tx, &x->run_doc);
}

bool archive_is(const struct archive *x, const char *state)
{
	return str_is(json_field(x->body, "state"), state);
}

static enum engine_date date_of(struct str format)
{
	static const struct {
		const char *word;
		enum engine_date date;
	} words[] = {{"ISODATE", DATE_ISO},
	             {"EPOCH_SECONDS", DATE_SECONDS},
	             {"EPOCH_MILLIS", DATE_MILLIS},
	             {"EPOCH_NANOSECONDS", DATE_NANOS},
	             {"OBJECT_ID", DATE_OBJECT_ID}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_is(format, words[i].word))
			return words[i].date;
	return DATE_ISO;
}

/* By their "order", which no two share. */
static void order_make(struct arena *a, const json_t *fields, struct engine_lake *want)
{
	size_t count = json_array_size(fields);
	const char **order = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++) {
			const json_t *one = json_array_get(fields, k);
			if (json_number(one, "order") == (json_int_t)i)
				order[want->order_count++] = arena_z(a, json_field(one, "fieldName"));
		}
	want->order = order;
}

void archive_want_make(struct arena *a, struct str cluster_id, struct str region, const json_t *body, int64_t age_ms,
                       struct engine_lake *ret_want)
{
	const json_t *criteria = json_object_get(body, "criteria");
	struct engine_lake want = {.cluster_id = arena_z(a, cluster_id),
	                           .group_id = arena_z(a, json_field(body, "groupId")),
	                           .region = arena_z(a, region),
	                           .id = arena_z(a, json_field(body, "_id")),
	                           .database = arena_z(a, json_field(body, "dbName")),
	                           .table = arena_z(a, json_field(body, "collName"))};
	if (str_is(json_field(criteria, "type"), "CUSTOM"))
		want.query = arena_z(a, json_field(criteria, "query"));
	else
		want.field = arena_z(a, json_field(criteria, "dateField"));
	want.format = date_of(json_field(criteria, "dateFormat"));
	want.before_ms = age_ms - json_number(criteria, "expireAfterDays") * DAY_MS;
	order_make(a, json_object_get(body, "partitionFields"), &want);
	*ret_want = want;
}

int archive_work_ask(struct tx *tx, struct arena *a, const struct cluster *cluster, struct str id, int64_t due_ms)
{
	struct job job = {.kind = STR(ARCHIVE_JOB),
	                  .subject = arena_printf(a, "archive/%.*s", STR_ARG(id)),
	                  .host = cluster_host(cluster),
	                  .args = STR("{}"),
	                  .tenant = cluster->doc.parent,
	                  .due_ms = due_ms};
	return tx_job_ensure(tx, &job);
}

void archive_begin_anew(struct archive *x)
{
	json_object_del(x->run, "pass");
	json_object_del(x->run, "passed");
	json_object_del(x->run, "reason");
	json_put(x->run, "generation", json_integer(json_number(x->run, "generation") + 1));
}
