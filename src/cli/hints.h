/* Advice for a refused call. */
#ifndef STEWARD_CLI_HINTS_H
#define STEWARD_CLI_HINTS_H

/* A sentence for the status and errorCode (or NULL) of an answer. It may have one "%s", for the place that the
 * credentials come from. NULL: the answer's own text is enough. */
const char *hint_find(int status, const char *code);

#endif
