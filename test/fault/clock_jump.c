/* A host's clock that jumps, for /etc/ld.so.preload of the service and its databases: the time of day is as far off as the file
 * CLOCK_JUMP says, in microseconds of 8 bytes. What measures how long something takes does not jump, as on a host. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset;
static int (*real_gettime)(clockid_t clock, struct timespec *t);

__attribute__((constructor)) static void begin(void)
{
	int fd = open(CLOCK_JUMP, O_RDONLY | O_CLOEXEC);
	void *at = fd >= 0 ? mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (fd >= 0)
		close(fd);
	offset = at == MAP_FAILED ? NULL : at;
	real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!real_gettime)
		begin();
	int result = real_gettime(clock, t);
	if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t us = (int64_t)t->tv_sec * 1000000 + *offset;
		t->tv_sec = us / 1000000;
		t->tv_nsec += us % 1000000 * 1000;
		if (t->tv_nsec >= 1000000000) {
			t->tv_sec++;
			t->tv_nsec -= 1000000000;
		}
	}
	return result;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec t;
	(void)zone;
	int result = clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return result;
}

time_t time(time_t *ret)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}
