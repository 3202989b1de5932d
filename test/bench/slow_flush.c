/* A disk whose flushes take longer, for LD_PRELOAD: FLUSH_MICROS are added to each fsync and fdatasync. For machines
 * whose disk acknowledges a flush at once, where sharing one cannot show. */
#include <dlfcn.h>
#include <pthread.h>

int fsync(int fd);
int fdatasync(int fd);

static int (*real_fsync)(int), (*real_fdatasync)(int);
static struct timespec extra;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void setup(void)
{
	const char *text = getenv("FLUSH_MICROS");
	long micros = text ? strtol(text, NULL, 10) : 0;
	extra = (struct timespec){micros / 1000000, micros % 1000000 * 1000};
	/* POSIX's way around ISO C's ban on turning an object pointer into a function pointer. */
	*(void **)&real_fsync = dlsym(RTLD_NEXT, "fsync");
	*(void **)&real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
}

static int slowly(int r)
{
	struct timespec left = extra;
	while (nanosleep(&left, &left) < 0)
		continue;
	return r;
}

int fsync(int fd)
{
	pthread_once(&once, setup);
	return slowly(real_fsync(fd));
}

int fdatasync(int fd)
{
	pthread_once(&once, setup);
	return slowly(real_fdatasync(fd));
}
