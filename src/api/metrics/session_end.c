/* DELETE …/processes/{processId}:activity?pid=…&sessionStart=…: ends a session of a client. The server is asked before
 * the write, as it may take a while to answer; the write then notes the event. On another host's cluster that host
 * asks its server. Both parameters come from what ":activity" showed: a number of a process alone may be another
 * session's by now. */
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

static int end_here(const struct service *s, struct arena *a, const char *cluster_id, const char *node, int64_t pid,
                    int64_t started_ms, struct engine_session *ret_ended)
{
	const struct engine_activity_ops *ops = s->engine_ops->activity;
	return ops ? ops->end(s->engine_state, cluster_id, node, pid, started_ms, a, ret_ended) : -ENOTSUP;
}

void process_session_ended(struct service *s, struct request *r)
{
	struct engine_session session = {.user = "", .database = "", .application = ""};
	struct str id, node, pid, started, rest;
	int result = -ENOENT;
	str_cut(r->query, ',', &id, &rest);
	str_cut(rest, ',', &node, &rest);
	str_cut(rest, ',', &pid, &started);
	if (id_is_valid(id))
		result = end_here(s, r->arena, arena_z(r->arena, id), arena_z(r->arena, node),
		                  strtoll(arena_z(r->arena, pid), NULL, 10),
		                  strtoll(arena_z(r->arena, started), NULL, 10), &session);
	answer_value(r, 200,
	             json_pack("{s:i, s:s, s:s, s:s}", "result", result, "user", session.user, "database",
	                       session.database, "application", session.application));
	respond_here(r);
}

/* --- before the write */

static int end_there(struct call *c, const struct cluster *cluster, const char *node, int64_t pid, int64_t started_ms,
                     struct engine_session *ret_ended)
{
	struct host_question q = {.host = cluster_host(cluster),
	                          .path = arena_printf(c->arena, SESSION_ENDED "?%.*s,%s,%lld,%lld",
	                                               STR_ARG(cluster->doc.id), node, (long long)pid,
	                                               (long long)started_ms)};
	int r = hosts_ask(c, &q, 1);
	if (r < 0)
		return r;
	*ret_ended = (struct engine_session){.user = arena_z(c->arena, json_field(q.answer, "user")),
	                                     .database = arena_z(c->arena, json_field(q.answer, "database")),
	                                     .application = arena_z(c->arena, json_field(q.answer, "application"))};
	return (int)json_number(q.answer, "result");
}

static int no_session(struct call *c, struct str pid)
{
	struct str process = call_path(c, "processId");
	return call_fail_about(
	        c, 404, "SESSION_NOT_FOUND", pid,
	        "The process %.*s has no session %.*s of a client that began then: it has ended, or is the "
	        "service's own.",
	        STR_ARG(process), STR_ARG(pid));
}

static int prepare_with(struct call *c)
{
	struct cluster cluster;
	struct node_status node;
	struct engine_session session;
	struct str pid = call_query(c, "pid");
	int64_t started_ms, number = strtoll(arena_z(c->arena, pid), NULL, 10);
	int r = process_find_anywhere(c, &cluster, &node);
	if (r < 0)
		return r;
	if (number < 1 || number > INT32_MAX || !clock_parse(call_query(c, "sessionStart"), &started_ms))
		return no_session(c, pid);
	r = host_is_elsewhere(cluster_host(&cluster))
	            ? end_there(c, &cluster, node.name, number, started_ms, &session)
	            : end_here(c->service, c->arena, arena_z(c->arena, cluster.doc.id), node.name, number, started_ms,
	                       &session);
	if (r == -ENOTSUP)
		return cluster_not_offered(c);
	if (r == -EAGAIN || r == -ENOENT)
		return process_silent(c, &node);
	if (r < 0)
		return r == -ESRCH ? no_session(c, pid) : r;
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
	event_cluster(c, ended->cluster);
	event_field(c, "clusterName", ended->cluster);
	event_field(c, "pid", call_query(c, "pid"));
	event_field(c, "user", ended->user);
	event_field(c, "database", ended->database);
	if (ended->application.n)
		event_field(c, "application", ended->application);
	return 0;
}
