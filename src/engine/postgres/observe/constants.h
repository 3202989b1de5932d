/* Texts of statements without what clients have put into them. */
#ifndef STEWARD_ENGINE_POSTGRES_OBSERVE_CONSTANTS_H
#define STEWARD_ENGINE_POSTGRES_OBSERVE_CONSTANTS_H

#include "base/arena.h"

/* The text with a parameter in the place of each constant. One that has none is as before: places of columns in ORDER
 * BY and GROUP BY, and what is within a type's parentheses, are no constants. Where it cannot be known how far a
 * constant goes, the rest of the text is one. */
const char *pg_constants_hide(struct arena *a, const char *text);

#endif
