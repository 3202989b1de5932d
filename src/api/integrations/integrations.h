/* Third-party integrations of projects. */
#ifndef STEWARD_API_INTEGRATIONS_INTEGRATIONS_H
#define STEWARD_API_INTEGRATIONS_INTEGRATIONS_H

#include "call/service.h"

#include <jansson.h>

#define INTEGRATION_KIND "integration"

/* The project's integration of that type ("SLACK") or id, whole, with its secrets: for those who send to it, never for
 * an answer. Freed with the arena. -ENOENT. */
must_check int integration_find(struct tx *tx, struct arena *a, struct str group_id, struct str type_or_id,
                                json_t **ret_integration);

/* The same, in the form of a notification of its type. */
must_check int integration_receiver(struct tx *tx, struct arena *a, struct str group_id, struct str id,
                                    json_t **ret_receiver);

/* prometheus.c: service discovery and metrics for the project's Prometheus, by the password of its integration. */
#define PROMETHEUS_PATH "/prometheus/v1.0/groups/"
void prometheus_serve(struct service *s, struct request *r);

#endif
