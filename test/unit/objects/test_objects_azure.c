/* Azure's Blob service, by azurite, which verifies each signature and checksum: what is refused and why, what is cut off,
 * damaged or lost on the way. */
#include "fixture.h"

static struct server server;

static struct objects *open_azure(const char *prefix)
{
	char url[128];
	struct objects_options options = azure_options(&server, url);
	snprintf(url, sizeof url, "azure://bucket/%s", prefix);
	return open_made(&options);
}

static void test_open(void)
{
	struct objects_options right = azure_options(&server, "azure://bucket/x"), o = right;
	CHECK(open_result(right) == 0);
	o.url = "azure://bucket";
	CHECK(open_result(o) == 0);
	o = right;
	o.secret = "bm90IHRoZSBrZXkgYXQgYWxs";
	CHECK(open_result(o) == -EACCES && says("the account's key") && !strstr(objects_why(), o.secret));
	o = right;
	o.url = "azure://other-container";
	CHECK(open_result(o) == -ENOENT && says("there is no bucket other-container"));
	o = right;
	o.account = "anotheraccount";
	CHECK(open_result(o) < 0);
	o = right;
	o.endpoint = "http://no-such-host.invalid";
	CHECK(open_result(o) == -EHOSTUNREACH && says("is there a storage account of this name?"));
	o = right;
	o.secret = "not*base64";
	CHECK(open_result(o) == -EINVAL && says("base64"));
	o = right;
	o.account = "with/slash";
	CHECK(open_result(o) == -EINVAL && says("account"));
	o = right;
	o.token = "a-token";
	o.endpoint = "http://blob.example.com";
	CHECK(open_result(o) == -EINVAL && says("https://"));
	server_say(&server, "fault GET say 1 403 AuthorizationPermissionMismatch This request is not authorized");
	CHECK(open_result(right) == -EACCES && says("Storage Blob Data Contributor"));
	server_say(&server, "fault GET say 1 403 AuthenticationFailed you sent " AZURE_KEY);
	CHECK(open_result(right) == -EACCES && !strstr(objects_why(), AZURE_KEY));
}

static void test_retries(void)
{
	struct objects *o = open_azure("retries");
	uint64_t size;
	static const char *const passing[] = {"status 2 500", "status 3 503", "status 1 429", "drop 2"};
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
		CHECK(objects_delete(o, "a") == 0 && count_of(o, "") == 0);
	}
	server_say(&server, "fault PUT status 1000 503");
	CHECK(put_of(o, "b", 1, 10) == -EHOSTUNREACH && says("503"));
	server_say(&server, "clear");
	/* What is damaged on the way is refused, whole or as a block, and sent again by Azure's own code for it. */
	server_say(&server, "fault PUT spoil 1");
	CHECK(put_of(o, "b", 1, 1000) < 0 && has_none(o, "b"));
	server_say(&server, "fault PUT spoil 1");
	CHECK(put_of(o, "b", 2, 3 * PART) < 0 && has_none(o, "b"));
	server_say(&server, "fault PUT say 2 400 Md5Mismatch damaged");
	CHECK(put_of(o, "b", 2, 3 * PART) == 0 && has_object(o, "b", 2, 3 * PART));
	/* Of blocks and of the list of them. */
	server_say(&server, "fault PUT lose 4");
	CHECK(put_of(o, "b", 3, 3 * PART) == 0 && has_object(o, "b", 3, 3 * PART));
	server_say(&server, "fault PUT say 1 403 AuthorizationPermissionMismatch no");
	CHECK(put_of(o, "c", 3, 3 * PART) == -EACCES && has_none(o, "c") && count_of(o, "") == 1);
	objects_close(o);
}

static void test_get(void)
{
	struct objects *o = open_azure("get");
	for (unsigned whole = 0; whole < 2; whole++) {
		uint64_t size = whole ? 50000 : 200000;
		CHECK(put_of(o, "a", 2, size) == 0);
		server_say(&server, "fault GET cut 3 10000");
		CHECK(has_range(o, "a", 2, 0, 0, size));
		struct sink s = {.seed = 2};
		server_say(&server, "fault GET flip 1");
		CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EPROTO && says("checksum") && s.wrong == 1);
		s = (struct sink){.seed = 2};
		server_say(&server, "fault GET cut 1 1000");
		server_say(&server, "fault GET changed 1");
		CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -ESTALE && s.at == 1000);
		server_say(&server, "clear");
		s = (struct sink){.seed = 2, .from = 10};
		server_say(&server, "fault GET wrong-range 1");
		CHECK(objects_get(o, "a", 10, 1000, sink_write, &s) == -EPROTO && s.at == 0);
	}
	objects_close(o);
}

static void test_list(void)
{
	struct objects *o = open_azure("list");
	for (unsigned i = 0; i < 30; i++)
		CHECK(put_of(o, (char[]){'n', (char)('a' + i % 26), i < 26 ? 'x' : 'y', 0}, i, 3) == 0);
	CHECK(count_of(o, "") == 30 && count_of(o, "na") == 2);
	static const char *const bodies[] = {
	        "", "x", "<EnumerationResults></EnumerationResults>",
	        "<EnumerationResults><Blobs><Blob/></Blobs><NextMarker/></EnumerationResults>",
	        "<ListBucketResult><NextMarker/></ListBucketResult>"};
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		server_say(&server, "fault GET raw 1 %s", bodies[i]);
		CHECK(count_of(o, "") == -EPROTO && says("the list"));
	}
	server_say(&server,
	           "fault GET raw 200 <EnumerationResults><Blobs/><NextMarker>x</NextMarker></EnumerationResults>");
	CHECK(count_of(o, "") == -EPROTO && says("does not end"));
	server_say(&server, "clear");
	/* A container that is deleted meanwhile is away, and that is said at once. */
	int before = server_say(&server, "count *");
	server_say(&server, "fault * say 1 404 ContainerNotFound gone");
	CHECK(count_of(o, "") == -EHOSTUNREACH && server_say(&server, "count *") == before + 1);
	objects_close(o);
}

/* Over TLS, with tokens. */
static void test_token(void)
{
	char ca[128];
	folder_make();
	struct server own = server_start("azurite.py", "--tls", folder);
	struct objects_options o = azure_options(&own, "azure://bucket/x");
	snprintf(ca, sizeof ca, "%s/ca.crt", folder);
	CHECK(open_result(o) == -EACCES);
	o.ca_file = ca;
	CHECK(open_result(o) == 0);
	o.token = "not.a.token-of-anybody";
	CHECK(open_result(o) == -EACCES && says("AuthenticationFailed") && !strstr(objects_why(), o.token));
	server_stop(&own);
	folder_remove();
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	server = server_start("azurite.py", NULL, NULL);
	if (server_is_missing(&server)) {
		printf("azurite is not installed: script/bootstrap --test does it\n");
		server_stop(&server);
		return 0;
	}
	test_open();
	test_retries();
	test_get();
	test_list();
	test_token();
	server_stop(&server);
	return CHECK_DONE();
}
