/* The words for what went wrong. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_WHY_H
#define STEWARD_ENGINE_POSTGRES_MODEL_WHY_H

#include "base/str.h"

/* Text that lives until the thread's next one. */
void pg_why_set(const char **ret_why, const char *format, ...) printf_like(2, 3);
const char *pg_why_last(void);

#endif
