/* From texts to words, as it is in databases. */
#ifndef STEWARD_ENGINE_POSTGRES_SEARCH_ANALYSIS_H
#define STEWARD_ENGINE_POSTGRES_SEARCH_ANALYSIS_H

/* Statements that make its functions, before those of operators.h; NULL at the end. */
extern const char *const pg_search_analysis_sql[];

#endif
