/* Lists with ?q= and ?sort=: found.c. */
#ifndef STEWARD_API_KIT_FOUND_H
#define STEWARD_API_KIT_FOUND_H

#include "api/kit/verbs.h"

/* Whether the call asks for either. */
bool list_is_searched(const struct call *c);
/* As list_segments(): the page of what was found. */
must_check int list_found(struct call *c, const struct segment *segments, size_t count, segment_writer *write,
                          segment_filter *takes, const struct resource *r);

#endif
