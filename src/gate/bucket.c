/* Is there a token left in the rate limit's bucket? From here on every answer says how many are left. */
#include "call/service.h"
#include "call/workers.h"
#include "gate/gate.h"

void bucket_address(const struct ip *ip, char ret_text[IP_TEXT])
{
	if (ip_is_v4(ip)) {
		ip_format(ip, ret_text);
		return;
	}
	struct cidr network = {.net = *ip, .bits = 64};
	memset(network.net.b + 8, 0, 8);
	cidr_format(&network, ret_text);
}

static struct str number(struct arena *a, unsigned value)
{
	return str_from_u64(value, arena_alloc(a, U64_TEXT));
}

static int limit_refuse(struct call *c)
{
	const struct limit_answer *l = &c->limit;
	struct str path = c->request->path;
	struct buf b = {0};
	call_header(c, STR("retry-after"), number(c->arena, l->retry_after));
	int r = call_fail(c, 429, "RATE_LIMITED_TOKEN_BUCKET",
	                  "Rate limit exceeded for %.*s. Please retry after %u seconds. Request capacity: %u. Refill "
	                  "rate: %u per %u seconds.",
	                  STR_ARG(path), l->retry_after, l->capacity, l->refill, l->seconds);
	json_open(&b, '[');
	json_str(&b, path);
	json_int(&b, l->retry_after);
	json_int(&b, l->capacity);
	json_int(&b, l->refill);
	json_int(&b, l->seconds);
	json_close(&b, ']');
	c->problem.parameters = arena_dup(c->arena, buf_view(&b));
	buf_free(&b);
	return r;
}

int gate_bucket(struct call *c)
{
	char address[IP_TEXT];
	struct str scope = STR_NONE;
	/* A call takes one token, from the host that was called. */
	if ((c->v1 && !c->dialect) || call_is_passed_on(c))
		return 0;
	switch (c->op->set->scope) {
	case SCOPE_GROUP: scope = c->group.id; break;
	case SCOPE_ORGANIZATION: scope = c->org.id; break;
	case SCOPE_USER: scope = c->caller ? str_of(c->caller->id) : STR_NONE; break;
	case SCOPE_IP: break;
	}
	if (!scope.n) {
		bucket_address(&c->request->peer, address);
		scope = str_of(address);
	}
	if (limiter_is_shared(c->service->limiter))
		workers_share();
	limiter_take(c->service->limiter, c->op->set, scope, &c->limit);
	c->limited = true;
	call_header(c, STR("ratelimit-limit"), number(c->arena, c->limit.capacity));
	call_header(c, STR("ratelimit-remaining"), number(c->arena, c->limit.remaining));
	return c->limit.granted ? 0 : limit_refuse(c);
}
