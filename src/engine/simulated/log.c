/* The log of a simulated node: that it started, and who has come or was refused (logins.c). It is a function of the
 * node and the time, so a place in it is a time, and the same range gives the same lines again. */
#include "engine/simulated/state.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_NAME "simulated.json"
#define LINES_MAX 5000

struct sim_line {
	int64_t at_ms;
	struct str text;
};

static int started_find(struct engine *e, const struct engine_log *log, int64_t *ret_ms)
{
	int r = -ENOENT;
	pthread_mutex_lock(&e->lock);
	const struct sim_cluster *s = sim_cluster_find(e, log->cluster_id);
	for (size_t i = 0; s && i < s->node_count; i++)
		if (strcmp(s->nodes[i].name, log->node) == 0) {
			*ret_ms = s->nodes[i].started_ms;
			r = 0;
		}
	pthread_mutex_unlock(&e->lock);
	return r;
}

static struct str line_text(struct arena *a, int64_t at_ms, const char *severity, struct str message)
{
	struct buf b = {0};
	char time[CLOCK_TEXT];
	clock_format(at_ms, time);
	json_open(&b, '{');
	json_key(&b, "timestamp");
	json_z(&b, time);
	json_key(&b, "error_severity");
	json_z(&b, severity);
	json_key(&b, "message");
	json_str(&b, message);
	json_close(&b, '}');
	buf_c(&b, '\n');
	return buf_keep(&b, a);
}

/* Of a time whose end belongs to it not, oldest first. */
static int lines_make(struct engine *e, const struct engine_log *log, int64_t from_ms, int64_t to_ms, struct arena *a,
                      struct sim_line **ret_lines, size_t *ret_count)
{
	struct engine_logins wanted = {
	        .cluster_id = log->cluster_id, .node = log->node, .from_ms = from_ms, .to_ms = to_ms, .max = LINES_MAX};
	struct engine_login *logins = NULL;
	size_t count = 0, made = 0;
	int64_t started;
	int r = started_find(e, log, &started);
	if (r == 0)
		r = sim_logins(e, &wanted, a, &logins, &count);
	if (r < 0)
		return r;
	struct sim_line *lines = arena_new_array(a, struct sim_line, count + 1);
	bool starts = started > 0 && started >= from_ms && started < to_ms;
	struct str ready = arena_printf(a, "simulated node %s is ready", log->node);
	for (size_t i = count; i-- > 0;) {
		if (starts && started <= logins[i].at_ms) {
			lines[made++] = (struct sim_line){started, line_text(a, started, "LOG", ready)};
			starts = false;
		}
		const char *severity = logins[i].success ? "LOG" : "FATAL";
		lines[made++] =
		        (struct sim_line){logins[i].at_ms, line_text(a, logins[i].at_ms, severity, logins[i].line)};
	}
	if (starts)
		lines[made++] = (struct sim_line){started, line_text(a, started, "LOG", ready)};
	*ret_lines = lines;
	*ret_count = made;
	return 0;
}

int sim_log_open(struct engine *e, const struct engine_log *log, int *ret_fd)
{
	struct arena *a = arena_new();
	struct sim_line *lines;
	size_t count;
	int r = lines_make(e, log, log->from_ms, log->to_ms, a, &lines, &count), fd = -1;
	if (r == 0 && (fd = memfd_create("log", MFD_CLOEXEC)) < 0)
		r = -errno;
	for (size_t i = 0; r == 0 && log->kind != ENGINE_LOG_AUDIT && i < count; i++)
		dprintf(fd, "%.*s", STR_ARG(lines[i].text));
	arena_free(a);
	if (r < 0)
		return r;
	lseek(fd, 0, SEEK_SET);
	*ret_fd = fd;
	return 0;
}

int sim_log_follow(struct engine *e, const struct engine_log *log, struct engine_log_range *range,
                   engine_log_take *take, void *ctx)
{
	struct arena *a = arena_new();
	struct sim_line *lines;
	size_t count;
	struct engine_log_place at = range->from;
	int64_t to_ms = range->fixed ? range->to.offset : clock_now_ms() + 1;
	int r = lines_make(e, log, at.offset, to_ms, a, &lines, &count);
	range->lost = range->more = false;
	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct engine_log_line line = {.kind = ENGINE_LOG_SERVER,
		                                     .text = lines[i].text,
		                                     .position = at.position,
		                                     .at_ms = lines[i].at_ms,
		                                     .ends = true};
		r = take(ctx, &line);
		if (r != 0)
			break;
		at.position += (int64_t)lines[i].text.n;
		at.offset = lines[i].at_ms + 1;
	}
	range->more = r == 1;
	arena_free(a);
	if (r < 0)
		return r;
	snprintf(at.file, sizeof at.file, FILE_NAME);
	if (!range->fixed)
		range->to = at;
	return 0;
}

int sim_log_end(struct engine *e, const struct engine_log *log, struct engine_log_place *ret_place)
{
	int64_t started;
	int r = started_find(e, log, &started);
	if (r == 0)
		*ret_place = (struct engine_log_place){.file = FILE_NAME, .offset = clock_now_ms() + 1};
	return r;
}
