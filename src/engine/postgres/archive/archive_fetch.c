/* The archive's log as files that PostgreSQL recovers from. Of each segment only the one of the timeline that leads to
 * the target is fetched: PostgreSQL would otherwise fall back to what an older timeline has under the same number.
 *
 * A server may recover meanwhile. It is a standby without a primary, for which a file that is not there is one to wait
 * for and never the log's end; each comes as a whole, by its name. What it is told to stop in by itself is held back
 * until nothing is missing: so no server is past recovery while there is something to fetch. */
#include "engine/postgres/archive/archive_fetch.h"

#include "base/nolink.h"
#include "engine/postgres/archive/archive_index.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/archive/archive_view.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define GETS 4   /* segments that are fetched at once */
#define HEAD 4   /* that are there before a server may start on them */
#define AHEAD 64 /* of what is replayed, at most: 256 MB */
/* Without a step of the server the rest comes all the same: it may be one that shows nothing, or stand still, which is
 * found out by who waits for it. There is room for all. */
#define STILL_MS 3000

/* --- the log, as files */

struct fetch {
	struct engine *engine;
	struct pg_view *view;
	const struct pg_chain *chain;
	const char *directory;
	uint64_t last;
	uint64_t end;  /* up to where the log has to be there; 0: as far as it is */
	uint64_t cut;  /* what is behind this position is left out; 0: nothing */
	uint64_t held; /* from this segment on, files get their names when all are there */
	uint64_t turn; /* up to this one now */
	_Atomic uint64_t next;
	_Atomic int result;
	_Atomic bool stop, unbound;
	_Atomic uint64_t seen; /* the segment that is being replayed, and since when */
	_Atomic int64_t seen_ms;
	pthread_mutex_t lock;
	char missing[PG_WAL_NAME];
};

/* Of the length that PostgreSQL expects: what is not there yet is zeros, which end the log. Made anew, since it is
 * given away: what lies there may be another name of somebody else's file. */
static int file_make(const char *directory, const char *name, const char *bytes, size_t n, uint64_t length)
{
	char path[PG_PATH];
	pg_path_set(path, "%s/%s", directory, name);
	nolink_unlink(path);
	int fd = nolink_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -errno;
	int r = 0;
	for (size_t done = 0; done < n && r == 0;) {
		ssize_t put = write(fd, bytes + done, n - done);
		if (put < 0 && errno != EINTR)
			r = -errno;
		done += put > 0 ? (size_t)put : 0;
	}
	if (r == 0 && length > n && ftruncate(fd, (off_t)length) < 0)
		r = -errno;
	/* It is the server's whose directory it is. */
	struct stat of;
	if (r == 0 &&
	    (nolink_lstat(directory, &of) < 0 || (of.st_uid != geteuid() && fchown(fd, of.st_uid, of.st_gid) < 0)))
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

/* Under which nobody looks for it. */
static void coming_name(const char *name, char ret_name[PG_WAL_NAME + 1])
{
	snprintf(ret_name, PG_WAL_NAME + 1, "%s~", name);
}

/* A server may be waiting for it: it is there as a whole or not at all. */
static int file_show(const struct fetch *f, const char *name)
{
	char coming[PG_WAL_NAME + 1], from[PG_PATH], to[PG_PATH];
	coming_name(name, coming);
	pg_path_set(from, "%s/%s", f->directory, coming);
	pg_path_set(to, "%s/%s", f->directory, name);
	return nolink_rename(from, to) < 0 ? -errno : 0;
}

static bool is_cut_off(const struct fetch *f, uint64_t number)
{
	return f->cut && number * PG_SEGMENT >= f->cut;
}

static int segment_make(const struct fetch *f, uint64_t number, const char *name, const char *bytes, size_t n)
{
	char coming[PG_WAL_NAME + 1];
	if (is_cut_off(f, number))
		return 0;
	if (f->cut && f->cut - number * PG_SEGMENT < n)
		n = (size_t)(f->cut - number * PG_SEGMENT);
	coming_name(name, coming);
	int r = file_make(f->directory, coming, bytes, n, PG_SEGMENT);
	return r < 0 || number >= f->held ? r : file_show(f, name);
}

static int segment_fetch(struct fetch *f, uint64_t number)
{
	const struct pg_chain_part *part = pg_chain_part(f->chain, number);
	char name[PG_WAL_NAME], partial[PG_WAL_NAME], *bytes;
	size_t n;
	int r = part ? 0 : -ENOENT;
	if (r == 0) {
		pg_wal_name(part->timeline, number, true, name);
		pg_wal_name(part->timeline, number, false, partial);
		r = repo_wal_get(f->view->repository, &f->view->line, name, PG_SEGMENT, &bytes, &n);
		/* The last one may lie there in part; it may be completed in between. */
		for (int i = 0; i < 2 && r == -ENOENT && number == f->last; i++)
			r = repo_wal_get(f->view->repository, &f->view->line, i ? name : partial, PG_SEGMENT, &bytes,
			                 &n);
	}
	/* What is short would be replayed to its end, which is before the point. */
	if (r == 0 && number == f->last && f->end && n < f->end - number * PG_SEGMENT) {
		free(bytes);
		r = -ENOENT;
	}
	if (r < 0) {
		pthread_mutex_lock(&f->lock);
		if (!f->missing[0] && part)
			snprintf(f->missing, sizeof f->missing, "%s", name);
		pthread_mutex_unlock(&f->lock);
		return r;
	}
	r = segment_make(f, number, name, bytes, n);
	free(bytes);
	return r;
}

/* Until the server has come near enough. */
static void room_wait(struct fetch *f, uint64_t number)
{
	while (number < f->held && number > f->seen + AHEAD && !f->unbound && !f->stop && f->result == 0) {
		if (pg_mono_ms() - f->seen_ms > STILL_MS)
			f->unbound = true;
		else
			pg_sleep_ms(5);
	}
}

static void *fetch_thread(void *arg)
{
	struct fetch *f = arg;
	for (;;) {
		uint64_t number = atomic_fetch_add(&f->next, 1);
		if (number > f->turn)
			return NULL;
		room_wait(f, number);
		if (f->result < 0 || f->stop)
			return NULL;
		int r = segment_fetch(f, number), none = 0;
		if (r < 0)
			atomic_compare_exchange_strong(&f->result, &none, r);
	}
}

/* Those that were held back, once all are there. */
static int held_show(const struct fetch *f)
{
	int r = 0;
	for (uint64_t number = f->held; r == 0 && number <= f->last && !is_cut_off(f, number); number++) {
		char name[PG_WAL_NAME];
		pg_wal_name(pg_chain_part(f->chain, number)->timeline, number, true, name);
		r = file_show(f, name);
	}
	return r;
}

/* Up to and with that one. */
static int segments_fetch(struct fetch *f, uint64_t until)
{
	pthread_t threads[GETS];
	unsigned count = 0;
	f->turn = until;
	while (count < GETS - 1 && pthread_create(&threads[count], NULL, fetch_thread, f) == 0)
		count++;
	fetch_thread(f);
	while (count > 0)
		pthread_join(threads[--count], NULL);
	f->next = until + 1;
	if (f->result == 0 && f->stop)
		f->result = -ECANCELED;
	if (f->result == 0 && until == f->last)
		f->result = held_show(f);
	return f->result;
}

static int histories_fetch(struct fetch *f)
{
	int r = 0;
	for (size_t i = 0; i < f->chain->count && r == 0; i++) {
		char name[PG_WAL_NAME], *text;
		size_t n;
		if (f->chain->parts[i].timeline == 1)
			continue;
		snprintf(name, sizeof name, "%08X.history", f->chain->parts[i].timeline);
		r = repo_wal_get(f->view->repository, &f->view->line, name, 1 << 20, &text, &n);
		/* The last tells of all; a restore brings none but the one of the snapshot's timeline. */
		if (r == -ENOENT && i + 1 < f->chain->count) {
			r = 0;
			continue;
		}
		if (r < 0) {
			snprintf(f->missing, sizeof f->missing, "%s", name);
			break;
		}
		r = file_make(f->directory, name, text, n, 0);
		free(text);
	}
	return r;
}

static uint64_t last_needed(const struct pg_view *v, const struct pg_chain *chain, const struct pg_target *to)
{
	if (to->end)
		return (to->end - 1) / PG_SEGMENT;
	if (to->lsn) { /* the record behind the target may be in the next one */
		uint64_t last = (to->lsn - 1) / PG_SEGMENT;
		return pg_view_segment(v, chain, last + 1) ? last + 1 : last;
	}
	for (size_t i = v->known.count; i > 0; i--)
		if (pg_view_segment(v, chain, v->known.list[i - 1].number))
			return v->known.list[i - 1].number;
	return 0;
}

/* A fetch with all that it needs for itself. */
struct pg_fetch {
	struct fetch f;
	struct pg_view v;
	struct pg_chain chain;
	struct engine_source of;
	char set[64], directory[PG_PATH];
	pthread_t thread;
	bool threaded;
	_Atomic bool over;
};

static void fault_tell(const struct fetch *f, int r, const char **ret_why)
{
	pg_why_set(ret_why, "%s of the archive: %s", f->missing[0] ? f->missing : "a file",
	           r == -ENOENT    ? "it is missing"
	           : r == -EBADMSG ? "it is damaged"
	                           : strerror(-r));
}

static void fetch_free(struct pg_fetch *p)
{
	pthread_mutex_destroy(&p->f.lock);
	free(p->chain.parts);
	pg_view_close(&p->v);
	free(p);
}

/* Which segments are needed, and the histories. */
static int fetch_open(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline,
                      uint64_t lsn, const struct pg_target *to, const char *directory, struct pg_fetch **ret_fetch,
                      const char **ret_why)
{
	struct pg_fetch *p = must_calloc(1, sizeof *p);
	struct fetch *f = &p->f;
	p->of = *of;
	snprintf(p->set, sizeof p->set, "%s", set);
	pg_path_set(p->directory, "%s", directory);
	int r = pg_view_open(e, &p->of, p->set, true, &p->v);
	if (r < 0) {
		pg_why_set(ret_why,
		           r == -ENOENT ? "nothing of the set's log was kept" : "the archive cannot be read: %s",
		           repository_why());
		free(p);
		return r;
	}
	f->engine = e;
	f->view = &p->v;
	f->chain = &p->chain;
	f->directory = p->directory;
	f->next = f->seen = lsn / PG_SEGMENT;
	f->end = to->end;
	f->held = UINT64_MAX;
	f->unbound = true;
	pthread_mutex_init(&f->lock, NULL);
	r = pg_view_chain(&p->v, to->timeline, &p->chain);
	bool leads = r < 0 || pg_chain_has(&p->chain, timeline, lsn);
	f->last = r < 0 || !leads ? 0 : last_needed(&p->v, &p->chain, to);
	r = r < 0 || !leads ? r : histories_fetch(f);
	if (r == 0 && leads) {
		*ret_fetch = p;
		return 0;
	}
	if (leads)
		fault_tell(f, r, ret_why);
	else
		pg_why_set(ret_why, "timeline %u at %X/%X does not lead to timeline %u", timeline,
		           (unsigned)(lsn >> 32), (unsigned)lsn, to->timeline);
	fetch_free(p);
	return leads ? r : -ENOENT;
}

int pg_archive_fetch(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                     const struct pg_target *to, const char *directory, const char **ret_why)
{
	struct pg_fetch *p = NULL;
	int r = fetch_open(e, of, set, timeline, lsn, to, directory, &p, ret_why);
	if (!p)
		return r;
	(void)!segments_fetch(&p->f, p->f.last);
	return pg_fetch_end(p, ret_why);
}

static void *rest_thread(void *arg)
{
	struct pg_fetch *p = arg;
	(void)!segments_fetch(&p->f, p->f.last);
	p->over = true;
	return NULL;
}

int pg_fetch_begin(struct engine *e, const struct engine_source *of, const char *set, unsigned timeline, uint64_t lsn,
                   const struct pg_target *to, const char *directory, struct pg_fetch **ret_fetch, const char **ret_why)
{
	struct pg_fetch *p = NULL;
	int r = fetch_open(e, of, set, timeline, lsn, to, directory, &p, ret_why);
	if (!p)
		return r;
	struct fetch *f = &p->f;
	const uint64_t first = lsn / PG_SEGMENT, head = first + HEAD;
	f->cut = to->lsn;
	if (!to->lsn) /* it stops at a time by itself, behind what it must have */
		f->held = to->least > lsn ? (to->least - 1) / PG_SEGMENT : first;
	bool all = f->last < head || f->held < head;
	r = segments_fetch(f, all ? f->last : head - 1);
	if (r < 0)
		return pg_fetch_end(p, ret_why);
	p->over = all;
	if (!all) {
		f->seen_ms = pg_mono_ms();
		f->unbound = false;
		p->threaded = pthread_create(&p->thread, NULL, rest_thread, p) == 0;
		if (!p->threaded) {
			f->unbound = true;
			rest_thread(p);
		}
	}
	*ret_fetch = p;
	return 0;
}

bool pg_fetch_runs(struct pg_fetch *p, uint64_t replayed)
{
	if (p && replayed / PG_SEGMENT > p->f.seen) {
		p->f.seen = replayed / PG_SEGMENT;
		p->f.seen_ms = pg_mono_ms();
	}
	return p && !p->over;
}

bool pg_fetch_failed(const struct pg_fetch *p)
{
	return p && p->f.result < 0;
}

int pg_fetch_end(struct pg_fetch *p, const char **ret_why)
{
	if (!p)
		return 0;
	p->f.stop = true;
	if (p->threaded)
		pthread_join(p->thread, NULL);
	int r = p->f.result;
	if (r < 0 && r != -ECANCELED)
		fault_tell(&p->f, r, ret_why);
	fetch_free(p);
	return r;
}
