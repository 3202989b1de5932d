/* What was last measured, in the text format of Prometheus.
 *
 * A metric's name is "steward_process_", "steward_database_" or "steward_disk_" and its name in the API in small
 * letters, without the word that the prefix says already: CONNECTIONS is steward_process_connections,
 * DISK_PARTITION_SPACE_FREE is steward_disk_space_free. Metrics that nothing tells here are not there, and those of the
 * greatest value neither: who scrapes has all values. A value that is older than some samples is none. */
#include "api/metrics/metrics.h"

#include "api/clusters/clusters.h"
#include "api/metrics/catalogue.h"
#include "api/metrics/processes.h"
#include "base/clock.h"
#include "call/answer.h"
#include "call/workers.h"
#include "catalog/formats.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#define TICK_MS 10000
#define NAMES_MAX 64 /* databases of a node, as many as are sampled */
#define NAME_BYTES 64
#define COLUMNS_MAX 256
#define KEPT 256 /* texts */

static const char *const prefixes[] = {"steward_process_", "steward_database_", "steward_disk_"};
static const char *const spared[] = {"PROCESS_", "DATABASE_", "DISK_PARTITION_"};
static const char *const labels[] = {"", "database", "partition"};

struct exposing {
	const struct service *service;
	struct arena *arena;
	const struct cluster *cluster;
	const struct node_status *node;
	struct buf out;
};

/* --- texts that are kept until the next sample */

static struct kept {
	char cluster[25], node[64];
	int64_t tick;
	enum node_state state;
	bool primary;
	char *text;
	size_t n;
} kept[KEPT];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct kept *kept_slot(const struct exposing *x)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < x->cluster->doc.id.n; i++)
		h = (h ^ (unsigned char)x->cluster->doc.id.p[i]) * 0x100000001b3u;
	for (const char *p = x->node->name; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	return &kept[h % KEPT];
}

static bool kept_find(const struct exposing *x, struct str *ret_text)
{
	pthread_mutex_lock(&kept_lock);
	const struct kept *k = kept_slot(x);
	bool found = k->text && str_is(x->cluster->doc.id, k->cluster) && strcmp(k->node, x->node->name) == 0 &&
	             k->tick == clock_now_ms() / TICK_MS && k->state == x->node->state &&
	             k->primary == x->node->primary;
	if (found)
		*ret_text = arena_dup(x->arena, (struct str){k->text, k->n});
	pthread_mutex_unlock(&kept_lock);
	return found;
}

static void kept_put(const struct exposing *x, struct str text)
{
	pthread_mutex_lock(&kept_lock);
	struct kept *k = kept_slot(x);
	free(k->text);
	k->text = must_malloc(text.n + 1);
	memcpy(k->text, text.p, text.n);
	k->n = text.n;
	k->tick = clock_now_ms() / TICK_MS;
	k->state = x->node->state;
	k->primary = x->node->primary;
	str_copy(x->cluster->doc.id, k->cluster, sizeof k->cluster);
	str_copy(str_of(x->node->name), k->node, sizeof k->node);
	pthread_mutex_unlock(&kept_lock);
}

/* --- what there is to tell of */

static bool name_decode(const char *hex, char ret_name[NAME_BYTES])
{
	size_t n = strlen(hex) / 2;
	if (strlen(hex) % 2 || !n || n >= NAME_BYTES)
		return false;
	for (size_t i = 0; i < n; i++) {
		int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		ret_name[i] = (char)(high * 16 + low);
	}
	ret_name[n] = 0;
	return true;
}

/* By the files of its series: no database is asked. */
static size_t names_by_files(const struct exposing *x, enum measure_subject subject, struct str *names)
{
	char name[NAME_BYTES];
	struct str dir = arena_printf(x->arena, "%s/series/%.24s", x->service->data_dir, x->cluster->doc.id.p),
	           begin = arena_printf(x->arena, "%s.%s.", x->node->name, subject == MEASURE_DISK ? "disk" : "db");
	size_t count = 0;
	DIR *d = opendir(dir.p);
	for (struct dirent *entry; d && count < NAMES_MAX && (entry = readdir(d));)
		if (str_starts(str_of(entry->d_name), begin) && name_decode(entry->d_name + begin.n, name))
			names[count++] = arena_dup(x->arena, str_of(name));
	if (d)
		closedir(d);
	return count;
}

static size_t names_of(const struct exposing *x, enum measure_subject subject, struct str *names)
{
	const struct engine_ops *ops = x->service->engine_ops;
	struct str *list = NULL;
	size_t count = 0;
	if (subject == MEASURE_PROCESS) {
		names[0] = STR("");
		return 1;
	}
	if (!ops->history || !ops->statistics)
		return names_by_files(x, subject, names);
	int r = (subject == MEASURE_DISK ? ops->statistics->partitions : ops->statistics->databases)(
	        x->service->engine_state, arena_z(x->arena, x->cluster->doc.id), x->node->name, x->arena, &list,
	        &count);
	for (size_t i = 0; r == 0 && i < count && i < NAMES_MAX; i++)
		names[i] = list[i];
	return r < 0 ? 0 : count < NAMES_MAX ? count : NAMES_MAX;
}

/* --- values */

/* The newest values of all columns of one subject. NULL: none is known. */
static const float *values_read(const struct exposing *x, enum measure_subject subject, struct str name)
{
	const struct series_layout *layout = &measure_layouts[subject];
	int64_t step = series_step_ms(layout->first), to = clock_now_ms() + 1, from = to - step * 3;
	unsigned columns[COLUMNS_MAX];
	size_t count = layout->count < COLUMNS_MAX ? layout->count : COLUMNS_MAX;
	struct measured of = {.cluster_id = arena_z(x->arena, x->cluster->doc.id),
	                      .node = x->node->name,
	                      .name = arena_z(x->arena, name),
	                      .subject = subject,
	                      .since_ms = process_created_ms(x->cluster, x->node)};
	measured_clip(x->service, &of, layout->first, &from, &to);
	size_t slots = to > from ? series_slots(layout->first, from, to) : 0;
	float *values = arena_new_array(x->arena, float, slots *count + 1),
	      *newest = arena_new_array(x->arena, float, count + 1);
	for (size_t i = 0; i < count; i++) {
		columns[i] = (unsigned)i;
		newest[i] = NAN;
	}
	if (!slots || measured_read(x->service, &of, layout->first, from, to, columns, count, values) < 0)
		return NULL;
	for (size_t slot = 0; slot < slots; slot++)
		for (size_t i = 0; i < count; i++)
			if (isfinite((double)values[slot * count + i]))
				newest[i] = values[slot * count + i];
	return newest;
}

/* --- the text */

static void label_write(struct buf *b, const char *label, struct str value)
{
	bool good = utf8_is_valid(value); /* a database can have any bytes as its name; one bad page is refused whole */
	buf_printf(b, "{%s=\"", label);
	for (size_t i = 0; i < value.n; i++) {
		if (!good && (unsigned char)value.p[i] > '~') {
			buf_c(b, '?');
			continue;
		}
		if (value.p[i] == '\n') {
			buf_z(b, "\\n");
			continue;
		}
		if (value.p[i] == '"' || value.p[i] == '\\')
			buf_c(b, '\\');
		buf_c(b, value.p[i]);
	}
	buf_z(b, "\"}");
}

static void name_write(struct buf *b, enum measure_subject subject, const char *name)
{
	size_t known = strlen(spared[subject]);
	name += strncmp(name, spared[subject], known) == 0 ? known : 0;
	name += subject == MEASURE_DISK && strncmp(name, "DISK_", 5) == 0 ? 5 : 0;
	buf_z(b, prefixes[subject]);
	for (const char *p = name; *p; p++)
		buf_c(b, (char)tolower((unsigned char)*p));
}

static bool value_of(const struct metric *m, const float *values, double *ret_value)
{
	if (!values)
		return false;
	*ret_value = metric_value(m, (double)values[m->column], m->how == METRIC_ALONE ? 0 : (double)values[m->other]);
	return isfinite(*ret_value);
}

static void metric_write(struct buf *b, enum measure_subject subject, const struct metric *m, const struct str *names,
                         const float *const *values, size_t count)
{
	bool begun = false;
	for (size_t i = 0; i < count; i++) {
		double v;
		if (!value_of(m, values[i], &v))
			continue;
		if (!begun) {
			buf_z(b, "# HELP ");
			name_write(b, subject, m->name);
			buf_printf(b, " %s, in %s\n# TYPE ", m->name, m->unit);
			name_write(b, subject, m->name);
			buf_z(b, " gauge\n");
			begun = true;
		}
		name_write(b, subject, m->name);
		if (subject != MEASURE_PROCESS)
			label_write(b, labels[subject], names[i]);
		buf_printf(b, " %.7g\n", v);
	}
}

static void subject_write(struct exposing *x, enum measure_subject subject)
{
	struct str names[NAMES_MAX];
	const float *values[NAMES_MAX];
	size_t count = names_of(x, subject, names), metrics;
	const struct metric *list = metrics_of(subject, &metrics);
	for (size_t i = 0; i < count; i++)
		values[i] = values_read(x, subject, names[i]);
	for (size_t i = 0; i < metrics; i++)
		if (list[i].column != NO_COLUMN && strncmp(list[i].name, "MAX_", 4) != 0)
			metric_write(&x->out, subject, &list[i], names, values, count);
}

/* What sessions do, which is no metric of the reference. */
static void sessions_write(struct exposing *x)
{
	const struct str names[1] = {STR("")};
	const float *const values[1] = {values_read(x, MEASURE_PROCESS, names[0])};
	size_t count;
	const struct metric *list = metrics_of_sessions(&count);
	for (size_t i = 0; i < count; i++)
		metric_write(&x->out, MEASURE_PROCESS, &list[i], names, values, 1);
}

static void process_write(struct exposing *x)
{
	const struct node_status *n = x->node;
	buf_printf(&x->out,
	           "# HELP steward_process_up Whether the process runs\n# TYPE steward_process_up gauge\n"
	           "steward_process_up %d\n"
	           "# HELP steward_process_primary Whether it takes writes\n# TYPE steward_process_primary gauge\n"
	           "steward_process_primary %d\n"
	           "# HELP steward_process_info Its version\n# TYPE steward_process_info gauge\n"
	           "steward_process_info",
	           n->state == NODE_RUNNING, n->state == NODE_RUNNING && (n->primary || n->kind == NODE_ROUTER));
	label_write(&x->out, "version", str_of(n->version));
	buf_z(&x->out, " 1\n");
	for (unsigned i = 0; i <= MEASURE_DISK; i++)
		subject_write(x, (enum measure_subject)i);
	if (x->service->engine_ops->activity)
		sessions_write(x);
}

int process_expose(const struct service *s, struct tx *tx, struct arena *a, struct str cluster_id, struct str process,
                   struct str *ret_text)
{
	struct cluster cluster;
	struct cluster_status status;
	int r = cluster_get(tx, a, cluster_id, &cluster);
	if (r == 0)
		r = s->engine_ops->core->observe(s->engine_state, arena_z(a, cluster_id), a, &status);
	for (size_t i = 0; r == 0 && i < status.node_count; i++) {
		const struct node_status *n = &status.nodes[i];
		struct exposing x = {.service = s, .arena = a, .cluster = &cluster, .node = n};
		if (!str_eq(process, arena_printf(a, "%s:%u", n->host, n->port)))
			continue;
		if (!kept_find(&x, ret_text)) {
			process_write(&x);
			*ret_text = buf_keep(&x.out, a);
			kept_put(&x, *ret_text);
		}
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

void metrics_exposed(struct service *s, struct request *r)
{
	struct tx *tx = lane_here(s)->reader;
	struct str cluster_id, process, text = STR("");
	str_cut(r->query, '/', &cluster_id, &process);
	tx_begin_read(tx);
	int result = process_expose(s, tx, r->arena, cluster_id, process, &text);
	tx_end_read(tx);
	struct buf b = {0};
	json_open(&b, '{');
	json_pair_str(&b, "text", result < 0 ? STR("") : text);
	json_close(&b, '}');
	answer_json(r, 200, &b);
	respond_here(r);
}
