/* Time that only goes forward, and waiting for it. */
#include "engine/postgres/model/wait.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

int64_t pg_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

void pg_sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}
