/* A project's certificate authority: its databases' certificates and those that the API issues to database users are of
 * it. Kept in the store, the key sealed, so that it is the same on every engine, in every backup, and gone with the
 * project. */
#ifndef STEWARD_API_CLUSTERS_AUTHORITY_H
#define STEWARD_API_CLUSTERS_AUTHORITY_H

#include "jobs/jobs.h"
#include "store/store.h"

#define AUTHORITY_KIND "project_ca"

struct authority {
	struct str certificate, key; /* PEM; NUL-terminated */
	struct str earlier;          /* certificates of those before it; what they signed is good until it ends */
	bool is_new;                 /* made by this very write */
};

/* -ENOENT: none was needed yet. */
must_check int authority_load(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority);
/* In a write: the same, and makes one where there is none, or where it ends within two years: nothing that it signs
 * shall be cut short. */
must_check int authority_ensure(struct tx *tx, struct arena *a, struct str group_id, struct authority *ret_authority);

/* Its certificate and those before it, in PEM: what clients know the project's databases by. -ENOENT. */
must_check int authority_certificates(struct tx *tx, struct arena *a, struct str group_id, struct str *ret_pem);

/* Once a day every cluster is looked at again, which is when certificates that end soon are issued anew. */
#define AUTHORITY_SCAN_JOB "certificate_scan"
#define AUTHORITY_SCAN_MS 86400000LL
int authority_scan_step(struct job_run *r);

#endif
