/* What is PG_RESTORE's is not whole, whatever the reason: it goes. Its sessions end first, which may go on for a while
 * after the program that had begun them was killed. */
#include "engine/postgres/cluster/pieces.h"

#include "base/buf.h"
#include "base/log.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/wait.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/sql/piece_sql.h"
#include "engine/postgres/sql/sql.h"

#include <errno.h>

#define SQL_MS 60000
#define END_MS 10000

void pg_pieces_begin(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->pieces++;
	pthread_mutex_unlock(&c->lock);
}

void pg_pieces_end(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	c->pieces--;
	pthread_mutex_unlock(&c->lock);
}

static int sessions_end(PGconn *conn)
{
	int64_t end = pg_mono_ms() + END_MS, count = 1;
	int r = pg_sql_do(conn, SQL_MS, pg_piece_sql_close);
	while (r == 0 && count > 0) {
		r = pg_sql_int(conn, SQL_MS, pg_piece_sql_end, &count);
		if (r == 0 && count > 0 && pg_mono_ms() > end)
			r = -EBUSY;
		if (r == 0 && count > 0)
			pg_sleep_ms(50);
	}
	return r;
}

static int database_drop(PGconn *conn, const char *name)
{
	struct buf sql = {0};
	char *quoted = PQescapeIdentifier(conn, name, strlen(name));
	buf_printf(&sql, "drop database ");
	buf_z(&sql, quoted ? quoted : "");
	buf_z(&sql, " with (force)");
	buf_c(&sql, 0);
	PQfreemem(quoted);
	int r = pg_sql_do(conn, SQL_MS, sql.p);
	buf_free(&sql);
	return r;
}

static int held_drop(const struct pg_node *n, const char *run_dir, const char *database)
{
	PGconn *inside;
	int r = pg_sql_open(n, run_dir, database, 3000, &inside);
	if (r < 0)
		return r;
	r = pg_sql_do(inside, SQL_MS, pg_piece_sql_drop);
	PQfinish(inside);
	return r;
}

int pg_pieces_sweep(const struct pg_node *n, const char *run_dir, PGconn *conn)
{
	PGresult *rows;
	int r = sessions_end(conn);
	r = r < 0 ? r : pg_sql_rows(conn, SQL_MS, pg_piece_sql_databases, &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		r = database_drop(conn, pg_value(rows, i, 0));
	PQclear(rows);
	r = r < 0 ? r : pg_sql_rows(conn, SQL_MS, pg_piece_sql_holds, &rows);
	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < PQntuples(rows); i++)
		r = held_drop(n, run_dir, pg_value(rows, i, 0));
	PQclear(rows);
	return r;
}

void pg_pieces_tidy(struct pg_cluster *c)
{
	pthread_mutex_lock(&c->lock);
	bool busy = c->pieces > 0;
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->set_count && !busy && !c->paused; i++) {
		const struct pg_node *n = pg_set_primary(c, &c->sets[i]);
		char run[PG_PATH];
		PGconn *conn;
		if (!n || pg_sql_open_node(c, n, "postgres", 2000, &conn) < 0)
			continue;
		pg_node_run_dir(c, n, run);
		if (pg_pieces_sweep(n, run, conn) < 0)
			log_warn("engine: %s: what is left of a restore stays: %s", c->id, pg_why_last());
		PQfinish(conn);
	}
}
