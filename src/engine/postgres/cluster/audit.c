/* The audit log, which pgaudit writes into the server's log. Which classes of statements everybody's are is part of the
 * nodes' configuration; a user for whom others are audited has a setting of its own. The library must be loaded when a
 * server starts, so turning the log on or off is a rolling restart, and anything else a reload. */
#include "engine/postgres/cluster/audit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/postgres/host/versions.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int pg_audit_available(const struct engine *e, unsigned version, const char **ret_why)
{
	char path[PG_PATH];
	const char *bin = pg_version_bin(e, version);
	pg_path_set(path, "%s/../lib/pgaudit.so", bin ? bin : "");
	if (bin && access(path, R_OK) == 0)
		return 0;
	pg_why_set(ret_why, "the audit log needs pgaudit for PostgreSQL %u: install the package postgresql-%u-pgaudit",
	           version, version);
	return -ENOENT;
}

void pg_audit_take(struct pg_cluster *c, const struct engine_cluster *want)
{
	free(c->audit);
	c->audit = want->audit.enabled ? must_strdup(want->audit.classes) : NULL;
}

void pg_audit_configure(struct buf *b, const struct pg_cluster *c)
{
	if (!c->audit)
		return;
	/* Statements are logged with their parameters: what was done shall be known, not only how it was said. */
	buf_printf(b, "pgaudit.log = '%s'\npgaudit.log_catalog = off\npgaudit.log_parameter = on\n",
	           *c->audit ? c->audit : "none");
}

/* What the service itself does stands in its events. */
static const char *classes_wanted(const struct engine_access *access, const char *name, bool on)
{
	if (!on)
		return NULL;
	if (strcmp(name, PG_SUPER) == 0)
		return "";
	for (size_t i = 0; i < access->user_count; i++)
		if (strcmp(access->users[i].name, name) == 0)
			return access->users[i].audit;
	return NULL;
}

static int role_set(PGconn *conn, const char *name, const char *classes)
{
	char *role = PQescapeIdentifier(conn, name, strlen(name));
	char *value = PQescapeLiteral(conn, classes && *classes ? classes : "none",
	                              classes && *classes ? strlen(classes) : 4);
	struct buf b = {0};
	int r = role && value ? 0 : -ENOMEM;
	if (r == 0) {
		if (classes)
			buf_printf(&b, "alter role %s set pgaudit.log = %s", role, value);
		else
			buf_printf(&b, "alter role %s reset pgaudit.log", role);
		buf_c(&b, 0);
		r = pg_sql_do(conn, 5000, b.p);
	}
	PQfreemem(role);
	PQfreemem(value);
	buf_free(&b);
	return r;
}

int pg_audit_apply(PGconn *conn, const struct engine_access *access, bool on)
{
	PGresult *rows;
	int r = pg_sql_rows(
	        conn, 5000,
	        "select r.rolname, (select substr(c, 13) from unnest(s.setconfig) c where c like 'pgaudit.log=%') "
	        "from pg_roles r left join pg_db_role_setting s on s.setrole = r.oid and s.setdatabase = 0 "
	        "where r.rolcanlogin",
	        &rows);
	if (r < 0)
		return r;
	for (int i = 0; i < PQntuples(rows) && r == 0; i++) {
		const char *name = pg_value(rows, i, 0), *want = classes_wanted(access, name, on);
		const char *have = PQgetisnull(rows, i, 1) ? NULL : pg_value(rows, i, 1);
		const char *wanted = want && !*want ? "none" : want;
		if (wanted != have && (!wanted || !have || strcmp(wanted, have) != 0))
			r = role_set(conn, name, want);
	}
	PQclear(rows);
	return r;
}
