/* The log of clusters that have backups, into the repository as it is written; archive_run.c says whose turn it is.
 *
 * About once a second, and only while the log moves, a mark is made on each primary: a record whose end is known, and a
 * commit behind it. Then what basic_archive has put into the spool is stored, what is missing is looked for on all
 * nodes, and the segment that is being written is stored up to where it is flushed. Only then the mark is put into the
 * index. So a mark in the index means: the log up to there was stored; and a moment before it can be recovered to by
 * time, because a commit that is later lies in the log, without which PostgreSQL would not know when to stop. When the
 * log stands still behind a mark, each moment since then is that mark's position. */
#include "engine/postgres/archive/archive.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_clock.h"
#include "engine/postgres/archive/archive_common.h"
#include "engine/postgres/archive/archive_marks.h"
#include "engine/postgres/archive/archive_prove.h"
#include "engine/postgres/archive/archive_store.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define AWAY_MS 3000    /* until a repository that failed is tried again */
#define FORMER_MS 60000 /* for longer the end of an archive that was left is not waited for */
#define OFF_MS 5000     /* between two looks at one that is not archived */
#define EMPTY_MS 60000  /* and at one that has left nothing */
#define SQL_MS 3000
#define COMMIT_BYTES 56 /* a commit's record without anything in it, aligned: 48 */
/* Of PostgreSQL's records. */
#define PG_BLOCK 8192
#define RECORD_HEAD 24
#define MANAGER_LOG 0
#define MANAGER_STANDBY 8
#define CHECKPOINT_ONLINE 0x10
#define STOP_RECORD 128 /* a shutdown's checkpoint */

/* --- a node's lines */

bool pg_archives(const struct pg_cluster *c)
{
	return c->backup.archive && c->engine->repositories && c->backup.incarnation[0];
}

/* Servers of before there was an archive need a restart for it, which only backups are worth. */
static bool is_without(const struct pg_cluster *c, const struct pg_node *n)
{
	char path[PG_PATH], *text;
	if (pg_archives(c) || c->renewing || !pg_node_is_made(c, n))
		return false;
	pg_node_path(c, n, "conf/postgresql.conf", path);
	if (pg_file_read(path, 1 << 20, &text) < 0)
		return false;
	bool without = !strstr(text, "\narchive_mode");
	free(text);
	return without;
}

void pg_archive_configure(struct buf *b, const struct pg_cluster *c, const struct pg_node *n)
{
	char dir[PG_PATH];
	unsigned term = 0;
	if (is_without(c, n))
		return;
	buf_z(b, "archive_mode = on\narchive_timeout = 0\n");
	if (!pg_archives(c)) {
		/* Not an empty command: with that, all log would be kept. */
		buf_z(b, "archive_library = ''\narchive_command = '/bin/true'\n");
		return;
	}
	for (size_t i = 0; i < c->set_count; i++)
		term = c->sets[i].number == n->set ? c->sets[i].term : term;
	/* A directory that is not there when the server reads its name would not be taken. */
	pg_node_path(c, n, "spool", dir);
	int r = pg_dir_make(c->user, dir, true);
	pg_spool_dir(c, n, term, dir);
	r = r < 0 ? r : pg_dir_make(c->user, dir, true);
	if (r < 0)
		log_error("engine: cannot make %s: %s", dir, strerror(-r));
	buf_printf(b,
	           "archive_library = 'basic_archive'\narchive_command = ''\nbasic_archive.archive_directory = '%s'\n",
	           dir);
}

/* --- small things */

static void why_set(struct pg_archive *a, const char *what, int r)
{
	const char *words = repository_why();
	pthread_mutex_lock(&a->lock);
	if (!a->away_ms)
		a->away_ms = clock_now_ms();
	snprintf(a->why, sizeof a->why, "%s: %s", what, words && *words ? words : strerror(-r));
	pthread_mutex_unlock(&a->lock);
}

static void wal_dir(const struct pg_cluster *c, const char *node, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/%s/data/pg_wal", c->engine->dir, c->id, node);
}

/* --- what the repository has */

static int listed(void *ctx, const char *name, uint64_t stored)
{
	struct pg_archive_set *s = ctx;
	uint32_t timeline;
	uint64_t number;
	(void)stored;
	switch (pg_wal_parse(name, &timeline, &number)) {
	case WAL_HISTORY: s->histories = timeline > s->histories ? timeline : s->histories; break;
	case WAL_SEGMENT:
	case WAL_PARTIAL: pg_segments_add(&s->known, timeline, number, name[24] == 0); break;
	case WAL_NONE: break;
	}
	return 0;
}

static int index_load(struct pg_cluster *c, struct pg_archive *a, const struct repo_line *line,
                      struct pg_archive_set *s)
{
	char *text;
	size_t n;
	int r = repo_seconds_get(a->repository, line, 0, &text, &n);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	pg_index_parse(&s->index, (struct str){text, n});
	free(text);
	if (s->index.hour_count == 0)
		return 0;
	return pg_archive_hour_load(c, a, s, s->index.hours[s->index.hour_count - 1].hour);
}

/* The first segment since the last gap that is not there as a whole. */
static void next_find(struct pg_archive_set *s)
{
	s->next = s->index.gap;
	if (s->known.count && s->known.list[0].number > s->next)
		s->next = s->known.list[0].number;
	while (s->next) {
		const struct pg_chain_part *part = pg_chain_part(&s->chain, s->next);
		const struct pg_segment *g = part ? pg_segments_find(&s->known, part->timeline, s->next) : NULL;
		if (!g || !g->complete)
			break;
		s->next++;
	}
}

static int set_load(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s)
{
	struct repo_line line = pg_archive_line(c, a, s->name);
	char name[PG_WAL_NAME], *text = NULL;
	size_t n;
	if (!s->identity) /* whose log it is is not known yet */
		return -ESTALE;
	/* What an attempt before this one has read would be there twice. */
	pg_index_free(&s->index);
	s->known.count = s->marks.count = 0;
	s->histories = 0;
	int r = repo_wal_list(a->repository, &line, listed, s);
	r = r < 0 ? r : index_load(c, a, &line, s);
	if (r == 0 && s->histories > 1) {
		snprintf(name, sizeof name, "%08X.history", s->histories);
		r = repo_wal_get(a->repository, &line, name, 1 << 20, &text, &n);
	}
	if (r < 0)
		return r;
	pg_chain_parse(&s->chain, s->histories > 1 ? s->histories : 1, text);
	free(text);
	if (s->index.identity && s->index.identity != s->identity) {
		pthread_mutex_lock(&a->lock);
		snprintf(a->why, sizeof a->why,
		         "set %s: the archive is of other data (%llu): a new incarnation must begin", s->name,
		         (unsigned long long)s->index.identity);
		pthread_mutex_unlock(&a->lock);
		return -ESTALE;
	}
	next_find(s);
	pthread_mutex_lock(&a->lock);
	s->loaded = true;
	s->gap = s->index.gap;
	s->timeline = s->chain.parts[s->chain.count - 1].timeline;
	s->stored = s->next * PG_SEGMENT;
	if (s->marks.count)
		s->last = s->marks.list[s->marks.count - 1];
	s->marked = s->last.lsn;
	if (s->last.end > s->stored)
		s->stored = s->last.end;
	a->broken |= s->index.broken;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

/* --- timelines */

/* Histories that are not stored yet, and the chain that leads to the timeline. */
static int timeline_learn(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint32_t timeline)
{
	char dir[PG_PATH], path[PG_PATH], name[PG_WAL_NAME], *text = NULL;
	int r = 0;
	if (s->chain.count && s->chain.parts[s->chain.count - 1].timeline == timeline &&
	    (timeline == 1 || s->histories >= timeline))
		return 0;
	wal_dir(c, s->nodes[s->primary].name, dir);
	for (uint32_t i = s->histories + 1; i <= timeline && r == 0; i++) {
		snprintf(name, sizeof name, "%08X.history", i);
		pg_path_set(path, "%s/%s", dir, name);
		free(text);
		text = NULL;
		if (pg_file_read(path, 1 << 20, &text) < 0) {
			r = i == timeline && i > 1 ? -ENODATA : 0; /* one that never led to this one is nobody's */
			continue;
		}
		/* Other bytes there: two nodes have begun the same timeline. That is never passed over. */
		r = pg_archive_put(c, a, s, name, text, strlen(text));
	}
	if (r == 0 && timeline > 1 && !text) {
		snprintf(name, sizeof name, "%08X.history", timeline);
		pg_path_set(path, "%s/%s", dir, name);
		r = pg_file_read(path, 1 << 20, &text);
	}
	if (r == 0) {
		bool other = s->chain.count && s->chain.parts[s->chain.count - 1].timeline != timeline;
		pg_chain_parse(&s->chain, timeline, text);
		uint64_t fork = s->chain.parts[s->chain.count - 1].begin / PG_SEGMENT;
		s->next = s->next > fork && fork ? fork : s->next;
		if (fork && other) {
			pg_index_holes_cut(&s->index, fork);
			pg_index_backs_cut(&s->index, s->chain.parts[s->chain.count - 1].begin);
		}
		pthread_mutex_lock(&a->lock);
		s->timeline = timeline;
		if (s->stored > s->next * PG_SEGMENT && s->next)
			s->stored = s->next * PG_SEGMENT;
		pthread_mutex_unlock(&a->lock);
	}
	free(text);
	return r;
}

/* --- a primary that runs */

static int conn_open(struct pg_archive_set *s)
{
	const struct pg_archive_node *p = &s->nodes[s->primary];
	struct pg_node n = {.port = p->port};
	if (s->conn && (s->conn_pid != p->pid || PQstatus(s->conn) != CONNECTION_OK)) {
		PQfinish(s->conn);
		s->conn = NULL;
		s->clean = false;
	}
	if (s->conn)
		return 0;
	int r = pg_sql_open(&n, p->run, "postgres", 2000, &s->conn);
	if (r == 0)
		s->conn_pid = p->pid;
	return r;
}

static void conn_close(struct pg_archive_set *s)
{
	if (s->conn)
		PQfinish(s->conn);
	s->conn = NULL;
}

int pg_mark_make(PGconn *conn, struct pg_mark *ret_mark, uint64_t *ret_insert)
{
	/* A commit that waits for a standby would wait as long as there is none; and each restore point would be a line
	 * in the user's log. */
	static const char point[] = "begin; set local synchronous_commit = local; set local log_min_messages = fatal; "
	                            "select pg_create_restore_point('steward') - '0/0', "
	                            "substr(pg_walfile_name(pg_current_wal_insert_lsn()), "
	                            "1, 8), pg_current_xact_id()";
	static const char commit[] =
	        "commit; select pg_current_wal_insert_lsn() - '0/0', pg_current_wal_flush_lsn() - '0/0'";
	struct pg_mark m = {.kind = 'H', .from_ms = clock_now_ms()};
	PGresult *rows;
	int r = pg_sql_rows(conn, SQL_MS, point, &rows);
	if (r < 0)
		return r;
	m.lsn = strtoull(pg_value(rows, 0, 0), NULL, 10);
	m.timeline = (uint32_t)strtoul(pg_value(rows, 0, 1), NULL, 16);
	PQclear(rows);
	r = pg_sql_rows(conn, SQL_MS, commit, &rows);
	if (r < 0)
		return r;
	*ret_insert = strtoull(pg_value(rows, 0, 0), NULL, 10);
	m.end = strtoull(pg_value(rows, 0, 1), NULL, 10);
	PQclear(rows);
	/* A millisecond that has begun is not over. */
	m.to_ms = clock_now_ms() + 1;
	*ret_mark = m;
	return m.end > m.lsn && m.timeline ? 0 : -EPROTO;
}

/* Whether what was written from one position to the other is PostgreSQL's own housekeeping: an idle server notes what
 * runs after each write, and makes a checkpoint. Marks for these would make it write them again, without end. */
static bool is_noise(const char *directory, const char *name, uint64_t from, uint64_t to)
{
	char *bytes;
	size_t n, at = (size_t)(from % PG_SEGMENT), end = (size_t)(to % PG_SEGMENT);
	/* Within one page: records that go on in the next one have its head in them. */
	if (from / PG_BLOCK != to / PG_BLOCK || at >= end || pg_wal_read(directory, name, &bytes, &n) < 0)
		return false;
	bool noise = n >= end;
	while (noise && at + RECORD_HEAD <= end) {
		uint32_t length;
		memcpy(&length, bytes + at, sizeof length);
		unsigned info = (unsigned char)bytes[at + 16] & 0xf0u, manager = (unsigned char)bytes[at + 17];
		noise = length >= RECORD_HEAD && length <= end - at &&
		        (manager == MANAGER_STANDBY || (manager == MANAGER_LOG && info == CHECKPOINT_ONLINE));
		at += (length + 7u) & ~(size_t)7;
	}
	free(bytes);
	return noise && at == end;
}

/* Whether nothing was written since the last mark. First by the file's time, which costs nothing. */
static bool stands_still(struct pg_cluster *c, struct pg_archive_set *s)
{
	char dir[PG_PATH], path[PG_PATH];
	struct stat st;
	if (s->mark_due || !s->clean || !s->writing[0] || s->marks.count == 0)
		return false;
	wal_dir(c, s->nodes[s->primary].name, dir);
	pg_path_set(path, "%s/%s", dir, s->writing);
	if (nolink_lstat(path, &st) < 0)
		return false;
	if (s->conn_pid == s->nodes[s->primary].pid && s->wrote.tv_sec && st.st_mtim.tv_sec == s->wrote.tv_sec &&
	    st.st_mtim.tv_nsec == s->wrote.tv_nsec)
		return true;
	int64_t insert;
	s->wrote.tv_sec = 0;
	if (conn_open(s) < 0 || !s->clean ||
	    pg_sql_int(s->conn, SQL_MS, "select (pg_current_wal_insert_lsn() - '0/0')::bigint", &insert) < 0)
		return false;
	if ((uint64_t)insert != s->insert && !is_noise(dir, s->writing, s->insert, (uint64_t)insert))
		return false;
	s->insert = (uint64_t)insert;
	s->wrote = st.st_mtim;
	return true;
}

/* The segment that is being written, up to `end`, which is flushed. */
static int partial_put(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, uint32_t timeline,
                       uint64_t end)
{
	uint64_t number = (end - 1) / PG_SEGMENT;
	char dir[PG_PATH], name[PG_WAL_NAME], *bytes;
	size_t n, want = (size_t)(end - number * PG_SEGMENT);
	const struct pg_segment *known = pg_segments_find(&s->known, timeline, number);
	if (known && known->complete)
		return 0;
	wal_dir(c, s->nodes[s->primary].name, dir);
	pg_wal_name(timeline, number, true, name);
	if (!pg_wal_is(dir, name, s->identity))
		return -EAGAIN;
	int r = pg_wal_read(dir, name, &bytes, &n);
	if (r < 0)
		return r;
	/* One that was completed and put to another use since comes from the spool. */
	if (n < want || !pg_wal_is(dir, name, s->identity) || !pg_archive_is_same(c, a))
		r = -EAGAIN;
	snprintf(s->writing, sizeof s->writing, "%s", name);
	pg_wal_name(timeline, number, false, name);
	r = r < 0 ? r : pg_archive_put(c, a, s, name, bytes, want);
	free(bytes);
	return r;
}

/* All log up to the mark, then the mark. */
static int mark_store(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, const struct pg_mark *m)
{
	uint64_t current = (m->end - 1) / PG_SEGMENT;
	int r = timeline_learn(c, a, s, m->timeline);
	if (r < 0)
		return r;
	if (s->next == 0) { /* nothing was stored yet */
		s->next = current;
		for (const struct pg_segment *g;
		     (g = pg_segments_find(&s->known, m->timeline, s->next - 1)) && g->complete;)
			s->next--;
		s->index.gap = s->index.listed = s->next;
		s->index_due = true;
	}
	r = pg_archive_mend(c, a, s, current);
	r = r < 0 ? r : partial_put(c, a, s, m->timeline, m->end);
	if (r < 0)
		return r;
	pthread_mutex_lock(&a->lock);
	s->stored = m->end;
	s->gap = s->index.gap;
	s->stored_ms = m->from_ms;
	s->moved_ms = 0;
	s->marked = m->lsn;
	pthread_mutex_unlock(&a->lock);
	r = s->anew ? pg_archive_moments_begin(c, a, s, m) : 0;
	return r < 0 || pg_archive_clock_repeats(s, m) ? r : pg_archive_mark_add(c, a, s, m);
}

static int primary_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s)
{
	struct pg_mark m;
	uint64_t insert;
	int64_t recovers = 1, now;
	pg_archive_clock_look(s);
	now = s->clock.ms;
	s->stopped = false;
	if (stands_still(c, s)) {
		pg_archive_mark_extend(a, s, now);
		return 0;
	}
	pthread_mutex_lock(&a->lock);
	if (!s->moved_ms)
		s->moved_ms = clock_now_ms();
	pthread_mutex_unlock(&a->lock);
	int r = conn_open(s);
	r = r < 0 ? r : pg_sql_int(s->conn, SQL_MS, "select pg_is_in_recovery()::int", &recovers);
	if (r == 0 && recovers)
		return -EAGAIN;
	r = r < 0 ? r : pg_mark_make(s->conn, &m, &insert);
	if (r < 0) {
		conn_close(s);
		return -EAGAIN; /* it is about to end, or to be replaced */
	}
	s->clean = false;
	s->mark_due = false;
	s->wrote.tv_sec = 0;
	r = mark_store(c, a, s, &m);
	s->insert = insert;
	s->clean = r == 0 && insert - m.lsn <= COMMIT_BYTES && !pg_archive_clock_repeats(s, &m);
	return r;
}

/* --- one that was stopped in order */

static int stopped_mark(const struct pg_cluster *c, const struct pg_archive_set *s, struct pg_mark *ret_mark)
{
	struct pg_control head;
	char data[PG_PATH];
	pg_path_set(data, "%s/%s/%s/data", c->engine->dir, c->id, s->nodes[s->primary].name);
	if (pg_control_read(data, &head) < 0 || head.state != PG_SHUT_DOWN ||
	    head.checkpoint % PG_SEGMENT + STOP_RECORD > PG_SEGMENT)
		return -EAGAIN;
	/* The control file was last written when it stopped, in whole seconds. */
	int64_t now = clock_now_ms(), then = now;
	if (head.time_s > 0 && head.time_s < now / 1000)
		then = (head.time_s + 1) * 1000;
	then = then < s->twice_ms ? s->twice_ms : then;
	*ret_mark = (struct pg_mark){'S', then, then, 0, head.timeline, head.checkpoint, head.checkpoint + STOP_RECORD};
	return 0;
}

static int stopped_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s)
{
	struct pg_mark m;
	conn_close(s);
	s->clean = false;
	pg_archive_clock_look(s);
	if (s->stopped) {
		pg_archive_mark_extend(a, s, clock_now_ms());
		return 0;
	}
	int r = stopped_mark(c, s, &m);
	r = r < 0 ? r : mark_store(c, a, s, &m);
	s->stopped = r == 0;
	return r;
}

/* --- one look at a cluster */

static int set_tick(struct pg_cluster *c, struct pg_archive *a, struct pg_archive_set *s, bool paused)
{
	int r = 0;
	if (s->primary < s->node_count && s->nodes[s->primary].pid)
		r = primary_tick(c, a, s);
	else if (s->primary < s->node_count && paused)
		r = stopped_tick(c, a, s);
	else
		conn_close(s);
	/* Not ready: with the next look. */
	r = r == -EAGAIN || r == -ENODATA || r == -ENOENT ? 0 : r;
	return r < 0 ? r : pg_archive_index(c, a, s, false);
}

static void set_close(struct pg_archive_set *s)
{
	conn_close(s);
	free(s->known.list);
	free(s->marks.list);
	free(s->chain.parts);
	pg_index_free(&s->index);
	*s = (struct pg_archive_set){0};
}

static void set_free(struct pg_archive_set *s)
{
	set_close(s);
	free(s);
}

void pg_archive_forget(struct pg_archive *a, bool all)
{
	size_t kept = 0;
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->set_count; i++)
		if (all || !a->sets[i]->here)
			set_free(a->sets[i]);
		else
			a->sets[kept++] = a->sets[i];
	a->set_count = kept;
	pthread_mutex_unlock(&a->lock);
}

/* With both locks. */
static void set_view(struct pg_cluster *c, struct pg_archive *a, const struct pg_set *set)
{
	struct pg_archive_set *s = NULL;
	char name[64] = "";
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i]->set == set->number)
			pg_set_name(&c->nodes[i]->want, name);
	for (size_t i = 0; i < a->set_count && !s; i++)
		s = strcmp(a->sets[i]->name, name) == 0 ? a->sets[i] : NULL;
	if (!name[0] || (!s && a->set_count == PG_SETS_MAX))
		return;
	if (s && s->identity != set->identity) {
		/* Other data: what was known of the archive was known of the former. */
		set_close(s);
		snprintf(s->name, sizeof s->name, "%s", name);
	}
	if (!s) {
		s = a->sets[a->set_count++] = must_calloc(1, sizeof *s);
		snprintf(s->name, sizeof s->name, "%s", name);
	}
	s->here = true;
	s->number = set->number;
	s->term = set->term;
	s->identity = set->identity;
	s->node_count = 0;
	s->primary = ENGINE_NODES_MAX;
	for (size_t i = 0; i < c->node_count; i++) {
		const struct pg_node *n = c->nodes[i];
		if (n->set != set->number || s->node_count == ENGINE_NODES_MAX)
			continue;
		struct pg_archive_node *copy = &s->nodes[s->node_count++];
		snprintf(copy->name, sizeof copy->name, "%s", n->want.name);
		pg_node_run_dir(c, n, copy->run);
		copy->port = n->port;
		copy->pid = n->busy || n->noted ? 0 : n->pid;
		if (strcmp(n->want.name, set->primary) == 0)
			s->primary = s->node_count - 1;
	}
}

/* What only we know of the archive that a restore has ended: for how long its log stood still. Moments of that time
 * were offered, and are to be had from it later, too. A repository that is away is waited for, but not for ever: the
 * log of the new data has to be stored. */
static bool former_store(struct pg_cluster *c, struct pg_archive *a)
{
	int r = repository_get(c->engine->repositories, a->region, a->group, &a->repository);
	for (size_t i = 0; i < a->set_count && r == 0; i++)
		r = a->sets[i]->loaded ? pg_archive_index(c, a, a->sets[i], true) : 0;
	if (r < 0)
		why_set(a, "the repository does not take how long the log stood still", r);
	repository_put(a->repository);
	a->repository = NULL;
	return r == 0 || clock_now_ms() - a->away_ms >= FORMER_MS;
}

/* What there is to do, copied; false: nothing. */
static bool cluster_view(struct pg_cluster *c, struct pg_archive *a, bool *ret_paused)
{
	pthread_mutex_lock(&c->lock);
	bool on = pg_archives(c) && !c->destroying && !c->gone && !c->upgrading && !pg_crypt_is_shut(c);
	bool changed = strcmp(a->incarnation, c->backup.incarnation) != 0 || strcmp(a->region, c->backup.region) != 0;
	pthread_mutex_unlock(&c->lock);
	if (a->on && (changed || !on) && !former_store(c, a))
		return false;
	if (!on) {
		a->on = false;
		return false;
	}
	/* What was kept may have been swept while it was off. */
	bool fresh = changed || !a->on;
	if (fresh)
		pg_archive_forget(a, true);
	a->on = true;
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&a->lock);
	if (fresh) {
		pg_index_free(&a->common);
		a->common_loaded = a->broken = false;
		a->commons.n = 0;
		a->common_hour = 0;
	}
	snprintf(a->incarnation, sizeof a->incarnation, "%s", c->backup.incarnation);
	snprintf(a->region, sizeof a->region, "%s", c->backup.region);
	snprintf(a->group, sizeof a->group, "%s", c->group_id);
	*ret_paused = c->paused;
	for (size_t i = 0; i < a->set_count; i++)
		a->sets[i]->here = false;
	for (size_t i = 0; i < c->set_count; i++)
		set_view(c, a, &c->sets[i]);
	pthread_mutex_unlock(&a->lock);
	pthread_mutex_unlock(&c->lock);
	pg_archive_forget(a, false);
	return true;
}

static int cluster_store(struct pg_cluster *c, struct pg_archive *a, bool paused, bool *ret_more)
{
	int r = repository_get(c->engine->repositories, a->region, a->group, &a->repository);
	for (size_t i = 0; i < a->set_count && r == 0; i++)
		r = a->sets[i]->loaded ? 0 : set_load(c, a, a->sets[i]);
	r = r < 0 ? r : pg_archive_prove(c, a);
	r = r < 0 ? r : pg_spools_move(c, a, ret_more);
	if (r == 0)
		pg_common_tick(c, a);
	for (size_t i = 0; i < a->set_count && r == 0; i++)
		r = set_tick(c, a, a->sets[i], paused);
	r = r < 0 ? r : pg_common_store(c, a);
	return r;
}

static void based_take(struct pg_archive *a)
{
	pthread_mutex_lock(&a->lock);
	bool based = a->based;
	a->based = false;
	a->broken = a->broken && !based;
	pthread_mutex_unlock(&a->lock);
	for (size_t i = 0; i < a->set_count && based; i++)
		if (a->sets[i]->index.broken) {
			a->sets[i]->index.broken = false;
			a->sets[i]->index_due = true;
		}
}

static void due_set(struct pg_archive *a, int64_t in_ms)
{
	pthread_mutex_lock(&a->lock);
	a->due_ms = pg_mono_ms() + in_ms;
	pthread_mutex_unlock(&a->lock);
}

void pg_archive_tick(struct pg_cluster *c, struct pg_archive *a)
{
	bool paused = false, more = false;
	if (!cluster_view(c, a, &paused)) {
		for (size_t i = 0; i < a->set_count; i++)
			conn_close(a->sets[i]);
		pthread_mutex_lock(&c->lock);
		bool off = !c->backup.archive && !c->destroying && !c->upgrading;
		pthread_mutex_unlock(&c->lock);
		/* Nobody asks for it any more; the server may still be about to add some. */
		bool empty = off && pg_spool_bytes(c, true) == 0;
		due_set(a, empty ? EMPTY_MS : OFF_MS);
		return;
	}
	based_take(a);
	int r = cluster_store(c, a, paused, &more);
	if (r < 0 && r != -ESTALE)
		why_set(a, "the repository does not take the log", r);
	if (r < 0)
		log_debug("engine: %s: archive: %s: %s", c->id, strerror(-r), a->why);
	pthread_mutex_lock(&a->lock);
	if (r == 0) {
		a->why[0] = 0;
		a->away_ms = 0;
		/* What was given up may lie in the servers' own directories still. */
		a->full = false;
		a->broken = false;
		for (size_t i = 0; i < a->set_count; i++)
			a->broken |= a->sets[i]->index.broken;
	}
	pthread_mutex_unlock(&a->lock);
	if (r == 0)
		pg_archive_proven(c, a);
	repository_put(a->repository);
	a->repository = NULL;
	pg_spool_bound(c, a);
	due_set(a, more ? 0 : r < 0 && r != -ESTALE ? AWAY_MS : PG_ARCHIVE_TICK_MS);
}
