/* The schema, as numbered steps. Each runs in a transaction that also records its number in the file (user_version), so
 * a step runs once, however often and by however many processes the store is opened. Steps are only ever added. */
#include "store/sqlite/sqlite.h"

#include <errno.h>

/* "STWD": tells a store from any other SQLite file. */
#define APPLICATION_ID 0x53545744

/* clang-format off */
static const char *const steps[] = {
	/* 1 */
	"CREATE TABLE doc (kind TEXT NOT NULL, id TEXT NOT NULL, parent TEXT NOT NULL, name TEXT,"
	" seq INTEGER NOT NULL, rev INTEGER NOT NULL, created_ms INTEGER NOT NULL, body TEXT NOT NULL, secret TEXT);"
	"CREATE UNIQUE INDEX doc_id ON doc (kind, id);"
	"CREATE UNIQUE INDEX doc_order ON doc (kind, parent, seq);"
	"CREATE UNIQUE INDEX doc_name ON doc (kind, parent, name) WHERE name IS NOT NULL;"

	"CREATE TABLE list (kind TEXT NOT NULL, parent TEXT NOT NULL, next_seq INTEGER NOT NULL,"
	" count INTEGER NOT NULL, head INTEGER NOT NULL, PRIMARY KEY (kind, parent)) WITHOUT ROWID;"
	"CREATE TABLE list_block (kind TEXT NOT NULL, parent TEXT NOT NULL, level INTEGER NOT NULL,"
	" block INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kind, parent, level, block)) WITHOUT ROWID;"

	"CREATE TABLE ref (kind TEXT NOT NULL, value TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (kind, value))"
	" WITHOUT ROWID;"
	"CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"

	"CREATE TABLE event (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org_id TEXT NOT NULL,"
	" group_id TEXT NOT NULL, type TEXT NOT NULL, created_ms INTEGER NOT NULL, body TEXT NOT NULL,"
	" prev_hash BLOB NOT NULL, hash BLOB NOT NULL);"
	"CREATE INDEX event_org ON event (org_id, seq) WHERE org_id <> '';"
	"CREATE INDEX event_group ON event (group_id, seq) WHERE group_id <> '';"

	"CREATE TABLE job (id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, subject TEXT NOT NULL DEFAULT '',"
	" args TEXT NOT NULL, state TEXT NOT NULL, step INTEGER NOT NULL DEFAULT 0,"
	" attempt INTEGER NOT NULL DEFAULT 0, progress TEXT, due_ms INTEGER NOT NULL, lease_owner TEXT,"
	" lease_until_ms INTEGER NOT NULL DEFAULT 0, fence INTEGER NOT NULL DEFAULT 0,"
	" created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, error TEXT);"
	"CREATE INDEX job_due ON job (state, due_ms);"
	"CREATE INDEX job_subject ON job (subject, created_ms) WHERE subject <> '';"

	"CREATE TABLE answer (caller TEXT NOT NULL, key TEXT NOT NULL, created_ms INTEGER NOT NULL,"
	" fingerprint TEXT NOT NULL, answer TEXT NOT NULL, UNIQUE (caller, key));"
	"CREATE INDEX answer_age ON answer (created_ms);"

	"CREATE TABLE limit_override (set_id TEXT NOT NULL, scope TEXT NOT NULL, capacity INTEGER NOT NULL,"
	" refill INTEGER NOT NULL, PRIMARY KEY (set_id, scope)) WITHOUT ROWID;",

	/* 2: events are listed by position. No operation wrote any before. */
	"DELETE FROM event; DROP INDEX event_org; DROP INDEX event_group;"
	"ALTER TABLE event ADD COLUMN cluster TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE event ADD COLUMN raw TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE event ADD COLUMN org_pos INTEGER;"
	"ALTER TABLE event ADD COLUMN group_pos INTEGER;"
	"CREATE INDEX event_of_org ON event (org_id, org_pos, type, created_ms, cluster) WHERE org_pos > 0;"
	"CREATE INDEX event_of_group ON event (group_id, group_pos, type, created_ms, cluster) WHERE group_pos > 0;",

	/* 3: filters of events by type and by time have an index each. */
	"DROP INDEX event_of_org; DROP INDEX event_of_group;"
	"CREATE INDEX event_org_pos ON event (org_id, org_pos) WHERE org_pos > 0;"
	"CREATE INDEX event_org_time ON event (org_id, created_ms, org_pos, type, cluster) WHERE org_pos > 0;"
	"CREATE INDEX event_org_type ON event (org_id, type, org_pos, created_ms, cluster) WHERE org_pos > 0;"
	"CREATE INDEX event_group_pos ON event (group_id, group_pos) WHERE group_pos > 0;"
	"CREATE INDEX event_group_time ON event (group_id, created_ms, group_pos, type, cluster) WHERE group_pos > 0;"
	"CREATE INDEX event_group_type ON event (group_id, type, group_pos, created_ms, cluster) WHERE group_pos > 0;",

	/* 4: some jobs are work on one host. */
	"ALTER TABLE job ADD COLUMN host TEXT NOT NULL DEFAULT '';",

	/* 5: the first events of a list are only in the index of positions. */
	"DROP INDEX event_org_pos; DROP INDEX event_org_time; DROP INDEX event_org_type;"
	"DROP INDEX event_group_pos; DROP INDEX event_group_time; DROP INDEX event_group_type;"
	"CREATE INDEX event_org_pos ON event (org_id, org_pos, created_ms, type, cluster) WHERE org_pos > 0;"
	"CREATE INDEX event_org_time ON event (org_id, created_ms, org_pos, type, cluster) WHERE org_pos > 32;"
	"CREATE INDEX event_org_type ON event (org_id, type, org_pos, created_ms, cluster) WHERE org_pos > 32;"
	"CREATE INDEX event_group_pos ON event (group_id, group_pos, created_ms, type, cluster) WHERE group_pos > 0;"
	"CREATE INDEX event_group_time ON event (group_id, created_ms, group_pos, type, cluster)"
	" WHERE group_pos > 32;"
	"CREATE INDEX event_group_type ON event (group_id, type, group_pos, created_ms, cluster)"
	" WHERE group_pos > 32;",

	/* 6: the organization of a job, because organizations take turns. */
	"ALTER TABLE job ADD COLUMN tenant TEXT NOT NULL DEFAULT '';",

	/* 7: a document has a checksum; doc_sum() is a function of this program. */
	"ALTER TABLE doc ADD COLUMN sum INTEGER; UPDATE doc SET sum = doc_sum(kind, id, body);",
};
/* clang-format on */

#define STEP_COUNT ((int64_t)(sizeof steps / sizeof *steps))

/* What the file says about itself. An empty file has 0 and 0. */
static int file_version(struct tx *conn, const char *path, FILE *out, int64_t *ret_version)
{
	int64_t version, application, tables;
	if (conn_int(conn, "PRAGMA user_version", &version) < 0 ||
	    conn_int(conn, "PRAGMA application_id", &application) < 0 ||
	    conn_int(conn, "SELECT count(*) FROM sqlite_schema", &tables) < 0) {
		fprintf(out, "steward: %s cannot be read as a store: %s\n", path, sqlite3_errmsg(conn->db));
		return -EIO;
	}
	if (application != APPLICATION_ID && (version || application || tables)) {
		fprintf(out, "steward: %s is not a Steward store: give another data directory\n", path);
		return -EINVAL;
	}
	if (version > STEP_COUNT) {
		fprintf(out,
		        "steward: %s was written by a newer Steward (schema %lld; this program knows up to %lld): run "
		        "that"
		        " version, or restore a backup made before the upgrade\n",
		        path, (long long)version, (long long)STEP_COUNT);
		return -EPROTO;
	}
	*ret_version = version;
	return 0;
}

static int step_run(struct tx *conn, const char *path, bool *ret_done)
{
	int64_t version;
	char record[96];
	int r = conn_exec(conn, "BEGIN IMMEDIATE");
	if (r < 0)
		return r;
	r = file_version(conn, path, stderr, &version);
	if (r == 0 && version < STEP_COUNT) {
		snprintf(record, sizeof record, "PRAGMA user_version = %d; PRAGMA application_id = %d",
		         (int)version + 1, APPLICATION_ID);
		r = conn_exec(conn, steps[version]);
		if (r == 0)
			r = conn_exec(conn, record);
	}
	if (r == 0)
		r = conn_exec(conn, "COMMIT");
	if (r < 0) {
		if (!sqlite3_get_autocommit(conn->db) && conn_exec(conn, "ROLLBACK") < 0)
			return -EIO;
		return r;
	}
	*ret_done = version + 1 >= STEP_COUNT;
	return 0;
}

int migrations_run(struct tx *conn, const char *path)
{
	int64_t version;
	bool done;
	int r = file_version(conn, path, stderr, &version);
	if (r < 0)
		return r;
	/* Has no effect on a file that has its tables already. */
	r = version == 0 ? conn_exec(conn, "PRAGMA auto_vacuum = NONE") : 0;
	if (r == 0)
		r = conn_exec(conn, "PRAGMA journal_mode = WAL");
	for (done = version == STEP_COUNT; r == 0 && !done;)
		r = step_run(conn, path, &done);
	if (r == -EIO)
		fprintf(stderr, "steward: the store %s cannot be brought up to date: %s\n", path,
		        sqlite3_errmsg(conn->db));
	return r;
}

int migrations_verify(struct tx *conn, const char *path, FILE *out)
{
	int64_t version;
	int r = file_version(conn, path, out, &version);
	if (r == 0 && version < STEP_COUNT) {
		fprintf(out, "steward: %s has the schema %lld of %lld: start the service once to bring it up to date\n",
		        path, (long long)version, (long long)STEP_COUNT);
		return -EPROTO;
	}
	return r;
}
