/* The end of temporary documents. */
#include "api/kit/temporary.h"

#include "base/clock.h"
#include "base/json.h"

#include <errno.h>

#define DAYS_MAX 7
#define DAY_MS INT64_C(86400000)

int64_t temporary_read(struct arena *a, struct str text, struct str path, struct faults *faults)
{
	int64_t end, now = clock_now_ms();
	if (!text.p)
		return 0;
	if (clock_parse(text, &end) && end > now && end <= now + DAYS_MAX * DAY_MS)
		return end;
	faults_add(faults, a, path, "must be a time in the future, at most %d days ahead", DAYS_MAX);
	return 0;
}

int64_t temporary_end(const json_t *document)
{
	int64_t end;
	return clock_parse(json_field(document, TEMPORARY_FIELD), &end) ? end : 0;
}

bool temporary_is_over(struct arena *a, const struct doc *d)
{
	struct str mark = STR("\"" TEMPORARY_FIELD "\"");
	/* Most documents are for good and need no parser to say so. */
	return memmem(d->body.p, d->body.n, mark.p, mark.n) && json_time_is_over(doc_json(a, d->body), TEMPORARY_FIELD);
}

int temporary_schedule(struct tx *tx, const char *job_kind, struct str id, int64_t end_ms)
{
	struct job job = {.kind = str_of(job_kind), .subject = id, .due_ms = end_ms};
	int result = tx_jobs_cancel(tx, job_kind, id);
	return result < 0 || !end_ms ? result : tx_job_add(tx, &job);
}

int temporary_due(struct tx *tx, const struct job_run *r, const char *kind, struct doc *ret_doc)
{
	int result = tx_get(tx, r->arena, kind, r->job.subject, ret_doc);
	return result == 0 && !temporary_is_over(r->arena, ret_doc) ? -ENOENT : result;
}
