/* The calls about search indexes: what a definition may be, and what is shown of an index.
 *
 * Before its write a call asks the host that has the cluster whether the table and its columns are there, so that what
 * is wrong is told at once and by its field. The reference's answers have what text and vector indexes share; the rest
 * of a definition is shown to whoever asks for the whole (answer_is_whole()). */
#include "api/kit/verbs.h"
#include "api/search/builds.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/answer.h"
#include "call/workers.h"
#include "hosts/hosts.h"
#include "search/definition.h"
#include "search/vector.h"
#include "trail/events.h"

#include <errno.h>

#define NAME_BYTES 127
#define QUESTION_BYTES 4000u /* of an index that another host is asked about */

/* --- requests */

/* The older form has the definition beside the names. */
static bool is_older(const struct call *c)
{
	return strstr(c->op->id, "Fts") != NULL;
}

static json_t *definition_of(struct call *c)
{
	static const char *const others[] = {"collectionName", "database", "indexID", "name", "status", "type"};
	if (!is_older(c))
		return json_clone(c->arena, json_object_get(c->body, "definition"));
	json_t *definition = json_clone(c->arena, c->body);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		json_object_del(definition, others[i]);
	return definition;
}

static void names_check(struct call *c, struct faults *faults)
{
	static const char *const names[] = {"database", "collectionName", "name"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *value = json_object_get(c->body, names[i]);
		struct str name = json_str_of(value);
		if (value && (!name.n || name.n > NAME_BYTES))
			faults_add(faults, c->arena, str_of(names[i]), "must have from 1 to %d bytes", NAME_BYTES);
		else if (str_is(name, ".") || str_is(name, ".."))
			faults_add(faults, c->arena, str_of(names[i]),
			           "must not be . or .., which mean something else in a path");
	}
}

/* A change need not name the type: the definition shows it. */
static bool is_vector(struct call *c)
{
	struct str type = json_field(c->body, "type");
	return type.n ? str_is(type, "vectorSearch") : search_is_vector(definition_of(c));
}

static const struct schema *definition_schema(struct call *c)
{
	return schema_find(is_vector(c) ? STR("VectorSearchIndexDefinition") : STR("TextSearchIndexDefinition"));
}

/* What schemas and the definition's reader find, by the paths of the request. */
static void definition_check(struct call *c, const char *place, struct faults *faults)
{
	json_t *definition = definition_of(c);
	struct faults found = {.count = 0};
	struct search_definition read;
	struct search_vector vector;
	schema_check(definition_schema(c), definition, SCHEMA_CREATE, c->arena, &found);
	for (size_t i = 0; i < found.count && i < FAULTS_MAX; i++)
		faults_add(faults, c->arena, arena_printf(c->arena, "%s%.*s", place, STR_ARG(found.list[i].path)),
		           "%.*s", STR_ARG(found.list[i].text));
	if (!found.count && is_vector(c))
		search_vector_read(c->arena, definition, place, faults, &vector);
	else if (!found.count)
		search_definition_read(c->arena, definition, place, faults, &read);
}

/* --- the question whether it can be built */

struct verdict {
	int result; /* of engine_index_ops.check() */
	const char *field, *why;
};

static struct verdict check_here(const struct service *s, struct arena *a, struct str cluster_id, const json_t *about)
{
	struct search_want want;
	struct verdict v = {.field = "", .why = ""};
	search_want_make(a, cluster_id, about, about, &want);
	want.search.place = arena_z(a, json_field(about, "place"));
	v.result = s->engine_ops->index->check(s->engine_state, &want.index, a, &v.field, &v.why);
	return v;
}

/* "?cluster=ID&index=BASE64" */
void search_checked(struct service *s, struct request *r)
{
	struct str cluster, encoded, rest, name;
	struct verdict v = {.result = -EAGAIN, .field = "", .why = ""};
	char text[2 * QUESTION_BYTES];
	str_cut(r->query, '&', &cluster, &encoded);
	str_cut(cluster, '=', &name, &cluster);
	str_cut(encoded, '=', &name, &rest);
	ssize_t n = base64_decode(rest, text, sizeof text);
	json_t *about = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	if (about && id_is_valid(cluster) && s->engine_ops->index)
		v = check_here(s, r->arena, cluster, json_keep(r->arena, about));
	else
		json_decref(about);
	answer_value(r, 200,
	             json_pack("{s:i, s:s, s:s}", "result", v.result, "field", v.field ? v.field : "", "why",
	                       v.why ? v.why : ""));
	respond_here(r);
}

/* A definition that is too long for a question is left to the job. */
static int check_there(struct call *c, const struct cluster *cluster, const json_t *about, struct verdict *ret_verdict)
{
	struct str text = json_text(c->arena, about);
	*ret_verdict = (struct verdict){.result = 0};
	if (text.n > QUESTION_BYTES)
		return 0;
	char *encoded = arena_alloc(c->arena, BASE64_TEXT(text.n));
	base64url_encode(text.p, text.n, encoded);
	struct host_question q = {.host = cluster_host(cluster),
	                          .path = arena_printf(c->arena, SEARCH_CHECKED "?cluster=%.*s&index=%s",
	                                               STR_ARG(cluster->doc.id), encoded)};
	tx_begin_read(c->tx);
	int r = hosts_ask(c, &q, 1);
	tx_end_read(c->tx);
	if (r < 0)
		return r;
	*ret_verdict = (struct verdict){.result = (int)json_number(q.answer, "result"),
	                                .field = arena_z(c->arena, json_field(q.answer, "field")),
	                                .why = arena_z(c->arena, json_field(q.answer, "why"))};
	return 0;
}

/* The engine has the words of other indexes. */
static int verdict_answer(struct call *c, const struct cluster *cluster, const struct verdict *v)
{
	struct str field = str_of(v->field);
	if (str_is(field, "db"))
		field = STR("database");
	else if (str_is(field, "collection"))
		field = STR("collectionName");
	if (v->result == -EINVAL)
		return call_fail_fault(c, field, "%s", v->why);
	if (v->result < 0)
		return call_fail_about(
		        c, 409, "CLUSTER_NOT_AVAILABLE", cluster->doc.name,
		        "The databases of the cluster \"%.*s\" do not answer now. Try again once it is IDLE.",
		        STR_ARG(cluster->doc.name));
	return 0;
}

static int refuse_state(struct call *c, const struct cluster *cluster)
{
	int r = cluster_refuse_deleting(c, cluster);
	if (r == 0)
		r = cluster_refuse_paused(c, cluster);
	if (r == 0 && json_object_get(cluster->plan, "restoring"))
		return call_fail_about(c, 409, "CLUSTER_RESTORE_IN_PROGRESS", cluster->doc.name,
		                       "The cluster \"%.*s\" is being restored.", STR_ARG(cluster->doc.name));
	return r;
}

static int search_index_load(struct call *c, const struct resource *r, struct doc *ret_doc);

static int type_check(struct call *c, const json_t *was, const char *type)
{
	if (str_is(json_field(was, "type"), type))
		return 0;
	return call_fail_fault(c, json_object_get(c->body, "type") ? STR("type") : STR("definition"),
	                       "is of an index of the type %s, and the type of this one cannot be changed: it is %.*s",
	                       type, STR_ARG(json_field(was, "type")));
}

/* The names of the index and its definition, as the engine is asked about them. */
static int about_make(struct call *c, const char *place, json_t **ret_about)
{
	static const char *const names[] = {"database", "collectionName", "name"};
	const char *type = is_vector(c) ? "vectorSearch" : "search";
	json_t *about = json_new(c->arena);
	struct doc d;
	int r = 0;
	if (c->method == METHOD_POST) {
		json_copy_fields(about, c->body, names, sizeof names / sizeof *names);
	} else {
		r = search_index_load(c, c->op->resource, &d);
		if (r == 0)
			r = type_check(c, doc_json(c->arena, d.body), type);
		if (r == 0)
			json_copy_fields(about, doc_json(c->arena, d.body), names, sizeof names / sizeof *names);
	}
	json_put_z(about, "type", type);
	json_put(about, "definition", json_deep_copy(definition_of(c)));
	json_put_z(about, "place", place);
	*ret_about = about;
	return r;
}

static int look(struct call *c, const char *place)
{
	struct cluster cluster;
	struct verdict v;
	json_t *about = NULL;
	tx_begin_read(c->tx);
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = about_make(c, place, &about);
	tx_end_read(c->tx);
	if (r == 0)
		r = refuse_state(c, &cluster);
	if (r < 0)
		return r;
	if (host_is_elsewhere(cluster_host(&cluster)))
		r = check_there(c, &cluster, about, &v);
	else
		v = check_here(c->service, c->arena, cluster.doc.id, about);
	return r < 0 ? r : verdict_answer(c, &cluster, &v);
}

int search_index_prepare(struct call *c)
{
	struct faults faults = {.count = 0};
	const char *place = is_older(c) ? "" : "definition.";
	if (!c->service->engine_ops->index)
		return cluster_not_offered(c);
	names_check(c, &faults);
	definition_check(c, place, &faults);
	if (faults.count)
		return call_fail_faults(c, &faults);
	/* This thread has no reader of its own. */
	struct tx *reader = store_reader(c->service->store), *before = c->tx;
	if (!reader)
		return call_fail_store(c, -EIO, c->op->id);
	c->tx = reader;
	int r = look(c, place);
	if (r == -ENOENT)
		r = call_not_found(c);
	c->tx = before;
	store_reader_free(reader);
	return r < 0 && !c->problem.status ? call_fail_store(c, r, c->op->id) : r;
}

/* --- documents */

static bool is_named(const json_t *body, struct str database, struct str table, struct str name)
{
	return str_eq(json_field(body, "database"), database) && str_eq(json_field(body, "collectionName"), table) &&
	       str_eq(json_field(body, "name"), name);
}

static int by_names(struct call *c, struct str cluster_id, struct str database, struct str table, struct str name,
                    struct doc *ret_doc)
{
	struct doc *docs;
	size_t count = 0;
	int r = tx_list_all(c->tx, c->arena, SEARCH_INDEX_KIND, cluster_id, &docs, &count);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (is_named(doc_json(c->arena, docs[i].body), database, table, name)) {
			*ret_doc = docs[i];
			return 0;
		}
	return r < 0 ? r : -ENOENT;
}

static int search_index_load(struct call *c, const struct resource *r, struct doc *ret_doc)
{
	struct str parent, name = call_path(c, "indexName"), id = call_path(c, "indexId");
	int result = resource_parent(c, r, &parent);
	if (result < 0)
		return result;
	if (name.n)
		result = by_names(c, parent, call_path(c, "databaseName"), call_path(c, "collectionName"), name,
		                  ret_doc);
	else
		result = tx_get(c->tx, c->arena, SEARCH_INDEX_KIND, id, ret_doc);
	if (result == -ENOENT || (result == 0 && !str_eq(ret_doc->parent, parent)))
		return call_missing(c, r, name.n ? name : id);
	return result;
}

static void latest_put(struct call *c, json_t *document, json_int_t version)
{
	json_t *of = json_object();
	json_t *definition = definition_of(c);
	bool searched_alike = !json_object_get(definition, "searchAnalyzer");
	schema_add_defaults(definition_schema(c), definition);
	/* The schema has one language for all; what is searched must be read as it was indexed. */
	if (searched_alike)
		json_object_del(definition, "searchAnalyzer");
	json_put_time(of, "createdAt", clock_now_ms());
	json_put(of, "version", json_integer(version));
	json_put(document, "latestDefinition", json_deep_copy(definition));
	json_put(document, "latestDefinitionVersion", of);
}

static int search_index_create(struct call *c, json_t *document)
{
	struct str id = arena_dup(c->arena, json_field(document, "indexID")),
	           database = json_field(c->body, "database"), table = json_field(c->body, "collectionName"),
	           name = json_field(c->body, "name");
	struct cluster cluster;
	struct doc other;
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = refuse_state(c, &cluster);
	if (r < 0)
		return r;
	r = by_names(c, cluster.doc.id, database, table, name, &other);
	if (r == 0)
		return call_fail_field(c, 409, "SEARCH_INDEX_ALREADY_EXISTS", "name",
		                       "the collection has a search index \"%.*s\" already", STR_ARG(name));
	if (r != -ENOENT)
		return r;
	json_t *made = json_new(c->arena);
	json_put_str(made, "indexID", id);
	json_put_str(made, "name", name);
	json_put_str(made, "database", database);
	json_put_str(made, "collectionName", table);
	json_put_z(made, "type", is_vector(c) ? "vectorSearch" : "search");
	latest_put(c, made, 0);
	json_object_clear(document);
	json_object_update(document, made);
	return search_build_ask(c->tx, c->arena, &cluster, id, document);
}

/* The older form says again what cannot be changed. */
static int same_check(struct call *c, const json_t *was)
{
	static const char *const names[] = {"database", "collectionName", "name"};
	struct faults faults = {.count = 0};
	for (size_t i = 0; is_older(c) && i < sizeof names / sizeof *names; i++)
		if (!str_eq(json_field(c->body, names[i]), json_field(was, names[i])))
			faults_add(&faults, c->arena, str_of(names[i]), "cannot be changed: it is \"%.*s\"",
			           STR_ARG(json_field(was, names[i])));
	return faults.count ? call_fail_faults(c, &faults) : 0;
}

static int search_index_update(struct call *c, const struct doc *old, json_t *document)
{
	json_t *was = doc_json(c->arena, old->body);
	struct cluster cluster;
	int r = cluster_load(c, &cluster);
	if (r == 0)
		r = refuse_state(c, &cluster);
	if (r == 0)
		r = same_check(c, was);
	if (r < 0)
		return r;
	if (json_flag(was, "deleting"))
		return call_fail_about(c, 409, "SEARCH_INDEX_IS_DELETED", json_field(was, "name"),
		                       "The search index \"%.*s\" is being deleted.", STR_ARG(json_field(was, "name")));
	json_object_clear(document);
	json_object_update(document, was);
	latest_put(c, document, json_number(json_object_get(was, "latestDefinitionVersion"), "version") + 1);
	return search_build_ask(c->tx, c->arena, &cluster, old->id, document);
}

static int search_index_drop(struct call *c, const struct doc *d)
{
	struct cluster cluster;
	struct doc gone = *d;
	int r = cluster_load(c, &cluster);
	return r < 0 ? r : search_delete_ask(c->tx, c->arena, &cluster, &gone);
}

/* Of one collection, where the path names it. */
static bool search_index_takes(struct call *c, const struct doc *d)
{
	struct str database = call_path(c, "databaseName");
	const json_t *body = database.n ? doc_json(c->arena, d->body) : NULL;
	return !body || (str_eq(json_field(body, "database"), database) &&
	                 str_eq(json_field(body, "collectionName"), call_path(c, "collectionName")));
}

/* --- what is shown */

static const char *text_of(struct call *c, struct str text)
{
	return arena_z(c->arena, text);
}

static bool answers(const json_t *build)
{
	return str_is(json_field(build, "status"), "READY");
}

static const char *status_of(struct call *c, const json_t *body)
{
	const json_t *staged = json_object_get(body, "staged"), *main_build = json_object_get(body, "main");
	if (json_flag(body, "deleting"))
		return "DELETING";
	return text_of(c, json_field(staged ? staged : main_build, "status"));
}

static const char *older_status(const char *status, bool paused)
{
	static const char *const words[][2] = {
	        {"READY", "STEADY"}, {"FAILED", "FAILED"}, {"STALE", "STALE"}, {"DOES_NOT_EXIST", "STALE"}};
	for (size_t i = 0; !paused && i < sizeof words / sizeof *words; i++)
		if (strcmp(status, words[i][0]) == 0)
			return words[i][1];
	return paused ? "PAUSED" : "IN_PROGRESS";
}

static json_t *definition_shown(struct call *c, const json_t *definition)
{
	json_t *shown = json_deep_copy(definition);
	if (!answer_is_whole(c))
		answer_form(c, schema_find(STR("SearchIndexDefinition")), shown);
	return shown;
}

static json_t *build_shown(struct call *c, const json_t *build, bool queryable)
{
	json_t *o = json_object();
	json_put(o, "definition", definition_shown(c, json_object_get(build, "definition")));
	json_put(o, "definitionVersion", json_deep_copy(json_object_get(build, "definitionVersion")));
	if (json_object_get(build, "message"))
		json_put_str(o, "message", json_field(build, "message"));
	json_put(o, "queryable", json_boolean(queryable));
	json_put_str(o, "status", json_field(build, "status"));
	return o;
}

static json_t *host_shown(struct call *c, const struct cluster *cluster, const char *node, const json_t *body)
{
	const json_t *staged = json_object_get(body, "staged"), *main_build = json_object_get(body, "main");
	json_t *o = json_object();
	json_put_str(o, "hostname",
	             arena_printf(c->arena, "%s.%.*s.%s", node, STR_ARG(json_field(cluster->plan, "hash")),
	                          c->service->db_domain));
	if (main_build)
		json_put(o, "mainIndex", build_shown(c, main_build, answers(main_build)));
	json_put(o, "queryable", json_boolean(answers(main_build)));
	if (staged)
		json_put(o, "stagedIndex", build_shown(c, staged, false));
	json_put_z(o, "status", status_of(c, body));
	return o;
}

/* The nodes that clients come to: routers, where there are any. */
static json_t *hosts_shown(struct call *c, const struct cluster *cluster, const json_t *body)
{
	const struct engine_node *nodes;
	size_t count = cluster_planned_nodes(c->arena, cluster, &nodes);
	bool routed = false;
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		routed |= nodes[i].kind == NODE_ROUTER;
	for (size_t i = 0; i < count; i++)
		if (!routed || nodes[i].kind == NODE_ROUTER)
			json_array_append_new(list, host_shown(c, cluster, nodes[i].name, body));
	return list;
}

static void older_show(struct call *c, const struct cluster *cluster, const json_t *body, json_t *entity)
{
	static const char *const names[] = {"collectionName", "database", "indexID", "name", "type"};
	json_t *definition = json_deep_copy(json_object_get(body, "latestDefinition"));
	json_object_clear(entity);
	json_object_update(entity, definition);
	json_decref(definition);
	json_copy_fields(entity, body, names, sizeof names / sizeof *names);
	json_put_z(entity, "status", older_status(status_of(c, body), json_flag(cluster->body, "paused")));
	if (!answer_is_whole(c))
		answer_form(c, schema_find(STR("ClusterSearchIndex")), entity);
}

static void newer_show(struct call *c, const struct cluster *cluster, const json_t *body, json_t *entity)
{
	static const char *const own[] = {"main", "staged", "deleting"};
	bool queryable = answers(json_object_get(body, "main")) && !json_flag(cluster->body, "paused");
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		json_object_del(entity, own[i]);
	json_put(entity, "latestDefinition", definition_shown(c, json_object_get(body, "latestDefinition")));
	json_put(entity, "queryable", json_boolean(queryable));
	json_put_z(entity, "status", status_of(c, body));
	json_put(entity, "statusDetail", hosts_shown(c, cluster, body));
}

static int search_index_view(struct call *c, const struct doc *d, json_t *entity)
{
	struct cluster *cluster = c->noted;
	json_t *body = json_clone(c->arena, entity);
	if (!cluster) {
		cluster = c->noted = arena_new_array(c->arena, struct cluster, 1);
		int r = cluster_get(c->tx, c->arena, d->parent, cluster);
		if (r < 0)
			return r;
	}
	const json_t *staged = json_object_get(body, "staged");
	if (is_older(c))
		older_show(c, cluster, body, entity);
	else
		newer_show(c, cluster, body, entity);
	if (!c->is_list && !c->op->writes && staged) {
		struct str progress = search_progress(c->tx, c->arena, d->parent, staged);
		if (progress.n)
			call_header(c, STR("x-steward-progress"), progress);
	}
	return 0;
}

const struct resource_hooks search_index_hooks = {.create = search_index_create,
                                                  .update = search_index_update,
                                                  .load = search_index_load,
                                                  .drop = search_index_drop,
                                                  .view = search_index_view,
                                                  .takes = search_index_takes};
