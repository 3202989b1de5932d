/* How fast a repository takes files, takes them again, checks them and gives them back, in MB of files a second.
 *
 *   bench_repository DIRECTORY FILE... [--parity N] [--threads N]
 *
 * DIRECTORY must be empty; it stays for a look at it. The files may be a database's. */
#include "repository/repository.h"
#include "base/arena.h"
#include "base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct put {
	struct repo_writer *w;
	char **files;
	int count;
	_Atomic int next;
};

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, result, repository_why());
	exit(1);
}

static void *put_run(void *arg)
{
	struct put *p = arg;
	for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->count;) {
		char path[64];
		int fd = open(p->files[i], O_RDONLY | O_CLOEXEC);
		snprintf(path, sizeof path, "file-%d", i);
		struct repo_file f = {.path = path, .mode = 0600};
		must(fd < 0 ? -1 : repo_write_file(p->w, &f, fd, UINT64_MAX), p->files[i]);
		close(fd);
	}
	return NULL;
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

struct lap {
	int64_t at_us;
	double cpu;
};

static struct lap lap_begin(void)
{
	return (struct lap){clock_mono_us(), cpu_seconds()};
}

static void lap_end(const struct lap *l, const char *what, uint64_t bytes, uint64_t stored)
{
	double wall = (double)(clock_mono_us() - l->at_us) / 1e6, cpu = cpu_seconds() - l->cpu,
	       mb = (double)bytes / 1e6;
	printf("%-8s %7.2f s wall %7.2f s CPU %8.0f MB/s of CPU", what, wall, cpu, mb / cpu);
	if (stored)
		printf(" %10.1f MB stored of %.1f", (double)stored / 1e6, mb);
	putchar('\n');
}

static uint64_t put_all(struct repository *r, const char *name, char **files, int count, unsigned threads)
{
	struct put p = {.files = files, .count = count};
	struct repo_amount amount;
	pthread_t ids[64];
	struct lap l = lap_begin();
	must(repo_write_begin(r, &p.w), "begin");
	for (unsigned i = 1; i < threads; i++)
		must(-pthread_create(&ids[i], NULL, put_run, &p), "thread");
	put_run(&p);
	for (unsigned i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	must(repo_write_commit(p.w, "cluster", name, "set", NULL, &amount), "commit");
	lap_end(&l, name, amount.bytes, amount.stored);
	return amount.bytes;
}

static int nowhere(void *ctx, const void *bytes, size_t n)
{
	(void)bytes;
	*(uint64_t *)ctx += n;
	return 0;
}

static void read_all(struct repository *r, const char *directory, uint64_t bytes, unsigned threads)
{
	struct repo_manifest *m;
	struct repo_check seen;
	uint64_t tar = 0;
	char to[4096];
	must(repo_manifest_open(r, "cluster", "first", "set", &m), "open");
	struct lap l = lap_begin();
	must(repo_verify(m, threads, NULL), "verify");
	lap_end(&l, "verify", bytes, 0);
	snprintf(to, sizeof to, "%s/restored", directory);
	must(mkdir(to, 0700), "mkdir");
	l = lap_begin();
	must(repo_restore(m, to, getuid(), getgid(), threads, NULL), "restore");
	lap_end(&l, "restore", bytes, 0);
	l = lap_begin();
	must(repo_tar(m, NULL, 0, nowhere, &tar), "tar");
	lap_end(&l, "tar", tar, 0);
	l = lap_begin();
	must(repo_check(r, 1, NULL, NULL, &seen), "check");
	lap_end(&l, "check", bytes, 0);
	repo_manifest_close(m);
}

int main(int argc, char **argv)
{
	unsigned threads = 2, parity = 8;
	char url[4096];
	for (; argc > 2 && strncmp(argv[argc - 2], "--", 2) == 0; argc -= 2)
		*(strcmp(argv[argc - 2], "--parity") == 0 ? &parity : &threads) =
		        (unsigned)strtoul(argv[argc - 1], NULL, 10);
	if (argc < 3 || threads < 1 || threads > 64)
		return fprintf(stderr, "usage: bench_repository DIRECTORY FILE... [--parity N] [--threads N]\n"), 2;
	json_setup();
	snprintf(url, sizeof url, "%s/store", argv[1]);
	struct repositories_options o = {.fallback = url, .parity = parity};
	struct repositories *all;
	struct repository *r;
	must(repositories_open(&o, &all), "open");
	must(repository_get(all, "REGION", "project", &r), "get");
	uint64_t bytes = put_all(r, "first", argv + 2, argc - 2, threads);
	put_all(r, "second", argv + 2, argc - 2, threads);
	read_all(r, argv[1], bytes, threads);
	repository_put(r);
	repositories_close(all);
	return 0;
}
