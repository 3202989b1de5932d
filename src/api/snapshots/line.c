/* The line of a cluster that has or had backups, as a document of the catalogue: what it says, and who looks for it.
 * What happens to it is in catalogue.c. */
#include "api/snapshots/line.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

bool backup_is_wanted(const struct cluster *cluster)
{
	return json_flag(cluster->body, "backupEnabled") || str_is(cluster->doc.kind, FLEX_KIND);
}

struct str cluster_incarnation(const struct cluster *cluster)
{
	struct str own = json_field(cluster->plan, "incarnation");
	return own.n ? own : cluster->doc.id;
}

struct str backup_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "backup/%.*s", STR_ARG(cluster_id));
}

bool backup_log_is_wanted(const struct cluster *cluster)
{
	return backup_is_wanted(cluster) && json_flag(cluster->body, "pitEnabled");
}

static struct backup_line line_of(struct arena *a, const struct doc *d)
{
	return (struct backup_line){.doc = *d, .body = doc_json(a, d->body)};
}

int backup_line_get(struct tx *tx, struct arena *a, struct str cluster_id, struct backup_line *ret_line)
{
	struct doc d;
	int r = tx_get(tx, a, LINE_KIND, cluster_id, &d);
	if (r == 0)
		*ret_line = line_of(a, &d);
	return r;
}

int backup_line_save(struct tx *tx, struct arena *a, struct backup_line *line)
{
	line->doc.body = json_text(a, line->body);
	return doc_put(tx, &line->doc);
}

struct engine_source backup_source(const struct backup_line *line)
{
	struct engine_source s = {.snapshot_id = ""};
	str_copy(json_field(line->body, "groupId"), s.group_id, sizeof s.group_id);
	str_copy(line->doc.id, s.cluster_id, sizeof s.cluster_id);
	str_copy(json_field(line->body, "incarnation"), s.incarnation, sizeof s.incarnation);
	str_copy(json_field(line->body, "region"), s.region, sizeof s.region);
	return s;
}

struct engine_source source_of(const json_t *from)
{
	struct engine_source s = {.region = ""};
	str_copy(json_field(from, "group"), s.group_id, sizeof s.group_id);
	str_copy(json_field(from, "cluster"), s.cluster_id, sizeof s.cluster_id);
	str_copy(json_field(from, "incarnation"), s.incarnation, sizeof s.incarnation);
	str_copy(json_field(from, "snapshot"), s.snapshot_id, sizeof s.snapshot_id);
	str_copy(json_field(from, "region"), s.region, sizeof s.region);
	return s;
}

int backup_event(struct tx *tx, struct arena *a, const char *type, const char *severity, const struct backup_line *line,
                 const char *name, struct str text)
{
	const struct event_detail detail = {.name = name, .text = text};
	return event_service_about(tx, a, type,
	                           &(struct event_about){.group_id = json_field(line->body, "groupId"),
	                                                 .cluster = json_field(line->body, "clusterName"),
	                                                 .severity = severity,
	                                                 .details = &detail,
	                                                 .detail_count = text.n > 0});
}

int backup_job_add(struct tx *tx, struct arena *a, const char *kind, const struct backup_line *line, json_t *args)
{
	struct job job = {.kind = str_of(kind),
	                  .subject = backup_subject(a, line->doc.id),
	                  .host = json_field(line->body, "host"),
	                  .args = json_text(a, json_keep(a, args)),
	                  .due_ms = clock_now_ms()};
	return tx_job_add(tx, &job);
}

bool backup_is_running(const struct backup_line *line)
{
	return json_flag(line->body, "wanted") && !json_flag(line->body, "paused");
}

bool backup_region_note(struct backup_line *line, struct str region)
{
	json_t *copied = json_default(line->body, "copied", json_array());
	for (size_t i = 0; i < json_array_size(copied); i++)
		if (str_eq(json_item(copied, i), region))
			return false;
	json_add_str(copied, region);
	return true;
}

static struct str clock_subject(struct arena *a, struct str cluster_id)
{
	return arena_printf(a, "backup-clock/%.*s", STR_ARG(cluster_id));
}

int schedule_look(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t at_ms)
{
	struct job job = {.kind = STR(CLOCK_JOB), .subject = clock_subject(a, line->doc.id), .due_ms = at_ms};
	return tx_job_ensure(tx, &job);
}

/* --- finding one */

static int line_by_name(struct call *c, struct str name, bool flex, struct backup_line *ret_line)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, LINE_KIND, c->group.id, &docs, &count);
	for (size_t i = count; r == 0 && i-- > 0;) {
		struct backup_line line = line_of(c->arena, &docs[i]);
		if (str_eq(json_field(line.body, "clusterName"), name) && json_flag(line.body, "flex") == flex) {
			*ret_line = line;
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

struct str backup_path_name(const struct call *c)
{
	struct str name = call_path(c, "clusterName");
	return name.n ? name : call_path(c, "name");
}

bool backup_path_is_flex(const struct call *c)
{
	return !call_path(c, "clusterName").n;
}

void backup_line_fill(struct backup_line *line, const struct cluster *cluster)
{
	const json_t *first = json_array_get(json_object_get(cluster->plan, "nodes"), 0);
	struct str incarnation = cluster_incarnation(cluster), before = json_field(line->body, "incarnation");
	int64_t now = clock_now_ms();
	bool archive = backup_log_is_wanted(cluster), again = before.n && !str_eq(before, incarnation);
	if (again) {
		json_array_append_new(json_default(line->body, "ended", json_array()),
		                      json_pack("{s:s%, s:I}", "id", before.p, before.n, "at", (json_int_t)now));
		json_object_del(line->body, "made");
	}
	if (archive && (again || !json_flag(line->body, "archive"))) {
		json_put(line->body, "since", json_integer(now));
		json_object_del(line->body, "begun");
	}
	json_put_str(line->body, "clusterName", cluster->doc.name);
	json_put_str(line->body, "groupId", cluster->doc.parent);
	json_put_str(line->body, "incarnation", incarnation);
	json_put_str(line->body, "provider", json_field(first, "provider"));
	if (!json_field(line->body, "region").n) /* what was begun there goes on there */
		json_put_str(line->body, "region", json_field(first, "region"));
	json_put_str(line->body, "host", cluster_host(cluster));
	json_put_str(line->body, "label", json_field(cluster->plan, "label"));
	json_put(line->body, "archive", json_boolean(archive));
	json_put(line->body, "wanted", json_boolean(backup_is_wanted(cluster)));
	if (!backup_is_wanted(cluster)) /* with the schedule that asks for them */
		json_object_del(line->body, "logCopies");
	json_put(line->body, "paused", json_boolean(json_flag(cluster->body, "paused")));
	json_put(line->body, "flex", json_boolean(str_is(cluster->doc.kind, FLEX_KIND)));
	json_put(line->body, "sharded", json_boolean(!str_is(json_field(cluster->body, "clusterType"), "REPLICASET")));
	json_put(line->body, "shards",
	         json_integer((json_int_t)json_array_size(json_object_get(cluster->body, "replicationSpecs"))));
	json_default(line->body, "looked", json_integer(now));
	json_default(line->body, "windowDays", json_integer(WINDOW_DAYS));
}

/* A cluster that never had backups has an empty line, which is not kept. */
int backup_line_load(struct call *c, struct backup_line *ret_line)
{
	struct str name = backup_path_name(c);
	bool flex = backup_path_is_flex(c);
	struct doc d;
	int r = tx_get_by_name(c->tx, c->arena, flex ? FLEX_KIND : CLUSTER_KIND, c->group.id, name, &d);
	if (r == -ENOENT) {
		r = line_by_name(c, name, flex, ret_line);
		return r == -ENOENT ? call_missing(c, flex ? &resource_flex_cluster : &resource_cluster, name) : r;
	}
	if (r < 0)
		return r;
	struct cluster cluster = cluster_of(c->arena, &d);
	r = backup_line_get(c->tx, c->arena, d.id, ret_line);
	if (r != -ENOENT)
		return r;
	*ret_line = (struct backup_line){.doc = {.kind = STR(LINE_KIND), .id = d.id, .parent = c->group.id},
	                                 .body = json_new(c->arena)};
	backup_line_fill(ret_line, &cluster);
	return 0;
}

int backup_missing(struct call *c, const struct resource *r, struct str id)
{
	struct backup_line line;
	int result = backup_line_load(c, &line);
	return result == 0 ? call_missing(c, r, id) : result;
}

void running_put(struct backup_line *line)
{
	json_put(line->body, "looked", json_integer(clock_now_ms()));
	json_put(line->body, "running", json_integer(clock_now_ms()));
	json_object_del(line->body, "overdue");
}
