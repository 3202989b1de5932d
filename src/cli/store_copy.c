/* `steward store copy`: from a machine's own store to the one that several nodes share, or back. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "store/store.h"

#include <stddef.h>

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

static void copy_progress(void *ctx, const char *what, int64_t done, int64_t total)
{
	progress_show(ctx, total > 0 ? (int)(done * 100 / total) : 100, str_of(what));
}

static int copy_run(const struct copy_arguments *g)
{
	struct progress bar;
	int64_t rows = 0, started = clock_mono_us();
	progress_begin(&bar, "copy");
	int r = store_copy(g->from, g->to, copy_progress, &bar, &rows);
	progress_end(&bar);
	if (r < 0) {
		option_refuse("store copy: the copy is not complete; the same command goes on from where it was");
		return EXIT_NOT_DONE;
	}
	printf("%lld rows copied and compared in %.1f s\n", (long long)rows, (double)(clock_mono_us() - started) / 1e6);
	printf("The service needs the same secret.key as before, in the data directory of each node.\n");
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
	} else if (r == 0 && (count != 1 || strcmp(words[0], "copy") != 0)) {
		option_refuse("store: say copy; \"steward store --help\" shows how");
	} else if (r == 0 && (!g.from || !g.to)) {
		option_refuse("store copy: --from URL and --to URL are needed");
	} else if (r == 0) {
		code = copy_run(&g);
	}
	arena_free(a);
	return code;
}
