/* Database users: documents of the kind "database_user" below the project, named by the user's name, which is unique in
 * the project whatever it authenticates against. The secret column holds the sealed SCRAM verifier of one with a
 * password. */
#ifndef STEWARD_API_DATABASE_USERS_DATABASE_USERS_H
#define STEWARD_API_DATABASE_USERS_DATABASE_USERS_H

#include "call/call.h"
#include "engine/engine.h"
#include "jobs/jobs.h"

#define DATABASE_USER "database_user"

/* Whether the databases know it by its name: not one of AWS IAM or OpenID Connect, nor a group of a directory. */
bool database_user_logs_in(const json_t *user);

/* cluster_access.c: whether the access list of the project lets the address in. */
must_check int access_list_covers(struct tx *tx, struct arena *a, struct str group_id, const struct ip *address,
                                  bool *ret_covered);

/* A temporary user's time is over. */
#define USER_END_JOB "database_user_end"
int user_end_save(struct tx *tx, struct job_run *r);

extern const struct cluster_part database_users_part;
extern const struct job_kinds database_users_jobs;

#endif
