/* Taking a snapshot: the files of each set's data directory go into the repository while its server runs, between
 * pg_backup_start and pg_backup_stop, from a standby where one streams. All sets are copied first, then one point is
 * put into the log of each, and the log up to there goes with the files: a snapshot needs nothing else to come back,
 * and what comes back is as of that point, in all sets. Pages are held against their checksums on the way. The files
 * of a paused cluster are copied as they lie.
 *
 * The server keeps nothing of it: backup mode and the slot that holds its log end with the connection. */
#include "engine/postgres/backup/snapshot.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_common.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/image.h"
#include "engine/postgres/backup/snapshot_files.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 8192
#define ATTEMPTS 3
#define START_MS (600 * 1000)
#define SQL_MS 30000
#define STORED_MS 60000

/* --- its log */

static void segment_path(const struct shot_base *b, uint64_t lsn, char ret_name[40])
{
	char name[25];
	pg_segment_name(b->timeline, lsn, b->segment, name);
	snprintf(ret_name, 40, "pg_wal/%s", name);
}

/* One file of the log: where the server has it no more, the archive has. */
static int segment_bytes(struct shot *s, struct shot_base *b, const char *path, char **ret_bytes, size_t *ret_n)
{
	struct repo_line line = {s->c->id, s->to->incarnation, b->name};
	int fd = pg_shot_open(b, path);
	if (fd == -ENOENT) {
		int r = repo_wal_get(s->repository, &line, path + 7, (size_t)b->segment, ret_bytes, ret_n);
		if (r == -ENOENT)
			pg_why_set(NULL, "%s of %s is gone: the log was written faster than the snapshot is read",
			           path + 7, b->node.want.name);
		return r == -ENOENT ? -EAGAIN : r;
	}
	if (fd < 0)
		return fd;
	char *bytes = must_malloc((size_t)b->segment);
	size_t n = 0;
	int r = 0;
	while (r == 0 && n < b->segment) {
		ssize_t got = read(fd, bytes + n, (size_t)b->segment - n);
		if (got == 0 || (got < 0 && errno != EINTR))
			r = got ? -errno : -EIO;
		n += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	if (r < 0) {
		free(bytes);
		return r;
	}
	*ret_bytes = bytes;
	*ret_n = n;
	return 0;
}

/* Up to `end` of it; what comes behind is of no concern, and may be of another time. */
static int segment_write(struct shot *s, struct shot_base *b, uint64_t lsn, uint64_t end)
{
	char path[40], *bytes;
	size_t n;
	struct repo_file file = {.path = path, .mode = 0600, .modified_s = clock_now_ms() / 1000};
	segment_path(b, lsn, path);
	int r = segment_bytes(s, b, path, &bytes, &n);
	if (r < 0)
		return r;
	uint64_t first = lsn / b->segment * b->segment;
	if (end < first + n)
		memset(bytes + (end - first), 0, (size_t)(first + n - end));
	r = repo_write_bytes(b->writer, &file, bytes, n);
	free(bytes);
	return r;
}

static const char reached_sql[] =
        "select (case when pg_is_in_recovery() then coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) else "
        "pg_current_wal_flush_lsn() end - '0/0')::bigint";

/* What is complete, before the server takes it away. */
int pg_shot_follow(struct shot *s, struct shot_base *b)
{
	int64_t reached = 0;
	int r = pg_sql_int(b->conn, SQL_MS, reached_sql, &reached);
	for (; r == 0 && b->stored + b->segment <= (uint64_t)reached; b->stored += b->segment)
		r = segment_write(s, b, b->stored, UINT64_MAX);
	return r;
}

/* All of it up to the point. */
static int log_finish(struct shot *s, struct shot_base *b)
{
	int64_t reached = 0, end = pg_mono_ms() + SQL_MS;
	int r = 0;
	while (r == 0 && (uint64_t)reached < b->position) {
		r = pg_sql_int(b->conn, SQL_MS, reached_sql, &reached);
		if (r == 0 && (uint64_t)reached < b->position && pg_mono_ms() > end)
			r = -ETIMEDOUT;
		if (r == 0 && (uint64_t)reached < b->position)
			pg_sleep_ms(10);
	}
	for (; r == 0 && b->stored < b->position; b->stored += b->segment)
		r = segment_write(s, b, b->stored, b->position);
	if (r == -ETIMEDOUT)
		pg_why_set(NULL, "%s does not get the log of the snapshot's point", b->node.want.name);
	return r;
}

/* --- one set */

static int settings_read(struct shot_base *b)
{
	PGresult *rows;
	int64_t segment = 0, timeline = 0;
	int r = pg_sql_rows(b->conn, SQL_MS,
	                    "select name, setting from pg_settings where name in ('max_connections', "
	                    "'max_worker_processes', 'max_wal_senders', 'max_prepared_transactions', "
	                    "'max_locks_per_transaction', 'max_replication_slots')",
	                    &rows);
	if (r < 0)
		return r;
	b->settings = json_object();
	for (int i = 0; i < PQntuples(rows); i++)
		json_put(b->settings, pg_value(rows, i, 0), json_integer(strtoll(pg_value(rows, i, 1), NULL, 10)));
	PQclear(rows);
	r = pg_sql_int(b->conn, SQL_MS, "select setting::bigint from pg_settings where name = 'wal_segment_size'",
	               &segment);
	r = r < 0 ? r : pg_sql_int(b->conn, SQL_MS, "select timeline_id from pg_control_checkpoint()", &timeline);
	b->segment = (uint64_t)segment;
	b->timeline = (unsigned)timeline;
	return r < 0 ? r : segment < (1 << 20) ? -EPROTO : 0;
}

/* A standby's copy begins with its last restartpoint. As long as that is from before a failover, what follows lies on
 * two timelines. */
static int timeline_check(const struct shot_base *b)
{
	int64_t received = 0;
	int r = pg_sql_int(b->conn, SQL_MS, "select coalesce((select received_tli from pg_stat_wal_receiver), 0)",
	                   &received);
	if (r < 0 || received == (int64_t)b->timeline)
		return r;
	pg_why_set(NULL, "%s has no checkpoint since the failover yet", b->node.want.name);
	return -EAGAIN;
}

static int base_begin(struct shot *s, struct shot_base *b)
{
	char sql[200];
	int64_t start = 0;
	int r = pg_sql_open(&b->node, b->run, "postgres", 5000, &b->conn);
	if (r < 0) {
		b->conn = NULL;
		return r;
	}
	/* Where no slot is left, the log is followed all the same. */
	snprintf(sql, sizeof sql, "select pg_create_physical_replication_slot('steward_%s', true, true)",
	         s->to->snapshot_id);
	(void)!pg_sql_do(b->conn, SQL_MS, sql);
	snprintf(sql, sizeof sql, "select (pg_backup_start('steward %s', true) - '0/0')::bigint", s->to->snapshot_id);
	r = pg_sql_int(b->conn, START_MS, sql, &start);
	b->start = (uint64_t)start;
	r = r < 0 ? r : settings_read(b);
	b->stored = b->segment ? b->start / b->segment * b->segment : 0;
	return r < 0 || !b->standby ? r : timeline_check(b);
}

/* The label has the timeline that the backup began on. */
static int base_end(struct shot_base *b)
{
	PGresult *rows;
	int r = pg_sql_rows(b->conn, START_MS,
	                    "select (lsn - '0/0')::bigint, labelfile, spcmapfile from pg_backup_stop(false)", &rows);
	if (r < 0)
		return r;
	b->stop = (uint64_t)strtoll(pg_value(rows, 0, 0), NULL, 10);
	b->label = must_strdup(pg_value(rows, 0, 1));
	b->map = must_strdup(pg_value(rows, 0, 2));
	PQclear(rows);
	static const char key[] = "START TIMELINE: ";
	const char *at = strstr(b->label, key);
	unsigned long timeline = at ? strtoul(at + sizeof key - 1, NULL, 10) : 0;
	return timeline == b->timeline ? 0 : -EAGAIN;
}

/* Two looks that agree: it is written in place. */
static int control_write(struct shot_base *b)
{
	char look[2][PAGE_BYTES];
	struct stat st;
	int fd = pg_shot_open(b, "global/pg_control");
	if (fd < 0)
		return fd;
	int r = fstat(fd, &st) < 0 ? -errno : -EAGAIN;
	for (int i = 0; i < 20 && r == -EAGAIN; i++) {
		ssize_t first = pread(fd, look[0], PAGE_BYTES, 0);
		ssize_t second = pread(fd, look[1], PAGE_BYTES, 0);
		if (first == PAGE_BYTES && second == first && memcmp(look[0], look[1], PAGE_BYTES) == 0)
			r = 0;
	}
	close(fd);
	struct repo_file file = {.path = "global/pg_control", .mode = 0600, .modified_s = (int64_t)st.st_mtime};
	return r < 0 ? r : repo_write_bytes(b->writer, &file, look[0], PAGE_BYTES);
}

static int text_write(struct shot_base *b, const char *path, const char *text)
{
	struct repo_file file = {.path = path, .mode = 0600, .modified_s = clock_now_ms() / 1000};
	return repo_write_bytes(b->writer, &file, text, strlen(text));
}

/* How its timeline came about; not there for the first. */
static int history_write(struct shot_base *b)
{
	char path[40], *text;
	snprintf(path, sizeof path, "pg_wal/%08X.history", b->timeline);
	int fd = pg_shot_open(b, path);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	int r = pg_file_take(fd, 1 << 20, &text);
	if (r < 0)
		return r;
	r = text_write(b, path, text);
	free(text);
	return r;
}

/* What PostgreSQL starts from by itself; the engine has its own elsewhere. */
static int stock_write(struct shot_base *b)
{
	struct buf conf = {0};
	const char *name;
	json_t *value;
	buf_z(&conf, "# From a snapshot by Steward: enough to start it. The superuser is " PG_SUPER ".\n"
	             "wal_level = logical\nunix_socket_permissions = 0700\nlisten_addresses = ''\n"
	             "unix_socket_directories = '/tmp'\n");
	json_object_foreach(b->settings, name, value)
	        buf_printf(&conf, "%s = %lld\n", name, (long long)json_integer_value(value));
	buf_c(&conf, 0);
	int r = text_write(b, "postgresql.conf", conf.p);
	buf_free(&conf);
	r = r < 0 ? r : text_write(b, "postgresql.auto.conf", "");
	r = r < 0 ? r : text_write(b, "pg_hba.conf", "local all all trust\nhost all all samehost scram-sha-256\n");
	r = r < 0 ? r : text_write(b, "pg_ident.conf", "");
	return r < 0 ? r : repo_write_directory(b->writer, "pg_wal/archive_status", 0700);
}

static int base_hot(struct shot *s, struct shot_base *b)
{
	int r = base_begin(s, b);
	r = r < 0 ? r : pg_shot_files(s, b);
	/* After all other files: a standby's says up to where it must recover. */
	r = r < 0 ? r : control_write(b);
	r = r < 0 ? r : base_end(b);
	r = r < 0 ? r : text_write(b, "backup_label", b->label);
	if (r == 0 && b->map[0])
		r = text_write(b, "tablespace_map", b->map);
	return r;
}

/* The size of a file of its log. */
static uint64_t segment_size(const struct shot_base *b)
{
	char dir[PG_PATH], path[PG_PATH];
	struct stat st;
	uint64_t size = 0;
	pg_path_set(dir, "%s/pg_wal", b->data);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && !size && (entry = readdir(d));) {
		pg_path_set(path, "%s/%s", dir, entry->d_name);
		if (pg_segment_is(entry->d_name) && nolink_lstat(path, &st) == 0)
			size = (uint64_t)st.st_size;
	}
	if (d)
		closedir(d);
	return size;
}

/* All that it needs of its log is the checkpoint of the shutdown, which may reach into the next file. */
static int base_cold(struct shot *s, struct shot_base *b)
{
	struct pg_control control;
	char path[40], full[PG_PATH];
	int r = pg_control_read(b->data, &control);
	if (r == 0 && control.state != PG_SHUT_DOWN) {
		pg_why_set(NULL, "%s was not shut down cleanly: resume the cluster first", b->node.want.name);
		r = -EBUSY;
	}
	if (r < 0)
		return r;
	b->start = b->stop = b->position = control.checkpoint;
	b->timeline = control.timeline;
	b->segment = segment_size(b);
	b->settings = json_object();
	if (b->segment < (1 << 20))
		return -ENODATA;
	r = pg_shot_files(s, b);
	r = r < 0 ? r : control_write(b);
	r = r < 0 ? r : segment_write(s, b, control.checkpoint, UINT64_MAX);
	segment_path(b, control.checkpoint + b->segment, path);
	pg_path_set(full, "%s/%s", b->data, path);
	if (r == 0 && pg_file_is(full))
		r = segment_write(s, b, control.checkpoint + b->segment, UINT64_MAX);
	return r;
}

static void base_clear(struct shot_base *b)
{
	if (b->conn)
		PQfinish(b->conn);
	repo_write_abort(b->writer);
	for (size_t i = 0; i < b->file_count; i++)
		free(b->files[i].path);
	free(b->files);
	free(b->label);
	free(b->map);
	json_decref(b->settings);
	b->conn = NULL;
	b->writer = NULL;
	b->files = NULL;
	b->label = b->map = NULL;
	b->settings = NULL;
	b->file_count = b->file_room = 0;
	b->bytes = 0;
}

static int base_copy(struct shot *s, struct shot_base *b)
{
	base_clear(b);
	int r = repo_write_begin(s->repository, &b->writer);
	if (r < 0) {
		b->writer = NULL;
		pg_why_set(NULL, "%s", repository_why());
		return r;
	}
	b->image = pg_image_set(s, b);
	r = s->cold ? base_cold(s, b) : base_hot(s, b);
	if (b->image >= 0)
		close(b->image);
	r = r < 0 ? r : history_write(b);
	return r < 0 ? r : stock_write(b);
}

/* --- whom to ask */

static void node_take(struct shot *s, const struct pg_node *n, struct shot_base *b)
{
	const struct pg_user *u = s->c->user;
	b->owner = u->other ? u->uid : (uid_t)-1;
	b->node = *n;
	b->node.pidfd = b->node.probe_fd = -1;
	b->set = n->set;
	pg_set_name(&n->want, b->name);
	pg_node_path(s->c, n, "data", b->data);
	pg_node_run_dir(s->c, n, b->run);
}

/* A standby that streams and lags the least; NULL: none does. */
static struct pg_node *standby_choose(struct pg_cluster *c, struct pg_node *primary)
{
	PGconn *conn;
	PGresult *rows;
	struct pg_node *found = NULL;
	if (pg_sql_open_node(c, primary, "postgres", 3000, &conn) < 0)
		return NULL;
	if (pg_sql_rows(conn, 3000,
	                "select application_name from pg_stat_replication where state = 'streaming' order by "
	                "pg_current_wal_lsn() - replay_lsn < 16777216 desc, application_name desc",
	                &rows) == 0) {
		for (int i = 0; i < PQntuples(rows) && !found; i++) {
			struct pg_node *n = pg_cluster_node(c, pg_value(rows, i, 0));
			if (n && n != primary && n->set == primary->set && n->pid && !n->busy && !n->removing &&
			    !n->want.outage && pg_node_is_standby(c, n))
				found = n;
		}
		PQclear(rows);
	}
	PQfinish(conn);
	return found;
}

/* With cluster.work held. */
static int bases_choose(struct shot *s, bool standbys)
{
	struct pg_cluster *c = s->c;
	int r = 0;
	if (c->gone || c->destroying)
		return -ENOENT;
	if (c->upgrading || c->restoring || c->set_count == 0) {
		pg_why_set(NULL, "the cluster is being changed");
		return -EBUSY;
	}
	if (!s->bases)
		s->bases = must_calloc(c->set_count, sizeof *s->bases);
	else if (s->count != c->set_count)
		return -EBUSY;
	s->count = c->set_count;
	s->cold = c->paused;
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		struct shot_base *b = &s->bases[i];
		if (!p || !pg_node_is_made(c, p) || (s->cold ? p->pid != 0 : p->pid == 0)) {
			pg_why_set(NULL, "set %u has no %s at the moment", c->sets[i].number,
			           s->cold ? "primary that stands still" : "primary");
			r = -EAGAIN;
			break;
		}
		struct pg_node *n = s->cold || !standbys ? NULL : standby_choose(c, p);
		b->standby = n != NULL;
		node_take(s, n ? n : p, b);
	}
	return r;
}

/* --- all of it */

static json_t *facts_of(const struct shot *s, const struct shot_base *b, const struct engine_checkpoint *at,
                        const char *version)
{
	char identity[24] = "", text[3][24];
	const uint64_t places[3] = {b->start, b->stop, b->position};
	uint64_t found = 0;
	json_t *sets = json_array();
	if (pg_data_identify(b->data, &found, NULL) == 0)
		snprintf(identity, sizeof identity, "%" PRIu64, found);
	for (int i = 0; i < 3; i++)
		snprintf(text[i], sizeof text[i], "%X/%X", (unsigned)(places[i] >> 32), (unsigned)places[i]);
	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(sets, json_string(s->bases[i].name));
	json_t *o = json_object();
	json_put_z(o, "engine", "postgres");
	json_put_z(o, "version", version);
	json_put(o, "major", json_integer(s->c->version));
	json_put_z(o, "set", b->name);
	json_put(o, "sets", sets);
	json_put_z(o, "systemIdentifier", identity);
	json_put(o, "timeline", json_integer(b->timeline));
	json_put_z(o, "start", text[0]);
	json_put_z(o, "stop", text[1]);
	json_put_z(o, "position", text[2]);
	json_put_z(o, "checkpoint", at->id);
	json_put(o, "atMs", json_integer(at->at_ms));
	json_put(o, "segment", json_integer((json_int_t)b->segment));
	json_put_z(o, "incarnation", s->to->incarnation);
	json_put(o, "cold", json_boolean(s->cold));
	json_put(o, "standby", json_boolean(b->standby));
	json_put(o, "settings", json_incref(b->settings));
	return o;
}

static json_t *ranges_of(const struct shot_base *b)
{
	char start[24], end[24];
	snprintf(start, sizeof start, "%X/%X", (unsigned)(b->start >> 32), (unsigned)b->start);
	snprintf(end, sizeof end, "%X/%X", (unsigned)(b->position >> 32), (unsigned)b->position);
	json_t *range = json_object(), *all = json_array();
	json_put(range, "Timeline", json_integer(b->timeline));
	json_put_z(range, "Start-LSN", start);
	json_put_z(range, "End-LSN", end);
	json_array_append_new(all, range);
	return all;
}

static int base_finish(struct shot *s, struct shot_base *b, const struct engine_checkpoint *at, const char *version)
{
	int r = s->cold ? 0 : log_finish(s, b);
	if (r < 0)
		return r;
	if (b->conn)
		PQfinish(b->conn);
	b->conn = NULL;
	/* Of a copy that stood still there is nothing to replay, and no range to name. */
	json_t *ranges = s->cold ? json_array() : ranges_of(b), *facts = facts_of(s, b, at, version);
	r = repo_write_backup_manifest(b->writer, ranges);
	if (r == 0) {
		r = repo_write_commit(b->writer, s->c->id, s->to->snapshot_id, b->name, facts, &b->amount);
		b->writer = NULL;
		b->committed = r == 0;
	}
	if (r < 0)
		pg_why_set(NULL, "%s", repository_why());
	json_decref(ranges);
	json_decref(facts);
	return r;
}

/* One point in the log of all sets. */
static int point_make(struct shot *s, struct arena *a, struct engine_checkpoint *at, const char **ret_why)
{
	if (s->cold) {
		*at = (struct engine_checkpoint){.at_ms = clock_now_ms()};
		return 0;
	}
	int r = pg_checkpoint_make(s->c, a, at, ret_why);
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		const struct engine_position *p = NULL;
		for (size_t k = 0; k < at->set_count; k++)
			if (strcmp(at->sets[k].set, s->bases[i].name) == 0)
				p = &at->sets[k];
		/* Another leads since: what was copied is not what the point is of. */
		if (!p || p->timeline != s->bases[i].timeline || p->lsn < s->bases[i].stop) {
			pg_why_set(ret_why, "set %s: its primary changed meanwhile", s->bases[i].name);
			r = -EAGAIN;
		} else {
			s->bases[i].position = p->lsn;
		}
	}
	return r;
}

static void version_of(const struct shot *s, char ret_text[24])
{
	ret_text[0] = 0;
	for (size_t i = 0; i < s->e->version_count; i++)
		if (s->e->versions[i].major == s->c->version)
			snprintf(ret_text, 24, "%s",
			         s->c->version_text[0] ? s->c->version_text : s->e->versions[i].text);
}

static int attempt(struct shot *s, struct arena *a, struct engine_checkpoint *at, const char **ret_why)
{
	char version[24];
	int r = 0;
	pg_image_begin(s);
	for (s->current = 0; r == 0 && s->current < s->count; s->current++)
		r = base_copy(s, &s->bases[s->current]);
	s->current = s->count - 1;
	r = r < 0 ? r : point_make(s, a, at, ret_why);
	version_of(s, version);
	pg_tell(s->progress, 92, "writing the log");
	for (size_t i = 0; r == 0 && i < s->count; i++)
		r = base_finish(s, &s->bases[i], at, version);
	pg_image_end(s, r == 0);
	return r;
}

static int stored_wait(struct shot *s, const struct pg_set *set, unsigned timeline, uint64_t lsn)
{
	int64_t end = pg_mono_ms() + STORED_MS;
	int r;
	do
		r = pg_archive_wait(s->c, set, timeline, lsn, 1000);
	while (r == -ETIMEDOUT && pg_mono_ms() < end && !pg_shot_is_cancelled(s));
	return r;
}

/* The archive has the log at the snapshot's point: from here on it can be restored to any moment. What lies before the
 * point is in the snapshot itself. A copy from a standby begins with an earlier checkpoint, often one from before the
 * archive, and to miss that was once warned of at almost every snapshot. It is whole without all that. */
static void archive_wait(struct shot *s)
{
	pthread_mutex_lock(&s->c->work);
	bool on = s->c->backup.archive && !s->cold;
	pthread_mutex_unlock(&s->c->work);
	for (size_t i = 0; i < s->count && on; i++) {
		const struct shot_base *b = &s->bases[i];
		struct pg_set set = {.number = b->set};
		pthread_mutex_lock(&s->c->work);
		const struct pg_set *now = pg_cluster_set(s->c, b->set);
		if (now)
			set = *now;
		pthread_mutex_unlock(&s->c->work);
		int r = now ? stored_wait(s, &set, b->timeline, b->position) : 0;
		if (r < 0 && !pg_shot_is_cancelled(s))
			log_warn("engine: %s set %s: the log behind a snapshot is not in the archive: %s", s->c->id,
			         b->name, strerror(-r));
	}
}

/* Whether every set of a snapshot is there, by what any of them says. */
static int sets_complete(struct repository *r, const char *cluster, const char *snapshot, struct arena *a)
{
	struct str *sets;
	size_t count, i;
	struct repo_manifest *m;
	json_t *name;
	int result = repo_sets(r, a, cluster, snapshot, &sets, &count);
	if (result < 0 || count == 0)
		return result < 0 ? result : -ENOENT;
	result = repo_manifest_open(r, cluster, snapshot, arena_z(a, sets[0]), &m);
	if (result < 0)
		return result;
	const json_t *wanted = json_object_get(repo_manifest_facts(m), "sets");
	if (json_array_size(wanted) != count)
		result = -ENOENT;
	json_array_foreach(wanted, i, name)
	{
		bool found = false;
		for (size_t k = 0; k < count && !found; k++)
			found = str_eq(sets[k], json_str_of(name));
		if (!found)
			result = -ENOENT;
	}
	repo_manifest_close(m);
	return result;
}

int pg_snapshot_sets(struct repository *repository, const struct engine_source *of, struct arena *a,
                     struct str **ret_sets, size_t *ret_count)
{
	int r = sets_complete(repository, of->cluster_id, of->snapshot_id, a);
	return r < 0 ? r : repo_sets(repository, a, of->cluster_id, of->snapshot_id, ret_sets, ret_count);
}

/* As it was told when it was taken. */
static int snapshot_tell(struct repository *repository, const struct engine_source *of, struct arena *a,
                         struct engine_snapshot *ret)
{
	struct str *sets;
	size_t count;
	int r = pg_snapshot_sets(repository, of, a, &sets, &count);
	if (r < 0)
		return r;
	*ret = (struct engine_snapshot){.sets = arena_new_array(a, struct engine_position, count), .set_count = count};
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct repo_manifest *m;
		r = repo_manifest_open(repository, of->cluster_id, of->snapshot_id, arena_z(a, sets[i]), &m);
		if (r < 0)
			break;
		const json_t *facts = repo_manifest_facts(m);
		const struct repo_amount *amount = repo_manifest_amount(m);
		snprintf(ret->sets[i].set, sizeof ret->sets[i].set, "%.*s", STR_ARG(sets[i]));
		ret->sets[i].timeline = (unsigned)json_number(facts, "timeline");
		ret->sets[i].lsn = pg_lsn_of(facts, "position");
		ret->at_ms = json_number(facts, "atMs");
		ret->sets[i].bytes = amount->bytes;
		ret->sets[i].stored = amount->stored;
		ret->bytes += amount->bytes;
		ret->stored += amount->stored;
		ret->from_standby |= json_flag(facts, "standby");
		snprintf(ret->data_key, sizeof ret->data_key, "%s", repo_manifest_key(m));
		snprintf(ret->version, sizeof ret->version, "%.*s", STR_ARG(json_field(facts, "version")));
		repo_manifest_close(m);
	}
	return r;
}

/* Of one that was cut short, or was not told of any more. */
static int former_look(struct shot *s, struct arena *a, struct engine_snapshot *ret)
{
	int r = snapshot_tell(s->repository, s->to, a, ret);
	if (r != -ENOENT)
		return r;
	r = repo_manifest_delete(s->repository, s->to->cluster_id, s->to->snapshot_id);
	return r < 0 && r != -ENOENT ? r : -ENOENT;
}

static bool is_worth_another(int r)
{
	return r == -EAGAIN || r == -EIO || r == -EPROTO || r == -ETIMEDOUT;
}

static int shot_take(struct shot *s, struct arena *a, const char **ret_why)
{
	struct engine_checkpoint at = {0};
	struct pg_cluster *c = s->c;
	int r = -EAGAIN;
	for (int i = 0; i < ATTEMPTS && is_worth_another(r) && (i == 0 || !pg_shot_is_cancelled(s)); i++) {
		if (i > 0)
			pg_sleep_ms(500 * i);
		*ret_why = NULL;
		pg_why_set(NULL, "%s", "");
		pthread_mutex_lock(&c->work);
		while (c->copying)
			pthread_cond_wait(&c->copied, &c->work);
		r = bases_choose(s, i == 0);
		bool held = r == 0 && s->cold;
		c->copying = c->copying || held; /* nobody resumes it meanwhile */
		pthread_mutex_unlock(&c->work);
		if (r == 0)
			r = attempt(s, a, &at, ret_why);
		if (held) {
			pthread_mutex_lock(&c->work);
			c->copying = false;
			pthread_cond_broadcast(&c->copied);
			pthread_mutex_unlock(&c->work);
		}
		if (r < 0 && !*ret_why)
			*ret_why = *pg_why_last() ? pg_why_last() : strerror(-r);
		char why[500];
		snprintf(why, sizeof why, "%s", r < 0 ? *ret_why : "");
		for (size_t k = 0; k < s->count && r < 0; k++)
			base_clear(&s->bases[k]);
		if (r < 0) {
			(void)!repo_manifest_delete(s->repository, c->id, s->to->snapshot_id);
			pg_why_set(ret_why, "%s", why);
		}
	}
	return r;
}

int pg_backup_snapshot(struct engine *e, const struct engine_source *to, struct engine_progress *progress,
                       struct arena *a, struct engine_snapshot *ret_snapshot, const char **ret_why)
{
	struct shot s = {.e = e, .to = to, .progress = progress};
	const char *why = NULL;
	int r = pg_repository_get(e, to->region, to->group_id, &s.repository, ret_why);
	if (r < 0)
		return r;
	s.c = pg_cluster_find(e, to->cluster_id);
	if (!s.c) {
		repository_put(s.repository);
		*ret_why = "there is no such cluster";
		return -ESRCH;
	}
	pthread_mutex_init(&s.lock, NULL);
	pg_crypt_hold(s.c);
	r = former_look(&s, a, ret_snapshot);
	if (r == -ENOENT) {
		r = pg_crypt_open(s.c, &why);
		r = r < 0 ? r : shot_take(&s, a, &why);
		if (r == 0)
			archive_wait(&s);
		r = r < 0 ? r : snapshot_tell(s.repository, to, a, ret_snapshot);
		if (r < 0 && pg_shot_is_cancelled(&s))
			r = -ECANCELED;
		if (r == -EAGAIN)
			r = -EBUSY; /* the caller's word for "ask me again then", which nobody has said when */
	}
	if (r < 0)
		*ret_why = arena_z(a, str_of(why ? why : repository_why()));
	else
		pg_tell(progress, 100, "done");
	for (size_t i = 0; i < s.count; i++)
		base_clear(&s.bases[i]);
	free(s.bases);
	pthread_mutex_destroy(&s.lock);
	pg_crypt_release(s.c);
	pg_cluster_put(s.c);
	repository_put(s.repository);
	return r;
}
