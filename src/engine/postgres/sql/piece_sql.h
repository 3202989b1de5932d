/* What is said to servers when one database, or one table, comes out of a snapshot: see backup/piece.c. */
#ifndef STEWARD_ENGINE_POSTGRES_SQL_PIECE_SQL_H
#define STEWARD_ENGINE_POSTGRES_SQL_PIECE_SQL_H

/* To a throwaway server. */
extern const char pg_piece_sql_database[], pg_piece_sql_table[], pg_piece_sql_facts[], pg_piece_sql_tidy[],
        pg_piece_sql_apart[], pg_piece_sql_reader[], pg_piece_sql_searched[];
/* To the server that it goes to. */
extern const char pg_piece_sql_done[], pg_piece_sql_roles[], pg_piece_sql_named[], pg_piece_sql_there[],
        pg_piece_sql_end[], pg_piece_sql_databases[], pg_piece_sql_holds[], pg_piece_sql_drop[], pg_piece_sql_writer[],
        pg_piece_sql_close[], pg_piece_sql_archives[], pg_piece_sql_archived[];
extern const char pg_piece_sql_make[], pg_piece_sql_groups[], pg_piece_sql_search[], pg_piece_sql_rights[],
        pg_piece_sql_owners[], pg_piece_sql_settings[], pg_piece_sql_change[], pg_piece_sql_empty[]; /* a database */
extern const char pg_piece_sql_stage[], pg_piece_sql_names[], pg_piece_sql_place[];                  /* a table */

#endif
