/* What the kinds of object stores have in common: known to this folder alone. */
#ifndef STEWARD_OBJECTS_BACKEND_H
#define STEWARD_OBJECTS_BACKEND_H

#include "objects/objects.h"

#define OBJECT_PARTS_MAX 32

/* Names and prefixes were checked by the caller. */
struct objects_ops {
	void (*close)(struct objects *o);
	int (*put)(struct objects *o, const char *name, objects_read *read, void *ctx);
	int (*get)(struct objects *o, const char *name, uint64_t offset, uint64_t length, objects_write *write,
	           void *ctx);
	int (*size)(struct objects *o, const char *name, uint64_t *ret_size);
	int (*list)(struct objects *o, const char *prefix, objects_visit *visit, void *ctx);
	int (*delete)(struct objects *o, const char *name);
};

/* The first member of each kind. */
struct objects {
	const struct objects_ops *ops;
};

must_check int directory_objects_open(const char *path, bool expected, struct objects **ret_objects);
must_check int s3_objects_open(const struct objects_options *o, struct objects **ret_objects);
must_check int azure_objects_open(const struct objects_options *o, struct objects **ret_objects);
must_check int gcs_objects_open(const struct objects_options *o, struct objects **ret_objects);

bool object_name_valid(struct str name);
/* Of one part between slashes. */
bool object_part_valid(struct str part);

/* Keeps words for objects_why() and returns the code. Control characters become spaces. */
int objects_fail(int code, const char *format, ...) printf_like(2, 3);

#endif
