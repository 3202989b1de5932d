/* The engines by name. */
#include "engine/engine.h"

/* 1 once engine_postgres is part of the build. */
#ifndef ENGINE_HAS_POSTGRES
#define ENGINE_HAS_POSTGRES 0
#endif

static const struct engine_ops *const engines[] = {
        &engine_simulated,
#if ENGINE_HAS_POSTGRES
        &engine_postgres,
#endif
};

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}

const struct engine_ops *engine_default(bool real_clock, struct arena *a, const char **ret_why)
{
	const char *why = "this program was built without libpq";
#if ENGINE_HAS_POSTGRES
	if (real_clock && postgres_can_run(a, &why) == 0) {
		*ret_why = why;
		return &engine_postgres;
	}
	if (!real_clock)
		why = "databases do not follow a virtual clock";
#endif
	*ret_why = why;
	return &engine_simulated;
}
