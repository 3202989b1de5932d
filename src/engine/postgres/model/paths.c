/* Where things lie below DIR/engine: see model.h. */
#include "engine/postgres/model/paths.h"

#include <stdarg.h>
#include <stdio.h>

/* A path that does not fit becomes empty, which no call accepts. */
void pg_path_set(char ret_path[PG_PATH], const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(ret_path, PG_PATH, format, args);
	va_end(args);
	if (n < 0 || n >= PG_PATH)
		ret_path[0] = 0;
}

void pg_node_path(const struct pg_cluster *c, const struct pg_node *n, const char *below, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/%s/%s%s%s", c->engine->dir, c->id, n->want.name, *below ? "/" : "", below);
}

void pg_node_run_dir(const struct pg_cluster *c, const struct pg_node *n, char ret_path[PG_PATH])
{
	pg_path_set(ret_path, "%s/run/%u", c->engine->dir, n->slot);
}
