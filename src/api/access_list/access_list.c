/* The project's IP access list: from where its databases may be reached. As documents of the kind "access_entry"
 * below the project, named by their canonical value, so that 10.0.0.1 and 10.0.0.1/32 are one entry and adding it
 * again changes its comment and its end.
 *
 * A temporary entry has a job that is due at its end; until that has run, every read passes over it. A project's list
 * is bounded by its limit (a thousand at most), so a read looks at all of it. */
#include "api/access_list/access_list.h"

#include "api/clusters/clusters.h"
#include "api/kit/networks.h"
#include "api/kit/temporary.h"
#include "api/kit/verbs.h"
#include "api/policies/policies.h"
#include "trail/events.h"

#include <errno.h>

#define ENTRY_END_JOB "access_entry_end"

/* One entry of a body, checked. */
struct wanted {
	struct str name; /* canonical */
	json_t *document;
	int64_t end_ms; /* 0: it has none */
};

/* sg- and 8 or 17 hexadecimal digits, after the account's twelve digits where it is another's. */
static bool is_security_group(struct arena *a, struct str text)
{
	struct str account, group;
	uint64_t ignored;
	if (!str_cut(text, '/', &account, &group))
		group = text;
	else if (account.n != 12 || !str_to_u64(account, UINT64_MAX, &ignored))
		return false;
	if (!str_starts(group, STR("sg-")))
		return false;
	size_t digits = strspn(arena_z(a, group) + 3, "0123456789abcdef");
	return digits + 3 == group.n && (digits == 8 || digits == 17);
}

/* What is wrong is added to the faults. */
static void wanted_read(struct call *c, const json_t *entry, size_t index, struct faults *faults, struct wanted *ret)
{
	struct str group = json_field(entry, "awsSecurityGroup"), comment = json_field(entry, "comment");
	bool has_network = json_field(entry, "cidrBlock").p || json_field(entry, "ipAddress").p;
	struct cidr network;
	ret->document = json_keep(c->arena, json_object());
	json_put_str(ret->document, "groupId", c->group.id);
	if (has_network == (group.p != NULL)) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu]", index),
		           "must have exactly one of awsSecurityGroup, cidrBlock and ipAddress");
		return;
	}
	if (group.p && !is_security_group(c->arena, group)) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu].awsSecurityGroup", index),
		           "must be the id of a security group, like sg-0a1b2c3d");
		return;
	}
	if (group.p) {
		ret->name = group;
		json_put_str(ret->document, "awsSecurityGroup", group);
	} else if (network_read(c, entry, index, faults, &network)) {
		ret->name = network_name(c->arena, &network);
		network_put(c->arena, &network, ret->document);
	}
	if (comment.n)
		json_put_str(ret->document, "comment", comment);
	ret->end_ms = temporary_read(c->arena, json_field(entry, TEMPORARY_FIELD),
	                             arena_printf(c->arena, "[%zu]." TEMPORARY_FIELD, index), faults);
	if (ret->end_ms)
		json_put_time(ret->document, TEMPORARY_FIELD, ret->end_ms);
}

/* As events tell it: the network in full, or the security group. */
static struct str entry_value(struct arena *a, struct str name)
{
	struct cidr network;
	return cidr_parse(name, &network) ? network_text(a, &network, false) : name;
}

static bool entry_hides(struct call *c, const struct doc *d)
{
	return temporary_is_over(c->arena, d);
}

/* The end of an entry whose time is over: an event of the service's own. */
static int expire(struct tx *tx, struct arena *a, const struct doc *entry)
{
	struct doc group;
	int result = resource_take_away(tx, a, &resource_access_entry, entry);
	if (result == 0)
		result = tx_get(tx, a, "project", entry->parent, &group);
	if (result == 0)
		result = access_ask(tx, a, group.id);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return event_service_field(tx, a, "NETWORK_PERMISSION_ENTRY_REMOVED", group.parent, group.id, "whitelistEntry",
	                           entry_value(a, entry->name));
}

/* Entries that are over count for nothing: neither against the limit nor as ones to change. */
static int entries_tidy(struct call *c)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "access_entry", c->group.id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (temporary_is_over(c->arena, &docs[i]))
			result = expire(c->tx, c->arena, &docs[i]);
	return result;
}

static int entry_put(struct call *c, const struct wanted *w, bool *ret_new)
{
	struct doc d;
	int result = resource_named(c, &resource_access_entry, c->group.id, w->name, &d);
	if (result < 0)
		return result;
	*ret_new = !d.rev;
	d.body = json_text(c->arena, w->document);
	result = resource_put(c->tx, &d, &d);
	return result < 0 ? result : temporary_schedule(c->tx, ENTRY_END_JOB, d.id, w->end_ms);
}

/* How many of them the project does not have yet; each counts once. */
static int count_new(struct call *c, const struct str *names, size_t count, int64_t *ret_count)
{
	int64_t fresh = 0;
	struct doc d;
	struct doc_question *asked = arena_new_array(c->arena, struct doc_question, count + 1);
	for (size_t i = 0; i < count; i++)
		asked[i] = (struct doc_question){.kind = "access_entry", .parent = c->group.id, .name = names[i]};
	tx_read_ahead(c->tx, asked, count);
	for (size_t i = 0; i < count; i++) {
		size_t j = 0;
		while (j < i && !str_eq(names[j], names[i]))
			j++;
		int result = j < i ? 0 : tx_get_by_name(c->tx, c->arena, "access_entry", c->group.id, names[i], &d);
		if (result < 0 && result != -ENOENT)
			return result;
		fresh += result == -ENOENT;
	}
	*ret_count = fresh;
	return 0;
}

int access_list_add(struct call *c)
{
	struct faults faults = {.count = 0};
	size_t count = json_array_size(c->body);
	struct wanted *list = arena_new_array(c->arena, struct wanted, count + 1);
	struct str *names = arena_new_array(c->arena, struct str, count + 1);
	int64_t fresh;
	if (count == 0 || count > 1000)
		faults_add(&faults, c->arena, STR_NONE, "must have from 1 to 1000 entries");
	for (size_t i = 0; i < count && count <= 1000; i++) {
		wanted_read(c, json_array_get(c->body, i), i, &faults, &list[i]);
		names[i] = list[i].name;
	}
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = entries_tidy(c);
	if (result == 0)
		result = policy_check_access_list(c, names, count);
	if (result == 0)
		result = count_new(c, names, count, &fresh);
	if (result == 0)
		result = limit_enforce(c, resource_access_entry.project_limit, fresh);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool is_new = false;
		result = i ? event_next(c) : 0;
		if (result == 0)
			result = entry_put(c, &list[i], &is_new);
		if (result == 0 && !is_new)
			event_set_type(c, "NETWORK_PERMISSION_ENTRY_UPDATED");
		event_field(c, "whitelistEntry", entry_value(c->arena, names[i]));
	}
	if (result == 0)
		result = access_changed(c, NULL, 0);
	return result < 0 ? result : verb_list(c);
}

static int entry_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str name = call_path(c, "entryValue");
	struct cidr network;
	if (network_parse(c->arena, name, &network))
		name = network_name(c->arena, &network);
	return tx_get_by_name(c->tx, c->arena, r->kind, c->group.id, name, ret_doc);
}

static int entry_remove(struct call *c, const struct doc *d)
{
	event_field(c, "whitelistEntry", entry_value(c->arena, d->name));
	return access_changed(c, NULL, 0);
}

static int entry_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return tx_jobs_cancel(tx, ENTRY_END_JOB, d->id);
}

const struct resource_hooks access_entry_hooks = {
        .load = entry_load, .remove = entry_remove, .gone = entry_gone, .hides = entry_hides, .key = network_doc_key};

/* Whether the project's clusters have taken the list over. */
static int status_view(struct call *c, const struct doc *d, json_t *entity)
{
	static const char *const names[] = {
	        [ACCESS_ACTIVE] = "ACTIVE", [ACCESS_PENDING] = "PENDING", [ACCESS_FAILED] = "FAILED"};
	enum access_state state;
	int result = access_state(c->tx, c->arena, c->group.id, &state);
	json_object_clear(entity);
	if (result == 0)
		json_put_z(entity, "STATUS", names[state]);
	return result;
}

const struct resource_hooks access_entry_status_hooks = {
        .load = entry_load, .hides = entry_hides, .key = network_doc_key, .view = status_view};

/* Jobs. */

static int end_save(struct tx *tx, struct job_run *r)
{
	struct doc entry;
	int result = temporary_due(tx, r, "access_entry", &entry);
	return result < 0 ? (result == -ENOENT ? 0 : result) : expire(tx, r->arena, &entry);
}

/* Versions before 0.2 kept temporary entries in a list of their own, which the service walked: they get their jobs. */
static int adopt_save(struct tx *tx, struct job_run *r)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(tx, r->arena, "access_temporary", STR_NONE, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *body = doc_json(r->arena, docs[i].body);
		result = temporary_schedule(tx, ENTRY_END_JOB, docs[i].id, json_number(body, "untilMs"));
		if (result == 0)
			result = tx_delete(tx, "access_temporary", docs[i].id);
	}
	return result;
}

static const struct job_kind kinds[] = {
        {.name = ENTRY_END_JOB, .save = end_save},
        {.name = "access_list_adopt", .save = adopt_save, .period_ms = 3600000},
};
const struct job_kinds access_list_jobs = JOB_KINDS(kinds);
