/* Words about the thread's last failure. */
#ifndef STEWARD_REPOSITORY_WHY_H
#define STEWARD_REPOSITORY_WHY_H

#include "base/str.h"

/* Empty where nothing has failed. */
const char *repository_why(void);
/* Returns `code`. */
int repo_fail(int code, const char *format, ...) printf_like(2, 3);
/* The same about an object, with what the object store says. */
int repo_fail_object(int code, const char *name);
bool name_part_ok(const char *part);

#endif
