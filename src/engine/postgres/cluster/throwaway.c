/* A server on files that came out of the repository, for nobody but the service: it listens on a socket in a directory
 * of its own and nowhere else, archives nothing, starts nothing by itself, and is gone when its work is done, or with
 * the next start of the service.
 *
 * It recovers as a standby without a primary: all log that lies in its pg_wal, and then it waits. So log may come while
 * it recovers, and none that is not there yet is its end. The log is cut where recovery shall end, and its end is the
 * target: unlike PostgreSQL's own targets that needs no record behind it.
 * A time is left to PostgreSQL, which stops before the first commit that is later; where there is none, all log is
 * what was wanted. How far it came is read from what promotion writes down, and held against what it must have: a
 * server that says nothing, or ends with 0, proves nothing. */
#include "engine/postgres/cluster/throwaway.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/host/cgroup.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/discard.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/fscrypt.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define IDLE_MS 3000  /* twice without a connection, and without work: all log is replayed */
#define IDLE_TICKS 15 /* of a processor, in that time: looking for more log */
#define SPACE_LEAST (UINT64_C(64) << 20)
#define PROMOTE_MS 60000                 /* once there is nothing left to replay */
#define LOOKED_MS 200                    /* in which it has looked for more log a few times */
#define LOCK_BYTES 512                   /* of a lock and those who hold it, and some to spare */
#define MEMORY_MAX (UINT64_C(2) << 30)   /* of one of the server's processes, beside the locks */
#define SPARE (UINT64_C(512) << 20)      /* of the disk, for the databases that serve */
#define LASTS_MS (INT64_C(12) * 3600000) /* from the beginning to the end of all work */

/* --- where it lies */

static void sockets_path(const struct engine *e, const char *name, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/run/%s", e->dir, name);
}

/* Its processes, its sockets, its shared memory; the files stay. */
static int server_end(struct pg_throwaway *t)
{
	char data[PG_PATH];
	pg_path_set(data, "%s/data", t->dir);
	if (t->pidfd >= 0) {
		pg_process_signal(t->pidfd, SIGQUIT);
		if (!pg_process_ended(t->pidfd, 5000))
			pg_process_signal(t->pidfd, SIGKILL);
		pg_process_ended(t->pidfd, 5000);
		close(t->pidfd);
		t->pidfd = -1;
	}
	int r = pg_file_is(data) ? pg_process_sweep(t->engine, data) : 0;
	if (r < 0)
		log_error("engine: processes of %s do not end", data);
	return r;
}

static void sockets_end(struct pg_throwaway *t)
{
	char name[16], path[PG_PATH], *text;
	pg_path_set(path, "%s/socket", t->dir);
	if (pg_file_read(path, 15, &text) < 0)
		return;
	snprintf(name, sizeof name, "%s", text);
	free(text);
	if (name[0] != 't' || strchr(name, '/'))
		return;
	sockets_path(t->engine, name, path);
	pg_tree_remove(path);
}

int pg_throwaway_begin(struct engine *e, const struct pg_user *user, const char *dir, unsigned version,
                       const char *cluster_id, struct pg_throwaway *t)
{
	char path[PG_PATH], name[16];
	unsigned char bytes[2];
	*t = (struct pg_throwaway){.engine = e, .user = user, .version = version, .pidfd = -1};
	pg_path_set(t->dir, "%s", dir);
	int r = pg_throwaway_end(t); /* of one that was cut short */
	if (r == 0 && !pg_version_bin(e, version)) {
		pg_why_set(NULL, "PostgreSQL %u is not installed", version);
		r = -ENOENT;
	}
	r = r < 0 ? r : pg_dir_make(user, dir, true);
	r = r < 0 ? r : pg_crypt_dir_of(e, cluster_id, dir);
	do { /* as short as a node's slot: a socket's path has 107 bytes */
		random_bytes(bytes, sizeof bytes);
		snprintf(name, sizeof name, "t%02x%02x", bytes[0], bytes[1]);
		sockets_path(e, name, t->run);
	} while (pg_file_is(t->run));
	pg_path_set(path, "%s/socket", dir);
	r = r < 0 ? r : pg_file_write(user, path, name, strlen(name), false);
	r = r < 0 ? r : pg_dir_make(user, t->run, true);
	pg_path_set(path, "%s/data", dir);
	r = r < 0 ? r : pg_dir_make(user, path, true);
	t->node.port = PG_PORT;
	if (r < 0)
		(void)!pg_throwaway_end(t);
	return r;
}

int pg_throwaway_end(struct pg_throwaway *t)
{
	int r = server_end(t);
	pg_cgroup_remove_throwaway(t->engine, t->dir);
	if (r == 0) {
		sockets_end(t);
		r = pg_tree_discard(t->engine, t->dir);
	}
	if (t->bounded)
		pg_user_let_go(t->engine, t->user);
	return r;
}

int pg_throwaway_room(const struct engine *e, uint64_t bytes)
{
	struct statvfs disk;
	if (statvfs(e->dir, &disk) < 0 || (uint64_t)disk.f_bavail * disk.f_frsize >= bytes + SPACE_LEAST)
		return 0;
	pg_why_set(NULL, "a restore needs %llu MB beside the data that serves meanwhile; %llu MB are left",
	           (unsigned long long)((bytes + SPACE_LEAST) >> 20),
	           (unsigned long long)((uint64_t)disk.f_bavail * disk.f_frsize >> 20));
	return -ENOSPC;
}

int pg_throwaway_new(struct engine *e, const struct engine_source *of, unsigned version, struct pg_throwaway *t)
{
	char path[PG_PATH];
	struct id id = id_new();
	pg_path_set(path, "%s/throwaway", e->dir);
	int r = pg_dir_make(&e->shared, path, false);
	if (r < 0)
		return r;
	/* It may be the only thing of its project on this host. */
	const struct pg_user *user = pg_user_hold(e, of->group_id);
	pg_path_set(path, "%s/throwaway/%s", e->dir, id.z);
	r = pg_throwaway_begin(e, user, path, version, of->cluster_id, t);
	if (r < 0)
		pg_user_let_go(e, user);
	t->bounded = r == 0;
	t->end_ms = pg_mono_ms() + LASTS_MS;
	return r;
}

int pg_throwaway_check(const struct pg_throwaway *t)
{
	if (t->bounded && pg_mono_ms() > t->end_ms)
		return -ETIME;
	return pg_throwaway_room(t->engine, SPARE);
}

void pg_throwaways_sweep(struct engine *e)
{
	char dir[PG_PATH], path[PG_PATH];
	pg_path_set(dir, "%s/throwaway", e->dir);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));) {
		if (!id_is_valid(str_of(entry->d_name)))
			continue;
		pg_path_set(path, "%s/%s", dir, entry->d_name);
		struct pg_throwaway t = {.engine = e, .pidfd = -1, .bounded = true};
		pg_path_set(t.dir, "%s", path);
		(void)!pg_throwaway_end(&t); /* or the next time */
	}
	if (d)
		closedir(d);
}

/* --- the log */

static int tail_clear(const char *path, uint64_t from, uint64_t segment)
{
	static const char zeros[65536];
	int fd = nolink_open(path, O_WRONLY, 0);
	int r = fd < 0 ? -errno : 0;
	for (uint64_t at = from; r == 0 && at < segment;) {
		uint64_t left = segment - at;
		ssize_t put = pwrite(fd, zeros, left < sizeof zeros ? (size_t)left : sizeof zeros, (off_t)at);
		if (put < 0 && errno != EINTR)
			r = -errno;
		at += put > 0 ? (uint64_t)put : 0;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

int pg_throwaway_cut(struct pg_throwaway *t, unsigned timeline, uint64_t lsn, uint64_t segment)
{
	char dir[PG_PATH], path[PG_PATH], last[PG_SEGMENT_NAME + 1];
	pg_path_set(dir, "%s/data/pg_wal", t->dir);
	pg_segment_name(timeline, lsn, segment, last);
	DIR *d = nolink_opendir(dir);
	int r = d ? 0 : -errno;
	for (struct dirent *entry; d && r == 0 && (entry = readdir(d));) {
		/* What is later by its number, whatever its timeline. */
		if (!pg_segment_is(entry->d_name) || strcmp(entry->d_name + 8, last + 8) < 0)
			continue;
		pg_path_set(path, "%s/%s", dir, entry->d_name);
		bool whole = lsn % segment == 0 || strcmp(entry->d_name + 8, last + 8) > 0;
		if (!whole)
			r = tail_clear(path, lsn % segment, segment);
		else if (nolink_unlink(path) < 0)
			r = -errno;
	}
	if (d)
		closedir(d);
	return r;
}

/* --- starting */

/* At least what the source had, or it would not show what it has replayed. */
static unsigned setting_of(const json_t *facts, const char *name, unsigned least)
{
	json_int_t v = json_number(json_object_get(facts, "settings"), name);
	return v > (json_int_t)least && v < 100000 ? (unsigned)v : least;
}

static const struct {
	const char *name;
	unsigned least;
} sizes[] = {{"max_connections", 1000},        {"max_worker_processes", 32},      {"max_wal_senders", 64},
             {"max_prepared_transactions", 0}, {"max_locks_per_transaction", 64}, {"max_replication_slots", 64}};

/* Address space of each of its processes: what it may have itself, and the memory that all share for locks, which
 * grows with settings of the source. */
static uint64_t memory_bound(const struct pg_throwaway *t, const json_t *facts)
{
	uint64_t backends = 0, locks = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint64_t n = setting_of(facts, sizes[i].name, sizes[i].least);
		if (strcmp(sizes[i].name, "max_locks_per_transaction") == 0)
			locks = n;
		else
			backends += n;
	}
	return t->bounded ? MEMORY_MAX + backends * locks * LOCK_BYTES : 0;
}

static int config_write(struct pg_throwaway *t, const json_t *facts, const struct pg_target *to)
{
	static const char fixed[] =
	        "listen_addresses = ''\nunix_socket_permissions = 0700\nssl = off\narchive_mode = off\n"
	        "wal_level = logical\nwal_log_hints = on\nhot_standby = on\nautovacuum = off\n"
	        "max_logical_replication_workers = 0\nmax_wal_size = 1GB\nmin_wal_size = 8MB\nshared_buffers = 64MB\n"
	        "maintenance_work_mem = 64MB\ncheckpoint_timeout = 1h\njit = off\ntimezone = 'UTC'\n"
	        "log_timezone = 'UTC'\nprimary_conninfo = ''\nrestore_command = ''\n"
	        /* It looks often for more log, and says so each time; a name of the log is the fetch's alone. */
	        "wal_retrieve_retry_interval = 10ms\nlog_min_messages = fatal\nwal_recycle = off\n"
	        "temp_file_limit = 1GB\ndynamic_shared_memory_type = mmap\nsuperuser_reserved_connections = "
	        "5\ncluster_name = 'throwaway'\n"
	        /* Whoever keeps what it makes flushes all of it at the end, at once. */
	        "fsync = off\n";
	struct buf b = {0};
	char path[PG_PATH];
	buf_z(&b, fixed);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		buf_printf(&b, "%s = %u\n", sizes[i].name, setting_of(facts, sizes[i].name, sizes[i].least));
	buf_printf(
	        &b,
	        "port = %u\nunix_socket_directories = '%s'\nhba_file = '%s/hba.conf'\nident_file = '%s/ident.conf'\n",
	        t->node.port, t->run, t->dir, t->dir);
	buf_printf(&b, "data_directory = '%s/data'\n", t->dir);
	/* Its own needs no history, which may be of another time. */
	if (to->timeline && (json_int_t)to->timeline != json_number(facts, "timeline"))
		buf_printf(&b, "recovery_target_timeline = '%u'\n", to->timeline);
	else
		buf_z(&b, "recovery_target_timeline = 'current'\n");
	if (!to->lsn && to->time_us) {
		char text[CLOCK_TEXT];
		clock_format(to->time_us / 1000, text);
		buf_printf(&b,
		           "recovery_target_time = '%.19s.%06d+00'\nrecovery_target_inclusive = on\n"
		           "recovery_target_action = 'promote'\n",
		           text, (int)(to->time_us % 1000000));
	}
	pg_path_set(path, "%s/postgresql.conf", t->dir);
	int r = pg_file_write(t->user, path, b.p, b.n, true);
	buf_free(&b);
	static const char hba[] = "local all " PG_SUPER ",\"" PG_EXPORT
	                          "\" trust\n"; /* who reaches the socket is the service or a node */
	pg_path_set(path, "%s/hba.conf", t->dir);
	r = r < 0 ? r : pg_file_write(t->user, path, hba, sizeof hba - 1, true);
	pg_path_set(path, "%s/ident.conf", t->dir);
	return r < 0 ? r : pg_file_write(t->user, path, "", 0, true);
}

static int signal_write(struct pg_throwaway *t, const char *name)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/data/%s", t->dir, name);
	return pg_file_give(t->user, path);
}

static int server_start(struct pg_throwaway *t, const json_t *facts, const struct pg_target *to)
{
	static const char *const unwanted[] = {"postgresql.auto.conf", "recovery.signal", "promote"};
	char program[PG_PATH], data[PG_PATH], log[PG_PATH], path[PG_PATH], option[PG_PATH + 40];
	pg_path_set(data, "%s/data", t->dir);
	pg_path_set(log, "%s/log", t->dir);
	/* Settings that somebody made on the source are not the target's. */
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
		pg_path_set(path, "%s/%s", data, unwanted[i]);
		if (nolink_unlink(path) < 0 && errno != ENOENT)
			return -errno;
	}
	int r = config_write(t, facts, to);
	r = r < 0 ? r : signal_write(t, "standby.signal");
	if (r < 0)
		return r;
	pg_path_set(program, "%s/postgres", pg_version_bin(t->engine, t->version));
	snprintf(option, sizeof option, "config_file=%s/postgresql.conf", t->dir);
	const char *argv[] = {program, "-D", data, "-c", option, NULL};
	const struct pg_bounds bounds = {.cgroup_fd = pg_cgroup_open_throwaway(t->engine, t->dir),
	                                 .memory = memory_bound(t, facts),
	                                 .mortal = t->bounded};
	r = pg_process_spawn(t->user, argv, data, log, &bounds, &t->pid, &t->pidfd);
	if (bounds.cgroup_fd >= 0)
		close(bounds.cgroup_fd);
	return r;
}

/* What it said last. */
static void server_fault(struct pg_throwaway *t, const char *what, const char **ret_why)
{
	char path[PG_PATH], *text = NULL;
	pg_path_set(path, "%s/log", t->dir);
	if (pg_file_read(path, 1 << 20, &text) < 0)
		text = NULL;
	const char *fatal = NULL;
	for (const char *at = text; at && (at = strstr(at, "FATAL:")); at++)
		if (strncmp(at, "FATAL:  the database system is", 30) != 0)
			fatal = at;
	size_t n = fatal ? strcspn(fatal, "\n") : 0;
	pg_why_set(ret_why, "%s%s%.*s", what, fatal ? ": " : "", (int)(n < 300 ? n : 300), fatal ? fatal : "");
	free(text);
}

int pg_throwaway_open(const struct pg_throwaway *t, const char *database, PGconn **ret_conn)
{
	return pg_sql_open(&t->node, t->run, database, 3000, ret_conn);
}

/* --- recovering */

/* Time of a processor that its processes have taken; they are one session. */
static uint64_t session_ticks(pid_t leader)
{
	uint64_t all = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *entry; d && (entry = readdir(d));) {
		char path[64], *text;
		uint64_t pid;
		int session = 0;
		unsigned long user = 0, system = 0;
		if (!str_to_u64(str_of(entry->d_name), INT32_MAX, &pid))
			continue;
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		if (pg_file_read(path, 4096, &text) < 0)
			continue;
		const char *end = strrchr(text, ')');
		if (end &&
		    sscanf(end + 1, " %*c %*d %*d %d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &session, &user, &system) ==
		            3 &&
		    session == (int)leader)
			all += user + system;
		free(text);
	}
	if (d)
		closedir(d);
	return all;
}

struct watch {
	int64_t since_ms; /* without a connection, and with little work */
	uint64_t ticks;
	unsigned idle; /* how often it was found so */
	bool recovers; /* still */
	bool waits;    /* for log that is not there */
	int64_t position;
	uint64_t replayed;
	int64_t came_ms; /* when the last of the log did */
};

static bool is_idle(struct pg_throwaway *t, struct watch *w)
{
	if (pg_mono_ms() - w->since_ms < IDLE_MS)
		return false;
	uint64_t now = session_ticks(t->pid);
	w->idle = now - w->ticks < IDLE_TICKS ? w->idle + 1 : 0;
	w->ticks = now;
	w->since_ms = pg_mono_ms();
	return w->idle > 1;
}

/* 0: it answered; -EAGAIN: it does not yet. */
static int watch_look(struct pg_throwaway *t, PGconn **conn, struct watch *w)
{
	PGresult *rows;
	if (!*conn && pg_throwaway_open(t, "postgres", conn) < 0) {
		*conn = NULL;
		return -EAGAIN;
	}
	int r = pg_sql_rows(*conn, 10000,
	                    "select pg_is_in_recovery()::int, coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint, "
	                    "(select count(*) from pg_stat_activity where backend_type = 'startup' and wait_event = "
	                    "'RecoveryRetrieveRetryInterval')",
	                    &rows);
	if (r < 0) {
		PQfinish(*conn);
		*conn = NULL;
		return -EAGAIN;
	}
	w->recovers = strcmp(pg_value(rows, 0, 0), "1") == 0;
	int64_t position = strtoll(pg_value(rows, 0, 1), NULL, 10);
	/* Seen twice at the same place: between two looks it may have found more. */
	w->waits = strcmp(pg_value(rows, 0, 2), "0") != 0 && position == w->position &&
	           pg_mono_ms() - w->came_ms > LOOKED_MS;
	w->position = position;
	w->replayed = position > 0 ? (uint64_t)position : 0;
	PQclear(rows);
	return 0;
}

static bool log_comes(const struct pg_stop *stop, uint64_t replayed)
{
	return stop && stop->comes && stop->comes(stop->ctx, replayed);
}

/* Until it leads by itself, or has nothing left to replay; never before all log is there. */
static int end_wait(struct pg_throwaway *t, const struct pg_stop *stop, struct watch *w, const char **ret_why)
{
	PGconn *conn = NULL;
	int r = -EAGAIN;
	*w = (struct watch){.since_ms = pg_mono_ms(), .recovers = true, .position = -1};
	for (int pause = 5; r == -EAGAIN; pause = pause < 50 ? pause + 5 : 50) {
		bool comes = log_comes(stop, w->replayed);
		if (comes) {
			w->position = -1;
			w->idle = 0;
			w->since_ms = w->came_ms = pg_mono_ms();
		}
		if (stop && stop->asked(stop->ctx)) {
			pg_why_set(ret_why, "it was cancelled");
			r = -ECANCELED;
		} else if (pg_process_ended(t->pidfd, 0)) {
			server_fault(t, "the restored server ended", ret_why);
			r = -EIO;
		} else if (watch_look(t, &conn, w) == 0) {
			r = !comes && (!w->recovers || w->waits) ? 0 : -EAGAIN;
			w->since_ms = pg_mono_ms();
		} else if (is_idle(t, w)) {
			w->waits = true; /* and shows nothing: promotion tells whether it is whole */
			r = 0;
		}
		if (r == -EAGAIN)
			pg_sleep_ms(pause);
	}
	if (conn)
		PQfinish(conn);
	return r;
}

static int promote(struct pg_throwaway *t, const char **ret_why)
{
	int64_t end = pg_mono_ms() + PROMOTE_MS;
	int r = signal_write(t, "promote");
	if (r < 0)
		return r;
	pg_process_signal(t->pidfd, SIGUSR1);
	for (;; pg_sleep_ms(10)) {
		PGconn *conn;
		int64_t recovers = 1;
		if (pg_process_ended(t->pidfd, 0)) {
			server_fault(t, "the restored server did not come up", ret_why);
			return -EIO;
		}
		if (pg_throwaway_open(t, "postgres", &conn) == 0) {
			r = pg_sql_int(conn, 5000, "select pg_is_in_recovery()::int", &recovers);
			PQfinish(conn);
			if (r == 0 && !recovers)
				return 0;
		}
		if (pg_mono_ms() > end) {
			server_fault(t, "the restored server takes too long to come up", ret_why);
			return -ETIMEDOUT;
		}
	}
}

/* Where its timeline left the one before: the last line of the newest history. */
static int position_reached(struct pg_throwaway *t, uint64_t *ret_lsn)
{
	char dir[PG_PATH], path[PG_PATH], newest[32] = "", *text;
	pg_path_set(dir, "%s/data/pg_wal", t->dir);
	DIR *d = nolink_opendir(dir);
	for (struct dirent *entry; d && (entry = readdir(d));)
		if (strlen(entry->d_name) == 16 && str_ends(str_of(entry->d_name), STR(".history")) &&
		    strcmp(entry->d_name, newest) > 0)
			snprintf(newest, sizeof newest, "%s", entry->d_name);
	if (d)
		closedir(d);
	pg_path_set(path, "%s/%s", dir, newest);
	int r = newest[0] ? pg_file_read(path, 1 << 20, &text) : -ENODATA;
	if (r < 0)
		return r;
	struct str rest = str_of(text), line;
	bool found = false;
	while (rest.n) {
		char words[128];
		unsigned timeline, high, low;
		str_cut(rest, '\n', &line, &rest);
		snprintf(words, sizeof words, "%.*s", (int)(line.n < 120 ? line.n : 120), line.p);
		if (sscanf(words, "%u %X/%X", &timeline, &high, &low) == 3) {
			*ret_lsn = (uint64_t)high << 32 | low;
			found = true;
		}
	}
	free(text);
	return found ? 0 : -ENODATA;
}

int pg_throwaway_recover(struct pg_throwaway *t, const json_t *facts, const struct pg_target *to,
                         const struct pg_stop *stop, const char **ret_why)
{
	struct pg_target without = {.timeline = to->timeline, .least = to->least};
	bool timed = !to->lsn && to->time_us, early = log_comes(stop, 0);
	struct watch w;
	int r = server_start(t, facts, to);
	r = r < 0 ? r : end_wait(t, stop, &w, ret_why);
	/* It waits, and may not have seen yet that there was more. All of it is there now, so one that starts on it
	 * waits at its end. */
	if (r == 0 && early && w.recovers && (timed || w.replayed < to->lsn)) {
		r = pg_throwaway_halt(t);
		r = r < 0 ? r : server_start(t, facts, to);
		r = r < 0 ? r : end_wait(t, stop, &w, ret_why);
	}
	/* All log was replayed and nothing in it is later than the time: without a target then, which PostgreSQL would
	 * miss. */
	if (r == 0 && timed && w.recovers) {
		r = pg_throwaway_halt(t);
		r = r < 0 ? r : server_start(t, facts, &without);
		r = r < 0 ? r : end_wait(t, stop, &w, ret_why);
	}
	if (r == 0 && w.recovers)
		r = promote(t, ret_why);
	uint64_t reached = 0;
	if (r == 0)
		r = position_reached(t, &reached);
	if (r == 0 && pg_lsn_plain(reached) < pg_lsn_plain(to->least)) {
		pg_why_set(ret_why, "the log ends at %X/%X, before %X/%X", (unsigned)(reached >> 32), (unsigned)reached,
		           (unsigned)(to->least >> 32), (unsigned)to->least);
		r = -ENODATA;
	}
	if (r < 0 && ret_why && !*ret_why)
		pg_why_set(ret_why, "the restored server cannot be started: %s", strerror(-r));
	return r;
}

int pg_throwaway_halt(struct pg_throwaway *t)
{
	if (t->pidfd < 0)
		return 0;
	pg_process_signal(t->pidfd, SIGINT);
	bool ended = pg_process_ended(t->pidfd, 300000);
	int r = server_end(t);
	return r < 0 ? r : ended ? 0 : -ETIMEDOUT;
}

void pg_throwaway_leave(struct pg_throwaway *t)
{
	(void)!server_end(t);
	pg_cgroup_remove_throwaway(t->engine, t->dir);
	sockets_end(t);
}

/* --- what a snapshot says */

void pg_snapshot_target(const json_t *facts, struct pg_target *ret_target)
{
	uint64_t position = pg_lsn_of(facts, "position");
	*ret_target = (struct pg_target){.timeline = (unsigned)json_number(facts, "timeline"), .least = position};
	if (!json_flag(facts, "cold"))
		ret_target->lsn = position;
}

uint64_t pg_lsn_of(const json_t *facts, const char *name)
{
	unsigned high, low;
	const char *text = json_string_value(json_object_get(facts, name));
	return text && sscanf(text, "%X/%X", &high, &low) == 2 ? (uint64_t)high << 32 | low : 0;
}
