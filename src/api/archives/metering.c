/* What an archive has in files, as long as it is there. A pass moves rows in many batches: it is metered when the pass
 * is over, so that the meter has a line for each hour and not for each second. What nobody names any more and is kept
 * for a restore costs nothing. */
#include "api/archives/metering.h"

#include "base/clock.h"
#include "meter/meter.h"

#include <errno.h>

#define KB INT64_C(1000)

static struct str key_of(struct arena *a, const struct archive *x)
{
	return arena_printf(a, "archive/%.*s", STR_ARG(x->doc.id));
}

int archive_meter_end(struct tx *tx, struct arena *a, const struct archive *x)
{
	return meter_end_those(tx, a, x->doc.parent, key_of(a, x).p, clock_now_ms());
}

static struct str provider_of(const struct cluster *cluster, const struct archive *x)
{
	struct str own = json_field(json_object_get(x->body, "dataProcessRegion"), "cloudProvider");
	const json_t *first = json_array_get(json_object_get(cluster->plan, "nodes"), 0);
	return own.n ? own : json_field(first, "provider");
}

int archive_metered(struct tx *tx, struct arena *a, const struct cluster *cluster, const struct archive *x)
{
	struct doc project;
	struct str provider = provider_of(cluster, x);
	int64_t bytes = json_number(x->run, "bytes");
	if (bytes <= 0)
		return archive_meter_end(tx, a, x);
	int r = tx_get(tx, a, "project", cluster->doc.parent, &project);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	const struct meter_subject subject = {.org_id = project.parent,
	                                      .group_id = project.id,
	                                      .group_name = project.name,
	                                      .id = cluster->doc.id,
	                                      .name = cluster->doc.name};
	const struct meter_thing thing = {.key = key_of(a, x),
	                                  .sku = arena_printf(a, "%.*s_ONLINE_ARCHIVE_STORAGE", STR_ARG(provider)),
	                                  .provider = provider,
	                                  .region = json_field(x->run, "region"),
	                                  .amount = (bytes + KB - 1) / KB};
	const struct meter_observation o = {
	        .prefixes = thing.key.p, .things = &thing, .count = 1, .at_ms = clock_now_ms()};
	return meter_observe(tx, a, &subject, &o);
}
