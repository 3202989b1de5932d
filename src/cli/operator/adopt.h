/* `steward repository unknown|adopt|rebuild`: what lies in the repositories and is not in the store's catalogue. */
#ifndef STEWARD_CLI_OPERATOR_ADOPT_H
#define STEWARD_CLI_OPERATOR_ADOPT_H

#include "repository/repository.h"
#include "store/store.h"

/* A repository: of a project, in a region. */
struct place {
	const char *region, *project;
};

enum adopt_how {
	ADOPT_LIST,      /* names them */
	ADOPT_KNOWN,     /* brings those of known clusters into the catalogue */
	ADOPT_EVERYTHING /* makes projects and clusters' lines too */
};

/* `org_id`: which organization gets the projects; NULL: the first. The exit code. */
int adopt_run(struct arena *a, struct store *store, struct repositories *all, const struct place *places, size_t count,
              enum adopt_how how, const char *org_id);

#endif
