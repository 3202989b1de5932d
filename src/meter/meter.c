/* Writing measurements down: what is open, what has ended, how far somebody has looked. */
#include "meter/meter.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "meter/interval.h"

#include <errno.h>

/* A subject in hand. */
struct subject {
	struct tx *tx;
	struct arena *arena;
	struct doc doc; /* rev 0: it is new */
	json_t *body, *open;
	bool changed;
};

static int subject_load(struct tx *tx, struct arena *a, struct str id, struct subject *ret_subject)
{
	struct subject s = {.tx = tx, .arena = a};
	int r = tx_get(tx, a, METER_OPEN_KIND, id, &s.doc);
	if (r < 0)
		return r;
	s.body = doc_json(a, s.doc.body);
	s.open = json_default(s.body, "open", json_object());
	*ret_subject = s;
	return 0;
}

static void field_follow(struct subject *s, const char *name, struct str value)
{
	if (str_eq(json_field(s->body, name), value))
		return;
	json_put_str(s->body, name, value);
	s->changed = true;
}

static int subject_ensure(struct tx *tx, struct arena *a, const struct meter_subject *from, struct subject *ret_subject)
{
	int r = subject_load(tx, a, from->id, ret_subject);
	if (r == -ENOENT) {
		*ret_subject =
		        (struct subject){.tx = tx,
		                         .arena = a,
		                         .doc = {.kind = STR(METER_OPEN_KIND), .id = from->id, .parent = from->org_id},
		                         .body = json_new(a)};
		ret_subject->open = json_default(ret_subject->body, "open", json_object());
		r = 0;
	}
	if (r < 0)
		return r;
	field_follow(ret_subject, "group", from->group_id);
	field_follow(ret_subject, "groupName", from->group_name);
	field_follow(ret_subject, "name", from->name);
	if (from->host.n) /* what outlives a cluster may not know it */
		field_follow(ret_subject, "host", from->host);
	return 0;
}

static int subject_save(struct subject *s)
{
	bool empty = !json_object_size(s->open);
	if (!s->changed || (empty && !s->doc.rev))
		return 0;
	if (empty)
		return tx_delete(s->tx, METER_OPEN_KIND, s->doc.id);
	s->doc.body = json_text(s->arena, s->body);
	if (s->doc.rev)
		return tx_update(s->tx, &s->doc);
	s->doc.created_ms = clock_now_ms();
	return tx_insert(s->tx, &s->doc);
}

static int64_t latest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* --- measurements that have ended */

static int org_note(struct subject *s, const char *month)
{
	struct doc d;
	struct str id = arena_printf(s->arena, "%.*s/%s", STR_ARG(s->doc.parent), month);
	int r = tx_get(s->tx, s->arena, METER_ORG_KIND, id, &d);
	if (r != -ENOENT)
		return r;
	d = (struct doc){.kind = STR(METER_ORG_KIND),
	                 .id = id,
	                 .parent = arena_dup(s->arena, str_of(month)),
	                 .created_ms = clock_now_ms(),
	                 .body = arena_printf(s->arena, "{\"org\":\"%.*s\"}", STR_ARG(s->doc.parent))};
	return tx_insert(s->tx, &d);
}

static int piece_write(struct subject *s, const char *key, const json_t *entry, struct interval i, struct str *ret_id)
{
	static const char *const whose[] = {"group", "groupName", "name"};
	static const char *const what[] = {"id", "sku", "provider", "region", "amount"};
	char month[METER_MONTH];
	json_t *body = json_new(s->arena);
	meter_month(i.from * 1000, month, NULL, NULL);
	json_copy_fields(body, s->body, whose, sizeof whose / sizeof *whose);
	json_copy_fields(body, entry, what, sizeof what / sizeof *what);
	json_put_str(body, "cluster", s->doc.id);
	json_put_z(body, "key", key);
	json_put(body, "from", json_integer(i.from));
	json_put(body, "to", json_integer(i.to));
	struct doc d = doc_new(s->arena, METER_KIND, arena_printf(s->arena, "%.*s/%s", STR_ARG(s->doc.parent), month),
	                       STR_NONE, json_text(s->arena, body));
	int r = org_note(s, month);
	if (ret_id)
		*ret_id = d.id;
	return r < 0 ? r : tx_insert(s->tx, &d);
}

static int entry_write(struct subject *s, const char *key, const json_t *entry, int64_t end)
{
	struct interval rest = {json_number(entry, "from"), end};
	int r = 0;
	while (r == 0 && interval_seconds(rest)) {
		struct interval piece = interval_month(rest, &rest);
		r = piece_write(s, key, entry, piece, NULL);
	}
	return r;
}

static int entry_end(struct subject *s, const char *key, int64_t end)
{
	json_t *entry = json_object_get(s->open, key);
	int r = entry ? entry_write(s, key, entry, end) : 0;
	if (r < 0 || !entry)
		return r;
	if (json_object_get(entry, "since"))
		json_put(json_default(s->body, "last", json_object()), key,
		         json_integer(latest(end, json_number(entry, "from"))));
	json_object_del(s->open, key);
	s->changed = true;
	return 0;
}

/* --- what is open */

static json_t *entry_make(struct arena *a, const struct meter_thing *t, int64_t from)
{
	json_t *e = json_object();
	json_put_str(e, "id", id_make(a));
	json_put_str(e, "sku", t->sku);
	json_put_str(e, "provider", t->provider);
	json_put_str(e, "region", t->region);
	json_put(e, "amount", json_integer(t->amount));
	json_put(e, "from", json_integer(from));
	if (t->runs)
		json_put(e, "since", json_integer(t->since_ms));
	return e;
}

/* Not before the end of what the key stood for last: an observation that is late may tell of a start that was metered
 * already. */
static void entry_begin(struct subject *s, const char *key, const struct meter_thing *t, int64_t from)
{
	json_t *last = json_object_get(s->body, "last");
	json_put(s->open, key, entry_make(s->arena, t, latest(from, json_number(last, key))));
	json_object_del(last, key);
	s->changed = true;
}

static bool entry_is(const json_t *e, const struct meter_thing *t)
{
	return str_eq(json_field(e, "sku"), t->sku) && str_eq(json_field(e, "provider"), t->provider) &&
	       str_eq(json_field(e, "region"), t->region) && json_number(e, "amount") == t->amount;
}

static int mark_get(struct tx *tx, struct arena *a, struct str host, int64_t *ret_seen)
{
	struct doc d;
	int r = tx_get(tx, a, METER_MARK_KIND, host.n ? host : STR(METER_SERVICE), &d);
	*ret_seen = r == 0 ? json_number(doc_json(a, d.body), "seen") : 0;
	return r == -ENOENT ? 0 : r;
}

/* When something that runs was last seen, and whether no process of the host has watched it since. */
static int last_seen(struct subject *s, int64_t watched_ms, const json_t *entry, int64_t *ret_seen, bool *ret_away)
{
	int r = mark_get(s->tx, s->arena, json_field(s->body, "host"), ret_seen);
	*ret_seen = latest(*ret_seen, json_number(entry, "from"));
	*ret_away = r == 0 && *ret_seen < watched_ms / 1000;
	return r;
}

static int thing_follow(struct subject *s, const struct meter_observation *o, const struct meter_thing *t,
                        const char *key, json_t *entry)
{
	int64_t from = json_number(entry, "from"), at = o->at_ms / 1000, since = t->since_ms / 1000, seen = 0;
	bool restarted = t->runs && t->since_ms > json_number(entry, "since") + METER_SLACK_MS, away = false;
	int r = restarted ? last_seen(s, o->watched_ms, entry, &seen, &away) : 0;
	away = away && seen < since;
	if (r < 0 || (!restarted && entry_is(entry, t)))
		return r;
	if (!away && entry_is(entry, t)) {
		json_put(entry, "since", json_integer(t->since_ms));
		s->changed = true;
		return 0;
	}
	int64_t begin = restarted && since <= at ? since : latest(at, from);
	r = entry_end(s, key, away ? seen : begin);
	if (r == 0)
		entry_begin(s, key, t, begin);
	return r;
}

static int thing_observe(struct subject *s, const struct meter_observation *o, const struct meter_thing *t)
{
	const char *key = arena_z(s->arena, t->key);
	json_t *entry = json_object_get(s->open, key);
	if (entry)
		return thing_follow(s, o, t, key, entry);
	bool known = t->since_ms > 0 && t->since_ms < o->at_ms;
	entry_begin(s, key, t, (known ? t->since_ms : o->at_ms) / 1000);
	return 0;
}

static bool is_meant(const char *prefixes, const char *key)
{
	struct str rest = str_of(prefixes), one;
	bool more = true, meant = false;
	while (more && !meant) {
		more = str_cut(rest, ',', &one, &rest);
		meant = str_starts(str_of(key), one);
	}
	return meant;
}

static bool is_there(const struct meter_observation *o, const char *key)
{
	for (size_t i = 0; i < o->count; i++)
		if (str_is(o->things[i].key, key))
			return true;
	return false;
}

/* What does not run any more ended then; or, while nobody watched, nobody knows when. */
static int gone_end(struct subject *s, const char *key, int64_t at_ms, int64_t watched_ms)
{
	const json_t *entry = json_object_get(s->open, key);
	int64_t seen = 0;
	bool away = false;
	int r = json_object_get(entry, "since") ? last_seen(s, watched_ms, entry, &seen, &away) : 0;
	return r < 0 ? r : entry_end(s, key, away ? seen : at_ms / 1000);
}

static int others_end(struct subject *s, const struct meter_observation *o)
{
	const char *key;
	json_t *entry;
	void *next;
	int r = 0;
	json_object_foreach_safe(s->open, next, key, entry)
	{
		if (r == 0 && is_meant(o->prefixes, key) && !is_there(o, key))
			r = gone_end(s, key, o->at_ms, o->watched_ms);
	}
	return r;
}

int meter_observe(struct tx *tx, struct arena *a, const struct meter_subject *from, const struct meter_observation *o)
{
	struct subject s;
	int r = subject_ensure(tx, a, from, &s);
	if (r == 0)
		r = others_end(&s, o);
	for (size_t i = 0; r == 0 && i < o->count; i++)
		r = thing_observe(&s, o, &o->things[i]);
	return r < 0 ? r : subject_save(&s);
}

int meter_begin(struct tx *tx, struct arena *a, const struct meter_subject *from, const struct meter_thing *t,
                int64_t at_ms)
{
	struct subject s;
	const struct meter_observation o = {.things = t, .count = 1, .at_ms = at_ms};
	int r = subject_ensure(tx, a, from, &s);
	if (r == 0)
		r = thing_observe(&s, &o, t);
	return r < 0 ? r : subject_save(&s);
}

int meter_end(struct tx *tx, struct arena *a, struct str subject_id, struct str key, int64_t at_ms, int64_t watched_ms)
{
	struct subject s;
	int r = subject_load(tx, a, subject_id, &s);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = gone_end(&s, arena_z(a, key), at_ms, watched_ms);
	return r < 0 ? r : subject_save(&s);
}

/* Whether a measurement can take more of the thing: it is of that day, and of the same organization and project. */
static bool row_takes(const struct subject *s, const struct doc *d, const json_t *row, const struct meter_thing *t,
                      int64_t at_ms)
{
	struct meter_thing all = *t;
	size_t n = s->doc.parent.n;
	all.amount = json_number(row, "amount");
	return str_starts(d->parent, s->doc.parent) && d->parent.n > n && d->parent.p[n] == '/' &&
	       str_eq(json_field(row, "group"), json_field(s->body, "group")) && entry_is(row, &all) &&
	       meter_day(json_number(row, "from") * 1000) == meter_day(at_ms);
}

static int row_add(struct subject *s, struct str id, const struct meter_thing *t, int64_t at_ms)
{
	struct doc d;
	int r = id.n ? tx_get(s->tx, s->arena, METER_KIND, id, &d) : -ENOENT;
	if (r < 0)
		return r;
	json_t *row = doc_json(s->arena, d.body);
	if (!row_takes(s, &d, row, t, at_ms))
		return -ENOENT;
	json_put(row, "amount", json_integer(json_number(row, "amount") + t->amount));
	d.body = json_text(s->arena, row);
	return tx_update(s->tx, &d);
}

int meter_add_to(struct tx *tx, struct arena *a, const struct meter_subject *from, const struct meter_thing *t,
                 int64_t at_ms, struct str *row)
{
	struct subject s;
	int64_t at = at_ms / 1000;
	int r = subject_ensure(tx, a, from, &s);
	if (r < 0)
		return r;
	r = row_add(&s, *row, t, at_ms);
	if (r != -ENOENT)
		return r;
	json_t *entry = json_keep(a, entry_make(a, t, at));
	return piece_write(&s, arena_z(a, t->key), entry, (struct interval){at, at}, row);
}

int meter_add(struct tx *tx, struct arena *a, const struct meter_subject *s, const struct meter_thing *t, int64_t at_ms)
{
	struct str none = STR_NONE;
	return meter_add_to(tx, a, s, t, at_ms, &none);
}

int meter_end_those(struct tx *tx, struct arena *a, struct str subject_id, const char *prefixes, int64_t at_ms)
{
	struct subject s;
	const struct meter_observation o = {.prefixes = prefixes, .at_ms = at_ms};
	int r = subject_load(tx, a, subject_id, &s);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = others_end(&s, &o);
	return r < 0 ? r : subject_save(&s);
}

/* --- whole projects */

int meter_end_group(struct tx *tx, struct arena *a, struct str org_id, struct str group_id, int64_t at_ms)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, METER_OPEN_KIND, org_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (str_eq(json_field(doc_json(a, docs[i].body), "group"), group_id))
			r = meter_end_those(tx, a, docs[i].id, "", at_ms);
	return r;
}

static int subject_move(struct subject *s, struct str to_org, int64_t at)
{
	const char *key;
	json_t *entry;
	int r = 0;
	json_object_foreach(s->open, key, entry)
	{
		if (r == 0)
			r = entry_write(s, key, entry, at);
		json_put_str(entry, "id", id_make(s->arena));
		json_put(entry, "from", json_integer(latest(at, json_number(entry, "from"))));
	}
	s->doc.parent = to_org;
	s->doc.body = json_text(s->arena, s->body);
	return r < 0 ? r : tx_move(s->tx, &s->doc);
}

int meter_move(struct tx *tx, struct arena *a, struct str group_id, struct str from_org, struct str to_org,
               int64_t at_ms)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(tx, a, METER_OPEN_KIND, from_org, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct subject s = {.tx = tx, .arena = a, .doc = docs[i], .body = doc_json(a, docs[i].body)};
		s.open = json_default(s.body, "open", json_object());
		if (str_eq(json_field(s.body, "group"), group_id))
			r = subject_move(&s, to_org, at_ms / 1000);
	}
	return r;
}

/* --- marks */

int meter_mark(struct tx *tx, struct arena *a, struct str host, int64_t seen_ms)
{
	struct str id = host.n ? host : STR(METER_SERVICE);
	struct doc d;
	int r = tx_get(tx, a, METER_MARK_KIND, id, &d);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && json_number(doc_json(a, d.body), "seen") >= seen_ms / 1000)
		return 0;
	struct str body = arena_printf(a, "{\"seen\":%lld}", (long long)(seen_ms / 1000));
	if (r == 0) {
		d.body = body;
		return tx_update(tx, &d);
	}
	d = (struct doc){.kind = STR(METER_MARK_KIND),
	                 .id = id,
	                 .parent = STR("service"),
	                 .created_ms = clock_now_ms(),
	                 .body = body};
	return tx_insert(tx, &d);
}

int meter_marked(struct tx *tx, struct arena *a, struct str host, int64_t *ret_ms)
{
	int r = mark_get(tx, a, host, ret_ms);
	*ret_ms *= 1000;
	return r;
}
