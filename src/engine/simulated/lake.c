/* Online archives of simulated clusters: every table has a row of each full hour, of the 10,000 hours before its
 * archive first moved rows and of all since; its date is that hour, whatever the field and the format. A query finds
 * the rows of every tenth hour; of a file, when rows are brought back, those of the first tenth of its hours. Every
 * table, column and database is there, but for those called "missing".
 *
 * Files have a line for each row and are nobody's Parquet. They are in memory alone: after a new start of the service
 * all rows are in the table again. */
#include "engine/simulated/state.h"

#include "base/buf.h"
#include "base/clock.h"
#include "filter/filter.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)
#define HOURS_BEFORE 10000
#define TENTH 10
#define ROW_BYTES 128 /* in the table */
#define ROWS 1000     /* of a file, unless less is asked for */
#define LINE 16       /* bytes of a file's row */
#define MARK "PAR1"
#define COLUMNS "[{\"name\":\"at\",\"type\":\"timestamptz\"}]"

struct file {
	char id[ID_LEN + 1];
	int64_t from, to, step; /* hours, without the last; and from one of its rows to the next */
	int64_t moved_ms, newest_ms;
	int64_t unnamed_ms; /* since when a sweep knows that nobody names it; 0: none does */
	uint64_t rows, bytes;
	char sha256[65];
	bool named, there; /* in the manifest; in the object store */
	bool brought;      /* its rows are in the table again */
};

struct sim_lake {
	struct sim_lake *next;
	char id[ID_LEN + 1];
	int64_t first; /* hour */
	struct file *files;
	size_t count, room;
};

static struct sim_lake *lake_find(const struct engine *e, const char *id)
{
	struct sim_lake *l = e->lakes;
	while (l && strcmp(l->id, id) != 0)
		l = l->next;
	return l;
}

static int64_t hour_first(void)
{
	return clock_now_ms() / HOUR_MS - HOURS_BEFORE;
}

static struct sim_lake *lake_make(struct engine *e, const char *id)
{
	struct sim_lake *l = lake_find(e, id);
	if (l)
		return l;
	l = must_calloc(1, sizeof *l);
	str_copy(str_of(id), l->id, sizeof l->id);
	l->first = hour_first();
	l->next = e->lakes;
	e->lakes = l;
	return l;
}

void sim_lakes_free(struct engine *e)
{
	while (e->lakes) {
		struct sim_lake *l = e->lakes;
		e->lakes = l->next;
		free(l->files);
		free(l);
	}
}

static bool is_there(struct engine *e, const struct engine_lake *want)
{
	const struct sim_cluster *s = sim_cluster_find(e, want->cluster_id);
	return s && s->exists;
}

/* --- rows of the table */

/* The hour behind the last that is to move, and how far it is from one row to the next. */
static int64_t hours_end(const struct engine_lake *want, int64_t *ret_step)
{
	*ret_step = want->query ? TENTH : 1;
	return (want->query ? clock_now_ms() : want->before_ms) / HOUR_MS;
}

/* The first hour from `hour` on whose row is in the table, and where the rows end that follow it there. */
static int64_t rows_find(const struct sim_lake *l, int64_t hour, int64_t end, int64_t *ret_end)
{
	*ret_end = end;
	for (size_t i = 0; i < l->count; i++) {
		const struct file *f = &l->files[i];
		if (f->brought || f->to <= hour || f->from >= *ret_end)
			continue;
		if (f->from > hour) {
			*ret_end = f->from;
			continue;
		}
		hour = f->to;
		*ret_end = end;
		i = (size_t)-1; /* another file may begin there, or have been passed over */
	}
	return hour < end ? hour : end;
}

static int64_t rows_count(int64_t from, int64_t to, int64_t step)
{
	return (to + step - 1) / step - (from + step - 1) / step;
}

static uint64_t rows_that_move(const struct sim_lake *l, const struct engine_lake *want)
{
	int64_t step, run_end, end = hours_end(want, &step), rows = 0;
	for (int64_t at = rows_find(l, l->first, end, &run_end); at < end; at = rows_find(l, run_end, end, &run_end))
		rows += rows_count(at, run_end, step);
	return (uint64_t)rows;
}

/* --- files */

static void content_make(const struct file *f, struct buf *out)
{
	buf_z(out, MARK);
	int64_t first = (f->from + f->step - 1) / f->step * f->step;
	for (int64_t hour = first; hour < f->to; hour += f->step) {
		long long at_ms = hour * HOUR_MS;
		buf_printf(out, "%*lld\n", LINE - 1, at_ms);
	}
	buf_z(out, MARK);
}

static void file_sum(struct file *f)
{
	unsigned char sum[32];
	struct buf content = {0};
	content_make(f, &content);
	f->bytes = content.n;
	EVP_Digest(content.p, content.n, sum, NULL, EVP_sha256(), NULL);
	hex_encode(sum, sizeof sum, f->sha256);
	buf_free(&content);
}

static const struct file *file_add(struct sim_lake *l, const struct engine_lake *want, int64_t from, int64_t to,
                                   int64_t step)
{
	struct file f = {
	        .from = from, .to = to, .step = step, .moved_ms = clock_now_ms(), .named = true, .there = true};
	struct id id = id_new();
	memcpy(f.id, id.z, sizeof f.id);
	f.rows = (uint64_t)rows_count(from, to, step);
	f.newest_ms = want->query ? f.moved_ms : want->before_ms;
	file_sum(&f);
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 16;
		l->files = must_realloc(l->files, l->room * sizeof *l->files);
	}
	l->files[l->count] = f;
	return &l->files[l->count++];
}

static void held_add(struct engine_lake_held *h, const struct file *f)
{
	if (!h->files || f->moved_ms < h->oldest_moved_ms)
		h->oldest_moved_ms = f->moved_ms;
	if (!h->files || f->moved_ms > h->newest_moved_ms)
		h->newest_moved_ms = f->moved_ms;
	h->files++;
	h->rows += f->rows;
	h->bytes += f->bytes;
}

/* --- the capability */

static const char gone_text[] = "the database has no such table";

static int sim_lake_can(struct engine *e, struct arena *a, const char **ret_why)
{
	return 0;
}

static int refuse(const char *field, int result, const char *why, const char **ret_field, const char **ret_why)
{
	*ret_field = field;
	*ret_why = why;
	return result;
}

static bool is_missing(const char *name)
{
	return strcmp(name, "missing") == 0;
}

static int wish_check(const struct engine_lake *want, struct arena *a, const char **ret_field, const char **ret_why)
{
	if (is_missing(want->database))
		return refuse("dbName", -ENOENT, "the cluster has no such database", ret_field, ret_why);
	if (is_missing(want->table))
		return refuse("collName", -ENOENT, "missing is not there", ret_field, ret_why);
	if (want->query && !filter_parse_ordered(str_of(want->query), a, ret_why)) {
		*ret_why = arena_printf(a, "the query %s", *ret_why).p;
		*ret_field = "criteria.query";
		return -EINVAL;
	}
	if (want->query && strstr(want->query, "missing"))
		return refuse("criteria.query", -EINVAL, "missing is no column of the table", ret_field, ret_why);
	if (!want->query && is_missing(want->field))
		return refuse("criteria.dateField", -EINVAL, "missing is no column of the table", ret_field, ret_why);
	for (size_t i = 0; i < want->order_count; i++)
		if (is_missing(want->order[i]))
			return refuse(arena_printf(a, "partitionFields[%zu].fieldName", i).p, -EINVAL,
			              "missing is no column of the table", ret_field, ret_why);
	return 0;
}

static int sim_lake_check(struct engine *e, const struct engine_lake *want, struct arena *a,
                          struct engine_lake_preview *ret_preview, const char **ret_field, const char **ret_why)
{
	const struct sim_lake new = {.first = hour_first()};
	pthread_mutex_lock(&e->lock);
	const struct sim_lake *l = lake_find(e, want->id);
	bool there = is_there(e, want);
	uint64_t rows = there && ret_preview ? rows_that_move(l ? l : &new, want) : 0;
	bool gone = there && sim_told_to_fail(e, SIM_TABLE);
	pthread_mutex_unlock(&e->lock);
	if (!there) {
		*ret_why = "the cluster does not run";
		return -EAGAIN;
	}
	if (gone)
		return refuse("collName", -ENOENT, gone_text, ret_field, ret_why);
	int r = wish_check(want, a, ret_field, ret_why);
	if (r == 0 && ret_preview)
		*ret_preview = (struct engine_lake_preview){.rows = rows, .bytes = rows * ROW_BYTES};
	return r;
}

static void rows_move(struct engine *e, const struct engine_lake *want, unsigned most, struct engine_lake_moved *moved)
{
	struct sim_lake *l = lake_make(e, want->id);
	int64_t step, run_end, end = hours_end(want, &step), at = rows_find(l, l->first, end, &run_end);
	*moved = (struct engine_lake_moved){.over = true};
	/* A run of hours without a row of the query's. */
	while (at < end && rows_count(at, run_end, step) == 0)
		at = rows_find(l, run_end, end, &run_end);
	if (at >= end)
		return;
	if (run_end - at > (int64_t)most * step)
		run_end = at + (int64_t)most * step;
	const struct file *f = file_add(l, want, at, run_end, step);
	*moved = (struct engine_lake_moved){.rows = f->rows, .bytes = f->bytes};
	moved->over = rows_that_move(l, want) == 0;
}

static int sim_lake_move(struct engine *e, const struct engine_lake *want, const struct engine_lake_bounds *bounds,
                         const _Atomic bool *stop, struct arena *a, uint64_t *place,
                         struct engine_lake_moved *ret_moved, const char **ret_why)
{
	const char *field;
	int r = wish_check(want, a, &field, ret_why);
	if (r < 0)
		return r;
	pthread_mutex_lock(&e->lock);
	if (!is_there(e, want)) {
		*ret_why = "the cluster does not run";
		r = -EAGAIN;
	} else if (sim_told_to_fail(e, SIM_TABLE)) {
		*ret_why = gone_text;
		r = -ENOENT;
	} else if (sim_told_to_fail(e, SIM_LAKE)) {
		*ret_why = "the test control asked for this failure";
		r = -EIO;
	} else {
		rows_move(e, want, bounds && bounds->rows ? bounds->rows : ROWS, ret_moved);
		*place += 1;
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

static int sim_lake_held(struct engine *e, const struct engine_lake *want, struct arena *a,
                         struct engine_lake_held *ret_held)
{
	struct engine_lake_held held = {0};
	pthread_mutex_lock(&e->lock);
	const struct sim_lake *l = lake_find(e, want->id);
	int r = is_there(e, want) ? 0 : -EAGAIN;
	for (size_t i = 0; l && i < l->count; i++)
		if (l->files[i].named)
			held_add(&held, &l->files[i]);
	pthread_mutex_unlock(&e->lock);
	if (r == 0)
		*ret_held = held;
	return r;
}

static struct engine_lake_file file_told(const struct file *f, struct arena *a)
{
	return (struct engine_lake_file){.id = arena_z(a, str_of(f->id)),
	                                 .columns = COLUMNS,
	                                 .rows = f->rows,
	                                 .bytes = f->bytes,
	                                 .sha256 = arena_z(a, str_of(f->sha256)),
	                                 .moved_ms = f->moved_ms,
	                                 .newest_ms = f->newest_ms};
}

static int sim_lake_files(struct engine *e, const struct engine_lake *want, size_t skip, size_t most, struct arena *a,
                          struct engine_lake_file **ret_list, size_t *ret_count)
{
	pthread_mutex_lock(&e->lock);
	const struct sim_lake *l = lake_find(e, want->id);
	int r = is_there(e, want) ? 0 : -EAGAIN;
	size_t count = 0;
	struct engine_lake_file *list = arena_new_array(a, struct engine_lake_file, (l ? l->count : 0) + 1);
	for (size_t i = 0; l && i < l->count && count < most; i++) {
		if (!l->files[i].named)
			continue;
		if (skip)
			skip--;
		else
			list[count++] = file_told(&l->files[i], a);
	}
	pthread_mutex_unlock(&e->lock);
	if (r == 0) {
		*ret_list = list;
		*ret_count = count;
	}
	return r;
}

static struct file *file_find(struct sim_lake *l, const char *id)
{
	for (size_t i = 0; l && i < l->count; i++)
		if (l->files[i].named && (!id || strcmp(l->files[i].id, id) == 0))
			return &l->files[i];
	return NULL;
}

static int sim_lake_read(struct engine *e, const struct engine_lake *want, const char *file, objects_write *write,
                         void *ctx, struct arena *a, const char **ret_why)
{
	struct buf content = {0};
	pthread_mutex_lock(&e->lock);
	const struct file *f = file_find(lake_find(e, want->id), file);
	if (f)
		content_make(f, &content);
	pthread_mutex_unlock(&e->lock);
	int r = f ? write(ctx, content.p, content.n) : -ENOENT;
	if (!f)
		*ret_why = "the archive has no such file";
	buf_free(&content);
	return r;
}

static int sim_lake_expire(struct engine *e, const struct engine_lake *want, int64_t before_ms, struct arena *a,
                           struct engine_lake_held *ret_gone, const char **ret_why)
{
	*ret_gone = (struct engine_lake_held){0};
	pthread_mutex_lock(&e->lock);
	struct sim_lake *l = lake_find(e, want->id);
	for (size_t i = 0; l && i < l->count; i++) {
		struct file *f = &l->files[i];
		if (!f->named || f->newest_ms > before_ms)
			continue;
		held_add(ret_gone, f);
		f->named = false;
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int sim_lake_sweep(struct engine *e, const struct engine_lake *want, int64_t oldest_ms, struct arena *a,
                          struct engine_lake_swept *ret_swept, const char **ret_why)
{
	int64_t now = clock_now_ms();
	*ret_swept = (struct engine_lake_swept){0};
	pthread_mutex_lock(&e->lock);
	struct sim_lake *l = lake_find(e, want->id);
	for (size_t i = 0; l && i < l->count; i++) {
		struct file *f = &l->files[i];
		if (f->named || !f->there)
			continue;
		f->unnamed_ms = f->unnamed_ms ? f->unnamed_ms : now;
		f->there = f->unnamed_ms >= oldest_ms;
		ret_swept->dropped += !f->there;
		ret_swept->kept += f->there;
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

static int sim_lake_erase(struct engine *e, const struct engine_lake *want, struct arena *a, const char **ret_why)
{
	pthread_mutex_lock(&e->lock);
	struct sim_lake *l = lake_find(e, want->id);
	for (size_t i = 0; l && i < l->count; i++)
		l->files[i].named = l->files[i].there = false;
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* What stays of it is another file. */
static void file_bring(struct sim_lake *l, struct file *f, int64_t to, struct engine_lake_moved *moved)
{
	const struct file was = *f;
	const struct engine_lake none = {.before_ms = was.newest_ms};
	moved->rows = (uint64_t)rows_count(was.from, to, was.step);
	moved->bytes = was.rows ? was.bytes * moved->rows / was.rows : 0;
	if (!moved->rows)
		return;
	f->named = false;
	f->brought = true;
	if (moved->rows == was.rows)
		return;
	size_t place = (size_t)(file_add(l, &none, to, was.to, was.step) - l->files);
	l->files[place].newest_ms = was.newest_ms;
	l->files[place].moved_ms = was.moved_ms;
}

static int sim_lake_bring(struct engine *e, const struct engine_lake *want, const char *query, const char *file,
                          const _Atomic bool *stop, struct arena *a, struct engine_lake_moved *ret_moved,
                          const char **ret_why)
{
	const char *field;
	struct engine_lake wish = *want;
	wish.query = query ? query : want->query;
	int r = wish_check(&wish, a, &field, ret_why);
	if (r < 0)
		return r;
	*ret_moved = (struct engine_lake_moved){0};
	pthread_mutex_lock(&e->lock);
	struct sim_lake *l = lake_find(e, want->id);
	struct file *f = file_find(l, file);
	if (!is_there(e, want)) {
		*ret_why = "the cluster does not run";
		r = -EAGAIN;
	} else if (sim_told_to_fail(e, SIM_LAKE)) {
		*ret_why = "the test control asked for this failure";
		r = -EIO;
	} else if (!f) {
		*ret_why = "the archive has no such file";
		r = -ENOENT;
	} else {
		file_bring(l, f, query ? f->from + (f->to - f->from) / TENTH : f->to, ret_moved);
		ret_moved->over = !file_find(l, NULL);
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

const struct engine_lake_ops sim_lake = {.can = sim_lake_can,
                                         .check = sim_lake_check,
                                         .move = sim_lake_move,
                                         .held = sim_lake_held,
                                         .files = sim_lake_files,
                                         .read = sim_lake_read,
                                         .expire = sim_lake_expire,
                                         .sweep = sim_lake_sweep,
                                         .erase = sim_lake_erase,
                                         .bring = sim_lake_bring};
