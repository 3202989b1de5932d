/* Who came to a node and was let in or refused, from its log, newest first.
 *
 * A login leaves two lines, "connection authenticated" (who, by which method and rule) and "connection authorized" (to
 * which database, over which TLS); the second makes it one, and the first, which is met later, is added to it. Whoever
 * is refused leaves a FATAL line before the session has begun; that can be after both, when the database does not
 * exist for example, and then there was no login. What a session raises itself never looks like that: PostgreSQL tells
 * with each line what the session was doing ("ps").
 *
 * The service itself, replication, and routers that go to their shards come over the unix socket, as the service's own
 * roles: they are left out. What people run from the console comes by it too, as their own users: that is a login like
 * others, without an address. */
#include "engine/postgres/observe/logins.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "engine/postgres/model/model.h"
#include "engine/postgres/observe/log_cursor.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define SESSIONS 4096 /* of which more lines may be met */
#define WAIT_MS 5000  /* that a login's two lines are apart at most, once there are enough of them */
#define AUTHENTICATED "connection authenticated: "
#define AUTHORIZED "connection authorized: "
#define REPLICATION "replication " AUTHORIZED
#define NO_TLS "could not accept SSL connection: "

struct session {
	uint64_t id;
	struct engine_login *login; /* to which its other line is added; NULL: it was not wanted */
	bool refused, open;
};

struct reading {
	const struct engine_logins *wanted;
	struct arena *arena;
	struct engine_login **list;
	size_t count, room;
	struct session sessions[SESSIONS]; /* the newest ones that were met */
	size_t met, open;                  /* open: logins whose first line is not met yet */
	int64_t oldest_ms;                 /* of the list */
	bool cut;                          /* the time was over */
};

/* What is asked of a line of the log. */
struct line {
	int64_t at_ms;
	struct str user, database, host, session, doing, state, message, detail;
	bool fatal;
};

/* --- lines */

static bool line_may_tell(struct str l)
{
	static const char *const marks[] = {",\"error_severity\":\"FATAL\"", ",\"message\":\"connection auth",
	                                    ",\"message\":\"" NO_TLS, ",\"message\":\"" REPLICATION};
	static const char local[] = ",\"remote_host\":\"[local]\"", own[] = ",\"user\":\"" PG_USER;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (memmem(l.p, l.n, marks[i], strlen(marks[i])))
			return !memmem(l.p, l.n, local, sizeof local - 1) || !memmem(l.p, l.n, own, sizeof own - 1);
	return false;
}

/* The server writes names as it got them, which need not be UTF-8. */
static json_t *line_parse(struct str l)
{
	json_t *parsed = json_loadb(l.p, l.n, 0, NULL);
	if (parsed)
		return parsed;
	char *plain = must_malloc(l.n + 1);
	for (size_t i = 0; i < l.n; i++)
		plain[i] = (char)((unsigned char)l.p[i] >= 128 ? '?' : l.p[i]);
	parsed = json_loadb(plain, l.n, 0, NULL);
	free(plain);
	return parsed;
}

static struct line line_of(const json_t *parsed)
{
	return (struct line){.user = json_field(parsed, "user"),
	                     .database = json_field(parsed, "dbname"),
	                     .host = json_field(parsed, "remote_host"),
	                     .session = json_field(parsed, "session_id"),
	                     .doing = json_field(parsed, "ps"),
	                     .state = json_field(parsed, "state_code"),
	                     .message = json_field(parsed, "message"),
	                     .detail = json_field(parsed, "detail"),
	                     .fatal = str_is(json_field(parsed, "error_severity"), "FATAL")};
}

static bool is_service(const struct line *l)
{
	return str_is(l->host, "[local]") && (!l->user.n || engine_name_is_reserved(l->user));
}

/* A session has not begun as long as it does one of these. */
static bool is_refusal(const struct line *l)
{
	if (str_starts(l->message, STR(NO_TLS)))
		return !l->user.n && memmem(l->message.p, l->message.n, "certificate", 11) != NULL;
	return l->fatal && str_is_one_of("|initializing|authentication|startup", l->doing) &&
	       (l->user.n || str_starts(l->state, STR("28")));
}

static bool is_of_login(const struct line *l, struct str begin)
{
	return !l->fatal && str_is(l->doing, "authentication") && str_starts(l->message, begin);
}

/* --- sessions */

static uint64_t hash_of(struct str s)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < s.n; i++)
		h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
	return h;
}

static struct session *session_find(struct reading *r, struct str id)
{
	uint64_t h = hash_of(id);
	for (size_t i = 0; i < SESSIONS && i < r->met; i++) {
		struct session *s = &r->sessions[(r->met - 1 - i) % SESSIONS];
		if (s->id == h)
			return s;
	}
	return NULL;
}

static void session_add(struct reading *r, const struct line *l, struct engine_login *login, bool refused)
{
	struct session *s = &r->sessions[r->met++ % SESSIONS];
	r->open -= s->open;
	*s = (struct session){hash_of(l->session), login, refused, login && !refused};
	r->open += s->open;
}

/* --- texts */

/* "Connection matched pg_hba.conf line 7: ..." without the rule itself, which may have a password of the directory in
 * it. Newer servers name the whole path of the file. */
static bool detail_is_rule(struct str line, unsigned *ret_number)
{
	static const char word[] = " line ";
	const char *at = memmem(line.p, line.n, word, sizeof word - 1), *end = line.p + line.n;
	if (!str_starts(line, STR("Connection matched")))
		return false;
	*ret_number = 0;
	for (at = at ? at + sizeof word - 1 : end; at < end && isdigit((unsigned char)*at); at++)
		*ret_number = *ret_number * 10 + (unsigned)(*at - '0');
	return true;
}

static void refusal_describe(struct arena *a, const struct line *l, struct engine_login *to)
{
	struct buf reason = {0}, text = {0};
	struct str rest = l->detail, one;
	unsigned rule = 0, found = 0;
	buf_str(&reason, l->message);
	for (bool more = rest.n > 0; more;) {
		more = str_cut(rest, '\n', &one, &rest);
		if (detail_is_rule(one, &rule))
			found = rule;
		else
			buf_printf(&reason, ": %.*s", STR_ARG(one));
	}
	if (l->state.n)
		buf_printf(&reason, " (SQLSTATE %.*s)", STR_ARG(l->state));
	buf_str(&text, buf_view(&reason));
	if (found)
		buf_printf(&text, "; rule: pg_hba.conf:%u", found);
	to->reason = buf_keep(&reason, a);
	to->line = buf_keep(&text, a);
}

/* identity="app" method=scram-sha-256 (/.../conf/pg_hba.conf:6): the file without its path. */
static void authenticated_add(struct arena *a, struct engine_login *to, struct str message)
{
	struct str how = {message.p + sizeof AUTHENTICATED - 1, message.n - (sizeof AUTHENTICATED - 1)};
	const char *end = how.p + how.n, *method = how.p, *next;
	/* The last one: the identity may say anything. */
	while (method < end && (next = memmem(method + 1, (size_t)(end - method - 1), " method=", 8)))
		method = next;
	const char *open = memchr(method, '(', (size_t)(end - method));
	const char *slash = open ? memrchr(open, '/', (size_t)(end - open)) : NULL;
	if (slash)
		to->line = arena_printf(a, "%.*s; %.*s(%.*s", STR_ARG(to->line), (int)(open - how.p), how.p,
		                        (int)(end - slash - 1), slash + 1);
	else
		to->line = arena_printf(a, "%.*s; %.*s", STR_ARG(to->line), STR_ARG(how));
}

/* --- the list */

static bool is_wanted(const struct reading *r, const struct engine_login *l)
{
	const struct engine_logins *w = r->wanted;
	return r->count < w->max && l->at_ms >= w->from_ms && l->at_ms < w->to_ms &&
	       (w->result == ENGINE_LOGIN_ANY || (w->result == ENGINE_LOGIN_SUCCESS) == l->success) &&
	       (!w->address || (l->has_address && ip_equal(w->address, &l->address)));
}

static void login_note(struct reading *r, const struct line *l, bool success)
{
	struct engine_login login = {.at_ms = l->at_ms, .success = success};
	login.has_address = ip_parse(l->host, &login.address);
	struct engine_login *kept = NULL;
	if (is_wanted(r, &login)) {
		kept = arena_new_of(r->arena, struct engine_login);
		*kept = login;
		kept->user = arena_dup(r->arena, l->user);
		kept->database = arena_dup(r->arena, l->database);
		if (success)
			kept->line = arena_dup(r->arena, l->message);
		else
			refusal_describe(r->arena, l, kept);
		ARENA_FIT(r->arena, r->list, r->count, r->room);
		r->list[r->count++] = kept;
		r->oldest_ms = l->at_ms;
	}
	session_add(r, l, kept, !success);
}

static void line_note(struct reading *r, const struct line *l)
{
	if (is_refusal(l)) {
		login_note(r, l, false);
	} else if (is_of_login(l, STR(AUTHORIZED)) || is_of_login(l, STR(REPLICATION))) {
		if (!session_find(r, l->session))
			login_note(r, l, true);
	} else if (is_of_login(l, STR(AUTHENTICATED))) {
		struct session *s = session_find(r, l->session);
		if (s && s->login)
			authenticated_add(r->arena, s->login, l->message);
		if (s) {
			r->open -= s->open;
			s->open = false;
			s->login = NULL;
		}
	}
}

static int line_take(void *ctx, struct str text)
{
	struct reading *r = ctx;
	struct line l;
	int64_t at_ms;
	if (!pg_log_line_time(text, &at_ms))
		return 0;
	if (r->count == r->wanted->max && (!r->open || at_ms < r->oldest_ms - WAIT_MS))
		return 1;
	r->cut = r->wanted->end_us && clock_mono_us() > r->wanted->end_us;
	if (r->cut)
		return 1;
	if (at_ms < r->wanted->from_ms - WAIT_MS || !line_may_tell(text))
		return 0;
	json_t *parsed = line_parse(text);
	l = line_of(parsed);
	l.at_ms = at_ms;
	if (parsed && l.host.n && !is_service(&l))
		line_note(r, &l);
	json_decref(parsed);
	return 0;
}

int pg_logins_read(const char *directory, const struct engine_logins *wanted, struct arena *a,
                   struct engine_login **ret_list, size_t *ret_count)
{
	struct reading *r = must_calloc(1, sizeof *r);
	r->wanted = wanted;
	r->arena = a;
	int result = wanted->max ? pg_log_back(directory, wanted->from_ms, wanted->to_ms, line_take, r) : 0;
	/* A node that has not been started has no log yet. */
	result = result == 1 || result == -ENOENT ? 0 : result;
	struct engine_login *list = arena_new_array(a, struct engine_login, r->count + 1);
	for (size_t i = 0; i < r->count; i++)
		list[i] = *r->list[i];
	if (result == 0) {
		*ret_list = list;
		*ret_count = r->count;
	}
	if (r->cut && wanted->ret_cut)
		*wanted->ret_cut = true;
	free(r);
	return result;
}
