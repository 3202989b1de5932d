/* Query strings: application/x-www-form-urlencoded. */
#ifndef STEWARD_CALL_QUERY_H
#define STEWARD_CALL_QUERY_H

#include "base/arena.h"
#include "base/str.h"

#define QUERY_PARAMS_MAX 100

/* The next name and value, still encoded; empty pieces are skipped. False at the end. */
bool query_next(struct str *rest, struct str *ret_name, struct str *ret_value);

/* Decodes %xx and '+'. False when a %xx is broken, or the result is not UTF-8 or holds a NUL. Borrows the bytes when
 * nothing is encoded. */
must_check bool query_decode(struct str encoded, struct arena *a, struct str *ret_text);

/* Whether envelope=true and pretty=true are asked for. Called before any gate, because errors are wrapped too; so it
 * ignores faults in the query. */
void query_peek(struct str query, bool *ret_envelope, bool *ret_pretty);

#endif
