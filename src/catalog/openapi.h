/* The OpenAPI document, made from the same tables that the router and the checks use. */
#ifndef STEWARD_CATALOG_OPENAPI_H
#define STEWARD_CATALOG_OPENAPI_H

#include "base/buf.h"
#include "base/str.h"

/* Appends OpenAPI 3.0.3 as JSON for a version date: each operation in its newest version not after that date;
 * operations that did not exist yet are left out. The document is the same for every caller and about a megabyte, so
 * cache it. */
void openapi_write(struct buf *b, struct str date, const char *base_url);

#endif
