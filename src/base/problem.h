/* The error document: detail, error, errorCode, parameters, reason. */
#ifndef STEWARD_BASE_PROBLEM_H
#define STEWARD_BASE_PROBLEM_H

#include "base/buf.h"

struct problem {
	int status;
	const char *code;      /* RESOURCE_NOT_FOUND: static text */
	struct str detail;     /* for people */
	struct str parameters; /* JSON array text, or empty for [] */
};

/* "Not Found" for 404: the standard text of a status. */
const char *status_reason(int status);

/* Appends the document as JSON text. */
void problem_write(struct buf *b, const struct problem *p);

#endif
