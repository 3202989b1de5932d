/* Answers of paths outside the catalog: no envelope, no version. These functions fill r->response and send nothing. */
#ifndef STEWARD_CALL_ANSWER_H
#define STEWARD_CALL_ANSWER_H

#include "base/json.h"
#include "base/problem.h"
#include "http/http.h"

/* The detail of the error when the store's disk is full, and its Retry-After in seconds. */
#define STORE_FULL_DETAIL                                                                                          \
	"The disk of the service's store is full: nothing was changed, and reads go on. Changes are taken again, " \
	"without "                                                                                                 \
	"a restart, once its operator has made room."
#define STORE_FULL_SECONDS "30"
/* The detail of an answer that would need data that a disk has damaged. */
#define STORE_DAMAGED_DETAIL                                                                                           \
	"A part of the service's store is damaged, and what stands there is not given out. Its operator must restore " \
	"it "                                                                                                          \
	"from a backup."

/* Copies the body into the request's arena and frees the buffer. */
void answer_json(struct request *r, int status, struct buf *body);
/* The same of a value, which it takes. */
void answer_value(struct request *r, int status, json_t *value);
void answer_problem(struct request *r, const struct problem *p);

#endif
