/* Indexes of simulated clusters: every table and column is there, but for a table "missing"; a build takes two thirds
 * of the time of a creation. What was built is not remembered. Search indexes that were built answer queries; no table
 * has a column "missing". */
#include "engine/simulated/state.h"

#include "base/clock.h"

#include "search/vector.h"

#include <errno.h>
#include <string.h>

static bool vectors_are_there(const struct engine_search *s, struct arena *a, const char **ret_field)
{
	struct faults faults = {.count = 0};
	struct search_vector v;
	search_vector_read(a, doc_json(a, str_of(s->definition)), s->place, &faults, &v);
	const char *place = !faults.count && strcmp(v.path, "missing") == 0 ? v.place : NULL;
	for (size_t i = 0; i < v.filter_count; i++)
		if (strcmp(v.filters[i].steps[0], "missing") == 0)
			place = v.filters[i].place;
	if (place)
		*ret_field = arena_printf(a, "%s.path", place).p;
	return !place;
}

static int sim_index_check(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_field,
                           const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, want->cluster_id);
	bool there = s && s->exists;
	pthread_mutex_unlock(&e->lock);
	if (!there)
		return -EAGAIN;
	if (want->search && want->search->vectors && !vectors_are_there(want->search, a, ret_field)) {
		*ret_why = "the table has no column \"missing\"";
		return -EINVAL;
	}
	if (want->search && strstr(want->search->definition, "\"missing\":")) {
		*ret_field = arena_printf(a, "%smappings.fields.missing", want->search->place).p;
		*ret_why = "the table has no column \"missing\"";
		return -EINVAL;
	}
	if (strcmp(want->table, "missing") != 0)
		return 0;
	*ret_field = "collection";
	*ret_why = "the database has no such table";
	return -EINVAL;
}

static int sim_index_build(struct engine *e, const struct engine_index *want, struct engine_progress *progress,
                           struct arena *a, const char **ret_why)
{
	int64_t now = clock_now_ms(), from = 0, until = 0;
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	struct sim_cluster *s = sim_cluster_find(e, want->cluster_id);
	if (s && s->exists) {
		if (strcmp(s->index_id, want->id) != 0) {
			str_copy(str_of(want->id), s->index_id, sizeof s->index_id);
			s->index_from_ms = now;
			s->index_until_ms = now + (int64_t)(e->seconds * 1000 * 2 / 3);
		}
		from = s->index_from_ms;
		until = s->index_until_ms;
		r = now < until ? -EAGAIN : 0;
	}
	if (r == 0 && sim_told_to_fail(e, SIM_INDEX))
		r = -EINVAL;
	pthread_mutex_unlock(&e->lock);
	if (r == -EAGAIN) {
		int64_t quarter = (until - from) / 4, again = now + (quarter > SIM_TELL_MS ? quarter : SIM_TELL_MS);
		progress->again_ms = again < until ? again : until;
		progress->tell(progress->ctx, (unsigned)((now - from) * 100 / (until - from)), "building the index");
	}
	if (r == -EINVAL)
		*ret_why = "the test control asked for this failure";
	return r;
}

static int sim_index_clean(struct engine *e, const struct engine_index *want, struct arena *a, const char **ret_why)
{
	return 0;
}

static int sim_index_look(struct engine *e, const struct engine_index *want, struct arena *a)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, want->cluster_id);
	int r = s && s->exists ? !sim_told_to_fail(e, SIM_SEARCH) : -EAGAIN;
	pthread_mutex_unlock(&e->lock);
	return r;
}

const struct engine_index_ops sim_index = {.check = sim_index_check,
                                           .build = sim_index_build,
                                           .clean = sim_index_clean,
                                           .drop = sim_index_clean,
                                           .look = sim_index_look};
