/* From the repository back into the catalogue. What the catalogue says of a snapshot lies beside it as a record, so
 * that with secret.key and the repository alone the catalogue can be made again, of sealed snapshots too, whose
 * manifests open with the project's key alone:    {"version": 1, "project": {"name", "organization",
 * "organizationId"}, "line": what lasts of the line of its cluster,    "body": the snapshot's document, "plan": its
 * plan}  Earlier versions wrote no records. Their manifests tell when a snapshot is of, its version, sets and sizes,
 * and no names. */
#include "api/snapshots/adopt.h"

#include "api/alerts/alerts.h"
#include "api/kit/verbs.h"
#include "api/projects/projects.h"
#include "api/snapshots/catalogue.h"
#include "api/snapshots/schedule.h"
#include "api/snapshots/snapshot.h"
#include "api/snapshots/take.h"
#include "api/snapshots/times.h"
#include "base/clock.h"
#include "trail/events.h"

#include <errno.h>
#include <stdio.h>

#define ADOPTED_DAYS 30
#define NAME_MOST 64 /* of a project */

static const char *const line_facts[] = {"clusterName", "provider", "region", "label",
                                         "shards",      "sharded",  "flex",   "windowDays"};

/* --- records */

json_t *snapshot_sets_json(const struct engine_snapshot *made)
{
	json_t *sets = json_array();
	for (size_t i = 0; i < made->set_count; i++) {
		char lsn[24];
		snprintf(lsn, sizeof lsn, "%llx", (unsigned long long)made->sets[i].lsn);
		json_array_append_new(sets, json_pack("{s:s, s:I, s:s, s:I, s:I}", "set", made->sets[i].set, "timeline",
		                                      (json_int_t)made->sets[i].timeline, "lsn", lsn, "bytes",
		                                      (json_int_t)made->sets[i].bytes, "stored",
		                                      (json_int_t)made->sets[i].stored));
	}
	return sets;
}

static int owner_put(struct tx *tx, struct arena *a, struct str group_id, json_t *record)
{
	struct doc project, org;
	int r = tx_get(tx, a, "project", group_id, &project);
	if (r == 0)
		r = tx_get(tx, a, "org", project.parent, &org);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	json_t *owner = json_object();
	json_put_str(owner, "name", project.name);
	json_put_str(owner, "organization", json_field(doc_json(a, org.body), "name"));
	json_put_str(owner, "organizationId", org.id);
	json_put(record, "project", owner);
	return 0;
}

int snapshot_record(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s,
                    struct str *ret_text)
{
	json_t *record = json_new(a), *facts = json_object();
	json_put(record, "version", json_integer(1));
	int r = owner_put(tx, a, json_field(line->body, "groupId"), record);
	for (size_t i = 0; i < sizeof line_facts / sizeof *line_facts; i++) {
		json_t *fact = json_object_get(line->body, line_facts[i]);
		if (fact)
			json_put(facts, line_facts[i], json_incref(fact));
	}
	json_put(record, "line", facts);
	json_put(record, "body", json_deep_copy(s->body));
	json_put(record, "plan", json_deep_copy(s->plan));
	*ret_text = json_text(a, record);
	return r;
}

void found_fill(struct found_snapshot *f)
{
	const json_t *plan = json_object_get(f->record, "plan");
	if (!f->record)
		return;
	str_copy(json_field(plan, "incarnation"), f->of.incarnation, sizeof f->of.incarnation);
	f->made.at_ms = json_number(plan, "at");
}

/* --- projects */

/* Another project of the organization may have the name. */
static int name_choose(struct tx *tx, struct arena *a, struct str org_id, struct str group_id, struct str wanted,
                       struct str *ret_name)
{
	struct doc d;
	int most = NAME_MOST - (int)group_id.n - 1;
	*ret_name = wanted;
	int r = wanted.n ? tx_get_by_name(tx, a, "project", org_id, wanted, &d) : -ENOENT;
	if (!wanted.n)
		*ret_name = arena_printf(a, "recovered-%.*s", STR_ARG(group_id));
	else if (r == 0)
		*ret_name = arena_printf(a, "%.*s %.*s", (int)wanted.n < most ? (int)wanted.n : most, wanted.p,
		                         STR_ARG(group_id));
	return r == -ENOENT ? 0 : r;
}

int project_adopt(struct tx *tx, struct arena *a, struct str org_id, struct str group_id, const json_t *record,
                  struct str *ret_name)
{
	struct doc d;
	struct str name;
	json_t *body = json_new(a);
	int r = tx_get(tx, a, "project", group_id, &d);
	if (r != -ENOENT)
		return r == 0 ? -EEXIST : r;
	r = name_choose(tx, a, org_id, group_id, json_field(json_object_get(record, "project"), "name"), &name);
	if (r < 0)
		return r;
	json_put_str(body, "name", name);
	json_put_str(body, "orgId", org_id);
	project_complete(body, group_id);
	r = doc_insert(tx, "project", group_id, org_id, name, json_text(a, body));
	if (r == 0)
		r = alerts_defaults_add(tx, a, group_id);
	if (r == 0)
		r = event_service(tx, a, "GROUP_CREATED", org_id, group_id, STR_NONE);
	if (r == 0)
		*ret_name = name;
	return r;
}

/* --- lines */

/* Without a record: shards have numbers for names, and routers others. What nobody wrote down gets what can be. */
static void facts_guess(struct arena *a, const struct found_snapshot *f, json_t *body)
{
	json_int_t shards = 0;
	for (size_t i = 0; i < f->made.set_count; i++) {
		const char *set = f->made.sets[i].set;
		shards += *set && strspn(set, "0123456789") == strlen(set);
	}
	json_put_str(body, "clusterName", arena_printf(a, "recovered-%s", f->of.cluster_id));
	json_put_z(body, "label", f->of.cluster_id);
	json_put_z(body, "provider", "AWS");
	json_put_z(body, "region", f->of.region);
	json_put(body, "shards", json_integer(shards));
	json_put(body, "sharded", json_boolean(f->made.set_count > 1));
	json_put(body, "flex", json_false());
}

/* As of a cluster that is gone and whose backups were to be kept. */
static void line_make(struct arena *a, const struct found_snapshot *f, struct backup_line *ret_line)
{
	int64_t now = clock_now_ms();
	json_t *body = json_new(a);
	*ret_line = (struct backup_line){.doc = {.kind = STR(LINE_KIND),
	                                         .id = str_of(f->of.cluster_id),
	                                         .parent = str_of(f->of.group_id),
	                                         .created_ms = now},
	                                 .body = body};
	if (f->record)
		json_object_update(body, json_object_get(f->record, "line"));
	else
		facts_guess(a, f, body);
	json_put_z(body, "groupId", f->of.group_id);
	json_put_z(body, "incarnation", f->of.incarnation);
	json_put_z(body, "host", "");
	json_put(body, "rebuilt", json_true());
	json_put(body, "gone", json_true());
	json_put(body, "goneAt", json_integer(now));
	json_put(body, "archive", json_false());
	json_put(body, "wanted", json_false());
	json_put(body, "paused", json_false());
	json_put(body, "looked", json_integer(now));
	json_default(body, "windowDays", json_integer(WINDOW_DAYS));
}

/* The newest snapshot tells which data the cluster had at the end; the log of that is kept for its window. */
static void line_advance(struct backup_line *line, const struct found_snapshot *f)
{
	struct str before = json_field(line->body, "incarnation"), own = str_of(f->of.incarnation);
	bool newest = f->made.at_ms >= json_number(line->body, "taken");
	struct str ended = newest ? before : own;
	json_t *list = json_default(line->body, "ended", json_array());
	if (!str_eq(before, own) && !json_find(list, "id", ended))
		json_array_append_new(
		        list, json_pack("{s:s%, s:I}", "id", ended.p, ended.n, "at", (json_int_t)f->made.at_ms));
	if (newest) {
		json_put_str(line->body, "incarnation", own);
		json_put(line->body, "taken", json_integer(f->made.at_ms));
		if (f->record)
			json_object_update(line->body, json_object_get(f->record, "line"));
	}
}

static int line_find(struct tx *tx, struct arena *a, const struct found_snapshot *f, bool makes_line,
                     struct backup_line *ret_line)
{
	int r = backup_line_get(tx, a, str_of(f->of.cluster_id), ret_line);
	if (r == 0 && !str_is(json_field(ret_line->body, "groupId"), f->of.group_id))
		return -ENOENT;
	if (r == -ENOENT && makes_line) {
		line_make(a, f, ret_line);
		r = 0;
	}
	if (r < 0 || !json_flag(ret_line->body, "rebuilt"))
		return r;
	line_advance(ret_line, f);
	backup_region_note(ret_line, str_of(f->of.region));
	return backup_line_save(tx, a, ret_line);
}

/* --- snapshots */

static int copy_adopt(struct tx *tx, struct arena *a, struct snapshot *s, const char *region)
{
	json_t *copies = json_default(s->plan, "copies", json_array()), *copy = json_object();
	if (snapshot_lies_in(s, str_of(region))) {
		json_decref(copy);
		return -EEXIST;
	}
	json_put_z(copy, "region", region);
	json_put_str(copy, "provider", json_field(s->body, "cloudProvider"));
	json_put(copy, "expires", json_integer(snapshot_expires(s)));
	json_array_append_new(copies, copy);
	return snapshot_save(tx, a, s);
}

static void manifests_fill(struct arena *a, const struct backup_line *line, const struct found_snapshot *f,
                           struct snapshot *s)
{
	const struct engine_snapshot *made = &f->made;
	json_put_str(s->body, "id", s->doc.id);
	json_put_time(s->body, "createdAt", made->at_ms);
	json_put_z(s->body, "snapshotType", "onDemand");
	json_put_z(s->body, "status", "completed");
	json_put_z(s->body, "description", "found in the repository");
	json_put_z(s->body, "dbVersion", made->version);
	json_put(s->body, "storageSizeBytes", json_integer((json_int_t)made->bytes));
	json_put(s->body, "policyItems", json_array());
	snapshot_shape(a, line, s->body);
	json_put_z(s->plan, "groupId", f->of.group_id);
	json_put_str(s->plan, "clusterName", json_field(line->body, "clusterName"));
	json_put_z(s->plan, "incarnation", f->of.incarnation);
	json_put(s->plan, "frequency", json_integer(ON_DEMAND));
	json_put(s->plan, "at", json_integer(made->at_ms));
	json_put(s->plan, "ended", json_integer(made->at_ms));
	json_put(s->plan, "bytes", json_integer((json_int_t)made->bytes));
	json_put(s->plan, "stored", json_integer((json_int_t)made->stored));
	json_put(s->plan, "sets", snapshot_sets_json(made));
	json_put(s->plan, "standby", json_boolean(made->from_standby));
	json_put_z(s->plan, "dataKey", made->data_key);
}

/* It lies where it was found; copies elsewhere are found there. */
static void adopted_fill(struct arena *a, const struct backup_line *line, const struct found_snapshot *f,
                         int64_t expires, struct snapshot *s)
{
	int64_t meant = 0;
	if (f->record) {
		json_object_update(s->body, json_object_get(f->record, "body"));
		json_object_update(s->plan, json_object_get(f->record, "plan"));
	} else {
		manifests_fill(a, line, f, s);
	}
	if (clock_parse(json_field(s->body, "expiresAt"), &meant) && meant > expires)
		expires = meant;
	json_put_time(s->body, "expiresAt", expires);
	json_put(s->body, "copyRegions", json_array());
	json_put_z(s->plan, "region", f->of.region);
	json_object_del(s->plan, "copies");
}

int snapshot_adopt(struct tx *tx, struct arena *a, const struct found_snapshot *f, bool makes_line)
{
	struct backup_line line;
	struct snapshot s;
	int64_t now = clock_now_ms(), floor = 0;
	int r = snapshot_get(tx, a, str_of(f->of.snapshot_id), &s);
	if (r != -ENOENT)
		return r < 0 ? r : copy_adopt(tx, a, &s, f->of.region);
	r = line_find(tx, a, f, makes_line, &line);
	r = r < 0 ? r : retention_floor(tx, a, str_of(f->of.group_id), ON_DEMAND, &floor);
	if (r < 0)
		return r;
	int64_t expires = now + (floor > ADOPTED_DAYS * BACKUP_DAY_MS ? floor : ADOPTED_DAYS * BACKUP_DAY_MS);
	s = (struct snapshot){.doc = {.kind = STR(SNAPSHOT_KIND),
	                              .id = str_of(f->of.snapshot_id),
	                              .parent = line.doc.id,
	                              .created_ms = f->made.at_ms},
	                      .body = json_new(a),
	                      .plan = json_new(a)};
	adopted_fill(a, &line, f, expires, &s);
	if (!clock_parse(json_field(s.body, "createdAt"), &s.doc.created_ms))
		s.doc.created_ms = f->made.at_ms;
	r = snapshot_save(tx, a, &s);
	return r < 0 ? r : schedule_look(tx, a, &line, snapshot_expires(&s));
}
