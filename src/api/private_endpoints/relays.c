/* The relays of this host: for each cluster that is here, a port for each of its links, open to the accepted
 * consumers of the service. They are opened anew when the cluster's job finds it again after a start. */
#include "api/private_endpoints/endpoints.h"

#include "base/buf.h"
#include "base/log.h"
#include "relay/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Set before the jobs start, and not changed any more, but for the last two. */
static struct {
	struct service *service;
	struct relays *relays; /* NULL: none on this host */
	char *address;         /* or NULL */
	struct ip ip;
	unsigned first, last;
	pthread_mutex_t lock; /* from reading who may pass until the relays have it */
	char changes[24];     /* of the store, as the relays have them; only for the main thread */
} here = {.first = 1024, .last = 65535, .lock = PTHREAD_MUTEX_INITIALIZER};

bool relays_are_here(void)
{
	return here.address != NULL;
}

const struct service *relays_service(void)
{
	return here.service;
}

const char *relays_address(void)
{
	return here.address;
}

struct ip relays_source(void)
{
	return here.ip;
}

unsigned relays_port(unsigned port)
{
	return here.first + port;
}

bool relays_can_listen(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	if (!here.address)
		return true;
	memcpy(&at.sin_addr, here.ip.b + 12, 4);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool can = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
	if (fd >= 0)
		close(fd);
	return can;
}

/* --- where a connection goes */

/* Of a sharded cluster one router after the other; else the node that takes writes. */
static const struct node_status *node_choose(const struct cluster_status *status)
{
	static _Atomic unsigned turn;
	size_t routers = 0, nth;
	const struct node_status *chosen = NULL;
	for (size_t i = 0; i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		if (n->state != NODE_RUNNING || !n->address[0])
			continue;
		routers += n->kind == NODE_ROUTER;
		if (n->kind != NODE_ROUTER && n->primary && !chosen)
			chosen = n;
	}
	nth = routers ? atomic_fetch_add(&turn, 1) % routers : 0;
	for (size_t i = 0; routers && i < status->node_count; i++) {
		const struct node_status *n = &status->nodes[i];
		if (n->kind == NODE_ROUTER && n->state == NODE_RUNNING && n->address[0] && nth-- == 0)
			chosen = n;
	}
	return chosen;
}

static bool target_find(void *ctx, const char *name, struct ip *ret_ip, unsigned *ret_port)
{
	const struct service *s = ctx;
	struct cluster_status status = {0};
	struct arena *a = arena_new();
	char cluster_id[25];
	str_copy((struct str){name, strcspn(name, "/")}, cluster_id, sizeof cluster_id);
	int r = s->engine_ops->core->observe(s->engine_state, cluster_id, a, &status);
	const struct node_status *n = r == 0 ? node_choose(&status) : NULL;
	bool found = n && ip_parse(str_of(n->address), ret_ip);
	if (found)
		*ret_port = n->port;
	arena_free(a);
	return found;
}

/* --- start and end */

int private_endpoints_start(struct service *s, const char *address, unsigned port_first, unsigned port_last)
{
	here.service = s;
	here.first = port_first ? port_first : here.first;
	here.last = port_last ? port_last : here.last;
	if (!address)
		return 0;
	if (!ip_parse(str_of(address), &here.ip))
		return -EINVAL;
	here.address = must_strdup(address);
	if (!s->engine_ops->core->on_host)
		return 0;
	return relays_start(&(struct relays_options){.target = target_find, .ctx = s}, &here.relays);
}

void private_endpoints_stop(void)
{
	relays_stop(here.relays);
	here.relays = NULL;
	free(here.address);
	here.address = NULL;
}

void private_endpoints_metrics(struct buf *b)
{
	if (!here.relays)
		return;
	struct relays_figures f = relays_figures(here.relays);
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} rows[] = {
	        {"steward_relays", "gauge", "Ports that lead private endpoints to clusters.", f.relays},
	        {"steward_relay_connections", "gauge", "Connections through them.", f.connections},
	        {"steward_relay_connections_total", "counter", "Connections that were let through.", f.taken},
	        {"steward_relay_refused_total", "counter",
	         "Connections that were closed at once: of nobody accepted, or one too many.", f.refused},
	        {"steward_relay_failed_total", "counter", "Connections whose cluster could not be reached.", f.failed}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", rows[i].name, rows[i].help, rows[i].name,
		           rows[i].type, rows[i].name, (unsigned long long)rows[i].value);
}

/* --- who may pass no more
 *
 * * Jobs bring access to databases, one after the other for each cluster, and each waits for its nodes: where a
 * standby hung while an endpoint was accepted, the deletion of that endpoint stood behind it, and its consumers
 * went on passing. So the relays follow the store, whatever the jobs do: what is written counts changes, and each
 * host looks when the count has moved. */
#define CHANGES_META "private_endpoint_changes"

int relays_changed(struct tx *tx, struct arena *a)
{
	struct str kept = STR("0");
	uint64_t count = 0;
	int r = tx_meta_get(tx, a, CHANGES_META, &kept);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!str_to_u64(kept, UINT64_MAX - 1, &count))
		count = 0;
	return tx_meta_put(tx, CHANGES_META, arena_printf(a, "%llu", (unsigned long long)count + 1));
}

struct review {
	struct tx *reader;
	struct arena *arena;
	int result;
};

static bool review_allowed(void *ctx, const char *name, const struct cidr **ret_list, size_t *ret_count)
{
	struct review *v = ctx;
	const char *slash = strchr(name, '/');
	struct cidr *list = NULL;
	int r = slash ? consumers_load(v->reader, v->arena, str_of(slash + 1), &list, ret_count) : -EINVAL;
	*ret_list = list;
	v->result = r < 0 ? r : v->result;
	return r == 0;
}

bool private_endpoints_review(struct tx *reader)
{
	struct review v = {.reader = reader};
	struct str count = STR_NONE;
	if (!here.relays)
		return true;
	v.arena = arena_new();
	/* Held against relays_apply(), which must not open anew what it has read before this. */
	pthread_mutex_lock(&here.lock);
	tx_begin_read(reader);
	int r = tx_meta_get(reader, v.arena, CHANGES_META, &count);
	if (r == 0 && !str_is(count, here.changes)) {
		relays_review(here.relays, review_allowed, &v);
		if (v.result == 0)
			str_copy(count, here.changes, sizeof here.changes);
	}
	tx_end_read(reader);
	pthread_mutex_unlock(&here.lock);
	arena_free(v.arena);
	return (r == 0 || r == -ENOENT) && v.result == 0;
}

/* --- what is open */

struct opening {
	struct str service_id, link_id;
	struct str state, fault; /* of the service; of the link, as it was last time */
	struct cidr *consumers;
	size_t consumer_count;
	unsigned port;
	const char *name;
};

static int openings_load(struct tx *tx, struct arena *a, struct str cluster_id, struct opening **ret_list,
                         size_t *ret_count)
{
	struct cluster cluster;
	struct link *links = NULL;
	size_t link_count = 0, count = 0;
	int r = cluster_get(tx, a, cluster_id, &cluster);
	if (r == 0 && !cluster_is(&cluster, "DELETING"))
		r = links_load(tx, a, cluster.doc.parent, &links, &link_count);
	struct opening *list = arena_new_array(a, struct opening, link_count + 1);
	for (size_t i = 0; r == 0 && i < link_count; i++) {
		struct opening *o = &list[count];
		struct doc service;
		if (!str_eq(links[i].cluster, cluster_id))
			continue;
		r = tx_get(tx, a, SERVICE_KIND, links[i].service, &service);
		if (r == 0)
			r = consumers_load(tx, a, service.id, &o->consumers, &o->consumer_count);
		if (r == -ENOENT)
			r = 0;
		if (r < 0 || !o->consumer_count)
			continue;
		o->service_id = links[i].service;
		o->link_id = links[i].doc.id;
		o->fault = links[i].fault;
		o->state = json_field(doc_json(a, service.body), "status");
		o->port = links[i].port;
		o->name = arena_z(a, links[i].doc.name);
		count++;
	}
	*ret_list = list;
	*ret_count = count;
	return r == -ENOENT ? 0 : r;
}

struct telling {
	struct arena *arena;
	struct str service_id, link_id, why;
};

static int tell_run(struct tx *tx, void *ctx)
{
	const struct telling *t = ctx;
	int r = link_fault(tx, t->arena, t->link_id, t->why);
	return r == -ENOENT ? 0 : r < 0 ? r : service_review(tx, t->arena, t->service_id);
}

/* The service says so where it does not yet. */
static void tell(const struct service *s, struct arena *a, const struct opening *o, struct str why)
{
	struct telling t = {a, o->service_id, o->link_id, why};
	bool said = str_eq(why, o->fault) && str_is(o->state, why.n ? "FAILED" : "AVAILABLE");
	if (why.n)
		log_error("private endpoints: service %.*s: %.*s", STR_ARG(o->service_id), STR_ARG(why));
	if (!said && store_write_wait(s->store, tell_run, &t) < 0)
		log_warn("private endpoints: the state of the service %.*s could not be written",
		         STR_ARG(o->service_id));
}

/* Why it cannot be opened, or nothing. */
static struct str opening_make(struct arena *a, const struct opening *o)
{
	struct relay_wish wish = {.name = o->name,
	                          .address = here.ip,
	                          .port = here.first + o->port,
	                          .source = here.ip,
	                          .allowed = o->consumers,
	                          .allowed_count = o->consumer_count};
	unsigned port;
	int r = !here.relays ? -ENOTSUP : wish.port > here.last ? -ENOSPC : relay_open(here.relays, &wish, &port);
	struct str why = STR_NONE;
	if (r == -ENOTSUP)
		why = STR("The cluster's host has no address for private endpoints: its operator must give it one with "
		          "--private-endpoints.");
	else if (r == -ENOSPC)
		why = STR("The host has no more ports for private endpoints: its operator must give "
		          "--private-endpoints more of them.");
	else if (r < 0)
		why = arena_printf(a, "The relay cannot listen on %s:%u: %s. The operator of the service must mend it.",
		                   here.address, wish.port, strerror(-r));
	return why;
}

int relays_apply(const struct service *s, struct tx *reader, struct arena *a, struct str cluster_id)
{
	struct opening *list = NULL;
	size_t count = 0;
	int r = 0;
	if (!s->engine_ops->core->on_host)
		return 0;
	pthread_mutex_lock(&here.lock);
	if (reader) {
		tx_begin_read(reader);
		r = openings_load(reader, a, cluster_id, &list, &count);
		tx_end_read(reader);
		tx_rest(reader);
	}
	const char **names = arena_new_array(a, const char *, count + 1);
	struct str *whys = arena_new_array(a, struct str, count + 1);
	for (size_t i = 0; i < count; i++)
		names[i] = list[i].name;
	if (here.relays && r == 0)
		relays_keep(here.relays, arena_printf(a, "%.*s/", STR_ARG(cluster_id)).p, names, count);
	for (size_t i = 0; i < count && r == 0; i++)
		whys[i] = opening_make(a, &list[i]);
	pthread_mutex_unlock(&here.lock);
	for (size_t i = 0; i < count && r == 0; i++)
		tell(s, a, &list[i], whys[i]);
	return r;
}
