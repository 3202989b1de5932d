/* Accounts of roles at Google, one for each role. They are made and taken away by jobs, in that order, so that a crash
 * leaves neither a role without an account nor an account without a role. */
#include "api/provider_access/roles.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

#define MAKE_JOB "provider_account"      /* {"id"} */
#define DROP_JOB "provider_account_drop" /* {"account"} */
#define DROP_ATTEMPTS 20
#define DROP_AGAIN_MS (INT64_C(6) * 3600 * 1000) /* after that many: what a tenant has granted to it must end */

static int job_add(struct tx *tx, struct arena *a, const char *kind, struct str role_id, const char *name,
                   struct str value)
{
	json_t *args = json_new(a);
	json_put_str(args, name, value);
	struct job job = {.kind = str_of(kind),
	                  .subject = arena_printf(a, PROVIDER_ROLE_KIND "/%.*s", STR_ARG(role_id)),
	                  .args = json_text(a, args),
	                  .due_ms = clock_now_ms()};
	return tx_job_add(tx, &job);
}

int role_account_begin(struct tx *tx, struct arena *a, const struct doc *role)
{
	return job_add(tx, a, MAKE_JOB, role->id, "id", role->id);
}

int role_account_end(struct tx *tx, struct arena *a, const struct doc *role)
{
	struct str account = json_field(doc_json(a, role->body), "gcpServiceAccountForSvc");
	return account.n ? job_add(tx, a, DROP_JOB, role->id, "account", account) : 0;
}

static struct str arg(const struct job_run *r, const char *name)
{
	return json_field(doc_json(r->arena, r->job.args), name);
}

static int status_save(struct tx *tx, struct job_run *r, const char *status)
{
	struct doc d;
	int result = tx_get(tx, r->arena, PROVIDER_ROLE_KIND, arg(r, "id"), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_t *body = doc_json(r->arena, d.body);
	if (json_field(body, "authorizedDate").n) /* another way, meanwhile */
		return 0;
	json_put_z(body, "status", status);
	if (strcmp(status, "COMPLETE") == 0)
		json_put_time(body, "authorizedDate", clock_now_ms());
	d.body = json_text(r->arena, body);
	return tx_update(tx, &d);
}

static int made_save(struct tx *tx, struct job_run *r)
{
	return status_save(tx, r, "COMPLETE");
}

static int make_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	char why[PROVIDER_WHY];
	struct doc d;
	tx_begin_read(r->reader);
	int result = tx_get(r->reader, r->arena, PROVIDER_ROLE_KIND, arg(r, "id"), &d);
	job_read_end(r);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	struct str account = json_field(doc_json(r->arena, d.body), "gcpServiceAccountForSvc");
	result = provider_account_make(s->providers, account, why);
	if (result < 0) {
		r->why = arena_z(r->arena, str_of(why));
		return result;
	}
	r->save = made_save;
	return JOB_DONE;
}

static int make_failed(struct tx *tx, struct job_run *r)
{
	struct str id = arg(r, "id");
	log_error("the account of the provider role %.*s could not be made: %s", STR_ARG(id), r->why ? r->why : "");
	int result = tx_jobs_forget(tx, r->job.subject, 0);
	return result < 0 ? result : status_save(tx, r, "FAILED");
}

static int drop_step(struct job_run *r)
{
	const struct service *s = r->ctx;
	char why[PROVIDER_WHY];
	int result = provider_account_drop(s->providers, arg(r, "account"), why);
	if (result == 0)
		return JOB_DONE;
	r->why = arena_z(r->arena, str_of(why));
	if (r->job.attempt + 1 < DROP_ATTEMPTS)
		return result;
	struct str account = arg(r, "account");
	log_error("the account %.*s of a role that is gone is still there: %s", STR_ARG(account), why);
	r->due_ms = clock_now_ms() + DROP_AGAIN_MS;
	return JOB_LATER;
}

static const struct job_kind kinds[] = {
        {.name = MAKE_JOB, .step = make_step, .failed = make_failed, .lasts = JOB_IS_LONG},
        {.name = DROP_JOB, .step = drop_step, .attempts = DROP_ATTEMPTS, .lasts = JOB_IS_LONG}};
const struct job_kinds provider_access_jobs = JOB_KINDS(kinds);
