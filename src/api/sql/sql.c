/* The console's SQL editor. The database decides what the statement may do: it runs as the user whose name and password
 * the person gives, and the password is kept nowhere. The service adds what the network would: only people of the
 * project, and only from an address that the project's access list lets in, because the connection to the server itself
 * comes from here. Wrong passwords are counted as failed sign-ins are. See docs/decisions/0041-sql-editor.md. */
#include "api/sql/sql.h"

#include "api/clusters/clusters.h"
#include "api/database_users/database_users.h"
#include "api/sign_in/sign_in.h"
#include "base/id.h"
#include "base/log.h"
#include "engine/engine.h"
#include "hosts/hosts.h"
#include "identity/identity.h"

#include <errno.h>

#define RUNNING 4
#define WAITING 16
#define SECONDS 30
#define ROWS_MAX 1000
#define BYTES_MAX (1 << 20)
#define TEXT_MAX 100000
#define NAME_MAX_BYTES 1024

static struct pool running = POOL(RUNNING, WAITING);

struct question {
	struct engine_sql ask;
	const char *cluster_id;
	struct str key; /* of failed attempts: of one person with one user of one cluster */
};

/* Projects of others are as those that are not there. */
static int project_load(struct visit *v)
{
	struct str id;
	int r = visit_text(v, "groupId", ID_LEN, &id);
	if (r < 0)
		return r;
	r = id_is_valid(id) ? tx_get(v->reader, v->arena, "project", id, &v->call.group) : -ENOENT;
	if (r == 0 && !principal_group_roles(v->call.caller, v->call.group.parent, id))
		r = -ENOENT;
	return r != -ENOENT ? r : call_fail(&v->call, 404, "GROUP_NOT_FOUND", "There is no such project.");
}

static int cluster_find(struct visit *v, struct question *q)
{
	struct cluster cluster;
	struct str name;
	int r = visit_text(v, "clusterName", NAME_MAX_BYTES, &name);
	v->call.tx = v->reader;
	r = r < 0 ? r : cluster_load_named(&v->call, name, &cluster);
	if (r < 0)
		return r;
	q->cluster_id = arena_z(v->arena, cluster.doc.id);
	if (host_is_elsewhere(cluster_host(&cluster)))
		return call_fail(&v->call, 409, "CLUSTER_ON_ANOTHER_HOST",
		                 "The cluster runs on another host. Open the console there, or use psql.");
	return 0;
}

static int address_check(struct visit *v)
{
	bool covered = false;
	char address[IP_TEXT];
	int r = access_list_covers(v->reader, v->arena, v->call.group.id, &v->request->peer, &covered);
	if (r < 0 || covered)
		return r;
	ip_format(&v->request->peer, address);
	return call_fail(&v->call, 403, "ADDRESS_NOT_ON_ACCESS_LIST",
	                 "%s, where you are, is not on the project's access list: its databases are closed to it.",
	                 address);
}

static int question_read(struct visit *v, struct question *q)
{
	q->ask = (struct engine_sql){.write = json_is_true(json_object_get(v->body, "write")),
	                             .seconds = SECONDS,
	                             .row_max = ROWS_MAX,
	                             .byte_max = BYTES_MAX};
	int r = visit_text(v, "username", NAME_MAX_BYTES, &q->ask.user);
	r = r < 0 ? r : visit_text(v, "password", NAME_MAX_BYTES, &q->ask.password);
	r = r < 0 ? r : visit_text(v, "database", NAME_MAX_BYTES, &q->ask.database);
	r = r < 0 ? r : visit_text(v, "statement", TEXT_MAX, &q->ask.text);
	if (r < 0)
		return r;
	/* They would be let in without a password: the connection comes from the service itself. */
	if (engine_name_is_reserved(q->ask.user))
		return call_fail(&v->call, 403, "DATABASE_LOGIN_REFUSED", "username: this is no user of the project.");
	const struct str all[] = {q->ask.user, q->ask.password, q->ask.database, q->ask.text};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (memchr(all[i].p, 0, all[i].n))
			return call_fail(&v->call, 400, "VALIDATION_ERROR", "statement: must have no character 0.");
	return 0;
}

static int answer_fail(struct visit *v, int r)
{
	if (r == -EAGAIN || r == -ENOENT)
		return call_fail(&v->call, 409, "CLUSTER_NOT_AVAILABLE",
		                 "The cluster's databases do not answer now: they are stopped or starting.");
	return call_fail(&v->call, 504, "STATEMENT_TOO_LARGE_OR_SLOW",
	                 "The statement took longer than %d seconds, or a row was larger than can be shown here.",
	                 SECONDS);
}

/* Whether the server has refused the name or the password: 28P01 or 28000. Any other SQLSTATE (there is no such
 * database, too many sessions, it is starting) says nothing of them. */
static bool is_login(struct str sqlstate)
{
	return str_is_one_of("28P01|28000", sqlstate);
}

/* There was no connection. A try that was none is taken back, without the standing of a right one: the server may have
 * been too full to look at the password. */
static int connection_fail(struct visit *v)
{
	struct str why = json_field(v->out, "refused");
	bool login = is_login(json_field(v->out, "code"));
	v->out = NULL;
	if (!login) {
		visit_attempt_none(v, ((struct question *)v->state)->key);
		return call_fail(&v->call, 409, "DATABASE_CONNECTION_FAILED", "The database says: %.*s.", STR_ARG(why));
	}
	return v->known_wait
	               ? visit_fail_sign_in(v)
	               : call_fail(&v->call, 403, "DATABASE_LOGIN_REFUSED", "The database says: %.*s.", STR_ARG(why));
}

/* The same questions as at the beginning: the statement may have waited for others, and who was removed meanwhile has
 * been told so. */
static int right_look(struct visit *v)
{
	struct principal *caller = NULL;
	int r = visit_still_signed_in(v);
	r = r < 0 ? r : principal_load(v->reader, PRINCIPAL_USER, v->session.user_id, &caller);
	if (r < 0)
		return r == -ENOENT ? call_fail(&v->call, 401, "NOT_SIGNED_IN", "The session has ended.") : r;
	if (!v->session.strong)
		r = principal_weaken(v->reader, &caller);
	v->call.caller = caller;
	r = r < 0 ? r : project_load(v);
	r = r < 0 ? r : address_check(v);
	v->call.caller = NULL;
	principal_unref(caller);
	return r;
}

static int right_still(struct visit *v)
{
	struct tx *reader = store_reader(v->service->store);
	if (!reader)
		return -EAGAIN;
	v->reader = v->call.tx = reader;
	tx_begin_read(reader);
	int r = right_look(v);
	tx_end_read(reader);
	v->reader = v->call.tx = NULL;
	store_reader_free(reader);
	return r;
}

static int statement_slow(struct visit *v)
{
	struct question *q = v->state;
	struct engine *e = v->service->engine_state;
	struct buf answer = {0};
	int r = right_still(v);
	if (r < 0)
		return r;
	r = v->service->engine_ops->sql->run(e, q->cluster_id, &q->ask, v->arena, &answer);
	v->out = r == 0 ? json_loadb(answer.p, answer.n, 0, NULL) : NULL;
	buf_free(&answer);
	if (!v->out)
		return answer_fail(v, r);
	json_keep(v->arena, v->out);
	if (json_field(v->out, "refused").n)
		return connection_fail(v);
	visit_attempt_right(v, q->key);
	return 0;
}

static int statement(struct visit *v)
{
	struct question *q = v->state = arena_new_of(v->arena, struct question);
	int r = project_load(v);
	r = r < 0 ? r : cluster_find(v, q);
	if (r == 0 && !v->service->engine_ops->sql)
		r = call_fail(&v->call, 501, "NOT_IMPLEMENTED", "The engine %s runs no statements.",
		              v->service->engine);
	r = r < 0 ? r : address_check(v);
	r = r < 0 ? r : question_read(v, q);
	if (r < 0)
		return r;
	q->key = arena_printf(v->arena, "sql %s %.*s %.*s", q->cluster_id, STR_ARG(v->session.user_id),
	                      STR_ARG(q->ask.user));
	r = visit_attempt(v, q->key);
	if (r < 0)
		return r;
	log_info("sql: session %.*s asks cluster %s%s", STR_ARG(v->session.id), q->cluster_id,
	         q->ask.write ? ", to write" : "");
	v->pool = &running;
	v->pool_key = fair_key(v->call.group.parent);
	v->slow = statement_slow;
	return 0;
}

static const struct visit_row rows[] = {{"POST", "/sql", statement, VISIT_SIGNED_IN | VISIT_BODY}};

void sql_serve(struct service *s, struct request *r)
{
	visit_serve(s, r, rows, sizeof rows / sizeof *rows);
}
