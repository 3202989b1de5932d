/* What there is, in a table in memory that follows the store: organizations, projects, clusters, the lines of their
 * backups, and alerts that last. For questions over all projects of a caller, which would else read each of them.
 *
 * Only what has changed is read again. The table holds nothing that observers of databases tell: that is asked for the
 * few clusters of a page. */
#ifndef STEWARD_API_CONSOLE_ROSTER_H
#define STEWARD_API_CONSOLE_ROSTER_H

#include "base/id.h"
#include "call/call.h"

/* What follows is valid while the table is held. */
struct roster_line { /* of backups */
	int64_t taken_ms;
	bool wanted, overdue, unproven;
};

struct roster_alert {
	char cluster[72], type[72];
	bool open; /* not only tracked */
};

struct roster_lock { /* of an organization that is locked */
	char *reason, *way_out;
};

struct roster_org {
	char *name;
};

struct roster_cluster {
	char state[24], version[24], size[24], type[16], host[ID_LEN + 1];
	bool paused, missing, flex, backups;
	int64_t disk_gb, nodes;
	char *why; /* it is not as wanted; or NULL */
};

struct roster_item {
	char id[ID_LEN + 1], parent[ID_LEN + 1]; /* parent: the project; of a project its organization */
	char *name;
	int64_t rev, created_ms;
	void *facts; /* one of the above, by kind; NULL of projects */
};

enum roster_kind {
	ROSTER_ORG,
	ROSTER_PROJECT,
	ROSTER_CLUSTER,
	ROSTER_FLEX,
	ROSTER_LINE,
	ROSTER_ALERT,
	ROSTER_LOCK,
	ROSTER_KINDS
};

/* In a reading call: brings the table up to date and holds it until roster_release(). The call's snapshot is begun
 * anew. Not for a loop. On failure nothing is held. */
must_check int roster_hold(struct call *c);
void roster_release(void);

/* Fills the table in the background. Where no thread can be had, the first call fills it. Stop it before the store is
 * closed. */
void roster_start(struct service *s);
void roster_stop(void);
void roster_teardown(void);

/* Sorted by id; and the one of an id, or NULL. */
const struct roster_item *roster_all(enum roster_kind kind, size_t *ret_count);
const struct roster_item *roster_find(enum roster_kind kind, const char *id);
/* Alerts that last of a cluster of that name in a project. *ret_first: one that is open, or NULL. */
size_t roster_alerts(const char *group_id, const char *cluster, const struct roster_item **ret_first);

#endif
