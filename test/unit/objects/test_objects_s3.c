/* S3 servers that refuse, fail and lie: what is wrong is an error with words, never a short object or a short list. */
#include "fixture.h"

#include "base/buf.h"
#include "base/clock.h"

#include <sys/stat.h>

static struct server server;

static struct objects *open_s3(const char *prefix)
{
	char url[128];
	struct objects_options options = s3_options(&server, url);
	snprintf(url, sizeof url, "s3://bucket/%s", prefix);
	return open_made(&options);
}

static void test_open(void)
{
	struct objects_options right = s3_options(&server, "s3://bucket/x"), o = right;
	CHECK(open_result(right) == 0);
	o.url = "s3://bucket";
	CHECK(open_result(o) == 0);
	o.url = "s3://bucket/x/y=z/";
	CHECK(open_result(o) == 0);
	o = right;
	o.secret = "not-the-secret-at-all";
	CHECK(open_result(o) == -EACCES && says("SignatureDoesNotMatch: the signature does not match"));
	CHECK(!strstr(objects_why(), o.secret));
	o = right;
	o.key_id = "NOBODY";
	CHECK(open_result(o) == -EACCES && says("InvalidAccessKeyId"));
	o = right;
	o.region = "eu-west-1";
	CHECK(open_result(o) == -EINVAL && says("us-east-1"));
	o = right;
	o.url = "s3://other";
	CHECK(open_result(o) == -ENOENT && says("other"));
	o = right;
	o.endpoint = "http://127.0.0.1:1";
	CHECK(open_result(o) == -EHOSTUNREACH && *objects_why());
	o.endpoint = "http://no-such-host.invalid";
	CHECK(open_result(o) == -EHOSTUNREACH);
	o = right;
	o.key_id = NULL;
	CHECK(open_result(o) == -EINVAL);
	o = right;
	o.secret = "with\nline";
	CHECK(open_result(o) == -EINVAL);
	static const char *const urls[] = {"s3://",           "s3:///x",          "s3://ab",
	                                   "s3://a b c",      "s3://bucket/a//b", "s3://bucket/..",
	                                   "s3://bucket/a b", "s3://bucket?x"};
	static const char *const endpoints[] = {"127.0.0.1",        "ftp://127.0.0.1", "http://",    "http://a/b",
	                                        "http://user@host", "http://host?x",   "file:///etc"};
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		o = right;
		o.url = urls[i];
		CHECK(open_result(o) == -EINVAL && *objects_why());
	}
	for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
		o = right;
		o.endpoint = endpoints[i];
		CHECK(open_result(o) == -EINVAL && says("endpoint"));
	}
	o = right;
	o.region = "a:b";
	CHECK(open_result(o) == -EINVAL && says("region"));
}

static void test_token(void)
{
	struct server own = server_start("s3_server.py", "--token", "a-session-token");
	struct objects_options o = s3_options(&own, "s3://bucket/x");
	CHECK(open_result(o) == -EACCES);
	o.token = "another";
	CHECK(open_result(o) == -EACCES && says("InvalidToken"));
	o.token = "a-session-token";
	CHECK(open_result(o) == 0);
	/* What a server repeats of it is not shown. */
	server_say(&own, "fault GET say 1 403 AccessDenied you sent a-session-token to me");
	CHECK(open_result(o) == -EACCES && says("403") && !strstr(objects_why(), "a-session-token"));
	server_stop(&own);
}

static void test_tls(void)
{
	char ca[128], other[128];
	folder_make();
	struct server own = server_start("s3_server.py", "--tls", folder);
	struct objects_options o = s3_options(&own, "s3://bucket/x");
	snprintf(ca, sizeof ca, "%s/ca.crt", folder);
	snprintf(other, sizeof other, "%s/none.crt", folder);
	CHECK(open_result(o) == -EACCES && *objects_why());
	o.ca_file = other;
	CHECK(open_result(o) == -EACCES);
	o.ca_file = ca;
	CHECK(open_result(o) == 0);
	/* Not the name in the certificate. */
	char named[64];
	snprintf(named, sizeof named, "https://localhost%s", strrchr(own.endpoint, ':'));
	o.endpoint = named;
	CHECK(open_result(o) == -EACCES);
	server_stop(&own);
	folder_remove();
}

/* What may pass is tried again, and not without end. */
static void test_retries(void)
{
	struct objects *o = open_s3("retries");
	uint64_t size;
	static const char *const passing[] = {"status 2 500", "status 3 503", "status 1 429", "status 2 502", "drop 2"};
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
		char line[64];
		snprintf(line, sizeof line, "fault * %s", passing[i]);
		server_say(&server, "%s", line);
		CHECK(put_of(o, "a", (unsigned)i, 3 * PART + 1) == 0);
		server_say(&server, "%s", line);
		CHECK(has_range(o, "a", (unsigned)i, 0, 0, 3 * PART + 1));
		server_say(&server, "%s", line);
		CHECK(objects_size(o, "a", &size) == 0);
		server_say(&server, "%s", line);
		CHECK(count_of(o, "") == 1);
		server_say(&server, "%s", line);
		CHECK(objects_delete(o, "a") == 0);
		CHECK(count_of(o, "") == 0);
	}
	int before = server_say(&server, "count PUT");
	server_say(&server, "fault PUT status 1000 503");
	CHECK(put_of(o, "b", 1, 10) == -EHOSTUNREACH && says("503 SlowDown"));
	int tries = server_say(&server, "count PUT") - before;
	CHECK(tries > 2 && tries < 10);
	server_say(&server, "clear");
	before = server_say(&server, "count PUT");
	server_say(&server, "fault PUT say 1 400 Odd it is odd");
	CHECK(put_of(o, "b", 1, 10) == -EIO && says("Odd: it is odd") &&
	      server_say(&server, "count PUT") == before + 1);
	CHECK(has_none(o, "b") && server_say(&server, "uploads") == 0);
	objects_close(o);
}

static int slow_write(void *ctx, const void *bytes, size_t n)
{
	struct sink *s = ctx;
	if (s->at == 0)
		sleep(7);
	return sink_write(ctx, bytes, n);
}

static void test_stall(void)
{
	struct objects *o = open_s3("stall");
	CHECK(put_of(o, "a", 1, 100000) == 0);
	int64_t begun = clock_mono_us();
	server_say(&server, "fault GET hang 100 20");
	CHECK(count_of(o, "") == -ETIMEDOUT);
	server_say(&server, "clear");
	/* Some bytes, and then none: it goes on elsewhere; none at all: it is given up. */
	server_say(&server, "fault GET drip 1 50000");
	CHECK(has_range(o, "a", 1, 0, 0, 100000));
	server_say(&server, "fault GET drip 100 0");
	struct sink s = {.seed = 1};
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -ETIMEDOUT && s.at == 0);
	server_say(&server, "clear");
	CHECK(clock_mono_us() - begun < INT64_C(40000000));
	objects_close(o);
}

/* A server that never stands still, and never comes to an end. */
static void test_crawl(void)
{
	struct objects *o = open_s3("crawl");
	int64_t begun = clock_mono_us();
	server_say(&server, "fault PUT crawl 100 5000");
	CHECK(put_of(o, "a", 1, 1000) == -ETIMEDOUT && says("too slow"));
	server_say(&server, "clear");
	CHECK(has_none(o, "a") && put_of(o, "a", 1, 1000) == 0);
	server_say(&server, "fault GET crawl 100 5000");
	CHECK(count_of(o, "") == -ETIMEDOUT && says("too slow"));
	server_say(&server, "clear");
	CHECK(count_of(o, "") == 1);
	/* Who takes the bytes may be slow. */
	CHECK(put_of(o, "b", 2, 40000) == 0);
	struct sink s = {.seed = 2};
	CHECK(objects_get(o, "b", 0, 0, slow_write, &s) == 0 && s.at == 40000 && s.wrong == 0);
	CHECK(clock_mono_us() - begun < INT64_C(90000000));
	objects_close(o);
}

/* A get that is cut off goes on, of the same object or not at all. */
static void test_cut(void)
{
	struct objects *o = open_s3("cut");
	CHECK(put_of(o, "a", 2, 200000) == 0);
	server_say(&server, "fault GET cut 5 30000");
	CHECK(has_range(o, "a", 2, 0, 0, 200000));
	server_say(&server, "clear");
	server_say(&server, "fault GET cut 2 1000");
	CHECK(has_range(o, "a", 2, 777, 5000, 5000));
	server_say(&server, "clear");
	struct sink s = {.seed = 2};
	server_say(&server, "fault GET cut 1000 0");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EHOSTUNREACH && s.at == 0);
	server_say(&server, "clear");
	/* One byte each time: bounded. */
	int before = server_say(&server, "count GET");
	s = (struct sink){.seed = 2};
	server_say(&server, "fault GET cut 100000 1");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) < 0 && s.wrong == 0 && s.at < 100);
	CHECK(server_say(&server, "count GET") - before < 100);
	server_say(&server, "clear");
	/* Another object lies there when it goes on. */
	s = (struct sink){.seed = 2};
	server_say(&server, "fault GET cut 1 1000");
	server_say(&server, "fault GET changed 1");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -ESTALE && s.at == 1000);
	server_say(&server, "clear");
	static const char *const lies[] = {"no-length", "no-range", "wrong-range", "short-range"};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		s = (struct sink){.seed = 2, .from = 10};
		server_say(&server, "fault GET %s 1", lies[i]);
		CHECK(objects_get(o, "a", 10, 100000, sink_write, &s) == -EPROTO && s.at == 0);
		server_say(&server, "clear");
	}
	s = (struct sink){.seed = 2};
	server_say(&server, "fault GET no-length 1");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EPROTO && s.at == 0);
	server_say(&server, "clear");
	objects_close(o);
}

/* Parts become an object whole or not at all. */
static void test_parts(void)
{
	struct objects *o = open_s3("parts");
	server_say(&server, "fault POST complete-error 2 InternalError");
	CHECK(put_of(o, "a", 3, 3 * PART) == 0 && has_object(o, "a", 3, 3 * PART));
	server_say(&server, "fault POST complete-lost 1");
	CHECK(put_of(o, "b", 4, 3 * PART) == 0 && has_object(o, "b", 4, 3 * PART));
	server_say(&server, "fault POST complete-error 100 AccessDenied");
	CHECK(put_of(o, "c", 5, 3 * PART) < 0 && says("AccessDenied") && has_none(o, "c"));
	server_say(&server, "clear");
	server_say(&server, "fault POST complete-error 100 InternalError");
	CHECK(put_of(o, "c", 5, 3 * PART) < 0 && has_none(o, "c"));
	server_say(&server, "clear");
	server_say(&server, "fault POST raw 1 <InitiateMultipartUploadResult/>");
	CHECK(put_of(o, "c", 5, 3 * PART) == -EPROTO && has_none(o, "c"));
	server_say(&server, "fault PUT say 1 507 XMinioStorageFull full");
	CHECK(put_of(o, "c", 5, 3 * PART) == -ENOSPC && says("full") && has_none(o, "c"));
	server_say(&server, "fault PUT say 1 403 QuotaExceeded full");
	CHECK(put_of(o, "c", 5, 3 * PART) == -EDQUOT);
	server_say(&server, "fault PUT say 1 403 AccessDenied no");
	server_say(&server, "fault DELETE status 100 500");
	CHECK(put_of(o, "c", 5, 3 * PART) == -EACCES && says("AccessDenied"));
	server_say(&server, "clear");
	CHECK(server_say(&server, "uploads") == 1);
	CHECK(has_object(o, "a", 3, 3 * PART) && count_of(o, "") == 2);
	objects_close(o);
}

/* Uploads that were left are ended when they are days old, and only those below the store's prefix. */
static void test_left(void)
{
	int before = server_say(&server, "uploads");
	server_say(&server, "old left/a");
	server_say(&server, "old left/b/c");
	server_say(&server, "old lefter/c");
	server_say(&server, "old left/not~ours");
	CHECK(server_say(&server, "uploads") == before + 4);
	objects_close(open_s3("left"));
	CHECK(server_say(&server, "uploads") == before + 2);
	objects_close(open_s3("parts"));
	CHECK(server_say(&server, "uploads") == before + 2);
	/* A whole bucket may be others' too: all are left alone but those below what is ours. */
	objects_close(open_s3(""));
	CHECK(server_say(&server, "uploads") == before + 2);
	struct objects_options o = s3_options(&server, "s3://bucket");
	o.own = "lefter/";
	CHECK(open_result(o) == 0 && server_say(&server, "uploads") == before + 1);
}

static int last_visit(void *ctx, const struct object_info *info)
{
	struct buf *last = ctx;
	CHECK(!last->n || strcmp(last->p, info->name) < 0);
	last->n = 0;
	buf_add(last, info->name, strlen(info->name) + 1);
	return 0;
}

static int thousands_visit(void *ctx, const struct object_info *info)
{
	return ++*(unsigned *)ctx == 5500 ? -ECANCELED : 0;
}

static void test_list(void)
{
	struct objects *o = open_s3("list");
	struct buf last = {0};
	/* Keys that no object here has are passed over. */
	server_say(&server, "object list/with~tilde 1");
	server_say(&server, "object list/a&amp;b 1");
	server_say(&server, "object list//double 1");
	server_say(&server, "object list/ 1");
	CHECK(count_of(o, "") == 0);
	for (unsigned i = 0; i < 2500; i++)
		server_say(&server, "object list/%u 1", i * 7);
	CHECK(objects_list(o, "", last_visit, &last) == 0 && count_of(o, "") == 2500);
	buf_free(&last);
	static const char *const lies[] = {"again",  "empty",    "backwards", "foreign", "doctype",
	                                   "silent", "no-token", "size",      "half"};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		server_say(&server, "fault GET list 100000 %s", lies[i]);
		int before = server_say(&server, "count GET");
		CHECK(count_of(o, "") == -EPROTO && says("the list"));
		CHECK(server_say(&server, "count GET") - before < 200);
		server_say(&server, "clear");
	}
	/* A list that never ends is ended by who reads it. */
	unsigned count = 0;
	server_say(&server, "fault GET list 100000 climb");
	CHECK(objects_list(o, "", thousands_visit, &count) == -ECANCELED && count == 5500);
	server_say(&server, "clear");
	static const char *const bodies[] = {
	        "",
	        "x",
	        "<ListBucketResult>",
	        "<Other><IsTruncated>false</IsTruncated></Other>",
	        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult><x/>",
	        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents/></ListBucketResult>",
	        "<ListBucketResult><IsTruncated>false</IsTruncated>&x;</ListBucketResult>",
	        "<ListBucketResult><IsTruncated>false</IsTruncated>&#0;</ListBucketResult>",
	        "<a><a><a><a><a><a><a><a><a><a>",
	        "<ListBucketResult a='>'><IsTruncated>fa<b/>lse</IsTruncated></ListBucketResult>"};
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		server_say(&server, "fault GET raw 1 %s", bodies[i]);
		CHECK(count_of(o, "") == -EPROTO);
	}
	server_say(
	        &server,
	        "fault GET raw 1 <ListBucketResult b='>'><!--<--><IsTruncated><![CDATA[false]]></IsTruncated><Contents>"
	        "<Size>&#x35;</Size><Key>list/&#97;</Key></Contents></ListBucketResult>");
	CHECK(count_of(o, "") == 1);
	objects_close(o);
}

static void test_hostile(void)
{
	struct objects *o = open_s3("hostile");
	CHECK(put_of(o, "a", 1, 10) == 0);
	server_say(&server, "fault GET endless 1 200");
	CHECK(count_of(o, "") == -EPROTO && says("too long"));
	server_say(&server, "fault GET endless 1 403");
	CHECK(count_of(o, "") == -EACCES);
	struct sink s = {.seed = 1};
	server_say(&server, "fault GET endless 1 200");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EPROTO && s.at == 0);
	/* Nobody is led elsewhere, with or without the keys. */
	int before = server_say(&server, "count *");
	server_say(&server, "fault * redirect 1 %s/bucket/hostile/a", server.endpoint);
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EPROTO && says("eu-west-9") && s.at == 0);
	CHECK(server_say(&server, "count *") == before + 1);
	server_say(&server, "fault GET say 1 403 AccessDenied a&#10;b&#27;[31mc&#13;");
	CHECK(count_of(o, "") == -EACCES && says("a b [31mc") && !strpbrk(objects_why(), "\n\r\x1b"));
	server_say(&server, "fault GET say 1 403 AccessDenied your key is " SECRET);
	CHECK(count_of(o, "") == -EACCES && !strstr(objects_why(), SECRET));
	server_say(&server, "fault * say 1 404 NoSuchBucket gone");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EHOSTUNREACH && says("NoSuchBucket"));
	CHECK(has_object(o, "a", 1, 10));
	objects_close(o);
}

/* Connections are kept. */
static void test_connections(void)
{
	struct objects *o = open_s3("connections");
	int before = server_say(&server, "connections");
	for (int i = 0; i < 50; i++)
		CHECK(put_of(o, "a", 1, 10) == 0 && has_object(o, "a", 1, 10));
	CHECK(server_say(&server, "connections") - before <= 1);
	objects_close(o);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
        {"open", test_open},   {"token", test_token}, {"tls", test_tls},         {"retries", test_retries},
        {"stall", test_stall}, {"crawl", test_crawl}, {"cut", test_cut},         {"parts", test_parts},
        {"left", test_left},   {"list", test_list},   {"hostile", test_hostile}, {"connections", test_connections},
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	server = server_start("s3_server.py", NULL, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t begun = clock_mono_us();
		cases[i].run();
		printf("%s: %lld ms\n", cases[i].name, (long long)(clock_mono_us() - begun) / 1000);
	}
	server_stop(&server);
	return CHECK_DONE();
}
