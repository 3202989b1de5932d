/* A node's configuration, written from the cluster's state. The file lies outside of the data directory, so that a
 * rewind or a copy brings no other node's; what replication depends on is ours alone, and comes after the parameters of
 * the API, so that none of them can replace it. */
#include "engine/postgres/cluster/config.h"

#include "base/buf.h"
#include "engine/postgres/archive/archive.h"
#include "engine/postgres/cluster/audit.h"
#include "engine/postgres/cluster/module.h"
#include "engine/postgres/cluster/threshold.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/size.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"

#include <ctype.h>
#include <errno.h>
#include <unistd.h>

/* What a processArg may not be: commands, files, libraries, addresses, and what the engine itself sets. */
static const char *const reserved[] = {
        "_command",
        "_file",
        "_directory",
        "_directories",
        "_libraries",
        "_library",
        "listen_addresses",
        "port",
        "ssl",
        "unix_socket",
        "primary_",
        "recovery_",
        "synchronous_standby_names",
        "include",
        "hba",
        "ident",
        "log_dest",
        "logging_",
        "log_filename",
        "log_timezone",
        "wal_level",
        "hot_standby",
        "fsync",
        "full_page",
        "cluster_name",
        "promote_",
        "standby",
        "dynamic_shared",
        "shared_memory_type",
        "krb",
        "password_encryption",
        "wal_log_hints",
        "restart_after_crash",
        "allow_system_table_mods",
        "ignore_",
        "zero_damaged",
        "session_replication_role",
        "row_security",
        "role",
        "session_authorization",
        "backtrace",
        "debug_",
        "dblink",
        "max_wal_senders",
        "archive_",
        "restore_",
        "lo_compat",
};

static bool param_is_allowed(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '_' && *p != '.')
			return false;
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (strstr(name, reserved[i]))
			return false;
	return *name != 0 && strlen(name) < 64;
}

/* Of the reserved names, those that leave a choice: which versions of TLS, and which of the good ciphers. */
static bool param_is_of_tls(const struct engine_param *p)
{
	if (strcmp(p->name, "ssl_ciphers") == 0)
		return str_starts(str_of(p->value), STR("ECDHE-")) &&
		       strspn(p->value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:") == strlen(p->value);
	return strcmp(p->name, "ssl_min_protocol_version") == 0 &&
	       (strcmp(p->value, "TLSv1.2") == 0 || strcmp(p->value, "TLSv1.3") == 0);
}

static bool param_value_is_plain(const char *value)
{
	for (const char *p = value; *p; p++)
		if (iscntrl((unsigned char)*p))
			return false;
	return strlen(value) < 1024;
}

int pg_config_check(const struct engine_cluster *want, const char **ret_why)
{
	if (want->param_count > PG_PARAMS_MAX) {
		pg_why_set(ret_why, "params: at most %d", PG_PARAMS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < want->param_count; i++)
		if (!param_is_of_tls(&want->params[i]) &&
		    (!param_is_allowed(want->params[i].name) || !param_value_is_plain(want->params[i].value))) {
			pg_why_set(ret_why, "%.64s: not a parameter that can be set here", want->params[i].name);
			return -EINVAL;
		}
	return 0;
}

/* name = 'value' with quotes and backslashes doubled. */
static void line_add(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, "%s = '", name);
	for (const char *p = value; *p; p++) {
		if (*p == '\'' || *p == '\\')
			buf_c(b, *p);
		buf_c(b, *p);
	}
	buf_z(b, "'\n");
}

/* A standby must take as many connections as its primary, so all nodes of a set have the most of any. */
unsigned pg_config_connections(const struct pg_cluster *c, const struct pg_node *n)
{
	unsigned most = 0;
	for (size_t i = 0; i < c->node_count; i++) {
		unsigned own = pg_size_of(c->nodes[i]->want.instance_size).connections;
		if (c->nodes[i]->set == n->set && !c->nodes[i]->removing && own > most)
			most = own;
	}
	return most ? most : 100;
}

static void memory_add(struct buf *b, const struct pg_cluster *c, const struct pg_node *n)
{
	struct pg_size size = pg_size_of(n->want.instance_size);
	long host_mb = sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
	unsigned buffers = size.buffers_mb;
	if (host_mb > 128 && buffers > (unsigned)host_mb / 8)
		buffers = (unsigned)host_mb / 8;
	buf_printf(b,
	           "shared_buffers = %uMB\nwork_mem = %uMB\nmaintenance_work_mem = 32MB\nmax_connections = %u\n"
	           "max_wal_size = %uMB\nmin_wal_size = 8MB\nwal_keep_size = 64MB\n",
	           buffers, size.work_mb, pg_config_connections(c, n), size.max_wal_mb);
}

/* What keeps a cluster within its size, whatever the parameters say: temporary files of a session, and log that is kept
 * for a standby that does not come. */
static void bounds_add(struct buf *b, const struct pg_cluster *c, const struct pg_node *n)
{
	uint64_t disk_mb = (n->want.disk_gb * c->engine->disk_unit) >> 20;
	uint64_t temp_mb = disk_mb / 10 < 10 ? 10 : disk_mb / 10;
	uint64_t slot_mb = disk_mb / 4 < 64 ? 64 : disk_mb / 4;
	if (disk_mb == 0)
		buf_z(b, "temp_file_limit = -1\nmax_slot_wal_keep_size = 1GB\n");
	else
		buf_printf(b, "temp_file_limit = %lluMB\nmax_slot_wal_keep_size = %lluMB\n",
		           (unsigned long long)temp_mb, (unsigned long long)(slot_mb < 1024 ? slot_mb : 1024));
	if (c->full != FULL_NOT && !pg_node_is_shard(c, n))
		buf_z(b, "default_transaction_read_only = on\n");
}

/* Who acknowledges a commit: the other electable nodes of the set. */
static void quorum_add(struct buf *b, const struct pg_cluster *c, const struct pg_node *n)
{
	struct buf names = {0};
	for (size_t i = 0; c->quorum && i < c->node_count; i++) {
		const struct pg_node *other = c->nodes[i];
		if (other != n && other->set == n->set && !other->removing && pg_node_can_lead(other))
			buf_printf(&names, "%s\"%s\"", names.n ? ", " : "", other->want.name);
	}
	if (names.n)
		buf_printf(b, "synchronous_standby_names = 'ANY 1 (%.*s)'\n", (int)names.n, names.p);
	else
		buf_z(b, "synchronous_standby_names = ''\n");
	buf_free(&names);
}

static void upstream_add(struct buf *b, struct pg_cluster *c, const struct pg_node *n)
{
	struct pg_set *s = pg_cluster_set(c, n->set);
	struct pg_node *primary = s ? pg_set_primary(c, s) : NULL;
	char run[PG_PATH];
	if (!primary || primary == n)
		return;
	pg_node_run_dir(c, primary, run);
	buf_printf(b,
	           "primary_conninfo = 'host=%s port=%u user=%s dbname=replication sslmode=disable gssencmode=disable "
	           "passfile=/nonexistent connect_timeout=5 application_name=%s'\n",
	           run, primary->port, PG_SUPER, n->want.name);
}

static void places_add(struct buf *b, const struct pg_cluster *c, const struct pg_node *n)
{
	static const struct {
		const char *name, *below;
	} files[] = {
	        {"data_directory", "data"},
	        {"hba_file", "conf/pg_hba.conf"},
	        {"ident_file", "conf/pg_ident.conf"},
	        {"ssl_cert_file", "conf/server.crt"},
	        {"ssl_key_file", "conf/server.key"},
	        {"ssl_ca_file", "conf/ca.crt"},
	        {"log_directory", "log"},
	};
	char path[PG_PATH];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		pg_node_path(c, n, files[i].below, path);
		line_add(b, files[i].name, path);
	}
	if (c->federation) {
		pg_path_set(path, "%s/%s/federation", c->engine->dir, c->id);
		line_add(b, "steward.federation", path);
		pg_path_set(path, "%s/federation/%s", c->engine->dir, c->group_id);
		line_add(b, "steward.federation_project", path);
	}
	pg_node_run_dir(c, n, path);
	line_add(b, "unix_socket_directories", path);
	line_add(b, "listen_addresses", n->address);
	line_add(b, "cluster_name", n->want.name);
	buf_printf(b, "port = %u\n", n->port);
}

static const char fixed[] =
        "unix_socket_permissions = 0700\nssl = on\n"
        "password_encryption = 'scram-sha-256'\nlo_compat_privileges = off\nsuperuser_reserved_connections = 5\n"
        "wal_level = logical\nwal_log_hints = on\nhot_standby = on\nmax_wal_senders = 64\nmax_replication_slots = 64\n"
        "recovery_init_sync_method = syncfs\nwal_retrieve_retry_interval = "
        "100ms\nwal_receiver_timeout = 5s\n"
        "wal_sender_timeout = 5s\nrecovery_target_timeline = 'latest'\nmax_worker_processes = 16\n"
        /* A killed server leaves nothing outside of its directory. */
        "dynamic_shared_memory_type = mmap\n"
        "log_timezone = 'UTC'\nlogging_collector = on\nlog_destination = 'jsonlog'\n"
        "log_filename = 'postgresql-%Y%m%d-%H%M%S.log'\nlog_rotation_age = 1d\nlog_rotation_size = 16MB\n";

static const char habits[] = "ssl_min_protocol_version = 'TLSv1.2'\njit = off\ntimezone = 'UTC'\nlog_connections = "
                             "on\nlog_disconnections = on\n"
                             "log_checkpoints = off\nlog_min_duration_statement = 1s\ntcp_keepalives_idle = 60\n";

int pg_config_write(struct pg_cluster *c, struct pg_node *n, bool *ret_changed)
{
	struct buf b = {0};
	char path[PG_PATH], *old = NULL;
	buf_z(&b, "# Written by Steward; changes are lost.\n");
	buf_z(&b, habits);
	memory_add(&b, c, n);
	for (size_t i = 0; i < c->param_count; i++)
		line_add(&b, c->params[i].name, c->params[i].value);
	buf_z(&b, fixed);
	bounds_add(&b, c, n);
	pg_module_configure(&b, c);
	pg_audit_configure(&b, c);
	pg_threshold_configure(&b, c);
	pg_archive_configure(&b, c, n);
	places_add(&b, c, n);
	quorum_add(&b, c, n);
	upstream_add(&b, c, n);
	pg_node_path(c, n, "conf/postgresql.conf", path);
	bool same = pg_file_read(path, 1 << 20, &old) == 0 && strlen(old) == b.n && memcmp(old, b.p, b.n) == 0;
	free(old);
	int r = same ? 0 : pg_file_write(c->user, path, b.p, b.n, true);
	buf_free(&b);
	if (r == 0 && ret_changed)
		*ret_changed = !same;
	return r;
}
