/* What the files of the advisor share: what calls ask about, and the bound on how many ask at a time. */
#ifndef STEWARD_API_ADVISOR_VIEW_H
#define STEWARD_API_ADVISOR_VIEW_H

#include "api/advisor/advisor.h"
#include "base/buf.h"

struct period {
	int64_t from_ms, to_ms;
};

/* From `since`, and `duration` or `until`; the last day where nothing is said. Negative with the problem written. */
must_check int advice_period(struct call *c, struct period *ret_period);
/* The items of a query parameter that is a list. */
size_t advice_list(struct call *c, const char *name, struct str **ret_list);
struct engine_namespaces advice_namespaces(struct call *c);
/* A whole number of the query, from 0 to `most`; `otherwise` where there is none. Negative with the problem written. */
must_check int advice_number(struct call *c, const char *name, int64_t otherwise, int64_t most, int64_t *ret_number);

/* Tells in X-Steward-Missing what the host lacks for an answer; NULL: nothing. */
void advice_missing(struct call *c, const char *missing);
/* A place among those who may ask servers at a time; the call is refused when there is none. */
must_check int advice_enter(struct call *c);
void advice_leave(struct call *c);

/* The path's cluster, on this host, with its nodes. 1: its host answers the call instead. */
must_check int advice_cluster(struct call *c, struct cluster *ret_cluster, struct cluster_status *ret_status);
/* The call's answer when the engine has returned negative. */
int advice_fail(struct call *c, int result);

void advice_put_real(struct buf *b, const char *field, double value);
/* Writes the answer of a cluster's advice, a document that has its content and a status in it; frees the content. */
void advice_answer(struct call *c, struct buf *content);

#endif
