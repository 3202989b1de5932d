/* From one major version to a newer one, with pg_upgrade, which links the files instead of copying them. The cluster
 * stands still meanwhile: seconds, whatever its size.
 *
 * First it is tried without effect, while everything runs. Then all nodes stop, and beside each primary's directory a
 * new one is made. Up to there everything can be taken back; a crash or a failure leads back to the old version. Then
 * the new version is written down, which is the point of no return: directories change places, standbys are dropped,
 * and what follows is the ordinary way of a cluster whose standbys are missing. */
#include "engine/postgres/cluster/upgrade.h"

#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/archive/archive_spool.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/failover.h"
#include "engine/postgres/cluster/make.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/node.h"
#include "engine/postgres/cluster/pool.h"
#include "engine/postgres/cluster/server.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/host/data.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/process.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define MODULE_MS 10000 /* for what steward.so gives */
#define UPGRADE_MS (3600 * 1000)

static const char *const moved[] = {"postgresql.conf", "pg_hba.conf", "pg_ident.conf"};

/* Servers that pg_upgrade starts look for their files in the data directory. */
static int files_lend(struct pg_cluster *c, struct pg_node *n, const char *data)
{
	const char *preload = c->audit ? "shared_preload_libraries = 'pgaudit'\n" : "";
	char path[PG_PATH], *text;
	int r = 0;
	for (size_t i = 0; r == 0 && i < 3; i++) {
		char own[PG_PATH], below[40];
		snprintf(below, sizeof below, "conf/%s", moved[i]);
		pg_node_path(c, n, below, own);
		pg_path_set(path, "%s/%s", data, moved[i]);
		if (i == 0) {
			r = pg_file_write(c->user, path, preload, strlen(preload), true);
			continue;
		}
		r = pg_file_read(own, 1 << 24, &text);
		if (r == 0) {
			r = pg_file_write(c->user, path, text, strlen(text), true);
			free(text);
		}
	}
	return r;
}

static void files_take_back(const char *data)
{
	for (size_t i = 0; i < 3; i++) {
		char path[PG_PATH];
		pg_path_set(path, "%s/%s", data, moved[i]);
		nolink_unlink(path);
		pg_path_set(path, "%s/%s.new", data, moved[i]); /* of a service that was killed as it wrote it */
		nolink_unlink(path);
	}
}

/* A socket's name, no more. */
static unsigned other_port(const struct pg_node *n)
{
	return n->port < 65535 ? n->port + 1 : n->port - 1;
}

static int upgrade_run(struct pg_cluster *c, struct pg_node *n, unsigned version, bool check)
{
	char dir[PG_PATH], data[PG_PATH], fresh[PG_PATH], run[PG_PATH], program[PG_PATH], port[16], other[16];
	pg_node_path(c, n, "", dir);
	pg_node_path(c, n, "data", data);
	pg_node_path(c, n, "data.up", fresh);
	pg_node_run_dir(c, n, run);
	pg_path_set(program, "%s/pg_upgrade", pg_version_bin(c->engine, version));
	snprintf(port, sizeof port, "%u", n->port);
	snprintf(other, sizeof other, "%u", other_port(n));
	const char *argv[] = {"/usr/bin/env",
	                      "-C",
	                      dir,
	                      program,
	                      "-b",
	                      pg_version_bin(c->engine, c->version),
	                      "-B",
	                      pg_version_bin(c->engine, version),
	                      "-d",
	                      data,
	                      "-D",
	                      fresh,
	                      "-U",
	                      PG_SUPER,
	                      "-s",
	                      run,
	                      "-p",
	                      port,
	                      "-P",
	                      other,
	                      "--link",
	                      check ? "--check" : NULL,
	                      NULL};
	int r = pg_tree_remove(fresh);
	r = r < 0 ? r : pg_pool_take(c, version, fresh);
	r = r < 0 ? r : files_lend(c, n, fresh);
	r = r < 0 ? r : files_lend(c, n, data);
	r = r < 0 ? r : pg_process_run(c->user, argv, UPGRADE_MS);
	files_take_back(data);
	files_take_back(fresh);
	return r;
}

/* Those that start servers first: pg_upgrade and what it runs work in the node's directory, servers in their own. That
 * of the old directory is left to the halt, which also ends one that has not said yet that it is there. */
int pg_upgrade_sweep(struct pg_cluster *c, struct pg_node *n)
{
	char dir[PG_PATH], fresh[PG_PATH];
	pg_node_path(c, n, "", dir);
	pg_node_path(c, n, "data.up", fresh);
	if (!pg_file_is(fresh))
		return 0;
	int r = pg_process_sweep(c->engine, dir);
	return r < 0 ? r : pg_server_bury(c, n, fresh, other_port(n));
}

/* The old directory as it was: pg_upgrade puts its control file aside, so that nobody starts both. */
static void upgrade_undo(struct pg_cluster *c)
{
	char path[PG_PATH], aside[PG_PATH];
	for (size_t i = 0; i < c->node_count; i++) {
		pg_node_path(c, c->nodes[i], "data.up", path);
		pg_tree_remove(path);
		pg_node_path(c, c->nodes[i], "data/global/pg_control", path);
		pg_path_set(aside, "%s.old", path);
		if (!pg_file_is(path) && pg_file_is(aside) && nolink_rename(aside, path) < 0)
			log_error("engine: %s cannot be put back: %s", path, strerror(errno));
		pg_node_path(c, c->nodes[i], "data", path);
		files_take_back(path);
	}
}

static int upgrade_mark(struct pg_cluster *c, unsigned upgrading, unsigned version)
{
	pthread_mutex_lock(&c->lock);
	unsigned before = c->upgrading, old = c->version;
	c->upgrading = upgrading;
	c->version = version;
	pthread_mutex_unlock(&c->lock);
	int r = pg_state_save(c);
	if (r < 0) {
		pthread_mutex_lock(&c->lock);
		c->upgrading = before;
		c->version = old;
		pthread_mutex_unlock(&c->lock);
	}
	return r;
}

/* Primaries first, so that standbys get their last record. */
static int all_halt(struct pg_cluster *c)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		r = p ? pg_node_halt(c, p, PG_HALT_FAST) : -ENOENT;
	}
	for (size_t i = 0; r == 0 && i < c->node_count; i++)
		r = pg_node_halt(c, c->nodes[i], PG_HALT_FAST);
	return r;
}

/* After the point of no return; may be repeated. */
static int places_change(struct pg_cluster *c)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->node_count; i++) {
		struct pg_node *n = c->nodes[i];
		struct pg_set *s = pg_cluster_set(c, n->set);
		char data[PG_PATH], fresh[PG_PATH], old[PG_PATH];
		pg_node_path(c, n, "data", data);
		pg_node_path(c, n, "data.up", fresh);
		pg_node_path(c, n, "data.old", old);
		if (!s || pg_set_primary(c, s) != n) {
			r = pg_tree_remove(data);
			continue;
		}
		if (pg_file_is(fresh)) {
			if (pg_file_is(data))
				r = pg_tree_remove(old);
			if (r == 0 && pg_file_is(data) && nolink_rename(data, old) < 0)
				r = -errno;
			if (r == 0 && nolink_rename(fresh, data) < 0)
				r = -errno;
		}
		r = r < 0 ? r : pg_tree_remove(old);
	}
	return r < 0 ? r : pg_filesystem_sync(c->engine->dir);
}

static int each_run(struct pg_cluster *c, unsigned version, bool check)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		r = p && (p->pid || c->paused || !check) ? upgrade_run(c, p, version, check) : -EBUSY;
	}
	return r;
}

/* Noted already for the new version, which was then not reached. */
static void identities_restore(struct pg_cluster *c)
{
	char path[PG_PATH];
	uint64_t old;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->set_count; i++) {
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (p)
			pg_node_path(c, p, "data", path);
		if (p && pg_data_identify(path, &old, NULL) == 0 && old == c->sets[i].former)
			c->sets[i].identity = old;
	}
	pthread_mutex_unlock(&c->lock);
}

/* To the old version, from wherever the way to the new one has ended. */
static int upgrade_back(struct pg_cluster *c)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->node_count; i++)
		r = pg_upgrade_sweep(c, c->nodes[i]);
	if (r == 0 && (c->upgrading || c->paused)) /* what runs in the old directory now is pg_upgrade's */
		r = all_halt(c);
	if (r < 0)
		return r;
	upgrade_undo(c);
	identities_restore(c);
	r = upgrade_mark(c, 0, c->version);
	pg_cluster_care(c, true);
	return r;
}

/* The new directories are other databases to PostgreSQL; they are noted with the version, in one write. */
static int identities_change(struct pg_cluster *c)
{
	uint64_t fresh[PG_SETS_MAX] = {0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->set_count; i++) {
		char path[PG_PATH];
		const struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		if (p)
			pg_node_path(c, p, "data.up", path);
		r = p ? pg_data_identify(path, &fresh[i], NULL) : -ENOENT;
	}
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; r == 0 && i < c->set_count; i++) {
		c->sets[i].former = c->sets[i].identity;
		c->sets[i].identity = fresh[i];
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

/* What steward.so gives goes before an upgrade; a primary that does not run is started for it. */
static int set_leave(struct pg_cluster *c, struct pg_node *primary)
{
	PGconn *conn;
	bool starts = !primary->pid;
	int r = starts ? pg_node_start(c, primary) : 0;
	if (r == 0 && starts)
		r = pg_node_wait_ready(c, primary, PG_START_MS, NULL);
	r = r < 0 ? r : pg_sql_open_node(c, primary, "postgres", MODULE_MS, &conn);
	if (r == 0) {
		r = pg_module_drop(conn);
		PQfinish(conn);
	}
	if (starts && primary->pid) {
		int halted = pg_node_halt(c, primary, PG_HALT_FAST);
		r = r < 0 ? r : halted;
	}
	return r;
}

static int module_leave(struct pg_cluster *c)
{
	int r = 0;
	pg_access_unmark(c);
	for (size_t i = 0; r == 0 && i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		r = p ? set_leave(c, p) : -EBUSY;
	}
	return r;
}

/* The upgrade did not come about. */
static void module_return(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		PGconn *conn;
		if (!p || !p->pid || pg_sql_open_node(c, p, "postgres", MODULE_MS, &conn) < 0)
			continue; /* the next change of access brings them */
		(void)!pg_module_apply(conn);
		PQfinish(conn);
	}
}

static int upgrade_make(struct pg_cluster *c, unsigned version, const char **ret_why)
{
	int r = module_leave(c);
	r = r < 0 ? r : each_run(c, version, true);
	r = r < 0 ? r : upgrade_mark(c, version, c->version);
	r = r < 0 ? r : all_halt(c);
	for (size_t i = 0; r == 0 && i < c->node_count; i++)
		(void)!pg_archive_drain(c, c->nodes[i]); /* a fault is in the log */
	r = r < 0 ? r : each_run(c, version, false);
	r = r < 0 ? r : identities_change(c);
	if (r == 0)
		return upgrade_mark(c, version, version);
	char why[400];
	snprintf(why, sizeof why, "%s", pg_why_last());
	(void)!upgrade_back(c); /* or the next time */
	module_return(c);
	pg_why_set(ret_why, "upgrade: %s; version %u goes on", r == -EBUSY ? "a primary does not run" : why,
	           c->version);
	return r;
}

/* What a crash left: back to the old version, or on to the new one. */
static int upgrade_resume(struct pg_cluster *c)
{
	bool begun = c->upgrading != 0;
	char fresh[PG_PATH];
	for (size_t i = 0; !begun && i < c->node_count; i++) {
		pg_node_path(c, c->nodes[i], "data.up", fresh);
		begun = pg_file_is(fresh);
	}
	if (!begun || c->upgrading != c->version)
		return begun ? upgrade_back(c) : 0;
	int r = all_halt(c);
	r = r < 0 ? r : places_change(c);
	return r < 0 ? r : upgrade_mark(c, 0, c->version);
}

int pg_cluster_upgrade(struct pg_cluster *c, unsigned version, struct engine_progress *progress, const char **ret_why)
{
	int r = upgrade_resume(c);
	if (r < 0 || !c->version || !c->node_count || c->version == version)
		return r;
	if (version < c->version) {
		pg_why_set(ret_why, "version: there is no way back from %u to %u", c->version, version);
		return -EINVAL;
	}
	if (progress && progress->tell)
		progress->tell(progress->ctx, 3, "upgrading");
	r = upgrade_make(c, version, ret_why);
	r = r < 0 ? r : places_change(c);
	r = r < 0 ? r : upgrade_mark(c, 0, version);
	if (r == 0)
		log_info("engine: %s runs version %u from now on", c->id, version);
	return r;
}

int pg_cluster_analyze(struct pg_cluster *c)
{
	int r = 0;
	for (size_t i = 0; i < c->set_count; i++) {
		struct pg_node *p = pg_set_primary(c, &c->sets[i]);
		char program[PG_PATH], run[PG_PATH], port[16];
		if (!p || !p->pid)
			continue;
		pg_path_set(program, "%s/vacuumdb", pg_version_bin(c->engine, c->version));
		pg_node_run_dir(c, p, run);
		snprintf(port, sizeof port, "%u", p->port);
		const char *argv[] = {program,          "-h", run,  "-p", port, "-U", PG_SUPER, "--all",
		                      "--analyze-only", "-w", "-q", NULL};
		r = pg_process_run(c->user, argv, UPGRADE_MS);
	}
	return r;
}
