/* Identifiers: no two alike, not even those of a process and its child. */
#include "check.h"

#include "base/id.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIME_DIGITS 10 /* the rest of an id is random */

static void test_forked(void)
{
	struct id before = id_new(), theirs = {0};
	int ends[2];
	CHECK(id_is_valid(id_str(&before)) && pipe(ends) == 0);
	pid_t child = fork();
	if (child == 0) {
		struct id id = id_new();
		_exit(write(ends[1], id.z, sizeof id.z) == (ssize_t)sizeof id.z ? 0 : 1);
	}
	struct id ours = id_new();
	int status;
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(ends[0], theirs.z, sizeof theirs.z) == (ssize_t)sizeof theirs.z);
	CHECK(strcmp(ours.z + TIME_DIGITS, theirs.z + TIME_DIGITS) != 0);
	CHECK(strcmp(ours.z + TIME_DIGITS, before.z + TIME_DIGITS) != 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	test_forked();
	return CHECK_DONE();
}
