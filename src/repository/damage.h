/* Notes of chunks that did not open. */
#ifndef STEWARD_REPOSITORY_DAMAGE_H
#define STEWARD_REPOSITORY_DAMAGE_H

#include "repository/common.h"
#include "repository/format.h"

void damage_note(struct repository *r, const unsigned char pack[PACK_ID], const uint32_t *numbers, size_t count);
void damage_forget(struct repository *r, const unsigned char pack[PACK_ID]);
/* Into the index. */
must_check int damage_load(struct repository *r);

#endif
