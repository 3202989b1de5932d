/* How far slow work has come, and whether it shall end. */
#include "engine/postgres/model/progress.h"

void pg_tell(struct engine_progress *p, unsigned percent, const char *what)
{
	if (p && p->tell)
		p->tell(p->ctx, percent, what);
}

bool pg_is_stopped(const struct engine_progress *p)
{
	return p && p->stop && *p->stop;
}
