/* Statements that make a database of an endpoint. Everything in it is the service's: it is dropped and made anew
 * when the storage configuration, or a cluster's table, is another; in one transaction, so that queries meet the
 * old or the new.
 *
 * A table with one source is a foreign table. One with several is a table without rows, which the foreign tables
 * inherit from: PostgreSQL asks for the right to read the one that was named, and reads each as who asks. A view is
 * read as who asks as well (security_invoker): its reader needs the right to read the table, too. */
#include "engine/postgres/federation/tables.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/pattern.h"
#include "engine/postgres/federation/remote.h"
#include "engine/postgres/federation/views.h"

#include <errno.h>

#define PARTS_MAX 5000 /* foreign tables of a database */
#define NAME_MAX_HERE 52

struct part {
	const struct pg_remote *remote;
	const struct pg_remote_table *table;
};

/* A table as it will be. */
struct made {
	const char *schema, *name;
	struct part *parts;
	size_t count, cap;
	struct pg_view_columns columns; /* of a table that is made, or a view */
};

struct making {
	struct pg_remotes *all;
	const char *database;
	struct made *tables;
	size_t count, cap, parts;
	const char **ret_fault;
};

static void name_add(struct buf *b, const char *name)
{
	buf_c(b, '"');
	for (const char *p = name; *p; p++) {
		if (*p == '"')
			buf_c(b, '"');
		buf_c(b, *p);
	}
	buf_c(b, '"');
}

void pg_literal_add(struct buf *b, const char *text)
{
	buf_z(b, "E'");
	for (const char *p = text; *p; p++) {
		if (*p == '\'' || *p == '\\')
			buf_c(b, *p);
		buf_c(b, *p);
	}
	buf_c(b, '\'');
}

static void fault_note(const char **ret_fault, const char *words)
{
	if (!*ret_fault)
		*ret_fault = words;
}

static bool is_all(const char *name)
{
	return strcmp(name, "*") == 0;
}

/* No pattern: everything fits. */
static bool fits(struct arena *a, const char *pattern, const char *name)
{
	const struct pattern *p;
	const char *why;
	return !pattern || (pattern_parse(str_of(pattern), a, &p, &why) == 0 && pattern_found(p, str_of(name)));
}

/* --- databases */

struct names {
	const char **list;
	size_t count, cap;
};

static void name_note(struct arena *a, struct names *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->list[i], name) == 0)
			return;
	ARENA_FIT(a, n->list, n->count, n->cap);
	n->list[n->count++] = name;
}

/* The databases of a source's cluster that it is about. */
static int source_databases(struct pg_remotes *all, const struct engine_federation_source *s,
                            const char *const **ret_names, size_t *ret_count, const char **ret_why)
{
	const char *const *names;
	size_t count, kept = 0;
	if (s->database && !is_all(s->database)) {
		const char **one = arena_new_array(all->arena, const char *, 1);
		*one = s->database;
		*ret_names = one;
		*ret_count = 1;
		return 0;
	}
	int r = pg_remote_databases(all, s->store, &names, &count, ret_why);
	if (r < 0)
		return r;
	const char **list = arena_new_array(all->arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		if (fits(all->arena, s->database_pattern, names[i]))
			list[kept++] = names[i];
	*ret_names = list;
	*ret_count = kept;
	return 0;
}

static bool is_of_cluster(const struct pg_remotes *all, const struct engine_federation_source *s)
{
	return all->want->stores[s->store].kind == STORE_CLUSTER;
}

int pg_federated_databases(struct pg_remotes *all, const char *const **ret_names, size_t *ret_count,
                           const char **ret_why)
{
	const struct engine_federation *want = all->want;
	struct names n = {0};
	int r = 0;
	for (size_t i = 0; i < want->database_count; i++)
		if (!is_all(want->databases[i]))
			name_note(all->arena, &n, want->databases[i]);
	for (size_t i = 0; i < want->table_count; i++) {
		const struct engine_federation_table *t = &want->tables[i];
		if (!is_all(t->database))
			name_note(all->arena, &n, t->database);
		for (size_t k = 0; r == 0 && is_all(t->database) && k < t->source_count; k++) {
			const char *const *names;
			size_t count = 0;
			if (is_of_cluster(all, &t->sources[k]))
				r = source_databases(all, &t->sources[k], &names, &count, ret_why);
			for (size_t d = 0; r == 0 && d < count; d++)
				name_note(all->arena, &n, names[d]);
		}
	}
	*ret_names = n.list;
	*ret_count = n.count;
	return r;
}

/* --- tables */

static struct made *made_get(struct making *m, const char *schema, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->tables[i].schema, schema) == 0 && strcmp(m->tables[i].name, name) == 0)
			return &m->tables[i];
	ARENA_FIT(m->all->arena, m->tables, m->count, m->cap);
	m->tables[m->count] = (struct made){.schema = schema, .name = name};
	return &m->tables[m->count++];
}

static void part_add(struct making *m, struct made *t, const struct pg_remote *remote,
                     const struct pg_remote_table *table)
{
	if (m->parts++ >= PARTS_MAX) {
		fault_note(m->ret_fault, "a database has at most 5000 tables of stores");
		return;
	}
	ARENA_FIT(m->all->arena, t->parts, t->count, t->cap);
	t->parts[t->count++] = (struct part){remote, table};
}

/* "sales.orders" is one of another schema. */
static struct made *table_named(struct making *m, const char *name)
{
	const char *dot = strchr(name, '.');
	if (!dot || dot == name || !dot[1])
		return made_get(m, "public", name);
	struct str schema = {name, (size_t)(dot - name)};
	return made_get(m, arena_z(m->all->arena, schema), dot + 1);
}

static void remote_take(struct making *m, const struct engine_federation_table *want,
                        const struct engine_federation_source *s, const struct pg_remote *remote)
{
	size_t taken = 0, before = m->count;
	for (size_t i = 0; i < remote->table_count; i++) {
		const struct pg_remote_table *t = &remote->tables[i];
		bool named = s->table && !is_all(s->table);
		if (named ? strcmp(s->table, t->full) != 0 : !fits(m->all->arena, s->table_pattern, t->full))
			continue;
		if (is_all(want->name) && want->wildcard_max && m->count - before >= want->wildcard_max) {
			fault_note(m->ret_fault,
			           arena_printf(m->all->arena, "%s: more than %u tables: the rest is left out",
			                        m->database, want->wildcard_max)
			                   .p);
			return;
		}
		part_add(m, is_all(want->name) ? made_get(m, t->schema, t->name) : table_named(m, want->name), remote,
		         t);
		taken++;
	}
	if (!taken && s->table && !is_all(s->table))
		fault_note(m->ret_fault, arena_printf(m->all->arena, "%s.%s: the cluster has no table %s in %s",
		                                      m->database, want->name, s->table, remote->database)
		                                 .p);
}

static int source_take(struct making *m, const struct engine_federation_table *want,
                       const struct engine_federation_source *s)
{
	const char *const *names, *why = NULL;
	size_t count = 0;
	const struct pg_remote *remote;
	int r = is_of_cluster(m->all, s) ? source_databases(m->all, s, &names, &count, &why) : -ENOTSUP;
	if (s->provenance)
		fault_note(m->ret_fault, "a provenance field is not filled for clusters");
	for (size_t i = 0; r == 0 && i < count; i++) {
		/* A database for each of the cluster's has the tables of its namesake. */
		if (is_all(want->database) && strcmp(names[i], m->database) != 0)
			continue;
		r = pg_remote_get(m->all, s->store, names[i], &remote, &why);
		if (r == 0)
			remote_take(m, want, s, remote);
	}
	if (r < 0)
		fault_note(m->ret_fault, why ? why : "a store of this kind cannot be read here");
	return r == -EAGAIN ? r : 0;
}

/* --- statements */

static const char begin[] =
        "begin; set local lock_timeout = '3s'; set local check_function_bodies = off;\n"
        "create extension if not exists postgres_fdw schema steward;\n"
        "drop foreign data wrapper if exists steward_cluster cascade;\n"
        "do $steward$ declare x record; begin\n"
        "for x in select c.oid::regclass t from pg_class c join pg_namespace n on n.oid = relnamespace where relkind = "
        "'r' and relpersistence <> 't' and nspname !~ '^(pg_|information_schema$|steward)' loop\n"
        "  execute format('drop table %s cascade', x.t);\n"
        "end loop;\n"
        "for x in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema$|steward$|public$)' "
        "loop\n"
        "  execute format('drop schema %I cascade', x.nspname);\n"
        "end loop;\n"
        "end $steward$;\n"
        "create schema steward_parts;\n"
        "create or replace function steward.cluster_handler() returns fdw_handler language c as 'steward', "
        "'steward_federation_handler';\n"
        "revoke all on function steward.cluster_handler() from public;\n"
        "create foreign data wrapper steward_cluster handler steward.cluster_handler validator "
        "steward.postgres_fdw_validator;\n";

static bool part_has(const struct part *p, const struct pg_remote_column *c)
{
	for (size_t i = 0; i < p->table->column_count; i++)
		if (strcmp(p->table->columns[i].name, c->name) == 0)
			return strcmp(p->table->columns[i].type, c->type) == 0;
	return false;
}

/* The columns that all of its parts have, alike. */
static void columns_find(struct making *m, struct made *t)
{
	const struct pg_remote_table *first = t->parts[0].table;
	t->columns.list = arena_new_array(m->all->arena, struct pg_lake_column, first->column_count + 1);
	for (size_t i = 0; i < first->column_count; i++) {
		const struct pg_remote_column *c = &first->columns[i];
		struct buf quoted = {0};
		bool everywhere = true;
		for (size_t k = 1; k < t->count && everywhere; k++)
			everywhere = part_has(&t->parts[k], c);
		if (!everywhere)
			continue;
		name_add(&quoted, c->name);
		t->columns.list[t->columns.count++] =
		        (struct pg_lake_column){.name = c->name,
		                                .quoted = buf_keep(&quoted, m->all->arena).p,
		                                .type = c->base,
		                                .ours = true,
		                                .modifier = -1};
	}
}

static void columns_add(struct buf *b, const struct made *t)
{
	const struct pg_remote_table *first = t->parts[0].table;
	buf_c(b, '(');
	for (size_t i = 0, k = 0; k < t->columns.count; i++)
		if (strcmp(first->columns[i].name, t->columns.list[k].name) == 0) {
			buf_printf(b, "%s%s %s", k ? ", " : "", t->columns.list[k].quoted, first->columns[i].type);
			k++;
		}
	buf_c(b, ')');
}

static void place_add(struct buf *b, const struct part *p)
{
	buf_printf(b, " server \"s%zu_%zu\" options (schema_name ", p->remote->store, p->remote->number);
	pg_literal_add(b, p->table->schema);
	buf_z(b, ", table_name ");
	pg_literal_add(b, p->table->name);
	buf_z(b, ");\n");
}

static void table_add(struct making *m, struct buf *b, struct made *t, size_t number)
{
	columns_find(m, t);
	buf_z(b, t->count > 1 ? "create table " : "create foreign table ");
	name_add(b, t->schema);
	buf_c(b, '.');
	name_add(b, t->name);
	buf_c(b, ' ');
	columns_add(b, t);
	if (t->count == 1) {
		place_add(b, &t->parts[0]);
		return;
	}
	buf_z(b, ";\n");
	for (size_t i = 0; i < t->count; i++) {
		buf_printf(b, "create foreign table steward_parts.t%zu_%zu () inherits (", number, i);
		name_add(b, t->schema);
		buf_c(b, '.');
		name_add(b, t->name);
		buf_z(b, ")");
		place_add(b, &t->parts[i]);
	}
}

static int servers_add(struct pg_remotes *all, struct buf *b, const char **ret_fault)
{
	int r = 0;
	for (const struct pg_remote *one = all->first; r == 0 && one; one = one->next) {
		buf_printf(b, "create server \"s%zu_%zu\" type ", one->store, one->number);
		pg_literal_add(b, all->want->stores[one->store].cluster_id);
		buf_z(b, " foreign data wrapper steward_cluster options (");
		r = pg_remote_options(all, one, b, ret_fault);
		buf_z(b, ");\n");
	}
	return r;
}

static bool name_is_ours(const char *schema)
{
	return strncmp(schema, "pg_", 3) == 0 || strncmp(schema, "steward", 7) == 0 ||
	       strcmp(schema, "information_schema") == 0;
}

static void schemas_add(struct making *m, struct buf *b)
{
	struct names n = {0};
	for (size_t i = 0; i < m->count; i++)
		if (m->tables[i].count && strcmp(m->tables[i].schema, "public") != 0 &&
		    !name_is_ours(m->tables[i].schema))
			name_note(m->all->arena, &n, m->tables[i].schema);
	for (size_t i = 0; i < n.count; i++) {
		buf_z(b, "create schema ");
		name_add(b, n.list[i]);
		buf_z(b, ";\n");
	}
}

static const struct made *source_find(struct making *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct made *t = &m->tables[i];
		bool named = strcmp(t->schema, "public") == 0
		                     ? strcmp(t->name, name) == 0
		                     : strcmp(arena_printf(m->all->arena, "%s.%s", t->schema, t->name).p, name) == 0;
		if (named && t->columns.count)
			return t;
	}
	return NULL;
}

/* False: what it reads is not there (yet). */
static bool view_add(struct making *m, const struct engine_federation_view *v, struct buf *b)
{
	const struct made *source = source_find(m, v->source);
	struct pg_view_columns columns;
	struct buf from = {0}, sql = {0};
	const char *why = NULL;
	if (!source)
		return false;
	name_add(&from, source->schema);
	buf_c(&from, '.');
	name_add(&from, source->name);
	buf_c(&from, 0);
	int r = pg_view_sql(v->pipeline, from.p, &source->columns, m->all->arena, &sql, &columns, &why);
	struct made *fresh = r == 0 ? table_named(m, v->name) : NULL;
	if (r == 0 && !fresh->columns.count && strcmp(fresh->schema, "public") == 0) {
		fresh->columns = columns;
		buf_z(b, "create view public.");
		name_add(b, fresh->name);
		buf_printf(b, " with (security_invoker = true) as %.*s;\n", (int)sql.n, sql.p);
	} else {
		fault_note(m->ret_fault, arena_printf(m->all->arena, "view %s.%s: %s", m->database, v->name,
		                                      why ? why : "there is a table of that name")
		                                 .p);
	}
	buf_free(&from);
	buf_free(&sql);
	return true;
}

/* Views may be over others, in any order. */
static void views_add(struct making *m, struct buf *b)
{
	const struct engine_federation *want = m->all->want;
	bool *done = arena_new_array(m->all->arena, bool, want->view_count + 1);
	bool more = true;
	for (size_t i = 0; i < want->view_count; i++)
		done[i] = strcmp(want->views[i].database, m->database) != 0;
	while (more) {
		more = false;
		for (size_t i = 0; i < want->view_count; i++)
			if (!done[i] && view_add(m, &want->views[i], b))
				done[i] = more = true;
	}
	for (size_t i = 0; i < want->view_count; i++)
		if (!done[i])
			fault_note(m->ret_fault, arena_printf(m->all->arena, "view %s.%s: %s is not there", m->database,
			                                      want->views[i].name, want->views[i].source)
			                                 .p);
}

int pg_federated_sql(struct pg_remotes *all, const char *database, struct buf *b, const char **ret_fault)
{
	struct making m = {.all = all, .database = database, .ret_fault = ret_fault};
	if (strlen(database) > NAME_MAX_HERE || strncmp(database, "template", 8) == 0) {
		fault_note(ret_fault, "databases: a name has at most 52 bytes, and is no template");
		return -EINVAL;
	}
	int missing = 0;
	for (size_t i = 0; i < all->want->table_count; i++) {
		const struct engine_federation_table *t = &all->want->tables[i];
		for (size_t k = 0; (is_all(t->database) || strcmp(t->database, database) == 0) && k < t->source_count;
		     k++)
			missing |= source_take(&m, t, &t->sources[k]);
	}
	buf_z(b, begin);
	int r = servers_add(all, b, ret_fault);
	schemas_add(&m, b);
	for (size_t i = 0; i < m.count; i++)
		if (m.tables[i].count && !name_is_ours(m.tables[i].schema))
			table_add(&m, b, &m.tables[i], i);
	views_add(&m, b);
	return r < 0 ? r : missing ? -EAGAIN : 0;
}
