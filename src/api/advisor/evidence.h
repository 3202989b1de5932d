/* What suggested indexes rest on, kept over days. */
#ifndef STEWARD_API_ADVISOR_EVIDENCE_H
#define STEWARD_API_ADVISOR_EVIDENCE_H

#include "api/advisor/view.h"

/* In a read: what was kept of the cluster's statements and what its servers tell now, of the days of the period;
 * NULL: of all days. */
must_check int evidence_statements(struct tx *tx, struct arena *a, struct str cluster_id,
                                   const struct engine_statements *live, const struct period *period,
                                   struct engine_statements *ret_statements);
/* In the write that takes the cluster away. */
must_check int evidence_removed(struct tx *tx, struct arena *a, const struct cluster *cluster);

#endif
