/* What all calls about online archives ask before they do anything. Each answers the call where it is negative. */
#ifndef STEWARD_API_ARCHIVES_CALLS_H
#define STEWARD_API_ARCHIVES_CALLS_H

#include "api/archives/archive.h"

/* 501: the service lacks what it needs for archives. */
must_check int archives_refuse_unable(struct call *c);
/* 409: of the cluster nothing can be archived now. */
must_check int archives_refuse_state(struct call *c, const struct cluster *cluster);
/* 409: its databases do not answer. */
int archives_refuse_silent(struct call *c, const struct cluster *cluster);
/* Where the files of a new archive lie, which is shown in it: what the caller has asked for, or that of the cluster. */
struct str archives_region_choose(const struct cluster *cluster, json_t *document);

#endif
