/* Functions that do not compile here. Included on the command line for every source file. */
#ifndef STEWARD_BASE_BANNED_H
#define STEWARD_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With clang glibc makes macros of these where buffers are checked, as in a release. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atof asctime ctime gmtime \
        localtime

#endif
