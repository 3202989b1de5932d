/* Who came to the databases and was let in or refused, of a cluster or of one of its hosts. It is in the logs of the
 * nodes, on the host that has them: nothing of it is a document, so no verb serves it. A cluster's nodes are read one
 * after the other, and of all that was read no more than was asked for is ever kept. */
#include "api/access_history/access_history.h"

#include "api/kit/verbs.h"
#include "base/clock.h"
#include "call/pool.h"

#include <errno.h>
#include <stdlib.h>

#define ENTRIES_MAX 20000
#define READERS_MAX 8
#define READ_US INT64_C(10000000) /* of all nodes' logs, together */

static struct pool readers = POOL(READERS_MAX, 0); /* places only: the call has a thread */

struct entry {
	struct engine_login login;
	const char *host;
	size_t order; /* of what was read; equal times stay in it */
};

struct history {
	struct arena *arena; /* of the entries */
	struct entry *entries;
	size_t count, read;
};

/* --- what is asked for */

static int wanted_read(struct call *c, struct engine_logins *ret_wanted)
{
	struct str address = call_query(c, "ipAddress"), result = call_query(c, "authResult");
	struct engine_logins w = {.to_ms = INT64_MAX, .max = ENTRIES_MAX};
	uint64_t number;
	if (str_to_u64(call_query(c, "start"), INT64_MAX, &number))
		w.from_ms = (int64_t)number;
	if (str_to_u64(call_query(c, "end"), INT64_MAX - 1, &number))
		w.to_ms = (int64_t)number + 1; /* the moment itself belongs to the period */
	if (w.from_ms >= w.to_ms)
		return call_fail_fault(c, STR("start"), "must not be after end");
	if (str_to_u64(call_query(c, "nLogs"), ENTRIES_MAX, &number))
		w.max = (size_t)number;
	if (result.n)
		w.result = call_query_bool(c, "authResult", true) ? ENGINE_LOGIN_SUCCESS : ENGINE_LOGIN_REFUSAL;
	if (address.n) {
		struct ip *ip = arena_new_of(c->arena, struct ip);
		if (!ip_parse(address, ip))
			return call_fail_fault(c, STR("ipAddress"), "must be an IP address");
		w.address = ip;
	}
	*ret_wanted = w;
	return 0;
}

/* --- entries */

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->login.at_ms != y->login.at_ms)
		return x->login.at_ms > y->login.at_ms ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static struct entry entry_copy(struct arena *a, const struct entry *from)
{
	struct entry to = *from;
	to.login.user = arena_dup(a, from->login.user);
	to.login.database = arena_dup(a, from->login.database);
	to.login.reason = arena_dup(a, from->login.reason);
	to.login.line = arena_dup(a, from->login.line);
	return to;
}

/* The newest of both, in memory of their own, so that what is left out goes. */
static void history_join(struct history *h, struct engine_login *logins, size_t count, const char *host, size_t max)
{
	struct arena *a = arena_new();
	struct entry *all = must_calloc(h->count + count + 1, sizeof *all);
	size_t n = h->count + count;
	if (h->count)
		memcpy(all, h->entries, h->count * sizeof *all);
	for (size_t i = 0; i < count; i++)
		all[h->count + i] = (struct entry){logins[i], host, h->read++};
	qsort(all, n, sizeof *all, newest_first);
	n = n < max ? n : max;
	struct entry *kept = arena_new_array(a, struct entry, n + 1);
	for (size_t i = 0; i < n; i++)
		kept[i] = entry_copy(a, &all[i]);
	free(all);
	arena_free(h->arena);
	h->arena = a;
	h->entries = kept;
	h->count = n;
}

static int node_read(struct call *c, const struct engine_logins *wanted, const struct node_status *n, struct history *h)
{
	const struct service *s = c->service;
	struct engine_logins w = *wanted;
	struct engine_login *logins;
	size_t count;
	w.node = n->name;
	/* There are enough already: only newer ones are of interest. */
	if (h->count == w.max && h->count > 0 && w.from_ms < h->entries[h->count - 1].login.at_ms)
		w.from_ms = h->entries[h->count - 1].login.at_ms;
	struct arena *a = arena_new();
	int result = s->engine_ops->logs->logins(s->engine_state, &w, a, &logins, &count);
	if (result == 0 && count > 0)
		history_join(h, logins, count, n->host, w.max);
	arena_free(a);
	return result == -ENOENT ? 0 : result; /* it was removed meanwhile */
}

/* --- the answer */

static void text_put(struct buf *b, const char *field, struct str text)
{
	if (!text.n)
		return;
	json_key(b, field);
	json_str(b, text);
}

static void entry_write(const struct call *c, struct buf *b, const struct entry *e)
{
	const struct engine_login *l = &e->login;
	char text[IP_TEXT > CLOCK_TEXT ? IP_TEXT : CLOCK_TEXT];
	json_open(b, '{');
	json_key(b, "authResult");
	json_bool(b, l->success);
	text_put(b, "authSource", l->database);
	text_put(b, "failureReason", l->reason);
	text_put(b, "groupId", c->group.id);
	text_put(b, "hostname", str_of(e->host));
	if (l->has_address) {
		ip_format_full(&l->address, text);
		text_put(b, "ipAddress", str_of(text));
	}
	text_put(b, "logLine", l->line);
	clock_format(l->at_ms, text);
	text_put(b, "timestamp", str_of(text));
	text_put(b, "username", l->user);
	json_close(b, '}');
}

/* Of all nodes, or of that one. */
static int history_answer(struct call *c, const struct engine_logins *asked, const struct cluster_status *status,
                          const struct node_status *only)
{
	struct history h = {.count = 0};
	struct engine_logins wanted = *asked;
	bool cut = false;
	int result = 0;
	wanted.end_us = clock_mono_us() + READ_US;
	wanted.ret_cut = &cut;
	if (!pool_enter(&readers, call_key(c)))
		return call_fail(c, 503, "SERVICE_BUSY",
		                 "Too many access histories are being read. Try again in a few seconds.");
	for (size_t i = 0; result == 0 && i < status->node_count; i++)
		if (!only || only == &status->nodes[i])
			result = node_read(c, &wanted, &status->nodes[i], &h);
	pool_leave(&readers, call_key(c));
	if (result == 0) {
		json_open(&c->out, '{');
		json_key(&c->out, "accessLogs");
		json_open(&c->out, '[');
		for (size_t i = 0; i < h.count; i++)
			entry_write(c, &c->out, &h.entries[i]);
		json_close(&c->out, ']');
		json_close(&c->out, '}');
	}
	arena_free(h.arena);
	if (cut)
		call_header(c, STR("x-steward-incomplete"),
		            STR("the logs are too long to be read whole: name a period with start and end"));
	return result;
}

/* What both share once the cluster is found. `host`: of the node alone; empty: of all. */
static int history_get(struct call *c, const struct cluster *cluster, struct str host)
{
	struct engine_logins wanted = {0};
	struct cluster_status status;
	const struct node_status *only = NULL;
	bool forwarded = false;
	int result = wanted_read(c, &wanted);
	if (result == 0 && !c->service->engine_ops->logs)
		result = cluster_not_offered(c);
	if (result == 0)
		result = cluster_forward(c, cluster, &forwarded);
	if (result < 0 || forwarded)
		return result;
	result = cluster_observe(c, cluster, &status);
	for (size_t i = 0; result == 0 && host.n && i < status.node_count; i++)
		if (str_is(host, status.nodes[i].host))
			only = &status.nodes[i];
	if (result == 0 && host.n && !only)
		result = -ENOENT;
	if (result < 0)
		return result;
	wanted.cluster_id = arena_z(c->arena, cluster->doc.id);
	return history_answer(c, &wanted, &status, only);
}

int access_history_cluster(struct call *c)
{
	struct cluster cluster;
	int result = cluster_load(c, &cluster);
	return result < 0 ? result : history_get(c, &cluster, STR_NONE);
}

/* By the name of a host, as processes show it. */
int access_history_host(struct call *c)
{
	struct cluster cluster;
	int result = cluster_of_host(c, call_path(c, "hostname"), &cluster);
	return result < 0 ? result : history_get(c, &cluster, call_path(c, "hostname"));
}

/* It lies beside the clusters, not below its own. */
static void part_links(struct call *c, const struct doc *cluster)
{
	entity_link_op(c, "dbAccessHistory", catalog_op("getAccessHistoryCluster"), "clusterName", cluster->name);
}

const struct cluster_part access_history_part = {.links = part_links};
