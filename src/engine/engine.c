/* The engines by name, and which to take. */
#include "engine/engine.h"
#include "engine/postgres/postgres.h"
#include "engine/simulated/simulated.h"

#include <unistd.h>

/* The best first; the last can run everywhere. */
static const struct engine_ops *const engines[] = {
#if ENGINE_HAS_POSTGRES
        &engine_postgres,
#endif
        &engine_simulated,
};
#define ENGINES (sizeof engines / sizeof *engines)

const struct engine_ops *engine_find(const char *name)
{
	for (size_t i = 0; i < ENGINES; i++)
		if (strcmp(engines[i]->name, name) == 0)
			return engines[i];
	return NULL;
}

const struct engine_ops *engine_default(bool real_clock, struct arena *a, const char **ret_why)
{
	size_t i = 0;
	*ret_why = "this program was built without libpq";
	while (i + 1 < ENGINES && engines[i]->core->can_run(real_clock, a, ret_why) < 0)
		i++;
	return engines[i];
}

int engines_check_log(struct repository *r, void (*fault)(void *ctx, const char *words), void *ctx,
                      struct repo_check *seen)
{
	int result = 0;
	for (size_t i = 0; i < ENGINES && result == 0; i++)
		if (engines[i]->backup)
			result = engines[i]->backup->check_log(r, fault, ctx, seen);
	return result;
}

const char *engine_of_data(const char *data_dir, struct arena *a)
{
	return access(arena_printf(a, "%s/engine", data_dir).p, F_OK) == 0 ? "postgres" : "simulated";
}
