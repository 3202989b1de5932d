/* What to do about a refusal. */
#ifndef STEWARD_CLI_HINTS_H
#define STEWARD_CLI_HINTS_H

/* A sentence for the status and errorCode (or NULL) of an answer; it may have one "%s", for where the credentials come
 * from. NULL: the answer's own words are enough. */
const char *hint_find(int status, const char *code);

#endif
