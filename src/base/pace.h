/* A rate that tenants share: who moves bytes takes them before, and waits until it is their turn. Tenants take
 * turns, however many threads each of them has waiting. */
#ifndef STEWARD_BASE_PACE_H
#define STEWARD_BASE_PACE_H

#include "base/str.h"

struct pace;

/* Bytes in a second; 0: there is no bound. */
struct pace *pace_new(uint64_t rate);
void pace_free(struct pace *p); /* nobody may wait; accepts NULL */
/* Comes back when the tenant may move that many more. From any thread; accepts NULL. */
void pace_take(struct pace *p, struct str tenant, size_t bytes);

#endif
