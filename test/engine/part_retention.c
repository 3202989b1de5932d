/* Logs do not grow for ever. */
#include "harness.h"

#include "engine/postgres/host/retention.h"

void part_retention(void)
{
	char path[160], command[600];
	snprintf(path, sizeof path, "%s/logs", dir);
	snprintf(command, sizeof command,
	         "mkdir %s && cd %s && for i in 1 2 3 4 5 6 7 8; do head -c 1000 /dev/zero > "
	         "postgresql-2026010$i-000000.json; "
	         "done; touch other start.log && touch -d '40 days ago' postgresql-20260104-000000.json",
	         path, path);
	CHECK(system(command) == 0);
	pg_log_tidy(path, 1 << 20);
	snprintf(command, sizeof command,
	         "cd %s && test $(ls | wc -l) = 9 && test ! -e postgresql-20260104-000000.json", path);
	CHECK(system(command) == 0);
	pg_log_tidy(path, 4500);
	snprintf(command, sizeof command,
	         "cd %s && test $(ls | wc -l) = 6 && test -e postgresql-20260105-000000.json && test -e other", path);
	CHECK(system(command) == 0);
	pg_log_tidy(path, 0);
	snprintf(command, sizeof command, "cd %s && test $(ls | wc -l) = 5 && rm -r %s", path, path);
	CHECK(system(command) == 0);
}
