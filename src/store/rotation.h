/* Rotation of the service's key (DIR/secret.key). The file has the new key before the old one; the store says which of
 * them is in use (meta "secret_key": the key's name), and everything that is sealed is sealed anew, in pieces. Nothing
 * here has to be finished by the process that began it: what is not yet sealed anew opens with the old key. */
#ifndef STEWARD_STORE_ROTATION_H
#define STEWARD_STORE_ROTATION_H

#include "store/store.h"

/* How long something that was given out or kept under the old key may still come back: answers to repeated POSTs and
 * links to downloads hold for a day, all tokens and tickets for less. */
#define ROTATION_HOLD_MS 86400000LL

/* The key that the store says is in use, and the lasting keys, are those of this process from now on. -ENOKEY: the file
 * lacks that key. -ENOENT: the store names none. */
must_check int rotation_follow(struct tx *tx);
/* The newest key of the file is in use from the commit on. The caller has made sure that all processes have it. */
must_check int rotation_begin(struct store *s);

/* A walk over all that is sealed. */
struct rotation_walk {
	char kind[128], id[2048]; /* after this document; empty: from the first */
	int64_t current, older, unknown;
	char example[256]; /* one that no key opens */
};
/* The next documents: counts by which key they are sealed, and seals the older ones anew where `s` is given. 1: there
 * are more. */
must_check int rotation_slice(struct tx *reader, struct rotation_walk *w, struct store *s);
/* After a walk that has found nothing older: seals and signs anew what is not a document. */
must_check int rotation_settle(struct store *s);

/* What stands in the store beside documents, and how long the key has been in use. */
struct rotation_state {
	bool begun;       /* the newest key is in use */
	bool settled;     /* what is no document is sealed and signed by the newest */
	int64_t since_ms; /* when it came into use; 0: it was the first */
};
must_check int rotation_state(struct tx *reader, struct rotation_state *ret_state);

/* That a host's backups need no key but the newest, which must be in use. */
must_check int rotation_backups_mark(struct store *s, struct str host);
/* Where a host's service keeps its backups, as a hash: what is sealed anew elsewhere does not count. */
must_check int rotation_places_note(struct store *s, struct str host, const char *places);
must_check int rotation_places_are(struct tx *reader, struct str host, const char *places, bool *ret_are);
must_check int rotation_backups_marked(struct tx *reader, struct str host, bool *ret_marked);

#endif
