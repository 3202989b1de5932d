/* Indexes of a cluster that could go, and what stands out in its schemas. Both are what the engine found in the
 * databases' catalogs and counters, not documents, so no verb does it. */
#include "api/advisor/view.h"
#include "api/kit/verbs.h"
#include "base/clock.h"

/* A count tells that nobody uses an index once it has gone on for a week, with its jobs of the weekend. */
#define UNUSED_MS (7 * 86400000LL)

static struct str shard_name(struct arena *a, const struct cluster *cluster, unsigned shard)
{
	return arena_printf(a, "%.*s-shard-%02u", STR_ARG(json_field(cluster->plan, "label")), shard);
}

static void drop_write(struct call *c, struct buf *b, const struct cluster *cluster, const struct engine_drop *d)
{
	char since[CLOCK_TEXT];
	clock_format(d->since_ms, since);
	json_open(b, '{');
	json_pair_int(b, "accessCount", d->uses);
	json_key(b, "index");
	json_raw(b, str_of(d->columns));
	json_pair_str(b, "name", str_of(d->name));
	json_pair_str(b, "namespace", str_of(d->namespace));
	json_key(b, "shards");
	json_open(b, '[');
	if (cluster_is_sharded(cluster->body))
		json_str(b, shard_name(c->arena, cluster, d->shard));
	json_close(b, ']');
	json_pair_str(b, "since", str_of(since));
	json_pair_int(b, "sizeBytes", d->bytes);
	json_close(b, '}');
}

int drop_suggestions_list(struct call *c)
{
	static const struct {
		const char *field;
		enum engine_drop_reason reason;
	} lists[] = {
	        {"hiddenIndexes", DROP_HIDDEN}, {"redundantIndexes", DROP_REDUNDANT}, {"unusedIndexes", DROP_UNUSED}};
	const struct service *s = c->service;
	struct cluster cluster;
	struct cluster_status status;
	struct engine_drop *list;
	size_t count = 0;
	int result = advice_cluster(c, &cluster, &status);
	if (result == 0)
		result = advice_enter(c);
	if (result != 0)
		return result < 0 ? result : 0;
	result = s->engine_ops->advice->drops(s->engine_state, arena_z(c->arena, cluster.doc.id), c->arena, &list,
	                                      &count);
	advice_leave(c);
	if (result < 0)
		return advice_fail(c, result);
	struct buf b = {0};
	int64_t now = clock_now_ms();
	json_open(&b, '{');
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		json_key(&b, lists[i].field);
		json_open(&b, '[');
		for (size_t k = 0; k < count; k++)
			if (list[k].reason == lists[i].reason &&
			    (list[k].reason != DROP_UNUSED || now - list[k].since_ms >= UNUSED_MS))
				drop_write(c, &b, &cluster, &list[k]);
		json_close(&b, ']');
	}
	json_close(&b, '}');
	advice_answer(c, &b);
	return 0;
}

/* --- schemas */

static const struct {
	const char *recommendation, *trigger, *text, *head, *tail; /* head and tail: around what was counted */
	enum engine_note_kind kind;
} kinds[] = {
        {"AVOID_UNBOUNDED_ARRAY", "DOCS_CONTAIN_UNBOUNDED_ARRAY",
         "Keep what grows without bound in rows of a table of its own: an array is read and written as a whole.",
         " has arrays of ", " elements", NOTE_LONG_ARRAYS},
        {"REDUCE_DOCUMENT_SIZE", "DOC_SIZE_TOO_LARGE",
         "Keep large values in a table of their own, so that they are read only when they are wanted.", "rows take ",
         " bytes on the average", NOTE_WIDE_ROWS},
        {"REMOVE_UNNECESSARY_INDEXES", "NUM_INDEXES", "Every write changes every index: drop those that nobody needs.",
         "the table has ", " indexes", NOTE_MANY_INDEXES},
        {"REDUCE_NUMBER_OF_NAMESPACES", "NUMBER_OF_NAMESPACES",
         "Fewer tables: each costs memory in every connection, and time in every check of all of them.",
         "the cluster has ", " tables", NOTE_MANY_TABLES},
        {"OPTIMIZE_CASE_INSENSITIVE_REGEX_QUERIES", "QUERIES_CONTAIN_CASE_INSENSITIVE_REGEX",
         "ILIKE and ~* read the whole table: use an index on lower(column), or one of trigrams.",
         " was searched so about ", " times", NOTE_CASELESS_SEARCH},
};

static void note_write(struct buf *b, const struct engine_note *n, size_t kind)
{
	struct buf text = {0};
	json_open(b, '{');
	json_key(b, "namespace");
	if (n->namespace)
		json_z(b, n->namespace);
	else
		json_nil(b);
	json_key(b, "triggers");
	json_open(b, '[');
	json_open(b, '{');
	buf_printf(&text, "%s%s%lld%s", n->what, kinds[kind].head, (long long)n->value, kinds[kind].tail);
	json_pair_str(b, "description", buf_view(&text));
	buf_free(&text);
	json_pair_str(b, "triggerType", str_of(kinds[kind].trigger));
	json_close(b, '}');
	json_close(b, ']');
	json_close(b, '}');
}

static void recommendation_write(struct buf *b, const struct engine_notes *notes, size_t kind)
{
	bool any = false;
	for (size_t i = 0; i < notes->count; i++)
		any |= notes->list[i].kind == kinds[kind].kind;
	if (!any)
		return;
	json_open(b, '{');
	json_key(b, "affectedNamespaces");
	json_open(b, '[');
	for (size_t i = 0; i < notes->count; i++)
		if (notes->list[i].kind == kinds[kind].kind)
			note_write(b, &notes->list[i], kind);
	json_close(b, ']');
	json_pair_str(b, "description", str_of(kinds[kind].text));
	json_pair_str(b, "recommendation", str_of(kinds[kind].recommendation));
	json_close(b, '}');
}

int schema_advice_list(struct call *c)
{
	const struct service *s = c->service;
	struct cluster cluster;
	struct cluster_status status;
	struct engine_notes notes;
	int result = advice_cluster(c, &cluster, &status);
	if (result == 0)
		result = advice_enter(c);
	if (result != 0)
		return result < 0 ? result : 0;
	result = s->engine_ops->advice->notes(s->engine_state, arena_z(c->arena, cluster.doc.id), c->arena, &notes);
	advice_leave(c);
	if (result < 0)
		return advice_fail(c, result);
	struct buf b = {0};
	json_open(&b, '{');
	json_key(&b, "recommendations");
	json_open(&b, '[');
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		recommendation_write(&b, &notes, i);
	json_close(&b, ']');
	json_close(&b, '}');
	advice_missing(c, notes.missing);
	advice_answer(c, &b);
	return 0;
}
