/* Words of a dialect: which dialects are served, paths, parameters, faults, sentences, and what bodies may have. */
#include "catalog/dialect.h"

#include "base/json.h"
#include "check.h"

static const struct dialect *atlas(void)
{
	for (unsigned i = 0; i < catalog_dialect_count; i++)
		if (strcmp(catalog_dialects[i].name, "atlas") == 0)
			return &catalog_dialects[i];
	return NULL;
}

static void choice(void)
{
	const struct dialect *d = atlas();
	CHECK(d && dialect_is_served(d));
	CHECK(dialect_of_path(STR("/api/atlas/v2/groups")) == d);
	CHECK(dialect_of_path(STR("/api/atlas/v2")) == d);
	CHECK(dialect_of_path(STR("/api/atlas/v1.0/groups")) == d);
	CHECK(!dialect_of_path(STR("/api/atlas/v22/groups")) && !dialect_of_path(STR("/api/svc/v2/groups")));
	CHECK(dialect_reserves(STR("atlasAdmin")) && !dialect_reserves(STR("svcAdmin")) && !dialect_reserves(STR("x")));
	CHECK(dialects_choose(STR("none")) == 0 && !dialect_is_served(d) && !dialect_reserves(STR("atlasAdmin")));
	/* What another host passes on is understood all the same. */
	CHECK(dialect_of_path(STR("/api/atlas/v2/groups")) == d && !dialect_endpoint(STR("/api/private/ipinfo")));
	CHECK(dialects_choose(STR("nonsense")) < 0 && dialects_choose(STR("")) < 0);
	CHECK(dialects_choose(STR("atlas,nonsense")) < 0);
	CHECK(dialects_choose(STR(" atlas")) == 0 && dialect_is_served(d));
	CHECK(dialect_endpoint(STR("/api/private/ipinfo")) && !dialect_endpoint(STR("/api/private/ipinfo/")));
}

static struct match find(const char *path, struct arena *a)
{
	struct match m;
	catalog_match(METHOD_GET, str_of(path), a, &m);
	return m;
}

static void paths(struct arena *a)
{
	struct match m = find("/api/atlas/v2/groups/5f0000000000000000000001/mongoDBVersions", a);
	CHECK(m.op && strcmp(m.op->path, "/groups/{groupId}/dbVersions") == 0 && m.dialect == atlas() && !m.v1);
	CHECK(strcmp(dialect_path(m.dialect, m.op), "/groups/{groupId}/mongoDBVersions") == 0);
	CHECK(!find("/api/atlas/v2/groups/5f0000000000000000000001/dbVersions", a).allowed);
	CHECK(!find("/api/svc/v2/groups/5f0000000000000000000001/mongoDBVersions", a).allowed);
	CHECK(find("/api/atlas/v1.0/groups", a).v1 && find("/api/atlas/v1.0/groups", a).op);
	m = find("/api/atlas/v2/groups/1/limits/atlas.project.deployment.clusters", a);
	CHECK(m.op && str_is(m.params[1], "svc.project.deployment.clusters"));
	m = find("/api/atlas/v2/groups/1/limits/svc.project.deployment.clusters", a);
	CHECK(m.op && str_is(m.params[1], "atlas.project.deployment.clusters"));
	m = find("/api/atlas/v2/groups/1/clusters/host/logs/mongodb.gz", a);
	CHECK(m.op && str_is(m.params[2], "db"));
	/* What callers name themselves is no word. */
	m = find("/api/atlas/v2/groups/1/clusters/mongoDBVersions", a);
	CHECK(m.op && str_is(m.params[1], "mongoDBVersions"));
}

static void lists(struct arena *a)
{
	const struct op *op = catalog_op("listGroupEvents");
	for (unsigned i = 0; i < op->query_param_count; i++) {
		const struct param *p = &op->query_params[i];
		const struct vocabulary *w = dialect_words(atlas(), p->schema);
		struct str text =
		        words_list(w, STR("MONGODB_USER_ADDED,CLUSTER_CREATED,,ATLAS_MAINTENANCE_DEFERRED"), a);
		if (strcmp(p->name, "eventType") == 0 || strcmp(p->name, "excludedEventType") == 0)
			CHECK(str_is(text, "DB_USER_ADDED,CLUSTER_CREATED,,SVC_MAINTENANCE_DEFERRED"));
		else
			CHECK(str_is(text, "MONGODB_USER_ADDED,CLUSTER_CREATED,,ATLAS_MAINTENANCE_DEFERRED"));
	}
}

static void faults(struct arena *a)
{
	const struct op *op = catalog_op("createCluster");
	const struct vocabulary *w = dialect_words(atlas(), op->versions[op->version_count - 1].request);
	struct fault f = {STR("configServerManagementMode"), STR("must be one of SVC_MANAGED, FIXED_TO_DEDICATED")};
	words_fault(w, &f, a);
	CHECK(str_is(f.path, "configServerManagementMode") &&
	      str_is(f.text, "must be one of ATLAS_MANAGED, FIXED_TO_DEDICATED"));
	f = (struct fault){STR("mongoDBMajorVersion"), STR("unknown field (did you mean dbMajorVersion?)")};
	words_fault(w, &f, a);
	CHECK(str_is(f.path, "dbMajorVersion") && str_is(f.text, "unknown field (did you mean mongoDBMajorVersion?)"));
	f = (struct fault){STR("tags[1].value"), STR("must be SVC_MANAGED")};
	words_fault(w, &f, a);
	CHECK(str_is(f.path, "tags[1].value") && str_is(f.text, "must be SVC_MANAGED"));
	f = (struct fault){STR("connectionStrings.privateEndpoint[0].type"), STR("must be one of DB, ROUTER")};
	words_fault(w, &f, a);
	CHECK(str_is(f.path, "connectionStrings.privateEndpoint[0].type"));
	CHECK(str_is(f.text, "must be one of MONGOD, MONGOS"));
	words_fault(NULL, &f, a);
	CHECK(str_is(f.text, "must be one of MONGOD, MONGOS"));
}

static void sentences(struct arena *a)
{
	const struct dialect *d = atlas();
	struct str text =
	        STR("replicationSpecs[0].dbMajorVersion: see svcAdmin, svc.project.deployment.clusters. my-dbVersion");
	CHECK(str_is(dialect_sentence(d, text, STR_NONE, STR_NONE, a),
	             "replicationSpecs[0].mongoDBMajorVersion: see atlasAdmin, atlas.project.deployment.clusters. "
	             "my-dbVersion"));
	/* What the caller has said stays. */
	CHECK(str_is(dialect_sentence(d, STR("A project named svcAdmin exists: dbVersion."), STR_NONE,
	                              STR("{\"name\":\"svcAdmin\"}"), a),
	             "A project named svcAdmin exists: mongoDBVersion."));
	CHECK(str_is(dialect_sentence(NULL, text, STR_NONE, STR_NONE, a), text.p));
	CHECK(str_is(dialect_sentence(d, STR("ROUTER or DB"), STR_NONE, STR_NONE, a), "ROUTER or DB"));
}

/* The body that is left of one, with all leniencies. */
static bool relaxes(const char *operation, const char *body, const char *left)
{
	const struct op *op = catalog_op(operation);
	json_t *value = json_loads(body, 0, NULL), *wanted = json_loads(left, 0, NULL);
	schema_relax(op->versions[op->version_count - 1].request, value, true, true);
	bool same = value && wanted && json_equal(value, wanted);
	json_decref(value);
	json_decref(wanted);
	return same;
}

static void leniency(void)
{
	CHECK(relaxes("createGroup",
	              "{\"name\":\"a\",\"orgId\":\"1\",\"clusterCount\":0,\"created\":\"x\",\"tags\":null}",
	              "{\"name\":\"a\",\"orgId\":\"1\"}"));
	CHECK(relaxes("createCluster",
	              "{\"name\":\"a\",\"groupId\":\"1\",\"replicationSpecs\":[{\"id\":\"1\",\"zoneId\":\"2\","
	              "\"zoneName\":\"z\","
	              "\"regionConfigs\":[{\"providerName\":\"AWS\",\"electableSpecs\":null,\"priority\":7}]}]}",
	              "{\"name\":\"a\",\"replicationSpecs\":[{\"zoneName\":\"z\",\"regionConfigs\":[{\"providerName\":"
	              "\"AWS\",\"priority\":7}]}]}"));
	CHECK(relaxes("updateDatabaseUser", "{\"password\":\"a-long-password\",\"roles\":null,\"unknown\":null}",
	              "{\"password\":\"a-long-password\"}"));
	/* What nobody knows is still refused. */
	CHECK(relaxes("createGroup", "{\"name\":\"a\",\"unknown\":1}", "{\"name\":\"a\",\"unknown\":1}"));
}

int main(void)
{
	struct arena *a = arena_new();
	json_setup();
	choice();
	CHECK(schema_setup() == 0 && catalog_setup() == 0);
	paths(a);
	lists(a);
	faults(a);
	sentences(a);
	leniency();
	catalog_teardown();
	schema_teardown();
	arena_free(a);
	return CHECK_DONE();
}
