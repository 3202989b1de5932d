/* Pinned namespaces: tables of a cluster whose series are kept whatever time they take. The calls have a list of names
 * to add, to take away or to put in the place of all; the document has the names. A pinned table need not be there. */
#include "api/metrics/pins.h"

#include "api/kit/verbs.h"
#include "engine/measures.h"

#include <errno.h>

int pins_load(struct tx *tx, struct arena *a, struct str cluster_id, const char ***ret_names, size_t *ret_count)
{
	struct doc d;
	int result = resource_singleton(tx, a, &resource_pinned_namespaces, cluster_id, &d);
	if (result < 0)
		return result;
	const json_t *list = json_object_get(doc_json(a, d.body), "pinnedNamespaces");
	size_t count = json_array_size(list);
	*ret_names = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		(*ret_names)[i] = arena_z(a, json_item(list, i));
	*ret_count = count;
	return 0;
}

static bool is_namespace(struct str name)
{
	struct str database, table;
	return name.n < TABLE_NAME && str_cut(name, '.', &database, &table) && database.n && table.n;
}

static int names_check(struct call *c, const json_t *names)
{
	struct faults faults = {.count = 0};
	for (size_t i = 0; i < json_array_size(names); i++)
		if (!is_namespace(json_item(names, i)))
			faults_add(&faults, c->arena, arena_printf(c->arena, "namespaces[%zu]", i),
			           "must be DATABASE.TABLE, of at most %d bytes", TABLE_NAME - 1);
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int pins_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *names = json_object_get(c->body, "namespaces"), *before;
	bool adds = strcmp(c->op->id, "updatePinnedNamespaces") == 0, takes = strcmp(c->op->id, "unpinNamespaces") == 0;
	json_t *after = json_array();
	int result = names_check(c, names);
	before = json_object_get(doc_json(c->arena, old->body), "pinnedNamespaces");
	for (size_t i = 0; (adds || takes) && i < json_array_size(before); i++)
		if (!takes || !json_has(names, json_item(before, i)))
			json_add_str(after, json_item(before, i));
	for (size_t i = 0; !takes && i < json_array_size(names); i++)
		if (!json_has(after, json_item(names, i)))
			json_add_str(after, json_item(names, i));
	size_t count = json_array_size(after);
	json_object_del(document, "namespaces");
	json_put(document, "pinnedNamespaces", after);
	if (result == 0 && count > TABLES_PINNED_MAX)
		return call_fail_fault(c, STR("namespaces"), "a cluster has at most %d pinned namespaces",
		                       TABLES_PINNED_MAX);
	return result;
}

static int pins_view(struct call *c, const struct doc *d, json_t *entity)
{
	json_put_str(entity, "clusterId", d->parent);
	json_put_str(entity, "groupId", c->group.id);
	return 0;
}

const struct resource_hooks pinned_namespaces_hooks = {.update = pins_update, .view = pins_view};
