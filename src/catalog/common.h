/* The query parameters that many operations share, so that no row has to list them. */
#ifndef STEWARD_CATALOG_COMMON_H
#define STEWARD_CATALOG_COMMON_H

#include "catalog/catalog.h"

enum common { COMMON_ENVELOPE, COMMON_PRETTY, COMMON_PAGE, COMMON_PAGE_SIZE, COMMON_INCLUDE_COUNT, COMMON_COUNT };

#define PAGE_SIZE_DEFAULT 100
#define PAGE_SIZE_MAX 500

/* By enum common. */
extern const struct param common_params[];

/* envelope and pretty belong to every operation, the others to lists. */
bool common_applies(enum common which, const struct op *op);

#endif
