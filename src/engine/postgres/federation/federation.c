/* Federated database instances. An instance's endpoint is a cluster of one node that is nobody's cluster: made,
 * started, watched, opened to users and taken away as any other (cluster/), with bounds of its own. Its databases
 * hold foreign tables alone, which the service makes (tables.c).
 *
 * Who reads what: a user reads the tables that its rights name, by the endpoint's names, and gets from a cluster
 * what its own rights there are. For that each user of a federated cluster has a role more, which logs in by the
 * socket alone and is that user from the first moment on (pg_shadow_name()); the endpoint's user mappings name it.
 * Nothing has a password, and no user may make servers or mappings, or use the ones that are there in another way
 * than by the tables.
 *
 * The endpoint only reads: grants are cut down to reading, the wrapper has no function that writes
 * (module/federation.c), and no user owns anything but what is temporary. */
#include "engine/postgres/federation/federation.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/cluster.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/federation/queries.h"
#include "engine/postgres/federation/remote.h"
#include "engine/postgres/federation/tables.h"
#include "engine/postgres/federation/usage.h"
#include "engine/postgres/host/cgroup.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/grants.h"
#include "engine/postgres/sql/sql.h"
#include "store/seal.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE "M10"
#define DISK_GB 10
#define OPEN_MS 5000
#define MAKE_MS 120000

/* --- access: reading alone */

static const struct {
	const char *role, *becomes;
} reading[] = {
        {"read", "read"},
        {"readWrite", "read"},
        {"readAnyDatabase", "readAnyDatabase"},
        {"readWriteAnyDatabase", "readAnyDatabase"},
        {"backup", "readAnyDatabase"},
        {"svcAdmin", "readAnyDatabase"},
        {"FIND", "FIND"},
};

static bool name_is_among(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* A grant on a database that the instance does not have would make one. */
static bool grant_narrow(const struct engine_grant *from, const char *const *databases, size_t count,
                         struct engine_grant *to)
{
	for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
		if (strcmp(reading[i].role, from->role) != 0)
			continue;
		bool any = !from->database || !*from->database || strcmp(reading[i].becomes, "readAnyDatabase") == 0;
		*to = *from;
		to->role = reading[i].becomes;
		return any || name_is_among(databases, count, from->database);
	}
	return false;
}

static struct engine_access *access_narrow(const struct engine_access *from, const struct engine_federation *want,
                                           const char *const *databases, size_t count, struct arena *a)
{
	struct engine_access *to = arena_new_of(a, struct engine_access);
	struct engine_user *users = arena_new_array(a, struct engine_user, from->user_count + 1);
	const char **names = arena_new_array(a, const char *, from->host_name_count + 1);
	*to = *from;
	for (size_t i = 0; i < from->user_count; i++) {
		const struct engine_user *u = &from->users[i];
		struct engine_grant *grants = arena_new_array(a, struct engine_grant, u->grant_count + 1);
		size_t n = 0;
		for (size_t k = 0; k < u->grant_count; k++)
			n += grant_narrow(&u->grants[k], databases, count, &grants[n]);
		if (u->super)
			grants[n++] = (struct engine_grant){"readAnyDatabase", "", ""};
		users[i] = *u;
		users[i].super = false;
		users[i].grants = grants;
		users[i].grant_count = n;
	}
	for (size_t i = 0; i < from->host_name_count; i++)
		names[i] = from->host_names[i];
	if (want->host_name)
		names[from->host_name_count] = want->host_name;
	to->users = users;
	to->host_names = names;
	to->host_name_count = from->host_name_count + (want->host_name != NULL);
	to->refused_count = 0;
	return to;
}

/* --- the endpoint */

static unsigned version_of(const struct engine *e)
{
	for (size_t i = 0; i < e->version_count; i++)
		if (e->versions[i].module)
			return e->versions[i].major;
	return 0;
}

static int can(struct engine *e, struct arena *a, const char **ret_why)
{
	(void)a;
	if (version_of(e))
		return 0;
	*ret_why = "steward.so is not there for any version of PostgreSQL on this host";
	return -ENOTSUP;
}

static void bind_outside(struct engine *e, const struct engine_federation_outside *outside)
{
	(void)e;
	(void)outside; /* no store that has keys can be read */
}

static struct engine_cluster endpoint_wish(struct pg_cluster *c, const struct engine_federation *want,
                                           struct engine_node *node)
{
	struct engine_cluster w = {.version = version_of(c->engine),
	                           .nodes = node,
	                           .node_count = 1,
	                           .shards = 1,
	                           .ca_cert = want->ca_cert,
	                           .ca_key = want->ca_key,
	                           .slow_fixed = true,
	                           /* It holds nothing that could be lost. */
	                           .give_up = true};
	*node = (struct engine_node){.kind = NODE_ELECTABLE, .priority = 7, .disk_gb = DISK_GB};
	snprintf(node->name, sizeof node->name, "federated-%.12s", want->id + 12);
	snprintf(node->instance_size, sizeof node->instance_size, SIZE);
	snprintf(w.id, sizeof w.id, "%s", want->id);
	snprintf(w.group_id, sizeof w.group_id, "%s", want->group_id);
	snprintf(w.name, sizeof w.name, "%s", want->name);
	snprintf(w.label, sizeof w.label, "%.6s", want->id + 18);
	snprintf(w.project_hash, sizeof w.project_hash, "%.7s", want->group_id + 17);
	pthread_mutex_lock(&c->lock);
	w.adopt = c->node_count == 1 && c->open && !c->paused && c->nodes[0]->pid != 0;
	pthread_mutex_unlock(&c->lock);
	return w;
}

/* --- its files */

static int counts_make(struct pg_cluster *c, const struct engine_federation *want)
{
	char dir[PG_PATH], path[PG_PATH];
	pg_usage_dir(c->engine, want->id, dir);
	int r = pg_usage_make(c->user, dir, true);
	r = r < 0 ? r : pg_usage_bound(dir, want->limits, want->limit_count, false);
	pg_path_set(path, "%s/federation", c->engine->dir);
	r = r < 0 ? r : pg_dir_make(&c->engine->shared, path, false);
	pg_usage_project_dir(c->engine, want->group_id, path);
	r = r < 0 ? r : pg_usage_make(c->user, path, false);
	r = r < 0 ? r : pg_usage_bound(path, want->limits, want->limit_count, true);
	if (r == 0)
		pg_queries_sweep(dir);
	return r;
}

/* --- its databases */

struct applying {
	struct engine *engine;
	struct pg_cluster *cluster;
	const struct engine_federation *want;
	struct arena *arena;
	struct pg_remotes remotes;
	const char *const *databases;
	size_t database_count;
	struct pg_node node;
	char run[PG_PATH];
	bool made; /* a database */
	const char *fault;
};

static void fault_note(struct applying *p, const char *words)
{
	if (!p->fault)
		p->fault = arena_z(p->arena, str_of(words));
}

static int endpoint_open(struct applying *p, const char *database, PGconn **ret_conn)
{
	return pg_sql_open(&p->node, p->run, database, OPEN_MS, ret_conn);
}

static bool is_kept(const struct applying *p, const char *database)
{
	return strcmp(database, "postgres") == 0 || name_is_among(p->databases, p->database_count, database);
}

static int database_run(PGconn *conn, const char *what, const char *name, const char *more)
{
	char *quoted = PQescapeIdentifier(conn, name, strlen(name));
	struct buf b = {0};
	if (!quoted)
		return -EINVAL;
	buf_printf(&b, "%s database %s%s", what, quoted, more);
	buf_c(&b, 0);
	PQfreemem(quoted);
	int r = pg_sql_do(conn, MAKE_MS, b.p);
	buf_free(&b);
	return r;
}

static int databases_change(struct applying *p)
{
	PGresult *rows;
	PGconn *conn;
	int r = endpoint_open(p, "postgres", &conn);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, OPEN_MS,
	                "select datname from pg_database where datname not in ('template0', 'template1')", &rows);
	if (r < 0) {
		PQfinish(conn);
		return r;
	}
	for (size_t i = 0; i < p->database_count; i++) {
		bool there = false;
		for (int k = 0; k < PQntuples(rows); k++)
			there = there || strcmp(pg_value(rows, k, 0), p->databases[i]) == 0;
		int done = there ? 0 : database_run(conn, "create", p->databases[i], "");
		p->made = p->made || (!there && done == 0);
		if (done < 0)
			fault_note(p, pg_why_last());
	}
	for (int k = 0; k < PQntuples(rows); k++)
		if (!is_kept(p, pg_value(rows, k, 0)) &&
		    database_run(conn, "drop", pg_value(rows, k, 0), " with (force)") < 0)
			fault_note(p, pg_why_last());
	PQclear(rows);
	PQfinish(conn);
	return 0;
}

/* Users who have come since the servers were made; those of who has gone went with the roles. A server's type is the
 * cluster's id, and the user's role there is pg_shadow_name()'s. */
static int mappings_make(const struct applying *p, PGconn *conn)
{
	static const char script[] =
	        "do $steward$ declare x record; begin\n"
	        "for x in select s.srvname, u, '" PG_SHADOW "' || left(encode(sha256(convert_to(s.srvtype || '/' || u, "
	        "'UTF8')), 'hex'), 40) r from pg_foreign_server s join pg_foreign_data_wrapper f on f.oid = s.srvfdw "
	        "and fdwname = 'steward_cluster', jsonb_array_elements_text(current_setting('steward.wanted')::jsonb) "
	        "u join pg_roles p on p.rolname = u where not exists "
	        "(select from pg_user_mapping m where m.umserver = s.oid and m.umuser = p.oid) loop\n"
	        "  execute format('create user mapping for %I server %I options (user %L, password_required %L)', x.u, "
	        "x.srvname, x.r, 'false');\n"
	        "end loop;\n"
	        "end $steward$";
	const struct pg_cluster *c = p->cluster;
	struct buf json = {0}, sql = {0};
	json_open(&json, '[');
	for (size_t i = 0; c->access && i < c->access->user_count; i++)
		json_z(&json, c->access->users[i].name);
	json_close(&json, ']');
	buf_c(&json, 0);
	buf_z(&sql, "select set_config('steward.wanted', ");
	pg_literal_add(&sql, json.p);
	buf_z(&sql, ", false)");
	buf_c(&sql, 0);
	int r = pg_sql_do(conn, OPEN_MS, sql.p);
	r = r < 0 ? r : pg_sql_do(conn, MAKE_MS, script);
	buf_free(&sql);
	buf_free(&json);
	return r;
}

/* Anew, where its statements are others than those that it was made by. */
static int database_make(struct applying *p, PGconn *conn, struct buf *sql, bool whole)
{
	char hash[65];
	struct buf ask = {0};
	int64_t same = 0, there = 0;
	sha256_hex(buf_view(sql), hash);
	buf_printf(&ask,
	           "select count(*) from pg_foreign_data_wrapper where fdwname = 'steward_cluster' and "
	           "obj_description(oid, 'pg_foreign_data_wrapper') = '%s'",
	           hash);
	buf_c(&ask, 0);
	int r = pg_sql_int(conn, OPEN_MS, ask.p, &same);
	if (r == 0 && !whole)
		r = pg_sql_int(conn, OPEN_MS,
		               "select count(*) from pg_foreign_data_wrapper where fdwname = 'steward_cluster'",
		               &there);
	buf_free(&ask);
	/* What a cluster does not tell at the moment stays as it was told. */
	if (r < 0 || same || there)
		return r;
	buf_printf(sql, "comment on foreign data wrapper steward_cluster is '%s';\ncommit", hash);
	buf_c(sql, 0);
	(void)p;
	return pg_sql_do(conn, MAKE_MS, sql->p);
}

/* Before the clusters are asked, which may take long: who gets in already shall be known to the tables that there
 * are. What goes wrong here goes wrong again when the database is made what it shall be. */
static void mappings_renew(struct applying *p)
{
	PGconn *conn;
	for (size_t i = 0; i < p->database_count; i++)
		if (endpoint_open(p, p->databases[i], &conn) == 0) {
			(void)!mappings_make(p, conn);
			PQfinish(conn);
		}
}

static int database_apply(struct applying *p, const char *database)
{
	struct buf sql = {0};
	const char *fault = NULL;
	PGconn *conn;
	int told = pg_federated_sql(&p->remotes, database, &sql, &fault);
	if (fault)
		fault_note(p, fault);
	if (told < 0 && told != -EAGAIN) {
		buf_free(&sql);
		return 0;
	}
	int r = endpoint_open(p, database, &conn);
	if (r == 0) {
		r = database_make(p, conn, &sql, told == 0);
		r = r < 0 ? r : mappings_make(p, conn);
		PQfinish(conn);
	}
	buf_free(&sql);
	if (r < 0)
		fault_note(p, arena_printf(p->arena, "database %s: %s", database, pg_why_last()).p);
	return r == -EIO || r == -ETIMEDOUT ? r : 0;
}

/* --- all of it */

static int stores_admit(struct applying *p)
{
	for (size_t i = 0; i < p->want->store_count; i++) {
		const struct engine_federation_store *s = &p->want->stores[i];
		const char *why = "a store of this kind cannot be read here";
		int r = s->kind != STORE_CLUSTER ? -ENOTSUP : pg_remote_admit(p->engine, s->cluster_id, p->arena, &why);
		if (r < 0)
			fault_note(p, arena_printf(p->arena, "store %s: %s", s->name, why).p);
	}
	return 0;
}

static void endpoint_take(struct applying *p)
{
	pthread_mutex_lock(&p->cluster->lock);
	p->node = *p->cluster->nodes[0];
	pg_node_run_dir(p->cluster, p->cluster->nodes[0], p->run);
	pthread_mutex_unlock(&p->cluster->lock);
}

/* In a database that is new nobody has rights yet. */
static int rights_renew(struct applying *p)
{
	const char *why = NULL;
	pthread_mutex_lock(&p->cluster->work);
	struct engine_access again = *p->cluster->access;
	int r = pg_access_apply(p->cluster, &again, &why);
	pthread_mutex_unlock(&p->cluster->work);
	if (r != 0 && why)
		fault_note(p, why);
	return r < 0 ? r : 0;
}

static void generation_set(struct pg_cluster *c, int64_t generation)
{
	pthread_mutex_lock(&c->work);
	pthread_mutex_lock(&c->lock);
	bool changed = c->generation != generation;
	c->generation = generation;
	pthread_mutex_unlock(&c->lock);
	if (changed && !c->gone)
		(void)!pg_state_save(c);
	pthread_mutex_unlock(&c->work);
}

static int endpoint_converge(struct applying *p, const struct engine_access *access, struct engine_progress *progress,
                             const char **ret_why)
{
	struct pg_cluster *c = p->cluster;
	struct engine_node node;
	struct engine_cluster w = endpoint_wish(c, p->want, &node);
	int r = pg_cluster_converge(c, &w, access, progress, ret_why);
	if (r == ENGINE_PARTLY && *ret_why)
		fault_note(p, *ret_why);
	pthread_mutex_lock(&c->work);
	if (r >= 0 && !c->gone)
		(void)!pg_cgroup_apply(c);
	if (r >= 0 && c->gone)
		r = -ENOENT;
	if (r >= 0)
		r = counts_make(c, p->want);
	pthread_mutex_unlock(&c->work);
	return r;
}

static int instance_apply(struct applying *p, const struct engine_access *access, struct engine_progress *progress,
                          const char **ret_why)
{
	const char *why = NULL;
	p->remotes = (struct pg_remotes){.engine = p->engine, .want = p->want, .arena = p->arena};
	(void)!stores_admit(p);
	int r = pg_federated_databases(&p->remotes, &p->databases, &p->database_count, &why);
	if (r < 0) /* which databases there shall be is not known: none is taken away */
		fault_note(p, why ? why : "a cluster does not answer");
	bool known = r == 0;
	struct engine_access *narrow = access_narrow(access, p->want, p->databases, p->database_count, p->arena);
	r = endpoint_converge(p, narrow, progress, ret_why);
	if (r < 0 || !known)
		return r < 0 ? r : ENGINE_PARTLY;
	endpoint_take(p);
	mappings_renew(p);
	r = databases_change(p);
	if (r == 0 && p->made)
		r = rights_renew(p);
	for (size_t i = 0; r == 0 && i < p->database_count; i++)
		r = database_apply(p, p->databases[i]);
	/* It is there in any case: what it had while it was one of them goes. */
	if (r == 0 && !name_is_among(p->databases, p->database_count, "postgres"))
		r = database_apply(p, "postgres");
	if (r == 0)
		generation_set(p->cluster, p->want->generation);
	return r;
}

static int apply(struct engine *e, const struct engine_federation *want, const struct engine_access *access,
                 struct engine_progress *progress, struct arena *a, const char **ret_why)
{
	const char *why = NULL;
	int r = can(e, a, ret_why);
	struct pg_cluster *c = r < 0 || !id_is_valid(str_of(want->id)) ? NULL : pg_cluster_ensure(e, want->id);
	if (!c)
		return r < 0 ? r : -EINVAL;
	pthread_mutex_lock(&c->work);
	pthread_mutex_lock(&c->lock);
	c->federation = c->federation || c->node_count == 0;
	bool ours = c->federation;
	snprintf(c->group_id, sizeof c->group_id, "%s", want->group_id);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&c->work);
	struct applying *p = arena_new_of(a, struct applying);
	*p = (struct applying){.engine = e, .cluster = c, .want = want, .arena = a};
	r = ours ? instance_apply(p, access, progress, &why) : -EINVAL;
	pg_cluster_put(c);
	if (r < 0)
		*ret_why = arena_z(a, str_of(why ? why : p->fault ? p->fault : strerror(-r)));
	else if (p->fault)
		*ret_why = p->fault;
	return r < 0 ? r : p->fault ? ENGINE_PARTLY : 0;
}

/* --- the other operations */

static struct pg_cluster *instance_find(struct engine *e, const char *id)
{
	struct pg_cluster *c = pg_cluster_find(e, id);
	if (c && !c->federation) {
		pg_cluster_put(c);
		return NULL;
	}
	return c;
}

static int bound(struct engine *e, const char *id, const struct engine_federation_limit *limits, size_t count)
{
	char dir[PG_PATH];
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return -ENOENT;
	pg_usage_dir(e, id, dir);
	int r = pg_usage_bound(dir, limits, count, false);
	pg_usage_project_dir(e, c->group_id, dir);
	r = r < 0 ? r : pg_usage_bound(dir, limits, count, true);
	pg_cluster_put(c);
	return r;
}

static int pause_endpoint(struct engine *e, const char *id)
{
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return 0;
	pthread_mutex_lock(&c->work);
	pthread_mutex_lock(&c->lock);
	c->paused = true;
	c->open = false;
	pthread_mutex_unlock(&c->lock);
	int r = c->gone ? 0 : pg_state_save(c);
	r = r < 0 || c->gone ? r : pg_cluster_halt(c);
	pthread_mutex_unlock(&c->work);
	pg_cluster_put(c);
	return r;
}

/* What the project's instances have read is known as long as it has any. */
static void project_tidy(struct engine *e, const char *group_id)
{
	struct pg_cluster **all;
	char dir[PG_PATH];
	size_t count = pg_clusters_hold(e, &all);
	bool used = false;
	for (size_t i = 0; i < count; i++) {
		used = used || (all[i]->federation && !all[i]->gone && strcmp(all[i]->group_id, group_id) == 0);
		pg_cluster_put(all[i]);
	}
	free(all);
	pg_usage_project_dir(e, group_id, dir);
	if (!used && *group_id)
		(void)!pg_tree_remove(dir);
	pg_remote_dismiss(e, group_id);
}

static int destroy(struct engine *e, const char *id, struct engine_progress *progress, struct arena *a,
                   const char **ret_why)
{
	char group_id[25];
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return 0;
	snprintf(group_id, sizeof group_id, "%s", c->group_id);
	int r = pg_cluster_destroy(c, progress);
	if (r == 0) {
		pg_cgroup_remove(c);
		pg_cluster_unlink(c);
		project_tidy(e, group_id);
	} else {
		*ret_why = arena_z(a, str_of(strerror(-r)));
	}
	pg_cluster_put(c);
	return r;
}

static int observe(struct engine *e, const char *id, struct engine_federation_status *ret_status)
{
	*ret_status = (struct engine_federation_status){0};
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return 0;
	pthread_mutex_lock(&c->lock);
	const struct pg_node *n = c->node_count ? c->nodes[0] : NULL;
	ret_status->exists = n != NULL;
	ret_status->generation = c->generation;
	if (n) {
		ret_status->running = n->pid != 0 && !n->shut && !n->busy;
		snprintf(ret_status->address, sizeof ret_status->address, "%s", n->address);
		ret_status->port = n->port;
		ret_status->started_ms = n->pid ? n->started_ms : 0;
		ret_status->ends = n->ends;
	}
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	return 0;
}

static void usage_tell(const struct usage *u, uint64_t ret_bytes[FEDERATION_SPANS])
{
	uint64_t day = usage_day(clock_now_ms());
	bool now = u->month == usage_month(day);
	ret_bytes[SPAN_QUERY] = now ? u->most : 0;
	for (int span = USAGE_DAY; span < USAGE_SPANS; span++)
		ret_bytes[span] = usage_sum(u, (enum usage_span)span, day);
}

static int used(struct engine *e, const char *id, struct engine_federation_used *ret_used)
{
	char dir[PG_PATH];
	struct usage own, project;
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return -ENOENT;
	pg_usage_dir(e, id, dir);
	int r = pg_usage_read(dir, &own);
	pg_usage_project_dir(e, c->group_id, dir);
	r = r < 0 ? r : pg_usage_read(dir, &project);
	pg_cluster_put(c);
	if (r < 0)
		return r;
	bool now = own.month == usage_month(usage_day(clock_now_ms()));
	*ret_used = (struct engine_federation_used){.queries = now ? own.queries : 0, .refused = now ? own.refused : 0};
	usage_tell(&own, ret_used->bytes);
	usage_tell(&project, ret_used->project);
	return 0;
}

static int queries(struct engine *e, const char *id, int64_t from_ms, int64_t to_ms, engine_federation_visit *visit,
                   void *ctx, struct arena *a)
{
	char dir[PG_PATH];
	struct pg_cluster *c = instance_find(e, id);
	if (!c)
		return 0;
	pg_usage_dir(e, id, dir);
	int r = pg_queries_walk(dir, from_ms, to_ms, visit, ctx, a);
	pg_cluster_put(c);
	return r;
}

static int known(struct engine *e, struct arena *a, const char *const **ret_ids, size_t *ret_count)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all), kept = 0;
	const char **ids = arena_new_array(a, const char *, count + 1);
	for (size_t i = 0; i < count; i++) {
		if (all[i]->federation && !all[i]->gone)
			ids[kept++] = arena_z(a, str_of(all[i]->id));
		pg_cluster_put(all[i]);
	}
	free(all);
	*ret_ids = ids;
	*ret_count = kept;
	return 0;
}

const struct engine_federation_ops pg_federation = {
        .stores = 1u << STORE_CLUSTER,
        .views = true,
        .can = can,
        .bind = bind_outside,
        .apply = apply,
        .bound = bound,
        .pause = pause_endpoint,
        .destroy = destroy,
        .observe = observe,
        .used = used,
        .queries = queries,
        .known = known,
};
