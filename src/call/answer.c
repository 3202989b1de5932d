/* Answers of paths outside the catalog. */
#include "call/answer.h"

void answer_json(struct request *r, int status, struct buf *body)
{
	r->response.status = status;
	r->response.body = arena_dup(r->arena, buf_view(body));
	response_header(&r->response, "content-type", STR("application/json"));
	buf_free(body);
}

void answer_value(struct request *r, int status, json_t *value)
{
	r->response.status = status;
	r->response.body = json_text(r->arena, value);
	response_header(&r->response, "content-type", STR("application/json"));
	json_decref(value);
}

void answer_problem(struct request *r, const struct problem *p)
{
	struct buf body = {0};
	problem_write(&body, p);
	answer_json(r, p->status, &body);
}
