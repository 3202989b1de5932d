/* Results of a server that is not what it should be: a superuser can put one of their own behind a node's socket. */
#include "check.h"
#include "engine/postgres/sql/sql.h"

#include <stdlib.h>

int main(void)
{
	PGresult *rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc column = {.name = (char[]){"only"}};
	/* No row, no column. */
	CHECK(pg_value(rows, 0, 0) && !*pg_value(rows, 0, 0));
	CHECK(PQsetResultAttrs(rows, 1, &column) && PQsetvalue(rows, 0, 0, (char[]){"7"}, 1));
	/* One row of one column, where three were asked for. */
	CHECK(strtoll(pg_value(rows, 0, 0), NULL, 10) == 7);
	CHECK(strtoll(pg_value(rows, 0, 2), NULL, 10) == 0 && strlen(pg_value(rows, 1, 0)) == 0);
	CHECK(!*pg_value(rows, -1, 0) && !*pg_value(rows, 0, -1));
	PQclear(rows);
	return CHECK_DONE();
}
