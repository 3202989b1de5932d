/* Time that only goes forward, and waiting for it. */
#ifndef STEWARD_ENGINE_POSTGRES_MODEL_WAIT_H
#define STEWARD_ENGINE_POSTGRES_MODEL_WAIT_H

#include "base/str.h"

int64_t pg_mono_ms(void);
void pg_sleep_ms(int ms);

#endif
