/* The functions of store.h, each of which calls the back end's, and what is the same for both back ends. */
#include "store/backend.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"

#include <assert.h>
#include <errno.h>

#define WALK_PAGE 200

#define STORE_CALL(name, parameters, arguments) \
	int tx_##name parameters                \
	{                                       \
		return tx->ops->name arguments; \
	}
STORE_OPS(STORE_CALL)
#undef STORE_CALL

const char *store_node(const struct store *s)
{
	return s->node;
}

bool store_is_remote(const struct store *s)
{
	return s->ops->remote;
}

struct tx *store_reader(struct store *s)
{
	struct tx *tx;
	if (s->ops->reader(s, &tx) < 0)
		return NULL;
	pthread_mutex_lock(&s->readers->lock);
	tx->next = s->readers->first;
	s->readers->first = tx;
	pthread_mutex_unlock(&s->readers->lock);
	return tx;
}

void store_reader_free(struct tx *tx)
{
	if (!tx)
		return;
	struct readers *readers = tx->store->readers;
	pthread_mutex_lock(&readers->lock);
	struct tx **at = &readers->first;
	while (*at != tx)
		at = &(*at)->next;
	*at = tx->next;
	readers->reads_of_freed += tx->reads;
	pthread_mutex_unlock(&readers->lock);
	tx->ops->conn_close(tx);
}

void tx_begin_read(struct tx *tx)
{
	/* A write always sees one state. */
	if (tx->writes || tx->reading)
		return;
	tx->ops->begin_read(tx);
	tx->reading = true;
}

void tx_end_read(struct tx *tx)
{
	if (!tx->reading)
		return;
	tx->reading = false;
	tx->ops->end_read(tx);
}

uint64_t tx_snapshot(const struct tx *tx)
{
	return tx->reading && tx->ops->snapshot ? tx->ops->snapshot(tx) : 0;
}

void tx_rest(struct tx *tx)
{
	if (tx->lingers && !tx->reading)
		tx->ops->rest(tx);
}

void tx_get_many(struct tx *tx, struct doc_wanted *const *list, size_t count)
{
	assert(!tx->reading);
	if (tx->ops->get_many)
		tx->ops->get_many(tx, list, count);
	else
		for (size_t i = 0; i < count; i++)
			list[i]->result = tx_get(tx, list[i]->arena, list[i]->kind, list[i]->id, &list[i]->doc);
}

void tx_read_ahead(struct tx *tx, const struct doc_question *list, size_t count)
{
	if (tx->ops->read_ahead)
		tx->ops->read_ahead(tx, list, count);
}

int tx_list_each(struct tx *tx, struct arena *a, const char *kind, struct str parent, int64_t offset, int64_t limit,
                 doc_show *show, void *ctx)
{
	struct doc *docs;
	size_t count = 0;
	if (tx->ops->list_each)
		return tx->ops->list_each(tx, kind, parent, offset, limit, show, ctx);
	int r = tx_list(tx, a, kind, parent, offset, limit, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = show(ctx, &docs[i]);
	return r;
}

void tx_on_wait(struct tx *tx, void (*waits)(void *ctx), void *ctx)
{
	tx->waits = waits;
	tx->waits_ctx = ctx;
}

void tx_attach(struct tx *tx, void *what)
{
	tx->attached = what;
}

void *tx_attached(const struct tx *tx)
{
	return tx->attached;
}

void tx_touch_identity(struct tx *tx)
{
	assert(tx->in_write);
	tx->touched = true;
}

/* While other processes cannot be heard, every call returns another number, so that nothing cached is used. The clock
 * decides this, not the listening thread: that thread may wait for an answer, or the whole process may have been
 * stopped. */
uint64_t store_identity_generation(const struct store *s)
{
	int64_t until = atomic_load(&s->trusted_until_us);
	if (until != INT64_MAX && clock_mono_us() > until)
		return UINT64_MAX / 2 + atomic_fetch_add(&((struct store *)(uintptr_t)s)->distrust, 1);
	return s->generation;
}

uint64_t tx_identity_generation(const struct tx *tx)
{
	return tx->lingers ? tx->generation : store_identity_generation(tx->store);
}

uint64_t store_data_version(struct tx *reader)
{
	return reader->ops->data_version(reader);
}

void store_on_jobs(struct store *s, void (*wake)(void *ctx), void *ctx)
{
	if (!wake)
		s->jobs_wake = wake;
	s->jobs_ctx = ctx;
	s->jobs_wake = wake;
}

void store_on_events(struct store *s, void (*wake)(void *ctx), void *ctx)
{
	if (!wake)
		s->events_wake = wake;
	s->events_ctx = ctx;
	s->events_wake = wake;
}

void store_binds_jobs(struct store *s, bool binds)
{
	s->binds_jobs = binds;
}

int tx_jobs_bind(struct tx *tx, struct str subject, struct str node)
{
	const struct store *s = tx->store;
	return s->node[0] && s->binds_jobs ? tx_ref_put(tx, REF_HOST, subject, node.n ? node : str_of(s->node)) : 0;
}

int tx_jobs_bound(struct tx *tx, struct arena *a, struct str subject, struct str *ret_node)
{
	return tx->store->node[0] ? tx_ref_get(tx, a, REF_HOST, subject, ret_node) : -ENOENT;
}

void store_node_usage(struct store *s, struct str usage)
{
	pthread_mutex_lock(&s->readers->lock);
	snprintf(s->usage, sizeof s->usage, "%.*s", STR_ARG(usage));
	pthread_mutex_unlock(&s->readers->lock);
}

int tx_jobs_unbind(struct tx *tx, struct str subject)
{
	int r = tx_ref_delete(tx, REF_HOST, subject);
	return r == -ENOENT ? 0 : r;
}

int tx_jobs_rebind(struct tx *tx, struct str subject, struct str node)
{
	int r = tx_jobs_unbind(tx, subject);
	return r < 0 ? r : tx_ref_put(tx, REF_HOST, subject, node);
}

bool store_is_full(const struct store *s)
{
	return s->full;
}

int tx_list_all(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct doc **ret_docs,
                size_t *ret_count)
{
	int64_t total;
	*ret_count = 0;
	int r = tx_count(tx, kind, parent, &total);
	return r < 0 || total == 0 ? r : tx_list(tx, a, kind, parent, 0, total, ret_docs, ret_count);
}

struct doc doc_new(struct arena *a, const char *kind, struct str parent, struct str name, struct str body)
{
	struct id id = id_new();
	return (struct doc){.kind = str_of(kind),
	                    .id = arena_dup(a, id_str(&id)),
	                    .parent = parent,
	                    .name = name,
	                    .created_ms = clock_now_ms(),
	                    .body = body};
}

int tx_set_by_name(struct tx *tx, struct arena *a, const char *kind, struct str parent, struct str name,
                   struct str body)
{
	struct doc d;
	int result = tx_get_by_name(tx, a, kind, parent, name, &d);
	if (result == -ENOENT && body.n) {
		d = doc_new(a, kind, parent, name, body);
		return tx_insert(tx, &d);
	}
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (!body.n)
		return tx_delete(tx, kind, d.id);
	if (str_eq(d.body, body))
		return 0;
	d.body = body;
	return tx_update(tx, &d);
}

int tx_set_field(struct tx *tx, struct arena *a, const char *kind, struct str id, const char *field, json_t *value)
{
	struct doc d;
	int result = tx_get(tx, a, kind, id, &d);
	if (result < 0) {
		json_decref(value);
		return result;
	}
	json_t *body = doc_json(a, d.body);
	json_put(body, field, value);
	d.body = json_text(a, body);
	return tx_update(tx, &d);
}

int tx_walk_all(struct tx *tx, const char *kind, doc_visit *visit, void *ctx)
{
	struct arena *page = arena_new(), *next = arena_new();
	struct str parent = STR("");
	int64_t seq = -1;
	size_t got = WALK_PAGE;
	int r = 0;
	while (r == 0 && got == WALK_PAGE) {
		struct doc *docs;
		r = tx_walk(tx, page, kind, parent, seq, WALK_PAGE, &docs, &got);
		for (size_t i = 0; r == 0 && i < got; i++)
			r = visit(tx, ctx, &docs[i]);
		if (r == 0 && got) {
			arena_reset(next);
			parent = arena_dup(next, docs[got - 1].parent);
			seq = docs[got - 1].seq;
		}
		arena_reset(page);
	}
	arena_free(page);
	arena_free(next);
	return r;
}
