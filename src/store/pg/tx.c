/* A reader, the writer, or a tool: a connection, once it has one, with what is known beside it. */
#include "store/pg/pg.h"

#include <stdlib.h>

struct tx *pg_tx_new(struct store *s, enum pg_role role)
{
	struct tx *tx = must_calloc(1, sizeof *tx);
	tx->ops = &postgres_ops;
	tx->store = s;
	tx->writes = role == PG_WRITER;
	tx->pg = must_calloc(1, sizeof *tx->pg);
	tx->pg->role = role;
	tx->pg->known.arena = role == PG_WRITER ? arena_new() : NULL;
	return tx;
}

void pg_tx_free(struct tx *tx)
{
	if (!tx)
		return;
	pg_disconnect(tx->pg);
	memo_free(tx);
	pg_ahead_free(tx->pg);
	pg_known_reset(tx->pg);
	if (tx->pg->known.arena)
		arena_free(tx->pg->known.arena);
	free(tx->pg);
	free(tx);
}
