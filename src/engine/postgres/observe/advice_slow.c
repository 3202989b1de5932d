/* Slow statements, from what auto_explain has written into a node's log: one line of JSON each, whose message is the
 * time and the plan, as JSON again. The newest files are read first, and no more of them than there is time for. A line
 * of auto_explain has no context; what a user's code raises in its words has one, and is no slow statement. */
#include "engine/postgres/observe/advice_slow.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/nolink.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 4096
#define LINE_BYTES (1 << 20) /* a longer one is left out */
#define LINE_KEPT (32 << 10) /* of one in an answer */
#define ALL_KEPT (8 << 20)   /* of all of them */
#define READ_BYTES (INT64_C(256) << 20)
#define READ_MS 5000
#define DEPTH_MAX 200
#define OUTLINE_MAX 4000 /* bytes of a plan's outline */
#define OUTLINE_DEPTH 60
#define MARK ",\"message\":\"duration: "

struct found {
	struct engine_slow *list; /* oldest first */
	size_t count, room;
};

struct reading {
	const struct engine_slow_question *q;
	struct arena *arena;
	struct found file; /* of the file that is read */
	struct engine_slow *list;
	size_t count, room, kept_bytes;
	int64_t read_bytes, end_ms;
};

/* --- a plan */

static double number_of(const json_t *node, const char *name)
{
	return json_number_value(json_object_get(node, name));
}

static bool type_is(const json_t *node, const char *type)
{
	return str_is(json_field(node, "Node Type"), type);
}

struct plan {
	double examined, keys, most;
	const json_t *table; /* the node that read the most */
	bool sorts, scans;
};

static void plan_walk(const json_t *node, int depth, struct plan *p)
{
	double loops = number_of(node, "Actual Loops"), rows = number_of(node, "Actual Rows") * loops;
	double read =
	        rows +
	        (number_of(node, "Rows Removed by Filter") + number_of(node, "Rows Removed by Index Recheck")) * loops;
	bool index =
	        type_is(node, "Index Scan") || type_is(node, "Index Only Scan") || type_is(node, "Bitmap Index Scan");
	bool table = json_object_get(node, "Relation Name") && !type_is(node, "ModifyTable");
	p->keys += index ? read : 0;
	p->examined += table ? read : 0;
	p->sorts |= type_is(node, "Sort") || type_is(node, "Incremental Sort");
	p->scans |= table && !index && !type_is(node, "Bitmap Heap Scan");
	if (json_object_get(node, "Relation Name") && (!p->table || (table && read > p->most))) {
		p->table = node;
		p->most = table ? read : 0;
	}
	const json_t *below = json_object_get(node, "Plans");
	for (size_t i = 0; depth < DEPTH_MAX && i < json_array_size(below); i++)
		plan_walk(json_array_get(below, i), depth + 1, p);
}

/* "  Index Scan using orders_pkey on shop.orders" */
static void outline_add(struct buf *b, const json_t *node, int depth)
{
	struct str index = json_field(node, "Index Name"), table = json_field(node, "Relation Name");
	struct str join = json_field(node, "Join Type"), schema = json_field(node, "Schema");
	const json_t *below = json_object_get(node, "Plans");
	if (depth > OUTLINE_DEPTH || b->n > OUTLINE_MAX)
		return;
	buf_printf(b, "%*s", 2 * depth, "");
	buf_str(b, json_field(node, "Node Type"));
	if (join.n && !str_is(join, "Inner")) {
		buf_z(b, " ");
		buf_str(b, join);
	}
	if (index.n) {
		buf_z(b, " using ");
		buf_str(b, index);
	}
	if (table.n) {
		buf_z(b, " on ");
		buf_str(b, schema.n ? schema : STR("public"));
		buf_c(b, '.');
		buf_str(b, table);
	}
	buf_c(b, '\n');
	for (size_t i = 0; i < json_array_size(below); i++)
		outline_add(b, json_array_get(below, i), depth + 1);
}

static const char *plan_outline(struct arena *a, const json_t *root)
{
	struct buf b = {0};
	outline_add(&b, root, 0);
	if (b.n > OUTLINE_MAX)
		b.n = OUTLINE_MAX;
	const char *text = engine_shown(a, arena_z(a, (struct str){b.p, b.n}));
	buf_free(&b);
	return text;
}

static const char *operation_of(struct arena *a, const json_t *root)
{
	struct str name = json_field(root, "Operation");
	return type_is(root, "ModifyTable") ? arena_lower(a, name).p : "select";
}

/* --- a line */

/* "duration: 123.456 ms  plan:\n{...}" */
static json_t *plan_of(struct arena *a, const char *message, double *ret_ms)
{
	static const char head[] = "duration: ", middle[] = " ms  plan:\n";
	char *end;
	if (strncmp(message, head, sizeof head - 1) != 0)
		return NULL;
	*ret_ms = strtod(message + sizeof head - 1, &end);
	if (strncmp(end, middle, sizeof middle - 1) != 0 || !isfinite(*ret_ms))
		return NULL;
	json_t *doc = json_loads(end + sizeof middle - 1, 0, NULL);
	return doc ? json_keep(a, doc) : NULL;
}

/* What stands before the message says nothing of data. */
static struct str line_kept(const struct reading *t, const char *line, size_t n)
{
	static const char rest[] = ",\"message\":\"redacted\"}";
	const char *at = t->q->redact ? memmem(line, n, MARK, sizeof MARK - 1) : NULL;
	if (at)
		return arena_printf(t->arena, "%.*s%s", (int)(at - line), line, rest);
	if (n > LINE_KEPT) {
		n = LINE_KEPT;
		while (n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80)
			n--;
	}
	return arena_dup(t->arena, (struct str){line, n});
}

static const char *str_or(struct str s, const char *otherwise)
{
	return s.n ? s.p : otherwise;
}

static void entry_add(struct reading *t, const json_t *entry, const json_t *doc, double ms, int64_t at_ms,
                      struct str line)
{
	const json_t *root = json_object_get(doc, "Plan");
	struct plan p = {.examined = 0};
	plan_walk(root, 0, &p);
	const char *namespace = p.table ? engine_namespace(t->arena, str_or(json_field(entry, "dbname"), ""),
	                                                   str_or(json_field(p.table, "Schema"), "public"),
	                                                   str_or(json_field(p.table, "Relation Name"), ""))
	                                : "";
	if (!engine_namespace_is_of(&t->q->of, namespace))
		return;
	ARENA_FIT(t->arena, t->file.list, t->file.count, t->file.room);
	t->file.list[t->file.count++] = (struct engine_slow){
	        .at_ms = at_ms,
	        .ms = ms,
	        .namespace = namespace,
	        .operation = operation_of(t->arena, root),
	        .line = line_kept(t, line.p, line.n),
	        .examined = llround(p.examined),
	        .keys = llround(p.keys),
	        .returned = llround(number_of(root, "Actual Rows") * number_of(root, "Actual Loops")),
	        .sorts = p.sorts,
	        .by_index = p.table && !p.scans,
	        .by_user = !str_is(json_field(entry, "user"), PG_SUPER),
	        .query = json_number(entry, "query_id"),
	        .plan = plan_outline(t->arena, root),
	};
}

static void line_read(struct reading *t, const char *line, size_t n)
{
	int64_t at_ms;
	double ms;
	if (!memmem(line, n, MARK, sizeof MARK - 1))
		return;
	struct arena *a = arena_new(); /* for what is only looked at */
	json_t *entry = json_loadb(line, n, 0, NULL);
	entry = entry ? json_keep(a, entry) : NULL;
	struct str stamp = json_field(entry, "timestamp"), message = json_field(entry, "message");
	if (message.n && stamp.n > 23 && clock_parse((struct str){stamp.p, 23}, &at_ms) && at_ms >= t->q->from_ms &&
	    at_ms < t->q->to_ms && str_is(json_field(entry, "error_severity"), "LOG") &&
	    !json_object_get(entry, "context")) {
		const json_t *doc = plan_of(a, message.p, &ms);
		if (doc)
			entry_add(t, entry, doc, ms, at_ms, (struct str){line, n});
	}
	arena_free(a);
}

/* --- files */

static bool is_over(const struct reading *t)
{
	return t->count >= t->q->most || t->kept_bytes >= ALL_KEPT || t->read_bytes >= READ_BYTES ||
	       pg_mono_ms() >= t->end_ms;
}

static void lines_read(struct reading *t, FILE *f)
{
	char *line = must_malloc(LINE_BYTES);
	bool whole = true; /* this piece begins a line */
	while (pg_mono_ms() < t->end_ms && fgets(line, LINE_BYTES, f)) {
		size_t n = strlen(line);
		bool ends = n > 0 && line[n - 1] == '\n';
		t->read_bytes += (int64_t)n;
		if (whole && ends)
			line_read(t, line, n - 1);
		whole = ends;
	}
	free(line);
}

/* One that was written to for the last time before the period has nothing of it. */
static void file_read(struct reading *t, const char *dir, const char *name)
{
	char path[PG_PATH];
	struct stat st;
	pg_path_set(path, "%s/%s", dir, name);
	int fd = nolink_open(path, O_RDONLY, 0);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	t->file.count = 0;
	if (fstat(fd, &st) == 0 && (int64_t)st.st_mtime * 1000 + 1000 >= t->q->from_ms)
		lines_read(t, f);
	fclose(f);
	for (size_t i = t->file.count; i > 0 && !is_over(t); i--) {
		ARENA_FIT(t->arena, t->list, t->count, t->room);
		t->list[t->count++] = t->file.list[i - 1];
		t->kept_bytes += t->file.list[i - 1].line.n;
	}
}

static int by_name_down(const void *a, const void *b)
{
	return strcmp(b, a);
}

static void files_read(struct reading *t, const char *dir)
{
	char(*names)[64] = must_calloc(FILES_MAX, sizeof *names);
	size_t count = 0;
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && count < FILES_MAX && (entry = readdir(d));)
		if (str_ends(str_of(entry->d_name), STR(".json")))
			snprintf(names[count++], sizeof *names, "%.63s", entry->d_name);
	if (d)
		closedir(d);
	qsort(names, count, sizeof *names, by_name_down);
	for (size_t i = 0; i < count && !is_over(t); i++)
		file_read(t, dir, names[i]);
	free(names);
}

int pg_advice_slow(struct engine *e, const struct engine_slow_question *q, struct arena *a,
                   struct engine_slow **ret_list, size_t *ret_count)
{
	char dir[PG_PATH];
	struct pg_cluster *c = pg_cluster_find(e, q->cluster_id);
	if (!c)
		return -ENOENT;
	pthread_mutex_lock(&c->lock);
	const struct pg_node *n = pg_cluster_node(c, q->node);
	if (n)
		pg_node_path(c, n, "log", dir);
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	if (!n)
		return -ENOENT;
	struct reading t = {.q = q, .arena = a, .end_ms = pg_mono_ms() + READ_MS};
	files_read(&t, dir);
	*ret_list = t.list;
	*ret_count = t.count;
	return 0;
}
