/* From what is there to what is wanted: changing, pausing and removing the nodes of a cluster, after make.c has made
 * those that are missing. Every step looks at what is there first, so that a job repeated after a crash goes on where
 * it was. */
#include "engine/postgres/cluster/cluster.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_run.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/admit.h"
#include "engine/postgres/cluster/adopt.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/config.h"
#include "engine/postgres/cluster/crypt.h"
#include "engine/postgres/cluster/crypt_convert.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/identity.h"
#include "engine/postgres/cluster/make.h"
#include "engine/postgres/cluster/missing.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/pieces.h"
#include "engine/postgres/cluster/pool.h"
#include "engine/postgres/cluster/renew.h"
#include "engine/postgres/cluster/restoring.h"
#include "engine/postgres/cluster/router.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/cluster/upgrade.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/user.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/progress.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <unistd.h>

/* Nodes that lag behind longer are left to the care: while a standby's replay stood still, each change of the cluster's
 * access waited a minute behind the job that had found it so. */
#define ADMIT_MS 500
#define COPIES_S 1 /* that a converge waits for copies of nodes, before it is asked for again */

/* --- what is wanted */

static bool name_is_label(const char *name)
{
	size_t n = strlen(name);
	return n > 0 && n < 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && name[0] != '-';
}

static int want_check(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	if (!pg_version_bin(c->engine, want->version)) {
		pg_why_set(ret_why, "version %u is not installed", want->version);
		return -ENOENT;
	}
	if (!want->ca_cert || !want->ca_key) {
		pg_why_set(ret_why, "the project has no certificate authority");
		return -EINVAL;
	}
	if (want->node_count == 0 || want->node_count > ENGINE_NODES_MAX) {
		pg_why_set(ret_why, "nodes: from 1 to %d", ENGINE_NODES_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < want->node_count; i++) {
		const struct engine_node *n = &want->nodes[i];
		bool led = n->kind == NODE_ROUTER;
		for (size_t k = 0; k < want->node_count && !led; k++)
			led = want->nodes[k].shard == n->shard && want->nodes[k].kind == NODE_ELECTABLE &&
			      want->nodes[k].priority > 0;
		if (!led || !name_is_label(n->name)) {
			pg_why_set(ret_why, led ? "%s: not a host name's label" : "%s: its shard has no electable node",
			           n->name);
			return -EINVAL;
		}
	}
	int r = want->audit.enabled ? pg_audit_available(c->engine, want->version, ret_why) : 0;
	return r < 0 ? r : pg_config_check(want, ret_why);
}

static void params_take(struct pg_cluster *c, const struct engine_param *params, size_t count)
{
	for (size_t i = 0; i < c->param_count; i++) {
		free(c->params[i].name);
		free(c->params[i].value);
	}
	for (size_t i = 0; i < count; i++)
		c->params[i] = (struct pg_param){must_strdup(params[i].name), must_strdup(params[i].value)};
	c->param_count = count;
}

static size_t params_copy(const struct pg_cluster *c, struct pg_param ret_params[PG_PARAMS_MAX])
{
	for (size_t i = 0; i < c->param_count; i++)
		ret_params[i] = (struct pg_param){must_strdup(c->params[i].name), must_strdup(c->params[i].value)};
	return c->param_count;
}

/* Values that PostgreSQL refused must not be met again at the next start. */
static void params_restore(struct pg_cluster *c, const struct pg_param *old, size_t count)
{
	struct engine_param params[PG_PARAMS_MAX] = {{0}};
	for (size_t i = 0; i < count; i++)
		params[i] = (struct engine_param){old[i].name, old[i].value};
	pthread_mutex_lock(&c->lock);
	params_take(c, params, count);
	pthread_mutex_unlock(&c->lock);
	(void)!pg_state_save(c);
	for (size_t i = 0; i < c->node_count; i++)
		(void)!pg_config_write(c, c->nodes[i], NULL);
}

static int node_want(struct pg_cluster *c, const struct engine_node *want)
{
	struct pg_node *n = pg_cluster_node(c, want->name);
	if (!n) {
		if (c->node_count == sizeof c->nodes / sizeof *c->nodes)
			return -E2BIG;
		n = must_calloc(1, sizeof *n);
		n->pidfd = n->probe_fd = -1;
		n->busy = true;
		n->shut = true;
		n->want = *want;
		int r = pg_node_place(c, n);
		if (r < 0) {
			pg_node_free(n);
			return r;
		}
		n->set = want->kind == NODE_ROUTER ? PG_ROUTER_SET + n->slot : want->shard;
		pthread_mutex_lock(&c->lock);
		c->nodes[c->node_count++] = n;
		pthread_mutex_unlock(&c->lock);
	}
	pthread_mutex_lock(&c->lock);
	n->want = *want;
	n->removing = false;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* Every set has a primary, from its first moment on. */
static int sets_want(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		struct pg_set *s = pg_cluster_set(c, n->set);
		if (!s && c->set_count == PG_SETS_MAX)
			return -E2BIG;
		struct pg_node *p = s ? pg_set_primary(c, s) : NULL;
		bool fresh = !p || (!s->identity && !pg_node_is_made(c, p));
		pthread_mutex_lock(&c->lock);
		if (!s) {
			s = &c->sets[c->set_count++];
			*s = (struct pg_set){.number = n->set, .term = 1};
		}
		/* Until it is made, the best is the one. */
		if (pg_node_can_lead(n) && !n->removing && (!p || (fresh && n->want.priority > p->want.priority)))
			snprintf(s->primary, sizeof s->primary, "%s", n->want.name);
		pthread_mutex_unlock(&c->lock);
	}
	return 0;
}

static int want_take(struct pg_cluster *c, const struct engine_cluster *want, const char **ret_why)
{
	pthread_mutex_lock(&c->lock);
	snprintf(c->group_id, sizeof c->group_id, "%s", want->group_id);
	snprintf(c->name, sizeof c->name, "%s", want->name);
	snprintf(c->label, sizeof c->label, "%s", want->label);
	snprintf(c->project_hash, sizeof c->project_hash, "%s", want->project_hash);
	c->version = want->version;
	c->paused = want->paused;
	c->open = c->open && !want->paused; /* who is resumed starts shut */
	c->quorum = want->quorum;
	c->renewing = want->renew;
	params_take(c, want->params, want->param_count);
	pg_tls_take(c, want);
	pg_audit_take(c, want);
	c->slow_fixed = want->slow_fixed;
	c->backup = want->backup;
	if (strcmp(c->restored, c->backup.incarnation) > 0) /* which the store may not know yet; they grow */
		memcpy(c->backup.incarnation, c->restored, sizeof c->backup.incarnation);
	for (size_t i = 0; i < c->node_count; i++)
		c->nodes[i]->removing = true;
	pthread_mutex_unlock(&c->lock);
	int r = 0;
	for (size_t i = 0; r == 0 && i < want->node_count; i++)
		r = node_want(c, &want->nodes[i]);
	if (r == 0)
		r = pg_missing_take(c, want, ret_why);
	if (r == 0)
		r = sets_want(c);
	return r < 0 ? r : pg_state_save(c);
}

/* --- changing nodes */

/* The new configuration is read by a server that does not start, before any running one gets it. */
static int config_try(struct pg_cluster *c, struct pg_node *n, const char **ret_why)
{
	char program[PG_PATH], data[PG_PATH], conf[PG_PATH], option[PG_PATH + 16];
	pg_path_set(program, "%s/postgres", pg_version_bin(c->engine, c->version));
	pg_node_path(c, n, "data", data);
	pg_node_path(c, n, "conf/postgresql.conf", conf);
	snprintf(option, sizeof option, "config_file=%s", conf);
	const char *argv[] = {program, "-C", "max_connections", "-D", data, "-c", option, NULL};
	int r = pg_process_run(c->user, argv, 10000);
	if (r < 0) {
		pg_why_set(ret_why, "params: %s", pg_why_last());
		r = -EINVAL;
	}
	return r;
}

/* Libraries that are new on this host, and their settings, wait for the next restart; the audit log's does not. */
static int needs_restart(struct pg_cluster *c, struct pg_node *n, bool *ret_needs)
{
	char sql[256];
	int64_t count;
	snprintf(sql, sizeof sql,
	         "select count(*) from pg_settings where pending_restart and name !~ '^pg_(stat_statements|qualstats)' "
	         "and (name <> 'shared_preload_libraries' or (setting ~ 'pgaudit') <> %s)",
	         c->audit ? "true" : "false");
	int r = pg_sql_ask_node(c, n, sql, &count);
	if (r == 0)
		*ret_needs = count > 0;
	return r;
}

static int node_restart(struct pg_cluster *c, struct pg_node *n, const char **ret_why)
{
	int r = pg_node_halt(c, n, PG_HALT_FAST);
	r = r < 0 ? r : pg_node_start(c, n);
	return r < 0 ? r : pg_node_wait_ready(c, n, PG_START_MS, ret_why);
}

/* Until the standbys have replayed all that the primary has written. */
static int replay_wait(struct pg_cluster *c, struct pg_set *s, int timeout_ms)
{
	struct pg_node *p = pg_set_primary(c, s);
	int64_t want = 0, have, end = pg_mono_ms() + timeout_ms;
	int r = p ? pg_sql_ask_node(c, p, "select (pg_current_wal_lsn() - '0/0')::bigint", &want) : -ESRCH;
	for (size_t i = 0; i < c->node_count && r == 0; i++) {
		struct pg_node *n = c->nodes[i];
		for (have = 0; n != p && n->set == s->number && n->pid && !n->busy && r == 0 && have < want;) {
			r = pg_sql_ask_node(c, n, "select (pg_last_wal_replay_lsn() - '0/0')::bigint", &have);
			if (r == 0 && have < want && pg_mono_ms() >= end)
				r = -ETIMEDOUT;
			if (r == 0 && have < want)
				pg_sleep_ms(10);
		}
	}
	return r;
}

/* Standbys first, each streaming again before the next; then the primary hands over, or, alone, restarts. A standby
 * with fewer connections than its primary cannot follow it, nor start before it has replayed that they are fewer, so
 * when they become fewer the primary goes first. */
static int set_roll(struct pg_cluster *c, struct pg_set *s, const char **ret_why)
{
	bool restart[ENGINE_NODES_MAX * 2] = {false};
	struct pg_node *p = pg_set_primary(c, s);
	int64_t fewer = 0;
	PGconn *conn;
	int r = 0;
	for (size_t i = 0; i < c->node_count && r == 0; i++)
		if (c->nodes[i]->set == s->number && c->nodes[i]->pid && !c->nodes[i]->busy)
			r = needs_restart(c, c->nodes[i], &restart[i]);
	for (size_t i = 0; i < c->node_count && c->renewing; i++)
		restart[i] |= c->nodes[i]->set == s->number && !c->nodes[i]->busy && pg_node_is_behind(c->nodes[i]);
	if (r == 0 && p && p->pid && pg_sql_open_node(c, p, "postgres", 2000, &conn) == 0) {
		(void)!pg_sql_int(
		        conn, 2000,
		        "select count(*) from pg_settings s, pg_file_settings f where s.name = 'max_connections' and "
		        "f.name = s.name and f.error is not null and f.setting::int < s.setting::int and f.seqno = "
		        "(select max(seqno) from pg_file_settings where name = s.name)",
		        &fewer);
		PQfinish(conn);
	}
	for (int pass = 0; pass < 3 && r == 0; pass++)
		for (size_t i = 0; i < c->node_count && r == 0; i++) {
			struct pg_node *n = c->nodes[i];
			if (!restart[i] || (pass == 1 ? n == p : n != p) || (pass == 0 && !fewer))
				continue;
			restart[i] = false;
			if (pass == 2 && pg_set_switchover(c, s, ret_why) == 0)
				r = pg_node_wait_ready(c, n, PG_START_MS, ret_why);
			else
				r = node_restart(c, n, ret_why);
			r = r < 0 ? r : pg_cluster_wait_streaming(c, s, 10000);
			r = r < 0 || pass > 0 ? r : replay_wait(c, s, 10000);
			if (r == 0)
				pg_admit_all(c, 10000); /* before the next is away */
		}
	return r;
}

/* The files may be those of a change that was cut short: what counts is what the servers have taken. */
static int nodes_change(struct pg_cluster *c, const char **ret_why)
{
	bool tried = false;
	for (size_t i = 0; i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		bool changed = false;
		if (n->removing && !n->pid)
			continue; /* perhaps in part already */
		int r = pg_config_write(c, n, &changed);
		if (changed)
			n->loaded = c->rolled = false;
		if (r == 0 && !n->loaded && !tried && pg_node_is_made(c, n)) {
			r = config_try(c, n, ret_why);
			tried = true;
		}
		if (r == 0 && !n->loaded && n->pid) {
			r = pg_node_reload(c, n);
			n->loaded = r == 0;
		}
		if (r < 0) {
			if (!*ret_why)
				pg_why_set(ret_why, "%s: cannot be configured: %s", n->want.name, strerror(-r));
			return r;
		}
	}
	for (size_t i = 0; (!c->rolled || c->renewing) && i < c->set_count; i++) {
		int r = set_roll(c, &c->sets[i], ret_why);
		if (r < 0)
			return r;
	}
	c->rolled = true;
	return 0;
}

/* --- removing nodes */

static void node_forget(struct pg_cluster *c, struct pg_node *n)
{
	pthread_mutex_lock(&c->lock);
	size_t i = 0;
	while (c->nodes[i] != n)
		i++;
	memmove(&c->nodes[i], &c->nodes[i + 1], (c->node_count - i - 1) * sizeof(struct pg_node *));
	c->node_count--;
	bool last = true;
	for (size_t k = 0; k < c->node_count; k++)
		last &= c->nodes[k]->set != n->set;
	for (size_t k = 0; k < c->set_count && last; k++)
		if (c->sets[k].number == n->set) {
			pg_identity_remove(c, c->sets[k].identity);
			c->sets[k] = c->sets[--c->set_count];
			break;
		}
	pthread_mutex_unlock(&c->lock);
	pg_node_free(n);
}

/* A primary that shall go, or may not lead any more, hands over first. */
static int primaries_move(struct pg_cluster *c, const char **ret_why)
{
	for (size_t i = 0; i < c->set_count; i++) {
		struct pg_set *s = &c->sets[i];
		struct pg_node *p = pg_set_primary(c, s);
		bool others = false;
		for (size_t k = 0; k < c->node_count; k++)
			others |= c->nodes[k]->set == s->number && c->nodes[k] != p && !c->nodes[k]->removing;
		if (!p || (!p->removing && pg_node_can_lead(p)) || !others || !p->pid)
			continue;
		int r = pg_cluster_wait_streaming(c, s, 10000);
		r = r < 0 ? r : pg_set_switchover(c, s, ret_why);
		if (r < 0)
			return r;
	}
	return 0;
}

/* An outage is over, or the regions have other priorities. A shard that cannot change now does so later, with the
 * care. */
static int primaries_return(struct pg_cluster *c, const char **ret_why)
{
	int r = 0;
	for (size_t i = 0; i < c->set_count && r == 0; i++) {
		struct pg_set *s = &c->sets[i];
		struct pg_node *p = pg_set_primary(c, s);
		unsigned term = s->term;
		if (pg_set_return(c, s) < 0 || s->term == term)
			continue;
		r = pg_node_wait_ready(c, p, PG_START_MS, ret_why);
		r = r < 0 ? r : pg_cluster_wait_streaming(c, s, 10000);
	}
	return r;
}

static int node_remove(struct pg_cluster *c, struct pg_node *n)
{
	char path[PG_PATH], aside[PG_PATH];
	int r = pg_upgrade_sweep(c, n);
	r = r < 0 ? r : pg_restore_sweep(c, n);
	r = r < 0 ? r : pg_node_halt(c, n, PG_HALT_NOW);
	if (r == 0)
		(void)!pg_archive_drain(c, n); /* a fault is in the log; what shall go, goes */
	/* What is removed in part does not look like a node, should it be wanted again. */
	pg_node_path(c, n, "data", path);
	pg_node_path(c, n, "data.removed", aside);
	if (r == 0 && nolink_rename(path, aside) < 0 && errno != ENOENT)
		r = pg_tree_remove(path); /* there is one from before */
	pg_node_path(c, n, "", path);
	if (r == 0)
		r = pg_tree_remove(path);
	pg_node_run_dir(c, n, path);
	return r < 0 ? r : pg_tree_remove(path);
}

static int nodes_remove(struct pg_cluster *c, const char **ret_why)
{
	int r = c->paused ? 0 : primaries_move(c, ret_why);
	/* Routers last: as long as there is one, it can say what the shards hold. */
	for (size_t i = 0, pass = 0; r == 0 && pass < 2;) {
		struct pg_node *n = i < c->node_count ? c->nodes[i] : NULL;
		if (!n || !n->removing || (n->want.kind == NODE_ROUTER && pass == 0)) {
			pass += !n;
			i = n ? i + 1 : 0;
			continue;
		}
		pg_node_busy(c, n, true);
		r = node_remove(c, n);
		if (r < 0)
			pg_why_set(ret_why, "%s: cannot be removed: %s", n->want.name, strerror(-r));
		else
			node_forget(c, n);
	}
	return r < 0 ? r : pg_state_save(c);
}

/* --- all of it */

static void version_note(struct pg_cluster *c)
{
	char text[24];
	pg_version_read(pg_version_bin(c->engine, c->version), c->version, text);
	pthread_mutex_lock(&c->lock);
	snprintf(c->version_text, sizeof c->version_text, "%s", text);
	pthread_mutex_unlock(&c->lock);
}

/* All nodes are there: standbys follow, primaries are where they belong, and clients are let in. */
static int converge_open(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_access *access,
                         unsigned version_before, struct engine_progress *progress, const char **ret_why)
{
	int r = 0;
	/* Standbys of a cluster that was open already are the care's. */
	bool found = want->adopt && c->open;
	for (size_t i = 0; i < c->set_count && r == 0 && !found; i++)
		if (pg_cluster_wait_streaming(c, &c->sets[i], 30000) == -ETIMEDOUT) {
			pg_why_set(ret_why, "set %u: its standbys do not stream", c->sets[i].number);
			r = -ETIMEDOUT;
		}
	pg_tell(progress, 80, "standbys stream");
	r = r < 0 || want->adopt ? r : primaries_return(c, ret_why);
	pg_tell(progress, 85, "primaries in place");
	if (r == 0 && found && pg_access_is_applied(c, c->access))
		pg_admit_all(c, ADMIT_MS);
	else if (r == 0)
		r = pg_access_apply(c, access, ret_why);
	int routed = r < 0 ? r : pg_router_apply(c, ret_why);
	r = routed < 0 ? routed : r;
	if (r >= 0 && version_before && version_before != c->version)
		(void)!pg_cluster_analyze(c);
	return r;
}

static int converge_run(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_access *access,
                        struct engine_progress *progress, const char **ret_why)
{
	char dir[PG_PATH];
	pg_path_set(dir, "%s/%s", c->engine->dir, c->id);
	int r = want->locked ? 0 : want_check(c, want, ret_why);
	if (want->locked)
		return pg_crypt_lock(c);
	pthread_mutex_lock(&c->lock); /* before it gets a user, which is held as long as its project has clusters */
	snprintf(c->group_id, sizeof c->group_id, "%s", want->group_id);
	pthread_mutex_unlock(&c->lock);
	if (c->node_count == 0)
		pg_user_begin(c);
	r = r < 0 ? r : pg_crypt_begin(c, want, ret_why);
	r = r < 0 ? r : pg_restore_resume(c);
	r = r < 0 || c->upgrading ? r : pg_missing_check(c, want, ret_why);
	/* What the care would apply from here on is no older than this. */
	if (r == 0)
		(void)!pg_access_keep(c, access, ret_why);
	r = r < 0 ? r : pg_router_check(c, want, false, ret_why);
	unsigned before = c->version;
	r = r < 0 ? r : pg_cluster_upgrade(c, want->version, progress, ret_why);
	/* Again: one that was cut short had its directories elsewhere. */
	r = r < 0 ? r : pg_missing_check(c, want, ret_why);
	if (r < 0)
		return r;
	r = pg_dir_make(c->user, dir, false);
	struct pg_param old[PG_PARAMS_MAX];
	size_t old_count = params_copy(c, old);
	r = r < 0 ? r : want_take(c, want, ret_why);
	if (r == -EADDRINUSE)
		pg_why_set(ret_why, "no place for another node: no port from %u to %u is free", c->engine->port_first,
		           c->engine->port_last);
	else if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "cannot write the cluster's state: %s", strerror(-r));
	pg_tell(progress, 5, "planned");
	if (want->adopt) { /* nothing was under way */
		c->rolled = true;
		for (size_t i = 0; i < c->node_count; i++)
			c->nodes[i]->loaded = true;
	}
	if (r == 0)
		pg_missing_lead(c);
	r = r < 0 ? r : pg_nodes_make(c, access, progress, ret_why);
	if (r == 0 && !c->paused)
		pg_cluster_care(c, !want->adopt); /* resumed nodes, outages */
	if (r == 0)
		r = nodes_change(c, ret_why);
	if (r == -EINVAL)
		params_restore(c, old, old_count);
	for (size_t i = 0; i < old_count; i++) {
		free(old[i].name);
		free(old[i].value);
	}
	if (r == 0)
		r = pg_router_check(c, want, true, ret_why);
	if (r == 0)
		r = nodes_remove(c, ret_why);
	if (r == 0)
		r = nodes_change(c, ret_why); /* the others without the removed */
	if (r == 0)
		r = pg_crypt_convert(c, want->encrypted, progress, ret_why);
	if (r == 0 && c->renewing)
		version_note(c);
	pg_tell(progress, 75, "nodes configured");
	if (r == 0 && c->paused && (r = pg_cluster_halt(c)) == 0)
		pg_crypt_rest(c);
	if (r < 0 || c->paused)
		return r;
	return converge_open(c, want, access, before, progress, ret_why);
}

static void copies_wait(struct pg_cluster *c)
{
	while (c->copying)
		pthread_cond_wait(&c->copied, &c->work);
}

/* Whether they end in a moment. Who waits longer keeps a thread of the jobs, and what comes after it for the same
 * cluster, from work that waits for no copy. */
static bool copies_end(struct pg_cluster *c)
{
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += COPIES_S;
	int r = 0;
	while (c->copying && r == 0)
		r = pthread_cond_clockwait(&c->copied, &c->work, CLOCK_MONOTONIC, &end);
	return !c->copying;
}

int pg_cluster_converge(struct pg_cluster *c, const struct engine_cluster *want, const struct engine_access *access,
                        struct engine_progress *progress, const char **ret_why)
{
	*ret_why = NULL;
	pthread_mutex_lock(&c->work);
	if (!copies_end(c)) {
		pthread_mutex_unlock(&c->work);
		pg_why_set(ret_why, "a node of it is being copied");
		if (!progress)
			return -EBUSY;
		progress->again_ms = clock_now_ms() + COPIES_S * 1000ll;
		return -EAGAIN;
	}
	int r = pg_cluster_recall(c, access, ret_why);
	if (r == 0)
		r = c->gone || c->destroying ? -ENOENT : converge_run(c, want, access, progress, ret_why);
	if (r >= 0) {
		pg_restore_tidy(c);
		pg_pieces_tidy(c);
	}
	bool flush = r >= 0 && (!want->adopt || pg_cluster_unflushed(c));
	pthread_mutex_unlock(&c->work);
	if (r < 0 && !*ret_why)
		pg_why_set(ret_why, "%s", r == -ENOENT ? "the cluster is being removed" : strerror(-r));
	if (r == -EAGAIN)
		r = -EBUSY; /* the caller's word for "ask me again then", which nobody has said when */
	if (r >= 0)
		pg_tell(progress, 100, "done");
	if (flush)
		pg_cluster_flush(c);
	pg_archive_hurry(c);
	pg_pool_refill(c->engine);
	return r;
}

int pg_cluster_destroy(struct pg_cluster *c, struct engine_progress *progress)
{
	char path[PG_PATH];
	pthread_mutex_lock(&c->work);
	pthread_mutex_lock(&c->lock);
	c->destroying = true;
	pthread_mutex_unlock(&c->lock);
	copies_wait(c);
	pg_path_set(path, "%s/%s", c->engine->dir, c->id);
	/* On a full disk that cannot be written down; removing makes room, and the job that asks for it is durable. */
	if (pg_file_is(path) && c->node_count)
		(void)!pg_state_save(c);
	int r = 0;
	while (r == 0 && c->node_count > 0) {
		struct pg_node *n = c->nodes[0];
		r = node_remove(c, n);
		if (r == 0)
			node_forget(c, n);
		pg_tell(progress, (unsigned)(90 / (c->node_count + 1)), "nodes removed");
	}
	pg_strays_end(c->engine, path);
	if (r == 0)
		pg_archive_last(c);
	if (r == 0)
		r = pg_tree_remove(path);
	if (r == 0)
		(void)!pg_crypt_close(c);
	if (r == 0)
		c->gone = true;
	pthread_mutex_unlock(&c->work);
	return r;
}

/* Out of the list, with the list's reference. */
void pg_cluster_unlink(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	bool found = false; /* not when two remove it at once, and the other was first */
	pthread_mutex_lock(&e->lock);
	for (struct pg_cluster **at = &e->clusters; *at && !found; at = found ? at : &(*at)->next)
		if (*at == c) {
			*at = c->next;
			found = true;
			pg_user_note(e, c->user);
		}
	pthread_mutex_unlock(&e->lock);
	if (found)
		pg_cluster_put(c);
}
