/* Which servers of this host are asked for samples: those that run and that nothing is being done to. */
#include "engine/postgres/observe/measure_servers.h"

#include "base/clock.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/observe/collections.h"

#include <math.h>
#include <stdlib.h>

#define HOUR_US 3600000000LL

void pg_measured_disconnect(struct pg_measured *s)
{
	PQfinish(s->conn);
	PQfinish(s->other);
	PQclear(s->rows);
	s->conn = s->other = NULL;
	s->rows = NULL;
	s->step = STEP_IDLE;
	s->tables_from_us = 0;
}

static void server_free(struct pg_measured *s)
{
	pg_measured_disconnect(s);
	pg_tables_free(s->tables);
	pg_databases_free(&s->databases);
	free(s);
}

void pg_measures_free(struct engine *e)
{
	struct pg_measures *m = e->measures;
	for (size_t i = 0; m && i < m->count; i++)
		server_free(m->list[i]);
	if (m) {
		free(m->list);
		pg_sets_free(&m->sets);
	}
	free(m);
	e->measures = NULL;
}

static struct pg_measured *server_ensure(struct pg_measures *m, size_t *hint, const char *cluster_id, const char *node)
{
	for (size_t i = 0; i < m->count; i++) {
		struct pg_measured *s = m->list[(*hint + i) % m->count];
		if (strcmp(s->node, node) == 0 && strcmp(s->cluster_id, cluster_id) == 0) {
			*hint += i + 1;
			return s;
		}
	}
	if (m->count == m->room) {
		m->room = m->room ? 2 * m->room : 64;
		m->list = must_realloc(m->list, m->room * sizeof(struct pg_measured *));
	}
	struct pg_measured *s = must_calloc(1, sizeof *s);
	snprintf(s->cluster_id, sizeof s->cluster_id, "%s", cluster_id);
	snprintf(s->node, sizeof s->node, "%s", node);
	s->tables = pg_tables_new();
	m->list[m->count++] = s;
	return s;
}

/* With cluster.lock. Whether standbys follow the node. */
static bool node_is_followed(const struct pg_cluster *c, const struct pg_node *n)
{
	bool leads = false, others = false;
	for (size_t i = 0; i < c->set_count; i++)
		leads |= c->sets[i].number == n->set && pg_set_primary(c, &c->sets[i]) == n;
	for (size_t i = 0; i < c->node_count; i++)
		others |= c->nodes[i] != n && c->nodes[i]->set == n->set;
	return leads && others;
}

/* With cluster.lock. */
static void server_note(struct pg_measures *m, size_t *hint, const struct pg_cluster *c, const struct pg_node *n)
{
	if (n->removing || n->busy || c->destroying || !n->pid || n->noted)
		return;
	struct pg_measured *s = server_ensure(m, hint, c->id, n->want.name);
	s->there = true;
	s->pid = n->pid;
	s->port = n->port;
	s->set = n->set;
	s->disk_used = n->disk_used;
	s->disk_limit = n->want.disk_gb * c->engine->disk_unit;
	s->allowance = c->engine->cgroup[0] ? (double)engine_size(n->want.instance_size).processors : (double)NAN;
	s->followed = node_is_followed(c, n);
	if (s->followed)
		pg_sets_add(&m->sets, c->id, n->set);
	pg_node_run_dir(c, n, s->run);
	pg_node_path(c, n, "data", s->data);
	if (s->seen_pid != s->pid) {
		/* The first that is seen was not started anew. */
		if (s->seen_pid)
			s->restarts[s->restart_count++ % PG_RESTARTS_KEPT] = clock_mono_us();
		s->seen_pid = s->pid;
		pg_measured_disconnect(s);
	}
}

void pg_measured_find(struct engine *e, struct pg_measures *m)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all), hint = 0;
	for (size_t i = 0; i < m->count; i++)
		m->list[i]->there = m->list[i]->followed = false;
	for (size_t i = 0; i < count; i++) {
		pthread_mutex_lock(&all[i]->lock);
		/* An endpoint of a federated instance is no cluster of anybody's. */
		for (size_t k = 0; k < all[i]->node_count && !all[i]->federation; k++)
			server_note(m, &hint, all[i], all[i]->nodes[k]);
		pthread_mutex_unlock(&all[i]->lock);
		pg_cluster_put(all[i]);
	}
	free(all);
}

void pg_measured_drop(struct engine *e, struct pg_measures *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i++) {
		struct pg_measured *s = m->list[i];
		if (!s->there)
			pg_measured_disconnect(s);
		struct pg_cluster *c = s->there ? NULL : pg_cluster_find(e, s->cluster_id);
		bool stays = s->there;
		if (c) {
			pthread_mutex_lock(&c->lock);
			stays = pg_cluster_node(c, s->node) != NULL;
			pthread_mutex_unlock(&c->lock);
			pg_cluster_put(c);
		}
		if (stays)
			m->list[kept++] = s;
		else
			server_free(s);
	}
	m->count = kept;
}

void pg_measured_sets_drop(struct pg_measures *m)
{
	for (size_t i = 0; i < m->count; i++)
		pg_sets_keep(&m->sets, m->list[i]->cluster_id, m->list[i]->set);
	pg_sets_drop(&m->sets);
}

double pg_measured_restarts(const struct pg_measured *s)
{
	size_t n = 0, all = s->restart_count < PG_RESTARTS_KEPT ? s->restart_count : PG_RESTARTS_KEPT;
	for (size_t i = 0; i < all; i++)
		n += clock_mono_us() - s->restarts[i] < HOUR_US;
	return (double)n;
}
