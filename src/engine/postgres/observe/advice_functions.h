/* Functions for sessions in which statements are planned. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_FUNCTIONS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_ADVICE_FUNCTIONS_H

/* What is done in a session of the database, as the user whose statements are planned: functions, until NULL. */
extern const char *const pg_advice_functions[];

#endif
