/* Snapshots into the meter: what each has added to the repositories, in its own region and in those of its copies, as
 * long as it is kept; that it was taken; what was exported of it. */
#include "api/snapshots/metering.h"

#include "api/snapshots/catalogue.h"
#include "api/snapshots/snapshot.h"
#include "base/clock.h"
#include "meter/meter.h"

#include <errno.h>

#define KB INT64_C(1000)

static int64_t kilobytes(int64_t bytes)
{
	return (bytes + KB - 1) / KB;
}

static int subject_of(struct tx *tx, struct arena *a, const struct backup_line *line, struct meter_subject *ret_subject)
{
	struct doc project;
	int r = tx_get(tx, a, "project", line->doc.parent, &project);
	if (r == 0)
		*ret_subject = (struct meter_subject){.org_id = project.parent,
		                                      .group_id = project.id,
		                                      .group_name = project.name,
		                                      .id = line->doc.id,
		                                      .name = json_field(line->body, "clusterName"),
		                                      .host = json_field(line->body, "host")};
	return r;
}

static struct meter_thing thing_of(struct arena *a, struct str key, struct str provider, const char *what,
                                   struct str region, int64_t amount)
{
	return (struct meter_thing){.key = key,
	                            .sku = arena_printf(a, "%.*s_%s", STR_ARG(provider), what),
	                            .provider = provider,
	                            .region = region,
	                            .amount = amount};
}

/* Where it lies: with each copy's own provider, where that is told. */
static size_t things_make(struct arena *a, const struct backup_line *line, const struct snapshot *s,
                          struct meter_thing *things)
{
	const json_t *copies = json_object_get(s->plan, "copies");
	int64_t kept = kilobytes(json_number(s->plan, "stored"));
	size_t count = json_array_size(copies) + 1;
	for (size_t i = 0; i < count; i++) {
		const json_t *from = i ? json_array_get(copies, i - 1) : s->plan;
		struct str region = json_field(from, "region"), provider = i ? json_field(from, "provider") : STR_NONE;
		things[i] = thing_of(a, arena_printf(a, "snapshot/%.*s/%.*s", STR_ARG(s->doc.id), STR_ARG(region)),
		                     provider.n ? provider : json_field(line->body, "provider"), "BACKUP_STORAGE",
		                     region, kept);
	}
	return count;
}

int snapshot_metered(struct tx *tx, struct arena *a, const struct snapshot *s)
{
	struct meter_subject subject;
	struct backup_line line;
	int r = snapshot_is(s, "completed") ? backup_line_get(tx, a, s->doc.parent, &line) : -ENOENT;
	if (r == 0)
		r = subject_of(tx, a, &line, &subject);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct meter_thing *things =
	        arena_new_array(a, struct meter_thing, json_array_size(json_object_get(s->plan, "copies")) + 1);
	const struct meter_observation o = {.prefixes = arena_printf(a, "snapshot/%.*s/", STR_ARG(s->doc.id)).p,
	                                    .things = things,
	                                    .count = things_make(a, &line, s, things),
	                                    .at_ms = clock_now_ms()};
	return meter_observe(tx, a, &subject, &o);
}

int snapshot_meter_end(struct tx *tx, struct arena *a, struct str cluster_id, struct str snapshot_id)
{
	return meter_end_those(tx, a, cluster_id, arena_printf(a, "snapshot/%.*s", STR_ARG(snapshot_id)).p,
	                       clock_now_ms());
}

static int event_meter(struct tx *tx, struct arena *a, const struct backup_line *line, const char *what, struct str id,
                       int64_t amount)
{
	struct meter_subject subject;
	int r = subject_of(tx, a, line, &subject);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	struct meter_thing t =
	        thing_of(a, id, json_field(line->body, "provider"), what, json_field(line->body, "region"), amount);
	return meter_add(tx, a, &subject, &t, clock_now_ms());
}

int snapshot_meter_taken(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s)
{
	return event_meter(tx, a, line, "SNAPSHOT", arena_printf(a, "taken/%.*s", STR_ARG(s->doc.id)), 1);
}

int export_meter(struct tx *tx, struct arena *a, const struct backup_line *line, struct str export_id,
                 const json_t *tables)
{
	int64_t bytes = 0;
	for (size_t i = 0; i < json_array_size(tables); i++)
		bytes += json_number(json_array_get(tables, i), "storedBytes");
	if (!bytes)
		return 0;
	return event_meter(tx, a, line, "EXPORT", arena_printf(a, "export/%.*s", STR_ARG(export_id)), kilobytes(bytes));
}
