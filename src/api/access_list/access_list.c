/* The project's IP access list: from where its databases may be reached. As documents of the kind "access_entry"
 * below the project, named by their canonical value, so that 10.0.0.1 and 10.0.0.1/32 are one entry and adding it
 * again changes its comment and its end.
 *
 * A temporary entry has a job that is due at its end; until that has run, every read passes over it. A project's list
 * is bounded by its limit (a thousand at most), so a read looks at all of it. */
#include "api/access_list/access_list.h"

#include "api/clusters/clusters.h"
#include "api/credentials/credentials.h"
#include "api/kit/verbs.h"
#include "api/policies/policies.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "trail/events.h"

#include <errno.h>

#define ENTRY_END_JOB "access_entry_end"
#define DAYS_MAX 7
#define DAY_MS INT64_C(86400000)

/* One entry of a body, checked. */
struct wanted {
	struct str name;  /* canonical */
	struct str value; /* as shown, and in the path */
	bool is_group;    /* an AWS security group */
	bool is_address;
	struct str address;
	struct str comment;
	int64_t until_ms; /* 0: for good */
};

static bool is_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

/* sg- and 8 or 17 hexadecimal digits, after the account's twelve digits where it is another's. */
static bool is_security_group(struct str text)
{
	struct str account, rest;
	if (str_cut(text, '/', &account, &rest)) {
		uint64_t ignored;
		if (account.n != 12 || !str_to_u64(account, UINT64_MAX, &ignored))
			return false;
		text = rest;
	}
	if (!str_starts(text, STR("sg-")))
		return false;
	struct str digits = {text.p + 3, text.n - 3};
	return (digits.n == 8 || digits.n == 17) && is_hex(digits);
}

static void wanted_network(struct arena *a, const struct cidr *network, struct wanted *ret)
{
	char text[IP_TEXT];
	cidr_format(network, text);
	ret->name = arena_dup(a, str_of(text));
	cidr_format_full(network, text);
	ret->value = arena_dup(a, str_of(text));
	ret->is_address = cidr_is_address(network);
	if (ret->is_address) {
		ip_format_full(&network->net, text);
		ret->address = arena_dup(a, str_of(text));
	}
}

static bool wanted_group(struct call *c, const json_t *entry, size_t index, struct faults *faults, struct wanted *ret)
{
	struct str group = json_field(entry, "awsSecurityGroup");
	if (json_field(entry, "cidrBlock").p || json_field(entry, "ipAddress").p) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu]", index),
		           "must have exactly one of awsSecurityGroup, cidrBlock and ipAddress");
		return false;
	}
	if (!is_security_group(group)) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu].awsSecurityGroup", index),
		           "must be the id of a security group, like sg-0a1b2c3d");
		return false;
	}
	ret->name = ret->value = group;
	ret->is_group = true;
	return true;
}

/* What is wrong is added to the faults. */
static void wanted_read(struct call *c, const json_t *entry, size_t index, struct faults *faults, struct wanted *ret)
{
	struct str until = json_field(entry, "deleteAfterDate");
	struct cidr network;
	int64_t now = clock_now_ms();
	if (json_field(entry, "awsSecurityGroup").p) {
		if (!wanted_group(c, entry, index, faults, ret))
			return;
	} else if (!json_field(entry, "cidrBlock").p && !json_field(entry, "ipAddress").p) {
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu]", index),
		           "must have exactly one of awsSecurityGroup, cidrBlock and ipAddress");
		return;
	} else if (network_read(c, entry, index, faults, &network)) {
		wanted_network(c->arena, &network, ret);
	}
	ret->comment = json_field(entry, "comment");
	if (!until.p)
		return;
	if (!clock_parse(until, &ret->until_ms) || ret->until_ms <= now || ret->until_ms > now + DAYS_MAX * DAY_MS)
		faults_add(faults, c->arena, arena_printf(c->arena, "[%zu].deleteAfterDate", index),
		           "must be a time in the future, at most %d days ahead", DAYS_MAX);
}

static struct str entry_text(struct call *c, const struct wanted *w)
{
	char until[CLOCK_TEXT];
	struct buf b = {0};
	json_open(&b, '{');
	json_key(&b, w->is_group ? "awsSecurityGroup" : "cidrBlock");
	json_str(&b, w->value);
	if (w->comment.n) {
		json_key(&b, "comment");
		json_str(&b, w->comment);
	}
	if (w->until_ms) {
		clock_format(w->until_ms, until);
		json_key(&b, "deleteAfterDate");
		json_z(&b, until);
	}
	json_key(&b, "groupId");
	json_str(&b, c->group.id);
	if (w->is_address) {
		json_key(&b, "ipAddress");
		json_str(&b, w->address);
	}
	json_close(&b, '}');
	struct str text = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return text;
}

/* Whether the entry's time is over. */
static bool is_over(struct arena *a, const struct doc *d)
{
	int64_t until;
	/* Most entries are for good and need no parser to say so. */
	if (!memmem(d->body.p, d->body.n, "\"deleteAfterDate\"", 17))
		return false;
	struct str text = json_field(doc_json(a, d->body), "deleteAfterDate");
	return text.p && clock_parse(text, &until) && until <= clock_now_ms();
}

/* As events tell it: the network in full, or the security group. */
static struct str entry_value(struct arena *a, const struct doc *d)
{
	struct cidr network;
	char text[IP_TEXT];
	if (!cidr_parse(d->name, &network))
		return d->name;
	cidr_format_full(&network, text);
	return arena_dup(a, str_of(text));
}

static struct str entry_key(struct call *c, const struct doc *d)
{
	return network_key(c->arena, d->name);
}

static bool entry_hides(struct call *c, const struct doc *d)
{
	return is_over(c->arena, d);
}

static int entry_delete(struct tx *tx, struct str id)
{
	int result = tx_jobs_cancel(tx, ENTRY_END_JOB, id);
	return result < 0 ? result : tx_delete(tx, "access_entry", id);
}

/* The end of an entry whose time is over: an event of the service's own. */
static int expire(struct tx *tx, struct arena *a, const struct doc *entry)
{
	struct doc group;
	int result = entry_delete(tx, entry->id);
	if (result == 0)
		result = tx_get(tx, a, "project", entry->parent, &group);
	if (result == 0)
		result = access_ask(tx, a, group.id);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return event_service_field(tx, a, "NETWORK_PERMISSION_ENTRY_REMOVED", group.parent, group.id, "whitelistEntry",
	                           entry_value(a, entry));
}

/* Entries that are over count for nothing: neither against the limit nor as ones to change. */
static int entries_tidy(struct call *c)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(c->tx, c->arena, "access_entry", c->group.id, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (is_over(c->arena, &docs[i]))
			result = expire(c->tx, c->arena, &docs[i]);
	return result;
}

/* The job that ends a temporary entry. */
static int end_ask(struct tx *tx, struct str id, int64_t until_ms)
{
	struct job job = {.kind = STR(ENTRY_END_JOB), .subject = id, .due_ms = until_ms};
	int result = tx_jobs_cancel(tx, ENTRY_END_JOB, id);
	return result < 0 || !until_ms ? result : tx_job_add(tx, &job);
}

static int entry_put(struct call *c, const struct wanted *w, bool *ret_new)
{
	struct doc d;
	int result = tx_get_by_name(c->tx, c->arena, "access_entry", c->group.id, w->name, &d);
	*ret_new = result == -ENOENT;
	if (result == 0) {
		d.body = entry_text(c, w);
		result = tx_update(c->tx, &d);
	} else if (result == -ENOENT) {
		struct id id = id_new();
		d = (struct doc){.kind = STR("access_entry"),
		                 .id = arena_dup(c->arena, id_str(&id)),
		                 .parent = c->group.id,
		                 .name = w->name,
		                 .created_ms = clock_now_ms(),
		                 .body = entry_text(c, w)};
		result = tx_insert(c->tx, &d);
	}
	return result < 0 ? result : end_ask(c->tx, d.id, w->until_ms);
}

/* How many of them the project does not have yet; each counts once. */
static int count_new(struct call *c, const struct wanted *list, size_t count, int64_t *ret_count)
{
	int64_t fresh = 0;
	struct doc d;
	for (size_t i = 0; i < count; i++) {
		size_t j = 0;
		while (j < i && !str_eq(list[j].name, list[i].name))
			j++;
		int result = j < i ? 0 : tx_get_by_name(c->tx, c->arena, "access_entry", c->group.id, list[i].name, &d);
		if (result < 0 && result != -ENOENT)
			return result;
		fresh += result == -ENOENT;
	}
	*ret_count = fresh;
	return 0;
}

/* The organization's policies may forbid some of them. */
static int policy_check(struct call *c, const struct wanted *list, size_t count)
{
	struct str *names = arena_new_array(c->arena, struct str, count + 1);
	for (size_t i = 0; i < count; i++)
		names[i] = list[i].name;
	return policy_check_access_list(c, names, count);
}

int access_list_add(struct call *c)
{
	struct faults faults = {.count = 0};
	size_t count = json_array_size(c->body);
	struct wanted *list = arena_new_array(c->arena, struct wanted, count + 1);
	int64_t fresh;
	if (count == 0 || count > 1000)
		faults_add(&faults, c->arena, STR_NONE, "must have from 1 to 1000 entries");
	for (size_t i = 0; i < count && count <= 1000; i++)
		wanted_read(c, json_array_get(c->body, i), i, &faults, &list[i]);
	if (faults.count)
		return call_fail_faults(c, &faults);
	int result = entries_tidy(c);
	if (result == 0)
		result = policy_check(c, list, count);
	if (result == 0)
		result = count_new(c, list, count, &fresh);
	if (result == 0)
		result = limit_enforce(c, resource_access_entry.project_limit, fresh);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool is_new;
		result = i ? event_next(c) : 0;
		if (result == 0)
			result = entry_put(c, &list[i], &is_new);
		if (result == 0 && !is_new)
			event_set_type(c, "NETWORK_PERMISSION_ENTRY_UPDATED");
		event_field(c, "whitelistEntry", list[i].value);
	}
	if (result == 0)
		result = access_changed(c, NULL, 0);
	return result < 0 ? result : verb_list(c);
}

static int entry_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str value = call_path(c, "entryValue");
	struct wanted w = {.name = value};
	struct cidr network;
	if (network_parse(c->arena, value, &network))
		wanted_network(c->arena, &network, &w);
	return tx_get_by_name(c->tx, c->arena, r->kind, c->group.id, w.name, ret_doc);
}

static int entry_remove(struct call *c, const struct doc *d)
{
	event_field(c, "whitelistEntry", entry_value(c->arena, d));
	return access_changed(c, NULL, 0);
}

static int entry_gone(struct tx *tx, struct arena *a, const struct doc *d)
{
	return tx_jobs_cancel(tx, ENTRY_END_JOB, d->id);
}

const struct resource_hooks access_entry_hooks = {
        .load = entry_load, .remove = entry_remove, .gone = entry_gone, .hides = entry_hides, .key = entry_key};

/* Whether the project's clusters have taken the list over. */
int access_list_status(struct call *c)
{
	static const char *const texts[] = {[ACCESS_ACTIVE] = "{\"STATUS\":\"ACTIVE\"}",
	                                    [ACCESS_PENDING] = "{\"STATUS\":\"PENDING\"}",
	                                    [ACCESS_FAILED] = "{\"STATUS\":\"FAILED\"}"};
	enum access_state state;
	struct doc d;
	int result = resource_load(c, &resource_access_entry, &d);
	if (result == 0)
		result = access_state(c->tx, c->arena, c->group.id, &state);
	if (result == 0)
		entity_write(c, &c->out, str_of(texts[state]), c->op, "entryValue", network_key(c->arena, d.name),
		             false);
	return result;
}

/* Jobs. */

static int end_save(struct tx *tx, struct job_run *r)
{
	struct doc entry;
	int result = tx_get(tx, r->arena, "access_entry", r->job.subject, &entry);
	/* It may have been given more time meanwhile: then another job is due. */
	if (result < 0 || !is_over(r->arena, &entry))
		return result == -ENOENT ? 0 : result;
	return expire(tx, r->arena, &entry);
}

static int end_step(struct job_run *r)
{
	r->save = end_save;
	return JOB_DONE;
}

/* Versions before 0.2 kept temporary entries in a list of their own, which the service walked: they get their jobs. */
static int adopt_save(struct tx *tx, struct job_run *r)
{
	struct doc *docs;
	size_t count;
	int result = tx_list_all(tx, r->arena, "access_temporary", STR_NONE, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++) {
		const json_t *body = doc_json(r->arena, docs[i].body);
		result = end_ask(tx, docs[i].id, json_integer_value(json_object_get(body, "untilMs")));
		if (result == 0)
			result = tx_delete(tx, "access_temporary", docs[i].id);
	}
	return result;
}

static int adopt_step(struct job_run *r)
{
	r->save = adopt_save;
	return JOB_DONE;
}

static const struct job_kind kinds[] = {
        {.name = ENTRY_END_JOB, .step = end_step},
        {.name = "access_list_adopt", .step = adopt_step, .period_ms = 3600000},
};
const struct job_kinds access_list_jobs = JOB_KINDS(kinds);
