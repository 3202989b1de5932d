/* `steward check`: verifies a store, also of a running service, or a copy of one. */
#include "api/clusters/clusters.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "store/seal.h"
#include "store/store.h"

#include <errno.h>
#include <glob.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE "/state.json"

struct check_arguments {
	const char *data, *store;
};

const struct option_row check_options[] = {
        OPERATOR_STORE(struct check_arguments),
};
const size_t check_option_count = sizeof check_options / sizeof *check_options;

/* Databases in the data directory that the store does not know. */
static int orphans_check(const char *data, const char *url)
{
	struct arena *a = arena_new();
	glob_t found = {0};
	struct store *store = NULL;
	int count = 0;
	if (glob(arena_printf(a, "%s/engine/*" STATE, data).p, 0, NULL, &found) == 0 && seal_has_key(data) &&
	    service_store_open(a, data, url, &store) == 0) {
		struct tx *reader = store_reader(store);
		for (size_t i = 0; reader && i < found.gl_pathc; i++) {
			struct str path = str_of(found.gl_pathv[i]), id = STR_NONE;
			struct cluster cluster;
			if (path.n > ID_LEN + strlen(STATE))
				id = (struct str){path.p + path.n - strlen(STATE) - ID_LEN, ID_LEN};
			if (id_is_valid(id) && cluster_get(reader, a, id, &cluster) == -ENOENT) {
				printf("%.*s: there are databases of this cluster in %s/engine, and the store does not "
				       "know it: "
				       "steward orphans --help\n",
				       STR_ARG(id), data);
				count++;
			}
		}
		store_reader_free(reader);
		store_close(store);
	}
	globfree(&found);
	arena_free(a);
	return count;
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* `data`: the directory that holds the key of a remote store, or NULL. */
static int check_run(const char *path, const char *data)
{
	const char *place = path;
	bool remote = store_url_is_remote(path);
	if (!remote && access(path, R_OK) < 0) {
		option_refuse("check: %s cannot be read: %s", path, strerror(errno));
		return EXIT_USAGE;
	}
	/* With the key, signatures are checked too; a copy alone has no key. */
	const char *keeper = remote ? data : path;
	if (keeper && seal_has_key(keeper) && seal_setup(keeper) < 0)
		return EXIT_USAGE;
	/* A URL may hold a password. */
	if (remote)
		path = "store";
	int faults = store_check(place, stdout);
	if (faults < 0) {
		option_refuse("check: %s could not be checked", path);
		return EXIT_USAGE;
	}
	if (keeper && is_directory(keeper))
		faults += orphans_check(keeper, remote ? place : NULL);
	if (faults > 0) {
		printf("%s: %d %s\n", path, faults, faults == 1 ? "fault" : "faults");
		return EXIT_NOT_DONE;
	}
	printf("%s: clean\n", path);
	return EXIT_DONE;
}

int check_command(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct check_arguments g = {0};
	struct options given;
	const char *words[1];
	size_t count = 0;
	options_setup(&given, "check", check_options, check_option_count, &g, a);
	int r = options_args(&given, argc, argv, words, 1, &count), code = EXIT_USAGE;
	if (r == OPTIONS_HELP) {
		help_command(stdout, "check");
		code = EXIT_DONE;
	} else if (r == 0 && count && options_given(&given, "data")) {
		option_refuse("check: give either --data DIR or a FILE");
	} else if (r == 0 && options_environment(&given) == 0) {
		/* A store that is named alone may belong to another service than ./data, so the key in ./data is not
		 * used. */
		code = check_run(count ? words[0] : g.store ? g.store : g.data, count ? NULL : g.data);
	}
	arena_free(a);
	return code;
}
