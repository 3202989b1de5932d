/* Accept: the parser, the choice, and the answers of the gate. */
#include "gate_fixture.h"

static const struct op_version versions[] = {
        {.date = "2023-01-01", .sunset = "2027-07-01"}, {.date = "2023-02-01"}, {.date = "2024-08-05"}};
static const struct op op = {.id = "x", .versions = versions, .version_count = 3, .produces = PRODUCES_JSON};
static const struct op logs = {.id = "l", .versions = versions, .version_count = 1, .produces = PRODUCES_GZIP};
static const struct op invoice = {
        .id = "i", .versions = versions + 1, .version_count = 1, .produces = PRODUCES_CSV | PRODUCES_JSON};

/* The date and form that are chosen, as "2023-01-01/1"; "none". */
static const char *choose(const struct op *o, const char *text)
{
	static char out[32];
	struct accept a = {.count = 0};
	const struct op_version *v;
	unsigned produces;
	size_t n = strlen(text);
	char *copy = must_malloc(n + 1);
	memcpy(copy, text, n);
	copy = must_realloc(copy, n ? n : 1);
	accept_parse((struct str){copy, n}, STR(API_MEDIA), &a);
	free(copy);
	if (accept_choose(&a, o, &v, &produces) < 0)
		return "none";
	snprintf(out, sizeof out, "%.10s/%u", v->date, produces);
	return out;
}

static bool is(const struct op *o, const char *accept, const char *expected)
{
	const char *got = choose(o, accept);
	if (strcmp(got, expected) != 0)
		fprintf(stderr, "%s: %s, not %s\n", accept, got, expected);
	return strcmp(got, expected) == 0;
}

static void test_choice(void)
{
	CHECK(is(&op, "application/json", "2024-08-05/1"));
	CHECK(is(&op, "*/*", "2024-08-05/1"));
	CHECK(is(&op, "application/*", "2024-08-05/1"));
	CHECK(is(&op, "application/vnd.svc.2023-01-01+json", "2023-01-01/1"));
	CHECK(is(&op, "Application/VND.svc.2023-01-31+JSON", "2023-01-01/1"));
	CHECK(is(&op, "application/vnd.svc.2023-02-01+json", "2023-02-01/1"));
	CHECK(is(&op, "application/vnd.svc.2024-08-04+json; charset=utf-8", "2023-02-01/1"));
	CHECK(is(&op, "application/vnd.svc.2099-12-31+json", "2024-08-05/1"));
	CHECK(is(&op, "application/vnd.svc.2022-12-31+json", "none"));
	CHECK(is(&op, "application/vnd.svc.2023-02-30+json", "none"));
	CHECK(is(&op, "application/vnd.svc.20230201+json", "none"));
	CHECK(is(&op, "application/vnd.svc.preview+json", "none"));
	CHECK(is(&op, "application/vnd.svc.2023-02-01", "none"));
	CHECK(is(&op, "application/vnd.svc.2023-02-01+xml", "none"));
	CHECK(is(&op, "application/vnd.svc.2023-02-01+gzip", "none"));
	CHECK(is(&op, "application/vnd.other.2023-02-01+json", "none"));
	CHECK(is(&op, "text/html", "none"));
	CHECK(is(&op, "text/html, */*;q=0.1", "2024-08-05/1"));
	CHECK(is(&op, "*/*;q=0.1, application/vnd.svc.2023-01-01+json;q=0.9", "2023-01-01/1"));
	CHECK(is(&op, "application/vnd.svc.2023-01-01+json, application/vnd.svc.2023-02-01+json", "2023-01-01/1"));
	CHECK(is(&op, "*/*, application/vnd.svc.2023-01-01+json", "2023-01-01/1"));
	CHECK(is(&op, "application/json, application/vnd.svc.2023-01-01+json, */*", "2023-01-01/1"));
	CHECK(is(&op, "application/json, application/vnd.svc.2023-01-01+json;q=0.9", "2024-08-05/1"));
	CHECK(is(&op, "*/*, application/vnd.svc.2022-01-01+json", "2024-08-05/1"));
	CHECK(is(&op, "*/*;q=0", "none"));
	CHECK(is(&op, "application/vnd.svc.2023-01-01+json;q=0.5, application/vnd.svc.2023-02-01+json;q=0.501",
	         "2023-02-01/1"));
	CHECK(is(&op, "application/vnd.svc.1999-01-01+json, application/json;q=0.2", "2024-08-05/1"));
	CHECK(is(&op, "application/json;q=0", "none"));
	CHECK(is(&op, "application/json;q=1.1", "none"));
	CHECK(is(&op, "application/json;q=abc", "none"));
	CHECK(is(&op, "application/json;q=0.1234", "none"));
	CHECK(is(&op, "application/json;q=1.000", "2024-08-05/1"));
	CHECK(is(&op, "text/html;x=\"a,application/json,b\"", "none"));
	CHECK(is(&op, "text/html;x=\"a\\\"\", application/json", "2024-08-05/1"));
	CHECK(is(&op, ",,, ,", "none"));
	CHECK(is(&op, "", "none"));
	CHECK(is(&op, "\"", "none"));
	CHECK(is(&op, "x;\"\\", "none"));
	CHECK(is(&logs, "application/vnd.svc.2023-01-01+gzip", "2023-01-01/2"));
	CHECK(is(&logs, "application/gzip", "2023-01-01/2"));
	CHECK(is(&logs, "*/*", "2023-01-01/2"));
	CHECK(is(&logs, "application/json", "none"));
	CHECK(is(&invoice, "*/*", "2023-02-01/1"));
	CHECK(is(&invoice, "text/csv", "2023-02-01/4"));
	CHECK(is(&invoice, "application/vnd.svc.2024-01-01+csv", "2023-02-01/4"));
	struct buf many = {0};
	for (int i = 0; i < 100; i++)
		buf_z(&many, "text/html,");
	buf_z(&many, "application/json");
	buf_c(&many, '\0');
	CHECK(is(&op, many.p, "none")); /* beyond the bound */
	buf_free(&many);
}

static void test_gate(void)
{
	struct call *c = fixture_call(&op, "GET", "/", NULL);
	CHECK(gate_version(c) == 0 && c->version == &versions[2] && c->produces == PRODUCES_JSON &&
	      !c->extra_header_count);
	c = fixture_call(&op, "GET", "/", "accept", "", NULL);
	CHECK(gate_version(c) == 0 && c->version == &versions[2]);
	c = fixture_call(&op, "GET", "/", "accept", "text/html", "accept", "application/vnd.svc.2023-01-01+json", NULL);
	CHECK(gate_version(c) == 0 && c->version == &versions[0]);
	CHECK(str_is(fixture_header(c, "sunset", 0), "Thu, 01 Jul 2027 00:00:00 GMT"));
	CHECK(str_is(fixture_header(c, "deprecation", 0), "@1675209600"));
	/* The whole operation is deprecated, and nobody knows when it ends. */
	struct op gone = op;
	gone.deprecated = true;
	c = fixture_call(&gone, "GET", "/", NULL);
	CHECK(gate_version(c) == 0 && str_is(fixture_header(c, "deprecation", 0), "@1722816000"));
	CHECK(!fixture_header(c, "sunset", 0).n);
	c = fixture_call(&op, "GET", "/", "accept", "application/vnd.svc.2020-01-01+json", NULL);
	CHECK(gate_version(c) == -406 && strcmp(c->problem.code, "VERSION_NOT_AVAILABLE") == 0);
	CHECK(memmem(c->problem.detail.p, c->problem.detail.n, "2023-01-01, 2023-02-01, 2024-08-05", 34));
	CHECK(str_is(c->problem.parameters, "[\"2023-01-01\",\"2023-02-01\",\"2024-08-05\"]"));
	c = fixture_call(&op, "GET", "/", "accept", "application/vnd.svc.preview+json", NULL);
	CHECK(gate_version(c) == -406 && strcmp(c->problem.code, "INVALID_VERSION_DATE") == 0);
	c = fixture_call(&op, "GET", "/", "accept", "image/png", NULL);
	CHECK(gate_version(c) == -406 && strcmp(c->problem.code, "NOT_ACCEPTABLE") == 0);
}

int main(void)
{
	fx.arena = arena_new();
	test_choice();
	test_gate();
	arena_free(fx.arena);
	return CHECK_DONE();
}
