/* `steward secret-key`: the service's key, DIR/secret.key. rotate only writes the file: a running service, or the next
 * that is started, brings the new key into use and seals everything anew (serve/rotation.c). retire takes the old keys
 * out of the file, and refuses as long as anything may need them. */
#include "base/clock.h"
#include "base/id.h"
#include "cli/cli.h"
#include "cli/operator/operator.h"
#include "cli/operator/service_store.h"
#include "hosts/hosts.h"
#include "store/keyring.h"
#include "store/rotation.h"
#include "store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct secret_key_arguments {
	const char *data, *store;
};

#define AT(member) offsetof(struct secret_key_arguments, member)

const struct option_row secret_key_options[] = {
        OPERATOR_STORE(struct secret_key_arguments),
};
const size_t secret_key_option_count = sizeof secret_key_options / sizeof *secret_key_options;

struct work {
	struct arena *arena;
	const struct secret_key_arguments *g;
	struct store *store;
	struct tx *reader;
	struct rotation_state state;
	struct rotation_walk walk;
	struct str without,
	        unmarked; /* hosts that do not use the newest key; whose backups are not known to need no other */
};

/* --- what there is */

static int backups_look(struct work *w)
{
	struct host *list = NULL;
	size_t count = 0;
	w->unmarked = STR("");
	int r = hosts_read(w->reader, w->arena, &list, &count);
	for (size_t i = 0; r == 0 && i < count; i++) {
		bool marked = false;
		r = rotation_backups_marked(w->reader, list[i].id, &marked);
		if (!marked)
			w->unmarked = arena_printf(w->arena, "%.*s%s%.*s", STR_ARG(w->unmarked),
			                           w->unmarked.n ? ", " : "", STR_ARG(list[i].name));
	}
	return r;
}

static int all_look(struct work *w)
{
	char name[65];
	int r = rotation_follow(w->reader);
	if (r == -ENOKEY)
		return option_refuse("secret-key: %s/secret.key is not the key of this store", w->g->data);
	seal_key_name(0, name);
	if (r == 0)
		r = rotation_state(w->reader, &w->state);
	if (r == 0)
		r = hosts_without_key(w->reader, w->arena, name, w->state.begun, &w->without);
	if (r == 0)
		r = backups_look(w);
	for (int more = 1; r == 0 && more;) {
		more = rotation_slice(w->reader, &w->walk, NULL);
		r = more < 0 ? more : 0;
	}
	if (r < 0)
		option_refuse("secret-key: the store cannot be read: %s", strerror(-r));
	return r;
}

/* Why the old keys are still needed; NULL: they are not. */
static const char *why_needed(const struct work *w)
{
	struct arena *a = w->arena;
	int64_t left = w->state.since_ms + ROTATION_HOLD_MS - clock_now_ms();
	if (!w->state.begun)
		return w->without.n
		               ? arena_printf(a,
		                              "the new key is not in use: these hosts do not have it: %.*s. Copy the "
		                              "file to them",
		                              STR_ARG(w->without))
		                         .p
		               : "the new key is not in use yet: a running service brings it into use within seconds";
	if (w->without.n)
		return arena_printf(a, "these hosts do not use the new key yet: %.*s", STR_ARG(w->without)).p;
	if (w->walk.unknown)
		return arena_printf(a, "%lld sealed values open with no key of the file, as that of %s",
		                    (long long)w->walk.unknown, w->walk.example)
		        .p;
	if (w->walk.older)
		return arena_printf(a, "%lld values are sealed with an old key: the running service seals them anew",
		                    (long long)w->walk.older)
		        .p;
	if (!w->state.settled)
		return "the log of events is not yet signed with the new key: the running service does it";
	if (w->unmarked.n)
		return arena_printf(a,
		                    "backups may need an old key: run \"steward repository rewrap\" with the service's "
		                    "--data, --store and --backups options on these hosts: %.*s",
		                    STR_ARG(w->unmarked))
		        .p;
	if (left > 0)
		return arena_printf(a,
		                    "links and answers of the last day were made with an old key: wait for %lld more "
		                    "minutes",
		                    (long long)left / 60000 + 1)
		        .p;
	return NULL;
}

/* --- the verbs */

static int status_run(struct work *w)
{
	char name[65];
	const char *why;
	unsigned count = seal_key_count(), active;
	if (all_look(w) < 0)
		return EXIT_USAGE;
	active = seal_key_active();
	for (unsigned i = 0; i < count; i++) {
		seal_key_name(i, name);
		printf("key %.*s: %s\n", HOST_KEY_TEXT, name,
		       i == active  ? "in use"
		       : i < active ? "new, not in use yet"
		                    : "old");
	}
	printf("sealed with the newest key: %lld, with an older one: %lld, with none of these: %lld\n",
	       (long long)w->walk.current, (long long)w->walk.older, (long long)w->walk.unknown);
	if (count == 1)
		return EXIT_DONE;
	why = why_needed(w);
	if (why)
		printf("not to be retired: %s\n", why);
	else
		printf("the old keys can be retired\n");
	return EXIT_DONE;
}

static int rotate_run(struct work *w)
{
	struct keyring ring;
	int r = keyring_read(w->g->data, &ring);
	if (r < 0)
		return EXIT_USAGE;
	if (all_look(w) < 0)
		return EXIT_USAGE;
	if (ring.count > 1) {
		OPENSSL_cleanse(&ring, sizeof ring);
		option_refuse("secret-key rotate: the rotation before is not over. Retire the old key first: \"steward "
		              "secret-key status\" tells what it waits for");
		return EXIT_NOT_DONE;
	}
	memcpy(ring.keys[1], ring.keys[0], KEY_SIZE);
	random_bytes(ring.keys[0], KEY_SIZE);
	ring.count = 2;
	r = keyring_replace(w->g->data, &ring);
	OPENSSL_cleanse(&ring, sizeof ring);
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("%s/secret.key has a new key, and the old one. Keep a copy of the file apart. Where several hosts share "
	       "the\n"
	       "store, copy it to each of them: the new key comes into use when all have it.\n",
	       w->g->data);
	return EXIT_DONE;
}

static int retire_run(struct work *w)
{
	struct keyring ring;
	if (keyring_read(w->g->data, &ring) < 0 || all_look(w) < 0)
		return EXIT_USAGE;
	const char *why = ring.count == 1 ? "the file has one key" : why_needed(w);
	if (why) {
		OPENSSL_cleanse(&ring, sizeof ring);
		option_refuse("secret-key retire: %s", why);
		return EXIT_NOT_DONE;
	}
	OPENSSL_cleanse(ring.keys[1], sizeof ring.keys - KEY_SIZE);
	ring.count = 1;
	int r = keyring_replace(w->g->data, &ring);
	OPENSSL_cleanse(&ring, sizeof ring);
	if (r < 0)
		return EXIT_NOT_DONE;
	printf("%s/secret.key has the new key alone. Where several hosts share the store, copy it to each of them. "
	       "Copies of\n"
	       "the store and of the backups from before the rotation open with the file that was kept with them.\n",
	       w->g->data);
	return EXIT_DONE;
}

/* Two commands at once must not both write the file. */
static int lock_take(const struct secret_key_arguments *g)
{
	int fd = open(g->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
		option_refuse("secret-key: %s cannot be locked: another such command is running, or it is no directory",
		              g->data);
		if (fd >= 0)
			close(fd);
		return -EBUSY;
	}
	return fd;
}

static int verb_run(struct work *w, const char *verb)
{
	int code = EXIT_USAGE, lock = lock_take(w->g);
	if (lock < 0)
		return EXIT_NOT_DONE;
	if (service_store_open(w->arena, w->g->data, w->g->store, &w->store) == 0) {
		w->reader = store_reader(w->store);
		if (w->reader)
			code = strcmp(verb, "rotate") == 0   ? rotate_run(w)
			       : strcmp(verb, "retire") == 0 ? retire_run(w)
			                                     : status_run(w);
		store_reader_free(w->reader);
		store_close(w->store);
	}
	close(lock);
	return code;
}

static int secret_key_run(const struct operator_call *c)
{
	struct work w = {.arena = c->arena, .g = c->given};
	if (!c->count || !str_is_one_of("rotate|status|retire", str_of(c->words[0]))) {
		option_refuse("secret-key: say rotate, status or retire; \"steward secret-key --help\" shows how");
		return EXIT_USAGE;
	}
	return verb_run(&w, c->words[0]);
}

int secret_key_command(int argc, char **argv)
{
	struct secret_key_arguments g = {0};
	return operator_run(&(struct operator_command){.name = "secret-key",
	                                               .options = secret_key_options,
	                                               .option_count = secret_key_option_count,
	                                               .words_max = 1,
	                                               .run = secret_key_run},
	                    argc, argv, &g);
}
