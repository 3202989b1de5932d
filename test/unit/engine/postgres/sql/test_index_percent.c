/* How far the building of an index is: over the phases as PostgreSQL passes through them, it never falls. */
#include "check.h"
#include "engine/postgres/sql/index_run.h"

int main(void)
{
	static const char *const phases[] = {"initializing",
	                                     "waiting for writers before build",
	                                     "building index: initializing",
	                                     "building index: scanning table",
	                                     "building index: sorting live tuples",
	                                     "building index: sorting dead tuples",
	                                     "building index: loading tuples in tree",
	                                     "waiting for writers before validation",
	                                     "index validation: scanning index",
	                                     "index validation: sorting tuples",
	                                     "index validation: scanning table",
	                                     "waiting for old snapshots"};
	unsigned reached = 0;
	const char *what = NULL;
	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
		for (unsigned done = 0; done <= 110; done += 5) {
			unsigned percent = pg_index_percent(phases[i], done, &what);
			CHECK(percent >= reached && percent <= 99 && what);
			reached = percent;
		}
	CHECK(reached == 95);
	CHECK(pg_index_percent("building index", 50, &what) == 22); /* GIN has no steps within */
	CHECK(pg_index_percent("something new", 50, &what) == 0);
	return CHECK_DONE();
}
