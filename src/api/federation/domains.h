/* Which domains a federation has proven to be its own: domains.c says how. */
#ifndef STEWARD_API_FEDERATION_DOMAINS_H
#define STEWARD_API_FEDERATION_DOMAINS_H

#include "jobs/jobs.h"

#include <jansson.h>

must_check int domain_is_proven(struct tx *tx, struct arena *a, struct str federation_id, struct str domain,
                                bool *ret_is);
/* The federations that have proven it: the documents' names. */
must_check int domain_provers(struct tx *tx, struct arena *a, struct str domain, size_t most, struct doc **ret_docs,
                              size_t *ret_count);
/* In a write, after the domains of a provider have changed: those that are not proven are looked for outside. */
must_check int domains_check_later(struct tx *tx, struct str federation_id);

#endif
