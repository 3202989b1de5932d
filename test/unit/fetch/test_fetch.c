/* What leaves: which addresses may be reached, and one request against a server that answers as it is told. */
#include "check.h"

#include "fetch/fetch.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void test_addresses(void)
{
	static const struct {
		const char *address;
		bool tenant, answer, provider;
	} rows[] = {{"203.0.114.9", true, true, true},  {"10.1.2.3", false, false, true},
	            {"127.0.0.1", false, false, false}, {"169.254.169.254", false, false, false},
	            {"0.0.0.0", false, false, false},   {"::1", false, false, false},
	            {"fe80::1", false, false, false},   {"2a00:1450::1", true, true, true},
	            {"224.0.0.1", false, false, false}};
	struct cidr inner;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ip ip;
		CHECK(ip_parse(str_of(rows[i].address), &ip));
		CHECK(fetch_may_reach(FETCH_BY_OPERATOR, &ip));
		CHECK(fetch_may_reach(FETCH_BY_TENANT, &ip) == rows[i].tenant);
		CHECK(fetch_may_reach(FETCH_BY_ANSWER, &ip) == rows[i].answer);
		CHECK(fetch_may_reach(FETCH_BY_PROVIDER, &ip) == rows[i].provider);
	}
	CHECK(cidr_parse(STR("10.1.0.0/16"), &inner));
	fetch_allow(false, &inner, 1);
	struct ip in, out;
	CHECK(ip_parse(STR("10.1.2.3"), &in) && ip_parse(STR("10.2.2.3"), &out));
	CHECK(fetch_may_reach(FETCH_BY_TENANT, &in) && !fetch_may_reach(FETCH_BY_TENANT, &out));
	CHECK(!fetch_may_reach(FETCH_BY_ANSWER, &in)); /* not even there */
	fetch_allow(false, NULL, 0);
}

static void test_encode(void)
{
	struct buf b = {0};
	fetch_encode(&b, STR("a-Z0._~/ \xc3\xa4&"), "");
	CHECK(str_is(buf_view(&b), "a-Z0._~%2F%20%C3%A4%26"));
	b.n = 0;
	fetch_encode(&b, STR("a/b c"), "/");
	CHECK(str_is(buf_view(&b), "a/b%20c"));
	b.n = 0;
	fetch_encode(&b, (struct str){"\0", 1}, "/"); /* which every text ends with */
	CHECK(str_is(buf_view(&b), "%00"));
	buf_free(&b);
}

/* --- a server for one request */

static struct {
	int fd;
	char url[64], heard[4096];
	const char *says;
	bool mute;
} site;

static void *site_serve(void *ctx)
{
	int fd = accept(site.fd, NULL, NULL);
	size_t n = 0;
	ssize_t got;
	while (fd >= 0 && n < sizeof site.heard - 1 &&
	       (got = read(fd, site.heard + n, sizeof site.heard - 1 - n)) > 0) {
		n += (size_t)got;
		site.heard[n] = '\0';
		const char *body = strstr(site.heard, "\r\n\r\n");
		if (body && (!strstr(site.heard, "POST ") || body[4]))
			break;
	}
	if (!site.mute && fd >= 0 && write(fd, site.says, strlen(site.says)) < 0)
		perror("write");
	/* Until the other side is done, so that it is not the end of the connection that ends the request. */
	while (fd >= 0 && read(fd, site.heard + n, sizeof site.heard - 1 - n) > 0)
		;
	close(fd);
	return NULL;
}

static void ask(const char *says, struct fetch_request *r, struct fetch_answer *a)
{
	pthread_t thread;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	memset(site.heard, 0, sizeof site.heard);
	site.says = says;
	site.mute = !says;
	site.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(site.fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(site.fd, 1) == 0 &&
	      getsockname(site.fd, (struct sockaddr *)&at, &n) == 0);
	CHECK(pthread_create(&thread, NULL, site_serve, NULL) == 0);
	snprintf(site.url, sizeof site.url, "http://127.0.0.1:%u/path", ntohs(at.sin_port));
	r->url = site.url;
	r->protocols = r->protocols ? r->protocols : "http";
	r->connect_seconds = r->all_seconds = 20;
	fetch_run(r, a);
	shutdown(site.fd, SHUT_RDWR); /* where nobody has come */
	pthread_join(thread, NULL);
	close(site.fd);
}

#define ANSWER(body) "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n" body

static void test_answers(void)
{
	struct fetch_answer a = {.status = 0};
	struct fetch_request r = {.named = FETCH_BY_OPERATOR, .most = 10};
	ask(ANSWER("0123456789"), &r, &a);
	CHECK(a.code == CURLE_OK && a.status == 200 && !a.fault[0] && str_is(buf_view(&a.body), "0123456789"));
	CHECK(strstr(site.heard, "GET /path ") && strstr(site.heard, "User-Agent: " FETCH_AGENT "\r\n"));
	/* Of the next one nothing of the last is left. */
	r = (struct fetch_request){
	        .named = FETCH_BY_OPERATOR, .most = 10, .keeps = 3, .posts = true, .body = STR("sent"), .agent = "me"};
	ask(ANSWER("abcdefghij"), &r, &a);
	CHECK(a.code == CURLE_OK && str_is(buf_view(&a.body), "abc") && !a.too_long);
	CHECK(strstr(site.heard, "POST /path ") && strstr(site.heard, "\r\n\r\nsent") &&
	      strstr(site.heard, "User-Agent: me\r\n"));
	r = (struct fetch_request){.named = FETCH_BY_OPERATOR, .most = 9, .wipes = true};
	ask(ANSWER("0123456789"), &r, &a);
	CHECK(a.code != CURLE_OK && a.too_long && strcmp(a.fault, "the answer is too long") == 0);
	/* A redirect is an answer as any other. */
	r = (struct fetch_request){.named = FETCH_BY_OPERATOR, .most = 10};
	ask("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", &r,
	    &a);
	CHECK(a.code == CURLE_OK && a.status == 302 && a.body.n == 0);
	fetch_answer_free(&a);
}

static bool stops(void *ctx)
{
	return true;
}

static void test_refusals(void)
{
	struct fetch_answer a = {.status = 0};
	struct fetch_request r = {.named = FETCH_BY_TENANT, .most = 10};
	ask(ANSWER("0123456789"), &r, &a);
	CHECK(a.code != CURLE_OK && a.refused && strcmp(a.fault, FETCH_REFUSED) == 0 && !site.heard[0]);
	r = (struct fetch_request){.named = FETCH_BY_OPERATOR, .most = 10, .protocols = "https"};
	ask(ANSWER("0123456789"), &r, &a);
	CHECK(a.code == CURLE_UNSUPPORTED_PROTOCOL && a.fault[0] && !site.heard[0]);
	r = (struct fetch_request){.named = FETCH_BY_OPERATOR, .most = 10, .stops = stops};
	ask(NULL, &r, &a);
	CHECK(a.code == CURLE_ABORTED_BY_CALLBACK && a.fault[0] && a.body.n == 0);
	fetch_answer_free(&a);
}

int main(void)
{
	CHECK(fetch_memory_setup() == 0);
	test_addresses();
	test_encode();
	test_answers();
	test_refusals();
	curl_global_cleanup();
	return CHECK_DONE();
}
