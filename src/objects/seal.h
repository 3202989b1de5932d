/* Objects under a project's data key: streams of bytes that are sealed as they are written, and opened as they are
 * read. docs/exports.md tells the bytes. */
#ifndef STEWARD_OBJECTS_SEAL_H
#define STEWARD_OBJECTS_SEAL_H

#include "objects/objects.h"

struct data_key; /* base/data_key.h */
struct object_seal;
struct object_opening;

/* `purpose` ("exports") is a part of the key: what was sealed for one does not open for another. */
must_check int object_seal_begin(const struct data_key *key, struct str group, const char *purpose, objects_write *out,
                                 void *ctx, struct object_seal **ret_seal);
must_check int object_seal_write(struct object_seal *s, const void *bytes, size_t n);
must_check int object_seal_end(struct object_seal *s); /* the last of it goes out */
void object_seal_free(struct object_seal *s);          /* accepts NULL */

/* The project's key of that id, which the object names. */
typedef int object_key_get(void *ctx, const char *id, struct data_key *ret_key);
struct object_opening *object_open_begin(struct str group, const char *purpose, object_key_get *get, void *get_ctx,
                                         objects_write *out, void *ctx);
/* An objects_write, of the opening: what was proven goes out. -EBADMSG: it is damaged, or none; or what get() or out()
 * have returned. */
must_check int object_open_write(void *opening, const void *bytes, size_t n);
must_check int object_open_end(struct object_opening *o); /* -EBADMSG also when it was cut off */
void object_open_free(struct object_opening *o);          /* accepts NULL */

#endif
