/* What nodes are behind with, for maintenance: a server program that was replaced since they started (an upgrade of the
 * package), and certificates that end soon. The program's file is asked, not the server: the kernel knows which one a
 * process runs. Certificates are made anew by every converge; programs change only with a restart. */
#include "engine/postgres/cluster/renew.h"

#include "engine/postgres/cluster/tls.h"
#include "engine/postgres/model/clusters.h"

#include <stdio.h>
#include <unistd.h>

bool pg_node_is_behind(const struct pg_node *n)
{
	char link[48], program[PG_PATH];
	if (!n->pid)
		return false;
	snprintf(link, sizeof link, "/proc/%ld/exe", (long)n->pid);
	ssize_t length = readlink(link, program, sizeof program);
	return length > 0 && str_ends((struct str){program, (size_t)length}, STR(" (deleted)"));
}

bool pg_behind(struct engine *e, const char *cluster_id)
{
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	bool behind = false;
	if (!c)
		return false;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->node_count && !behind; i++)
		behind = !c->nodes[i]->busy && (pg_node_is_behind(c->nodes[i]) || pg_tls_ends_soon(c, c->nodes[i]));
	pthread_mutex_unlock(&c->lock);
	pg_cluster_put(c);
	return behind;
}
