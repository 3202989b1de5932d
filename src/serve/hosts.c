/* This process as a host among those that share its store: who it is, where the others reach it, what it sees of
 * them. */
#include "serve/hosts.h"

#include "api/clusters/clusters.h"
#include "base/log.h"
#include "hosts/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

int host_start(const struct config *c, struct service *s, const char *node)
{
	struct hosts_options options = {.store = s->store,
	                                .id = node,
	                                .name = c->host_name,
	                                .data_dir = c->data,
	                                .shared = store_is_remote(s->store),
	                                .workers = c->store_connections,
	                                .labels = c->labels.v,
	                                .label_count = c->labels.n,
	                                .bound = {.cores = c->host_cores,
	                                          .memory_mb = (int64_t)c->host_memory_gb * 1024,
	                                          .disk_mb = (int64_t)c->host_disk_gb * 1024}};
	bool on_host = s->engine_ops->core->on_host;
	options.count = on_host ? clusters_place_count : NULL;
	int result = hosts_open(&options);
	hosts_bind(on_host);
	if (result < 0)
		return result;
	result = hosts_announce("");
	if (result == 0 && on_host)
		result = clusters_place_count(s->store);
	if (result < 0 && !options.shared) {
		log_warn("hosts: this host is not noted in the store (error %d)", result);
		result = 0;
	}
	return result;
}

void host_inner(const struct config *c, struct arena *a, struct http_inner *ret_inner)
{
	size_t n = (size_t)(strrchr(c->listen, ':') - c->listen);
	ret_inner->listen = c->host_address;
	if (!ret_inner->listen)
		ret_inner->listen = arena_printf(a, "%.*s:0", (int)n, c->listen).p;
	hosts_inner(ret_inner);
}

/* Others must be able to connect to what is told: a wildcard becomes the machine's name. */
int host_tell(const struct config *c, struct arena *a, struct http_server *http)
{
	char host[256];
	const char *told = c->host_address ? c->host_address : c->listen;
	snprintf(host, sizeof host, "%.*s", (int)(strrchr(told, ':') - told), told);
	bool wild = !host[0] || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "[::]") == 0;
	if (wild && gethostname(host, sizeof host) < 0) {
		fprintf(stderr, "steward: the name of this machine is not known: give --host-address HOST:PORT\n");
		return -EINVAL;
	}
	host[sizeof host - 1] = '\0';
	int result = hosts_announce(arena_printf(a, "%s:%d", host, http_inner_port(http)).p);
	return result < 0 ? result : hosts_watch(http);
}
