/* Downloads of snapshots. */
#ifndef STEWARD_API_RESTORES_DOWNLOAD_H
#define STEWARD_API_RESTORES_DOWNLOAD_H

#include "api/snapshots/snapshots.h"

/* GET DOWNLOAD_PATH<token>, outside the catalog: the link is all that it needs, for some hours. */
#define DOWNLOAD_PATH "/downloads/"
#define DOWNLOAD_HOURS 4

struct request;
struct restore;

/* The caller's link of one set of a restore job's snapshot, until the job expires. It gives no more than the caller
 * has, whoever asked for the job. */
must_check int download_link(struct call *c, const struct restore *r, size_t set, struct str *ret_link);
/* Whether the caller, who sees the job, may have its links: who could ask for one. */
bool download_is_shown(const struct call *c, const struct restore *r);
void download_serve(struct service *s, struct request *r);

#endif
