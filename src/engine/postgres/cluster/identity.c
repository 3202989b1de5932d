/* What a set was made with: the identity of its data, by which data of another database, or none at all, is never taken
 * for its own. missing.c says why that is asked. */
#include "engine/postgres/cluster/identity.h"

#include "engine/postgres/host/data.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"

bool pg_node_is_own(struct pg_cluster *c, const struct pg_node *n)
{
	const struct pg_set *s = pg_cluster_set(c, n->set);
	char data[PG_PATH];
	uint64_t found;
	pg_node_path(c, n, "data", data);
	return !s || !s->identity || pg_data_identify(data, &found, NULL) < 0 || found == s->identity;
}

bool pg_node_was_made(struct pg_cluster *c, const struct pg_node *n)
{
	pthread_mutex_lock(&c->lock);
	const struct pg_set *s = pg_cluster_set(c, n->set);
	bool made = s && s->identity;
	pthread_mutex_unlock(&c->lock);
	return made;
}

void pg_identity_remove(struct pg_cluster *c, uint64_t identity)
{
	if (!identity)
		return;
	memmove(&c->removed[1], &c->removed[0], (PG_REMOVED_MAX - 1) * sizeof c->removed[0]);
	c->removed[0] = identity;
}

bool pg_identities_learn(struct pg_cluster *c)
{
	bool learned = false;
	for (size_t i = 0; i < c->set_count; i++) {
		struct pg_set *s = &c->sets[i];
		uint64_t identity = 0;
		for (size_t k = 0; k <= c->node_count && !s->identity && !identity; k++) {
			const struct pg_node *n = k ? c->nodes[k - 1] : pg_set_primary(c, s); /* that one first */
			char data[PG_PATH];
			if (!n || n->set != s->number || !pg_node_is_made(c, n))
				continue;
			pg_node_path(c, n, "data", data);
			if (pg_data_identify(data, &identity, NULL) < 0)
				identity = 0;
		}
		if (!identity)
			continue;
		pthread_mutex_lock(&c->lock);
		s->identity = identity;
		pthread_mutex_unlock(&c->lock);
		learned = true;
	}
	return learned;
}
