/* The older views of backups: checkpoints, which the engine knows, and snapshots, the documents of snapshots.c in other
 * words. Each set of nodes is a part. */
#include "api/legacy_backups/legacy_backups.h"

#include "api/kit/verbs.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>
#include <stdlib.h>

#define CHECKPOINTS_MAX 20000
#define SECOND_CHECKPOINTS 64 /* within one second */
#define SETS_MAX 1000
#define YEARS_MAX 100LL
#define COMPLETED_QUERY "completed"

json_t *timestamp_make(int64_t ms, int64_t units)
{
	json_t *at = json_object();
	json_put_time(at, "date", ms);
	if (units)
		json_put(at, "increment", json_integer(INCREMENT_BASE + units));
	return at;
}

/* --- parts. Sets of nodes are numbers; a router has a name. */

static const char *set_type(struct str set)
{
	uint64_t number;
	return str_to_u64(set, SETS_MAX, &number) ? "REPLICA_SET" : "CONFIG_SERVER_REPLICA_SET";
}

static struct str set_name(struct arena *a, const struct backup_line *line, struct str set)
{
	uint64_t number;
	return !str_to_u64(set, SETS_MAX, &number)
	               ? set
	               : arena_printf(a, "%.*s-shard-%llu", STR_ARG(json_field(line->body, "label")),
	                              (unsigned long long)number);
}

/* --- checkpoints */

int64_t checkpoint_minutes(const struct backup_line *line)
{
	int64_t minutes = json_number(line->body, "checkpointMinutes");
	return minutes ? minutes : CHECKPOINT_MINUTES;
}

/* Where in its second the only set was; 0: not known. */
static int64_t units_of(struct call *c, const struct engine_source *of, const struct engine_checkpoint *p)
{
	const struct engine_backup_ops *backup = c->service->engine_ops->backup;
	struct engine_position at;
	uint64_t second;
	if (p->set_count != 1 || backup->position(c->service->engine_state, of, p->at_ms, &at, &second) < 0 ||
	    p->sets[0].lsn < second)
		return 0;
	return (int64_t)((p->sets[0].lsn - second) / POSITION_UNIT) + 1;
}

static struct doc checkpoint_doc(struct call *c, const struct backup_line *line, const struct engine_checkpoint *p,
                                 int64_t units)
{
	json_t *body = json_new(c->arena), *parts = json_array();
	json_put_z(body, "id", p->id);
	json_put_str(body, "clusterId", line->doc.id);
	json_put_str(body, "groupId", c->group.id);
	json_put_time(body, "started", p->at_ms);
	json_put_time(body, "completed", p->at_ms);
	json_put_time(body, "timestamp", p->at_ms);
	json_put(body, "restorable", json_true());
	for (size_t i = 0; i < p->set_count; i++) {
		struct str set = str_of(p->sets[i].set);
		json_t *part = json_object();
		json_put_str(part, "replicaSetName", set_name(c->arena, line, set));
		json_put_str(part, "shardName", set_name(c->arena, line, set));
		json_put_z(part, "typeName", set_type(set));
		json_put(part, "tokenDiscovered", json_true());
		json_put(part, "tokenTimestamp", timestamp_make(p->at_ms, units));
		json_array_append_new(parts, part);
	}
	json_put(body, "parts", parts);
	return (struct doc){.kind = STR("legacy_checkpoint"),
	                    .id = json_field(body, "id"),
	                    .parent = line->doc.id,
	                    .body = json_text(c->arena, body)};
}

static int restorable_load(struct call *c, struct backup_line *line, struct restorable **ret_list, size_t *ret_count)
{
	if (!c->service->engine_ops->backup)
		return cluster_not_offered(c);
	int r = backup_line_load(c, line);
	return r < 0 ? r : points_list(c, line, ret_list, ret_count);
}

/* The newest of each interval that the schedule says. */
static int checkpoint_segments(struct call *c, struct segment **ret_list, size_t *ret_count)
{
	const struct engine_backup_ops *backup = c->service->engine_ops->backup;
	struct backup_line line;
	struct restorable *list;
	struct doc *docs = NULL;
	size_t count = 0, made = 0;
	int r = restorable_load(c, &line, &list, &count);
	int64_t interval = r == 0 ? checkpoint_minutes(&line) * 60000 : 1, last = -1;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct engine_checkpoint *found;
		size_t n = 0;
		r = backup->checkpoints(c->service->engine_state, &list[i].source, list[i].window.from_ms,
		                        list[i].window.to_ms, CHECKPOINTS_MAX, c->arena, &found, &n);
		struct doc *more = arena_new_array(c->arena, struct doc, made + n + 1);
		for (size_t k = 0; k < made; k++)
			more[k] = docs[k];
		for (size_t k = 0; r == 0 && k < n; k++) {
			if (found[k].at_ms / interval == last)
				continue;
			last = found[k].at_ms / interval;
			more[made++] = checkpoint_doc(c, &line, &found[k], 0);
		}
		docs = more;
	}
	if (r < 0)
		return r;
	*ret_list = arena_new_array(c->arena, struct segment, 1);
	**ret_list = (struct segment){.docs = docs, .count = made};
	*ret_count = docs ? 1 : 0;
	return 0;
}

/* Its id begins with its second. */
static int checkpoint_seek(struct call *c, const struct restorable *in, struct str id, struct engine_checkpoint *ret)
{
	const struct engine_backup_ops *backup = c->service->engine_ops->backup;
	char digits[9] = "";
	struct engine_checkpoint *found;
	size_t n = 0;
	memcpy(digits, id.p, id.n < 8 ? id.n : 8);
	int64_t from = (int64_t)strtoull(digits, NULL, 16) * 1000, to = from + 999;
	from = from > in->window.from_ms ? from : in->window.from_ms;
	to = to < in->window.to_ms ? to : in->window.to_ms;
	if (from > to)
		return -ENOENT;
	int r = backup->checkpoints(c->service->engine_state, &in->source, from, to, SECOND_CHECKPOINTS, c->arena,
	                            &found, &n);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (str_is(id, found[i].id)) {
			*ret = found[i];
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

static int checkpoint_load(struct call *c, struct str id, struct backup_line *line, struct engine_source *ret_source,
                           struct engine_checkpoint *ret)
{
	struct restorable *list;
	size_t count = 0;
	int r = restorable_load(c, line, &list, &count);
	if (r < 0)
		return r;
	r = -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < count; i++) {
		r = checkpoint_seek(c, &list[i], id, ret);
		*ret_source = list[i].source;
	}
	return r;
}

int checkpoint_time(struct call *c, struct str id, int64_t *ret_ms)
{
	struct backup_line line;
	struct engine_source source;
	struct engine_checkpoint p;
	int r = checkpoint_load(c, id, &line, &source, &p);
	if (r == 0)
		*ret_ms = p.at_ms;
	return r;
}

static int checkpoint_find(struct call *c, const struct resource *resource, struct doc *ret_doc)
{
	struct backup_line line;
	struct engine_source source;
	struct engine_checkpoint p;
	int r = checkpoint_load(c, call_path(c, "checkpointId"), &line, &source, &p);
	if (r == 0)
		*ret_doc = checkpoint_doc(c, &line, &p, units_of(c, &source, &p));
	return r;
}

const struct resource_hooks legacy_checkpoint_hooks = {.load = checkpoint_find, .segments = checkpoint_segments};

/* --- snapshots */

static json_t *part_make(const struct call *c, const struct backup_line *line, const json_t *body, const json_t *plan,
                         struct str set)
{
	struct str version = json_field(body, "dbVersion"), major, rest;
	json_t *part = json_object();
	str_cut(version, '.', &major, &rest);
	json_put_str(part, "clusterId", line->doc.id);
	json_put_time(part, "completedTime", json_number(plan, "ended"));
	json_put_z(part, "compressionSetting", "NONE"); /* as it is fetched */
	json_put(part, "encryptionEnabled", json_true());
	json_put_str(part, "dbVersion", version);
	json_put_str(part, "fcv", major);
	json_put_str(part, "replicaSetName", set_name(c->arena, line, set));
	json_put_z(part, "replicaState", json_flag(plan, "standby") ? "SECONDARY" : "PRIMARY");
	json_put_z(part, "typeName", set_type(set));
	return part;
}

static void sizes_put(json_t *part, const json_t *from)
{
	json_put(part, "dataSizeBytes", json_integer(json_number(from, "bytes")));
	json_put(part, "fileSizeBytes", json_integer(json_number(from, "bytes")));
	json_put(part, "storageSizeBytes", json_integer(json_number(from, "stored")));
}

/* Of a snapshot that an older version took, sizes are known of the whole alone. */
static json_t *parts_make(const struct call *c, const struct backup_line *line, const json_t *body, const json_t *plan)
{
	const json_t *sets = json_object_get(plan, "sets");
	json_t *parts = json_array();
	for (size_t i = 0; i < json_array_size(sets); i++) {
		const json_t *set = json_array_get(sets, i);
		json_t *part = part_make(c, line, body, plan, json_field(set, "set"));
		if (json_object_get(set, "bytes") || json_array_size(sets) == 1)
			sizes_put(part, json_object_get(set, "bytes") ? set : plan);
		json_array_append_new(parts, part);
	}
	return parts;
}

static int snapshot_view(struct call *c, const struct doc *d, json_t *entity)
{
	const json_t *body = doc_json(c->arena, d->body), *plan = doc_json(c->arena, d->secret);
	struct backup_line line;
	bool complete = str_is(json_field(body, "status"), "completed");
	int r = backup_line_get(c->tx, c->arena, d->parent, &line);
	if (r < 0)
		return r;
	json_object_clear(entity);
	json_put_str(entity, "id", d->id);
	json_put_str(entity, "clusterId", d->parent);
	json_put_str(entity, "clusterName", json_field(plan, "clusterName"));
	json_put_str(entity, "groupId", json_field(plan, "groupId"));
	json_put(entity, "complete", json_boolean(complete));
	json_put(entity, "created", timestamp_make(d->created_ms, 0));
	json_put(entity, "doNotDelete", json_boolean(json_flag(plan, "doNotDelete")));
	json_put(entity, "incremental", json_false()); /* none depends on another */
	if (json_field(body, "expiresAt").n)
		json_put_str(entity, "expires", json_field(body, "expiresAt"));
	if (complete)
		json_put(entity, "lastOplogAppliedTimestamp",
		         timestamp_make(json_number(plan, "at"), json_number(plan, "units")));
	json_put(entity, "parts", parts_make(c, &line, body, plan));
	return 0;
}

static bool snapshot_takes(struct call *c, const struct doc *d)
{
	struct str wanted = call_query(c, COMPLETED_QUERY);
	bool complete = str_is(json_field(doc_json(c->arena, d->body), "status"), "completed");
	return str_is(wanted, "all") || complete != str_is(wanted, "false");
}

const struct resource_hooks legacy_snapshot_hooks = {.load = snapshot_find,
                                                     .segments = snapshot_segments,
                                                     .takes = snapshot_takes,
                                                     .view = snapshot_view,
                                                     .remove = snapshot_remove_check,
                                                     .drop = snapshot_drop};

static int expires_check(struct call *c, const struct snapshot *s, int64_t ms)
{
	if (ms <= clock_now_ms() || ms > s->doc.created_ms + YEARS_MAX * 366 * BACKUP_DAY_MS)
		return call_fail_fault(c, STR("expires"), "must be a time to come, within %lld years", YEARS_MAX);
	return retention_check(c, ms - s->doc.created_ms, snapshot_frequency(s), "expires");
}

/* What is protected has no end; without protection it ends when it was to end before, but not today. */
static int protect(struct call *c, struct snapshot *s, bool wanted, int64_t *expires)
{
	bool is = json_flag(s->plan, "doNotDelete");
	if (wanted && *expires)
		return call_fail_fault(c, STR("expires"), "does not go with doNotDelete: what is protected has no end");
	if (wanted == is)
		return 0;
	if (wanted) {
		json_put(s->plan, "doNotDelete", json_true());
		json_put(s->plan, "expiresBefore", json_integer(snapshot_expires(s)));
		json_object_del(s->body, "expiresAt");
		return 0;
	}
	int64_t before = json_number(s->plan, "expiresBefore"), soon = clock_now_ms() + BACKUP_DAY_MS;
	json_object_del(s->plan, "doNotDelete");
	if (!*expires)
		*expires = before > soon ? before : soon;
	return 0;
}

int legacy_snapshots_update(struct call *c)
{
	const json_t *flag = json_object_get(c->body, "doNotDelete");
	struct str text = json_field(c->body, "expires");
	struct backup_line line;
	struct snapshot s;
	int64_t expires = 0;
	int r = snapshot_load(c, call_path(c, "snapshotId"), &s);
	if (r == 0)
		r = if_match(c, s.doc.rev);
	if (r == 0 && text.n && !clock_parse(text, &expires))
		r = call_fail_fault(c, STR("expires"), "must be a time");
	if (r == 0 && text.n)
		r = expires_check(c, &s, expires);
	if (r == 0)
		r = protect(c, &s, flag ? json_is_true(flag) : json_flag(s.plan, "doNotDelete"), &expires);
	if (r < 0)
		return r;
	if (expires)
		json_put_time(s.body, "expiresAt", expires);
	r = snapshot_save(c->tx, c->arena, &s);
	if (r == 0)
		r = backup_line_get(c->tx, c->arena, s.doc.parent, &line);
	if (r == 0 && expires)
		r = schedule_look(c->tx, c->arena, &line, expires);
	if (r < 0)
		return r;
	event_cluster(c, json_field(s.plan, "clusterName"));
	event_field(c, "snapshotId", s.doc.id);
	return resource_write(c, &resource_legacy_snapshot, &s.doc);
}
