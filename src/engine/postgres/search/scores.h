/* How well a row fits, in the database. */
#ifndef STEWARD_ENGINE_POSTGRES_SEARCH_SCORES_H
#define STEWARD_ENGINE_POSTGRES_SEARCH_SCORES_H

/* Statements that make the functions, as pg_search_sql. */
extern const char *const pg_search_scores_sql[];

#endif
