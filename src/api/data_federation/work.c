/* The job of an instance, on the host that has it: makes it what its document says, or takes it away, and comes
 * again every ten minutes: archives come and go, clusters move, and an endpoint that somebody has stopped is
 * started again. Sooner where not all of it could be: a cluster that did not answer may do now. */
#include "api/data_federation/instance.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>

#define GONE_JOB "data_federation_gone"
#define AGAIN_MS 600000
#define PARTLY_MS 60000
#define FAILED_MS 10000

/* One step, and what it leaves to be saved. */
struct work {
	struct instance instance;
	struct engine_federation want;
	struct engine_access access;
	struct engine_federation_status status;
	struct engine_federation_used used;
	bool has_used, applied, ended;
	int64_t due_ms;
	json_int_t generation; /* of what was read */
	const char *why;       /* NULL: nothing is wrong */
};

static const struct service *service_of(const struct job_run *r)
{
	return r->ctx;
}

static const struct engine_federation_ops *ops_of(const struct job_run *r)
{
	return service_of(r)->engine_ops->federation;
}

static struct str id_of(const struct job_run *r)
{
	struct str kind, id;
	str_cut(r->job.subject, '/', &kind, &id);
	return id;
}

static void progress_tell(void *ctx, unsigned percent, const char *what)
{
	job_progress(ctx, percent, what);
}

static struct engine_progress progress_of(struct job_run *r)
{
	return (struct engine_progress){.tell = progress_tell, .ctx = r, .stop = job_stop(r)};
}

/* --- saving */

static void run_note(struct work *w, struct instance *now)
{
	json_t *used = json_array();
	for (size_t i = 0; i < FEDERATION_SPANS; i++)
		json_array_append_new(used, json_integer((json_int_t)w->used.bytes[i]));
	if (w->has_used)
		json_put(now->run, "used", used);
	else
		json_decref(used);
	if (w->why)
		json_put_z(now->run, "reason", w->why);
	else
		json_object_del(now->run, "reason");
	if (!w->applied)
		return;
	json_put(now->run, "applied", json_integer(w->want.generation));
	json_put_z(now->run, "address", w->status.address);
	json_put(now->run, "port", json_integer(w->status.port));
}

static bool is_noted(const struct instance *x, const json_t *was)
{
	return json_equal(x->run, was);
}

static int work_save(struct tx *tx, struct job_run *r)
{
	struct work *w = r->save_ctx;
	struct instance now;
	int result = instance_get(tx, r->arena, w->instance.doc.id, &now);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (w->ended)
		return lifecycle_move(tx, r->arena, &now.doc, "END");
	const json_t *was = json_clone(r->arena, now.run);
	run_note(w, &now);
	bool behind = json_number(now.run, "generation") != w->generation || instance_is(now.body, "DELETED");
	if (!is_noted(&now, was))
		result = instance_run_save(tx, r->arena, &now);
	if (result == 0 && w->applied && lifecycle_allows(now.doc.kind, now.body, "BEGIN"))
		result = lifecycle_move(tx, r->arena, &now.doc, "BEGIN");
	if (result < 0)
		return result;
	return instance_ask(tx, r->arena, now.doc.id, now.doc.parent, json_field(now.run, "host"),
	                    behind ? clock_now_ms() : w->due_ms);
}

static int done(struct job_run *r, struct work *w)
{
	r->save = work_save;
	r->save_ctx = w;
	return JOB_DONE;
}

/* --- the step */

static int want_read(struct job_run *r, struct work *w)
{
	tx_begin_read(r->reader);
	int result = instance_get(r->reader, r->arena, id_of(r), &w->instance);
	if (result == 0)
		w->generation = json_number(w->instance.run, "generation");
	if (result == 0 && !instance_is(w->instance.body, "DELETED"))
		result = instance_want_load(service_of(r), r->reader, r->arena, &w->instance, &w->want, &w->access,
		                            &w->why);
	job_read_end(r);
	return result;
}

static int destroy(struct job_run *r, struct work *w)
{
	struct engine_progress p = progress_of(r);
	int result =
	        ops_of(r)->destroy(service_of(r)->engine_state, arena_z(r->arena, id_of(r)), &p, r->arena, &r->why);
	if (result == -EAGAIN)
		return job_later(r, p.again_ms ? p.again_ms : clock_now_ms() + FAILED_MS);
	if (result < 0)
		return result;
	w->ended = true;
	return done(r, w);
}

/* What is wrong is for people to read, and the job goes on. */
static int fault_take(struct job_run *r, struct work *w, int result, const char *why)
{
	w->why = why ? why : "the endpoint could not be brought to what is wanted";
	log_warn("federated database instance %.*s: %s (error %d)", STR_ARG(w->instance.doc.id), w->why, result);
	w->due_ms = clock_now_ms() + FAILED_MS;
	return done(r, w);
}

static int apply(struct job_run *r, struct work *w)
{
	struct engine *e = service_of(r)->engine_state;
	struct engine_progress p = progress_of(r);
	const char *why = NULL;
	/* Limits hold at once, however long the rest waits for clusters. One that is not there yet has none to hold. */
	(void)!ops_of(r)->bound(e, w->want.id, w->want.limits, w->want.limit_count);
	int result = ops_of(r)->apply(e, &w->want, &w->access, &p, r->arena, &why);
	if (result == -EAGAIN && p.again_ms)
		return job_later(r, p.again_ms);
	if (result == -ECANCELED)
		return result;
	if (result < 0)
		return fault_take(r, w, result, why);
	w->why = result == ENGINE_PARTLY ? why : NULL;
	w->applied = true;
	w->due_ms = clock_now_ms() + (result == ENGINE_PARTLY ? PARTLY_MS : AGAIN_MS);
	(void)!ops_of(r)->observe(e, w->want.id, &w->status);
	w->has_used = ops_of(r)->used(e, w->want.id, &w->used) == 0;
	return done(r, w);
}

static int work_step(struct job_run *r)
{
	struct work *w = arena_calloc(r->arena, 1, sizeof *w);
	int result = ops_of(r) ? want_read(r, w) : -ENOENT;
	if (result == -ENOENT)
		return JOB_DONE;
	if (result < 0)
		return w->instance.doc.id.n ? fault_take(r, w, result, w->why) : result;
	w->why = NULL;
	return instance_is(w->instance.body, "DELETED") ? destroy(r, w) : apply(r, w);
}

/* --- one whose document is gone: with its project, or by its own end */

static int gone_step(struct job_run *r)
{
	struct engine_progress p = progress_of(r);
	int result = !ops_of(r) ? 0
	                        : ops_of(r)->destroy(service_of(r)->engine_state, arena_z(r->arena, id_of(r)), &p,
	                                             r->arena, &r->why);
	if (result == -EAGAIN)
		return job_later(r, p.again_ms ? p.again_ms : clock_now_ms() + FAILED_MS);
	return result < 0 ? result : JOB_DONE;
}

int instance_gone_ask(struct tx *tx, struct arena *a, const struct doc *d)
{
	struct doc run;
	int r = tx_get(tx, a, FEDERATION_RUN_KIND, d->id, &run);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct job job = {.kind = STR(GONE_JOB),
	                  .subject = arena_printf(a, "data_federation_gone/%.*s", STR_ARG(d->id)),
	                  .host = json_field(doc_json(a, run.body), "host"),
	                  .args = STR("{}"),
	                  .tenant = d->parent,
	                  .due_ms = clock_now_ms()};
	r = tx_job_ensure(tx, &job);
	return r < 0 ? r : tx_delete(tx, FEDERATION_RUN_KIND, d->id);
}

static const struct job_kind kinds[] = {
        {.name = FEDERATION_JOB, .step = work_step, .attempts = UINT32_MAX, .lasts = JOB_IS_LONG},
        {.name = GONE_JOB, .step = gone_step, .attempts = UINT32_MAX, .lasts = JOB_IS_LONG},
};
const struct job_kinds data_federation_jobs = JOB_KINDS(kinds);

/* --- what it has to do with clusters */

static int access_asked(struct tx *tx, struct arena *a, struct str group_id)
{
	return instances_changed(tx, a, group_id);
}

const struct cluster_part data_federation_part = {.access_asked = access_asked};

/* --- the start */

static _Thread_local char keys_why[PROVIDER_WHY];

static int role_read(struct service *s, struct arena *a, const char *group_id, const char *role_id,
                     struct provider_role *ret_role)
{
	struct tx *reader = store_reader(s->store);
	if (!reader)
		return -EIO;
	tx_begin_read(reader);
	int r = provider_role_find(reader, a, str_of(group_id), str_of(role_id), ret_role);
	tx_end_read(reader);
	store_reader_free(reader);
	return r;
}

/* The engine's threads ask it while queries run. */
static int keys_get(void *ctx, const char *group_id, const char *role_id, struct objects_keys *ret_keys,
                    const char **ret_why)
{
	struct service *s = ctx;
	struct arena *a = arena_new();
	struct provider_role role;
	struct provider_credentials c;
	*ret_why = "the project's cloud provider role is gone, or not authorized any more";
	int r = role_read(s, a, group_id, role_id, &role);
	if (r == 0) {
		*ret_why = keys_why;
		r = provider_credentials_get(s->providers, &role, &c, keys_why);
	}
	arena_free(a);
	if (r == 0)
		*ret_keys = (struct objects_keys){.key_id = c.key_id, .secret = c.secret, .token = c.token};
	return r == -ENOENT || r == -EKEYREJECTED || r == -EPERM ? -EACCES : r;
}

static int look_again(struct tx *tx, void *ctx, const struct doc *d)
{
	struct arena *a = ctx;
	struct doc run;
	int r = tx_get(tx, a, FEDERATION_RUN_KIND, d->id, &run);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = instance_ask(tx, a, d->id, d->parent, json_field(doc_json(a, run.body), "host"), clock_now_ms());
	arena_reset(a);
	return r;
}

static int adopt(struct tx *tx, void *ctx)
{
	return tx_walk_all(tx, FEDERATION_KIND, look_again, ctx);
}

int data_federation_start(struct service *s)
{
	static struct engine_federation_outside outside = {.keys = keys_get};
	const struct engine_federation_ops *f = s->engine_ops->federation;
	if (!f)
		return 0;
	outside.ctx = s;
	f->bind(s->engine_state, &outside);
	struct arena *a = arena_new();
	int r = store_write_wait(s->store, adopt, a);
	arena_free(a);
	return r;
}
