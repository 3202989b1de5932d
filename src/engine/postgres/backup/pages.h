/* Whether a block of a relation is as it was written. */
#ifndef STEWARD_ENGINE_POSTGRES_BACKUP_PAGES_H
#define STEWARD_ENGINE_POSTGRES_BACKUP_PAGES_H

#include "base/str.h"

/* Whether a block of a relation is as it was written: not used yet, or newer than `lsn`, so that its log brings it
 * again, or with the checksum that it should have. */
bool pg_page_is_sound(const void *page, uint32_t block, uint64_t lsn);

#endif
