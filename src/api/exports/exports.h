/* Exports: a snapshot's tables as objects in a bucket. */
#ifndef STEWARD_API_EXPORTS_EXPORTS_H
#define STEWARD_API_EXPORTS_EXPORTS_H

#include "api/exports/buckets.h"
#include "api/exports/job.h"
#include "api/exports/place.h"
#include "api/snapshots/snapshots.h"

#define SNAPSHOT_EXPORT_KIND "backup_export"
#define EXPORTS_BELOW "exported_snapshots/" /* all that is put into a bucket */

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
extern const struct snapshot_user exports_snapshot_user;

#endif
