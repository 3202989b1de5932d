/* Puts the families together: what each attaches to clusters, and its jobs. */
#include "api/access_history/access_history.h"
#include "api/access_list/access_list.h"
#include "api/advisor/advisor.h"
#include "api/alerts/alerts.h"
#include "api/archives/archives.h"
#include "api/billing/billing.h"
#include "api/clusters/clusters.h"
#include "api/data_federation/data_federation.h"
#include "api/database_users/database_users.h"
#include "api/edge/edge.h"
#include "api/encryption_at_rest/encryption_at_rest.h"
#include "api/events/events.h"
#include "api/exports/exports.h"
#include "api/federation/federation.h"
#include "api/index/index.h"
#include "api/integrations/integrations.h"
#include "api/kit/lifecycle.h"
#include "api/log_export/log_export.h"
#include "api/maintenance/maintenance.h"
#include "api/metrics/metrics.h"
#include "api/network/network.h"
#include "api/private_endpoints/private_endpoints.h"
#include "api/provider_access/provider_access.h"
#include "api/query_shapes/query_shapes.h"
#include "api/restores/restores.h"
#include "api/search/search.h"
#include "api/snapshots/snapshots.h"

const struct cluster_part *const cluster_parts[] = {&network_part,
                                                    &database_users_part,
                                                    &audit_log_part,
                                                    &maintenance_part,
                                                    &backups_part,
                                                    &index_part,
                                                    &advisor_part,
                                                    &query_shapes_part,
                                                    &metrics_part,
                                                    &access_history_part,
                                                    &private_endpoints_part,
                                                    &log_export_part,
                                                    &metering_part,
                                                    &encryption_at_rest_part,
                                                    &search_part,
                                                    &archives_part,
                                                    &data_federation_part};
const size_t cluster_part_count = sizeof cluster_parts / sizeof *cluster_parts;

const struct role_user *const role_users[] = {&export_buckets_role_user, &log_integrations_role_user,
                                              &push_export_role_user, &encryption_at_rest_role_user,
                                              &data_federation_role_user};
const size_t role_user_count = sizeof role_users / sizeof *role_users;

const struct snapshot_user *const snapshot_users[] = {&restores_snapshot_user, &exports_snapshot_user};
const size_t snapshot_user_count = sizeof snapshot_users / sizeof *snapshot_users;

static const struct job_kinds *const job_tables[] = {&cluster_jobs,
                                                     &database_users_jobs,
                                                     &lifecycle_jobs,
                                                     &network_jobs,
                                                     &access_list_jobs,
                                                     &events_jobs,
                                                     &maintenance_jobs,
                                                     &snapshots_jobs,
                                                     &restores_jobs,
                                                     &exports_jobs,
                                                     &index_jobs,
                                                     &alerts_jobs,
                                                     &metrics_jobs,
                                                     &provider_access_jobs,
                                                     &metering_jobs,
                                                     &invoices_jobs,
                                                     &encryption_at_rest_jobs,
                                                     &domains_jobs,
                                                     &advisor_jobs,
                                                     &query_shapes_jobs,
                                                     &search_jobs,
                                                     &archives_jobs,
                                                     &data_federation_jobs};

void families_setup(void)
{
	events_observe(alerts_on_event);
	alerts_integrations(integration_receiver);
}

const struct job_kind *families_jobs(struct arena *a, size_t *ret_count)
{
	size_t count = 0, made = 0, tables = sizeof job_tables / sizeof *job_tables;
	for (size_t i = 0; i < tables; i++)
		count += job_tables[i]->count;
	struct job_kind *all = arena_new_array(a, struct job_kind, count);
	for (size_t i = 0; i < tables; i++)
		for (size_t k = 0; k < job_tables[i]->count; k++)
			all[made++] = job_tables[i]->list[k];
	*ret_count = count;
	return all;
}
