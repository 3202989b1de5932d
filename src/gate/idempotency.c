/* Idempotency-Key: a repeated POST returns the first answer. The answer is stored in the transaction of the write that
 * it answers, sealed, because it may carry a secret that is shown once. Only successes are stored: a refusal changed
 * nothing, so repeating the call is safe. Keys of calls in progress are held in memory; a second request with such a
 * key is refused. */
#include "gate/dispatch.h"

#include "call/service.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define KEY_MAX 255

struct idempotency {
	struct idempotency *next, *prev;
	struct str caller, key;
	char fingerprint[65];
};

static struct idempotency *in_flight;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool key_is_valid(struct str key)
{
	if (key.n == 0 || key.n > KEY_MAX)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] < 0x21 || key.p[i] > 0x7e)
			return false;
	return true;
}

static void fingerprint(struct call *c, char ret_text[65])
{
	struct buf b = {0};
	buf_z(&b, c->op->id);
	buf_c(&b, '\n');
	buf_str(&b, c->request->target);
	buf_c(&b, '\n');
	/* The stored answer belongs to one version: it does not answer a request for another. */
	buf_z(&b, c->version->date);
	buf_c(&b, '\n');
	buf_str(&b, c->request->body);
	sha256_hex(buf_view(&b), ret_text);
	buf_free(&b);
}

int idempotency_begin(struct call *c, struct idempotency **ret_state)
{
	struct str key = request_header(c->request, "idempotency-key");
	bool taken = false;
	if (!key.p)
		return 0;
	if (request_header_count(c->request, "idempotency-key") > 1) {
		call_fail(c, 400, "INVALID_HEADER", "Idempotency-Key: must be given only once.");
		return call_fail_param(c, STR("Idempotency-Key"));
	}
	if (!key_is_valid(key) || !c->caller) {
		call_fail(c, 400, "INVALID_HEADER", "Idempotency-Key: must be 1 to %d visible ASCII characters.",
		          KEY_MAX);
		return call_fail_param(c, STR("Idempotency-Key"));
	}
	struct idempotency *mine = arena_new_of(c->arena, struct idempotency);
	mine->caller = str_of(c->caller->id);
	mine->key = key;
	fingerprint(c, mine->fingerprint);
	pthread_mutex_lock(&lock);
	for (struct idempotency *i = in_flight; i && !taken; i = i->next)
		taken = str_eq(i->caller, mine->caller) && str_eq(i->key, mine->key);
	if (!taken) {
		mine->next = in_flight;
		if (in_flight)
			in_flight->prev = mine;
		in_flight = mine;
	}
	pthread_mutex_unlock(&lock);
	if (taken)
		return call_fail(
		        c, 409, "IDEMPOTENCY_KEY_IN_USE",
		        "A request with this Idempotency-Key is still under way. Try again when it has ended.");
	*ret_state = mine;
	return 0;
}

void idempotency_end(struct service *s, struct idempotency *state)
{
	if (!state)
		return;
	pthread_mutex_lock(&lock);
	if (state->prev)
		state->prev->next = state->next;
	else
		in_flight = state->next;
	if (state->next)
		state->next->prev = state->prev;
	pthread_mutex_unlock(&lock);
}

static struct str seal_context(struct call *c, struct idempotency *state)
{
	return arena_printf(c->arena, "answer/%.*s/%.*s", STR_ARG(state->caller), STR_ARG(state->key));
}

int idempotency_replay(struct call *c, struct idempotency *state)
{
	struct stored_answer kept;
	struct str plain;
	int result = tx_answer_get(c->tx, c->arena, state->caller, state->key, &kept);
	if (result == -ENOENT)
		return 0;
	if (result < 0)
		return result;
	if (!str_is(kept.fingerprint, state->fingerprint))
		return call_fail(c, 422, "IDEMPOTENCY_KEY_REUSED",
		                 "This Idempotency-Key was used for another request. Use a new key for a new request.");
	result = seal_open(c->arena, kept.answer, seal_context(c, state), &plain);
	if (result < 0)
		return result;
	json_t *answer = json_loadb(plain.p, plain.n, 0, NULL);
	if (!answer)
		return -EIO;
	c->status = (int)json_integer_value(json_object_get(answer, "status"));
	c->etag = json_integer_value(json_object_get(answer, "etag"));
	c->is_list = json_is_true(json_object_get(answer, "list"));
	json_t *location = json_object_get(answer, "location"), *body = json_object_get(answer, "body");
	c->location = arena_dup(c->arena, (struct str){json_string_value(location), json_string_length(location)});
	c->out.n = 0;
	buf_add(&c->out, json_string_value(body), json_string_length(body));
	json_decref(answer);
	call_header(c, STR("idempotency-replayed"), STR("true"));
	return 1;
}

int idempotency_keep(struct call *c, struct idempotency *state)
{
	struct buf b = {0};
	json_open(&b, '{');
	json_key(&b, "status");
	json_int(&b, c->status);
	json_key(&b, "etag");
	json_int(&b, c->etag);
	json_key(&b, "list");
	json_bool(&b, c->is_list);
	json_key(&b, "location");
	json_str(&b, c->location);
	json_key(&b, "body");
	json_str(&b, buf_view(&c->out));
	json_close(&b, '}');
	struct stored_answer kept = {.fingerprint = str_of(state->fingerprint),
	                             .answer = seal(c->arena, buf_view(&b), seal_context(c, state))};
	buf_free(&b);
	return tx_answer_put(c->tx, state->caller, state->key, &kept);
}
