/* The PostgreSQL back end: opening it, its readers, and the table of functions that store.c calls. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/id.h"

#include <errno.h>
#include <stdlib.h>

static int pg_open(struct store *s, const struct store_options *o, struct tx **ret_conn)
{
	struct id made = id_new();
	s->path = must_strdup(o->url);
	s->pg = must_calloc(1, sizeof *s->pg);
	snprintf(s->node, sizeof s->node, "%s", o->node ? o->node : made.z);
	struct tx *tx = pg_tx_new(s, PG_WRITER);
	int r = pg_connect(tx, clock_mono_us() + (int64_t)PG_CONNECT_US * 2);
	if (r == 0)
		r = pg_migrations_run(tx);
	if (r == 0)
		r = pg_exec(tx, PG_MARKS_FORGET_ST, NULL, NULL);
	if (r >= 0)
		r = pg_listener_start(s);
	if (r < 0) {
		fprintf(stderr, "steward: the PostgreSQL store cannot be used: %s\n",
		        r == -ENOTCONN ? "it cannot be reached" : strerror(-r));
		pg_tx_free(tx);
		return r;
	}
	*ret_conn = tx;
	return 0;
}

static void pg_close(struct store *s)
{
	if (s->pg)
		pg_listener_stop(s);
	free(s->pg);
}

static int pg_reader(struct store *s, struct tx **ret_tx)
{
	*ret_tx = pg_tx_new(s, PG_READER);
	return 0;
}

static void pg_begin_read(struct tx *tx)
{
	struct pg *p = tx->pg;
	tx->generation = store_identity_generation(tx->store);
	tx->lingers = true;
	p->looked = p->gone = false;
}

/* Nobody waits for the end: the server gets it together with the next statement, which wakes it once instead of twice,
 * or when the reader rests. */
static void pg_end_read(struct tx *tx)
{
	struct pg *p = tx->pg;
	/* An earlier read may still have to be ended, when this one has read nothing. */
	p->ending |= p->begun && p->conn;
	tx->lingers = p->ending;
	p->gone = p->looked = p->begun = false;
}

static void pg_rest(struct tx *tx)
{
	struct pg *p = tx->pg;
	if (p->ending && p->conn && !pg_sync_send(p))
		pg_disconnect(p);
	tx->lingers = p->ending = false;
}

static uint64_t pg_data_version(struct tx *reader)
{
	return reader->store->pg->data_version;
}

#define STORE_MEMBER(name, parameters, arguments) .name = pg_##name,
const struct store_ops postgres_ops = {.remote = true,
                                       .open = pg_open,
                                       .close = pg_close,
                                       .reader = pg_reader,
                                       .conn_close = pg_tx_free,
                                       .begin_read = pg_begin_read,
                                       .end_read = pg_end_read,
                                       .rest = pg_rest,
                                       .data_version = pg_data_version,
                                       .get_many = pg_get_many,
                                       .read_ahead = pg_read_ahead,
                                       .batch_begin = pg_batch_begin,
                                       .write_begin = pg_write_begin,
                                       .write_end = pg_write_end,
                                       .batch_commit = pg_batch_commit,
                                       .batch_abort = pg_batch_abort,
                                       .idle = pg_idle,
                                       .watch = pg_watch,
                                       STORE_OPS(STORE_MEMBER)};
#undef STORE_MEMBER
