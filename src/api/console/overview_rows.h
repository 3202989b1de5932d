/* The parts of the overview, for overview*.c alone: clusters are found in the table, those of the page are looked at,
 * and the answer is written. */
#ifndef STEWARD_API_CONSOLE_OVERVIEW_ROWS_H
#define STEWARD_API_CONSOLE_OVERVIEW_ROWS_H

#include "api/clusters/clusters.h"
#include "api/console/roster.h"

#define NEEDS_MAX 12 /* of one cluster */
#define WHY_MAX 600  /* bytes of a reason that is shown */

/* What needs attention. The most urgent first. */
enum need {
	NEED_DATA_MISSING,
	NEED_FAILED,
	NEED_NO_PRIMARY,
	NEED_DISK_FULL,
	NEED_NODE_DOWN,
	NEED_ACCESS,
	NEED_ALERT,
	NEED_BACKUP_OVERDUE,
	NEED_DISK_NEARLY_FULL,
	NEED_STUCK,
	NEED_BACKUP_UNPROVEN,
	NEED_BEHIND,
	NEED_KINDS
};

struct needed {
	enum need what;
	struct str why; /* more than the usual text; or empty */
	struct str id;  /* of the alert */
};

/* One cluster of the page. What the table said is copied. */
struct row {
	struct str id, name, group_id, group_name, org_id, org_name;
	struct roster_cluster facts;
	struct roster_line line;
	bool has_line;
	struct needed list[NEEDS_MAX];
	size_t count;
	struct cluster_status status;
	struct str progress;
	double lag_s; /* the greatest of its standbys; NaN: not known */
};

struct found; /* a cluster of the table, while that is held */
typedef int overview_ordering(const struct found *a, const struct found *b);

struct looking {
	struct call *call;
	struct arena *arena;
	const struct op *clusters, *org_events, *group_events; /* who may call these sees clusters and events */
	struct str org_id, group_id, query;
	bool only_needing, backwards;
	overview_ordering *order;
	struct found *found;
	size_t count, room, needing;
	struct row *page, *urgent;
	size_t page_count, urgent_count;
	json_t *locks;
};

static inline void need_add(struct row *r, enum need what, struct str why, struct str id)
{
	if (r->count < NEEDS_MAX)
		r->list[r->count++] = (struct needed){what, why, id};
}

/* overview_find.c: reads the parameter `sort`; then the rows of the page, those that are most urgent, and how many
 * there are, from the table. */
must_check int overview_order(struct looking *l);
must_check int overview_find(struct looking *l);
/* overview_look.c: nodes, disks, work under way and lags of the page's clusters. */
must_check int overview_look(struct looking *l);
/* overview_write.c: the answer, with what happened last. */
must_check int overview_write(struct looking *l);

#endif
