/* How a connection to PostgreSQL is made: one host of the URL after the other, each with a limit, and a session whose
 * settings are its role's.
 *
 * A reader whose connection breaks connects again. When no connection can be made, readers fail at once for a moment
 * instead of queueing for the same failure; whoever else connects tries until its time is over. */
#include "store/pg/pg.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

/* With several hosts, a host that does not answer is given up after this time. */
#define HOST_US 700000
#define PAUSE_US 50000
#define DOWN_US 300000
#define TELL_US 1000000

void pg_disconnect(struct pg *p)
{
	PQfinish(p->conn);
	p->conn = NULL;
	p->sent_count = p->flushed = 0;
	p->begun = p->ending = false;
	memset(p->prepared, 0, sizeof p->prepared);
}

bool pg_socket_wait(PGconn *conn, short events, int64_t until_us)
{
	for (;;) {
		int64_t left = until_us - clock_mono_us();
		struct pollfd fd = {.fd = PQsocket(conn), .events = events};
		if (left <= 0 || fd.fd < 0)
			return false;
		int r = poll(&fd, 1, (int)(left / 1000) + 1);
		if (r > 0)
			return true;
		if (r < 0 && errno != EINTR)
			return false;
	}
}

/* The server must also notice when a node is cut off, even while it has data to send to it. */
#define KEEPALIVE                                                                                             \
	", set_config('tcp_keepalives_idle', '1', false), set_config('tcp_keepalives_interval', '1', false)," \
	" set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '4000', false)"

/* Settings of a session, by role; sent before its first statement. */
static const char *const setups[] = {
        [PG_READER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                      " set_config('default_transaction_isolation', 'repeatable read', false),"
                      " set_config('default_transaction_read_only', 'on', false),"
                      " set_config('statement_timeout', '15s', false),"
                      " set_config('idle_in_transaction_session_timeout', '15s', false)" KEEPALIVE,
        /* A node that is cut off must not block the others: the server aborts its batch. */
        [PG_WRITER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                      " set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off'"
                      "  THEN 'on' ELSE current_setting('synchronous_commit') END, false),"
                      " set_config('lock_timeout', '3s', false), set_config('statement_timeout', '60s', false),"
                      " set_config('idle_in_transaction_session_timeout', '2s', false)" KEEPALIVE,
        [PG_LISTENER] = "SELECT set_config('search_path', '" PG_SCHEMA "', false),"
                        " set_config('synchronous_commit', 'off', false), set_config('statement_timeout', '2s', "
                        "false)" KEEPALIVE,
        [PG_TOOL] = "SELECT set_config('search_path', '" PG_SCHEMA "', false)",
};

/* Errors come with results; other messages of the server do not belong on the operator's terminal. */
static void notice_drop(void *ctx, const PGresult *r)
{
}

void pg_sent_add(struct pg *p, short what)
{
	p->sent[p->sent_count++] = what;
}

static bool setup_send(struct pg *p)
{
	if (!PQsendQueryParams(p->conn, setups[p->role], 0, NULL, NULL, NULL, NULL, 1))
		return false;
	pg_sent_add(p, SENT_COMMAND);
	if (!PQpipelineSync(p->conn))
		return false;
	pg_sent_add(p, SENT_SYNC);
	return true;
}

/* The hosts of a URL, as comma-separated lists like libpq's; NULL: not given. */
struct hosts {
	PQconninfoOption *options; /* owns the texts */
	const char *names, *addresses, *ports;
	unsigned count;
};

/* False when the text is not a URL. The message quotes nothing of it: a misplaced part may be the password. */
static bool hosts_read(const char *url, struct hosts *ret_hosts)
{
	struct hosts h = {.options = PQconninfoParse(url, NULL), .count = 1};
	for (const PQconninfoOption *o = h.options; o && o->keyword; o++) {
		const char **to = strcmp(o->keyword, "host") == 0       ? &h.names
		                  : strcmp(o->keyword, "hostaddr") == 0 ? &h.addresses
		                  : strcmp(o->keyword, "port") == 0     ? &h.ports
		                                                        : NULL;
		if (to)
			*to = o->val;
	}
	const char *list = h.addresses ? h.addresses : h.names;
	for (const char *c = list ? list : ""; *c; c++)
		h.count += *c == ',';
	if (!h.options || (h.names && strchr(h.names, '@')) ||
	    (h.ports && h.ports[strspn(h.ports, "0123456789,")] != '\0')) {
		log_error("store: the URL is not postgresql://USER:PASSWORD@HOST:PORT/DATABASE; special characters in "
		          "the "
		          "password must be percent-encoded");
		PQconninfoFree(h.options);
		return false;
	}
	*ret_hosts = h;
	return true;
}

/* One entry of a list, or its only one. */
static const char *list_pick(const char *list, unsigned number, char *text, size_t size)
{
	if (!list || !strchr(list, ','))
		return list;
	for (; number; number--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : "";
	snprintf(text, size, "%.*s", (int)strcspn(list, ","), list);
	return text;
}

/* One attempt, with one of the hosts: libpq would go to the next host only when one refuses, and wait long for one that
 * does not answer. Settings in the URL override those before it. */
static bool connect_once(struct pg *p, const char *url, const struct hosts *h, unsigned number, int64_t until_us)
{
	char name[256], address[64], port[8];
	const char *const names[] = {"connect_timeout",
	                             "keepalives_idle",
	                             "keepalives_interval",
	                             "keepalives_count",
	                             "tcp_user_timeout",
	                             "fallback_application_name",
	                             "target_session_attrs",
	                             "dbname",
	                             "client_encoding",
	                             "host",
	                             "hostaddr",
	                             "port",
	                             NULL};
	const char *const values[] = {"2",
	                              "1",
	                              "1",
	                              "2",
	                              "3000",
	                              "steward",
	                              "read-write",
	                              url,
	                              "UTF8",
	                              list_pick(h->names, number, name, sizeof name),
	                              list_pick(h->addresses, number, address, sizeof address),
	                              list_pick(h->ports, number, port, sizeof port),
	                              NULL};
	if (h->count > 1 && until_us > clock_mono_us() + HOST_US)
		until_us = clock_mono_us() + HOST_US;
	p->conn = PQconnectStartParams(names, values, 1);
	PostgresPollingStatusType s =
	        p->conn && PQstatus(p->conn) != CONNECTION_BAD ? PGRES_POLLING_WRITING : PGRES_POLLING_FAILED;
	while (s == PGRES_POLLING_READING || s == PGRES_POLLING_WRITING) {
		if (!pg_socket_wait(p->conn, s == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_us))
			break;
		s = PQconnectPoll(p->conn);
	}
	if (s != PGRES_POLLING_OK)
		return false;
	PQsetNoticeReceiver(p->conn, notice_drop, NULL);
	return PQsetnonblocking(p->conn, 1) == 0 && PQenterPipelineMode(p->conn) && setup_send(p);
}

static void pause_us(int64_t us)
{
	struct timespec t = {.tv_nsec = us * 1000};
	nanosleep(&t, NULL);
}

static int hosts_try(struct tx *tx, const struct hosts *hosts, int64_t until_us)
{
	struct pg *p = tx->pg;
	struct pg_store *shared = tx->store->pg;
	bool patient = p->role != PG_READER;
	char why[256] = "no answer in time";
	do {
		unsigned host = shared->host;
		if (connect_once(p, tx->store->path, hosts, host % hosts->count, until_us)) {
			shared->down_until_us = 0;
			return 0;
		}
		/* Other threads start with the next host too, unless one of them has moved on already. */
		atomic_compare_exchange_strong(&shared->host, &host, host + 1);
		/* The last attempt is cut short by the deadline; the message of an earlier attempt says more. */
		struct str message = str_trim(str_of(p->conn ? PQerrorMessage(p->conn) : "no memory"));
		if (message.n && message.p[message.n - 1] != ':')
			snprintf(why, sizeof why, "%.*s", STR_ARG(message));
		int64_t now = clock_mono_us();
		bool more = now + PAUSE_US < until_us;
		if (!more && now > shared->down_logged_us + TELL_US) {
			shared->down_logged_us = now;
			log_warn("store: cannot connect: %s", why);
		}
		pg_disconnect(p);
		if (!more)
			break;
		pause_us(PAUSE_US);
	} while (patient || clock_mono_us() >= shared->down_until_us);
	shared->down_until_us = clock_mono_us() + DOWN_US;
	return -ENOTCONN;
}

int pg_connect(struct tx *tx, int64_t until_us)
{
	struct pg *p = tx->pg;
	struct hosts hosts;
	if (p->conn && PQstatus(p->conn) == CONNECTION_OK)
		return 0;
	pg_disconnect(p);
	if (p->role == PG_READER && clock_mono_us() < tx->store->pg->down_until_us)
		return -ENOTCONN;
	if (!hosts_read(tx->store->path, &hosts))
		return -EINVAL;
	int r = hosts_try(tx, &hosts, until_us);
	PQconninfoFree(hosts.options);
	return r;
}
