/* Waiting is polling, at growing distances: it survives a restart of the service, and works through every proxy. Which
 * states pass by themselves stands in the data ("states" in api/common.json); the X-Steward-Progress header tells how
 * far the work is, where there is one. */
#include "cli/wait.h"

#include "base/clock.h"
#include "base/json.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/progress.h"

#include <errno.h>

#define POLL_FIRST_MS 100
#define POLL_MOST_MS 2000
#define TIMEOUT_LEAST_MS 1000
#define UNREACHED_MAX 30 /* polls in a row that found no service: it may be restarting */
#define STATE_MAX 64

struct waiting {
	const struct wait *of;
	struct arena *arena; /* of the result */
	struct progress bar;
	int64_t end_us;
	unsigned unreached;
	bool told;             /* that time stands still */
	char state[STATE_MAX]; /* last seen */
	json_t *document;      /* the last one, when it is done */
};

void wait_pause_ms(int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static bool is_listed(const char *const *list, const char *state)
{
	for (; *list; list++)
		if (strcmp(*list, state) == 0)
			return true;
	return false;
}

const char *state_of_document(const json_t *document)
{
	for (const char *const *field = state_fields; *field; field++) {
		const char *state = json_string_value(json_object_get(document, *field));
		if (state)
			return state;
	}
	bool flagged = false;
	for (const char *const *flag = state_flags; *flag; flag++) {
		const json_t *value = json_object_get(document, *flag);
		if (json_is_true(value))
			return *flag;
		flagged |= json_is_boolean(value);
	}
	return !flagged ? "" : json_object_get(document, state_finished) ? "completed" : "inProgress";
}

bool state_is_moving(const char *state)
{
	return is_listed(state_moving, state);
}

static void progress_tell(struct waiting *t, const struct client_answer *answer, const char *state)
{
	struct str percent, what;
	uint64_t number = 0;
	str_cut(answer->progress, '%', &percent, &what);
	if (!str_to_u64(percent, 100, &number))
		what = STR_NONE;
	what = str_trim(what);
	struct buf b = {0};
	buf_printf(&b, "%s%s%.*s", state, what.n ? ": " : "", STR_ARG(what));
	progress_show(&t->bar, (int)number, buf_view(&b));
	buf_free(&b);
}

#define WAIT_ON (-1)

static int broken_tell(struct waiting *t, const struct client_answer *answer, const char *state)
{
	const char *name = t->of->name;
	struct str why = answer->progress;
	progress_end(&t->bar);
	if (strcmp(state, "failed") == 0 && str_starts(why, STR("failed: "))) /* it is said once */
		why = (struct str){why.p + strlen("failed: "), why.n - strlen("failed: ")};
	option_refuse("%s is %s%s%s", name, text_shown(t->arena, str_of(state)), why.n ? ": " : "",
	              text_shown(t->arena, why));
	if (strcmp(state, "REPAIRING") == 0)
		fprintf(stderr,
		        "steward: the service tries again by itself; its log may say more about what is wrong\n");
	return EXIT_NOT_DONE;
}

/* Tells of a state that was not seen before. */
static void state_note(struct waiting *t, json_t *document, const char *state)
{
	bool other = strncmp(t->state, state, STATE_MAX - 1) != 0;
	snprintf(t->state, sizeof t->state, "%s", state);
	if (other && t->of->changed)
		t->of->changed(t->of->ctx, document);
}

/* What one answer means for the wait: WAIT_ON, EXIT_MOVED, or an exit code. */
static int wait_step(struct waiting *t, const struct client_answer *answer)
{
	const char *state = state_of_document(answer->json);
	if (answer->status == 404 && t->of->gone) {
		progress_show(&t->bar, 100, STR("done"));
		return EXIT_DONE;
	}
	/* A wait polls often, so the service may answer that it is too often; or it may be starting. */
	if (answer->status == 429 || answer->status == 503)
		return WAIT_ON;
	if (t->of->may_move &&
	    str_is(json_field(answer->json, "errorCode"), "CANNOT_USE_FLEX_CLUSTER_IN_CLUSTER_API")) {
		progress_end(&t->bar);
		return EXIT_MOVED;
	}
	if (answer->status != 200) {
		progress_end(&t->bar);
		client_explain(t->of->client, answer);
		return EXIT_NOT_DONE;
	}
	if (!answer->json) {
		progress_end(&t->bar);
		return client_exit(client_stranger(t->of->client, false));
	}
	state_note(t, answer->json, state);
	bool gone = t->of->gone && is_listed(state_gone, state); /* what is cancelled has not failed then */
	if (!gone && (is_listed(state_failed, state) || str_starts(answer->progress, STR("failed")))) {
		t->document = json_keep(t->arena, json_incref(answer->json));
		return broken_tell(t, answer, state);
	}
	if (t->of->gone ? gone : !state_is_moving(state)) {
		progress_show(&t->bar, 100, STR("done"));
		t->document = json_keep(t->arena, json_incref(answer->json));
		return EXIT_DONE;
	}
	progress_tell(t, answer, state);
	return WAIT_ON;
}

/* Nothing would happen for as long as nobody moves the clock. */
static void clock_tell(struct waiting *t, const struct client_answer *answer)
{
	if (t->told || !str_is(client_header(answer, "x-steward-clock"), "virtual"))
		return;
	t->told = true;
	progress_end(&t->bar);
	fputs("steward: the clock of this service is virtual: what takes time is done when it is moved, as by\n"
	      "         steward api POST /api/test/clock --body '{\"advanceSeconds\": 60}'\n",
	      stderr);
}

static int poll_once(struct waiting *t, unsigned *ret_pause_ms)
{
	struct arena *a = arena_new();
	struct client_answer answer;
	int64_t left_ms = (t->end_us - clock_mono_us()) / 1000;
	bool quiet = t->unreached < UNREACHED_MAX;
	struct client_request r = {
	        .method = "GET", .path = t->of->path, .quiet = quiet, .timeout_ms = TIMEOUT_LEAST_MS};
	if (left_ms > r.timeout_ms)
		r.timeout_ms = left_ms;
	int result = client_call(t->of->client, a, &r, &answer), code = WAIT_ON;
	if (result == -EHOSTUNREACH && t->unreached++ < UNREACHED_MAX) {
		*ret_pause_ms = 1000;
	} else if (result < 0) {
		progress_end(&t->bar);
		code = client_exit(result);
	} else {
		t->unreached = 0;
		if (answer.retry_after)
			*ret_pause_ms = answer.retry_after * 1000;
		code = wait_step(t, &answer);
		if (code == WAIT_ON)
			clock_tell(t, &answer);
	}
	arena_free(a);
	return code;
}

static int timeout_tell(struct waiting *t)
{
	const struct wait *w = t->of;
	progress_end(&t->bar);
	if (w->again)
		option_refuse("%s: not done after %u s; it goes on without us: \"%s\" waits again", w->name, w->timeout,
		              w->again);
	else
		option_refuse("%s: not done after %u s; it goes on without us", w->name, w->timeout);
	return EXIT_TIMEOUT;
}

int wait_run(const struct wait *w, struct arena *a, json_t **ret_document)
{
	struct waiting t = {.of = w, .arena = a, .end_us = clock_mono_us() + (int64_t)w->timeout * 1000000};
	unsigned usual = POLL_FIRST_MS;
	progress_begin(&t.bar, w->name);
	for (;;) {
		unsigned pause = usual;
		int code = poll_once(&t, &pause);
		if (code == EXIT_DONE)
			progress_end(&t.bar);
		if (code == EXIT_DONE || t.document)
			*ret_document = t.document;
		if (code != WAIT_ON)
			return code;
		int64_t left_ms = (t.end_us - clock_mono_us()) / 1000;
		if (left_ms <= 0)
			return timeout_tell(&t);
		wait_pause_ms(pause < left_ms ? pause : left_ms);
		usual = usual * 5 / 4 < POLL_MOST_MS ? usual * 5 / 4 : POLL_MOST_MS;
	}
}

/* --- the target of a restore */

/* The project in whose path the job lies: "…/groups/ID/…". */
static struct str group_of_path(const char *path)
{
	struct str id = STR_NONE, rest;
	const char *at = strstr(path, "/groups/");
	if (at)
		str_cut(str_of(at + strlen("/groups/")), '/', &id, &rest);
	return id;
}

/* The cluster that a restore job goes to, in any of the forms that jobs have. */
static bool target_read(const struct wait *w, const json_t *job, struct str *ret_group, struct str *ret_name)
{
	static const char *const names[] = {"targetClusterName", "targetDeploymentItemName"},
	                         *const groups[] = {"targetGroupId", "targetProjectId"};
	const json_t *delivery = json_object_get(job, "delivery");
	job = json_is_object(delivery) ? delivery : job;
	*ret_name = *ret_group = STR_NONE;
	for (size_t i = 0; i < 2; i++) {
		*ret_name = ret_name->n ? *ret_name : json_field(job, names[i]);
		*ret_group = ret_group->n ? *ret_group : json_field(job, groups[i]);
	}
	if (!ret_group->n)
		*ret_group = group_of_path(w->path);
	return ret_name->n && ret_group->n;
}

static int target_wait(const struct wait *job, struct arena *a, struct str group, struct str name, const char *kind)
{
	struct wait w = {
	        .client = job->client,
	        .path = arena_printf(a, API_BASE "/groups/%s/%s/%s", url_escape(a, group), kind, url_escape(a, name)).p,
	        .name = text_shown(a, name),
	        .again = arena_printf(a, "steward clusters wait %s", text_shown(a, name)).p,
	        .may_move = strcmp(kind, "clusters") == 0,
	        .timeout = job->timeout};
	json_t *cluster = NULL;
	return wait_run(&w, a, &cluster);
}

int wait_settled(const struct wait *w, struct arena *a, json_t **ret_document)
{
	struct str group, name;
	json_t *document = NULL;
	int code = wait_run(w, a, &document);
	if (document)
		*ret_document = document;
	if (w->gone || (code != EXIT_DONE && code != EXIT_NOT_DONE) || !target_read(w, document, &group, &name))
		return code;
	int settled = target_wait(w, a, group, name, "clusters");
	if (settled == EXIT_MOVED)
		settled = target_wait(w, a, group, name, "flexClusters");
	return code != EXIT_DONE ? code : settled;
}
