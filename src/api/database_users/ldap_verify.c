/* Checks of an LDAP directory: a request is kept, a job does what the databases would do, step by step, and notes how
 * far it got. The bind password is sealed until then and forgotten afterwards. Each network step is bounded by a few
 * seconds where libldap can do that; it cannot for the handshake of TLS, so a watch cuts the connection of a check that
 * takes too long. A project's checks run one after the other, so that a directory that does not answer costs one job
 * thread at most.
 *
 * libldap is optional: without it every check fails at CONNECT, and the log says why. */
#include "api/database_users/user_security.h"

#include "api/database_users/ldap_mapping.h"
#include "api/kit/verbs.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#ifdef API_HAS_LDAP
#include <fcntl.h>
#include <ldap.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#define VERIFY_KIND "ldap_verification"
#define KEPT 50 /* a project's checks; the oldest goes */
#define STEP_SECONDS 5
#define CHECK_SECONDS 12 /* all steps together */
#define ENTRIES_MAX 1000
#define MESSAGE_MAX (1 << 20)

static struct str seal_context(struct arena *a, struct str id)
{
	return arena_printf(a, VERIFY_KIND "/%.*s", STR_ARG(id));
}

static int oldest_drop(struct call *c)
{
	struct doc *docs;
	size_t count;
	int64_t total;
	int result = tx_count(c->tx, VERIFY_KIND, c->group.id, &total);
	if (result < 0 || total < KEPT)
		return result;
	result = tx_list(c->tx, c->arena, VERIFY_KIND, c->group.id, 0, 1, &docs, &count);
	return result < 0 || !count ? result : tx_delete(c->tx, VERIFY_KIND, docs[0].id);
}

int ldap_verify_create(struct call *c)
{
	struct faults faults = {.count = 0};
	struct id id = id_new();
	json_t *request = doc_json(c->arena, json_text(c->arena, c->body));
	schema_add_defaults(c->version->request, request);
	ldap_server_check(request, "", c->arena, &faults);
	if (!json_field(request, "hostname").n)
		faults_add(&faults, c->arena, STR("hostname"), "must be a host name or an IP address");
	if (faults.count)
		return call_fail_faults(c, &faults);
	struct doc d = {.kind = STR(VERIFY_KIND),
	                .id = arena_dup(c->arena, id_str(&id)),
	                .parent = c->group.id,
	                .created_ms = clock_now_ms(),
	                .rev = 1};
	/* The query is not shown either, so it goes where the password goes. */
	json_t *hidden = json_pack("{s:O,s:O}", "password", json_object_get(request, "bindPassword"), "query",
	                           json_object_get(request, "authzQueryTemplate"));
	d.secret = seal(c->arena, json_text(c->arena, hidden), seal_context(c->arena, d.id));
	json_decref(hidden);
	json_object_del(request, "links");
	schema_strip_write_only(c->version->request, request);
	json_t *body = doc_json(c->arena, STR("{\"status\":\"PENDING\",\"validations\":[]}"));
	json_put_str(body, "groupId", c->group.id);
	json_put_z(body, "requestId", id.z);
	json_object_set(body, "request", request);
	d.body = json_text(c->arena, body);
	struct job job = {.kind = STR(LDAP_VERIFY_JOB),
	                  .subject = arena_printf(c->arena, "ldap/%.*s", STR_ARG(c->group.id)),
	                  .args = arena_printf(c->arena, "{\"id\":\"%s\"}", id.z),
	                  .due_ms = clock_now_ms()};
	int result = oldest_drop(c);
	if (result == 0)
		result = tx_insert(c->tx, &d);
	if (result == 0)
		result = tx_job_add(c->tx, &job);
	if (result < 0)
		return result;
	c->location = link_href(c, resource_ldap_verification.self, "requestId", d.id);
	entity_write(c, &c->out, d.body, resource_ldap_verification.self, "requestId", d.id, false);
	return 0;
}

void ldap_verify_link(struct call *c)
{
	const struct op *op = resource_ldap_verification.self;
	struct doc d;
	if ((op->roles & c->roles) && doc_last(c->tx, c->arena, VERIFY_KIND, c->group.id, &d) == 0)
		entity_link(c, &c->out, "verify", link_href(c, op, "requestId", d.id));
}

/* One check under way. */
struct check {
	struct arena *arena;
	struct doc doc;
	json_t *body, *validations;
	struct str host, user, password, ca, query;
	unsigned port;
};

static bool note(struct check *k, const char *type, bool good)
{
	json_array_append_new(k->validations,
	                      json_pack("{s:s,s:s}", "status", good ? "OK" : "FAIL", "validationType", type));
	return good;
}

/* {USER} becomes the name of the one who asks. */
static bool query_make(struct check *k, struct ldap_query *ret_query)
{
	struct str mark = STR("{USER}");
	const char *at = memmem(k->query.p, k->query.n, mark.p, mark.n);
	if (!note(k, "TEMPLATE", at != NULL))
		return false;
	struct str rest = {at + mark.n, k->query.n - (size_t)(at - k->query.p) - mark.n};
	bool in_filter = memchr(k->query.p, '?', (size_t)(at - k->query.p)) != NULL;
	struct str user = in_filter ? ldap_escape_filter(k->arena, k->user) : k->user;
	struct str text = arena_printf(k->arena, "%.*s%.*s%.*s", (int)(at - k->query.p), k->query.p, STR_ARG(user),
	                               STR_ARG(rest));
	return note(k, "PARSE_AUTHZ_QUERY", ldap_query_parse(text, ret_query));
}

#ifdef API_HAS_LDAP

static void says(const struct check *k, const char *what, int code)
{
	log_info("LDAP check %.*s: %s: %s", STR_ARG(k->doc.id), what, ldap_err2string(code));
}

/* Whoever runs a check is not left alone with the directory. */
struct watch {
	struct ldap_conncb callback;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int fd; /* a copy of the connection's, so that it can come to mean no other; -1: none yet */
	bool late, over;
};

static int connection_begins(LDAP *ld, Sockbuf *socket, LDAPURLDesc *server, struct sockaddr *address,
                             struct ldap_conncb *callback)
{
	struct watch *w = callback->lc_arg;
	int fd = -1;
	ber_sockbuf_ctrl(socket, LBER_SB_OPT_GET_FD, &fd);
	pthread_mutex_lock(&w->lock);
	if (w->fd < 0 && fd >= 0)
		w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	bool refused = w->late || w->fd < 0;
	pthread_mutex_unlock(&w->lock);
	return refused ? -1 : 0;
}

static void connection_ends(LDAP *ld, Sockbuf *socket, struct ldap_conncb *callback)
{
}

static void *watch_main(void *arg)
{
	struct watch *w = arg;
	int64_t until = clock_mono_us() + CHECK_SECONDS * 1000000LL;
	struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
	int r = 0;
	pthread_mutex_lock(&w->lock);
	while (!w->over && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&w->changed, &w->lock, &t);
	w->late = !w->over;
	if (w->late && w->fd >= 0)
		shutdown(w->fd, SHUT_RDWR);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static int watch_start(struct watch *w)
{
	pthread_condattr_t monotonic;
	*w = (struct watch){.callback = {connection_begins, connection_ends, w}, .fd = -1};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return -pthread_create(&w->thread, NULL, watch_main, w);
}

static void watch_end(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	if (w->fd >= 0)
		close(w->fd);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

/* libldap takes authorities from a file; one in memory leaves nothing behind. */
static int trust_set(LDAP *ld, struct str ca, int *ret_fd)
{
	char path[64];
	int demand = LDAP_OPT_X_TLS_DEMAND, zero = 0, fd = -1;
	int code = ldap_set_option(ld, LDAP_OPT_X_TLS_REQUIRE_CERT, &demand);
	if (code == LDAP_OPT_SUCCESS && ca.n) {
		fd = memfd_create("ldap-ca", MFD_CLOEXEC);
		if (fd < 0 || write(fd, ca.p, ca.n) != (ssize_t)ca.n)
			code = LDAP_LOCAL_ERROR;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (code == LDAP_OPT_SUCCESS)
			code = ldap_set_option(ld, LDAP_OPT_X_TLS_CACERTFILE, path);
	}
	if (code == LDAP_OPT_SUCCESS)
		code = ldap_set_option(ld, LDAP_OPT_X_TLS_NEWCTX, &zero);
	*ret_fd = fd;
	return code;
}

/* A message of a directory that says that it is longer is not read. */
static void message_bound(LDAP *ld)
{
	ber_len_t most = MESSAGE_MAX;
	Sockbuf *socket = NULL;
	if (ldap_get_option(ld, LDAP_OPT_SOCKBUF, &socket) == LDAP_OPT_SUCCESS && socket)
		ber_sockbuf_ctrl(socket, LBER_SB_OPT_SET_MAX_INCOMING, &most);
}

static int directory_connect(struct check *k, struct watch *w, LDAP **ret_ld, int *ret_fd)
{
	bool tls, start_tls;
	int version = LDAP_VERSION3;
	struct timeval limit = {.tv_sec = STEP_SECONDS};
	LDAP *ld = NULL;
	ldap_transport(k->port, k->ca.n > 0, &tls, &start_tls);
	bool v6 = memchr(k->host.p, ':', k->host.n) != NULL;
	struct str url = arena_printf(k->arena, v6 ? "%s://[%.*s]:%u" : "%s://%.*s:%u", tls ? "ldaps" : "ldap",
	                              STR_ARG(k->host), k->port);
	int code = ldap_initialize(&ld, url.p);
	if (code != LDAP_SUCCESS)
		return code;
	*ret_ld = ld;
	ldap_set_option(ld, LDAP_OPT_PROTOCOL_VERSION, &version);
	ldap_set_option(ld, LDAP_OPT_NETWORK_TIMEOUT, &limit);
	ldap_set_option(ld, LDAP_OPT_TIMEOUT, &limit);
	ldap_set_option(ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
	ldap_set_option(ld, LDAP_OPT_CONNECT_CB, &w->callback);
	message_bound(ld);
	if (tls || start_tls)
		code = trust_set(ld, k->ca, ret_fd);
	if (code == LDAP_SUCCESS)
		code = start_tls ? ldap_start_tls_s(ld, NULL, NULL) : ldap_connect(ld);
	return code;
}

static int directory_bind(struct check *k, LDAP *ld)
{
	char *password = arena_z(k->arena, k->password);
	struct berval credentials = {.bv_len = k->password.n, .bv_val = password};
	return ldap_sasl_bind_s(ld, arena_z(k->arena, k->user), LDAP_SASL_SIMPLE, &credentials, NULL, NULL, NULL);
}

/* One entry at a time, and none is kept: how many there are, and how long it takes, is the directory's to say
 * otherwise. */
static int answer_await(LDAP *ld, int id)
{
	int64_t end = clock_mono_us() + STEP_SECONDS * 1000000LL, left;
	for (int count = 0; count <= ENTRIES_MAX && (left = end - clock_mono_us()) > 0; count++) {
		struct timeval limit = {.tv_sec = left / 1000000, .tv_usec = left % 1000000};
		LDAPMessage *message = NULL;
		int code = LDAP_OTHER, type = ldap_result(ld, id, LDAP_MSG_ONE, &limit, &message);
		if (type == LDAP_RES_SEARCH_RESULT) {
			int parsed = ldap_parse_result(ld, message, &code, NULL, NULL, NULL, NULL, 1);
			return parsed == LDAP_SUCCESS ? code : parsed;
		}
		ldap_msgfree(message);
		if (type <= 0)
			return type < 0 ? LDAP_SERVER_DOWN : LDAP_TIMEOUT;
	}
	ldap_abandon_ext(ld, id, NULL, NULL);
	return LDAP_SIZELIMIT_EXCEEDED;
}

static int directory_search(struct check *k, LDAP *ld, const struct ldap_query *q)
{
	int scope = str_is(q->scope, "sub")   ? LDAP_SCOPE_SUBTREE
	            : str_is(q->scope, "one") ? LDAP_SCOPE_ONELEVEL
	                                      : LDAP_SCOPE_BASE;
	char *attributes[] = {q->attributes.n ? arena_z(k->arena, q->attributes) : NULL, NULL};
	int id, code = ldap_search_ext(ld, arena_z(k->arena, q->base), scope, arena_z(k->arena, q->filter), attributes,
	                               0, NULL, NULL, NULL, ENTRIES_MAX, &id);
	return code == LDAP_SUCCESS ? answer_await(ld, id) : code;
}

static bool steps_try(struct check *k, struct watch *w)
{
	struct ldap_query query;
	LDAP *ld = NULL;
	int fd = -1, code = directory_connect(k, w, &ld, &fd);
	bool good = note(k, "CONNECT", code == LDAP_SUCCESS);
	if (!good)
		says(k, "connect", code);
	if (good) {
		code = directory_bind(k, ld);
		good = note(k, "AUTHENTICATE", code == LDAP_SUCCESS);
		if (!good)
			says(k, "bind", code);
	}
	good = good && note(k, "AUTHORIZATION_ENABLED", true) && query_make(k, &query);
	if (good) {
		code = directory_search(k, ld, &query);
		good = note(k, "QUERY_SERVER", code == LDAP_SUCCESS);
		if (!good)
			says(k, "search", code);
	}
	if (ld)
		ldap_unbind_ext_s(ld, NULL, NULL);
	if (fd >= 0)
		close(fd);
	return good;
}

static bool directory_try(struct check *k)
{
	struct watch w;
	if (watch_start(&w) < 0)
		return note(k, "CONNECT", false);
	bool good = steps_try(k, &w);
	watch_end(&w);
	return good;
}

#else

static bool directory_try(struct check *k)
{
	struct ldap_query query;
	log_warn("LDAP check %.*s: this build has no LDAP client", STR_ARG(k->doc.id));
	return note(k, "CONNECT", false) && query_make(k, &query);
}

#endif

static int check_load(struct job_run *r, struct check *k)
{
	struct str id = json_field(doc_json(r->arena, r->job.args), "id"), plain;
	int result = tx_get(r->reader, r->arena, VERIFY_KIND, id, &k->doc);
	if (result == 0)
		result = seal_open(r->arena, k->doc.secret, seal_context(r->arena, k->doc.id), &plain);
	if (result < 0)
		return result;
	const json_t *hidden = doc_json(r->arena, plain);
	k->arena = r->arena;
	k->body = doc_json(r->arena, k->doc.body);
	k->validations = json_object_get(k->body, "validations");
	const json_t *request = json_object_get(k->body, "request");
	k->host = json_field(request, "hostname");
	k->user = json_field(request, "bindUsername");
	k->ca = json_field(request, "caCertificate");
	k->port = (unsigned)json_integer_value(json_object_get(request, "port"));
	k->password = json_field(hidden, "password");
	k->query = json_field(hidden, "query");
	return 0;
}

/* The password is not needed any more. */
static int check_save(struct tx *tx, struct job_run *r)
{
	struct check *k = r->save_ctx;
	k->doc.body = json_text(r->arena, k->body);
	k->doc.secret = STR_NONE;
	k->doc.rev = 0;
	int result = tx_update(tx, &k->doc);
	return result == -ENOENT ? 0 : result;
}

int ldap_verify_step(struct job_run *r)
{
	struct check *k = arena_new_of(r->arena, struct check);
	tx_begin_read(r->reader);
	int result = check_load(r, k);
	tx_end_read(r->reader);
	tx_rest(r->reader);
	if (result < 0)
		return result == -ENOENT ? JOB_DONE : result;
	bool good = note(k, "SERVER_SPECIFIED", true) && directory_try(k);
	json_put_z(k->body, "status", good ? "SUCCESS" : "FAIL");
	r->save = check_save;
	r->save_ctx = k;
	return JOB_DONE;
}

int ldap_verify_failed(struct tx *tx, struct job_run *r)
{
	struct doc d;
	int result = tx_get(tx, r->arena, VERIFY_KIND, json_field(doc_json(r->arena, r->job.args), "id"), &d);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	json_t *body = doc_json(r->arena, d.body);
	json_put_z(body, "status", "FAIL");
	d.body = json_text(r->arena, body);
	d.secret = STR_NONE;
	return tx_update(tx, &d);
}
