/* Times are kept as moments, so that ages grow between two looks. */
#include "api/snapshots/figures.h"

#include "api/snapshots/catalogue.h"
#include "api/snapshots/snapshot.h"
#include "base/clock.h"
#include "trail/metrics.h"

#include <errno.h>
#include <pthread.h>

#define SWEPT_META "backup_swept" /* {"bytes", "unknown"}: as of the last sweep */

static struct {
	struct backup_figures each_minute;
	uint64_t repository_bytes, unknown;
	int64_t window_ms;
} shown = {.window_ms = -1};
static pthread_mutex_t shown_lock = PTHREAD_MUTEX_INITIALIZER;

static void oldest(int64_t *at, int64_t ms)
{
	if (!*at || ms < *at)
		*at = ms;
}

/* A line of an older version does not know it. */
int backup_taken(struct tx *tx, struct arena *a, const struct backup_line *line, int64_t *ret_ms)
{
	struct snapshot *list;
	size_t count = 0;
	int64_t now = clock_now_ms();
	*ret_ms = json_number(line->body, "taken");
	if (*ret_ms && *ret_ms <= now)
		return 0;
	*ret_ms = 0; /* also by a clock that was ahead: that would hide for as long that no other is taken */
	int r = snapshots_of(tx, a, line->doc.id, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		int64_t ended = json_number(list[i].plan, "ended");
		if (snapshot_is(&list[i], "completed") && ended > *ret_ms && ended <= now)
			*ret_ms = ended;
	}
	return r;
}

int backup_figures_add(struct tx *tx, struct arena *a, const struct backup_line *line, struct backup_figures *f)
{
	int64_t taken, proven = json_number(line->body, "proven"), since = json_number(line->body, "running");
	int r = backup_taken(tx, a, line, &taken);
	if (r < 0)
		return r;
	since = since ? since : line->doc.created_ms;
	if (json_flag(line->body, "wanted")) {
		f->clusters++;
		f->overdue += json_flag(line->body, "overdue");
		if (!json_flag(line->body, "paused"))
			oldest(&f->taken_ms, taken > since ? taken : since);
	}
	f->unproven += json_flag(json_object_get(line->body, "drill"), "failed");
	if (taken)
		oldest(&f->proven_ms, proven ? proven : line->doc.created_ms);
	return 0;
}

void backup_figures_show(const struct backup_figures *f)
{
	pthread_mutex_lock(&shown_lock);
	shown.each_minute = *f;
	pthread_mutex_unlock(&shown_lock);
}

void backup_figures_swept(uint64_t repository_bytes, uint64_t unknown, int64_t window_ms)
{
	pthread_mutex_lock(&shown_lock);
	shown.unknown = unknown;
	shown.repository_bytes = repository_bytes;
	shown.window_ms = window_ms;
	pthread_mutex_unlock(&shown_lock);
}

int backup_figures_keep(struct tx *tx, struct arena *a, uint64_t repository_bytes, uint64_t unknown)
{
	json_t *kept = json_new(a);
	json_put(kept, "bytes", json_integer((json_int_t)repository_bytes));
	json_put(kept, "unknown", json_integer((json_int_t)unknown));
	return tx_meta_put(tx, SWEPT_META, json_text(a, kept));
}

int backup_figures_load(struct tx *tx, struct arena *a)
{
	struct str kept;
	int r = tx_meta_get(tx, a, SWEPT_META, &kept);
	if (r < 0)
		return r == -ENOENT ? 0 : r; /* nothing was swept so far */
	const json_t *swept = doc_json(a, kept);
	backup_figures_swept((uint64_t)json_number(swept, "bytes"), (uint64_t)json_number(swept, "unknown"), -1);
	return 0;
}

static uint64_t seconds_since(int64_t ms)
{
	int64_t age = ms ? clock_now_ms() - ms : 0;
	return age > 0 ? (uint64_t)age / 1000 : 0;
}

void backup_figures_write(struct buf *b, const struct service *s)
{
	if (!s->engine_ops || !s->engine_ops->backup)
		return;
	pthread_mutex_lock(&shown_lock);
	const struct backup_figures f = shown.each_minute;
	uint64_t bytes = shown.repository_bytes, unknown = shown.unknown;
	int64_t window_ms = shown.window_ms;
	pthread_mutex_unlock(&shown_lock);
	metrics_number(b, "steward_backup_clusters", "gauge", "Clusters on this host that shall have backups.",
	               f.clusters);
	metrics_number(b, "steward_backup_snapshot_age_seconds", "gauge",
	               "Since the last snapshot of the cluster that has waited longest for one.",
	               seconds_since(f.taken_ms));
	metrics_number(b, "steward_backup_overdue", "gauge",
	               "Clusters without a new snapshot for two periods of their schedules.", f.overdue);
	metrics_number(b, "steward_backup_log_lag_seconds", "gauge",
	               "Age of log that is not in the repository yet, where it is oldest.",
	               (uint64_t)(f.lag_ms > 0 ? f.lag_ms : 0) / 1000);
	metrics_number(b, "steward_backup_log_behind", "gauge", "Clusters whose log is more than five minutes behind.",
	               f.behind);
	metrics_number(b, "steward_backup_log_broken", "gauge",
	               "Clusters whose window has ended, and which no snapshot has begun anew.", f.broken);
	metrics_number(b, "steward_backup_spool_bytes", "gauge", "Log that waits on this host.", f.spool_bytes);
	if (window_ms >= 0)
		metrics_number(b, "steward_backup_window_seconds", "gauge",
		               "Length of the shortest window of a cluster on this host.", (uint64_t)window_ms / 1000);
	if (s->drill_days)
		metrics_number(b, "steward_backup_proven_age_seconds", "gauge",
		               "Since the last drill that succeeded of the cluster that has waited longest for one.",
		               seconds_since(f.proven_ms));
	metrics_number(b, "steward_backup_drills_failed", "gauge", "Clusters whose last drill failed.", f.unproven);
	metrics_number(b, "steward_backup_unknown_snapshots", "gauge",
	               "Snapshots in the repositories that the catalogue does not have: the store is an older copy.",
	               unknown);
	metrics_number(b, "steward_backup_repository_bytes", "gauge", "What all backups take in the repositories.",
	               bytes);
}
