/* Answers of what is outside the catalog: no envelope, no version. They fill r->response and send nothing. */
#ifndef STEWARD_GATE_ANSWER_H
#define STEWARD_GATE_ANSWER_H

#include "base/problem.h"
#include "http/http.h"

/* Copies the body into the request's arena and frees the buffer. */
void answer_json(struct request *r, int status, struct buf *body);
void answer_problem(struct request *r, const struct problem *p);

#endif
