/* Part of `steward serve`: follows DIR/secret.key while the service runs, and seals everything anew when it has a new
 * key. */
#ifndef STEWARD_SERVE_ROTATION_H
#define STEWARD_SERVE_ROTATION_H

#include "store/rotation.h"

#include <sys/stat.h>

struct key_watch {
	const char *data_dir;
	struct store *store;
	struct tx *reader;
	char places[65]; /* of the backups (repositories_places_hash()) */
	/* The rest is its own. */
	struct stat file;    /* as it was read last */
	int64_t told_us;     /* when a fault was last told */
	char waits_for[256]; /* hosts, as told last */
	struct rotation_walk walk;
	int64_t walk_due_us; /* when the next begins */
	bool walking, noted;
};

/* Each second; does at most a few pieces of work. 1: the keys of this process have changed. */
int key_watch_look(struct key_watch *k);
/* More often: goes on with sealing anew, if that is under way. */
void key_watch_walk(struct key_watch *k);

#endif
