/* Part of `steward serve`: what is held against each other before a store is used. Each of these prints what is wrong
 * and what to do, and changes nothing then. */
#ifndef STEWARD_SERVE_STORE_H
#define STEWARD_SERVE_STORE_H

#include "store/store.h"

struct opening {
	const char *data_dir, *url; /* url of the store, or NULL */
	struct arena *arena;
	struct store *store; /* from opening_belongs() on, as is */
	struct tx *reader;
	bool key_made; /* by opening_key_ensure() */
};

/* Makes the directory where it is missing, and takes its lock: one service for each. The lock is held as long as the
 * process lives. */
must_check int opening_take(struct opening *o, int *ret_lock);
/* This node's name among those that share a store. */
must_check int opening_node(struct opening *o, const char **ret_name);
/* The store is the one that the directory was used with. */
must_check int opening_belongs(struct opening *o);
/* There is a key; and it is the store's. */
must_check int opening_key_ensure(struct opening *o);
must_check int opening_key_check(struct opening *o);

#endif
