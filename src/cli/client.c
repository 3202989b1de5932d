/* Calls over libcurl. A service account fetches a token once, and again when the token is refused during a long wait;
 * an API key answers the digest challenge of each call. Everything that the service sends is bounded, and is shown
 * without control characters. */
#include "cli/client.h"

#include "base/id.h"
#include "catalog/catalog.h"
#include "cli/cli.h"
#include "cli/hints.h"
#include "cli/names.h"
#include "fetch/fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <unistd.h>

#define ANSWER_MAX (32u << 20)
#define HEADERS_MAX (64u << 10)
#define BODY_MAX (16u << 20)
#define PARTS_MAX 1000000u /* values of a JSON answer: each takes far more memory than the two bytes that it may have */
#define CONNECT_SECONDS 10L
#define CALL_MS 300000L /* for an answer that is held in memory; one that is written away may take longer */
#define STALL_SECONDS 120L
#define STALL_BYTES 64L /* fewer in each second are no progress */
#define CHALLENGES_MAX 3L
#define HOST_BYTES 65

struct client {
	CURL *curl;
	struct fetch fetch;
	const struct profile *profile;
	struct buf token;
	char fault[CURL_ERROR_SIZE];
};

/* One running transfer. */
struct transfer {
	struct client *client;
	struct buf body, headers;
	FILE *sink;
	bool too_much, sink_failed;
};

const struct profile *client_profile(const struct client *c)
{
	return c->profile;
}

static size_t body_take(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	long status = 0;
	curl_easy_getinfo(t->client->curl, CURLINFO_RESPONSE_CODE, &status);
	if (t->sink && status >= 200 && status < 300) {
		t->sink_failed = fwrite(bytes, one, n, t->sink) != n;
		return t->sink_failed ? 0 : n;
	}
	t->too_much = t->body.n + n > ANSWER_MAX;
	if (t->too_much)
		return 0;
	buf_add(&t->body, bytes, n);
	return n;
}

/* A digest challenge and an interim answer come before the real answer, so each status line starts over. */
static size_t header_take(char *bytes, size_t one, size_t n, void *ctx)
{
	struct transfer *t = ctx;
	if (n >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
		t->headers.n = 0;
	t->too_much = t->headers.n + n > HEADERS_MAX;
	if (t->too_much)
		return 0;
	buf_add(&t->headers, bytes, n);
	return n;
}

int client_open(struct arena *a, const struct profile *p, struct client **ret_client)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return option_refuse("the HTTP library cannot be used");
	struct client *c = arena_new_of(a, struct client);
	c->profile = p;
	c->fetch.named = FETCH_BY_OPERATOR;
	c->curl = curl_easy_init();
	if (!c->curl) {
		curl_global_cleanup();
		return option_refuse("the HTTP library cannot be used");
	}
	*ret_client = c;
	return 0;
}

void client_close(struct client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	curl_global_cleanup();
	buf_free(&c->token);
}

static void options_common(struct client *c, struct transfer *t, const char *url)
{
	CURL *h = c->curl;
	curl_easy_reset(h); /* keeps the connection */
	c->fault[0] = '\0';
	curl_easy_setopt(h, CURLOPT_URL, url);
	fetch_setup(h, &c->fetch, "https", c->profile->ca_file);
	fetch_proxies(h, url);
	curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES);
	curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
	curl_easy_setopt(h, CURLOPT_MAXREDIRS,
	                 CHALLENGES_MAX); /* none is followed; challenges of digest count as such */
	curl_easy_setopt(h, CURLOPT_USERAGENT, FETCH_AGENT);
	curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->fault);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, body_take);
	curl_easy_setopt(h, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, header_take);
	curl_easy_setopt(h, CURLOPT_HEADERDATA, t);
}

static int unreached(const struct client *c, const struct transfer *t, CURLcode code, bool quiet)
{
	const struct profile *p = c->profile;
	const char *why = c->fault[0] ? c->fault : curl_easy_strerror(code);
	if (quiet)
		return -EHOSTUNREACH;
	if (t->too_much)
		option_refuse("%s: the answer is larger than %u MB, or has more than %u values", p->base_url,
		              ANSWER_MAX >> 20, PARTS_MAX);
	else if (t->sink_failed)
		option_refuse("the answer cannot be written: %s", strerror(errno));
	else if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
		option_refuse("%s cannot be reached: %s; is the service running, and is the URL in %s right?",
		              p->base_url, why, p->source);
	else if (code == CURLE_PEER_FAILED_VERIFICATION && p->ca_file)
		option_refuse("%s is not trusted: %s; its certificate does not come from the authority in %s: either "
		              "the service has a new one, which \"steward login\" asks about, or somebody answers in "
		              "its place: ask its operator",
		              p->base_url, why, p->ca_file);
	else if (code == CURLE_TOO_MANY_REDIRECTS)
		option_refuse("%s challenges every answer to its challenge", p->base_url);
	else if (code == CURLE_PEER_FAILED_VERIFICATION)
		option_refuse(
		        "%s is not trusted: %s; set ca-file in %s to the service's authority, which is tls/ca.crt "
		        "in its data directory",
		        p->base_url, why, p->source);
	else
		option_refuse("%s: %s", p->base_url, why);
	return -EHOSTUNREACH;
}

struct str client_header(const struct client_answer *answer, const char *name)
{
	struct str headers = answer->headers, line, field, value;
	while (headers.n) {
		str_cut(headers, '\n', &line, &headers);
		if (str_cut(line, ':', &field, &value) && str_ieq(field, str_of(name))) {
			if (value.n && value.p[value.n - 1] == '\r')
				value.n--;
			return str_trim(value);
		}
	}
	return STR_NONE;
}

static void json_release(void *value)
{
	json_decref(value);
}

/* An upper bound of the number of values in a JSON text. */
static size_t parts_count(struct str text)
{
	size_t n = 1;
	bool json = text.n && (isspace((unsigned char)text.p[0]) || text.p[0] == '{' || text.p[0] == '[');
	for (size_t i = 0; json && i < text.n; i++)
		n += text.p[i] == ',' || text.p[i] == '{' || text.p[i] == '[';
	return n;
}

/* Runs the transfer that the handle is set up for. */
static int transfer_run(struct client *c, struct arena *a, struct transfer *t, bool quiet, struct client_answer *ret)
{
	CURLcode code = curl_easy_perform(c->curl);
	long status = 0;
	uint64_t seconds = 0;
	int r = code == CURLE_OK ? 0 : unreached(c, t, code, quiet);
	if (r == 0) {
		curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
		*ret = (struct client_answer){.status = (int)status,
		                              .body = arena_dup(a, buf_view(&t->body)),
		                              .headers = arena_dup(a, buf_view(&t->headers))};
		ret->progress = client_header(ret, "x-steward-progress");
		if (str_to_u64(client_header(ret, "retry-after"), 86400, &seconds))
			ret->retry_after = (unsigned)seconds;
		ret->parts = parts_count(ret->body);
		if (ret->parts > PARTS_MAX) {
			t->too_much = true;
			r = unreached(c, t, CURLE_OK, quiet);
		} else {
			ret->json = json_loadb(ret->body.p ? ret->body.p : "", ret->body.n, 0, NULL);
		}
		if (ret->json)
			arena_defer(a, json_release, ret->json);
	}
	buf_free(&t->body);
	buf_free(&t->headers);
	return r;
}

static long timeout_of(const struct client_request *r)
{
	return r->timeout_ms || r->sink ? (long)r->timeout_ms : CALL_MS;
}

/* A token stands in a header. */
static bool token_is_valid(const char *token)
{
	for (const char *p = token; p && *p; p++)
		if (!isgraph((unsigned char)*p))
			return false;
	return token && *token;
}

static int token_fetch(struct client *c, struct arena *a, const struct client_request *of)
{
	const struct profile *p = c->profile;
	struct transfer t = {.client = c};
	struct client_answer answer;
	options_common(c, &t, arena_printf(a, "%s/api/oauth/token", p->base_url).p);
	curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	curl_easy_setopt(c->curl, CURLOPT_USERNAME, p->client_id);
	curl_easy_setopt(c->curl, CURLOPT_PASSWORD, p->client_secret);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, "grant_type=client_credentials");
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, of->timeout_ms ? (long)of->timeout_ms : CALL_MS);
	int r = transfer_run(c, a, &t, of->quiet, &answer);
	if (r < 0)
		return r;
	const char *token = json_string_value(json_object_get(answer.json, "access_token"));
	if (answer.status == 200 && token_is_valid(token)) {
		c->token.n = 0;
		buf_z(&c->token, token);
		buf_c(&c->token, '\0');
		return 0;
	}
	if (answer.status == 200)
		return client_stranger(c, of->quiet);
	if (!of->quiet && answer.status != 401)
		client_explain(c, &answer);
	else if (!of->quiet)
		option_refuse("%s gives no token to the service account %s (%d): check client-id and client-secret in "
		              "%s; a secret that has expired is replaced with a new one",
		              p->base_url, p->client_id, answer.status, p->source);
	return -EACCES;
}

static int call_once(struct client *c, struct arena *a, const struct client_request *r, struct client_answer *ret)
{
	const struct profile *p = c->profile;
	struct transfer t = {.client = c, .sink = r->sink};
	struct curl_slist *headers = NULL;
	options_common(c, &t, arena_printf(a, "%s%s", p->base_url, r->path).p);
	if (p->client_id || p->session) {
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(c->curl, CURLOPT_XOAUTH2_BEARER, p->client_id ? c->token.p : p->session);
	} else {
		curl_easy_setopt(c->curl, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
		curl_easy_setopt(c->curl, CURLOPT_USERNAME, p->public_key);
		curl_easy_setopt(c->curl, CURLOPT_PASSWORD, p->private_key);
	}
	if (r->body.p) {
		headers = curl_slist_append(headers, "Content-Type: application/json");
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, r->body.p);
		curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
	}
	if (r->accept)
		headers = curl_slist_append(headers, arena_printf(a, "Accept: %s", r->accept).p);
	for (size_t i = 0; i < r->header_count; i++)
		headers = curl_slist_append(headers, r->headers[i]);
	headers = curl_slist_append(headers, "X-Steward-Whole: true"); /* what a form of a provider adds */
	headers = curl_slist_append(headers, "Expect:");
	curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c->curl, CURLOPT_CUSTOMREQUEST, r->method);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, timeout_of(r));
	if (strcmp(r->method, "HEAD") == 0)
		curl_easy_setopt(c->curl, CURLOPT_NOBODY, 1L);
	int result = transfer_run(c, a, &t, r->quiet, ret);
	if (result == 0)
		ret->path = r->path;
	curl_slist_free_all(headers);
	return result;
}

int client_call(struct client *c, struct arena *a, const struct client_request *r, struct client_answer *ret_answer)
{
	struct client_answer answer;
	bool account = c->profile->client_id, old = c->token.n > 0;
	int result = account && !old ? token_fetch(c, a, r) : 0;
	if (result == 0)
		result = call_once(c, a, r, &answer);
	/* A token lives for an hour, and a wait may be longer. */
	if (result == 0 && answer.status == 401 && account && old) {
		result = token_fetch(c, a, r);
		if (result == 0)
			result = call_once(c, a, r, &answer);
	}
	if (result == 0)
		*ret_answer = answer;
	return result;
}

int client_form(struct client *c, struct arena *a, const char *path, const char *form, struct client_answer *ret_answer)
{
	struct transfer t = {.client = c};
	char host[HOST_BYTES] = "";
	options_common(c, &t, arena_printf(a, "%s%s", c->profile->base_url, path).p);
	gethostname(host, sizeof host - 1);
	curl_easy_setopt(c->curl, CURLOPT_USERAGENT, arena_printf(a, FETCH_AGENT "%s%s", *host ? " on " : "", host).p);
	curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, form);
	curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, CALL_MS);
	return transfer_run(c, a, &t, false, ret_answer);
}

int client_exit(int error)
{
	return error == -EHOSTUNREACH ? EXIT_UNREACHED : error == -EINVAL ? EXIT_USAGE : EXIT_NOT_DONE;
}

/* How many bytes the character at p has; 0: it is none, or one that would move what stands beside it. */
static size_t character_bytes(const unsigned char *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
	if (!n || n > left || (n == 1 && iscntrl(p[0])))
		return 0;
	unsigned c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	bool control = c >= 0x80 && c <= 0x9f; /* terminals take U+009B for ESC [ */
	bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
	return control || turns ? 0 : n;
}

/* Blanks in the place of what a terminal could take for a command, but for line ends and tabs where they may stay. */
static void text_clean(char *text, size_t n, bool lines)
{
	for (size_t i = 0, bytes; i < n; i += bytes) {
		bytes = lines && (text[i] == '\n' || text[i] == '\t')
		                ? 1
		                : character_bytes((const unsigned char *)text + i, n - i);
		if (!bytes) {
			text[i] = ' ';
			bytes = 1;
			while (i + bytes < n && ((unsigned char)text[i + bytes] & 0xc0) == 0x80)
				text[i + bytes++] = ' ';
		}
	}
}

const char *text_shown(struct arena *a, struct str text)
{
	char *z = arena_z(a, text);
	text_clean(z, strlen(z), false);
	return z;
}

void text_print(struct arena *a, struct str text)
{
	struct str copy = text;
	if (isatty(STDOUT_FILENO)) {
		char *clean = arena_z(a, text);
		text_clean(clean, text.n, true);
		copy.p = clean;
	}
	fwrite(copy.p, 1, copy.n, stdout);
}

int client_stranger(const struct client *c, bool quiet)
{
	if (!quiet)
		option_refuse("%s answers, but not as the API does; is the URL in %s that of the service?",
		              c->profile->base_url, c->profile->source);
	return -EHOSTUNREACH;
}

void client_explain(struct client *c, const struct client_answer *answer)
{
	struct arena *a = arena_new();
	const char *code = json_string_value(json_object_get(answer->json, "errorCode")),
	           *detail = json_string_value(json_object_get(answer->json, "detail"));
	if (answer->status < 400)
		option_refuse("%d: %s sends to \"%s\", which is not followed: the credentials are for %s alone",
		              answer->status, c->profile->base_url, text_shown(a, client_header(answer, "location")),
		              c->profile->base_url);
	else if (code)
		option_refuse("%d %s%s%s", answer->status, text_shown(a, str_of(code)), detail ? ": " : "",
		              text_shown(a, str_of(detail)));
	else
		option_refuse("%d, without a reason; is %s the service, or something before it?", answer->status,
		              c->profile->base_url);
	const char *hint = answer->status == 401 && c->profile->session
	                           ? "the sign-in is over: \"steward login --web\" signs in again"
	                           : hint_find(answer->status, code);
	if (hint) {
		/* A hint has at most one "%s". It is not used as a format, so that no text of the table can become
		 * one. */
		struct str before, after;
		bool source = str_cut(str_of(hint), '%', &before, &after);
		fprintf(stderr, "steward: %.*s%s%s\n", STR_ARG(before), source ? c->profile->source : "",
		        source ? after.p + 1 : "");
	}
	if (answer->status == 404 && answer->path)
		names_near_tell(c, answer->path, answer->json);
	arena_free(a);
}

static int whole_ask(struct client *c, struct arena *a, const struct client_request *r, struct client_answer *ret)
{
	int result = client_call(c, a, r, ret);
	if (result < 0)
		return client_exit(result);
	if (ret->status >= 300) {
		client_explain(c, ret);
		return EXIT_NOT_DONE;
	}
	if (!ret->json && (ret->body.n || strcmp(r->method, "GET") == 0))
		return client_exit(client_stranger(c, false));
	return EXIT_DONE;
}

int client_get(struct client *c, struct arena *a, const char *path, struct client_answer *ret_answer)
{
	return whole_ask(c, a, &(struct client_request){.method = "GET", .path = path}, ret_answer);
}

int client_ask(struct client *c, struct arena *a, const char *method, const char *path, const json_t *body,
               json_t **ret_json)
{
	struct client_answer answer;
	struct client_request r = {.method = method, .path = path};
	if (body) {
		char *text = json_dumps(body, JSON_COMPACT);
		r.body = arena_dup(a, str_of(text));
		free(text);
	}
	int code = whole_ask(c, a, &r, &answer);
	if (code == EXIT_DONE)
		*ret_json = answer.json;
	return code;
}

const char *url_unescape(struct arena *a, struct str text)
{
	int n = 0;
	char *plain = curl_easy_unescape(NULL, text.p, (int)text.n, &n);
	const char *kept = arena_z(a, (struct str){plain ? plain : "", plain ? (size_t)n : 0});
	curl_free(plain);
	return kept;
}

const char *url_escape(struct arena *a, struct str text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = arena_alloc(a, 3 * text.n + 1), *p = out;
	for (size_t i = 0; i < text.n; i++) {
		unsigned char one = (unsigned char)text.p[i];
		if (isalnum(one) || memchr("-._~", one, 4)) {
			*p++ = (char)one;
		} else {
			*p++ = '%';
			*p++ = hex[one >> 4];
			*p++ = hex[one & 15];
		}
	}
	return out;
}

int client_project(struct client *c, struct arena *a, const char **ret_id)
{
	const char *given = c->profile->project;
	struct client_answer answer;
	if (!given)
		return option_refuse("which project? give --project ID, or set project in %s", c->profile->source);
	if (id_is_valid(str_of(given))) {
		*ret_id = given;
		return 0;
	}
	struct client_request r = {
	        .method = "GET", .path = arena_printf(a, API_BASE "/groups/byName/%s", url_escape(a, str_of(given))).p};
	int result = client_call(c, a, &r, &answer);
	if (result < 0)
		return result;
	const char *id = json_string_value(json_object_get(answer.json, "id"));
	if (answer.status == 404) {
		option_refuse("--project: there is no project \"%s\" that the credentials in %s reach", given,
		              c->profile->source);
		names_near_tell(c, r.path, answer.json);
		return -EINVAL;
	}
	if (answer.status != 200 || !id || !id_is_valid(str_of(id))) {
		client_explain(c, &answer);
		return -EACCES;
	}
	*ret_id = arena_z(a, str_of(id));
	return 0;
}

static int stream_read(struct arena *a, const char *name, struct str *ret_text)
{
	bool standard = strcmp(name, "-") == 0;
	FILE *f = standard ? stdin : fopen(name, "re");
	struct buf b = {0};
	char part[8192];
	size_t n = 1;
	if (!f)
		return option_refuse("--body: cannot read \"%s\": %s", name, strerror(errno));
	while (n > 0 && b.n <= BODY_MAX) {
		n = fread(part, 1, sizeof part, f);
		buf_add(&b, part, n);
	}
	bool failed = ferror(f);
	if (!standard)
		fclose(f);
	*ret_text = arena_dup(a, buf_view(&b));
	buf_free(&b);
	if (failed || ret_text->n > BODY_MAX)
		return option_refuse("--body: \"%s\" %s", name, failed ? "cannot be read" : "is larger than 16 MB");
	return 0;
}

int body_read(struct arena *a, const char *given, struct str *ret_body)
{
	struct str text = str_of(given);
	json_error_t error;
	bool is_text = given[0] == '{' || given[0] == '[';
	int r = is_text ? 0 : stream_read(a, given + (given[0] == '@'), &text);
	if (r < 0)
		return r;
	json_t *value = json_loadb(text.p ? text.p : "", text.n, JSON_DECODE_ANY, &error);
	if (!value)
		return option_refuse("--body: is not JSON: %s (line %d, column %d)", error.text, error.line,
		                     error.column);
	json_decref(value);
	*ret_body = text;
	return 0;
}
