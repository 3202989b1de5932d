/* The file DIR/secret.key: one or a few keys of 32 bytes, the newest first. More than one is there from a rotation to
 * the retirement of the old key. */
#ifndef STEWARD_STORE_KEYRING_H
#define STEWARD_STORE_KEYRING_H

#include "base/str.h"

#define KEY_SIZE 32
#define KEYRING_MAX 4

struct keyring {
	unsigned count;
	unsigned char keys[KEYRING_MAX][KEY_SIZE];
};

/* Of the three, on failure: a message on stderr, negative; without a message -ENOENT: there is no such file. */
must_check int keyring_read(const char *data_dir, struct keyring *ret_ring);
/* Makes a file with one key. When another process was first, its file stays. */
must_check int keyring_make(const char *data_dir);
/* Puts another file in the place of the one that is there: a crash leaves the one or the other. */
must_check int keyring_replace(const char *data_dir, const struct keyring *ring);

bool keyring_has(const struct keyring *ring, const unsigned char key[KEY_SIZE]);

#endif
