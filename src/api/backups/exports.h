/* Exports: a snapshot's tables as objects in a bucket. For the family's own files. */
#ifndef STEWARD_API_BACKUPS_EXPORTS_H
#define STEWARD_API_BACKUPS_EXPORTS_H

#include "api/backups/backups.h"
#include "objects/objects.h"

#define BUCKET_KIND "backup_export_bucket"
#define EXPORT_KIND "backup_export"
#define EXPORTS_BELOW "exported_snapshots/" /* all that is put into a bucket */
#define EXPORT_JOB "backup_export"          /* {"id"} */

/* --- buckets.c */

/* The project's role by which the bucket is reached; NULL: it is reached with what the operator has configured.
 * Negative with words: -ENOENT, -EACCES and -EINVAL are about the role that the bucket names. */
must_check int bucket_role(const struct service *s, struct tx *tx, struct arena *a, struct str group_id,
                           const json_t *bucket, const struct provider_role **ret_role, const char **ret_why);
/* Where the operator's configuration says that the bucket lies. Waits for it; *ret_why has words when it fails. The
 * arena lives as long as the bucket is open. */
must_check int bucket_open(const struct service *s, struct arena *a, const json_t *bucket,
                           const struct provider_role *role, struct objects **ret_bucket, const char **ret_why);

/* --- exports.c */

struct export
{
	struct doc doc;
	json_t *body, *plan; /* plan: {"groupId", "clusterName", "automatic"} */
};

must_check int export_get(struct tx *tx, struct arena *a, struct str id, struct export *ret_export);
must_check int export_save(struct tx *tx, struct arena *a, struct export *e);
bool export_is(const struct export *e, const char *state);
bool export_is_over(const struct export *e);
/* One after the other for each cluster, beside its snapshots. */
struct str export_subject(struct arena *a, struct str cluster_id);
/* Whether an export of the line that is not over needs the snapshot; the bucket, where the snapshot is empty. */
must_check int exports_use(struct tx *tx, struct arena *a, struct str cluster_id, struct str snapshot,
                           struct str bucket, bool *ret_used);
/* Whether it requires no private networking, or the project's backups have an active private endpoint. */
must_check int bucket_reached(struct tx *tx, struct arena *a, const struct doc *bucket, bool *ret_reached);
/* In the write in which a snapshot is complete: the export that the schedule asks for. */
must_check int exports_auto(struct tx *tx, struct arena *a, const struct backup_line *line, const struct snapshot *s);

/* --- export_job.c */

int export_step(struct job_run *r);
int export_failed(struct tx *tx, struct job_run *r);

/* --- export_put.c: one object that is written as it comes, compressed, by a thread of its own. */

struct data_key;
struct export_put;
struct export_stored {
	uint64_t bytes, stored; /* before and after it was compressed */
	char sha256[65];        /* of what is stored */
};
/* Sealed with that key of the project's; NULL: plain. */
must_check int export_put_begin(struct objects *bucket, const char *name, const struct data_key *key, struct str group,
                                struct export_put **ret_put);
/* Waits for room. Negative: the bucket does not take it. */
must_check int export_put_write(struct export_put *p, const void *bytes, size_t n);
/* It is there, whole, or negative. Frees it; `why` has words then. */
must_check int export_put_end(struct export_put *p, struct export_stored *ret_stored, char *why, size_t why_size);
/* Leaves nothing. Accepts NULL. */
void export_put_abort(struct export_put *p);

/* --- export_seal.c: a stream of bytes, encrypted as it comes */
struct export_seal;
typedef int export_seal_out(void *ctx, const void *bytes, size_t n);
must_check int export_seal_begin(const struct data_key *key, struct str group, export_seal_out *out, void *ctx,
                                 struct export_seal **ret_seal);
must_check int export_seal_write(struct export_seal *s, const void *bytes, size_t n);
must_check int export_seal_end(struct export_seal *s); /* the last of it goes out */
void export_seal_free(struct export_seal *s);          /* accepts NULL */

/* A text as one part of an object's name: what is no letter, digit, _ or - becomes =XX, and what is long is cut, and
 * ends with the beginning of its SHA-256. */
struct str export_part(struct arena *a, struct str text);

#endif
