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

const char *engine_default(void)
{
	return "simulated";
}
