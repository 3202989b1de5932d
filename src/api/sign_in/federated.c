/* The session's cookie is Strict: a browser does not send it on a redirect that began elsewhere. So who comes back from
 * an identity provider is answered with a page of ours that goes on by itself. */
#include "api/sign_in/federated.h"

#include "base/log.h"
#include "call/query.h"

#define ATTRIBUTES "; Path=/; Secure; HttpOnly; SameSite=Lax"
#define TO_MAX 512
#define HOME "/console/"
#define SIGN_IN_PAGE "/console/sign-in?fault="

struct str federated_field(const struct visit *v, struct str form, const char *wanted, size_t most)
{
	struct str rest = form, name, value, found = STR_NONE;
	size_t count = 0;
	while (query_next(&rest, &name, &value) && count < 2)
		if (str_is(name, wanted) && count++ == 0 && !query_decode(value, v->arena, &found))
			return STR_NONE;
	return count == 1 && found.n <= most ? found : STR_NONE;
}

struct str federated_parameter(const struct visit *v, const char *name, size_t most)
{
	return federated_field(v, v->request->query, name, most);
}

struct str federated_target(const struct visit *v)
{
	struct str to = federated_parameter(v, "to", TO_MAX);
	bool fits = str_starts(to, STR(HOME));
	for (size_t i = 0; fits && i < to.n; i++)
		fits = to.p[i] > ' ' && to.p[i] < 0x7f && to.p[i] != '\\' && to.p[i] != '"' && to.p[i] != '<';
	return fits ? to : STR(HOME);
}

bool federated_is_from_here(const struct request *r)
{
	enum fetch_site site = request_fetch_site(r);
	return site == FETCH_SAME_ORIGIN || site == FETCH_UNSAID;
}

void federated_cookie(struct visit *v, const char *name, struct str ticket, int seconds)
{
	call_header(&v->call, STR("set-cookie"),
	            arena_printf(v->arena, "%s=%.*s; Max-Age=%d" ATTRIBUTES, name, STR_ARG(ticket), seconds));
}

int federated_redirect(struct visit *v, struct str url)
{
	v->status = 302;
	call_header(&v->call, STR("cache-control"), STR("no-store"));
	call_header(&v->call, STR("location"), url);
	return 0;
}

int federated_redirect_fault(struct visit *v, const char *fault)
{
	v->slow = v->save = NULL;
	return federated_redirect(v, arena_printf(v->arena, SIGN_IN_PAGE "%s", fault));
}

static void html_text(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr("&<>\"'", s.p[i]))
			buf_printf(b, "&#%d;", s.p[i]);
		else
			buf_c(b, s.p[i]);
	}
}

void federated_page(struct visit *v, const char *cookie, struct str to)
{
	struct buf b = {0};
	buf_z(&b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Steward</title>\n"
	          "<meta http-equiv=\"refresh\" content=\"0;url=");
	html_text(&b, to);
	buf_z(&b, "\">\n<p><a href=\"");
	html_text(&b, to);
	buf_z(&b, "\">Go on</a></p>\n</html>\n");
	v->page = buf_keep(&b, v->arena);
	v->status = 200;
	call_header(&v->call, STR("cache-control"), STR("no-store"));
	if (cookie)
		call_header(&v->call, STR("set-cookie"), arena_printf(v->arena, "%s=; Max-Age=0" ATTRIBUTES, cookie));
}

int federated_page_fault(struct visit *v, const char *cookie, const char *fault)
{
	federated_page(v, cookie, arena_printf(v->arena, SIGN_IN_PAGE "%s", fault));
	v->slow = v->save = NULL;
	return 0;
}

bool federated_refused(struct visit *v, bool kept, const char *cookie, const char *fault)
{
	struct problem *p = &v->call.problem;
	if (kept || (p->status != 403 && p->status != 409))
		return false;
	log_info("sign-in: %.*s", STR_ARG(p->detail));
	*p = (struct problem){0};
	v->call.extra_header_count = v->headers;
	v->cookie = STR_NONE;
	return federated_page_fault(v, cookie, fault) == 0;
}
