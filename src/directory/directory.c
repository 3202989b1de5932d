/* libldap, with bounds on everything that a directory can make us wait for or keep. It is optional: without it there is
 * no directory to reach. */
#include "directory/directory.h"

#include "base/clock.h"
#include "fetch/fetch.h"

#include <ctype.h>
#include <errno.h>

bool directory_host_is_good(struct str host)
{
	struct ip ip;
	if (ip_parse(host, &ip))
		return true;
	for (size_t i = 0; i < host.n; i++)
		if (!isalnum((unsigned char)host.p[i]) && host.p[i] != '-' && host.p[i] != '.')
			return false;
	return host.n > 0 && host.n < 254 && host.p[0] != '-' && host.p[0] != '.';
}

bool directory_host_is_inner(struct str host)
{
	struct ip ip;
	bool own = str_ieq(host, STR("localhost")) || str_ends(host, STR(".localhost"));
	if (!ip_parse(own ? STR("127.0.0.1") : host, &ip))
		return false;
	return !fetch_may_reach(FETCH_BY_TENANT, &ip);
}

void directory_transport(unsigned port, bool has_ca, bool *ret_tls, bool *ret_start_tls)
{
	bool clear = port == 389 || port == 3268;
	*ret_tls = !clear;
	*ret_start_tls = clear && has_ca;
}

#ifdef API_HAS_LDAP

#include <fcntl.h>
#include <ldap.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_SECONDS 5
#define WHOLE_SECONDS 12 /* all steps together */
#define ENTRIES_MAX 1000
#define MESSAGE_MAX (1 << 20)

/* Whoever waits for a directory is not left alone with it. */
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
	struct ip ip = address ? ip_from_sockaddr(address) : (struct ip){{0}};
	int fd = -1;
	/* The name may have another address by now than address_check() has seen. */
	if (!fetch_may_reach(FETCH_BY_TENANT, &ip))
		return -1;
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
	int64_t until = clock_mono_us() + WHOLE_SECONDS * 1000000LL;
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

struct directory {
	struct arena *arena;
	LDAP *ld;
	int ca_fd; /* -1: none */
	struct watch watch;
};

/* From libldap's code. */
static int outcome(int code, const char **ret_why)
{
	if (code == LDAP_SUCCESS)
		return 0;
	*ret_why = ldap_err2string(code);
	return -EIO;
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

/* Before a connection is tried: how long it takes to fail would tell which ports of inner networks are open. A host
 * with one address that may not be reached is refused, because libldap tries them all. */
static bool may_be_reached(struct arena *a, struct str host)
{
	struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
	bool good = getaddrinfo(arena_z(a, host), NULL, &hints, &list) == 0;
	for (const struct addrinfo *i = list; good && i; i = i->ai_next) {
		struct ip ip = ip_from_sockaddr(i->ai_addr);
		good = fetch_may_reach(FETCH_BY_TENANT, &ip);
	}
	if (list)
		freeaddrinfo(list);
	return good;
}

static int connection_make(struct directory *d, const struct directory_server *s)
{
	bool tls, start_tls;
	int version = LDAP_VERSION3;
	struct timeval limit = {.tv_sec = STEP_SECONDS};
	directory_transport(s->port, s->ca.n > 0, &tls, &start_tls);
	bool v6 = memchr(s->host.p, ':', s->host.n) != NULL;
	struct str url = arena_printf(d->arena, v6 ? "%s://[%.*s]:%u" : "%s://%.*s:%u", tls ? "ldaps" : "ldap",
	                              STR_ARG(s->host), s->port);
	int code = ldap_initialize(&d->ld, url.p);
	if (code != LDAP_SUCCESS)
		return code;
	ldap_set_option(d->ld, LDAP_OPT_PROTOCOL_VERSION, &version);
	ldap_set_option(d->ld, LDAP_OPT_NETWORK_TIMEOUT, &limit);
	ldap_set_option(d->ld, LDAP_OPT_TIMEOUT, &limit);
	ldap_set_option(d->ld, LDAP_OPT_REFERRALS, LDAP_OPT_OFF);
	ldap_set_option(d->ld, LDAP_OPT_CONNECT_CB, &d->watch.callback);
	message_bound(d->ld);
	if (tls || start_tls)
		code = trust_set(d->ld, s->ca, &d->ca_fd);
	if (code == LDAP_SUCCESS)
		code = start_tls ? ldap_start_tls_s(d->ld, NULL, NULL) : ldap_connect(d->ld);
	return code;
}

int directory_open(const struct directory_server *s, struct arena *a, struct directory **ret_directory,
                   const char **ret_why)
{
	struct directory *d = arena_new_of(a, struct directory);
	*d = (struct directory){.arena = a, .ca_fd = -1};
	if (!may_be_reached(a, s->host)) {
		*ret_why = FETCH_REFUSED;
		return -EACCES;
	}
	int r = watch_start(&d->watch);
	if (r < 0) {
		*ret_why = "no thread can be started";
		return r;
	}
	r = outcome(connection_make(d, s), ret_why);
	if (r < 0)
		directory_close(d);
	else
		*ret_directory = d;
	return r;
}

int directory_bind(struct directory *d, struct str user, struct str password, const char **ret_why)
{
	struct berval credentials = {.bv_len = password.n, .bv_val = arena_z(d->arena, password)};
	return outcome(
	        ldap_sasl_bind_s(d->ld, arena_z(d->arena, user), LDAP_SASL_SIMPLE, &credentials, NULL, NULL, NULL),
	        ret_why);
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

int directory_search(struct directory *d, const struct ldap_query *q, const char **ret_why)
{
	int scope = str_is(q->scope, "sub")   ? LDAP_SCOPE_SUBTREE
	            : str_is(q->scope, "one") ? LDAP_SCOPE_ONELEVEL
	                                      : LDAP_SCOPE_BASE;
	char *attributes[] = {q->attributes.n ? arena_z(d->arena, q->attributes) : NULL, NULL};
	int id, code = ldap_search_ext(d->ld, arena_z(d->arena, q->base), scope, arena_z(d->arena, q->filter),
	                               attributes, 0, NULL, NULL, NULL, ENTRIES_MAX, &id);
	return outcome(code == LDAP_SUCCESS ? answer_await(d->ld, id) : code, ret_why);
}

void directory_close(struct directory *d)
{
	if (!d)
		return;
	if (d->ld)
		ldap_unbind_ext_s(d->ld, NULL, NULL);
	if (d->ca_fd >= 0)
		close(d->ca_fd);
	watch_end(&d->watch);
}

#else

int directory_open(const struct directory_server *s, struct arena *a, struct directory **ret_directory,
                   const char **ret_why)
{
	*ret_why = "this build has no LDAP client";
	return -ENOSYS;
}

int directory_bind(struct directory *d, struct str user, struct str password, const char **ret_why)
{
	return -ENOSYS;
}

int directory_search(struct directory *d, const struct ldap_query *q, const char **ret_why)
{
	return -ENOSYS;
}

void directory_close(struct directory *d)
{
}

#endif
