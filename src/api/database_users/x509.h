/* Certificates of database users. */
#ifndef STEWARD_API_DATABASE_USERS_X509_H
#define STEWARD_API_DATABASE_USERS_X509_H

#include "call/call.h"

/* The subject by which the databases know a user of this document; STR_NONE for one without certificates.
 *
 * Of x509Type MANAGED it names the user and, as the unit, the id of its document: a user that is deleted and created
 * again is somebody else, and certificates of the first are worth nothing. Of CUSTOMER it is the user's name. */
struct str x509_subject(struct arena *a, const struct doc *user, const json_t *document);
/* In a write that takes the user away: its certificates are forgotten. *ret_count: how many were in force. */
must_check int x509_forget(struct tx *tx, struct arena *a, const struct doc *user, size_t *ret_count);

#endif
