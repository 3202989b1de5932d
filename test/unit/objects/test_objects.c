/* What every object store promises: the same cases on a directory, on S3, Google Cloud Storage and Azure (servers that verify
 * signatures, tokens and checksums). */
#include "fixture.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>

static void test_whole(struct objects *o)
{
	char *bytes = NULL;
	size_t n = 0;
	CHECK(has_none(o, "a/one"));
	CHECK(strstr(objects_why(), "a/one") != NULL);
	CHECK(objects_delete(o, "a/one") == 0);
	CHECK(put_of(o, "a/one", 1, 1000) == 0);
	CHECK(has_object(o, "a/one", 1, 1000));
	CHECK(put_of(o, "a/one", 2, 10) == 0);
	CHECK(has_object(o, "a/one", 2, 10));
	CHECK(objects_put_bytes(o, "a/text", "some text", 9) == 0);
	CHECK(objects_get_bytes(o, "a/text", 9, &bytes, &n) == 0 && n == 9 && strcmp(bytes, "some text") == 0);
	free(bytes);
	bytes = NULL;
	CHECK(objects_get_bytes(o, "a/text", 8, &bytes, &n) == -EFBIG && !bytes);
	CHECK(objects_get_bytes(o, "a/none", 8, &bytes, &n) == -ENOENT && !bytes);
	CHECK(objects_delete(o, "a/one") == 0);
	CHECK(has_none(o, "a/one"));
	CHECK(count_of(o, "") == 1);
}

static void test_empty(struct objects *o)
{
	char *bytes = NULL;
	size_t n = 1;
	CHECK(objects_put_bytes(o, "nothing", NULL, 0) == 0);
	CHECK(has_object(o, "nothing", 0, 0));
	CHECK(objects_get_bytes(o, "nothing", 0, &bytes, &n) == 0 && n == 0 && bytes[0] == 0);
	free(bytes);
	CHECK(has_range(o, "nothing", 0, 0, 5, 0));
	CHECK(objects_get(o, "nothing", 1, 0, sink_write, &(struct sink){.seed = 0}) == -ERANGE);
	CHECK(count_of(o, "") == 1);
}

static void test_ranges(struct objects *o)
{
	struct sink s = {.seed = 3};
	CHECK(put_of(o, "r", 3, 300000) == 0);
	CHECK(has_range(o, "r", 3, 0, 1, 1));
	CHECK(has_range(o, "r", 3, 0, 300000, 300000));
	CHECK(has_range(o, "r", 3, 0, 400000, 300000));
	CHECK(has_range(o, "r", 3, 12345, 0, 300000 - 12345));
	CHECK(has_range(o, "r", 3, 12345, 777, 777));
	CHECK(has_range(o, "r", 3, 299999, 10, 1));
	CHECK(has_range(o, "r", 3, 300000, 0, 0));
	CHECK(has_range(o, "r", 3, 300000, 10, 0));
	CHECK(objects_get(o, "r", 300001, 0, sink_write, &s) == -ERANGE);
	CHECK(objects_get(o, "r", 300001, 7, sink_write, &s) == -ERANGE);
	CHECK(objects_get(o, "r", UINT64_MAX, 7, sink_write, &s) == -ERANGE);
	CHECK(objects_get(o, "r", 7, UINT64_MAX, sink_write, &s) == -ERANGE);
	CHECK(s.at == 0);
}

static void test_large(struct objects *o)
{
	/* Around the ends of parts, and a source that gives a little at a time. */
	static const uint64_t sizes[] = {PART - 1, PART, PART + 1, 5 * PART, 16 * PART + 77};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		CHECK(put_of(o, "large", (unsigned)i, sizes[i]) == 0);
		CHECK(has_object(o, "large", (unsigned)i, sizes[i]));
		CHECK(has_range(o, "large", (unsigned)i, sizes[i] - 100, 50, 50));
	}
	struct source slow = {.seed = 9, .size = 3 * PART + 1, .most = 1000};
	CHECK(objects_put(o, "large", source_read, &slow) == 0);
	CHECK(has_object(o, "large", 9, 3 * PART + 1));
	CHECK(count_of(o, "") == 1);
}

static void test_failing_source(struct objects *o)
{
	static const uint64_t fails[] = {1, 1000, PART, 3 * PART + 5, 10 * PART};
	CHECK(put_of(o, "f/old", 1, 500) == 0);
	for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
		struct source s = {.size = 20 * PART, .fail_at = fails[i], .most = 1000}, again = s;
		CHECK(objects_put(o, "f/new", source_read, &s) == -ENOTRECOVERABLE);
		CHECK(strstr(objects_why(), "f/new") != NULL);
		CHECK(has_none(o, "f/new"));
		CHECK(objects_put(o, "f/old", source_read, &again) == -ENOTRECOVERABLE);
		CHECK(has_object(o, "f/old", 1, 500));
	}
	CHECK(count_of(o, "") == 1);
}

static void test_ending_sink(struct objects *o)
{
	struct sink s = {.seed = 4, .end_at = 2 * PART};
	CHECK(put_of(o, "e", 4, 10 * PART) == 0);
	CHECK(objects_get(o, "e", 0, 0, sink_write, &s) == -ECANCELED);
	CHECK(s.at < 2 * PART && s.wrong == 0);
	CHECK(has_object(o, "e", 4, 10 * PART));
}

static void test_names(struct objects *o)
{
	static const char *const refused[] = {"",       ".",     "..",   "/",    "/a",       "a/",  "a//b",
	                                      "a/../b", "a/./b", "../x", "a/..", "a b",      "a~b", "~put",
	                                      "~put/x", "a\\b",  "a%2e", "a\nb", "\xc3\xa4", "a?b", "a#b",
	                                      "a&b",    "a+b",   "a:b",  "a*",   "a\x7f",    "a/~"};
	static const char *const fine[] = {"A-Z_a.z=0", "...", "a..b", ".hidden", "-", "=", "x/.../y", "x/=/=="};
	char longest[OBJECT_NAME_MAX + 2], *bytes;
	uint64_t size;
	size_t n;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		CHECK(objects_put_bytes(o, refused[i], "x", 1) == -EINVAL);
		CHECK(objects_get_bytes(o, refused[i], 10, &bytes, &n) == -EINVAL);
		CHECK(objects_size(o, refused[i], &size) == -EINVAL);
		CHECK(objects_delete(o, refused[i]) == -EINVAL);
		CHECK(strpbrk(objects_why(), "\n\x7f") == NULL);
	}
	CHECK(count_of(o, "") == 0);
	CHECK(count_of(o, "/") == -EINVAL && count_of(o, "a//") == -EINVAL && count_of(o, "../") == -EINVAL);
	CHECK(count_of(o, "~") == -EINVAL && count_of(o, "a b") == -EINVAL);
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		CHECK(put_of(o, fine[i], (unsigned)i, 10) == 0);
		CHECK(has_object(o, fine[i], (unsigned)i, 10));
	}
	CHECK(count_of(o, "") == (int)(sizeof fine / sizeof *fine));
	/* The longest name, of parts of 200. */
	memset(longest, 'n', sizeof longest);
	for (size_t i = 200; i < OBJECT_NAME_MAX; i += 201)
		longest[i] = '/';
	longest[OBJECT_NAME_MAX] = 0;
	CHECK(put_of(o, longest, 5, 5) == 0 && has_object(o, longest, 5, 5) && count_of(o, "nnn") == 1);
	CHECK(objects_delete(o, longest) == 0 && count_of(o, "nnn") == 0);
	longest[OBJECT_NAME_MAX] = 'n';
	longest[OBJECT_NAME_MAX + 1] = 0;
	CHECK(put_of(o, longest, 5, 5) == -EINVAL);
}

static const char *const listed[] = {"_",     "=",     "-",       "B",       "a-b", "a.b",  "a/b",
                                     "a/c.d", "a/c/e", "a/c/f/g", "a/c=",    "a0",  "a=b",  "aa",
                                     "b.x",   "b/x.y", "b/x/y/z", "b/x/y.z", "z/0", "z/00", "z/a/0"};
#define LISTED (sizeof listed / sizeof *listed)

struct order {
	const char *prefix;
	unsigned count, wrong;
	char last[OBJECT_NAME_MAX + 1];
	unsigned end_after;
};

static int order_visit(void *ctx, const struct object_info *info)
{
	struct order *w = ctx;
	w->wrong += w->count > 0 && strcmp(w->last, info->name) >= 0;
	w->wrong += strncmp(info->name, w->prefix, strlen(w->prefix)) != 0 || info->size != 2 + strlen(info->name) ||
	            info->modified_ms < INT64_C(1600000000000);
	snprintf(w->last, sizeof w->last, "%s", info->name);
	w->count++;
	return w->end_after && w->count == w->end_after ? -ECANCELED : 0;
}

static void test_list(struct objects *o)
{
	static const char *const prefixes[] = {"",   "a",  "a/",  "a/c",   "a/c/", "a/c.",    "b/x", "b/x/y/",  "z/0",
	                                       "zz", "q/", "a-b", "a-b/x", "B",    "a/c/f/g", "-",   "a/c/f/gg"};
	for (size_t i = 0; i < LISTED; i++)
		CHECK(put_of(o, listed[(i * 8) % LISTED], 1, 2 + strlen(listed[(i * 8) % LISTED])) == 0);
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		struct order w = {.prefix = prefixes[i]};
		unsigned wanted = 0;
		for (size_t k = 0; k < LISTED; k++)
			wanted += strncmp(listed[k], prefixes[i], strlen(prefixes[i])) == 0;
		CHECK(objects_list(o, prefixes[i], order_visit, &w) == 0);
		CHECK(w.count == wanted && w.wrong == 0);
	}
	struct order some = {.prefix = "", .end_after = 3};
	CHECK(objects_list(o, "", order_visit, &some) == -ECANCELED && some.count == 3);
}

static int delete_visit(void *ctx, const struct object_info *info)
{
	CHECK(objects_delete(ctx, info->name) == 0);
	return 0;
}

/* What a sweep does. */
static void test_delete_while_listed(struct objects *o)
{
	for (size_t i = 0; i < LISTED; i++)
		CHECK(put_of(o, listed[i], 1, 5) == 0);
	CHECK(objects_list(o, "a", delete_visit, o) == 0);
	CHECK(count_of(o, "a") == 0 && count_of(o, "b") == 4);
	CHECK(objects_list(o, "", delete_visit, o) == 0);
	CHECK(count_of(o, "") == 0);
}

/* Threads. Each has objects of its own, all write and read one, and all make and empty one folder. */

#define THREADS 8
#define ROUNDS 12

static atomic_uint faults;

struct worker {
	struct objects *o;
	unsigned number;
};

static int uniform_write(void *ctx, const void *bytes, size_t n)
{
	int *first = ctx;
	for (size_t i = 0; i < n; i++) {
		int c = ((const unsigned char *)bytes)[i];
		if (*first < 0)
			*first = c;
		if (c != *first)
			faults++;
	}
	return 0;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	char name[64], same[3000];
	memset(same, (int)('a' + w->number), sizeof same);
	for (unsigned i = 0; i < ROUNDS; i++) {
		int first = -1;
		unsigned size = i % 3 == 2 ? 2 * PART + i : 10 * i;
		snprintf(name, sizeof name, "own/%u/%u", w->number, i);
		faults += put_of(w->o, name, i, size) != 0 || !has_object(w->o, name, i, size);
		faults += objects_put_bytes(w->o, "shared/all", same, sizeof same) != 0;
		faults += objects_get(w->o, "shared/all", 0, 0, uniform_write, &first) != 0;
		snprintf(name, sizeof name, "brief/folder/%u", w->number);
		faults += put_of(w->o, name, i, 5) != 0 || objects_delete(w->o, name) != 0;
		faults += objects_list(w->o, "", count_visit, &(unsigned){0}) != 0;
		if (faults)
			fprintf(stderr, "thread %u: %s\n", w->number, objects_why());
	}
	return NULL;
}

static void test_threads(struct objects *o)
{
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	faults = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){o, i};
		CHECK(pthread_create(&threads[i], NULL, worker_run, &workers[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(faults == 0);
	CHECK(count_of(o, "own/") == THREADS * ROUNDS && count_of(o, "") == THREADS * ROUNDS + 1);
}

static const struct {
	const char *name;
	void (*run)(struct objects *o);
} cases[] = {
        {"whole", test_whole},
        {"empty", test_empty},
        {"ranges", test_ranges},
        {"large", test_large},
        {"failing-source", test_failing_source},
        {"ending-sink", test_ending_sink},
        {"names", test_names},
        {"list", test_list},
        {"delete-while-listed", test_delete_while_listed},
        {"threads", test_threads},
};

/* A source that says through a pipe that it was asked for more, and then gives nothing. */
static ssize_t stuck_read(void *ctx, void *buf, size_t n)
{
	int *state = ctx;
	if (state[1]++ < 4) {
		n = n < PART ? n : PART;
		memset(buf, 'k', n);
		return (ssize_t)n;
	}
	if (write(state[0], "x", 1) != 1)
		return -EIO;
	for (;;)
		pause();
}

/* A process that is killed in the middle of a put leaves nothing that is listed, and the old object as it was. */
static void test_kill(const struct objects_options *options)
{
	struct objects *o = NULL;
	int ready[2];
	char c;
	CHECK(objects_open(options, &o) == 0);
	if (!o)
		return;
	CHECK(put_of(o, "old", 7, 70) == 0);
	static const char *const names[] = {"old", "new", "deep/er/new"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		CHECK(pipe(ready) == 0);
		pid_t pid = fork();
		if (pid == 0) {
			int state[] = {ready[1], 0};
			struct objects *own;
			close(ready[0]);
			if (objects_open(options, &own) == 0)
				(void)!objects_put(own, names[i], stuck_read, state);
			fprintf(stderr, "%s: %s\n", options->url, objects_why());
			_exit(1);
		}
		close(ready[1]);
		CHECK(read(ready[0], &c, 1) == 1);
		close(ready[0]);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CHECK(has_object(o, "old", 7, 70));
		CHECK(count_of(o, "") == 1);
	}
	CHECK(has_none(o, "new") && has_none(o, "deep/er/new"));
	CHECK(put_of(o, "new", 8, 80) == 0 && has_object(o, "new", 8, 80));
	objects_close(o);
}

/* The kinds of stores, with the server of each. */
static const struct {
	const char *name, *url;
	struct objects_options (*options)(const struct server *s, const char *url);
	const char *server;
} kinds[] = {
        {"a directory", "file://", NULL, NULL},
        {"S3", "s3://bucket", s3_options, "s3_server.py"},
        {"Google Cloud Storage", "gs://bucket", gcs_options, "gcs_server.py"},
        {"Azure", "azure://bucket", azure_options, "azurite.py"},
};

static void kind_run(size_t kind, const struct server *server)
{
	char url[128];
	struct objects_options options =
	        kinds[kind].options ? kinds[kind].options(server, url) : (struct objects_options){.url = url};
	options.stall_seconds = 0; /* as always: nothing stands still here, but a busy machine */
	const char *below = kinds[kind].options ? "" : folder;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct objects *o = NULL;
		unsigned failed = check_failed;
		int64_t begun = clock_mono_us();
		snprintf(url, sizeof url, "%s%s/p=q/%zu", kinds[kind].url, below, i);
		CHECK(objects_open(&options, &o) == 0);
		if (o)
			cases[i].run(o);
		else
			fprintf(stderr, "%s\n", objects_why());
		objects_close(o);
		printf("%s on %s: %s, %lld ms\n", cases[i].name, kinds[kind].name,
		       check_failed > failed ? "failed" : "passed", (long long)(clock_mono_us() - begun) / 1000);
	}
	snprintf(url, sizeof url, "%s%s/kill", kinds[kind].url, below);
	test_kill(&options);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	folder_make();
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		struct server server = {.pid = -1};
		if (kind > 0)
			server = server_start(kinds[kind].server, NULL, NULL);
		if (kind > 0 && server_is_missing(&server))
			printf("%s is not installed: script/bootstrap --test does it\n", kinds[kind].server);
		else
			kind_run(kind, &server);
		/* Nothing but what was killed is left behind: uploads of new, old and deep. */
		if (strcmp(kinds[kind].name, "S3") == 0 || strcmp(kinds[kind].name, "Google Cloud Storage") == 0)
			CHECK(server_say(&server, "uploads") == 3);
		if (kind > 0)
			server_stop(&server);
	}
	folder_remove();
	return CHECK_DONE();
}
