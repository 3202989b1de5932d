/* Writes schemas as OpenAPI 3.0. Only openapi.c includes this. */
#ifndef STEWARD_CATALOG_OPENAPI_SCHEMA_H
#define STEWARD_CATALOG_OPENAPI_SCHEMA_H

#include "base/buf.h"
#include "catalog/schema.h"

/* Which named schemas the document needs. */
struct schema_marks;
struct schema_marks *openapi_marks_new(void);
void openapi_marks_free(struct schema_marks *m);
/* Marks a named schema, but not what it refers to. False: it was marked already. */
bool openapi_mark_one(struct schema_marks *m, const struct schema *s);
/* Marks a schema and everything that it refers to. Accepts NULL. */
void openapi_mark(struct schema_marks *m, const struct schema *s);

/* Writes a schema where it is used: a reference when it has a name. */
void openapi_schema(struct buf *b, const struct schema *s);
/* Writes the marked schemas as members of components.schemas. */
void openapi_components(struct buf *b, const struct schema_marks *m);

#endif
