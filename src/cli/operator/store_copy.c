/* `steward store copy`: from a machine's own store to the one that several nodes share, or back. `steward store
 * reopen`: the operator's word that a store that was moved so is used again. */
#include "api/clusters/clusters.h"
#include "base/clock.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "store/store.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

struct copy_arguments {
	const char *from, *to;
};

const struct option_row store_options_rows[] = {
        {"from", 0, OPTION_TEXT, offsetof(struct copy_arguments, from), NULL, "URL",
         "The store to copy: a data directory, sqlite:PATH or postgresql://...", .flag_only = true},
        {"to", 0, OPTION_TEXT, offsetof(struct copy_arguments, to), NULL, "URL",
         "The empty store to copy it into, in the same forms.", .flag_only = true},
};
const size_t store_option_count = sizeof store_options_rows / sizeof *store_options_rows;

struct copying {
	const struct copy_arguments *given;
	struct progress bar;
	struct arena *arena;
};

static void copy_progress(void *ctx, const char *what, int64_t done, int64_t total)
{
	struct copying *c = ctx;
	progress_show(&c->bar, total > 0 ? (int)(done * 100 / total) : 100, str_of(what));
}

/* The name of the host whose store it was: in node.id beside it. Empty: it is not there, or the store is one of many
 * hosts. */
static struct str host_of_source(struct arena *a, const char *from)
{
	char text[ID_LEN];
	struct stat st;
	if (store_url_is_remote(from))
		return STR_NONE;
	const char *path = str_starts(str_of(from), STR("sqlite:")) ? from + 7 : from, *slash = strrchr(path, '/');
	struct str dir = str_of(path);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		dir = slash ? (struct str){path, (size_t)(slash - path) + 1} : STR(".");
	int fd = open(arena_printf(a, "%.*s/node.id", STR_ARG(dir)).p, O_RDONLY | O_CLOEXEC);
	bool known = fd >= 0 && read(fd, text, ID_LEN) == ID_LEN && id_is_valid((struct str){text, ID_LEN});
	if (fd >= 0)
		close(fd);
	return known ? arena_dup(a, (struct str){text, ID_LEN}) : STR_NONE;
}

static int copy_settle(void *ctx, struct store *target)
{
	struct copying *c = ctx;
	return clusters_settle(target, host_of_source(c->arena, c->given->from), store_is_remote(target));
}

static int copy_run(const struct copy_arguments *g, struct arena *a)
{
	struct copying c = {.given = g, .arena = a};
	const struct store_copy_options options = {.progress = copy_progress, .settle = copy_settle, .ctx = &c};
	int64_t rows = 0, started = clock_mono_us();
	progress_begin(&c.bar, "copy");
	int r = store_copy(g->from, g->to, &options, &rows);
	progress_end(&c.bar);
	if (r < 0) {
		option_refuse("store copy: the copy is not complete; the same command goes on from where it was");
		return EXIT_NOT_DONE;
	}
	printf("%lld rows copied and compared in %.1f s\n", (long long)rows, (double)(clock_mono_us() - started) / 1e6);
	printf("The source is marked as moved: no service starts on it any more.\n"
	       "The service needs the same secret.key as before, in the data directory of each node.\n");
	return EXIT_DONE;
}

static int reopen_run(const struct copy_arguments *g)
{
	if (store_reopen(g->from) < 0)
		return EXIT_NOT_DONE;
	printf("A service starts on this store again. Start none on the one that it was moved to.\n");
	return EXIT_DONE;
}

int store_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct copy_arguments g = {0};
	struct options given;
	const char *words[1];
	size_t count = 0;
	int code = EXIT_USAGE;
	options_setup(&given, "store", store_options_rows, store_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 1, &count);
	if (r == OPTIONS_HELP) {
		help_command(stdout, "store");
		code = EXIT_DONE;
	} else if (r == 0 && count == 1 && strcmp(words[0], "reopen") == 0) {
		if (!g.from || g.to)
			option_refuse("store reopen: --from URL is needed, and nothing else");
		else
			code = reopen_run(&g);
	} else if (r == 0 && (count != 1 || strcmp(words[0], "copy") != 0)) {
		option_refuse("store: say copy or reopen; \"steward store --help\" shows how");
	} else if (r == 0 && (!g.from || !g.to)) {
		option_refuse("store copy: --from URL and --to URL are needed");
	} else if (r == 0) {
		code = copy_run(&g, a);
	}
	arena_free(a);
	return code;
}
