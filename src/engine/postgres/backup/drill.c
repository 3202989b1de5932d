/* Proving that a snapshot comes back: every chunk is read and held against its hash; and, in a drill, the files are
 * restored beside everything, PostgreSQL's own program verifies them, a server recovers them to the snapshot's point,
 * and its tables and indexes are read and checked against each other. Nothing of it stays. */
#include "engine/postgres/backup/drill.h"

#include "base/arena.h"
#include "base/json.h"
#include "engine/postgres/archive/archive_read.h"
#include "engine/postgres/backup/backup.h"
#include "engine/postgres/backup/snapshot.h"
#include "engine/postgres/cluster/throwaway.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <unistd.h>

#define THREADS 2
#define PROGRAM_MS (6 * 3600 * 1000)
#define SPARE (UINT64_C(512) << 20)

struct drill {
	struct engine *e;
	const struct engine_source *of;
	struct engine_progress *progress;
	size_t current, count; /* sets */
	bool start;            /* files are written and a server is started */
	unsigned from, to;     /* percent of one set's share */
	volatile bool stop;    /* what progress says, for the repository */
	const struct pg_throwaway *server;
	volatile int bound; /* that it has reached: -ENOSPC, somebody else fills the disk too; or -ETIME */
	pthread_mutex_t telling;
};

static bool is_stopped(void *ctx)
{
	struct drill *d = ctx;
	int bound = d->server && !d->bound ? pg_throwaway_check(d->server) : 0;
	if (bound < 0)
		d->bound = bound;
	if (d->bound || pg_is_stopped(d->progress))
		d->stop = true;
	return d->stop;
}

/* From several threads. */
static void drill_tell(void *ctx, uint64_t done, uint64_t of)
{
	struct drill *d = ctx;
	uint64_t share = d->from + (of ? done * (d->to - d->from) / of : 0);
	pthread_mutex_lock(&d->telling);
	pg_tell(d->progress, (unsigned)((d->current * 100 + (share < 100 ? share : 100)) / d->count), "reading");
	pthread_mutex_unlock(&d->telling);
	(void)!is_stopped(d);
}

/* Each by its own program, as whoever restores it by hand would; where it is not installed, nothing is looked at. */
static int program_run(struct drill *d, const struct pg_throwaway *t, const char *const *argv, const char **ret_why)
{
	const struct pg_stop stop = {is_stopped, d};
	if (access(argv[0], X_OK) < 0)
		return 0;
	int r = pg_process_run_until(t->user, argv, PROGRAM_MS, &stop);
	if (r < 0)
		pg_why_set(ret_why, "%s", pg_why_last());
	return r;
}

static int files_verify(struct drill *d, const struct pg_throwaway *t, const char **ret_why)
{
	char program[PG_PATH], data[PG_PATH];
	pg_path_set(program, "%s/pg_verifybackup", pg_version_bin(d->e, t->version));
	pg_path_set(data, "%s/data", t->dir);
	const char *argv[] = {program, "--quiet", data, NULL};
	return program_run(d, t, argv, ret_why);
}

/* In all databases that can be connected to, whatever their owners have set for those who connect. */
static int relations_check(struct drill *d, const struct pg_throwaway *t, const char **ret_why)
{
	static const char database[] =
	        "--maintenance-db=dbname=postgres options='-c role=none -c search_path=pg_catalog -c "
	        "statement_timeout=0 "
	        "-c lock_timeout=1min -c default_transaction_read_only=off -c local_preload_libraries= "
	        "-c default_tablespace='";
	char program[PG_PATH], port[16];
	pg_path_set(program, "%s/pg_amcheck", pg_version_bin(d->e, t->version));
	snprintf(port, sizeof port, "%u", t->node.port);
	const char *argv[] = {
	        program,    "-h", t->run, "-p", port, "-U", PG_SUPER, "-w", "--all", database, "--install-missing",
	        "--jobs=2", NULL};
	return program_run(d, t, argv, ret_why);
}

static int relations_count(const struct pg_throwaway *t, uint64_t *relations)
{
	PGconn *conn;
	PGresult *rows;
	int r = pg_throwaway_open(t, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, 30000, "select datname from pg_database where datallowconn and datconnlimit <> -2",
	                &rows);
	PQfinish(conn);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
		int64_t count = 0;
		r = pg_throwaway_open(t, pg_value(rows, i, 0), &conn);
		if (r < 0)
			break;
		r = pg_sql_int(conn, 30000, "select count(*) from pg_class where relkind in ('r', 'i', 'm', 't', 'S')",
		               &count);
		PQfinish(conn);
		*relations += (uint64_t)count;
	}
	PQclear(rows);
	return r;
}

static int set_start(struct drill *d, struct repo_manifest *m, struct engine_proof *proof, const char **ret_why)
{
	const json_t *facts = repo_manifest_facts(m);
	const struct repo_progress p = {.tell = drill_tell, .ctx = d, .cancel = &d->stop};
	const struct pg_stop stop = {is_stopped, d};
	uint64_t bytes = repo_manifest_amount(m)->bytes;
	struct pg_throwaway t;
	struct pg_target target;
	char data[PG_PATH];
	/* Nobody asked for it: it leaves the databases more room than a restore would. */
	int r = pg_throwaway_room(d->e, bytes + bytes / 4 + SPARE);
	r = r < 0 ? r : pg_throwaway_new(d->e, d->of, (unsigned)json_number(facts, "major"), &t);
	if (r < 0) {
		pg_why_set(ret_why, "a throwaway server cannot be made: %s",
		           r == -ENOENT || r == -ENOSPC ? pg_why_last() : strerror(-r));
		return r;
	}
	d->server = &t;
	pg_path_set(data, "%s/data", t.dir);
	r = repo_restore(m, data, t.user->uid, t.user->gid, THREADS, &p);
	if (r < 0)
		pg_why_set(ret_why, "%s", repository_why());
	pg_snapshot_target(facts, &target);
	r = r < 0 ? r : files_verify(d, &t, ret_why);
	r = r < 0 ? r : pg_throwaway_recover(&t, facts, &target, &stop, ret_why);
	r = r < 0 ? r : relations_check(d, &t, ret_why);
	r = r < 0 ? r : relations_count(&t, &proof->relations);
	r = r < 0 ? r : pg_throwaway_halt(&t);
	char why[600];
	snprintf(why, sizeof why, "%s", r < 0 && *ret_why ? *ret_why : "");
	d->server = NULL;
	int ended = pg_throwaway_end(&t);
	if (r < 0)
		pg_why_set(ret_why, "%s", *why ? why : strerror(-r));
	return r < 0 ? r : ended;
}

static int set_prove(struct drill *d, struct repository *repository, const struct engine_source *of, const char *set,
                     bool start, struct engine_proof *proof, const char **ret_why)
{
	const struct repo_progress p = {.tell = drill_tell, .ctx = d, .cancel = &d->stop};
	struct repo_manifest *m;
	int r = repo_manifest_open(repository, of->cluster_id, of->snapshot_id, set, &m);
	if (r < 0) {
		pg_why_set(ret_why, "%s", repository_why());
		return r;
	}
	proof->files += repo_manifest_amount(m)->files;
	proof->bytes += repo_manifest_amount(m)->bytes;
	d->from = 0;
	d->to = 90;
	/* A restore looks at as much. */
	r = start ? set_start(d, m, proof, ret_why) : repo_verify(m, THREADS, &p);
	if (r < 0 && !start)
		pg_why_set(ret_why, "%s", repository_why());
	repo_manifest_close(m);
	return r;
}

int pg_backup_prove(struct engine *e, const struct engine_source *of, bool start, struct engine_progress *progress,
                    struct arena *a, struct engine_proof *ret_proof, const char **ret_why)
{
	struct drill d = {.e = e, .of = of, .progress = progress, .start = start, .telling = PTHREAD_MUTEX_INITIALIZER};
	struct engine_proof proof = {0};
	struct repository *repository;
	struct str *sets;
	const char *why = NULL;
	int r = pg_repository_get(e, of->region, of->group_id, &repository, ret_why);
	if (r < 0)
		return r;
	r = pg_snapshot_sets(repository, of, a, &sets, &d.count);
	if (r < 0)
		why = r == -ENOENT ? "there is no such snapshot, or it is not complete" : repository_why();
	for (; r == 0 && d.current < d.count; d.current++)
		r = set_prove(&d, repository, of, arena_z(a, sets[d.current]), start, &proof, &why);
	repository_put(repository);
	if (r < 0) {
		if (d.bound)
			why = d.bound == -ENOSPC
			              ? "the disk was getting full meanwhile, and the databases need the rest of it"
			              : "it took longer than a drill may";
		*ret_why = arena_z(a, str_of(why ? why : strerror(-r)));
		return pg_is_stopped(progress) ? -ECANCELED : d.bound ? d.bound : r;
	}
	proof.started = start;
	*ret_proof = proof;
	pg_tell(progress, 100, "done");
	return 0;
}
