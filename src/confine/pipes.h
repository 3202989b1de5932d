/* How a helper program is asked and answers: all of its standard input, one text on its standard output. */
#ifndef STEWARD_CONFINE_PIPES_H
#define STEWARD_CONFINE_PIPES_H

#include <stddef.h>

/* How many bytes there were, at most `size`; 0 also where they cannot be read. */
size_t pipe_read(char *ret_bytes, size_t size);
/* 0, or negative. */
int pipe_write(const char *text);

#endif
