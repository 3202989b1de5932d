/* Of the tests of object stores: sources and sinks of known bytes, a folder of their own, and the servers. */
#ifndef STEWARD_TEST_OBJECTS_FIXTURE_H
#define STEWARD_TEST_OBJECTS_FIXTURE_H

#include "check.h"
#include "objects/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_ID "TESTKEYID"
#define SECRET "test/secret+with=characters"
#define AZURE_KEY "YSBrZXkgdGhhdCBpcyBzaXh0eS1mb3VyIGJ5dGVzIGxvbmcsIGFzIHRob3NlIG9mIGFjY291bnRzIGFyZS4hIQ=="
#define PART 65536

#define unused_here __attribute__((unused))

/* Bytes that differ by position and seed. */
static inline char byte_at(unsigned seed, uint64_t i)
{
	return (char)(((i + seed) * UINT64_C(2654435761)) >> 13 & 0xff);
}

struct source {
	unsigned seed;
	uint64_t size, at;
	uint64_t fail_at; /* 0: never */
	size_t most;      /* bytes at once; 0: as many as are asked for */
};

static unused_here ssize_t source_read(void *ctx, void *buf, size_t n)
{
	struct source *s = ctx;
	if (s->fail_at && s->at >= s->fail_at)
		return -ENOTRECOVERABLE;
	if (s->most && n > s->most)
		n = s->most;
	if (n > s->size - s->at)
		n = (size_t)(s->size - s->at);
	for (size_t i = 0; i < n; i++)
		((char *)buf)[i] = byte_at(s->seed, s->at + i);
	s->at += n;
	return (ssize_t)n;
}

struct sink {
	unsigned seed;
	uint64_t from, at, wrong;
	uint64_t end_at; /* 0: never */
};

static unused_here int sink_write(void *ctx, const void *bytes, size_t n)
{
	struct sink *s = ctx;
	if (s->end_at && s->at + n >= s->end_at)
		return -ECANCELED;
	for (size_t i = 0; i < n; i++)
		s->wrong += ((const char *)bytes)[i] != byte_at(s->seed, s->from + s->at + i);
	s->at += n;
	return 0;
}

static unused_here int put_of(struct objects *o, const char *name, unsigned seed, uint64_t size)
{
	struct source s = {.seed = seed, .size = size};
	return objects_put(o, name, source_read, &s);
}

/* Whether these bytes of the object, and no others, come. */
static unused_here bool has_range(struct objects *o, const char *name, unsigned seed, uint64_t offset, uint64_t length,
                                  uint64_t wanted)
{
	struct sink s = {.seed = seed, .from = offset};
	int r = objects_get(o, name, offset, length, sink_write, &s);
	if (r < 0)
		fprintf(stderr, "%s: %d %s\n", name, r, objects_why());
	return r == 0 && s.at == wanted && s.wrong == 0;
}

static unused_here bool has_object(struct objects *o, const char *name, unsigned seed, uint64_t size)
{
	uint64_t told = 0;
	return objects_size(o, name, &told) == 0 && told == size && has_range(o, name, seed, 0, 0, size);
}

static unused_here bool has_none(struct objects *o, const char *name)
{
	struct sink s = {.seed = 0};
	uint64_t size;
	return objects_get(o, name, 0, 0, sink_write, &s) == -ENOENT && objects_size(o, name, &size) == -ENOENT &&
	       s.at == 0;
}

static unused_here int count_visit(void *ctx, const struct object_info *info)
{
	++*(unsigned *)ctx;
	return 0;
}

/* Objects in a store; negative: the list failed. */
static unused_here int count_of(struct objects *o, const char *prefix)
{
	unsigned count = 0;
	int r = objects_list(o, prefix, count_visit, &count);
	return r < 0 ? r : (int)count;
}

static char folder[64];

static unused_here void folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/steward-objects-XXXXXX");
	if (!mkdtemp(folder)) {
		perror("mkdtemp");
		exit(1);
	}
}

static unused_here void folder_remove(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", folder, (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

/* The server ends with its standard input, so also when the test dies. */
struct server {
	pid_t pid;
	FILE *say, *hear;
	char endpoint[64];
};

static unused_here struct server server_start(const char *program, const char *option, const char *value)
{
	const char *servers = getenv("TEST_SERVERS"); /* where the programs lie */
	char file[512];
	struct server s = {.pid = -1};
	int to[2], from[2];
	char line[64] = "";
	snprintf(file, sizeof file, "%s/%s", servers ? servers : "test", program);
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		exit(1);
	s.pid = fork();
	if (s.pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl("/usr/bin/python3", "python3", file, option, value, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	s.say = fdopen(to[1], "w");
	s.hear = fdopen(from[0], "r");
	if (!fgets(line, sizeof line, s.hear)) {
		fprintf(stderr, "%s does not start\n", program);
		exit(1);
	}
	line[strcspn(line, "\n")] = 0;
	snprintf(s.endpoint, sizeof s.endpoint, "%s://127.0.0.1:%.8s",
	         option && strcmp(option, "--tls") == 0 ? "https" : "http", line);
	return s;
}

static unused_here void server_stop(struct server *s)
{
	fclose(s->say);
	fclose(s->hear);
	waitpid(s->pid, NULL, 0);
}

/* A command; its answer as a number, -1 when it is none. */
__attribute__((format(printf, 2, 3))) static unused_here int server_say(struct server *s, const char *format, ...)
{
	char line[256] = "", *end;
	va_list args;
	va_start(args, format);
	vfprintf(s->say, format, args);
	va_end(args);
	fputc('\n', s->say);
	fflush(s->say);
	if (!fgets(line, sizeof line, s->hear))
		return -1;
	long n = strtol(line, &end, 10);
	if (end == line && strcmp(line, "ok\n") != 0)
		fprintf(stderr, "the server: %s", line);
	return end == line ? -1 : (int)n;
}

/* "none" in the place of its port: what the server needs is not installed. */
static unused_here bool server_is_missing(const struct server *s)
{
	return strstr(s->endpoint, ":none") != NULL;
}

static unused_here struct objects_options azure_options(const struct server *s, const char *url)
{
	return (struct objects_options){.url = url,
	                                .endpoint = s->endpoint,
	                                .account = "stewardtest",
	                                .secret = AZURE_KEY,
	                                .part_bytes = PART,
	                                .stall_seconds = 3};
}

static unused_here struct objects_options gcs_options(const struct server *s, const char *url)
{
	return (struct objects_options){
	        .url = url, .endpoint = s->endpoint, .token = "token", .part_bytes = PART, .stall_seconds = 1};
}

static unused_here struct objects_options s3_options(const struct server *s, const char *url)
{
	return (struct objects_options){.url = url,
	                                .endpoint = s->endpoint,
	                                .key_id = KEY_ID,
	                                .secret = SECRET,
	                                .part_bytes = PART,
	                                .stall_seconds = 1};
}

static unused_here struct objects *open_made(const struct objects_options *options)
{
	struct objects *o = NULL;
	CHECK(objects_open(options, &o) == 0);
	if (!o) {
		fprintf(stderr, "%s\n", objects_why());
		exit(1);
	}
	return o;
}

static unused_here int open_result(struct objects_options options)
{
	struct objects *o = NULL;
	int r = objects_open(&options, &o);
	objects_close(o);
	return r;
}

static unused_here bool says(const char *words)
{
	bool found = strstr(objects_why(), words) != NULL;
	if (!found)
		fprintf(stderr, "says: %s\n", objects_why());
	return found;
}

#endif
