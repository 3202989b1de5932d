/* Whether the threshold of slow statements is managed: one document a project. A change reaches running servers by a
 * reload, with the cluster's own job. What is answered is a boolean and the changes have paths of their own, so no
 * verb does it. */
#include "api/advisor/advisor.h"
#include "api/advisor/evidence.h"
#include "api/kit/verbs.h"

#include <errno.h>

#define MANAGED "{\"managed\":true}" /* as long as nobody says otherwise */
#define FIXED "{\"managed\":false}"

static int threshold_load(struct tx *tx, struct arena *a, struct str group_id, struct doc *ret_doc, bool *ret_managed)
{
	int result = tx_get(tx, a, resource_slow_threshold.kind, group_id, ret_doc);
	if (result == -ENOENT) {
		*ret_doc = (struct doc){.kind = str_of(resource_slow_threshold.kind),
		                        .id = group_id,
		                        .parent = group_id,
		                        .body = STR(MANAGED)};
		result = 0;
	}
	if (result == 0)
		*ret_managed = json_flag(doc_json(a, ret_doc->body), "managed");
	return result;
}

int slow_threshold_get(struct call *c)
{
	struct doc d;
	bool managed = true;
	int result = threshold_load(c->tx, c->arena, c->group.id, &d, &managed);
	if (result == 0)
		json_bool(&c->out, managed);
	return result;
}

static int threshold_set(struct call *c, bool managed)
{
	struct doc d;
	bool before = managed;
	int result = threshold_load(c->tx, c->arena, c->group.id, &d, &before);
	if (result < 0 || before == managed)
		return result;
	d.body = managed ? STR(MANAGED) : STR(FIXED);
	result = doc_put(c->tx, &d);
	return result < 0 ? result : clusters_walk_group(c->tx, c->arena, c->group.id, cluster_look_again, NULL);
}

int slow_threshold_enable(struct call *c)
{
	return threshold_set(c, true);
}

int slow_threshold_disable(struct call *c)
{
	return threshold_set(c, false);
}

static int threshold_wanted(struct tx *tx, struct arena *a, const struct cluster *cluster, struct cluster_want *want)
{
	struct doc d;
	bool managed = true;
	int result = threshold_load(tx, a, cluster->doc.parent, &d, &managed);
	if (result == 0)
		want->engine.slow_fixed = !managed;
	return result;
}

const struct cluster_part advisor_part = {.wanted = threshold_wanted, .removed = evidence_removed};
