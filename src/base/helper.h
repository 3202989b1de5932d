/* Programs beside this one that answer one question: foreign code, or foreign data, in a process of its own. */
#ifndef STEWARD_BASE_HELPER_H
#define STEWARD_BASE_HELPER_H

#include "base/buf.h"
#include "base/str.h"

#include <sys/types.h>

/* Starts the program of that name, which lies beside this one, with its standard input and output on one socket and no
 * environment; hands over the question and takes the answer until its end. The process is gone afterwards. Blocks, at
 * most for that long. -ENOENT: it is not there; another: it could not be started. What it said, perhaps nothing, or cut
 * off at `most`, is in *answer. */
must_check int helper_ask(const char *name, struct str question, int64_t ms, size_t most, struct buf *answer);

/* Starts such a program with these descriptors: its standard input and output, and further ones from 3 on. It has no
 * environment. The caller closes its own of them, and waits for the process. */
must_check int helper_start(const char *name, const int *descriptors, size_t count, pid_t *ret_pid);

#endif
