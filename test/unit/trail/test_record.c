/* Recordings: the form of a line, what is taken out, bodies of every kind, several threads at once. */
#include "trail/record.h"

#include "check.h"

#include <jansson.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[] = "/tmp/steward-record-XXXXXX";

static struct header headers[] = {
        {{"host", 4}, {"localhost", 9}},   {{"authorization", 13}, {"Bearer s3cr3t-token", 19}},
        {{"accept", 6}, {"a", 1}},         {{"accept", 6}, {"b", 1}},
        {{"cookie", 6}, {"id=s3cr3t", 9}}, {{"content-type", 12}, {"application/json", 16}},
};

static struct request request_of(const char *method, const char *target, const char *type, const char *body)
{
	struct request r = {.method = str_of(method),
	                    .target = str_of(target),
	                    .headers = headers,
	                    .header_count = 6,
	                    .body = str_of(body)};
	headers[5].value = str_of(type);
	r.response.status = 200;
	return r;
}

static void answer(struct request *r, const char *type, struct str body)
{
	r->response.headers[0] = (struct header){STR("content-type"), str_of(type)};
	r->response.headers[1] = (struct header){STR("set-cookie"), STR("s3cr3t=1")};
	r->response.header_count = 2;
	r->response.body = body;
}

/* Records into an emptied file and reads the one line back. *ret_raw: its text, for what must not be in it. */
static json_t *line_of(const struct request *r, char *ret_raw, size_t size)
{
	struct recorder *rec = NULL;
	if (truncate(path, 0) < 0 || record_open(path, &rec) < 0)
		return NULL;
	record_exchange(rec, r);
	record_close(rec);
	FILE *f = fopen(path, "r");
	size_t n = fread(ret_raw, 1, size - 1, f);
	fclose(f);
	ret_raw[n] = '\0';
	CHECK(n > 0 && ret_raw[n - 1] == '\n' && memchr(ret_raw, '\n', n) == ret_raw + n - 1);
	json_t *line = json_loadb(ret_raw, n, 0, NULL);
	CHECK(line != NULL);
	return line;
}

static const char *text_at(json_t *line, const char *key, const char *inner)
{
	json_t *v = json_object_get(line, key);
	const char *text = json_string_value(inner ? json_object_get(v, inner) : v);
	return text ? text : "";
}

static void test_form(void)
{
	static char raw[65536];
	struct request r = request_of(
	        "POST", "/api/svc/v2/x?pretty=true&access_token=s3cr3t&b", "application/json",
	        "{\"name\": \"x\",\n \"password\": \"s3cr3t\", \"n\": 12, \"token\": 5, \"deep\": [{\"clientSecret\":"
	        "\"s3cr3t\", \"apiKeyId\": \"kept\", \"secret\": {\"id\": \"kept\"}}], \"tokens\": [\"kept\"]}");
	answer(&r, "application/vnd.svc.2025-03-12+json",
	       STR("{\n  \"privateKey\" : \"s3cr3t\",\n  \"publicKey\":\"kept\",\"secrets\":[{\"secret\":\"s3cr3t\","
	           "\"maskedSecretValue\":\"***kept\"}],\"access_token\":\"s3cr3t\", \"pem\": "
	           "\"-----BEGIN PRIVATE KEY-----s3cr3t\",\"pi\":3.5}"));
	json_t *line = line_of(&r, raw, sizeof raw);
	CHECK(!strstr(raw, "s3cr3t"));
	CHECK(strcmp(text_at(line, "method", NULL), "POST") == 0);
	CHECK(strcmp(text_at(line, "url", NULL), "/api/svc/v2/x?pretty=true&access_token=(redacted)&b") == 0);
	CHECK(json_integer_value(json_object_get(line, "status")) == 200);
	CHECK(strcmp(text_at(line, "requestHeaders", "authorization"), "Bearer (redacted)") == 0);
	CHECK(strcmp(text_at(line, "requestHeaders", "accept"), "a, b") == 0);
	CHECK(strcmp(text_at(line, "requestHeaders", "cookie"), "(redacted)") == 0);
	CHECK(strcmp(text_at(line, "responseHeaders", "set-cookie"), "(redacted)") == 0);
	json_t *body = json_object_get(line, "requestBody");
	CHECK(strcmp(text_at(body, "password", NULL), "(redacted)") == 0 &&
	      strcmp(text_at(body, "name", NULL), "x") == 0);
	CHECK(strcmp(text_at(body, "token", NULL), "(redacted)") == 0);
	json_t *deep = json_array_get(json_object_get(body, "deep"), 0);
	CHECK(strcmp(text_at(deep, "clientSecret", NULL), "(redacted)") == 0);
	CHECK(strcmp(text_at(deep, "apiKeyId", NULL), "kept") == 0 &&
	      strcmp(text_at(deep, "secret", "id"), "kept") == 0);
	body = json_object_get(line, "responseBody");
	CHECK(strcmp(text_at(body, "privateKey", NULL), "(redacted)") == 0);
	CHECK(strcmp(text_at(body, "publicKey", NULL), "kept") == 0 &&
	      strcmp(text_at(body, "pem", NULL), "(redacted)") == 0);
	CHECK(strstr(raw, "***kept") && strstr(raw, "\"pi\":3.5"));
	json_decref(line);
}

static const char *body_of(const char *method, const char *type, struct str body, json_t **ret_line)
{
	static char raw[1 << 21];
	struct request r = request_of(method, "/x", "", "");
	answer(&r, type, body);
	json_decref(*ret_line);
	*ret_line = line_of(&r, raw, sizeof raw);
	return text_at(*ret_line, "responseBody", NULL);
}

static bool is_null(json_t *line)
{
	return json_is_null(json_object_get(line, "responseBody"));
}

static void test_bodies(void)
{
	json_t *line = NULL;
	CHECK(strcmp(body_of("GET", "text/csv", STR("a,b\n1,2\n"), &line), "a,b\n1,2\n") == 0);
	CHECK(json_is_null(json_object_get(line, "requestBody")));
	CHECK(strcmp(body_of("GET", "application/gzip", STR("\x1f\x8b\xff"), &line), "H4v/") == 0);
	CHECK(strcmp(body_of("GET", "application/x-x509", STR("-----BEGIN EC PRIVATE KEY-----"), &line),
	             "(redacted)") == 0);
	CHECK(strcmp(body_of("GET", "application/json", STR("\"top\""), &line), "top") == 0);
	CHECK(strcmp(body_of("GET", "application/json; charset=utf-8", STR("{\"a\": nope"), &line), "{\"a\": nope") ==
	      0);
	CHECK(strcmp(body_of("GET", "application/json", STR("{\"Password\": \"x"), &line), "(redacted)") == 0);
	CHECK(strcmp(body_of("GET", "application/x-www-form-urlencoded",
	                     STR("grant_type=x&client_secret=s&%63lient_secret=s&token=t"), &line),
	             "grant_type=x&client_secret=(redacted)&%63lient_secret=(redacted)&token=(redacted)") == 0);
	body_of("HEAD", "application/json", STR("{}"), &line);
	CHECK(is_null(line));
	body_of("GET", "application/json", STR(""), &line);
	CHECK(is_null(line));
	size_t big = RECORD_BODY_MAX + 1;
	char *text = calloc(1, big);
	memset(text, 'x', big);
	body_of("GET", "text/plain", (struct str){text, big}, &line);
	CHECK(is_null(line));
	memset(text, '[', big);
	body_of("GET", "application/json", (struct str){text, RECORD_BODY_MAX}, &line);
	CHECK(is_null(line));
	free(text);
	json_decref(line);
}

/* The result must not depend on the Content-Type that a client sends. */
static void test_sent(void)
{
	static const char *const types[] = {"text/plain", "application/x-www-form-urlencoded", "", "application/xml",
	                                    "application/json"};
	static const char *const secrets[] = {
	        "{\"name\": \"a\", \"password\": \"s3cr3t\"}",
	        "{\"name\": \"a&b=c\", \"password\": \"s3cr3t\"}",
	        "{\"name\": \"a=b\", \"password\": \"s3cr3t",
	        " [{\"password\": 123456, \"s3cr3t\": \"s3cr3t",
	        "{\"p\\u0061ssword\": \"s3cr3t",
	        "\"password\": \"s3cr3t\"",
	        "{\"pasword\": \"s3cr3t\"}",
	        "{\"userPwd\": \"s3cr3t\"}",
	        "\xfe\xffs3cr3t",
	};
	static char raw[65536];
	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
			struct request r = request_of("POST", "/x", types[t], secrets[i]);
			answer(&r, "application/json", STR("{}"));
			json_t *line = line_of(&r, raw, sizeof raw);
			CHECK(!strstr(raw, "s3cr3t") && !strstr(raw, "123456"));
			json_decref(line);
		}
		struct request r =
		        request_of("POST", "/x?a=1&{\"password\":\"s3cr3t\"}&b", types[t], "{\"name\": \"kept\"}");
		answer(&r, "application/json", STR("{}"));
		json_t *line = line_of(&r, raw, sizeof raw);
		CHECK(strcmp(text_at(line, "requestBody", "name"), "kept") == 0);
		CHECK(strcmp(text_at(line, "url", NULL), "/x?a=1&(redacted)&b") == 0);
		json_decref(line);
	}
}

static void *writer(void *rec)
{
	for (int i = 0; i < 500; i++) {
		struct request r = {.method = STR("GET"), .target = STR("/api/svc/v2/groups")};
		r.response.status = 200;
		answer(&r, "application/json", STR("{\"results\":[1,2,3]}"));
		record_exchange(rec, &r);
	}
	return NULL;
}

static void test_threads(void)
{
	struct recorder *rec = NULL;
	pthread_t threads[4];
	char *text = NULL;
	size_t cap = 0;
	unsigned lines = 0, bad = 0;
	CHECK(truncate(path, 0) == 0 && record_open(path, &rec) == 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, writer, rec);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	record_close(rec);
	FILE *f = fopen(path, "r");
	for (ssize_t n; (n = getline(&text, &cap, f)) > 0; lines++) {
		json_t *line = json_loadb(text, (size_t)n, 0, NULL);
		bad += line == NULL;
		json_decref(line);
	}
	fclose(f);
	free(text);
	CHECK(lines == 2000 && bad == 0);
}

static void test_names(void)
{
	static const char *const secret[] = {"password",      "bindPassword",     "client_secret",   "clientSecret",
	                                     "access_token",  "privateKey",       "secretAccessKey", "apiToken",
	                                     "datadogApiKey", "serviceAccountKey"};
	static const char *const open[] = {"apiKeyId", "tokenizer", "maskedSecretValue", "secretExpiresAfterHours",
	                                   "key",      "publicKey", "secrets",           "tokenFilters"};
	for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
		CHECK(record_is_secret(str_of(secret[i])));
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		CHECK(!record_is_secret(str_of(open[i])));
}

int main(void)
{
	struct recorder *rec = NULL;
	struct stat st;
	int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	test_names();
	test_form();
	test_bodies();
	test_sent();
	test_threads();
	record_exchange(NULL, &(struct request){0});
	/* A request that the edge refused before it was parsed. */
	CHECK(record_open(path, &rec) == 0);
	record_exchange(rec, &(struct request){.response.status = 400});
	record_close(rec);
	unlink(path);
	CHECK(record_open(path, &rec) == 0 && stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	record_close(rec);
	unlink(path);
	CHECK(freopen("/dev/null", "w", stderr) && record_open("/nonexistent/x", &rec) < 0);
	return CHECK_DONE();
}
