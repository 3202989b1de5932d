/* The OpenAPI document, made from the same tables that the router and the checks use. */
#ifndef STEWARD_CATALOG_OPENAPI_H
#define STEWARD_CATALOG_OPENAPI_H

#include "base/buf.h"
#include "base/str.h"

/* Appends OpenAPI 3.0.3 as JSON for a version date: each operation in the newest version not after it, operations that
 * did not exist yet left out. It is the same for every caller and about a megabyte: worth keeping. */
void openapi_write(struct buf *b, struct str date, const char *base_url);

#endif
