/* One shelf for each kind of document. After a commit the heads of its documents tell what came, went and changed. */
#include "api/console/roster.h"

#include "api/clusters/clusters.h"
#include "api/snapshots/snapshots.h"
#include "base/clock.h"
#include "base/json.h"
#include "call/service.h"
#include "gate/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define ALERT_KIND "alert"
#define FEW 64       /* documents that are read one by one; more are read by a walk */
#define FEW_REMOTE 8 /* the same where each is a round trip */
#define CALM_MS 1000 /* names of projects may be so old */
#define WHY_MAX 600

struct shelf {
	const char *kind, *body_kind; /* whose texts are read; NULL: none */
	void *(*read)(struct arena *a, const struct doc *d);
	void (*drop)(void *facts);
	struct roster_item *list; /* by id */
	size_t count;
};

static char *str_z(struct str s)
{
	char *z = must_malloc(s.n + 1);
	str_copy(s, z, s.n + 1);
	return z;
}

static void *org_read(struct arena *a, const struct doc *d)
{
	struct roster_org *o = must_calloc(1, sizeof *o);
	o->name = str_z(json_field(doc_json(a, d->body), "name"));
	return o;
}

static void org_drop(void *facts)
{
	free(((struct roster_org *)facts)->name);
	free(facts);
}

static void *lock_read(struct arena *a, const struct doc *d)
{
	struct roster_lock *l = must_calloc(1, sizeof *l);
	const json_t *body = doc_json(a, d->body);
	l->reason = str_z(json_field(body, "reason"));
	l->way_out = str_z(json_field(body, "wayOut"));
	return l;
}

static void lock_drop(void *facts)
{
	struct roster_lock *l = facts;
	free(l->reason);
	free(l->way_out);
	free(l);
}

static void *line_read(struct arena *a, const struct doc *d)
{
	struct roster_line *l = must_calloc(1, sizeof *l);
	const json_t *body = doc_json(a, d->body);
	l->taken_ms = json_number(body, "taken");
	l->wanted = json_flag(body, "wanted");
	l->overdue = json_flag(body, "overdue");
	l->unproven = json_flag(json_object_get(body, "drill"), "failed");
	return l;
}

static void *alert_read(struct arena *a, const struct doc *d)
{
	struct roster_alert *l = must_calloc(1, sizeof *l);
	const json_t *body = doc_json(a, d->body);
	str_copy(json_field(body, "clusterName"), l->cluster, sizeof l->cluster);
	str_copy(json_field(body, "eventTypeName"), l->type, sizeof l->type);
	l->open = str_is(json_field(body, "status"), "OPEN");
	return l;
}

/* The size of a flex cluster has no name. */
static void hardware_read(const json_t *body, struct roster_cluster *to)
{
	struct region_walk walk = {.spec = 0};
	const json_t *config = region_next(body, &walk), *specs = json_object_get(config, "electableSpecs");
	str_copy(json_field(specs, "instanceSize"), to->size, sizeof to->size);
	to->disk_gb = (int64_t)json_number_value(json_object_get(specs, "diskSizeGB"));
}

static void *cluster_read(struct arena *a, const struct doc *d)
{
	struct roster_cluster *to = must_calloc(1, sizeof *to);
	const struct cluster c = cluster_of(a, d);
	struct str why = json_field(c.plan, "why"), version = json_field(c.body, "dbVersion");
	str_copy(json_field(c.body, "stateName"), to->state, sizeof to->state);
	str_copy(version.n ? version : json_field(c.body, "dbMajorVersion"), to->version, sizeof to->version);
	str_copy(json_field(c.body, "clusterType"), to->type, sizeof to->type);
	str_copy(cluster_host(&c), to->host, sizeof to->host);
	to->flex = str_is(d->kind, FLEX_KIND);
	to->paused = json_flag(c.body, "paused");
	to->missing = json_flag(c.plan, "missing");
	to->backups = to->flex || json_flag(c.body, "backupEnabled");
	to->nodes = (int64_t)json_array_size(json_object_get(c.plan, "nodes"));
	hardware_read(c.body, to);
	if (why.n && cluster_is(&c, "REPAIRING"))
		to->why = str_z((struct str){why.p, why.n < WHY_MAX ? why.n : WHY_MAX});
	return to;
}

static void cluster_drop_facts(void *facts)
{
	free(((struct roster_cluster *)facts)->why);
	free(facts);
}

static struct shelf shelves[ROSTER_KINDS] = {
        [ROSTER_ORG] = {"org", "org", org_read, org_drop},
        [ROSTER_PROJECT] = {"project", NULL, NULL, NULL},
        [ROSTER_CLUSTER] = {CLUSTER_KIND, CLUSTER_KIND, cluster_read, cluster_drop_facts},
        [ROSTER_FLEX] = {FLEX_KIND, FLEX_KIND, cluster_read, cluster_drop_facts},
        [ROSTER_LINE] = {LINE_KIND, LINE_KIND, line_read, free},
        [ROSTER_ALERT] = {"alert_open", ALERT_KIND, alert_read, free},
        [ROSTER_LOCK] = {ORG_LOCK_KIND, ORG_LOCK_KIND, lock_read, lock_drop},
};

/* What the store has counted. */
struct moment {
	uint64_t commits, version, identity;
};

static struct {
	pthread_mutex_t lock;
	_Atomic uint64_t rounds; /* looks at what the store has, counted when they begin */
	bool filled;
	struct moment at;           /* when it was last brought up to date */
	uint64_t projects_identity; /* when projects were last looked at */
	int64_t projects_ms;
	bool projects_wait;                /* they were not looked at with the last commits */
	const struct roster_item **alerts; /* that are open and about a cluster, by project and cluster */
	size_t alert_count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void item_drop(const struct shelf *s, struct roster_item *i)
{
	if (i->facts)
		s->drop(i->facts);
	free(i->name);
}

static void shelf_clear(struct shelf *s)
{
	for (size_t i = 0; i < s->count; i++)
		item_drop(s, &s->list[i]);
	free(s->list);
	s->list = NULL;
	s->count = 0;
}

static void table_clear(void)
{
	for (size_t i = 0; i < ROSTER_KINDS; i++)
		shelf_clear(&shelves[i]);
	free(table.alerts);
	table.alerts = NULL;
	table.alert_count = 0;
	table.filled = false;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct roster_item *)a)->id, ((const struct roster_item *)b)->id);
}

static struct roster_item *item_find(const struct roster_item *list, size_t count, const char *id)
{
	struct roster_item key;
	str_copy(str_of(id), key.id, sizeof key.id);
	return count ? bsearch(&key, list, count, sizeof *list, by_id) : NULL;
}

static bool is_unchanged(const struct shelf *s, const struct roster_item *old, const struct doc *d)
{
	/* An alert becomes open without a word in its mark. */
	bool settled = s != &shelves[ROSTER_ALERT] || (old->facts && ((struct roster_alert *)old->facts)->open);
	return settled && old->rev == d->rev && old->created_ms == d->created_ms && str_is(d->parent, old->parent) &&
	       str_is(d->name, old->name);
}

static void item_make(const struct doc *d, struct roster_item *to)
{
	*to = (struct roster_item){.rev = d->rev, .created_ms = d->created_ms, .name = str_z(d->name)};
	str_copy(d->id, to->id, sizeof to->id);
	str_copy(d->parent, to->parent, sizeof to->parent);
}

/* The new list, with the facts that are still true; those that are not are to be read. Returns how many are. */
static size_t shelf_arrange(struct shelf *s, const struct doc *heads, size_t count)
{
	struct roster_item *list = must_calloc(count + 1, sizeof *list);
	size_t wanted = 0;
	for (size_t i = 0; i < count; i++) {
		char id[ID_LEN + 1];
		str_copy(heads[i].id, id, sizeof id);
		struct roster_item *old = item_find(s->list, s->count, id);
		item_make(&heads[i], &list[i]);
		if (old && is_unchanged(s, old, &heads[i])) {
			list[i].facts = old->facts;
			old->facts = NULL;
		}
		wanted += s->read && !list[i].facts;
	}
	shelf_clear(s);
	s->list = list;
	s->count = count;
	qsort(list, count, sizeof *list, by_id);
	return wanted;
}

static void facts_take(const struct shelf *s, struct roster_item *i, const struct doc *d)
{
	struct arena *a = arena_new();
	i->facts = s->read(a, d);
	arena_free(a);
}

static int facts_visit(struct tx *tx, void *ctx, const struct doc *d)
{
	const struct shelf *s = ctx;
	char id[ID_LEN + 1];
	str_copy(d->id, id, sizeof id);
	struct roster_item *i = item_find(s->list, s->count, id);
	if (i && !i->facts)
		facts_take(s, i, d);
	return 0;
}

static int facts_get(const struct shelf *s, struct tx *tx, struct roster_item *i)
{
	struct arena *a = arena_new();
	struct doc d;
	int r = tx_get(tx, a, s->body_kind, str_of(i->id), &d);
	if (r == 0)
		facts_take(s, i, &d);
	arena_free(a);
	return r == -ENOENT ? 0 : r;
}

static int shelf_follow(struct shelf *s, struct tx *tx, bool remote)
{
	struct arena *a = arena_new();
	struct doc *heads;
	size_t count = 0;
	int r = tx_heads(tx, a, s->kind, NULL, &heads, &count);
	size_t wanted = r == 0 ? shelf_arrange(s, heads, count) : 0;
	arena_free(a);
	/* Of alerts there are far more than those that last. */
	if (wanted > (remote ? FEW_REMOTE : FEW) && strcmp(s->kind, s->body_kind) == 0)
		return tx_walk_all(tx, s->body_kind, facts_visit, s);
	for (size_t i = 0; r == 0 && wanted && i < s->count; i++)
		if (!s->list[i].facts)
			r = facts_get(s, tx, &s->list[i]);
	return r;
}

static int by_cluster(const void *a, const void *b)
{
	const struct roster_item *x = *(const struct roster_item *const *)a, *y = *(const struct roster_item *const *)b;
	int order = strcmp(x->parent, y->parent);
	if (!order)
		order = strcmp(((const struct roster_alert *)x->facts)->cluster,
		               ((const struct roster_alert *)y->facts)->cluster);
	return order ? order : strcmp(x->id, y->id);
}

static void alerts_order(void)
{
	const struct shelf *s = &shelves[ROSTER_ALERT];
	free(table.alerts);
	table.alerts = must_calloc(s->count + 1, sizeof *table.alerts);
	table.alert_count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct roster_alert *alert = s->list[i].facts;
		if (alert && alert->open && alert->cluster[0])
			table.alerts[table.alert_count++] = &s->list[i];
	}
	qsort(table.alerts, table.alert_count, sizeof *table.alerts, by_cluster);
}

/* Whose project a cluster is must be known. */
static bool lacks_project(void)
{
	static const enum roster_kind kinds[] = {ROSTER_CLUSTER, ROSTER_FLEX};
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < shelves[kinds[k]].count; i++)
			if (!roster_find(ROSTER_PROJECT, shelves[kinds[k]].list[i].parent))
				return true;
	return false;
}

static bool projects_are_due(void)
{
	return clock_mono_us() / 1000 - table.projects_ms > CALM_MS;
}

static struct moment moment_now(const struct service *s, struct tx *tx)
{
	struct store_stats stats;
	store_stats(s->store, &stats);
	return (struct moment){stats.commits, s->remote ? store_data_version(tx) : 0,
	                       store_identity_generation(s->store)};
}

static bool is_current(const struct moment *now)
{
	return table.filled && table.at.commits == now->commits && table.at.version == now->version &&
	       table.at.identity == now->identity && !(table.projects_wait && projects_are_due());
}

static int table_follow(const struct service *s, struct tx *tx, const struct moment *now)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ROSTER_KINDS; i++)
		if (i != ROSTER_PROJECT)
			r = shelf_follow(&shelves[i], tx, s->remote);
	/* There may be many, and they change seldom: all but their names moves the identities. */
	table.projects_wait =
	        table.filled && now->identity == table.projects_identity && !projects_are_due() && !lacks_project();
	if (r == 0 && !table.projects_wait) {
		r = shelf_follow(&shelves[ROSTER_PROJECT], tx, s->remote);
		table.projects_ms = clock_mono_us() / 1000;
		table.projects_identity = now->identity;
	}
	alerts_order();
	table.filled = r == 0;
	table.at = *now;
	if (r < 0)
		table_clear();
	return r;
}

/* Holds the table with all that was committed when it was called. Those who wait share one round: what began after they
 * came has what they must see. */
static int table_hold(const struct service *s, struct tx *tx)
{
	uint64_t came = table.rounds;
	tx_end_read(tx);
	pthread_mutex_lock(&table.lock);
	bool served = table.filled && table.rounds > came;
	/* A round is counted before its snapshot begins, and what is read has at least what was counted before. */
	table.rounds += !served;
	struct moment now = moment_now(s, tx);
	tx_begin_read(tx);
	int r = served || is_current(&now) ? 0 : table_follow(s, tx, &now);
	if (r < 0)
		pthread_mutex_unlock(&table.lock);
	return r;
}

int roster_hold(struct call *c)
{
	return table_hold(c->service, c->tx);
}

void roster_release(void)
{
	pthread_mutex_unlock(&table.lock);
}

/* --- filled in the background, so that the first who asks need not wait */

static struct {
	pthread_t thread;
	bool runs;
} filling;

static void *fill_run(void *arg)
{
	const struct service *s = arg;
	struct tx *reader = store_reader(s->store);
	if (!reader)
		return NULL;
	tx_begin_read(reader);
	if (table_hold(s, reader) == 0)
		roster_release();
	tx_end_read(reader);
	store_reader_free(reader);
	return NULL;
}

void roster_start(struct service *s)
{
	filling.runs = pthread_create(&filling.thread, NULL, fill_run, s) == 0;
}

void roster_stop(void)
{
	if (filling.runs)
		pthread_join(filling.thread, NULL);
	filling.runs = false;
}

void roster_teardown(void)
{
	pthread_mutex_lock(&table.lock);
	table_clear();
	pthread_mutex_unlock(&table.lock);
}

const struct roster_item *roster_all(enum roster_kind kind, size_t *ret_count)
{
	*ret_count = shelves[kind].count;
	return shelves[kind].list;
}

const struct roster_item *roster_find(enum roster_kind kind, const char *id)
{
	return item_find(shelves[kind].list, shelves[kind].count, id);
}

/* Of the clusters' alerts: where those of this one begin. */
static size_t alerts_from(const char *group_id, const char *cluster)
{
	size_t low = 0, high = table.alert_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct roster_item *i = table.alerts[middle];
		int order = strcmp(i->parent, group_id);
		order = order ? order : strcmp(((const struct roster_alert *)i->facts)->cluster, cluster);
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t roster_alerts(const char *group_id, const char *cluster, const struct roster_item **ret_first)
{
	size_t from = alerts_from(group_id, cluster), at = from;
	for (; at < table.alert_count; at++) {
		const struct roster_item *i = table.alerts[at];
		if (strcmp(i->parent, group_id) != 0 ||
		    strcmp(((const struct roster_alert *)i->facts)->cluster, cluster) != 0)
			break;
	}
	*ret_first = at > from ? table.alerts[from] : NULL;
	return at - from;
}
