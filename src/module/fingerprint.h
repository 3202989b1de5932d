/* The shape of a statement: libpg_query's fingerprint of its text, equal for literals, parameters and lists of any
 * length. libpg_query is PostgreSQL's parser with its own copies of PostgreSQL's functions, so it is linked apart, and
 * only this function is seen (src/module/meson.build). */
#ifndef STEWARD_MODULE_FINGERPRINT_H
#define STEWARD_MODULE_FINGERPRINT_H

#include <stdint.h>

/* Of one statement; 0: it cannot be read. Raises no error. */
uint64_t steward_fingerprint(const char *statement);

#endif
