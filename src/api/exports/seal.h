/* A stream of bytes, encrypted as it comes. */
#ifndef STEWARD_API_EXPORTS_SEAL_H
#define STEWARD_API_EXPORTS_SEAL_H

#include "base/str.h"

struct data_key;
struct export_seal;

typedef int export_seal_out(void *ctx, const void *bytes, size_t n);
must_check int export_seal_begin(const struct data_key *key, struct str group, export_seal_out *out, void *ctx,
                                 struct export_seal **ret_seal);
must_check int export_seal_write(struct export_seal *s, const void *bytes, size_t n);
must_check int export_seal_end(struct export_seal *s); /* the last of it goes out */
void export_seal_free(struct export_seal *s);          /* accepts NULL */

#endif
