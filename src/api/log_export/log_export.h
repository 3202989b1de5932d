/* Log export: the logs of a project's databases, sent to buckets and to services of others as they are written. */
#ifndef STEWARD_API_LOG_EXPORT_LOG_EXPORT_H
#define STEWARD_API_LOG_EXPORT_LOG_EXPORT_H

#include "api/clusters/clusters.h"
#include "api/provider_access/provider_access.h"

struct shipper;

/* Starts the thread that looks what is due. `seconds`: how long lines wait at most before they are put into a bucket.
 * On failure: a message on stderr, negative. */
must_check int shipper_start(struct service *s, unsigned seconds, struct shipper **ret_shipper);
/* Ends what is under way; what was not sent is sent after the next start. Before the engine stops. Accepts NULL. */
void shipper_stop(struct shipper *s);
/* Something may be due: the clock was moved. From any thread; accepts NULL. */
void shipper_wake(struct shipper *s);
/* As lines of /metrics; accepts NULL. */
void shipper_metrics_write(struct buf *b, struct shipper *s);

extern const struct role_user push_export_role_user, log_integrations_role_user;
extern const struct cluster_part log_export_part;

#endif
