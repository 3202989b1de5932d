/* What servers load when they start, beside pgaudit: pg_stat_statements, pg_qualstats, auto_explain, and steward.so,
 * the service's own (src/module). A library that this host lacks is left out and named in the log; its cluster runs
 * all the same. The module is copied to DIR/engine/lib/VERSION, because the servers' system user need not reach the
 * place that the service was installed to.
 *
 * Its SQL functions, and the extensions that belong to the libraries, are in the schema steward of the database
 * postgres, which is out of reach for users. A library that was added is loaded at a node's next start: nothing is
 * restarted for it. */
#include "engine/postgres/cluster/module.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/nolink.h"
#include "engine/postgres/host/files.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MODULE_MAJOR 15 /* as in src/module/meson.build */
#define MODULE_MAX (64u << 20)
#define APPLY_MS 10000

/* In the order in which they are loaded. The module is the last, so that what others measure is there for it. */
static const struct {
	const char *name, *package; /* of Debian, with the major version in it */
} libraries[] = {
        {"pg_stat_statements", "postgresql-%u"},
        {"pg_qualstats", "postgresql-%u-pg-qualstats"},
        {"auto_explain", "postgresql-%u"},
};
#define LIBRARIES (sizeof libraries / sizeof *libraries)

/* Loaded by nobody at the start, but needed for advice. */
static const char *const others[][2] = {{"hypopg", "postgresql-%u-hypopg"}};

static bool library_is_there(const struct engine *e, unsigned version, const char *name)
{
	char path[PG_PATH];
	const char *bin = pg_version_bin(e, version);
	pg_path_set(path, "%s/../lib/%s.so", bin ? bin : "", name);
	return bin && access(path, R_OK) == 0;
}

static void module_path(const struct engine *e, unsigned version, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/lib/%u/steward.so", e->dir, version);
}

bool pg_module_is_there(const struct engine *e, unsigned version)
{
	for (size_t i = 0; i < e->version_count; i++)
		if (e->versions[i].major == version)
			return e->versions[i].module;
	return false;
}

/* --- the copy */

/* Where the module lies: beside a program that was built and not installed, or where it is installed. */
static int source_open(void)
{
	char exe[PATH_MAX], path[PG_PATH];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	int fd = -1;
	if (n > 0) {
		exe[n] = 0;
		char *slash = strrchr(exe, '/');
		*slash = 0;
		pg_path_set(path, "%s/src/module/steward.so", exe);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	pg_path_set(path, "%s/%u/steward.so", ENGINE_MODULES, MODULE_MAJOR);
	return fd >= 0 ? fd : open(path, O_RDONLY | O_CLOEXEC);
}

/* All of a file; closes it. */
static int bytes_read(int fd, struct buf *b)
{
	char part[65536];
	ssize_t n = 0;
	while (b->n <= MODULE_MAX && ((n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			buf_add(b, part, (size_t)n);
	int r = n < 0 ? -errno : b->n > MODULE_MAX ? -EFBIG : 0;
	close(fd);
	return r;
}

static bool file_is(const char *path, const struct buf *bytes)
{
	struct buf have = {0};
	int fd = nolink_open(path, O_RDONLY, 0);
	bool same = fd >= 0 && bytes_read(fd, &have) == 0 && str_eq(buf_view(&have), buf_view(bytes));
	buf_free(&have);
	return same;
}

static int module_copy(const struct engine *e, unsigned version)
{
	char path[PG_PATH];
	struct buf bytes = {0};
	struct statvfs place;
	if (statvfs(e->dir, &place) == 0 && place.f_flag & ST_NOEXEC)
		return -ENOEXEC;
	int fd = source_open();
	int r = fd < 0 ? -errno : bytes_read(fd, &bytes);
	pg_path_set(path, "%s/lib", e->dir);
	r = r < 0 ? r : pg_dir_make(&e->shared, path, false);
	pg_path_set(path, "%s/lib/%u", e->dir, version);
	r = r < 0 ? r : pg_dir_make(&e->shared, path, false);
	module_path(e, version, path);
	if (r == 0 && !file_is(path, &bytes))
		r = pg_file_write(&e->shared, path, bytes.p, bytes.n, true);
	buf_free(&bytes);
	return r;
}

/* --- what is missing */

static void missing_add(struct buf *b, unsigned version, const char *name, const char *package)
{
	buf_printf(b, "%s%s (package ", b->n ? ", " : "", name);
	const char *number = strstr(package, "%u");
	buf_printf(b, "%.*s%u%s)", (int)(number - package), package, version, number + 2);
}

void pg_module_missing(const struct engine *e, unsigned version, struct buf *b)
{
	for (size_t i = 0; i < LIBRARIES; i++)
		if (!library_is_there(e, version, libraries[i].name))
			missing_add(b, version, libraries[i].name, libraries[i].package);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!library_is_there(e, version, others[i][0]))
			missing_add(b, version, others[i][0], others[i][1]);
	if (!pg_module_is_there(e, version))
		buf_printf(b, "%ssteward.so (Steward's module for PostgreSQL %u)", b->n ? ", " : "", version);
}

void pg_modules_prepare(struct engine *e)
{
	for (size_t i = 0; i < e->version_count; i++) {
		struct buf missing = {0};
		unsigned version = e->versions[i].major;
		int r = version == MODULE_MAJOR ? module_copy(e, version) : -ENOENT;
		e->versions[i].module = r == 0;
		if (r < 0 && r != -ENOENT)
			log_warn("engine: steward.so cannot be used in %s/lib: %s", e->dir,
			         r == -ENOEXEC ? "nothing may be executed on that file system" : strerror(-r));
		pg_module_missing(e, version, &missing);
		if (missing.n)
			log_warn("engine: PostgreSQL %u lacks %.*s; what needs it is not offered", version,
			         (int)missing.n, missing.p);
		buf_free(&missing);
	}
}

/* --- a node's configuration */

void pg_module_configure(struct buf *b, const struct pg_cluster *c)
{
	const struct engine *e = c->engine;
	char path[PG_PATH];
	const char *before = "";
	buf_z(b, "shared_preload_libraries = '");
	for (size_t i = 0; i < LIBRARIES; i++)
		if (library_is_there(e, c->version, libraries[i].name)) {
			buf_printf(b, "%s%s", before, libraries[i].name);
			before = ", ";
		}
	if (c->audit) {
		buf_printf(b, "%spgaudit", before);
		before = ", ";
	}
	module_path(e, c->version, path);
	if (pg_module_is_there(e, c->version))
		buf_printf(b, "%s\"%s\"", before, path);
	buf_printf(b, "'\ndynamic_library_path = '%s/lib/%u:$libdir'\n", e->dir, c->version);
	buf_z(b, "compute_query_id = on\npg_stat_statements.max = 2000\npg_stat_statements.track = top\n"
	         "pg_stat_statements.track_planning = off\npg_qualstats.max = 500\n"
	         /* Written with the rules for clients, see pg_refused_write(). */
	         "include_if_exists = 'refused.conf'\n");
}

/* --- in the databases */

#define VERSION "module 3"
#define FUNCTION(declaration, symbol) \
	"create or replace function steward." declaration " language c as 'steward', '" symbol "';\n"
#define ROWS(columns) " returns table (" columns ")"

const char pg_module_version[] = VERSION;

/* The bodies are not looked at: a server that was started before there was a module could not load it. */
/* clang-format off */
static const char install[] =
	"do $steward$ declare x text; changed boolean := false; begin\n"
	"if not exists (select from pg_namespace where nspname = 'steward' and pg_get_userbyid(nspowner) = '" PG_SUPER "') then\n"
	"  create schema steward;\n"
	"end if;\n"
	"perform set_config('check_function_bodies', 'off', true);\n"
	"for x in select unnest(array['pg_stat_statements', 'pg_qualstats']) except select extname from pg_extension loop\n"
	"  continue when not exists (select from pg_available_extensions where name = x);\n"
	"  execute format('create extension %I schema steward', x);\n"
	"  changed := true;\n"
	"end loop;\n"
	"if obj_description(to_regprocedure('steward.since()'), 'pg_proc') is distinct from '" VERSION "' then\n"
	"drop function if exists steward.table_latency(), steward.statements(), steward.refusals(), steward.lost(), steward.operations(), steward.since();\n"
	FUNCTION("table_latency()" ROWS("dbid oid, relid oid, kind text, calls int8, total_us int8, buckets int8[]"),
		"steward_table_latency")
	FUNCTION("statements()" ROWS("queryid int8, dbid oid, relid oid, shape text, command text, name text, application text, "
		"first_seen timestamptz, last_seen timestamptz, last_us int8, calls int8, total_us int8, refused int8, "
		"buckets int8[]"), "steward_statements")
	FUNCTION("refusals()" ROWS("queryid int8, count int8"), "steward_refusals")
	FUNCTION("lost()" ROWS("name text, count int8"), "steward_lost")
	FUNCTION("operations()" ROWS("transactions int8, reads int8, inserted int8, updated int8, deleted int8, busy_us int8"),
		"steward_operations")
	FUNCTION("since() returns timestamptz", "steward_since")
	"comment on function steward.since() is '" VERSION "';\n"
	"changed := true;\n"
	"end if;\n"
	"if changed then\n"
	/* Of these alone: on a router the schema has functions that are for everybody. */
	"for x in select case d.classid when 'pg_proc'::regclass then 'function ' || d.objid::regprocedure\n"
	"    else 'table ' || d.objid::regclass end from pg_depend d join pg_extension e on e.oid = d.refobjid\n"
	"    where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and e.extname in ('pg_stat_statements', 'pg_qualstats')\n"
	"    and d.classid in ('pg_proc'::regclass, 'pg_class'::regclass) loop\n"
	"  execute format('revoke all on %s from public', x);\n"
	"end loop;\n"
	"revoke all on function steward.table_latency(), steward.statements(), steward.refusals(), steward.lost(), steward.operations(), steward.since() from public;\n"
	"end if;\n"
	"end $steward$";
/* clang-format on */

int pg_module_apply(PGconn *conn)
{
	return pg_sql_do(conn, APPLY_MS, install);
}

/* The new version may lack a library, and pg_upgrade loads all that functions name. */
static const char leave[] =
        "drop extension if exists pg_stat_statements, pg_qualstats, hypopg;"
        "drop function if exists steward.table_latency(), steward.statements(), steward.refusals(), "
        "steward.lost(), steward.operations(), steward.since()";

int pg_module_drop(PGconn *conn)
{
	return pg_sql_do(conn, APPLY_MS, leave);
}
