/* The tables of a server that take most time, and those that users have pinned: collections.c, for measure.c and
 * inspect.c. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_COLLECTIONS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_COLLECTIONS_H

#include "base/buf.h"
#include "engine/postgres/model/model.h"

#include <libpq-fe.h>

/* What is known of one server's tables between two samples. */
struct pg_tables;
struct pg_tables *pg_tables_new(void);
void pg_tables_free(struct pg_tables *t); /* accepts NULL */

/* True where the function of the next question is there, and nobody but the superuser can have made it. */
#define PG_TABLES_OFFERED                                                                                              \
	"exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'steward' and " \
	"p.proname = 'table_latency' and p.pronargs = 0 and pg_get_userbyid(p.proowner) = '" PG_SUPER "' and "         \
	"pg_get_userbyid(n.nspowner) = '" PG_SUPER "')"
/* Asked in the database postgres. */
extern const char pg_tables_ask[];

/* The names that are to be measured whatever they take. */
void pg_tables_pin(struct pg_tables *t, const char *const *names, size_t count);
/* Those that were measured before the service's start; until it was told them. */
bool pg_tables_is_new(const struct pg_tables *t);
void pg_tables_keep(struct pg_tables *t, const char *const *names, size_t count);
/* The answer, which it takes over. */
void pg_tables_take(struct pg_tables *t, PGresult *rows, int64_t mono_us);
/* Whether a database must be asked for names before all that count are known. */
bool pg_tables_want(const struct pg_tables *t, unsigned database_oid, const char *database);
/* Sends the question for names to a connection to that database. False: there is nothing to ask, or it failed. */
bool pg_tables_send(struct pg_tables *t, unsigned database_oid, const char *database, PGconn *conn);
void pg_tables_names(struct pg_tables *t, unsigned database_oid, const char *database, const PGresult *rows);
/* Gives the samples of this round away: `s` has all but subject, name and inputs. Nothing where none was taken. */
void pg_tables_give(struct pg_tables *t, const struct engine_sample *s, bool leads, const struct engine_sampling *to);
/* The round is over: what was not given is not of it. */
void pg_tables_forget(struct pg_tables *t);

/* The question for the names of tables, by numbers and names as array literals. NULL: the connection is gone. Free
 * it. */
char *pg_tables_sql(PGconn *conn, const char *oids, const char *names);
/* Adds an element to an array literal that was begun with "{". */
void pg_array_add(struct buf *b, struct str text);
/* What is left of "database.table" after the database's name; NULL: it is of another. */
const char *pg_table_in(const char *name, const char *database);

#endif
