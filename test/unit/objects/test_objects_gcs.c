/* Google Cloud Storage that refuses, fails and lies: what is wrong is an error with words, never a short object or a
 * short list. Offsets, ranges, tokens and checksums are checked by the server. */
#include "fixture.h"

#include "base/clock.h"

#define CHUNK (8 * PART) /* two of what the server keeps at once */

static struct server server;

static struct objects *open_gcs(const char *prefix)
{
	char url[128];
	struct objects_options options = gcs_options(&server, url);
	options.part_bytes = CHUNK;
	snprintf(url, sizeof url, "gs://bucket/%s", prefix);
	return open_made(&options);
}

static void test_open(void)
{
	struct objects_options right = gcs_options(&server, "gs://bucket/x"), o = right;
	CHECK(open_result(right) == 0);
	o.token = "another-token-that-is-wrong";
	CHECK(open_result(o) == -EACCES && says("401 authError") && !strstr(objects_why(), o.token));
	o = right;
	o.url = "gs://other";
	CHECK(open_result(o) == -ENOENT && says("there is no bucket other"));
	server_say(&server, "fault GET say 1 403 forbidden x@y does not have storage.objects.list access");
	CHECK(open_result(right) == -EACCES && says("storage.objects.list") && says("roles/storage.objectUser"));
	server_say(&server, "fault GET say 1 403 forbidden you sent Bearer token to me");
	CHECK(open_result(right) == -EACCES && !strstr(objects_why(), "Bearer token"));
	server_say(&server, "fault GET raw 1 <html>sign in</html>");
	CHECK(open_result(right) == -EPROTO && says("no Google Cloud Storage"));
	o = right;
	o.endpoint = "http://storage.example.com";
	CHECK(open_result(o) == -EINVAL && says("https://"));
	o = right;
	o.token = NULL;
	CHECK(open_result(o) == -EINVAL && says("token"));
	o.token = "with\nline";
	CHECK(open_result(o) == -EINVAL);
	int before = server_say(&server, "count *");
	server_say(&server, "fault * redirect 1 %s/elsewhere", server.endpoint);
	CHECK(open_result(right) == -EPROTO && server_say(&server, "count *") == before + 1);
}

/* Uploads go on from what the server says that it has. */
static void test_resumed(void)
{
	struct objects *o = open_gcs("resumed");
	static const char *const passing[] = {"less 1 0",  "less 3 262144", "lose 1 0",     "lose 3 262144",
	                                      "lose 3 -1", "status 3 503",  "status 1 429", "drop 1"};
	static const uint64_t sizes[] = {CHUNK, 2 * CHUNK + 77};
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			server_say(&server, "fault PUT %s", passing[i]);
			CHECK(put_of(o, "a", (unsigned)i, sizes[k]) == 0);
			CHECK(has_object(o, "a", (unsigned)i, sizes[k]));
			if (check_failed)
				fprintf(stderr, "after %s: %s\n", passing[i], objects_why());
			server_say(&server, "clear");
		}
	server_say(&server, "fault POST status 2 503");
	CHECK(put_of(o, "b", 1, 100) == 0 && put_of(o, "c", 2, CHUNK + 1) == 0 && has_object(o, "c", 2, CHUNK + 1));
	CHECK(server_say(&server, "uploads") == 0 && count_of(o, "") == 3);
	objects_close(o);
}

static void test_lies(void)
{
	struct objects *o = open_gcs("lies");
	CHECK(put_of(o, "old", 3, 1000) == 0);
	static const char *const lies[] = {"more 1", "gone 1", "less 100 0", "drop 1000", "status 1000 503"};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		server_say(&server, "fault PUT %s", lies[i]);
		CHECK(put_of(o, "old", 4, 2 * CHUNK + 5) < 0 && *objects_why());
		server_say(&server, "clear");
		CHECK(has_object(o, "old", 3, 1000));
	}
	/* It has lost what it had said to have. */
	server_say(&server, "fault PUT less 2 262144");
	server_say(&server, "fault PUT none 1");
	CHECK(put_of(o, "old", 4, 3 * CHUNK) == -EPROTO && says("of the upload") && has_object(o, "old", 3, 1000));
	server_say(&server, "clear");
	/* Other bytes than were sent: they are not left there. */
	server_say(&server, "fault PUT spoil 1");
	CHECK(put_of(o, "new", 4, 2 * CHUNK) == -EIO && says("other bytes") && has_none(o, "new"));
	server_say(&server, "fault POST spoil 1");
	CHECK(put_of(o, "new", 4, 1000) == -EIO && says("other bytes") && has_none(o, "new"));
	server_say(&server, "fault POST raw 1 {}");
	CHECK(put_of(o, "new", 4, 1000) == -EPROTO);
	server_say(&server, "fault POST raw 1 {}");
	CHECK(put_of(o, "new", 4, CHUNK) == -EPROTO && says("no upload's id"));
	server_say(&server, "fault PUT say 1 403 forbidden x does not have storage.objects.create access");
	CHECK(put_of(o, "new", 4, CHUNK) == -EACCES && says("storage.objects.create"));
	CHECK(count_of(o, "") == 1);
	objects_close(o);
}

static void test_get(void)
{
	struct objects *o = open_gcs("get");
	CHECK(put_of(o, "a", 2, 200000) == 0);
	server_say(&server, "fault GET cut 5 30000");
	CHECK(has_range(o, "a", 2, 0, 0, 200000));
	server_say(&server, "clear");
	server_say(&server, "fault GET cut 2 1000");
	CHECK(has_range(o, "a", 2, 777, 5000, 5000));
	server_say(&server, "clear");
	struct sink s = {.seed = 2};
	server_say(&server, "fault GET cut 1 1000");
	server_say(&server, "fault GET changed 1");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -ESTALE && s.at == 1000 &&
	      !strstr(objects_why(), "checksum"));
	server_say(&server, "clear");
	static const char *const lies[] = {"no-length", "no-range", "wrong-range", "short-range"};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		s = (struct sink){.seed = 2, .from = 10};
		server_say(&server, "fault GET %s 1", lies[i]);
		CHECK(objects_get(o, "a", 10, 100000, sink_write, &s) == -EPROTO && s.at == 0);
		server_say(&server, "clear");
	}
	s = (struct sink){.seed = 2};
	server_say(&server, "fault GET flip 1");
	CHECK(objects_get(o, "a", 0, 0, sink_write, &s) == -EPROTO && says("checksum") && s.wrong == 1);
	int64_t begun = clock_mono_us();
	server_say(&server, "fault GET drip 1 50000");
	CHECK(has_range(o, "a", 2, 0, 0, 200000));
	CHECK(clock_mono_us() - begun < INT64_C(25000000));
	objects_close(o);
}

static void test_list(void)
{
	struct objects *o = open_gcs("list");
	server_say(&server, "object list/with~tilde 1");
	server_say(&server, "object list//double 1");
	CHECK(count_of(o, "") == 0);
	for (unsigned i = 0; i < 1100; i++)
		server_say(&server, "object list/%u 1", i * 7);
	CHECK(count_of(o, "") == 1100);
	static const char *const lies[] = {"again", "empty", "backwards", "foreign", "size", "half"};
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		server_say(&server, "fault GET list 100000 %s", lies[i]);
		int before = server_say(&server, "count GET");
		CHECK(count_of(o, "") == -EPROTO && says("the list"));
		CHECK(server_say(&server, "count GET") - before < 200);
		server_say(&server, "clear");
	}
	objects_close(o);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	server = server_start("gcs_server.py", NULL, NULL);
	test_open();
	test_resumed();
	test_lies();
	test_get();
	test_list();
	server_stop(&server);
	return CHECK_DONE();
}
