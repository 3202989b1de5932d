/* Which names there are. Lists are found from the catalogue: the values of a path parameter are those of the list at
 * the path before it. Only what no path says stands in tables here. */
#include "cli/names.h"

#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "catalog/common.h"
#include "cli/derived/command.h"
#include "cli/derived/flags.h"
#include "cli/output.h"

#include <stdio.h>

#define NAMES_MAX 500
#define TOLD_MAX 8 /* names that are listed where none is near */

/* Lists of path parameters. */

static const struct op *op_at(struct str path)
{
	for (unsigned i = 0; i < catalog_op_count; i++)
		if (catalog_ops[i].method == METHOD_GET && str_is(path, catalog_ops[i].path))
			return &catalog_ops[i];
	return NULL;
}

/* Where the values of a parameter come from whose own path leads to no list. */
static const char *list_elsewhere(const struct op *op, const char *param)
{
	static const struct {
		const char *param, *path, *below; /* below: only of operations whose path has this in it */
	} places[] = {
	        {"groupId", "/groups", ""},
	        {"orgId", "/orgs", ""},
	        {"hostName", "/groups/{groupId}/processes", ""},
	        {"hostname", "/groups/{groupId}/processes", ""},
	        {"processId", "/groups/{groupId}/processes", ""},
	        {"clusterName", "/groups/{groupId}/clusters", ""},
	        {"name", "/groups/{groupId}/clusters", "/sampleDatasetLoad/"},
	        {"groupName", "/groups", ""},
	        {"teamName", "/orgs/{orgId}/teams", ""},
	        {"userId", "/orgs/{orgId}/users", ""},
	        {"userName", "/orgs/{orgId}/users", ""},
	        {"federationSettingsId", "/orgs/{orgId}/federationSettings", ""},
	};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (strcmp(places[i].param, param) == 0 && strstr(op->path, places[i].below))
			return places[i].path;
	return NULL;
}

const char *names_list_of(struct arena *a, const struct op *op, const char *param)
{
	const char *at = strstr(op->path, arena_printf(a, "/{%s}", param).p);
	struct str before = {op->path, at ? (size_t)(at - op->path) : 0};
	/* What lies below a host's name lies among the clusters, but is none of them. */
	const struct op *list = strcmp(param, "hostName") == 0 || !before.n ? NULL : op_at(before);
	if (!list && before.n) /* processor/{processorName} is of /processors */
		list = op_at(arena_printf(a, "%.*ss", STR_ARG(before)));
	/* databaseUsers/{databaseName}/{username}: an entry of the list has both. */
	while (!list && str_ends(before, STR("}"))) {
		before.n = (size_t)((const char *)memrchr(before.p, '/', before.n) - before.p);
		list = op_at(before);
	}
	return list ? list->path : list_elsewhere(op, param);
}

const char *names_text(const json_t *item, const char *param)
{
	static const char *const others[] = {"username", "cidrBlock", "ipAddress", "name", "id"};
	bool id = str_ends(str_of(param), STR("Id")), name = str_ends(str_of(param), STR("Name"));
	const char *first = param, *second = id ? "id" : name ? "name" : param;
	const char *text = json_string_value(json_object_get(item, first));
	if (!text)
		text = json_string_value(json_object_get(item, second));
	for (size_t i = 0; !text && i < sizeof others / sizeof *others; i++)
		text = json_string_value(json_object_get(item, others[i]));
	return text;
}

const char *names_about(const json_t *item, const char *text)
{
	static const char *const names[] = {"name", "desc", "username", "userAlias", "comment", "stateName"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *about = json_string_value(json_object_get(item, names[i]));
		if (about && text && strcmp(about, text) != 0)
			return about;
	}
	return NULL;
}

/* Lists of flags, by the last part of their names. */

struct names_of_flag names_of_flag(struct str flag)
{
#define CLUSTER "/groups/{groupId}/clusters/{clusterName}/"
#define REGIONS "/groups/{groupId}/clusters/provider/regions"
	static const struct {
		const char *flags;
		struct names_of_flag of;
	} lists[] = {
	        {"cluster|target|cluster-name|target-cluster-name|cluster-names",
	         {"/groups/{groupId}/clusters", "results.*.name", NULL}},
	        {"size|instance-size|min-instance-size|max-instance-size",
	         {REGIONS, "results.*.instanceSizes.*.name", NULL}},
	        {"region|region-name", {REGIONS, "results.*.instanceSizes.*.availableRegions.*.name", NULL}},
	        {"provider", {REGIONS, "results.*.provider", NULL}},
	        {"version|mongo-db-major-version|db-major-version",
	         {"/groups/{groupId}/dbVersions", "results.*.version", NULL}},
	        {"snapshot|snapshot-id", {CLUSTER "backup/snapshots", "results.*.id", "results.*.createdAt"}},
	        {"index",
	         {CLUSTER "performanceAdvisor/suggestedIndexes", "content.suggestedIndexes.*.id",
	          "content.suggestedIndexes.*.namespace"}},
	        {"namespace|namespaces",
	         {CLUSTER "performanceAdvisor/suggestedIndexes", "content.suggestedIndexes.*.namespace", NULL}},
	        {"node", {"/groups/{groupId}/processes", "results.*.userAlias", "results.*.typeName"}},
	        {"process-ids", {"/groups/{groupId}/processes", "results.*.id", "results.*.typeName"}},
	        {"user", {"/groups/{groupId}/databaseUsers", "results.*.username", NULL}},
	        {"type|event-type|event-type-name", {"/eventTypes", "results.*.eventType", "results.*.description"}},
	        {"project|group-id|project-id|target-group-id|target-project|target-project-id",
	         {"/groups", "results.*.id", "results.*.name"}},
	        {"org-id", {"/orgs", "results.*.id", "results.*.name"}},
	        {"team-id", {"/orgs/{orgId}/teams", "results.*.id", "results.*.name"}},
	        {"usernames", {"/orgs/{orgId}/users", "results.*.username", NULL}},
	        {"export-bucket-id",
	         {"/groups/{groupId}/backup/exportBuckets", "results.*._id", "results.*.bucketName"}},
	        {"container-id", {"/groups/{groupId}/containers/all", "results.*.id", "results.*.providerName"}},
	        {"iam-role-id|role-id",
	         {"/groups/{groupId}/cloudProviderAccess", "awsIamRoles.*.roleId", "awsIamRoles.*.iamAssumedRoleArn"}},
	};
#undef CLUSTER
#undef REGIONS
	struct str last = flag;
	const char *dot = flag.n ? memrchr(flag.p, '.', flag.n) : NULL;
	if (dot)
		last = (struct str){dot + 1, (size_t)(flag.p + flag.n - dot - 1)};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (str_is_one_of(lists[i].flags, last))
			return lists[i].of;
	return (struct names_of_flag){NULL, NULL, NULL};
}

/* Asking. */

const char *names_query(const char *list)
{
	const struct op *op = op_at(str_of(list));
	return op && op->paginated ? "?itemsPerPage=500" : "";
}

const char *names_path_fill(struct arena *a, const char *path, const char *(*value)(void *ctx, struct str param),
                            void *ctx)
{
	struct buf b = {0};
	bool known = true;
	for (const char *p = path; *p && known;) {
		const char *end = *p == '{' ? strchr(p, '}') : NULL;
		if (!end) {
			buf_c(&b, *p++);
			continue;
		}
		const char *text = value(ctx, (struct str){p + 1, (size_t)(end - p - 1)});
		known = text != NULL;
		if (known)
			buf_z(&b, url_escape(a, str_of(text)));
		p = end + 1;
	}
	const char *filled = known ? arena_z(a, buf_view(&b)) : NULL;
	buf_free(&b);
	return filled;
}

json_t *names_get(struct client *c, struct arena *a, const char *path)
{
	struct client_answer answer;
	struct client_request r = {.method = "GET", .quiet = true, .timeout_ms = NAMES_MS};
	r.path = arena_printf(a, API_BASE "%s?itemsPerPage=%d", path, NAMES_MAX).p;
	if (client_call(c, a, &r, &answer) < 0 || answer.status != 200)
		return NULL;
	json_t *results = json_object_get(answer.json, "results");
	if (results || json_is_array(answer.json))
		return results ? results : answer.json;
	/* Of what there is one. */
	json_t *one = json_keep(a, json_array());
	json_array_append(one, answer.json);
	return one;
}

/* Near names. */

struct place {
	struct arena *arena;
	const struct op *op;
	const char *values[PATH_PARAMS_MAX]; /* by the path parameters of op */
	unsigned literals;                   /* parts that stand in the operation's path as they are */
};

/* Whether the path is one of the operation's. */
static bool place_read(struct arena *a, const struct op *op, struct str path, struct place *ret_place)
{
	struct place p = {.arena = a, .op = op};
	struct str template = str_of(op->path), wanted, given;
	unsigned n = 0;
	for (bool more = true; more;) {
		more = str_cut(template, '/', &wanted, &template);
		if (more != str_cut(path, '/', &given, &path))
			return false;
		bool is_param = wanted.n && wanted.p[0] == '{' && str_ends(wanted, STR("}"));
		if (!is_param && !str_eq(wanted, given))
			return false;
		p.literals += !is_param;
		if (is_param && (!given.n || n == op->path_param_count))
			return false;
		if (is_param)
			p.values[n++] = url_unescape(a, given);
	}
	*ret_place = p;
	return true;
}

static bool place_find(struct arena *a, const char *path, struct place *ret_place)
{
	struct str rest = str_of(path), whole, query;
	struct place found = {.op = NULL};
	if (!str_starts(rest, STR(API_BASE)))
		return false;
	rest = (struct str){rest.p + sizeof API_BASE - 1, rest.n - (sizeof API_BASE - 1)};
	str_cut(rest, '?', &whole, &query);
	for (unsigned i = 0; i < catalog_op_count; i++) {
		struct place one;
		if (place_read(a, &catalog_ops[i], whole, &one) && (!found.op || one.literals > found.literals))
			found = one;
	}
	*ret_place = found;
	return found.op;
}

/* The parameter that names nothing: the one whose 404 has this code, else the last. */
static int parameter_missing(const struct op *op, struct str code)
{
	int found = (int)op->path_param_count - 1;
	for (unsigned i = 0; i < op->path_param_count; i++)
		if (op->path_params[i].not_found && str_is(code, op->path_params[i].not_found))
			found = (int)i;
	return found;
}

static const char *place_value(void *ctx, struct str param)
{
	const struct place *p = ctx;
	for (unsigned i = 0; i < p->op->path_param_count; i++)
		if (str_is(param, p->op->path_params[i].name))
			return p->values[i];
	return NULL;
}

static void few_tell(struct arena *a, json_t *items, const char *param)
{
	struct buf b = {0};
	json_t *item;
	size_t i;
	json_array_foreach(items, i, item)
	{
		const char *text = names_text(item, param), *about = names_about(item, text);
		if (text)
			buf_printf(&b, "%s%s%s%s%s", b.n ? ", " : "", text, about ? " (" : "", about ? about : "",
			           about ? ")" : "");
	}
	if (b.n)
		fprintf(stderr, "steward: there is %s\n", text_shown(a, buf_view(&b)));
	buf_free(&b);
}

/* Of ids nobody means the nearest: they are found by the name of what they are of. */
static void near_tell(struct arena *a, json_t *items, const char *param, const char *typed)
{
	const char *names[NAMES_MAX], *texts[NAMES_MAX];
	size_t count = 0, i;
	json_t *item;
	json_array_foreach(items, i, item)
	{
		const char *text = names_text(item, param), *about = names_about(item, text);
		if (text && strcmp(text, typed) == 0)
			return; /* it is there: something else is not */
		if (!text || count == NAMES_MAX)
			continue;
		names[count] = id_is_valid(str_of(text)) && about ? about : text;
		texts[count++] = text;
	}
	const char *near = flag_nearest(str_of(typed), names, count);
	for (i = 0; near && i < count; i++)
		if (names[i] == near)
			break;
	if (!near && count <= TOLD_MAX)
		few_tell(a, items, param);
	else if (near && texts[i] == near)
		fprintf(stderr, "steward: did you mean \"%s\"?\n", text_shown(a, str_of(near)));
	else if (near)
		fprintf(stderr, "steward: did you mean %s (%s)?\n", text_shown(a, str_of(texts[i])),
		        text_shown(a, str_of(near)));
}

void names_near_tell(struct client *c, const char *path, const json_t *problem)
{
	struct arena *a = arena_new();
	struct place p;
	int i = place_find(a, path, &p) ? parameter_missing(p.op, json_field(problem, "errorCode")) : -1;
	const char *param = i < 0 ? NULL : p.op->path_params[i].name;
	const char *list = param ? names_list_of(a, p.op, param) : NULL;
	const char *filled = list ? names_path_fill(a, list, place_value, &p) : NULL;
	json_t *items = filled ? names_get(c, a, filled) : NULL;
	if (items)
		near_tell(a, items, param, p.values[i]);
	arena_free(a);
}
