/* Resource policies: written by owners, checked where they are written, and held against what exists. Get, update and
 * delete are the generic verbs with the hooks below; enforce.c keeps them in force. */
#include "api/policies/policies.h"
#include "api/kit/verbs.h"
#include "api/policies/policies.h"

#include "base/clock.h"
#include "base/id.h"
#include "call/service.h"
#include "trail/events.h"

#include <errno.h>

#define PER_ORGANIZATION 50
#define PER_RESOURCE_POLICY 10
#define TEXT_MAX 32768      /* bytes of one resource policy */
#define TEXT_ALL_MAX 131072 /* of an organization's: every check of a change parses them all */
#define NAME_MAX_LENGTH 128
#define DESCRIPTION_MAX_LENGTH 1024
#define PAGE 200

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

/* Every fault of every policy, each with its place. */
static int fail_faults(struct call *c, const struct policy_faults *faults, size_t count)
{
	struct buf b = {0};
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < faults[i].count; k++) {
			const struct policy_fault *f = &faults[i].list[k];
			buf_printf(&b, "%spolicies[%zu].body: line %u, column %u: %.*s", b.n ? "; " : "", i, f->line,
			           f->column, STR_ARG(f->text));
		}
	if (!b.n)
		return 0;
	int result = call_fail(c, 400, "INVALID_RESOURCE_POLICY", "%.*s.", STR_ARG(buf_view(&b)));
	buf_free(&b);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < faults[i].count; k++) {
			const struct policy_fault *f = &faults[i].list[k];
			call_fail_param(c, arena_printf(c->arena, "policies[%zu].body", i));
			call_fail_param(c, arena_printf(c->arena, "line %u, column %u: %.*s", f->line, f->column,
			                                STR_ARG(f->text)));
		}
	return result;
}

static size_t text_size(const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	size_t bytes = 0;
	for (size_t i = 0; i < json_array_size(list); i++)
		bytes += json_field(json_array_get(list, i), "body").n;
	return bytes;
}

static int policies_check(struct call *c, const json_t *document)
{
	const json_t *list = json_object_get(document, "policies");
	size_t count = json_array_size(list);
	if (count == 0 || count > PER_RESOURCE_POLICY)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "policies", "must have from 1 to 10 policies.");
	struct policy_faults *faults = arena_new_array(c->arena, struct policy_faults, count);
	for (size_t i = 0; i < count; i++) {
		struct str body = json_field(json_array_get(list, i), "body");
		struct policy_statement *statements;
		if (policy_parse(c->arena, body, &statements, &faults[i].list[0]) < 0)
			faults[i].count = 1;
		else
			policy_validate(c->arena, statements, &faults[i]);
	}
	if (text_size(document) > TEXT_MAX)
		return call_fail_field(c, 400, "VALIDATION_ERROR", "policies",
		                       "must have at most 32768 bytes of text in all.");
	return fail_faults(c, faults, count);
}

/* With all others of the organization. */
static int room_check(struct call *c, const json_t *document, struct str id)
{
	struct doc *docs;
	size_t count, bytes = text_size(document);
	int result = tx_list(c->tx, c->arena, "resource_policy", c->org.id, 0, PER_ORGANIZATION, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!str_eq(docs[i].id, id))
			bytes += text_size(doc_json(c->arena, docs[i].body));
	if (bytes <= TEXT_ALL_MAX)
		return 0;
	call_fail(c, 409, "RESOURCE_POLICY_LIMIT_EXCEEDED",
	          "All policies of an organization have at most %d bytes of text; with these it would be %zu.",
	          TEXT_ALL_MAX, bytes);
	return call_fail_param(c, STR("policies"));
}

/* A policy whose text stays keeps its id. */
static void ids_give(json_t *document, const json_t *before)
{
	json_t *list = json_object_get(document, "policies");
	size_t old_count = json_array_size(before);
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *policy = json_array_get(list, i), *kept = NULL;
		for (size_t k = 0; k < old_count && !kept; k++) {
			const json_t *old = json_array_get(before, k);
			bool taken = false;
			for (size_t j = 0; j < i; j++)
				taken |= json_equal(json_object_get(json_array_get(list, j), "id"),
				                    json_object_get(old, "id"));
			if (!taken && json_equal(json_object_get(old, "body"), json_object_get(policy, "body")))
				kept = json_object_get(old, "id");
		}
		if (kept) {
			json_object_set(policy, "id", kept);
		} else {
			struct id id = id_new();
			json_put_z(policy, "id", id.z);
		}
	}
}

/* Who, and when. */
static void stamp(struct call *c, json_t *document, const char *by, const char *date)
{
	char now[CLOCK_TEXT];
	clock_format(clock_now_ms(), now);
	json_put(document, by, json_pack("{s:s, s:s}", "id", c->caller->id, "name", c->caller->name));
	json_put_z(document, date, now);
}

static void complete(struct call *c, json_t *document)
{
	if (json_is_null(json_object_get(document, "description")))
		json_object_del(document, "description");
	json_put_str(document, "orgId", c->org.id);
	json_put_z(document, "version", "v1");
}

static int new_check(struct call *c, const json_t *document)
{
	int result = words_check(c, document);
	if (result == 0)
		result = policies_check(c, document);
	return result < 0 ? result : room_check(c, document, STR_NONE);
}

static int policy_create(struct call *c, json_t *document)
{
	int result = new_check(c, document);
	if (result < 0)
		return result;
	ids_give(document, NULL);
	complete(c, document);
	stamp(c, document, "createdByUser", "createdDate");
	stamp(c, document, "lastUpdatedByUser", "lastUpdatedDate");
	return 0;
}

static int policy_update(struct call *c, const struct doc *old, json_t *document)
{
	const json_t *before = doc_json(c->arena, old->body);
	if (!json_object_get(document, "name")) /* null: as it was */
		json_object_set(document, "name", json_object_get(before, "name"));
	int result = words_check(c, document);
	if (result == 0)
		result = policies_check(c, document);
	if (result == 0)
		result = room_check(c, document, old->id);
	if (result < 0)
		return result;
	ids_give(document, json_object_get(before, "policies"));
	stamp(c, document, "lastUpdatedByUser", "lastUpdatedDate");
	/* The version counts the changes. */
	json_put(document, "version", json_string(arena_printf(c->arena, "v%lld", (long long)old->rev + 1).p));
	return 0;
}

const struct resource_hooks resource_policy_hooks = {.create = policy_create, .update = policy_update};

/* What a create would say, and what it would make as far as that can be known. */
int policies_validate(struct call *c)
{
	json_t *document = doc_json(c->arena, json_text(c->arena, c->body));
	struct str name = json_field(document, "name");
	struct doc taken;
	int result = new_check(c, document);
	if (result == 0)
		result = resource_limit(c, &resource_resource_policy, c->org.id, 1);
	if (result < 0)
		return result;
	if (tx_get_by_name(c->tx, c->arena, "resource_policy", c->org.id, name, &taken) == 0) {
		call_fail(c, 409, "DUPLICATE_NAME", "name: \"%.*s\" is taken. Choose another.", STR_ARG(name));
		return call_fail_param(c, name);
	}
	complete(c, document);
	buf_str(&c->out, json_text(c->arena, document));
	return 0;
}
