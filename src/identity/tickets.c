/* Tickets: JSON, sealed for their purpose. */
#include "identity/tickets.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "store/seal.h"

#include <errno.h>

#define TEXT_MAX 8192
#define SWEEP 16

static struct str context_of(struct arena *a, const char *purpose)
{
	return arena_printf(a, "ticket/%s", purpose);
}

struct str ticket_issue(struct arena *a, const char *purpose, struct str user_id, int64_t seconds, json_t *data)
{
	json_t *t = json_new(a);
	json_put_str(t, "id", id_make(a));
	json_put_str(t, "user", user_id);
	json_put(t, "until", json_integer(clock_now_ms() + seconds * 1000));
	json_put(t, "data", data);
	return seal(a, json_text(a, t), context_of(a, purpose));
}

int ticket_open(struct arena *a, const char *purpose, struct str text, struct ticket *ret_ticket)
{
	struct str plain;
	if (!text.n || text.n > TEXT_MAX || seal_open(a, text, context_of(a, purpose), &plain) < 0)
		return -EACCES;
	json_t *t = json_keep(a, json_loadb(plain.p, plain.n, 0, NULL));
	struct ticket found = {.id = json_field(t, "id"),
	                       .user_id = json_field(t, "user"),
	                       .expires_ms = json_number(t, "until"),
	                       .data = json_object_get(t, "data")};
	if (!id_is_valid(found.id) || found.expires_ms <= clock_now_ms())
		return -EACCES;
	*ret_ticket = found;
	return 0;
}

/* Those that are over by themselves need no mark any more. */
static int marks_sweep(struct tx *tx, struct arena *a)
{
	struct doc *docs;
	size_t count = 0;
	int result = tx_list(tx, a, "ticket", STR(""), 0, SWEEP, &docs, &count);
	for (size_t i = 0; result == 0 && i < count; i++)
		if (json_number(doc_json(a, docs[i].body), "untilMs") <= clock_now_ms())
			result = tx_delete(tx, "ticket", docs[i].id);
	return result;
}

static int mark(struct tx *tx, struct arena *a, const struct ticket *t, bool used)
{
	struct doc d = {.rev = 0};
	int result = tx_get(tx, a, "ticket", t->id, &d);
	bool known = result == 0;
	json_int_t tries = known ? json_number(doc_json(a, d.body), "tries") : 0;
	if (result < 0 && result != -ENOENT)
		return result;
	if (tries >= TICKET_TRIES)
		return -EACCES;
	d = known ? d : doc_new(a, "ticket", STR_NONE, STR_NONE, STR_NONE);
	d.id = t->id;
	d.body = arena_printf(a, "{\"tries\":%lld,\"untilMs\":%lld}", (long long)(used ? TICKET_TRIES : tries + 1),
	                      (long long)t->expires_ms);
	result = known ? 0 : marks_sweep(tx, a);
	if (result < 0)
		return result;
	return known ? tx_update(tx, &d) : tx_insert(tx, &d);
}

int ticket_use(struct tx *tx, struct arena *a, const struct ticket *t)
{
	return mark(tx, a, t, true);
}

int ticket_miss(struct tx *tx, struct arena *a, const struct ticket *t)
{
	return mark(tx, a, t, false);
}
