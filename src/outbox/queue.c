/* What writes do to the queue: they add messages, as many as there is room for, and let records go. */
#include "outbox/queue.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "outbox/hourly.h"
#include "outbox/outbox.h"
#include "store/seal.h"

#include <errno.h>
#include <stdatomic.h>

#define PAGE 256
#define COST_BYTES 4096  /* of a message that count as one more */
#define WAITING_MAX 1000 /* messages of one receiver */
#define RECORDS_MAX 1000 /* of one keeper, until those that are over are looked for among those that wait */
#define RECORDS_KEPT 100 /* of messages that are over */
#define TENANT_MAX 5000  /* messages of one tenant */
#define DROP_LOG_US INT64_C(1000000)

/* Of the process: writes know no outbox. */
static atomic_uint_fast64_t dropped_count;

uint64_t queue_dropped(void)
{
	return atomic_load(&dropped_count);
}

int queue_delete(struct tx *tx, const char *kind, struct str id)
{
	int r = tx_delete(tx, kind, id);
	return r == -ENOENT ? 0 : r;
}

static struct str receiver_id(struct arena *a, const struct outbox_message *m)
{
	char hex[65];
	sha256_hex(arena_printf(a, "%.*s\n%.*s", STR_ARG(m->tenant), STR_ARG(m->receiver)), hex);
	return arena_dup(a, (struct str){hex, ID_LEN});
}

/* Deletes records of a page that are over. Returns how many, or negative. */
static int over_delete(struct tx *tx, struct arena *a, const struct doc *records, size_t count)
{
	int gone = 0;
	for (size_t i = 0; i < count; i++) {
		if (str_is(json_field(doc_json(a, records[i].body), "status"), "QUEUED"))
			continue;
		int r = tx_delete(tx, DELIVERY, records[i].id);
		if (r < 0)
			return r;
		gone++;
	}
	return gone;
}

/* All but the last records, and what waits. A page of them is large: each has its content. */
static int records_trim(struct tx *tx, struct str keeper, int64_t count)
{
	int r = 0;
	for (int64_t at = 0, end = count - RECORDS_KEPT; r >= 0 && at < end;) {
		struct arena *a = arena_new();
		struct doc *page;
		size_t n = 0;
		r = tx_list(tx, a, DELIVERY, keeper, at, end - at < PAGE ? end - at : PAGE, &page, &n);
		if (r == 0)
			r = over_delete(tx, a, page, n);
		at += (int64_t)n - (r > 0 ? r : 0);
		end = n ? end - (r > 0 ? r : 0) : at;
		arena_free(a);
	}
	return r < 0 ? r : 0;
}

/* Room for one more record: the oldest go, unless they have not left yet. Two at a time, so that fewer are kept again
 * when many have left. Where what waits for a receiver that fails is before all others, these are looked for behind it,
 * now and then. */
static int record_room(struct tx *tx, struct arena *a, struct str keeper)
{
	int64_t count = 0;
	size_t n = 0;
	struct doc *oldest;
	int r = tx_count(tx, DELIVERY, keeper, &count);
	if (r < 0 || count < RECORDS_KEPT)
		return r;
	if (count >= RECORDS_MAX && count % RECORDS_KEPT == 0)
		return records_trim(tx, keeper, count);
	r = tx_list(tx, a, DELIVERY, keeper, 0, 2, &oldest, &n);
	if (r == 0)
		r = over_delete(tx, a, oldest, n);
	return r < 0 ? r : 0;
}

/* What many receivers are reached through: the mail server, a vendor, a host. */
static struct str via_of(const struct outbox_message *m)
{
	struct str kind = str_of(m->kind);
	return str_is_one_of("EMAIL|SMS", kind) ? kind : m->about;
}

static int receiver_ensure(struct tx *tx, struct arena *a, struct str id, const struct outbox_message *m)
{
	struct doc d;
	int r = tx_get(tx, a, RECEIVER, id, &d);
	if (r != -ENOENT)
		return r;
	json_t *body = json_new(a);
	json_put_str(body, "tenant", m->tenant);
	json_put_str(body, "via", via_of(m));
	json_put(body, "dueMs", json_integer(clock_now_ms()));
	d = (struct doc){.kind = STR(RECEIVER), .id = id, .created_ms = clock_now_ms(), .body = json_text(a, body)};
	return tx_insert(tx, &d);
}

static json_t *record_make(struct arena *a, const struct outbox_message *m, struct str id)
{
	json_t *record = m->record ? json_clone(a, m->record) : json_new(a);
	json_put_str(record, "id", id);
	json_put_z(record, "kind", m->kind);
	json_put_str(record, "receiver", m->about);
	json_put_z(record, "status", "QUEUED");
	json_put(record, "attempts", json_integer(0));
	json_put_time(record, "created", clock_now_ms());
	json_put_time(record, "updated", clock_now_ms());
	if (m->forget)
		json_put(record, "forget", json_true());
	return record;
}

/* A flood must not fill the log as well. */
static int drop(const char *kind, struct str about, const char *why)
{
	static _Atomic int64_t logged_us;
	int64_t now = clock_mono_us(), before = atomic_load(&logged_us);
	atomic_fetch_add(&dropped_count, 1);
	if ((!before || now - before > DROP_LOG_US) && atomic_compare_exchange_strong(&logged_us, &before, now))
		log_error("outbox: %s to %.*s: %s; dropped", kind, STR_ARG(about), why);
	return 0;
}

int outbox_drop(const char *kind, struct str about)
{
	return drop(kind, about, "too many messages are waiting already");
}

/* Letters without a record are told apart by their subjects; those with one are of alerts. */
static bool too_many_letters(struct arena *a, const struct outbox_message *m)
{
	return strcmp(m->kind, "EMAIL") == 0 && !hourly_take(a, m->tenant, arena_lower(a, m->about),
	                                                     m->forget ? json_field(m->content, "subject") : STR_NONE);
}

static int message_insert(struct tx *tx, struct arena *a, const struct outbox_message *m, struct str receiver,
                          struct str content)
{
	struct doc d = doc_new(a, DELIVERY, m->keeper, m->key, STR_NONE);
	d.body = json_text(a, record_make(a, m, d.id));
	d.secret = doc_seal(a, &d, content);
	struct doc waiting = {
	        .kind = STR(MESSAGE), .id = d.id, .parent = receiver, .created_ms = d.created_ms, .body = STR("{}")};
	int r = tx_insert(tx, &d);
	if (r == 0)
		r = tx_insert(tx, &waiting);
	waiting.kind = STR(WAITING);
	waiting.parent = m->tenant;
	if (r == 0)
		r = tx_insert(tx, &waiting);
	return r < 0 ? r : receiver_ensure(tx, a, receiver, m);
}

int outbox_add(struct tx *tx, struct arena *a, const struct outbox_message *m)
{
	struct str receiver = receiver_id(a, m), content = json_text(a, m->content);
	unsigned cost = 1 + (unsigned)(content.n / COST_BYTES);
	struct doc old;
	int64_t count = 0, of_tenant = 0;
	int r = m->key.n ? tx_get_by_name(tx, a, DELIVERY, m->keeper, m->key, &old) : -ENOENT;
	if (r != -ENOENT)
		return r;
	if (m->room && *m->room < cost)
		return outbox_drop(m->kind, m->about);
	r = tx_count(tx, MESSAGE, receiver, &count);
	if (r == 0)
		r = tx_count(tx, WAITING, m->tenant, &of_tenant);
	if (r < 0)
		return r;
	if (count >= WAITING_MAX || of_tenant >= TENANT_MAX)
		return outbox_drop(m->kind, m->about);
	if (too_many_letters(a, m))
		return drop(m->kind, m->about, "the address has had too many letters within an hour");
	r = record_room(tx, a, m->keeper);
	if (r == 0 && m->room)
		*m->room -= cost;
	return r < 0 ? r : message_insert(tx, a, m, receiver, content);
}

int outbox_mail(struct tx *tx, struct arena *a, struct str sender, struct str to, struct str subject, struct str text)
{
	json_t *content = json_new(a);
	json_put_str(content, "to", to);
	json_put_str(content, "subject", subject);
	json_put_str(content, "text", text);
	return outbox_add(tx, a,
	                  &(struct outbox_message){.tenant = sender,
	                                           .receiver = arena_printf(a, "mail:%.*s", STR_ARG(to)),
	                                           .keeper = sender,
	                                           .forget = true,
	                                           .kind = "EMAIL",
	                                           .about = to,
	                                           .content = content});
}

/* What waits still leaves, and its record goes then. */
static int record_forget(struct tx *tx, struct arena *a, const struct doc *record, size_t *kept)
{
	json_t *body = doc_json(a, record->body);
	struct doc d = *record;
	if (!str_is(json_field(body, "status"), "QUEUED"))
		return tx_delete(tx, DELIVERY, d.id);
	json_put(body, "forget", json_true());
	d.body = json_text(a, body);
	d.rev = 0;
	++*kept;
	return tx_update(tx, &d);
}

int outbox_forget(struct tx *tx, struct arena *a, struct str keeper)
{
	size_t count = 1, kept = 0;
	int r = 0;
	while (r == 0 && count) {
		struct arena *page = arena_new();
		struct doc *docs;
		r = tx_list(tx, page, DELIVERY, keeper, (int64_t)kept, PAGE, &docs, &count);
		for (size_t i = 0; r == 0 && i < count; i++)
			r = record_forget(tx, page, &docs[i], &kept);
		arena_free(page);
	}
	return r;
}
