/* Resource policies: written by owners, checked where they are written, and held against what exists. Get, update and
 * delete are the generic verbs with the hooks below; enforce.c keeps them in force. */
#include "api/policies/policies.h"
#include "api/kit/verbs.h"
#include "base/id.h"

#define PER_RESOURCE_POLICY 10
#define TEXT_MAX 32768      /* bytes of one resource policy */
#define TEXT_ALL_MAX 131072 /* of an organization's: every check of a change parses them all */
#define NAME_MAX_LENGTH 128
#define DESCRIPTION_MAX_LENGTH 1024

static int words_check(struct call *c, const json_t *document)
{
	struct str name = json_field(document, "name"), description = json_field(document, "description");
	if (!str_trim(name).n || name.n > NAME_MAX_LENGTH)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "name",
		                       "must have from 1 to 128 bytes, not all of them blank.");
	if (description.n > DESCRIPTION_MAX_LENGTH)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "description", "must have at most 1024 bytes.");
	return 0;
}

static size_t text_size(const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	size_t bytes = 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		bytes += json_field(json_array_get(list, i), "body").n;
	return bytes;
}

static void policy_check(struct arena *a, struct str text, struct policy_faults *faults)
{
	struct policy_statement *statements;
	if (policy_parse(a, text, &statements, &faults->list[0]) < 0)
		faults->count = 1;
	else
		policy_validate(a, statements, faults);
}

/* Every fault of every policy is told, each with its place. */
static int policies_check(struct call *c, const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	struct str *parameters =
	        arena_new_array(c->arena, struct str, (size_t)PER_RESOURCE_POLICY * POLICY_FAULTS_MAX * 2);
	size_t count = 0;
	struct buf detail = {0};
	if (json_array_size(list) == 0 || json_array_size(list) > PER_RESOURCE_POLICY)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "policies", "must have from 1 to 10 policies.");
	if (text_size(document) > TEXT_MAX)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "policies",
		                       "must have at most 32768 bytes of text in all.");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct policy_faults faults = {.count = 0};
		policy_check(c->arena, json_field(json_array_get(list, i), "body"), &faults);
		for (size_t k = 0; k < faults.count; k++) {
			const struct policy_fault *f = &faults.list[k];
			struct str path = arena_printf(c->arena, "policies[%zu].body", i),
			           what = arena_printf(c->arena, "line %u, column %u: %.*s", f->line, f->column,
			                               STR_ARG(f->text));
			buf_printf(&detail, "%s%s: %s", detail.n ? "; " : "", path.p, what.p);
			parameters[count++] = path;
			parameters[count++] = what;
		}
	}
	int result = detail.n ? call_fail(c, 400, "INVALID_RESOURCE_POLICY", "%.*s.", STR_ARG(buf_view(&detail))) : 0;
	for (size_t i = 0; i < count; i++)
		call_fail_param(c, parameters[i]);
	buf_free(&detail);
	return result;
}

/* With all others of the organization. */
static int room_check(struct call *c, const json_t *document, struct str id)
{
	struct doc *docs;
	size_t count, bytes = text_size(document);
	int result = tx_list_all(c->tx, c->arena, "resource_policy", c->org.id, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!str_eq(docs[i].id, id))
			bytes += text_size(doc_json(c->arena, docs[i].body));
	if (bytes <= TEXT_ALL_MAX)
		return 0;
	return call_fail_about(c, 409, "RESOURCE_POLICY_LIMIT_EXCEEDED", STR("policies"),
	                       "All policies of an organization have at most %d bytes of text; with these it would be "
	                       "%zu.",
	                       TEXT_ALL_MAX, bytes);
}

/* A policy whose text stays keeps its id. */
static void ids_give(struct call *c, json_t *document, const json_t *before)
{
	json_t *list = json_object_get(document, "policies"), *left = json_clone(c->arena, before);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *policy = json_array_get(list, i);
		struct str body = json_field(policy, "body");
		struct id id = id_new();
		size_t k = 0;
		while (k < json_array_size(left) && !str_eq(json_field(json_array_get(left, k), "body"), body))
			k++;
		if (k < json_array_size(left))
			json_object_set(policy, "id", json_object_get(json_array_get(left, k), "id"));
		else
			json_put_z(policy, "id", id.z);
		json_array_remove(left, k);
	}
}

static int document_check(struct call *c, const json_t *document, struct str id)
{
	int result = words_check(c, document);
	if (result == 0)
		result = policies_check(c, document);
	return result < 0 ? result : room_check(c, document, id);
}

static int policy_create(struct call *c, json_t *document)
{
	int result = document_check(c, document, STR_NONE);
	if (json_is_null(json_object_get(document, "description")))
		json_object_del(document, "description");
	if (result == 0)
		ids_give(c, document, NULL);
	return result;
}

static int policy_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	if (!json_object_get(document, "name")) /* null: as it was */
		json_object_set(document, "name", json_object_get(before, "name"));
	int result = document_check(c, document, old->id);
	if (result < 0)
		return result;
	ids_give(c, document, json_object_get(before, "policies"));
	/* The version counts the changes. */
	json_put_str(document, "version", arena_printf(c->arena, "v%lld", (long long)old->rev + 1));
	return 0;
}

const struct resource_hooks resource_policy_hooks = {.create = policy_create, .update = policy_update};

/* What a create would say, and what it would make as far as that can be known. */
int policies_validate(struct call *c)
{
	json_t *document = json_clone(c->arena, c->body);
	struct str name = json_field(document, "name");
	struct doc taken;
	int result = document_check(c, document, STR_NONE);
	if (result == 0)
		result = resource_limit(c, &resource_resource_policy, c->org.id, 1);
	if (result < 0)
		return result;
	if (tx_get_by_name(c->tx, c->arena, "resource_policy", c->org.id, name, &taken) == 0)
		return call_fail_about(c, 409, "DUPLICATE_NAME", name, "name: \"%.*s\" is taken. Choose another.",
		                       STR_ARG(name));
	if (json_is_null(json_object_get(document, "description")))
		json_object_del(document, "description");
	json_put_str(document, "orgId", c->org.id);
	json_put_z(document, "version", "v1");
	buf_str(&c->out, json_text(c->arena, document));
	return 0;
}
