/* A disk that does not take what is flushed, for LD_PRELOAD: fsync and fdatasync fail while the file that FLUSH_FAILS
 * names is there. */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failing(void)
{
	const char *file = getenv("FLUSH_FAILS");
	if (!file || access(file, F_OK) < 0)
		return 0;
	errno = EIO;
	return 1;
}

int fsync(int fd)
{
	return failing() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	return failing() ? -1 : (int)syscall(SYS_fdatasync, fd);
}
