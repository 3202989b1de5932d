/* Federated instances through the engine's operations, over clusters of its own: what
 * test/postgres/test_federation_engine.py drives, and kills. Each run is a service that begins, does one thing, and
 * ends; the servers go on.
 *
 *   federation_engine at DIR cluster ID [NODES]  makes a cluster; prints its address and port
 *   federation_engine at DIR access ID WHO       gives it access: "all", "first" (the first user alone)
 *   federation_engine at DIR COMMAND WISH        prints a line of JSON for each answer
 *   federation_engine at DIR drop ID             takes the cluster away
 *
 * COMMAND: apply, bound, pause, destroy, observe, used, queries, known. WISH is JSON: "id", "generation", "stores":
 * [{"name", "cluster", "secondary", "kind"}], "databases": [names], "tables": [{"database", "name", "max",
 * "sources": [{"store", "database", "table", "databasePattern", "tablePattern"}]}], "limits": [{"span", "bytes",
 * "kill", "project"}], "views": [{"database", "name", "source", "pipeline"}], and "who" as above. */
#include "harness.h"

#include "base/json.h"

#include <stdlib.h>

static const char *why;

static const char *text_of(const json_t *in, const char *name)
{
	return json_string_value(json_object_get(in, name));
}

static void answer_print(json_t *answer)
{
	json_dumpf(answer, stdout, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(answer);
	printf("\n");
	fflush(stdout);
}

static const struct engine_access *access_of(const char *who)
{
	return who && strcmp(who, "first") == 0 ? &access_writer : &access_all;
}

/* --- what is wanted */

static void source_read(const json_t *in, struct engine_federation_source *s)
{
	*s = (struct engine_federation_source){.store = (size_t)json_number(in, "store"),
	                                       .database = text_of(in, "database"),
	                                       .table = text_of(in, "table"),
	                                       .database_pattern = text_of(in, "databasePattern"),
	                                       .table_pattern = text_of(in, "tablePattern")};
}

static void table_read(const json_t *in, struct engine_federation_table *t)
{
	const json_t *list = json_object_get(in, "sources");
	size_t count = json_array_size(list);
	struct engine_federation_source *sources = arena_new_array(arena, struct engine_federation_source, count + 1);
	for (size_t i = 0; i < count; i++)
		source_read(json_array_get(list, i), &sources[i]);
	*t = (struct engine_federation_table){.database = text_of(in, "database"),
	                                      .name = text_of(in, "name"),
	                                      .sources = sources,
	                                      .source_count = count,
	                                      .wildcard_max = (unsigned)json_number(in, "max")};
}

static void stores_read(const json_t *list, struct engine_federation *f)
{
	size_t count = json_array_size(list);
	struct engine_federation_store *stores = arena_new_array(arena, struct engine_federation_store, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *in = json_array_get(list, i);
		stores[i] = (struct engine_federation_store){.name = text_of(in, "name"),
		                                             .kind = (enum federation_store)json_number(in, "kind"),
		                                             .cluster_id = text_of(in, "cluster"),
		                                             .cluster_name = text_of(in, "name"),
		                                             .secondary = json_flag(in, "secondary")};
	}
	f->stores = stores;
	f->store_count = count;
}

static void views_read(const json_t *list, struct engine_federation *f)
{
	size_t count = json_array_size(list);
	struct engine_federation_view *views = arena_new_array(arena, struct engine_federation_view, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *in = json_array_get(list, i);
		views[i] = (struct engine_federation_view){.database = text_of(in, "database"),
		                                           .name = text_of(in, "name"),
		                                           .source = text_of(in, "source"),
		                                           .pipeline = text_of(in, "pipeline")};
	}
	f->views = views;
	f->view_count = count;
}

static void limits_read(const json_t *list, struct engine_federation *f)
{
	size_t count = json_array_size(list);
	struct engine_federation_limit *limits = arena_new_array(arena, struct engine_federation_limit, count + 1);
	for (size_t i = 0; i < count; i++) {
		const json_t *in = json_array_get(list, i);
		limits[i] = (struct engine_federation_limit){.span = (enum federation_span)json_number(in, "span"),
		                                             .bytes = (uint64_t)json_number(in, "bytes"),
		                                             .kill = json_flag(in, "kill"),
		                                             .project = json_flag(in, "project")};
	}
	f->limits = limits;
	f->limit_count = count;
}

static struct engine_federation wish_read(const json_t *in)
{
	struct wish w = wish_make(ID1, 1, 0);
	wish_complete(&w);
	struct engine_federation f = {.id = text_of(in, "id"),
	                              .group_id = GROUP,
	                              .name = "federated",
	                              .host_name = "federated.example",
	                              .ca_cert = w.c.ca_cert,
	                              .ca_key = w.c.ca_key,
	                              .generation = json_number(in, "generation")};
	const json_t *tables = json_object_get(in, "tables"), *names = json_object_get(in, "databases");
	f.table_count = json_array_size(tables);
	struct engine_federation_table *list =
	        arena_new_array(arena, struct engine_federation_table, f.table_count + 1);
	for (size_t i = 0; i < f.table_count; i++)
		table_read(json_array_get(tables, i), &list[i]);
	f.tables = list;
	f.database_count = json_array_size(names);
	const char **databases = arena_new_array(arena, const char *, f.database_count + 1);
	for (size_t i = 0; i < f.database_count; i++)
		databases[i] = json_string_value(json_array_get(names, i));
	f.databases = databases;
	stores_read(json_object_get(in, "stores"), &f);
	views_read(json_object_get(in, "views"), &f);
	limits_read(json_object_get(in, "limits"), &f);
	return f;
}

/* --- commands */

/* As a service does when it begins. */
static void clusters_know(const json_t *stores)
{
	const char *unused;
	for (size_t i = 0; i < json_array_size(stores); i++) {
		const char *id = text_of(json_array_get(stores, i), "cluster");
		if (id)
			(void)!ops->access->apply(engine, id, &access_all, &unused);
	}
}

static int query_print(void *ctx, const struct engine_federation_query *q)
{
	(void)ctx;
	answer_print(json_pack("{sIsIsssssssssssIsIsIss?sb}", "at", (json_int_t)q->at_ms, "took",
	                       (json_int_t)q->took_ms, "user", q->user, "client", q->client, "database", q->database,
	                       "statement", q->statement, "id", q->id, "bytes", (json_int_t)q->bytes, "rows",
	                       (json_int_t)q->rows, "files", (json_int_t)q->files, "fault", q->fault, "limited",
	                       q->limited));
	return 0;
}

static int observe_run(const char *id)
{
	struct engine_federation_status s;
	int r = ops->federation->observe(engine, id, &s);
	if (r == 0)
		answer_print(json_pack("{sbsbsssisIsi}", "exists", s.exists, "running", s.running, "address", s.address,
		                       "port", (int)s.port, "generation", (json_int_t)s.generation, "ends",
		                       (int)s.ends));
	return r;
}

static json_t *bytes_json(const uint64_t *bytes)
{
	json_t *list = json_array();
	for (size_t i = 0; i < FEDERATION_SPANS; i++)
		json_array_append_new(list, json_integer((json_int_t)bytes[i]));
	return list;
}

static int used_run(const char *id)
{
	struct engine_federation_used u;
	int r = ops->federation->used(engine, id, &u);
	if (r == 0)
		answer_print(json_pack("{sososIsI}", "bytes", bytes_json(u.bytes), "project", bytes_json(u.project),
		                       "queries", (json_int_t)u.queries, "refused", (json_int_t)u.refused));
	return r;
}

static int known_run(void)
{
	const char *const *ids;
	size_t count;
	int r = ops->federation->known(engine, arena, &ids, &count);
	json_t *list = json_array();
	for (size_t i = 0; r == 0 && i < count; i++)
		json_array_append_new(list, json_string(ids[i]));
	struct engine_known *clusters;
	size_t clusters_count = 0;
	r = r < 0 ? r : ops->core->known(engine, arena, &clusters, &clusters_count);
	answer_print(json_pack("{sosi}", "instances", list, "clusters", (int)clusters_count));
	return r;
}

static int command_run(const char *name, const json_t *in)
{
	const struct engine_federation_ops *f = ops->federation;
	const struct engine_federation want = wish_read(in);
	if (strcmp(name, "apply") == 0 || strcmp(name, "destroy") == 0)
		clusters_know(json_object_get(in, "stores"));
	if (strcmp(name, "apply") == 0)
		return f->apply(engine, &want, access_of(text_of(in, "who")), NULL, arena, &why);
	if (strcmp(name, "bound") == 0)
		return f->bound(engine, want.id, want.limits, want.limit_count);
	if (strcmp(name, "pause") == 0)
		return f->pause(engine, want.id);
	if (strcmp(name, "destroy") == 0)
		return f->destroy(engine, want.id, NULL, arena, &why);
	if (strcmp(name, "observe") == 0)
		return observe_run(want.id);
	if (strcmp(name, "used") == 0)
		return used_run(want.id);
	if (strcmp(name, "queries") == 0)
		return f->queries(engine, want.id, 0, INT64_MAX, query_print, NULL, arena);
	return strcmp(name, "known") == 0 ? known_run() : -ENOSYS;
}

static int cluster_make(const char *id, const char *nodes)
{
	struct wish w = wish_make(id, nodes ? (unsigned)strtoul(nodes, NULL, 10) : 1, 0);
	int r = converge(&w, &access_all);
	struct cluster_status s = observe(id);
	const struct node_status *p = primary_of(&s);
	if (r == 0 && p)
		printf("%s %u\n", p->address, p->port);
	return r;
}

int main(int argc, char **argv)
{
	json_setup();
	if (argc < 4 || harness_begin(argc, argv) != 0)
		return 2;
	const char *command = argv[3], *first = argc > 4 ? argv[4] : "{}";
	int r;
	if (strcmp(command, "cluster") == 0)
		r = cluster_make(first, argc > 5 ? argv[5] : NULL);
	else if (strcmp(command, "access") == 0)
		r = apply(first, access_of(argc > 5 ? argv[5] : NULL));
	else if (strcmp(command, "drop") == 0)
		r = ops->core->destroy(engine, first, NULL);
	else
		r = command_run(command, doc_json(arena, str_of(first)));
	if (r != 0)
		fprintf(stderr, "%s: %s\n", r < 0 ? strerror(-r) : "in part", why ? why : "");
	ops->core->stop(engine);
	return r < 0 ? 1 : 0;
}
