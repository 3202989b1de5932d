/* What the ways through identity providers share: where they begin, their cookies, and pages that go on by
 * themselves. */
#ifndef STEWARD_API_SIGN_IN_FEDERATED_H
#define STEWARD_API_SIGN_IN_FEDERATED_H

#include "api/sign_in/visit.h"

/* A field of a form or a query parameter, decoded; STR_NONE where it is not there once, in order and not too long. */
struct str federated_field(const struct visit *v, struct str form, const char *name, size_t most);
struct str federated_parameter(const struct visit *v, const char *name, size_t most);
/* The page of the console that "to" names; whatever else it names: the first page. */
struct str federated_target(const struct visit *v);
/* A page of another site could begin a sign-in by which its visitor ends up in somebody else's account. */
bool federated_is_from_here(const struct request *r);

/* What is between the two ways: a ticket, in a cookie of this browser. */
void federated_cookie(struct visit *v, const char *name, struct str ticket, int seconds);

/* Answers; 0. The page goes on by itself to `to`, and takes the cookie away, where one is named. Faults lead to the
 * sign-in page; nothing further is done. */
int federated_redirect(struct visit *v, struct str url);
int federated_redirect_fault(struct visit *v, const char *fault);
void federated_page(struct visit *v, const char *cookie, struct str to);
int federated_page_fault(struct visit *v, const char *cookie, const char *fault);
/* For visit.ended: a refusal becomes such a page; true then. What the store refuses is told as everywhere. */
bool federated_refused(struct visit *v, bool kept, const char *cookie, const char *fault);

#endif
