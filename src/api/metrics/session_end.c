/* DELETE …/processes/{processId}:activity?pid=…&sessionStart=…: ends a session of a client; with &statementStart=… it
 * cancels the statement that began then, and the session goes on. The server is asked before the write, as it may take
 * a while to answer; the write then notes the event. On another host's cluster that host asks its server. The
 * parameters come from what ":activity" showed: a number of a process alone may be another session's by now, and a
 * session may run another statement. */
#include "api/clusters/clusters.h"
#include "api/metrics/processes.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/service.h"
#include "call/workers.h"
#include "hosts/hosts.h"
#include "trail/events.h"

#include <errno.h>
#include <stdlib.h>

/* What was ended, for the event. */
struct ended {
	struct str cluster, user, database, application;
};

/* --- where the cluster is */

static int end_here(const struct service *s, struct arena *a, const char *cluster_id, const char *node,
                    const struct engine_session_id *which, struct engine_session *ret_ended)
{
	const struct engine_activity_ops *ops = s->engine_ops->activity;
	return ops ? ops->end(s->engine_state, cluster_id, node, which, a, ret_ended) : -ENOTSUP;
}

/* The next number of the question. */
static int64_t number_cut(struct arena *a, struct str *rest)
{
	struct str number;
	str_cut(*rest, ',', &number, rest);
	return strtoll(arena_z(a, number), NULL, 10);
}

void process_session_ended(struct service *s, struct request *r)
{
	struct engine_session session = {.user = "", .database = "", .application = ""};
	struct engine_session_id which;
	struct str id, node, rest;
	int result = -ENOENT;
	str_cut(r->query, ',', &id, &rest);
	str_cut(rest, ',', &node, &rest);
	which.pid = number_cut(r->arena, &rest);
	which.started_ms = number_cut(r->arena, &rest);
	which.statement_ms = number_cut(r->arena, &rest);
	if (id_is_valid(id))
		result = end_here(s, r->arena, arena_z(r->arena, id), arena_z(r->arena, node), &which, &session);
	answer_value(r, 200,
	             json_pack("{s:i, s:s, s:s, s:s}", "result", result, "user", session.user, "database",
	                       session.database, "application", session.application));
	respond_here(r);
}

/* --- before the write */

static int end_there(struct call *c, const struct cluster *cluster, const char *node,
                     const struct engine_session_id *which, struct engine_session *ret_ended)
{
	struct str path =
	        arena_printf(c->arena, SESSION_ENDED "?%.*s,%s,%lld,%lld,%lld", STR_ARG(cluster->doc.id), node,
	                     (long long)which->pid, (long long)which->started_ms, (long long)which->statement_ms);
	struct host_question q = {.host = cluster_host(cluster), .path = path};
	int r = hosts_ask(c, &q, 1);
	if (r < 0)
		return r;
	*ret_ended = (struct engine_session){.user = arena_z(c->arena, json_field(q.answer, "user")),
	                                     .database = arena_z(c->arena, json_field(q.answer, "database")),
	                                     .application = arena_z(c->arena, json_field(q.answer, "application"))};
	return (int)json_number(q.answer, "result");
}

static int no_session(struct call *c, const struct engine_session_id *which)
{
	struct str process = call_path(c, "processId"), pid = call_query(c, "pid");
	if (which->statement_ms)
		return call_fail_about(c, 404, "STATEMENT_NOT_FOUND", pid,
		                       "The process %.*s has no session %.*s of a client that began then and runs a "
		                       "statement that began then: the statement has ended, or is the service's own.",
		                       STR_ARG(process), STR_ARG(pid));
	return call_fail_about(
	        c, 404, "SESSION_NOT_FOUND", pid,
	        "The process %.*s has no session %.*s of a client that began then: it has ended, or is the "
	        "service's own.",
	        STR_ARG(process), STR_ARG(pid));
}

/* Which session the parameters name. False: none can be. */
static bool session_named(struct call *c, struct engine_session_id *ret_which)
{
	struct str statement = call_query(c, "statementStart");
	*ret_which = (struct engine_session_id){.pid = strtoll(arena_z(c->arena, call_query(c, "pid")), NULL, 10)};
	bool known = clock_parse(call_query(c, "sessionStart"), &ret_which->started_ms);
	/* 0 would be the whole session. */
	if (statement.n && (!clock_parse(statement, &ret_which->statement_ms) || !ret_which->statement_ms))
		known = false;
	return known && ret_which->pid >= 1 && ret_which->pid <= INT32_MAX;
}

static int prepare_with(struct call *c)
{
	struct cluster cluster;
	struct node_status node;
	struct engine_session session;
	struct engine_session_id which;
	int r = process_find_anywhere(c, &cluster, &node);
	if (r < 0)
		return r;
	if (!session_named(c, &which))
		return no_session(c, &which);
	r = host_is_elsewhere(cluster_host(&cluster))
	            ? end_there(c, &cluster, node.name, &which, &session)
	            : end_here(c->service, c->arena, arena_z(c->arena, cluster.doc.id), node.name, &which, &session);
	if (r == -ENOTSUP)
		return cluster_not_offered(c);
	if (r == -EAGAIN || r == -ENOENT)
		return process_silent(c, &node);
	if (r < 0)
		return r == -ESRCH ? no_session(c, &which) : r;
	struct ended *ended = arena_new_of(c->arena, struct ended);
	*ended = (struct ended){.cluster = cluster.doc.name,
	                        .user = str_of(session.user),
	                        .database = str_of(session.database),
	                        .application = str_of(session.application)};
	c->prepared = ended;
	return 0;
}

int process_session_end_prepare(struct call *c)
{
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	int r = prepare_with(c);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* --- in the write */

int process_session_end(struct call *c)
{
	const struct ended *ended = c->prepared;
	if (call_query(c, "statementStart").n)
		event_set_type(c, "ATTEMPT_KILLOP_AUDIT");
	event_cluster(c, ended->cluster);
	event_field(c, "clusterName", ended->cluster);
	event_field(c, "pid", call_query(c, "pid"));
	event_field(c, "user", ended->user);
	event_field(c, "database", ended->database);
	if (ended->application.n)
		event_field(c, "application", ended->application);
	return 0;
}
