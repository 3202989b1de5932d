/* The clusters that an instance reads, seen from its endpoint. The service asks their catalogs itself, as its own
 * role, and runs nothing of a tenant's for it; rows come later, in queries, through roles of their users
 * (pg_shadow_name()).
 *
 * An endpoint comes by the clusters' sockets, as its system user, which is the project's. What a cluster answers
 * becomes statements of the endpoint's superuser: a tenant could have put a server of their own behind the socket,
 * so names are quoted, and types are read (type_is_plain()). */
#include "engine/postgres/federation/remote.h"

#include "base/arena.h"
#include "base/buf.h"
#include "engine/postgres/cluster/access.h"
#include "engine/postgres/cluster/access_mark.h"
#include "engine/postgres/cluster/state.h"
#include "engine/postgres/federation/tables.h"
#include "engine/postgres/model/clusters.h"
#include "engine/postgres/model/paths.h"
#include "engine/postgres/model/why.h"
#include "engine/postgres/observe/advice.h"
#include "engine/postgres/sql/sql.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define ASK_MS 20000
#define COLUMNS_MAX 100000 /* of one database */

/* --- its users */

static int admit(struct pg_cluster *c, bool shall, const char **ret_why)
{
	if (c->federated != shall) {
		pthread_mutex_lock(&c->lock);
		c->federated = shall;
		pthread_mutex_unlock(&c->lock);
		int r = pg_state_save(c);
		if (r < 0)
			return r;
	} else if (!c->access || pg_access_is_applied(c, c->access)) {
		return 0; /* or it will be, with the first access that this service gives it */
	}
	if (!c->access) {
		pg_why_set(ret_why, "%s: its users are not known yet", c->name);
		return -EAGAIN;
	}
	/* A copy: what is kept is made anew, with the roles for endpoints or without. */
	struct engine_access again = *c->access;
	int r = pg_access_apply(c, &again, ret_why);
	return r < 0 ? -EAGAIN : 0;
}

int pg_remote_admit(struct engine *e, const char *cluster_id, struct arena *a, const char **ret_why)
{
	const char *why = NULL;
	struct pg_cluster *c = pg_cluster_find(e, cluster_id);
	if (!c) {
		*ret_why = "another host has the cluster";
		return -ENOENT;
	}
	pthread_mutex_lock(&c->work);
	int r = c->gone || c->destroying || c->federation ? -ENOENT : admit(c, true, &why);
	pthread_mutex_unlock(&c->work);
	pg_cluster_put(c);
	if (r < 0)
		*ret_why = arena_z(a, str_of(why ? why : "the cluster is not there"));
	return r;
}

void pg_remote_dismiss(struct engine *e, const char *group_id)
{
	struct pg_cluster **all;
	size_t count = pg_clusters_hold(e, &all);
	bool used = false;
	for (size_t i = 0; i < count; i++)
		used = used || (all[i]->federation && !all[i]->gone && strcmp(all[i]->group_id, group_id) == 0);
	for (size_t i = 0; i < count; i++) {
		const char *why = NULL;
		pthread_mutex_lock(&all[i]->work);
		/* What cannot be now comes with the next change of the users. */
		if (!used && all[i]->federated && !all[i]->gone && !all[i]->destroying &&
		    strcmp(all[i]->group_id, group_id) == 0)
			(void)!admit(all[i], false, &why);
		pthread_mutex_unlock(&all[i]->work);
		pg_cluster_put(all[i]);
	}
	free(all);
}

/* --- its tables */

static const struct pg_place *place_find(const struct pg_inquiry *q)
{
	for (size_t i = 0; i < q->place_count; i++)
		if (q->places[i].node.want.kind == NODE_ROUTER)
			return &q->places[i];
	return pg_inquiry_primary(q, 0);
}

static int remote_open(struct pg_remotes *all, size_t store, const char *database, PGconn **ret_conn,
                       const char **ret_why)
{
	const struct engine_federation_store *s = &all->want->stores[store];
	struct pg_inquiry q;
	int r = pg_inquiry_begin(all->engine, s->cluster_id, all->arena, &q);
	const struct pg_place *p = r == 0 ? place_find(&q) : NULL;
	r = p && p->runs ? pg_sql_open(&p->node, p->run, database, ASK_MS, ret_conn) : -EAGAIN;
	if (r < 0) {
		*ret_why = arena_printf(all->arena, "%s: the cluster does not answer", s->name).p;
		return -EAGAIN;
	}
	r = pg_sql_do(*ret_conn, ASK_MS, "set search_path = pg_catalog; set statement_timeout = '20s'");
	if (r < 0) {
		PQfinish(*ret_conn);
		*ret_why = arena_printf(all->arena, "%s: the cluster does not answer", s->name).p;
		r = -EAGAIN;
	}
	return r;
}

static int rows_ask(struct pg_remotes *all, size_t store, const char *database, const char *sql, PGresult **ret_rows,
                    const char **ret_why)
{
	PGconn *conn;
	int r = remote_open(all, store, database, &conn, ret_why);
	if (r < 0)
		return r;
	r = pg_sql_rows(conn, ASK_MS, sql, ret_rows);
	PQfinish(conn);
	if (r < 0) {
		*ret_why = arena_printf(all->arena, "%s: %s", all->want->stores[store].name, pg_why_last()).p;
		r = -EAGAIN;
	}
	return r;
}

int pg_remote_databases(struct pg_remotes *all, size_t store, const char *const **ret_names, size_t *ret_count,
                        const char **ret_why)
{
	PGresult *rows;
	int r = rows_ask(all, store, "postgres",
	                 "select datname from pg_database where datallowconn and not datistemplate and "
	                 "pg_get_userbyid(datdba) <> '" PG_RESTORE "' order by 1 limit 1000",
	                 &rows, ret_why);
	if (r < 0)
		return r;
	int n = PQntuples(rows);
	const char **names = arena_new_array(all->arena, const char *, (size_t)n + 1);
	for (int i = 0; i < n; i++)
		names[i] = arena_z(all->arena, str_of(pg_value(rows, i, 0)));
	PQclear(rows);
	*ret_names = names;
	*ret_count = (size_t)n;
	return 0;
}

/* Types of PostgreSQL's own; a domain over one is that one, and any other column is left out: the endpoint does not
 * know its type, and text in its place would be compared as text. */
static const char tables_ask[] =
        "select n.nspname, c.relname, a.attname, case when t.typtype = 'd' then format_type(t.typbasetype, "
        "t.typtypmod) "
        "else format_type(a.atttypid, a.atttypmod) end, coalesce(d.typname, t.typname) from pg_class c join "
        "pg_namespace n on n.oid = c.relnamespace "
        "join pg_attribute a on a.attrelid = c.oid join pg_type t on t.oid = a.atttypid left join pg_type d on "
        "t.typtype = 'd' "
        "and d.oid = t.typbasetype where relkind in ('r', 'p', "
        "'v', 'm', 'f') and relpersistence <> 't' and not relispartition and nspname !~ "
        "'^(pg_|steward|information_schema$|sharded$)' and attnum > 0 and not attisdropped and "
        "case when t.typtype = 'd' then t.typbasetype else t.oid end < 16384 and (t.typtype <> 'd' or exists (select "
        "from pg_type b where b.oid = t.typbasetype and b.typtype <> 'd')) order by n.nspname, c.relname, attnum "
        "limit 100000";

/* "character varying(10)", "numeric(6,2)", "timestamp(3) with time zone", "integer[]": letters, and numbers in
 * brackets. */
static bool type_is_plain(const char *type)
{
	int depth = 0;
	if (strcmp(type, "\"char\"") == 0)
		return true;
	for (const char *p = type; *p; p++) {
		bool number = isdigit((unsigned char)*p) || *p == ',' || (*p == '-' && isdigit((unsigned char)p[1]));
		depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
		if (depth < 0 || depth > 1)
			return false;
		if (*p == '(' || *p == ')' || (depth ? number : isdigit((unsigned char)*p)))
			continue;
		if (depth || (!islower((unsigned char)*p) && *p != ' ' && *p != '_' && *p != '[' && *p != ']'))
			return false;
	}
	return depth == 0 && islower((unsigned char)*type) && strlen(type) < 100;
}

static bool name_is_good(const char *name)
{
	return *name && strlen(name) < 64;
}

static void column_take(struct pg_remotes *all, struct pg_remote *to, PGresult *rows, int i)
{
	const char *schema = pg_value(rows, i, 0), *name = pg_value(rows, i, 1), *column = pg_value(rows, i, 2);
	const char *type = pg_value(rows, i, 3), *base = pg_value(rows, i, 4);
	struct pg_remote_table *t = to->table_count ? &to->tables[to->table_count - 1] : NULL;
	if (!name_is_good(schema) || !name_is_good(name) || !name_is_good(column) || !type_is_plain(type))
		return;
	if (!t || strcmp(t->name, name) != 0 || strcmp(t->schema, schema) != 0) {
		t = &to->tables[to->table_count++];
		*t = (struct pg_remote_table){.schema = arena_z(all->arena, str_of(schema)),
		                              .name = arena_z(all->arena, str_of(name))};
		t->full = strcmp(schema, "public") == 0 ? t->name : arena_printf(all->arena, "%s.%s", schema, name).p;
		int more = i;
		while (more < PQntuples(rows) && strcmp(pg_value(rows, more, 1), name) == 0 &&
		       strcmp(pg_value(rows, more, 0), schema) == 0)
			more++;
		t->columns = arena_new_array(all->arena, struct pg_remote_column, (size_t)(more - i));
	}
	t->columns[t->column_count++] = (struct pg_remote_column){.name = arena_z(all->arena, str_of(column)),
	                                                          .type = arena_z(all->arena, str_of(type)),
	                                                          .base = arena_z(all->arena, str_of(base))};
}

int pg_remote_get(struct pg_remotes *all, size_t store, const char *database, const struct pg_remote **ret,
                  const char **ret_why)
{
	PGresult *rows;
	for (struct pg_remote *one = all->first; one; one = one->next)
		if (one->store == store && strcmp(one->database, database) == 0) {
			*ret = one;
			return 0;
		}
	int r = rows_ask(all, store, database, tables_ask, &rows, ret_why);
	if (r < 0)
		return r;
	struct pg_remote *fresh = arena_new_of(all->arena, struct pg_remote);
	*fresh = (struct pg_remote){.next = all->first, .store = store, .number = all->count++, .database = database};
	fresh->tables = arena_new_array(all->arena, struct pg_remote_table, (size_t)PQntuples(rows) + 1);
	for (int i = 0; i < PQntuples(rows) && i < COLUMNS_MAX; i++)
		column_take(all, fresh, rows, i);
	PQclear(rows);
	all->first = fresh;
	*ret = fresh;
	return 0;
}

/* All of its nodes that can lead, so that a failover needs no change here; of a sharded cluster its routers. */
int pg_remote_options(struct pg_remotes *all, const struct pg_remote *of, struct buf *b, const char **ret_why)
{
	const struct engine_federation_store *s = &all->want->stores[of->store];
	struct pg_inquiry q;
	struct buf hosts = {0}, ports = {0};
	int r = pg_inquiry_begin(all->engine, s->cluster_id, all->arena, &q);
	bool routed = false;
	for (size_t i = 0; r == 0 && i < q.place_count; i++)
		routed = routed || q.places[i].node.want.kind == NODE_ROUTER;
	for (size_t i = 0; r == 0 && i < q.place_count; i++) {
		const struct pg_node *n = &q.places[i].node;
		if (routed ? n->want.kind != NODE_ROUTER : !pg_node_can_lead(n) && !s->secondary)
			continue;
		buf_printf(&hosts, "%s%s", hosts.n ? "," : "", q.places[i].run);
		buf_printf(&ports, "%s%u", ports.n ? "," : "", n->port);
	}
	if (!hosts.n) {
		*ret_why = arena_printf(all->arena, "%s: the cluster has no nodes here", s->name).p;
		r = -EAGAIN;
	}
	buf_c(&hosts, 0);
	buf_c(&ports, 0);
	buf_z(b, "host ");
	pg_literal_add(b, hosts.p);
	buf_z(b, ", port ");
	pg_literal_add(b, ports.p);
	buf_z(b, ", dbname ");
	pg_literal_add(b, of->database);
	buf_printf(b,
	           ", target_session_attrs '%s', connect_timeout '5', sslmode 'disable', gssencmode 'disable', "
	           "fetch_size '500', use_remote_estimate 'true', async_capable 'false', truncatable 'false', "
	           "updatable 'false', application_name 'federation'",
	           s->secondary ? "prefer-standby" : "primary");
	buf_free(&hosts);
	buf_free(&ports);
	return r;
}
