/* Activity feeds: a link that any feed reader can follow, without credentials of its own (api/edge/feeds.c).
 *
 * The link's token is signed and says what was asked for (scope, filters), for whom, and until when. It gives no more
 * than its caller has. A token is text in base64url, a dot, and its signature. */
#include "api/events/events.h"
#include "api/kit/verbs.h"

#include "base/base64.h"
#include "base/clock.h"
#include "gate/right.h"

#define FEED_DAYS 90
#define TOKEN_MAX 8192
#define CLUSTER_NAME_MAX 64
#define SIGNATURE_TEXT BASE64_TEXT(32)

static void sign(struct str text, char ret_signature[SIGNATURE_TEXT])
{
	unsigned char mac[32];
	seal_mac("feed", text, mac);
	base64url_encode(mac, sizeof mac, ret_signature);
}

static int clusters_check(struct call *c)
{
	struct str rest = call_query(c, "clusterName"), one;
	while (rest.n) {
		str_cut(rest, ',', &one, &rest);
		if (one.n > CLUSTER_NAME_MAX)
			return call_fail_field(c, 400, "VALIDATION_ERROR", "clusterName",
			                       "must have at most %d characters each.", CLUSTER_NAME_MAX);
	}
	return 0;
}

static int token_make(struct call *c, const struct event_filter *f, struct str *ret_token)
{
	char signature[SIGNATURE_TEXT];
	json_t *token = json_keep(c->arena, json_object());
	json_put_z(token, "op", c->op->id);
	json_put_str(token, "scope", f->scope);
	if (f->types.n)
		json_put(token, "types", json_loadb(f->types.p, f->types.n, 0, NULL));
	if (f->clusters.n)
		json_put(token, "clusters", json_loadb(f->clusters.p, f->clusters.n, 0, NULL));
	if (f->has_min)
		json_put(token, "min", json_integer(f->min_ms));
	if (f->has_max)
		json_put(token, "max", json_integer(f->max_ms));
	json_put(token, "until", json_integer(clock_now_ms() + FEED_DAYS * INT64_C(86400000)));
	int result = right_link_put(c, token);
	if (result < 0)
		return result;
	struct str plain = json_text(c->arena, token);
	char *text = arena_alloc(c->arena, BASE64_TEXT(plain.n) + 1);
	base64url_encode(plain.p, plain.n, text);
	sign(str_of(text), signature);
	*ret_token = arena_printf(c->arena, "%s.%s", text, signature);
	return 0;
}

json_t *feed_token_read(struct arena *a, struct str token)
{
	struct str text, given;
	unsigned char mac[32];
	if (token.n > TOKEN_MAX || !str_cut(token, '.', &text, &given))
		return NULL;
	if (given.n != SIGNATURE_TEXT - 1 || base64_decode(given, mac, sizeof mac) != sizeof mac ||
	    !seal_mac_is("feed", text, mac, sizeof mac))
		return NULL;
	char *plain = arena_alloc(a, text.n + 1);
	ssize_t n = base64_decode(text, plain, text.n);
	return n < 0 ? NULL : doc_json(a, (struct str){plain, (size_t)n});
}

int feeds_link(struct call *c)
{
	struct event_filter f = {.in_org = false};
	struct str token = STR_NONE;
	int result = clusters_check(c);
	if (result == 0)
		result = events_filter(c, "clusterName", &f);
	if (result == 0)
		result = token_make(c, &f, &token);
	if (result < 0)
		return result;
	json_t *body = json_keep(c->arena, json_object());
	json_put_str(body, "link", arena_printf(c->arena, "%s" FEED_PATH "%.*s", c->service->base_url, STR_ARG(token)));
	entity_write(c, &c->out, json_text(c->arena, body), c->op, NULL, STR_NONE, false);
	return 0;
}
