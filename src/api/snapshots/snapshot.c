/* Snapshots as documents, which jobs fill in. */
#include "api/snapshots/snapshot.h"

#include "api/kit/verbs.h"
#include "api/snapshots/metering.h"
#include "api/snapshots/protection.h"
#include "api/snapshots/times.h"
#include "base/clock.h"

#include <errno.h>

struct snapshot snapshot_of(struct arena *a, const struct doc *d)
{
	return (struct snapshot){.doc = *d, .body = doc_json(a, d->body), .plan = doc_json(a, d->secret)};
}

int snapshot_get(struct tx *tx, struct arena *a, struct str id, struct snapshot *ret_snapshot)
{
	struct doc d;
	int r = tx_get(tx, a, SNAPSHOT_KIND, id, &d);
	if (r == 0)
		*ret_snapshot = snapshot_of(a, &d);
	return r;
}

int snapshot_save(struct tx *tx, struct arena *a, struct snapshot *s)
{
	s->doc.body = json_text(a, s->body);
	s->doc.secret = json_text(a, s->plan);
	int r = doc_put(tx, &s->doc);
	return r < 0 ? r : snapshot_metered(tx, a, s);
}

int snapshots_of(struct tx *tx, struct arena *a, struct str cluster_id, struct snapshot **ret_list, size_t *ret_count)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, SNAPSHOT_KIND, cluster_id, &docs, &count);
	struct snapshot *list = r == 0 ? arena_new_array(a, struct snapshot, count + 1) : NULL;
	for (size_t i = 0; r == 0 && i < count; i++)
		list[i] = snapshot_of(a, &docs[i]);
	*ret_list = list;
	*ret_count = count;
	return r;
}

bool snapshot_is(const struct snapshot *s, const char *status)
{
	return str_is(json_field(s->body, "status"), status);
}

int64_t snapshot_expires(const struct snapshot *s)
{
	int64_t ms = 0;
	return clock_parse(json_field(s->body, "expiresAt"), &ms) ? ms : INT64_MAX;
}

int snapshot_frequency(const struct snapshot *s)
{
	return (int)json_number(s->plan, "frequency");
}

struct engine_source snapshot_source(const struct snapshot *s)
{
	struct engine_source to = {.region = ""};
	str_copy(json_field(s->plan, "groupId"), to.group_id, sizeof to.group_id);
	str_copy(s->doc.parent, to.cluster_id, sizeof to.cluster_id);
	str_copy(json_field(s->plan, "incarnation"), to.incarnation, sizeof to.incarnation);
	str_copy(s->doc.id, to.snapshot_id, sizeof to.snapshot_id);
	str_copy(json_field(s->plan, "region"), to.region, sizeof to.region);
	return to;
}

bool snapshot_lies_in(const struct snapshot *s, struct str region)
{
	return str_eq(json_field(s->plan, "region"), region) ||
	       json_find(json_object_get(s->plan, "copies"), "region", region);
}

bool snapshot_is_base(const struct snapshot *s, const struct engine_source *of, const struct engine_window *w)
{
	int64_t at = json_number(s->plan, "at");
	return snapshot_is(s, "completed") && str_is(json_field(s->plan, "incarnation"), of->incarnation) &&
	       !json_flag(s->plan, "ahead") && snapshot_lies_in(s, str_of(of->region)) && at >= w->from_ms &&
	       at <= w->to_ms;
}

size_t snapshot_sources(struct arena *a, const struct snapshot *s, struct engine_source **ret_list)
{
	const json_t *copies = json_object_get(s->plan, "copies");
	size_t count = json_array_size(copies) + 1;
	struct engine_source *list = arena_new_array(a, struct engine_source, count);
	for (size_t i = 0; i < count; i++) {
		list[i] = snapshot_source(s);
		if (i)
			str_copy(json_field(json_array_get(copies, i - 1), "region"), list[i].region,
			         sizeof list[i].region);
	}
	*ret_list = list;
	return count;
}

struct expecting {
	struct arena *arena;
	struct repositories *all;
};

static int visit_expected(struct tx *tx, void *ctx, const struct doc *d)
{
	const struct expecting *w = ctx;
	struct snapshot s = snapshot_of(w->arena, d);
	struct engine_source *from;
	size_t count = snapshot_is(&s, "completed") ? snapshot_sources(w->arena, &s, &from) : 0;
	for (size_t i = 0; i < count; i++)
		repositories_expect(w->all, from[i].region);
	arena_reset(w->arena);
	return 0;
}

int snapshots_expect(struct tx *tx, struct arena *a, struct repositories *all)
{
	struct expecting w = {a, all};
	return tx_walk_all(tx, SNAPSHOT_KIND, visit_expected, &w);
}

bool source_is_bad(int result)
{
	switch (-result) {
	case 0:
	case EAGAIN:
	case ECANCELED:
	case EINPROGRESS:
	case EPIPE:
	case ESRCH:
	case ENOSPC:
	case EDQUOT:
	case ENOMEM: return false;
	default: return result < 0;
	}
}

/* --- the compliance policy's floors */

/* A snapshot that serves several items has the rarest one's frequency: what the policy asks of more frequent ones holds
 * for it too. */
static void floor_raise(const json_t *item, int frequency, int64_t *floor)
{
	int64_t ms = retention_ms(json_field(item, "retentionUnit"), json_number(item, "retentionValue"));
	int asked = frequency_find(json_field(item, "frequencyType"));
	bool holds = asked == frequency || (asked < frequency && frequency != ON_DEMAND);
	if (asked >= 0 && holds && ms > *floor)
		*floor = ms;
}

int retention_floor(struct tx *tx, struct arena *a, struct str group_id, int frequency, int64_t *ret_ms)
{
	struct doc d;
	int r = tx_get(tx, a, COMPLIANCE_KIND, group_id, &d);
	*ret_ms = 0;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const json_t *policy = doc_json(a, d.body), *items = json_object_get(policy, "scheduledPolicyItems");
	floor_raise(json_object_get(policy, "onDemandPolicyItem"), frequency, ret_ms);
	for (size_t i = 0; i < json_array_size(items); i++)
		floor_raise(json_array_get(items, i), frequency, ret_ms);
	return 0;
}

/* --- of a call */

static int path_check(struct call *c, const struct snapshot *s)
{
	struct backup_line line;
	if (!str_eq(json_field(s->plan, "groupId"), c->group.id) ||
	    !str_eq(json_field(s->plan, "clusterName"), backup_path_name(c)))
		return -ENOENT;
	int r = backup_line_get(c->tx, c->arena, s->doc.parent, &line);
	return r < 0 ? r : json_flag(line.body, "flex") == backup_path_is_flex(c) ? 0 : -ENOENT;
}

int snapshot_load(struct call *c, struct str id, struct snapshot *ret_snapshot)
{
	struct snapshot s;
	int r = snapshot_get(c->tx, c->arena, id, &s);
	if (r == 0)
		r = path_check(c, &s);
	if (r == 0)
		*ret_snapshot = s;
	return r == -ENOENT ? backup_missing(c, &resource_backup_snapshot, id) : r;
}
