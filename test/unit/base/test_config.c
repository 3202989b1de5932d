/* Options and configuration: sources and their order, faults and their sentences, limits of the file. */
#include "base/config.h"

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/steward-config-XXXXXX";
static char said[4096]; /* what the last parse wrote to stderr */

static const char *file_make(const char *name, const char *text)
{
	static char paths[4][128];
	static unsigned turn;
	char *path = paths[turn++ % 4];
	snprintf(path, sizeof paths[0], "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	return path;
}

#define ARGS(...) ((const char *[]){__VA_ARGS__, NULL})

/* Parses with stderr caught. */
static int parse(const char *const *args, struct config *ret_config)
{
	char *argv[32];
	int argc = 0;
	while (args[argc] && argc < 31) {
		argv[argc] = strdup(args[argc]);
		argc++;
	}
	char path[128];
	snprintf(path, sizeof path, "%s/stderr", dir);
	fflush(stderr);
	int saved = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDERR_FILENO);
	int r = config_parse(argc, argv, ret_config);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	ssize_t n = pread(fd, said, sizeof said - 1, 0);
	said[n > 0 ? n : 0] = '\0';
	close(fd);
	while (argc > 0)
		free(argv[--argc]);
	return r;
}

static void refused(const char *const *args, const char *in_message)
{
	struct config c;
	int r = parse(args, &c);
	CHECK(r == -EINVAL);
	if (r == 0)
		config_free(&c);
	CHECK(strstr(said, in_message));
	if (!strstr(said, in_message))
		fprintf(stderr, "  wanted \"%s\", got: %s", in_message, said);
	CHECK(strncmp(said, "steward: ", 9) == 0);
	CHECK(strchr(said, '\n') && strchr(said, '\n')[1] == '\0');
}

static void test_defaults(void)
{
	struct config c;
	const char *none[] = {NULL};
	CHECK(parse(none, &c) == 0);
	CHECK(strcmp(c.data, "./data") == 0);
	CHECK(strcmp(c.listen, "127.0.0.1:8443") == 0);
	CHECK(strcmp(c.listen_host, "127.0.0.1") == 0 && c.listen_port == 8443);
	CHECK(!c.base_url && !c.store && !c.tls_cert && !c.record && !c.file);
	CHECK(c.engine == NULL);
	CHECK(c.threads >= 1 && c.store_batch == 256 && c.header_seconds == 10);
	CHECK(!c.test_control && !c.log_json && !c.clock_virtual);
	CHECK(c.limit_count == 0);
	config_free(&c);
}

static void test_flags(void)
{
	struct config c;
	CHECK(parse(ARGS("--data", "/x", "--listen=[::1]:0", "--test-control", "--clock", "virtual", "--log-format",
	                 "json", "--base-url", "https://example.com:9/", "--threads", "3", "--log-level=debug"),
	            &c) == 0);
	CHECK(strcmp(c.data, "/x") == 0 && strcmp(c.listen_host, "::1") == 0 && c.listen_port == 0);
	CHECK(c.test_control && c.clock_virtual && c.log_json && c.threads == 3);
	CHECK(strcmp(c.base_url, "https://example.com:9") == 0);
	CHECK(strcmp(c.log_level, "debug") == 0);
	config_free(&c);
	CHECK(parse(ARGS("--data", "a", "--help"), &c) == OPTIONS_HELP);
	CHECK(parse(ARGS("--test-control=false", "--listen", "localhost:1", "--data", "a", "--data", "b"), &c) == 0);
	CHECK(!c.test_control && strcmp(c.data, "b") == 0 && strcmp(c.listen_host, "localhost") == 0);
	config_free(&c);
}

static void test_order(void)
{
	struct config c;
	const char *file = file_make("order.conf", "# ours\n\nthreads = 5   # cores\r\nlog-level=warn\n"
	                                           "data = \"/with # inside\"\ntest-control = yes\nidle-seconds = 9");
	CHECK(parse(ARGS("--config", file), &c) == 0);
	CHECK(c.threads == 5 && strcmp(c.log_level, "warn") == 0 && c.test_control && c.idle_seconds == 9);
	CHECK(strcmp(c.data, "/with # inside") == 0);
	config_free(&c);
	setenv("STEWARD_THREADS", "6", 1);
	setenv("STEWARD_LOG_LEVEL", "", 1);
	setenv("STEWARD_CONFIG", file, 1);
	setenv("STEWARD_PORT_8443_TCP", "tcp://10.0.0.1:8443", 1);
	CHECK(parse(ARGS("--idle-seconds", "7"), &c) == 0);
	CHECK(c.threads == 6 && strcmp(c.log_level, "warn") == 0 && c.idle_seconds == 7);
	config_free(&c);
	CHECK(parse(ARGS("--threads", "8"), &c) == 0);
	CHECK(c.threads == 8);
	config_free(&c);
	setenv("STEWARD_THREADS", "many", 1);
	refused(ARGS("--data", "x"), "STEWARD_THREADS (environment): \"many\" is not a whole number from 1 to 64");
	unsetenv("STEWARD_THREADS");
	unsetenv("STEWARD_LOG_LEVEL");
	unsetenv("STEWARD_CONFIG");
}

static void test_faults(void)
{
	refused(ARGS("--lisen", "127.0.0.1:1"), "--lisen: there is no such option; did you mean --listen?");
	refused(ARGS("--frobnicate"), "\"steward serve --help\" lists them");
	refused(ARGS("-x"), "-x: there is no such option");
	refused(ARGS("--listen"), "--listen needs a value: --listen HOST:PORT");
	refused(ARGS("--data", "--listen"), "--data needs a value: --data DIR");
	refused(ARGS("--data="), "--data: needs a value: DIR");
	refused(ARGS("--listen", "127.0.0.1"), "is not HOST:PORT");
	refused(ARGS("--listen", ":8443"), "is not HOST:PORT");
	refused(ARGS("--listen", "a:65536"), "is not HOST:PORT");
	refused(ARGS("--listen", "::1:8443"), "is not HOST:PORT");
	refused(ARGS("--listen", "[::1:8443"), "is not HOST:PORT");
	refused(ARGS("--base-url", "http://x"), "--base-url: \"http://x\" is not https://HOST");
	refused(ARGS("--base-url", "https://x/y"), "without a path");
	refused(ARGS("--base-url", "https://"), "is not https://HOST");
	refused(ARGS("--threads", "0"), "from 1 to 64");
	refused(ARGS("--threads", "99999999999999999999999"), "from 1 to 64");
	refused(ARGS("--threads", "-1"), "from 1 to 64");
	refused(ARGS("--log-level", "loud"), "--log-level: \"loud\" is not one of error|warn|info|debug");
	refused(ARGS("--engine", "warp"), "--engine: \"warp\" is not one of simulated");
	refused(ARGS("--config", "/nonexistent/steward.conf"),
	        "--config: cannot read \"/nonexistent/steward.conf\": No such");
	refused(ARGS("--config", dir), "is not a file");
	refused(ARGS("--tls-cert", "/dev/null"), "--tls-key is missing");
	refused(ARGS("--tls-key", "/dev/null"), "--tls-cert is missing");
	refused(ARGS("extra"), "\"extra\" is a word too many");
	refused(ARGS("--", "--data"), "\"--data\" is a word too many");
	refused(ARGS("--test-control=maybe"), "\"maybe\" is not true or false");
}

static void test_file_faults(void)
{
	refused(ARGS("--config", file_make("a.conf", "\n\nlistn = 1:2\n")),
	        "a.conf:3: listn: there is no such option; did you");
	refused(ARGS("--config", file_make("b.conf", "threads = 4\nthreads = 5\n")),
	        "b.conf:2: threads: is set a second time");
	refused(ARGS("--config", file_make("c.conf", "threads\n")), "c.conf:1: is not of the form \"name = value\"");
	refused(ARGS("--config", file_make("d.conf", "data = \"x\n")), "d.conf:1: a quotation mark is not closed");
	refused(ARGS("--config", file_make("e.conf", "config = x\n")), "a file cannot name another file");
	/* A flag hides the value, not the fault. */
	refused(ARGS("--threads", "3", "--config", file_make("f.conf", "threads = x\n")),
	        "f.conf:1: threads: \"x\" is not");
	refused(ARGS("--config", file_make("g.conf", "= 3\n")), "g.conf:1: : there is no such option");
}

static void test_limits(void)
{
	struct config c;
	struct arena *a = arena_new();
	struct config_limit *limits;
	size_t count;
	const char *path = file_make("l.conf", "limit.S17 = 100/50\nlimit.S17@6740a1b2c3d4e5f601234567 = 7 / 3\n"
	                                       "limit.* = 5/5\nthreads = 2\nlimit.*@::1=1/1\n");
	CHECK(parse(ARGS("--config", path), &c) == 0);
	CHECK(c.limit_count == 4);
	if (c.limit_count == 4) {
		CHECK(str_is(c.limits[0].set, "S17") && c.limits[0].scope.n == 0 && c.limits[0].capacity == 100);
		CHECK(c.limits[0].refill == 50 && strstr(c.limits[0].where, "l.conf:1: limit.S17"));
		CHECK(str_is(c.limits[1].scope, "6740a1b2c3d4e5f601234567") && c.limits[1].refill == 3);
		CHECK(str_is(c.limits[2].set, "*") && str_is(c.limits[3].scope, "::1"));
	}
	/* On SIGHUP the limits are read again; the rest of the file is not looked at. */
	file_make("l.conf", "limit.S02 = 9/8\nthreads = nonsense\n");
	CHECK(config_limits(&c, a, &limits, &count) == 0);
	CHECK(count == 1 && str_is(limits[0].set, "S02") && limits[0].capacity == 9 && limits[0].refill == 8);
	config_free(&c);
	refused(ARGS("--config", file_make("m.conf", "limit.S17 = 100\n")),
	        "m.conf:1: limit.S17: \"100\" is not CAPACITY/REFILL");
	refused(ARGS("--config", file_make("n.conf", "limit.S17 = 0/1\n")), "from 1 to");
	refused(ARGS("--config", file_make("o.conf", "limit.S17 = 4294967296/1\n")), "from 1 to");
	refused(ARGS("--config", file_make("p.conf", "limit. = 1/1\n")), "is not limit.SET");
	refused(ARGS("--config", file_make("q.conf", "limit.S1@ = 1/1\n")), "is not limit.SET");
	refused(ARGS("--config", file_make("r.conf", "limit.S1 = 1/1\nlimit.S1 = 2/2\n")),
	        "r.conf:2: limit.S1: is set a second");
	arena_free(a);
}

static void test_help(void)
{
	char text[32768] = "";
	FILE *f = fmemopen(text, sizeof text, "w");
	options_help(f, config_options, config_option_count);
	fclose(f);
	for (size_t i = 0; i < config_option_count; i++) {
		char flag[64];
		snprintf(flag, sizeof flag, "--%s", config_options[i].name);
		CHECK(strstr(text, flag));
	}
	CHECK(strstr(text, "(default 127.0.0.1:8443)"));
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		CHECK(end - line <= 120);
}

static void clean_up(void)
{
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	test_defaults();
	test_flags();
	test_order();
	test_faults();
	test_file_faults();
	test_limits();
	test_help();
	clean_up();
	return CHECK_DONE();
}
