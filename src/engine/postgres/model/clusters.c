/* The clusters in memory, their sets and nodes: found, counted while somebody looks at them, freed with the last
 * reference. */
#include "engine/postgres/model/clusters.h"

#include "base/arena.h"
#include "base/id.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool pg_crypt_is_shut(const struct pg_cluster *c)
{
	return c->data_key[0] && !c->files_open;
}

void pg_node_free(struct pg_node *n)
{
	if (!n)
		return;
	if (n->pidfd >= 0)
		close(n->pidfd);
	if (n->probe_fd >= 0)
		close(n->probe_fd);
	free(n);
}

bool pg_node_can_lead(const struct pg_node *n)
{
	return n->want.kind == NODE_ROUTER || (n->want.kind == NODE_ELECTABLE && n->want.priority > 0);
}

bool pg_node_shall_run(const struct pg_cluster *c, const struct pg_node *n)
{
	return !c->paused && !c->destroying && !c->upgrading && !c->restoring && !n->want.outage && !n->busy &&
	       !pg_crypt_is_shut(c);
}

void pg_node_busy(struct pg_cluster *c, struct pg_node *n, bool busy)
{
	pthread_mutex_lock(&c->lock);
	n->busy = busy;
	pthread_mutex_unlock(&c->lock);
}

bool pg_node_is_shard(const struct pg_cluster *c, const struct pg_node *n)
{
	bool sharded = false;
	for (size_t i = 0; i < c->node_count && !sharded; i++)
		sharded = c->nodes[i]->want.kind == NODE_ROUTER && !c->nodes[i]->removing;
	return sharded && n->want.kind != NODE_ROUTER;
}

void pg_set_name(const struct engine_node *n, char ret_name[64])
{
	if (n->kind == NODE_ROUTER)
		snprintf(ret_name, 64, "%s", n->name);
	else
		snprintf(ret_name, 64, "%u", n->shard);
}

struct pg_node *pg_cluster_node(const struct pg_cluster *c, const char *name)
{
	for (size_t i = 0; i < c->node_count; i++)
		if (strcmp(c->nodes[i]->want.name, name) == 0)
			return c->nodes[i];
	return NULL;
}

struct pg_set *pg_cluster_set(struct pg_cluster *c, unsigned number)
{
	for (size_t i = 0; i < c->set_count; i++)
		if (c->sets[i].number == number)
			return &c->sets[i];
	return NULL;
}

struct pg_node *pg_set_primary(const struct pg_cluster *c, const struct pg_set *s)
{
	return pg_cluster_node(c, s->primary);
}

struct pg_cluster *pg_cluster_new(struct engine *e, const char *id)
{
	struct pg_cluster *c = must_calloc(1, sizeof *c);
	c->engine = e;
	c->user = &e->user;
	c->refs = 1;
	pthread_mutex_init(&c->work, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->crypt, NULL);
	c->files_open = true;
	pthread_cond_init(&c->copied, NULL);
	snprintf(c->id, sizeof c->id, "%s", id);
	return c;
}

void pg_cluster_free(struct pg_cluster *c)
{
	for (size_t i = 0; i < c->node_count; i++)
		pg_node_free(c->nodes[i]);
	for (size_t i = 0; i < c->param_count; i++) {
		free(c->params[i].name);
		free(c->params[i].value);
	}
	free(c->audit);
	free(c->ca_cert);
	free(c->ca_key);
	arena_free(c->access_arena);
	if (c->archive)
		c->archive_free(c);
	pthread_mutex_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->crypt);
	pthread_cond_destroy(&c->copied);
	free(c);
}

static struct pg_cluster *cluster_get(struct engine *e, const char *id, bool make)
{
	if (!id_is_valid(str_of(id)))
		return NULL;
	pthread_mutex_lock(&e->lock);
	struct pg_cluster *c = e->clusters;
	while (c && strcmp(c->id, id) != 0)
		c = c->next;
	if (!c && make) {
		c = pg_cluster_new(e, id);
		c->next = e->clusters;
		e->clusters = c;
	}
	if (c)
		c->refs++;
	pthread_mutex_unlock(&e->lock);
	return c;
}

struct pg_cluster *pg_cluster_find(struct engine *e, const char *id)
{
	return cluster_get(e, id, false);
}

struct pg_cluster *pg_cluster_ensure(struct engine *e, const char *id)
{
	return cluster_get(e, id, true);
}

void pg_cluster_put(struct pg_cluster *c)
{
	struct engine *e = c->engine;
	pthread_mutex_lock(&e->lock);
	bool last = --c->refs == 0;
	pthread_mutex_unlock(&e->lock);
	if (last)
		pg_cluster_free(c);
}

size_t pg_clusters_hold(struct engine *e, struct pg_cluster ***ret_clusters)
{
	size_t count = 0, i = 0;
	pthread_mutex_lock(&e->lock);
	for (struct pg_cluster *c = e->clusters; c; c = c->next)
		count++;
	struct pg_cluster **all = must_calloc(count + 1, sizeof(struct pg_cluster *));
	for (struct pg_cluster *c = e->clusters; c; c = c->next) {
		c->refs++;
		all[i++] = c;
	}
	pthread_mutex_unlock(&e->lock);
	*ret_clusters = all;
	return count;
}

void pg_cluster_changed(const struct pg_cluster *c)
{
	if (c->engine->listener)
		c->engine->listener(c->engine->listener_ctx, c->id);
}
