/* Bringing a snapshot back, to its own point or to a later one. Beside the data that serves, in NODE/restore of each
 * set's primary, the files come out of the repository, a server that nobody reaches recovers them to the point, and
 * who may not be in the target loses its way in. Up to there nothing of the cluster has changed, and a failure, a crash
 * or somebody who thinks better of it leaves it as it is.
 *
 * Then all nodes stop, and the state is written with the new identities and a new term: from there on the new data is
 * the cluster's. Directories change places, standbys are dropped, and what follows is the ordinary way of a cluster
 * whose standbys are missing: servers start shut, get the cluster's users and rules, and only then take clients. The
 * old data stays in NODE/old until all of that is done. */
#include "engine/postgres/backup/restore.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/recover.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/cluster/cluster.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/restoring.h"
#include "engine/postgres/cluster/router.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/images.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/grants.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS 2
#define SQL_MS 60000
#define CHECKPOINT_MS (3600 * 1000)

/* One set. */
struct part {
	struct str source; /* its name in the snapshot */
	unsigned number;
	char node[64]; /* that gets the data, and leads */
	struct pg_recovery recovery;
	uint64_t identity;
};

struct job {
	struct engine *e;
	struct pg_cluster *c;
	const struct engine_source *from;
	const struct engine_point *point;
	const struct engine_cluster *want;
	const struct engine_access *access;
	const _Atomic bool *cancel;
	struct engine_progress *progress;
	struct repository *repository;
	struct arena *a;
	struct part *parts;
	size_t count, current;
	unsigned version;   /* of the cluster, when it was planned */
	volatile bool stop; /* what `cancel` says, for the repository */
	pthread_mutex_t telling;
	unsigned told;                                      /* percent */
	int64_t files_ms, recovery_ms, flush_ms, change_ms; /* that it took */
};

static bool is_cancelled(void *ctx)
{
	struct job *j = ctx;
	if ((j->cancel && *j->cancel) || pg_is_stopped(j->progress))
		j->stop = true;
	pthread_mutex_lock(&j->c->lock);
	if (j->c->destroying || j->c->gone)
		j->stop = true;
	pthread_mutex_unlock(&j->c->lock);
	return j->stop;
}

/* From several threads, of which one may be late with what it says. */
static void restore_tell(void *ctx, uint64_t done, uint64_t of)
{
	struct job *j = ctx;
	uint64_t share = of ? done * 80 / of : 0;
	unsigned percent = (unsigned)((j->current * 80 + (share < 80 ? share : 80)) / j->count);
	pthread_mutex_lock(&j->telling);
	if (percent > j->told) {
		j->told = percent;
		pg_tell(j->progress, percent, "bringing files back");
	}
	pthread_mutex_unlock(&j->telling);
	(void)!is_cancelled(j);
}

/* --- what is to be restored where */

static bool is_shard(struct str name)
{
	uint64_t number;
	return str_to_u64(name, PG_ROUTER_SET - 1, &number);
}

/* Shards by their number. Routers by their name, or else by their order. */
static int part_match(struct job *j, const struct str *sets, size_t set_count, const struct pg_node *p, size_t router,
                      struct part *ret)
{
	char name[64];
	size_t at = 0, routers = 0;
	pg_set_name(&p->want, name);
	for (size_t i = 0; i < set_count; i++) {
		if (str_is(sets[i], name)) {
			ret->source = sets[i];
			return 0;
		}
		routers += !is_shard(sets[i]);
	}
	for (size_t i = 0; p->want.kind == NODE_ROUTER && routers && i < set_count; i++)
		if (!is_shard(sets[i]) && at++ == router % routers) {
			ret->source = sets[i];
			return 0;
		}
	pg_why_set(NULL, "the snapshot has no data for %s of this cluster: the number of shards must be the same",
	           p->want.kind == NODE_ROUTER ? "the router" : name);
	return -EINVAL;
}

/* With cluster.work held. */
static int parts_plan(struct job *j, const struct str *sets, size_t set_count)
{
	struct pg_cluster *c = j->c;
	size_t shards = 0, own = 0, routers = 0;
	int r = 0;
	if (c->gone || c->destroying || c->upgrading || c->set_count == 0) {
		pg_why_set(NULL, "the cluster is being changed");
		return -EBUSY;
	}
	j->version = c->version;
	j->count = c->set_count;
	j->parts = arena_new_array(j->a, struct part, j->count);
	for (size_t i = 0; r == 0 && i < j->count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		struct part *part = &j->parts[i];
		if (!p) {
			pg_why_set(NULL, "set %u has no primary", c->sets[i].number);
			return -EBUSY;
		}
		part->number = c->sets[i].number;
		snprintf(part->node, sizeof part->node, "%s", p->want.name);
		r = part_match(j, sets, set_count, p, routers, part);
		own += p->want.kind != NODE_ROUTER;
		routers += p->want.kind == NODE_ROUTER;
	}
	for (size_t i = 0; i < set_count; i++)
		shards += is_shard(sets[i]);
	if (r == 0 && (shards != own || (routers == 0) != (shards == set_count))) {
		pg_why_set(NULL, "the snapshot has %zu shards%s, the cluster %zu%s: they must be alike", shards,
		           shards == set_count ? "" : " behind a router", own, routers ? " behind a router" : "");
		r = -EINVAL;
	}
	return r;
}

static int parts_open(struct job *j)
{
	uint64_t bytes = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < j->count; i++) {
		struct part *p = &j->parts[i];
		struct pg_recovery *x = &p->recovery;
		*x = (struct pg_recovery){
		        .engine = j->e, .from = j->from, .point = j->point, .asked = is_cancelled, .ctx = j};
		snprintf(x->set, sizeof x->set, "%.*s", STR_ARG(p->source));
		r = repo_manifest_open(j->repository, j->from->cluster_id, j->from->snapshot_id, x->set, &x->manifest);
		if (r < 0) {
			x->manifest = NULL;
			pg_why_set(NULL, "%s", repository_why());
			break;
		}
		const json_t *facts = repo_manifest_facts(x->manifest);
		json_int_t major = json_number(facts, "major");
		if (major != j->c->version) {
			pg_why_set(NULL, "the snapshot is of version %d, the cluster runs %u: they must be the same",
			           (int)major, j->c->version);
			return -EINVAL;
		}
		bytes += repo_manifest_amount(x->manifest)->bytes;
		r = pg_recovery_aim(x);
		/* The log up to the point comes ahead of what is replayed, at worst all of it. */
		uint64_t position = pg_lsn_of(facts, "position");
		bytes += r == 0 && x->target.end > position ? x->target.end - position : 0;
	}
	return r < 0 ? r : pg_throwaway_room(j->e, bytes);
}

/* --- beside what serves */

/* Settings of roles are the source's, as are its users. Groups are the engine's own, and mean the same everywhere. */
static const char settings_sql[] =
        "do $$ declare x record; begin for x in select r.rolname, d.datname from pg_db_role_setting s join pg_roles r "
        "on "
        "r.oid = s.setrole left join pg_database d on d.oid = s.setdatabase loop execute format('alter role %I%s reset "
        "all', x.rolname, case when x.datname is null then '' else format(' in database %I', x.datname) end); end "
        "loop; end $$";

static int source_forget(struct job *j, struct part *p, struct pg_throwaway *t, const char **ret_why)
{
	static const struct engine_access nobody;
	struct buf servers = {0};
	PGconn *conn;
	int r = pg_throwaway_open(t, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_do(conn, SQL_MS, settings_sql);
	/* A router that came from elsewhere would talk to the shards there. */
	if (r == 0 && p->number >= PG_ROUTER_SET) {
		pthread_mutex_lock(&j->c->work);
		pg_router_servers(j->c, &servers);
		pthread_mutex_unlock(&j->c->work);
		buf_c(&servers, 0);
		r = pg_sql_do(conn, SQL_MS, servers.p);
		buf_free(&servers);
	}
	r = r < 0 ? r : pg_grants_revoke(conn, j->access ? j->access : &nobody, ret_why);
	r = r < 0 ? r : pg_sql_do(conn, CHECKPOINT_MS, "checkpoint");
	PQfinish(conn);
	return r;
}

/* What only a server of its own needs. */
static int data_tidy(const char *data)
{
	static const char *const files[] = {"postgresql.conf",   "pg_hba.conf",     "pg_ident.conf",
	                                    "backup_label.old",  "backup_manifest", "postmaster.opts",
	                                    "tablespace_map.old"};
	char path[PG_PATH];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		pg_path_set(path, "%s/%s", data, files[i]);
		if (nolink_unlink(path) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

static int part_bring(struct job *j, struct part *p, struct pg_throwaway *t, const char **ret_why)
{
	const struct repo_progress progress = {.tell = restore_tell, .ctx = j, .cancel = &j->stop};
	char data[PG_PATH];
	struct pg_control control;
	pg_path_set(data, "%s/data", t->dir);
	int64_t began = pg_mono_ms();
	int image = pg_image_open(j->e, j->from, p->recovery.set);
	int r = repo_restore_beside(p->recovery.manifest, data, t->user->uid, t->user->gid, THREADS, &progress, image);
	if (image >= 0)
		close(image);
	j->files_ms += pg_mono_ms() - began;
	began = pg_mono_ms();
	if (r < 0) {
		pg_why_set(ret_why, "%s", repository_why());
		return is_cancelled(j) ? -ECANCELED : r;
	}
	pg_tell(j->progress, (unsigned)((j->current * 80 + 80) / j->count), "recovering");
	r = pg_recovery_run(&p->recovery, t, ret_why);
	r = r < 0 ? r : source_forget(j, p, t, ret_why);
	r = r < 0 ? r : pg_throwaway_halt(t);
	r = r < 0 ? r : pg_control_read(data, &control);
	if (r == 0 && control.state != PG_SHUT_DOWN) {
		pg_why_set(ret_why, "the restored server did not end cleanly");
		r = -EIO;
	}
	p->identity = r < 0 ? 0 : control.identity;
	j->recovery_ms += pg_mono_ms() - began;
	return r < 0 ? r : data_tidy(data);
}

static void fresh_path(const struct job *j, const struct part *p, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/%s/restore", j->e->dir, j->c->id, p->node);
}

static int parts_bring(struct job *j, const char **ret_why)
{
	int r = 0;
	for (j->current = 0; r == 0 && j->current < j->count; j->current++) {
		struct part *p = &j->parts[j->current];
		struct pg_throwaway t;
		char dir[PG_PATH];
		fresh_path(j, p, dir);
		r = pg_throwaway_begin(j->e, j->c->user, dir, j->c->version, NULL, &t);
		if (r < 0)
			break;
		r = is_cancelled(j) ? -ECANCELED : part_bring(j, p, &t, ret_why);
		if (r < 0) {
			char why[600];
			snprintf(why, sizeof why, "%s", *ret_why ? *ret_why : pg_why_last());
			(void)!pg_throwaway_end(&t); /* or when the service starts */
			pg_why_set(ret_why, "%s", why);
		} else {
			pg_throwaway_leave(&t);
		}
	}
	int64_t began = pg_mono_ms();
	for (size_t i = 0; r == 0 && i < j->count; i++) {
		char dir[PG_PATH];
		fresh_path(j, &j->parts[i], dir);
		r = pg_filesystem_sync(dir);
	}
	j->flush_ms = pg_mono_ms() - began;
	return r;
}

static void parts_drop(struct job *j)
{
	for (size_t i = 0; i < j->count; i++) {
		struct pg_throwaway t = {.engine = j->e, .user = j->c->user, .pidfd = -1};
		fresh_path(j, &j->parts[i], t.dir);
		if (pg_file_is(t.dir))
			(void)!pg_throwaway_end(&t);
	}
}

/* --- the change */

/* The last of the log of what is replaced. A fault is in the log: who restores may do so because its disk is bad. */
static void nodes_drain(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (pg_node_is_made(c, c->nodes[i]))
			(void)!pg_archive_drain(c, c->nodes[i]);
}

/* One write: from then on the new data is the cluster's. */
static int commit(struct job *j)
{
	struct pg_cluster *c = j->c;
	struct pg_set before[PG_SETS_MAX];
	struct engine_archiving backup = c->backup;
	memcpy(before, c->sets, sizeof before);
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < j->count; i++) {
		struct pg_set *s = pg_cluster_set(c, j->parts[i].number);
		s->term++;
		s->former = s->identity;
		s->identity = j->parts[i].identity;
		s->access_at = 0;
		snprintf(s->primary, sizeof s->primary, "%s", j->parts[i].node);
	}
	c->open = false;
	c->backup = j->want->backup;
	snprintf(c->restored, sizeof c->restored, "%s", j->want->backup.incarnation);
	pthread_mutex_unlock(&c->lock);
	int r = pg_restore_mark(c, RESTORE_MADE);
	if (r == 0)
		return 0;
	pthread_mutex_lock(&c->lock);
	memcpy(c->sets, before, sizeof before);
	c->backup = backup;
	c->restored[0] = 0;
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* All that was planned is still there. */
static int parts_check(const struct job *j)
{
	bool same = j->c->set_count == j->count && !j->c->gone && !j->c->destroying && !j->c->upgrading &&
	            j->c->version == j->version;
	for (size_t i = 0; same && i < j->count; i++) {
		const struct pg_node *n = pg_cluster_node(j->c, j->parts[i].node);
		same = n && !n->removing && n->set == j->parts[i].number && pg_cluster_set(j->c, n->set);
	}
	if (!same)
		pg_why_set(NULL, "the cluster was changed meanwhile");
	return same ? 0 : -EAGAIN;
}

/* With cluster.work held. */
static int swap(struct job *j)
{
	struct pg_cluster *c = j->c;
	bool open = c->open;
	int r = is_cancelled(j) ? -ECANCELED : parts_check(j);
	r = r < 0 ? r : pg_restore_mark(c, RESTORE_BEGUN);
	if (r < 0)
		return r;
	r = pg_cluster_halt(c);
	pg_tell(j->progress, 89, "nodes stopped");
	if (r == 0)
		nodes_drain(c);
	if (r == 0 && is_cancelled(j))
		r = -ECANCELED;
	r = r < 0 ? r : commit(j);
	if (r < 0) { /* the old goes on */
		char why[400];
		snprintf(why, sizeof why, "%s", pg_why_last());
		pthread_mutex_lock(&c->lock);
		c->open = open;
		pthread_mutex_unlock(&c->lock);
		(void)!pg_restore_mark(c, RESTORE_NOT);
		pg_cluster_care(c, true);
		pg_why_set(NULL, "%s", why);
		return r;
	}
	r = pg_restore_resume(c);
	for (size_t i = 0; r == 0 && i < c->node_count; i++)
		pg_node_busy(c, c->nodes[i], true); /* for the converge: nobody else starts or misses them */
	return r;
}

/* --- all of it */

/* Nodes that a converge has not come to are the care's again. */
static void nodes_release(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->work);
	for (size_t i = 0; i < c->node_count; i++)
		if (c->nodes[i]->busy && pg_node_is_made(c, c->nodes[i]))
			pg_node_busy(c, c->nodes[i], false);
	pthread_mutex_unlock(&c->work);
}

static int restore_prepare(struct job *j, const char **ret_why)
{
	struct str *sets;
	size_t count;
	int r = pg_snapshot_sets(j->repository, j->from, j->a, &sets, &count);
	if (r < 0) {
		pg_why_set(NULL, r == -ENOENT ? "there is no such snapshot, or it is not complete" : "%s",
		           repository_why());
		return r;
	}
	pthread_mutex_lock(&j->c->work);
	r = pg_restore_resume(j->c);
	r = r < 0 ? r : parts_plan(j, sets, count);
	pthread_mutex_unlock(&j->c->work);
	r = r < 0 ? r : parts_open(j);
	return r < 0 ? r : parts_bring(j, ret_why);
}

static int restore_run(struct job *j, const char **ret_why)
{
	struct pg_cluster *c = j->c;
	int r = restore_prepare(j, ret_why);
	if (r == 0) {
		int64_t began = pg_mono_ms();
		pg_tell(j->progress, 88, "changing places");
		pthread_mutex_lock(&c->work);
		while (c->copying)
			pthread_cond_wait(&c->copied, &c->work);
		r = swap(j);
		pthread_mutex_unlock(&c->work);
		j->change_ms = pg_mono_ms() - began;
	}
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "%s", *pg_why_last() ? pg_why_last() : strerror(-r));
	if (r < 0 && c->restoring != RESTORE_MADE) {
		char why[600];
		snprintf(why, sizeof why, "%s", *ret_why);
		parts_drop(j);
		pg_why_set(ret_why, "%s", why);
	}
	for (size_t i = 0; i < j->count; i++)
		repo_manifest_close(j->parts[i].recovery.manifest);
	return r;
}

static void finish_tell(void *ctx, unsigned percent, const char *what)
{
	pg_tell(ctx, 90 + percent / 11, what);
}

/* The new data is in its place: from here on it is a cluster whose standbys are missing. */
static int restore_finish(struct job *j, const char **ret_why)
{
	int64_t began = pg_mono_ms();
	struct engine_cluster want = *j->want;
	want.made_count = 0;          /* what the store knows may be older than this and the restore before */
	want.version = j->c->version; /* one that was asked for meanwhile is brought by the cluster's next converge */
	struct engine_progress progress = {.tell = finish_tell, .ctx = j->progress};
	pg_tell(j->progress, 90, "starting nodes");
	int r = pg_cluster_converge(j->c, &want, j->access, &progress, ret_why);
	log_info("engine: %s: restored: files %lld ms, recovery %lld, flush %lld, change of places %lld, nodes %lld%s",
	         j->c->id, (long long)j->files_ms, (long long)j->recovery_ms, (long long)j->flush_ms,
	         (long long)j->change_ms, (long long)(pg_mono_ms() - began), r < 0 ? ", not all of them" : "");
	if (r < 0)
		nodes_release(j->c);
	else if (r == ENGINE_PARTLY)
		log_warn("engine: %s: after its restore: %s", j->c->id, *ret_why ? *ret_why : "");
	return r < 0 ? r : 0;
}

/* The point of no return lies behind. */
static bool is_placed(struct job *j)
{
	const char *incarnation = j->want->backup.incarnation;
	pthread_mutex_lock(&j->c->work);
	bool placed = incarnation[0] && strcmp(j->c->restored, incarnation) == 0;
	pthread_mutex_unlock(&j->c->work);
	return placed;
}

int pg_backup_restore(struct engine *e, const struct engine_source *from, const struct engine_point *to,
                      const struct engine_cluster *want, const struct engine_access *access, const _Atomic bool *cancel,
                      struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	struct job j = {.e = e,
	                .from = from,
	                .point = to,
	                .want = want,
	                .access = access,
	                .cancel = cancel,
	                .progress = progress,
	                .a = a,
	                .telling = PTHREAD_MUTEX_INITIALIZER};
	const char *why = NULL;
	j.c = pg_cluster_find(e, want->id);
	if (!j.c) {
		*ret_why = "there is no such cluster";
		return -ESRCH;
	}
	int r = pg_repository_get(e, from->region, from->group_id, &j.repository, &why);
	bool done = is_placed(&j);
	if (r == 0) /* else `why` is that text: a restore without its key came to its end without a reason */
		pg_why_set(NULL, "%s", "");
	if (done) /* what it came from is not needed any more, and nobody can have the old data back */
		r = 0;
	else if (cancel && *cancel)
		r = -ECANCELED;
	if (r == 0 && !done)
		r = restore_run(&j, &why);
	r = r < 0 ? r : restore_finish(&j, &why);
	if (r < 0 && is_placed(&j))
		r = -EINPROGRESS;
	if (r == -EAGAIN)
		r = -EBUSY; /* the caller's word for "ask me again then", which nobody has said when */
	if (r < 0)
		*ret_why = arena_z(a, str_of(why ? why : strerror(-r)));
	else
		pg_tell(progress, 100, "done");
	repository_put(j.repository);
	pg_cluster_put(j.c);
	return r;
}
