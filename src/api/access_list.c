/* The project's IP access list: from where its databases may be reached. As documents of the kind "access_entry"
 * below the project, named by their canonical value, so that 10.0.0.1 and 10.0.0.1/32 are one entry and adding it
 * again changes its comment and its end.
 *
 * A temporary entry has a second document, "access_temporary", with the same id in one list for the whole service,
 * which is what the sweep reads. Between its end and the sweep an entry is passed over by every read. A project's
 * list is bounded by its limit (a thousand at most), so a read looks at all of it. */
#include "api/access_list.h"

#include "api/access_entries.h"
#include "api/access_jobs.h"
#include "api/policy_enforce.h"
#include "api/project_limits.h"
#include "api/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "gate/audit.h"

#include <errno.h>

int access_list_list(struct call *c);
int access_list_add(struct call *c);
int access_list_get(struct call *c);
int access_list_remove(struct call *c);
int access_list_status(struct call *c);

extern const struct resource resource_access_entry;

#define LIMIT "svc.project.security.networkAccess.entries"
#define DAYS_MAX 7
#define DAY_MS INT64_C(86400000)
#define PAGE 500

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

static void entry_write(struct call *c, const struct doc *d)
{
	entity_write(c, &c->out, d->body, resource_access_entry.self, "entryValue", network_key(c->arena, d->name),
	             c->is_list);
}

/* All entries of the project that are in force. */
static int entries_read(struct call *c, struct doc **ret_docs, size_t *ret_count)
{
	struct doc *docs;
	size_t count, kept = 0;
	int64_t total;
	int result = tx_count(c->tx, "access_entry", c->group.id, &total);
	if (result == 0)
		result = tx_list(c->tx, c->arena, "access_entry", c->group.id, 0, total, &docs, &count);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		if (!is_over(c->arena, &docs[i]))
			docs[kept++] = docs[i];
	*ret_docs = docs;
	*ret_count = kept;
	return 0;
}

int access_list_list(struct call *c)
{
	struct doc *docs;
	size_t count;
	int64_t from = list_offset(c);
	int result = entries_read(c, &docs, &count);
	if (result < 0)
		return result;
	list_begin(c);
	for (int64_t i = from; i < (int64_t)count && i < from + c->page_size; i++)
		entry_write(c, &docs[i]);
	list_end(c, (int64_t)count, from + c->page_size < (int64_t)count);
	return 0;
}

static int entry_delete(struct tx *tx, struct str id)
{
	int result = tx_delete(tx, "access_temporary", id);
	if (result == 0 || result == -ENOENT)
		result = tx_delete(tx, "access_entry", id);
	return result;
}

/* The end of an entry whose time is over: an event of the service's own. */
static int expire(struct tx *tx, struct arena *a, struct str id)
{
	struct doc entry, group;
	int result = tx_get(tx, a, "access_entry", id, &entry);
	if (result == -ENOENT) /* its project is gone */
		return tx_delete(tx, "access_temporary", id);
	if (result == 0)
		result = entry_delete(tx, id);
	if (result == 0)
		result = tx_get(tx, a, "project", entry.parent, &group);
	if (result == 0)
		result = access_ask(tx, a, group.id);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	return audit_service_field(tx, a, "NETWORK_PERMISSION_ENTRY_REMOVED", group.parent, group.id, "whitelistEntry",
	                           entry_value(a, &entry));
}

/* Entries that are over count for nothing: neither against the limit nor as ones to change. */
static int entries_tidy(struct call *c)
{
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_count(c->tx, "access_entry", c->group.id, &total);
	if (result == 0)
		result = tx_list(c->tx, c->arena, "access_entry", c->group.id, 0, total, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (is_over(c->arena, &docs[i]))
			result = expire(c->tx, c->arena, docs[i].id);
	return result;
}

/* The entry's place in the list of temporary ones. */
static int temporary_set(struct call *c, struct str id, int64_t until_ms)
{
	int result = tx_delete(c->tx, "access_temporary", id);
	if (result == -ENOENT)
		result = 0;
	if (result < 0 || !until_ms)
		return result;
	struct doc d = {.kind = STR("access_temporary"),
	                .id = id,
	                .created_ms = clock_now_ms(),
	                .body = arena_printf(c->arena, "{\"untilMs\":%lld}", (long long)until_ms)};
	return tx_insert(c->tx, &d);
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
	return result < 0 ? result : temporary_set(c, d.id, w->until_ms);
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
		result = limit_enforce(c, LIMIT, fresh);
	for (size_t i = 0; result == 0 && i < count; i++) {
		bool is_new;
		result = i ? audit_next(c) : 0;
		if (result == 0)
			result = entry_put(c, &list[i], &is_new);
		if (result == 0 && !is_new)
			audit_type(c, "NETWORK_PERMISSION_ENTRY_UPDATED");
		audit_field(c, "whitelistEntry", list[i].value);
	}
	if (result == 0)
		result = access_changed(c, NULL, 0);
	return result < 0 ? result : access_list_list(c);
}

/* The entry that the path names, in force. */
static int entry_load(struct call *c, struct doc *ret_doc)
{
	struct str value = call_path(c, "entryValue");
	struct wanted w = {.name = value};
	struct cidr network;
	struct doc d;
	if (network_parse(c->arena, value, &network))
		wanted_network(c->arena, &network, &w);
	int result = tx_get_by_name(c->tx, c->arena, "access_entry", c->group.id, w.name, &d);
	if (result == 0 && is_over(c->arena, &d))
		result = -ENOENT;
	if (result == 0)
		*ret_doc = d;
	return result;
}

int access_list_get(struct call *c)
{
	struct doc d;
	int result = entry_load(c, &d);
	if (result == 0)
		entry_write(c, &d);
	return result;
}

int access_list_remove(struct call *c)
{
	struct doc d;
	int result = entry_load(c, &d);
	if (result < 0)
		return result;
	audit_field(c, "whitelistEntry", entry_value(c->arena, &d));
	result = entry_delete(c->tx, d.id);
	return result < 0 ? result : access_changed(c, NULL, 0);
}

/* Whether the project's clusters have taken the list over. */
int access_list_status(struct call *c)
{
	static const char *const texts[] = {[ACCESS_ACTIVE] = "{\"STATUS\":\"ACTIVE\"}",
	                                    [ACCESS_PENDING] = "{\"STATUS\":\"PENDING\"}",
	                                    [ACCESS_FAILED] = "{\"STATUS\":\"FAILED\"}"};
	enum access_state state;
	struct doc d;
	int result = entry_load(c, &d);
	if (result == 0)
		result = access_state(c->tx, c->arena, c->group.id, &state);
	if (result == 0)
		entity_write(c, &c->out, str_of(texts[state]), c->op, "entryValue", network_key(c->arena, d.name),
		             false);
	return result;
}

/* The sweep. */

static int64_t until_of(struct arena *a, const struct doc *temporary)
{
	return json_integer_value(json_object_get(doc_json(a, temporary->body), "untilMs"));
}

/* One walk over the temporary entries. With a writing tx those that are over are deleted. Tells when the next one is
 * due: now, when it only looked and one is. */
static int walk(struct tx *tx, bool writes, int64_t *ret_next_ms)
{
	struct arena *a = arena_new();
	int64_t next = INT64_MAX, now = clock_now_ms(), from = 0;
	size_t count = PAGE;
	int result = 0;
	while (result == 0 && count == PAGE) {
		struct doc *docs;
		int64_t gone = 0;
		result = tx_list(tx, a, "access_temporary", STR_NONE, from, PAGE, &docs, &count);
		for (size_t i = 0; result == 0 && i < count; i++) {
			int64_t until = until_of(a, &docs[i]);
			if (until <= now && writes) {
				result = expire(tx, a, docs[i].id);
				gone++;
			} else if (until < next) {
				next = until;
			}
		}
		from += PAGE - gone;
		arena_reset(a);
	}
	arena_free(a);
	if (result == 0)
		*ret_next_ms = next;
	return result;
}

static int sweep_run(struct tx *tx, void *ctx)
{
	return walk(tx, true, ctx);
}

void access_list_sweep(struct store *store, struct tx *reader, struct access_sweep *sweep)
{
	int64_t next_ms, now = clock_now_ms();
	uint64_t version = store_data_version(reader);
	if (version == sweep->version && now < sweep->next_ms)
		return;
	int result = walk(reader, false, &next_ms);
	if (result == 0 && next_ms <= now)
		result = store_write_wait(store, sweep_run, &next_ms);
	if (result < 0) {
		log_error("access list: the sweep of temporary entries failed with %d", result);
		return;
	}
	sweep->version = version;
	sweep->next_ms = next_ms;
}
