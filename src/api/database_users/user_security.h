/* The project's security settings, as far as others need them: certificate authorities and the directory. */
#ifndef STEWARD_API_DATABASE_USERS_USER_SECURITY_H
#define STEWARD_API_DATABASE_USERS_USER_SECURITY_H

#include "call/call.h"
#include "engine/engine.h"
#include "jobs/jobs.h"

/* Joins to a project's access what its settings say: who may sign certificates, which directory knows the users whose
 * `ldap` is set and as whom, and what is audited of each. `users` are those of the access. */
must_check int user_security_join(struct tx *tx, struct arena *a, struct str group_id, struct engine_user *users,
                                  struct engine_access *access);

/* ldap_verify.c: a check of a directory. */
#define LDAP_VERIFY_JOB "ldap_verify"
int ldap_verify_step(struct job_run *r);
int ldap_verify_failed(struct tx *tx, struct job_run *r);
/* Adds a link to the project's last check, where there is one, to the entity that was written last. */
void ldap_verify_link(struct call *c);
/* Faults of what the settings and a check have in common; `prefix` is that of the paths. Writes caCertificate again. */
void ldap_server_check(json_t *ldap, const char *prefix, struct arena *a, struct faults *faults);

#endif
