/* `steward backup`: a consistent copy of the store, also of a running service. The keys are not copied: a backup in the
 * wrong hands must not reveal the secrets in it. */
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/progress.h"
#include "store/store.h"

#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

struct backup_arguments {
	const char *data, *store;
};

const struct option_row backup_options[] = {
        OPERATOR_STORE(struct backup_arguments),
};
const size_t backup_option_count = sizeof backup_options / sizeof *backup_options;

/* store_backup() has no context for its progress; a command runs once per process. */
static struct progress bar;

static void bar_draw(int done, int total)
{
	progress_show(&bar, total > 0 ? (int)((int64_t)done * 100 / total) : 100, STR(""));
}

static int backup_run(const struct operator_call *c)
{
	const struct backup_arguments *g = c->given;
	const char *file = c->words[0];
	struct stat st;
	const char *data = g->data;
	/* The store accepts the path of its file or of its directory. */
	const char *source = g->store && strncmp(g->store, "sqlite:", 7) == 0 ? g->store + 7 : data;
	if (store_url_is_remote(g->store)) {
		option_refuse("backup: a PostgreSQL store is copied with pg_dump, as in: pg_dump --format=custom "
		              "--schema=steward "
		              "--file=%s URL. Keep %s/secret.key with it",
		              file, data);
		return EXIT_USAGE;
	}
	if (g->store && source == data) {
		option_refuse("--store: \"%s\" is not sqlite:PATH", g->store);
		return EXIT_USAGE;
	}
	if (stat(source, &st) < 0 || (source == data && !S_ISDIR(st.st_mode))) {
		option_refuse("%s is not %s", source, g->store ? "there" : "a data directory; give --data DIR");
		return EXIT_USAGE;
	}
	if (lstat(file, &st) == 0) {
		option_refuse("%s exists already; give another name, or remove it first", file);
		return EXIT_USAGE;
	}
	int64_t started = clock_mono_us();
	progress_begin(&bar, "backup");
	int r = store_backup(source, file, bar_draw);
	progress_end(&bar);
	if (r < 0) {
		option_refuse("backup: %s was not written", file);
		return EXIT_NOT_DONE;
	}
	long long bytes = stat(file, &st) == 0 ? (long long)st.st_size : 0;
	printf("%s: %lld bytes in %.1f s\n", file, bytes, (double)(clock_mono_us() - started) / 1e6);
	printf("Keep %s/secret.key and %s/tls with it, in a safe place of their own: without the key the sealed\n"
	       "secrets in the copy cannot be opened, and without the CA callers would have to trust a new one.\n"
	       "It is the store alone: the databases of the clusters, in %s/engine, are not in it.\n"
	       "To restore: put it as steward.db into an empty data directory, with the key, tls and engine beside "
	       "it.\n"
	       "Clusters whose databases are not there show what is missing, and wait until it is put back.\n",
	       data, data, data);
	return EXIT_DONE;
}

int backup_command(int argc, char **argv)
{
	struct backup_arguments g = {0};
	return operator_run(
	        &(struct operator_command){
	                .name = "backup",
	                .options = backup_options,
	                .option_count = backup_option_count,
	                .words_max = 1,
	                .wants = "the name of the file to write is missing: steward backup --data DIR FILE",
	                .run = backup_run},
	        argc, argv, &g);
}
